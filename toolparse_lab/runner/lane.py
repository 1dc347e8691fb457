"""How one endpoint is treated: how many calls at once, when none, when again, and when it is given up."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

from .failures import RETRIABLE
from .local_provider import is_local
from .questions import Questions
from .types import Completion, Model, Request

_LONGEST_WAIT = 120.0  # seconds; a provider that asks for more has failed
_HOPELESS = frozenset({"auth", "not_found"})
_UNREACHABLE = frozenset({"timeout", "server_error", "connection"})
_PROBES = {"timeout": 2}  # each costs the whole time that a call may take
_MOST_PROBES = 5
_FIRST_PROBE = 1.0  # seconds, doubled each time
_FIRST_CONNECTIONS = 4
_MOST_CONNECTIONS = 128


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row that say that nobody is there, or that nothing will be answered.

    After `limit` of them (0: never) the endpoint is `down`: one call at a time finds out whether it is back, after
    1, 2, 4 … seconds. Where none of these is answered, and at once where a key or a name is refused, it is `lost`.
    Any other failure is an answer of a server that lives.
    """

    limit: int
    failed: int = 0
    probes: int = 0
    opens: float = 0.0
    """when the next call may find out"""
    lost: str | None = None
    """the error kind for which it was given up"""

    @property
    def down(self) -> bool:
        return self.limit > 0 and self.failed >= self.limit

    def note(self, kind: str | None, now: float) -> None:
        """`kind`: None for an answer, else the error kind; `now` in seconds of any clock."""
        if kind not in _HOPELESS and kind not in _UNREACHABLE:
            if kind != "rate_limited":  # see `exhausted`
                self.failed = self.probes = 0
            return
        was_down = self.down
        self.failed += 1
        if not self.down or self.lost:
            return
        if was_down and now < self.opens:
            return  # sent before it was known
        if kind in _HOPELESS or self.probes >= _PROBES.get(kind, _MOST_PROBES):
            self.lost = kind
            return
        self.opens = now + _FIRST_PROBE * 2.0**self.probes
        self.probes += 1

    def exhausted(self) -> None:
        """A rate limit that held through all retries, or for longer than one waits: a quota, where it goes on."""
        self.failed += 1
        if self.down:
            self.lost = self.lost or "rate_limited"


@dataclass(slots=True)
class Window:
    """How many calls at once: a number, or what an endpoint takes, found out.

    Adaptive, it doubles with every round of answers until a rate limit or a time-out halves it, or answers take twice
    as long as they did at best; from then on it grows by one a round, and shrinks by one while they take that long.
    """

    size: float
    adaptive: bool = False
    recent: float = 0.0
    best: float = 0.0
    steady: bool = False
    halved: float = float("-inf")

    def answered(self, latency: float | None) -> None:
        """`latency` in seconds."""
        if not self.adaptive or not latency:
            return
        self.recent = 0.8 * self.recent + 0.2 * latency if self.recent else latency
        # What is best is forgotten slowly, since answers differ in length.
        self.best = min(self.best * 1.0002, self.recent) if self.best else self.recent
        if self.recent > 2 * self.best:
            self.steady = True
            self.size = max(1.0, self.size - 1.0 / self.size)
            return
        self.size = min(_MOST_CONNECTIONS, self.size + (1.0 / self.size if self.steady else 1.0))

    def crowded(self, now: float) -> None:
        """A rate limit or a time-out; several of one round count once."""
        if self.adaptive and now - self.halved > max(self.recent, 0.5):
            self.halved, self.steady, self.size = now, True, max(1.0, self.size / 2)


@dataclass(slots=True)
class Question:
    """A request on its way: how often it was asked, and how many of these count as its own failures."""

    key: str
    request: Request
    attempts: int = 0
    tries: int = 0


@dataclass(slots=True)
class Lane:
    """One endpoint: the keys that wait for it, who works for it, and until when nothing may be sent to it."""

    window: Window
    breaker: Breaker
    waiting: deque[str] = field(default_factory=deque)
    again: deque[Question] = field(default_factory=deque)
    aliases: dict[str, Model] = field(default_factory=dict)
    workers: int = 0
    closed_until: float = 0.0

    @classmethod
    def of(cls, model: Model, give_up_after: int | None) -> Lane:
        limit = model.max_connections
        adaptive = limit == "adaptive"
        size = 1 if is_local(model.name) else _FIRST_CONNECTIONS if limit == "adaptive" else int(limit)
        return cls(Window(size, adaptive and not is_local(model.name)), Breaker(give_up_after or 0))

    def join(self, alias: str, model: Model) -> None:
        """A model under its alias; of several the more generous limit holds."""
        self.aliases[alias] = model
        other = Lane.of(model, None).window
        self.window.adaptive |= other.adaptive
        self.window.size = max(self.window.size, other.size)

    @property
    def limit(self) -> int:
        return 1 if self.breaker.down else int(self.window.size)

    @property
    def over(self) -> bool:
        return self.breaker.lost is not None or not (self.waiting or self.again)

    def take(self, asked: Questions) -> Question | None:
        """The next question, those that are asked again first."""
        if self.over:
            return None
        if self.again:
            return self.again.popleft()
        key = self.waiting.popleft()
        return Question(key, asked[key])

    def pause(self, now: float) -> float:
        """Seconds until the next call may be sent; with jitter, since all that wait would go at once."""
        wait = self.closed_until - now
        if self.breaker.down:
            wait = max(wait, self.breaker.opens - now)
        return wait * random.uniform(1.0, 1.1) if wait > 0 else 0.0  # noqa: S311

    def note(self, completion: Completion, now: float) -> None:
        """What an attempt says about the endpoint. A replayed one says nothing."""
        if completion.fidelity == "replayed":
            return
        self.breaker.note(completion.error_kind, now)
        if completion.ok:
            self.window.answered(completion.latency)
        elif completion.error_kind in ("rate_limited", "timeout"):
            self.window.crowded(now)

    def wait_before_retry(self, question: Question, completion: Completion, backoff: float, now: float) -> float | None:
        """Seconds to wait before asking again, or None for not asking again."""
        most = question.request.model.max_retries
        if completion.error_kind not in RETRIABLE or question.tries > most or completion.fidelity == "replayed":
            return None
        wait: float = min(backoff * 2.0 ** (question.tries - 1), 30.0) * random.uniform(0.5, 1.0)  # noqa: S311
        asked = completion.retry_after
        if asked is not None:
            if asked > _LONGEST_WAIT:
                return None
            wait = max(asked, wait)
        if completion.error_kind == "rate_limited":
            # All connections to this endpoint wait, not only the one that was told.
            self.closed_until = max(self.closed_until, now + (asked if asked is not None else wait))
        return wait
