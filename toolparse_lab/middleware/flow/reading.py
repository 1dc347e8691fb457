"""Reading a recorded answer as the middleware would: a forced tool choice is read as one call of
JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...core.errors import ToolparseError
from ...core.toolspec import tool_specs
from ...core.types import ParseOptions, ParseResult, Problem, Segment, Span
from ...core.types.call import is_meant
from ...core.types.server import IN_CONTENT
from ...core.types.tokens import Tokens
from ...entry.parse import Reader, with_lost_calls, with_unread
from ...parser.recognition.echoes import judged
from ...runner.exchange.types import Completion
from ..answer import was_cut
from ..choice import read_choice, read_tools
from ..forced import parse_forced

# The code of an answer at which our own code failed.
INTERNAL_ERROR = "read.internal-error"
_LONGEST_MESSAGE = 300
_UNLIFTED = "the server was offered tools and left this call in its text"
_NATIVE = ("native", "openai_json", "openai_strict")


def read_answer(
    raw: str,
    protocol: Any,
    tools: Any = None,
    options: Any = None,
    tool_choice: Any = "auto",
    finish_reason: str | None = None,
    *,
    request: Any = None,
    reasoning: str = "",
) -> ParseResult:
    """`parse`, and where `tool_choice` (in any shape the middleware takes) forces a call, the
    forced reading. A provider's own calls are calls whether they were forced or not.

    finish_reason: the words that the provider said of the answer's end. A forced call that ended
    early has to close by itself. reasoning: what the provider gave as such next to the text. Both
    may tell of a call that the answer lost.

    Raises the errors of `parse`, and BadToolChoice.

    >>> f = {"name": "f", "parameters": {}}
    >>> read_answer('{"name": "f", "arguments": {}}', "hermes", [f], tool_choice="required").ok
    True
    """
    reader = answer_reader(protocol, tools, options, tool_choice, finish_reason)
    return reader(raw, request, reasoning)


def is_unlifted(completion: Completion) -> bool:
    """Return True for a recorded text in which a server left calls that it was to read itself."""
    server = (completion.response or {}).get("server")
    return (
        isinstance(server, dict)
        and server.get("calls") == []
        and server.get("fidelity") in ("sdk", "wire")
        and completion.endpoint_kind == "chat_text"
    )


def recorded_tokens(completion: Completion) -> Tokens | None:
    """Return the tokens of a recorded answer's text, None where they were not recorded."""
    return Tokens.from_dict(completion.raw, (completion.response or {}).get("tokens"))


def with_recorded(result: ParseResult, completion: Completion) -> ParseResult:
    """Return a result with what was recorded beside its text: tokens, and unread parts."""
    parts = (completion.response or {}).get("unread")
    if isinstance(parts, list):
        result = with_unread(result, [str(part) for part in parts])
    return result.with_tokens(recorded_tokens(completion))


def answer_reader(
    protocol: Any,
    tools: Any = None,
    options: Any = None,
    tool_choice: Any = "auto",
    finish_reason: str | None = None,
    unlifted: bool = False,
) -> Callable[..., ParseResult]:
    """`read_answer` for many texts: a function of the text and, where they are known, of its
    request and its reasoning. The rest is looked at once. Raises UnknownProtocol, BadToolSpec,
    BadOptions and BadToolChoice. Its result raises UnreadableInput for anything that is not
    text, and nothing else: a fault of the parser's own becomes a problem of the result, so that
    one answer never stops the reading of others.
    """
    specs = tool_specs(tools)
    choice = read_choice(tool_choice, read_tools(specs))
    allowed = ParseOptions.of(options)
    # The provider's own calls need no reading as JSON, forced or not.
    is_forced = choice.forced and getattr(protocol, "id", protocol) not in _NATIVE
    # 'required' names no tool: any of them may be the one.
    candidates = tuple(t for t in specs if choice.name in (None, t.name))
    cut = was_cut(finish_reason)
    parse = None if is_forced else Reader(protocol, specs, allowed).parse
    name = str(getattr(protocol, "id", protocol))

    def read(raw: str, request: Any = None, reasoning: str = "") -> ParseResult:
        try:
            if parse is not None:
                result = parse(raw, request)
            else:
                forced = parse_forced(raw, protocol, specs, candidates, allowed, cut=cut)
                result = judged(forced, request)
            if unlifted and any(map(is_meant, result.calls)):
                problem = Problem("read", IN_CONTENT, "warning", _UNLIFTED)
                result = replace(result, problems=(*result.problems, problem))
            return with_lost_calls(result, finish_reason, reasoning)
        except ToolparseError:
            raise
        except Exception as error:
            # All of the raw text is text then, and the result's one problem says why.
            text = (Segment("text", Span(0, len(raw))),) if raw else ()
            problems = (internal_problem(error, "reading"),)
            return ParseResult(raw, name, allowed, text, (), problems, specs)

    return read


def asked_of(completion: Completion, input: Any = None) -> Any:
    """Return what a recorded answer is to: the case's input, else its request's messages.

    input: of the case, a string or messages. A frame has it as well, so that an answer that is
    read again from there is judged by the same words.
    """
    return input or completion.request.get("messages") or None


def internal_problem(error: Exception, activity: str) -> Problem:
    """Return the problem of an answer at which our own code failed, in an activity such as
    "reading".
    """
    message = f"{activity} failed: {type(error).__name__}: {error}"
    return Problem("read", INTERNAL_ERROR, "error", message[:_LONGEST_MESSAGE])


def internal_problem_of(result: ParseResult | None) -> Problem | None:
    """Return the problem that says that our own code failed at an answer, if it did."""
    if result is None:
        return None
    return next((p for p in result.problems if p.code == INTERNAL_ERROR), None)
