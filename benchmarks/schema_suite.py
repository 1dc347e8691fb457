"""Verdicts on the JSON-Schema-Test-Suite: python benchmarks/schema_suite.py [FOLDER]

FOLDER has the suite's `tests`; without it the suite is fetched into a temporary folder, as part of
the source of `jsonschema` on PyPI. Each test is a call with one argument, whose schema is the
test's, and is parsed twice. *Exact* is without coercion: a call is wrong where it is valid and the
suite says that the value is not. *Coerced* is as calls are parsed by default: a call is wrong where
jsonschema refuses the arguments that come out. Refused are calls that are not valid although the
value is, and unchecked those of which something could not be judged; both are the safe side.
Optional tests, formats and schemas elsewhere are not asked for.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema

sys.path.insert(0, str(Path(__file__).parent.parent))

import toolparse_lab as tp
from toolparse_lab.evals.reports.figures.stats import wilson

SOURCE = "jsonschema==4.23.0"
DRAFTS = ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")
ELSEWHERE = ("refRemote.json", "vocabulary.json", "default.json")
WAYS: dict[str, tp.ParseOptions] = {
    "exact": tp.ParseOptions(coerce="none"),
    "coerced": tp.ParseOptions(),
}


def fetched(folder: Path) -> Path:
    """Download the suite and return the folder of its tests."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", "jsonschema", "--dest", str(folder), SOURCE]
    subprocess.run(command, check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return next(folder.glob("*/json/tests"))


def tests_of(folder: Path) -> Iterator[tuple[Any, Any, bool]]:
    """Yield (schema, value, whether it is valid)."""
    for path in sorted(folder.glob("*.json")):
        if path.name not in ELSEWHERE:
            for group in json.loads(path.read_text("utf-8")):
                for test in group["tests"]:
                    yield group["schema"], test["data"], test["valid"]


def verdict(tool: dict[str, Any], value: Any, is_valid: bool, way: str, draft: str) -> str:
    """Return "right", "refused", "unchecked" or "wrong" for one test."""
    raw = json.dumps({"name": "f", "arguments": {"value": value}})
    calls = tp.parse(f"<tool_call>{raw}</tool_call>", "hermes", [tool], WAYS[way]).calls
    if len(calls) != 1 or not calls[0].ok or not calls[0].valid:
        return "refused" if is_valid else "right"
    if (
        way == "coerced"
        and not is_valid
        and json.dumps(calls[0].arguments["value"]) != json.dumps(value)
    ):
        validator = _VALIDATORS[draft](tool["parameters"]["properties"]["value"])
        is_valid = validator.is_valid(calls[0].arguments["value"])
    if calls[0].unchecked:
        return "unchecked"
    return "right" if is_valid else "wrong"


_VALIDATORS: dict[str, Any] = {
    "draft4": jsonschema.Draft4Validator,
    "draft6": jsonschema.Draft6Validator,
    "draft7": jsonschema.Draft7Validator,
    "draft2019-09": jsonschema.Draft201909Validator,
    "draft2020-12": jsonschema.Draft202012Validator,
}


def tool_of(schema: Any, draft: str) -> dict[str, Any]:
    """Return a tool with one parameter of a schema, which has a base of its own for references."""
    name = "id" if draft == "draft4" else "$id"
    if isinstance(schema, dict) and name not in schema:
        schema = {name: "https://suite.test/schema", **schema}
    parameters = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    if isinstance(schema, dict) and "$schema" not in schema:
        parameters["$schema"] = _VALIDATORS[draft].META_SCHEMA.get("$schema")
    return {"name": "f", "parameters": parameters}


def main() -> int:
    """Print the table; 1 where a value that the suite refuses is valid."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("--misses", action="store_true", help="print what is wrong or refused")
    chosen = options.parse_args()
    print("| draft | arguments | n | right | refused | unchecked | wrong | wrong, at most (95 %) |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or fetched(Path(temporary))
        for draft in DRAFTS:
            for way in WAYS:
                counts = Counter[str]()
                for schema, value, is_valid in tests_of(folder / draft):
                    said = verdict(tool_of(schema, draft), value, is_valid, way, draft)
                    counts[said] += 1
                    if chosen.misses and said != "right":
                        print(f"{draft} {way} {said}: {json.dumps([schema, value])[:300]}")
                number = counts.total()
                most = f"{wilson(counts['wrong'], number).high:.2%}"
                shown = (number, *(counts[k] for k in ("right", "refused", "unchecked", "wrong")))
                print(f"| {draft} | {way} | {' | '.join(map(str, shown))} | {most} |")
                wrong += counts["wrong"]
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
