"""The limits of a run, and the rest of them while calls are in flight."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from .exchange.summary import Summary
from .exchange.types import Completion, Request
from .routes import estimate_cost

# How limits are kept. A limit holds before it is passed, so a call may go out only if the run could
# still pay for it: what was spent, what calls in flight may cost at most, and this call's own
# estimate. A request that does not fit waits as long as calls are in flight, because most of them
# turn out cheaper than reserved; with none in flight nothing will change any more, and the run
# stops. Invariant: spent + reserved <= max_cost, as far as the estimates hold.


@dataclass(slots=True)
class Budget:
    """The limits of a run in US dollars and calls, None for no limit.

    `summary` holds the sums spent and sent. `reserved` is US dollars for calls in flight.
    """

    summary: Summary
    max_cost: float | None = None
    max_calls: int | None = None
    reserved: float = 0.0
    in_flight: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def needs_prices(self) -> bool:
        """True if the limit on cost is the only one, so that no model may be without a price."""
        # `max_calls` also bounds what cannot be priced.
        return self.max_cost is not None and self.max_calls is None

    async def admits(self, request: Request) -> bool | None:
        """Return True if the limits allow this call now, None if that is to be asked again.

        False stops the run: `summary.stopped` then names the limit. Waits, where the request does
        not fit, until a call has ended.
        """
        if self.max_calls is not None and self.summary.calls >= self.max_calls:
            self.summary.stopped = "max_calls"
            return False
        if self.max_cost is None:
            return True

        if self.summary.cost + self.reserved + self._cost(request) <= self.max_cost:
            return True
        if self.in_flight == 0:
            self.summary.stopped = "max_cost"
            return False
        self.changed.clear()
        await self.changed.wait()
        return None

    def reserve(self, request: Request) -> float:
        """Count a call that goes out now.

        Return the US dollars reserved for it.

        It must be released again with the same number, whatever became of the call.
        """
        cost = 0.0 if self.max_cost is None else self._cost(request)
        self.summary.calls += 1
        self.in_flight += 1
        self.reserved += cost
        return cost

    def _cost(self, request: Request) -> float:
        # 0 without a known price, in which case there is a max_calls (see `check_prices`).
        return estimate_cost(request) or 0.0

    def charge(self, completion: Completion, reserve: float) -> None:
        # Failures without a price are taken for free, apart from those in which the provider has
        # worked.
        if completion.fidelity == "replayed":
            return  # its price was paid when it was recorded
        if completion.cost is not None:
            self.summary.cost += completion.cost
        elif completion.ok:
            self.summary.unpriced += 1
        elif completion.error_kind in ("timeout", "cut_stream"):
            self.summary.cost += reserve  # the provider may well charge for it

    def release(self, reserve: float) -> None:
        self.in_flight -= 1
        self.reserved -= reserve
        self.changed.set()
