"""Parts of a message: one reader for those of every provider, SDK and convention."""

# How it works. A part says its kind by `type` (pydantic-ai: `part_kind`), Gemini's and Bedrock's by
# the one member that they have. A kind is either read (`_READERS`), or known to say nothing that a
# client has to read or to execute (`assembly.is_seen`). Whatever is in neither table is missed,
# with its keys: a part that nobody knows may be a call. Responses API items, Anthropic's blocks,
# AI SDK parts and OpenTelemetry's GenAI parts differ in the names of members alone, so their
# readers are the same.

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any, TypeAlias

from ...core.types.call_pieces import json_value, label
from ...core.types.call_pieces import member as get
from ...core.values import write_canonical
from .assembly import Assembly, is_seen, keys_of, plain_kind

_Reader: TypeAlias = Callable[[Any, Assembly, Any], bool]

IDS = ("call_id", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "id")
NAMES = ("name", "toolName", "tool_name")
ARGUMENTS = ("arguments", "input", "args", "parameters")
_TEXTS = ("text", "content", "value")
_THOUGHTS = ("thinking", "text", "reasoning", "reasoningText", "reasoning_text")
_LISTED_THOUGHTS = ("content", "summary")

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
_Texts: TypeAlias = list[tuple[Any, Any]]
"""places of the texts that are being written, each a node and a step"""
# `$.a.b[0]`, and `$['a b']`.
_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]""")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_SNAKE = {name: re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", name) for name in _VALUES}
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
        return kind, _READERS.get(plain_kind(kind)) or (_call if is_named else None)
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


def take_partial(call: Any, assembly: Assembly, index: Any) -> bool:
    """Take in a piece of a call whose arguments come value by value. False for any other call."""
    pieces = get(call, "partialArgs") or get(call, "partial_args")
    more = get(call, "willContinue") or get(call, "will_continue")
    name = get(call, "name")
    if not name and assembly.partial is None:
        return False
    if name:
        if not pieces and not more:
            return False
        end_partial(assembly)
        assembly.call(index, id=get(call, "id"), name=name)
        assembly.partial = index, {}, []
    if assembly.partial is not None:
        place, tree, texts = assembly.partial
        for piece in pieces if isinstance(pieces, (list, tuple)) else ():
            _put(tree, texts, piece)
        if not more:
            assembly.partial = None
            _join(texts)
            assembly.call(place, arguments=tree)
    return True


def end_partial(assembly: Assembly) -> None:
    """End a call of which no last piece came: its arguments stay open."""
    if assembly.partial is not None:
        (place, tree, texts), assembly.partial = assembly.partial, None
        _join(texts)
        assembly.call(place, arguments=write_canonical(json_value(tree))[:-1])


def _join(texts: _Texts) -> None:
    for node, step in texts:
        if isinstance(text := node[step], StringIO):
            node[step] = text.getvalue()


def _put(tree: dict[str, Any], texts: _Texts, piece: Any) -> None:
    path = get(piece, "jsonPath") or get(piece, "json_path")
    steps: list[Any] = [
        int(number) if number else key or quoted or doubly
        for key, number, quoted, doubly in _STEP.findall(path if isinstance(path, str) else "")
    ]
    found = next(
        (n for n in _VALUES if get(piece, n) is not None or get(piece, _SNAKE[n]) is not None), None
    )
    if not steps or found is None:
        return
    value = get(piece, found)
    value = get(piece, _SNAKE[found]) if value is None else value
    if found == "stringValue" and not isinstance(value, str):
        return
    node: Any = tree
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(node, list) and isinstance(step, int):
            node += [None] * (min(step, len(node)) + 1 - len(node))
            step = min(step, len(node) - 1)
        elif not isinstance(node, dict):
            return
        before = node[step] if isinstance(node, list) else node.get(step)
        if after is not None:
            empty: Any = [] if isinstance(after, int) else {}
            node[step] = node = before if isinstance(before, (dict, list)) else empty
        elif found == "stringValue" and isinstance(before, StringIO):
            before.write(value)
        elif found == "stringValue":
            node[step] = StringIO()
            node[step].write(value)
            texts.append((node, step))
        else:
            node[step] = None if found == "nullValue" else value


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
