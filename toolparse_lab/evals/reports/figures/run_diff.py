"""Two runs against each other: the same cases with other settings, another model, version or
parser.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ....core.errors import BadOptions
from .cells import check_by, check_once, check_trials, policies_of
from .comparison import ArmComparison, Opener, compare_arms

SIDE = "run"
PAIRED = ("model", "arm")
"""The columns that runs are held together by, unless `within` names others."""


def compare_runs(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    within: str | Sequence[str] | None = None,
    policy: str | None = None,
    level: float = 0.95,
    cluster: str | None = None,
    openers: tuple[Opener, Opener] | None = None,
    names: tuple[str, str] | None = None,
) -> ArmComparison:
    """Compare two trials frames, `b` against `a`, paired on case ids within model and arm (or
    `within`).

    A column of these two in which each run has one value of its own is the difference of the runs,
    and is not held fixed. A note says so. Cases and strata of one run alone are listed in
    `unpaired` and are in no figure. policy: by default the one that both have. Of two runs with one
    policy each that is another, each by its own, and a note says so. names: of the two sides, by
    default the runs' ids. A note says where they were read by another reader or version. Raises
    BadOptions if the runs have nothing in common to be held together by.
    """
    notes: list[str] = []
    for frame in (a, b):
        check_trials(frame)
    # First the rows that are compared: a frame may hold one trial under several policies.
    policy, (a, b) = _read_alike(a, b, policy, notes)
    for frame in (a, b):
        check_once(frame)
    _note_readers(a, b, notes)
    names = names or _names(a, b)
    strata = list(check_by(a, within)) if within else _strata(a, b, notes)
    check_by(b, strata or ["model"])
    columns = [c for c in a if c in b]
    # As objects, because the two frames may hold one column as different types.
    sides = [
        frame[columns].astype(object).assign(**{SIDE: name})
        for frame, name in zip((a, b), names, strict=True)
    ]
    both = pd.concat(sides, ignore_index=True)
    return compare_arms(
        both,
        *names,
        on=SIDE,
        within=strata or None,
        policy=policy,
        level=level,
        cluster=cluster,
        openers=openers,
        notes=notes,
    )


def _note_readers(a: pd.DataFrame, b: pd.DataFrame, notes: list[str]) -> None:
    before, after = (_reader_words(frame) for frame in (a, b))
    if before != after:
        notes.append(f"The answers were read by {before} in the first, {after} in the second.")


def _reader_words(frame: pd.DataFrame) -> str:
    columns = [c for c in ("parse_protocol", "parse_version") if c in frame]
    pairs = frame[columns].dropna().astype(str).drop_duplicates()
    return ", ".join(sorted(" ".join(row) for row in pairs.itertuples(index=False, name=None)))


def _read_alike(
    a: pd.DataFrame, b: pd.DataFrame, policy: str | None, notes: list[str]
) -> tuple[str, tuple[pd.DataFrame, pd.DataFrame]]:
    # A difference of policies is added to `notes`.
    policies = (policies_of(a), policies_of(b))
    common = [p for p in policies[0] if p in policies[1]]
    if policy is None and not common and all(len(names) == 1 for names in policies):
        # Each run has one reading and they differ: then the policy is what is compared.
        (first,), (second,) = policies
        notes.append(f"The runs differ in policy: {first} in the first, {second} in the second.")
        name = f"{first} against {second}"
        return name, (a.assign(policy=name), b.assign(policy=name))
    chosen = policy or (common[0] if len(common) == 1 else "safe")
    lacking = [
        which
        for which, names in zip(("first", "second"), policies, strict=True)
        if names and chosen not in names
    ]
    if lacking:
        raise BadOptions(
            f"the {' and the '.join(lacking)} frame holds no reading under the policy {chosen}",
            got=" against ".join(", ".join(names) for names in policies),
            expected=f"policy= one of {', '.join(common)}" if common else "a policy that both have",
            hint="two policies are compared where each frame has one: df[df['policy'] == 'none']",
        )
    return chosen, (a[a["policy"] == chosen], b[b["policy"] == chosen])


def _names(a: pd.DataFrame, b: pd.DataFrame) -> tuple[str, str]:
    first, second = _ids(a), _ids(b)
    if first and second and first != second:
        return first, second
    return f"{first} first".strip(), f"{second} second".strip()


def _ids(frame: pd.DataFrame) -> str:
    if "run_id" not in frame:
        return ""
    return ", ".join(map(str, frame["run_id"].dropna().unique()))


def _strata(a: pd.DataFrame, b: pd.DataFrame, notes: list[str]) -> list[str]:
    # What the runs as a whole differ in is added to `notes`.
    columns = [c for c in PAIRED if c in a and c in b]
    if _share_values(a, b, columns):
        return columns
    common = []
    for column in columns:
        first, second = _texts(a, column), _texts(b, column)
        if len(first) == len(second) == 1 and first != second:
            notes.append(
                f"The runs differ in {column}: {first[0]} in the first, {second[0]} in the second."
            )
        else:
            common.append(column)
    if not _share_values(a, b, common):
        values = [
            "; ".join(f"{column}: {', '.join(_texts(frame, column))}" for column in columns)
            for frame in (a, b)
        ]
        raise BadOptions(
            "the runs have no model and arm in common",
            got=" against ".join(values),
            hint="name the columns that hold them together: within='model', or within='category'",
        )
    return common


def _texts(frame: pd.DataFrame, column: str) -> list[str]:
    return list(frame[column].dropna().astype(str).unique())


def _share_values(a: pd.DataFrame, b: pd.DataFrame, columns: list[str]) -> bool:
    # Also True where nothing can tell.
    if not columns or a.empty or b.empty:
        return True
    in_a, in_b = (
        set(frame[columns].astype("string").fillna("").itertuples(index=False, name=None))
        for frame in (a, b)
    )
    return bool(in_a & in_b)
