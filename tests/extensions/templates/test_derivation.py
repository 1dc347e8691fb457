"""Protocols from chat templates: each family, the refusals, the limits, and real templates."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import toolparse_lab as tp
from tests import chat_templates
from tests.chat_templates import FAMILIES, OWN_THOUGHTS, PLAIN, SHARED, template
from tests.laws import EXHAUSTIVE, check_all
from tests.tables import each_case, table
from toolparse_lab.cli.app import main
from toolparse_lab.core.errors import BadOptions, UnreadableTemplate
from toolparse_lab.extensions.templates import model_prompt, protocol_from_chat_template
from toolparse_lab.extensions.templates.derivation.answers import HELD, tools_of
from toolparse_lab.extensions.templates.derivation.derived import derived_protocol
from toolparse_lab.extensions.templates.laws.check_protocol import check_protocol
from toolparse_lab.formats.prompt.messages import build_messages
from toolparse_lab.runner.chat_templates import renderer
from toolparse_lab.runner.chat_templates.renderer import ChatTemplate

TOOLS = tools_of(HELD)
TEXTS = {row["family"]: row["text"] for row in table(chat_templates.__file__)}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.exhaustive(5)
def test_each_family_is_derived_read_and_written(family: str) -> None:
    protocol = protocol_from_chat_template(FAMILIES[family], id="mine")
    derivation = protocol.derivation
    assert derivation is not None
    assert protocol.id == "mine"
    assert len(derivation.read_back) == len(HELD)
    assert derivation.reasoning == ("<think>", "</think>")
    assert derivation.result == ("<|result|>", "<|end_result|>")
    assert derivation.parallel
    assert not derivation.unclear

    for text in (TEXTS[family], f"First this.\n{TEXTS[family]}"):
        result = tp.parse(text, protocol, TOOLS)
        assert [(c.name, c.arguments) for c in result.calls if c.ok] == [
            ("weigh_parcel", {"street": "a </b> c", "grams": 3})
        ]
        assert result.text.strip() in ("", "First this.")

    tool = TOOLS[0]
    arguments = '{"street":"x & y","grams":2}'
    written = protocol.write_call(tool.name, arguments, tool)
    again = tp.parse(protocol.join_calls([written, written]), protocol, TOOLS)
    assert [c.arguments_json for c in again.calls] == [arguments, arguments]

    # A run records the data of a protocol, from which it is made again.
    remade = derived_protocol(json.loads(protocol.spec))
    assert (
        tp.parse(TEXTS[family], remade, TOOLS).calls
        == tp.parse(TEXTS[family], protocol, TOOLS).calls
    )
    if not EXHAUSTIVE and family != "json":
        check_all(TEXTS[family], protocol, TOOLS)
        return
    report = check_protocol(protocol, examples=20 if EXHAUSTIVE else 3)
    laws = {finding.law for finding in report.violated}
    assert laws <= ({"trace replay"} if family == "flags" else set()), str(report)


def test_reasoning_in_tags_of_its_own_is_reasoning() -> None:
    protocol = protocol_from_chat_template(OWN_THOUGHTS)
    call = '<call>{"name": "weigh_parcel", "arguments": {"grams": 3}}</call>'
    result = tp.parse(f"[THINK]Heavy?[/THINK]{call}", protocol, TOOLS)
    assert result.reasoning == "Heavy?"
    assert result.text == ""
    assert [call.arguments for call in result.calls] == [{"grams": 3}]


def test_messages_to_a_recipient_are_those_of_a_shipped_protocol() -> None:
    loop = "{% for c in m.tool_calls or [] %}<|start|>assistant to=functions.{{ c.function.name }}"
    call = "<|channel|>commentary json<|message|>{{ c.function.arguments | tojson }}<|call|>"
    protocol = protocol_from_chat_template(template(loop + call + "{% endfor %}"))
    assert protocol.derivation is not None
    assert protocol.derivation.row == "harmony_channel"


def test_special_tokens_may_be_stripped() -> None:
    protocol = protocol_from_chat_template(FAMILIES["named without closer"])
    assert [c.ok for c in tp.parse('weigh_parcel{"grams": 3}', protocol, TOOLS).calls] == [True]
    # In the middle of prose, and for a tool that nobody offers, it is text.
    assert not tp.parse('Say weigh_parcel{"grams": 3}', protocol, TOOLS).calls
    assert not tp.parse('other_tool{"grams": 3}', protocol, TOOLS).calls


def test_a_template_may_come_from_files_of_a_model(tmp_path: Path) -> None:
    text = FAMILIES["json"].replace("{{ m.content or '' }}", "{{ bos_token }}{{ m.content or '' }}")
    config: dict[str, Any] = {"chat_template": text, "bos_token": {"content": "<s>"}}
    named = [{"name": "default", "template": PLAIN}, {"name": "tool_use", "template": text}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "chat_template.jinja").write_text(text)
    sources: list[Any] = [text, config, {"chat_template": named}, tmp_path / "chat_template.jinja"]
    sources += [str(tmp_path / "tokenizer_config.json"), tmp_path]
    templates = [ChatTemplate.of(source) for source in sources]
    assert {template.text for template in templates} == {text}
    assert [template.tokens.get("bos_token") for template in templates] == [
        None, "<s>", None, None, "<s>", "<s>",
    ]  # fmt: skip
    for wrong in ({}, {"chat_template": 3}, tmp_path / "none.jinja", 7, "no path"):
        with pytest.raises(BadOptions):
            ChatTemplate.of(wrong)  # type: ignore[arg-type]


def test_input_without_a_template_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "empty.jinja").write_text("\n")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "folder").mkdir()
    inputs: list[tuple[Any, str]] = [
        ("", "an empty text"),
        (" \n", "an empty text"),
        ("x" * 5000, "cannot be read"),
        ("a\0b", "cannot be read"),
        ("Qwen/Qwen3-8B", "download its chat_template.jinja"),
        (tmp_path / "empty.jinja", "which is empty"),
        (tmp_path / "broken.json", "which is no JSON"),
        (tmp_path / "list.json", "with a list in it"),
        (tmp_path / "folder", "without chat_template.jinja"),
        (b"{{ messages }}", "decode the bytes"),
        ([PLAIN], "named ones as"),
        (SimpleNamespace(chat_template=PLAIN), "pass its chat_template"),
        ({}, "no keys"),
        ({"chat_template": None}, "chat_template being NoneType"),
        ({"chat_template": [{"name": "rag", "template": PLAIN}]}, "named templates: rag"),
        ({"chat_template": ["x", {"name": []}]}, "named templates: none"),
        ("{{ 1 }}" * 400_000, "too long"),
    ]
    for wrong, words in inputs:
        with pytest.raises(BadOptions, match=words) as refusal:
            protocol_from_chat_template(wrong)
        assert refusal.value.expected, words
        assert len(str(refusal.value)) < 800, words

    # A configuration of newer models has its template in a file beside it.
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "</s>"}')
    (tmp_path / "chat_template.jinja").write_text(PLAIN)
    with pytest.raises(BadOptions, match=r"pass .*chat_template.jinja, or the folder"):
        protocol_from_chat_template(tmp_path / "tokenizer_config.json")


def test_an_id_is_one_that_frames_and_files_can_have() -> None:
    for wrong in ("a b", "", 3, "auto", "x" * 500):
        with pytest.raises(tp.errors.BadSpec, match="id"):
            protocol_from_chat_template(FAMILIES["json"], id=wrong)  # type: ignore[arg-type]


def test_what_cannot_be_derived_is_refused_with_its_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableTemplate, match="writes no calls") as refusal:
        protocol_from_chat_template(PLAIN)
    assert refusal.value.probe == "one call"
    with pytest.raises(UnreadableTemplate, match="no Jinja template"):
        protocol_from_chat_template("{% if \n")
    with pytest.raises(UnreadableTemplate, match="line 2: unexpected"):
        protocol_from_chat_template("{{ messages }}\n{{ }")
    with pytest.raises(UnreadableTemplate, match="does not render a conversation"):
        protocol_from_chat_template("{{ raise_exception('no tools here') }}")
    # Constants are computed when a template is compiled.
    with monkeypatch.context() as patch:
        patch.setattr(renderer._Renderer, "answer", lambda *_: {"error": "MemoryError: too much"})
        with pytest.raises(UnreadableTemplate, match="more than it may"):
            ChatTemplate("{{ 1 }}").render([])

    # The arguments lose their quotes, so that nothing reads them back.
    loop = "{% for c in m.tool_calls or [] %}"
    torn = (
        "<call>{{ c.function.name }} {{ c.function.arguments | tojson | replace('\"', '') }}</call>"
    )
    with pytest.raises(UnreadableTemplate) as refusal:
        protocol_from_chat_template(template(loop + torn + "{% endfor %}"))
    assert refusal.value.probe
    assert refusal.value.text.count("<call>") >= 1


@each_case
def test_a_hostile_template_renders_an_error(hostile: str) -> None:
    (rendering,) = ChatTemplate.of(hostile).render([{}])
    assert rendering.text == ""
    assert rendering.error


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of CPU")
def test_an_endless_template_is_stopped() -> None:
    endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    with renderer.one_renderer():
        with pytest.raises(UnreadableTemplate, match="more than it may"):
            ChatTemplate.of(endless).render([{}], seconds=1)
        assert ChatTemplate("{{ 1 }}").render([{}])[0].text == "1"


def test_a_renderer_that_was_ended_is_told_and_replaced() -> None:
    with renderer.one_renderer() as shared:
        assert ChatTemplate("{{ 1 }}").render([{}])[0].text == "1"
        assert shared._process is not None
        shared._process.kill()
        shared._process.wait()
        with pytest.raises(UnreadableTemplate, match="more than it may"):
            ChatTemplate("{{ 1 }}").render([{}])
        assert ChatTemplate("{{ 2 }}").render([{}])[0].text == "2"


def test_the_renderer_inherits_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "planted")
    started: list[dict[str, str]] = []
    popen: Any = subprocess.Popen

    def recorded(*args: Any, env: dict[str, str], **options: Any) -> Any:
        started.append(env)
        return popen(*args, env=env, **options)

    monkeypatch.setattr(subprocess, "Popen", recorded)
    with renderer.one_renderer():
        for number in ("1", "2"):
            assert ChatTemplate(f"{{{{ {number} }}}}").render([{}])[0].text == number
    (environment,) = started
    assert environment.keys() <= {"PYTHONPATH", "PYTHONIOENCODING", "SYSTEMROOT"}


def test_the_command_shows_a_derivation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chat_template.jinja"
    path.write_text(FAMILIES["slots"])
    assert main(["template", "derive", str(path), "--id", "mine"]) == 0
    out = capsys.readouterr().out
    assert "family     slots" in out
    assert "<the_key>" in out
    assert 'track_ferry {"harbor":"Vela Norte","depth":7}' in out
    assert main(["template", "derive", str(path), "--json"]) == 0
    account = json.loads(capsys.readouterr().out)
    assert account["family"] == "slots"
    assert len(account["calls"]) == 2
    path.write_text(PLAIN)
    assert main(["template", "derive", str(path)]) == 2
    assert "writes no calls" in capsys.readouterr().err


@each_case
def test_of_shipped_formats_that_read_alike_the_one_that_is_written_is_named(
    shipped: str, written: str
) -> None:
    gap = "\n" if "\n" in written else ""
    pairs = (
        "{% for k, v in c.function.arguments.items() %}<arg_key>{{ k }}</arg_key>" + gap
        + "<arg_value>{{ v if v is string else v | tojson }}</arg_value>" + gap + "{% endfor %}"
    )  # fmt: skip
    call = written.replace("{name}", "{{ c.function.name }}").replace("{pairs}", pairs)
    call = call.replace("{json}", "{{ c.function.arguments | tojson }}")
    body = template("{% for c in m.tool_calls or [] %}" + call + gap + "{% endfor %}")
    protocol = protocol_from_chat_template(body)
    assert protocol.derivation is not None
    assert protocol.derivation.row == shipped


def test_an_account_is_shown_in_words() -> None:
    hostile = FAMILIES["slots"].replace("<tool_use>", "<tool_use>\x1b[31m<script>")
    protocol = protocol_from_chat_template(hostile, id="mine")
    assert protocol.derivation is not None
    views = protocol.derivation._repr_mimebundle_()
    assert views["text/plain"] == repr(protocol.derivation) == str(protocol.derivation)
    assert "family     slots" in views["text/plain"]
    assert "track_ferry" in views["text/html"]
    for view in views.values():
        assert "\x1b" not in view
    assert "<script>" not in views["text/html"]
    # The parts of a format are nobody's first question about it.
    assert repr(protocol) == "Protocol('mine', derived from a chat template: slots)"
    assert repr(tp.protocols()["hermes"]) == "Protocol('hermes', JSON in <tool_call>)"


def test_the_command_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    template = FAMILIES["slots"]
    for text in (template, json.dumps({"chat_template": template})):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["template", "derive", "-", "--id", "mine"]) == 0
        assert "family     slots" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert main(["template", "derive", "-"]) == 2
    assert "an empty text" in capsys.readouterr().err


def test_the_models_own_prompt_is_one_for_plans(tmp_path: Path) -> None:
    protocol = protocol_from_chat_template(FAMILIES["json"])
    tool = {"name": "find", "parameters": {"type": "object", "properties": {"q": {}}}}
    for copy in (protocol, derived_protocol(json.loads(protocol.spec))):
        (system, user) = build_messages(
            "Where?", [tool], protocol=copy, builder=model_prompt(copy), few_shot=0
        )
        assert system["role"] == "system"
        assert user["content"] == "Where?"
        assert system["content"].startswith("<tool>{")
        assert '"name": "find"' in system["content"]
    case = {"id": "c", "input": "Where?", "tools": [tool]}
    with tp.Lab(tmp_path / "runs.db") as lab:
        plan = lab.plan([case], {"m": "openai/m"}, [protocol], wording=model_prompt(protocol))
        (request,) = plan.requests.values()
        assert request.messages[0] == system
    # A template may say nothing about tools.
    silent = FAMILIES["json"].replace("{% for t in tools or [] %}", "{% for t in [] %}")
    prompt = model_prompt(protocol_from_chat_template(silent))
    with pytest.raises(BadOptions, match="writes nothing about tools"):
        prompt(tools=[tp.ToolSpec.of(tool)])
    with pytest.raises(BadOptions, match="no chat template"):
        model_prompt(tp.protocols()["hermes"])


@pytest.mark.skipif(not SHARED.is_dir(), reason="no folder of real chat templates")
def test_real_templates_are_derived() -> None:
    refused: list[str] = []
    paths = sorted(SHARED.glob("*.jinja"))[:: 1 if EXHAUSTIVE else 4]
    for path in paths:
        try:
            protocol_from_chat_template(path)
        except UnreadableTemplate as error:
            refused.append(f"{path.name}: {str(error).splitlines()[0]}")
    assert all("writes no calls" in line for line in refused), refused
    assert len(refused) <= max(2, len(paths) // 8)
