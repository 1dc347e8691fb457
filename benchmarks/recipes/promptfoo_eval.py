"""The recipe of promptfoo: one question of an eval, in its own process of node."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import cells

ONE = "an eval asks once, and calls no tools"


def output(cell: str, *, tools: bool = True, **config: Any) -> Any:
    """What promptfoo says of the one answer."""
    with tempfile.TemporaryDirectory() as folder:
        text = cells.text_of("promptfoo", cell)
        if not tools:
            text = text.replace("tools: file://tools.json", "max_tokens: 100")
        for name, value in config.items():
            text = text.replace("apiKey: none", f"apiKey: none\n      {name}: {json.dumps(value)}")
        Path(folder, "promptfooconfig.yaml").write_text(text, "utf-8")
        Path(folder, "tools.json").write_text(json.dumps(cells.OPENAI_TOOLS), "utf-8")
        quiet = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
        done = subprocess.run(
            [os.environ["RECIPE_PROMPTFOO"], "eval", "--no-cache", "-o", "out.json"],
            cwd=folder,
            env={
                **os.environ,
                **{f"PROMPTFOO_DISABLE_{name}": "1" for name in quiet},
                "PROMPTFOO_CONFIG_DIR": folder,
                "HOME": folder,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        file = Path(folder, "out.json")
        if not file.exists():
            raise RuntimeError(f"{done.stdout[-300:]}{done.stderr[-300:]}")
        (result,) = json.loads(file.read_text("utf-8"))["results"]["results"]
        if result.get("error"):
            raise RuntimeError(result["error"])
        return result["response"]["output"]


def words(found: Any) -> str:
    """An output as text."""
    return found if isinstance(found, str) else json.dumps(found, separators=(",", ":"))


def calls(cell: str, last: str, **config: Any) -> str:
    """Make the calls of the answer; `last` are the words of ours that follow."""
    found = output(cell, **config)
    listed = found if isinstance(found, list) else found["tool_calls"]
    for call in listed:
        function = call["function"]
        getattr(cells, function["name"])(**json.loads(function["arguments"]))
    return last


if __name__ == "__main__":
    form = {"type": "json_schema", "json_schema": {"name": "w", "schema": cells.WEATHER_SCHEMA}}
    cells.run(
        {
            "whole": lambda cell: calls(cell, "It is sunny."),
            "stream": "promptfoo asks for whole answers",
            "no tools": lambda cell: words(output(cell, tools=False)),
            "no tools, stream": "promptfoo asks for whole answers",
            "parallel": lambda cell: calls(cell, "Both are sunny."),
            "three turns": ONE,
            "tool error": ONE,
            "choice": lambda cell: calls(cell, "It is sunny.", tool_choice="required"),
            "malformed call": lambda cell: words(output(cell)),
            "response_format": lambda cell: words(output(cell, tools=False, response_format=form)),
        }
    )
