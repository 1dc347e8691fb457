"""Texts to try a protocol on, made from its own writing: whole calls, damaged ones, and random
joins of pieces.

Everything follows from a seed, so that a counterexample can be made again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.errors import ToolparseError
from ...core.toolspec import ToolSpec, tool_specs
from ...core.values import write_canonical
from ...formats.base import Protocol
from ...formats.json.mix import HERMES

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
# Values of strings that a careless writer or reader changes.
_TEXTS = (
    "", "x", " two words ", "it's \"quoted\"", "a\nb\r\n", "</f>", "<a>&lt;b</a>", "\\", "\\n",
    "007", "null", "true",
    "é😀", "\x00", "{}", "[1, 2]", "```\n", "- a: b", "# c",
)  # fmt: skip
_NUMBERS = (0, 1, -1, 2**63, 1.5, -0.25, 1e30)
# Pieces that mean something to some format, and characters that scanners stumble over.
ODD = (
    "{", "}", "[", "]", '"', "'", "\\", ",", ":", "//", "/*", "<", ">", "</", "&", "&lt;", "`",
    "```", "```json\n", "\n", "\r\n", " ", "\t", "x", "é", "😀", "\ud83d", "\udc00", "\x00", "“",
    "<think>", "</think>", "1", "true", "None",
)  # fmt: skip
_TOKEN = re.compile(r"</?[^<>\s]{0,40}>?|\w+|\s+|[^\w\s<]+")


def make_arguments(tool: ToolSpec, rng: random.Random, simple: bool = False) -> dict[str, Any]:
    """Arguments as the tool's schema declares them, as far as plain types go.

    simple: every parameter is there, with the plainest value of its type. Else each may be absent.
    """
    schema = tool.schema if isinstance(tool.schema, dict) else {}
    properties = schema.get("properties")
    required = schema.get("required", ())
    arguments: dict[str, Any] = {}
    if not isinstance(properties, dict):
        return arguments

    for name, node in properties.items():
        if simple or name in required or rng.random() < 0.7:
            arguments[name] = _value(node, rng, simple)

    return arguments


def _value(node: Any, rng: random.Random, simple: bool) -> Any:
    if not isinstance(node, dict):
        node = {}

    # If the schema itself lists values, its type says nothing more.
    for key in ("enum", "examples"):
        if isinstance(node.get(key), list) and node[key]:
            return rng.choice(node[key])
    if "const" in node:
        return node["const"]

    kind = node.get("type")
    if kind == "integer":
        return 1 if simple else rng.choice([n for n in _NUMBERS if isinstance(n, int)])
    if kind == "number":
        return 1 if simple else rng.choice(_NUMBERS)
    if kind == "boolean":
        return simple or rng.random() < 0.5
    if kind == "null":
        return None
    if kind == "array":
        count = 1 if simple else rng.randrange(4)
        return [_value(node.get("items"), rng, simple) for _ in range(count)]
    if kind == "object":
        return make_arguments(ToolSpec("", "", write_canonical(node)), rng, simple)
    # A schema may list several types, or none; a string is as good as any then.
    return "x" if simple else rng.choice(_TEXTS)


def written_calls(
    protocol: Any, tools: Sequence[ToolSpec], rng: random.Random, count: int
) -> Iterator[str]:
    """Calls of the tools in turn as the protocol writes them, each first with simple arguments.

    What it cannot write drops out. count: how many calls are tried.
    """
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
    # Openers and closers of a protocol of ours, and the tokens of the calls that it writes: the
    # first two calls show every token of a format.
    delimiters: list[str] = []
    if isinstance(protocol, Protocol):
        by_name = {t.name: t for t in tools}
        delimiters += protocol.envelope.heads(by_name)
        delimiters += protocol.envelope.closers

    for call in calls[:2]:
        delimiters += [match[0] for match in _TOKEN.finditer(call)]

    return list(dict.fromkeys(delimiters))


def make_texts(protocol: Any, tools: Sequence[ToolSpec], seed: int, count: int) -> list[str]:
    rng = random.Random(seed)  # noqa: S311 - texts, not secrets
    calls = list(written_calls(protocol, tools, rng, 4 * len(tools)))
    if not calls:
        # What only reads, as `auto` does, is tried on another format's calls.
        calls = list(written_calls(HERMES, tools, rng, 4))

    pieces = delimiters(protocol, tools, calls)
    texts = ["", " \n", "just words", *_damaged(calls, pieces)]
    # Random texts are joins of pieces of the format, halves of calls and odd characters.
    pool = [*pieces, *ODD, *calls[:3]]
    pool += [call[: len(call) // 2] for call in calls[:3]]
    pool += [call[len(call) // 2 :] for call in calls[:3]]

    joins = (range(rng.randrange(1, 10)) for _ in range(count))
    texts += ["".join([rng.choice(pool) for _ in pieces_of]) for pieces_of in joins]
    return list(dict.fromkeys(texts))


def _damaged(calls: Sequence[str], pieces: Sequence[str]) -> Iterator[str]:
    # Calls with the damage that models do: prose around, neighbours, a cut end, a lost beginning,
    # other quotes. Of the first four every damage is made, the others stay whole.
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
