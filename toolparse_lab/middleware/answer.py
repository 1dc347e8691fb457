"""What a model said, as a message in OpenAI shape.

Calls that are `ok` become tool calls. A body none of whose calls is ok stays in the content as its
original text, so that nothing disappears. White space alone between a call, reasoning or markup and
the next is not content. An answer of nothing but white space stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..arguments.schema.coerce import coerce
from ..core.errors import UnreadableInput
from ..core.toolspec import ToolSpec, tool_specs
from ..core.types import ParseResult, Policy, Problem, ToolCall
from ..core.types.server import same_arguments
from ..core.values import read_strict, write_canonical
from ..formats.tool_names import offered_name
from .attempts import ALL_TEXT, Attempts, CallIds, tool_call, unreadable_call

_RUN_MARKS = ("providerExecuted", "provider_executed")


def fix_tool_call_with_schema(call: Mapping[str, Any], tools: Any) -> dict[str, Any]:
    """Return the call with its arguments coerced to its tool's schema.

    The policy is 'middleware'. The arguments are JSON text.

    Args:
        call: `{toolName, input}`, or a tool call in OpenAI shape. Its other members stay. Calls
            that the provider ran, calls of unknown tools, and arguments that already fit or are not
            JSON stay as they are.

    Raises BadToolSpec.

    >>> tool = {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}
    >>> fix_tool_call_with_schema({"toolName": "f", "input": '{"a": "1"}'}, [tool])
    {'toolName': 'f', 'input': '{"a":1}'}
    """
    return coerce_call(call, {t.name: t for t in tool_specs(tools)}, "middleware")


def coerce_call(
    call: Mapping[str, Any], tools: Mapping[str, ToolSpec], policy: Policy
) -> dict[str, Any]:
    """`fix_tool_call_with_schema` by any policy, with the tools by name."""
    fixed = dict(call)
    inner = fixed.get("function")
    # In OpenAI's shape the name and the arguments are one level down.
    body = dict(inner) if isinstance(inner, Mapping) else fixed
    key = "toolName" if "toolName" in body else "name"
    name = str(body.get(key))
    if name not in tools and not was_run(fixed) and (offered := offered_name(name, tools)):
        name = body[key] = offered.name
    tool = tools.get(name)
    key = "input" if "input" in body else "arguments"
    arguments = body.get(key)
    if body is not fixed:
        fixed["function"] = body
    if tool is None or arguments is None or was_run(fixed):
        return fixed
    is_text = isinstance(arguments, str)
    try:
        value = read_strict(arguments if is_text else write_canonical(arguments))
    except (TypeError, ValueError, RecursionError):
        return fixed
    coerced = coerce(value, tool.schema_json, policy)
    if isinstance(value, dict) and not isinstance(coerced.value, dict):
        return fixed  # arguments are an object, whatever the schema says
    # Arguments that fit keep their own spelling; only objects always become text.
    if coerced.steps or not is_text:
        body[key] = write_canonical(coerced.value)
    return fixed


def written_too(native: Sequence[Mapping[str, Any]], calls: Iterable[ToolCall]) -> frozenset[int]:
    """Return the numbers of a provider's own calls that the text next to them contains as well.

    A server that reads calls and leaves them in the content gives each of them twice. One that
    could not read the arguments gives the call without any.

    native: in OpenAI's shape. calls: those of the text, good or not.
    """
    waiting, numbers = list(calls), set()
    for is_blank in (False, True):
        for number, call in enumerate(native):
            inner = call.get("function")
            if number in numbers or not isinstance(inner, Mapping) or was_run(call):
                continue
            name, text = str(inner.get("name")), inner.get("arguments")
            text = text if isinstance(text, str) else write_canonical(text or {})
            if is_blank and text.strip() not in ("", "{}"):
                continue
            for own in waiting:
                equal = is_blank or (own.ok and same_arguments(text, own))
                if own.name == name and equal:
                    waiting.remove(own)
                    numbers.add(number)
                    break
    return frozenset(numbers)


def was_run(call: Mapping[str, Any]) -> bool:
    """Return True if the provider ran the call itself, so that no one else is to run it."""
    return any(call.get(mark) for mark in _RUN_MARKS)


_PLAIN_ENDS = (None, "stop", "other", "unknown")  # finish reasons that a call turns into another

# Reasons of providers with which an answer is whole. Any other may have cut it off.
_WHOLE_ENDS = (
    *("stop", "other", "unknown", "eos", "end_turn", "stop_sequence", "complete", "completed"),
    *("tool_calls", "tool-calls", "tool_call", "tool_use", "function_call"),
)


@dataclass(frozen=True)
class Answer:
    """A finished answer.

    Attributes:
        message: {role, content, tool_calls, reasoning_content} in OpenAI shape, the last two only
            where there are any. Content is None if there is only a call.
        finish_reason: 'tool_calls' where there are calls and the provider said 'stop' or nothing.
            Any other reason stays.
        result: the parse, None for an answer passed through.
        problems: those of the result and of its calls.
        written_too: the numbers of the provider's own calls that the text contains as well. What
            the text says of them counts, once.
    """

    message: dict[str, Any]
    finish_reason: str
    result: ParseResult | None
    problems: tuple[Problem, ...]
    written_too: frozenset[int] = frozenset()

    @property
    def tool_calls(self) -> tuple[dict[str, Any], ...]:
        """The message's tool calls: those of the text, then those that the provider read itself."""
        return tuple(self.message.get("tool_calls", ()))

    @property
    def original_text(self) -> str:
        """The pieces of the text read as calls, a blank line between each two."""
        if self.result is None:
            return ""
        raw = self.result.raw
        segments = self.result.segments
        return "\n\n".join(s.span.of(raw) for s in segments if s.kind in ("call", "recovered"))


def answer_of(
    result: ParseResult,
    finish_reason: str | None,
    ids: CallIds,
    *,
    attempts: Attempts = ALL_TEXT,
    one_call: bool = False,
    tool_name: str | None = None,
    reasoning: str | None = None,
    native: Iterable[Mapping[str, Any]] = (),
) -> Answer:
    """Return the answer that a parse comes to.

    result: the parse of the answer's text.
    finish_reason: the words that the provider said, None if it said nothing.
    ids: gives each call its id, the same one that its deltas had.
    attempts: the handling of calls that failed.
    one_call: of the calls in the text only the first is made, and the others are neither text nor
    tool calls. tool_name: of the tool that had to be called, None if it could be any.
    reasoning: the words that the provider gave as reasoning by itself, said before that of the
    text. native: tool calls that the provider read itself, which come after those of the text.
    """
    raw = result.raw
    usable = attempts.usable(result.calls)
    # Those that `one_call` leaves out are usable as well, so their text is not content either.
    first = usable[:1] if one_call else usable
    calls = [tool_call(c, ids, c.segment.span.of(raw)) for c in first]
    native = tuple(native)
    twice = written_too(native, result.calls) if native else frozenset()
    calls += [dict(c) for number, c in enumerate(native) if number not in twice]
    called = {c.segment_index for c in usable}
    runs = Runs()
    content = thought = ""
    for i, segment in enumerate(result.segments):
        kind = segment.kind
        # Calls that are not made are text as they were written.
        if kind == "text" or (kind in ("call", "recovered") and i not in called):
            content += runs.add(segment.said(raw))
            continue
        runs.cut()
        if kind == "reasoning":
            thought += segment.said(raw)
    content += runs.end()
    is_no_call = any(problem.code == "choice.no-call" for problem in result.problems)
    if attempts.hands_on_broken and not calls and is_no_call:
        calls, content = [unreadable_call(tool_name, content)], ""
    message: dict[str, Any] = {"role": "assistant", "content": content or (None if calls else "")}
    if reasoning or thought:
        message["reasoning_content"] = both_thoughts(reasoning, thought)
    if calls:
        message["tool_calls"] = calls
    # The provider may have run its own.
    to_run = any(not was_run(c) for c in calls)
    reason = finish_reason_of(finish_reason, to_run)
    return Answer(message, reason, result, tuple(result.all_problems()), twice)


def both_thoughts(first: str | None, second: str) -> str:
    """Reasoning of two places, one line break between them.

    >>> both_thoughts("first", "second").splitlines(), both_thoughts(None, "second")
    (['first', 'second'], 'second')
    """
    return f"{first}\n{second}" if first and second else first or second


def passed_through(
    content: Any, finish_reason: str | None, native: Iterable[Mapping[str, Any]] = ()
) -> Answer:
    """Return an answer that is not ours: unchanged."""
    calls = [dict(c) for c in native]
    # Content that is not a string stays an object: nobody here looks into it.
    message = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = calls
    to_run = any(not was_run(c) for c in calls)
    return Answer(message, finish_reason_of(finish_reason, to_run), None, ())


def finish_reason_of(reason: str | None, called: bool) -> str:
    """Return the name of the answer's end: a call's is 'tool_calls' unless the text was cut or
    filtered.

    reason: the words that the provider said. called: there are calls to run.

    >>> finish_reason_of("stop", True), finish_reason_of("length", True)
    ('tool_calls', 'length')
    """
    if called and reason in _PLAIN_ENDS:
        return "tool_calls"
    return reason or "stop"


def was_cut(reason: str | None) -> bool:
    """Return True if an answer with this finish reason may have ended before its model did.

    reason: the words that the provider said, None if it said nothing.

    >>> was_cut("length"), was_cut("content_filter"), was_cut("stop"), was_cut(None)
    (True, True, False, False)
    """
    return bool(reason) and str(reason).lower() not in _WHOLE_ENDS


class Runs:
    """Runs of content, from one call, piece of reasoning or markup to the next.

    White space waits for a word that makes it content, since between two calls it is none.
    """

    # State: a run is open once it has a word. `_alone` until the first word, reasoning, markup or
    # call, so that an answer of white space alone can go out at the end.

    def __init__(self) -> None:
        self._blanks: list[str] = []
        self._open = False
        self._alone = True

    def add(self, text: str) -> str:
        """Return the text that may go out now."""
        if self._open:
            return text
        self._blanks.append(text)
        if not text or text.isspace():
            return ""
        self._open, self._alone = True, False
        return self._drain()

    def cut(self) -> None:
        """End the run: reasoning, markup or a call follows."""
        self._open = self._alone = False
        self._blanks.clear()

    def end(self) -> str:
        """Return the white space that goes out at the end, where it is the whole answer."""
        return self._drain() if self._alone else ""

    def _drain(self) -> str:
        text = "".join(self._blanks)
        self._blanks.clear()
        return text


@dataclass(frozen=True)
class Content:
    """The content of a message by kind: text, reasoning among its parts, images and similar."""

    text: str
    reasoning: str = ""
    media: tuple[Any, ...] = ()

    def beside(self, content: str | None) -> Any:
        """Return the content of the message: the text that remains, with anything that is not text.

        >>> Content("", media=({"type": "image"},)).beside("words")
        [{'type': 'text', 'text': 'words'}, {'type': 'image'}]
        """
        if not self.media:
            return content or None
        text = [{"type": "text", "text": content}] if content else []
        return [*text, *self.media]


ONLY_TEXT = Content("")


def read_content(content: Any) -> Content:
    """Sort the content of an assistant's message by kind.

    content: text, None or a list of parts. Raises UnreadableInput for anything else.

    >>> read_content(["a", {"type": "text", "text": "b"}]).text
    'ab'
    """
    if content is None or isinstance(content, str):
        return Content(content or "")
    if not isinstance(content, (list, tuple)):
        raise UnreadableInput(
            "this is no content", got=type(content).__name__, expected="text, None or parts"
        )
    texts: list[str] = []
    thoughts: list[str] = []
    media: list[Any] = []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(part, str):
            texts.append(part)
        elif kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind in ("reasoning", "thinking"):
            # Some providers nest it as parts of its own.
            inner = part.get("text", part.get("thinking"))
            nested = read_content(inner if isinstance(inner, list) else None).text
            thoughts.append(inner if isinstance(inner, str) else nested)
        else:
            # Images, sounds and parts nobody knows yet go through as they are.
            media.append(part)
    return Content("".join(texts), "\n".join(t for t in thoughts if t), tuple(media))
