"""Wrong input at every door: an error of this package that names the value, the cause and the fix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import asked_of, every_case
from toolparse_lab.core import errors
from toolparse_lab.core.errors import BadCase, BadOptions, ProviderError, ToolparseError, near
from toolparse_lab.integrations import litellm_bridge

PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}}
TOOL = {"name": "get_weather", "parameters": {"type": "object", "properties": PROPERTIES}}
RAW = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
CALL = {"name": "get_weather", "arguments": {"city": "Oslo"}}
CASE = {"id": "c1", "input": "Weather in Oslo?", "tools": [TOOL], "target": [CALL]}


def closed() -> Any:
    parser = tp.stream("hermes")
    parser.close()
    return parser


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Everything that the snippets name, in a folder with the files that they read."""
    folder = tmp_path_factory.mktemp("errors")
    (folder / "cases.jsonl").write_text(json.dumps(CASE) + "\n")
    (folder / "bad.jsonl").write_text('{"id": "c1", "tools": []}\n{oops\n')
    (folder / "empty.jsonl").write_text("")
    with pytest.MonkeyPatch.context() as patch, tp.Lab(folder / "runs.db") as lab:
        patch.chdir(folder)
        patch.delenv("OPENAI_API_KEY", raising=False)
        row = {"raw": RAW, "tools": [TOOL], "target": [CALL]}
        yield {
            "tp": tp,
            "bridge": litellm_bridge,
            "lab": lab,
            "run": lab.ingest([row], progress=False),
            "closed": closed,
            "TOOL": TOOL,
            "CASE": CASE,
            "RAW": RAW,
            "MODEL": tp.Model("openai/m", api_base="http://127.0.0.1:9/v1", price=(0, 0)),
            "OPENAI": tp.Model("openai/gpt-4o", price=(0, 0)),
            "CLOSED": tp.Model(
                "openai/m", api_base="http://127.0.0.1:9/v1", api_key="none", max_retries=0
            ),
            "MESSAGES": [{"role": "user", "content": "x"}],
        }


@every_case
def test_an_error_names_value_cause_and_fix(snippet: str, text: str, names: dict[str, Any]) -> None:
    with pytest.raises(ToolparseError) as caught:
        eval(snippet, dict(names))
    error, message = caught.value, str(caught.value)
    assert text in message
    # A provider's own message stays as it is.
    assert isinstance(error, ProviderError) or not error.message[:1].isupper()
    assert error.expected or error.hint or isinstance(error, BadCase)
    assert "Traceback" not in message


# What an error says of a value, whatever that value is.


def deep_list() -> Any:
    value: Any = []
    for _ in range(5000):
        value = [value]
    return value


@asked_of(
    ("got", "line"),
    [
        ("text", "got: text"),
        ({"a": 1}, "got: {'a': 1}"),
        ("x" * 1000, "got: " + "x" * 297 + "..."),
        (deep_list(), "got: list, too large to show"),
        (10**5000, "got: int, too large to show"),
    ],
    ids=["text", "mapping", "long", "deep", "huge"],
)
def test_a_value_is_shown_in_one_short_line(got: object, line: str) -> None:
    assert str(BadOptions("no case", got=got)).splitlines() == ["no case", f"  {line}"]


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    assert near("hermse", ["hermes", "gemma"]) == "did you mean hermes?"
    assert near("zzz", ["hermes"]) is None


def test_each_class_has_a_code_of_its_own() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type)]
    codes = [c.code for c in classes if issubclass(c, ToolparseError)]
    assert len(codes) > 20
    assert len(codes) == len(set(codes))
