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
from itertools import islice
from typing import Any

from ...arguments.rjson.damage import Refusal
from ...arguments.schema.view import View
from ...core.types import Step
from ...core.values import Value, escape_token, same
from ..rxml.shape import is_text
from .flat import resolve_plain

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
