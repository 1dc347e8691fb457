"""The cases and the recording that come with the package, wherever it was installed from."""

from __future__ import annotations

from pathlib import Path

from ...core.errors import UnreadableInput
from .collection import Cases
from .loading import load_cases

_PACKAGE = Path(__file__).resolve().parents[2]
RECORDING = "recordings/smollm2-135m.jsonl"
CONVERSATIONS = "recordings/smollm2-135m-conversations.jsonl"
ABLATION = "recordings/smollm2-135m-ablation.jsonl"


def shipped_path(name: str) -> Path:
    """Return the path of a shipped file: inside an installed package, or beside it in a checkout.

    name: the path below the folder of data sets, such as ``cases.jsonl``.

    Raises UnreadableInput if it is in neither.
    """
    for base in (_PACKAGE / "datasets", _PACKAGE.parent / "datasets"):
        path = base / name
        if path.is_file():
            return path
    raise UnreadableInput(
        "a file that ships with toolparse_lab is missing", got=name, hint="install it again"
    )


def example_cases(*, demo: bool = False) -> Cases:
    """Return the project's own cases.

    Args:
        demo: only the short ones that a model of 135M parameters has a chance on.

    >>> import toolparse_lab as tp
    >>> tp.example_cases()[0].id
    'single/weather-city'
    """
    cases = load_cases(shipped_path("cases.jsonl"))
    return cases.filter(demo=True) if demo else cases


def example_conversations(*, demo: bool = False) -> Cases:
    """Return the project's own cases of several turns.

    Their tools have results, for plans with `max_turns` above 1.

    Args:
        demo: only the short ones that a model of 135M parameters has a chance on.

    >>> import toolparse_lab as tp
    >>> len(tp.example_conversations()) > 0
    True
    """
    cases = load_cases(shipped_path("conversations.jsonl"))
    return cases.filter(demo=True) if demo else cases


def example_recording(*, conversations: bool = False, ablation: bool = False) -> Path:
    """Return the path of the embedded model's recorded answers, for `lab.replaying`.

    Args:
        conversations: the answers to the short ones of `example_conversations`, instead of those to
            `example_cases`.
        ablation: the answers of `ablation.example.example_ablation`, instead.

    >>> import toolparse_lab as tp
    >>> tp.example_recording().name
    'smollm2-135m.jsonl'
    """
    if ablation:
        return shipped_path(ABLATION)
    return shipped_path(CONVERSATIONS if conversations else RECORDING)
