"""Every engine gives the same rows in the same order, says what is wrong, and leaves nothing
behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from tests.recorded import recorded_run
from tests.tables import every_case
from toolparse_lab.core import errors
from toolparse_lab.core.errors import (
    BadOptions,
    StoreError,
    UnreadableInput,
)
from toolparse_lab.core.types import Policy
from toolparse_lab.evals import engines as pools
from toolparse_lab.evals import reparse as engines
from toolparse_lab.evals.engines import ENGINES
from toolparse_lab.evals.frames.parsing import NEEDED, parse_frame
from toolparse_lab.evals.frames.recorded import read_frame, trials_frame, write_frame
from toolparse_lab.evals.reparse import Answers, reparse
from toolparse_lab.formats.base import Protocol

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ANSWERS = 4 * 28  # of each third case in four arms
# One of your own is sent to other processes as it is.
OWN = Protocol.from_spec(
    id="bracketed", opener="<tool_call>", closer="</tool_call>", name_key="name"
)
PROTOCOLS = ("hermes", "auto", OWN)
POLICIES: tuple[Policy, ...] = ("none", "safe")


@pytest.fixture(scope="module")
def frame(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The shipped recording, read under two policies: two rows an answer."""
    return recorded_run(tmp_path_factory.mktemp("run"), every=3).frame(policies=("safe", "none"))


@pytest.fixture(scope="module")
def expected(frame: pd.DataFrame) -> pd.DataFrame:
    return parse_frame(frame[frame["policy"] == "safe"], PROTOCOLS, POLICIES)


@pytest.fixture(scope="module")
def files(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The frame as a folder: three files, row groups of their own."""
    folder = tmp_path_factory.mktemp("files")
    for n, start in enumerate(range(0, len(frame), 80)):
        frame.iloc[start : start + 80].to_parquet(folder / f"part-{n}.parquet", row_group_size=30)
    return folder


@pytest.fixture(params=ENGINES)
def engine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """The arguments that choose an engine."""
    monkeypatch.setattr(engines, "FEW", 0)
    if request.param == "processes":
        yield {"engine": "processes", "workers": 2}
    else:
        yield {"engine": "serial"}


@pytest.mark.parametrize(
    ("source", "to"), [("frame", None), ("folder", "out.parquet"), ("list", "out.parquet")]
)
@pytest.mark.exhaustive(4)
def test_engines_agree(
    engine: dict[str, Any], source: str, to: str | None, frame: pd.DataFrame, files: Path,
    expected: pd.DataFrame, tmp_path: Path,
) -> None:  # fmt: skip
    given: Any = {"frame": frame, "folder": files, "list": sorted(files.iterdir())}[source]
    target = tmp_path / to if to else None
    how = {"batch_rows": 30, "progress": False, **engine}
    if target is None:
        made = reparse(given, PROTOCOLS, POLICIES, **how)
    else:
        assert reparse(given, PROTOCOLS, POLICIES, to=target, **how) == target
        assert [p.name for p in tmp_path.iterdir()] == [target.name]
        made = read_frame(target, "trials")
    assert_frame_equal(made, expected)


@pytest.mark.exhaustive(2)
@pytest.mark.parametrize("batch_rows", [29, ANSWERS - 1, ANSWERS, 10_000])
def test_rows_do_not_depend_on_the_size_of_pieces(
    batch_rows: int, frame: pd.DataFrame, files: Path, expected: pd.DataFrame
) -> None:
    for source in (frame, files):
        again = reparse(source, PROTOCOLS, POLICIES, engine="serial", batch_rows=batch_rows)
        assert_frame_equal(again, expected)


def test_own_protocols_and_a_source_without_repetitions(frame: pd.DataFrame) -> None:
    safe = frame[frame["policy"] == "safe"].reset_index(drop=True)
    assert_frame_equal(reparse(safe, engine="serial"), parse_frame(safe))


def test_no_rows(tmp_path: Path) -> None:
    empty = trials_frame([])
    assert_frame_equal(reparse(empty), empty)
    assert_frame_equal(read_frame(reparse(empty, to=tmp_path / "a.parquet"), "trials"), empty)


@pytest.mark.exhaustive(2, 1)
def test_batches_that_are_made_on_the_way(
    engine: dict[str, Any], frame: pd.DataFrame, expected: pd.DataFrame
) -> None:
    safe = frame[frame["policy"] == "safe"]
    answers = Answers(None, batches=(safe.iloc[at : at + 20] for at in range(0, len(safe), 20)))
    assert_frame_equal(reparse(answers, PROTOCOLS, POLICIES, progress=False, **engine), expected)


def test_few_answers_start_no_processes(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "run_pool", lambda *_: pytest.fail("a pool was started"))
    assert len(reparse(frame, progress=False)) == len(frame) / 2


def test_progress_counts_answers(frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    reparse(frame, engine="serial", progress=True)
    assert f"{ANSWERS}/{ANSWERS}" in capsys.readouterr().err
    reparse(frame, engine="serial")
    assert capsys.readouterr().err == "", "nobody can see it"


def test_what_is_there_is_kept(frame: pd.DataFrame, tmp_path: Path) -> None:
    place = tmp_path / "a.parquet"
    frame.to_parquet(place)
    with pytest.raises(BadOptions, match="there is something already"):
        reparse(place, to=place, engine="serial")
    assert len(read_frame(place, "trials")) == len(frame)
    reparse(place, to=place, engine="serial", overwrite=True)
    assert len(read_frame(place, "trials")) == len(frame) / 2


@pytest.mark.exhaustive(4)
def test_nothing_half_written_is_left(
    engine: dict[str, Any], frame: pd.DataFrame, tmp_path: Path
) -> None:
    bad = frame.astype({"target": object})
    bad.loc[ANSWERS + 60, "target"] = "[1"
    safe = bad.loc[bad.index.to_numpy() >= ANSWERS].astype({"target": "string"})
    with pytest.raises(
        UnreadableInput, match=f"row {ANSWERS + 60}, column target: this is not JSON"
    ):
        reparse(safe, to=tmp_path / "a.parquet", batch_rows=20, progress=False, **engine)
    assert list(tmp_path.iterdir()) == []


@every_case
def test_wrong_use(source: Any, how: dict[str, Any], error: str, said: str, workplace: Any) -> None:
    with pytest.raises(getattr(errors, error), match=said):
        reparse(workplace if source == "FRAME" else source, **how)


@pytest.fixture
def workplace(frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """The frame, in a folder that is empty."""
    monkeypatch.chdir(tmp_path)
    return frame


def test_missing_columns_are_named_with_their_file(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame[list(NEEDED)].to_parquet(tmp_path / "a.parquet")
    frame.drop(columns=["raw", "arm"]).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(UnreadableInput, match=r"b\.parquet: columns are missing: arm, raw"):
        reparse(tmp_path)
    with pytest.raises(UnreadableInput, match="columns are missing: arm, raw"):
        reparse(frame.drop(columns=["raw", "arm"]))


def test_csv_is_read_and_an_empty_file_says_so(frame: pd.DataFrame, tmp_path: Path) -> None:
    given = frame.assign(raw=frame["raw"].where(frame.index != 0, ""))
    path = write_frame(given, tmp_path / "trials.csv")
    same = ["trial_id", "outcome", "detail", "score_success", "n_calls"]
    read, wanted = (reparse(source, engine="serial")[same] for source in (path, given))
    pd.testing.assert_frame_equal(read, wanted)
    assert read["outcome"].iloc[0] == "empty"
    with pytest.raises(UnreadableInput, match="one file at a time"):
        reparse([path, path])
    pd.DataFrame({"raw": ["x"]}).to_csv(path, index=False)
    with pytest.raises(UnreadableInput, match="csv: columns are missing: run_id"):
        reparse(path)
    for name in ("empty.csv", "empty.parquet"):
        (tmp_path / name).touch()
        with pytest.raises(UnreadableInput, match="the file is empty"):
            reparse(tmp_path / name)


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no")
    with pytest.raises(UnreadableInput, match="cannot be read as Parquet") as caught:
        reparse(tmp_path / "a.parquet")
    assert "a.parquet" in str(caught.value.got)


def test_a_folder_that_cannot_be_written(frame: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        reparse(frame, to=tmp_path / "file" / "out.parquet", engine="serial")


# processes of their own: what happens to a script


def script(tmp_path: Path, frame: pd.DataFrame, body: str) -> list[str]:
    """A script without a guard that reads a frame with a pool; its command."""
    frame.to_parquet(tmp_path / "in.parquet")
    head = """
        import sys
        from toolparse_lab.evals import reparse as engines
        from toolparse_lab.evals.reparse import reparse
        engines.FEW = 0
        print("begun", flush=True)
    """
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(head) + textwrap.dedent(body), "utf-8")
    return [sys.executable, str(path)]


def run_script(command: list[str], cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **more,
    )


def test_a_script_without_a_guard_is_run_once(frame: pd.DataFrame, tmp_path: Path) -> None:
    body = 'print(len(reparse("in.parquet", workers=1, batch_rows=40, progress=False)))'
    done = run_script(script(tmp_path, frame, body), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"begun\n{ANSWERS}\n", "")


def test_a_protocol_of_the_script_itself_is_refused(frame: pd.DataFrame, tmp_path: Path) -> None:
    body = """
        import dataclasses
        from toolparse_lab.core.errors import BadOptions
        from toolparse_lab.formats.registry import protocol_of
        hermes = protocol_of("hermes")
        class Codec(type(hermes.codec)):
            pass
        own = dataclasses.replace(hermes, id="own", codec=object.__new__(Codec))
        try:
            reparse("in.parquet", [own], workers=1, progress=False)
        except BadOptions as e:
            print(e)
    """
    done = run_script(script(tmp_path, frame, body), tmp_path)
    assert "a protocol cannot be sent to another process\n  got: own" in done.stdout, done.stderr


LONG = """
    import pandas as pd
    frame = pd.read_parquet("in.parquet")
    frame = pd.concat([frame.assign(run_id=str(n), raw=frame["raw"] + str(n)) for n in range(450)])
    import multiprocessing, threading, time, os
    def workers():
        while not (found := multiprocessing.active_children()):
            time.sleep(0.05)
        print("workers", *(p.pid for p in found), flush=True)
    threading.Thread(target=workers, daemon=True).start()
    try:
        reparse(frame, workers=2, batch_rows=50, to="out.parquet", progress=False)
    except KeyboardInterrupt:
        print("interrupted")
    print("left", len(multiprocessing.active_children()), sorted(os.listdir()))
"""


def test_ctrl_c_ends_the_workers(frame: pd.DataFrame, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = script(tmp_path, frame, LONG)
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = process.stdout.readline()
        while said and not said.startswith("workers"):
            said = process.stdout.readline()
        pids = [int(p) for p in said.split()[1:]]
        time.sleep(
            0.3
        )  # in the middle of starting, where a child of its own accord would die with a traceback
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        out, err = process.communicate(timeout=60)
    assert out.splitlines()[-2:] == ["interrupted", "left 0 ['in.parquet', 'script.py']"], out + err
    assert err == ""
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
