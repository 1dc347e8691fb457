"""Recorded answers for training: chat rows of right answers, a reward function, and the
probabilities of arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...core.late import late_names

if TYPE_CHECKING:
    from .probabilities import arguments
    from .rewards import reward
    from .rows import Written, sft

if not TYPE_CHECKING:
    __getattr__ = late_names(
        __name__, {"probabilities": "arguments", "rewards": "reward", "rows": "Written sft"}
    )

VERBS: Mapping[str, tuple[str, str]] = {
    "sft": ("verbs", "write the right answers of a run as chat rows to train on")
}

__all__ = ["Written", "arguments", "reward", "sft"]
