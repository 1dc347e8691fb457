"""The shapes of answers: whole responses and chunks of streams, taken into one Assembly."""

# How it works. Every reader of a shape (whole answers, chunks, content parts) calls the same few
# methods of one Assembly: say, think, refuse, call, finish. It keeps pieces in lists and joins them
# once, so that the cost is linear in the text. Calls are found by an index of the reader's own
# choice, which need only be the same for all pieces of one call.
#
# There is no version or schema to tell shapes apart by, and clients of one shape differ in what
# they leave out. So a shape is known by the one member that only it has, asked for in an order in
# which no earlier shape can claim a later one; anything else is refused, and nothing is guessed
# from the words of a model. Chunks of OpenAI's have `choices`; events of the Responses API and of
# Anthropic's messages have a `type`, of which only the former begin with `response.`.
#
# Readers take an object of any client or a dict and raise nothing. Those that return a bool return
# False for an object that is not of their shape.

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ...core.types.call_pieces import CallPieces, name_and_arguments
from ...core.types.call_pieces import member as get
from ...core.types.tokens import TokenPieces
from ...core.values import write_canonical


def items(x: Any) -> list[Any]:
    """Return the items of a list, none for anything else, strings included."""
    return list(x) if isinstance(x, (list, tuple)) else []


_MARKS = re.compile(r"(?:\s*(?:<[|｜][^<>|｜]{1,40}[|｜]>|</s>|<eos>|<end_of_turn>))*")


def eats(raw: str, content: str) -> bool:
    """Return True if the content is less than was written: something was taken out of it.

    White space around either, and marks after the end of the turn, count for nothing.
    """
    raw, content = raw.strip(), content.strip()
    if len(raw) <= len(content):
        return False
    only_marks = content and raw.startswith(content) and _MARKS.fullmatch(raw, len(content))
    return not only_marks


_IDS = ("id", "model", "provider", "system_fingerprint")
_DEEPEST = 200  # levels; Python's own limit on recursion is 1,000 calls


class Assembly:
    """The parts that were received so far of the answer number `choice` (from 0)."""

    def __init__(self, choice: int = 0, *, streamed: bool = False) -> None:
        self.choice = choice
        self.streamed = streamed
        self.chunks: list[tuple[Literal["content", "reasoning"], str]] = []
        self.finish_reason: str | None = None
        self.usage: Mapping[str, Any] | None = None
        self.ids: dict[str, str] = {}
        self.error: str | None = None
        self.choices = 0
        # The raw-completion endpoint: text, no messages.
        self.completion = False
        self.tokens = TokenPieces()
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        # A call counts from its first piece on, also where neither name nor arguments came.
        self.calls = CallPieces()

    def say(self, text: Any) -> None:
        self._add(text, self.content)

    def think(self, text: Any) -> None:
        self._add(text, self.reasoning, "reasoning")

    def refuse(self, text: Any) -> None:
        # Among the chunks it is content: the model wrote it.
        self._add(text, self.refusal)

    def _add(
        self, text: Any, pieces: list[str], kind: Literal["content", "reasoning"] = "content"
    ) -> None:
        if isinstance(text, str) and text:
            pieces.append(text)
            if self.streamed:
                self.chunks.append((kind, text))

    def identify(self, response: Any) -> None:
        """Take over ids and token counts. The first id counts."""
        for name in _IDS:
            value = get(response, name)
            if isinstance(value, str) and value:
                self.ids.setdefault(name, value)
        # Merged: some servers send the prompt's tokens first and the answer's with the last chunk.
        usage = plain(get(response, "usage"))
        if isinstance(usage, Mapping) and usage:
            self.usage = {**(self.usage or {}), **usage}

    def finish(self, reason: Any) -> None:
        """Take over a finish reason, in the provider's own word.

        The last one counts, but "stop" does not take back one that says more. Chunks before the
        last one have None there, and some servers an empty string.
        """
        if isinstance(reason, str) and reason and (reason != "stop" or self.finish_reason is None):
            self.finish_reason = reason

    def fail(self, error: Any) -> None:
        """Note an error in the answer's place or after its beginning: a message, or an object
        with one. Of any other object its JSON is the message."""
        message = error if isinstance(error, str) else get(error, "message")
        if not isinstance(message, str) or not message:
            message = write_canonical(plain(error))
        self.error = message

    def call(self, index: Any, *, id: Any = None, name: Any = None, arguments: Any = None) -> None:
        """Add a call or a piece of one, see `CallPieces.take`."""
        self.calls.take(index, id, name, arguments)
        self._call_chunk(name, arguments)

    def fill(self, index: Any, arguments: Any) -> None:
        """Add the whole arguments of a call of which no piece came."""
        if self.calls.lacks_arguments(index):
            self.call(index, arguments=arguments)

    def fill_item(self, index: Any, item: Any) -> None:
        """`fill` from the whole item of a call."""
        self.fill(index, get(item, "arguments") or get(item, "input"))

    def call_list(self, calls: Sequence[Any], *, whole: bool) -> None:
        """Add the `tool_calls` of a message, or of the delta of one, see `CallPieces.take_list`."""
        self.calls.take_list(calls, whole=whole)
        for call in calls:
            self._call_chunk(*name_and_arguments(call))

    def _call_chunk(self, name: Any, arguments: Any) -> None:
        piece = "".join([text for text in (name, arguments) if isinstance(text, str)])
        if piece and self.streamed:
            self.chunks.append(("content", piece))


def plain(obj: Any, depth: int = 0) -> Any:
    """Objects of clients as JSON without their empty members.

    Objects with `model_dump` (pydantic) or plain attributes are taken apart. Values of any other
    class, and values nested too deep, stay as they are.
    """
    if depth > _DEEPEST:
        return obj
    dump = getattr(obj, "model_dump", None)
    if callable(dump):
        obj = dump()
    # The `__dict__` of classes, functions and mappings says nothing about an answer.
    elif hasattr(obj, "__dict__") and not callable(obj) and not isinstance(obj, (type, Mapping)):
        obj = vars(obj)
    if isinstance(obj, Mapping):
        return {str(k): plain(v, depth + 1) for k, v in obj.items() if v is not None}
    if isinstance(obj, (list, tuple)):
        return [plain(v, depth + 1) for v in obj]
    return obj


# Whole answers: chat and text completions, their choices and messages, Responses API objects,
# Anthropic messages.

_TEXTS = ("text", "output_text", "input_text")
_THOUGHTS = ("thinking", "reasoning", "reasoning_text", "summary_text")
_CALL_ITEMS = ("function_call", "custom_tool_call")
_MESSAGE_MEMBERS = (
    "content", "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning",
    "thinking",
)  # fmt: skip


def take_response(obj: Any, assembly: Assembly) -> bool:
    """Take in a whole answer. Return False for an object that holds none."""
    choices, output, error = get(obj, "choices"), get(obj, "output"), get(obj, "error")
    assembly.tokens.take_response(obj)
    if isinstance(choices, (list, tuple)):
        assembly.identify(obj)
        # An error beside the choices does not hide them: servers that break off a long answer
        # send both.
        if error is not None:
            assembly.fail(error)
        assembly.choices = len(choices)
        chosen = choices[assembly.choice : assembly.choice + 1]
        complete = all(_take_choice(choice, assembly) for choice in chosen)
        return assembly.error is not None or (bool(choices) and complete)
    # Other frameworks call their results `output` too, without a status.
    if isinstance(output, (list, tuple)) and (
        get(obj, "object") == "response" or get(obj, "status") is not None
    ):
        assembly.identify(obj)
        assembly.choices = 1
        for number, item in enumerate(output):
            _take_item(item, assembly, number)
        _end_response(obj, assembly)
        return True

    if error is not None and get(obj, "role") is None:
        assembly.fail(error)
        return True
    if _is_ollama(obj):
        _take_ollama(obj, assembly)
        return True
    if get(obj, "message") is not None or isinstance(get(obj, "text"), str):
        return _take_choice(obj, assembly)
    if _is_message(obj):
        assembly.identify(obj)
        _take_message(obj, assembly)
        assembly.finish(get(obj, "stop_reason"))
        return True
    return False


def _take_choice(choice: Any, assembly: Assembly) -> bool:
    assembly.finish(get(choice, "finish_reason"))
    assembly.tokens.take_choice(choice)
    message = get(choice, "message")
    if message is not None:
        if not _is_message(message):
            return False
        _take_message(message, assembly)
        return True
    assembly.completion = True
    assembly.say(get(choice, "text"))
    return isinstance(get(choice, "text"), str)


def _is_message(obj: Any) -> bool:
    # A message without a role must have a member that only answers have. With the role of a user
    # or a tool it is not an answer, whatever it holds.
    role = get(obj, "role")
    if role not in (None, "assistant", "model"):
        return False
    if not isinstance(get(obj, "content"), (str, list, tuple, type(None))):
        return False
    return role is not None or any(get(obj, name) is not None for name in _MESSAGE_MEMBERS)


def _take_message(message: Any, assembly: Assembly, *, whole: bool = True) -> None:
    content = get(message, "content")
    thought = get(message, "reasoning_content")
    # A list of parts has its reasoning in the parts, and `reasoning` may repeat it.
    if not thought and not isinstance(content, (list, tuple)):
        thought = get(message, "reasoning") or get(message, "thinking")
    assembly.think(thought)

    assembly.say(content)
    for number, part in enumerate(items(content)):
        _take_part(part, assembly, ("part", number))
    assembly.refuse(get(message, "refusal"))

    calls = items(get(message, "tool_calls"))
    assembly.call_list(calls, whole=whole)
    legacy = get(message, "function_call")
    if legacy is not None and not calls:
        assembly.call("function_call", name=get(legacy, "name"), arguments=get(legacy, "arguments"))


def _take_part(part: Any, assembly: Assembly, index: Any) -> None:
    # Parts of an unknown type (images, citations) do not count.
    kind = get(part, "type")
    if isinstance(part, str):
        assembly.say(part)
    elif kind in _TEXTS:
        assembly.say(get(part, "text"))
        assembly.tokens.take_logprobs(get(part, "logprobs"))
    elif kind in _THOUGHTS:
        assembly.think(get(part, "thinking") or get(part, "text") or get(part, "reasoning"))
    elif kind == "refusal":
        assembly.refuse(get(part, "refusal"))
    elif kind == "tool_use":
        assembly.call(
            index, id=get(part, "id"), name=get(part, "name"), arguments=get(part, "input")
        )


def _take_item(item: Any, assembly: Assembly, index: Any) -> None:
    # Items that are not words of the model, such as the results of built-in tools, do not count.
    kind = get(item, "type")
    if kind == "message" or (kind is None and get(item, "content") is not None):
        for number, part in enumerate(items(get(item, "content"))):
            _take_part(part, assembly, (index, number))
    elif kind in _CALL_ITEMS:
        assembly.call(
            index,
            id=get(item, "call_id") or get(item, "id"),
            name=get(item, "name"),
            arguments=get(item, "arguments" if kind == "function_call" else "input"),
        )
    # Its text, where the provider shows it, and the summary that it always gives.
    elif kind == "reasoning":
        for part in (*items(get(item, "content")), *items(get(item, "summary"))):
            assembly.think(get(part, "text"))


def _end_response(response: Any, assembly: Assembly) -> None:
    # The Responses API has no finish reason. A completed response with calls ended with them, as
    # `finish_reason` would say.
    status = get(response, "status")
    if status == "completed":
        assembly.finish("tool_calls" if assembly.calls else "stop")
    elif status == "incomplete":
        assembly.finish(get(get(response, "incomplete_details"), "reason") or "incomplete")
    elif get(response, "error") is not None:
        assembly.fail(get(response, "error"))


# Ollama's own API, whose pieces have the shape of its whole answers: `message` of /api/chat,
# `response` of /api/generate. Its calls come whole, one a piece.

_OLLAMA_COUNTS = {"prompt_eval_count": "prompt_tokens", "eval_count": "completion_tokens"}


def _is_ollama(obj: Any) -> bool:
    has_text = get(obj, "message") is not None or isinstance(get(obj, "response"), str)
    return has_text and isinstance(get(obj, "done"), bool)


def _take_ollama(obj: Any, assembly: Assembly) -> None:
    assembly.choices = max(assembly.choices, 1)
    assembly.identify(obj)
    message = get(obj, "message")
    if message is not None:
        assembly.think(get(message, "thinking"))
        assembly.say(get(message, "content"))
        for call in items(get(message, "tool_calls")):
            name, arguments = name_and_arguments(call)
            assembly.call(("ollama", len(assembly.calls)), name=name, arguments=arguments)
    else:
        assembly.completion = True
        assembly.think(get(obj, "thinking"))
        assembly.say(get(obj, "response"))
    assembly.tokens.take_logprobs(get(obj, "logprobs"))
    if get(obj, "done"):
        assembly.finish(get(obj, "done_reason") or "stop")
        counts = {ours: get(obj, theirs) for theirs, ours in _OLLAMA_COUNTS.items()}
        assembly.usage = {k: v for k, v in counts.items() if isinstance(v, int)} or None


# Chunks of a stream. Each is read on its own: all that must be remembered between two of them is
# in the Assembly.


def take_chunk(chunk: Any, assembly: Assembly) -> bool:
    """Take in a chunk or an event of a stream. Return False for an object that is neither."""
    choices, kind, error = get(chunk, "choices"), get(chunk, "type"), get(chunk, "error")
    if isinstance(choices, (list, tuple)):
        assembly.identify(chunk)
        assembly.tokens.take_response(chunk)
        assembly.finish(get(chunk, "finish_reason"))
        if error is not None:
            assembly.fail(error)
        for number, choice in enumerate(choices):
            index = get(choice, "index")
            place = index if isinstance(index, int) else number
            assembly.choices = max(assembly.choices, place + 1)
            if place == assembly.choice:
                _take_delta(choice, assembly)
        return True
    if isinstance(kind, str):
        if kind.startswith("response."):
            _take_responses_event(kind.removeprefix("response."), chunk, assembly)
            return True
        if kind in _ANTHROPIC:
            assembly.choices = max(assembly.choices, 1)
            _take_anthropic_event(kind, chunk, assembly)
            return True

    if error is not None:
        assembly.fail(error)
        return True
    if _is_ollama(chunk):
        _take_ollama(chunk, assembly)
        return True
    # A whole Responses API object in a list of its own.
    return isinstance(get(chunk, "output"), (list, tuple)) and take_response(chunk, assembly)


def _take_delta(choice: Any, assembly: Assembly) -> None:
    assembly.finish(get(choice, "finish_reason"))
    assembly.tokens.take_choice(choice)
    delta = get(choice, "delta")
    assembly.finish(get(delta, "finish_reason"))  # where some servers have it
    # Whole answers in event streams: some servers do so for one that is short.
    message = delta if delta is not None else get(choice, "message")
    if message is not None:
        _take_message(message, assembly, whole=delta is None)
    elif get(choice, "text") is not None:
        assembly.completion = True
        assembly.say(get(choice, "text"))


_DELTAS = {
    "output_text.delta": Assembly.say,
    "refusal.delta": Assembly.refuse,
    "reasoning_text.delta": Assembly.think,
    "reasoning_summary_text.delta": Assembly.think,
}
_STATES = frozenset(("created", "in_progress", "completed", "incomplete", "failed"))


def _take_responses_event(kind: str, event: Any, assembly: Assembly) -> None:
    # Events that only repeat what came in deltas (`….done`), or announce a part, do not count.
    assembly.choices = max(assembly.choices, 1)
    if kind in _DELTAS:
        _DELTAS[kind](assembly, get(event, "delta"))
        assembly.tokens.take_logprobs(get(event, "logprobs"))
    elif kind in ("function_call_arguments.delta", "custom_tool_call_input.delta"):
        assembly.call(get(event, "output_index"), arguments=get(event, "delta"))
    elif kind in ("function_call_arguments.done", "custom_tool_call_input.done"):
        # Some servers send no deltas of arguments: they stand in what else repeats them.
        said = get(event, "arguments") or get(event, "input")
        assembly.fill(get(event, "output_index"), said)
    elif kind == "output_item.done" and get(get(event, "item"), "type") in _CALL_ITEMS:
        assembly.fill_item(get(event, "output_index"), get(event, "item"))
    elif kind == "output_item.added":
        # Other items begin empty, and come whole in their deltas.
        item = get(event, "item")
        if get(item, "type") in _CALL_ITEMS:
            _take_item(item, assembly, get(event, "output_index"))
    elif kind in _STATES:
        response = get(event, "response")
        if response is None:
            return
        assembly.identify(response)
        assembly.tokens.take_response(response)
        if kind == "completed" and not assembly.chunks:  # nothing came in deltas
            for number, item in enumerate(items(get(response, "output"))):
                _take_item(item, assembly, number)
        elif kind == "completed":
            for number, item in enumerate(items(get(response, "output"))):
                if get(item, "type") in _CALL_ITEMS:
                    assembly.fill_item(number, item)
        _end_response(response, assembly)
    elif kind == "error":
        assembly.fail(event)


_ANTHROPIC = frozenset(
    ("message_start", "content_block_start", "content_block_delta", "content_block_stop",
     "message_delta", "message_stop", "ping", "error")
)  # fmt: skip


def _take_anthropic_event(kind: str, event: Any, assembly: Assembly) -> None:
    block, delta, index = get(event, "content_block"), get(event, "delta"), get(event, "index")
    if kind == "message_start":
        assembly.identify(get(event, "message"))
    elif kind == "content_block_start" and get(block, "type") == "tool_use":
        # An empty object is there for input that comes in pieces afterwards, as JSON text.
        arguments = get(block, "input") or None
        assembly.call(
            ("block", index), id=get(block, "id"), name=get(block, "name"), arguments=arguments
        )
    elif kind == "content_block_start":
        assembly.say(get(block, "text"))
        assembly.think(get(block, "thinking"))
    elif kind == "content_block_delta":
        # Pieces of other kinds (signatures, citations) are no words of the model.
        part = get(delta, "type")
        if part == "text_delta":
            assembly.say(get(delta, "text"))
        elif part == "thinking_delta":
            assembly.think(get(delta, "thinking"))
        elif part == "input_json_delta":
            assembly.call(("block", index), arguments=get(delta, "partial_json"))
    elif kind == "message_delta":
        assembly.identify(event)
        assembly.finish(get(delta, "stop_reason"))
    elif kind == "error":
        assembly.fail(get(event, "error") or event)
