"""The ladder of help: how much each layer gains, from the prompt to the coercion of arguments.

How it works. One table has two kinds of steps. A step of *reading* looks at the same answers
twice: as written, with edits, with lossless and with looser coercion. A step of *asking* compares
two arms that differ in one factor alone, so that the difference is that factor's. Both are paired
on cases, with the interval and the exact sign-flip test of every other comparison. p values are
Holm's over the steps of one model and kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations, pairwise
from typing import Any, TypeAlias

import pandas as pd

from ....core.values.printable import counted
from ....core.values.wording import level_words, p_words, points, points_span, share
from . import stats
from .cells import (
    check_trials,
    clusters_of,
    coerced_policy,
    groups,
    judged_of,
    read_under,
    same_question_note,
    same_questions,
)
from .differences import decides, paired_difference

Levels: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Name of an arm -> its factors, `prompt_protocol` among them."""

STEP_COLUMNS = ("gain", "gain_low", "gain_high", "p", "p_holm")
"""A step's gain in success, its interval, the sign-flip test, and that by Holm over the steps."""
LAYERS: Mapping[str, str] = {
    "prompt_protocol": "prompt",
    "few_shot": "prompt",
    "placement": "prompt",
    "type_rules": "prompt",
    "wording": "prompt",
    "result_format": "feedback",
    "corrections": "feedback",
    "max_turns": "feedback",
    "decoding": "decoding",
    "temperature": "decoding",
    "tool_choice": "decoding",
    "tool_choice_by": "decoding",
}
"""Factor of an arm -> the layer it belongs to."""
_READING = {"repaired": "repair", "safe": "lossless coercion", "coerced": "looser coercion"}
_SCORES = {"strict": "score_strict", "repaired": "score_repaired", "safe": "score_safe"}
_COLUMNS = (
    "model",
    "arm",
    "layer",
    "lower",
    "higher",
    "n_cases",
    "changed",
    "before",
    "after",
    *STEP_COLUMNS,
)
LADDER_COLUMNS = ("layer", "level", "success", "n_cases", "changed", *STEP_COLUMNS)
_LAYER_OF = {"strict": "prompt", "corrected": "feedback"}
_LEFT_OUT = {
    "prompt": "No two arms differ in type_rules alone, so the layer of the prompt is left out.",
    "feedback": "No arm has corrections, so the layer of feedback is left out.",
}
_Flags: TypeAlias = tuple[list[bool], list[Any]]
_Clusters: TypeAlias = Mapping[Any, Any] | None


@dataclass(frozen=True)
class Ladder:
    """The gain of each layer.

    `frame` has one row per step: model, arm (of a step of reading), layer, lower and higher (the
    text before and after the step), n_cases (judged in both), changed (those that differ), before
    and after (rates over them), gain with gain_low and gain_high, p and p_holm. `note` says which
    cases intervals and p take as one, '' for none.
    """

    frame: pd.DataFrame
    level: float = 0.95
    note: str = ""

    def _lines(self) -> list[str]:
        lines = []
        for row in self.frame.to_dict("records"):
            where = " · ".join(text for text in (row["model"], row["arm"]) if text)
            line = f"{where}: {row['layer']}, {row['lower']} → {row['higher']}: "
            if row["n_cases"]:
                n, level = row["n_cases"], level_words(self.level)
                cases, before = counted(n, "case"), share(row["before"], n)
                if row["changed"]:
                    line += (
                        f"{before} → {share(row['after'], n)}, {points(row['gain'], n)} points "
                        f"({level} interval {points_span(row['gain_low'], row['gain_high'], n)}; "
                        f"{p_words(row['p_holm'])} by Holm; {cases})"
                    )
                else:
                    line += (
                        f"{before}, {unchanged_words(n, row['gain_high'])} (upper end of the "
                        f"{level} interval)"
                    )
            else:
                line += "no case was judged in both"
            lines.append(line)
        steps = self.frame[self.frame["n_cases"] > 0]
        notes = (self.note, decides(steps["gain_low"], steps["gain_high"], steps["p_holm"]))
        return [*lines, *filter(None, notes)] if lines else lines

    def markdown(self) -> str:
        """Return the steps as a list of GitHub-flavoured Markdown."""
        return "\n".join(f"- {line}" for line in self._lines())

    def __str__(self) -> str:
        return "\n".join(self._lines()) or "no step: no answer could be judged"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self._lines())
        return {
            "text/plain": str(self),
            "text/html": f"<ul>{lines}</ul>",
            "text/markdown": self.markdown(),
        }


def unchanged_words(n: int, high: float) -> str:
    """Return what is known of a layer that changed none of n cases. high: the most that it gains.

    >>> unchanged_words(25, 0.133)
    'made no difference in any of 25 cases, at most 13 %'
    """
    return f"made no difference in any of {counted(n, 'case')}, at most {share(high, n)}"


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


def ladder_table(
    trials: pd.DataFrame, arms: Levels | None = None, *, policy: str = "safe", level: float = 0.95
) -> Ladder:
    """Return the ladder of a trials frame.

    arms: the factors of each arm, for the steps of asking. Without them the ladder has the steps of
    reading alone. Cases that ask the same question are one cluster, as in every comparison. Raises
    BadOptions for a frame that is not a trials frame.
    """
    check_trials(trials)
    clusters = clusters_of(trials, None)
    part = read_under(trials, (), policy)
    wide = coerced_policy(trials, policy)
    looser = None if wide == policy else trials[trials["policy"] == wide]
    rows: list[dict[str, Any]] = []
    for (model,), answers in groups(part, ["model"]):
        other = None if looser is None else looser[looser["model"].astype(str) == model]
        reading: list[dict[str, Any]] = []
        for (arm,), of_arm in groups(answers, ["arm"]):
            more = None if other is None else other[other["arm"].astype(str) == arm]
            reading += (
                {"arm": arm, "layer": _READING[row["higher"]], **row}
                for row in _reading(of_arm, more, level, clusters)
            )
        asking = list(_asking(answers, arms or {}, level, clusters))
        rows += ({"model": model, **row} for row in (*_by_holm(reading), *_by_holm(asking)))
    note = same_question_note(same_questions(trials))
    return Ladder(pd.DataFrame(rows, columns=list(_COLUMNS)), level, note)


def _asking(
    answers: pd.DataFrame, arms: Levels, level: float, clusters: _Clusters
) -> Iterator[dict[str, Any]]:
    # A step for each two arms of one model that differ in one factor alone.
    parts = {arm: part for (arm,), part in groups(answers, ["arm"])}
    for lower, higher in combinations([name for name in arms if name in parts], 2):
        factor = only_difference(arms[lower], arms[higher])
        if factor is None:
            continue
        layer = LAYERS.get(factor, "other")
        # Later questions change nothing about the first answer, so arms are judged by how they end.
        a, b = (judged_of(parts[name], _end_of(factor, arms[name])) for name in (lower, higher))
        names = {"arm": "", "layer": f"{layer} ({factor})", "lower": lower, "higher": higher}
        yield {**names, **_step(a, b, level, clusters)}


def _end_of(factor: str, levels: Mapping[str, Any]) -> str:
    if factor == "max_turns":
        return "score_answer"
    return "score_corrected" if factor == "corrections" and levels[factor] else "score_success"


def only_difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
    """Return the one factor in which two arms differ, None if there is none or several.

    >>> only_difference({"few_shot": 0, "decoding": "free"}, {"few_shot": 2, "decoding": "free"})
    'few_shot'
    """
    different = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    return different[0] if len(different) == 1 else None


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
