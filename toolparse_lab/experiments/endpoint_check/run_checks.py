"""Asking the canaries of many cells, and refusing plans whose native arms are shown to offer no
tools.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from ...core.errors import BadPlan
from ...parser.any_protocol import AnyProtocol
from ...runner.exchange.types import Model, Request
from ...runner.loop import run_sync
from ...runner.pool import run_requests
from ...runner.store.store import Store
from ..arms import prompt_protocols
from ..plan import Plan
from .canary import Cell, canary_for, judge
from .check_table import Check

_HINT = (
    "see lab.check(models, ['native']); to run it all the same: lab.run(plan, despite_check=True)"
)


def check_cells(
    models: Mapping[str, Model],
    protocols: Any,
    store: Store,
    *,
    complete: Callable[..., Any] | None = None,
    stream: bool = False,
) -> Check:
    """Ask every canary again, record the answers and judge them.

    models: by alias.
    protocols: as for `Lab.plan`.
    store: where the answers are recorded, and read back for the verdicts.
    complete: the function that asks, None for litellm.
    stream: ask for a stream.

    Raises BadPlan for no protocols, UnknownProtocol, and what the runner raises before anything is
    sent.
    """
    canaries: list[tuple[str, AnyProtocol | None, Request]] = [
        (alias, protocol, canary_for(alias, model, protocol, stream=stream))
        for alias, model in models.items()
        for protocol in prompt_protocols(protocols)
    ]

    # An answer of yesterday says nothing of the endpoint of today.
    requests = [request for *_, request in canaries]
    run_sync(run_requests(requests, store, complete=complete, fresh=True, progress=False))
    return Check([_latest(store, *canary) for canary in canaries])


def refuse_failed(plan: Plan, store: Store) -> None:
    """Raise BadPlan if a native arm of the plan would measure something else.

    That is so where its latest canary failed, or where litellm is set to write tools into the
    prompt. A plan without native arms passes, and so does a model that was never checked.

    plan: the arms and models that are about to be run.
    store: where the answers of earlier canaries are recorded.
    """
    if not any(arm.native for arm in plan.arms):
        return

    litellm = sys.modules.get("litellm")  # a switch of a module that is not imported cannot be set
    if getattr(litellm, "add_function_to_prompt", False):
        raise BadPlan(
            "litellm.add_function_to_prompt is set: it writes tools into the prompt, so nothing "
            "is native",
            got="add_function_to_prompt = True",
            hint="set it to False",
        )

    for alias, model in plan.models.items():
        cell = _latest(store, alias, None, canary_for(alias, model, None, stream=plan.stream))
        if cell.verdict == "failed":
            raise BadPlan(
                f"the native arm of {alias!r} failed its canary", got=cell.why, hint=_HINT
            )


def _latest(store: Store, alias: str, protocol: AnyProtocol | None, request: Request) -> Cell:
    # Answers come oldest first. Without one the verdict is 'uncertain'.
    history = store.history(request.key)
    return judge(alias, protocol, history[-1] if history else None)
