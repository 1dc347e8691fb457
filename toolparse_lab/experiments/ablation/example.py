"""The ablation that ships with the package: the embedded model over short cases about types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from ...evals.cases.collection import Cases
from ...evals.cases.loading import example_cases
from ...runner.exchange.types import Model
from .answers import wants_call
from .settings import AblationKeywords

if TYPE_CHECKING:
    from ...lab import Lab
    from .ablation import Ablation


def example_ablation(lab: Lab, **settings: Unpack[AblationKeywords]) -> Ablation:
    """Return the shipped ablation.

    Its cases are those about types, in English, and the short ones that want a call. A lab that is
    replaying `example_recording(ablation=True)` asks no model.

    settings: as for `Lab.ablation`, in addition to those of the shipped plan.
    """
    cases = example_cases()
    about_types = [
        case for case in cases if case.category == "types" and case.metadata.get("language") == "en"
    ]
    short = [case for case in cases if case.metadata.get("demo") and wants_call(case)]
    chosen: AblationKeywords = {"wording": "brief", "max_tokens": 96, **settings}
    return lab.ablation(
        Cases(dict.fromkeys((*about_types, *short)), cases.source),
        {"smollm2-135m": Model("toolparse-local/smollm2-135m")},
        ("hermes", "morph_xml"),
        **chosen,
    )
