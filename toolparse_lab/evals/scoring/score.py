"""Scores: one exclusive outcome a trial, in a fixed order of precedence, and success under each policy.

A parser's failure is never taken for the model's choice: where the text shows that a call was tried, the trial is
`attempted_unparseable`, whatever the parser says. See `outcomes.OUTCOMES` for what each outcome means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...toolspec import ToolSpec
from ...types import ParseResult, Span, ToolCall
from ...values import Value, read_strict, same
from ..cases.case import Case
from ..cases.final_text import matches_answer
from ..cases.matchers import DEFAULT_MATCHERS, Matchers
from .attempt import Attempt, find_attempt, find_own_result
from .fabrication import find_fabrication
from .match import agree, match_calls
from .outcomes import SUCCESSES

if TYPE_CHECKING:
    from ...flow import Conversation
    from ...runner.types import Completion

_CUT_REASONS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "max_length"})
_REFUSALS = frozenset(
    {"content_filter", "content_filtered", "refusal", "safety", "recitation", "blocklist", "prohibited_content"}
    | {"spii", "guardrail_intervened"}
)


@dataclass(frozen=True, slots=True)
class Score:
    """What one trial came to.

    `success` is under the trial's own policy; None where there is nothing to judge (no target, provider failed).
    `strict`: as written, no edit, no reading step, no coercion. `repaired`: edits allowed, no coercion. `safe`: with
    lossless coercion only. `naive`: what a regex for a JSON object and `json.loads` would have scored; it takes every
    text it cannot read for an abstention. `fabricated`: a call holds what the text does not say, None without calls.
    `answer`: the conversation ended with the wanted text, see `score_answer`.
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

    @property
    def coerced(self) -> bool | None:
        """Success with whatever coercion the trial's policy made: the same as `success`."""
        return self.success

    def __str__(self) -> str:
        return f"{self.outcome}{f'/{self.sub_code}' if self.sub_code else ''}: {self.detail}"


def score_completion(
    case: Case,
    completion: Completion | None,
    result: ParseResult | None,
    matchers: Matchers = DEFAULT_MATCHERS,
) -> Score | None:
    """The score of one answer read by one parser; None where nothing was recorded or nothing was parsed."""
    if completion is None:
        return None
    if early := _unheard(case, completion):
        return early
    if result is None:
        return None
    return _Scoring(case, completion, result, matchers).score()


def score_text(
    case: Case,
    result: ParseResult,
    *,
    finish_reason: str | None = None,
    cut: bool = False,
    matchers: Matchers = DEFAULT_MATCHERS,
) -> Score:
    """The score of a parsed text that no runner recorded."""
    from ...runner.types import Completion

    completion = Completion(key="", raw=result.raw, finish_reason=finish_reason, cut=cut, fidelity="synthetic")
    score = score_completion(case, completion, result, matchers)
    if score is None:  # pragma: no cover - both arguments are there
        raise AssertionError("a parsed completion always has a score")
    return score


def _unheard(case: Case, completion: Completion) -> Score | None:
    """Outcomes that need no text."""
    kind, reason = completion.error_kind, (completion.finish_reason or "").lower()
    failed = None if case.target is None else False
    if completion.status == "error" and kind == "context_overflow":
        outcome, detail = "context_overflow", "the request does not fit the model's context"
    elif kind == "refused" or reason in _REFUSALS:
        outcome, detail = "refused", f"the answer was stopped: {reason or 'refused'}"
    elif completion.status == "error":
        return Score("provider_error", kind or "other", completion.error_message or "the provider failed")
    else:
        return None
    return Score(outcome, "", completion.error_message or detail, failed, failed, failed, failed, failed)


def score_answer(case: Case, conversation: Conversation) -> bool | None:
    """Whether a conversation ended with the wanted text; None where none is wanted, or where it could not end.

    A text that goes on writing tool results says the wanted words without answering: it is none.
    """
    if case.answer is None or conversation.stop in ("not_asked", "not_run", "provider_error"):
        return None
    said = conversation.answer
    return said is not None and not find_own_result(said, after_call=False) and matches_answer(case.answer, said)


class _Scoring:
    """One answer's way down the order of precedence."""

    def __init__(self, case: Case, completion: Completion, result: ParseResult, matchers: Matchers) -> None:
        self.case = case
        self.completion = completion
        self.result = result
        self.matchers = matchers
        self.native = completion.endpoint_kind == "native_tools"
        self.tools: tuple[ToolSpec, ...] = case.tools or result.tools
        self.ok_calls = [c for c in result.calls if c.ok]
        self.broken = [c for c in result.calls if not c.ok and c.status != "unknown_tool" and not self._is_mention(c)]
        self.unknown = [c for c in result.calls if c.status == "unknown_tool"]
        self._known: dict[str, Value] = {}
        self.matched: tuple[list[tuple[str, Value]], bool] | None = None  # the calls that met the target, or did not

    def score(self) -> Score:
        for step in (self._silent, self._truncated, self._fabricated, self._unparseable, self._self_answered):
            if (score := step()) is not None:
                return score
        return self._judged()

    def _silent(self) -> Score | None:
        if self.result.calls or self._said().strip() or self._attempt() is not None:
            return None
        reasoning = self.completion.reasoning or self.result.reasoning
        cut = self._cut_code()
        if reasoning.strip():
            open_ = cut or ("open_reasoning" if self._open_reasoning() else "")
            return self._lose("reasoning_only", open_, "nothing follows the reasoning" + _because(cut))
        return self._lose("empty", cut, "the answer is empty" + _because(cut))

    def _truncated(self) -> Score | None:
        if cut := self._cut_code():
            return self._lose("truncated", cut, "the answer was cut off" + _because(cut))
        if self.completion.finish_reason is None and any(c.status == "truncated" for c in self.broken):
            return self._lose("truncated", "open_call", "the text ends inside a call")
        return None

    def _fabricated(self) -> Score | None:
        for call in (*self.ok_calls, *self.unknown):
            value = self._value(call.arguments_json) if call.arguments_json else None
            if why := find_fabrication(self.result.raw, call, value=value):
                return self._levels("fabricated", "", f"call {call.index}: {why}", fabricated=True)
        return None

    def _unparseable(self) -> Score | None:
        if self.ok_calls or self.unknown:
            return None
        if self.broken:
            call = self.broken[0]
            code = "incomplete" if call.status == "truncated" else "undecodable"
            why = next((p.message for p in call.problems if p.severity == "error"), f"the call is {call.status}")
            return self._lose("attempted_unparseable", code, f"call {call.index}: {why}")
        if attempt := self._attempt():
            shown = attempt.text if len(attempt.text) <= 80 else attempt.text[:77] + "…"
            return self._lose("attempted_unparseable", attempt.code, f"no call was found, but the text holds {shown!r}")
        return None

    def _self_answered(self) -> Score | None:
        if sign := find_own_result(self._spoken(), after_call=bool(self.ok_calls or self.unknown)):
            return self._lose("self_answered", "", f"the model wrote the tool's result itself: {sign[:80]!r}")
        return None

    def _judged(self) -> Score:
        target = self.case.target
        if self.unknown:
            names = ", ".join(c.name or "?" for c in self.unknown[:5])
            return self._lose("wrong_call", "unknown_tool", f"no tool of the name {names} was offered")
        if target is None:
            return Score("ungraded", "", "the case has no target", fabricated=False if self.ok_calls else None)
        if self.broken and self.ok_calls:
            detail = f"{len(self.broken)} of {len(self.result.calls)} calls could not be read"
            return self._lose("wrong_call", "one_of_several_broken", detail)
        if not self.ok_calls:
            if all(isinstance(t, Mapping) and t.get("$optional") is True for t in target):
                detail = "no call was wanted and none was tried"
                return Score("abstained_correctly", "", detail, True, True, True, True, self._naive(), None)
            return self._lose("abstained_wrongly", "", "a call was wanted and none was tried")
        calls = self._values("arguments_json")
        match = match_calls(calls, target, self.tools, self.matchers)
        self.matched = calls, match.ok
        if match.ok:
            return self._levels("correct", "", "the calls are the wanted ones")
        detail = match.detail + (f" ({match.note})" if match.note else "")
        return self._levels("wrong_call", match.code, detail)

    # levels of success

    def _lose(self, outcome: str, sub_code: str, detail: str) -> Score:
        if self.case.target is None:
            return Score(outcome, sub_code, detail, fabricated=False if self.ok_calls else None)
        said = False if self.ok_calls else None
        return Score(outcome, sub_code, detail, False, False, False, False, self._naive(), said)

    def _levels(self, outcome: str, sub_code: str, detail: str, fabricated: bool = False) -> Score:
        if self.case.target is None:
            return Score(outcome, sub_code, detail, fabricated=fabricated)
        success = outcome in SUCCESSES
        # Unreadable or unknown calls beside the readable ones spoil every level alike.
        whole = bool(self.ok_calls) and not self.broken and not self.unknown
        if whole and outcome != "fabricated" and not any(_coerced(c) for c in self.ok_calls):
            source = success  # what was coerced is what was found, and was looked at already
        else:
            source = whole and self._source_matches()
        untouched = not any(c.edits or c.steps or _recovered(c) for c in self.ok_calls)
        safe = self._safe(success, source) if whole else False
        return Score(
            outcome, sub_code, detail, success, source and untouched, source, safe, self._naive(), fabricated
        )  # fmt: skip

    def _source_matches(self) -> bool:
        if any(find_fabrication(self.result.raw, c, coerced=False) for c in self.ok_calls):
            return False
        return agree(self._values("source_json"), self.case.target or [], self.tools, self.matchers)

    def _safe(self, success: bool, source: bool) -> bool:
        policy = self.result.options.coerce
        if policy == "safe":
            return success
        if policy == "none" and source:
            return True
        calls = [(c.name, _coerce_safely(c, self.tools)) for c in self.ok_calls]
        return agree(calls, self.case.target or [], self.tools, self.matchers)

    def _values(self, field: str) -> list[tuple[str, Value]]:
        return [(c.name, self._value(getattr(c, field) or "{}")) for c in self.ok_calls]

    def _value(self, text: str) -> Value:
        """What a call's JSON says; it is asked for several times, and nobody changes it."""
        if text not in self._known:
            self._known[text] = read_strict(text)
        return self._known[text]

    def _naive(self) -> bool:
        calls = naive_calls(self.completion.raw, native=self.native)
        if self.matched is not None and _same_calls(calls, self.matched[0]):
            return self.matched[1]
        return agree(calls, self.case.target or [], self.tools, self.matchers)

    # what the text shows

    def _is_mention(self, call: ToolCall) -> bool:
        """Whether an unfinished call is prose about the format: an opener in mid-sentence with no body behind it."""
        span = call.segment.span
        if call.segment.closed or call.readable:
            return False
        line = self.result.raw[: span.start].rpartition("\n")[2]
        names = [t.name for t in self.tools]
        return line[-2:-1].isalnum() and line.endswith(" ") and find_attempt(span.of(self.result.raw), names) is None

    def _shown(self, *kinds: str) -> list[Span]:
        """What is left of the text without its reasoning, the calls that were read and segments of other kinds."""
        read = {c.segment_index for c in self.result.calls if c.readable}
        return [
            s.span
            for i, s in enumerate(self.result.segments)
            if s.kind != "reasoning" and i not in read and (not kinds or s.kind in kinds)
        ]

    def _said(self) -> str:
        """The text without markup."""
        if self.native:
            return _native_message(self.completion.raw)[0]
        return "".join(span.of(self.result.raw) for span in self._shown("text", "call", "recovered"))

    def _spoken(self) -> str:
        """The text with markup, where a lost call may have left its mark."""
        if self.native:
            return _native_message(self.completion.raw)[0]
        return "".join(span.of(self.result.raw) for span in self._shown())

    def _attempt(self) -> Attempt | None:
        if self.native and (calls := _native_message(self.completion.raw)[1]):
            return Attempt("undecodable", f"{len(calls)} tool calls", 0)
        quoted: list[tuple[int, int]] = []
        at = 0
        examples = [p.span for p in self.result.problems if p.code == "call.quoted-example" and p.span is not None]
        for span in [] if self.native else self._shown():
            for e in examples:
                start, end = max(e.start, span.start), min(e.end, span.end)
                if start < end:
                    quoted.append((at + start - span.start, at + end - span.start))
            at += len(span)
        return find_attempt(self._spoken(), [t.name for t in self.tools], quoted, _parameters(self.tools))

    def _cut_code(self) -> str:
        if (self.completion.finish_reason or "").lower() in _CUT_REASONS:
            return "length"
        return "cut_stream" if self.completion.cut else ""

    def _open_reasoning(self) -> bool:
        return any(s.kind == "reasoning" and not s.closed for s in self.result.segments)


def _parameters(tools: tuple[ToolSpec, ...]) -> set[str]:
    """The names of all parameters of the tools."""
    schemas = [t.schema for t in tools]
    found = [s.get("properties") for s in schemas if isinstance(s, Mapping)]
    return {name for properties in found if isinstance(properties, Mapping) for name in properties}


def _because(cut: str) -> str:
    return {"length": ": the token limit was reached", "cut_stream": ": the stream ended without a finish part"}.get(
        cut, ""
    )


def _same_calls(a: list[tuple[str, Value]], b: list[tuple[str, Value]]) -> bool:
    return len(a) == len(b) and all(name == other and same(x, y) for (name, x), (other, y) in zip(a, b, strict=True))


def _coerced(call: ToolCall) -> bool:
    return call.source_json != call.arguments_json or any(s.stage == "coerce" for s in call.steps)


def _recovered(call: ToolCall) -> bool:
    return call.segment.kind == "recovered" or any(p.code == "call.recovered" for p in call.problems)


def _coerce_safely(call: ToolCall, tools: tuple[ToolSpec, ...]) -> Value:
    from ...schema.coerce import coerce

    value = read_strict(call.source_json or "{}")
    schema = next((t.schema for t in tools if t.name == call.name), None)
    return value if schema is None else coerce(value, schema, "safe").value


def _native_message(raw: str) -> tuple[str, list[Any]]:
    """(content, tool calls) of a recorded native message."""
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError):
        return raw, []
    if not isinstance(message, dict):
        return raw, []
    content, calls = message.get("content"), message.get("tool_calls")
    return content if isinstance(content, str) else "", calls if isinstance(calls, list) else []


def naive_calls(raw: str, *, native: bool = False) -> list[tuple[str, Any]]:
    """The calls that a regex for a JSON object and `json.loads` would find, none where that fails.

    >>> naive_calls('Sure: {"name": "f", "arguments": {"a": 1}}')
    [('f', {'a': 1})]
    >>> naive_calls("{'name': 'f', 'arguments': {}}")
    []
    """
    try:
        if native:
            calls = [c["function"] for c in json.loads(raw).get("tool_calls") or ()]
            return [(c["name"], json.loads(c["arguments"])) for c in calls]
        start, end = raw.find("{"), raw.rfind("}")
        if start < 0 or end < start:
            return []
        call = json.loads(raw[start : end + 1])
        name, arguments = call["name"], call["arguments"]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return []
    return [(name, arguments)] if isinstance(name, str) and isinstance(arguments, dict) else []
