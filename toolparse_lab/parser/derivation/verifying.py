"""The proof of a derived protocol: answers that it was not fitted to, read back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...core.toolspec import ToolSpec
from ...core.types import ParseOptions, ParseResult
from ...core.values import same
from ...formats.base import Protocol
from ..parse import parse_text
from .answers import Answer, Answers, rendered_like
from .probes import HELD, Call, Probe, tools_of
from .renderer import ChatTemplate


@dataclass(frozen=True, slots=True)
class Check:
    """One probe read back.

    calls: those that were read. whole: they are those of the probe. clean: so is the text. changes:
    the edits and problems it took. alike: the template writes the text read and meant the same way.
    """

    answer: Answer
    calls: tuple[Call, ...]
    whole: bool
    clean: bool
    changes: int = 0
    alike: bool = False

    @property
    def good(self) -> bool:
        """The protocol reads every readable call."""
        return self.whole or self.alike


@dataclass(frozen=True, slots=True)
class Proof:
    """All probes read back by one protocol."""

    protocol: Protocol
    checks: tuple[Check, ...]

    @property
    def differing(self) -> tuple[Check, ...]:
        """The probes that read back differently."""
        return tuple(check for check in self.checks if not check.good)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Return the numbers of probes that differ in calls and in text, and of changes."""
        unclean = sum(1 for check in self.checks if not check.clean)
        return len(self.differing), unclean, sum(check.changes for check in self.checks)


def expected(answer: Answer) -> tuple[Call, ...]:
    """Return the calls that stand in an answer: some templates write the first one alone."""
    calls = answer.probe.calls
    return tuple(call for call in calls if call.name in answer.text)


def prove(protocol: Protocol, answers: Iterable[Answer], tools: Sequence[ToolSpec]) -> Proof:
    """Return the proof of a protocol on those of these answers that have calls."""
    checks = [_check(protocol, answer, tools) for answer in answers if expected(answer)]
    return Proof(protocol, tuple(checks))


def _check(protocol: Protocol, answer: Answer, tools: Sequence[ToolSpec]) -> Check:
    """Return one answer read back."""
    result = parse_text(answer.text, protocol, tools, options_for(answer.text))
    calls = tuple(Call(call.name, call.arguments, call.wire_id or "") for call in result.calls)
    sound = all(call.ok for call in result.calls)
    meaning = expected(answer)
    pairs = zip(calls, meaning, strict=False)
    whole = sound and len(calls) == len(meaning) and all(_equal(a, b) for a, b in pairs)
    changes = sum(len(call.edits) + len(call.problems) for call in result.calls)
    return Check(answer, calls, whole, _is_clean(result, answer.probe), changes)


def options_for(text: str) -> ParseOptions:
    """Return how an answer is read: reasoning that began in the prompt shows in a lone closer."""
    lone = "</think>" in text and "<think>" not in text
    return ParseOptions(reasoning="prefilled" if lone else "auto")


def _equal(a: Call, b: Call) -> bool:
    """Return True if two calls have the same name and arguments."""
    return a.name == b.name and same(dict(a.arguments or {}), dict(b.arguments))


def _is_clean(result: ParseResult, probe: Probe) -> bool:
    """Return True if the text beside the calls is the probe's, without tokens of the format."""
    text = result.text.strip()
    return text in (probe.content, probe.reasoning, f"{probe.reasoning}{probe.content}", "")


def with_alike(proof: Proof, template: ChatTemplate, answers: Answers) -> Proof:
    """Return a proof in which what the template itself does not tell apart counts as read.

    The calls that were read are rendered in place of those of the probe: where the text is the
    same, no reader can tell them apart.
    """
    doubtful = [check for check in proof.differing if _may_be_alike(check)]
    if not doubtful:
        return proof
    probes = [_with_calls(check) for check in doubtful]
    texts = rendered_like(template, answers, probes, tools_of(HELD))
    alike = {
        check.answer.probe.id
        for check, text in zip(doubtful, texts, strict=True)
        if text.text == check.answer.text
    }
    checks = (replace(c, alike=c.answer.probe.id in alike) for c in proof.checks)
    return replace(proof, checks=tuple(checks))


def _may_be_alike(check: Check) -> bool:
    """Return True if other arguments were read under the same names."""
    meaning = expected(check.answer)
    return [call.name for call in check.calls] == [call.name for call in meaning]


def _with_calls(check: Check) -> Probe:
    """Return the probe of a check with the calls read in place of its own."""
    probe = check.answer.probe
    pairs = zip(check.calls, probe.calls, strict=False)
    calls = [replace(own, arguments=dict(call.arguments or {})) for call, own in pairs]
    return replace(probe, calls=(*calls, *probe.calls[len(calls) :]))
