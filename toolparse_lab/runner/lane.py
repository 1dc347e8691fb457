"""The treatment of one endpoint: how many calls at once, when none, when again, and when to give it
up.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from dataclasses import dataclass, field

from .exchange.summary import GivenUp
from .exchange.types import Completion, Model, Questions, Request
from .failures import RETRIABLE, is_nobody
from .local.provider import is_local
from .routes import shapes_sent

# How a lane works. All questions of one endpoint wait in one lane, and three things decide when the
# next one goes out. The window says how many calls may be under way: a fixed number, or one that
# grows while answers stay fast and halves when the endpoint says "too many". The pause closes the
# lane for a time that the provider named. The breaker counts failures that say that nobody is
# there; it lets single probes through, and in the end gives the endpoint up. A lane never sleeps
# and never asks: it only answers questions about what may be done now, so that every rule in it can
# be tested with a clock made of numbers. Cost of each step: constant.

_LONGEST_WAIT = 120.0  # seconds; a provider that asks for more has failed
_HOPELESS = frozenset({"auth", "not_found"})
_UNREACHABLE = frozenset({"timeout", "server_error", "connection"})
_DEAD = _HOPELESS | _UNREACHABLE
_PROBES = {"timeout": 2}  # each costs the whole time that a call may take
_MOST_PROBES = 5
_FIRST_PROBES = 2  # of an address where nobody ever was: a typing error, or a server not started
_MOST_REFUSALS = 3  # of one parameter, with no answer to it
_FIRST_PROBE = 1.0  # seconds, doubled each time
_FIRST_CONNECTIONS = 4
_MOST_CONNECTIONS = 128


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row that say that no one is there, or that nothing will be answered.

    After `limit` of them (0: never) the endpoint is `down`: one call at a time finds out whether it
    is back, after 1, 2, 4 … seconds; fewer of them where no server was ever met. Where none of
    these is answered, and at once where a key or a name is refused, it is `lost`. Any other failure
    is an answer of a server that lives.
    """

    limit: int
    failed: int = 0
    probes: int = 0
    opens: float = 0.0
    """when the next call may find out"""
    lost: str | None = None
    """the error kind for which it was given up"""
    met: bool = False
    """a server was reached, whatever it said"""

    @property
    def down(self) -> bool:
        # Up again after the first answer.
        return self.limit > 0 and self.failed >= self.limit

    def note(self, kind: str | None, now: float, *, nobody: bool = False) -> None:
        """Count an attempt. kind: None for an answer, else the error kind. now: seconds of any
        clock. nobody: no connection came about.
        """
        self.met |= not nobody
        if kind == "setup" and self.limit:  # no call of this process will do better
            self.lost = kind
        if kind is None or kind not in _DEAD:
            # A rate limit is no news of that kind, see `exhausted`.
            if kind != "rate_limited":
                self.failed = self.probes = 0
            return

        was_down = self.down
        self.failed += 1
        # An attempt from before the endpoint was known to be down is no probe, and no news.
        if not self.down or self.lost or (was_down and now < self.opens):
            return
        # A refused key will not be accepted later, while a server that is not there may come back.
        most = _PROBES.get(kind, _MOST_PROBES) if self.met else _FIRST_PROBES
        if kind in _HOPELESS or self.probes >= most:
            self.lost = kind
            return
        self.opens = now + _FIRST_PROBE * 2.0**self.probes
        self.probes += 1

    def exhausted(self) -> None:
        # A rate limit that outlasts all retries may be a quota, and counts towards giving up.
        self.failed += 1
        if self.down:
            self.lost = self.lost or "rate_limited"


@dataclass(slots=True)
class Window:
    """The number of calls at once: a fixed one, or one adapted to the endpoint.

    Adaptive, it doubles with every round of answers until a rate limit or a time-out halves it, or
    answers take twice as long as they did at best. From then on it grows by one a round, and
    shrinks by one while they take that long: as TCP does it.
    """

    size: float
    adaptive: bool = False
    recent: float = 0.0
    best: float = 0.0
    steady: bool = False
    halved: float = float("-inf")

    def answered(self, latency: float | None) -> None:
        if not self.adaptive or not latency:
            return
        # A moving average over about five answers: one slow answer is no congestion.
        self.recent = 0.8 * self.recent + 0.2 * latency if self.recent else latency
        # What is best is forgotten slowly, since answers differ in length.
        self.best = min(self.best * 1.0002, self.recent) if self.best else self.recent
        if self.recent > 2 * self.best:
            self.steady = True
            self.size = max(1.0, self.size - 1.0 / self.size)
            return
        # One more for each answer doubles the size in a round; 1 / size adds one in a round.
        step = 1.0 / self.size if self.steady else 1.0
        self.size = min(_MOST_CONNECTIONS, self.size + step)

    def crowded(self, now: float) -> None:
        # Answers of one round were sent under the same size and say the same thing, so they count
        # once.
        if self.adaptive and now - self.halved > max(self.recent, 0.5):
            self.halved, self.steady, self.size = now, True, max(1.0, self.size / 2)


@dataclass(slots=True)
class Question:
    """A request on its way. `tries` counts the attempts that are failures of its own."""

    key: str
    request: Request
    attempts: int = 0
    tries: int = 0


@dataclass(slots=True)
class Lane:
    """One endpoint: the keys that wait for it, who works for it, and until when nothing may be sent
    to it.
    """

    window: Window
    breaker: Breaker
    turn: deque[Lane] = field(default_factory=deque)
    """the lanes that are asked after this one"""
    waiting: deque[str] = field(default_factory=deque)
    unclaimed: deque[str] = field(default_factory=deque)
    """keys that other processes may ask, too; they wait only once they are claimed"""
    elsewhere: int = 0
    """how many of the last of these others were asking when last looked at"""
    epoch: int = 0
    """the epoch of `Claims` in which those that wait were claimed"""
    again: deque[Question] = field(default_factory=deque)
    aliases: dict[str, Model] = field(default_factory=dict)
    claiming: asyncio.Lock = field(default_factory=asyncio.Lock)
    workers: int = 0
    closed_until: float = 0.0
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    """how often each parameter was refused, by name and shape, since an answer to it"""
    refused: GivenUp | None = None
    """why questions are left out that send what was refused again and again"""
    calls: int = 0
    """attempts that were noted"""
    began: float | None = None
    """when its first worker began, on the clock of the pool"""

    @classmethod
    def of(cls, model: Model, give_up_after: int | None, turn: deque[Lane] | None = None) -> Lane:
        """Return the lane of a model's endpoint, still empty; `give_up_after` failures in a row
        close it (None: never).
        """
        if is_local(model.name):  # answers one at a time, whatever is asked of it
            window = Window(1)
        elif model.max_connections == "adaptive":
            # Small at first: the first round shows how fast the endpoint is.
            window = Window(_FIRST_CONNECTIONS, adaptive=True)
        else:
            window = Window(int(model.max_connections))
        return cls(window, Breaker(give_up_after or 0), deque() if turn is None else turn)

    def join(self, alias: str, model: Model) -> None:
        # Aliases of one endpoint share its connections, since the server cannot tell them apart.
        # The more generous limit counts.
        self.aliases[alias] = model
        other = Lane.of(model, None).window
        self.window.adaptive |= other.adaptive
        self.window.size = max(self.window.size, other.size)

    @property
    def limit(self) -> int:
        # A single probe while the endpoint is down. The window's size may be a fraction while it
        # grows.
        return 1 if self.breaker.failed and self.breaker.down else int(self.window.size)

    @property
    def over(self) -> bool:
        # Questions that wait stay open where the endpoint was given up.
        return self.breaker.lost is not None or not self.open

    @property
    def open(self) -> int:
        """The number of questions that are neither under way nor settled."""
        return len(self.waiting) + len(self.again) + len(self.unclaimed)

    def take(self, questions: Questions) -> Question | None:
        # Only here a request is made from its key, so that no more than those under way are in
        # memory.
        if self.breaker.lost is not None:
            return None
        if self.again:
            return self.again.popleft()
        if not self.waiting:
            return None
        key = self.waiting.popleft()
        return Question(key, questions[key])

    def pause(self, now: float) -> float:
        # With jitter, since all that wait would go at once.
        wait = self.closed_until - now
        if self.breaker.failed and self.breaker.down:
            wait = max(wait, self.breaker.opens - now)
        return wait * random.uniform(1.0, 1.1) if wait > 0 else 0.0  # noqa: S311

    def note(self, completion: Completion, now: float) -> None:
        """Learn from an attempt about the endpoint. A replayed one teaches nothing."""
        if completion.fidelity == "replayed":
            return
        self.calls += 1
        nobody = is_nobody(completion.error_kind, completion.error_message)
        self.breaker.note(completion.error_kind, now, nobody=nobody)
        if completion.ok:
            self.window.answered(completion.latency)
        elif completion.error_kind in ("rate_limited", "timeout"):
            # Any other failure says nothing of the endpoint's load.
            self.window.crowded(now)

    def note_params(self, request: Request, completion: Completion) -> bool:
        """Learn from an answer or a refusal about the parameters that were sent. True with the
        refusal after which questions that send the same are not asked.

        An answer takes back the refusals of what it was sent with. That of an arm without the
        parameter says nothing of it.
        """
        name = completion.refused_param
        if completion.fidelity == "replayed" or not (name or (completion.ok and self.refusals)):
            return False
        shapes = shapes_sent(request)
        if name is None:
            for pair in shapes.items():
                del self.refusals[pair]
            return False
        pair = (name, shapes.get(name, ""))
        self.refusals[pair] += 1
        return self.breaker.limit > 0 and self.refusals[pair] == _MOST_REFUSALS

    def refuses(self, request: Request) -> bool:
        """Return True for a request that sends what was refused again and again."""
        if self.refused is None:
            return False
        return any(self.refusals[p] >= _MOST_REFUSALS for p in shapes_sent(request).items())

    def wait_before_retry(
        self, question: Question, completion: Completion, backoff: float, now: float
    ) -> float | None:
        """Return seconds to wait before asking again, or None for not asking again.

        `backoff` (seconds) is doubled with each try of the question, up to 30 s, and drawn between
        half of it and all of it. The time that the provider asked for is the least. A rate limit
        closes the lane for that time.
        """
        # A recording says the same each time; the first try does not count as a retry.
        if completion.fidelity == "replayed" or completion.error_kind not in RETRIABLE:
            return None
        if question.tries > question.request.model.max_retries:
            return None
        longest = min(backoff * 2.0 ** (question.tries - 1), 30.0)
        wait: float = longest * random.uniform(0.5, 1.0)  # noqa: S311
        requested = completion.retry_after
        if requested is not None:
            if requested > _LONGEST_WAIT:
                return None
            wait = max(requested, wait)
        if completion.error_kind == "rate_limited":
            # All connections to this endpoint wait, not only the one that was refused.
            pause = wait if requested is None else requested
            self.closed_until = max(self.closed_until, now + pause)
        return wait
