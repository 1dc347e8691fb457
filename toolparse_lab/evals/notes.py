"""The method notes of a report: what was counted, how, and what it cannot show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cells import UNRECORDED

if TYPE_CHECKING:
    from .report import Report

EMBEDDED_MODEL = "toolparse-local/smollm2-135m"
_MANY = 3


def method_notes(report: Report) -> tuple[str, ...]:
    """Sentences, the most important first."""
    part = report.headline
    cells = report.frame
    n, cases = int(cells["n"].sum()), part.loc[part["score_success"].notna(), "case_id"].nunique()
    level = f"{report.level:.0%}".replace("%", " %")
    notes = [f"Stopped early: {s}" for s in report.stops]
    if _uses_embedded_model(report):
        notes.append(
            f"The embedded model ({EMBEDDED_MODEL}, 135 million parameters) shows how damaged text is read, repaired "
            "and scored. It cannot rank protocols: it is far too small to follow any of them reliably, and an order "
            "found with it does not carry over to larger models."
        )
    notes.append(
        f"n = {n} trials judged, of {cases} cases. Success is counted under the policy {report.policy}: "
        "readable calls equal to the target, in any order, numbers compared as decimals, or no call where none was "
        "wanted."
    )
    notes.append(
        f"Intervals are {level} Wilson intervals at the effective sample size that remains when the trials of one "
        "case are not independent."
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
    if ungraded := int(cells["ungraded"].sum()):
        notes.append(f"{ungraded} trials belong to cases without a target and are in no rate of success.")
    notes.append(
        "strict: as written, without any edit, reading step or coercion (formats that carry every value as text "
        "cannot reach it for typed arguments). repaired: edits allowed, no coercion. "
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
    if len(cells) >= _MANY:
        notes.append(
            f"The best of {len(cells)} cells, picked on the cases it is measured on, looks better than it is. Confirm "
            "it on other cases."
        )
    pooled = [
        c
        for c in ("model", "prompt_protocol", "parse_protocol", "arm", "run_id")
        if c in part and c not in report.by and _pools(report, c)
    ]
    if pooled:
        notes.append(
            f"Cells pool several values of {', '.join(pooled)}: the same answer may be counted more than once."
        )
    if 0 < cases < 30:
        notes.append(f"{cases} cases are few: the intervals are wide, and they are what the data can say.")
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
