"""Studies of recorded runs: how many cases a comparison needs, whether endpoints of one model
differ, which layer broke an answer, and the smallest input that still fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...core.late import late_names

if TYPE_CHECKING:
    from .diagnosis import Diagnosis, blame
    from .endpoint_comparison import Endpoints, endpoints
    from .power_analysis import Power, planned_power, power
    from .request_shrinking import ShrunkRequest, shrink_request
    from .shrinking import Shrunk, shrink

if not TYPE_CHECKING:
    __getattr__ = late_names(
        __name__,
        {
            "diagnosis": "Diagnosis blame",
            "endpoint_comparison": "Endpoints endpoints",
            "power_analysis": "Power planned_power power",
            "request_shrinking": "ShrunkRequest shrink_request",
            "shrinking": "Shrunk shrink",
        },
    )

VERBS: Mapping[str, tuple[str, str]] = {
    "power": (
        "verbs",
        "show the smallest drop that the cases of a run can detect, and the cases a drop needs",
    ),
    "endpoints": (
        "verbs",
        "compare endpoints of one model with one of them: worse, better, same or cannot tell",
    ),
    "blame": ("verbs", "say which layer broke an answer, by its record or by asking again"),
}

__all__ = [
    "Diagnosis", "Endpoints", "Power", "Shrunk", "ShrunkRequest", "blame", "endpoints",
    "planned_power", "power", "shrink", "shrink_request",
]  # fmt: skip
