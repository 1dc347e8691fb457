"""Tags that begin with a special token, and the same tags where a server took that token out.

What is left is spelt as other formats spell their tags, so it is read only where the format is
named.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from ...core.toolspec import ToolSpec
from ..base import Codec, Decoded, Envelope, NeedMore, Opening, Reading, Tools
from ..scan import Scanner
from .alike import AlikeBlocks, is_alike
from .shape import Form
from .tags import ParameterCall, ParameterTags

_PLAIN = ":plain"  # in an opening: its tags have no token


@dataclass(frozen=True)
class MarkedBlocks(ParameterTags):
    """Envelope of blocks whose tags have their token, in whatever spelling.

    alikes: the envelope of its other spellings, None where another format has them.
    """

    alikes: AlikeBlocks | None = field(kw_only=True)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (*super().heads(tools), *(self.alikes.heads(tools) if self.alikes else ()))

    def may_open(self, literal: str) -> bool:
        return True

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        opening = super().open(text, pos, final, tools)
        if opening is None and self.alikes is not None:
            return self.alikes.open(text, pos, final, tools)
        return opening

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if self.alikes is not None and is_alike(opening):
            return self.alikes.scanner(opening, tools)
        return super().scanner(opening, tools)

    def closer_of(self, opening: Opening) -> str | None:
        if self.alikes is not None and is_alike(opening):
            return self.alikes.closer_of(opening)
        return super().closer_of(opening)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        if self.alikes is not None and is_alike(opening):
            return self.alikes.in_value(opening, text, tools)
        return super().in_value(opening, text, tools)

    def suits(
        self, opening: Opening, text: str, at: int, final: bool, tools: Tools
    ) -> bool | NeedMore | None:
        return True if is_alike(opening) else super().suits(opening, text, at, final, tools)


@dataclass(frozen=True)
class MaybeUnmarked(MarkedBlocks):
    """Envelope of blocks whose tags have their token, and of those that lost it.

    plain: the form of the tags without it. shared: another format has the other spellings of the
    token where several formats are read at once. of_others: spellings that are other formats' own.
    """

    plain: Form = field(kw_only=True)
    shared: bool = field(default=False, kw_only=True)
    of_others: frozenset[tuple[str, str]] = field(default=frozenset(), kw_only=True)

    @cached_property
    def _others(self) -> ParameterTags:
        return ParameterTags(self.plain)

    @cached_property
    def _own(self) -> ParameterTags:
        alikes = None
        if self.alikes is not None and not self.shared:
            alikes = replace(self.alikes, of_others=self.of_others)
        return MarkedBlocks(self.form, self.restarts, alikes=alikes)

    @property
    def among_others(self) -> Envelope:
        return self._own

    @property
    def closers(self) -> tuple[str, ...]:
        return (self.form.closer, self.plain.closer)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (*super().heads(tools), *self._others.heads(tools))

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        opening = super().open(text, pos, final, tools)
        if opening is not None:
            return opening
        # As attributes, because an opening has no other place for what the codec has to know.
        opening = self._others.open(text, pos, final, tools)
        return replace(opening, attributes=_PLAIN) if isinstance(opening, Opening) else opening

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.attributes == _PLAIN:
            return self._others.scanner(opening, tools)
        return super().scanner(opening, tools)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        if opening.attributes == _PLAIN:
            return self._others.in_value(opening, text, tools)
        return super().in_value(opening, text, tools)


@dataclass(frozen=True, slots=True)
class MaybeUnmarkedCall(Codec):
    """Codec of such blocks. token: in a body with it the tags are those of `form`, else `plain`.

    alikes: reads blocks whose opener spells the token in another way.
    """

    token: str
    form: Form
    plain: Form
    alikes: AlikeBlocks

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        if f"<{self.alikes.own}invoke" not in body and self.alikes.is_spelt_so(body):
            return self.alikes.read(body, reading)
        is_plain = reading.opening.attributes == _PLAIN or self.token not in body
        # A body of JSON has no tags at all: either form reads it.
        return ParameterCall(self.plain if is_plain else self.form).read(body, reading)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return ParameterCall(self.form).write(name, arguments_json, tool)
