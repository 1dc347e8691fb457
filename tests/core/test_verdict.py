"""One word on a result, the same on every surface that shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolparse_lab as tp
from tests.core_cases import rows
from tests.tables import asked_of, every_case
from toolparse_lab.cli.app import main
from toolparse_lab.core.rules import CODES, RULES
from toolparse_lab.core.types import EXECUTABLE, VERDICTS, ParseResult, Problem
from toolparse_lab.core.values import wording as w
from toolparse_lab.evals.frames.recorded import calls_frame
from toolparse_lab.evals.reports.pages.tables import listings_of
from toolparse_lab.views import render_ansi, render_result
from toolparse_lab.views.words import word_of

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
CASES = [parameter.values[0] for parameter in rows("verdict.jsonl")]


def result_of(case: dict[str, Any]) -> ParseResult:
    return tp.parse(case["raw"], case["protocol"], case.get("tools", TOOLS), case.get("options"))


def echoed() -> ParseResult:
    """A call that somebody else wrote, as a parser that knows the request would say it."""
    result = tp.parse(CASES[1]["raw"], "hermes", TOOLS)
    problem = Problem("scan", "call.echoed", "error", "it stands in the request")
    call = replace(result.calls[0], status="undecodable", problems=(problem,))
    return replace(result, calls=(call,))


RESULTS = [(case["verdict"], result_of(case)) for case in CASES] + [("echoed", echoed())]


def test_there_is_a_case_of_each_verdict() -> None:
    assert {word for word, _ in RESULTS} == set(VERDICTS)


@asked_of(("word", "result"), RESULTS, ids=[c["title"] for c in CASES] + ["echoed"])
def test_every_surface_says_the_same_word(word: str, result: ParseResult) -> None:
    assert result.verdict == word
    assert word in result.why()
    terminal = render_ansi(result, color=False).splitlines()
    assert terminal[0][2:].startswith(f"{word}  ")
    assert result.to_dict()["verdict"] == word

    words = [call.verdict for call in result.calls]
    page = render_result(result)
    assert all(f" {word_of(verdict)}</span>" in page for verdict in words)
    titles = [line for line in terminal if line.startswith("call ")]
    assert all(f" {w}" in title for w, title in zip(words, titles, strict=True))
    assert list(calls_frame(result)["verdict"]) == words
    # Stored and read back it is the same word.
    assert ParseResult.from_dict(json.loads(result.to_json())).verdict == word


@asked_of("case", [c for c in CASES if "tools" not in c], ids=lambda case: str(case["title"]))
def test_the_command_line_says_it(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text(case["raw"], "utf-8")
    (tmp_path / "t.json").write_text(json.dumps(TOOLS), "utf-8")
    arguments = ["parse", str(tmp_path / "a.txt"), "--tools", str(tmp_path / "t.json")]
    if "options" in case:
        arguments += ["--policy", case["options"]["coerce"]]
    main([*arguments, "--protocol", case["protocol"], "--color", "never"])
    assert f" {case['verdict']}  " in capsys.readouterr().out.splitlines()[0]


def test_frame_and_report_say_it(tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        answers = [{"output": case["raw"], "case_id": str(i)} for i, case in enumerate(CASES)]
        run = lab.ingest(answers, tools=TOOLS, protocol="hermes")
        frame = run.frame().set_index("case_id")
        for i, case in enumerate(CASES):
            if case["protocol"] == "hermes" and not {"options", "tools"} & case.keys():
                assert frame.loc[str(i), "verdict"] == case["verdict"], case["title"]
        section = next(s for s in listings_of(run.report()) if s.title == "Verdicts").drawn("md")
    counts = frame["verdict"].value_counts()
    row = dict(zip([name for name, _ in section.head], section.rows[0], strict=True))
    words = {word_of(str(verdict)): n for verdict, n in counts.to_dict().items()}
    assert {word: int(n) for word, n in row.items() if word in words} == words


def test_auto_names_the_protocol_that_matched() -> None:
    result = result_of(CASES[-1])
    assert result.formats == ("hermes",)
    assert "auto (hermes)" in render_ansi(result, color=False)
    assert "auto (hermes)" in render_result(result)
    assert result.why().startswith("Read as hermes.")


def test_only_what_may_be_executed_is_executable() -> None:
    for _, result in RESULTS:
        for call in result.calls:
            assert (call.verdict in EXECUTABLE) == call.valid


def test_a_rule_that_guesses_a_token_is_lossy() -> None:
    for rule in ("rjson.missing-comma", "rjson.missing-bracket", "tags.unclosed-parameter"):
        assert not RULES[rule].lossless
    assert CODES["call.missing-closer"].lossless is True
    assert CODES["call.rescued-closer"].lossless is False


def test_an_unknown_rule_counts_as_lossy() -> None:
    result = tp.parse(CASES[2]["raw"], "hermes", TOOLS)
    call = result.calls[0]
    own = replace(call, edits=(replace(call.edits[0], rule="mine.rule"),))
    assert own.verdict == "repaired (lossy)"


# A number has one form, wherever it is shown.


UNKNOWN = (None, float("nan"), pd.NA, pd.NaT)


@every_case
def test_a_share_never_rounds_to_certainty(rate: Any, n: int, text: str) -> None:
    assert w.share(rate, n) == text


def test_halves_of_any_count_go_up() -> None:
    for n in range(2, 400):
        for k in range(1, n):
            exact = Fraction(100 * k, n)
            if 1 <= exact <= 99:
                up = int(exact + Fraction(1, 2))
                assert w.share(k / n, n) == f"{up} %"


def test_what_is_not_known_is_said_alike() -> None:
    for x in UNKNOWN:
        assert {w.share(x), w.points(x), w.p_value(x), w.seconds(x), w.money(x)} == {w.NOTHING}
        assert (w.span(x, 1), w.points_span(x, 1)) == ("", w.NOTHING)
    assert w.share(Decimal("0.5")) == "50 %"
