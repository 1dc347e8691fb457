"""The edits of a correction: only the fields that were complained about, unless all is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.values import escape_token, pointer_tokens, same
from .failure import Issue

_MOST_LEVELS = 100
# Rules about which members an object has, in lower case: their place is the object.
_OF_MEMBERS = frozenset(
    [
        "required",
        "missing",
        "additional",
        "additionalproperties",
        "extra_forbidden",
        "dependentrequired",
    ]
)


@dataclass(frozen=True, slots=True)
class FieldEdit:
    """One change of the arguments, at a JSON Pointer.

    Attributes:
        kind: "changed", "added" or "removed".
        old, new: None if there is none.

    >>> from toolparse_lab.middleware.correction import FieldEdit
    >>> FieldEdit("/n", "changed", "x", 7).path
    '/n'
    """

    path: str
    kind: str
    old: Any = None
    new: Any = None


def edits_between(old: Any, new: Any) -> list[FieldEdit]:
    """Return the smallest changes that make `new` of `old`, by member.

    >>> [e.path for e in edits_between({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3, "d": 4}})]
    ['/b/c', '/b/d']
    """
    return list(_edits(old, new, "", 0))


def _edits(old: Any, new: Any, path: str, level: int) -> Iterator[FieldEdit]:
    # A value that nests too deep is one change.
    if same(old, new):
        return
    if level < _MOST_LEVELS and isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            below = f"{path}/{escape_token(name)}"
            if name not in new:
                yield FieldEdit(below, "removed", old[name])
            elif name not in old:
                yield FieldEdit(below, "added", None, new[name])
            else:
                yield from _edits(old[name], new[name], below, level + 1)
    elif (
        level < _MOST_LEVELS
        and isinstance(old, list)
        and isinstance(new, list)
        and len(old) == len(new)
    ):
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from _edits(a, b, f"{path}/{i}", level + 1)
    else:
        yield FieldEdit(path, "changed", old, new)


def merged(
    arguments: Mapping[str, Any], correction: Mapping[str, Any], issues: Iterable[Issue]
) -> tuple[dict[str, Any], tuple[FieldEdit, ...], tuple[FieldEdit, ...]]:
    """Return the arguments with the correction's changes at the named fields.

    The issues name the fields.

    Returned are the new arguments, the edits that were taken and those that were not. If an issue
    names no field, every edit is taken: there is nothing to hold it to.

    >>> from toolparse_lab.middleware.correction import Issue, merged
    >>> arguments, edits, others = merged({"n": "x", "a": 1}, {"n": 7, "a": 2}, [Issue("/n")])
    >>> arguments, [edit.path for edit in others]
    ({'n': 7, 'a': 1}, ['/a'])
    """
    issues = tuple(issues)
    edits = edits_between(dict(arguments), dict(correction))
    if any(issue.path is None for issue in issues):
        return dict(correction), tuple(edits), ()
    named = tuple(edit for edit in edits if any(_is_named(edit, issue) for issue in issues))
    collateral = tuple(edit for edit in edits if edit not in named)
    new: Any = dict(arguments)
    for edit in named:
        new = _with(new, pointer_tokens(edit.path), edit)
    return new, named, collateral


def _is_named(edit: FieldEdit, issue: Issue) -> bool:
    # A rule about members is told of their object: they may be added or removed there, and the
    # others stay as they are.
    place = issue.path or ""
    if issue.keyword.lower() in _OF_MEMBERS:
        # Of the object itself where the rule is told of it, of the member where it is told of that.
        parent = edit.path.rpartition("/")[0]
        return edit.path == place or (edit.kind != "changed" and parent == place)
    return (
        edit.path == place or edit.path.startswith(f"{place}/") or place.startswith(f"{edit.path}/")
    )


def _with(value: Any, tokens: list[str], edit: FieldEdit) -> Any:
    # What is not on the way to the edit is shared with `value`.
    if not tokens:
        return edit.new
    token, *rest = tokens
    if isinstance(value, list):
        items = list(value)
        items[int(token)] = _with(items[int(token)], rest, edit)
        return items
    members = dict(value)
    if not rest and edit.kind == "removed":
        members.pop(token, None)
    else:
        members[token] = _with(members.get(token), rest, edit)
    return members
