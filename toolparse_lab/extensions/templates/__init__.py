"""A format of one's own: derived from a model's templates, checked by the laws of parsing.

`protocol_from_chat_template` and `protocol_from_response_template` make a protocol of a model's
files, `check_protocol` and `check_stream` try the laws on any protocol or parser, `check_template`
shows what a chat template loses, and `replay_check` which turns it shows otherwise than drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...core.late import late_names

if TYPE_CHECKING:
    from .derivation.account import Derivation
    from .derivation.derive import model_prompt, protocol_from_chat_template
    from .derivation.derived import DerivedProtocol
    from .derivation.exchange import response_template_for, response_template_of, structural_tag_of
    from .derivation.response_template import protocol_from_response_template
    from .doctor.check import check_template
    from .doctor.replay import ReplayReport, replay_check
    from .doctor.report import TemplateReport
    from .laws.check_protocol import LawReport, check_protocol
    from .laws.check_stream import StreamReport, check_stream

__all__ = [
    "VERBS", "Derivation", "DerivedProtocol", "LawReport", "ReplayReport", "StreamReport",
    "TemplateReport", "check_protocol", "check_stream", "check_template", "model_prompt",
    "protocol_from_chat_template", "protocol_from_response_template", "replay_check",
    "response_template_for", "response_template_of", "structural_tag_of",
]  # fmt: skip

VERBS: Mapping[str, tuple[str, str]] = {
    "template": (
        "verbs",
        "derive the protocol of a chat template, or check the values and turns that it loses",
    )
}

if not TYPE_CHECKING:
    __getattr__ = late_names(
        __name__,
        {
            "derivation.account": "Derivation",
            "derivation.derive": "model_prompt protocol_from_chat_template",
            "derivation.derived": "DerivedProtocol",
            "derivation.exchange": "response_template_for response_template_of structural_tag_of",
            "derivation.response_template": "protocol_from_response_template",
            "doctor.check": "check_template",
            "doctor.replay": "ReplayReport replay_check",
            "doctor.report": "TemplateReport",
            "laws.check_protocol": "LawReport check_protocol",
            "laws.check_stream": "StreamReport check_stream",
        },
    )
