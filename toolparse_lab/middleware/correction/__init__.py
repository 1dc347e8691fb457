"""Layer 3 of type safety: a call that its tool refused is shown to the model with the error, and
tried again.
"""

from __future__ import annotations

from .call import (
    EVENTS,
    STOPS,
    Accepted,
    Correct,
    CorrectedCall,
    Correction,
    FieldEdit,
    Pause,
    RunTool,
    corrected_call,
    edits_between,
    merged,
)
from .drive import HttpTool, ModelCorrection, arun_call, asking, asking_later, run_call
from .failure import DETECTORS, Issue, Refused, ToolFailure, ToolRefused, detect
from .feedback import PRESETS, Feedback, agent_tool
from .prompt import Corrected, CorrectionContext, read_correction

__all__ = [
    "DETECTORS", "EVENTS", "PRESETS", "STOPS", "Accepted", "Correct", "Corrected", "CorrectedCall",
    "Correction", "CorrectionContext", "Feedback", "FieldEdit", "HttpTool", "Issue",
    "ModelCorrection", "Pause", "Refused", "RunTool", "ToolFailure", "ToolRefused", "agent_tool",
    "arun_call", "asking", "asking_later", "corrected_call", "detect", "edits_between", "merged",
    "read_correction", "run_call",
]  # fmt: skip
