"""Few-shot examples made from the tools at hand, without giving away the case they go with.

Everything is deterministic: the same tools and the same input give the same examples.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...core.toolspec import ToolSpec
from ...core.values import leaves, read_plain, write_canonical
from .example_values import VARIANTS, example_arguments
from .shape import choices_of, kind_of


@dataclass(frozen=True, slots=True)
class Shot:
    """A request in words and the call that answers it.

    arguments_json: canonical JSON text. own: whether the tool is one of the case's own.
    """

    request: str
    name: str
    arguments_json: str
    own: bool = True


# Used where an example made from the case's own tools would show what the case asks for.
FIXED_SHOTS = tuple(
    Shot(*row, own=False)
    for row in (
        ("Wake me at 06:40.", "set_alarm", '{"time":"06:40"}'),
        (
            "How far is it from Bergen to Lima?",
            "measure_distance",
            '{"start":"Bergen","end":"Lima"}',
        ),
        ("Lend the book Dune to member 512.", "lend_book", '{"title":"Dune","member":512}'),
        ("Dim the lamp in the attic to 15 percent.", "dim_lamp", '{"room":"attic","percent":15}'),
        ("Water the fern with 0.3 litres.", "water_plant", '{"plant":"fern","litres":0.3}'),
        ("Print 4 copies of menu.pdf.", "print_file", '{"path":"menu.pdf","copies":4}'),
    )
)


def make_shots(
    tools: Sequence[ToolSpec],
    count: int,
    *,
    text: str = "",
    target: Iterable[Mapping[str, Any]] | None = None,
) -> tuple[Shot, ...]:
    """Return `count` examples, one tool after the other, that give away neither text nor target.

    `text` is everything the case says to the model, `target` its calls ({"name", "arguments"})
    where known. A call gives the case away when a value that is not on the schema's own list is
    in the text or in the target, or when all its values are on such lists, so that it may be the
    answer itself. Then other values are tried and, where none will do, an example with a tool that
    the case does not have is used.
    """
    if not tools:
        return ()

    answers = {write_canonical(value) for _, value in leaves(list(target or ()))}
    folded = text.casefold()

    shots: list[Shot] = []
    for i in range(count):
        tool = tools[i % len(tools)]
        # None if every variant is used, or shows too much.
        variants = (_own_shot(tool, variant) for variant in range(i, i + VARIANTS))
        new = (
            shot
            for shot in variants
            if shot is not None
            and shot not in shots
            and not _gives_away(shot, tool, folded, answers)
        )
        shots.append(next(new, None) or _fixed_shot(tools, shots, folded))
    return tuple(shots)


@lru_cache(maxsize=4096)  # the cases of a dataset share their tools
def _own_shot(tool: ToolSpec, variant: int) -> Shot | None:
    arguments = example_arguments(tool, variant)
    if arguments is None:
        return None

    # The request is the first sentence about the tool, with the values after it.
    description = " ".join(tool.description.split())
    sentence = re.split(r"(?<=[.!?])\s", description, maxsplit=1)[0].rstrip(".")
    request = sentence or tool.name.replace("_", " ")
    if arguments:
        pairs = [f"{name} {_words_of(value)}" for name, value in arguments.items()]
        request = f"{request}: {', '.join(pairs)}"
    return Shot(request, tool.name, write_canonical(arguments))


def _fixed_shot(tools: Sequence[ToolSpec], shots: Sequence[Shot], folded: str) -> Shot:
    # There are only a few, so that the last resort is one shown before.
    names = {tool.name for tool in tools} | {shot.name for shot in shots}
    usable = [shot for shot in FIXED_SHOTS if shot.name not in names]
    for shot in usable:
        if not any(_occurs_in(value, folded) for value in _leaf_values(shot)):
            return shot

    return usable[0] if usable else FIXED_SHOTS[0]


def _gives_away(shot: Shot, tool: ToolSpec, folded: str, answers: Collection[str]) -> bool:
    # An example without any value of its own choosing, because the schema lists them all, may be
    # the answer itself.
    listed = _listed_values(tool)
    # A boolean, or an empty list, is too common to say anything about the case.
    free = [
        value
        for value in _leaf_values(shot)
        if not isinstance(value, (bool, dict, list)) and write_canonical(value) not in listed
    ]
    return not free or any(
        write_canonical(value) in answers or _occurs_in(value, folded) for value in free
    )


def _leaf_values(shot: Shot) -> Iterator[Any]:
    return (value for _, value in leaves(read_plain(shot.arguments_json)))


@lru_cache(maxsize=4096)
def _listed_values(tool: ToolSpec) -> frozenset[str]:
    # The model sees these anyway, so an example that shows one gives nothing away.
    values: set[str] = set()
    stack = [tool.schema]
    while stack:
        # Every keyword is followed, since a list of values may be in a definition or a union.
        node = stack.pop()
        if isinstance(node, Mapping):
            if kind_of(node) == "choice":
                values.update(write_canonical(value) for value in choices_of(node))
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return frozenset(values)


def _occurs_in(value: Any, folded: str) -> bool:
    # as a whole word or number
    word = re.escape(_words_of(value).casefold())
    return word != "" and re.search(rf"(?<!\w){word}(?!\w)", folded) is not None


def _words_of(value: Any) -> str:
    return value if isinstance(value, str) else write_canonical(value)
