"""The notes of a report: the facts that a reader has to know first, the quantity counted, how, and
its limits.

A new warning is a function of the report in `_WARNINGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ....core.values.printable import counted
from . import stats
from .cells import UNRECORDED, clusters_of, groups, judged_of, same_question_note, same_questions
from .differences import paired_difference
from .sampling import sampling_differences

if TYPE_CHECKING:
    from .report import Report

EMBEDDED_MODEL = "toolparse-local/smollm2-135m"
MANY = 3  # cells from which on the best one is a pick of many, and the most that are named
FEW_CASES = 30
UNEVEN = 0.05  # difference of the shares of missing trials in two cells
MOSTLY_COPIES = 0.34  # share of different answers among the trials of a case


def warning_notes(report: Report) -> tuple[str, ...]:
    """Return the sentences that a reader has to know before any number."""
    notes = [f"Stopped early: {reason}" for reason in report.stops]
    for note in _WARNINGS:
        notes += note(report)
    return tuple(notes)


def _left_out_policies(report: Report) -> Iterator[str]:
    if policies := report.left_out_policies:
        yield (
            f"Readings under {', '.join(policies)} are in the frame too, and in no figure here: "
            f'policy={policies[0]!r} shows them instead, and "policy" among the columns of by= '
            "shows each policy."
        )


def _overrides(report: Report) -> Iterator[str]:
    if "override" not in report.headline:
        return
    if n := int(report.headline["override"].notna().sum()):
        yield (
            f"{n} {'outcome' if n == 1 else 'outcomes'} overridden by hand: the column override of "
            "the frame has them, and every rate here is that of the recorded scores."
        )


def _embedded_model(report: Report) -> Iterator[str]:
    if _uses_embedded_model(report):
        yield (
            f"The embedded model ({EMBEDDED_MODEL}, 135 million parameters) shows how damaged "
            "text is read, repaired and scored. It cannot rank protocols: it is far too small to "
            "follow any of them reliably, and an order found with it does not carry over to larger "
            "models."
        )


def _missing_trials(report: Report) -> Iterator[str]:
    part, cells = report.headline, report.frame
    missing = int(cells["missing"].sum())
    if not missing:
        return
    is_missing = part["score_success"].isna() & part["target"].notna()
    reasons = part.loc[is_missing, "missing_reason"].fillna(UNRECORDED).astype(str)
    counts = ", ".join(f"{reason} {n}" for n, reason in reasons.value_counts().items())
    yield (
        f"{counted(missing, 'trial')} {'is' if missing == 1 else 'are'} missing ({counts}). They "
        "are no failures: worst and best say where "
        "the rate would lie if all of them had failed or succeeded."
    )
    shares = cells["missing"] / (cells["missing"] + cells["n"]).clip(lower=1)
    if len(cells) > 1 and shares.max() - shares.min() > UNEVEN:
        yield (
            "Missing trials are spread unevenly over the cells, so compare them by worst and best."
        )


def _pooled_columns(report: Report) -> Iterator[str]:
    pooled = [
        column
        for column in ("model", "prompt_protocol", "parse_protocol", "arm", "run_id")
        if column in report.headline and column not in report.by and _pools(report, column)
    ]
    if pooled:
        yield (
            f"Cells pool several values of {', '.join(pooled)}: the same answer may be counted "
            "more than once."
        )


def _sampling(report: Report) -> Iterator[str]:
    cells = {
        report.cell_name(dict(zip(report.by, values, strict=True))): rows
        for values, rows in groups(report.headline, report.by)
    }
    if differences := sampling_differences(cells, within=True):
        yield f"Not all of these trials were sampled alike: {differences}."


def _best_cell(report: Report) -> Iterator[str]:
    if note := best_of_many(report):
        yield note


def _same_questions(report: Report) -> Iterator[str]:
    if note := same_question_note(same_questions(report.headline), report.cluster):
        yield note


def _few_cases(report: Report) -> Iterator[str]:
    cases = _judged_cases(report)
    if 0 < cases < FEW_CASES:
        verb = "is" if cases == 1 else "are"
        yield (
            f"{counted(cases, 'case')} {verb} few: the intervals are wide, and they are what the "
            "data can say."
        )


_WARNINGS: tuple[Callable[[Report], Iterator[str]], ...] = (
    _left_out_policies,
    _overrides,
    _embedded_model,
    _missing_trials,
    _pooled_columns,
    _sampling,
    _best_cell,
    _same_questions,
    _few_cases,
)
"""What warns of something, in the order in which it is read."""


def _judged_cases(report: Report) -> int:
    part = report.headline
    return int(part.loc[part["score_success"].notna(), "case_id"].nunique())


def best_of_many(report: Report, alpha: float = 0.05) -> str:
    """Return name the cells that cannot be told from the best one on the cases they share, in a
    sentence. '' for fewer than three cells.

    Each other cell is held against the one with the highest rate by the sign-flip test, by Holm
    over them.
    """
    part = report.headline[list(dict.fromkeys((*report.by, "score_success", "case_id")))]
    cells = {values: judged_of(rows) for values, rows in groups(part, report.by)}
    judged = {values: trials for values, trials in cells.items() if trials[0]}
    if len(judged) < MANY:
        return ""
    best = max(judged, key=lambda values: _share(judged[values]))
    clusters = clusters_of(report.trials, report.cluster)
    others = [values for values in judged if values != best]
    adjusted = stats.holm(
        [paired_difference(*judged[k], *judged[best], clusters=clusters).p for k in others]
    )
    # Not `p > alpha`: a p that is not known tells two cells no more apart than a high one.
    alike = [k for k, p in zip(others, adjusted, strict=True) if not p <= alpha]
    equal = sum(_share(judged[k]) == _share(judged[best]) for k in others)
    name = _cell_name(report, best)
    names = [_cell_name(report, values) for values in alike]
    return (
        f"{name} has the highest rate of {len(judged)} cells{_ties(equal)}. "
        f"{_alike_sentence(names, len(others))} The best of many, picked on the cases it is "
        "measured on, looks better than it is: confirm it on other cases."
    )


def _cell_name(report: Report, values: Sequence[str]) -> str:
    return report.cell_name(dict(zip(report.by, values, strict=True)))


def _ties(n: int) -> str:
    if not n:
        return ""
    return ", as has one other" if n == 1 else f", as have {n} others"


def _alike_sentence(names: Sequence[str], others: int) -> str:
    if not names:
        return "All others differ from it by more than chance explains."
    count = "All" if len(names) == others else str(len(names))
    some = ", ".join(names[:MANY])
    if len(names) > MANY:
        some += f" and {len(names) - MANY} more"
    return f"{count} of the {others} others cannot be told from it on these cases: {some}."


def _share(judged: tuple[list[bool], list[Any]]) -> float:
    return stats.case_rate(*judged)


def method_notes(report: Report) -> tuple[str, ...]:
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


def levels_legend(report: Report, levels: Collection[str] | None = None) -> str:
    """Return the sentences that say the meaning of each level of success.

    They stand wherever levels are printed. levels: the levels beside success, None for all.
    """
    sentences = {
        "strict": "strict: as written, its closer included, without any edit, reading step or "
        "coercion (formats that carry every value as text cannot reach it for typed arguments).",
        "repaired": "repaired: edits allowed, no coercion.",
        "safe": "safe: with lossless coercion.",
        "coerced": _coerced_sentence(report),
        "naive": "naive: a regex for a JSON object and json.loads; it counts what it cannot read "
        "as an abstention.",
    }
    return " ".join(
        sentence
        for level, sentence in sentences.items()
        if levels is None or level in levels or level == "safe"
    )


def _coerced_sentence(report: Report) -> str:
    if report.coerced_policy != report.policy:
        return f"coerced: under the policy {report.coerced_policy}."
    return f"coerced: no looser policy was recorded, so it is the same as {report.policy}."


def _pools(report: Report, column: str) -> bool:
    keys = report.headline[[*report.by, column]].astype("string").fillna("").drop_duplicates()
    return bool(keys.duplicated(list(report.by)).any())


def _uses_embedded_model(report: Report) -> bool:
    names = set(report.headline["model"].dropna().astype(str))
    names |= {str(report.models[n]) for n in names if n in report.models}
    if "model_name" in report.headline:
        names |= set(report.headline["model_name"].dropna().astype(str))
    return EMBEDDED_MODEL in names
