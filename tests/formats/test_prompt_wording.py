"""The shipped prompt texts: three a protocol, each complete and different from the others."""

from __future__ import annotations

import re
from importlib import resources

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.formats.prompt.wording import PLACEHOLDERS, Wordings, fill

PROTOCOLS = ("hermes", "gemma", "morph_xml", "qwen3_coder_xml", "yaml_xml", "generic", "typed_xml")
OURS = ("brief", "plain", "strict")
# Prompts of others, word for word, for experiments.
THEIRS = {"hermes": ("chat_template", "upstream")}
ALL = [(p, w) for p in PROTOCOLS for w in (*OURS, *THEIRS.get(p, ()))]


def wordings_of(protocol_id: str) -> Wordings:
    """Those of a protocol, or of a folder that belongs to none."""
    protocol = tp.protocols().get(protocol_id)
    return protocol.wordings if protocol else Wordings(protocol_id)


@pytest.mark.parametrize("protocol_id", [*PROTOCOLS, "kimi_k2"])
def test_three_wordings(protocol_id: str) -> None:
    wordings = wordings_of(protocol_id)
    names = tuple(sorted((*OURS, *THEIRS.get(protocol_id, ()))))
    assert wordings.names == names
    assert len({wordings.template(w) for w in names}) == len(names)


@pytest.mark.parametrize(("protocol_id", "wording"), ALL)
def test_template_is_complete(protocol_id: str, wording: str) -> None:
    text = wordings_of(protocol_id).template(wording)
    names = re.findall(r"\{\{[#/]?(\w+)\}\}", text)
    assert set(names) <= set(PLACEHOLDERS)
    assert len([n for n in set(names) if n.startswith("tools_")]) == 1
    assert "type_rules" in names
    assert ("examples" in names) == (wording in ("plain", "strict"))
    for name in ("type_rules", "examples"):
        assert (
            text.count(f"{{{{#{name}}}}}")
            == text.count(f"{{{{/{name}}}}}")
            == names.count(name) // 3
        )
    filled = fill(text, {n: lambda: "X" for n in PLACEHOLDERS})
    lacking = ("type_rules", "examples")
    empty = fill(text, {n: (lambda: "") if n in lacking else (lambda: "X") for n in PLACEHOLDERS})
    for result in (filled, empty):
        assert "{{" not in result
        assert "\n\n\n" not in result
        assert result == result.strip()
    assert len(empty) < len(filled)


@each_case
def test_form_is_shown(protocol_id: str, mark: str) -> None:
    assert all(mark in wordings_of(protocol_id).template(w) for w in wordings_of(protocol_id).names)


def test_every_file_is_reachable_and_shipped() -> None:
    root = resources.files("toolparse_lab.formats.prompt").joinpath("templates")
    found = {(folder.name, f.name) for folder in root.iterdir() for f in folder.iterdir()}
    assert found == {(p, f"{w}.md") for p, w in ALL}


def test_unknown_wording_lists_the_known_ones() -> None:
    with pytest.raises(BadOptions, match="brief, chat_template, plain, strict, upstream"):
        wordings_of("hermes").template("../gemma/plain")


def test_fill_keeps_braces_of_values_and_computes_on_demand() -> None:
    asked: list[str] = []

    def value(name: str, text: str) -> str:
        asked.append(name)
        return text

    template = "{{#a}}\nA: {{a}}\n{{/a}}\n{{b}} {{b}}"
    values = {
        n: lambda n=n, t=t: value(n, t) for n, t in (("a", ""), ("b", "{{a}}"), ("c", "never"))
    }
    assert fill(template, values) == "{{a}} {{a}}"
    assert asked == ["a", "b"]
    with pytest.raises(BadOptions, match="unknown placeholder"):
        fill("{{nobody}}", values)
