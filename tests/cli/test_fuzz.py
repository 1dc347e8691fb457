"""The command line under hostile words, files and streams: a short, seeded part of the search."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli_fuzz import Command, World, faults, preload, run

DEEP_TARGET = (
    '{"id": "c1", "input": "x", "tools": [], "target": [{"name": "f", "arguments": '
    + '{"a":' * 6000
    + "1"
    + "}" * 6000
    + "}]}\n"
)
KNOWN: list[tuple[Command, int, str]] = [
    (Command(("parse", "answer.txt", "--tools", "nested-tools.json")), 2, "nested"),
    (Command(("parse", "-"), stdin="closed"), 2, "standard input is closed"),
    (Command(("parse", "answer.txt"), stdout="closed"), 3, "standard output"),
    (Command(("parse", "answer.txt"), stdout="full"), 3, "No space left"),
    (Command(("parse", "answer.txt"), stdout="gone"), 0, ""),
    (Command(("--help",), stdout="full"), 3, "No space left"),
    (Command(("validate", "deep-target.jsonl")), 2, "deep"),
    (Command(("run", "trillion.toml", "--dry-run")), 2, "too large"),
    (Command(("run", "plan.toml", "--replay", "binary")), 2, "not UTF-8"),
    (Command(("run", "plan.toml", "--dry-run", "--gate=--")), 2, "no value"),
    (Command(("ingest", "log-good.jsonl", "--cases", "nested.json")), 2, "too large to show"),
]


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


@pytest.mark.parametrize(
    ("command", "code", "words"), KNOWN, ids=lambda value: str(value) if value else ""
)
def test_what_once_ended_in_a_traceback_has_a_message(
    command: Command, code: int, words: str, world: World
) -> None:
    end = run(command)
    assert end.fault is None, end
    assert end.code == code, end
    assert words in end.said


def test_no_hostile_word_file_or_stream_ends_in_a_traceback(world: World) -> None:
    assert [str(end) for end in faults(world, seed=3, number=20)] == []
