"""Texts to try a protocol on, made from what it writes itself: whole calls, damaged ones, and random joins of pieces.

Everything follows from a seed, so that a counterexample can be made again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .errors import ToolparseError
from .protocols.base import Protocol
from .protocols.json_mix import HERMES
from .toolspec import ToolSpec, tool_specs
from .values import write_canonical

TOOLS = tool_specs(
    [
        {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "s": {"type": "string"}},
            },
        },
        {
            "name": "put",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "o": {"type": "object", "properties": {"k": {"type": "number"}}},
                },
            },
        },
    ]
)
_TEXTS = (
    "", "x", " two words ", "it's \"quoted\"", "a\nb\r\n", "</f>", "<a>&lt;b</a>", "\\", "\\n", "007", "null", "true",
    "é😀", "\x00", "{}", "[1, 2]", "```\n", "- a: b", "# c",
)  # fmt: skip
_NUMBERS = (0, 1, -1, 2**63, 1.5, -0.25, 1e30)
_ODD = (
    "{", "}", "[", "]", '"', "'", "\\", ",", ":", "//", "/*", "<", ">", "</", "&", "&lt;", "`", "```", "```json\n",
    "\n", "\r\n",
    " ", "\t", "x", "é", "😀", "\ud83d", "\udc00", "\x00", "“", "<think>", "</think>", "1", "true", "None",
)  # fmt: skip
_TOKEN = re.compile(r"</?[^<>\s]{0,40}>?|\w+|\s+|[^\w\s<]+")


def make_arguments(tool: ToolSpec, rng: random.Random, simple: bool = False) -> dict[str, Any]:
    """Arguments as the tool's schema declares them, as far as plain types go; each parameter may be left out."""
    schema = tool.schema if isinstance(tool.schema, dict) else {}
    declared = schema.get("properties")
    required = schema.get("required", ())
    return {
        name: _value(node if isinstance(node, dict) else {}, rng, simple)
        for name, node in (declared.items() if isinstance(declared, dict) else ())
        if simple or name in required or rng.random() < 0.7
    }


def _value(node: dict[str, Any], rng: random.Random, simple: bool) -> Any:
    for key in ("enum", "examples"):
        if isinstance(node.get(key), list) and node[key]:
            return rng.choice(node[key])
    if "const" in node:
        return node["const"]
    kind = node.get("type")
    if kind in ("integer", "number"):
        return 1 if simple else rng.choice([n for n in _NUMBERS if kind == "number" or isinstance(n, int)])
    if kind == "boolean":
        return simple or rng.random() < 0.5
    if kind == "null":
        return None
    if kind == "array":
        inner = node.get("items")
        return [
            _value(inner if isinstance(inner, dict) else {}, rng, simple)
            for _ in range(1 if simple else rng.randrange(4))
        ]
    if kind == "object":
        return make_arguments(ToolSpec("", "", write_canonical(node)), rng, simple)
    return "x" if simple else rng.choice(_TEXTS)


def written_calls(protocol: Any, tools: Sequence[ToolSpec], rng: random.Random, count: int) -> Iterator[str]:
    """Calls as the protocol writes them; what it cannot write is left out."""
    write: Callable[..., str] = protocol.write_call
    for i in range(count):
        tool = tools[i % len(tools)]
        arguments = make_arguments(tool, rng, simple=i < len(tools))
        try:
            yield write(tool.name, write_canonical(arguments), tool)
        except ToolparseError:
            continue
        except Exception:  # noqa: S112 - the law 'round trip' says so
            continue


def delimiters(protocol: Any, tools: Sequence[ToolSpec], calls: Sequence[str]) -> list[str]:
    """What opens and closes calls: asked of a protocol of ours, else the tokens of the calls it writes."""
    if isinstance(protocol, Protocol):
        known = {t.name: t for t in tools}
        found = [*protocol.envelope.heads(known), *getattr(protocol.envelope, "closers", ())]
    else:
        found = []
    return list(dict.fromkeys([*found, *(m[0] for call in calls[:2] for m in _TOKEN.finditer(call))]))


def make_texts(protocol: Any, tools: Sequence[ToolSpec], seed: int, count: int) -> list[str]:
    """Texts from short and whole to damaged and random: the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311 - texts, not secrets
    # What only reads, as `auto` does, is tried on another format's calls.
    calls = list(written_calls(protocol, tools, rng, 4 * len(tools))) or list(written_calls(HERMES, tools, rng, 4))
    pieces = delimiters(protocol, tools, calls)
    texts = ["", " \n", "just words", *_damaged(calls, pieces)]
    pool = [*pieces, *_ODD, *calls[:3]]
    pool += [call[: len(call) // 2] for call in calls[:3]] + [call[len(call) // 2 :] for call in calls[:3]]
    texts += ["".join(rng.choice(pool) for _ in range(rng.randrange(1, 10))) for _ in range(count)]
    return list(dict.fromkeys(texts))


def _damaged(calls: Sequence[str], pieces: Sequence[str]) -> Iterator[str]:
    """The damage that models do: prose around, neighbours, a cut end, a lost beginning, other quotes."""
    for call in calls[:4]:
        yield call
        yield f"Sure: {call} done."
        yield f"{call}\n{call}"
        for cut in sorted({1, len(call) // 3, len(call) // 2, len(call) - 5, len(call) - 1}):
            if 0 < cut < len(call):
                yield call[:cut]
                yield call[:cut] + "\n" + call
        yield call[len(call) // 4 :]
        yield call.replace('"', "'")
        yield call.replace("}", ",}")
        yield f"`{call}`"
        yield f"```\n{call}\n```"
        yield f"<think>{call}</think>{call}"
    yield from calls[4:]
    for piece in pieces[:12]:
        yield piece
        yield piece * 3
