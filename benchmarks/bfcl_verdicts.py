"""With how many verdicts of the Berkeley leaderboard's own checker ours agree, over the sample in
`tests/extensions/bench/bfcl_verdicts.jsonl`: python benchmarks/bfcl_verdicts.py

The functions, right answers and calls of the sample are made here, in the leaderboard's notation;
only the verdicts are the checker's. To write it anew, take the checker from an unpacked `bfcl-eval`
wheel, which is never installed:

    pip download --no-deps bfcl-eval && unzip bfcl_eval-*.whl -d unpacked
    python benchmarks/bfcl_verdicts.py unpacked > tests/extensions/bench/bfcl_verdicts.jsonl
"""

from __future__ import annotations

import copy
import json
import random
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.evals.reports.figures.stats import wilson
from toolparse_lab.evals.scoring.match import match_calls
from toolparse_lab.extensions.bench.bfcl import schema_of, wanted_call

SAMPLE = Path(__file__).parent.parent / "tests/extensions/bench/bfcl_verdicts.jsonl"
SEED = 11
PER_ENTRY = 75
_WORDS = ("Oslo", "oslo", "New York", "new-york", "a.b", "it's", "", "3", "straße", "x_y", "A, B")
_PROPERTIES: dict[str, dict[str, Any]] = {
    "city": {"type": "string"},
    "unit": {"type": "string", "enum": ["C", "F"]},
    "days": {"type": "integer"},
    "rate": {"type": "float"},
    "on": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "sizes": {"type": "array", "items": {"type": "integer"}},
    "spot": {"type": "tuple", "items": {"type": "float"}},
    "who": {"type": "dict", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}},
    "rows": {"type": "array", "items": {"type": "dict", "properties": {}}},
}
_GOLD: dict[str, list[list[Any]]] = {
    "city": [["Oslo"], ["New York", "NYC"], ["it's"], ["Oslo", ""]],
    "unit": [["C", ""], ["F"]],
    "days": [[3], [5, 6], [0, ""]],
    "rate": [[1.5], [2.0], [0.25, ""]],
    "on": [[True], [False, ""]],
    "tags": [[["a", "b"]], [["x"], ["X", "y"]], [["a.b"], ""]],
    "sizes": [[[1, 2]], [[], [1]], [[3], ""]],
    "spot": [[[1.5, 2.5]], [[0.0, 1.0]]],
    "who": [[{"name": ["Ida", "Ada"], "age": [30, ""]}], [{"name": ["Bo"]}]],
    "rows": [[[{"k": ["v"]}]], [[{"k": ["v", "w"]}, {"k": ["z"]}]]],
}


def checker_of(folder: Path) -> Callable[..., dict[str, Any]]:
    """Return the leaderboard's checker, from an unpacked wheel.

    Its list of models brings every provider's client along, and is only asked which models write
    underscores for dots; here none does.
    """
    models = types.ModuleType("bfcl_eval.constants.model_config")
    no_dots = types.SimpleNamespace(underscore_to_dot=False)
    models.__dict__["MODEL_CONFIG_MAPPING"] = {"m": no_dots}
    sys.modules[models.__name__] = models
    sys.path.insert(0, str(folder))
    from bfcl_eval.constants.enums import Language  # type: ignore[import-not-found]
    from bfcl_eval.eval_checker.ast_eval.ast_checker import (  # type: ignore[import-not-found]
        ast_checker,
    )

    def check(functions: Any, calls: Any, gold: Any, category: str) -> dict[str, Any]:
        verdict: dict[str, Any] = ast_checker(
            functions, calls, gold, Language.PYTHON, category, "m"
        )
        return verdict

    return check


def entries(dice: random.Random) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Yield (category, functions, right answer): one call, one of several tools, several calls."""
    for category in ("simple", "multiple", "parallel", "parallel_multiple"):
        for _ in range(5):
            names = ["port.find", "ship_count"] if "multiple" in category else ["port.find"]
            functions, answers = [], []
            for name in names:
                keys = dice.sample(list(_PROPERTIES), 4)
                gold = {key: dice.choice(_GOLD[key]) for key in keys}
                required = [key for key in keys if "" not in gold[key]]
                schema = {
                    "type": "dict",
                    "properties": {key: _PROPERTIES[key] for key in keys},
                    "required": required,
                }
                functions.append({"name": name, "description": "", "parameters": schema})
                answers.append({name: gold})
            if category == "multiple":
                answers = [dice.choice(answers)]
            elif category == "parallel":
                answers = [answers[0], _other(answers[0], dice)]
            yield category, functions, answers


def _other(answer: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Return a right answer for the same function with other values."""
    ((name, gold),) = answer.items()
    return {
        name: {
            key: dice.choice([one for one in _GOLD[key] if ("" in one) == ("" in gold[key])])
            for key in gold
        }
    }


def right_value(alternatives: list[Any], dice: random.Random) -> Any:
    """Return one of the right values, as a model writes it."""
    value = dice.choice([one for one in alternatives if one != ""] or [""])
    return _plain(value, dice)


def _plain(value: Any, dice: random.Random) -> Any:
    if isinstance(value, dict):
        return {key: right_value(inner, dice) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, dice) if isinstance(inner, dict) else inner for inner in value]
    return value


def changed(call: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Return a call with one thing changed, as models go wrong."""
    call = copy.deepcopy(call)
    ((name, arguments),) = call.items()
    key = dice.choice(list(arguments) or [""])
    way = dice.choice(["value", "value", "value", "drop", "extra", "name", "inner"])
    if way == "name":
        return {dice.choice(["port.find", "port_find", "ship_count"]): arguments}
    if way == "extra" or not key:
        arguments["more"] = 1
    elif way == "drop":
        del arguments[key]
    elif way == "inner" and isinstance(arguments[key], (list, dict)) and arguments[key]:
        arguments[key] = _inner(arguments[key], dice)
    else:
        arguments[key] = _another(arguments[key], dice)
    return {name: arguments}


def _inner(value: Any, dice: random.Random) -> Any:
    if isinstance(value, list):
        value = list(value)
        at = dice.randrange(len(value))
        if dice.random() < 0.3:
            return value[:at] + value[at + 1 :]
        value[at] = _another(value[at], dice)
        return value
    key = dice.choice(list(value))
    if dice.random() < 0.3:
        return {k: v for k, v in value.items() if k != key}
    return {**value, key: _another(value[key], dice)}


def _another(value: Any, dice: random.Random) -> Any:
    """Return another value: near in writing, of its own type, or of another one."""
    if isinstance(value, str):
        near = [value.upper(), value.replace(" ", "_"), value + ".", value[:-1]]
        return dice.choice([*near, *_WORDS, 3])
    if isinstance(value, bool):
        return dice.choice([not value, str(value), int(value)])
    if isinstance(value, (int, float)):
        # A number of the other kind is rare, as it is in models' answers.
        if dice.random() < 0.1:
            return float(value) if isinstance(value, int) else int(value)
        return dice.choice([value + 1, value + 2, 10 * value, str(value), -value - 1])
    return dice.choice([[], {}, [1], ["a"], "a", None])


def differences() -> tuple[int, list[tuple[dict[str, Any], str]]]:
    """Return (how many verdicts, each row that we judge otherwise with our reason)."""
    entries: dict[int, tuple[list[Any], Any]] = {}
    n, found = 0, []
    for line in SAMPLE.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["entry"] not in entries:  # the first row of an entry holds its functions and gold
            functions = [{**f, "parameters": schema_of(f["parameters"])} for f in row["functions"]]
            gold = [wanted_call(name, a, "bfcl") for g in row["gold"] for name, a in g.items()]
            entries[row["entry"]] = gold, tool_specs(functions)
        calls = [(name, arguments) for call in row["calls"] for name, arguments in call.items()]
        match = match_calls(calls, *entries[row["entry"]])
        n += 1
        if match.ok is not row["valid"]:
            found.append((row, match.detail))
    return n, found


def write(folder: str) -> None:
    """Print one row a set of calls."""
    check = checker_of(Path(folder))
    dice = random.Random(SEED)
    for number, (category, functions, gold) in enumerate(entries(dice)):
        for turn in range(PER_ENTRY):
            calls = [
                {name: {k: right_value(v, dice) for k, v in arguments.items()}}
                for answer in gold
                for name, arguments in answer.items()
            ]
            for _ in range(dice.choice([0, 1, 1, 1, 2])):
                at = dice.randrange(len(calls))
                calls[at] = changed(calls[at], dice)
            if dice.random() < 0.05:
                calls = calls[1:]
            dice.shuffle(calls)
            try:
                valid = bool(check(functions, copy.deepcopy(calls), gold, category)["valid"])
            except Exception as error:  # what its checker cannot judge is no verdict
                print(type(error).__name__, file=sys.stderr)
                continue
            row = {"entry": number, "category": category, "calls": calls, "valid": valid}
            if turn == 0:
                row |= {"functions": functions, "gold": gold}
            print(json.dumps(row))


def main(arguments: list[str]) -> None:
    """Print the agreement, or with a folder the sample."""
    if arguments:
        write(arguments[0])
        return
    n, found = differences()
    agree, interval = n - len(found), wilson(n - len(found), n)
    print(
        f"{agree:,} of {n:,} verdicts agree ({agree / n:.1%}, 95 % interval {interval.low:.1%} to "
        f"{interval.high:.1%}), {len(found)} differ"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
