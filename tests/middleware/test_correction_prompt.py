"""The correction prompt, ours and the Go orchestrator's, and arguments read from any answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tables import each_case
from toolparse_lab.core.errors import CorrectionFailed
from toolparse_lab.core.toolspec import ToolSpec
from toolparse_lab.middleware.correction import CorrectionContext, Issue, read_correction
from toolparse_lab.middleware.correction.prompt import correction_messages

TOOL = ToolSpec.of(
    {"name": "weather", "parameters": {"type": "object", "properties": {"lat": {"type": "number"}}}}
)
CONTEXT = CorrectionContext(
    TOOL,
    {"lat": "north", "city": "Zürich"},
    "cannot unmarshal string",
    '{"field": "lat"}',
    (Issue("/lat", "type", "expected number, got string"),),
    ({"role": "user", "content": "How warm is it?"},),
    agent="weather-tool",
)
ORCHESTRATOR_PROMPT = """The following tool call failed with a type error.

Tool: weather-tool
Capability: weather
Error: cannot unmarshal string

Original Parameters (INCORRECT):
{
  "lat": "north",
  "city": "Zürich"
}

Expected Parameter Schema:
{
  "type": "object",
  "properties": {
    "lat": {
      "type": "number"
    }
  }
}

Please provide CORRECTED parameters as a JSON object.
Remember:
- Numbers must NOT be in quotes: "lat": 35.6897 (correct) vs "lat": "35.6897" (wrong)
- Booleans must NOT be in quotes: "enabled": true (correct) vs "enabled": "true" (wrong)
- Only strings should be in quotes

Respond with ONLY the corrected JSON parameters object, no explanation."""


def test_the_orchestrator_s_prompt_is_kept() -> None:
    assert CONTEXT.prompt("go-orchestrator") == ORCHESTRATOR_PROMPT


def test_our_prompt_names_fields_body_schema_and_rules_and_follows_the_conversation() -> None:
    first, last = correction_messages(CONTEXT)
    assert first == {"role": "user", "content": "How warm is it?"}
    for part in (
        "The call of weather was refused.",
        '{"field": "lat"}',
        "- /lat: expected number, got string",
        '"lat": "north"',
        '"type": "number"',
        "CORRECT",
    ):
        assert part in last["content"]
    # A body that the message says already is not said twice.
    plain = CorrectionContext(TOOL, {}, "refused: no", "no")
    assert "Details" not in plain.prompt()


@each_case
def test_arguments_are_read_from_any_answer(raw: str) -> None:
    assert read_correction(raw, TOOL) == {"lat": 1.5}


@pytest.mark.parametrize(
    "raw", ["", "I cannot do that.", "[1, 2]", '"lat"', '{"lat": 1.5', "{" * 50_000]
)
def test_an_answer_without_arguments_is_an_error(raw: str) -> None:
    with pytest.raises(CorrectionFailed, match="no JSON object"):
        read_correction(raw, TOOL)


@pytest.mark.parametrize("name", ["arguments", "parameters", "args", "input"])
def test_a_parameter_that_is_called_like_a_wrapper_is_a_parameter(name: str) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": "object"}}}
    tool = ToolSpec.of({"name": "f", "parameters": schema})
    assert read_correction(f'{{"{name}": {{"a": 1}}}}', tool) == {name: {"a": 1}}
