"""The notes of a report: what a reader has to know first, what was counted, how, and what it cannot show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import stats
from .cells import UNRECORDED, groups, judged_of

if TYPE_CHECKING:
    from .report import Report

EMBEDDED_MODEL = "toolparse-local/smollm2-135m"
MANY = 3
FEW_CASES = 30


def warning_notes(report: Report) -> tuple[str, ...]:
    """What a reader has to know before any number, in sentences."""
    part, cells = report.headline, report.frame
    notes = [f"Stopped early: {s}" for s in report.stops]
    if left := report.left_out_policies:
        notes.append(
            f"Readings under {', '.join(left)} are in the frame too, and in no figure here: policy={left[0]!r} shows "
            'them instead, and "policy" among the columns of by= shows each policy.'
        )
    if _uses_embedded_model(report):
        notes.append(
            f"The embedded model ({EMBEDDED_MODEL}, 135 million parameters) shows how damaged text is read, repaired "
            "and scored. It cannot rank protocols: it is far too small to follow any of them reliably, and an order "
            "found with it does not carry over to larger models."
        )
    if missing := int(cells["missing"].sum()):
        reasons = part.loc[part["score_success"].isna() & part["target"].notna(), "missing_reason"].fillna(UNRECORDED)
        told = ", ".join(f"{k} {v}" for v, k in reasons.astype(str).value_counts().items())
        notes.append(
            f"{missing} trials are missing ({told}). They are no failures: worst and best say where the rate would lie "
            "if all of them had failed or succeeded."
        )
        shares = cells["missing"] / (cells["missing"] + cells["n"]).clip(lower=1)
        if len(cells) > 1 and shares.max() - shares.min() > 0.05:
            notes.append("Missing trials are spread unevenly over the cells, so compare them by worst and best.")
    pooled = [
        c
        for c in ("model", "prompt_protocol", "parse_protocol", "arm", "run_id")
        if c in part and c not in report.by and _pools(report, c)
    ]
    if pooled:
        notes.append(
            f"Cells pool several values of {', '.join(pooled)}: the same answer may be counted more than once."
        )
    if best := best_of_many(report):
        notes.append(best)
    cases = part.loc[part["score_success"].notna(), "case_id"].nunique()
    if 0 < cases < FEW_CASES:
        notes.append(f"{cases} cases are few: the intervals are wide, and they are what the data can say.")
    return tuple(notes)


def best_of_many(report: Report, alpha: float = 0.05) -> str:
    """Which cells cannot be told from the best one on the cases they share, in a sentence; '' for fewer than three.

    Each other cell is held against the one with the highest rate by the sign-flip test, by Holm over them.
    """
    part = report.headline[list(dict.fromkeys((*report.by, "score_success", "case_id")))]
    judged = {k: judged_of(p) for k, p in groups(part, report.by)}
    judged = {k: v for k, v in judged.items() if v[0]}
    if len(judged) < MANY:
        return ""
    best = max(judged, key=lambda k: _share(judged[k]))
    others = [k for k in judged if k != best]
    adjusted = stats.holm([stats.sign_flip(*judged[k], *judged[best]) for k in others])
    alike = [k for k, p in zip(others, adjusted, strict=True) if not p <= alpha]
    names = [report.cell_name(dict(zip(report.by, k, strict=True))) for k in (best, *alike)]
    shown = ", ".join(names[1:4]) + (f" and {len(alike) - 3} more" if len(alike) > 3 else "")
    count = "All" if len(alike) == len(others) else len(alike)
    told = f"{count} of the {len(others)} others cannot be told from it on these cases: {shown}."
    if not alike:
        told = "All others differ from it by more than chance explains."
    equal = sum(_share(judged[k]) == _share(judged[best]) for k in others)
    tie = "" if not equal else ", as has one other" if equal == 1 else f", as have {equal} others"
    return (
        f"{names[0]} has the highest rate of {len(judged)} cells{tie}. {told} The best of many, picked on the cases it "
        "is measured on, looks better than it is: confirm it on other cases."
    )


def _share(judged: tuple[list[bool], list[Any]]) -> float:
    return sum(judged[0]) / len(judged[0])


def method_notes(report: Report) -> tuple[str, ...]:
    """How the numbers were made, in sentences."""
    part, cells = report.headline, report.frame
    n, cases = int(cells["n"].sum()), part.loc[part["score_success"].notna(), "case_id"].nunique()
    level = f"{report.level:.0%}".replace("%", " %")
    notes = [
        f"n = {n} trials judged, of {cases} cases. Success is counted under the {report.policy_said}: "
        "readable calls equal to the target, in any order, numbers compared as decimals, or no call where none was "
        "wanted.",
        f"Intervals are {level} Wilson intervals at the effective sample size that remains when the trials of one "
        "case are not independent, wider where cases are few.",
    ]
    if ungraded := int(cells["ungraded"].sum()):
        notes.append(f"{ungraded} trials belong to cases without a target and are in no rate of success.")
    notes.append(
        "strict: as written, without any edit, reading step or coercion (formats that carry every value as text "
        "cannot reach it for typed arguments). repaired: edits allowed, no coercion. safe: with lossless coercion. "
        + (
            f"coerced: under the policy {report.coerced_policy}. "
            if report.coerced_policy != report.policy
            else f"coerced: no looser policy was recorded, so it is the same as {report.policy}. "
        )
        + "naive: a regex for a JSON object and json.loads; it counts what it cannot read as an abstention."
    )
    if report.baseline is not None:
        notes.append(
            f"Differences from {report.baseline} are paired on cases. Their intervals resample cases with all their "
            "trials; p is the exact McNemar test on the majority of each case's trials, by Holm over the cells, and "
            "sees only cases that flip as a whole."
        )
    if (cells["noise"].dropna() > 0).any():
        notes.append(
            "noise: how often two trials of the same case by the same arm disagree. Differences between arms below it "
            "mean little."
        )
    if (cells["distinct"].dropna() <= 0.34).any():
        notes.append("In some cells the trials of a case are mostly copies of one answer: more trials add little.")
    return tuple(notes)


def _pools(report: Report, column: str) -> bool:
    keys = report.headline[[*report.by, column]].astype("string").fillna("").drop_duplicates()
    return bool(keys.duplicated(list(report.by)).any())


def _uses_embedded_model(report: Report) -> bool:
    names = set(report.headline["model"].dropna().astype(str))
    names |= {str(report.models[n]) for n in names if n in report.models}
    if "model_name" in report.headline:
        names |= set(report.headline["model_name"].dropna().astype(str))
    return EMBEDDED_MODEL in names
