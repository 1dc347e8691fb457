"""Two runs against each other: the same cases with other settings, another model, version or parser."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ...errors import BadOptions
from .cells import check_by, check_once, check_trials
from .comparison import ArmComparison, Opener, compare_arms

SIDE = "run"
PAIRED = ("model", "arm")
"""The columns that runs are held together by, unless they are told otherwise."""


def compare_runs(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    within: str | Sequence[str] | None = None,
    policy: str | None = None,
    level: float = 0.95,
    openers: tuple[Opener, Opener] | None = None,
) -> ArmComparison:
    """Compare two trials frames, `b` against `a`, paired on case ids within model and arm (or `within`).

    A column of these two in which each run has one value of its own is what the runs differ in, and is not held fixed;
    a note says so. Cases and strata of one run alone are listed in `unpaired` and are in no figure. policy: by default
    the one that both have; of two runs with one policy each that is another, each by its own, and a note says so.
    Raises BadOptions where the runs have nothing in common to be held together by.
    """
    notes: list[str] = []
    for frame in (a, b):
        check_trials(frame)
    policy, (a, b) = _read_alike(a, b, policy, notes)
    for frame in (a, b):
        check_once(frame)
    names = _names(a, b)
    strata = list(check_by(a, within)) if within else _strata(a, b, notes)
    check_by(b, strata or ["model"])
    columns = [c for c in a if c in b]
    both = pd.concat(
        [f[columns].astype(object).assign(**{SIDE: n}) for f, n in zip((a, b), names, strict=True)], ignore_index=True
    )
    return compare_arms(
        both, *names, on=SIDE, within=strata or None, policy=policy, level=level, openers=openers, notes=notes
    )


def _read_alike(
    a: pd.DataFrame, b: pd.DataFrame, policy: str | None, notes: list[str]
) -> tuple[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """The policy of a comparison, and the rows of each run that are in it."""
    held = [sorted(set(f["policy"].dropna().astype(str))) for f in (a, b)]
    both = [p for p in held[0] if p in held[1]]
    if policy is None and len(both) != 1:
        policy = None if not both and [len(h) for h in held] == [1, 1] else "safe"
    chosen = policy or (both[0] if both else None)
    if chosen is None:
        (first,), (second,) = held
        notes.append(f"The runs differ in policy: {first} in the first, {second} in the second.")
        chosen = f"{first} against {second}"
        return chosen, (a.assign(policy=chosen), b.assign(policy=chosen))
    if lacking := [n for n, h in zip(("first", "second"), held, strict=True) if h and chosen not in h]:
        raise BadOptions(
            f"the {' and the '.join(lacking)} frame holds no reading under the policy {chosen}",
            got=" against ".join(", ".join(h) for h in held),
            expected=f"policy= one of {', '.join(both)}" if both else "a policy that both have",
            hint="two policies are compared where each frame has one: df[df['policy'] == 'none']",
        )
    return chosen, (a[a["policy"] == chosen], b[b["policy"] == chosen])


def _names(a: pd.DataFrame, b: pd.DataFrame) -> tuple[str, str]:
    ids = [", ".join(map(str, f["run_id"].dropna().unique())) if "run_id" in f else "" for f in (a, b)]
    return (
        (ids[0], ids[1]) if ids[0] != ids[1] and all(ids) else (f"{ids[0]} first".strip(), f"{ids[1]} second".strip())
    )


def _strata(a: pd.DataFrame, b: pd.DataFrame, notes: list[str]) -> list[str]:
    """The columns to hold fixed; what the runs differ in as a whole is told in `notes`."""
    columns = [c for c in PAIRED if c in a and c in b]
    if _shared(a, b, columns):
        return columns
    kept = []
    for c in columns:
        left, right = (f[c].dropna().astype(str).unique() for f in (a, b))
        if len(left) == len(right) == 1 and left[0] != right[0]:
            notes.append(f"The runs differ in {c}: {left[0]} in the first, {right[0]} in the second.")
        else:
            kept.append(c)
    if not _shared(a, b, kept):
        said = ["; ".join(f"{c}: {', '.join(f[c].dropna().astype(str).unique())}" for c in columns) for f in (a, b)]
        raise BadOptions(
            "the runs have no model and arm in common", got=" against ".join(said),
            hint="name the columns that hold them together: within='model', or within='category'",
        )  # fmt: skip
    return kept


def _shared(a: pd.DataFrame, b: pd.DataFrame, columns: list[str]) -> bool:
    if not columns or a.empty or b.empty:
        return True
    left, right = (set(f[columns].astype("string").fillna("").itertuples(index=False, name=None)) for f in (a, b))
    return bool(left & right)
