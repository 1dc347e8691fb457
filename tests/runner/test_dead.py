"""Endpoints that are dead, dying, crowded or come back, over real HTTP, beside others that must not
notice."""

import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mock_openai import MockOpenAI
from toolparse_lab.runner import lane
from toolparse_lab.runner.exchange.summary import RunEvent, Summary
from toolparse_lab.runner.exchange.types import Model, PlanItem, Request
from toolparse_lab.runner.loop import run_sync
from toolparse_lab.runner.pool import run_requests
from toolparse_lab.runner.store.store import Store

COUNT = 60


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "runs.db") as opened:
        yield opened


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "_FIRST_PROBE", 0.02)


@pytest.fixture
def free_port() -> Iterator[int]:
    """Held without a listener, so that no other server is given it; one that asks for it gets it."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 0))
        yield int(s.getsockname()[1])


def model(url: str, **changes: Any) -> Model:
    values: dict[str, Any] = {
        "api_key": "k",
        "timeout": 5,
        "price": (0, 0),
        "max_connections": 4,
        "max_retries": 1,
    }
    return Model("openai/m", api_base=url, **{**values, **changes})


def questions(models: dict[str, Model], orders: str = "", count: int = COUNT) -> list[Request]:
    """In the order of a plan: every model in turn."""
    return [
        Request(m, alias, ({"role": "user", "content": f"{orders}say={n}"},), {}, (), n % 2 == 1)
        for n in range(count)
        for alias, m in models.items()
    ]


def noted_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of lanes that were down, without their jitter."""
    pauses: list[float] = []
    note = lane.Breaker.note

    def noted(breaker: lane.Breaker, kind: str | None, now: float, *, nobody: bool = False) -> None:
        probes = breaker.probes
        note(breaker, kind, now, nobody=nobody)
        if breaker.probes > probes:
            pauses.append(round(breaker.opens - now, 6))

    monkeypatch.setattr(lane.Breaker, "note", noted)
    return pauses


def run(requests: list[Request], store: Store, **options: Any) -> tuple[Summary, str]:
    items = [PlanItem(str(n), r.model_alias, r.key) for n, r in enumerate(requests)]
    run_id = store.begin_run({}, items, requests=requests)
    return run_sync(
        run_requests(requests, store, run_id=run_id, **{"backoff": 0.01, **options})
    ), run_id


def answered(store: Store, requests: list[Request]) -> Counter[str]:
    done = store.done_keys(r.key for r in requests)
    return Counter(r.model_alias for r in requests if r.key in done)


@pytest.mark.slow
def test_dead_models_are_given_up_and_asked_again_once_they_live(
    store: Store, free_port: int
) -> None:
    gone = f"http://127.0.0.1:{free_port}/v1"
    with (
        MockOpenAI() as mock,
        MockOpenAI(needs_key="right") as strict,
        MockOpenAI(latency=30) as hung,
    ):
        models = {
            "alive": model(mock.url),
            "gone": model(gone),
            "refused": model(strict.url, api_key="wrong"),
            "hung": model(hung.url, timeout=0.3),
            "unknown": Model(
                "openai/unknown", api_base=mock.url, api_key="k", max_retries=0, price=(0, 0)
            ),
        }
        asked = questions({k: v for k, v in models.items() if k != "unknown"})
        asked += questions({"unknown": models["unknown"]}, "status=404 ")
        events: list[RunEvent] = []
        summary, run_id = run(asked, store, on_event=events.append)
        assert answered(store, asked) == {"alive": COUNT}
        assert {alias: why["kind"] for alias, why in summary.given_up.items()} == {
            "gone": "connection",
            "refused": "auth",
            "hung": "timeout",
            "unknown": "not_found",
        }
        assert Counter(
            e.request.model_alias for e in events if e.kind == "given_up" and e.request
        ) == dict.fromkeys(summary.given_up, 1)
        # Few are spent on a dead one, and what was not sent is not among the failures.
        sent = Counter(e.request.model_alias for e in events if e.kind == "asked" and e.request)
        assert all(sent[alias] <= 10 + 4 + 5 for alias in summary.given_up)
        for alias, why in summary.given_up.items():
            keys = [r.key for r in asked if r.model_alias == alias]
            untouched = [key for key in keys if not store.history(key)]
            assert why["not_asked"] == len(untouched) > 30
        open_ = sum(why["not_asked"] for why in summary.given_up.values())
        assert (summary.failed, summary.missing) == (4 * COUNT - open_, 4 * COUNT)
        why = summary.given_up["gone"]
        assert f"gone was given up after {why['calls']} calls in " in str(summary)
        assert (why["calls"], why["seconds"] > 0) == (sent["gone"], True)
        # It says where nobody was found, and nothing of an object's address.
        assert (
            f"Cannot connect to host 127.0.0.1:{free_port} [" in summary.given_up["gone"]["message"]
        )
        record = store.run(run_id)
        assert (record.status, record.done, record.failed) == ("incomplete", COUNT, summary.failed)
        assert record.summary is not None
        assert record.summary["given_up"] == summary.given_up

        # All but the hung and the unknown one are mended: nothing is asked twice that was answered.
        before = len(mock.bodies)
        with MockOpenAI(port=free_port):
            models["refused"] = model(strict.url, api_key="right")
            mended = questions({alias: models[alias] for alias in ("alive", "gone", "refused")})
            again, _ = run(mended, store)
        assert answered(store, mended) == dict.fromkeys(("alive", "gone", "refused"), COUNT)
        assert (again.complete, again.cached, again.given_up) == (True, COUNT, {})
        assert len(mock.bodies) == before


@pytest.mark.slow
def test_a_hung_model_holds_no_slot_of_another(store: Store) -> None:
    with MockOpenAI(latency=0.02) as mock, MockOpenAI(latency=60) as hung:
        models = {"hung": model(hung.url, timeout=1.0), "alive": model(mock.url)}
        asked = questions(models, count=80)
        times: dict[str, float] = {}
        began = time.monotonic()

        def note(event: RunEvent) -> None:
            if event.request is not None and event.kind in ("recorded", "given_up"):
                times[event.request.model_alias] = time.monotonic() - began

        summary, _ = run(asked, store, on_event=note, give_up_after=8)
        assert summary.done == 80
        assert summary.given_up["hung"]["kind"] == "timeout"
        # Eight time-outs on four connections and two pauses with one each are four seconds.
        assert times["alive"] < times["hung"]
        assert mock.most_running <= 4


def test_a_model_that_comes_back_in_time_loses_nothing(store: Store, free_port: int) -> None:
    # The server comes up at the tenth retry, so no request can have used more than ten before.
    asked = questions({"m": model(f"http://127.0.0.1:{free_port}/v1", max_retries=10)})
    servers: list[MockOpenAI] = []

    def start(event: RunEvent) -> None:
        if event.kind == "retry" and event.summary.retries >= 10 and not servers:
            servers.append(MockOpenAI(port=free_port))
            servers[0].__enter__()

    try:
        summary, _ = run(asked, store, on_event=start)
    finally:
        for server in servers:
            server.__exit__(None, None, None)
    assert (summary.done, summary.failed, summary.given_up) == (COUNT, 0, {})
    # A few more than were under way at once: the server takes a moment to come up.
    assert 10 <= summary.retries <= 30


@pytest.mark.parametrize(("met", "probes"), [((), 2), (("m",), 5)])
def test_an_address_where_nobody_ever_was_is_given_up_soon(
    store: Store,
    free_port: int,
    monkeypatch: pytest.MonkeyPatch,
    met: tuple[str, ...],
    probes: int,
) -> None:
    pauses = noted_pauses(monkeypatch)
    asked = questions({"m": model(f"http://127.0.0.1:{free_port}/v1", max_connections=1)})
    summary, _ = run(asked, store, met=met)
    # Ten failures in a row, then the probes; a model of an earlier round was there.
    assert summary.calls == summary.given_up["m"]["calls"] == 10 + probes
    assert pauses == [0.02 * 2**n for n in range(probes)]


def test_one_that_was_there_gets_all_the_pauses(
    store: Store, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = noted_pauses(monkeypatch)
    asked = questions({"m": model(f"http://127.0.0.1:{free_port}/v1", max_connections=1)})
    server = MockOpenAI(port=free_port)
    server.__enter__()

    def stop(event: RunEvent) -> None:
        if event.kind == "recorded":
            server.__exit__(None, None, None)

    summary, _ = run(asked, store, on_event=stop)
    # A connection that is open may carry one answer more.
    assert summary.done <= 4
    assert summary.calls == summary.done + 10 + 5
    assert pauses == [0.02, 0.04, 0.08, 0.16, 0.32]


def test_a_used_up_quota_ends_a_model_and_no_other(store: Store) -> None:
    with MockOpenAI() as mock:
        models = {
            "m": model(mock.url),
            "other": Model("openai/o", api_base=mock.url, api_key="k", price=(0, 0)),
        }
        asked = questions({"m": models["m"]}, "status=429 after=3600 ") + questions(
            {"other": models["other"]}
        )
        summary, _ = run(asked, store)
        assert summary.given_up["m"]["kind"] == "rate_limited"
        assert answered(store, asked) == {"other": COUNT}
        assert summary.calls <= COUNT + 14


def test_failures_here_and_there_give_no_model_up(store: Store) -> None:
    with MockOpenAI() as mock:
        m = model(mock.url, max_retries=0, timeout=1)
        orders = [
            "", "status=500 ", "status=401 ", "", "cut=1 ", "status=400 overflow ", "abort=1 ",
        ]  # fmt: skip
        asked = [
            r
            for n in range(21)
            for r in questions({"m": m}, orders[n % len(orders)] + f"no={n} ", count=2)
        ]
        summary, _ = run(asked, store, give_up_after=7)
        assert summary.given_up == {}
        assert summary.calls == len(asked)


@pytest.mark.slow
def test_an_adaptive_model_finds_the_room_of_its_endpoint(store: Store) -> None:
    with MockOpenAI(latency=0.05, room=10) as mock:
        asked = questions(
            {"m": model(mock.url, max_connections="adaptive", max_retries=8)}, count=300
        )
        summary, _ = run(asked, store, backoff=0.05)
        assert (summary.done, summary.given_up) == (300, {})
        assert 8 <= mock.most_running <= 40
        assert 0 < mock.crowded < 60


def test_models_of_a_server_that_swaps_take_turns(store: Store) -> None:
    with MockOpenAI(latency=0.01) as mock:
        models = {
            n: Model(f"openai/{n}", api_base=mock.url, api_key="k", price=(0, 0), swaps=True)
            for n in "ab"
        }
        summary, _ = run(questions(models, count=20), store)
        assert summary.done == 40
        asked = [body["model"] for body in mock.bodies]
        assert asked == sorted(asked)
