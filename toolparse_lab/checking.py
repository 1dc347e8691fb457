"""Asking the canaries of many cells, and refusing plans whose native arms are shown to offer no tools."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .arms import NATIVE
from .canary import Cell, canary_for, judge
from .check import Check
from .errors import BadPlan
from .plan import Plan
from .protocols.base import Protocol
from .registry import protocol_of
from .runner.loop import run_sync
from .runner.pool import run_requests
from .runner.store import Store
from .runner.types import Model, Request

_HINT = "see lab.check(models, ['native']); to run it all the same: lab.run(plan, despite_check=True)"


def check_cells(
    models: Mapping[str, Model],
    protocols: Sequence[str | Protocol] | str | Protocol,
    store: Store,
    *,
    complete: Callable[..., Any] | None = None,
    stream: bool = False,
) -> Check:
    """Asks every canary anew, records the answers and judges them. Raises UnknownProtocol and what the runner raises
    before anything is sent."""
    listed = [protocols] if isinstance(protocols, (str, Protocol)) else list(protocols)
    if not listed:
        raise BadPlan("there are no protocols to check", expected="a list such as ['native', 'hermes']")
    chosen = list(dict.fromkeys(NATIVE if p == NATIVE else protocol_of(p).id for p in listed))
    asked: list[tuple[str, str, Request]] = [
        (alias, p, canary_for(alias, model, p, stream=stream)) for alias, model in models.items() for p in chosen
    ]
    run_sync(run_requests([r for *_, r in asked], store, complete=complete, fresh=True, progress=False))
    return Check([_latest(store, alias, p, request) for alias, p, request in asked])


def refuse_failed(plan: Plan, store: Store) -> None:
    """Raises BadPlan where a native arm of the plan would measure something else: its latest canary failed, or litellm
    is set to write tools into the prompt."""
    if not any(arm.native for arm in plan.arms):
        return
    litellm = sys.modules.get("litellm")  # a switch of a module that is not imported cannot be set
    if getattr(litellm, "add_function_to_prompt", False):
        raise BadPlan(
            "litellm.add_function_to_prompt is set: it writes tools into the prompt, so nothing is native",
            got="add_function_to_prompt = True", hint="set it to False",
        )  # fmt: skip
    for alias, model in plan.models.items():
        cell = _latest(store, alias, NATIVE, canary_for(alias, model, NATIVE, stream=plan.stream))
        if cell.verdict == "failed":
            raise BadPlan(f"the native arm of {alias!r} failed its canary", got=cell.why, hint=_HINT)


def _latest(store: Store, alias: str, protocol: str, request: Request) -> Cell:
    history = store.history(request.key)
    return judge(alias, protocol, history[-1] if history else None)
