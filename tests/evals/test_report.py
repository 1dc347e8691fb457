from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.recorded import recorded_run
from tests.tables import asked_of, every_case
from toolparse_lab.core.errors import BadOptions, GateFailed, StoreError
from toolparse_lab.core.types import (
    ParseOptions,
    ParseResult,
    Policy,
    Problem,
    Segment,
    Span,
    Step,
    ToolCall,
)
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.frames.recorded import trials_frame
from toolparse_lab.evals.reports.figures import stats
from toolparse_lab.evals.reports.figures.cells import matrix
from toolparse_lab.evals.reports.figures.comparison import compare_arms
from toolparse_lab.evals.reports.figures.differences import mcnemar_exact
from toolparse_lab.evals.reports.figures.report import EMBEDDED_MODEL, Report
from toolparse_lab.evals.reports.figures.view import RunView
from toolparse_lab.evals.reports.pages.columns import interval_bar
from toolparse_lab.evals.reports.pages.files import WRITERS
from toolparse_lab.evals.reports.pages.text import aligned
from toolparse_lab.evals.scoring.outcomes import OUTCOMES
from toolparse_lab.evals.scoring.score import Score
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.runner.exchange.types import Completion

EVIL = "<script>alert('1')</script>"


def read(raw: str, policy: Policy, rules: tuple[str, ...] = (), valid: bool = True) -> ParseResult:
    segment = Segment("call", Span(0, len(raw)))
    steps = tuple(Step("coerce", r, "/a", Span(0, 1), "1", 1) for r in rules)
    problems = () if valid else (Problem("validate", "validate.type", "error", "no"),)
    call = ToolCall(
        0, 0, "f", Span(0, 1), None, "hermes", "ok", 1.0, '{"a":1}', '{"a":1}', steps=steps,
        problems=problems, segment=segment,
    )  # fmt: skip
    return ParseResult(raw, "hermes", ParseOptions(coerce=policy), (segment,), (call,), ())


def scored(
    outcome: str,
    sub_code: str = "",
    *,
    strict: bool = False,
    repaired: bool = False,
    naive: bool = False,
) -> Score:
    success = OUTCOMES[outcome].group == "success"
    return Score(
        outcome,
        sub_code,
        f"{EVIL} |x|",
        success,
        strict,
        repaired,
        success,
        naive,
        outcome == "fabricated",
    )


def make(
    model: str, protocol: str, case: int, trial: int = 0, score: Score | None = None, *,
    policy: Policy = "safe", rules: tuple[str, ...] = (), valid: bool = True, target: Any = (),
    reason: str = "", **completion: Any,
) -> Trial:  # fmt: skip
    key = f"{model}/{protocol}/{case}/{trial}"
    c = Completion(
        key=key, raw=f"f {trial}", latency=1.0 + trial, cost=0.5, completion_tokens=10, **completion
    )
    answered = score is not None and score.outcome != "provider_error"
    return Trial.of(
        Case(
            f"case-{case}", f"{case}?", (),
            None if target is None else [{"name": "f", "arguments": {"a": 1}}],
        ),
        None, run_id="r", model=model, arm=protocol, prompt_protocol=protocol,
        parse_protocol=protocol, policy=policy, trial=trial, missing_reason=reason,
    ) if score is None else Trial(
        "r", f"id-{key}-{policy}",
        Case(f"case-{case}", f"{case}?", (), None if target is None else []),
        model, protocol, protocol, protocol, policy, trial, c,
        read(c.raw, policy, rules, valid) if answered else None, score,
    )  # fmt: skip


def sample() -> list[Trial]:
    """Two models, two protocols, four cases, two trials, with one of everything that makes reports
    hard."""
    trials = []
    policies: tuple[Policy, ...] = ("safe", "middleware")
    for p in policies:
        for case in range(4):
            for trial in range(2):
                right = case != 3
                trials.append(
                    make("m1", "hermes", case, trial, scored("correct", strict=True, repaired=True, naive=True)
                         if right else scored("wrong_call", "name"), policy=p)
                )  # fmt: skip
                helped = (
                    scored("correct")
                    if case in (0, 3)
                    else scored("attempted_unparseable", "undecodable")
                )
                rules = ("coerce.integer-from-string",) if case == 0 else ()
                trials.append(make("m1", "morph_xml", case, trial, helped, policy=p, rules=rules))
                trials.append(
                    make(EVIL, "hermes", case, trial, scored("fabricated"), policy=p, valid=False)
                )
        trials.append(
            make("m1", "hermes", 4, 0, Score("provider_error", "timeout", "timed out"), policy=p)
        )
        trials.append(make(EVIL, "morph_xml", 0, 0, policy=p, reason="stopped at max_cost"))
        trials.append(make("m1", "hermes", 5, 0, Score("ungraded"), policy=p, target=None))
    return trials


FRAME = trials_frame(sample())


def cell(report: Report, **keys: str) -> Any:
    rows = report.frame
    for k, v in keys.items():
        rows = rows[rows[k] == v]
    assert len(rows) == 1
    return rows.iloc[0]


def test_one_row_a_cell() -> None:
    report = Report(FRAME)
    assert report.by == ("model", "prompt_protocol")
    assert len(report.frame) == 4
    row = cell(report, model="m1", prompt_protocol="hermes")
    assert (row["n"], row["n_cases"], row["missing"], row["ungraded"]) == (8, 4, 2, 1)
    assert (row["success"], row["strict"], row["repaired"], row["naive"], row["coerced"]) == (
        0.75,
    ) * 5
    want = stats.clustered_interval([True] * 6 + [False] * 2, [0, 0, 1, 1, 2, 2, 3, 3])
    assert (row["ci_low"], row["ci_high"]) == (want.low, want.high)
    assert (row["worst"], row["best"]) == (0.6, 0.8)
    assert row["distinct"] == 1
    assert row["cost_per_success"] == pytest.approx(10 * 0.5 / 6)
    assert "timeout" in row["reason"]


def test_unrecorded_cells_are_nan_with_a_reason() -> None:
    row = cell(Report(FRAME), model=EVIL, prompt_protocol="morph_xml")
    assert math.isnan(row["success"])
    assert math.isnan(row["coercion_rate"])
    assert (row["n"], row["missing"], row["worst"], row["best"]) == (0, 1, 0, 1)
    assert row["reason"] == "1 stopped at max_cost"


def test_coerced_is_the_looser_policy() -> None:
    trials = [
        make("m", "p", 0, 0, scored("wrong_call")),
        make("m", "p", 0, 0, scored("correct"), policy="middleware"),
    ]
    row = Report(trials_frame(trials)).frame.iloc[0]
    assert (row["success"], row["coerced"]) == (0, 1)
    assert Report(trials_frame(trials), policy="middleware").frame.iloc[0]["success"] == 1
    with pytest.raises(BadOptions, match="policy"):
        Report(trials_frame(trials), policy="lossy")


def test_waterfall_counts_every_trial_once() -> None:
    report = Report(FRAME)
    assert report.waterfall["n"].sum() == len(FRAME[FRAME["policy"] == "safe"])
    assert report.waterfall.groupby(["model", "prompt_protocol"])[
        "share"
    ].sum().tolist() == pytest.approx([1] * 4)
    mine = report.waterfall[
        (report.waterfall["model"] == "m1") & (report.waterfall["prompt_protocol"] == "hermes")
    ]
    assert dict(zip(mine["outcome"], mine["n"], strict=True)) == {
        "provider_error": 1, "wrong_call": 2, "correct": 6, "ungraded": 1,
    }  # fmt: skip
    assert "not recorded" in set(report.waterfall["outcome"])


def test_failures_codes_and_coercions_are_ranked_with_examples() -> None:
    report = Report(FRAME)
    assert report.failures["outcome"].tolist() == [
        "fabricated",
        "attempted_unparseable",
        "wrong_call",
        "provider_error",
    ]
    assert report.failures["n"].tolist() == [8, 4, 2, 1]
    ids = set(FRAME["trial_id"])
    for text in (
        *report.failures["trial_ids"],
        *report.codes["trial_ids"],
        *report.coercions["trial_ids"],
    ):
        assert set(text.split(", ")) <= ids
    assert report.codes[["code", "n"]].to_numpy().tolist() == [["validate.type", 8]]
    rule = report.coercions.iloc[0]
    assert (rule["rule"], rule["applied"], rule["rescued"], rule["harmed"]) == (
        "coerce.integer-from-string",
        2,
        2,
        0,
    )


def test_false_rescue_and_harm() -> None:
    rule = ("coerce.array-from-csv",)
    right, wrong = ((rule[0], 1, 0),), ((rule[0], 0, 1),)

    def judged(outcome: str, rescues: Any, repaired: bool = False) -> Score:
        return replace(scored(outcome, repaired=repaired), rescues=rescues)

    trials = [
        make("m", "p", 0, 0, judged("correct", right), rules=rule),
        make("m", "p", 1, 0, judged("wrong_call", wrong), rules=rule),
        make("m", "p", 2, 0, judged("wrong_call", wrong), rules=rule, valid=False),
        make("m", "p", 3, 0, judged("wrong_call", wrong, True), rules=rule),
        make("m", "p", 4, 0, judged("correct", right, True), rules=rule),
        # Something else is wrong in the call: that is no false rescue.
        make("m", "p", 5, 0, judged("wrong_call", right), rules=rule),
    ]
    frame = trials_frame(trials)
    row = Report(frame).rescues.iloc[0]
    assert (row["stage"], row["values_right"], row["values_wrong"]) == ("coercion", 3, 3)
    # A frame of an older version can only go by the whole answers.
    assert Report(frame.drop(columns="rescues_json")).rescues.iloc[0]["false_rescues"] == 2
    row = Report(frame).coercions.iloc[0]
    assert (row["rescued"], row["false_rescues"], row["false_rescue_rate"], row["harmed"]) == (
        1,
        1,
        0.5,
        1,
    )
    assert not row["lossless"]


def test_flips_are_paired_on_cases() -> None:
    flips = Report(FRAME).flips("hermes", "morph_xml")
    found = {(r["case_id"], r["direction"]) for r in flips.to_dict("records")}
    assert found == {("case-1", "lost"), ("case-2", "lost"), ("case-3", "gained")}
    row = flips.set_index("case_id").loc["case-1"]
    assert (row["success_a"], row["success_b"]) == (1, 0)
    assert row["trial_id_a"].startswith("id-m1/hermes/1/")
    assert row["outcome_b"] == "attempted_unparseable"


def test_comparison() -> None:
    found = compare_arms(FRAME, "hermes", "morph_xml", within="model")
    assert "None" not in found._repr_html_(), "a comparison has no gate"
    assert found.frame["model"].tolist() == ["m1", EVIL]
    other = found.frame.iloc[1]
    assert (other["n_cases"], other["unpaired_a"], other["unpaired_b"]) == (0, 4, 0)
    assert math.isnan(other["difference"]), (
        "the other model has nothing recorded in one of the arms"
    )
    row = found.frame.iloc[0]
    assert (row["n_cases"], row["only_a"], row["only_b"]) == (4, 2, 1)
    assert row["difference"] == -0.25
    assert row["p"] == row["p_holm"] == pytest.approx(mcnemar_exact(2, 1))
    assert "3 cases flipped" in str(found)
    assert EVIL not in compare_arms(FRAME, "m1", EVIL, within=None)._repr_html_()
    with pytest.raises(BadOptions, match="no column holds both"):
        compare_arms(FRAME, "hermes", "nope")
    assert compare_arms(FRAME, "safe", "middleware", within="model").frame[
        "difference"
    ].tolist() == [0, 0]


def test_baseline() -> None:
    report = Report(FRAME, baseline="hermes")
    row = cell(report, model="m1", prompt_protocol="morph_xml")
    assert (row["paired"], row["difference"]) == (4, -0.25)
    assert row["p_holm"] == pytest.approx(mcnemar_exact(2, 1))
    assert math.isnan(cell(report, model="m1", prompt_protocol="hermes")["difference"])
    with pytest.raises(BadOptions, match="baseline"):
        Report(FRAME, baseline="nope")


def test_a_protocol_of_several_arms_is_a_baseline(tmp_path: Path) -> None:
    run = recorded_run(tmp_path, every=3)
    with pytest.raises(BadOptions, match="baseline"):
        run.report(baseline="hermse")
    report = run.report(baseline="hermes")
    rates = {row["arm"]: row["success"] for row in report.frame.to_dict("records")}
    for row in report.frame.to_dict("records"):
        protocol, level = row["arm"].split(" ")
        assert report.is_baseline(row) == (protocol == "hermes")
        if protocol == "hermes":
            assert math.isnan(row["difference"])
        else:  # each against the arm that differs by the protocol alone
            gap = row["success"] - rates[f"hermes {level}"]
            assert row["difference"] == pytest.approx(gap)
    sentences = [check.sentence for check in report.gate(difference=-1).checks]
    assert sum("is the baseline itself" in sentence for sentence in sentences) == 2
    for page in (report.text(120), report.html(), report.markdown()):
        assert "hermes" in page
    # An arm's own name is one baseline for all, as before.
    alone = run.report(baseline="hermes free").frame
    assert alone["difference"].notna().sum() == len(alone) - 1


def test_gate() -> None:
    report = Report(FRAME[FRAME["model"] == "m1"])
    passed = report.gate(success=0.5, coercion_rate=0.25)
    assert passed
    assert passed.failures == ()
    failed = report.gate(success=0.6, coercion_rate=0.2)
    assert not failed
    assert [(f.cell, f.metric) for f in failed.failures] == [
        ("m1 · morph_xml", "success"), ("m1 · morph_xml", "coercion_rate"),
    ]  # fmt: skip
    assert "success is 50 %, below 60 % (n 8)" in str(failed)
    assert not report.gate(missing=0)
    assert report.gate(best=0.5)


def test_gate_fails_what_is_not_known_and_refuses_what_it_cannot_judge() -> None:
    found = Report(FRAME).gate(fabricated=1)
    assert not found
    assert [f.sentence for f in found.failures] == [
        f"{EVIL} · morph_xml: fabricated is not known (1 stopped at max_cost)"
    ]
    with pytest.raises(GateFailed, match="1 of 4 checks") as e:
        found.raise_()
    assert e.value.exit_code == 1
    with pytest.raises(BadOptions, match="did you mean success"):
        Report(FRAME).gate(sucess=0.5)
    with pytest.raises(BadOptions, match="at least one threshold"):
        Report(FRAME).gate()
    nothing = Report(
        FRAME[(FRAME["model"] == EVIL) & (FRAME["prompt_protocol"] == "morph_xml")]
    ).gate(success=0.5)
    assert not nothing.ok
    for wrong in (
        {"speed": 1},
        {"model": 1},
        {"success": "high"},
        {"success": math.nan},
        {"success": True},
    ):
        with pytest.raises(BadOptions):
            Report(FRAME).gate(**wrong)


@every_case
def test_a_gate_says_why_a_figure_is_not_known(
    metric: str, changes: dict[str, Any], why: str
) -> None:
    frame = FRAME[(FRAME["model"] == "m1") & (FRAME["prompt_protocol"] == "hermes")].copy()
    if changes.pop("trials", 2) == 1:
        frame = frame[frame["trial"] == 0]
    (check,) = Report(frame.assign(**changes)).gate(**{metric: 0.5}).checks
    assert not check.ok
    assert why in check.sentence


def test_a_gate_on_the_cases_that_are_paired() -> None:
    report = Report(FRAME, by=["model", "prompt_protocol"], baseline="hermes")
    assert report.gate(paired=0)
    assert [c.sentence for c in report.gate(paired=5).failures] == [
        "m1 · morph_xml: paired is 4, below 5 (n "
        "8)", f"{EVIL} · morph_xml: paired is 0, below 5 (n 0)",
    ]  # fmt: skip
    with pytest.raises(BadOptions, match="needs a report with a baseline"):
        Report(FRAME).gate(paired=3)


def test_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(BadOptions, match="lacks columns: outcome, cost") as e:
        Report(FRAME.drop(columns=["outcome", "cost"]))
    assert str(e.value.got).startswith("run_id, trial_id")
    with pytest.raises(BadOptions, match="made from a trials frame"):
        Report([])  # type: ignore[arg-type]
    with pytest.raises(BadOptions, match="no such column"):
        Report(FRAME, by=["nope"])
    with pytest.raises(BadOptions, match="at least one column"):
        Report(FRAME, by=[])
    with pytest.raises(BadOptions, match="two different columns"):
        matrix(FRAME, rows="model")
    with pytest.raises(BadOptions, match="kind of file"):
        Report(FRAME).save(tmp_path / "r.docx")
    with pytest.raises(StoreError, match="a report cannot be written"):
        Report(FRAME).save(tmp_path / "none" / "r.html")


def test_by_any_columns() -> None:
    assert Report(FRAME, by="category").frame["n"].tolist() == [24]
    assert Report(FRAME, by=["outcome"]).frame["outcome"].tolist()[0] == "correct"
    two = FRAME.copy()
    two["parse_protocol"] = "auto"
    assert Report(pd.concat([FRAME, two])).by == ("model", "prompt_protocol", "parse_protocol")
    pooled = Report(pd.concat([FRAME, two]), by=["model"])
    assert any(
        "Cells pool several values of prompt_protocol, parse_protocol" in n for n in pooled.notes
    )


def test_empty_frame_gives_an_empty_report(tmp_path: Path) -> None:
    report = Report(trials_frame([]))
    assert report.frame.empty
    assert "no trials" in report.text()
    for suffix in (".html", ".md", ".csv", ".parquet"):
        assert report.save(tmp_path / f"r{suffix}").exists()
    assert not report.gate(success=0.1).ok
    assert "success" in repr(matrix(trials_frame([])))


# what is written


class Outline(HTMLParser):
    VOID = frozenset({"meta", "br", "line", "circle", "img", "link", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.stack, self.stack

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.stack:
            self.text += data


PAGES = {
    "page": lambda: Report(RunView(FRAME, stops=[f"budget {EVIL}"]), baseline="hermes").html(
        page=True
    ),
    "fragment": lambda: Report(FRAME).html(),
    "matrix": lambda: matrix(FRAME)._repr_html_(),
    "empty": lambda: Report(trials_frame([])).html(page=True),
}


@asked_of("name", PAGES)
def test_html_is_well_formed_self_contained_and_escaped(name: str) -> None:
    text = PAGES[name]()
    outline = Outline(text)
    assert "script" not in {t for t, _ in outline.tags}
    if name != "empty":
        assert EVIL in outline.text
    assert "http" not in text.replace("http-equiv", "")
    for tag, attributes in outline.tags:
        names = [k for k in attributes if k.startswith("on") or k in ("src", "href")]
        if tag == "a" and (attributes["href"] or "").startswith("#"):  # a place on the page itself
            names.remove("href")
        assert not names, (tag, attributes)


def test_page_says_what_it_must() -> None:
    report = Report(
        RunView(FRAME, models={"m1": EMBEDDED_MODEL}, stops=["max_cost of 5 USD reached"])
    )
    text = re.sub(r"\s+", " ", Outline(report.html(page=True)).text)
    for needed in (
        "24 answers judged", "4 cases", "Stopped early: max_cost of 5 USD "
            "reached", "It cannot rank protocols",
        "n = 24 trials judged", "1 stopped at max_cost", "validate.type",
        "coerce.integer-from-string", "not recorded", "missing", "policy safe",
    ):  # fmt: skip
        assert needed in text, needed
    other = " ".join(Report(FRAME).notes)
    assert "rank protocols" not in other


def test_embedded_model_is_known_by_the_model_string_that_was_sent() -> None:
    trial = make(
        "small", "hermes", 0, 0, scored("correct"), request={"model": {"name": EMBEDDED_MODEL}}
    )
    assert any("cannot rank protocols" in n for n in Report(trials_frame([trial])).notes)


def test_text_fits_the_terminal() -> None:
    report = Report(FRAME, baseline="hermes")
    texts = {width: report.text(width) for width in (300, 90, 80)}
    for width, text in texts.items():
        table = text.split("\n\n")[1]
        assert max(map(len, table.splitlines())) <= width
    stopped = Report(
        RunView(FRAME, stops=["max_cost reached"], models={"m1": EMBEDDED_MODEL})
    ).text(60)
    assert "! Stopped early: max_cost reached" in stopped
    assert "cannot rank protocols" in " ".join(stopped.split())
    assert max(map(len, stopped.splitlines()[-12:])) <= 60
    assert ["├" in text for text in texts.values()] == [True, False, False]
    assert "75 %" in texts[80]
    assert repr(report) == report._repr_mimebundle_()["text/plain"]
    assert set(report._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_aligned_counts_wide_letters_as_two() -> None:
    lines = aligned(["名", "n"], [["a", "1"], ["数学", "22"]], 1).splitlines()
    assert lines[2:] == ["a      1", "数学  22"]


def test_aligned_shows_what_would_move_the_cursor() -> None:
    assert "\x1b" not in aligned(["a"], [["\x1b[2Jgone"]], 1)


def test_interval_bar() -> None:
    assert interval_bar(0.0, 0.5, 1.0, 10) == "├────●───┤"
    assert interval_bar(1.0, 1.0, 1.0, 4) == "···●"
    assert interval_bar(math.nan, math.nan, math.nan, 3) == "   "


def test_markdown_is_escaped_and_whole(tmp_path: Path) -> None:
    text = Report(FRAME, baseline="hermes").save(tmp_path / "r.md").read_text(encoding="utf-8")
    assert "<script>" not in text
    assert "\\|x\\|" in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(cells) == 1, table
    for heading in (
        "## Success",
        "## What happened",
        "## What goes wrong",
        "## Rescues",
        "## Method",
    ):
        assert heading in text


def test_saved_frames_read_back(tmp_path: Path) -> None:
    report = Report(FRAME)
    pd.testing.assert_frame_equal(
        pd.read_parquet(report.save(tmp_path / "r.parquet")), report.frame
    )
    back = pd.read_csv(report.save(tmp_path / "r.csv"))
    assert back["success"].tolist()[:2] == report.frame["success"].tolist()[:2]
    page = report.save(tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")


def test_matrix() -> None:
    m = matrix(FRAME)
    assert m.table.index.tolist() == ["hermes", "morph_xml"]
    assert m.table.columns.tolist() == ["m1", EVIL]
    assert m.table["m1"].tolist() == [0.75, 0.5]
    assert m.table[EVIL].isna().tolist() == [False, True]
    assert "75 % [" in repr(m)
    assert "stopped at max_cost" in m._repr_html_()
    assert Report(FRAME).matrix(rows="policy").rows == "policy"


# Files that other programs read.


def junit(report: Report, path: Path) -> ET.Element:
    return ET.fromstring(
        report.save(path / "r.xml", gate=report.gate(success=0.6)).read_text("utf-8")
    )


def test_junit_has_a_suite_for_each_cell_and_for_the_gate(tmp_path: Path) -> None:
    root = junit(Report(FRAME), tmp_path)
    suites = {s.get("name"): s for s in root}
    assert list(suites) == [
        "gate",
        "m1 · hermes",
        "m1 · morph_xml",
        f"{EVIL} · hermes",
        f"{EVIL} · morph_xml",
    ]
    hermes = {t.get("name"): [c.tag for c in t] for t in suites["m1 · hermes"]}
    assert hermes == {
        "case-0": [],
        "case-1": [],
        "case-2": [],
        "case-3": ["failure"],
        "case-4": ["error"],
        "case-5": ["skipped"],
    }
    assert [c.tag for t in suites[f"{EVIL} · morph_xml"] for c in t] == ["skipped"]
    for element in (root, *root):
        for plural, tag in (
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            assert element.get(plural) == str(len(list(element.iter(tag))))
    failure = suites["m1 · hermes"].find("testcase[@name='case-3']/failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("0 of 2 trials succeeded; wrong_call/name: ")
    assert "trial id-m1/hermes/3/0-safe" in str(failure.text)
    gate = {t.get("name"): [c.get("message") for c in t] for t in suites["gate"]}
    assert gate["m1 · hermes: success"] == []
    assert gate["m1 · morph_xml: success"] == ["m1 · morph_xml: success is 50 %, below 60 % (n 8)"]


def test_a_tie_of_trials_is_a_failure(tmp_path: Path) -> None:
    report = Report(
        trials_frame(
            [make("m", "p", 0, 0, scored("correct")), make("m", "p", 0, 1, scored("wrong_call"))]
        )
    )
    assert [c.tag for c in junit(report, tmp_path).iter("testcase")][-1] == "testcase"
    assert len(list(junit(report, tmp_path).iter("failure"))) == 2, "the gate's, and the case's"


@pytest.mark.parametrize(
    "text", ["\x00\x08 nul", "\ud800 alone", "\ufffe", "]]> <![CDATA[ & < >", EVIL]
)
def test_junit_of_hostile_text_is_xml(text: str, tmp_path: Path) -> None:
    trial = make(
        "m", "p", 0, 0, Score("wrong_call", "name", text, False, False, False, False, False, False)
    )
    assert "trials succeeded" in ET.tostring(
        junit(Report(trials_frame([trial])), tmp_path), "unicode"
    )


def test_latex_escapes_and_has_equal_rows(tmp_path: Path) -> None:
    frame = FRAME.copy()
    frame["model"] = frame["model"].astype(str).replace("m1", r"50% of_m#1 \ {x} ~ ^ $")
    text = Report(frame, baseline="hermes").save(tmp_path / "r.tex").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 5
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {9}
    assert r"50\% of\_m\#1 \textbackslash{} \{x\} \textasciitilde{} \textasciicircum{} \$" in text
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert "$-$25" in text


def test_every_kind_of_file_is_tried() -> None:
    assert set(WRITERS) == {".html", ".md", ".csv", ".parquet", ".tex", ".xml"}


def test_a_gate_stands_in_the_page_and_in_markdown(tmp_path: Path) -> None:
    report = Report(FRAME)
    gate = report.gate(success=0.6)
    page = Outline(report.save(tmp_path / "r.html", gate=gate).read_text("utf-8"))
    assert "Gate failed: 3 of 4 checks" in page.text
    assert "below 60 %" in page.text
    assert "answers against" in page.text
    assert "## Gate failed" in report.save(tmp_path / "r.md", gate=gate).read_text("utf-8")
    assert "Gate" not in report.html(page=True)
    assert Outline(gate._repr_html_()).text


def test_comparisons_are_written(tmp_path: Path) -> None:
    found = compare_arms(FRAME, "hermes", "morph_xml", within="model")
    page = found.save(tmp_path / "c.html").read_text("utf-8")
    outline = Outline(page)
    assert page.startswith("<!doctype html>")
    assert EVIL in outline.text
    assert "script" not in {t for t, _ in outline.tags}
    assert "Cases that flip 3 cases" in outline.text
    assert "case-1 lost: right → call not read" in outline.text
    assert "Cases that only one side has 4 cases" in outline.text
    text = found.save(tmp_path / "c.md").read_text("utf-8")
    assert "## Flipped cases: 3" in text
    assert "<script>" not in text
    assert len(pd.read_csv(found.save(tmp_path / "c.csv"))) == 2
    pd.testing.assert_frame_equal(pd.read_parquet(found.save(tmp_path / "c.parquet")), found.frame)
    with pytest.raises(BadOptions, match="a comparison is not written"):
        found.save(tmp_path / "c.docx")
