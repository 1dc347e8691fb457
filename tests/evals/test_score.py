"""Hand-labelled texts must get the outcome a careful reader gives them, whatever the parser made of
them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

from tests.core_cases import EVALS, load
from tests.growth import grows_linearly
from tests.tables import asked_of, every_case
from tests.tools import tool_named
from toolparse_lab import parse
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.core.types import (
    Edit,
    Origin,
    OriginTable,
    ParseOptions,
    ParseResult,
    Problem,
    Segment,
    Span,
    Step,
    ToolCall,
)
from toolparse_lab.core.types.server import IN_CONTENT
from toolparse_lab.core.values import pointer_set, read_strict, write_canonical
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.scoring.blame import blame_of
from toolparse_lab.evals.scoring.fabrication import find_fabrication
from toolparse_lab.evals.scoring.outcomes import OUTCOMES, SUB_CODES, SUCCESSES
from toolparse_lab.evals.scoring.score import Score, find_own_result, score_completion, score_text
from toolparse_lab.parser.recognition.attempts import find_attempt
from toolparse_lab.runner.exchange.types import Completion

TOOLS = tool_specs(
    [
        tool_named(
            "get_weather", required=["city"], city="string", days={"type": "integer", "default": 1}
        ),
        tool_named("save_note", text="string"),
    ]
)
ROWS = load("outcomes.jsonl", EVALS)
LABELLED = ("outcome", "sub_code", "strict", "repaired", "safe", "naive")


def score_row(row: dict[str, Any]) -> Score:
    case = Case(row["id"], "?", TOOLS, row["target"])
    completion = Completion(
        key=row["id"],
        raw=row["raw"],
        status="error" if row.get("error_kind") else "ok",
        error_kind=row.get("error_kind"),
        finish_reason=row.get("finish_reason", "stop"),
        reasoning=row.get("reasoning", ""),
        endpoint_kind="native_tools" if row.get("native") else "chat_text",
        cut=row.get("cut", False),
    )
    result = parse(row["raw"], row["protocol"], TOOLS, {"coerce": row.get("policy", "safe")})
    if row.get("unlifted"):
        problem = Problem("read", IN_CONTENT, "error", "left in the text")
        result = replace(result, problems=(*result.problems, problem))
    if "lossy_step" in row:
        result = coerced_lossily(result, row["lossy_step"])
    score = score_completion(case, completion, None if row.get("error_kind") else result)
    assert score is not None
    return score


def coerced_lossily(result: ParseResult, change: dict[str, Any]) -> ParseResult:
    """The result as a policy that guesses would have left it: one value of the only call
    replaced."""
    call = result.calls[0]
    step = Step(
        "coerce", "coerce.unwrap-single", change["path"], None, change["before"], change["after"]
    )
    value = pointer_set(read_strict(call.source_json), change["path"], change["after"])
    call = replace(call, arguments_json=write_canonical(value), steps=(step,), problems=())
    return replace(result, calls=(call,), options=ParseOptions(coerce="lossy"))


@asked_of("row", ROWS, ids=lambda r: r["id"])
def test_labelled(row: dict[str, Any]) -> None:
    score = score_row(row)
    assert {k: getattr(score, k) for k in LABELLED if k in row} == {
        k: row[k] for k in LABELLED if k in row
    }, score
    if row["target"] is None or score.outcome == "provider_error":
        assert score.success is score.strict is score.repaired is score.safe is None
        return
    assert score.sub_code in SUB_CODES or not score.sub_code
    assert score.success is (score.outcome in SUCCESSES)
    assert not score.strict or score.repaired, "what is right as written is right after repair"
    assert score.coerced is score.success


def test_every_outcome_and_sub_code_is_labelled_with_a_reason() -> None:
    # Of a reader that fails there is no text to label: see tests/extensions/readers/test_outside_readers.py.
    assert {r["outcome"] for r in ROWS} == set(OUTCOMES) - {"reader_error"}
    # An unread part is one of a body, and no text has it: see tests/entry/test_unread.py.
    codes = {r["sub_code"] for r in ROWS if r["outcome"] != "provider_error"}
    assert codes | {"unread_part"} == {"", *SUB_CODES}
    assert len({r["protocol"] for r in ROWS}) >= 9
    assert len(ROWS) >= 120
    assert all(r["why"].endswith(".") for r in ROWS)
    for key in ("id", "why"):
        assert not [x for x, n in Counter(r[key] for r in ROWS).items() if n > 1], (
            f"one {key} twice"
        )


def test_an_attempt_that_cannot_be_read_is_never_a_correct_abstention() -> None:
    """Every text that fails to be read on a case that wants a call fails on one that wants none,
    and back."""
    for row in ROWS:
        if row["outcome"] == "attempted_unparseable":
            for target in ([], [{"name": "get_weather", "arguments": {"city": "Paris"}}]):
                assert score_row({**row, "target": target}).outcome == "attempted_unparseable", row[
                    "id"
                ]


def test_nothing_recorded_or_parsed_has_no_score() -> None:
    case = Case("c", "?", TOOLS, [])
    assert score_completion(case, None, None) is None
    assert score_completion(case, Completion(key="k", raw="hi"), None) is None


def test_provider_error_says_its_class_and_message() -> None:
    completion = Completion(
        key="k", status="error", error_kind="rate_limited", error_message="429 slow down"
    )
    score = score_completion(Case("c", "?", TOOLS, []), completion, None)
    assert score == Score("provider_error", "rate_limited", "429 slow down")


def test_native_calls_that_no_parser_found_are_an_attempt() -> None:
    raw = '{"content":null,"tool_calls":[{"function":{"name":"get_weather","arguments":"{"}}]}'
    empty = ParseResult(
        raw, "openai_json", ParseOptions(), (Segment("text", Span(0, len(raw))),), (), ()
    )
    completion = Completion(
        key="k", raw=raw, endpoint_kind="native_tools", finish_reason="tool_calls"
    )
    score = score_completion(Case("c", "?", TOOLS, []), completion, empty)
    assert score is not None
    assert (score.outcome, score.sub_code) == ("attempted_unparseable", "undecodable")


def test_a_quoted_example_the_parser_marked_is_no_attempt() -> None:
    raw = '<think>x</think>Well\n```\n<tool_call>{"name": "get_weather"}</tool_call>\n```'
    start = raw.index("Well")
    segments = (
        Segment("reasoning", Span(0, start), Span(7, 8)),
        Segment("text", Span(start, len(raw))),
    )
    example = Span(raw.index("<tool_call>"), raw.index("\n```", start + 9))
    marked = (Problem("scan", "call.quoted-example", "info", "", "", example),)
    case = Case("c", "?", TOOLS, [])
    assert score_text(
        case, ParseResult(raw, "hermes", ParseOptions(), segments, (), marked)
    ).success


@asked_of(
    ("target", "outcome"),
    [([], "held_back"), ([{"name": "ping", "arguments": {}}], "held_back"), (None, "ungraded")],
)
def test_what_is_held_back_is_no_abstention(target: list[Any] | None, outcome: str) -> None:
    tools = tool_specs([{"name": "ping", "parameters": {"type": "object"}}])
    raw = 'For example:\n<tool_call>{"name": "ping", "arguments": {}}</tool_call>\nThat is all.'
    score = score_text(Case("c", "?", tools, target), parse(raw, "hermes", tools))
    assert (score.outcome, bool(score.success)) == (outcome, False)


# fabrication: calls made by hand, as a parser that invents would make them


def make_call(raw: str, arguments: str, origins: dict[str, Origin], **more: Any) -> ToolCall:
    fields: dict[str, Any] = {
        "name": "f",
        "name_span": Span(0, 1),
        "source_json": arguments,
        "arguments_json": arguments,
        "segment": Segment("call", Span(0, len(raw))),
        **more,
    }
    return ToolCall(
        0,
        0,
        wire_id=None,
        protocol="x",
        status="ok",
        confidence=1.0,
        origins=OriginTable(lambda: origins),
        **fields,
    )


@every_case
def test_fabrication(
    raw: str, arguments: str, origins: dict[str, Any], edits: Any, steps: Any, culprit: str
) -> None:
    """Of an origin its start and end, and false where it is not exact."""
    call = make_call(
        raw,
        arguments,
        {path: Origin(Span(*place[:2]), *place[2:]) for path, place in origins.items()},
        edits=tuple(Edit(Span(start, end), *more) for start, end, *more in edits),
        steps=tuple(
            Step("coerce", rule, path, Span(*span), *values) for rule, path, span, *values in steps
        ),
    )
    why = find_fabrication(raw, call)
    assert (culprit in why) if culprit else why == "", why


def test_words_elsewhere_in_the_text_or_in_an_edited_call_are_no_words_of_the_call() -> None:
    raw = 'f {"a": "Oslo"}'
    outside = make_call(raw, '{"a":"Oslo"}', {}, segment=Segment("call", Span(0, 2)))
    edited = make_call(raw, '{"a":"Oslo"}', {}, edits=(Edit(Span(2, 2), "{", "json.open"),))
    assert find_fabrication(raw, outside)
    assert find_fabrication(raw, edited)


def test_lossy_step_under_a_lossless_policy_level() -> None:
    step = Step("coerce", "coerce.array-from-csv", "/a", Span(2, 5), "N/A", [0])
    call = make_call(
        "f N/A", '{"a":[0]}', {"/a": Origin(Span(2, 5))}, steps=(step,), source_json='{"a":"N/A"}'
    )
    assert find_fabrication("f N/A", call)
    assert find_fabrication("f N/A", call, coerced=False) == ""


# signs in the text


@every_case
def test_signs_of_an_attempt(text: str, code: str | None) -> None:
    found = find_attempt(text, ["get_weather"], parameters=["city", "days"])
    assert (found.code if found else None) == code, found


def look_for_signs(text: str) -> None:
    find_attempt(text, ["get_weather"], parameters=["city"])
    find_own_result(text, after_call=True)


@every_case
def test_signs_are_found_in_linear_time(unit: str) -> None:
    assert grows_linearly(lambda size: look_for_signs(unit * (size // len(unit))), 20_000)


QUOTED = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
SHOWN = {
    "quoted lines": f"> {QUOTED}\n",
    "code": f"Write `{QUOTED}` for it.\n",
    "fences": f"For example:\n```\n{QUOTED}\n```\nand so on.\n",
    "marks": f'He wrote "{QUOTED}" there.\n',
    "calls and examples": f"{QUOTED}\nFor example `{QUOTED}`.\n",
}


@asked_of("way", SHOWN)
def test_answers_of_many_shown_calls_cost_no_more_than_their_length(way: str) -> None:
    case = Case("c", "?", tool_specs(tool_named("get_weather", city="string")), [])
    parsed = {n: parse(SHOWN[way] * n, "hermes", case.tools) for n in (100, 400)}

    def score_and_blame(count: int) -> None:
        result = parsed[count]
        completion = Completion("", raw=result.raw, finish_reason="stop", fidelity="synthetic")
        score = score_completion(case, completion, result)
        blame_of(case, completion, result, score)
        result.frame()

    parsed[100].frame()  # the library is loaded
    assert grows_linearly(score_and_blame, 100)


def test_a_quadratic_search_is_not_linear() -> None:
    def look_again_and_again(size: int) -> None:
        for start in range(0, size, 100):
            ("a" * size).count("x", start)

    assert not grows_linearly(look_again_and_again, 40_000)


def test_own_results_in_plain_words_need_a_call_before() -> None:
    text = "Observation: 21 degrees"
    assert find_own_result(text, after_call=True) == "Observation: 2"
    assert find_own_result(text, after_call=False) == ""
    assert find_own_result("I saw `<tool_response>x` once", after_call=True) == ""


# names that a provider does not allow

DOTTED = tool_specs(
    [
        tool_named("maps.find", n="integer"),
        {"name": "a.b", "parameters": {"type": "object", "properties": {}}},
        {"name": "a-b", "parameters": {"type": "object", "properties": {}}},
        {"name": "a_b.c", "parameters": {"type": "object", "properties": {}}},
        {"name": "a.b_c", "parameters": {"type": "object", "properties": {}}},
    ]
)


@every_case
def test_a_dotted_name_matches_what_the_provider_allows(
    name: str, native: bool, outcome: str
) -> None:
    function = {"name": name, "arguments": '{"n": "3"}'}
    raw = json.dumps({"content": None, "tool_calls": [{"id": "c", "function": function}]})
    case = Case("c", "?", DOTTED, [{"name": "maps.find", "arguments": {"n": 3}}])
    completion = Completion(
        key="",
        raw=raw,
        finish_reason="stop",
        endpoint_kind="native_tools" if native else "chat_text",
    )
    score = score_completion(case, completion, parse(raw, "openai_json", DOTTED))
    assert score is not None
    assert score.outcome == outcome, score
    if outcome == "correct":
        # A provider may forbid the dot, so that its own call is as strict as any other.
        dotted = [] if native else [("read.dotted-name", 1, 0)]
        assert score.rescues == (("coerce.integer-from-string", 1, 0), *dotted)
