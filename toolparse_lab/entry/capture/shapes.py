"""Answers of OpenAI's interfaces, Anthropic's and Ollama's, whole and in chunks, taken into one
Assembly.
"""

# How it works. Every reader of a shape (whole answers, chunks, parts) calls the same few methods of
# one Assembly: say, think, refuse, call, finish, and miss for what nobody knows. It keeps pieces in
# lists and joins them once, so that the cost is linear in the text. Calls are found by an index of
# the reader's own choice, which need only be the same for all pieces of one call.
#
# Readers take an object of any client or a dict and raise nothing. How a shape is known stands in
# `known`, in one table.

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal

from ...core.types.call_pieces import CallPieces, json_value, label, name_and_arguments
from ...core.types.call_pieces import member as get
from ...core.types.tokens import TokenPieces
from ...core.values import write_canonical
from .parts import is_of_server, is_seen, keys_of, take_part


def items(x: Any) -> list[Any]:
    """Return the items of a list, none for anything else, strings included."""
    return list(x) if isinstance(x, (list, tuple)) else []


def parts_in(x: Any) -> list[Any]:
    """Return the items of a list, and anything else that stands in the place of one as its only."""
    return [] if x is None else items(x) or ([] if x in ("", [], (), {}) else [x])


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
_MOST_KEYS, _LONGEST_KEY = 8, 40
_OWN_WORDS: Mapping[str, str] = {}
_OF_CALL = frozenset(("function", "custom", "name", "arguments", "input", "parameters", "args"))
_OF_PIECE = frozenset(("id", "index", "type"))


def _note(noted: dict[str, Any], kind: Any, part: Any) -> None:
    keys = [key[:_LONGEST_KEY] for key in keys_of(part)]
    shown = ", ".join([*keys[:_MOST_KEYS], *(["…"] if len(keys) > _MOST_KEYS else [])])
    noted.setdefault(f"{str(kind or 'part')[:_LONGEST_KEY]} ({shown})", part)


def _is_odd_call(call: Any, whole: bool) -> bool:
    if type(call) is dict and not _OF_CALL.isdisjoint(call):
        return False
    keys = set(keys_of(call))
    return not _OF_CALL & keys and (whole or bool(keys - _OF_PIECE))


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
        self.has_objects = False  # in the place of the text of arguments
        self.items = _CallItems()
        self.inputs: dict[Any, bool] = {}  # Anthropic's blocks with input -> if it has text
        # Names of the tools that the request offered, where the response repeats them.
        self.offered: frozenset[str] = frozenset()
        # Of a call whose arguments come value by value, see `partial_arguments`.
        self.partial: tuple[Any, dict[str, Any], list[Any]] | None = None
        # What nobody knows: each kind with its keys, once.
        self.missed: dict[str, Any] = {}
        self._parts = 0
        self._odd: dict[str, Any] = {}  # that counts where the answer says nothing else
        self._passed: set[Any] = set()  # indices of what a server runs itself

    def miss(self, kind: Any, part: Any) -> None:
        """Note a part, an event or an item of a kind that nobody knows."""
        _note(self.missed, kind, part)

    def next_index(self) -> tuple[str, int]:
        """Return an index that no other call has."""
        self._parts += 1
        return "part", self._parts

    def doubt(self, message: Any, known: frozenset[str]) -> None:
        """Note the members of a message that nobody knows, where it says nothing else."""
        if type(message) is dict and known.issuperset(message):
            return
        odd = {
            name: get(message, name)
            for name in keys_of(message)
            if name not in known and get(message, name) not in ("", [], {}, False, 0)
        }
        for name, value in odd.items():
            _note(self._odd, name, {name: value})

    def pass_over(self, index: Any) -> None:
        """Ignore the pieces that follow under an index: they are of a tool that a server runs."""
        self._passed.add(index)

    def passes(self, index: Any) -> bool:
        """Whether the pieces under an index are passed over."""
        return index in self._passed

    @property
    def says_nothing(self) -> bool:
        """Whether no text of the answer came so far."""
        return not (self.content or self.refusal)

    def unread(self) -> dict[str, Any]:
        """Return what was missed of the answer, by its kind with its keys."""
        says = self.content or self.refusal or self.calls or self.error
        return self.missed if says else {**self.missed, **self._odd}

    def say(self, text: Any) -> None:
        if text and not isinstance(text, str):
            self.miss("text", text)
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
        if isinstance(tools := get(response, "tools"), (list, tuple)):
            self.offered |= {str(get(tool, "name")) for tool in tools}
        # Merged: some servers send the prompt's tokens first and the answer's with the last chunk.
        usage = plain(get(response, "usage"))
        if isinstance(usage, Mapping) and usage:
            self.usage = {**(self.usage or {}), **usage}

    def finish(self, reason: Any, words: Mapping[str, str] = _OWN_WORDS) -> None:
        """Take over a finish reason, in the provider's own word, or in that of `words` for it.

        The last one counts, but "stop" does not take back one that says more. Chunks before the
        last one have None there, and some servers an empty string.
        """
        if isinstance(reason, str) and reason:
            reason = words.get(reason, reason)
            if reason != "stop" or self.finish_reason is None:
                self.finish_reason = reason

    def fail(self, error: Any) -> None:
        """Note an error in the answer's place or after its beginning: a message, or an object
        with one. Of any other object its JSON is the message."""
        message = error if isinstance(error, str) else get(error, "message")
        if not isinstance(message, str) or not message:
            message = write_canonical(json_value(plain(error)))
        self.error = message

    def call(self, index: Any, *, id: Any = None, name: Any = None, arguments: Any = None) -> None:
        """Add a call or a piece of one, see `CallPieces.take`."""
        if self._passed and index in self._passed:
            return
        self.calls.take(index, id, name, arguments)
        self._call_chunk(name, arguments)

    def state(self, index: Any, *, id: Any = None, name: Any = None, arguments: Any = None) -> None:
        """Take in what is said of a call as a whole, see `CallPieces.state`."""
        if index not in self._passed and self.calls.state(index, id, name, arguments):
            self._call_chunk(None, arguments)

    def call_list(self, calls: Sequence[Any], *, whole: bool) -> None:
        """Add the `tool_calls` of a message, or of the delta of one, see `CallPieces.take_list`."""
        own = []
        for call in calls:
            kind, place = get(call, "type"), ("listed", label(get(call, "index")))
            if is_seen(kind):  # one that a server has run itself (xAI)
                self.pass_over(place)
            elif _is_odd_call(call, whole):
                self.miss(kind or "tool_calls", call)
            elif whole or not self.passes(place):
                own.append(call)
        self.calls.take_list(own, whole=whole)
        for call in own:
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


def counts_of_usage(
    sent: Any, received: Any, total: Any = None, *, cached: Any = None, reasoning: Any = None
) -> dict[str, Any]:
    """Return token counts in OpenAI's words, without those that nobody says."""
    if total is None and isinstance(sent, int) and isinstance(received, int):
        total = sent + received
    counts: dict[str, Any] = {
        "prompt_tokens": sent, "completion_tokens": received, "total_tokens": total,
        "prompt_tokens_details": None if cached is None else {"cached_tokens": cached},
        "completion_tokens_details": None if reasoning is None else {"reasoning_tokens": reasoning},
    }  # fmt: skip
    return {name: count for name, count in counts.items() if count is not None}


# Whole answers: chat and text completions, their choices and messages, Responses API objects,
# Anthropic messages.

MESSAGE_MEMBERS = (
    "content", "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning",
    "thinking", "parts", "tool_plan",
)  # fmt: skip
# Members of messages that say nothing a client has to read or to execute.
_KNOWN_MEMBERS = frozenset((
    *MESSAGE_MEMBERS, "role", "id", "type", "object", "name", "model", "index", "created",
    "annotations", "audio", "images", "thinking_blocks", "reasoning_details", "reasoning_items",
    "reasoning_signature", "reasoning_opaque", "reasoning_text", "encrypted_content",
    "provider_specific_fields", "executed_tools", "citations", "context", "end_turn", "parsed",
    "tool_call_id", "token_ids", "logprobs", "prefix", "metadata", "extra_content", "finish_reason",
    "stop_reason", "stop_sequence", "stop_details", "matched_stop", "usage", "container",
    "context_management", "channel", "recipient", "kind", "model_name", "timestamp",
    "provider_name", "provider_details", "provider_response_id", "run_id", "finish_message",
    "tool_call_chunks", "invalid_tool_calls", "additional_kwargs", "response_metadata",
    "usage_metadata", "padding", "obfuscation", "weight", "created_at", "ResponseMetadata",
    "toolInvocations",
))  # fmt: skip


def take_responses(obj: Any, assembly: Assembly) -> bool:
    """Take in a whole object of the Responses API."""
    assembly.tokens.take_response(obj)
    assembly.identify(obj)
    assembly.choices = 1
    for number, item in enumerate(items(get(obj, "output")) or items(get(obj, "outputs"))):
        _take_item(item, assembly, number)
    _end_response(obj, assembly)
    return True


def take_chat(obj: Any, assembly: Assembly) -> bool:
    """Take in a chat or text completion. False where it has no choices, or one without a message.

    An error beside the choices does not hide them: servers that break off a long answer send both.
    """
    choices, error = get(obj, "choices"), get(obj, "error")
    assembly.tokens.take_response(obj)
    assembly.identify(obj)
    if error is not None:
        assembly.fail(error)
    assembly.choices = len(choices)
    chosen = choices[assembly.choice : assembly.choice + 1]
    complete = all(take_choice(choice, assembly) for choice in chosen)
    return assembly.error is not None or (bool(choices) and complete)


def take_own_message(obj: Any, assembly: Assembly) -> bool:
    """Take in a message: one of Anthropic's, of a chat completion, or of a convention."""
    assembly.tokens.take_response(obj)
    assembly.identify(obj)
    _take_message(obj, assembly)
    assembly.finish(get(obj, "stop_reason") or get(obj, "finish_reason"))
    return True


def take_choice(choice: Any, assembly: Assembly) -> bool:
    """Take in a choice: its message or its text. False for neither, unless a filter took it."""
    assembly.finish(get(choice, "finish_reason"))
    if (error := get(choice, "error")) is not None:
        assembly.fail(error)
    assembly.tokens.take_choice(choice)
    message = get(choice, "message")
    if message is not None:
        if not is_message(message):
            return False
        _take_message(message, assembly)
        return True
    assembly.completion = True
    assembly.say(get(choice, "text"))
    return isinstance(get(choice, "text"), str) or assembly.finish_reason == "content_filter"


def is_message(obj: Any) -> bool:
    """Return True for a message of a model."""
    # A message without a role must have a member that only answers have. With the role of a user
    # or a tool it is not an answer, whatever it holds.
    role = get(obj, "role")
    if role not in (None, "assistant", "model"):
        return False
    if not isinstance(get(obj, "content"), (str, list, tuple, type(None))):
        return False
    return role is not None or any(get(obj, name) is not None for name in MESSAGE_MEMBERS)


def _take_message(message: Any, assembly: Assembly, *, whole: bool = True) -> None:
    content = get(message, "content")
    thought = get(message, "reasoning_content")
    # A list of parts has its reasoning in the parts, and `reasoning` may repeat it.
    if not thought and not isinstance(content, (list, tuple)):
        thought = get(message, "reasoning") or get(message, "thinking")
    assembly.think(thought)

    # Cohere's plan comes before the calls.
    assembly.think(get(message, "tool_plan"))

    before = len(assembly.calls)
    parts = get(message, "parts")  # of OpenTelemetry's convention, and of pydantic-ai
    for said in (content, parts):
        if isinstance(said, (str, type(None))):
            assembly.say(said)
            continue
        for part in said if isinstance(said, (list, tuple)) else [said]:
            take_part(part, assembly, assembly.next_index())
    assembly.refuse(get(message, "refusal"))

    calls = get(message, "tool_calls")
    if calls and not isinstance(calls, (list, tuple)):
        assembly.miss("tool_calls", calls)
    calls = items(calls)
    # Some clients have the calls in the parts, and list them once more.
    if not (whole and len(assembly.calls) > before):
        assembly.call_list(calls, whole=whole)
    # Of messages of the AI SDK's user interface, which has them among the parts as well.
    if not len(assembly.calls) > before:
        for call in parts_in(get(message, "toolInvocations")):
            take_part({"type": "tool_invocation", "toolInvocation": call}, assembly,
                      assembly.next_index())  # fmt: skip
    legacy = get(message, "function_call")
    if legacy is not None and not calls:
        assembly.call("function_call", name=get(legacy, "name"), arguments=get(legacy, "arguments"))
    assembly.doubt(message, _KNOWN_MEMBERS)


def _take_item(item: Any, assembly: Assembly, index: Any) -> None:
    # Of the Responses API. An item without a type is a message.
    if get(item, "type") is None and get(item, "content") is not None:
        item = {"type": "message", "content": get(item, "content")}
    take_part(item, assembly, index)


def _look(part: Any, assembly: Assembly, index: Any = None) -> None:
    # For what is missed alone: all else comes, or came, in pieces. Those under the index of what is
    # no call are no pieces of one.
    aside = Assembly()
    aside.offered = assembly.offered
    take_part(part, aside, 0)
    assembly.missed |= aside.missed
    if index is not None and not aside.calls:
        assembly.pass_over(index)


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


# Ollama's own API and llama.cpp's, whose pieces have the shape of whole answers: `message` of
# /api/chat, `response` of /api/generate, `content` of /completion. Calls come whole, one a piece.

_OLLAMA_COUNTS = {"prompt_eval_count": "prompt_tokens", "eval_count": "completion_tokens"}


def is_ollama(obj: Any) -> bool:
    """Return True for an answer of Ollama's own API or llama.cpp's, or a piece of one."""
    if isinstance(get(obj, "stop"), bool) and isinstance(get(obj, "content"), str):
        return get(obj, "role") is None
    has_text = get(obj, "message") is not None or isinstance(get(obj, "response"), str)
    return has_text and isinstance(get(obj, "done"), bool)


def take_ollama(obj: Any, assembly: Assembly) -> bool:
    """Take in an answer of Ollama's own API or llama.cpp's, or a piece of one."""
    assembly.choices = max(assembly.choices, 1)
    assembly.identify(obj)
    message = get(obj, "message")
    if message is not None:
        assembly.think(get(message, "thinking"))
        content = get(message, "content")
        for part in content if isinstance(content, (list, tuple)) else [content]:
            take_part(part, assembly, assembly.next_index())
        for call in parts_in(get(message, "tool_calls")):
            name, arguments = name_and_arguments(call)
            if name is None and arguments is None:
                assembly.miss(get(call, "type") or "tool_calls", call)
            else:
                assembly.call(("ollama", len(assembly.calls)), name=name, arguments=arguments)
        assembly.doubt(message, _KNOWN_MEMBERS)
    else:
        assembly.completion = True
        assembly.think(get(obj, "thinking"))
        assembly.say(get(obj, "content") if get(obj, "response") is None else get(obj, "response"))
    assembly.tokens.take_logprobs(get(obj, "logprobs"))
    if get(obj, "done") or get(obj, "stop") is True:
        is_cut = get(obj, "stop_type") == "limit"
        assembly.finish("length" if is_cut else get(obj, "done_reason") or "stop")
        counts = {ours: get(obj, theirs) for theirs, ours in _OLLAMA_COUNTS.items()}
        assembly.usage = {k: v for k, v in counts.items() if isinstance(v, int)} or None
    return True


# Texts of models that are invoked in a shape of their own: Llama, Titan, Mistral and old Claude on
# Bedrock, text generation servers, watsonx.

TEXTS = ("generation", "generated_text", "outputText", "completion")
LISTS = ("results", "outputs")


def invoked_text(obj: Any) -> str | None:
    """Return the text of such an answer, None for anything else."""
    text = next((text for name in TEXTS if isinstance(text := get(obj, name), str)), None)
    listed = next((inner for name in LISTS if (inner := items(get(obj, name)))), None)
    if text is None and listed:
        text = invoked_text(listed[0])
        if text is None and get(listed[0], "stop_reason") is not None:
            text = get(listed[0], "text")
    return text if isinstance(text, str) else None


def is_invoked(obj: Any) -> bool:
    """Return True for such an answer."""
    return invoked_text(obj) is not None


def take_invoked(obj: Any, assembly: Assembly) -> bool:
    """Take in such an answer."""
    assembly.completion = True
    assembly.say(invoked_text(obj))
    assembly.finish(get(obj, "stop_reason"))
    return True


# Chunks of a stream. Each is read on its own: all that must be remembered between two of them is
# in the Assembly.


def take_chat_chunk(chunk: Any, assembly: Assembly) -> bool:
    """Take in a chunk of a chat or text completion."""
    assembly.identify(chunk)
    assembly.tokens.take_response(chunk)
    assembly.finish(get(chunk, "finish_reason"))
    if (error := get(chunk, "error")) is not None:
        assembly.fail(error)
    for number, choice in enumerate(get(chunk, "choices")):
        place = place_of(choice, number)
        assembly.choices = max(assembly.choices, place + 1)
        if place == assembly.choice:
            _take_delta(choice, assembly)
    return True


def place_of(choice: Any, number: int) -> int:
    """Return which answer a choice is of: its index, or its number in its chunk."""
    index = get(choice, "index")
    return index if isinstance(index, int) and 0 <= index < _MOST_CHOICES else number


_MOST_CHOICES = 1024  # more than any provider gives: each answer that there may be is looked at


def _take_delta(choice: Any, assembly: Assembly) -> None:
    assembly.finish(get(choice, "finish_reason"))
    assembly.tokens.take_choice(choice)
    delta = get(choice, "delta")
    assembly.finish(get(delta, "finish_reason"))  # where some servers have it
    if (error := get(choice, "error")) is not None:
        assembly.fail(error)
    # Whole answers in event streams: some servers do so for one that is short.
    message = delta if delta is not None else get(choice, "message")
    if message is not None:
        _take_message(message, assembly, whole=delta is None)
    elif get(choice, "text") is not None:
        assembly.completion = True
        assembly.say(get(choice, "text"))
    else:
        assembly.doubt(choice, _OF_CHOICE)


_OF_CHOICE = frozenset((
    "index", "finish_reason", "logprobs", "delta", "message", "text", "stop_reason",
    "native_finish_reason", "content_filter_results", "token_ids", "matched_stop", "seed",
    "prompt_token_ids", "error",
))  # fmt: skip


def _is_call(item: Any, assembly: Assembly) -> bool:
    # A custom tool may be one that the server runs.
    kind = get(item, "type")
    own = kind == "custom_tool_call" and not is_of_server(item, assembly)
    return kind == "function_call" or own


class _CallItems:
    # The calls of a Responses stream, each under a key of its own. Servers give them item ids, call
    # ids and places, or some of these, and say them in every event or only once. An id decides, and
    # the place only where no other item was there: some servers give all items the same one.
    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._keys: dict[tuple[str, Any], int] = {}
        self._over: set[int] = set()  # said as a whole item
        self._fed: set[int] = set()  # of which an event with an item id said arguments

    def known(self, item_id: Any, call_id: Any) -> int | None:
        for kind, id in (("call_id", call_id), ("id", item_id)):
            if isinstance(id, str) and (kind, id) in self._keys:
                return self._keys[kind, id]
        return None

    def of_part(self, event: Any) -> int:
        """Return the key of the call of which an event says arguments, or a part of them."""
        place, item_id = label(get(event, "output_index")), get(event, "item_id")
        key = self.known(item_id, None)
        if key is None:
            key = self._at(place, self._over, self._fed if item_id else ())
        if item_id:
            self._fed.add(key)
        return self._note(key, place, item_id, None)

    def of_item(self, item: Any, place: Any, *, over: bool) -> int:
        """Return the key of an item that is announced, or (over) said as a whole."""
        item_id, call_id = get(item, "id"), get(item, "call_id")
        key = self.known(item_id, call_id)
        if key is None:
            # One that is announced is new. One that is whole may have been announced without ids.
            key = self._at(place, self._over if over else self.names)
        if over:
            self._over.add(key)
        return self._note(key, place, item_id, call_id)

    def _at(self, place: Any, *others: Collection[int]) -> int:
        # The call at a place, or the last one where the event tells no place; else a new one.
        key = self._keys.get(("place", place), -1) if place is not None else len(self.names) - 1
        return len(self.names) if key < 0 or any(key in keys for keys in others) else key

    def _note(self, key: int, place: Any, item_id: Any, call_id: Any) -> int:
        self.names.setdefault(key, "")
        for kind, id in (("call_id", call_id), ("id", item_id), ("place", place)):
            if isinstance(id, (str, int)) and id != "":
                self._keys[kind, id] = key
        return key


def _state_item(item: Any, assembly: Assembly, key: int) -> None:
    name, arguments = get(item, "name"), get(item, "arguments")
    if isinstance(name, str) and name:
        assembly.items.names[key] = name
    assembly.state(
        ("item", key),
        id=get(item, "call_id") or get(item, "id"),
        name=name,
        arguments=get(item, "input") if arguments is None else arguments,
    )


def _state_items(output: Any, assembly: Assembly) -> None:
    # The calls of a finished response. Some servers give them other ids than in the stream: then
    # the first one of that name that no id claims is meant.
    found = [item for item in items(output) if _is_call(item, assembly)]
    known = assembly.items
    keys = [known.known(get(item, "id"), get(item, "call_id")) for item in found]
    left: dict[Any, deque[int]] = {}  # by name
    for unclaimed in sorted(known.names.keys() - set(keys)):
        left.setdefault(known.names[unclaimed], deque()).append(unclaimed)
    for item, key in zip(found, keys, strict=True):
        if key is None:
            waiting = [left.get(name) for name in ("", label(get(item, "name")))]
            firsts = [of_name for of_name in waiting if of_name]
            if firsts:
                key = min(firsts, key=itemgetter(0)).popleft()
            else:
                key = known.of_item(item, ("new", len(known.names)), over=True)
        _state_item(item, assembly, key)


_DELTAS = {
    "output_text.delta": Assembly.say,
    "refusal.delta": Assembly.refuse,
    "reasoning_text.delta": Assembly.think,
    "reasoning_summary_text.delta": Assembly.think,
}
_CALL_DELTAS = ("function_call_arguments.delta", "custom_tool_call_input.delta")
_CALL_WHOLES = ("function_call_arguments.done", "custom_tool_call_input.done")
_STATES = frozenset(("created", "in_progress", "completed", "incomplete", "failed", "done"))


# Events that announce or repeat what comes in others, and those of tools that the server runs.
_QUIET = re.compile(
    r"(?:output_text|refusal|reasoning|reasoning_text|reasoning_summary|reasoning_summary_text"
    r"|reasoning_summary_part|content_part|output_item|function_call_arguments|audio"
    r"|audio\.transcript|custom_tool_call_input|code_interpreter_call_code"
    r"|mcp_call_arguments|output_text\.annotation)\.(?:added|done|delta)"
    r"|(?:web_search|x_search|file_search|code_interpreter|code_execution|image_generation|mcp"
    r"|collections_search|tool_search)_(?:call|list_tools)\.\w+"
    r"|mcp_list_tools\.\w+|queued|keepalive|heartbeat|rate_limits\.updated"
)


def take_responses_event(event: Any, assembly: Assembly) -> bool:
    """Take in an event of the Responses API."""
    _take_responses_event(get(event, "type").removeprefix("response."), event, assembly)
    return True


def _take_responses_event(kind: str, event: Any, assembly: Assembly) -> None:
    # Of a call everything counts that says a part of it or the whole: servers leave out any of
    # these events. Other `….done` events only repeat what came in deltas.
    assembly.choices = max(assembly.choices, 1)
    place, item = label(get(event, "output_index")), get(event, "item")
    if kind in _DELTAS:
        _DELTAS[kind](assembly, get(event, "delta"))
        assembly.tokens.take_logprobs(get(event, "logprobs"))
    elif kind in _CALL_DELTAS or kind in _CALL_WHOLES:
        if assembly.passes(place) and assembly.items.known(get(event, "item_id"), None) is None:
            return
        key = assembly.items.of_part(event)
        if kind in _CALL_DELTAS:
            assembly.call(("item", key), arguments=get(event, "delta"))
        else:
            _state_item(event, assembly, key)
    elif kind in ("output_item.added", "output_item.done"):
        over = kind == "output_item.done"
        if _is_call(item, assembly):
            _state_item(item, assembly, assembly.items.of_item(item, place, over=over))
        elif over and get(item, "type") == "message" and assembly.says_nothing:
            _take_item(item, assembly, place)
        else:
            # Others begin empty, and come whole in their deltas.
            _look(item, assembly, None if over else place)
    elif kind in ("content_part.added", "content_part.done"):
        _look(get(event, "part"), assembly)
    elif kind in _STATES:
        response = get(event, "response")
        if response is None:
            return
        assembly.identify(response)
        assembly.tokens.take_response(response)
        if kind in ("completed", "done"):  # the last is of the Realtime API
            says, thinks = not assembly.says_nothing, bool(assembly.reasoning)
            for number, item in enumerate(parts_in(get(response, "output"))):
                known = {"message": says, "reasoning": thinks}.get(str(get(item, "type")), False)
                if known:
                    _look(item, assembly)
                elif not _is_call(item, assembly):
                    _take_item(item, assembly, ("item of", number))
            _state_items(get(response, "output"), assembly)
        _end_response(response, assembly)
    elif kind == "error":
        assembly.fail(event)
    elif not _QUIET.fullmatch(kind):
        assembly.miss(f"response.{kind}", event)


ANTHROPIC_EVENTS = frozenset(
    ("message_start", "content_block_start", "content_block_delta", "content_block_stop",
     "message_delta", "message_stop", "ping", "error")
)  # fmt: skip


_QUIET_DELTAS = frozenset(("signature_delta", "citations_delta", "compaction_delta"))


def take_anthropic_event(event: Any, assembly: Assembly) -> bool:
    """Take in an event of Anthropic's messages."""
    kind = get(event, "type")
    assembly.choices = max(assembly.choices, 1)
    block, delta = get(event, "content_block"), get(event, "delta")
    index = label(get(event, "index"))
    if kind == "message_start":
        message = get(event, "message")
        assembly.identify(message)
        for part in items(get(message, "content")):
            take_part(part, assembly, assembly.next_index())
    elif kind == "content_block_start" and get(block, "type") == "tool_use":
        # An empty object is there for input that comes in pieces afterwards, as JSON text.
        arguments = get(block, "input") or None
        assembly.call(
            ("block", index), id=get(block, "id"), name=get(block, "name"), arguments=arguments
        )
    elif kind == "content_block_start":
        _look(block, assembly, ("block", index))
        assembly.say(get(block, "text"))
        assembly.think(get(block, "thinking"))
    elif kind == "content_block_delta":
        # Pieces of some kinds (signatures, citations) are no words of the model.
        part = label(get(delta, "type"))
        if part == "text_delta":
            assembly.say(get(delta, "text"))
        elif part == "thinking_delta":
            assembly.think(get(delta, "thinking"))
        elif part == "input_json_delta":
            piece = get(delta, "partial_json")
            assembly.inputs[index] = bool(piece) or assembly.inputs.get(index, False)
            assembly.call(("block", index), arguments=piece)
        elif part not in _QUIET_DELTAS and keys_of(delta):
            assembly.miss(part, delta)
    elif kind == "content_block_stop":
        # A call without arguments has one piece of input, which is empty; none at all was lost.
        if assembly.inputs.get(index) is False:
            assembly.state(("block", index), arguments={})
    elif kind == "message_delta":
        assembly.identify(event)
        assembly.finish(get(delta, "stop_reason"))
    elif kind == "error":
        assembly.fail(get(event, "error") or event)
    return True
