"""The text of an answer outside the calls that were read: signs of a call that was lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from ...core.toolspec import ToolSpec
from ...core.types import ParseResult, Span, ToolCall
from ...formats.base import Signs
from ...parser.attempt import Attempt, example_spans, find_attempt, parameter_names


class UnreadText:
    """The rest of one answer.

    message: the recorded message where the provider's own calls were read, which are no part of a
    text; None for text.
    """

    def __init__(
        self,
        result: ParseResult,
        tools: tuple[ToolSpec, ...],
        signs: Signs | None,
        message: str | None,
    ) -> None:
        """Look at nothing yet. signs: see `score_completion`."""
        self.result = result
        self.tools = tools
        self.signs = signs
        # The whole text is the content where it is not a provider's message. A message with calls
        # alone has null as content, and one without calls may have null as those.
        self.content, self.n_native_calls = message, 0
        if message is not None:
            with suppress(ValueError, RecursionError):
                body = json.loads(message)
                if isinstance(body, dict):
                    content, calls = body.get("content"), body.get("tool_calls")
                    self.content = content if isinstance(content, str) else ""
                    self.n_native_calls = len(calls) if isinstance(calls, list) else 0

    def is_mention(self, call: ToolCall) -> bool:
        """Return True if an unfinished call is prose about the format: an opener in mid-sentence
        with no body after it, such as "I would write <tool_call> here".

        call: one that is neither readable nor of an unknown tool.
        """
        span = call.segment.span
        if call.segment.closed or call.readable:
            return False

        # In mid-sentence: a word and a space are before it on its line.
        line = self.result.raw[: span.start].rpartition("\n")[2]
        if not line.endswith(" ") or not line[-2:-1].isalnum():
            return False
        return self.attempt_in(span.of(self.result.raw)) is None

    def _spans(self, *more: str) -> list[Span]:
        # All kinds of segments but reasoning, in which nobody is spoken to.
        kinds = ("text", "call", "recovered", *more)
        done = {call.segment_index for call in self.result.calls if call.readable}
        segments = enumerate(self.result.segments)
        return [one.span for i, one in segments if one.kind in kinds and i not in done]

    def words(self) -> str:
        """Return the text without markup: the words of the model outside the calls that were read.

        Of a native message that is its content.
        """
        if self.content is not None:
            return self.content
        return "".join([span.of(self.result.raw) for span in self._spans()])

    def with_markup(self) -> str:
        """Return the text with markup, where a lost call may have left its mark."""
        if self.content is not None:
            return self.content
        return "".join([span.of(self.result.raw) for span in self._spans("markup")])

    def attempt(self) -> Attempt | None:
        """Return the first sign of a call in anything not read as one, None for none."""
        # A message with tool calls of which the parser made none.
        if self.n_native_calls:
            return Attempt("undecodable", f"{self.n_native_calls} tool calls", 0)

        # The parser counts in the raw text, of which `with_markup` is only some spans, joined; an
        # example may reach over several of them.
        quoted: list[tuple[int, int]] = []
        examples = example_spans(self.result) if self.content is None else []
        offset = 0  # of the span in the joined text
        for span in self._spans("markup") if examples else ():
            by = offset - span.start
            for example in examples:
                start, end = max(example.start, span.start), min(example.end, span.end)
                if start < end:
                    quoted.append((start + by, end + by))
            offset += len(span)
        return self.attempt_in(self.with_markup(), quoted)

    def attempt_in(self, text: str, quoted: Sequence[tuple[int, int]] = ()) -> Attempt | None:
        """Return the first sign of a call in a text of this answer. quoted: where examples are."""
        names = [tool.name for tool in self.tools]
        return find_attempt(text, names, quoted, parameter_names(self.tools), self.signs)
