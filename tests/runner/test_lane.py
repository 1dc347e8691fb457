"""How an endpoint is treated, told by numbers alone: no clock runs here and nothing is sent."""

import pytest

from tests.tables import each_case
from toolparse_lab.runner.exchange.types import Completion, Model, Request
from toolparse_lab.runner.failures import is_nobody
from toolparse_lab.runner.lane import Breaker, Lane, Question, Window

MODEL = Model("openai/m", max_connections=4, max_retries=2)
REQUEST = Request(MODEL, "m", ({"role": "user", "content": "hi"},))


def failed(kind: str, **response: object) -> Completion:
    return Completion("k", status="error", error_kind=kind, response=response or None)


@each_case
def test_a_breaker(events: list[tuple[float, str | None]], down: bool, lost: str | None) -> None:
    breaker = Breaker(3)
    for now, kind in events:
        breaker.note(kind, now)
    assert (breaker.down and not breaker.lost, breaker.lost) == (down, lost)


def test_a_missing_package_is_no_failure_to_be_counted() -> None:
    lost = [Breaker(limit) for limit in (10, 0)]
    for breaker in lost:
        breaker.note("setup", 0.0)
    assert [breaker.lost for breaker in lost] == ["setup", None]


def test_a_breaker_that_never_gives_up() -> None:
    breaker = Breaker(0)
    for now in range(1000):
        breaker.note("auth", now)
        breaker.exhausted()
    assert (breaker.down, breaker.lost) == (False, None)


@each_case
def test_nobody_is_told_from_somebody_who_hung_up(
    kind: str | None, message: str | None, nobody: bool
) -> None:
    assert is_nobody(kind, message) is nobody


def test_an_address_where_nobody_ever_was_has_two_pauses() -> None:
    pauses: dict[bool, list[float]] = {}
    for met in (False, True):
        breaker = Breaker(2, met=met)
        now, pauses[met] = 0.0, []
        breaker.note("connection", now, nobody=True)
        while not breaker.lost:
            breaker.note("connection", now, nobody=True)
            if not breaker.lost:
                pauses[met].append(breaker.opens - now)
            now = breaker.opens
    assert pauses == {False: [1, 2], True: [1, 2, 4, 8, 16]}


def test_pauses_double() -> None:
    lane = Lane.of(MODEL, 2)
    pauses = []
    now = 0.0
    lane.note(failed("connection"), now)
    assert lane.pause(now) == 0
    while not lane.breaker.lost:
        lane.note(failed("connection"), now)
        if not lane.breaker.lost:
            pauses.append(lane.pause(now))
            now += pauses[-1]
    assert len(pauses) == 5
    assert all(2**n <= pause <= 2**n * 1.1 for n, pause in enumerate(pauses))


def test_a_lane_that_is_down_sends_one_call_at_a_time() -> None:
    lane = Lane.of(MODEL, 2)
    assert lane.limit == 4
    lane.note(failed("server_error"), 0)
    lane.note(failed("server_error"), 0)
    assert lane.limit == 1
    lane.note(Completion("k"), 1)
    assert lane.limit == 4


def test_a_quota_that_is_used_up_ends_a_lane() -> None:
    lane = Lane.of(MODEL, 2)
    lane.breaker.exhausted()
    lane.note(Completion("k"), 0)
    lane.breaker.exhausted()
    assert lane.breaker.lost is None
    lane.breaker.exhausted()
    assert lane.breaker.lost == "rate_limited"


def test_a_replay_says_nothing_of_an_endpoint() -> None:
    lane = Lane.of(MODEL, 1)
    lane.note(Completion("k", status="error", error_kind="auth", fidelity="replayed"), 0)
    assert lane.breaker.lost is None
    asked_again = Completion("k", status="error", error_kind="timeout", fidelity="replayed")
    assert lane.wait_before_retry(Question(REQUEST.key, REQUEST, 1, 1), asked_again, 1, 0) is None


@each_case
def test_waiting_before_a_retry(
    kind: str, tries: int, response: dict[str, object], between: list[float] | None
) -> None:
    lane = Lane.of(MODEL, 10)
    wait = lane.wait_before_retry(
        Question(REQUEST.key, REQUEST, tries, tries), failed(kind, **response), 0.5, 100.0
    )
    if between is None:
        assert wait is None
        return
    assert wait is not None
    assert between[0] <= wait <= between[1]
    # A rate limit holds for the whole endpoint, other failures for the question alone.
    assert (lane.pause(100.0) > 0) == (kind == "rate_limited" and response["retry_after"] != 0)


def test_waits_differ() -> None:
    lane = Lane.of(MODEL, 10)
    waits = {
        lane.wait_before_retry(Question(REQUEST.key, REQUEST, 1, 1), failed("timeout"), 0.5, 0)
        for _ in range(20)
    }
    assert len(waits) > 10


def test_a_number_of_connections_is_kept() -> None:
    window = Window(4)
    for _ in range(100):
        window.answered(0.1)
    window.crowded(0)
    assert window.size == 4


def test_an_adaptive_window_grows_until_it_is_crowded_and_halves_once_a_round() -> None:
    window = Window(4, adaptive=True)
    for _ in range(28):
        window.answered(0.1)
    assert window.size == 32  # doubled with each round
    window.crowded(10.0)
    window.crowded(10.1)  # of the same round
    assert window.size == 16
    for _ in range(16):
        window.answered(0.1)
    assert window.size == pytest.approx(17, abs=0.1)  # from now on one a round
    window.crowded(20.0)
    assert window.size == pytest.approx(8.5, abs=0.1)
    for second in range(30, 60):
        window.crowded(second)
    assert window.size == 1


def test_an_adaptive_window_stops_where_answers_take_longer() -> None:
    window = Window(4, adaptive=True)
    sizes = []
    for _ in range(3000):
        window.answered(0.05 * max(1.0, window.size / 10))  # a server that works on ten at a time
        sizes.append(window.size)
    assert min(sizes[200:]) > 10
    assert max(sizes) < 45


def test_an_adaptive_window_has_an_end() -> None:
    window = Window(4, adaptive=True)
    for _ in range(10_000):
        window.answered(0.1)
    assert window.size == 128


def test_lanes_of_two_aliases_take_the_more_generous_limit() -> None:
    lane = Lane.of(MODEL, 10)
    lane.join("a", Model("openai/m", max_connections=9))
    assert lane.limit == 9
    lane.join("b", Model("openai/m", max_connections="adaptive"))
    assert (lane.limit, lane.window.adaptive) == (9, True)
    assert Lane.of(Model("toolparse-local/smollm2-135m", max_connections="adaptive"), 10).limit == 1
