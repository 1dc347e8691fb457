"""Streams of litellm's class around another: with tool calls in it, or with a view of chunks."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import CallRetracted
from ...core.types.call_pieces import CallPieces
from ...core.types.server import same_json
from ...formats.tool_names import offered_name
from ...middleware import Answer, AnswerStream, CorrectedAnswer, ToolCallMiddleware, Turn
from ...middleware.answer import written_too
from ...middleware.drive import adrive, drive
from ...runner.answer import close_stream
from .response import FIELD, AnswerIds, Asked, blame_of, findings_of, with_feedback

# How chunks are read. Each choice of a stream has a parser of its own (AnswerStream), which keeps
# text back while it may become a call. Most chunks are plain text with nothing held back, and go on
# as they are: one look-up, one feed and two comparisons. Any other chunk becomes up to three kinds:
# one of what is not text, one for each delta that the parser gives, and at the end the finish
# reasons. A client must see them in that order, and every call under an index of its own, although
# the provider may number its own calls from 0 too. Invariant: the texts and calls that were passed
# on, and what the parsers keep back, are all that was received.
#
# Arguments go out while they are written: clients give up a stream that is silent for long. The
# deltas `tool_input` say what is certain of them, and their end comes with the end of the answer,
# so that no client can execute a call that turns out to be a thought.

# Members of a delta, apart from text and calls, that must not be lost with the text.
_OTHER = (
    "function_call", "audio", "images", "annotations", "reasoning_content", "thinking_blocks",
    "reasoning_items",
)  # fmt: skip

_MOST_RECEIVED = 100_000  # chunks that are kept for what they say of the server; of more, nothing


@dataclass(slots=True, eq=False)
class _OwnCall:
    """A call that the provider made itself, as far as it came."""

    name: str = ""
    arguments: str = ""
    index: int | None = None
    waiting: list[Any] = field(default_factory=list)  # pieces not yet sent


@dataclass(slots=True, eq=False)
class _Choice:
    index: int
    stream: AnswerStream
    role: str | None = None  # of a chunk whose text was held back
    finish: Any = None  # the chunk that ended it
    calls: int = 0  # the number of calls passed on
    said: bool = False  # there was text
    thoughts: list[str] = field(default_factory=list)
    shown: dict[str, int] = field(default_factory=dict)  # id of a call that is written -> its index
    names: set[str] = field(default_factory=set)  # tools of these calls
    # The provider's own calls, by their number.
    pieces: CallPieces = field(default_factory=CallPieces)
    own: dict[int, _OwnCall] = field(default_factory=dict)

    def may_be_written(self, own: _OwnCall) -> bool:
        """Return True for a call of the provider's that may be in the text as well."""
        if not self.said:
            return False
        return own.arguments.strip() in ("", "{}") or self.has_written(own.name)

    def has_written(self, name: str) -> bool:
        """Return True if the text so far has a call of this tool, or the beginning of one."""
        return name in self.names or name in self.stream.waiting

    def is_own(self, call: dict[str, Any]) -> bool:
        """Return True for a call of the text that was passed on as the provider's own."""
        function = call["function"]
        return any(
            own.name == function["name"] and same_json(own.arguments, function["arguments"])
            for own in self.own.values()
            if not own.waiting
        )


class ChunkReader:
    """`feed(chunk)` for every chunk of litellm, then `close()`: both give the chunks to send on
    instead.

    A chunk whose text is plain text is passed on as it is. The end of a choice is sent last, when
    nothing can follow: litellm ends the first choice when any of them ends. After a failure,
    `close(cut=True)` gives the text held back.

    streams: the arguments of a call are passed on while they are written, where the middleware does
    so. Once such a call turns out to be none, `retracted` is the error that ends the stream, and
    nothing more is passed on: no client may take what came for a call.
    """

    def __init__(
        self,
        shapes: Any,
        middleware: ToolCallMiddleware,
        turn: Turn,
        ids: AnswerIds | None = None,
        *,
        streams: bool = True,
    ) -> None:
        reader = middleware.for_turn(turn)
        # Broken calls that are handed on are whole, and no error.
        hands_on = reader.broken_calls == "call"
        self._streams = streams and reader.stream_arguments and not hands_on
        self.retracted: CallRetracted | None = None
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
        if self.retracted is not None:
            return ()
        if self._closed:
            return (chunk,)
        if not choices:  # the usage, or before the first text what a provider says of the prompt
            return (*self.close(), chunk) if self._ended else (chunk,)
        # What waits for the end goes out like this one, and must not say the usage again.
        if self._last is None or getattr(chunk, "usage", None) is None:
            self._last = chunk
        if len(self._received) <= _MOST_RECEIVED:
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
        if self._closed or self.retracted is not None:
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
            if self._is_retracted():
                return chunks
            chunks += self._last_own_calls(state, answer)
            if finish is not None:
                endings.append(self._ending(state, finish, answer))
        return chunks + endings

    def _is_retracted(self) -> bool:
        return self.retracted is not None

    def _ending(self, state: _Choice, finish: Any, answer: Answer) -> Any:
        # Without its text and with what its parse found: the provider's own where it will do.
        last = finish.choices[0]
        blame = ""
        if self._tells and len(self._choices) == 1 and len(self._received) <= _MOST_RECEIVED:
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
        # How it works: plain text with nothing held back goes on as it is; see the top.
        state = self._choices.get(choice.index)
        if state is None:
            call_ids = self._ids.of(choice.index) if self._ids else None
            stream = self._middleware.wrap_stream(
                self._turn, call_ids=call_ids, tool_input=self._streams
            )
            state = self._choices[choice.index] = _Choice(choice.index, stream)
        text = choice.delta.content
        if choice.logprobs is not None or choice.delta.tool_calls:
            self._tells = True
        if choice.finish_reason is not None:
            # The end itself is sent by `close`.
            state.finish = chunk
            state.said = state.said or bool(text)
            chunks = self._chunks(chunk, state, state.stream.feed(text)) if text else ()
            return (*self._rest(chunk, state, choice), *chunks)
        if not text:  # a call of the provider's, or anything else
            if choice.delta.tool_calls:
                return self._rest(chunk, state, choice)
            # Some providers send the usage with an empty delta, after all ends.
            if self._ended and getattr(chunk, "usage", None) is not None:
                return (*self.close(), chunk)
            if thought := getattr(choice.delta, "reasoning_content", None):
                state.thoughts.append(thought)
            return (chunk,)

        state.said = True
        deltas = state.stream.feed(text)
        if len(deltas) == 1 and state.role is None and deltas[0].get("content") == text:
            return (chunk,)
        rest = self._rest(chunk, state, choice)
        if choice.delta.role and not rest:
            state.role = choice.delta.role
        return (*rest, *self._chunks(chunk, state, deltas))

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
        """Return the pieces of calls that the provider made itself, as every client joins them:
        each call under an index of its own, its id and its name once. One that may be in the text
        as well waits.
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
        chunks = []
        # A call that is whole at once needs no pieces.
        at_once = {call["id"] for delta in deltas for call in delta.get("tool_calls", ())}
        at_once -= state.shown.keys()
        for delta in deltas:
            if "tool_input" in delta:
                piece = self._piece(state, delta["tool_input"], at_once)
                if self.retracted is not None:
                    break
                if piece is None:
                    continue
                delta = {"tool_calls": [piece]}
            elif "tool_calls" in delta:
                calls = [call for call in delta["tool_calls"] if not state.is_own(call)]
                calls = [call for call in calls if call["id"] not in state.shown]
                if not calls:
                    continue
                numbers = range(state.calls, state.calls + len(calls))
                state.calls += len(calls)
                delta = {
                    "tool_calls": [
                        {**call, "index": n} for n, call in zip(numbers, calls, strict=True)
                    ]
                }
            # The role belongs to the first chunk of a choice, and was held back with its text.
            if state.role is not None:
                delta = {"role": state.role, **delta}
                state.role = None
            chunks.append(self._chunk(chunk, state.index, delta))
        return chunks

    def _piece(
        self, state: _Choice, part: dict[str, Any], at_once: set[str]
    ) -> dict[str, Any] | None:
        """Return the piece of a call that shows a part of its input, None where none goes out."""
        id, kind = part["id"], part["type"]
        if kind == "tool-input-error":
            if id in state.shown:
                call = f"the call of {part['toolName']} that was streamed"
                why = f"{call} must not be executed: {part['errorText']}"
                self.retracted = CallRetracted(why, hint="stream_arguments=False sends whole calls")
            return None
        if kind == "tool-input-start":
            # The provider's own calls may be the same ones, and a second call of a tool may be the
            # first one said again: then the end decides.
            name = part["toolName"]
            if id in at_once or state.own or state.has_written(name):
                return None
            state.shown[id] = state.calls
            state.names.add(name)
            state.calls += 1
            function = {"name": name, "arguments": ""}
            return {"index": state.shown[id], "id": id, "type": "function", "function": function}
        if kind != "tool-input-delta" or id not in state.shown:
            return None
        function = {"name": None, "arguments": part["delta"]}
        return {"index": state.shown[id], "id": None, "type": "function", "function": function}

    def _chunk(
        self, like: Any, index: int, delta: dict[str, Any], finish_reason: str | None = None
    ) -> Any:
        # Otherwise like `like`: the same id, model, time, hidden parameters.
        choice = self._shapes.StreamingChoices(
            index=index,
            delta=self._shapes.Delta(**delta),
            finish_reason=finish_reason,
            logprobs=None,
        )
        return like.model_copy(update={"choices": [choice]})


# How calls wait. Text goes on as it comes, and is final. The first chunk with a piece of a call,
# and every such chunk after it, is kept until the stream is over: only a whole call can be checked
# against its schema, and nothing that went out is taken back. Ends wait with them, because clients
# stop reading there. Then the calls that were corrected get their new arguments, in the chunk in
# which they were whole, and all go out in their order.


class HeldCalls:
    """A ChunkReader whose calls and ends come from `release` instead."""

    def __init__(self, reader: ChunkReader) -> None:
        self._reader = reader
        self._held: list[Any] = []
        self._corrected: dict[int, CorrectedAnswer] = {}
        self._ended = False

    def feed(self, chunk: Any) -> Sequence[Any]:
        """Take in a chunk. Return those to send on now."""
        return self._without_held(self._reader.feed(chunk))

    def close(self, *, cut: bool = False) -> Sequence[Any]:
        """End the stream. Return what else is to be sent before `release`."""
        return self._without_held(self._reader.close(cut=cut))

    @property
    def answers(self) -> dict[int, Answer]:
        """Index of a choice -> its answer, once the stream is over."""
        return self._reader.answers

    def settle(self, index: int, corrected: CorrectedAnswer) -> None:
        """Note the corrections of a choice's answer."""
        if corrected.calls:
            self._corrected[index] = corrected

    def release(self) -> list[Any]:
        """Return the chunks that were kept, with the corrected calls. A second call gives none."""
        chunks, self._held = self._held, []
        return [self._with_corrections(chunk) for chunk in chunks]

    def _without_held(self, chunks: Sequence[Any]) -> Sequence[Any]:
        passed = []
        for chunk in chunks:
            ends = any(choice.finish_reason is not None for choice in chunk.choices)
            self._ended = self._ended or ends
            if self._ended or any(choice.delta.tool_calls for choice in chunk.choices):
                self._held.append(chunk)
            else:
                passed.append(chunk)
        return passed

    def _with_corrections(self, chunk: Any) -> Any:
        if len(chunk.choices) != 1 or chunk.choices[0].index not in self._corrected:
            return chunk
        choice = chunk.choices[0]
        corrected = self._corrected[choice.index]
        delta = choice.delta
        changes: dict[str, Any] = {}
        if delta.tool_calls:
            changes["tool_calls"] = [_with_arguments(c, corrected.answer) for c in delta.tool_calls]
        if choice.finish_reason is not None:
            fields = getattr(delta, "provider_specific_fields", None) or {}
            ours = {FIELD: fields[FIELD]} if FIELD in fields else None
            changes["provider_specific_fields"] = {**fields, **with_feedback(ours, corrected)}
        new = choice.model_copy(update={"delta": delta.model_copy(update=changes)})
        return chunk.model_copy(update={"choices": [new]})


def _with_arguments(call: Any, answer: Answer) -> Any:
    # A call of the text is whole in one delta, and its id is that of the answer's.
    for own in answer.tool_calls:
        if own["id"] == call.id:
            arguments = own["function"]["arguments"]
            function = call.function.model_copy(update={"arguments": arguments})
            return call.model_copy(update={"function": function})
    return call


def stream_of(asked: Asked, inner: Any) -> Any:
    """`inner` (a CustomStreamWrapper) with the calls of its text as tool-call deltas, itself a
    CustomStreamWrapper. Calls that are corrected come at its end.
    """
    litellm = asked.litellm
    # What a correction may change does not go out before.
    reader = ChunkReader(
        litellm.types.utils, asked.middleware, asked.turn, asked.ids, streams=not asked.corrects
    )
    held = HeldCalls(reader) if asked.corrects else None
    return _stream_classes(litellm)[0](inner, reader, asked, held)


def close_connection(stream: Any) -> None:
    """Close the provider's connection of a stream of litellm's made without async, for which
    litellm's own class has no `close`.
    """
    source = stream.completion_stream
    for closable in (source, getattr(source, "response", None)):
        close = getattr(closable, "close", None)
        if close is not None and not inspect.iscoroutinefunction(close):
            with contextlib.suppress(Exception):
                close()


def tapped_stream(litellm: Any, inner: Any, see: Callable[[Any], None]) -> Any:
    """`inner` (a CustomStreamWrapper) itself, but for a call of `see` with each chunk before it is
    passed on. A CustomStreamWrapper too.
    """
    return _stream_classes(litellm)[1](inner, see)


@functools.lru_cache(maxsize=1)
def _stream_classes(litellm: Any) -> tuple[Any, Any]:
    # Made when first needed, because importing litellm takes seconds.

    class OuterStream(litellm.CustomStreamWrapper):  # type: ignore[misc]
        """A stream of litellm's around another: headers, hidden parameters, model and logging are
        the inner one's.
        """

        _inner: Any

        def __getattr__(self, name: str) -> Any:
            if name in ("_inner", "_see"):  # an object that is still being made, or copied
                raise AttributeError(name)
            return getattr(self._inner, name)

        def __del__(self) -> None:
            """Do nothing: litellm's closes the connection, and the inner stream has its own."""

        def close(self) -> None:
            """End the stream and close the provider's connection, of one made without async."""
            self._drop()
            close_connection(self._inner)

        async def aclose(self) -> None:
            """End the stream and close the provider's connection."""
            self._drop()
            await close_stream(self._inner)

        def _drop(self) -> None:
            """Forget what was not yet given."""

    class ToolCallStream(OuterStream):
        def __init__(
            self, inner: Any, reader: ChunkReader, asked: Asked, held: HeldCalls | None
        ) -> None:
            self._inner = inner
            self._reader = held or reader
            self._source = reader
            self._asked = asked
            self._held = held  # calls that wait for the end, to be asked about once more
            self._ready: deque[Any] = deque()
            self._failure: Exception | None = None
            self._ended = False

        def __next__(self) -> Any:
            while not self._ready and not self._ended:
                try:
                    chunks = self._reader.feed(next(self._inner))
                except StopIteration:
                    drive(self._finish(), self._asked.corrected)
                except Exception as e:
                    self._fail(e)
                else:
                    if len(chunks) == 1 and self._source.retracted is None:
                        return chunks[0]
                    self._take(chunks)
            return self._ready_or(StopIteration)

        async def __anext__(self) -> Any:
            try:
                while not self._ready and not self._ended:
                    try:
                        chunks = self._reader.feed(await self._inner.__anext__())
                    except StopAsyncIteration:
                        await adrive(self._finish(), self._asked.corrected_later)
                    except Exception as e:
                        self._fail(e)
                    else:
                        if len(chunks) == 1 and self._source.retracted is None:
                            return chunks[0]
                        self._take(chunks)
            except asyncio.CancelledError:
                await self.aclose()
                raise
            return self._ready_or(StopAsyncIteration)

        def _finish(self) -> Generator[Answer, CorrectedAnswer, None]:
            # The answers that are yielded are to be corrected.
            self._end(cut=False)
            if self._held is not None:
                for index, answer in sorted(self._held.answers.items()):
                    self._held.settle(index, (yield answer))
                self._ready.extend(self._held.release())

        def _fail(self, failure: Exception) -> None:
            # The text held back is given first, and then the failure.
            self._end(cut=True)
            self._failure = self._asked.refusal(failure) or failure
            if self._held is not None:
                self._ready.extend(self._held.release())

        def _end(self, cut: bool) -> None:
            self._ended = True
            self._take(self._reader.close(cut=cut))

        def _take(self, chunks: Sequence[Any]) -> None:
            self._ready.extend(chunks)
            if self._source.retracted is not None:
                self._ended, self._failure = True, self._source.retracted

        def _ready_or(self, end: type[Exception]) -> Any:
            if self._ready:
                return self._ready.popleft()
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            raise end

        def _drop(self) -> None:
            self._ended, self._failure = True, None
            self._ready.clear()

    class TappedStream(OuterStream):
        def __init__(self, inner: Any, see: Callable[[Any], None]) -> None:
            self._inner = inner
            self._see = see

        def __next__(self) -> Any:
            chunk = next(self._inner)
            self._see(chunk)
            return chunk

        async def __anext__(self) -> Any:
            chunk = await self._inner.__anext__()
            self._see(chunk)
            return chunk

    return ToolCallStream, TappedStream
