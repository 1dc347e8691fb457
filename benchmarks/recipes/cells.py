"""What the recipes share: tools, cells, and what is to come of each.

A recipe is a block of docs/extensions/serve.md. Its file here runs it in an environment that has
the framework, once a cell, and prints cell -> "ok" or what came instead, as JSON. The endpoint's
address and the cell's name (which is the model's, so that the mock knows what to say) are put in
the place of those in the page. Nothing here needs a package.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "extensions" / "serve.md"
MARK = "recipe: "
UPSTREAM, GATEWAY = "http://127.0.0.1:8000/v1", "http://127.0.0.1:8080/v1"
MODEL = "my-model"
OSLO = "2 days of sun in Oslo"

# Cell -> the calls that are to be made, and the last words.
EXPECTED: Mapping[str, tuple[list[Any], str]] = {
    "whole": ([["get_weather", "Oslo", 2]], "It is sunny."),
    "stream": ([["get_weather", "Oslo", 2]], "It is sunny."),
    "no tools": ([], "Just talk."),
    "no tools, stream": ([], "Just talk."),
    "parallel": ([["get_weather", "Oslo", 2], ["get_weather", "Rome", 1]], "Both are sunny."),
    "three turns": (
        [["now"], ["get_weather", "Oslo", 2], ["get_weather", "Rome", 1]],
        "Done after three.",
    ),
    "tool error": ([["get_weather", "Atlantis", 1]], "There is no such city."),
    "choice": ([["get_weather", "Oslo", 2]], "It is sunny."),
    "malformed call": ([], "I call"),
    "response_format": ([], '{"city":"Oslo","days":2}'),
}


def _call(name: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


_WEATHER = _call("get_weather", city="Oslo", days="2")
# Cell -> what the model says, turn by turn.
SCRIPTS: Mapping[str, list[str]] = {
    "whole": [f"Well. {_WEATHER}", "It is sunny."],
    "stream": [f"Well. {_WEATHER}", "It is sunny."],
    "no tools": ["Just talk."],
    "no tools, stream": ["Just talk."],
    "parallel": [_WEATHER + _call("get_weather", city="Rome", days=1), "Both are sunny."],
    "three turns": [
        _call("now"),
        _WEATHER,
        _call("get_weather", city="Rome", days=1),
        "Done after three.",
    ],
    "tool error": [_call("get_weather", city="Atlantis", days=1), "There is no such city."],
    "choice": ['{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}', "It is sunny."],
    "malformed call": ['I call <tool_call>{"name": "get_weather", "arguments": {"city": "Os'],
    "response_format": ['{"city":"Oslo","days":2}'],
}


def _forced(name: str, **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def _final(answer: str) -> str:
    return _forced("final_answer", answer=answer)


_FORCED_WEATHER = _forced("get_weather", city="Oslo", days=2)
# instructor names the tool of a partial model so.
_PARTIAL_WEATHER = _forced("Partialget_weather", city="Oslo", days=2)
# smolagents forces a call in every turn, the last one of a tool of its own.
SCRIPTS = {
    **SCRIPTS,
    "instructor stream": [_PARTIAL_WEATHER],
    "smolagents whole": [_FORCED_WEATHER, _final("It is sunny.")],
    "smolagents stream": [_FORCED_WEATHER, _final("It is sunny.")],
    "smolagents choice": [_FORCED_WEATHER, _final("It is sunny.")],
    "smolagents three turns": [
        _forced("now"),
        _FORCED_WEATHER,
        _forced("get_weather", city="Rome", days=1),
        _final("Done after three."),
    ],
    "smolagents tool error": [
        _forced("get_weather", city="Atlantis", days=1),
        _final("There is no such city."),
    ],
    "smolagents malformed call": ['{"name": "get_weather", "argu', _final("I call it a day.")],
}

made: list[list[Any]] = []
"""The calls that were made in this cell."""


def get_weather(city: str, days: int = 1) -> str:
    """The weather of a city.

    Args:
        city: its name
        days: how many days
    """
    made.append(["get_weather", city, days])
    if city == "Atlantis":
        raise ValueError("there is no such city")
    return f"{days} days of sun in {city}"


def now() -> str:
    """The time."""
    made.append(["now"])
    return "noon"


WEATHER_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
OPENAI_TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER_SCHEMA}},
    {
        "type": "function",
        "function": {"name": "now", "parameters": {"type": "object", "properties": {}}},
    },
]


def block(heading: str, cell: str) -> dict[str, Any]:
    """The names that the recipe under a heading defines, for one cell."""
    names: dict[str, Any] = {}
    exec(compile(text_of(heading, cell), f"{PAGE.name}: {heading}", "exec"), names)
    return names


def text_of(heading: str, cell: str) -> str:
    """The recipe under a heading, for one cell."""
    text = PAGE.read_text("utf-8")
    section = text.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
    blocks = re.findall(r"```(?:python|yaml)[^\n]*\n(.*?)```", section, re.S)
    code = blocks[-1 if "--litellm" in sys.argv else 0]
    for place, variable in ((GATEWAY, "RECIPE_GATEWAY"), (UPSTREAM, "RECIPE_UPSTREAM")):
        code = code.replace(place, os.environ[variable])
    return code.replace(MODEL, cell.replace(" ", "+"))


class Limit(Exception):
    """What a cell raises for a limit of the framework, which its text names."""


def run(cells: Mapping[str, Callable[[str], Any]]) -> None:
    """Run every cell and print what came of it. A cell gets its name and gives the last words;
    one that is a text is a limit that the page names."""
    found: dict[str, str] = {}
    chosen = os.environ.get("RECIPE_CELLS")
    for cell in EXPECTED if not chosen else chosen.split(";"):
        made.clear()
        ask = cells.get(cell)
        if ask is None or isinstance(ask, str):
            found[cell] = f"limit: {ask or 'the framework has no such thing'}"
            continue
        try:
            found[cell] = _verdict(cell, str(ask(cell)).strip())
        except Limit as e:
            found[cell] = f"limit: {e}"
        except BaseException as e:
            if os.environ.get("RECIPE_TRACE"):
                traceback.print_exc()
            found[cell] = f"{type(e).__name__}: {e}"[:300]
    print(f"\n{MARK}{json.dumps(found)}", flush=True)


def _verdict(cell: str, words: str) -> str:
    """ "ok", or what is wrong."""
    calls, last = EXPECTED[cell]
    if sorted(made, key=str) != sorted(calls, key=str):
        return f"calls {made}"[:300]
    if cell == "response_format":
        words = words.replace(" ", "")
    return "ok" if words.startswith(last) else f"said {words!r}"[:300]
