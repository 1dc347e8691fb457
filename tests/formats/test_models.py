"""Which format a model writes, by its name."""

from __future__ import annotations

import re
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import each_case, every_case
from toolparse_lab.formats.models import _NEWEST, MODEL_FORMATS, model_format, reason_for
from toolparse_lab.formats.registry import PARSER_NAMES, parser_key


@every_case
def test_the_format_of_a_model(model: str, format_id: str) -> None:
    assert tp.protocol_for(model).id == format_id
    row = model_format(model)
    assert row is not None
    assert row.families in row.reason
    assert format_id in row.reason
    assert format_id in reason_for(model)


# A size, a date, an older version and the base of a fine-tune are no newer version.


@each_case
def test_a_newer_model_has_the_newest_format_of_its_family_in_doubt(
    model: str, format_id: str, in_doubt: bool
) -> None:
    assert tp.protocol_for(model).id == format_id
    assert reason_for(model).startswith("in doubt: ") == in_doubt


@pytest.mark.parametrize("model", ["", "my-model", "phi4:14b", "/home/qwen/mine", "a" * 100_000])
def test_a_model_without_a_row_is_refused(model: str) -> None:
    with pytest.raises(tp.errors.UnknownProtocol, match="format of this model") as refusal:
        tp.protocol_for(model)
    assert "from_chat_template" in str(refusal.value)
    assert len(str(refusal.value)) < 600


@each_case
def test_a_model_whose_own_text_nobody_sees_is_told_so(model: str) -> None:
    with pytest.raises(tp.errors.UnknownProtocol, match="is not public") as refusal:
        tp.protocol_for(model)
    assert "'native'" in str(refusal.value)


def test_a_name_that_comes_near_is_suggested() -> None:
    for name, meant in (("qwn3", "qwen3"), ("hermez", "hermes"), ("Deepsek-V3", "deepseek_v3")):
        with pytest.raises(tp.errors.UnknownProtocol, match=f"did you mean .*{meant}"):
            tp.protocol_for(name)


def test_what_is_no_name_is_refused() -> None:
    wrong: Any
    for wrong in (None, 3, b"qwen3", ["qwen3"]):
        with pytest.raises(tp.errors.UnknownProtocol, match="found by its name"):
            tp.protocol_for(wrong)
    wrong = tp.Model("hosted_vllm/Qwen3-8B")
    with pytest.raises(tp.errors.UnknownProtocol, match="pass its name"):
        tp.protocol_for(wrong)


def test_each_row_names_a_shipped_format_and_compiles() -> None:
    for row in MODEL_FORMATS:
        assert row.format in tp.protocols(), row
        re.compile(row.pattern)
    assert {protocol_id for _, _, protocol_id, *_ in _NEWEST} <= tp.protocols().keys()


@every_case
def test_the_format_of_a_parser_of_a_server(parser: str, format_id: str) -> None:
    assert tp.protocol_for(parser).id == format_id
    assert format_id in reason_for(parser)


def test_each_name_of_a_parser_is_no_other_name() -> None:
    known = tp.protocols()
    names = {name for protocol in known.values() for name in (protocol.id, *protocol.aliases)}
    for name, format_id in PARSER_NAMES.items():
        assert format_id in known, name
        assert name not in names, name
        assert name == parser_key(name)
