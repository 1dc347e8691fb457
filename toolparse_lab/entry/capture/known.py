"""Which shape an answer has: one table of all that are known."""

# How it works. There is no version or schema to tell shapes apart by, and clients of one shape
# differ in what they leave out. So a shape is known by the one member that only it has, asked for
# in an order in which no earlier shape can claim a later one; anything else is refused, and nothing
# is guessed from the words of a model. Every question about shapes is answered from the table:
# whether an object is an answer or a piece of one, whether a text is the JSON of one, and which
# shape is nearest to an object of none.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...core.types.call_pieces import member as get
from . import ai_sdk, bedrock, cohere, gemini, shapes
from .assembly import Assembly, keys_of

_Question: TypeAlias = Callable[[Any], bool]
_Taker: TypeAlias = Callable[[Any, Assembly], bool]


def _never(obj: Any) -> bool:
    return False


def _nothing(obj: Any, assembly: Assembly) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Body:
    """A shape of answers.

    title: as errors name it. needs: members of which each of its objects has one. members: what its
    objects mostly have, the telling ones first. is_it, take: of a whole answer. is_piece,
    take_piece: of a piece of a stream. written: True for the JSON text of a response, which a model
    would not write as its answer.
    """

    title: str
    needs: frozenset[str]
    members: tuple[str, ...]
    is_it: _Question
    take: _Taker
    is_piece: _Question = _never
    take_piece: _Taker = _nothing
    written: _Question = _never


def _is_chat(obj: Any) -> bool:
    return isinstance(get(obj, "choices"), (list, tuple))


def _chat_written(obj: Any) -> bool:
    # A message may be null where a content filter took it.
    return any(
        isinstance(c, dict) and not {"message", "delta", "text"}.isdisjoint(c)
        for c in obj["choices"]
    )


# Of Mistral's agents and Gemini's interactions: items like those of the Responses API.
_OF_OUTPUTS = ("conversation.response", "interaction")


def _is_responses(obj: Any) -> bool:
    # Other frameworks call their results `output` too, without a status.
    if isinstance(get(obj, "outputs"), (list, tuple)):
        return get(obj, "object") in _OF_OUTPUTS
    return isinstance(get(obj, "output"), (list, tuple)) and (
        get(obj, "object") == "response" or get(obj, "status") is not None
    )


def _has_type(kinds: Any) -> _Question:
    def is_one(obj: Any) -> bool:
        kind = get(obj, "type")
        return isinstance(kind, str) and kind in kinds

    return is_one


def _is_responses_event(obj: Any) -> bool:
    kind = get(obj, "type")
    if isinstance(kind, str) and kind.startswith("response."):
        return True
    return isinstance(get(obj, "output"), (list, tuple)) and _is_responses(obj)


def _take_responses_piece(obj: Any, assembly: Assembly) -> bool:
    # A whole object in a list of its own is a piece as well.
    whole = not isinstance(get(obj, "type"), str)
    return (shapes.take_responses if whole else shapes.take_responses_event)(obj, assembly)


def is_error(obj: Any) -> bool:
    """Return True for an error in an answer's place."""
    is_own = get(obj, "error") is not None and get(obj, "role") is None
    return is_own or (get(obj, "Error") is not None and get(obj, "ResponseMetadata") is not None)


def _take_error(obj: Any, assembly: Assembly) -> bool:
    error = get(obj, "Error") if get(obj, "error") is None else get(obj, "error")
    if isinstance(error, Mapping) and "Message" in error:
        error = {**error, "message": error["Message"]}
    assembly.fail(error)
    return True


def _is_choice(obj: Any) -> bool:
    return get(obj, "message") is not None or isinstance(get(obj, "text"), str)


BODIES = (
    Body(
        "a chat or text completion", frozenset(("choices",)),
        ("choices", "object", "usage"),
        _is_chat, shapes.take_chat, _is_chat, shapes.take_chat_chunk, _chat_written,
    ),
    Body(
        "a Responses API object", frozenset(("output", "outputs", "type")),
        ("output", "object", "status", "response"),
        _is_responses, shapes.take_responses, _is_responses_event, _take_responses_piece,
        lambda obj: obj.get("object") == "response" and isinstance(obj["output"], list),
    ),
    Body(
        "an Anthropic message", frozenset(("type",)),
        ("content_block", "delta", "message", "index"),
        _never, _nothing,
        _has_type(shapes.ANTHROPIC_EVENTS), shapes.take_anthropic_event,
    ),
    Body(
        "a Gemini response", frozenset(gemini.NEEDS),
        ("candidates", "usageMetadata", "promptFeedback", "modelVersion"),
        gemini.is_gemini, gemini.take_gemini, gemini.is_gemini, gemini.take_gemini_chunk,
        lambda obj: bool(obj.get("candidates")) and all(
            isinstance(c, dict)
            and ("finishReason" in c or isinstance(get(c.get("content"), "parts"), list))
            for c in obj["candidates"]
        ),
    ),
    Body(
        "a Bedrock response",
        frozenset((*bedrock.EVENTS, "output", "contentBlockIndex", "stopReason", "usage")),
        ("output", "stopReason", "metrics", "usage", *bedrock.EVENTS),
        bedrock.is_converse, bedrock.take_converse,
        bedrock.is_converse_event, bedrock.take_converse_event,
        lambda obj: "stopReason" in obj,
    ),
    Body(
        "a Cohere response", frozenset(("generation_id", "message", "type")),
        ("message", "finish_reason", "generation_id", "meta"),
        cohere.is_cohere, cohere.take_cohere,
        _has_type(cohere.EVENTS), cohere.take_cohere_event,
    ),
    Body(
        "a result of the AI SDK", frozenset(("toolCalls", "finishReason", "type")),
        ("toolCalls", "finishReason", "text", "content", "usage"),
        ai_sdk.is_result, ai_sdk.take_result,
        _has_type(ai_sdk.EVENTS), ai_sdk.take_result_part,
    ),
    Body(
        "an error", frozenset(("error", "Error")),
        ("error",), is_error, _take_error, is_error, _take_error,
    ),
    Body(
        "an answer of Ollama", frozenset(("done", "stop")),
        ("message", "response", "done", "done_reason", "eval_count"),
        shapes.is_ollama, shapes.take_ollama, shapes.is_ollama, shapes.take_ollama,
    ),
    Body(
        "a choice", frozenset(("message", "text")),
        ("message", "finish_reason"), _is_choice, shapes.take_choice,
    ),
    Body(
        "a text of an invoked model", frozenset((*shapes.TEXTS, *shapes.LISTS)),
        ("generation", "outputText", "generated_text"), shapes.is_invoked, shapes.take_invoked,
    ),
    Body(
        "a message", frozenset(("role", *shapes.MESSAGE_MEMBERS)),
        ("role", "content", "tool_calls", "parts", "stop_reason"),
        shapes.is_message, shapes.take_own_message,
    ),
)  # fmt: skip


def _shape_of(obj: Any, *, piece: bool = False) -> Body | None:
    is_dict = type(obj) is dict  # of most others it takes longer to ask
    for body in BODIES:
        if is_dict and body.needs.isdisjoint(obj):
            continue
        if body.is_piece(obj) if piece else body.is_it(obj):
            return body
    return None


def take_response(obj: Any, assembly: Assembly) -> bool:
    """Take in a whole answer. Return False for an object that holds none."""
    body = _shape_of(obj)
    return body is not None and body.take(obj, assembly)


def take_chunk(chunk: Any, assembly: Assembly) -> bool:
    """Take in a chunk or an event of a stream. Return False for an object that is neither."""
    body = _shape_of(chunk, piece=True)
    return body is not None and body.take_piece(chunk, assembly)


def is_piece_alone(obj: Any) -> bool:
    """Return True for a piece of a stream that is no whole answer, however damaged."""
    body = _shape_of(obj, piece=True)
    return body is not None and not body.is_it(obj)


def is_event(message: Mapping[str, Any]) -> bool:
    """Return True for the data of an event stream of a known shape, or of one that says a type."""
    return (
        any(name in message for name in ("choices", "type", "error", "output"))
        or _shape_of(message, piece=True) is not None
    )


def is_envelope(obj: Mapping[str, Any]) -> bool:
    """Return True for an object that is an answer of an interface, whatever is in it: a row of
    a log may have a few of the same members.
    """
    body = _shape_of(obj)
    if body is None or body.is_it is is_error:
        return bedrock.is_of_client(obj)
    if body.is_it is shapes.is_invoked:  # rows have columns of such names
        return False
    if body.is_it is _is_choice:
        return isinstance(obj.get("message"), Mapping) and "finish_reason" in obj
    if body.is_it is shapes.is_message:
        is_list = isinstance(obj.get("content"), list)
        is_own = obj.get("type") == "message" and is_list
        return is_own or obj.get("role") == "assistant" or isinstance(obj.get("parts"), list)
    return True


def is_written(obj: Any) -> bool:
    """Return True for the JSON of a response: models do not write the envelope of an answer."""
    return isinstance(obj, dict) and any(
        body.is_it(obj) and body.written(obj) for body in BODIES if body.written is not _never
    )


def nearest_shape(obj: Any) -> str | None:
    """Return the title of the shape with most of an object's members, None if it has none."""
    keys = {key.replace("_", "").casefold() for key in keys_of(obj)}
    shared = {
        body.title: len(keys & {name.replace("_", "").casefold() for name in body.members})
        for body in BODIES
    }
    title = max(shared, key=lambda title: shared[title])
    return title if shared[title] else None
