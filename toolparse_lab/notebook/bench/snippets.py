"""A finding of the workbench, to keep: a pytest case, Python, or a shell command."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pprint import pformat
from typing import Any

from ...core.errors import BadOptions
from ...core.types import ParseResult
from .setup import CHOICES, Setup

KINDS = ("pytest", "python", "curl")


def snippet_of(setup: Setup, result: ParseResult, kind: str) -> str:
    """Return a snippet of one of `KINDS`.

    Raises BadOptions for another, and for a request that is not on record.
    """
    if kind == "pytest":
        return _pytest(setup, result)
    if kind == "python":
        return f"{_head(setup)}{_call()}\nprint(result.why())\n"
    if kind == "curl":
        return _curl(setup)
    raise BadOptions("unknown kind of snippet", got=kind, expected=", ".join(KINDS))


def _head(setup: Setup) -> str:
    """Return the text and the tools as Python."""
    tools = [tool.to_dict() for tool in setup.tools]
    default = type(setup.options)()
    options = {
        name: getattr(setup.options, name)
        for name in CHOICES
        if getattr(setup.options, name) != getattr(default, name)
    }
    return (
        "import toolparse_lab as tp\n\n"
        f"RAW = {_literal(setup.raw)}\n"
        f"TOOLS = {pformat(tools, width=88, sort_dicts=False)}\n"
        f"PROTOCOL = {setup.protocol.id!r}\n"
        f"OPTIONS = {options!r}\n\n"
    )


def _literal(text: str) -> str:
    """Return a text as a Python literal, one line of it a line."""
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return ascii(text) if _is_hidden(text) else repr(text)
    inner = "".join(f"    {ascii(line) if _is_hidden(line) else repr(line)}\n" for line in lines)
    return f"(\n{inner})"


def _is_hidden(text: str) -> bool:
    """Return True for characters that an editor would not show."""
    return not text.replace("\n", "").isprintable()


def _call() -> str:
    return "result = tp.parse(RAW, PROTOCOL, TOOLS, OPTIONS)\n"


def _pytest(setup: Setup, result: ParseResult) -> str:
    """Return a test that holds the reading as it is now, or the wanted calls where they
    are known.
    """
    if setup.target is not None and all(_is_plain(want) for want in setup.target):
        calls = [(want["name"], want.get("arguments", {})) for want in setup.target]
        source = "the wanted calls"
    else:
        calls = [(call.name, call.arguments) for call in result.calls if call.valid]
        source = "the calls that may be executed now"
    name = re.sub(r"\W+", "_", setup.title.split(" ")[0]).strip("_").lower() or "answer"
    return (
        f"{_head(setup)}"
        f"# {source}\n"
        f"CALLS = {pformat(calls, width=88, sort_dicts=False)}\n\n\n"
        f"def test_{name}() -> None:\n"
        f"    {_call()}"
        "    calls = [(call.name, call.arguments) for call in result.calls if call.valid]\n"
        "    assert calls == CALLS, result.why()\n"
    )


def _is_plain(want: Mapping[str, Any]) -> bool:
    """Return True for a wanted call without alternatives."""
    return isinstance(want, Mapping) and "name" in want and '"$' not in json.dumps(want)


def _curl(setup: Setup) -> str:
    """Return the recorded request for a shell, its key and address left to variables."""
    text = setup.exchange.get("request")
    if text is None:
        raise BadOptions(
            "no request is recorded for this text", got="a text", expected="a trial of a run"
        )
    request = json.loads(text)
    body = {key: request[key] for key in ("messages", "tools") if request.get(key)}
    body |= request.get("params") or {}
    model = request.get("model")
    body["model"] = model.get("id", "") if isinstance(model, Mapping) else str(model or "")
    return (
        'curl "$OPENAI_BASE_URL/chat/completions" \\\n'
        '  -H "Authorization: Bearer $OPENAI_API_KEY" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}\n"
    )
