"""Values that a person would read as what their schema wants: how many of them each policy of
coercion rescues, how many it leaves, and how many it makes into something else; beside them
pydantic's lax mode.

    python benchmarks/rescues.py             # the table, over tests/cases_core/rescues.jsonl
    python benchmarks/rescues.py --misses    # and each case that is not as a person wants it

A case has a value, a schema, and what a person wants; where it has no `want`, nobody could say, and
a value that is then legal is a wrong one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from toolparse_lab.arguments.schema.coerce import coerce
from toolparse_lab.arguments.schema.validate import validate
from toolparse_lab.core.values import read_strict, same, write_canonical

CASES = Path(__file__).parent.parent / "tests" / "cases_core" / "rescues.jsonl"
POLICIES = ("safe", "middleware", "go-strconv", "lossy")
Read = Callable[[dict[str, Any]], Any]
"""What becomes of a case's value."""


def cases() -> list[dict[str, Any]]:
    """Return the cases, numbers with the characters they were written with."""
    return [read_strict(line) for line in CASES.read_text("utf-8").splitlines()]


def verdict(case: dict[str, Any], value: Any) -> str:
    """Return "rescued", "left" or "wrong" for what became of a case's value.

    A value that still breaks the schema is left: validation tells of it, and nobody is misled.
    """
    if "want" in case and same(number_of(value), number_of(case["want"])):
        return "rescued"
    if same(value, case["value"]) or validate(value, json.dumps(case["schema"])):
        return "left"
    return "wrong"


def number_of(value: Any) -> Any:
    """Return a value as plain JSON reads it, so that 2.50 and 2.5 are one number."""
    return read_strict(json.dumps(json.loads(write_canonical(value))))


def by_policy(policy: Any) -> Read:
    """Return a reading by one policy of ours."""
    return lambda case: coerce(case["value"], json.dumps(case["schema"]), policy).value


def by_pydantic() -> Read | None:
    """Return a reading by pydantic's lax mode, None where it is not installed."""
    try:
        from pydantic import BaseModel, TypeAdapter, ValidationError
    except ImportError:
        return None

    class Several(BaseModel):
        """The object of the cases."""

        n: int
        x: float = 0.0
        on: bool = False

    types: dict[str, Any] = {
        "int": int, "float": float, "bool": bool, "str": str, "int|None": int | None,
        "bool|None": bool | None, "float|None": float | None, "str|int": str | int,
        "str|None": str | None, "bool|int": bool | int, "list[int]": list[int],
        "list[bool]": list[bool], "list[float]": list[float], "list[list[int]]": list[list[int]],
        "dict[str,int]": dict[str, int], "object": Several, "list[object]": list[Several],
        "list[int|None]": list[int | None], "Literal[1,2]": Literal[1, 2],
        "Literal['km','mi']": Literal["km", "mi"], "Literal['1','2']": Literal["1", "2"],
        "Literal[True,False]": Literal[True, False],
    }  # fmt: skip
    adapters = {name: TypeAdapter(kind) for name, kind in types.items()}

    def read(case: dict[str, Any]) -> Any:
        """The value after pydantic; itself where it refuses."""
        name = case["type"].removeprefix("json:")
        value = json.loads(write_canonical(case["value"]))
        try:
            adapter = adapters[name]
            new = (
                adapter.validate_json(value)
                if name != case["type"]
                else adapter.validate_python(value)
            )
            return read_strict(adapter.dump_json(new).decode())
        except ValidationError:
            return case["value"]

    return read


def table(rows: dict[str, Counter[str]], wanted: int, others: int) -> str:
    """Return the counts as a Markdown table."""
    lines = [
        f"{wanted} values that a person would rescue, {others} that nobody could:",
        "",
        "| reading | rescued | left | wrong |",
        "|---|---|---|---|",
    ]
    for name, counts in rows.items():
        lines.append(f"| {name} | {counts['rescued']} | {counts['left']} | {counts['wrong']} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table; 1 where `safe` gives a value that nobody wants."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--misses", action="store_true", help="show what is not as a person wants")
    options = parser.parse_args()

    readings: dict[str, Read] = {name: by_policy(name) for name in POLICIES}
    pydantic = by_pydantic()
    if pydantic is not None:
        readings["pydantic, lax"] = pydantic

    counts = {name: Counter[str]() for name in readings}
    all_cases = cases()
    for case in all_cases:
        for name, read in readings.items():
            value = read(case)
            result = verdict(case, value)
            counts[name][result] += 1
            is_miss = result == "wrong" or (result == "left" and "want" in case)
            if options.misses and is_miss and name in ("safe", "pydantic, lax"):
                print(f"{name}: {result}: {case['title']}: {case['value']!r} -> {value!r}")

    wanted = sum("want" in case for case in all_cases)
    print(table(counts, wanted, len(all_cases) - wanted))
    return 1 if counts["safe"]["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
