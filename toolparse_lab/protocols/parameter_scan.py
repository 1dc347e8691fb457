"""Functions and their parameters as tags around raw text: which tags count, and where a body ends.

Nothing is escaped in such formats, so a tag inside a value means something only by what stands around it:

- a value's closer counts where another tag of the format, or the end, follows it;
- the next parameter's opener counts where the tool has such a parameter, on a line of its own if the value is;
- a function's or the block's closer inside a value counts where only more of the block's end follows it;
- a whole call inside a value is a quotation, unless the value never ends: then the model began anew there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..scan import Close, CloseKind, JsonBody
from ..schema.view import View, view_of
from ..toolspec import ToolSpec
from .parameter_form import (
    Mark,
    MarkKind,
    TagForm,
    bare_head,
    function_group,
    kind_of,
    names_function,
    parameter_group,
    tag_pattern,
)
from .parameter_strict import strict_form

_SPACE = re.compile(r"\s*")
_CUT_TAG = re.compile(r"</?[A-Za-z_]{0,12}\Z")
_INDENT = 64  # a tag further right than this is on no line of its own


@dataclass(frozen=True, slots=True)
class _Hold:
    """Everything before `at` is settled; the rest waits for more text."""

    at: int


_START, _TOP, _BODY, _INSIDE, _HEAD, _VALUE, _JSON, _ENDED = range(8)


class ParameterScan:
    """Finds the end of a block (`wrapped`) or of one function that stands alone, its own tags included.

    `whole`: it is shown one finished body, looks for no end, and keeps the `marks`; `quoting` holds the indices of
    the parameters whose values hold closers or calls that were taken for content.
    """

    __slots__ = (
        "_at", "_begun", "_early", "_form", "_from", "_fword", "_hidden", "_indent", "_lined", "_look", "_nest",
        "_outside", "_pattern", "_pword", "_state", "_sub", "_tools", "_view", "_whole", "_wrapped", "marks", "quoting",
    )  # fmt: skip

    def __init__(self, form: TagForm, tools: Mapping[str, ToolSpec], *, wrapped: bool, whole: bool = False) -> None:
        self._form = form
        self._tools = tools
        self._wrapped = wrapped
        self._whole = whole
        self._pattern = tag_pattern(form)
        self._state = _START if wrapped else _TOP
        self._begun = whole  # a body may begin with what needs no closer look
        self._at = 0
        self._look = 0  # up to this offset white space was looked at already
        self._hidden: tuple[int, int, CloseKind] | None = None
        self._sub: JsonBody | None = None
        self._from = 0  # where the JSON began that `_sub` reads
        self._fword = self._pword = ""
        self._view: View | None = None
        self._lined = False  # the value begins with a line break
        self._outside = False  # the name of the value's parameter stood between its tags
        self._early = False  # the function's name stood between its tags, and no parameter came since
        self._indent = -1  # white space since the last settled line break; -1 = there is more than that
        self._nest: list[str] = []  # the tags of a quoted call that are open
        self.marks: list[Mark] = []
        self.quoting: set[int] = set()

    def finish(self) -> Close | None:
        if self._sub is not None:
            found = self._sub.finish()
            if found is None:
                return None
            end = self._from + found.end
            if self._wrapped:
                return Close(self._from + found.start, end, found.kind)
            return Close(end, end, "rescued")
        return Close(*self._hidden) if self._hidden else None

    def scan(self, tail: str, final: bool) -> Close | int:
        pos = 0
        if not self._begun:
            self._begun = True
            strict = strict_form(self._form)
            m = (strict.block if self._wrapped else strict.function).match(tail)
            if m is not None:
                if self._wrapped:
                    return Close(*m.span(1), "closer")
                self._state, pos = _ENDED, m.end()
        while True:
            found = self._step(tail, pos, final)
            if isinstance(found, Close):
                return found
            if isinstance(found, _Hold):
                if found.at:
                    self._indent = self._indent_at(tail, found.at)
                    self._at += found.at
                return found.at
            pos = found

    def _step(self, tail: str, pos: int, final: bool) -> Close | _Hold | int:
        state = self._state
        if state == _VALUE:
            return self._in_value(tail, pos, final)
        if state in (_TOP, _INSIDE):
            return self._between(tail, pos, final)
        if state == _JSON:
            return self._in_json(tail, pos, final)
        if state == _ENDED:
            return self._behind(tail, pos, final)
        if state == _HEAD:
            head = tail[pos : pos + 2]
            if not final and head in ("", "\r"):
                return _Hold(pos)
            self._lined = head[:1] == "\n" or head == "\r\n"
            self._state = _VALUE
            return pos
        start = self._skip(tail, pos)
        if start >= len(tail):
            return _Hold(len(tail))
        self._look = 0
        ch = tail[start]
        if state == _BODY:
            if ch == "{":
                return self._begin_json(start)
            self._state = _INSIDE
            return start
        if ch in "{[" and not self._whole:
            return self._begin_json(start)
        self._state = _TOP
        return start if ch == "<" else self._bare_head(tail, start, final)

    def _bare_head(self, tail: str, start: int, final: bool) -> _Hold | int:
        """The block begins without a tag: with one that lost its bracket, or with a known tool's name on a line."""
        whole, partial = bare_head(self._form)
        m = whole.match(tail, start)
        if m is not None and names_function(m, self._tools):
            group, rule = ("fn", "tags.lost-bracket") if m["f"] else ("line", "tags.bare-name")
            self._begin_function(m, m["f"] or self._form.function, group, rule)
            return m.end()
        if m is None and not final and partial.match(tail, start):
            self._state = _START
            return _Hold(start)
        return start

    # JSON in place of tags

    def _begin_json(self, start: int) -> int:
        form = self._form
        own = f"</{self._fword}>"
        if self._whole:
            self._sub = JsonBody((own,))
        elif self._wrapped:
            self._sub = JsonBody((form.closer,), (form.opener,))
        else:
            self._sub = JsonBody((own,), tuple(o for o in (form.opener, f"<{self._fword}=") if o))
        self._from = self._at + start
        self._state = _JSON
        return start

    def _in_json(self, tail: str, pos: int, final: bool) -> Close | _Hold | int:
        sub = self._sub
        if sub is None:
            raise LookupError("no JSON has begun")
        found = sub.scan(tail[pos:], final)
        if self._whole:
            return self._whole_json(tail, found if isinstance(found, Close) else sub.finish())
        if not isinstance(found, Close):
            return _Hold(pos + found)
        base = self._from
        if self._wrapped:
            hidden = (base + found.hidden[0], base + found.hidden[1]) if found.hidden else None
            return Close(base + found.start, base + found.end, found.kind, hidden)
        if found.kind == "implicit":
            return Close(base + found.start, base + found.start, "implicit")
        end = base + found.end
        if end < self._at:
            return Close(end, end, "rescued")
        self._sub = None
        self._state = _ENDED
        return end - self._at

    def _whole_json(self, tail: str, found: Close | None) -> _Hold | int:
        base, self._sub = self._from, None
        if found is None:
            self._mark("json", base, len(tail))
            return _Hold(len(tail))
        self._mark("json", base, base + found.start)
        self._mark("/function", base + found.start, base + found.end)
        self._state = _TOP
        return base + found.end

    # between the tags

    def _between(self, tail: str, pos: int, final: bool) -> Close | _Hold | int:
        m = self._pattern.search(tail, pos)
        if m is None:
            return _Hold(len(tail))
        kind, start, end, at = kind_of(m), m.start(), m.end(), self._at
        if kind == "cut":
            return _past_cut(tail, start, end) if final else _Hold(start)
        if kind == "function":
            if self._state == _INSIDE and not self._wrapped and not self._whole:
                return Close(at + start, at + start, "implicit")
            self._begin_function(m, m["f"], function_group(m))
        elif kind == "/function" and self._state == _INSIDE:
            self._mark("/function", start, end)
            self._state = _TOP if self._wrapped or self._whole else _ENDED
        elif kind == "parameter" and (self._state == _INSIDE or self._early) and self._counts(m):
            self._open_parameter(m)
        elif kind == "opener" and not self._whole:
            return Close(at + start, at + start, "implicit")
        elif kind == "closer" and not self._whole:
            return Close(at + start, at + end, "closer")
        return end

    def _begin_function(self, m: re.Match[str], word: str, group: str, rule: str = "tags.spelling") -> None:
        name = m[group]
        self._fword = word
        tool = self._tools.get(name)
        self._view = view_of(tool.schema_json) if tool else None
        self._mark("function", m.start(), m.end(), name, m.start(group), rule=rule)
        self._outside = False
        self._early = group == "ft"
        self._state = _BODY

    def _open_parameter(self, m: re.Match[str]) -> None:
        group = parameter_group(m)
        self._outside = group == "pt"
        self._pword = m["p"].lower()
        rule = "tags.name-inside" if self._outside else "tags.spelling"
        self._mark("parameter", m.start(), m.end(), m[group], m.start(group), rule=rule)
        self._nest.clear()
        self._early = False
        self._state = _HEAD

    def _mark(
        self, kind: MarkKind, start: int, end: int, name: str = "", name_start: int = 0, doubtful: bool = False,
        rule: str = "tags.spelling",
    ) -> None:  # fmt: skip
        if self._whole:
            self.marks.append(Mark(kind, start, end, name, name_start, doubtful, rule))

    def _counts(self, m: re.Match[str]) -> bool:
        """A name between two parameter tags counts only as one that the tool knows."""
        return m["pt"] is None or (self._view is not None and m["pt"] in self._view.properties)

    def _behind(self, tail: str, pos: int, final: bool) -> Close | _Hold | int:
        """A function without its block's opener may still have its closer, or its parameters."""
        closer = self._form.closer
        end = self._at + pos
        after = pos
        while after < len(tail) and after - pos <= _INDENT and tail[after] in " \t\r\n":
            after += 1
        if self._early:
            m = self._pattern.match(tail, after)
            if not final and (after == len(tail) or (m is not None and kind_of(m) == "cut")):
                return _Hold(pos)
            if m is not None and kind_of(m) == "parameter" and self._counts(m):
                self._open_parameter(m)
                return m.end()
        if closer and after - pos <= _INDENT:
            if tail.startswith(closer, after):
                return Close(end, self._at + after + len(closer), "closer")
            if not final and closer.startswith(tail[after:]):
                return _Hold(pos)
        return Close(end, end, "end")

    # inside a value

    def _in_value(self, tail: str, pos: int, final: bool) -> Close | _Hold | int:
        m = self._pattern.search(tail, pos)
        if m is None:
            return _Hold(len(tail))
        kind, start, end = kind_of(m), m.start(), m.end()
        if kind == "cut":
            return _past_cut(tail, start, end) if final else _Hold(start)
        if self._nest:
            return self._in_quotation(tail, m, kind, final)
        if kind == "/parameter" and m["cp"].lower() == self._pword:
            return self._value_closer(tail, start, end, final)
        if kind == "/function" and m["cf"].lower() == self._fword.lower():
            return self._function_closer(tail, start, end, final)
        if kind == "closer" and not self._whole:
            return self._block_closer(tail, start, end, final)
        if kind == "parameter":
            if self._begins_next(m, tail):
                self._open_parameter(m)
            elif m["pt"]:
                return m.end("pt")
        elif kind in ("function", "opener"):
            return self._quotation(tail, m, kind, final)
        return end

    def _value_closer(self, tail: str, start: int, end: int, final: bool) -> _Hold | int:
        follows = self._following(tail, end, final)
        if follows is None:
            return _Hold(start)
        fits = self._fits(tail, start)
        # Two closers, of which only the second is on a line of its own: the first is content, else it is doubled.
        content = follows == "/parameter" and not fits and self._fits(tail, self._skip(tail, end))
        if content or follows in ("text", "{"):
            self._quotes()
            return end
        self._mark("/parameter", start, end, doubtful=follows == "end" and not fits)
        self._state = _INSIDE
        return end

    def _function_closer(self, tail: str, start: int, end: int, final: bool) -> _Hold | int:
        """The function's closer inside an open value: the value's own may be missing."""
        follows = self._following(tail, end, final)
        if follows is None:
            return _Hold(start)
        fits = self._fits(tail, start)
        counts = follows in ("end", "opener", "function") and (fits or self._whole)
        if follows == "closer" and not self._whole:
            counts = not self._wrapped
            if not counts:
                m = self._pattern.search(tail, end)
                behind = self._following(tail, m.end(), final) if m else None
                if m is None or behind is None:
                    return _Hold(start)
                counts = behind in ("end", "opener", "function")
                if not counts:
                    self._hide(m.start(), m.end(), "rescued")
        if counts:
            self._mark("/function", start, end, doubtful=follows == "end" and not fits)
            self._state = _TOP if self._wrapped or self._whole else _ENDED
        elif follows in ("text", "{") and fits and not self._wrapped:
            self._hide(end, end, "rescued")
        return end

    def _block_closer(self, tail: str, start: int, end: int, final: bool) -> Close | _Hold | int:
        """The block's closer inside an open value: the function's and the value's may be missing."""
        if not self._fits(tail, start):
            return end
        follows = self._following(tail, end, final)
        if follows is None:
            return _Hold(start)
        if follows in ("end", "opener", "function"):
            return Close(self._at + start, self._at + end, "closer")
        self._hide(start, end, "rescued")
        return end

    def _begins_next(self, m: re.Match[str], tail: str) -> bool:
        """A parameter's opener inside a value: the value's closer may be missing."""
        if m["p"].lower() != self._pword or not self._fits(tail, m.start()):
            return False
        if m["pt"]:
            return self._outside and self._counts(m)
        view = self._view
        return view is None or not view.properties or view.child(m["pn"]) is not None

    def _quotation(self, tail: str, m: re.Match[str], kind: str, final: bool) -> _Hold | int:
        """A call inside a value."""
        if kind == "function":
            name = m[function_group(m)]
            if m["f"].lower() != self._fword.lower() or (self._tools and name not in self._tools):
                return m.end()
        follows = self._following(tail, m.end(), final)
        if follows is None:
            return _Hold(m.start())
        if follows in (("function", "{") if kind == "opener" else ("parameter", "/function", "{")):
            self._nest.append(kind)
            self._quotes()
            self._hide(m.start(), m.start(), "implicit")
        return m.end()

    def _in_quotation(self, tail: str, m: re.Match[str], kind: str, final: bool) -> _Hold | int:
        if kind == "/function" and self._nest[-1] == "function":
            self._nest.pop()
        elif kind == "closer" and "opener" in self._nest:
            while self._nest.pop() != "opener":
                pass
        elif kind in ("function", "opener") and len(self._nest) < 8:
            return self._quotation(tail, m, kind, final)
        return m.end()

    def _quotes(self) -> None:
        if self._whole:
            self.quoting.add(len(self.marks) - 1)

    def _hide(self, start: int, end: int, kind: CloseKind) -> None:
        """Remembers the first place where the body may have ended after all."""
        if self._hidden is None:
            self._hidden = (self._at + start, self._at + end, kind)

    # looking around

    def _skip(self, tail: str, pos: int) -> int:
        m = _SPACE.match(tail, max(pos, self._look - self._at))
        return m.end() if m else pos

    def _following(self, tail: str, pos: int, final: bool) -> str | None:
        """The kind of tag behind white space; 'text', '{' or 'end' where there is none, None = not known yet."""
        start = self._skip(tail, pos)
        if start >= len(tail):
            if final:
                return "end"
            self._look = self._at + start
            return None
        self._look = 0
        if tail[start] == "{":
            return "{"
        m = self._pattern.match(tail, start) if tail[start] == "<" else None
        if m is None:
            return "text"
        kind = kind_of(m)
        if kind == "cut":
            return None if not final else "end" if _CUT_TAG.match(tail, start) else "text"
        return kind if kind != "parameter" or self._counts(m) else "text"

    def _fits(self, tail: str, start: int) -> bool:
        """A tag stands on a line of its own if the value began on one."""
        return not self._lined or self._indent_at(tail, start) >= 0

    def _indent_at(self, tail: str, start: int) -> int:
        """The white space between the last line break and `start`; -1 where there is more than that."""
        line = tail.rfind("\n", max(0, start - _INDENT - 1), start)
        known = 0
        if line < 0:
            if start > _INDENT or self._indent < 0:
                return -1
            known = self._indent
        blank = tail[line + 1 : start]
        total = known + len(blank)
        return total if total <= _INDENT and not blank.strip(" \t\r") else -1


def _past_cut(tail: str, start: int, end: int) -> _Hold | int:
    """Where to look on at the end of the text, behind what might have become a tag."""
    inner = tail.find(">", start, end)
    return inner + 1 if inner >= 0 else _Hold(len(tail))
