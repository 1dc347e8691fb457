"""The text of an answer outside the calls that were read: signs of a call that was lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...core.toolspec import ToolSpec
from ...core.types import ParseResult, Span, ToolCall
from ...formats.base import Signs
from ...parser.attempt import Attempt, example_spans, find_attempt, parameter_names

# Kinds of segments: all but reasoning, in which nobody is spoken to.
_WORDS = ("text", "call", "recovered")
_WORDS_AND_MARKUP = (*_WORDS, "markup")


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
        """Look at nothing yet.

        signs: see `score_completion`.
        """
        self.result = result
        self.tools = tools
        self.signs = signs
        self.message = message

    def is_mention(self, call: ToolCall) -> bool:
        """Return True if an unfinished call is prose about the format: an opener in mid-sentence
        with no body behind it, such as "I would write <tool_call> here".

        call: one that is neither readable nor of an unknown tool.
        """
        span = call.segment.span
        if call.segment.closed or call.readable:
            return False

        # In mid-sentence: a word and a space stand before it on its line.
        line = self.result.raw[: span.start].rpartition("\n")[2]
        if not line.endswith(" "):
            return False
        if not line[-2:-1].isalnum():
            return False

        names = [tool.name for tool in self.tools]
        text = span.of(self.result.raw)
        return find_attempt(text, names, (), parameter_names(self.tools), self.signs) is None

    def _spans(self, kinds: tuple[str, ...]) -> list[Span]:
        done = {call.segment_index for call in self.result.calls if call.readable}
        spans = []
        for i, segment in enumerate(self.result.segments):
            if segment.kind in kinds and i not in done:
                spans.append(segment.span)
        return spans

    def words(self) -> str:
        """Return the text without markup: the words of the model outside the calls that were read.

        Of a native message that is its content.
        """
        if self.message is not None:
            return _native_message(self.message)[0]

        raw = self.result.raw
        return "".join([span.of(raw) for span in self._spans(_WORDS)])

    def with_markup(self) -> str:
        """Return the text with markup, where a lost call may have left its mark.

        Of a native message that is its content, since its calls are no part of a text.
        """
        if self.message is not None:
            return _native_message(self.message)[0]

        raw = self.result.raw
        return "".join([span.of(raw) for span in self._spans(_WORDS_AND_MARKUP)])

    def attempt(self) -> Attempt | None:
        """Return the first sign of a call in anything not read as one, None for none."""
        if self.message is not None:
            # A message with tool calls of which the parser made none.
            _, calls = _native_message(self.message)
            if calls:
                return Attempt("undecodable", f"{len(calls)} tool calls", 0)

        return self.attempt_in(self.with_markup(), self._quoted_ranges())

    def attempt_in(self, text: str, quoted: Sequence[tuple[int, int]] = ()) -> Attempt | None:
        """Return the first sign of a call in a text of this answer. quoted: where examples are."""
        names = [tool.name for tool in self.tools]
        return find_attempt(text, names, quoted, parameter_names(self.tools), self.signs)

    def _quoted_ranges(self) -> list[tuple[int, int]]:
        # The parser counts in the raw text, of which `with_markup` is only some spans, joined; an
        # example may reach over several of them.
        if self.message is not None:
            return []

        examples = example_spans(self.result)
        if not examples:
            return []

        ranges: list[tuple[int, int]] = []
        offset = 0  # of the span in the joined text
        for span in self._spans(_WORDS_AND_MARKUP):
            by = offset - span.start
            for example in examples:
                start = max(example.start, span.start)
                end = min(example.end, span.end)
                if start < end:
                    ranges.append((start + by, end + by))
            offset += len(span)
        return ranges


def _native_message(raw: str) -> tuple[str, list[Any]]:
    # The whole text is the content where it is not such a message.
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError):
        return raw, []
    if not isinstance(message, dict):
        return raw, []

    # A message with calls alone has null as content, and one without calls may have null as those.
    content = message.get("content")
    calls = message.get("tool_calls")
    if not isinstance(content, str):
        content = ""
    if not isinstance(calls, list):
        calls = []
    return content, calls
