"""The validator library is loaded without the grammars it may never use, and checks formats as
ever."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

if not find_spec("rfc3987_syntax"):
    pytest.skip("the grammars are not installed", allow_module_level=True)
if find_spec("rfc3987"):
    pytest.skip("jsonschema prefers the package rfc3987", allow_module_level=True)

SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}})
FIRST = f"""
import json, sys
from toolparse_lab.arguments.schema.validate import validate
codes = [p.code for p in validate({{"a": "y"}}, {SCHEMA!r})]
"""
LATER = """
import jsonschema
formats = jsonschema.FormatChecker()
before = "rfc3987_syntax" in sys.modules
said = [formats.conforms(text, "iri") for text in ("http://a.b/é", "http://a b")]
import rfc3987_syntax
whole = callable(rfc3987_syntax.is_valid_syntax_iri)
print(json.dumps([before, said, whole]))
"""


def fresh(code: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


def test_a_validation_leaves_the_grammars_unloaded_and_out_of_place() -> None:
    assert fresh(f'{FIRST}print(json.dumps([codes, "lark" in sys.modules, "rfc3987_syntax" in '
        'sys.modules]))') == [
        ["validate.constraint"], False, False,
    ]  # fmt: skip


def test_formats_are_checked_by_the_real_grammars_afterwards() -> None:
    assert fresh(FIRST + LATER) == [False, [True, False], True]


def test_grammars_that_are_there_already_stay() -> None:
    assert fresh(
        f"import rfc3987_syntax as real\n{FIRST}print(json.dumps(sys.modules['rfc3987_syntax'] is "
        "real))"
    )
