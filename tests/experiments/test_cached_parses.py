"""What a run keeps of its parsed answers: equal to reading them, read once, and read again where an
answer, an item, the reader or the kept bytes have changed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from pandas.testing import assert_frame_equal

import toolparse_lab as tp
from tests.parsed_texts import with_each_text
from tests.postgres_server import empty, postgres_url
from toolparse_lab.core.errors import BadOptions, UnknownName, UnreadableInput
from toolparse_lab.core.types import Policy
from toolparse_lab.evals.engines import results_of
from toolparse_lab.evals.frames.files import convert_frame
from toolparse_lab.evals.frames.recorded import calls_frame, trials_frame
from toolparse_lab.evals.reports.pages.html import failing_cells
from toolparse_lab.experiments import cached_parses, trial_reader
from toolparse_lab.experiments.run import Run

TOOLS = [{"name": "add", "parameters": {"properties": {"n": {"type": "integer"}}}}]
POLICIES: tuple[Policy, ...] = ("safe", "middleware")


def answer(n: int) -> dict[str, Any]:
    arguments = ('{"n": 7}', '{"n": "7"}', '{"n": 7,}', '{"n": ')[n % 4]
    return {
        "case_id": f"case {n // 2}",
        "input": f"Add {n // 2}",
        "raw": f'Well. <tool_call>{{"name": "add", "arguments": {arguments}}}</tool_call>',
        "model": f"m{n % 2}",
        "target": [{"name": "add", "arguments": {"n": 7}}],
        "topic": "sums",
    }


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_parses, "BLOCK", 7)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were parsed since."""
    texts: list[str] = []
    with_each_text(monkeypatch, texts.append)
    return texts


@pytest.fixture(scope="module")
def server() -> Iterator[str | None]:
    with postgres_url() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "runs.db")
        return
    address = request.getfixturevalue("server")
    if address is None:
        pytest.skip("no PostgreSQL: apt-get install postgresql")
    empty(address)
    yield address
    close_labs()  # while the server is there


_labs: list[tp.Lab] = []


def close_labs() -> None:
    while _labs:
        _labs.pop().close()


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_labs()


def lab_of(url: str) -> tp.Lab:
    _labs.append(tp.Lab(url))
    return _labs[-1]


def opened(url: str, run_id: str) -> Run:
    """The run in a lab of its own, as another process has it."""
    return lab_of(url).open(run_id)


def ingested(url: str, count: int = 20) -> Run:
    return lab_of(url).ingest([answer(n) for n in range(count)], tools=TOOLS, protocol="hermes")


def read_anew(run: Run) -> pd.DataFrame:
    return trials_frame(run.trials(policies=POLICIES), metadata=["topic"])


def test_what_is_kept_is_what_is_read_and_it_is_read_once(url: str, parsed: list[str]) -> None:
    run = ingested(url)
    first = run.frame(policies=POLICIES)
    assert len(parsed) == 40, "once under each policy"
    again = opened(url, run.run_id)
    assert_frame_equal(again.frame(policies=POLICIES), first)
    assert_frame_equal(again.calls_df(), calls_frame(list(run.trials())))
    assert_frame_equal(again.report().frame, run.report().frame)
    assert len(parsed) == 40
    assert_frame_equal(first, read_anew(again))


def test_a_part_of_a_run(tmp_path: Path, parsed: list[str]) -> None:
    run = ingested(str(tmp_path / "runs.db"))
    assert len(run.frame(case_id="case 3")) == 2
    assert len(parsed) == 2, "few are read alone"
    whole = run.frame()
    again = opened(str(tmp_path / "runs.db"), run.run_id)
    parsed.clear()
    part = again.frame(model="m1", case_id=["case 1", "case 9"])
    assert part["trial_id"].tolist() == [
        t for t, m, c in whole[["trial_id", "model", "case_id"]].itertuples(index=False)
        if m == "m1" and c in ("case 1", "case 9")
    ]  # fmt: skip
    assert set(again.calls_df(model="m1")["model"]) == {"m1"}
    failures = again.failures()
    assert parsed == [trial.completion.raw for trial in failures if trial.completion]
    assert [trial.trial_id for trial in failures] == [
        trial.trial_id for trial in run.trials() if trial.failed
    ]
    assert again.trial(whole["trial_id"][13]).trial_id == whole["trial_id"][13]


def test_notes_of_people_are_not_kept(tmp_path: Path) -> None:
    run = ingested(str(tmp_path / "runs.db"))
    run.frame()
    trial = opened(str(tmp_path / "runs.db"), run.run_id).trials()[4]
    trial.note("look here").override("ungraded", why="odd")
    row = run.frame().iloc[4]
    assert (row["note"], row["override"], row["override_why"]) == ("look here", "ungraded", "odd")
    trial.note("").override(None)
    assert run.frame()[["note", "override"]].isna().all(axis=None)


def test_an_answer_asked_again_is_read_again_and_no_other(
    tmp_path: Path, parsed: list[str]
) -> None:
    path = str(tmp_path / "runs.db")
    run = ingested(path)
    before = run.frame()
    parsed.clear()
    with tp.Lab(path) as lab:
        completion = next(iter(lab.store.completions(run.run_id)))[1]
        lab.store.record(completion, "another run")
        assert_frame_equal(opened(path, run.run_id).frame(), before)
        assert parsed == [], "the run's own answer stays what it was"
        changed = type(completion)(**{**vars_of(completion), "raw": "Nothing."})
        lab.store.record(changed, run.run_id)
    after = opened(path, run.run_id).frame()
    assert (after["raw"] == "Nothing.").sum() == 1
    assert 0 < len(parsed) <= 7, "one block"


def vars_of(completion: Any) -> dict[str, Any]:
    return {name: getattr(completion, name) for name in completion.__dataclass_fields__}


def test_another_version_of_the_reader_reads_again(
    tmp_path: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "runs.db")
    run = ingested(path)
    run.frame()
    parsed.clear()
    opened(path, run.run_id).frame(protocol="morph_xml")
    assert len(parsed) == 20
    monkeypatch.setattr(cached_parses, "code_digest", lambda: "newer")
    opened(path, run.run_id).frame()
    assert len(parsed) == 40


def test_damaged_bytes_are_thrown_away(tmp_path: Path, parsed: list[str]) -> None:
    path = str(tmp_path / "runs.db")
    run = ingested(path)
    whole = run.frame()
    with sa.create_engine(f"sqlite:///{path}").begin() as connection:
        connection.execute(sa.text("update readings set body = x'50' where block = 1"))
    parsed.clear()
    with pytest.warns(RuntimeWarning, match="7 parsed answers is damaged"):
        assert_frame_equal(opened(path, run.run_id).frame(), whole)
    assert len(parsed) == 7
    assert_frame_equal(opened(path, run.run_id).frame(), whole)


def test_they_are_forgotten_and_cost_less_than_the_answers(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.db")
    run = ingested(path)
    run.frame()
    with tp.Lab(path) as lab:
        assert lab.forget_parses(run) > 1000
        assert lab.forget_parses() == 0
        assert_frame_equal(lab.open(run.run_id).frame(), run.frame())


def test_a_reader_that_nobody_knows_is_not_kept(tmp_path: Path, parsed: list[str]) -> None:
    run = ingested(str(tmp_path / "runs.db"))
    own = tp.json_mix_protocol(tool_call_start="[C]", tool_call_end="[/C]")
    run.frame(protocol=own)
    parsed.clear()
    opened(str(tmp_path / "runs.db"), run.run_id).frame(protocol=own)
    assert len(parsed) == 20


@pytest.mark.exhaustive(2)
def test_another_process_reads_the_same(
    url: str, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_parses, "MANY", 0)
    monkeypatch.setattr(cached_parses, "available_processes", lambda: 2)
    monkeypatch.setattr(cached_parses, "results_of", partial(results_of, workers=1))
    run = ingested(url)
    frame = run.frame()
    again = opened(url, run.run_id)
    assert_frame_equal(again.frame(), frame)
    assert parsed == []
    assert_frame_equal(frame, trials_frame(run.trials(), metadata=["topic"]))
    assert_frame_equal(again.calls_df(), calls_frame(list(again.trials())))


def test_what_was_parsed_before_an_interrupt_stays(
    tmp_path: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ingested(str(tmp_path / "runs.db"))

    def interrupt(raw: str) -> None:
        if len(parsed) == 16:
            raise KeyboardInterrupt

    with_each_text(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        run.frame()
    parsed.clear()
    assert_frame_equal(opened(str(tmp_path / "runs.db"), run.run_id).frame(), run.frame())
    assert len(parsed) == 6, "two blocks of seven were kept"


def test_a_run_that_is_whole_is_not_opened_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ingested(url)
    run.frame(policies=("none",))
    frame = run.frame()
    again = opened(url, run.run_id)
    monkeypatch.setattr(trial_reader.TrialReader, "items", None)
    assert_frame_equal(again.frame(), frame)
    assert len(again.frame(policies=("none",))) == len(frame)
    monkeypatch.undo()
    with tp.Lab(url) as lab:
        completion = next(iter(lab.store.completions(run.run_id)))[1]
        changed = type(completion)(**{**vars_of(completion), "raw": "Nothing."})
        lab.store.record(changed, run.run_id)
    assert (opened(url, run.run_id).frame()["raw"] == "Nothing.").sum() == 1


def test_reports_of_store_files_and_frames_are_equal(tmp_path: Path) -> None:
    run = ingested(str(tmp_path / "runs.db"))
    whole = run.frame(policies=POLICIES)
    by = ["model", "metadata_topic"]
    for n, part in enumerate((whole[:9], whole[9:])):
        part.to_parquet(tmp_path / f"part-{n}.parquet")
    whole.to_csv(tmp_path / "all.csv", index=False)
    files = sorted(tmp_path.glob("*.parquet"))
    anew = tp.report(read_anew(run), by)
    for source in (whole, str(tmp_path / "part-*.parquet"), files):
        assert_frame_equal(tp.report(source, by).frame, anew.frame)
    for place in (tmp_path, tmp_path / "all.csv"):
        report = tp.report(place, by)
        assert_frame_equal(report.frame, anew.frame)
        assert report.markdown() == anew.markdown()
        assert report.html(page=True) == anew.html(page=True)
    stored = run.report(by)
    assert_frame_equal(stored.frame, anew.frame)
    anew.title = stored.title  # that of a run names its log
    assert stored.save(tmp_path / "a.xml").read_text() == anew.save(tmp_path / "b.xml").read_text()
    assert stored.trials["raw"].dtype == "Int64", "numbers, no texts"
    wrong = stored.headline.loc[stored.headline["outcome"] == "wrong_call", "trial_id"]
    assert stored.view.rows(list(wrong))["raw"].str.startswith("Well.").all()
    for column in ("input", "trial"):
        wanted = tp.report(whole, column).frame
        assert_frame_equal(run.report(column).frame, wanted)
        assert_frame_equal(tp.report(tmp_path, column).frame, wanted)
    flips, flips_anew = (r.compare("m0", "m1") for r in (stored, anew))
    assert len(flips.flips) == 5
    assert (
        flips.save(tmp_path / "a.html").read_text()
        == flips_anew.save(tmp_path / "b.html").read_text()
    ), "with the answers on both sides"
    with pytest.raises(UnknownName, match="metadata_topic"):
        run.report("metadata_topik")
    with pytest.raises(UnreadableInput, match="no file fits"):
        tp.report(str(tmp_path / "none-*.parquet"))
    with pytest.raises(UnreadableInput, match="no file to read"):
        tp.report([])
    with pytest.raises(UnreadableInput, match="holds no recorded answers"):
        tp.report({"raw": []})


def test_a_frame_as_other_libraries_have_it(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    run = ingested(str(tmp_path / "runs.db"))
    run.trials()[0].override("refused", why="says so")
    run.frame()  # kept from here on
    frame = run.frame(policies=("safe", "none"))
    table = run.frame(engine="arrow", policies=("safe", "none"))
    made = convert_frame(frame, "trials", "arrow")  # of the pandas frame
    assert table.schema == made.schema
    assert table.to_pydict() == made.to_pydict()
    assert table["override"].to_pylist().count("refused") == 1
    frame, table = run.frame(), run.frame(engine="arrow")
    assert table.num_rows == 20
    assert table["raw"].to_pylist() == frame["raw"].tolist()
    assert table["n_calls"].to_pylist() == frame["n_calls"].tolist()
    assert table["prompt_tokens"].null_count == 20
    assert table.nbytes < frame.memory_usage(deep=True).sum()
    rows = run.frame(engine="polars")
    assert isinstance(rows, polars.DataFrame)
    assert rows["outcome"].to_list() == frame["outcome"].tolist()
    with pytest.raises(BadOptions, match="no engine"):
        run.frame(engine="spark")  # type: ignore[call-overload]


def test_rows_that_another_column_tells_apart_keep_their_texts(tmp_path: Path) -> None:
    frame = ingested(str(tmp_path / "runs.db"), 4).frame()
    both = pd.concat([frame.assign(side=n, raw=frame["raw"] + n) for n in ("Kiwi", "Yuzu")])
    both.to_parquet(tmp_path / "both.parquet")
    for source in (both, tmp_path / "both.parquet"):
        report = tp.report(source, by="side")
        for cell in failing_cells(report):
            assert all(
                raw.endswith(cell.name) for cause in cell.causes for raw in cause.rows["raw"]
            )
        suites = report.save(tmp_path / "r.xml").read_text()
        assert suites.count("Kiwi") == suites.count("Yuzu") > 1
