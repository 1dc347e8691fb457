"""The naive parser: a regex for a JSON object and `json.loads`."""

from __future__ import annotations

from toolparse_lab.evals.scoring.score import naive_calls


def test_naive_parser_reads_what_json_loads_reads() -> None:
    native = '{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\\"a\\":1}"}}]}'
    assert naive_calls(native, native=True) == [("f", {"a": 1})]
    assert naive_calls("[" * 100_000 + "{" + "[" * 100_000 + "}") == []
    for broken in (
        "",
        "}{",
        '{"name": 1, "arguments": {}}',
        '{"name": "f", "arguments": "x"}',
        "[1]",
    ):
        assert naive_calls(broken) == []
    for broken in ("", "[]", '{"tool_calls":[1]}'):
        assert naive_calls(broken, native=True) == []
