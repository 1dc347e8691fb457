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
    """Return the offset of a tag at the end of a text that closes nothing in it.

    -1 if there is none.

    names: of the parameters, and of tags of the format.

    >>> stray_end("x</path>", ("path",)), stray_end("<path>x</path>", ("path",))
    (1, -1)
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
    """Tell if a mark of a CDATA section is left in a text: one without the other.

    A whole section inside a longer text is content, and so is `]]>` in the middle of code.

    >>> holds_section_mark("x]]>"), holds_section_mark("a <![CDATA[b]]> c")
    (True, False)
    """
    opener = text.rfind(_CDATA[0])
    if opener >= 0:
        return text.find(_CDATA[1], opener) < 0
    return text.rstrip().endswith(_CDATA[1])


def is_plain_object(value: Value, view: View) -> bool:
    """Tell if arguments are known parameters, whose texts hold nothing that may be part of a tag.

    Nothing in them is doubtful then. view: the schema of the parameters.

    >>> from toolparse_lab.arguments.schema.view import view_of
    >>> view = view_of({"properties": {"a": {"type": "string"}}})
    >>> [is_plain_object({"a": text}, view) for text in ("x > y", "x<y", "x] ", "")]
    [True, False, False, True]
    """
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
    """Tell if arguments hold text like a damaged tag or name of their own format.

    view: the schema of the parameters. body: the text they were read from, and where their values
    stand in it: everything escaped there was meant as it is. places: asked for only where something
    looks doubtful. repaired: edits were made, so that more is doubtful.
    """
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
    """Tell if a value is a text without anything that may be part of a tag."""
    if type(value) is not str:
        return False
    if "<" in value:
        return False
    last = value[-1:]
    # Copied only where white space stands behind it, which is rare.
    return (value.rstrip()[-1:] if last.isspace() else last) not in _CLOSING_ENDS


def _looks_damaged(text: str, path: str, view: View, fragment: re.Pattern[str] | None) -> bool:
    """Tell if a text holds text that may be a damaged tag. fragment: see `_fragment`.

    Return None for none.
    """
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
    """Tell if a text ends with a bracket that its own closing tag may have, too.

    One at its beginning is well-formed, and a value like any other.
    """
    return text[-1:] == "<"


def _stands_bare(text: str, body: str, place: Place | None) -> bool:
    """Tell if a value stands in the body as it is, neither escaped nor in a section.

    place: of the value, None if it is unknown.

    >>> _stands_bare("a</b>", "<b>a</b></b>", (3, 8)), _stands_bare("a</b>", "a&lt;/b>", (0, 8))
    (True, False)
    """
    if place is None:
        return True
    start, end = place
    in_section = body.startswith(_CDATA[0], max(0, start - len(_CDATA[0])))
    return text.strip() in body[start:end] and not in_section


def _is_unbalanced(text: str, path: str) -> bool:
    """Tell if a value holds tags of its own name that do not balance.

    path: of the value. Indexes of items are not names.

    >>> _is_unbalanced("a<t>b", "/t/0"), _is_unbalanced("<t>b</t>", "/t")
    (True, False)
    """
    name = next((part for part in reversed(path.split("/")) if not part.isdigit()), "")
    # Searched from the end, which is several times as fast where nothing is found.
    if not name or text.rfind(f"{name}>") < 0:
        return False
    return text.count(f"<{name}>") != text.count(f"</{name}>")


def _doubles_bracket(text: str, body: str, end: int) -> bool:
    """Tell if a value ends with a bracket that is its closing tag's, written twice.

    end: of the value in its body.

    >>> _doubles_bracket("a<", "<t>a<</t>", 5), _doubles_bracket("<", "<t><</t>", 4)
    (True, False)
    """
    return any(map(str.isalnum, text)) and body[end - 1 : end + 2] == "<</"


@lru_cache(maxsize=512)
def _broken_closer(names: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern for a parameter's closing tag without its end.

    One that never matches for none.
    """
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"
    return re.compile(rf"</(?:{words})(?![\w.:\s>-])")


def is_doubtful_name(name: str, value: Mapping[str, Value], view: View, *, repaired: bool) -> bool:
    """Tell if an unknown name is a damaged one: near to a parameter's that is not there.

    Behind a repair, every unknown name of a schema that lists its own is doubtful.
    """
    if not view.properties:
        return False
    if repaired or name in names_below(view):
        return True
    return any(other not in value and is_near_name(name, other) for other in view.properties)


@lru_cache(maxsize=512)
def _fragment(names: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern for a name or a word of the format that touches a structural character."""
    words = "|".join(sorted(map(re.escape, names | FORMAT_WORDS), key=len, reverse=True))
    return re.compile(rf"(?:</?\s?|\[/|\b/)(?:{words})\b|(?<![\w.])(?:{words})(?:=[^<>\s]*)?\s?>")


@lru_cache(maxsize=512)
def names_below(view: View) -> frozenset[str]:
    """Return the names of all parameters, and of the members inside them.

    >>> from toolparse_lab.arguments.schema.view import view_of
    >>> sorted(names_below(view_of({"properties": {"a": {"properties": {"b": {}}}}})))
    ['a', 'b']
    """
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
    """Yield the path of every text inside a value, and the text, in no order."""
    stack: list[tuple[str, Value]] = [("", value)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, str):
            yield path, node
        elif isinstance(node, Mapping):
            stack.extend((f"{path}/{escape_token(key)}", member) for key, member in node.items())
        elif isinstance(node, list):
            stack.extend((f"{path}/{index}", item) for index, item in enumerate(node))
