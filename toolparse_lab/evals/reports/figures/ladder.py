"""The ladder of help: how much each layer gains, from the prompt to the coercion of arguments.

How it works. A step of *reading* looks at the same answers twice: as written, with edits, with
lossless and with looser coercion. The steps of the prompt and of feedback compare with the arm that
has no type rules, and with the calls as they were corrected. All are paired on cases, with the
interval and the exact sign-flip test of every other comparison. p values are Holm's over the steps
of one cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import pandas as pd

from . import stats
from .cells import coerced_policy, groups, judged_of, read_under
from .differences import paired_difference

Levels: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Name of an arm -> its factors, `prompt_protocol` among them."""

STEP_COLUMNS = ("gain", "gain_low", "gain_high", "p", "p_holm")
"""A step's gain in success, its interval, the sign-flip test, and that by Holm over the steps."""
_SCORES = {"strict": "score_strict", "repaired": "score_repaired", "safe": "score_safe"}
LADDER_COLUMNS = ("layer", "level", "success", "n_cases", "changed", *STEP_COLUMNS)
_LAYER_OF = {"strict": "prompt", "corrected": "feedback"}
_LEFT_OUT = {
    "prompt": "No two arms differ in type_rules alone, so the layer of the prompt is left out.",
    "feedback": "No arm has corrections, so the layer of feedback is left out.",
}
_Flags: TypeAlias = tuple[list[bool], list[Any]]
_Clusters: TypeAlias = Mapping[Any, Any] | None


def _step(lower: _Flags, higher: _Flags, level: float, clusters: _Clusters) -> dict[str, Any]:
    # The figures of one step, all but p_holm, over the cases that both sides have.
    gap = paired_difference(*lower, *higher, level, clusters)
    return {
        "n_cases": gap.n_cases,
        "changed": gap.changed,
        "before": gap.rate_a,
        "after": gap.rate_b,
        "gain": gap.rate,
        "gain_low": gap.low,
        "gain_high": gap.high,
        "p": gap.p,
    }


def _by_holm(steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    adjusted = stats.holm([row["p"] for row in steps])
    return [{**row, "p_holm": p} for row, p in zip(steps, adjusted, strict=True)]


def _reading(
    part: pd.DataFrame, looser: pd.DataFrame | None, level: float, clusters: _Clusters
) -> list[dict[str, Any]]:
    # The steps of reading the judged answers of one cell, `lower` and `higher` by name. looser: the
    # same answers under the policy of coerced success, None if there is none.
    part = part[part["score_success"].notna()]
    levels = {name: judged_of(part, column) for name, column in _SCORES.items()}
    if looser is not None:
        levels["coerced"] = judged_of(looser)
    return [
        {"lower": a, "higher": b, **_step(levels[a], levels[b], level, clusters)}
        for a, b in pairwise(levels)
    ]


def ladder_frame(
    cells: pd.DataFrame,
    trials: pd.DataFrame,
    by: Sequence[str],
    policy: str,
    level: float,
    clusters: _Clusters = None,
    arms: Levels | None = None,
) -> pd.DataFrame:
    """Return one row per cell of a report and rung of help, from no help to all three layers.

    The rungs are naive, plain (as written, by the arm that differs from this one in having no type
    rules), strict, repaired, safe, the policy of coerced success, and corrected. `layer` says which
    layer a rung adds: prompt, reading or feedback. Rungs of a layer that the cell does not have
    are left out. `gain` is success less that of the rung before, negative where help did harm, with
    its interval and test over the `n_cases` that both have. Each rung includes the help of those
    before it, so that gains add up. The naive parser is no help and has none; the first rung has no
    interval. arms: the factors of each arm, for the layer of the prompt. clusters: see
    `cells.clusters_of`.
    """
    wide = coerced_policy(trials, policy)
    needed = (*by, "arm", "case_id", "score_success", "score_corrected", *_SCORES.values())
    answers = read_under(trials, by, policy, needed)
    looser: dict[tuple[str, ...], pd.DataFrame] = {}
    if wide != policy and "policy" not in by:
        looser = dict(groups(read_under(trials, by, wide, needed), by))
    parts = dict(groups(answers, by))
    plain_arms = _plain_arms(arms or {})
    others = [name for name in by if name != "arm"]
    by_arm = dict(groups(answers, [*others, "arm"])) if plain_arms else {}
    columns = {**{name: name for name in _SCORES}, wide: "coerced"}

    rows: list[dict[str, Any]] = []
    for cell in cells.to_dict("records"):
        keys = {c: cell[c] for c in by}
        values = tuple(str(cell[c]) for c in by)
        rungs = {"naive": cell["naive"]}
        rungs |= {name: cell[column] for name, column in columns.items()}
        steps: dict[str, dict[str, Any]] = {}
        part = parts.get(values)
        if part is not None:
            more = looser.get(values)
            for step in _reading(part, more, level, clusters):
                steps[wide if step["higher"] == "coerced" else step["higher"]] = step
            last = part if more is None else more
            # The same answers, with their refused calls as corrected.
            after = judged_of(last, "score_corrected")
            if after[0]:
                steps["corrected"] = _step(judged_of(last), after, level, clusters)
                rungs["corrected"] = steps["corrected"]["after"]
            names = list(part["arm"].astype(str).unique()) if plain_arms else []
            plain = plain_arms.get(names[0]) if len(names) == 1 else None
            key = (*(str(cell[c]) for c in others), str(plain))
            if key in by_arm:
                lower, higher = (judged_of(x, "score_strict") for x in (by_arm[key], part))
                steps["strict"] = _step(lower, higher, level, clusters)
                rungs = {"naive": cell["naive"], "plain": steps["strict"]["before"], **rungs}
        tested = dict(zip(steps, _by_holm(list(steps.values())), strict=True))
        before = 0.0
        for name, success in rungs.items():
            done = tested.get(name)
            row: dict[str, Any] = {**keys, "layer": "", "level": name, "success": success}
            if name != "naive":
                row["gain"], before = success - before, success
            if done is not None:
                row |= {c: done[c] for c in ("n_cases", "changed", *STEP_COLUMNS) if c != "gain"}
                row["layer"] = _LAYER_OF.get(name, "reading")
                # Against other answers: over the cases that both have.
                row["gain"] = done["gain"] if name in _LAYER_OF else row["gain"]
            rows.append(row)
    frame = pd.DataFrame(rows, columns=[*by, *LADDER_COLUMNS])
    counts = dict.fromkeys(("n_cases", "changed"), "Int64")
    return frame.astype({**dict.fromkeys(STEP_COLUMNS[1:], float), **counts})


def _but_layers(levels: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in levels.items() if k not in ("type_rules", "corrections")}


def _plain_arms(arms: Levels) -> dict[str, str]:
    # Arm with type rules -> the arm that has none and is alike in all else that comes before the
    # first answer.
    plain = {a: _but_layers(x) for a, x in arms.items() if x.get("type_rules") is False}
    found = {
        arm: next((name for name, others in plain.items() if others == _but_layers(levels)), None)
        for arm, levels in arms.items()
        if levels.get("type_rules")
    }
    return {arm: name for arm, name in found.items() if name is not None}


def whole_ladders(ladder: pd.DataFrame, by: Sequence[str], arms: Levels) -> pd.DataFrame:
    """Return a ladder's frame without the cells that are part of another cell's ladder: those of
    arms that differ from another only in having fewer layers.
    """
    if "arm" not in by or ladder.empty:
        return ladder
    alike = [str(_but_layers(arms.get(str(arm), {"arm": arm}))) for arm in ladder["arm"]]
    keys = [ladder[name].astype(str) for name in by]
    layers = ladder["layer"].groupby(keys).transform("nunique")
    others = [key for name, key in zip(by, keys, strict=True) if name != "arm"]
    most = layers.groupby([*others, pd.Series(alike, ladder.index)]).transform("max")
    return ladder[layers == most]


def left_out_layers(ladder: pd.DataFrame) -> list[str]:
    """Return a sentence for each layer that no rung of a ladder's frame belongs to.

    >>> left_out_layers(pd.DataFrame({"layer": ["", "reading", "feedback"]}))
    ['No two arms differ in type_rules alone, so the layer of the prompt is left out.']
    """
    return [sentence for layer, sentence in _LEFT_OUT.items() if layer not in set(ladder["layer"])]
