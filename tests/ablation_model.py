"""A model of which everything is known: what it writes to each case, with and without layer 1, and
how it corrects itself; with the truth of every cell worked out by hand."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import toolparse_lab as tp
from toolparse_lab.runner.exchange.types import Completion, Request

TOOL = {
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {
            "lat": {"type": "number"},
            "days": {"type": "integer"},
            "unit": {"enum": ["C", "F"]},
        },
        "required": ["lat"],
    },
}
# Kind of a case -> the latitude it should be, as written without layer 1 and with it, and as
# corrected, each time it is asked; None is an answer without a call, or without arguments.
# "{n}" is the latitude that is wanted.
WRITES: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "right": ("n", "n", ()),
    "layer 1": ("{n}", "n", ("n",)),
    "layer 2": ("{n}", "{n}", ("n",)),
    "layer 3": ("{n} degrees", "{n} degrees", ("n",)),
    "hopeless": ("N/A", "N/A", (None,)),
    "wrong": ("99", "99", (99,)),
    "enum": ("unit", "unit", ("n",)),
    "silent": (None, None, ()),
    "stubborn": ("north", "north", ("north",)),
    "second": ("nine", "nine", ("neun", "n")),
}
KINDS = tuple(WRITES)
# Kind -> the cells in which it is gold, S000 S001 S010 S011 S100 S101 S110 S111.
GOLD: dict[str, str] = {
    "right": "11111111",
    "layer 1": "01111111",
    "layer 2": "01110111",
    "layer 3": "01010101",
    "hopeless": "00000000",
    "wrong": "00000000",
    "enum": "01010101",
    "silent": "00000000",
    "stubborn": "00000000",
    "second": "01010101",
}
VALID = {**GOLD, "wrong": "01110111"}
CELLS = ("S000", "S001", "S010", "S011", "S100", "S101", "S110", "S111")
NODES = {"layer 1": 1, "layer 2": 1, "layer 3": 1, "hopeless": 1, "wrong": 1, "enum": 1,
         "stubborn": 1, "second": 2}  # fmt: skip
"""Kind -> its different correction prompts."""
OFF_TOKENS, ON_TOKENS = 100, 130


def cases_of(kinds: Sequence[str]) -> list[dict[str, Any]]:
    """A case for each kind, with a latitude of its own."""
    return [
        {
            "id": f"case-{i}",
            "input": f"Weather at {i + 10}, a case of {kind}?",
            "tools": [TOOL],
            "target": [{"name": "weather", "arguments": {"lat": i + 10, "days": 3, "unit": "F"}}],
        }
        for i, kind in enumerate(kinds)
    ]


class KnownModel:
    """Answers as `WRITES` says, and counts what it is asked. dead: answers nobody gets."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.dead: set[str] = set()
        self.corrections: list[Request] = []

    @property
    def calls(self) -> int:
        return sum(self.asked.values())

    async def __call__(self, request: Request) -> Completion:
        self.asked[request.key] += 1
        text = "\n".join(str(message["content"]) for message in request.messages)
        number, kind = re.findall(r"Weather at (\d+), a case of ([a-z0-9 ]+)\?", text)[-1]
        is_correction = "was refused" in str(request.messages[-1]["content"])
        on = "WRONG" in str(request.messages[0]["content"])
        base = Completion(
            key=request.key, request=request.to_dict(), finish_reason="stop", created="2026-01-01",
            prompt_tokens=ON_TOKENS if on else OFF_TOKENS, completion_tokens=20, cost=0.001,
            latency=0.25,
        )  # fmt: skip
        if is_correction:
            self.corrections.append(request)
        if kind in self.dead and is_correction:
            return replace(base, status="error", error_kind="connection", error_message="gone")
        return replace(base, raw=_raw(kind, int(number), on, text if is_correction else ""))


def _raw(kind: str, number: int, on: bool, correction: str) -> str:
    """The text of one answer."""
    off, with_rules, corrected = WRITES[kind]
    value = with_rules if on else off
    if correction:
        # The second correction is asked about the first one's own words.
        value = corrected[1 if len(corrected) > 1 and str(corrected[0]) in correction else 0]
    if value is None:
        return "I have no idea."
    arguments: dict[str, Any] = {"lat": number, "days": 3, "unit": "F"}
    if value == "unit":
        arguments["unit"] = "K"
    elif value != "n":
        arguments["lat"] = value.replace("{n}", str(number)) if isinstance(value, str) else value
    if correction and kind == "enum":
        arguments["days"] = 7  # nobody complained of it
    if correction:
        return f"Here you are:\n```json\n{json.dumps(arguments)}\n```"
    call = json.dumps({"name": "weather", "arguments": arguments})
    return f"<tool_call>{call}</tool_call>"


MODELS = {"m": tp.Model("openai/known", price=(1, 1), max_retries=0)}


def known_ablation(
    folder: Path, kinds: Sequence[str] = KINDS, model: KnownModel | None = None, **settings: Any
) -> Any:
    """The ablation of some kinds in a store of its own."""
    model = model or KnownModel()
    settings = {"few_shot": 0, "progress": False, **settings}
    # A closed store can be read again.
    with tp.Lab(folder / "runs.db") as lab:
        return lab.ablation(cases_of(kinds), MODELS, ["hermes"], complete=model, **settings)
