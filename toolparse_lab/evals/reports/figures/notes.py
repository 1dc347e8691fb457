"""The notes of a report: the facts that a reader has to know first, the quantity counted, how, and
its limits.

A new warning is a step of `warning_notes`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

import pandas as pd

from ....core.values.printable import counted
from . import stats
from .breakdowns import sampling_differences
from .cells import (
    UNRECORDED,
    codes_of,
    groups,
    judged_of,
    same_question_note,
    same_questions,
)
from .differences import paired_difference

EMBEDDED_MODEL = "toolparse-local/smollm2-135m"
MANY = 3  # cells from which on the best one is a pick of many, and the most that are named
FEW_CASES = 30
UNEVEN = 0.05  # difference of the shares of missing trials in two cells
MOSTLY_COPIES = 0.34  # share of different answers among the trials of a case


class Summed(Protocol):
    """A `Report`, as far as notes speak of it: reports have notes, which know no reports."""

    trials: pd.DataFrame
    headline: pd.DataFrame
    by: tuple[str, ...]
    policy: str
    policy_said: str
    coerced_policy: str
    left_out_policies: list[str]
    level: float
    cluster: str | None
    clusters: Mapping[Any, Any] | None
    baseline: str | None
    stops: tuple[str, ...]
    models: dict[str, str]

    @property
    def frame(self) -> pd.DataFrame: ...
    def name_of(self, values: Iterable[Any]) -> str: ...


def warning_notes(report: Summed) -> tuple[str, ...]:
    """Return the sentences that a reader has to know before any number."""
    return tuple(_warnings(report))


def _warnings(report: Summed) -> Iterator[str]:
    part, cells = report.headline, report.frame
    for reason in report.stops:
        yield f"Stopped early: {reason}"

    if policies := report.left_out_policies:
        yield (
            f"Readings under {', '.join(policies)} are in the frame too, and in no figure here: "
            f'policy={policies[0]!r} shows them instead, and "policy" among the columns of by= '
            "shows each policy."
        )
    if "override" in part and (n := int(part["override"].notna().sum())):
        yield (
            f"{n} {'outcome' if n == 1 else 'outcomes'} overridden by hand: the column override of "
            "the frame has them, and every rate here is that of the recorded scores."
        )

    models = set(part["model"].dropna().astype(str))
    models |= {str(report.models[name]) for name in models if name in report.models}
    if "model_name" in part:
        models |= set(part["model_name"].dropna().astype(str))
    if EMBEDDED_MODEL in models:
        yield (
            f"The embedded model ({EMBEDDED_MODEL}, 135 million parameters) shows how damaged "
            "text is read, repaired and scored. It cannot rank protocols: it is far too small to "
            "follow any of them reliably, and an order found with it does not carry over to larger "
            "models."
        )

    if missing := int(cells["missing"].sum()):
        is_missing = part["score_success"].isna() & part["target"].notna()
        reasons = part.loc[is_missing, "missing_reason"].fillna(UNRECORDED).astype(str)
        counts = ", ".join(f"{reason} {n}" for n, reason in reasons.value_counts().items())
        yield (
            f"{counted(missing, 'trial')} {'is' if missing == 1 else 'are'} missing ({counts}). "
            "They are no failures: worst and best say where "
            "the rate would lie if all of them had failed or succeeded."
        )
        shares = cells["missing"] / (cells["missing"] + cells["n"]).clip(lower=1)
        if len(cells) > 1 and shares.max() - shares.min() > UNEVEN:
            yield (
                "Missing trials are spread unevenly over the cells, so compare them by worst and "
                "best."
            )

    def is_pooled(column: str) -> bool:
        codes = {name: codes_of(part[name])[0] for name in (*report.by, column)}
        return bool(pd.DataFrame(codes).drop_duplicates().duplicated(list(report.by)).any())

    names = ("model", "prompt_protocol", "parse_protocol", "arm", "run_id")
    if pooled := [c for c in names if c in part and c not in report.by and is_pooled(c)]:
        yield (
            f"Cells pool several values of {', '.join(pooled)}: the same answer may be counted "
            "more than once."
        )
    sampled = part[[c for c in dict.fromkeys((*report.by, "sampling_json", "trial")) if c in part]]
    trials = {report.name_of(values): rows for values, rows in groups(sampled, report.by)}
    if differences := sampling_differences(trials, within=True):
        yield f"Not all of these trials were sampled alike: {differences}."
    if note := best_of_many(report):
        yield note
    # Without a column to go by, these are the report's clusters.
    alike = same_questions(part) if report.cluster is not None else report.clusters or {}
    if note := same_question_note(alike, report.cluster):
        yield note

    if 0 < (cases := _judged_cases(report)) < FEW_CASES:
        verb = "is" if cases == 1 else "are"
        yield (
            f"{counted(cases, 'case')} {verb} few: the intervals are wide, and they are what the "
            "data can say."
        )


def _judged_cases(report: Summed) -> int:
    part = report.headline
    return int(part.loc[part["score_success"].notna(), "case_id"].nunique())


def best_of_many(report: Summed, alpha: float = 0.05) -> str:
    """Return the names of the cells that cannot be told from the best one on the cases they share,
    in a sentence. '' for fewer than three cells.

    Each other cell is held against the one with the highest rate by the sign-flip test, by Holm
    over them.
    """
    part = report.headline[list(dict.fromkeys((*report.by, "score_success", "case_id")))]
    cells = {values: judged_of(rows) for values, rows in groups(part, report.by)}
    judged = {values: trials for values, trials in cells.items() if trials[0]}
    if len(judged) < MANY:
        return ""
    rates = {values: stats.case_rate(*trials) for values, trials in judged.items()}
    best = max(rates, key=lambda values: rates[values])
    others = [values for values in judged if values != best]
    adjusted = stats.holm(
        [paired_difference(*judged[k], *judged[best], clusters=report.clusters).p for k in others]
    )
    # Not `p > alpha`: a p that is not known tells two cells no more apart than a high one.
    alike = [report.name_of(k) for k, p in zip(others, adjusted, strict=True) if not p <= alpha]
    n_equal = sum(rates[k] == rates[best] for k in others)
    ties = {0: "", 1: ", as has one other"}.get(n_equal, f", as have {n_equal} others")
    told = "All others differ from it by more than chance explains."
    if alike:
        count = "All" if len(alike) == len(others) else str(len(alike))
        more = f" and {len(alike) - MANY} more" if len(alike) > MANY else ""
        told = (
            f"{count} of the {len(others)} others cannot be told from it on these cases: "
            f"{', '.join(alike[:MANY])}{more}."
        )
    return (
        f"{report.name_of(best)} has the highest rate of {len(judged)} cells{ties}. "
        f"{told} The best of many, picked on the cases it is "
        "measured on, looks better than it is: confirm it on other cases."
    )


def method_notes(report: Summed) -> tuple[str, ...]:
    """Return the sentences on how the numbers were made."""
    cells = report.frame
    level = f"{report.level:.0%}".replace("%", " %")
    notes = [
        f"n = {counted(int(cells['n'].sum()), 'trial')} judged, of "
        f"{counted(_judged_cases(report), 'case')}. Success is counted under the "
        f"{report.policy_said}: readable calls equal to the target, in any "
        "order, numbers compared as decimals, or no call where none was wanted.",
        f"Intervals are {level} intervals over {report.cluster or 'case'}s, each "
        f"{'case' if report.cluster is None else 'of their cases'} counted once: Agresti and "
        "Coull's for clusters, with a t quantile where there are few.",
    ]
    if ungraded := int(cells["ungraded"].sum()):
        notes.append(
            f"{counted(ungraded, 'trial')} of cases without a target: in no rate of success."
        )
    notes.append(levels_legend(report))
    if report.baseline is not None:
        notes.append(
            f"Differences from {report.baseline} are means of the cases' differences, so that each "
            "case counts once; p is the sign-flip test on them (McNemar's exact test where each "
            "case has one trial), by Holm over the cells."
        )
    if (cells["noise"].dropna() > 0).any():
        notes.append(
            "noise: how often two trials of the same case by the same arm disagree. It is about "
            "single answers, and no measure for differences of rates; run.noise() says how far two "
            "runs of the same arm lie apart by chance."
        )
    if (cells["distinct"].dropna() <= MOSTLY_COPIES).any():
        notes.append(
            "In some cells the trials of a case are mostly copies of one answer: more trials add "
            "little."
        )
    return tuple(notes)


def levels_legend(report: Summed, levels: Collection[str] | None = None) -> str:
    """Return the sentences that say the meaning of each level of success, for wherever levels are
    printed. levels: the levels that are, None for all.
    """
    coerced = f"coerced: under the policy {report.coerced_policy}."
    if report.coerced_policy == report.policy:
        coerced = f"coerced: no looser policy was recorded, so it is the same as {report.policy}."
    sentences = {
        "strict": "strict: as written, its closer included, without any edit, reading step or "
        "coercion (formats that carry every value as text cannot reach it for typed arguments).",
        "repaired": "repaired: edits allowed, no coercion.",
        "safe": "safe: with lossless coercion.",
        "coerced": coerced,
        "naive": "naive: a regex for a JSON object and json.loads; it counts what it cannot read "
        "as an abstention.",
    }
    return " ".join(
        sentence
        for level, sentence in sentences.items()
        if levels is None or level in levels or level == "safe"
    )
