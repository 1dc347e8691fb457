"""Our parser inside vLLM and SGLang: as such, and run by the servers' own code where that was
added (`toolparse reader add vllm==0.33.0 sglang==0.5.23`).
"""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

import toolparse_lab as tp
from benchmarks.outside import TOOLS, generated
from toolparse_lab.core.values import read_strict
from toolparse_lab.entry.foreign.protocol import ForeignProtocol, tools_for_them
from toolparse_lab.extensions.serve.answers import ServerAnswer, names_of_formats
from toolparse_lab.parser.outside.packages import readers_added

RAW = 'Hi. <tool_call>{"name": "now", "arguments": {}}</tool_call> Bye.'
BATTERY = ("hermes", "qwen3_coder", "kimi_k2", "pythonic")
SERVERS = {"vllm==0.33.0": "vllm", "vllm==0.32.0": "vllm", "sglang==0.5.23": "sglang"}


def test_every_format_has_a_name_and_servers_names_are_taken() -> None:
    names = names_of_formats()
    assert names["toolparse_hermes"] == "hermes"
    assert names["toolparse_qwen3_coder"] == "qwen3_coder_xml"
    assert set(names.values()) == set(tp.protocols())


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_pieces_add_up_to_the_whole(size: int) -> None:
    whole = ServerAnswer("hermes", TOOLS).whole(RAW)
    answer = ServerAnswer("hermes", TOOLS)
    said = [answer.feed(RAW[i : i + size]) for i in range(0, len(RAW), size)]
    said += [answer.close(), answer.close()]
    assert "".join(one.content for one in said) == whole.content
    calls = [call for one in said for call in one.calls]
    assert [(c.index, c.name, c.arguments) for c in calls] == [(0, "now", "{}")]
    assert [(c.index, c.name, c.arguments) for c in whole.calls] == [(0, "now", "{}")]


def test_the_tools_of_a_server_s_request() -> None:
    def model(**members: Any) -> Any:
        return SimpleNamespace(model_dump=lambda exclude_none: members)

    chat = model(type="function", function={"name": "now", "parameters": {"type": "object"}})
    flat = model(type="function", name="now", parameters={"type": "object"})
    for tool in (chat, flat, {"name": "now"}):
        assert ServerAnswer("hermes", [tool]).whole(RAW).calls[0].name == "now"
    # Without tools, and with some that cannot be read, the answer is text.
    for tools in ([], [model(name=7)]):
        assert ServerAnswer("hermes", tools).whole(RAW).content == RAW
        assert ServerAnswer("hermes", tools).feed(RAW).content == RAW


def test_an_exception_gives_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no")

    for name in ("feed", "close"):
        answer = ServerAnswer("hermes", TOOLS)
        with monkeypatch.context() as patch:
            patch.setattr(f"toolparse_lab.middleware.stream.AnswerStream.{name}", broken)
            assert answer.whole(RAW).content == RAW
            said = answer.feed(RAW).content
            answer.close()
        if name == "feed":
            assert said + answer.feed("more").content == RAW + "more"


def test_thoughts_stay_in_the_content() -> None:
    answer = ServerAnswer("hermes", TOOLS).whole(f"<think>Which?</think>{RAW}")
    assert "Which?" in answer.content
    assert len(answer.calls) == 1


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("parser", BATTERY)
def test_in_the_server(server: str, parser: str) -> None:
    if server not in map(str, readers_added()):
        pytest.skip(f"needs the server's own code: toolparse reader add {server}")
    plugin = f"toolparse_lab.extensions.serve.{SERVERS[server]}"
    one = tp.reader(f"{server}:toolparse_{parser}", plugin=plugin)
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
    from tests.outside_tree import NEW, add_by_hand
    from toolparse_lab.parser.outside import reader

    add_by_hand(tmp_path, "2.0", NEW)
    (tmp_path / "extra_parsers.py").write_text(
        "from vllm.tool_parsers import Brackets, ToolParserManager\n"
        "ToolParserManager.tool_parsers['extra'] = Brackets\n",
        "utf-8",
    )
    monkeypatch.setenv("TOOLPARSE_CACHE", str(tmp_path))
    monkeypatch.setattr(reader, "python_of_readers", lambda: sys.executable)
    monkeypatch.syspath_prepend(str(tmp_path))
    make = partial(tp.reader, plugin="extra_parsers")
    assert tp.parse("[now {}]", make("vllm==2.0:extra"), TOOLS).calls[0].name == "now"
    with pytest.raises(tp.errors.UnknownName, match="extra"):
        tp.parse("x", make("vllm==2.0:none"))
    with pytest.raises(tp.errors.SetupError, match="cannot be started"):
        tp.parse("x", tp.reader("vllm==2.0:extra", plugin="no_such_module"))
