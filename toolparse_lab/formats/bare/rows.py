"""Formats of bare objects that are constants alone, one row each."""

from __future__ import annotations

from ..base import Protocol
from .form import BareForm
from .gemma import bare_protocol

PROTOCOLS: tuple[Protocol, ...] = (
    bare_protocol(
        "functiongemma",
        BareForm("<start_function_call>", "<end_function_call>", "<escape>", ("<end_of_turn>",)),
    ),
)
