"""More parsers of a server by a plugin; ours run by the servers' own code where that was added
(`toolparse reader add vllm==0.33.0 sglang==0.5.23`).
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import pytest

import toolparse_lab as tp
from benchmarks.outside import TOOLS, generated
from tests.outside_tree import NEW, add_by_hand
from toolparse_lab.core.values import read_strict
from toolparse_lab.entry.foreign.protocol import ForeignProtocol, tools_for_them
from toolparse_lab.extensions.readers import reader, readers_added, released

BATTERY = ("hermes", "qwen3_coder", "kimi_k2", "pythonic")
SERVERS = {"vllm==0.33.0": "vllm", "vllm==0.32.0": "vllm", "sglang==0.5.23": "sglang"}


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("parser", BATTERY)
def test_in_the_server(server: str, parser: str) -> None:
    if server not in map(str, readers_added()):
        pytest.skip(f"needs the server's own code: toolparse reader add {server}")
    pytest.importorskip("toolparse_lab.extensions.serve")
    plugin = f"toolparse_lab.extensions.serve.{SERVERS[server]}"
    one = reader(f"{server}:toolparse_{parser}", plugin=plugin)
    assert isinstance(one, ForeignProtocol)
    tools = tools_for_them(TOOLS)
    for row in generated(parser, 122):
        raw = row["output"]
        cuts = {"tokens": [raw[i : i + 4] for i in range(0, len(raw), 4)], "whole": [raw]}
        for chunks in cuts.values():
            for answer in one.subject.read(raw, tools, chunks):
                calls = [
                    {"name": name, "arguments": {"$value": read_strict(arguments)}}
                    for name, arguments in answer.calls
                ]
                assert calls == row["target"], (raw, answer)
                assert answer.content.strip() in raw
    one.subject.close()


def test_a_plugin_is_imported_from_here(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    add_by_hand(tmp_path, "2.0", NEW)
    (tmp_path / "extra_parsers.py").write_text(
        "from vllm.tool_parsers import Brackets, ToolParserManager\n"
        "ToolParserManager.tool_parsers['extra'] = Brackets\n",
        "utf-8",
    )
    monkeypatch.setenv("TOOLPARSE_CACHE", str(tmp_path))
    monkeypatch.setattr(released, "python_of_readers", lambda: sys.executable)
    monkeypatch.syspath_prepend(str(tmp_path))
    make = partial(reader, plugin="extra_parsers")
    assert tp.parse("[now {}]", make("vllm==2.0:extra"), TOOLS).calls[0].name == "now"
    with pytest.raises(tp.errors.UnknownName, match="extra"):
        tp.parse("x", make("vllm==2.0:none"))
    with pytest.raises(tp.errors.SetupError, match="cannot be started"):
        tp.parse("x", reader("vllm==2.0:extra", plugin="no_such_module"))
