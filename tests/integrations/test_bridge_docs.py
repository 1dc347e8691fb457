"""The example of docs/app.md that needs the embedded model; the others are run with all
pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.bridge import litellm
from toolparse_lab.runner.local.setup import local_model_ready

TEXT = (Path(__file__).parents[2] / "docs" / "app.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.local_model
@pytest.mark.skipif(
    not local_model_ready(), reason="the embedded model's packages are not installed"
)
def test_a_model_string_is_all_that_changes(capsys: pytest.CaptureFixture[str]) -> None:
    litellm()
    (code,) = re.findall(r"```python no-run: [^\n]*\n(.*?)```", TEXT, re.S)
    assert len(code.splitlines()) <= 12
    exec(code, {})
    assert capsys.readouterr().out == "tool_calls roll\n"
    assert "It prints `tool_calls roll`" in TEXT
