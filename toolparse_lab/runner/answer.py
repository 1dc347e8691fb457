"""One answer while it is received through litellm, whole or in chunks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from ..core.types.call_pieces import CallPieces, joined, json_value, name_and_arguments
from ..core.types.call_pieces import member as _get
from ..core.types.tokens import TokenPieces
from ..core.values import write_canonical
from .exchange.types import Chunk
from .failures import ReportedError, failure_in
from .provider_shapes import as_chat, finish_reason_of, is_of_ollama, json_object, ollama_usage
from .streams import (
    BodyEnd,
    TooLarge,
    chunks_of,
    close_body,
    close_quietly,
    is_direct,
    members_of,
    unstreamed_text,
)

# How an answer is read. `raw` must be what the model wrote, and litellm rewrites answers on the
# way: it splits off reasoning, makes up finish reasons, and rebuilds tool calls. So everything is
# read as far below litellm as it lets us. A whole answer is parsed from the response's own text,
# which litellm hands to `logger_fn`; a stream is read from the provider's client inside litellm's
# wrapper. Only a provider that does not speak OpenAI's shape is read as litellm translates it.
# Pieces are collected in lists and joined once at the end, so the cost is linear in the text, and a
# failure in the middle leaves what came before it.


_IDS = ("id", "model", "provider", "system_fingerprint", "service_tier")
"""What an answer says of itself and of who gave it; a router names the provider."""


class NotAStream(Exception):
    """A stream was asked for, and something else came: the message has the server's words."""


@dataclass(slots=True)
class Answer:
    """An answer in the course of being received.

    A failure in the middle leaves the messages before it.

    native: the request offers tools, so that `raw` has the form of native calls. started and
    latency are seconds of `time.perf_counter`. body: the request as it was sent. original: the
    response as the provider sent it.
    """

    native: bool
    started: float = 0.0
    latency: float = 0.0
    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    calls: CallPieces = field(default_factory=CallPieces)
    tokens: TokenPieces = field(default_factory=TokenPieces)
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    ids: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    original: Any = None
    got_any: bool = False
    # The error that a server gave with an answer, in place of the rest of it.
    reported: Mapping[str, Any] | None = None
    cut: bool = False
    # Bytes of text that may still come; below 0 the answer is too large.
    room: float = math.inf
    # Of a stream: whether its bytes came to an end, in order or not.
    body_end: BodyEnd = field(default_factory=BodyEnd)

    def __post_init__(self) -> None:
        self.body_end.room = self.room

    def log(self, details: Mapping[str, Any]) -> None:
        """Take over the body as sent, and the response as it was before litellm read it.

        This is litellm's `logger_fn`, called before and after the call with litellm's own dict of
        it. Bodies are redacted later, because this runs inside the call's time.
        """
        body = (details.get("additional_args") or {}).get("complete_input_dict")
        if body:
            self.body = body
        original = details.get("original_response")
        if details.get("log_event_type") == "post_api_call" and isinstance(original, str):
            self.original = original

    def read_response(self, response: Any) -> None:
        """Take in a whole answer: litellm's object, or the provider's own text where it has
        OpenAI's shape.

        The finish reason is the provider's own where its text can be read. litellm maps several of
        them to "stop".
        """
        if not response.choices and self.recover():
            return
        original = self.own_object() or {}
        if (failed := failure_in(original)) is not None:
            raise ReportedError(failed[1])
        said = members_of(response)
        self._identify(said)
        choice = response.choices[0]
        message = choice.message
        self.finish_reason = choice.finish_reason

        chat = as_chat(original) or {}
        if original:
            # What litellm fills in is the model that was asked.
            self.ids.pop("model", None)
            self._identify({**original, **chat})
        # None where the text has none: litellm's own reading is used then.
        own: Any = next(iter(chat.get("choices") or ()), None)
        if not isinstance(own, dict) or not isinstance(own.get("message"), dict):
            own = None
        if own is not None and ("choices" in original or "finish_reason" in original):
            choice, message = own, own["message"]
            self._finish(own.get("finish_reason"))
            self._take_usage(chat.get("usage"))
            self._take_error(own)
        if self.usage is None:
            self._take_usage(_get(said, "usage"))
        self._add(message)
        self.tokens.take_choice(choice)
        self.tokens.take_response(original or response)
        if own is not None:
            # What litellm leaves out of the answer's original.
            content = own["message"].get("content")
            if not self.reasoning:
                thought = own["message"].get("reasoning_content")
                self._add_text(self.reasoning, thought, None, "reasoning")
            if not self.content and not self.calls and content and isinstance(content, str):
                self._add_text(self.content, content, None, "content")
                self._take_usage(chat.get("usage"))
        elif is_of_ollama(original):
            self._finish(original.get("done_reason"))
            self.usage = ollama_usage(original)  # where one is missing, litellm guesses
            self.tokens.take_logprobs(original.get("logprobs"))
        self.got_any = True
        self.check_room()

    def recover(self) -> bool:
        """Take in a whole answer that litellm refused, from the provider's own text.

        Return False if that has none. An answer without choices is one without text, whatever the
        reason.
        """
        response = self.own_object()
        if self.got_any or response is None or failure_in(response) is not None:
            return False
        self.ids.clear()
        chat = as_chat(response)
        if chat is None:
            return False
        self._take_object(chat)
        return True

    def own_object(self) -> dict[str, Any] | None:
        """Return the provider's own response, None where it is no JSON of an object."""
        # Not every provider's text is logged.
        logged = isinstance(self.original, str)
        return json_object(self.original if logged else self.body_end.text())

    def _take_object(self, response: Mapping[str, Any], at: float | None = None) -> None:
        # at: seconds, where a stream was asked for and a whole response came.
        self._identify(response)
        self._take_usage(response.get("usage"))
        self.tokens.take_response(response)
        for choice in (response.get("choices") or ())[:1]:
            self._finish(_get(choice, "finish_reason"))
            self._take_error(choice)
            self.tokens.take_choice(choice)
            message = _get(choice, "message")
            if message is not None:
                self._add(message, at)
            elif isinstance(_get(choice, "text"), str):  # of a completion endpoint
                self._add_text(self.content, _get(choice, "text"), at, "content")
        self.got_any = True

    def _take_unstreamed(self, text: str) -> bool:
        at = round(time.perf_counter() - self.started, 6)
        self.original = text
        response = json_object(text)
        if response is None or not response.get("choices"):
            raise NotAStream(f"no stream came, but: {text.strip()}")
        self._take_object(response, at)
        return True

    async def read_stream(self, stream: Any) -> None:
        """Take in a stream to its end, and close it whatever happens.

        `cut` is then True if it ended without a finish reason. Raises NotAStream with the server's
        words where neither a stream nor an answer came.
        """
        is_whole = False
        wrapper = stream
        try:
            text = await unstreamed_text(stream)
            if text is not None:
                is_whole = self._take_unstreamed(text)
                self.check_room()
                return
            async for chunk in chunks_of(stream):
                if not self.got_any:
                    # What the generator of a completion endpoint contains.
                    frame = getattr(stream, "ag_frame", None)
                    inside = frame.f_locals.values() if frame is not None else ()
                    wrapper = next(filter(_is_wrapper, inside), stream)
                if isinstance(chunk, Mapping) and "not_a_stream" in chunk:
                    is_whole = self._take_unstreamed(chunk["not_a_stream"])
                    break
                self.take_chunk(chunk)
                if self.room < 0:
                    break
        finally:
            if not is_whole and not is_direct(stream):
                self.end_stream(wrapper)
                self.ids.pop("model", None)
                self._identify({"model": self.body_end.model})
            await close_stream(wrapper)
        self.check_room()
        self.cut = self.finish_reason is None

    def take_chunk(self, chunk: Any) -> None:
        """Take in one chunk of a stream, at the time when it comes."""
        at = round(time.perf_counter() - self.started, 6)
        self.got_any = True
        self._identify(chunk)
        self._take_usage(_get(chunk, "usage"))
        self.tokens.take_response(chunk)
        # A chunk without choices carries the usage, or the provider's facts about the prompt.
        # Further choices (n > 1) are other answers, and this one is the first.
        for choice in (_get(chunk, "choices") or ())[:1]:
            delta = _get(choice, "delta")
            self._finish(_get(choice, "finish_reason") or _get(delta, "finish_reason"))
            self._take_error(choice)
            self.tokens.take_choice(choice)
            if delta is not None:
                self._add(delta, at)
            elif (message := _get(choice, "message")) is not None:
                self._add(message, at)  # a whole answer in the place of a stream

    def end_stream(self, stream: Any) -> None:
        """Note the end of a stream whose chunks came through litellm's own wrapper."""
        if _is_wrapper(stream):
            # It says "stop" for a stream that broke off; these two are what was really received.
            self.finish_reason = stream.received_finish_reason or stream.intermittent_finish_reason
            if self.body_end.finish_part is False:
                self.finish_reason = None
            # Where the provider counted no tokens it guesses; its chunks have only what was
            # received.
            counts = [usage for c in stream.chunks if (usage := _get(c, "usage"))]
            self.usage = plain(counts[-1]) if counts else None
        self.cut = self.finish_reason is None

    def _finish(self, reason: Any) -> None:
        # The last reason counts, but "stop" does not take back one that says more.
        reason = finish_reason_of(reason)
        if reason and (reason != "stop" or self.finish_reason is None):
            self.finish_reason = reason

    def _identify(self, response: Any) -> None:
        # The first id counts. Empty values and values of another type do not: litellm fills in some
        # of its own.
        get = _getter(response)
        for name in _IDS:
            value = get(name)
            if isinstance(value, str) and value:
                self.ids.setdefault(name, value)

    def _take_error(self, choice: Any) -> None:
        # OpenRouter gives a choice an error, with the finish reason "error".
        error = _get(choice, "error")
        self.reported = error if error and isinstance(error, Mapping) else self.reported

    def _take_usage(self, usage: Any) -> None:
        # The last one counts. A text or a list in its place counts nothing.
        if usage and (isinstance(usage, (dict, Mapping)) or hasattr(usage, "model_dump")):
            self.usage = plain(usage)

    def _add(self, message: Any, at: float | None = None) -> None:
        # Reasoning comes before the text, as the model wrote it. A delta mostly has one of the two.
        get = _getter(message)
        thought = get("reasoning_content") or get("reasoning") or get("thinking")
        if not thought and (details := get("reasoning_details")):
            # Some of OpenRouter's are encrypted.
            parts = details if isinstance(details, (list, tuple)) else ()
            texts = [_get(part, "text") or _get(part, "summary") for part in parts]
            thought = "".join(text for text in texts if isinstance(text, str))
        self._add_text(self.reasoning, thought, at, "reasoning")
        content = get("content")
        if isinstance(content, (list, tuple)):
            # Some parts are reasoning, some have no text.
            for part in content:
                part_thought = _thought_of_part(part)
                if part_thought is None:
                    self._add_text(self.content, _text_of_part(part), at, "content")
                elif not thought:  # else the message has its reasoning elsewhere as well
                    self._add_text(self.reasoning, part_thought, at, "reasoning")
        else:
            # A refusal is in a member of its own, in place of the text.
            content = content or get("refusal")
            self._add_text(self.content, content, at, "content")

        # Most deltas are text alone, and there may be thousands: they end here.
        calls, legacy = get("tool_calls"), get("function_call")
        if calls or legacy:
            calls = calls if isinstance(calls, (list, tuple)) else ()
            pieces = [self._cut_piece(c, at) for c in calls or [{"index": 0, "function": legacy}]]
            self.calls.take_list(pieces, whole=at is None)

    def _add_text(
        self, pieces: list[str], text: Any, at: float | None, kind: Literal["content", "reasoning"]
    ) -> None:
        # at None: a whole message, without chunks.
        if not isinstance(text, str) or not text:
            return
        text = self._within_room(text)
        pieces.append(text)
        if at is not None:
            self.chunks.append(Chunk(at, text, kind))

    def _within_room(self, text: str) -> str:
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        room, self.room = self.room, self.room - size
        if self.room >= 0:
            return text
        # Half a character at the end is left out; a lone surrogate before it stays.
        piece = text.encode("utf-8", "surrogatepass")[: max(0, int(room))]
        while piece:
            try:
                return piece.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError as e:
                piece = piece[: e.start]
        return ""

    def check_room(self) -> None:
        """Raise TooLarge if more came than the answer has room for."""
        if self.room < 0:
            raise TooLarge(f"the answer has more than {self.body_end.room:,} bytes")

    def _cut_piece(self, call: Any, at: float | None) -> dict[str, Any]:
        name, arguments = name_and_arguments(call)
        name = self._within_room(name) if isinstance(name, str) else ""
        if arguments is None:
            text = ""
        elif isinstance(arguments, str):
            text = arguments = self._within_room(arguments)
        else:  # some servers send the object itself
            arguments = json_value(arguments)
            text = self._within_room(write_canonical(arguments))
            arguments = text if self.room < 0 else arguments
        if at is not None and name + text:
            self.chunks.append(Chunk(at, name + text))
        function = {"name": name, "arguments": arguments}
        return {"index": _get(call, "index"), "id": _get(call, "id"), "function": function}

    @property
    def got_text(self) -> bool:
        """True if the model wrote anything."""
        return bool(self.content or self.reasoning or self.calls)

    @property
    def raw(self) -> str:
        """The text as the model wrote it. For native calls canonical JSON of content and calls, so
        that equal answers are equal texts.
        """
        text = joined(self.content)
        if not self.native and not self.calls:
            return text
        calls = self.calls.to_list()
        for call in calls:
            function = call["function"]
            if not isinstance(function["arguments"], str):
                function["arguments"] = write_canonical(function["arguments"])
        return write_canonical({"content": text or None, "tool_calls": calls})


def _getter(obj: Any) -> Callable[[str], Any]:
    return obj.get if isinstance(obj, dict) else partial(_get, obj)


def _is_wrapper(stream: Any) -> bool:
    return type(stream).__name__ == "CustomStreamWrapper"


def _text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = _get(part, "text")
    if not isinstance(text, str):
        text = _get(text, "value")  # the Assistants' form
    return text if isinstance(text, str) else ""


def _thought_of_part(part: Any) -> str | None:
    # None: not reasoning. Mistral gives it as parts.
    kind = _get(part, "type")
    if kind not in ("thinking", "reasoning"):
        return None
    inner = _get(part, kind) or _get(part, "text")
    if isinstance(inner, (list, tuple)):
        return "".join(map(_text_of_part, inner))
    return inner if isinstance(inner, str) else ""


async def close_stream(stream: Any) -> None:
    """Close the provider's stream inside litellm's, and the connection below it.

    Nothing is raised, and a stream that has ended may be closed again.
    """
    inner = getattr(stream, "completion_stream", None)
    response = getattr(inner, "response", None)
    for closable in (inner, response):
        await close_quietly(closable)
    await close_body(getattr(response, "stream", None))


_JSON_SCALARS = (str, int, float, bool, type(None))


def plain(obj: Any) -> Any:
    """Return pydantic objects as JSON without their empty members, and a value that is not JSON as
    its text. Tuples become lists and keys become texts, as they would in JSON.
    """
    if isinstance(obj, _JSON_SCALARS):
        return obj
    if hasattr(obj, "model_dump"):
        obj = obj.model_dump()
    if isinstance(obj, (dict, Mapping)):
        return {
            str(k): v if isinstance(v, _JSON_SCALARS) else plain(v)
            for k, v in obj.items()
            if v is not None
        }
    return [plain(v) for v in obj] if isinstance(obj, (list, tuple)) else str(obj)
