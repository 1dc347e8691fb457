"""The cases and the recording that come with the package, wherever it was installed from."""

from __future__ import annotations

from pathlib import Path

from ...errors import UnreadableInput
from .case import Cases, load_cases

_PACKAGE = Path(__file__).resolve().parents[2]
RECORDING = "recordings/smollm2-135m.jsonl"
CONVERSATIONS = "recordings/smollm2-135m-conversations.jsonl"


def shipped_path(name: str) -> Path:
    """The path of a shipped file: inside an installed package, or beside it in a checkout."""
    for base in (_PACKAGE / "datasets", _PACKAGE.parent / "datasets"):
        path = base / name
        if path.is_file():
            return path
    raise UnreadableInput("a file that ships with toolparse_lab is missing", got=name, hint="install it again")


def example_cases(*, demo: bool = False) -> Cases:
    """The project's own cases; `demo=True` gives the short ones that a 135M model has a chance on."""
    cases = load_cases(shipped_path("cases.jsonl"))
    return cases.filter(demo=True) if demo else cases


def example_conversations(*, demo: bool = False) -> Cases:
    """The project's own cases of several turns: their tools have results, for plans with `max_turns` above 1."""
    cases = load_cases(shipped_path("conversations.jsonl"))
    return cases.filter(demo=True) if demo else cases


def example_recording(*, conversations: bool = False) -> Path:
    """The embedded model's recorded answers to the project's own cases, for `lab.replaying`.

    conversations: those to the short ones of `example_conversations`, instead of those to `example_cases`.
    """
    return shipped_path(CONVERSATIONS if conversations else RECORDING)
