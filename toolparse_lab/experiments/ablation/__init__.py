"""The ablation of type safety: one recorded set of answers, read with and without each of its three
layers.
"""

from __future__ import annotations

from .ablation import Ablation
from .settings import AblationSettings
from .tools import DIALECTS, MockTool

__all__ = ["DIALECTS", "Ablation", "AblationSettings", "MockTool"]
