"""The calls of one answer, put together from the pieces that a server sends."""

# How it works. A piece belongs to the call that its index and its id name, but servers leave either
# out, repeat it, or give the same one to all calls. So three more things tell calls apart: a new id
# with a name; a name after complete arguments; and a missing index means the call of the piece
# before. Whether arguments are complete is asked only where a name comes again, so that the pieces
# of an ordinary stream are kept and not looked at.
#
# What cannot be told apart is never settled by a guess that somebody could execute: names are then
# joined to one that no tool has, and arguments to a text that is not one object. Both are refused
# where they are read.
#
# Every decision follows from the pieces so far, since a bridge passes them on as they come. Two
# things wait for the end: the arguments of a server that repeats all of their text in each piece,
# and calls that a server tore apart by giving each piece a new id.

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..values import read_strict, write_canonical

# All that matters for the depth of JSON. Inside a string only its end and its escapes do.
_OUTSIDE = re.compile(r'["{}\[\]]')
_INSIDE = re.compile(r'\\.?|"', re.DOTALL)
_FUNCTIONS = ("function", "custom")
_ARGUMENTS = ("arguments", "input", "args", "parameters")


@dataclass(frozen=True, slots=True)
class Taken:
    """The news of one piece: an addition to the call of that number, counted from 0.

    id, name, arguments: what is new of them. An id or a name that comes again adds nothing. begins:
    it is the first piece of the call.
    """

    number: int
    begins: bool = False
    id: str | None = None
    name: str = ""
    arguments: str = ""


class CallPieces:
    """The calls of one answer, in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._slots: dict[Any, _Slot] = {}
        self._last: Any = 0

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def shares_an_index(self) -> bool:
        """Whether several calls came under one index, which a client that goes by it makes one."""
        return any(
            len({call.number for call in slot.ids.values()}) > 1 and not slot.torn()
            for slot in self._slots.values()
        )

    def has(self, index: Any) -> bool:
        """Whether a call began under an index."""
        return index in self._slots

    def lacks_arguments(self, index: Any) -> bool:
        """Whether a call began under an index, and no part of its arguments came."""
        slot = self._slots.get(index)
        return slot is not None and slot.current is not None and not slot.current.begun

    def state(self, index: Any, id: Any = None, name: Any = None, arguments: Any = None) -> bool:
        """Take in what is said of a call as a whole: its last complete statement counts. Return
        True if no part of its arguments came before.

        Arguments that are no object do not replace an object, and an empty one replaces nothing.
        """
        slot = self._slots.get(index)
        call = slot.current if slot is not None else None
        if call is None or slot is None:
            return bool(self.take(index, id, name, arguments).arguments)
        if isinstance(id, str) and id:
            slot.keep(call, id)
        if isinstance(name, str) and name:
            call.name = name
        return call.state(arguments)

    def take_list(self, calls: Sequence[Any], *, whole: bool = False) -> list[Taken]:
        """Take in the `tool_calls` of a message, or of the delta of one.

        whole: each item is a call of its own, whatever its index is.
        """
        news: list[Taken] = []
        for number, call in enumerate(calls):
            index = member(call, "index")
            if whole:
                index = ("whole", len(self._calls))
            elif not isinstance(index, (int, str)):
                # Several pieces in one delta are never of one call.
                index = number if len(calls) > 1 else None
            name, arguments = name_and_arguments(call)
            news.append(self.take(index, member(call, "id"), name, arguments))
        return news

    def take(self, index: Any, id: Any = None, name: Any = None, arguments: Any = None) -> Taken:
        """Take in one piece.

        index: the same for all pieces of a call, None where the server gives none. arguments: a
        piece of their text, or all of them as an object. A name or an id that is no text does not
        count.
        """
        id = id if isinstance(id, str) and id else None
        name = name if isinstance(name, str) else ""
        if index is None:
            index = self._last
        self._last = index
        slot = self._slots.setdefault(index, _Slot())
        call = slot.call_of(id)
        begins = call is None or slot.begins_another(call, id, name, arguments)
        if call is None or begins:
            if slot.waiting:
                name, id = slot.waiting_name(name), id or slot.waiting[1]
            call = _Call(len(self._calls))
            self._calls.append(call)
            slot.add(call)
        elif name and call.complete:
            if id is None or id not in slot.ids:
                # Of a second call, or only a repetition: what comes next will tell.
                slot.waiting = name, id
            return Taken(call.number, arguments=call.add_arguments(arguments))
        is_new = slot.keep(call, id)
        new_name, new_arguments = call.add_name(name), call.add_arguments(arguments)
        return Taken(call.number, begins, id if is_new else None, new_name, new_arguments)

    def to_list(self) -> list[dict[str, Any]]:
        """Return the calls in OpenAI's shape.

        Arguments are the text as it came, or the object that a server sent in place of one.
        """
        torn: dict[int, str] = {}
        for slot in self._slots.values():
            torn |= slot.torn()
        calls = [call.to_dict(torn.get(call.number)) for call in self._calls]
        return [call for call in calls if call]


class _Slot:
    __slots__ = ("calls", "current", "ids", "waiting")

    def __init__(self) -> None:
        self.calls: list[_Call] = []
        self.current: _Call | None = None
        self.ids: dict[str, _Call] = {}
        # The name and the id of a piece without arguments, after a call that is complete.
        self.waiting: tuple[str, str | None] | None = None

    def call_of(self, id: str | None) -> _Call | None:
        return (self.ids.get(id) if id else None) or self.current

    def begins_another(self, call: _Call, id: str | None, name: str, arguments: Any) -> bool:
        if id in self.ids:
            return False
        blank = arguments is None or (isinstance(arguments, str) and not arguments.strip())
        opens = not blank and (not isinstance(arguments, str) or arguments.lstrip()[0] == "{")
        if id and call.id:
            return self._is_other_id(call, name, blank, opens)
        if not name:
            return opens and self.waiting is not None
        if call.complete:
            return not blank or name != (self.waiting[0] if self.waiting else call.name)
        return opens and call.begun and name != call.name != ""

    def _is_other_id(self, call: _Call, name: str, blank: bool, opens: bool) -> bool:
        if not name or not call.begun or call.complete:  # some servers make one for each piece
            return bool(name) or (opens and call.complete)
        goes_on = call.name in ("", name) and not blank and not (opens and call.name)
        return not goes_on

    def waiting_name(self, name: str) -> str:
        # Where the server repeats names, the waiting one was a repetition; else the two are pieces.
        first = self.waiting[0] if self.waiting else ""
        if not name or name == first:
            return first
        return name if self.current and self.current.repeats else first + name

    def add(self, call: _Call) -> None:
        self.calls.append(call)
        self.waiting = None

    def keep(self, call: _Call, id: str | None) -> bool:
        self.current = call
        if not id:
            return False
        self.ids.setdefault(id, call)
        is_new = call.id is None
        call.id = call.id or id
        return is_new

    def torn(self) -> dict[int, str]:
        # The arguments of calls that a new id for each piece tore apart, by their numbers, and ''
        # for their other parts. Parts have one name, and only together they are an object.
        texts: dict[int, str] = {}
        parts: list[_Call] = []
        whole = _Call(0)
        for call in self.calls if len(self.calls) > 1 else ():
            if parts and (call.name != parts[0].name or call.value is not None):
                parts = []
            if not parts:
                if call.complete or not call.begun:
                    continue
                whole = _Call(0)
            parts.append(call)
            whole.texts += call.texts
            if whole.complete:
                text = joined(whole.texts)
                if _is_object(text):
                    texts |= {part.number: "" for part in parts} | {parts[0].number: text}
                parts = []
        return texts


class _Call:
    __slots__ = (
        *("begun", "id", "name", "number", "repeats", "texts", "value"),
        *("_begin", "_cut", "_depth", "_looked", "_quoted", "_whole"),
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.id: str | None = None
        self.name = ""
        self.texts: list[str] = []
        self.value: Any = None  # the object that some servers send where its text belongs
        self.begun = False  # a part of the arguments came
        self.repeats = 0  # how often the name came again
        self._begin = ""  # its first piece
        self._looked = 0  # texts whose brackets were counted
        self._depth = 0
        self._quoted = False
        self._whole = False
        self._cut = ""  # an escape that a piece ended in

    def add_name(self, piece: str) -> str:
        if not self._begin:
            self.name = self._begin = piece
            return piece
        if piece and piece == self._begin == self.name:
            self.repeats += 1
            return ""
        if piece:  # a server that cuts names repeats none: what looked like it was a piece
            piece = self._begin * self.repeats + piece
            self.repeats = 0
            self.name += piece
        return piece

    def add_arguments(self, arguments: Any) -> str:
        if arguments is None or arguments == "":
            return ""
        if not isinstance(arguments, str):
            arguments = json_value(arguments)
            if not self.begun or self.value == {}:
                self.value, self.begun = arguments, True
                return write_canonical(arguments)
            is_known = arguments in ({}, self.value)
            arguments = "" if is_known else write_canonical(arguments)
        if self.value is not None and arguments.strip():
            if self.value != {}:  # an empty one stands for text that is still to come
                self.texts.append(write_canonical(self.value))
            self.value = None
        if arguments.startswith("{") and self.complete and joined(self.texts) == arguments:
            return ""
        piece: str = arguments
        self.texts.append(piece)
        self.begun = self.begun or bool(piece.strip())
        return piece

    def state(self, arguments: Any) -> bool:
        if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
            return False
        is_first = not self.begun
        if not isinstance(arguments, str):
            arguments = write_canonical(json_value(arguments))
        if not is_first:
            is_known = isinstance(self.value, Mapping) or _is_object(joined(self.texts))
            if is_known and (not _is_object(arguments) or read_strict(arguments) == {}):
                return False
        self.texts, self.value, self.begun = [arguments], None, True
        self._looked = self._depth = 0
        self._quoted, self._whole, self._cut = False, False, ""
        return is_first

    @property
    def complete(self) -> bool:
        if self.value is not None:
            return True
        for text in self.texts[self._looked :]:
            self._look(self._cut + text)
        self._looked = len(self.texts)
        return self._whole and self._depth == 0

    def _look(self, text: str) -> None:
        at, self._cut = 0, ""
        while match := (_INSIDE if self._quoted else _OUTSIDE).search(text, at):
            at, sign = match.end(), match[0]
            if sign == '"':
                self._quoted = not self._quoted
            elif sign in "{[":
                self._depth += 1
            elif sign in "}]":
                self._depth -= 1
                self._whole = True
            elif sign == "\\":
                self._cut = sign

    def to_dict(self, text: str | None = None) -> dict[str, Any]:
        # text: its arguments, where they were put together otherwise; '' where it is part of
        # another.
        if text == "":
            return {}
        arguments = text if text is not None else self._arguments()
        function = {"name": joined([self.name]), "arguments": arguments}
        return {"id": self.id, "type": "function", "function": function}

    def _arguments(self) -> Any:
        if self.value is not None:
            return self.value
        text = joined(self.texts)
        texts = [text for text in self.texts if text]
        # A server that sends in each piece all that it has so far.
        grows = len(texts) > 1 and all(b.startswith(a) for a, b in pairwise(texts))
        return texts[-1] if grows and _is_object(texts[-1]) and not _is_object(text) else text


def member(obj: Any, name: str) -> Any:
    """Return a member of a dict or an attribute of an object, None if there is none.

    Clients differ in nothing more than in this.
    """
    return obj.get(name) if isinstance(obj, (dict, Mapping)) else getattr(obj, name, None)


def label(value: Any) -> str | int | None:
    """Return what may be the name or the number of something, None for any other value."""
    return value if isinstance(value, (str, int)) else None


def name_and_arguments(call: Any) -> tuple[Any, Any]:
    """Return the name and the arguments of a tool call, or of a piece of one, as they came."""
    # Some servers leave `function` out and put both into the call. A custom tool has its text in
    # place of arguments.
    inner = next((f for key in _FUNCTIONS if (f := member(call, key)) is not None), call)
    said = inner if isinstance(inner, str) else None  # the name alone stands there
    inner = call if said is not None else inner
    arguments = next((a for key in _ARGUMENTS if (a := member(inner, key)) is not None), None)
    name = member(inner, "name")
    if name is None and inner is call:
        name = said if said is not None else member(call, "toolName")
    return name, arguments


def json_value(arguments: Any) -> Any:
    """Return arguments of a client's own classes as JSON. JSON itself stays."""
    try:
        write_canonical(arguments)
    except (TypeError, ValueError):
        return json.loads(json.dumps(arguments, default=_members), parse_constant=str)
    return arguments


def _members(obj: Any) -> Any:
    dump = getattr(obj, "model_dump", None)
    if callable(dump):
        return dump()
    return dict(vars(obj)) if hasattr(obj, "__dict__") else str(obj)


def joined(pieces: Sequence[str]) -> str:
    """Return pieces as one text, a surrogate pair that was cut in two as one character."""
    # A lone surrogate stays: it is the model's own text.
    text = "".join(pieces)
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _is_object(text: str) -> bool:
    try:
        return isinstance(read_strict(text), dict)
    except (ValueError, RecursionError):
        return False
