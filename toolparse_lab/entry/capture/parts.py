"""Parts of a message: one reader for those of every provider, SDK and convention."""

# How it works. A part says its kind by `type` (pydantic-ai: `part_kind`), Gemini's and Bedrock's by
# the one member that they have. A kind is either read (`_READERS`), or known to say nothing that a
# client has to read or to execute (`_SEEN`: media, citations, signatures, the tools that a server
# runs itself, results). Whatever is in neither table is missed, with its keys: a part that nobody
# knows may be a call. Responses API items, Anthropic's blocks, AI SDK parts and OpenTelemetry's
# GenAI parts differ in the names of members alone, so their readers are the same.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.types.call_pieces import json_value, label
from ...core.types.call_pieces import member as get
from ...core.values import write_canonical
from .partial_arguments import take_partial

if TYPE_CHECKING:
    from .shapes import Assembly

_Reader: TypeAlias = "Callable[[Any, Assembly, Any], bool]"

IDS = ("call_id", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "id")
NAMES = ("name", "toolName", "tool_name")
ARGUMENTS = ("arguments", "input", "args", "parameters")
_TEXTS = ("text", "content", "value")
_THOUGHTS = ("thinking", "text", "reasoning", "reasoningText", "reasoning_text")
_LISTED_THOUGHTS = ("content", "summary")

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
_OF_TEXT = frozenset((
    "type", "part_kind", "id", "text", "content", "value", "thought", "thoughtSignature",
    "thought_signature", "signature", "annotations", "logprobs", "citations", "index", "phase",
    "status", "state", "cache_control", "providerMetadata", "providerOptions", "provider_name",
    "provider_details", "provider_metadata", "metadata", "extras",
))  # fmt: skip
# Custom tools of xAI's that it runs itself; nothing else tells them from a client's.
_SERVER_TOOLS = frozenset((
    "web_search", "web_search_with_snippets", "browse_page", "open_page", "open_page_with_find",
    "x_keyword_search", "x_semantic_search", "x_user_search", "x_thread_fetch", "view_image",
    "view_x_video", "code_execution", "collections_search", "file_search",
))  # fmt: skip


_UNFINISHED = ("input-streaming", "partial-call")  # states of the AI SDK's parts


def first_of(part: Any, names: tuple[str, ...]) -> Any:
    """Return the first of these members that is there, None if there is none."""
    return next((value for name in names if (value := get(part, name)) is not None), None)


def text_in(value: Any) -> str:
    """Return a text, or those of parts or of an object around one, joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return "".join(map(text_in, value))
    inner = None if value is None else first_of(value, (*_THOUGHTS, *_TEXTS))
    return text_in(inner) if inner is not value else ""


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
    return isinstance(kind, str) and _plain(kind) in _SEEN


def _plain(kind: str) -> str:
    return kind.replace("-", "_").replace(".", "_")


def take_part(part: Any, assembly: Assembly, index: Any) -> None:
    """Take in a part of an answer, or an item of one. index: of the call that it may be."""
    if isinstance(part, str):
        assembly.say(part)
    elif part is not None:
        kind, reader = _reader_of(part)
        if get(part, "providerExecuted") is True:
            assembly.pass_over(index)
        else:
            try:
                is_read = reader is not None and reader(part, assembly, index)
            except RecursionError:  # parts in parts, deeper than any provider nests them
                is_read = False
            if not is_read:
                assembly.miss(kind, part)


def _reader_of(part: Any) -> tuple[str, _Reader | None]:
    kind = get(part, "type")
    if kind is None:
        kind = get(part, "part_kind")
    if kind is not None and not isinstance(kind, str):
        return "", None
    if kind is not None:
        if is_seen(kind):
            return kind, _seen
        # A part of the AI SDK's messages has the tool's name in its kind.
        is_named = kind.startswith("tool-") and get(part, "toolCallId") is not None
        return kind, _READERS.get(_plain(kind)) or (_call if is_named else None)
    member = next((name for name in _MEMBERS if get(part, name) is not None), "")
    if not member and _OF_TEXT.issuperset(keys_of(part)):
        return member, _seen
    return member, _MEMBERS.get(member)


def _text(part: Any, assembly: Assembly, index: Any) -> bool:
    value = first_of(part, _TEXTS)
    text = text_in(value)
    assembly.think(text) if get(part, "thought") is True else assembly.say(text)
    assembly.tokens.take_logprobs(get(part, "logprobs"))
    # An empty text beside something else says nothing of that, nor an object that holds none.
    return bool(text) or (not value and _OF_TEXT.issuperset(keys_of(part)))


def _thought(part: Any, assembly: Assembly, index: Any) -> bool:
    value = first_of(part, _THOUGHTS)
    # Of the Responses API: its text, where the provider shows it, and the summary.
    values = [get(part, name) for name in _LISTED_THOUGHTS] if value is None else [value]
    for text in values:
        for one in text if isinstance(text, (list, tuple)) else (text,):
            assembly.think(text_in(one))
    return True


def _refusal(part: Any, assembly: Assembly, index: Any) -> bool:
    assembly.refuse(get(part, "refusal"))
    return True


def _call(part: Any, assembly: Assembly, index: Any) -> bool:
    name, arguments = first_of(part, NAMES), first_of(part, ARGUMENTS)
    if name is None:
        # In the kind, see `_reader_of`; and a part without either is no call.
        kind = str(get(part, "type"))
        name = kind.removeprefix("tool-") if kind.startswith("tool-") else None
        if arguments is None and (name is None or name == "call"):
            return False
    if get(part, "state") in _UNFINISHED and not isinstance(arguments, str):
        # An object that was made of the beginning of its text.
        arguments = write_canonical(json_value(arguments or {}))[:-1]
    elif isinstance(arguments, Mapping) and get(part, "arguments") is None:
        # Under these names an object is what the interface has, as others have a text.
        arguments = write_canonical(json_value(arguments))
        assembly.has_objects = True
    assembly.call(index, id=first_of(part, IDS), name=name, arguments=arguments)
    return True


def is_of_server(item: Any, assembly: Assembly) -> bool:
    """Return True for a custom tool that the server runs itself."""
    name = label(get(item, "name"))
    return name in _SERVER_TOOLS and name not in assembly.offered


def _custom(part: Any, assembly: Assembly, index: Any) -> bool:
    if not is_of_server(part, assembly):
        return _call(part, assembly, index)
    assembly.pass_over(index)
    return True


def _call_in(*members: str) -> _Reader:
    # The call is an object under one of these members of the part.
    def read(part: Any, assembly: Assembly, index: Any) -> bool:
        call = first_of(part, members)
        if is_seen(get(call, "type")):
            assembly.pass_over(index)
            return True
        return take_partial(call, assembly, index) or _call(call, assembly, index)

    return read


def _reasoning_content(part: Any, assembly: Assembly, index: Any) -> bool:
    assembly.think(text_in(get(part, "reasoningContent")))
    return True


def _cited(part: Any, assembly: Assembly, index: Any) -> bool:
    assembly.say(text_in(get(get(part, "citationsContent"), "content")))
    return True


def _message(part: Any, assembly: Assembly, index: Any) -> bool:
    content = get(part, "content")
    for number, inner in enumerate(content if isinstance(content, (list, tuple)) else (content,)):
        take_part(inner, assembly, (index, number))
    return True


def _seen(part: Any, assembly: Assembly, index: Any) -> bool:
    assembly.pass_over(index)
    return True


_READERS: Mapping[str, _Reader] = {
    **dict.fromkeys(("text", "output_text", "input_text"), _text),
    **dict.fromkeys(
        ("thinking", "thought", "reasoning", "reasoning_text", "summary_text"), _thought
    ),
    **dict.fromkeys(("tool_use", "tool_call", "dynamic_tool", "function_call"), _call),
    "refusal": _refusal,
    "custom_tool_call": _custom,
    **dict.fromkeys(("message", "message_output"), _message),
    "function": _call_in("function"),
    "tool_invocation": _call_in("toolInvocation"),
}
# The members by which parts without a kind are known: Gemini's in both spellings, then Bedrock's.
# A text comes last: other members of its part say more.
_MEMBERS: Mapping[str, _Reader] = {
    **dict.fromkeys(("functionCall", "function_call"), _call_in("functionCall", "function_call")),
    "toolUse": _call_in("toolUse"),
    "reasoningContent": _reasoning_content,
    "citationsContent": _cited,
    **dict.fromkeys((
        "functionResponse", "function_response", "executableCode", "executable_code",
        "codeExecutionResult", "code_execution_result", "inlineData", "inline_data", "fileData",
        "file_data", "toolCall", "toolResponse", "tool_response", "toolResult", "image",
        "document", "video", "audio", "guardContent", "cachePoint", "searchResult", "videoMetadata",
        "video_metadata",
    ), _seen),
    "text": _text,
}  # fmt: skip
