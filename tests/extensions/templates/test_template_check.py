"""The template doctor: each planted fault with its line and patch, and no finding without one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.chat_templates import FAMILIES, PLAIN, SHARED
from tests.laws import EXHAUSTIVE
from tests.replay_server import Answer, ReplayServer, json_answer
from tests.tables import each_case, table
from toolparse_lab.cli.app import main
from toolparse_lab.core.errors import BadOptions, UnreadableTemplate
from toolparse_lab.evals.parsers.outside import parser_of
from toolparse_lab.extensions.templates import check_template
from toolparse_lab.extensions.templates.doctor.report import CODES
from toolparse_lab.extensions.templates.doctor.samples import samples
from toolparse_lab.runner.chat_templates.renderer import ChatTemplate

# One statement a line, so that a line says which it is.
HEAD = """\
{%- for t in tools or [] %}<tool>{{ t | tojson }}</tool>
{% endfor %}
{%- for m in messages %}
{%- if m.role == 'user' %}
{{- '<|user|>' ~ m.content ~ '<|end|>' }}
{%- elif m.role == 'tool' %}
{{- '<|result|>' ~ (m.content | tojson) ~ '<|end|>' }}
{%- else %}
{{- '<|assistant|>' ~ (m.content or '') }}
{%- for c in m.tool_calls or [] %}
{%- set f = c.function %}
"""
TAIL = """
{%- endfor %}
{{- '<|end|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
"""
ANY_FORM = "{{- f.arguments if f.arguments is string else f.arguments | tojson }}"
HERMES = (
    HEAD + "{{- '<tool_call>\\n{\"name\": \"' ~ f.name ~ '\", \"arguments\": ' }}\n"
    + ANY_FORM + "\n{{- '}\\n</tool_call>' }}" + TAIL
)  # fmt: skip
XML = (
    HEAD
    + """\
{{- '<use>\\n<function=' ~ f.name ~ '>\\n' }}
{%- for k, v in f.arguments.items() %}
{{- '<parameter=' ~ k ~ '>\\n' }}
{{- v if v is string else v | tojson }}
{{- '\\n</parameter>\\n' }}
{%- endfor %}
{{- '</function>\\n</use>' }}"""
    + TAIL
)
PYTHON = (
    "{% macro text(v) %}{% if v is string %}\n{{- v | tojson -}}\n{% elif v is mapping %}{{ '{' }}"
    "{% for k, w in v.items() %}{{ k | tojson }}: {{ text(w) }}{{ '' if loop.last else ', ' }}"
    "{% endfor %}{{ '}' }}{% elif v is iterable %}[{% for w in v %}{{ text(w) }}"
    "{{ '' if loop.last else ', ' }}{% endfor %}]{% else %}{{ v }}{% endif %}{% endmacro %}\n"
    + HEAD
    + """\
{{- '<|start|>[' ~ f.name ~ '(' }}
{%- for k, v in f.arguments.items() %}
{{- k ~ '=' ~ text(v) ~ ('' if loop.last else ', ') }}
{%- endfor %}
{{- ')]<|stop|>' }}"""
    + TAIL
)
CLEAN = {"hermes": HERMES, "xml": XML, "python": PYTHON}


def planted(style: str, changes: list[list[str]]) -> tuple[str, int]:
    """Return the template with other lines in it, and the number of the last of them."""
    text = CLEAN[style]
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text, text[: text.index(changes[-1][1])].count("\n") + 1


SICK = {row["fault"]: row for row in table(__file__) if "fault" in row}


@pytest.mark.parametrize("style", CLEAN)
def test_a_clean_template_has_no_finding(style: str) -> None:
    report = check_template(CLEAN[style])
    codes = {finding.code for finding in report.findings}
    # What no template of this notation can write.
    limits = {
        "hermes": set(),
        "xml": {"limit.union", "limit.markers", "limit.text-arguments"},
        "python": {"limit.name", "limit.text-arguments"},
    }
    assert report.ok, str(report)
    assert codes == limits[style], str(report)
    assert report.checked > 100
    assert "the template is ok" in str(report)


@each_case
@pytest.mark.exhaustive(2)
def test_a_planted_fault_is_found_at_its_line(
    fault: str, code: str, style: str, changes: list[list[str]], patch: str
) -> None:
    text, line = planted(style, changes)
    report = check_template(text)
    finding = report[code]
    assert finding.line == line, str(report)
    assert finding.source == text.split("\n")[line - 1]
    assert f"line {line}:" in str(finding)
    assert [f.code for f in report.findings if f.kind == "reader"] == []
    assert not report.ok
    # Words of Python are one line's fault with null, and where nothing empty is written null is not.
    others = {f.code for f in report.findings if f.kind == "template"} - {code}
    alike = {"template.null": {"template.python"}, "template.dropped": {"template.null"}}
    assert others <= alike.get(code, set()), str(report)
    if patch:
        assert finding.patch is not None, str(finding)
        assert finding.patch.new == patch
    if patch and EXHAUSTIVE:
        assert finding.patch is not None
        lines = text.split("\n")
        lines[finding.patch.line - 1] = finding.patch.text
        again = check_template("\n".join(lines))
        assert code not in [f.code for f in again.findings], str(again)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.exhaustive(4)
def test_families_lose_nothing_but_arguments_as_text(family: str) -> None:
    report = check_template(FAMILIES[family])
    codes = {f.code for f in report.findings if f.kind != "limit"}
    assert codes <= {"template.encoded-twice"}, str(report)
    # Results are written as they are, so that one can say what the model would have said.
    assert report["limit.result-opens-call"].line == 3


@pytest.mark.skipif(not SHARED.is_dir(), reason="no folder of real chat templates")
def test_known_losses_of_real_templates_are_found() -> None:
    null = check_template(SHARED / "Qwen3-Coder.jinja")["template.null"]
    assert {loss.title for loss in null.losses} == {"null", "null for a number"}
    assert "args_value | string" in null.source
    assert null.patch is not None
    assert null.patch.healed == 2
    separator = check_template(SHARED / "CohereForAI-c4ai-command-r-plus-tool_use.jinja")
    assert "indent(8)" in separator["template.changed"].source
    assert check_template(SHARED / "Kimi-K2-Instruct.jinja").ok


def test_there_are_enough_values() -> None:
    values = list(samples())
    titles = [sample.title for sample in values]
    assert len(titles) == len(set(titles)) >= 34
    for sample in values:
        json.dumps(sample.value)


def test_a_named_protocol_reads_the_calls() -> None:
    report = check_template(HERMES, protocol="hermes")
    assert report.protocol == "hermes"
    assert not report.findings
    with pytest.raises(UnreadableTemplate, match="not read back"):
        check_template(HERMES, protocol="mistral_v11")
    with pytest.raises(tp.errors.UnknownProtocol):
        check_template(HERMES, protocol="no_such_format")


def test_a_fault_of_the_reader_is_not_the_templates() -> None:
    def read(text: str) -> list[Any]:
        calls = re.findall(r"(?s)<tool_call>\n(.*?)\n</tool_call>", text)
        return [json.loads(call.replace('"true"', "true")) for call in calls]

    report = check_template(HERMES, protocol=parser_of(read, name="hasty", version="1"))
    assert report.ok
    titles = [loss.title for loss in report["reader.value"].losses]
    assert titles == ["true as text under a union", "true as text, inside an object"]
    assert "not the template's" in str(report)


def test_a_template_that_cannot_be_checked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTemplate, match="writes no calls"):
        check_template(PLAIN)
    with pytest.raises(UnreadableTemplate, match="no Jinja template"):
        check_template("{% if \n")
    with pytest.raises(UnreadableTemplate, match="does not render"):
        check_template("{{ 'a' * 10 ** 11 }}")
    with pytest.raises(BadOptions, match="cannot be read"):
        check_template(tmp_path / "none.jinja")
    torn = HERMES.replace(ANY_FORM, "{{- f.arguments.values() | list | join(' ') ~ f.arguments.keys() | list | join(' ') }}")  # fmt: skip
    with pytest.raises(UnreadableTemplate, match="not read back"):
        check_template(torn)


def test_a_trace_changes_no_text() -> None:
    jobs: list[dict[str, Any]] = [
        {"messages": [{"role": "user", "content": "x"}], "tools": []},
        {"messages": 3},
    ]
    for text in [*FAMILIES.values(), *CLEAN.values()][:: 1 if EXHAUSTIVE else 4]:
        plain = ChatTemplate(text).render(jobs)
        traced = ChatTemplate(text).render(jobs, flips=[None, None])
        assert [(r.text, r.error, r.line) for r in plain] == [
            (r.text, r.error, r.line) for r in traced
        ]
        assert traced[0].events
    (crash,) = ChatTemplate("a\n{{ x.y.z }}").render([{"x": {}}])
    assert crash.line == 2
    (opposite,) = ChatTemplate("{% if x %}yes{% else %}no{% endif %}").render([{"x": 1}], flips=[0])
    assert opposite.text == "no"


def test_a_command_shows_findings_and_leaves_with_a_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chat_template.jinja"
    path.write_text(XML)
    assert main(["template", "check", str(path)]) == 0
    assert "limits of the format" in capsys.readouterr().out
    assert main(["template", "check", str(tmp_path), "--strict"]) == 1
    capsys.readouterr()
    row = SICK["encoded twice"]
    text, line = planted(row["style"], row["changes"])
    path.write_text(text)
    assert main(["template", "check", str(path)]) == 1
    out = capsys.readouterr().out
    assert "warning template.encoded-twice" in out
    assert "          + {{- (f.arguments if f.arguments is string" in out
    assert main(["template", "check", str(path), "--json"]) == 1
    account = json.loads(capsys.readouterr().out)
    (finding,) = account["findings"]
    assert finding["line"] == line
    assert finding["patch"]["text"].startswith("{{- (f.arguments if")
    assert set(finding) >= {"code", "kind", "severity", "source", "losses"}
    path.write_text(PLAIN)
    assert main(["template", "check", str(path)]) == 2
    assert "writes no calls" in capsys.readouterr().err


def test_a_server_tells_its_template() -> None:
    answers: list[Any] = [{"model": "x"}, [], None]
    with ReplayServer(Answer(status=404)) as server:
        server.answers["/props"] = json_answer({"chat_template": HERMES, "bos_token": "<s>"})
        assert check_template(f"{server.url}/v1").ok
        assert main(["template", "check", server.url]) == 0
        for answer in answers:
            server.answers = {} if answer is None else {"/props": json_answer(answer)}
            with pytest.raises(BadOptions, match=r"(?s)tell its chat template.*vLLM, SGLang"):
                check_template(server.url)
    with pytest.raises(BadOptions, match="cannot be asked"):
        check_template(server.url)


def test_every_code_is_said_in_words_and_met() -> None:
    met = {row["code"] for row in SICK.values()}
    others = {
        "limit.union", "limit.markers", "limit.name", "limit.text-arguments", "limit.parallel",
        "limit.result-opens-call", "reader.value", "reader.name",
    }  # fmt: skip
    assert met | others == set(CODES)
    assert all(re.fullmatch(r"(template|limit|reader)\.[a-z-]+", code) for code in CODES)


TWICE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{"
    '"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}'
    "}</call>{% endfor %}\n{% endfor %}"
)


def test_the_guilty_line_of_a_template_stands_beside_the_value(tmp_path: Path, capsys: Any) -> None:
    report = check_template(TWICE)
    finding = report["template.encoded-twice"]
    page = report._repr_mimebundle_()["text/html"]
    assert f"Line {finding.line} of the template" in page
    assert finding.code in page
    assert "put in" in page
    file = tmp_path / "t.jinja"
    file.write_text(TWICE)
    out = tmp_path / "page.html"
    assert main(["template", "check", str(file), "--html", str(out)]) == 1
    assert finding.code in out.read_text("utf-8")
    assert "wrote" in capsys.readouterr().err
