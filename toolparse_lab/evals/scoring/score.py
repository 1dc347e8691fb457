"""Scores: one exclusive outcome a trial, in a fixed order of precedence, and success under each
policy.

A parser's failure is never taken for the model's choice: where the text shows that a call was
tried, the trial is `attempted_unparseable`, whatever the parser says. See `outcomes.OUTCOMES` for
the meaning of each outcome.
"""

# How it works. `_Scoring.score` asks a row of stages in the order of precedence; the first that has
# a score ends it, and the last always has one. A stage looks at the recorded answer, never at a
# stage before it. What several stages need is worked out once for whoever asks, because a re-parse
# scores a hundred thousand answers: the values of the calls and the verdict on them. `_UnreadText`
# looks for signs of a call in the rest of the text.

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...arguments.schema.coerce import coerce
from ...core.errors import ToolparseError
from ...core.toolspec import ToolSpec
from ...core.types import ParseResult, Span, ToolCall
from ...core.types.call import is_held_back, is_repeat
from ...core.types.server import IN_CONTENT, UNREAD_PART
from ...core.values import Value, read_strict, same, write_canonical
from ...core.values.printable import printable
from ...formats.base import Signs
from ...middleware.flow.reading import internal_problem, internal_problem_of
from ...parser.recognition.attempts import Attempt, example_spans, find_attempt, parameter_names
from ...parser.recognition.lost_calls import CALL_ENDS
from ...parser.recognition.shown import masked, shown_ranges
from ...runner.exchange.types import Completion
from ...views.rows import Fault
from ..cases.case import Case, matches_answer
from ..cases.matchers import DEFAULT_MATCHERS, STRICTNESS, Matchers
from ..cases.target import needs_call, wanted_calls
from .fabrication import find_fabrication, provider_name
from .match import Call, Match, agree, beginning_of, match_calls, numbered
from .outcomes import SUCCESSES
from .rescues import Rescues, is_recovery, judge_rescues

if TYPE_CHECKING:
    from ...middleware.flow import Conversation

# Marked as results, or as plain lines.
_RESULTS = re.compile(
    r"<(?:\|)?(?:tool_?(?:response|result|output)s?|function_?(?:response|result|output)s?)"
    r"\b[^<>\n]{0,80}>\s*(?=\S)(?!</)"
    r"|\[TOOL_RESULTS?\]\s*(?=\S)"
    r"|<\|im_start\|>\s*tool\b|<\|start_header_id\|>\s*(?:ipython|tool)\b|<\|start\|>functions\.",
    re.IGNORECASE,
)
_RESULT_LINES = re.compile(
    r"^[ \t>*#]*(?:observation|"
    r"(?:tool|function)[ _-]?(?:response|result|output|returned|returns))[ \t*]*:[ \t]*\S",
    re.IGNORECASE | re.MULTILINE,
)

# One of these is in whatever the two find.
_RESULT_WORDS = re.compile(r"tool|function|observation|ipython", re.IGNORECASE)


def find_own_result(text: str, *, after_call: bool) -> str:
    """Return the text with which a model began a tool's result itself, or "".

    Plain lines such as "Observation: …" count only where a call was made before (`after_call`),
    since they may be prose elsewhere.

    >>> find_own_result("Observation: 7 degrees", after_call=True)
    'Observation: 7'
    """
    if not _RESULT_WORDS.search(text):
        return ""  # most texts, in which nothing need be masked
    searched = masked(text, shown_ranges(text))
    match = _RESULTS.search(searched)
    if match is None and after_call:
        match = _RESULT_LINES.search(searched)
    return match[0].strip() if match else ""


# Finish reasons in the words of the providers.
_CUT_REASONS = frozenset(
    ("length", "max_tokens", "max_output_tokens", "model_length", "max_length")
)
_REFUSALS = frozenset((
    "content_filter", "content_filtered", "refusal", "safety", "recitation", "blocklist",
    "prohibited_content", "spii", "guardrail_intervened",
))  # fmt: skip
_BECAUSE = {
    "length": ": the token limit was reached",
    "cut_stream": ": the stream ended without a finish part",
}
# Steps that undo what a provider's API asks for: the model could not write the dots of a tool's
# name, nor leave out a parameter in a strict mode.
_OF_THE_API = ("read.dotted-name", "read.strict-null")
_UNLIFTED = "the server left the call in its text"
_MOST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome of one trial, with its success on every level.

    `success` is under the trial's own policy, or None if there is nothing to judge (no target,
    provider failed). `strict`: as written, no edit, no reading step, no coercion; None where the
    log kept no text of the arguments. `repaired`: edits allowed, no coercion. `safe`: with lossless
    coercion only. `naive`: success of a regex for a JSON object and `json.loads`, which take every
    text they cannot read for an abstention.
    `fabricated`: a call holds values that are not in the text, None without calls. `answer`: the
    conversation ended with the wanted text, see `score_answer`. `corrected`: success with the
    refused calls corrected, see `score_corrected`. `rescues`: each rule that changed
    something, with how many of the changed values are right and wrong, see `judge_rescues`.
    `matching`: the strictest of `matchers.STRICTNESS` under which the calls are right, '' if none.
    `mismatches`: each thing that is wrong with calls that were held to the target.
    """

    outcome: str
    sub_code: str = ""
    detail: str = ""
    success: bool | None = None
    strict: bool | None = None
    repaired: bool | None = None
    safe: bool | None = None
    naive: bool | None = None
    fabricated: bool | None = None
    answer: bool | None = None
    corrected: bool | None = None
    rescues: Rescues = ()
    matching: str = ""
    mismatches: tuple[Fault, ...] = ()

    @property
    def coerced(self) -> bool | None:
        """Success with whatever coercion the trial's policy made: the same as `success`.

        A name next to `strict`, `repaired` and `safe`, for tables that put the levels in a row.
        """
        return self.success

    def __str__(self) -> str:
        """Return the outcome with its sub-code and reason.

        >>> str(Score("wrong_call", "count", "2 calls instead of 1"))
        'wrong_call/count: 2 calls instead of 1'
        """
        code = f"/{self.sub_code}" if self.sub_code else ""
        return printable(f"{self.outcome}{code}: {self.detail}")

    @property
    def why(self) -> list[str]:
        """Return the same as a line, then one for each mismatch."""
        return [str(self), *(f"  {printable(str(row))}" for row in self.mismatches)]


def score_completion(
    case: Case,
    completion: Completion | None,
    result: ParseResult | None,
    matchers: Matchers = DEFAULT_MATCHERS,
    signs: Signs | None = None,
) -> Score | None:
    """Return the score of one answer read by one parser, None if nothing was recorded or parsed.

    result: not looked at where the provider failed. matchers: how arguments are compared with the
    target. signs: how an attempt looks in the format that the model was told, where it is neither
    shipped nor installed.
    """
    if completion is None:
        return None

    # The first outcomes of the order: the model was not heard, or was stopped. Of a failure the
    # provider's own message is told, where it has one. A refusal may come as a failed request or as
    # an answer with a reason of its own.
    kind, message = completion.error_kind, completion.error_message
    reason = (completion.finish_reason or "").lower()
    is_error = completion.status == "error"
    level = None if case.target is None else False  # the naive one, too: there is no text
    lost = (level,) * 5
    if is_error and kind == "context_overflow":
        detail = message or "the request does not fit the model's context"
        return Score("context_overflow", "", detail, *lost)
    if kind == "refused" or reason in _REFUSALS:
        detail = message or f"the answer was stopped: {reason or 'refused'}"
        return Score("refused", "", detail, *lost)
    if is_error:
        return Score("provider_error", kind or "other", message or "the provider failed")
    if result is None:
        return None
    return _Scoring(case, completion, result, matchers, signs).score()


def score_in_isolation(
    case: Case,
    completion: Completion | None,
    result: ParseResult | None,
    matchers: Matchers = DEFAULT_MATCHERS,
    signs: Signs | None = None,
) -> tuple[Score | None, ParseResult | None, str]:
    """Score one answer so that whatever goes wrong in it stays with it: a run of ten thousand
    trials must not end at the one that our code has a fault for.

    Returns the score, the result, which has one more problem where scoring failed, and why there is
    no score, '' if nothing went wrong. Raises only errors of this package, which are about the
    caller's own input.
    """
    if problem := internal_problem_of(result):
        return None, result, problem.message
    return attempt(lambda: score_completion(case, completion, result, matchers, signs), result)


def attempt(
    score: Callable[[], Score | None], result: ParseResult | None
) -> tuple[Score | None, ParseResult | None, str]:
    """Return the result of `score`, or no score, the result with a problem, and the problem in
    words.
    """
    try:
        return score(), result, ""
    except ToolparseError:
        raise
    except Exception as error:
        problem = internal_problem(error, "scoring")
        if result is not None:
            result = replace(result, problems=(*result.problems, problem))
        return None, result, problem.message


def score_text(case: Case, result: ParseResult, *, finish_reason: str | None = None) -> Score:
    """Return the score of a parsed text that no runner recorded. finish_reason: what a provider
    would have said of its end.
    """
    completion = Completion(
        key="", raw=result.raw, finish_reason=finish_reason, fidelity="synthetic"
    )
    return _Scoring(case, completion, result, DEFAULT_MATCHERS).score()


def score_answer(case: Case, conversation: Conversation) -> bool | None:
    """Return True if a conversation ended with the wanted `answer` of its case, None if none is
    wanted, or where it could not end.

    A text that goes on writing tool results says the wanted words without answering: it is none.
    """
    if case.answer is None or conversation.stop in ("not_asked", "not_run", "provider_error"):
        return None
    text = conversation.answer
    if text is None or find_own_result(text, after_call=False):
        return False
    return matches_answer(case.answer, text)


def score_corrected(
    case: Case,
    score: Score,
    result: ParseResult | None,
    conversation: Conversation,
    matchers: Matchers = DEFAULT_MATCHERS,
) -> bool | None:
    """Return the success of an answer with its refused calls as their tools took them in the end.

    score, result: of the first answer, under any policy. A call that stayed refused is judged as it
    was read. None where nothing can be judged, or the corrections are not over.
    """
    if conversation.stop in ("not_asked", "not_run", "provider_error") or not conversation.turns:
        return None
    corrected = list(conversation.turns[0].corrected.values())
    calls = [call for call in result.calls if call.ok] if result is not None else []
    # Another reader may find other calls, and a broken call next to them stays broken.
    if (
        score.outcome not in ("correct", "wrong_call")
        or score.sub_code == "one_of_several_broken"
        or not any(done.rescued for done in corrected)
        or [call.name for call in calls] != [done.tool.name for done in corrected]
    ):
        return score.success
    values = [
        (call.name, dict(done.arguments) if done.rescued else read_strict(call.arguments_json))
        for call, done in zip(calls, corrected, strict=True)
    ]
    return agree(values, case.target or [], case.tools, matchers)


class _Scoring:
    def __init__(
        self,
        case: Case,
        completion: Completion,
        result: ParseResult,
        matchers: Matchers,
        signs: Signs | None = None,
    ) -> None:
        self.case = case
        self.completion = completion
        self.result = result
        self.matchers = matchers
        self.native = completion.endpoint_kind == "native_tools"
        self.tools: tuple[ToolSpec, ...] = case.tools or result.tools

        message = completion.raw if self.native else None
        self.unread = _UnreadText(result, self.tools, signs, message)

        self.ok_calls: list[ToolCall] = []
        self.unknown: list[ToolCall] = []  # readable, of a tool that was not offered
        self.broken: list[ToolCall] = []
        self.held: list[ToolCall] = []
        for call in result.calls:
            if call.ok and self.native:
                steps = tuple(step for step in call.steps if step.rule not in _OF_THE_API)
                self.ok_calls.append(replace(call, steps=steps) if steps != call.steps else call)
            elif call.ok:
                self.ok_calls.append(call)
            elif call.status == "unknown_tool":
                same_call = self._by_provider_name(call)
                (self.ok_calls if same_call else self.unknown).append(same_call or call)
            elif is_held_back(call):
                self.held.append(call)  # the text only shows it, says the parser
            elif call.status == "echoed" or is_repeat(call):
                continue  # the model quotes somebody, or itself: no attempt of its own
            elif not self.unread.is_mention(call):
                self.broken.append(call)

        self.target = case.target or []
        self._values: dict[str, Value] = {}  # by JSON text
        # The readable calls that were held to the target, and the verdict.
        self._matched: tuple[list[Call], Match] | None = None

    def _by_provider_name(self, call: ToolCall) -> ToolCall | None:
        # Many providers allow no dots in a name, so that `maps.find` is asked for, and called, as
        # `maps_find`. Its arguments are coerced as they would have been under the tool's own name.
        tools = [t for t in self.tools if provider_name(t.name) == call.name] if self.native else []
        if len(tools) != 1:
            return None  # of two tools, nobody knows which one was intended
        value = read_strict(call.source_json or "{}")
        coerced = coerce(value, tools[0].schema_json, self.result.options.coerce)
        return replace(
            call,
            name=tools[0].name,
            status="ok",
            arguments_json=write_canonical(coerced.value),
            steps=(*call.steps, *coerced.steps),
        )

    def score(self) -> Score:
        # The order is that of `outcomes.OUTCOMES`: an outcome that explains more comes before its
        # consequences. An answer that ended early, say, is not blamed for the call it did not
        # finish.
        return (
            self._silent()
            or self._unread()
            or self._truncated()
            or self._fabricated()
            or self._held_back()
            or self._unparseable()
            or self._self_answered()
            or self._judged()
        )

    # the stages

    def _silent(self) -> Score | None:
        # `empty`, or `reasoning_only` if the model thought and then stopped.
        if self.result.calls or self.unread.words().strip():
            return None
        # Markup alone is no text, but may be what is left of a call.
        if self.unread.attempt() is not None:
            return None

        cut = self._cut_code()
        if not cut and (lost := self._lost()):
            return lost
        because = _BECAUSE.get(cut, "")
        # A provider gives reasoning apart from the text, or the parser finds it there.
        reasoning = self.completion.reasoning or self.result.reasoning
        if not reasoning.strip():
            return self._lose("empty", cut, "the answer is empty" + because)

        code = cut
        if not cut and any(s.kind == "reasoning" and not s.closed for s in self.result.segments):
            code = "open_reasoning"
        return self._lose("reasoning_only", code, "nothing follows the reasoning" + because)

    def _unread(self) -> Score | None:
        # Another project's parser failed on the whole text, which says nothing of the model. An
        # object of the caller's own may raise to refuse a text.
        problems = (p for p in self.result.problems if p.code == "parser.failed")
        failed = (p.message for p in problems if " raised ReaderFailed" in p.message)
        why = next(failed, None)
        return None if why is None else self._lose("reader_error", "", why)

    def _truncated(self) -> Score | None:
        # No one knows the rest of an answer that ended early.
        cut = self._cut_code()
        if cut:
            return self._lose("truncated", cut, "the answer was cut off" + _BECAUSE[cut])

        # Where the provider says that the model ended by itself, the open call is the model's own.
        if self.completion.finish_reason is not None:
            return None
        if any(call.status == "truncated" for call in self.broken):
            return self._lose("truncated", "open_call", "the text ends inside a call")
        return None

    def _fabricated(self) -> Score | None:
        # Only calls that were read are looked at: of the others no one would run anything.
        for call in (*self.ok_calls, *self.unknown):
            value = self._value(call.arguments_json) if call.arguments_json else None
            why = find_fabrication(self.result.raw, call, value=value)
            if why:
                detail = f"call {call.index}: {why}"
                return self._at_each_level("fabricated", "", detail, fabricated=True)
        return None

    def _held_back(self) -> Score | None:
        # The parser's decision, and no silence of the model's: neither wrong nor right by it.
        if self.ok_calls or self.unknown or self.broken or not self.held:
            return None
        if self.case.target is None:
            return None
        detail = f"call {self.held[0].index}: {self.held[0].problems[0].message}"
        return self._lose("held_back", "", detail)

    def _unparseable(self) -> Score | None:
        # The parser's failure: it saw a call that it could not read, or saw none where the text
        # shows the sign of one.
        if self.ok_calls or self.unknown:
            return None

        if self.broken:
            call = self.broken[0]
            code = "incomplete" if call.status == "truncated" else "undecodable"
            errors = (p.message for p in call.problems if p.severity == "error")
            detail = f"call {call.index}: {next(errors, f'the call is {call.status}')}"
            return self._lose("attempted_unparseable", code, detail)

        attempt = self.unread.attempt()
        if attempt is None:
            return self._lost()
        detail = f"no call was found, but the text holds {beginning_of(attempt.text)!r}"
        return self._lose("attempted_unparseable", attempt.code, detail)

    def _lost(self) -> Score | None:
        # A call lost on its way from the model: the response says that it ends with one, the
        # reasoning contains one and nothing follows, or the marks of one are escaped.
        if not self.result.calls:
            parts = [p.message for p in self.result.problems if p.code == UNREAD_PART]
            if parts:
                return self._lose("attempted_unparseable", "unread_part", parts[0])
        reason = (self.completion.finish_reason or "").lower()
        if reason in CALL_ENDS and not self.result.calls:
            detail = f"the response ends with {reason} and holds no call"
            return self._lose("attempted_unparseable", "no_calls", detail)
        reasoning = self.completion.reasoning or self.result.reasoning
        attempt, code = None, "in_reasoning"
        if reasoning.strip() and not self.unread.words().strip():
            attempt = self.unread.attempt_in(reasoning)
        if attempt is None:
            text, code = self.unread.with_markup(), "escaped"
            plain = unescape(text) if "&lt;" in text or "&quot;" in text else text
            attempt = self.unread.attempt_in(plain) if plain != text else None
        if attempt is None:
            return None
        where = "the reasoning holds" if code == "in_reasoning" else "escaped, the text holds"
        detail = f"no call was found, but {where} {beginning_of(attempt.text)!r}"
        return self._lose("attempted_unparseable", code, detail)

    def _self_answered(self) -> Score | None:
        has_calls = bool(self.ok_calls or self.unknown)
        sign = find_own_result(self.unread.with_markup(), after_call=has_calls)
        if not sign:
            return None
        detail = f"the model wrote the tool's result itself: {sign[:_MOST_SHOWN]!r}"
        return self._lose("self_answered", "", detail)

    def _judged(self) -> Score:
        # A tool that was not offered is wrong even without a target. All else needs one.
        target = self.case.target
        if self.unknown:
            names = ", ".join(c.name or "?" for c in self.unknown[:5])
            detail = f"no tool of the name {names} was offered"
            score = self._lose("wrong_call", "unknown_tool", detail)
            return replace(score, mismatches=tuple(map(self._not_offered, self.unknown)))

        if target is None:
            fabricated = False if self.ok_calls else None
            detail = self._told("the case has no target")
            return Score("ungraded", self._unlifted_code(), detail, fabricated=fabricated)
        if not self.ok_calls:
            if needs_call(target):
                score = self._lose("abstained_wrongly", "", "a call was wanted and none was tried")
                rows = match_calls([], target, self.tools, self.matchers).rows
                return replace(score, mismatches=rows)
            detail = "no call was wanted and none was tried"
            naive = self._naive()
            levels = (True, True, True, True, naive, None)
            return Score("abstained_correctly", "", detail, *levels, matching="exact")

        # Were the readable ones right, the answer as a whole would still not be.
        if self.broken:
            detail = f"{len(self.broken)} of {len(self.result.calls)} calls could not be read"
            return self._lose("wrong_call", "one_of_several_broken", detail)

        calls = self._calls("arguments_json")
        match = match_calls(calls, self.target, self.tools, self.matchers)
        self._matched = calls, match
        if match.ok:
            detail = self._told("the calls are the wanted ones")
            return self._at_each_level("correct", self._unlifted_code(), detail)

        detail = f"{match.detail} ({match.note})" if match.note else match.detail
        score = self._at_each_level("wrong_call", match.code, self._told(detail))
        return replace(score, mismatches=numbered(match.rows, self.ok_calls))

    def _not_offered(self, call: ToolCall) -> Fault:
        names = [tool.name for tool in self.tools]
        nearest = next(iter(get_close_matches(call.name, names, 1)), "")
        name = call.name or "?"
        return Fault(call.index, "", "unknown_tool", name, "a tool that is offered", name, nearest)

    def _unlifted_code(self) -> str:
        is_left = any(problem.code == IN_CONTENT for problem in self.result.problems)
        return "not_lifted" if is_left and self.ok_calls else ""

    def _told(self, detail: str) -> str:
        return f"{detail}; {_UNLIFTED}" if self._unlifted_code() else detail

    # levels of success

    def _lose(self, outcome: str, sub_code: str, detail: str) -> Score:
        fabricated = False if self.ok_calls else None
        if self.case.target is None:
            return Score(outcome, sub_code, detail, fabricated=fabricated)
        # The naive level is asked apart: a script without a parser may be right by chance here.
        levels = (False, False, False, False, self._naive(), fabricated)
        return Score(outcome, sub_code, detail, *levels, rescues=self._rescues())

    def _at_each_level(
        self, outcome: str, sub_code: str, detail: str, fabricated: bool = False
    ) -> Score:
        # outcome: under the trial's own policy, which settles `success`; another policy may have
        # come to another one.
        if self.case.target is None:
            return Score(outcome, sub_code, detail, fabricated=fabricated)

        success = outcome in SUCCESSES
        strict: bool | None = False
        source = safe = False  # source: of the arguments before coercion
        # Unreadable or unknown calls among the readable ones spoil every level alike.
        if self.ok_calls and not self.broken and not self.unknown:
            source = self._source_level(success, fabricated)
            safe = self._safe_level(success, source)
            # As written: the calls are the model's own writing in its own format alone, not
            # repaired, changed by a step, recovered from a text that is not a call as it is, or
            # ended by a rule because the closer is missing.
            lost = (self.completion.response or {}).get("arguments_text") == "lost"
            strict = (
                None
                if lost and source
                else source
                and not any(
                    call.edits
                    or call.steps
                    or call.segment.kind == "recovered"
                    or any(is_recovery(problem.code) for problem in call.problems)
                    for call in self.ok_calls
                )
            )
        levels = (success, strict, source, safe, self._naive(), fabricated)
        matching = "exact" if success else self._looser() if outcome == "wrong_call" else ""
        rescues = self._rescues()
        return Score(outcome, sub_code, detail, *levels, rescues=rescues, matching=matching)

    def _looser(self) -> str:
        calls, target, tools = self._calls("arguments_json"), self.target, self.tools
        fitting = (name for name, m in STRICTNESS.items() if agree(calls, target, tools, m))
        return next(fitting, "")

    def _source_level(self, success: bool, fabricated: bool) -> bool:
        # What was not coerced is what was found, and was looked at already.
        if not fabricated and not any(
            # Also by a step that left the arguments as they were.
            call.source_json != call.arguments_json or any(s.stage == "coerce" for s in call.steps)
            for call in self.ok_calls
        ):
            return success
        raw = self.result.raw
        if any(find_fabrication(raw, call, coerced=False) for call in self.ok_calls):
            return False
        return self._meets(self._calls("source_json"))

    def _safe_level(self, success: bool, source: bool) -> bool:
        # Computed only where this trial's own policy and the arguments as found leave it open.
        policy = self.result.options.coerce
        if policy == "safe":
            return success
        # What is right without coercion counts as right with a lossless one.
        if policy == "none" and source:
            return True
        tools = {tool.name: tool for tool in reversed(self.tools)}
        calls = []
        for call in self.ok_calls:
            value = read_strict(call.source_json or "{}")
            # Without the call's own tool there is nothing to coerce by.
            if call.name in tools and tools[call.name].schema is not None:
                value = coerce(value, tools[call.name].schema, "safe").value
            calls.append((call.name, value))
        return self._meets(calls)

    def _naive(self) -> bool:
        calls = naive_calls(self.completion.raw, native=self.native)
        # Often they are the very calls that were held to the target a moment ago.
        if self._matched is not None:
            others, match = self._matched
            if len(calls) == len(others) and all(
                name == other and same(x, y)
                for (name, x), (other, y) in zip(calls, others, strict=True)
            ):
                return match.ok
        return self._meets(calls)

    def _rescues(self) -> Rescues:
        if not self.ok_calls:
            return ()
        values = [value for _, value in self._calls("arguments_json")]
        match = self._matched[1] if self._matched is not None else None
        raw, target = self.result.raw, wanted_calls(self.target)
        return judge_rescues(raw, self.ok_calls, values, target, match, self.tools, self.matchers)

    def _meets(self, calls: list[Call]) -> bool:
        return agree(calls, self.target, self.tools, self.matchers)

    def _calls(self, field: str) -> list[Call]:
        return [(c.name, self._value(getattr(c, field) or "{}")) for c in self.ok_calls]

    def _value(self, text: str) -> Value:
        # Read once, and not to be changed.
        if text not in self._values:
            self._values[text] = read_strict(text)
        return self._values[text]

    # what the text shows

    def _cut_code(self) -> str:
        # A token limit comes before the end of a stream, since it says why the stream ended.
        reason = (self.completion.finish_reason or "").lower()
        if reason in _CUT_REASONS:
            return "length"
        return "cut_stream" if self.completion.cut else ""


class _UnreadText:
    # The text of an answer outside the calls that were read: signs of a call that was lost.
    # message: the recorded message where the provider's own calls were read, which are no part of a
    # text; None for text.

    def __init__(
        self,
        result: ParseResult,
        tools: tuple[ToolSpec, ...],
        signs: Signs | None,
        message: str | None,
    ) -> None:
        self.result = result
        self.tools = tools
        self.signs = signs
        # The whole text is the content where it is not a provider's message. A message with calls
        # alone has null as content, and one without calls may have null as those.
        self.content, self.n_native_calls = message, 0
        if message is not None:
            with suppress(ValueError, RecursionError):
                body = json.loads(message)
                if isinstance(body, dict):
                    content, calls = body.get("content"), body.get("tool_calls")
                    self.content = content if isinstance(content, str) else ""
                    self.n_native_calls = len(calls) if isinstance(calls, list) else 0

    def is_mention(self, call: ToolCall) -> bool:
        # An unfinished call that is prose about the format: an opener in mid-sentence with no body
        # after it, such as "I would write <tool_call> here".
        span = call.segment.span
        if call.segment.closed or call.readable:
            return False

        # In mid-sentence: a word and a space are before it on its line.
        before = self.result.raw[max(0, span.start - 2) : span.start]
        if before[-1:] != " " or not before[:1].isalnum():
            return False
        return self.attempt_in(span.of(self.result.raw)) is None

    def _spans(self, *more: str) -> list[Span]:
        # All kinds of segments but reasoning, in which nobody is spoken to.
        kinds = ("text", "call", "recovered", *more)
        done = {
            call.segment_index
            for call in self.result.calls
            if call.readable and not is_held_back(call)
        }
        segments = enumerate(self.result.segments)
        return [one.span for i, one in segments if one.kind in kinds and i not in done]

    def words(self) -> str:
        # The words of the model outside the calls that were read, without markup.
        if self.content is not None:
            return self.content
        return "".join([span.of(self.result.raw) for span in self._spans()])

    def with_markup(self) -> str:
        # A lost call may have left its mark.
        if self.content is not None:
            return self.content
        return "".join([span.of(self.result.raw) for span in self._spans("markup")])

    def attempt(self) -> Attempt | None:
        # The first sign of a call in anything not read as one.
        # A message with tool calls of which the parser made none.
        if self.n_native_calls:
            return Attempt("undecodable", f"{self.n_native_calls} tool calls", 0)

        # The parser counts in the raw text, of which `with_markup` is only some spans, joined; an
        # example may reach over several of them.
        quoted: list[tuple[int, int]] = []
        examples = example_spans(self.result) if self.content is None else []
        offset = first = 0  # of the span in the joined text; the example that may reach into it
        for span in self._spans("markup") if examples else ():
            by = offset - span.start
            while first < len(examples) and examples[first].end <= span.start:
                first += 1
            for example in islice(examples, first, None):
                start, end = max(example.start, span.start), min(example.end, span.end)
                if start >= end:
                    break
                quoted.append((start + by, end + by))
            offset += len(span)
        return self.attempt_in(self.with_markup(), quoted)

    def attempt_in(self, text: str, quoted: Sequence[tuple[int, int]] = ()) -> Attempt | None:
        # quoted: where examples are.
        names = [tool.name for tool in self.tools]
        return find_attempt(text, names, quoted, parameter_names(self.tools), self.signs)


def naive_calls(raw: str, *, native: bool = False) -> list[tuple[str, Any]]:
    """Return the calls that a regex for a JSON object and `json.loads` would find, none if that
    fails. native: `raw` is a message, whose calls need no regex.

    >>> naive_calls('Sure: {"name": "f", "arguments": {"a": 1}}')
    [('f', {'a': 1})]
    >>> naive_calls("{'name': 'f', 'arguments': {}}")
    []
    """
    try:
        if native:
            functions = [c["function"] for c in json.loads(raw).get("tool_calls") or ()]
            return [(f["name"], json.loads(f["arguments"])) for f in functions]

        # From the first brace to the last.
        start, end = raw.find("{"), raw.rfind("}")
        if start < 0 or end < start:
            return []
        call = json.loads(raw[start : end + 1])
        name, arguments = call["name"], call["arguments"]
        # Of other types than a call's, it is none.
        return [(name, arguments)] if isinstance(name, str) and isinstance(arguments, dict) else []
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return []
