"""Signs that a value holds a damaged tag of its own format, so that no one should act on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache

from ...arguments.schema.view import View
from ...core.values import Value, escape_token
from .nearest import is_near_name
from .text import Place

# How it works. A text that ends with a tag of the format, and does not open it, is a value whose
# closer was written in another way. Behind a repair more is doubtful: any word of the format that
# touches a structural character, and names that the schema does not know. Markup of other kinds
# (HTML, code with `<`) is content, and never looked at.

FORMAT_WORDS = frozenset(
    ("parameter", "parameters", "param", "argument", "arguments", "arg", "arg_key", "arg_value",
     "value", "function", "function_call", "function_calls", "invoke", "call", "tool", "tool_call",
     "tool_calls")
)  # fmt: skip
"""Words of call formats that no ordinary markup uses as the name of a tag."""

_LONGEST_TAIL = 256
_MOST_VIEWS = 256
_CLOSING_TAIL = re.compile(
    r"(?P<open><|\[)(?P<close>/?)\s*(?P<word>[\w.:-]+)"
    r"(?P<name>\s*=[^<>\[\]]*)?\s*(?P<end>[>\]])\s*\Z"
)
_CLOSING_ENDS = (">", "]")
_CDATA = ("<![CDATA[", "]]>")


def stray_end(text: str, names: Collection[str]) -> int:
    """Return the offset of a tag at the end of a text that closes nothing in it, -1 if there is
    none.
    """
    if text.rstrip()[-1:] not in (">", "]"):
        return -1

    tail = max(0, len(text) - _LONGEST_TAIL)
    match = _CLOSING_TAIL.search(text, tail)
    if match is None or (match["open"] == "<") != (match["end"] == ">"):
        return -1

    word = match["word"]
    if word not in names and word.lower() not in FORMAT_WORDS:
        return -1
    if match["close"]:
        opened = re.search(rf"[<\[]{re.escape(word)}[\s=>\]]", text[: match.start()])
        return -1 if opened else match.start()
    # An opening tag at the end is one only in the words of the format, and only without brackets
    # of lists: `a[value]` is code.
    is_own = match["open"] == "<" and word.lower() in FORMAT_WORDS
    return match.start() if is_own else -1


def holds_section_mark(text: str) -> bool:
    # A whole section inside a longer text is content, and so is `]]>` in the middle of code.
    opener = text.rfind(_CDATA[0])
    if opener >= 0:
        return text.find(_CDATA[1], opener) < 0
    return text.rstrip().endswith(_CDATA[1])


def is_plain_object(value: Value, view: View) -> bool:
    # Known parameters, whose strings contain nothing that may be part of a tag: nothing is
    # doubtful.
    if type(value) is not dict or not value.keys() <= view.properties.keys():
        return False
    try:
        texts = "\n".join(value.values())
    except TypeError:  # some are no texts
        return False
    if "<" in texts:
        return False
    # Without such a bracket anywhere none of them can end with one.
    return (">" not in texts and "]" not in texts) or all(map(_is_plain, value.values()))


def is_doubtful(
    value: Value,
    view: View,
    body: str,
    places: Callable[[], Mapping[str, Place]],
    *,
    repaired: bool,
) -> bool:
    """Return True if arguments contain text like a damaged tag or name of their own format."""
    if not isinstance(value, Mapping):
        return False
    properties = view.properties
    for name in value:
        if name not in properties and is_doubtful_name(name, value, view, repaired=repaired):
            return True
    # Nearly every body ends here, at the cost of a look at each text.
    if all(map(_is_plain, value.values())):
        return False

    fragment = _fragment(names_below(view)) if repaired and names_below(view) else None
    for path, text in _texts(value):
        if _is_plain(text):
            continue
        # Places cost a pass over the body, so they come last.
        if _looks_damaged(text, path, view, fragment) and _stands_bare(
            text, body, places().get(path)
        ):
            return True
        if _may_double(text) and _doubles_bracket(text, body, places().get(path, (0, 0))[1]):
            return True
    return False


def _is_plain(value: Value) -> bool:
    if type(value) is not str:
        return False
    if "<" in value:
        return False
    last = value[-1:]
    # Copied only where white space stands behind it, which is rare.
    return (value.rstrip()[-1:] if last.isspace() else last) not in _CLOSING_ENDS


def _looks_damaged(text: str, path: str, view: View, fragment: re.Pattern[str] | None) -> bool:
    names = names_below(view)
    if stray_end(text, names) >= 0 or holds_section_mark(text):
        return True
    # Text beside the members of an object is what a bracket too many becomes.
    if path.endswith("/#text") or _is_unbalanced(text, path):
        return True
    if _broken_closer(names).search(text):
        return True
    return fragment is not None and fragment.search(text) is not None


def _may_double(text: str) -> bool:
    # At its end a value may have its closing tag's bracket, too. One at its beginning is well-
    # formed.
    return text[-1:] == "<"


def _stands_bare(text: str, body: str, place: Place | None) -> bool:
    # Neither escaped nor in a section. An unknown place counts as bare.
    if place is None:
        return True
    start, end = place
    in_section = body.startswith(_CDATA[0], max(0, start - len(_CDATA[0])))
    return text.strip() in body[start:end] and not in_section


def _is_unbalanced(text: str, path: str) -> bool:
    # Tags of its own name that do not balance. Indexes of items are no names.
    name = next((part for part in reversed(path.split("/")) if not part.isdigit()), "")
    # Searched from the end, which is several times as fast where nothing is found.
    if not name or text.rfind(f"{name}>") < 0:
        return False
    return text.count(f"<{name}>") != text.count(f"</{name}>")


def _doubles_bracket(text: str, body: str, end: int) -> bool:
    # `<t>a<</t>`: the value ends with a bracket that is its closing tag's, written twice.
    return any(map(str.isalnum, text)) and body[end - 1 : end + 2] == "<</"


@lru_cache(maxsize=512)
def _broken_closer(names: frozenset[str]) -> re.Pattern[str]:
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"
    return re.compile(rf"</(?:{words})(?![\w.:\s>-])")


def is_doubtful_name(name: str, value: Mapping[str, Value], view: View, *, repaired: bool) -> bool:
    # Near to a parameter's that is missing. After a repair every unknown name is doubtful.
    if not view.properties:
        return False
    if repaired or name in names_below(view):
        return True
    return any(other not in value and is_near_name(name, other) for other in view.properties)


@lru_cache(maxsize=512)
def _fragment(names: frozenset[str]) -> re.Pattern[str]:
    words = "|".join(sorted(map(re.escape, names | FORMAT_WORDS), key=len, reverse=True))
    return re.compile(rf"(?:</?\s?|\[/|\b/)(?:{words})\b|(?<![\w.])(?:{words})(?:=[^<>\s]*)?\s?>")


@lru_cache(maxsize=512)
def names_below(view: View) -> frozenset[str]:
    """Return the names of all parameters, and of the members inside them."""
    names: set[str] = set()
    visited: set[int] = set()
    stack = [view]
    # A schema may hold itself, each time as a new view.
    while stack and len(visited) < _MOST_VIEWS:
        view = stack.pop()
        if id(view) in visited:
            continue
        visited.add(id(view))
        names.update(view.properties)
        stack.extend(view.properties.values())
        stack.extend(view.any_of)
        if view.items is not None:
            stack.append(view.items)

    return frozenset(names)


def _texts(value: Value) -> Iterator[tuple[str, str]]:
    stack: list[tuple[str, Value]] = [("", value)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, str):
            yield path, node
        elif isinstance(node, Mapping):
            stack.extend((f"{path}/{escape_token(key)}", member) for key, member in node.items())
        elif isinstance(node, list):
            stack.extend((f"{path}/{index}", item) for index, item in enumerate(node))
