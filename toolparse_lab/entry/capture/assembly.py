"""The parts that were received of an answer, put together: texts, thoughts, calls, and what nobody
knows.
"""

# How it works. Every reader of a shape (whole answers, chunks, parts) calls the same few methods of
# one Assembly: say, think, refuse, call, finish, and miss for what nobody knows. It keeps pieces in
# lists and joins them once, so that the cost is linear in the text. Calls are found by an index of
# the reader's own choice, which need only be the same for all pieces of one call.

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from ...core.types.call_pieces import CallPieces, json_value, label, name_and_arguments
from ...core.types.call_pieces import member as get
from ...core.types.tokens import TokenPieces
from ...core.values import write_canonical

_SEEN = frozenset((
    # media and references
    "audio", "blob", "document", "file", "image", "image_file", "image_url", "input_audio",
    "input_file", "input_image", "media", "output_audio", "output_image", "resource",
    "resource_link", "uri", "video", "video_url", "citation", "reference", "references",
    "search_result", "source", "source_document", "source_url", "url_citation", "container_upload",
    # what only the provider can read
    "compaction", "encrypted", "item_reference", "reasoning_encrypted", "redacted_reasoning",
    "redacted_thinking", "signature", "cache_point", "guard_content", "fallback",
    # tools that the server runs itself, and their results
    "server_tool_use", "server_tool_call", "server_tool_result", "server_tool_call_response",
    "mcp_tool_use", "mcp_tool_result", "web_search_tool_result", "web_fetch_tool_result",
    "code_execution_tool_result", "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result", "tool_search_tool_result", "advisor_tool_result",
    "web_search_call", "x_search_call", "collections_search_call", "file_search_call",
    "code_interpreter_call", "code_execution_call", "image_generation_call", "view_image_call",
    "view_x_video_call", "mcp_call", "mcp_list_tools", "mcp_approval_request",
    "mcp_approval_response", "tool_search_call", "tool_search_output", "builtin_tool_call",
    "builtin_tool_return", "tool_execution", "tool_reference", "google_search_call",
    "google_search_result", "url_context_call", "url_context_result", "code_execution_result",
    "mcp_server_tool_call", "mcp_server_tool_result",
    # results of the client's tools, and marks of an SDK
    "tool_result", "tool_call_response", "tool_response", "tool_return", "tool_error",
    "tool_output_denied", "tool_approval_request", "tool_approval_response", "function_response",
    "function_call_output", "custom_tool_call_output", "step_start", "step_finish", "retry_prompt",
))  # fmt: skip
_IDS = ("id", "model", "provider", "system_fingerprint")
_MOST_KEYS, _LONGEST_KEY = 8, 40
_OWN_WORDS: Mapping[str, str] = {}
_OF_CALL = frozenset(("function", "custom", "name", "arguments", "input", "parameters", "args"))
_OF_PIECE = frozenset(("id", "index", "type"))
_DEEPEST = 200  # levels; Python's own limit on recursion is 1,000 calls


def _note(noted: dict[str, Any], kind: Any, part: Any) -> None:
    keys = [key[:_LONGEST_KEY] for key in keys_of(part)]
    shown = ", ".join([*keys[:_MOST_KEYS], *(["…"] if len(keys) > _MOST_KEYS else [])])
    noted.setdefault(f"{str(kind or 'part')[:_LONGEST_KEY]} ({shown})", part)


def _is_odd_call(call: Any, whole: bool) -> bool:
    if type(call) is dict and not _OF_CALL.isdisjoint(call):
        return False
    keys = set(keys_of(call))
    return not _OF_CALL & keys and (whole or bool(keys - _OF_PIECE))


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
        self.items = CallItems()
        self.inputs: dict[Any, bool] = {}  # Anthropic's blocks with input -> if it has text
        # Names of the tools that the request offered, where the response repeats them.
        self.offered: frozenset[str] = frozenset()
        # Of a call whose arguments come value by value, see `parts.take_partial`.
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


class CallItems:
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


def keys_of(part: Any) -> list[str]:
    """Return the names of the members of an object that are not empty, the numbers of a list's
    items, and the type of a value that has neither.
    """
    if isinstance(part, (list, tuple)):
        return list(map(str, range(len(part))))
    if isinstance(part, (str, bytes, int, float)):
        return [type(part).__name__]
    if not isinstance(part, Mapping):
        # Clients keep what they do not know apart.
        extra = getattr(part, "__pydantic_extra__", None) or {}
        part = {**(getattr(part, "__dict__", None) or {}), **extra}
    return [str(name) for name, value in part.items() if value is not None]


def is_seen(kind: Any) -> bool:
    """Return True for a kind that a client has neither to read nor to execute."""
    return isinstance(kind, str) and plain_kind(kind) in _SEEN


def plain_kind(kind: str) -> str:
    """Return a kind as the tables of kinds spell it."""
    return kind.replace("-", "_").replace(".", "_")


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
