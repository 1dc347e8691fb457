"""Transport ids of tool calls, made where a message is rendered.

The parser itself makes none.
"""

from __future__ import annotations

import os
import random
import string

from ..core.types import ToolCall

_ALPHABET = string.ascii_letters + string.digits
# One of them for every byte: the ids come from one look at the random bits instead of 24.
_LETTERS = bytes(ord(_ALPHABET[i % len(_ALPHABET)]) for i in range(256))

# A generator of our own, because a program may set the seed of Python's; ids must differ, nobody
# need not guess them.
_DICE = random.Random()  # noqa: S311
# Two processes that share its state would give the same ids.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_DICE.seed)


def new_call_id() -> str:
    """Return a new id: `call_` and 24 letters and digits."""
    return "call_" + _DICE.getrandbits(192).to_bytes(24, "little").translate(_LETTERS).decode()


class CallIds:
    """The ids of one answer's calls: the same one each time a call's id is asked for.

    An id that the text carries is used where it is the first call with it, otherwise a new one is
    made.
    """

    def __init__(self) -> None:
        self._by_index: dict[int, str] = {}

    def of(self, call: ToolCall) -> str:
        """Return the id of a call.

        call: of the one answer that this object is for. Its index tells it from the others.
        """
        if call.index not in self._by_index:
            wire = call.wire_id
            # Models repeat ids, but a result must name exactly one call.
            if not wire or wire in self._by_index.values():
                wire = new_call_id()

            # An answer may be read twice at the same time; both readings get the first one's id.
            self._by_index.setdefault(call.index, wire)

        return self._by_index[call.index]

    def forget(self, index: int) -> None:
        """Let the call of an index have another id than the one that was announced for it."""
        self._by_index.pop(index, None)
