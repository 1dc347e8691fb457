"""Reads the tokens of the relaxed dialect as a value, or reports the fault of them."""

from __future__ import annotations

from typing import Any

from ...core.errors import RJSONParseError
from .tokens import SCALARS, Token, error_at, tokens_of

# How it works. A stack of the containers that are open, the innermost last, with a list at its
# bottom that takes the value itself; so depth costs no recursion. After each value the reader goes
# on over commas and closers until the next value is due. With `tolerant`, a complaint is noted
# instead of raised, and the reader makes the step that leaves the fewest tokens unread: it goes on
# as if what it expected had been there.

_VALUE = "'[', '{', number, string or atom"
_OPENERS = ("{", "[")


class RelaxedReader:
    """One text under way.

    relaxed: the dialect, else strict JSON. tolerant: reads on behind errors. duplicate: a key may
    stand twice. Raises RJSONParseError for a text that has no tokens.
    """

    def __init__(
        self, text: str, *, relaxed: bool, tolerant: bool, duplicate: bool, max_depth: int
    ) -> None:
        self._text = text
        self._tolerant = tolerant
        self._duplicate = duplicate
        self._max_depth = max_depth
        self._warnings: list[RJSONParseError] = []
        self._tokens = tokens_of(text, relaxed=relaxed)
        self._pos = 0
        self._stack: list[Any] = []
        self._key: str | None = None  # of the member whose value is due

    def read(self) -> Any:
        """Return the value of the whole text.

        Raises RJSONParseError, the tolerant reader at the end.
        """
        value = self._value()
        end = self._next()
        if end.kind != "eof":
            self._unexpected(end, "end of text")
        if self._warnings:
            raise self._all_warnings(value)

        return value

    def _all_warnings(self, value: Any) -> RJSONParseError:
        """Return the one error of a tolerant reading, with the readable part."""
        first, count = self._warnings[0], len(self._warnings)
        return RJSONParseError(
            first.message if count == 1 else f"{count} parse warnings",
            position=first.position,
            line=first.line,
            column=first.column,
            obj=value,
            warnings=tuple(
                {"message": warning.message, "line": warning.line, "column": warning.column}
                for warning in self._warnings
            ),
        )

    # tokens

    def _next(self) -> Token:
        """Take the next token. The last one, eof, again and again."""
        token = self._tokens[self._pos]
        if token.kind != "eof":
            self._pos += 1

        return token

    def _peek(self) -> Token:
        """Return the next token, which stays."""
        return self._tokens[self._pos]

    def _unexpected(self, token: Token, expected: str) -> None:
        self._complain(token, f"Unexpected token: {token}, expected {expected}")

    def _complain(self, token: Token, message: str) -> None:
        """Raise an error at a token. Note it, where the reader is tolerant."""
        error = error_at(self._text, token.start, message)
        if not self._tolerant:
            raise error

        self._warnings.append(error)

    # values

    def _value(self) -> Any:
        """Return one value with everything in it."""
        root: list[Any] = []
        self._stack = [root]
        while True:
            token = self._next()
            if self._is_skipped(token):
                continue

            opened = self._place(token)
            if opened is not None and self._enter(opened, token):
                continue

            # Behind a value: commas and closers until the next value begins.
            while len(self._stack) > 1 and not self._goes_on():
                self._stack.pop()

            if len(self._stack) == 1:
                return root[0]
            if isinstance(self._stack[-1], dict):
                self._key = self._read_key()

    def _is_skipped(self, token: Token) -> bool:
        """Complain of a token that is not a value. Return True if another one may still be.

        Before the end, or a comma, the value is simply missing: it is null, and the comma stays.
        """
        if token.kind in SCALARS or token.kind in _OPENERS:
            return False

        self._unexpected(token, _VALUE)
        if token.kind == ",":
            self._pos -= 1
            return False

        return token.kind != "eof"

    def _place(self, token: Token) -> Any:
        """Put the value of a token into the innermost container.

        Returns it if it is one itself.
        """
        node: Any = token.value
        if token.kind in _OPENERS:
            node = {} if token.kind == "{" else []

        box = self._stack[-1]
        if isinstance(box, dict):
            self._put(box, node, token)
        else:
            box.append(node)

        return node if token.kind in _OPENERS else None

    def _put(self, box: dict[str, Any], node: Any, token: Token) -> None:
        """Put a member under its key. Of two with one key, the last one wins."""
        name = "" if self._key is None else self._key
        if name in box and not self._duplicate:
            self._complain(token, f"Duplicate key: {name}")

        box[name] = node

    def _enter(self, box: Any, token: Token) -> bool:
        """Open a container, up to its first value.

        Return False if it is empty, and closed again.
        """
        if len(self._stack) > self._max_depth:
            raise error_at(self._text, token.start, f"Nested deeper than {self._max_depth}")

        is_object = isinstance(box, dict)
        if self._peek().kind == ("}" if is_object else "]"):
            self._pos += 1
            return False

        self._stack.append(box)
        if is_object:
            self._key = self._read_key()

        return True

    def _goes_on(self) -> bool:
        """Take the comma before another member (True) or the closer (False)."""
        closer = "}" if isinstance(self._stack[-1], dict) else "]"
        token = self._next()
        if token.kind == ",":
            return True
        if token.kind == closer:
            return False

        self._unexpected(token, f"',' or '{closer}'")
        if token.kind in SCALARS or token.kind in _OPENERS:
            self._pos -= 1  # as if there had been a comma
            return True

        return False

    def _read_key(self) -> str:
        """Take a key and its colon."""
        token = self._next()
        name = str(token.value) if token.kind == "string" else "null"
        if token.kind != "string":
            self._unexpected(token, "string")
            if token.kind in SCALARS:
                name = token.text
            elif token.kind == ":":
                self._pos -= 1

        colon = self._peek()
        if colon.kind == ":":
            self._pos += 1
        else:
            self._unexpected(colon, "':'")

        return name
