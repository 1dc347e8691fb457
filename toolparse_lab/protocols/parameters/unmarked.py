"""Tags that begin with a special token, and the same tags where a server took that token out.

What is left is spelt as other formats spell their tags, so it is read only where the format is
named.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from ...toolspec import ToolSpec
from ..base import Codec, Decoded, Envelope, NeedMore, Opening, Reading, Tools
from ..scan import Scanner
from .shape import Form
from .tags import ParameterCall, ParameterTags

_PLAIN = ":plain"  # in an opening: its tags have no token


@dataclass(frozen=True)
class MaybeUnmarked(ParameterTags):
    """Envelope of blocks whose tags have their token, and of those that lost it.

    plain: the form of the tags without it.
    """

    plain: Form = field(kw_only=True)

    @cached_property
    def _others(self) -> ParameterTags:
        """The envelope of blocks without the token."""
        return ParameterTags(self.plain)

    @cached_property
    def _own(self) -> ParameterTags:
        """The envelope of blocks with the token."""
        return ParameterTags(self.form, self.restarts)

    @property
    def among_others(self) -> Envelope:
        """The envelope of blocks with the token."""
        return self._own

    @property
    def closers(self) -> tuple[str, ...]:
        """The closers of both kinds of blocks."""
        return (self.form.closer, self.plain.closer)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        """Return the heads of both kinds of blocks."""
        return (*super().heads(tools), *self._others.heads(tools))

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        """Return the opening of either kind of block. See `Envelope.open`."""
        opening = super().open(text, pos, final, tools)
        if opening is not None:
            return opening
        # As attributes, because an opening has no other place for what the codec has to know.
        opening = self._others.open(text, pos, final, tools)
        return replace(opening, attributes=_PLAIN) if isinstance(opening, Opening) else opening

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        """Return the scanner of either kind of block."""
        return self._envelope_of(opening).scanner(opening, tools)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        """Return True if a body that was given up behind `text` ends inside a value."""
        return self._envelope_of(opening).in_value(opening, text, tools)

    def _envelope_of(self, opening: Opening) -> Envelope:
        """Return the envelope whose opening it is."""
        return self._others if opening.attributes == _PLAIN else self._own


@dataclass(frozen=True, slots=True)
class MaybeUnmarkedCall(Codec):
    """Codec of such blocks. token: in a body with it the tags are those of `form`, else `plain`."""

    token: str
    form: Form
    plain: Form

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        """Return the calls of a body. Raises Refusal."""
        is_plain = reading.opening.attributes == _PLAIN or self.token not in body
        # A body of JSON has no tags at all: either form reads it.
        return ParameterCall(self.plain if is_plain else self.form).read(body, reading)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        """Return the call with its token. Raises UnwritableCall."""
        return ParameterCall(self.form).write(name, arguments_json, tool)
