"""Answers whose call is meant, and answers whose call is only shown: sentences × frames × formats.

The sentences are in `cases_core/quotation_sentences.jsonl`, in two halves of which no sentence is in
both: `tune` may be looked at while weights are chosen, `test` only counts. `held 1` to `held 4` were
written one after the other, and each was measured before anything was changed for it.

`cases_core/quotation_answers.jsonl` has whole answers, `§` for the call and `¤` for one with a
placeholder, `‡` for another one, of many kinds: `answers tune`, `answers unseen`, which was measured
before it was looked at, and `answers fresh`, which only counts.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import toolparse_lab as tp
from tests.core_cases import load
from tests.tools import tool_named
from toolparse_lab.formats.registry import family_heads

TOOLS: list[dict[str, Any]] = [
    tool_named("read_table", required=["table"], table="string", rows="integer"),
    tool_named("send_money", required=["to", "amount"], to="string", amount="integer"),
]
_SPECS = {tool["name"]: tp.ToolSpec.of(tool) for tool in TOOLS}
_CALLS = (
    ("read_table", {"table": "users", "rows": 5}),
    ("send_money", {"to": "Ann", "amount": 90}),
    ("read_table", {"table": "tides of March"}),
)
_HOLE = ("send_money", {"to": "<name>", "amount": 90})
_HOLES = ("<name>", "YOUR_NAME", "...", "[recipient]", "{to}", "$RECIPIENT", "name_of_recipient")
_ROWS, _WHOLE = load("quotation_sentences.jsonl"), load("quotation_answers.jsonl")
HALVES = tuple(dict.fromkeys(row["half"] for row in (*_ROWS, *_WHOLE)))
Frame = Callable[[str, str, str, str], str]
"""(sentence before, call, call with a placeholder, sentence after) -> answer"""


def _lines(prefix: str, text: str) -> str:
    return "\n".join(prefix + line for line in text.split("\n"))


GENUINE: dict[str, Frame] = {
    "last": lambda lead, call, hole, after: f"{lead}\n{call}",
    "paragraph": lambda lead, call, hole, after: f"{lead}\n\n{call}\n",
    "words after": lambda lead, call, hole, after: f"{lead}\n{call}\n{after}",
    "heading": lambda lead, call, hole, after: f"## The tides\n\nText.\n\n{lead}\n{call}",
    "rule": lambda lead, call, hole, after: f"My plan\n\n---\n\n{lead}\n\n{call}",
    "quotation before": lambda lead, call, hole, after: f'You wrote "as ever".\n{lead}\n{call}',
    "code before": lambda lead, call, hole, after: f"`users` it is.\n{lead}\n\n{call}",
    "block quote before": lambda lead, call, hole, after: f"> How many?\n\n{lead}\n\n{call}",
}
ENCLOSED: dict[str, Frame] = {
    "fence": lambda lead, call, hole, after: f"{lead}\n````\n{call}\n````",
    "step": lambda lead, call, hole, after: f"1. {lead}\n\n    {_lines('    ', call).lstrip()}",
    "details": lambda lead, call, hole, after: (
        f"{lead}\n<details><summary>Call</summary>\n\n{call}\n\n</details>"
    ),
}
"""frames for calls with delimiters of their own"""
SHOWN: dict[str, Frame] = {
    "plain": lambda lead, call, hole, after: f"{lead}\n{call}\n{after}",
    "fence": lambda lead, call, hole, after: f"{lead}\n````\n{call}\n````\n{after}",
    "fence, last": lambda lead, call, hole, after: f"{lead}\n\n````\n{call}\n````",
    "indented": lambda lead, call, hole, after: f"{lead}\n\n{_lines('    ', call)}\n\n{after}",
    "quoted lines": lambda lead, call, hole, after: f"{lead}\n{_lines('> ', call)}\n\n{after}",
    "inline code": lambda lead, call, hole, after: f"{lead} ``{call}`` {after}",
    "marks": lambda lead, call, hole, after: f"{lead} \u201c{call}\u201d {after}",
    "triple quotes": lambda lead, call, hole, after: f'{lead}\n"""\nBe nice.\n{call}\n"""\n{after}',
    "dashes": lambda lead, call, hole, after: f"{lead}\n\n----\n{call}\n----\n{after}",
    "diff": lambda lead, call, hole, after: (
        f"{lead}\n@@ -1,2 +1,2 @@\n{_lines('-', call)}\n{_lines('+', hole)}\n{after}"
    ),
    "transcript": lambda lead, call, hole, after: (
        f"{lead}\n[12:01] ann: do it\n[12:02] bot: {call}\n[12:03] ann: thanks\n{after}"
    ),
    "step": lambda lead, call, hole, after: f"1. {lead}\n\n````\n{hole}\n````\n\n2. {after}",
}


@dataclass(frozen=True)
class Answer:
    """One answer. meant: its call may be executed. family: of its format."""

    text: str
    format: str
    family: str
    frame: str
    language: str
    meant: bool
    request: str = ""


def sentences(half: str, kind: str) -> Iterator[tuple[str, str]]:
    """(language, sentence) of one half and kind."""
    rows = (r for r in _ROWS if r["half"] == half and r["kind"] == kind)
    yield from ((r["language"], r["text"]) for r in rows)


def write(format: str, call: tuple[str, Any]) -> str | None:
    """A call as a format, or no format, writes it. None where it cannot."""
    name, arguments = call
    if format == "JSON in a fence":
        value = json.dumps({"name": name, "arguments": arguments})
        return f"```json\n{value}\n```"
    if format == "Python in a fence":
        inner = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        return f"```python\n{name}({inner})\n```"
    if format == "JSON on a line":
        return json.dumps({"name": name, "arguments": arguments})
    if format == "Python on a line":
        inner = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        return f"[{name}({inner})]"
    try:
        protocol = tp.protocols()[format]
        return str(protocol.write_call(name, json.dumps(arguments), _SPECS[name]))
    except tp.errors.UnwritableCall:
        return None


OUTSIDE = ("JSON in a fence", "Python in a fence", "JSON on a line", "Python on a line")


def formats() -> list[tuple[str, str]]:
    """(format, family): those that read their own call behind words, and calls outside formats."""
    found = []
    for id in family_heads():
        call = write(id, _CALLS[0])
        if call is None or "\n    " in call:
            continue
        result = tp.parse(f"Well.\n\n{call}", id, TOOLS)
        recovered = any(p.code == "call.recovered" for p in result.all_problems())
        if len(result.calls) == 1 and result.calls[0].ok and not recovered:
            found.append((id, "fence" if call.startswith("`") else "delimiters"))
    families = ("fence", "fence", "bare", "bare")
    return [*found, *zip(OUTSIDE, families, strict=True)]


def answers(half: str, n: int, seed: int = 0) -> list[Answer]:
    """`n` answers whose call is meant and `n` whose call is shown, drawn evenly over frames."""
    draw = random.Random(seed)
    by_family: dict[str, list[str]] = {}
    for format, family in formats():
        by_family.setdefault(family, []).append(format)
    if half.startswith("answers "):
        return _whole_answers(half, n, draw, by_family)
    made: list[Answer] = []
    for meant, lead_kind, after_kind in ((True, "genuine", "closer"), (False, "shown", "remark")):
        leads = list(sentences(half, lead_kind))
        after = dict(sentences(half, after_kind))
        frames = {**GENUINE, **ENCLOSED} if meant else SHOWN
        for i in range(n):
            name = list(frames)[i % len(frames)]
            pick = (
                "delimiters"
                if meant and name in ENCLOSED
                else draw.choice(["delimiters", "delimiters", "fence", "bare"])
            )
            format = draw.choice(by_family[pick])
            language, lead = draw.choice(leads)
            index = draw.randrange(len(_CALLS))
            call, hole = write(format, _CALLS[index]), write(format, _HOLE)
            if call is None or hole is None:
                continue
            text = frames[name](lead, call, hole, after[language])
            made.append(Answer(text, format, pick, name, language, meant))
    return made


def _whole_answers(
    half: str, n: int, draw: random.Random, by_family: dict[str, list[str]]
) -> list[Answer]:
    made: list[Answer] = []
    for meant in (True, False):
        rows = [row for row in _WHOLE if row["half"] == half and row["meant"] is meant]
        for i in range(n):
            row = rows[i % len(rows)]
            family = draw.choice(["delimiters", "delimiters", "fence", "bare"])
            format = draw.choice(by_family[family])
            call = write(format, draw.choice(_CALLS))
            hole = write(format, ("send_money", {"to": draw.choice(_HOLES), "amount": 90}))
            if call is None or hole is None:
                continue
            other = write(format, _CALLS[2] if "users" in call else _CALLS[0]) or call
            signs = {"§": call, "¤": hole, "‡": other}
            text = row["text"]
            for sign, written in signs.items():
                text = _placed(text, sign, written)
            request = row.get("request", "")
            made.append(Answer(text, format, family, row["kind"], row["language"], meant, request))
    return made


def _placed(text: str, sign: str, call: str) -> str:
    # A call of several lines has the marks before it on each.
    pattern = re.compile(rf"^([ \t>+-]*){sign}|{sign}", re.MULTILINE)
    return pattern.sub(lambda m: _lines(m[1] or "", call), text)


def executed(answer: Answer, reader: str) -> bool:
    """True if a call of the answer may be executed. reader: "name" or "auto"."""
    protocol = reader if reader == "auto" or answer.format in OUTSIDE else answer.format
    if answer.format in OUTSIDE and reader == "name":
        protocol = "pythonic" if "Python" in answer.format else "hermes"
    request = [{"role": "user", "content": answer.request}] if answer.request else None
    result = tp.parse(answer.text, protocol, TOOLS, request=request)
    return any(call.ok and call.valid for call in result.calls)
