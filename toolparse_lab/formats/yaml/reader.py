"""Reads YAML 1.2 as a mapping of parameters.

PyYAML splits the text into events, and nothing more: it knows YAML 1.1, builds by recursion and
follows aliases. The limits of a mapping and its depth are set here.
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

import re
from collections.abc import Iterator
from typing import Any

from ...arguments.rjson.damage import Refusal
from ...arguments.schema.view import View
from ...core.types import Step
from ...core.values import Value, escape_token, same
from ..rxml.shape import is_text
from .scalar import resolve_plain

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
        self.again: list[tuple[str, Value]] = []  # keys that stood before, with their new values

    def member(self) -> tuple[str, View | None]:
        # (path, schema) of the value that comes next; in a list its number decides
        view = self.view
        if isinstance(self.box, dict):
            key = self.key or ""
            return f"{self.path}/{escape_token(key)}", view.child(key) if view else None

        index = len(self.box)
        path = f"{self.path}/{index}"
        if view is None:
            return path, None
        return path, view.item(index)

    def awaits_key(self) -> bool:
        return self.key is None and isinstance(self.box, dict)

    def put(self, value: Value) -> None:
        # A key that was there before keeps its first value for now.
        if isinstance(self.box, list):
            self.box.append(value)
            return

        key = self.key or ""
        # The next event in this mapping is a key again.
        self.key = None
        if key in self.box:
            # It is not complete yet, so it is compared with the first one when the frame ends.
            self.again.append((key, value))
        else:
            self.box[key] = value


class NoYaml(Refusal):
    """The text breaks YAML's own syntax, and not only a rule of ours."""


class MappingReader:
    """Reads one YAML document as a mapping. `places` and `steps` fill while it reads."""

    def __init__(self, text: str, max_depth: int) -> None:
        # max_depth: how many mappings and lists may be open at once. text: as it came, or as
        # repairs made it.
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
        # Ends of documents and streams, and comments, say nothing.
        for event, kind in self._events():
            if not empty:
                _check_only_document(event, kind)
            if kind == "ScalarEvent" and empty and _is_nothing(event):
                self._root = {}  # a document marker with nothing behind it
                continue
            if self._take(event, kind, view):
                empty = False

        root = {} if empty else self._root
        if not isinstance(root, dict):
            raise Refusal("decode.yaml", "the body is no mapping of parameters", 0)
        self.places.setdefault("", (0, len(self.text)))
        return root

    def _take(self, event: Any, kind: str, view: View) -> bool:
        # True if a value began with it. kind: the name of the event's class.
        if kind == "ScalarEvent":
            self._scalar(event, view)
        elif kind == "MappingStartEvent":
            self._begin({}, event.start_mark.index, view)
        elif kind == "SequenceStartEvent":
            self._begin([], event.start_mark.index, view)
        else:
            if kind in ("MappingEndEvent", "SequenceEndEvent"):
                self._end(event.end_mark.index)
            return False
        return True

    def _events(self) -> Iterator[tuple[Any, str]]:
        # Line breaks of YAML 1.1 that are none in 1.2 are shown to PyYAML as private characters
        # that the text does not contain, one for one, so that offsets stay. `_text` brings them
        # back. Syntax that is broken is a `NoYaml`, which may be repaired. Everything else is not.
        import yaml  # takes longer to load than everything else here, and few bodies need it

        self._check_brackets()
        text = self._without_odd_breaks()
        try:
            for event in yaml.parse(text, Loader=yaml.SafeLoader):
                kind = type(event).__name__
                _check_event(event, kind)
                yield event, kind
        except yaml.MarkedYAMLError as error:
            raise _broken_syntax(error, len(text)) from None
        except yaml.reader.ReaderError as error:
            at = min(error.position, len(text))
            raise Refusal("decode.yaml", "a character that YAML does not allow", at) from None
        except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
            raise Refusal("decode.yaml", f"no YAML: {type(error).__name__}", 0) from None

    def _without_odd_breaks(self) -> str:
        text = self.text
        if not any(char in text for char in _BREAKS):
            return text

        stand_ins = "".join(_unused(text, len(_BREAKS)))
        self._back = str.maketrans(stand_ins, _BREAKS)
        return text.translate(str.maketrans(_BREAKS, stand_ins))

    def _check_brackets(self) -> None:
        # There PyYAML looks ahead through all brackets that are open, at a cost for each.
        depth = 0
        for match in _BRACKETS.finditer(self.text):
            if match["open"]:
                depth += 1
                _check_depth(depth, match.start())
            # PyYAML looks ahead for a key within one line only.
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
        # end: the offset at which PyYAML saw that it is over
        frame = self._frames.pop()
        for key, value in frame.again:
            self._compare(frame, key, value)

        self.places.setdefault(frame.path, (frame.start, self._last_word(frame.start, end)))

    def _last_word(self, start: int, end: int) -> int:
        # The event of an end stands where the next line's indentation told it.
        while end > start and self.text[end - 1].isspace():
            end -= 1
        return end

    def _compare(self, frame: _Frame, key: str, value: Value) -> None:
        # equal values are a step, which keeps both
        first = frame.box[key]
        if not same(first, value):
            message = f"{key!r} stands twice with different values"
            raise Refusal("decode.duplicate-key", message, frame.start)

        path = f"{frame.path}/{escape_token(key)}"
        step = Step("read", "read.equal-duplicate", path, None, [first, value], first)
        self.steps.append(step)

    def _scalar(self, event: Any, root: View) -> None:
        text = self._text(event.value)
        if self._frames and self._frames[-1].awaits_key():
            self._frames[-1].key = text
            return

        path, view = self._next(root)
        self._check_colon(event)
        self._check_end(event, view)
        value = resolve_plain(text, view) if event.style is None else text
        self.places.setdefault(path, self._place(event))
        self._put(value)

    def _check_colon(self, event: Any) -> None:
        # such as `{a}`
        if event.value or event.style is not None or not self._frames:
            return
        at = event.start_mark.index
        before = self.text[max(0, at - _LOOK) : at].rstrip()
        if isinstance(self._frames[-1].box, dict) and not before.endswith(":"):
            raise Refusal("decode.yaml", "a key without a value", at)

    def _check_end(self, event: Any, view: View | None) -> None:
        # A text cut by ` #`, where the schema wants a text and YAML sees a comment. A block without
        # a line, because those after it are not indented.
        end = event.end_mark.index
        if event.style is None and _SWALLOWED_ITEM.search(self.text, event.start_mark.index, end):
            message = "a line that looks like an item of a list is indented as text"
            raise Refusal("decode.ambiguous", message, event.start_mark.index)
        if event.style is None and view is not None and event.value and is_text(view):
            line = self.text[end : end + _LOOK].split("\n", 1)[0]
            if line.lstrip(" \t").startswith("#"):
                message = "it cannot be told if ` #` begins a comment or belongs to the text"
                raise Refusal("decode.ambiguous", message, end)
        elif event.style in ("|", ">") and not event.value.strip() and self.text[end:].strip():
            message = "the lines behind `|` are not indented"
            raise Refusal("decode.ambiguous", message, event.start_mark.index)

    def _text(self, text: str) -> str:
        if self._back:
            text = text.translate(self._back)
        if _SURROGATE.search(text):  # written as two escapes, as JSON does
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text

    def _place(self, event: Any) -> tuple[int, int]:
        # Without its quotes or its header. A block begins on the line after its header.
        start, end = event.start_mark.index, event.end_mark.index
        if event.style in ("'", '"'):
            return start + 1, end - 1
        if event.style in ("|", ">"):
            line = self.text.find("\n", start, end)
            return (line + 1, end) if line >= 0 else (end, end)
        return start, end

    def _next(self, root: View) -> tuple[str, View | None]:
        return self._frames[-1].member() if self._frames else ("", root)

    def _put(self, value: Value) -> None:
        if self._frames:
            self._frames[-1].put(value)
        else:
            self._root = value


def _broken_syntax(error: Any, size: int) -> NoYaml:
    # the mark may be missing, or after the end
    mark = error.problem_mark or error.context_mark
    at = min(mark.index, size) if mark else 0
    return NoYaml("decode.yaml", f"no YAML: {error.problem or error.context}", at)


def _is_nothing(event: Any) -> bool:
    # a marker or a comment with nothing after it
    return not event.value and event.start_mark.index == event.end_mark.index


def _check_depth(depth: int, at: int) -> None:
    if depth > MAX_DEPTH:
        raise Refusal("decode.too-deep", f"brackets nest deeper than {MAX_DEPTH}", at)


def _check_only_document(event: Any, kind: str) -> None:
    if kind == "DocumentStartEvent":
        at = event.start_mark.index
        raise Refusal("decode.yaml", "there is more than one document", at)


def _check_event(event: Any, kind: str) -> None:
    # A small text of aliases can say a value of any size. A tag asks for types that JSON lacks.
    if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
        at = event.start_mark.index
        raise Refusal("decode.yaml", "anchors and aliases are not read", at)
    if getattr(event, "tag", None) is not None:
        raise Refusal("decode.yaml", "tags are not read", event.start_mark.index)


def _unused(text: str, count: int) -> list[str]:
    # private characters that the text neither contains nor writes as an escape
    lowered = text.lower()
    unused: list[str] = []
    # Written as an escape it would come back as a line break as well.
    for code in range(0xE000, 0xF8FF):
        if chr(code) not in text and f"{code:x}" not in lowered:
            unused.append(chr(code))
            if len(unused) == count:
                return unused

    raise Refusal("decode.yaml", "the body uses every private character there is", 0)
