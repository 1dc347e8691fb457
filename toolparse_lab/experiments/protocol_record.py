"""Protocols in a run's record: those that an id alone does not bring back, and how they return.

A shipped or installed protocol is its id. One made from data (`Protocol.from_spec`,
`json_mix_protocol`) is recorded as that data and made again. Code, such as a protocol object of the
user's own, cannot be recorded: the run notes it, and takes the object again when it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from ..core.errors import BadPlan, BadSpec, UnknownProtocol
from ..formats.auto import AUTO
from ..formats.base import Protocol
from ..formats.prompt.own_prompt import OwnPrompt
from ..formats.registry import is_shipped, protocol_of
from ..formats.spec import from_record
from ..middleware.plans import PLAN
from ..parser.foreign.protocol import AnyProtocol, any_protocol
from .arms import NATIVE, Arm, ArmProtocol, LostProtocol


def protocol_records(arms: Iterable[Arm]) -> dict[str, Any]:
    """Return id -> record of every protocol of these arms that its id alone does not bring back.

    A record is {"spec": JSON text}, or {"title": …} for code, which cannot be made again.
    """
    records: dict[str, Any] = {}
    for arm in arms:
        protocol = arm.protocol
        if protocol is None or protocol is AUTO or is_shipped(protocol.id):
            continue
        if isinstance(protocol, Protocol) and protocol.spec:
            records[protocol.id] = {"spec": protocol.spec}
        else:
            # A protocol object of the user's own need not have a title.
            records[protocol.id] = {"title": getattr(protocol, "title", "") or protocol.id}
    return records


def prompt_records(arms: Iterable[Arm]) -> dict[str, Any]:
    """Return name -> record of every prompt of these arms that is the caller's own."""
    prompts = (arm.own_prompt for arm in arms)
    return {prompt.name: prompt.record() for prompt in prompts if prompt is not None}


def recorded_prompts(
    records: Mapping[str, Any], known_prompts: Mapping[str, OwnPrompt]
) -> dict[str, OwnPrompt]:
    """Return name -> prompt of a run's record, a lost one for a builder that is not at hand."""
    prompts = {}
    for name, record in records.items():
        template = record.get("template", "")
        lost = OwnPrompt(name)
        prompts[name] = OwnPrompt(name, template) if template else known_prompts.get(name, lost)
    return prompts


def recorded_protocols(
    ids: Iterable[str],
    records: Mapping[str, Any],
    passed: Any = None,
    known_protocols: Mapping[str, AnyProtocol] | None = None,
) -> dict[str, ArmProtocol]:
    """Return the protocols of a run by id, as they were when it was planned.

    None for 'native'.

    passed: protocols for this run, which go before all others. known_protocols: those that the lab
    has used, taken where the record holds no data. One that is nowhere is a `LostProtocol`. Raises
    BadPlan for a passed protocol that the run was not made with.
    """
    own = {protocol.id: protocol for protocol in map(any_protocol, passed or ())}
    protocols: dict[str, ArmProtocol] = {}
    for name in ids:
        record = records.get(name) or {}
        if name in own:
            _check_same(own[name], record)
            protocols[name] = own[name]
        else:
            protocols[name] = _recorded(name, record, known_protocols or {})

    if strange := own.keys() - protocols.keys():
        raise BadPlan(
            "the run was not made with this protocol",
            got=min(strange),
            expected=", ".join(protocols),
            hint="to read its answers by another one: run.trials(protocol=...)",
        )
    return protocols


def _recorded(
    name: str, record: Mapping[str, Any], known_protocols: Mapping[str, AnyProtocol]
) -> ArmProtocol:
    # From its record, from those at hand, or by its id, else a lost one.
    if name == NATIVE:
        return None
    if name == AUTO.id:
        return AUTO
    if name == PLAN.id:
        return PLAN
    if "spec" in record:
        # A later version may have written what this one cannot read; then an object may do.
        with suppress(BadSpec):
            return from_record(record["spec"])
    if name in known_protocols:
        return known_protocols[name]
    try:
        return protocol_of(name)
    except UnknownProtocol:
        return LostProtocol(name)


def _check_same(protocol: AnyProtocol, record: Mapping[str, Any]) -> None:
    spec = record.get("spec")
    if spec is not None and getattr(protocol, "spec", spec) != spec:
        raise BadPlan(
            "a protocol of this id was made from other data when the run was planned",
            got=protocol.id,
            expected=spec,
            hint="leave it away: the run has kept what it was made from",
        )
