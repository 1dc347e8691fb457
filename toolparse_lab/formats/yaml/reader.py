"""Reads YAML 1.2 as a mapping of parameters.

`read_flat` knows the mapping that most bodies are: one plain line a key, and texts of several lines
as block literals. What is not plainly of this kind is left to PyYAML, which takes a hundred times
as long; if both answer, they answer the same. PyYAML splits the text into events, and nothing more:
it knows YAML 1.1, builds by recursion and follows aliases. The limits of a mapping and its depth
are set here, and the meaning of unquoted scalars, by YAML 1.2's core schema and the tool's in
doubt.
"""

# How it works
#
# State: a stack of frames, one for each mapping or sequence that is open, with the key that waits
# for its value. Each event opens or closes a frame, or is a scalar: a key, or a value that is put
# into the innermost frame. The path and the schema of a value follow from the frame.
#
# Invariant: whatever PyYAML cannot read, or reads differently from YAML 1.2, raises a `Refusal`
# with its place; no other error leaves this module.
#
# Cost: one pass over the events, in a loop and not by recursion, so that depth costs no stack.
# PyYAML itself is linear but for brackets on one line, which are counted before it sees them.

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from ...arguments.rjson.strict import Refusal
from ...arguments.schema.view import View
from ...core.types import Step
from ...core.values import Value, escape_token, number, same
from ...core.values.numbers import Number
from ..rxml.shape import is_text
from .write import ODD

MAX_DEPTH = 100
_SWALLOWED_ITEM = re.compile(r"\n[ \t]*-[ \t]")
_LOOK = 256  # blanks between a text and a comment
_BRACKETS = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+'|(?P<open>[\[{])|(?P<close>[\]}])|(?P<line>\n)"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKS = "\x85\u2028\u2029"  # line breaks in YAML 1.1, but not in 1.2


class _Frame:
    # One mapping or sequence under way. box: the mapping or list. path, start: where it is, in the
    # arguments and in the text. view: its schema, if it is known.
    __slots__ = ("again", "box", "key", "path", "start", "view")

    def __init__(self, box: Value, path: str, start: int, view: View | None) -> None:
        self.box = box
        self.path = path
        self.start = start
        self.view = view
        self.key: str | None = None  # of the value that comes next, in a mapping
        self.again: list[tuple[str, Value]] = []  # keys that were there before, with new values

    def awaits_key(self) -> bool:
        return self.key is None and isinstance(self.box, dict)

    def put(self, value: Value) -> None:
        # value: complete if it is a scalar. A mapping or sequence goes in before it fills.
        if isinstance(self.box, list):
            self.box.append(value)
            return
        key = self.key or ""
        self.key = None  # the next event in this mapping is a key again
        if key in self.box:
            # It is not complete yet, so it is compared with the first one when the frame ends.
            self.again.append((key, value))
        else:
            self.box[key] = value


class NoYaml(Refusal):
    """The text breaks YAML's own syntax, and not only a rule of ours."""


class MappingReader:
    """Reads one YAML document as a mapping. `places` and `steps` fill while it reads.

    max_depth: how many mappings and lists may be open at once.
    """

    def __init__(self, text: str, max_depth: int) -> None:
        self.text = text
        self.max_depth = max_depth
        self.places: dict[str, tuple[int, int]] = {}
        self.steps: list[Step] = []
        self._frames: list[_Frame] = []
        self._root: Value = None
        # From the characters that stand in for odd line breaks, back to these.
        self._back: dict[int, int] = {}

    def read(self, view: View) -> dict[str, Value]:
        """Return the mapping, {} for an empty body. Reads only once. Raises Refusal."""
        empty = True
        for event, kind in self._events():
            at = event.start_mark.index
            if kind == "DocumentStartEvent" and not empty:
                raise Refusal("decode.yaml", "there is more than one document", at)
            if kind == "ScalarEvent":
                if empty and not event.value and at == event.end_mark.index:
                    self._root = {}  # a document marker or a comment with nothing after it
                    continue
                self._scalar(event, view)
            elif kind == "MappingStartEvent":
                self._begin({}, at, view)
            elif kind == "SequenceStartEvent":
                self._begin([], at, view)
            else:
                if kind in ("MappingEndEvent", "SequenceEndEvent"):
                    self._end(event.end_mark.index)
                continue  # ends of documents and streams say nothing
            empty = False

        root = {} if empty else self._root
        if not isinstance(root, dict):
            raise Refusal("decode.yaml", "the body is no mapping of parameters", 0)
        self.places.setdefault("", (0, len(self.text)))
        return root

    def _events(self) -> Iterator[tuple[Any, str]]:
        # Line breaks of YAML 1.1 that are none in 1.2 are shown to PyYAML as private characters
        # that the text does not contain, one for one, so that offsets stay. `_scalar` brings them
        # back. Syntax that is broken is a `NoYaml`, which may be repaired. Everything else is not.
        import yaml  # takes longer to load than everything else here, and few bodies need it

        self._check_brackets()
        text = self.text
        if any(char in text for char in _BREAKS):
            stand_ins = "".join(_unused(text, len(_BREAKS)))
            self._back = str.maketrans(stand_ins, _BREAKS)
            text = text.translate(str.maketrans(_BREAKS, stand_ins))
        try:
            for event in yaml.parse(text, Loader=yaml.SafeLoader):
                kind = type(event).__name__
                # A small text of aliases can say a value of any size. A tag asks for types that
                # JSON lacks.
                if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
                    at = event.start_mark.index
                    raise Refusal("decode.yaml", "anchors and aliases are not read", at)
                if getattr(event, "tag", None) is not None:
                    raise Refusal("decode.yaml", "tags are not read", event.start_mark.index)
                yield event, kind
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark  # may be missing, or after the end
            at = min(mark.index, len(text)) if mark else 0
            message = f"no YAML: {error.problem or error.context}"
            raise NoYaml("decode.yaml", message, at) from None
        except yaml.reader.ReaderError as error:
            at = min(error.position, len(text))
            raise Refusal("decode.yaml", "a character that YAML does not allow", at) from None
        except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
            raise Refusal("decode.yaml", f"no YAML: {type(error).__name__}", 0) from None

    def _check_brackets(self) -> None:
        # PyYAML looks ahead for a key through all brackets that are open on a line, at a cost each.
        depth = 0
        for match in _BRACKETS.finditer(self.text):
            if match["open"]:
                depth += 1
                if depth > MAX_DEPTH:
                    message = f"brackets nest deeper than {MAX_DEPTH}"
                    raise Refusal("decode.too-deep", message, match.start())
            elif match["line"]:
                depth = 0
            elif match["close"]:
                depth = max(0, depth - 1)

    def _begin(self, box: Value, start: int, root: View) -> None:
        # root: the schema of the parameters, where this is the outermost
        frames = self._frames
        if len(frames) >= self.max_depth:
            message = f"lists and mappings nest deeper than {self.max_depth}"
            raise Refusal("decode.too-deep", message, start)
        if frames and frames[-1].awaits_key():
            raise Refusal("decode.yaml", "a key is no text", start)

        # The path comes first, since `_put` takes the key away.
        path, view = self._next(root)
        self._put(box)
        frames.append(_Frame(box, path, start, view))

    def _end(self, end: int) -> None:
        frame = self._frames.pop()
        for key, value in frame.again:
            first = frame.box[key]
            if not same(first, value):
                message = f"{key!r} appears twice with different values"
                raise Refusal("decode.duplicate-key", message, frame.start)
            path = f"{frame.path}/{escape_token(key)}"
            step = Step("read", "read.equal-duplicate", path, None, [first, value], first)
            self.steps.append(step)

        # The event of an end is where the next line's indentation told it.
        while end > frame.start and self.text[end - 1].isspace():
            end -= 1
        self.places.setdefault(frame.path, (frame.start, end))

    def _scalar(self, event: Any, root: View) -> None:
        text = event.value.translate(self._back) if self._back else event.value
        if _SURROGATE.search(text):  # written as two escapes, as JSON does
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if self._frames and self._frames[-1].awaits_key():
            self._frames[-1].key = text
            return

        path, view = self._next(root)
        self._check_end(event, view)
        value = resolve_plain(text, view) if event.style is None else text
        # Its place is without its quotes or its header: a block begins on the line after that.
        start, end = event.start_mark.index, event.end_mark.index
        if event.style in ("'", '"'):
            start, end = start + 1, end - 1
        elif event.style in ("|", ">"):
            start = self.text.find("\n", start, end) + 1 or end
        self.places.setdefault(path, (start, end))
        self._put(value)

    def _check_end(self, event: Any, view: View | None) -> None:
        # Raise Refusal for a scalar that may not be what YAML takes it for.
        start, end, is_bare = event.start_mark.index, event.end_mark.index, event.style is None
        if is_bare and not event.value and self._frames:
            before = self.text[max(0, start - _LOOK) : start].rstrip()
            if isinstance(self._frames[-1].box, dict) and not before.endswith(":"):
                raise Refusal("decode.yaml", "a key without a value", start)  # as in `{a}`
        if is_bare and _SWALLOWED_ITEM.search(self.text, start, end):
            message = "a line that looks like an item of a list is indented as text"
            raise Refusal("decode.ambiguous", message, start)
        if is_bare and view is not None and event.value and is_text(view):
            line = self.text[end : end + _LOOK].split("\n", 1)[0]
            if line.lstrip(" \t").startswith("#"):
                message = "it cannot be told if ` #` begins a comment or belongs to the text"
                raise Refusal("decode.ambiguous", message, end)
        elif event.style in ("|", ">") and not event.value.strip() and self.text[end:].strip():
            message = "the lines after `|` are not indented"
            raise Refusal("decode.ambiguous", message, start)

    def _next(self, root: View) -> tuple[str, View | None]:
        # (path, schema) of the value that comes next; in a list its number decides
        if not self._frames:
            return "", root
        frame = self._frames[-1]
        view = frame.view
        if isinstance(frame.box, dict):
            key = frame.key or ""
            return f"{frame.path}/{escape_token(key)}", view.child(key) if view else None
        index = len(frame.box)
        return f"{frame.path}/{index}", view.item(index) if view is not None else None

    def _put(self, value: Value) -> None:
        if self._frames:
            self._frames[-1].put(value)
        else:
            self._root = value


def _unused(text: str, count: int) -> list[str]:
    # Private characters. Written as an escape one would come back as a line break as well.
    lowered = text.lower()
    codes = (c for c in range(0xE000, 0xF8FF) if chr(c) not in text and f"{c:x}" not in lowered)
    unused = [chr(code) for code in islice(codes, count)]
    if len(unused) < count:
        raise Refusal("decode.yaml", "the body uses every private character there is", 0)
    return unused


_MAX_DIGITS = 3000  # of a hexadecimal or octal integer, so that it can still be written in decimal
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEAN = {w: w[0] in "tT" for w in ("true", "True", "TRUE", "false", "False", "FALSE")}
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_FLOAT = re.compile(r"([-+]?)(0|[1-9][0-9]*)?(?:(\.)([0-9]*))?([eE][-+]?[0-9]+)?")
_ZEROS = re.compile(r"([-+]?)0+([0-9]+)")
_NUMBER_STARTS = frozenset("+-.0123456789")
_RADIX = {"0x": (16, re.compile(r"0x[0-9a-fA-F]+")), "0o": (8, re.compile(r"0o[0-7]+"))}


def resolve_plain(text: str, view: View | None = None) -> Value:
    """Return the meaning of an unquoted scalar in YAML 1.2's core schema.

    No yes and no, no dates, no base 60. If the schema wants text and another spelling would lose
    characters (`007`, `0x1F`, `+5`), it stays text. Leading zeros are a number only where the
    schema wants one. Not-a-number and infinity are text: JSON has neither.

    view: the schema of the value, None if nothing is known of it.

    >>> [resolve_plain(text) for text in ("3", "1.50", "True", "~", "no", "2024-01-15")]
    [3, 1.5, True, None, 'no', '2024-01-15']
    >>> [resolve_plain(text) for text in ("007", "0x1F", "1_000")]
    ['007', 31, '1_000']
    """
    # The text of a string among the schema's own values is that string.
    if view is not None and view.enum and any(type(m) is str and m == text for m in view.enum):
        return text
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        # In JSON's own spelling it is a boolean, whatever the schema wants.
        odd = text not in ("true", "false") and _wants_text(view, "boolean")
        return text if odd else _BOOLEAN[text]

    # Most scalars are words, and most others are JSON's own numbers: these two checks come first.
    if _JSON_NUMBER.fullmatch(text):
        return _number(text)
    if text[0] not in _NUMBER_STARTS:
        return text

    zeros = _ZEROS.fullmatch(text)
    if zeros:
        # An identifier such as 007 may well begin with zeros: only a schema makes it a number.
        types = view.types or () if view is not None else ()
        if "string" in types or not {"integer", "number"}.intersection(types):
            return text
        return _number(zeros[1].replace("+", "") + zeros[2])
    value = _odd_number(text)
    if value is None:
        return text
    # As text it keeps all its characters, so it stays one where the schema has a place for texts
    # and none for this kind of number.
    kind = "integer" if isinstance(value, int) else "number"
    return text if _wants_text(view, kind) else value


def _odd_number(text: str) -> Number | str | None:
    # A number as YAML writes it and JSON does not. None if it is no number, the text itself if its
    # exponent is beyond every number.
    radix = _RADIX.get(text[:2])
    if radix:
        base, pattern = radix
        # One that is too long could not be written in decimal again.
        is_number = len(text) <= _MAX_DIGITS and pattern.fullmatch(text)
        return int(text[2:], base) if is_number else None

    match = _FLOAT.fullmatch(text)
    if match is None:
        return None
    sign, whole, point, fraction, exponent = match.groups(default="")
    if not whole and not fraction:
        return None
    # Brought to JSON's spelling: no plus, a digit on each side of the point.
    point += (fraction or "0") if point else ""
    return _number(("-" if sign == "-" else "") + (whole or "0") + point + exponent)


def _number(text: str) -> Number | str:
    # the text where the exponent is beyond every number
    try:
        return number(text)
    except ValueError:
        return text


def _wants_text(view: View | None, kind: str) -> bool:
    # The schema admits text, and not this kind of value. An integer is also a number.
    if view is None or view.types is None or "string" not in view.types:
        return False
    return kind not in view.types and not (kind == "integer" and "number" in view.types)


# How it works: one pattern matches a line with its key, value and line break, and says by its last
# group which kind of value it is. Any line that it does not match ends the attempt, and so does
# what YAML would read differently here and there; nothing is repaired. Cost: one match a line.

_LEAD = re.compile(r"(?: *\n)*+(?P<indent> {0,32})(?=[A-Za-z_])")
_ODD_ASCII = tuple(chr(code) for code in (*range(9), 11, 12, *range(13, 32), 127))
_LONG = 2_000  # characters from which on thirty searches for one character are faster than a set
_PLAIN = r"(?:[^\s:#\[\]{}\-?,&*!|>'\"%@`]|-(?=\S))(?:[^\s:\[\]{}]|:(?=\S)| +(?=[^\s#]))*+"
_MAX_BRACKETS = 100  # more of them are counted as PyYAML must


@lru_cache(maxsize=64)
def _patterns(indent: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    # indent: that of the keys. The first matches the value, the line's end and blank lines after it
    # as well. Its last group is "key" for no value, "plain", "double", "single" or "block".
    double = r"\"(?P<double>(?:[^\"\\\n\t]|\\[\"\\/bfnrt])*+)\""
    single = r"'(?P<single>[^'\n\t]*+)'"
    line = (
        rf" {{{indent}}}(?P<key>[A-Za-z_][A-Za-z0-9_.$-]{{0,127}}):"
        rf"(?: +(?:(?P<plain>{_PLAIN})|{double}|{single}"
        r"|(?P<block>\|-?+)))?+ *(?:\n(?: *\n)*+(?: +\Z)?|\Z)"
    )
    block = rf"(?P<lead> {{{indent + 1},}})[^ \n][^\n]*+\n(?:\n|(?P=lead)[^\n]*+\n)*+"
    return re.compile(line), re.compile(block)


def _is_odd(text: str) -> bool:
    if len(text) > _LONG and text.isascii():
        return any(map(text.__contains__, _ODD_ASCII))
    return ODD.search(text) is not None


def read_flat(text: str, view: View) -> tuple[dict[str, Value], dict[str, tuple[int, int]]] | None:
    """Return the mapping, and the place of each value by its JSON Pointer.

    None if PyYAML has to look.

    text: the body, without the element's tags.
    view: the schema of the parameters, which decides the meaning of an unquoted value.
    """
    lead = _LEAD.match(text)
    if lead is None or _is_odd(text):
        return None
    if text.count("[") + text.count("{") > _MAX_BRACKETS:
        return None

    indent = lead.end() - lead.start("indent")
    pattern, block = _patterns(indent)
    values: dict[str, Value] = {}
    places = {"": (lead.end(), len(text.rstrip()))}
    pos = lead.start("indent")
    while pos < len(text):
        line = pattern.match(text, pos)
        if line is None or line["key"] in values:
            return None

        key = line["key"]
        pos = line.end()
        kind = line.lastgroup or "key"
        value: Value
        if kind == "block":
            # A header on the last line has nothing below it: then `find` returns -1.
            start = text.find("\n", line.end("block")) + 1
            lines = block.match(text, start) if start else None
            if lines is None:
                return None
            # One line break at the end, or none with `|-`.
            lead_in = lines["lead"]
            value = lines[0][len(lead_in) :].replace("\n" + lead_in, "\n").rstrip("\n")
            value += "" if line["block"] == "|-" else "\n"
            pos = lines.end()
            place = start, pos
            # White space at the end that is not even a line of the mapping belongs to nothing.
            if len(text) - pos <= indent and not text[pos:].strip(" "):
                pos = len(text)
        elif kind == "key":
            # Nothing there is null, or an empty text where the schema wants one. Its place is after
            # the colon.
            end = line.end("key") + 1
            value, place = resolve_plain("", view.child(key)), (end, end)
        elif kind == "plain":
            value, place = resolve_plain(line["plain"], view.child(key)), line.span("plain")
        else:
            value, place = line[kind], line.span(kind)
            # The escapes that the pattern lets through are those of JSON.
            if kind == "double" and "\\" in value:
                value = json.loads(f'"{value}"')

        values[key] = value
        places["/" + key] = place  # such keys hold nothing that a pointer escapes

    return values, places
