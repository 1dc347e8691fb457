"""What is written in parts is there whole or not at all, whoever else is still writing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from toolparse_lab.core.errors import StoreError
from toolparse_lab.evals.frames.files import PartsWriter, write_part
from toolparse_lab.evals.frames.recorded import read_frame, trials_frame


def write_and_fail(out: PartsWriter, write: Callable[[], None]) -> None:
    """An error ends the writing."""
    with out:
        write()
        raise ZeroDivisionError


def interrupted(path: Path) -> PartsWriter:
    out = PartsWriter(path, "trials")
    with pytest.raises(ZeroDivisionError):
        write_and_fail(out, lambda: out.write(trials_frame([])))
    return out


@pytest.mark.parametrize("name", ["a", "a.parquet"])
def test_an_error_leaves_nothing_and_is_what_is_raised(name: str, tmp_path: Path) -> None:
    interrupted(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_goes_on_writing_changes_nothing(tmp_path: Path) -> None:
    out = PartsWriter(tmp_path / "a", "trials")

    def late() -> None:
        with contextlib.suppress(OSError):  # the folder is gone
            for n in range(2_000):
                Path(out.part_path(n)).touch()

    for _ in range(20):
        worker = threading.Thread(target=late)
        with pytest.raises(ZeroDivisionError):
            write_and_fail(out, worker.start)
        worker.join()
        assert list(tmp_path.iterdir()) == []


def test_a_late_part_of_an_earlier_run_does_not_come_into_the_next(tmp_path: Path) -> None:
    late = interrupted(tmp_path / "a").part_path(0)
    with PartsWriter(tmp_path / "a", "trials") as out:
        with pytest.raises(StoreError, match="the frame cannot be written"):
            write_part(trials_frame([]), late, "trials")
        out.write(trials_frame([]))
    assert len(list((tmp_path / "a").iterdir())) == 1


def test_what_a_killed_run_left_goes_with_the_next(tmp_path: Path) -> None:
    for suffix in ("", ".parquet"):
        killed = PartsWriter(tmp_path / f"a{suffix}", "trials").__enter__()
        killed.write(trials_frame([]))
    other = tmp_path / ".b.0123abcd.partial"
    other.touch()
    for suffix in ("", ".parquet"):
        with PartsWriter(tmp_path / f"a{suffix}", "trials") as out:
            out.write(trials_frame([]))
        assert len(read_frame(out.path, "trials")) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == [other.name, "a", "a.parquet"]


def test_what_cannot_be_removed_is_told_beside_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(ZeroDivisionError) as told, PartsWriter(tmp_path / "a", "trials"):
        raise ZeroDivisionError
    assert "could not be removed" in told.value.__notes__[0]
