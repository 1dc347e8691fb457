"""Arguments one by one: whether each is the wanted one, and the tokens it was drawn as."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.types import ParseResult, ToolCall
from ...core.types.tokens import Token, leaves_of, total_logprob
from ...core.values import pointer_get, read_strict, write_canonical
from ...evals.cases.case import Case
from ...evals.cases.matchers import DEFAULT_MATCHERS, Matchers
from ...evals.cases.target import wanted_calls
from ...evals.frames.dtypes import build_frame
from ...evals.frames.recorded import Frame
from ...evals.frames.rows import KEYS, call_id, keys_of
from ...evals.scoring.match import match_calls
from ...evals.scoring.rescues import changes_in, from_nearest, is_right
from ...evals.scoring.trial import Trial, judged_case

_CATEGORIES = ("run_id", "model", "arm", "prompt_protocol", "parse_protocol", "policy")
_DTYPES: Mapping[str, str] = {
    **{name: "category" if name in _CATEGORIES else "string" for name in KEYS},
    "trial": "Int64",
    "call_id": "string",
    "index": "Int64",
    **dict.fromkeys(("name", "path", "value_json"), "string"),
    **dict.fromkeys(("start", "end"), "Int64"),
    **dict.fromkeys(("exact", "changed", "right"), "boolean"),
    "n_tokens": "Int64",
    **dict.fromkeys(("logprob", "min_logprob", "entropy"), "Float64"),
}


def arguments(source: Iterable[Trial] | Trial | ParseResult) -> Frame:
    """Return one row per argument that contains no other, with its place in the text, whether the
    target wants its value, and how likely the tokens were that it was drawn as, where they were
    recorded.

    source: the trials of a run, one of them, or a result.
    """
    rows: list[dict[str, Any]] = []
    if isinstance(source, ParseResult):
        keys = {"parse_protocol": source.protocol, "policy": source.options.coerce}
        rows += _rows(keys, source, {})
    else:
        for trial in [source] if isinstance(source, Trial) else source:
            if trial.result is not None:
                case = judged_case(trial.case, trial.levels.get("tool_choice"))
                judged = judge_arguments(trial.result.calls, case, DEFAULT_MATCHERS)
                rows += _rows(keys_of(trial), trial.result, judged)
    columns = {name: [row.get(name) for row in rows] for name in _DTYPES}
    return build_frame("", columns, len(rows), _DTYPES)


def _rows(
    keys: Mapping[str, Any], result: ParseResult, judged: Mapping[tuple[int, str], bool]
) -> Iterable[dict[str, Any]]:
    # judged: those that are right or not, by the index of their call and their path.
    for call in result.calls:
        if not call.readable:
            continue
        origins = call.origins.get()
        value = read_strict(call.arguments_json)
        changed = {path for _, path in changes_in(call, result.raw)}
        for path, span in leaves_of(origins):
            yield {
                **keys,
                "call_id": call_id(keys, call),
                "index": call.index,
                "name": call.name,
                "path": path,
                "value_json": write_canonical(pointer_get(value, path)),
                "start": span.start,
                "end": span.end,
                "exact": origins[path].exact,
                "changed": path in changed,
                "right": judged.get((call.index, path)),
                **_of_tokens(call.tokens(path) if result.tokens is not None else ()),
            }


def _of_tokens(tokens: Sequence[Token]) -> dict[str, Any]:
    # logprob: of all of them. min_logprob: of the least likely one. entropy: the highest, in nats.
    if not tokens:
        return {}
    logprobs = [token.logprob for token in tokens if token.logprob is not None]
    entropies = [token.entropy for token in tokens if token.entropy is not None]
    total = total_logprob(tokens)
    return {
        "n_tokens": len(tokens),
        "logprob": total,
        "min_logprob": None if total is None else min(logprobs),
        "entropy": max(entropies, default=None),
    }


def judge_arguments(
    calls: Sequence[ToolCall], case: Case, matchers: Matchers
) -> dict[tuple[int, str], bool]:
    """Return for each argument, by the index of its call and its JSON Pointer, whether it is right.

    An argument of a call that has no counterpart in the case's target is not judged, nor is one of
    a case without a target. calls: any, of which only those that are ok are held to the target.
    """
    if case.target is None:
        return {}
    ok = [call for call in calls if call.ok]
    pairs = [(call.name, read_strict(call.arguments_json or "{}")) for call in ok]
    matched = dict(match_calls(pairs, case.target, case.tools, matchers).pairs)
    wanted = wanted_calls(case.target)
    judged: dict[tuple[int, str], bool] = {}
    for i, (call, pair) in enumerate(zip(ok, pairs, strict=True)):
        wants = [wanted[matched[i]]] if i in matched else wanted
        differences = from_nearest(pair, wants, case.tools, matchers)
        if differences is not None:
            for path, _ in leaves_of(call.origins.get()):
                judged[call.index, path] = is_right(path, differences, matchers)
    return judged
