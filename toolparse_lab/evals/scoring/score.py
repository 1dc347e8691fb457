"""Scores: one exclusive outcome a trial, in a fixed order of precedence, and success under each
policy.

A parser's failure is never taken for the model's choice: where the text shows that a call was
tried, the trial is `attempted_unparseable`, whatever the parser says. See `outcomes.OUTCOMES` for
the meaning of each outcome.
"""

# How it works. `_Scoring.score` asks a row of stages in the order of precedence; the first that has
# a score ends it, and the last always has one. A stage looks at the recorded answer, never at a
# stage before it. What several stages need is in two parts: `Levels` holds the calls that were read
# to the target, once for whoever asks, because a re-parse scores a hundred thousand answers;
# `UnreadText` looks for signs of a call in the rest of the text.

from __future__ import annotations

from dataclasses import dataclass, replace
from html import unescape
from typing import TYPE_CHECKING, Any

from ...arguments.schema.coerce import coerce
from ...core.toolspec import ToolSpec
from ...core.types import ParseResult, ToolCall
from ...core.types.call import is_repeat
from ...core.values import read_strict, write_canonical
from ...core.values.printable import printable
from ...formats.base import Signs
from ...parser.attempt import find_own_result
from ...parser.ending import CALL_ENDS
from ...runner.exchange.types import Completion
from ..cases.case import Case
from ..cases.final_text import matches_answer
from ..cases.matchers import DEFAULT_MATCHERS, Matchers
from ..cases.target import is_optional
from .fabrication import find_fabrication, provider_name
from .levels import Levels, as_provider_wrote
from .naive import naive_calls
from .outcomes import SUCCESSES
from .rescues import Rescues
from .unread_text import UnreadText

if TYPE_CHECKING:
    from ...middleware.flow import Conversation

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
    # The first outcomes of the order: the model was not heard, or was stopped. Of a failure the
    # provider's own message is told, where it has one.
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
    # The naive level is False too: there is no text to look at.
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
        self.unread = UnreadText(result, self.tools, signs, message)

        self.ok_calls: list[ToolCall] = []
        self.unknown: list[ToolCall] = []  # readable, of a tool that was not offered
        self.broken: list[ToolCall] = []
        for call in result.calls:
            if call.ok:
                self.ok_calls.append(as_provider_wrote(call) if self.native else call)
            elif call.status == "unknown_tool":
                same_call = self._by_provider_name(call)
                (self.ok_calls if same_call else self.unknown).append(same_call or call)
            elif call.status == "echoed" or is_repeat(call):
                continue  # the model quotes somebody, or itself: no attempt of its own
            elif not self.unread.is_mention(call):
                self.broken.append(call)

        self.levels = Levels(case, result, self.ok_calls, self.tools, matchers)

    def _by_provider_name(self, call: ToolCall) -> ToolCall | None:
        # Many providers allow no dots in a name, so that `maps.find` is asked for, and called, as
        # `maps_find`. Its arguments are coerced as they would have been under the tool's own name.
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
        # The order is that of `outcomes.OUTCOMES`: an outcome that explains more comes before its
        # consequences. An answer that ended early, say, is not blamed for the call it did not
        # finish.
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
            value = self.levels.value(call.arguments_json) if call.arguments_json else None
            why = find_fabrication(self.result.raw, call, value=value)
            if why:
                detail = f"call {call.index}: {why}"
                return self._at_each_level("fabricated", "", detail, fabricated=True)
        return None

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
        detail = f"no call was found, but the text holds {_shortened(attempt.text)!r}"
        return self._lose("attempted_unparseable", attempt.code, detail)

    def _lost(self) -> Score | None:
        # A call lost on its way from the model: the response says that it ends with one, the
        # reasoning contains one and nothing follows, or the marks of one are escaped.
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
        detail = f"no call was found, but {where} {_shortened(attempt.text)!r}"
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

        match = self.levels.match()
        if match.ok:
            return self._at_each_level("correct", "", "the calls are the wanted ones")

        detail = match.detail
        if match.note:
            detail = f"{detail} ({match.note})"
        return self._at_each_level("wrong_call", match.code, detail)

    def _abstained(self, target: list[Any]) -> Score:
        if any(not is_optional(want) for want in target):
            return self._lose("abstained_wrongly", "", "a call was wanted and none was tried")

        detail = "no call was wanted and none was tried"
        naive = self._naive()
        return Score("abstained_correctly", "", detail, True, True, True, True, naive, None)

    # levels of success

    def _lose(self, outcome: str, sub_code: str, detail: str) -> Score:
        # The naive level is asked apart: a script without a parser may be right by chance here.
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
            rescues=self.levels.rescues(),
        )

    def _naive(self) -> bool:
        return self.levels.met_by(naive_calls(self.completion.raw, native=self.native))

    def _at_each_level(
        self, outcome: str, sub_code: str, detail: str, fabricated: bool = False
    ) -> Score:
        # outcome: under the trial's own policy, which settles `success`; another policy may have
        # come to another one.
        if self.case.target is None:
            return Score(outcome, sub_code, detail, fabricated=fabricated)

        success = outcome in SUCCESSES
        source = False  # of the arguments before coercion
        safe = False
        # Unreadable or unknown calls beside the readable ones spoil every level alike.
        if self.ok_calls and not self.broken and not self.unknown:
            source, safe = self.levels.source_and_safe(success, outcome == "fabricated")

        strict = source and self.levels.is_as_written()
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
            rescues=self.levels.rescues(),
        )

    # what the text shows

    def _cut_code(self) -> str:
        # A token limit comes before the end of a stream, since it says why the stream ended.
        reason = (self.completion.finish_reason or "").lower()
        if reason in _CUT_REASONS:
            return "length"
        return "cut_stream" if self.completion.cut else ""


def _shortened(text: str) -> str:
    if len(text) <= _MOST_SHOWN:
        return text
    return text[: _MOST_SHOWN - 3] + "…"
