"""Reads YAML 1.2 as a mapping of parameters.

PyYAML splits the text into events, and nothing more: it knows YAML 1.1, builds by recursion and follows aliases.
What a mapping may hold and how deep it may go is said here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..rjson.damage import Refusal
from ..schema.view import View
from ..types import Step
from ..values import Value, escape_token, same
from .yaml_scalar import resolve_plain

MAX_DEPTH = 100
_BRACKETS = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+'|(?P<open>[\[{])|(?P<close>[\]}])|(?P<line>\n)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKS = "\x85\u2028\u2029"  # line breaks in YAML 1.1, but not in 1.2


class _Frame:
    """One mapping or sequence under way."""

    __slots__ = ("again", "box", "key", "path", "start", "view")

    def __init__(self, box: Value, path: str, start: int, view: View | None) -> None:
        self.box = box
        self.path = path
        self.start = start
        self.view = view
        self.key: str | None = None
        self.again: list[tuple[str, Value]] = []  # keys that stood before, with their new values


class NoYaml(Refusal):
    """The text breaks YAML's own syntax, and not only a rule of ours."""


class MappingReader:
    """Reads one YAML document as a mapping; `places` and `steps` fill while it reads."""

    def __init__(self, text: str, max_depth: int) -> None:
        self.text = text
        self.max_depth = max_depth
        self.places: dict[str, tuple[int, int]] = {}
        self.steps: list[Step] = []
        self._frames: list[_Frame] = []
        self._root: Value = None
        self._back: dict[int, int] = {}

    def read(self, view: View) -> dict[str, Value]:
        """The mapping; raises Refusal."""
        empty = True
        for event, kind in self._events():
            if kind == "DocumentStartEvent":
                if not empty:
                    raise Refusal("decode.yaml", "there is more than one document", event.start_mark.index)
            elif kind == "ScalarEvent":
                if empty and not event.value and event.start_mark.index == event.end_mark.index:
                    self._root = {}  # a document marker with nothing behind it
                    continue
                self._scalar(event, view)
                empty = False
            elif kind in ("MappingStartEvent", "SequenceStartEvent"):
                self._begin({} if kind == "MappingStartEvent" else [], event.start_mark.index, view)
                empty = False
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                self._end(event.end_mark.index)
        root = {} if empty else self._root
        if not isinstance(root, dict):
            raise Refusal("decode.yaml", "the body is no mapping of parameters", 0)
        self.places.setdefault("", (0, len(self.text)))
        return root

    def _events(self) -> Iterator[tuple[Any, str]]:
        """PyYAML's events with the names of their kinds; what goes wrong there is a Refusal."""
        import yaml

        text = self.text
        self._check_brackets()
        if any(ch in text for ch in _BREAKS):
            stand_ins = _unused(text, len(_BREAKS))
            self._back = str.maketrans("".join(stand_ins), _BREAKS)
            text = text.translate(str.maketrans(_BREAKS, "".join(stand_ins)))
        try:
            for event in yaml.parse(text, Loader=yaml.SafeLoader):
                kind = type(event).__name__
                if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
                    raise Refusal("decode.yaml", "anchors and aliases are not read", event.start_mark.index)
                if getattr(event, "tag", None) is not None:
                    raise Refusal("decode.yaml", "tags are not read", event.start_mark.index)
                yield event, kind
        except yaml.MarkedYAMLError as e:
            mark = e.problem_mark or e.context_mark
            at = mark.index if mark else 0
            raise NoYaml("decode.yaml", f"no YAML: {e.problem or e.context}", min(at, len(text))) from None
        except yaml.reader.ReaderError as e:
            raise Refusal("decode.yaml", "a character that YAML does not allow", min(e.position, len(text))) from None
        except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as e:
            raise Refusal("decode.yaml", f"no YAML: {type(e).__name__}", 0) from None

    def _check_brackets(self) -> None:
        """On one line PyYAML looks ahead through all brackets that are open, at a cost for each."""
        depth = 0
        for m in _BRACKETS.finditer(self.text):
            if m["open"]:
                depth += 1
                if depth > MAX_DEPTH:
                    raise Refusal("decode.too-deep", f"brackets nest deeper than {MAX_DEPTH}", m.start())
            elif m["line"]:
                depth = 0
            elif m["close"]:
                depth = max(0, depth - 1)

    def _begin(self, box: Value, start: int, root: View) -> None:
        frames = self._frames
        if len(frames) >= self.max_depth:
            raise Refusal("decode.too-deep", f"lists and mappings nest deeper than {self.max_depth}", start)
        if frames and isinstance(frames[-1].box, dict) and frames[-1].key is None:
            raise Refusal("decode.yaml", "a key is no text", start)
        path, view = self._next(root)
        self._put(box)
        frames.append(_Frame(box, path, start, view))

    def _end(self, end: int) -> None:
        frame = self._frames.pop()
        for key, value in frame.again:
            first = frame.box[key]
            if not same(first, value):
                raise Refusal("decode.duplicate-key", f"{key!r} stands twice with different values", frame.start)
            path = f"{frame.path}/{escape_token(key)}"
            self.steps.append(Step("read", "read.equal-duplicate", path, None, [first, value], first))
        while end > frame.start and self.text[end - 1].isspace():
            end -= 1
        self.places.setdefault(frame.path, (frame.start, end))

    def _scalar(self, event: Any, root: View) -> None:
        text = self._text(event.value)
        frame = self._frames[-1] if self._frames else None
        if frame is not None and isinstance(frame.box, dict) and frame.key is None:
            frame.key = text
            return
        path, view = self._next(root)
        value = resolve_plain(text, view) if event.style is None else text
        self.places.setdefault(path, self._place(event))
        self._put(value)

    def _text(self, text: str) -> str:
        if self._back:
            text = text.translate(self._back)
        if _SURROGATE.search(text):  # written as two escapes, as JSON does
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text

    def _place(self, event: Any) -> tuple[int, int]:
        """Where a scalar stands, without its quotes or its header."""
        start, end = event.start_mark.index, event.end_mark.index
        if event.style in ("'", '"'):
            return start + 1, end - 1
        if event.style in ("|", ">"):
            line = self.text.find("\n", start, end)
            return (line + 1, end) if line >= 0 else (end, end)
        return start, end

    def _next(self, root: View) -> tuple[str, View | None]:
        """The path and schema of the value that comes next."""
        if not self._frames:
            return "", root
        frame = self._frames[-1]
        view = frame.view
        if isinstance(frame.box, dict):
            key = frame.key or ""
            return f"{frame.path}/{escape_token(key)}", view.child(key) if view else None
        index = len(frame.box)
        member = None
        if view is not None:
            member = view.prefix[index] if index < len(view.prefix) else view.items
        return f"{frame.path}/{index}", member

    def _put(self, value: Value) -> None:
        if not self._frames:
            self._root = value
            return
        frame = self._frames[-1]
        if isinstance(frame.box, list):
            frame.box.append(value)
            return
        key = frame.key or ""
        frame.key = None
        if key in frame.box:
            frame.again.append((key, value))
        else:
            frame.box[key] = value


def _unused(text: str, count: int) -> list[str]:
    """Private characters that the text neither holds nor writes as an escape."""
    lowered = text.lower()
    found: list[str] = []
    for code in range(0xE000, 0xF8FF):
        if chr(code) not in text and f"{code:x}" not in lowered:
            found.append(chr(code))
            if len(found) == count:
                return found
    raise Refusal("decode.yaml", "the body uses every private character there is", 0)
