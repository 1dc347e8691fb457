"""The chunks of a stream with the calls that their texts hold as tool-call deltas.

No input or output happens here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.types.call_pieces import CallPieces
from ...core.types.server import same_json
from ...formats.tool_names import offered_name
from ...middleware import Answer, AnswerStream, ToolCallMiddleware, Turn
from ...middleware.answer import written_too
from .answer_ids import AnswerIds
from .findings import blame_of, findings_of

# How chunks are read. Each choice of a stream has a parser of its own (AnswerStream), which holds
# text back while it may become a call. Most chunks are plain text with nothing held back, and go on
# as they are: one look-up, one feed and two comparisons. Any other chunk becomes up to three kinds:
# one of what is not text, one for each delta that the parser gives, and at the end the finish
# reasons. A client must see them in that order, and every call under an index of its own, although
# the provider may number its own calls from 0 too. Invariant: the texts and calls that were passed
# on, and what the parsers hold back, are all that was received.

# Members of a delta, beside text and calls, that must not be lost with the text.
_OTHER = (
    "function_call",
    "audio",
    "images",
    "annotations",
    "reasoning_content",
    "thinking_blocks",
    "reasoning_items",
)


class _Choice:
    """The state of one choice of a stream."""

    __slots__ = (
        *("calls", "finish", "index", "own", "pieces", "role", "said", "stream", "thoughts"),
        "written",
    )

    def __init__(self, index: int, stream: AnswerStream) -> None:
        self.index = index
        self.stream = stream
        self.role: str | None = None  # of a chunk whose text was held back
        self.finish: Any = None  # the chunk that ended it
        self.calls = 0  # the number of calls passed on
        self.said = False  # there was text
        self.thoughts: list[str] = []
        self.written: list[dict[str, Any]] = []  # the functions of calls in the text
        # The provider's own calls, by their number.
        self.pieces = CallPieces()
        self.own: dict[int, _OwnCall] = {}

    def may_be_written(self, own: _OwnCall) -> bool:
        """Return True for a call of the provider's that the text may hold as well."""
        if not self.said:
            return False
        is_empty = own.arguments.strip() in ("", "{}")
        return is_empty or any(function["name"] == own.name for function in self.written)

    def is_own(self, call: dict[str, Any]) -> bool:
        """Return True for a call of the text that was passed on as the provider's own."""
        function = call["function"]
        return any(
            own.name == function["name"] and same_json(own.arguments, function["arguments"])
            for own in self.own.values()
            if not own.waiting
        )


class _OwnCall:
    """A call that the provider made itself, as far as it came. waiting: pieces not yet sent."""

    __slots__ = ("arguments", "index", "name", "waiting")

    def __init__(self) -> None:
        self.name = ""
        self.arguments = ""
        self.index: int | None = None
        self.waiting: list[Any] = []


class ChunkReader:
    """`feed(chunk)` for every chunk of litellm, then `close()`.

    Both give the chunks to send on instead.

    A chunk whose text is plain text is passed on as it is. The end of a choice is sent last, when
    nothing can follow: litellm ends the first choice when any of them ends. After a failure,
    `close(cut=True)` gives the text held back.
    """

    def __init__(
        self,
        shapes: Any,
        middleware: ToolCallMiddleware,
        turn: Turn,
        ids: AnswerIds | None = None,
    ) -> None:
        self._ids = ids
        self._shapes = shapes
        self._middleware = middleware
        self._turn = turn
        self._names = {tool.name for tool in turn.tools}
        self._choices: dict[int, _Choice] = {}
        self._last: Any = None
        self._closed = False
        self.answers: dict[int, Answer] = {}  # index of a choice -> its answer, after `close`
        # All chunks, and whether one of them says what the server read, for `blame_of`.
        self._received: list[Any] = []
        self._tells = False

    def feed(self, chunk: Any) -> Sequence[Any]:
        """Take in a chunk, and return the chunks to send on in its place: none, it alone, or
        several.
        """
        choices = chunk.choices
        if self._closed:
            return (chunk,)
        if not choices:  # the usage, or before the first text what a provider says of the prompt
            return (*self.close(), chunk) if self._ended else (chunk,)
        self._last = chunk
        self._received.append(chunk)
        if len(choices) == 1:
            return self._read(chunk, choices[0])
        # Chunks with several choices are sent on as several chunks, so that each may become more or
        # fewer.
        chunks: list[Any] = []
        for choice in choices:
            chunks += self._read(chunk.model_copy(update={"choices": [choice]}), choice)
        return chunks

    def close(self, *, cut: bool = False) -> Sequence[Any]:
        """End the stream: return the text held back, and then the ends of all choices.

        `cut`: the stream broke off, so that choices without an end get none.
        """
        if self._closed:
            return ()
        self._closed = True
        finishes = [c.finish for c in self._choices.values() if c.finish is not None]
        # litellm ends the first choice only: the others ended with it.
        default = finishes[0] if finishes and not cut else None

        chunks: list[Any] = []
        endings: list[Any] = []
        for _, state in sorted(self._choices.items()):
            finish = state.finish if state.finish is not None else default
            reason = None if finish is None else finish.choices[0].finish_reason
            # A lost connection cuts an answer off as a limit of tokens does.
            end = "length" if cut and reason is None else reason
            deltas, answer = state.stream.close(
                end, called=bool(state.pieces), reasoning="".join(state.thoughts)
            )
            self.answers[state.index] = answer
            chunks += self._chunks(self._last, state, deltas)
            chunks += self._last_own_calls(state, answer)
            if finish is not None:
                endings.append(self._ending(state, finish, answer))
        return chunks + endings

    def _ending(self, state: _Choice, finish: Any, answer: Answer) -> Any:
        """Return the chunk that ends a choice, without its text and with what its parse found: the
        provider's own where it will do.
        """
        last = finish.choices[0]
        blame = ""
        if self._tells and len(self._choices) == 1:
            blame = blame_of(self._received, self._middleware, self._turn)
        findings = findings_of(answer, self._turn, blame)
        delta: dict[str, Any] = {"content": None}
        if findings is not None:
            fields = getattr(last.delta, "provider_specific_fields", None) or {}
            delta["provider_specific_fields"] = {**fields, **findings}
        elif (
            finish is state.finish
            and answer.finish_reason == last.finish_reason
            and not last.delta.content
        ):
            return finish
        return self._chunk(finish, state.index, delta, answer.finish_reason)

    @property
    def _ended(self) -> bool:
        return any(c.finish is not None for c in self._choices.values())

    def _read(self, chunk: Any, choice: Any) -> Sequence[Any]:
        """Return the chunks in place of one that has a single choice."""
        state = self._choices.get(choice.index)
        if state is None:
            call_ids = self._ids.of(choice.index) if self._ids else None
            # A client may complete arguments that were cut off, and execute them: calls come whole.
            stream = self._middleware.wrap_stream(self._turn, call_ids=call_ids, tool_input=False)
            state = self._choices[choice.index] = _Choice(choice.index, stream)
        text = choice.delta.content
        if choice.logprobs is not None or choice.delta.tool_calls:
            self._tells = True
        if choice.finish_reason is not None:
            return self._read_finish(chunk, state, choice)
        if not text:
            return self._read_textless(chunk, state, choice)

        state.said = True
        deltas = state.stream.feed(text)
        if len(deltas) == 1 and state.role is None and deltas[0].get("content") == text:
            return (chunk,)
        rest = self._rest(chunk, state, choice)
        if choice.delta.role and not rest:
            state.role = choice.delta.role
        return (*rest, *self._chunks(chunk, state, deltas))

    def _read_finish(self, chunk: Any, state: _Choice, choice: Any) -> Sequence[Any]:
        """Return the chunks in place of one that ends a choice.

        The end itself is sent by `close`.
        """
        state.finish = chunk
        text = choice.delta.content
        state.said = state.said or bool(text)
        chunks = self._chunks(chunk, state, state.stream.feed(text)) if text else ()
        return (*self._rest(chunk, state, choice), *chunks)

    def _read_textless(self, chunk: Any, state: _Choice, choice: Any) -> Sequence[Any]:
        """Return the chunks in place of one without text: a call of the provider's, or anything
        else.
        """
        # Some providers send the usage with an empty delta, behind all ends.
        if choice.delta.tool_calls:
            return self._rest(chunk, state, choice)
        if self._ended and getattr(chunk, "usage", None) is not None:
            return (*self.close(), chunk)
        if thought := getattr(choice.delta, "reasoning_content", None):
            state.thoughts.append(thought)
        return (chunk,)

    def _rest(self, chunk: Any, state: _Choice, choice: Any) -> Sequence[Any]:
        """Return a chunk of all that is not text, where there is any."""
        delta = choice.delta
        if thought := getattr(delta, "reasoning_content", None):
            state.thoughts.append(thought)
        changes: dict[str, Any] = {"content": None, "tool_calls": None}
        own = self._own_calls(state, delta.tool_calls) if delta.tool_calls else []
        if own:
            changes["tool_calls"] = own
        elif choice.logprobs is None and all(getattr(delta, name, None) is None for name in _OTHER):
            return ()
        rest = choice.model_copy(
            update={"delta": delta.model_copy(update=changes), "finish_reason": None}
        )
        return (chunk.model_copy(update={"choices": [rest]}),)

    def _own_calls(self, state: _Choice, calls: Sequence[Any]) -> list[Any]:
        """Return the pieces of calls that the provider made itself, as every client joins them.

        Each call has an index that no other of the choice has, and says its id and its name once.
        One that the text may hold as well waits.
        """
        ready: list[Any] = []
        for call, news in zip(calls, state.pieces.take_list(calls), strict=True):
            if not (news.begins or news.id or news.name or news.arguments):
                continue
            name = news.name or None
            if news.begins and name and (offered := offered_name(name, self._names)):
                name = offered.name
            function = call.function.model_copy(update={"name": name, "arguments": news.arguments})
            piece = call.model_copy(update={"id": news.id, "function": function})
            own = state.own.setdefault(news.number, _OwnCall())
            own.name += name or ""
            own.arguments += news.arguments
            own.waiting.append(piece)
            if not state.may_be_written(own):
                ready += self._released(state, own)
        return ready

    def _released(self, state: _Choice, own: _OwnCall) -> list[Any]:
        """Return the pieces of a call that waited, under an index that no other call has."""
        if own.index is None:
            own.index = state.calls
            state.calls += 1
        pieces, own.waiting = own.waiting, []
        return [piece.model_copy(update={"index": own.index}) for piece in pieces]

    def _last_own_calls(self, state: _Choice, answer: Answer) -> list[Any]:
        """Return chunks of the provider's own calls that waited, without those in the text."""
        waiting = [own for own in state.own.values() if own.waiting]
        native = [{"function": {"name": c.name, "arguments": c.arguments}} for c in waiting]
        calls = answer.result.calls if answer.result else ()
        twice = written_too(native, calls) if native else frozenset()
        ready: list[Any] = []
        for number, own in enumerate(waiting):
            ready += [] if number in twice else self._released(state, own)
        if not ready:
            return []
        pieces = [piece.model_dump() for piece in ready]
        return [self._chunk(self._last, state.index, {"tool_calls": pieces})]

    def _chunks(self, chunk: Any, state: _Choice, deltas: Sequence[dict[str, Any]]) -> list[Any]:
        """Return a chunk for each delta, otherwise like `chunk`."""
        chunks = []
        for delta in deltas:
            if "tool_calls" in delta:
                calls = [call for call in delta["tool_calls"] if not state.is_own(call)]
                if not calls:
                    continue
                state.written += [call["function"] for call in calls]
                delta = {"tool_calls": self._numbered(state, calls)}
            # The role belongs to the first chunk of a choice, and was held back with its text.
            if state.role is not None:
                delta = {"role": state.role, **delta}
                state.role = None
            chunks.append(self._chunk(chunk, state.index, delta))
        return chunks

    def _numbered(self, state: _Choice, calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Calls with the next free indices of their choice."""
        first = state.calls
        state.calls += len(calls)
        return [{**call, "index": index} for index, call in enumerate(calls, first)]

    def _chunk(
        self, like: Any, index: int, delta: dict[str, Any], finish_reason: str | None = None
    ) -> Any:
        """Return a chunk with one delta, otherwise like `like`: the same id, model, time, hidden
        parameters.
        """
        choice = self._shapes.StreamingChoices(
            index=index,
            delta=self._shapes.Delta(**delta),
            finish_reason=finish_reason,
            logprobs=None,
        )
        return like.model_copy(update={"choices": [choice]})
