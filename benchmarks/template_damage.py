"""The calls of chat templates, damaged in each way: how many are right, refused or wrong.

    python benchmarks/template_damage.py FOLDER            # a folder of chat templates
    python benchmarks/template_damage.py FOLDER --misses   # and the texts that were not read right

Each template's protocol is derived from it (`protocol_from_chat_template`); the answers that were
not used to fit are damaged then. A call is wrong where it could be executed and says something
else than was meant. A text that was cut off inside a call is right where nothing of that call is
executed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import toolparse_lab as tp
from toolparse_lab.core.values import same
from toolparse_lab.extensions.templates import DerivedProtocol, protocol_from_chat_template
from toolparse_lab.extensions.templates.derivation.answers import (
    HELD,
    Answer,
    Answers,
    Call,
    Probe,
    answers_of,
    rendered_like,
    tools_of,
)
from toolparse_lab.extensions.templates.derivation.derive import options_for
from toolparse_lab.extensions.templates.derivation.families import UNIT
from toolparse_lab.runner.chat_templates.renderer import ChatTemplate

WAYS = (
    "opener missing", "closer missing", "tokens stripped", "closer in a value",
    "two calls in one delta", "truncation",
)  # fmt: skip
TOOLS = tools_of(HELD)


@dataclass(frozen=True)
class Damage:
    """A damaged answer: what was done to it, and the calls that it means."""

    way: str
    text: str
    meaning: tuple[Call, ...]


def damages(
    template: ChatTemplate, answers: Answers, protocol: DerivedProtocol
) -> Iterator[Damage]:
    """Yield every damaged answer of a template."""
    derivation = protocol.derivation
    assert derivation is not None
    opener = derivation.opener.split("{name}")[0].split("{id}")[0].strip()
    closer = derivation.closer.strip()
    for answer in answers.others.values():
        calls = meaning(answer)
        # What a template itself does not tell apart is no question of damage.
        if not calls or answer.probe.reasoning or answer.probe.id not in derivation.read_back:
            continue
        if len(calls) > 1:
            yield Damage("two calls in one delta", answer.text, calls)
            continue
        text = answer.text
        if opener in text:
            yield Damage("opener missing", text.replace(opener, "", 1), calls)
        if closer and closer in text:
            head, _, tail = text.rpartition(closer)
            yield Damage("closer missing", head + tail, calls)
        stripped = UNIT.sub(lambda m: "" if _is_special(m[0]) else m[0], text)
        # Where a token holds the name of a tool or of an argument, a tokenizer cannot strip it.
        words = (calls[0].name, *calls[0].arguments)
        if stripped != text and all(word in stripped for word in words):
            yield Damage("tokens stripped", stripped, calls)
        start = text.find(calls[0].name) + len(calls[0].name)
        for part in (1, 2, 3):
            cut = start + (len(text) - start) * part // 4
            yield Damage("truncation", text[:cut], calls)
    if closer and derivation.family != "row":
        quoted = Probe("closer in a value", (Call("seal_crate", {"note": f"ends {closer} here"}),))
        named = replace(quoted.calls[0], name="weigh_parcel")
        for answer in rendered_like(template, answers, [replace(quoted, calls=(named,))], TOOLS):
            if meaning(answer):
                yield Damage("closer in a value", answer.text, meaning(answer))


def _is_special(token: str) -> bool:
    """Return whether a token looks like one that tokenizers strip."""
    return "|" in token or "｜" in token or token.startswith("[")


def meaning(answer: Answer) -> tuple[Call, ...]:
    """Return the calls of an answer that its template writes."""
    return tuple(call for call in answer.probe.calls if call.name in answer.text)


def verdict(damage: Damage, protocol: tp.Protocol) -> str:
    """Return "right", "refused" or "wrong" for one damaged answer."""
    result = tp.parse(damage.text, protocol, TOOLS, options_for(damage.text))
    calls = [call for call in result.calls if call.ok and call.valid]
    pairs = list(zip(calls, damage.meaning, strict=False))
    alike = all(a.name == b.name and same(a.arguments, dict(b.arguments)) for a, b in pairs)
    if damage.way == "truncation" and not calls:
        return "right"
    if not alike or len(calls) > len(damage.meaning):
        return "wrong"
    return "right" if len(calls) == len(damage.meaning) else "refused"


def table(counts: Counter[tuple[str, str, str]]) -> str:
    """Return the counts by way of damage, as Markdown."""
    lines = ["| damage | n | right % | refused % | wrong % |", "|---|---|---|---|---|"]
    for way in (*WAYS, "all"):
        by = Counter[str]()
        for (_, kind, outcome), n in counts.items():
            if way in (kind, "all"):
                by[outcome] += n
        n = by.total()
        if n:
            shares = " | ".join(f"{100 * by[k] / n:.1f}" for k in ("right", "refused", "wrong"))
            lines.append(f"| {way} | {n} | {shares} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--misses", action="store_true")
    chosen = options.parse_args(arguments)
    counts: Counter[tuple[str, str, str]] = Counter()
    for path in sorted(chosen.folder.glob("*.jinja")):
        template = ChatTemplate.of(path)
        try:
            protocol = protocol_from_chat_template(path)
        except tp.errors.UnreadableTemplate as error:
            print(f"{path.name}: {error.args[0]}".splitlines()[0], file=sys.stderr)
            continue
        for damage in damages(template, answers_of(template), protocol):
            outcome = verdict(damage, protocol)
            counts[(path.name, damage.way, outcome)] += 1
            if chosen.misses and outcome != "right":
                print(f"{path.name}: {damage.way}: {outcome}: {damage.text!r}")
    print(table(counts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
