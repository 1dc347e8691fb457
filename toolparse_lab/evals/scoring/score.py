"""Scores: one exclusive outcome a trial, in a fixed order of precedence, and success under each
policy.

A parser's failure is never taken for the model's choice: where the text shows that a call was
tried, the trial is `attempted_unparseable`, whatever the parser says. See `outcomes.OUTCOMES` for
the meaning of each outcome.
"""

# How it works. `_Scoring.score` asks a row of stages in the order of precedence; the first that has
# a score ends it, and the last always has one. A stage looks at the recorded answer, never at a
# stage before it. What several stages or levels of success need (a call's value, the calls that met
# the target) is read once and kept, because a re-parse scores a hundred thousand answers.

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...exchange.types import Completion
from ...protocols.base import Signs
from ...schema.coerce import coerce
from ...toolspec import ToolSpec
from ...types import ParseResult, Span, ToolCall
from ...values import Value, read_strict, same, write_canonical
from ...values.printable import printable
from ..cases.case import Case
from ..cases.final_text import matches_answer
from ..cases.matchers import DEFAULT_MATCHERS, Matchers
from ..cases.target import is_optional
from .attempt import Attempt, example_spans, find_attempt, find_own_result, parameter_names
from .fabrication import find_fabrication, provider_name
from .match import Match, agree, match_calls
from .outcomes import SUCCESSES
from .rescues import Rescues, is_recovery, judge_rescues

if TYPE_CHECKING:
    from ...flow import Conversation

# Finish reasons in the words of the providers.
_CUT_REASONS = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "max_length"}
)
_REFUSALS = frozenset(
    {
        "content_filter",
        "content_filtered",
        "refusal",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "guardrail_intervened",
    }
)
_BECAUSE = {
    "length": ": the token limit was reached",
    "cut_stream": ": the stream ended without a finish part",
}
_MOST_SHOWN = 80
_OF_THE_API = ("read.dotted-name", "read.strict-null")
# Kinds of segments: all but reasoning, in which nobody is spoken to.
_WORDS = ("text", "call", "recovered")
_WORDS_AND_MARKUP = (*_WORDS, "markup")

Call: TypeAlias = tuple[str, Value]
"""A call as it is matched: name and arguments."""


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome of one trial, with its success on every level.

    `success` is under the trial's own policy, or None if there is nothing to judge (no target,
    provider failed). `strict`: as written, no edit, no reading step, no coercion. `repaired`: edits
    allowed, no coercion. `safe`: with lossless coercion only. `naive`: the score that a regex for a
    JSON object and `json.loads` would have scored. It takes every text it cannot read for an
    abstention.
    `fabricated`: a call holds values that are not in the text, None without calls. `answer`: the
    conversation ended with the wanted text, see `score_answer`. `rescues`: each rule that changed
    something, with how many of the changed values are right and wrong, see `judge_rescues`.
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
    rescues: Rescues = ()

    @property
    def coerced(self) -> bool | None:
        """Success with whatever coercion the trial's policy made: the same as `success`.

        A name beside `strict`, `repaired` and `safe`, for tables that put the levels in a row.
        """
        return self.success

    def __str__(self) -> str:
        """Return the outcome with its sub-code and reason.

        >>> str(Score("wrong_call", "count", "2 calls instead of 1"))
        'wrong_call/count: 2 calls instead of 1'
        """
        code = f"/{self.sub_code}" if self.sub_code else ""
        return printable(f"{self.outcome}{code}: {self.detail}")


def score_completion(
    case: Case,
    completion: Completion | None,
    result: ParseResult | None,
    matchers: Matchers = DEFAULT_MATCHERS,
    signs: Signs | None = None,
) -> Score | None:
    """Return the score of one answer read by one parser.

    None if nothing was recorded or nothing was parsed.

    case: the tools and the target. Its id and text do not matter.
    completion: the answer as it was recorded, or the failure of its provider.
    result: the parser's reading of the answer's text. Not looked at where the provider failed.
    matchers: how arguments are compared with the target.
    signs: how an attempt looks in the format that the model was told, where it is neither shipped
    nor installed.
    """
    if completion is None:
        return None

    early = _score_without_text(case, completion)
    if early is not None:
        return early
    if result is None:
        return None
    return _Scoring(case, completion, result, matchers, signs).score()


def score_text(
    case: Case,
    result: ParseResult,
    *,
    finish_reason: str | None = None,
    cut: bool = False,
    matchers: Matchers = DEFAULT_MATCHERS,
) -> Score:
    """Return the score of a parsed text that no runner recorded.

    finish_reason, cut: the value that a provider would have given of the end of the text.
    """

    completion = Completion(
        key="", raw=result.raw, finish_reason=finish_reason, cut=cut, fidelity="synthetic"
    )
    score = score_completion(case, completion, result, matchers)
    if score is None:  # pragma: no cover - both arguments are there
        raise AssertionError("a parsed completion always has a score")
    return score


def _score_without_text(case: Case, completion: Completion) -> Score | None:
    """Return the score of an answer whose text does not matter, None if it does.

    Such are the first outcomes of the order: the model was not heard, or was stopped. Of a failure
    the provider's own message is told, where it has one.
    """
    kind = completion.error_kind
    reason = (completion.finish_reason or "").lower()
    is_error = completion.status == "error"

    if is_error and kind == "context_overflow":
        detail = "the request does not fit the model's context"
        return _lost(case, "context_overflow", completion.error_message or detail)

    # A refusal may come as a failed request or as an answer with a reason of its own.
    if kind == "refused" or reason in _REFUSALS:
        detail = f"the answer was stopped: {reason or 'refused'}"
        return _lost(case, "refused", completion.error_message or detail)

    if is_error:
        message = completion.error_message or "the provider failed"
        return Score("provider_error", kind or "other", message)
    return None


def _lost(case: Case, outcome: str, detail: str) -> Score:
    """Return a score without success on any level, the naive one included, since there is no text
    to look at. None on each where the case has no target.
    """
    level = None if case.target is None else False
    return Score(outcome, "", detail, level, level, level, level, level)


def score_answer(case: Case, conversation: Conversation) -> bool | None:
    """Return True if a conversation ended with the wanted text.

    None if none is wanted, or where it could not end.

    A text that goes on writing tool results says the wanted words without answering: it is none.

    case: its `answer` holds the target. conversation: its `stop` says how it ended.
    """
    if case.answer is None:
        return None
    if conversation.stop in ("not_asked", "not_run", "provider_error"):
        return None

    text = conversation.answer
    if text is None:
        return False
    if find_own_result(text, after_call=False):
        return False
    return matches_answer(case.answer, text)


class _Scoring:
    """One answer's way down the order of precedence."""

    def __init__(
        self,
        case: Case,
        completion: Completion,
        result: ParseResult,
        matchers: Matchers,
        signs: Signs | None = None,
    ) -> None:
        """Sort the calls of `result` by the questions that a stage asks of them: `ok_calls`,
        `unknown`, and `broken`, which leaves out text that only mentions the format.
        """
        self.case = case
        self.completion = completion
        self.result = result
        self.matchers = matchers
        self.signs = signs
        self.native = completion.endpoint_kind == "native_tools"
        self.tools: tuple[ToolSpec, ...] = case.tools or result.tools

        self.ok_calls: list[ToolCall] = []
        self.unknown: list[ToolCall] = []  # readable, of a tool that was not offered
        self.broken: list[ToolCall] = []
        for call in result.calls:
            if call.ok:
                self.ok_calls.append(_as_provider_wrote(call) if self.native else call)
            elif call.status == "unknown_tool":
                same_call = self._by_provider_name(call)
                (self.ok_calls if same_call else self.unknown).append(same_call or call)
            elif call.status == "echoed":
                continue  # the model quotes somebody: no attempt of its own
            elif not self._is_mention(call):
                self.broken.append(call)

        # What was worked out once, for whoever asks for it again.
        self._values: dict[str, Value] = {}  # by JSON text
        # The calls that were held to the target, and True if they met it.
        self._matched: tuple[list[Call], bool] | None = None
        self._match: Match | None = None  # the same with its reasons

    def _by_provider_name(self, call: ToolCall) -> ToolCall | None:
        """Return a provider's own call as one of the tool it means, None if it means none.

        Many providers allow no dots in a name, so that `maps.find` is asked for, and called, as
        `maps_find`. Its arguments are coerced as they would have been under the tool's own name.
        """
        tools = [t for t in self.tools if provider_name(t.name) == call.name] if self.native else []
        if len(tools) != 1:
            return None  # of two tools, nobody knows which one was meant
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
        """Return the score of the first stage that has one.

        The order is that of `outcomes.OUTCOMES`: an outcome that explains more comes before its
        consequences. An answer that ended early, say, is not blamed for the call it did not finish.
        """
        for stage in (
            self._silent,
            self._truncated,
            self._fabricated,
            self._unparseable,
            self._self_answered,
        ):
            score = stage()
            if score is not None:
                return score
        return self._judged()

    # the stages

    def _silent(self) -> Score | None:
        """Score an answer without text, calls or the sign of one.

        It is `empty`, or `reasoning_only` if the model thought and then stopped. None for an answer
        that has anything else in it.
        """
        if self.result.calls or self._text().strip():
            return None
        # Markup alone is no text, but may be what is left of a call.
        if self._attempt() is not None:
            return None

        cut = self._cut_code()
        because = _BECAUSE.get(cut, "")
        # A provider gives reasoning apart from the text, or the parser finds it there.
        reasoning = self.completion.reasoning or self.result.reasoning
        if not reasoning.strip():
            return self._lose("empty", cut, "the answer is empty" + because)

        code = cut
        if not cut and self._is_reasoning_open():
            code = "open_reasoning"
        return self._lose("reasoning_only", code, "nothing follows the reasoning" + because)

    def _truncated(self) -> Score | None:
        """Score an answer that ended early: no one knows the rest of the text.

        None if it was finished, and where it is not known to have ended early.
        """
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
        """Score an answer with a call that holds values that are not in the text.

        Return None without one.

        Only calls that were read are looked at: of the others no one would run anything.
        """
        for call in (*self.ok_calls, *self.unknown):
            value = self._value(call.arguments_json) if call.arguments_json else None
            why = find_fabrication(self.result.raw, call, value=value)
            if why:
                detail = f"call {call.index}: {why}"
                return self._levels("fabricated", "", detail, fabricated=True)
        return None

    def _unparseable(self) -> Score | None:
        """Score an answer in which a call was tried and none could be read.

        Return None for any other.

        This is the parser's failure: it saw a call that it could not read, or saw none if the text
        shows the sign of one.
        """
        if self.ok_calls or self.unknown:
            return None

        if self.broken:
            call = self.broken[0]
            code = "incomplete" if call.status == "truncated" else "undecodable"
            detail = f"call {call.index}: {_complaint(call)}"
            return self._lose("attempted_unparseable", code, detail)

        attempt = self._attempt()
        if attempt is None:
            return None
        detail = f"no call was found, but the text holds {_shortened(attempt.text)!r}"
        return self._lose("attempted_unparseable", attempt.code, detail)

    def _self_answered(self) -> Score | None:
        """Score an answer in which the model goes on to write the tool's result.

        Return None for any other.
        """
        has_calls = bool(self.ok_calls or self.unknown)
        sign = find_own_result(self._text_with_markup(), after_call=has_calls)
        if not sign:
            return None
        detail = f"the model wrote the tool's result itself: {sign[:_MOST_SHOWN]!r}"
        return self._lose("self_answered", "", detail)

    def _judged(self) -> Score:
        """Hold everything read to the target: the stage that always has a score.

        A tool that was not offered is wrong even without a target. All else needs one.
        """
        target = self.case.target
        if self.unknown:
            names = ", ".join(c.name or "?" for c in self.unknown[:5])
            detail = f"no tool of the name {names} was offered"
            return self._lose("wrong_call", "unknown_tool", detail)

        if target is None:
            fabricated = False if self.ok_calls else None
            return Score("ungraded", "", "the case has no target", fabricated=fabricated)
        if not self.ok_calls:
            return self._abstained(target)

        # Were the readable ones right, the answer as a whole would still not be.
        if self.broken:
            detail = f"{len(self.broken)} of {len(self.result.calls)} calls could not be read"
            return self._lose("wrong_call", "one_of_several_broken", detail)

        calls = self._calls("arguments_json")
        match = match_calls(calls, target, self.tools, self.matchers)
        self._matched = calls, match.ok
        self._match = match
        if match.ok:
            return self._levels("correct", "", "the calls are the wanted ones")

        detail = match.detail
        if match.note:
            detail = f"{detail} ({match.note})"
        return self._levels("wrong_call", match.code, detail)

    def _abstained(self, target: list[Any]) -> Score:
        """Score an answer that tries no call: right where every wanted call may be absent.

        target: that of the case, which is there.
        """
        if any(not is_optional(want) for want in target):
            return self._lose("abstained_wrongly", "", "a call was wanted and none was tried")

        detail = "no call was wanted and none was tried"
        naive = self._naive()
        return Score("abstained_correctly", "", detail, True, True, True, True, naive, None)

    # levels of success

    def _lose(self, outcome: str, sub_code: str, detail: str) -> Score:
        """Return a score without success on any level but the naive one.

        That one is asked apart, because a script without a parser may get right by chance here.
        Without a target there is no level to judge.
        """
        fabricated = False if self.ok_calls else None
        if self.case.target is None:
            return Score(outcome, sub_code, detail, fabricated=fabricated)

        naive = self._naive()
        return Score(
            outcome,
            sub_code,
            detail,
            False,
            False,
            False,
            False,
            naive,
            fabricated,
            rescues=self._rescues(),
        )

    def _levels(self, outcome: str, sub_code: str, detail: str, fabricated: bool = False) -> Score:
        """Return a score with the success of the readable calls on each level.

        outcome: under the trial's own policy, which settles `success`. Another policy may have come
        to another one. fabricated: a call holds values that are not in the text.
        """
        if self.case.target is None:
            return Score(outcome, sub_code, detail, fabricated=fabricated)

        success = outcome in SUCCESSES
        source = False  # of the arguments before coercion
        safe = False
        # Unreadable or unknown calls beside the readable ones spoil every level alike.
        if self.ok_calls and not self.broken and not self.unknown:
            if outcome == "fabricated" or any(_is_coerced(call) for call in self.ok_calls):
                source = self._source_matches()
            else:
                source = success  # what was coerced is what was found, and was looked at already
            safe = self._safe(success, source)

        strict = source and not any(_is_touched(call) for call in self.ok_calls)
        naive = self._naive()
        return Score(
            outcome,
            sub_code,
            detail,
            success,
            strict,
            source,
            safe,
            naive,
            fabricated,
            rescues=self._rescues(),
        )

    def _rescues(self) -> Rescues:
        """Return the outcome of the values that rules changed in the readable calls."""
        if not self.ok_calls or self.case.target is None:
            return ()
        values = [value for _, value in self._calls("arguments_json")]
        return judge_rescues(
            self.result.raw,
            self.ok_calls,
            values,
            self.case.target,
            self._match,
            self.tools,
            self.matchers,
        )

    def _source_matches(self) -> bool:
        """Return True if the arguments as found, before coercion, are the wanted ones and the text
        says them.
        """
        raw = self.result.raw
        if any(find_fabrication(raw, call, coerced=False) for call in self.ok_calls):
            return False

        target = self.case.target or []
        return agree(self._calls("source_json"), target, self.tools, self.matchers)

    def _safe(self, success: bool, source: bool) -> bool:
        """Return the success under the safe policy, computed only where this trial's own policy and
        the arguments as found leave it open.

        success: that under the trial's own policy. source: that of the arguments as found.
        """
        policy = self.result.options.coerce
        if policy == "safe":
            return success
        # What is right without coercion counts as right with a lossless one.
        if policy == "none" and source:
            return True

        calls = [(call.name, _coerce_safely(call, self.tools)) for call in self.ok_calls]
        return agree(calls, self.case.target or [], self.tools, self.matchers)

    def _naive(self) -> bool:
        """Return the success that a regex and `json.loads` would have had.

        See `naive_calls`.
        """
        calls = naive_calls(self.completion.raw, native=self.native)
        # Often they are the very calls that were held to the target a moment ago.
        if self._matched is not None and _are_same_calls(calls, self._matched[0]):
            return self._matched[1]
        return agree(calls, self.case.target or [], self.tools, self.matchers)

    def _calls(self, field: str) -> list[Call]:
        """Return the readable calls as they are matched.

        field: which JSON of a call is read, "arguments_json" or "source_json".
        """
        return [(c.name, self._value(getattr(c, field) or "{}")) for c in self.ok_calls]

    def _value(self, text: str) -> Value:
        """Return the value of a call's JSON.

        It is asked for several times, and no one changes it.
        """
        if text not in self._values:
            self._values[text] = read_strict(text)
        return self._values[text]

    # what the text shows

    def _is_mention(self, call: ToolCall) -> bool:
        """Return True if an unfinished call is prose about the format: an opener in mid-sentence
        with no body behind it, such as "I would write <tool_call> here".

        call: one that is neither readable nor of an unknown tool.
        """
        span = call.segment.span
        if call.segment.closed or call.readable:
            return False

        # In mid-sentence: a word and a space stand before it on its line.
        line = self.result.raw[: span.start].rpartition("\n")[2]
        if not line.endswith(" "):
            return False
        if not line[-2:-1].isalnum():
            return False

        names = [tool.name for tool in self.tools]
        text = span.of(self.result.raw)
        return find_attempt(text, names, (), parameter_names(self.tools), self.signs) is None

    def _unread_spans(self, kinds: tuple[str, ...]) -> list[Span]:
        """Return the rest of the text without the calls that were read, in order.

        kinds: the kinds of segments looked at, `_WORDS` or `_WORDS_AND_MARKUP`.
        """
        done = {call.segment_index for call in self.result.calls if call.readable}
        spans = []
        for i, segment in enumerate(self.result.segments):
            if segment.kind in kinds and i not in done:
                spans.append(segment.span)
        return spans

    def _text(self) -> str:
        """Return the text without markup: the words of the model outside the calls that were read.

        Of a native message that is its content.
        """
        if self.native:
            return _native_message(self.completion.raw)[0]

        raw = self.result.raw
        return "".join([span.of(raw) for span in self._unread_spans(_WORDS)])

    def _text_with_markup(self) -> str:
        """Return the text with markup, where a lost call may have left its mark.

        Of a native message that is its content, since its calls are no part of a text.
        """
        if self.native:
            return _native_message(self.completion.raw)[0]

        raw = self.result.raw
        return "".join([span.of(raw) for span in self._unread_spans(_WORDS_AND_MARKUP)])

    def _attempt(self) -> Attempt | None:
        """Return the first sign of a call in anything not read as one, None for none."""
        if self.native:
            # A message with tool calls of which the parser made none.
            _, calls = _native_message(self.completion.raw)
            if calls:
                return Attempt("undecodable", f"{len(calls)} tool calls", 0)

        names = [tool.name for tool in self.tools]
        text = self._text_with_markup()
        return find_attempt(
            text, names, self._quoted_ranges(), parameter_names(self.tools), self.signs
        )

    def _quoted_ranges(self) -> list[tuple[int, int]]:
        """Return where the parser saw examples, as (start, end) in `_text_with_markup`.

        The parser counts in the raw text, of which that is only some spans, joined. An example may
        reach over several of them.
        """
        if self.native:
            return []

        examples = example_spans(self.result)
        if not examples:
            return []

        ranges: list[tuple[int, int]] = []
        offset = 0  # of the span in the joined text
        for span in self._unread_spans(_WORDS_AND_MARKUP):
            by = offset - span.start
            for example in examples:
                start = max(example.start, span.start)
                end = min(example.end, span.end)
                if start < end:
                    ranges.append((start + by, end + by))
            offset += len(span)
        return ranges

    def _cut_code(self) -> str:
        """Return the sub-code of an answer that ended early, '' where it was not.

        A token limit comes before the end of a stream, since it says why the stream ended.
        """
        reason = (self.completion.finish_reason or "").lower()
        if reason in _CUT_REASONS:
            return "length"
        return "cut_stream" if self.completion.cut else ""

    def _is_reasoning_open(self) -> bool:
        """Return True if the text ends inside the reasoning."""
        return any(s.kind == "reasoning" and not s.closed for s in self.result.segments)


def _complaint(call: ToolCall) -> str:
    """Return why a call could not be read, in the parser's words where it has some."""
    for problem in call.problems:
        if problem.severity == "error":
            return problem.message
    return f"the call is {call.status}"


def _shortened(text: str) -> str:
    """Return a text that fits into a sentence, with "…" if its end is missing."""
    if len(text) <= _MOST_SHOWN:
        return text
    return text[: _MOST_SHOWN - 3] + "…"


def _are_same_calls(a: list[Call], b: list[Call]) -> bool:
    """Return True for the same calls in the same order, by JSON equality.

    >>> _are_same_calls([("f", {"a": 1})], [("f", {"a": 1})]), _are_same_calls([("f", {})], [])
    (True, False)
    """
    if len(a) != len(b):
        return False
    return all(name == other and same(x, y) for (name, x), (other, y) in zip(a, b, strict=True))


def _is_coerced(call: ToolCall) -> bool:
    """Return True if coercion changed the arguments, or took a step that left them as they were."""
    if call.source_json != call.arguments_json:
        return True
    return any(step.stage == "coerce" for step in call.steps)


def _as_provider_wrote(call: ToolCall) -> ToolCall:
    """Return a provider's own call without the steps that undo what its API asks for: the model
    could not write the dots of a tool's name, nor leave out a parameter in a strict mode.
    """
    steps = tuple(step for step in call.steps if step.rule not in _OF_THE_API)
    return call if len(steps) == len(call.steps) else replace(call, steps=steps)


def _is_touched(call: ToolCall) -> bool:
    """Return True if a call is not the model's own writing in its own format alone: repaired,
    changed by a step, recovered from a text that is not a call as it stands, or ended by a rule
    because its closer is missing.
    """
    if call.edits or call.steps:
        return True
    if call.segment.kind == "recovered":
        return True
    return any(is_recovery(problem.code) for problem in call.problems)


def _coerce_safely(call: ToolCall, tools: tuple[ToolSpec, ...]) -> Value:
    """Return the arguments of a call as the safe policy would have left them.

    tools: those offered. Without the call's own among them there is nothing to coerce by.
    """

    value = read_strict(call.source_json or "{}")
    schema = next((tool.schema for tool in tools if tool.name == call.name), None)
    if schema is None:
        return value
    return coerce(value, schema, "safe").value


def _native_message(raw: str) -> tuple[str, list[Any]]:
    """Return (content, tool calls) of a recorded native message.

    The whole text as content where it is none.

    >>> _native_message('{"content": null, "tool_calls": [{}]}')
    ('', [{}])
    >>> _native_message("Hello")
    ('Hello', [])
    """
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError):
        return raw, []
    if not isinstance(message, dict):
        return raw, []

    # A message with calls alone has null as content, and one without calls may have null as those.
    content = message.get("content")
    calls = message.get("tool_calls")
    if not isinstance(content, str):
        content = ""
    if not isinstance(calls, list):
        calls = []
    return content, calls


def naive_calls(raw: str, *, native: bool = False) -> list[tuple[str, Any]]:
    """Return the calls that a regex for a JSON object and `json.loads` would find, none if that
    fails.

    native: `raw` is a native message, whose calls need no regex.

    >>> naive_calls('Sure: {"name": "f", "arguments": {"a": 1}}')
    [('f', {'a': 1})]
    >>> naive_calls("{'name': 'f', 'arguments': {}}")
    []
    """
    try:
        return _native_calls(raw) if native else _object_call(raw)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return []


def _native_calls(raw: str) -> list[tuple[str, Any]]:
    """Return the calls of a native message.

    Raises whatever is not as a script expects it.

    >>> _native_calls('{"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}')
    [('f', {})]
    """
    message = json.loads(raw)
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


def _object_call(raw: str) -> list[tuple[str, Any]]:
    """Return the call between the first brace and the last.

    Raises like `_native_calls`.

    None come back for a text without braces, and for an object whose two members are of other types
    than a call's.
    """
    start = raw.find("{")
    end = raw.rfind("}")
    if start < 0 or end < start:
        return []

    call = json.loads(raw[start : end + 1])
    name = call["name"]
    arguments = call["arguments"]
    if isinstance(name, str) and isinstance(arguments, dict):
        return [(name, arguments)]
    return []
