"""The files that a new project begins with: settings, a plan, and cases of each kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import StoreError

_SETTINGS = """\
# Settings of every command below this folder; `toolparse config` shows them with their sources.
store = "toolparse.db"

[models]
small = "toolparse-local/smollm2-135m"     # runs in the process: toolparse setup-local

# A model of your own; take the signs away and put its name into plan.toml:
# [models.mine]
# name = "hosted_vllm/Qwen3-8B"            # a litellm model string
# api_base = "http://localhost:8000/v1"
# api_key_env = "MY_KEY"                   # the variable that holds the key, never the key itself
# price = [0, 0]                           # US dollars per million tokens, in and out
"""

_PLAN = """\
# toolparse run plan.toml --dry-run      the calls and what they cost; asks nothing
# toolparse run plan.toml                asks, records, reports
cases = "cases.jsonl"
models = ["small"]
protocols = ["hermes", "morph_xml"]
baseline = "hermes"
trials = 1

[settings]
wording = "brief"                        # the short prompt; leave it out for larger models
max_tokens = 128

[limits]
max_cost = 1.0                           # US dollars
deadline = 300                           # seconds

# [gate]                                 # exit code 1 below it; see docs/ci.md
# success = 0.9
"""


def _tool(name: str, description: str, **properties: Any) -> dict[str, Any]:
    """Return a tool, all of whose arguments are required."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "parameters": parameters}


_TIMER = _tool(
    "set_timer",
    "Start a timer.",
    minutes={"type": "integer", "minimum": 1},
)
_LAMP = _tool(
    "set_lamp",
    "Switch a lamp on or off.",
    room={"type": "string"},
    on={"type": "boolean"},
)
_WEATHER = _tool("get_weather", "Current weather in a city.", city={"type": "string"})

# The embedded model gets all but the two calls right, so that a first report shows both.
_CASES: tuple[Mapping[str, Any], ...] = (
    {
        "id": "one-call",
        "input": "Set a timer for 5 minutes.",
        "tools": [_TIMER],
        "target": [{"name": "set_timer", "arguments": {"minutes": 5}}],
        "metadata": {"category": "single"},
    },
    {
        "id": "two-types",
        "input": "Turn on the lamp in the office.",
        "tools": [_LAMP],
        "target": [{"name": "set_lamp", "arguments": {"room": "office", "on": True}}],
        "metadata": {"category": "single"},
    },
    {
        "id": "two-calls",
        "input": "What is the weather in Oslo and in Porto?",
        "tools": [_WEATHER, _TIMER],
        "target": [
            {"name": "get_weather", "arguments": {"city": "Oslo"}},
            {"name": "get_weather", "arguments": {"city": "Porto"}},
        ],
        "metadata": {"category": "parallel"},
    },
    {
        "id": "no-call",
        "input": "Write one sentence about the sea.",
        "tools": [_WEATHER, _TIMER],
        "target": [],
        "metadata": {"category": "irrelevance"},
    },
)


def starter_files() -> dict[str, str]:
    """Return name -> contents of the files of a new project."""
    return {
        "toolparse.toml": _SETTINGS,
        "plan.toml": _PLAN,
        "cases.jsonl": "".join(json.dumps(case) + "\n" for case in _CASES),
    }


def write_starter(folder: Path) -> dict[str, bool]:
    """Write the files of a new project and return name -> True for each that was written. One that
    is there stays as it is. Raises StoreError if the folder cannot be written into.
    """
    is_new: dict[str, bool] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in starter_files().items():
            is_new[name] = _write_new(folder / name, text)
    except OSError as e:
        message = "a project cannot be begun here"
        raise StoreError(message, got=f"{folder}: {e.strerror or e}") from None
    return is_new


def _write_new(file: Path, text: str) -> bool:
    """Write a file that is not there yet. Return False if it is."""
    try:
        # Exclusive, so that a file made in the meantime, or a link, is never written over.
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    return True
