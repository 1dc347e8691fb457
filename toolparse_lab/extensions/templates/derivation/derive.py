"""`protocol_from_chat_template`: render probes, fit a family, read other probes back."""

# How it works. A template renders two groups of conversations with calls of invented names. From
# the first group each family of formats takes the constants that it would need (`families.py`);
# each set of constants is a protocol. The second group decides: the first protocol that reads all
# of it back is the answer. Where none does, shipped protocols are tried whose openers are in the
# answers. Where none of them does, the differing probe is the error.

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ....core.errors import BadOptions, UnreadableTemplate, UnwritableCall
from ....core.toolspec import ToolSpec
from ....core.types import ParseOptions
from ....core.values.affixes import common_prefix, common_suffix
from ....entry.parse import parse_text
from ....formats.base import Protocol
from ....formats.registry import protocols
from ....formats.spec import SpecFields
from ....runner.chat_templates.renderer import ChatTemplate, TemplateLike, one_renderer
from .account import Derivation
from .answers import (
    FIT,
    HELD,
    KINDS,
    QUESTION,
    TWO,
    Answer,
    Answers,
    Call,
    answers_of,
    plain_tool,
    rendered_like,
    same_calls,
    tools_of,
)
from .derived import TEXT, DerivedProtocol, derived_protocol
from .families import FERRY, FITS, Samples, beside_of, lost_in, result_of, thought_of

_SYSTEM = "Zq system words."
_SPECIAL = r"(?:<[|｜][^<>\n]{1,60}>|<[^<>\n]{1,60}[|｜]>|\[/?[A-Z][A-Z_]+\])"
# A role's header in front, and the end of its turn behind.
_HEADER = re.compile(rf"(?:\s*{_SPECIAL}(?:system|developer|user)?)+")
_END = re.compile(rf"(?:\s*{_SPECIAL})+\s*[\[<]?\Z")


def model_prompt(protocol: Protocol) -> Callable[..., str]:
    """Return the words of a model's own chat template about tools, as the prompt of a plan.

    `lab.plan(…, [protocol], wording=model_prompt(protocol))`. protocol: one of
    `protocol_from_chat_template`. Raises BadOptions for any other; the prompt itself raises it for
    a template that says nothing about tools, and UnreadableTemplate for one that takes more time or
    memory than it may.
    """
    constants = json.loads(protocol.spec or "{}")
    source = constants.get("prompt") if isinstance(constants, Mapping) else None
    if source is None:
        raise BadOptions(
            "this protocol has no chat template to explain tools with",
            got=protocol.id,
            expected="a protocol of protocol_from_chat_template",
        )
    text, tokens = source["template"], json.dumps(source["tokens"])

    def model(*, tools: Sequence[ToolSpec], **_: Any) -> str:
        return _prompt(text, tokens, json.dumps([tool.to_openai() for tool in tools]))

    return model


@lru_cache(maxsize=256)
def _prompt(text: str, tokens: str, definitions: str) -> str:
    template = ChatTemplate(text, json.loads(tokens))
    whole = json.loads(definitions)
    plain = [plain_tool(tool) for tool in json.loads(definitions)]
    user = {"role": "user", "content": QUESTION}
    jobs: list[dict[str, Any]] = []
    for messages in ([{"role": "system", "content": _SYSTEM}, user], [user]):
        jobs += [
            {"messages": messages, "tools": tools, "add_generation_prompt": True}
            for tools in (None, [], whole, plain)
        ]
    texts = template.render(jobs)
    for absent, empty, *offered in (texts[:4], texts[4:]):
        # Some templates take no tools for an error, others an empty list of them.
        without = empty if absent.error else absent
        for rendering in offered:
            if rendering.error or without.error:
                continue
            words = _inserted(rendering.text, without.text)
            if words:
                return words
    errors = "; ".join(dict.fromkeys(text.error for text in texts if text.error))
    raise BadOptions(
        "this chat template writes nothing about tools",
        got=errors or "the same text with tools and without",
        hint="take another wording, such as plain",
    )


def _inserted(text: str, without: str) -> str:
    start = common_prefix(text, without)
    rest, other = text[start:], without[start:]
    end = len(rest) - common_suffix(rest, other)
    # A cut goes through no token: it moves to where the token begins.
    torn = re.search(r"<[^<>\s]{0,60}\Z|\[[A-Z_]{0,40}\Z", text[:start])
    if torn is not None:
        end += len(torn[0])
        rest = text[torn.start() :]
        closing = re.match(r"[^<>\s]{0,60}>", rest[end:])
        if rest[:end].endswith(torn[0]) and closing is not None:
            end -= len(torn[0])
    words = rest[:end].replace(_SYSTEM, "").strip()
    header = _HEADER.match(words)
    words = words[header.end() :] if header else words
    return _END.sub("", words).strip()


_BY_HAND = "describe the format: Protocol.from_spec, or a codec of your own as in CONTRIBUTING.md"
_MARKUP = "a <b> & c"


@dataclass(frozen=True, slots=True)
class Check:
    """One probe read back."""

    answer: Answer
    calls: tuple[Call, ...]  # that were read
    whole: bool  # they are those of the probe
    clean: bool  # so is the text
    changes: int = 0  # edits and problems that it took
    # The template writes these calls as those of the probe, so that no reader can tell them apart.
    alike: bool = False

    @property
    def good(self) -> bool:
        return self.whole or self.alike


@dataclass(frozen=True, slots=True)
class Proof:
    """All probes read back by one protocol."""

    protocol: Protocol
    checks: tuple[Check, ...]

    @property
    def differing(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.good)

    @property
    def rank(self) -> tuple[int, int, int]:
        # Probes that differ in calls, and in text, and changes.
        unclean = sum(1 for check in self.checks if not check.clean)
        return len(self.differing), unclean, sum(check.changes for check in self.checks)


def protocol_from_chat_template(
    template: TemplateLike, *, id: str | None = None
) -> DerivedProtocol:
    """Return the protocol of a model's chat template, derived and verified.

    The template is rendered in a process of its own, with limits of time and memory. `derivation`
    of the protocol says what was measured.

    Args:
        template: Jinja text, the dict of a tokenizer_config.json or chat_template.json, or the path
            of such a file, of a .jinja file or of a model's folder.
        id: of the protocol, else one that follows from the text.

    Raises BadOptions for anything that is not a template, BadSpec for an id that cannot be one, and
    UnreadableTemplate for a template that writes no calls, or calls that no protocol reads back: it
    names the probe that differs.
    """
    own_id = checked_id(id)
    source = ChatTemplate.of(template)
    protocol_id = own_id or "template-" + hashlib.sha256(source.text.encode()).hexdigest()[:8]
    with one_renderer():
        return protocol_of_answers(answers_of(source), protocol_id, "chat template", source)


def checked_id(id: str | None) -> str | None:
    return None if id is None else SpecFields({"id": id}).id()


def protocol_of_answers(
    answers: Answers, protocol_id: str, origin: str, template: ChatTemplate | None = None
) -> DerivedProtocol:
    """Return the protocol that reads these answers. Raises UnreadableTemplate.

    origin: the kind of file they are from. template: the one that wrote them, to be asked again.
    """
    best = best_proof(answers, template, protocol_id)
    # Answers without any call would be read by every protocol.
    if best is None or best.differing or not any(check.whole for check in best.checks):
        raise _unreadable(best, answers)
    row = _best_row(answers)
    if row is not None and template is not None:
        row = _with_alike(row, template, answers)
    known = row.protocol.id if row is not None and not row.differing else None
    derivation = _account_of(best, answers, known, origin)
    constants = json.loads(best.protocol.spec)
    if template is not None:
        # It stays with the protocol, since it is the model's own prompt as well.
        constants["prompt"] = {"template": template.text, "tokens": dict(template.tokens)}
    return replace(derived_protocol(constants), derivation=derivation)


def best_proof(answers: Answers, template: ChatTemplate | None, protocol_id: str) -> Proof | None:
    """Return the proof of a fitted protocol, or of a shipped one that reads the answers better."""
    proofs = [_prove(protocol, answers, template) for protocol in _fitted(answers, protocol_id)]
    best = min(proofs, key=lambda proof: proof.rank, default=None)
    # It begins with a token, and not in the middle of a message's header: messages with a recipient
    # are written in more ways than a template shows, and of those a shipped protocol knows more.
    form = json.loads(best.protocol.spec)["form"] if best is not None else {}
    has_token = not str(form.get("header", "<"))[:1].isalpha()
    if best is not None and best.rank[:2] == (0, 0) and has_token:
        return best
    row = _best_row(answers)
    if row is None or (best and (best.rank[:2], not has_token) < (row.rank[:2], True)):
        return best
    constants = {
        "family": "row",
        "form": {"id": row.protocol.id},
        "lost": lost_in(Samples.of(answers)),
    }
    protocol = derived_protocol({"body": "derived", "id": protocol_id, **constants})
    return _prove(protocol, answers, template)


def _fitted(answers: Answers, protocol_id: str) -> Iterator[DerivedProtocol]:
    samples = Samples.of(answers)
    thought, result = thought_of(answers), result_of(answers)
    beside = [text for text in beside_of(answers) if text not in thought]
    for fit in FITS:
        constants = fit(samples)
        if constants is None:
            continue
        constants |= {"body": "derived", "id": protocol_id}
        constants["markup"] = [*constants.get("markup", ()), *beside]
        if any(thought):
            constants["thought"] = thought
        if result:
            constants["result"] = result
        yield derived_protocol(constants)


def _best_row(answers: Answers) -> Proof | None:
    # Of those that read them alike, one that writes such an answer, and whose opener says most.
    samples = Samples.of(answers)
    tools = {tool.name: tool for tool in tools_of(FIT)}
    ratings: list[tuple[Proof, int, int]] = []
    for row in protocols().values():
        heads = row.envelope.heads(tools)
        lengths = [len(head) for head in heads if head in samples.first]
        # Formats without any opener may have written everything.
        if heads and not lengths:
            continue
        try:
            call = row.write_call(FERRY.name, json.dumps(FERRY.arguments), tools[FERRY.name])
        except UnwritableCall:
            unlike = 2
        else:
            is_written = "".join(call.split()) in "".join(samples.one.split())
            unlike = 0 if call in samples.one else 1 if is_written else 2
        ratings.append((_prove(row, answers), unlike, -max(lengths, default=0)))
    return min(ratings, key=lambda rating: (rating[0].rank, *rating[1:]), default=(None,))[0]


def expected(answer: Answer) -> tuple[Call, ...]:
    # Some templates write the first call alone.
    return tuple(call for call in answer.probe.calls if call.name in answer.text)


def options_for(text: str) -> ParseOptions:
    # Reasoning that began in the prompt shows in a lone closer.
    lone = "</think>" in text and "<think>" not in text
    return ParseOptions(reasoning="prefilled" if lone else "auto")


def _prove(protocol: Protocol, answers: Answers, template: ChatTemplate | None = None) -> Proof:
    # On the probes that were not used to fit.
    tools = tools_of(HELD)
    checks: list[Check] = []
    for answer in answers.others.values():
        meaning = expected(answer)
        if not meaning:
            continue
        result = parse_text(answer.text, protocol, tools, options_for(answer.text))
        calls = tuple(Call(call.name, call.arguments, call.wire_id or "") for call in result.calls)
        whole = all(call.ok for call in result.calls) and same_calls(calls, meaning)
        said, thought = answer.probe.content, answer.probe.reasoning
        clean = result.text.strip() in (said, thought, f"{thought}{said}", "")
        changes = sum(len(call.edits) + len(call.problems) for call in result.calls)
        checks.append(Check(answer, calls, whole, clean, changes))
    proof = Proof(protocol, tuple(checks))
    return proof if template is None else _with_alike(proof, template, answers)


def _with_alike(proof: Proof, template: ChatTemplate, answers: Answers) -> Proof:
    # The calls that were read are rendered in place of those of the probe: where the text is the
    # same, no reader can tell them apart.
    probes, doubtful = [], []
    for check in proof.differing:
        # Other arguments under the same names.
        if [call.name for call in check.calls] == [call.name for call in expected(check.answer)]:
            probe, n = check.answer.probe, len(check.calls)
            calls = [
                replace(own, arguments=dict(call.arguments or {}))
                for call, own in zip(check.calls, probe.calls, strict=False)
            ]
            probes.append(replace(probe, calls=(*calls, *probe.calls[n:])))
            doubtful.append(check.answer)
    if not doubtful:
        return proof
    texts = rendered_like(template, answers, probes, tools_of(HELD))
    alike = {a.probe.id for a, text in zip(doubtful, texts, strict=True) if text.text == a.text}
    checks = (replace(c, alike=c.answer.probe.id in alike) for c in proof.checks)
    return replace(proof, checks=tuple(checks))


def _unreadable(best: Proof | None, answers: Answers) -> UnreadableTemplate:
    if best is None or not best.differing:
        answer = next(iter(answers.fit.values()))
        return UnreadableTemplate(
            "the calls of this template are of no known family",
            got=answers.fit["one call"].text,
            expected="JSON, tags around names and values, or Python",
            hint=_BY_HAND,
            probe="one call",
            text=answer.text,
        )
    check = best.differing[0]
    names = ", ".join(f"{call.name}({dict(call.arguments or {})})" for call in check.calls)
    return UnreadableTemplate(
        f"the calls of this template do not read back: {check.answer.probe.id}",
        got=f"{names or 'no call'} from {check.answer.text}",
        expected="; ".join(f"{c.name}({dict(c.arguments)})" for c in check.answer.probe.calls),
        hint=_BY_HAND,
        probe=check.answer.probe.id,
        text=check.answer.text,
    )


def _account_of(proof: Proof, answers: Answers, row: str | None, origin: str) -> Derivation:
    # row: the shipped protocol that reads it as well. origin: the kind of file it is from.
    constants: Mapping[str, Any] = json.loads(proof.protocol.spec or "{}")
    form = constants.get("form", {})
    samples = Samples.of(answers)
    thought, result = thought_of(answers), result_of(answers)
    opening = form.get("opener") or form.get("header") or ""
    closing = form.get("closer") or ""
    if not opening and "function" in form:
        function = form["function"]
        opening = function[0] if isinstance(function, list) else f"<{function}"
        closing = form.get("function_end") or f"</{function}>"
    at = samples.one.find(FERRY.id)
    return Derivation(
        source=origin,
        family=constants.get("family", "row"),
        opener=opening or form.get("id", ""),
        closer=closing,
        separators=tuple(dict.fromkeys((*form.get("markup", ()), *constants.get("markup", ())))),
        ids=samples.one[max(0, at - 20) : at] + "{id}" if at >= 0 else "",
        encoding=(
            (("arguments", "JSON in a JSON string"),)
            if TEXT in form.get("shape", ())
            else _encoding_of(samples.kinds)
        ),
        reasoning=(thought[0], thought[1]),
        result=(result[0], result[1]) if result else ("", ""),
        parallel=bool(samples.two),
        read_back=tuple(c.answer.probe.id for c in proof.checks if c.whole),
        unclear=tuple(_unclear(proof, answers)),
        example=samples.first,
        row=row,
    )


def _encoding_of(text: str) -> tuple[tuple[str, str], ...]:
    # How each kind of value is written, of a call with one of each. No row for an unusual notation.
    rows: list[tuple[str, str]] = []
    for kind, value in KINDS.calls[0].arguments.items():
        at = text.find(kind)
        behind = text[at + len(kind) : at + len(kind) + 120] if at >= 0 else ""
        notations = [("with entities", "&lt;b&gt;")] if value == _MARKUP else []
        notations.append(("JSON", json.dumps(value)))
        if isinstance(value, str):
            notations += [("Python", repr(value)), ("bare", value)]
        else:
            compact = json.dumps(value, separators=(",", ":"))
            notations += [("JSON", compact), ("Python", str(value))]
        rows += [(kind, name) for name, shape in notations if shape in behind][:1]
    return tuple(rows)


def _unclear(proof: Proof, answers: Answers) -> Iterator[str]:
    for check in proof.checks:
        id = check.answer.probe.id
        if check.alike:
            yield f"the template writes {id} as it writes other values"
        elif not check.clean:
            yield f"tokens of the format stay in the text: {id}"
    for answer in answers.others.values():
        if answer.error:
            yield f"the template does not render {answer.probe.id}: {answer.error}"
        elif not expected(answer):
            yield f"the template writes no call: {answer.probe.id}"
    if not answers.wire.thought_key:
        yield "the template writes no reasoning"
    if not Samples.of(answers).two and not answers.fit[TWO.id].error:
        yield "the template writes the first of two calls"
