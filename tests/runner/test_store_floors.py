"""A store that is somebody else's, in another process, damaged, or away: what still works, and the
words for what does not."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

import toolparse_lab as tp
from toolparse_lab.core.errors import StoreError, ToolparseError
from toolparse_lab.runner.store import database, store

ROOT = Path(__file__).parents[2]
ROWS = [
    {"id": name, "input": "q", "raw": "Hi", "protocol": "hermes", "target": []} for name in "ab"
]


def made(path: Path) -> str:
    with tp.Lab(path) as lab:
        return lab.ingest(ROWS).run_id


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, *words], env=env, cwd="/", capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


_READS = """
import os, sys
import toolparse_lab as tp
from toolparse_lab.core.errors import StoreError
# All is imported before, because this Python may be somebody's own.
with tp.Lab(sys.argv[1]) as warm:
    run = warm.open("latest")
    run.report().frame, run.frame()
    warm.ingest([{"input": "q", "raw": "Hi", "protocol": "hermes"}])
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
for store in sys.argv[2:]:
    lab = tp.Lab(store)
    run = lab.open("latest")
    print(run.report().frame["n"].tolist(), len(run.frame()), lab.store.read_only)
    print(run.report().frame["n"].tolist())
    try:
        lab.ingest([{"input": "q", "raw": "Hi", "protocol": "hermes"}])
    except StoreError as e:
        print("refused:", "can only be read" in str(e))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_store_that_cannot_be_written_is_read() -> None:
    # Not in the folder of the tests, which nobody else may enter.
    with tempfile.TemporaryDirectory() as place:
        tmp_path = Path(place)
        made(tmp_path / "own.db")
        plain, logged = tmp_path / "plain", tmp_path / "logged"
        for folder in (plain, logged):
            folder.mkdir()
            shutil.copy(tmp_path / "own.db", folder / "runs.db")
        with tp.Lab(logged / "runs.db") as lab:  # the newest answers are in the log alone
            lab.ingest([*ROWS, {**ROWS[0], "id": "c"}])
            for end in ("", "-wal"):
                shutil.copy(logged / f"runs.db{end}", tmp_path / f"kept{end}")
        for end in ("", "-wal"):
            shutil.copy(tmp_path / f"kept{end}", logged / f"runs.db{end}")
        tmp_path.chmod(0o755)
        for folder in (plain, logged):
            for file in folder.iterdir():
                file.chmod(0o444)
            folder.chmod(0o555)
        try:
            stores = [str(folder / "runs.db") for folder in (plain, logged)]
            done = python(_READS, str(tmp_path / "own.db"), *stores)
            files = [sorted(file.name for file in folder.iterdir()) for folder in (plain, logged)]
        finally:
            for folder in (plain, logged):
                folder.chmod(0o755)
    said = [[f"[{n}] {n} True", f"[{n}]", "refused: True"] for n in (2, 3)]
    assert done.stdout.splitlines() == [*said[0], *said[1]], done.stderr
    assert files == [["runs.db"], ["runs.db", "runs.db-wal"]]


_FORKS = """
import os, sys
import toolparse_lab as tp
from toolparse_lab.core.errors import StoreError
lab = tp.Lab(sys.argv[1])
lab.open("latest")
child = os.fork()
if not child:
    try:
        for use in (lambda: lab.open("latest"), lambda: lab.ingest([{"input": "q", "raw": "x"}])):
            try:
                use()
            except StoreError as e:
                print(e, flush=True)
        lab.close()
    finally:
        os._exit(0)
os.waitpid(child, 0)
print(len(lab.open("latest").frame()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_lab_in_a_fork_says_what_to_do(tmp_path: Path) -> None:
    made(tmp_path / "runs.db")
    done = python(_FORKS, str(tmp_path / "runs.db"))
    assert done.stdout.count("open a lab in each process") == 2, done.stderr
    assert done.stdout.rstrip().endswith("2"), "the parent's own goes on"


def test_a_lab_does_not_travel_by_pickle(tmp_path: Path) -> None:
    run_id = made(tmp_path / "runs.db")
    with tp.Lab(tmp_path / "runs.db") as lab:
        for thing in (lab, lab.store, lab.open(run_id)):
            with pytest.raises(StoreError, match="open a lab in each process"):
                pickle.dumps(thing)


def test_a_damaged_page_is_named_as_one(tmp_path: Path) -> None:
    made(tmp_path / "runs.db")
    whole = (tmp_path / "runs.db").read_bytes()
    said = []
    for at in range(4096, len(whole), 4096):
        path = tmp_path / f"damaged{at}.db"
        path.write_bytes(whole[:at] + b"\xa5" * 4096 + whole[at + 4096 :])
        try:
            with tp.Lab(path) as lab:
                lab.open("latest").report()
        except StoreError as e:
            said.append(str(e))
        except ToolparseError:
            continue  # what the page held is simply not there
    assert said
    assert all("damaged" in words and "server is up" not in words for words in said)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE runs SET plan = '[' || plan", "damaged"),
        ("UPDATE toolparse_schema SET version = 'none'", "schema version none"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, change: str, says: str) -> None:
    made(tmp_path / "runs.db")
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute(change)
    with pytest.raises(StoreError, match=says), tp.Lab(tmp_path / "runs.db") as lab:
        lab.runs()


def test_what_is_no_file_is_no_damaged_store(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "runs.db")
    with pytest.raises(StoreError, match="this is no file"):
        tp.Lab(tmp_path / "runs.db")


def test_the_latest_run_is_so_after_a_clock_that_jumped_back(tmp_path: Path) -> None:
    first = made(tmp_path / "runs.db")
    with tp.Lab(tmp_path / "runs.db") as lab:
        later = lab.ingest([{**ROWS[0], "id": "z"}]).run_id
        with lab.store._writing() as connection:
            connection.execute(
                sa.text(f"UPDATE runs SET created = '1999' WHERE run_id = '{later}'")
            )
        assert lab.store.run_ids() == [first, later]
        assert lab.open("latest").run_id == later


class Gone:
    """An engine whose server is away."""

    url = sa.make_url("postgresql+psycopg://user:planted-password@host/db")

    def connect(self) -> None:
        raise sa.exc.OperationalError("", {}, Exception("refused"))


def test_one_patience_for_all_says_one_line_and_hurries(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    patience = database.Patience(store._PATIENCE)
    for _ in range(5):
        with pytest.raises(sa.exc.OperationalError):
            database.connected(Gone(), patience)  # type: ignore[arg-type]
    assert now[0] == pytest.approx(store._PATIENCE, abs=1)
    said = capsys.readouterr().err
    assert said.count("does not answer") == 1
    assert "planted-password" not in said
    patience.end()
    began = now[0]
    patience.hurry()
    with pytest.raises(sa.exc.OperationalError):
        database.connected(Gone(), patience)  # type: ignore[arg-type]
    assert now[0] - began < 5
