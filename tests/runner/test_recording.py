import asyncio
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tables import each_case
from toolparse_lab.core.errors import BadOptions, MissingRecording, UnreadableInput
from toolparse_lab.runner.exchange.types import Chunk, Completion, Model, PlanItem, Request
from toolparse_lab.runner.pool import run_requests
from toolparse_lab.runner.store.recording import (
    export_recording,
    import_recording,
    read_recording,
    replay,
    write_recording,
)
from toolparse_lab.runner.store.store import Store

TEXTS = ("plain", "a\ud800b", "\x00\u2028\u2029\x85", "😀 \n é", "")


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(":memory:") as opened:
        yield opened


def questions(n: int) -> list[Request]:
    model = Model("openai/m", api_key="planted-secret-0123456789")
    return [Request(model, "m", ({"role": "user", "content": f"question {i}"},)) for i in range(n)]


def recorded(store: Store, requests: list[Request]) -> str:
    run_id = store.begin_run({}, [PlanItem(f"c{n}", "m", r.key) for n, r in enumerate(requests)])
    for n, r in enumerate(requests):
        raw = TEXTS[n % len(TEXTS)]
        chunks = tuple(Chunk(0.1, c) for c in raw)
        store.record(
            Completion(r.key, raw, chunks=chunks, created=f"2026-01-0{n + 1}", request=r.to_dict()),
            run_id,
        )
    return run_id


def test_a_recording_is_sorted_ascii_and_the_same_bytes_every_time(
    store: Store, tmp_path: Path
) -> None:
    requests = questions(5)
    run_id = recorded(store, requests)
    first, second, third = (tmp_path / name for name in ("1.jsonl", "2.jsonl", "3.jsonl"))
    assert export_recording(store, first, run_id=run_id) == 5
    assert export_recording(store, second, keys=[r.key for r in reversed(requests)]) == 5
    with Store(":memory:") as other:
        assert import_recording(first, other) == 5
        assert import_recording(first, other) == 0
        export_recording(other, third, keys=[r.key for r in requests])
    assert first.read_bytes() == second.read_bytes() == third.read_bytes()
    lines = first.read_text(encoding="ascii").split("\n")
    assert json.loads(lines[0]) == {"format": "toolparse-recording", "version": 1}
    assert [json.loads(line)["key"] for line in lines[1:-1]] == sorted(r.key for r in requests)
    assert {c.key: c.raw for c in read_recording(first)} == {
        r.key: TEXTS[n] for n, r in enumerate(requests)
    }
    assert "planted" not in first.read_text()
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["1.jsonl", "2.jsonl", "3.jsonl"]


def test_a_failed_export_leaves_the_old_recording(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("old")
    with pytest.raises(ValueError, match="Out of range"):
        write_recording(path, [Completion("k", cost=float("nan"))])
    with pytest.raises(MissingRecording, match="nothing-of-that-key") as e:
        export_recording(store, path, keys=["nothing-of-that-key"])
    assert e.value.keys == ("nothing-of-that-key",)
    with pytest.raises(BadOptions, match="one run or of some keys"):
        export_recording(store, path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_imported_completions_can_belong_to_a_run(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    requests = questions(2)
    write_recording(path, [Completion(r.key, "x") for r in requests])
    run_id = store.begin_run({}, [PlanItem("c", "m", r.key) for r in requests])
    import_recording(path, store, run_id=run_id)
    assert [c.raw for _, c in store.completions(run_id)] == ["x", "x"]


@each_case
def test_a_file_that_is_no_recording_is_named_with_its_line(
    store: Store, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(UnreadableInput, match=said):
        import_recording(path, store)
    assert store.history("a") == []
    with pytest.raises(UnreadableInput, match="cannot be opened"):
        import_recording(tmp_path / "nowhere.jsonl", store)


def test_a_replay_answers_from_the_recording_and_names_what_is_missing(
    store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    requests = questions(5)
    export_recording(store, path, run_id=recorded(store, requests[:3]))
    for player in (replay(path), replay(store)):
        answers = [asyncio.run(player(r)) for r in requests[:3]]
        assert [(a.raw, a.fidelity) for a in answers] == [(t, "replayed") for t in TEXTS[:3]]
        with pytest.raises(MissingRecording) as one:
            asyncio.run(player(requests[3]))
        assert one.value.keys == (requests[3].key,)
        with pytest.raises(MissingRecording) as e:
            player.check(r.key for r in requests)
        assert e.value.keys == tuple(r.key for r in requests[3:])
        assert "2 of the completions" in str(e.value)


def test_a_run_on_a_replay_answers_everything_or_nothing(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    requests = questions(4)
    export_recording(store, path, run_id=recorded(store, requests[:3]))
    with Store(":memory:") as other:
        with pytest.raises(MissingRecording, match=requests[3].key):
            asyncio.run(run_requests(requests, other, complete=replay(path)))
        assert other.done_keys(r.key for r in requests) == set()
        summary = asyncio.run(run_requests(requests[:3], other, complete=replay(path)))
        assert summary.complete
        found = [other.get(r.key) for r in requests[:3]]
        assert [c.raw for c in found if c is not None] == list(TEXTS[:3])


def test_a_replay_costs_nothing(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    requests = [
        dataclasses.replace(r, model=Model("openai/m", price=(0, 1e6))) for r in questions(3)
    ]
    write_recording(path, [Completion(r.key, "answer", cost=5.0) for r in requests])
    summary = asyncio.run(run_requests(requests, store, complete=replay(path), max_cost=1))
    assert (summary.done, summary.stopped, summary.cost) == (3, None, 0)
    assert [store.history(r.key)[0].cost for r in requests] == [5.0] * 3


def test_a_replay_does_not_wait_as_long_as_its_answers_once_took(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.jsonl"
    requests = questions(3)
    write_recording(path, [Completion(r.key, "answer", latency=60.0) for r in requests])
    waits: list[float] = []
    sleep = asyncio.sleep

    async def counted(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", counted)
    summary = asyncio.run(run_requests(requests, store, complete=replay(path)))
    assert summary.done == 3
    assert not any(waits)


def test_an_answer_is_preferred_to_a_failure_and_the_later_to_the_earlier(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    (request,) = questions(1)
    failure = Completion(request.key, status="error", error_kind="timeout", created="2")
    write_recording(path, [failure, Completion(request.key, "answer", created="1")])
    assert asyncio.run(replay(path)(request)).raw == "answer"


def test_a_recorded_failure_is_replayed_once(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    requests = questions(1)
    write_recording(path, [Completion(requests[0].key, status="error", error_kind="timeout")])
    summary = asyncio.run(run_requests(requests, store, complete=replay(path)))
    assert (summary.failed, summary.calls, summary.seconds < 0.4) == (1, 1, True)
