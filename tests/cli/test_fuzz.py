"""The command line under hostile words, files and streams: a short, seeded part of the search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli_fuzz import Command, World, faults, preload, run
from tests.tables import every_case

DEEP_TARGET = (
    '{"id": "c1", "input": "x", "tools": [], "target": [{"name": "f", "arguments": '
    + '{"a":' * 6000
    + "1"
    + "}" * 6000
    + "}]}\n"
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cli")
        patch.chdir(folder)
        preload()
        made = World.made(folder)
        (folder / "nested-tools.json").write_text("[" * 6000 + "]" * 6000, "utf-8")
        (folder / "deep-target.jsonl").write_text(DEEP_TARGET, "utf-8")
        plan = (folder / "plan.toml").read_text("utf-8")
        (folder / "trillion.toml").write_text(f"trials = 999999999999\n{plan}", "utf-8")
        yield made


@every_case
def test_what_once_ended_in_a_traceback_has_a_message(
    words: list[str], streams: dict[str, Any], code: int, says: str, world: World
) -> None:
    end = run(Command(tuple(words), **streams))
    assert end.fault is None, end
    assert end.code == code, end
    assert says in end.said


def test_no_hostile_word_file_or_stream_ends_in_a_traceback(world: World) -> None:
    assert [str(end) for end in faults(world, seed=3, number=20)] == []
