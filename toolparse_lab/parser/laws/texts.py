"""Texts to try a protocol on, made from its own writing: whole calls, damaged ones, and random
joins of pieces.

Everything follows from a seed, so that a counterexample can be made again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_ODD = (
    "{", "}", "[", "]", '"', "'", "\\", ",", ":", "//", "/*", "<", ">", "</", "&", "&lt;", "`",
    "```", "```json\n", "\n", "\r\n", " ", "\t", "x", "é", "😀", "\ud83d", "\udc00", "\x00", "“",
    "<think>", "</think>", "1", "true", "None",
)  # fmt: skip
_TOKEN = re.compile(r"</?[^<>\s]{0,40}>?|\w+|\s+|[^\w\s<]+")


def make_arguments(tool: ToolSpec, rng: random.Random, simple: bool = False) -> dict[str, Any]:
    """Arguments as the tool's schema declares them, as far as plain types go.

    Each parameter may be absent.

    tool: a schema that is not an object has no arguments.
    rng: the source of chance, whose state names the next step.
    simple: every parameter is there, with the plainest value of its type.
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
    """Return a value of a schema.

    Of one that is not a plain object, a text.

    node: the schema of the value.
    rng, simple: as for `make_arguments`.

    If the schema itself lists values, one of those is drawn. Its type then says nothing.
    """
    if not isinstance(node, dict):
        node = {}

    for key in ("enum", "examples"):
        if isinstance(node.get(key), list) and node[key]:
            return rng.choice(node[key])

    if "const" in node:
        return node["const"]

    # A schema may list several types, or none; a text is as good as any then.
    kind = node.get("type")
    if not isinstance(kind, str) or kind not in _VALUES:
        return _text(node, rng, simple)

    write = _VALUES[kind]
    return write(node, rng, simple)


def _text(node: dict[str, Any], rng: random.Random, simple: bool) -> str:
    """Return a text, an odd one unless it is to be simple.

    node, rng, simple: as for `_value`. The other writers of one type take the same three.

    The odd texts look like markup, JSON or numbers, which careless readers change.
    """
    return "x" if simple else rng.choice(_TEXTS)


def _number(node: dict[str, Any], rng: random.Random, simple: bool) -> float:
    """Return a number of any kind.

    The range goes from fractions to numbers that only a float can hold.
    """
    return 1 if simple else rng.choice(_NUMBERS)


def _integer(node: dict[str, Any], rng: random.Random, simple: bool) -> int:
    """Return an integer, some of them larger than a machine word.

    A reader that takes integers for floats changes the largest of them.
    """
    return 1 if simple else rng.choice([n for n in _NUMBERS if isinstance(n, int)])


def _boolean(node: dict[str, Any], rng: random.Random, simple: bool) -> bool:
    """True, or either of them.

    A simple one is always True, so that the shortest counterexamples are alike.
    """
    return simple or rng.random() < 0.5


def _null(node: dict[str, Any], rng: random.Random, simple: bool) -> None:
    """The only value of its type.

    It takes the same arguments as the writers of other types, and looks at none of them.
    """


def _array(node: dict[str, Any], rng: random.Random, simple: bool) -> list[Any]:
    """Return a list of up to three items.

    node: its `items` are the schema of each item. Without them items are texts.
    """
    count = 1 if simple else rng.randrange(4)
    return [_value(node.get("items"), rng, simple) for _ in range(count)]


def _object(node: dict[str, Any], rng: random.Random, simple: bool) -> dict[str, Any]:
    """Return an object with the properties that its schema declares.

    node: its `properties` may be left out one by one, as those of arguments may.
    """
    return make_arguments(ToolSpec("", "", write_canonical(node)), rng, simple)


_VALUES: Mapping[str, Callable[[dict[str, Any], random.Random, bool], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "array": _array,
    "object": _object,
}


def written_calls(
    protocol: Any, tools: Sequence[ToolSpec], rng: random.Random, count: int
) -> Iterator[str]:
    """Calls as the protocol writes them.

    What it cannot write drops out.

    protocol: one with `write_call`.
    tools: written in turn, each first with simple arguments.
    rng: the source of chance. count: how many calls are tried.
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
    """Return the openers and closers of a protocol of ours, and the tokens of the calls that it
    writes.

    calls: some that the protocol wrote. The first two show every token of its format.

    None stands in the list twice.
    """
    delimiters: list[str] = []
    if isinstance(protocol, Protocol):
        by_name = {t.name: t for t in tools}
        delimiters += protocol.envelope.heads(by_name)
        delimiters += protocol.envelope.closers

    for call in calls[:2]:
        delimiters += [match[0] for match in _TOKEN.finditer(call)]

    return list(dict.fromkeys(delimiters))


def make_texts(protocol: Any, tools: Sequence[ToolSpec], seed: int, count: int) -> list[str]:
    """Texts from short and whole to damaged and random: the same for the same seed.

    tools: those the calls are of. count: how many random texts there are beside the fixed ones.

    No text stands in the list twice, so there may be a few less.
    """
    rng = random.Random(seed)  # noqa: S311 - texts, not secrets
    calls = list(written_calls(protocol, tools, rng, 4 * len(tools)))
    if not calls:
        # What only reads, as `auto` does, is tried on another format's calls.
        calls = list(written_calls(HERMES, tools, rng, 4))

    pieces = delimiters(protocol, tools, calls)
    texts = ["", " \n", "just words", *_damaged(calls, pieces)]
    # Random texts are joins of pieces of the format, halves of calls and odd characters.
    pool = [*pieces, *_ODD, *calls[:3]]
    pool += [call[: len(call) // 2] for call in calls[:3]]
    pool += [call[len(call) // 2 :] for call in calls[:3]]

    texts += [_joined(pool, rng) for _ in range(count)]
    return list(dict.fromkeys(texts))


def _joined(pool: Sequence[str], rng: random.Random) -> str:
    """Up to nine pieces in a row.

    pool: the pieces to draw from. One may come several times.
    """
    return "".join(rng.choice(pool) for _ in range(rng.randrange(1, 10)))


def _damaged(calls: Sequence[str], pieces: Sequence[str]) -> Iterator[str]:
    """Calls with the damage that models do: prose around, neighbours, a cut end, a lost beginning,
    other quotes.

    calls: of the first four every damage is made, the others stay whole.
    pieces: delimiters, which are tried alone and three in a row.
    """
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
