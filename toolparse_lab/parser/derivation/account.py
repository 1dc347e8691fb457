"""The derivation of a protocol in words: the measured quantity, and the undecided points."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...core.types.derivation import Derivation
from ...core.values import Value
from ...formats.json.shaped import TEXT
from .answers import Answers
from .fitting import FERRY, Samples, result_of, thought_of
from .probes import KINDS, RESULT, TWO
from .verifying import Proof, expected

_MARKUP = "a <b> & c"


def account_of(proof: Proof, answers: Answers, row: str | None, origin: str) -> Derivation:
    """Return the derivation of a proved protocol.

    row: the shipped one that reads it as well. origin: the kind of file it is from.
    """
    constants: Mapping[str, Any] = json.loads(proof.protocol.spec or "{}")
    form = constants.get("form", {})
    samples = Samples.of(answers)
    opener, closer = thought_of(answers)
    result = result_of(answers, RESULT, answers.full)
    opening, closing = _edges(form)
    return Derivation(
        source=origin,
        family=constants.get("family", "row"),
        opener=opening,
        closer=closing,
        separators=tuple(dict.fromkeys((*form.get("markup", ()), *constants.get("markup", ())))),
        ids=_ids(samples.one),
        encoding=(
            (("arguments", "JSON in a JSON string"),)
            if TEXT in form.get("shape", ())
            else encoding_of(samples.kinds)
        ),
        reasoning=(opener, closer),
        result=(result[0], result[1]) if result else ("", ""),
        parallel=bool(samples.two),
        read_back=tuple(c.answer.probe.id for c in proof.checks if c.whole),
        unclear=tuple(_unclear(proof, answers)),
        example=samples.first,
        row=row,
    )


def _edges(form: Mapping[str, Any]) -> tuple[str, str]:
    """Return opener and closer of a call as a family's constants have them."""
    opener = form.get("opener") or form.get("header") or ""
    closer = form.get("closer") or ""
    if not opener and "function" in form:
        function = form["function"]
        opener = function[0] if isinstance(function, list) else f"<{function}"
        closer = form.get("function_end") or f"</{function}>"
    return opener or form.get("id", ""), closer


def _ids(text: str) -> str:
    """Return how a call's id is written."""
    at = text.find(FERRY.id)
    return text[max(0, at - 20) : at] + "{id}" if at >= 0 else ""


def encoding_of(text: str) -> tuple[tuple[str, str], ...]:
    """Return how each kind of value is written, of a call with one of each."""
    rows: list[tuple[str, str]] = []
    for kind, value in KINDS.calls[0].arguments.items():
        notation = _notation(text, kind, value)
        if notation:
            rows.append((kind, notation))
    return tuple(rows)


def _notation(text: str, kind: str, value: Value) -> str:
    """Return the notation of one value behind its key.

    "" if it is none of the usual.
    """
    at = text.find(kind)
    if at < 0:
        return ""
    behind = text[at + len(kind) : at + len(kind) + 120]
    if isinstance(value, str):
        if value == _MARKUP and "&lt;b&gt;" in behind:
            return "with entities"
        for name, shape in (("JSON", json.dumps(value)), ("Python", repr(value)), ("bare", value)):
            if shape in behind:
                return name
        return ""
    for name, shape in (
        ("JSON", json.dumps(value)),
        ("JSON", json.dumps(value, separators=(",", ":"))),
        ("Python", str(value)),
    ):
        if shape in behind:
            return name
    return ""


def _unclear(proof: Proof, answers: Answers) -> list[str]:
    """Return the undecided points, a sentence each."""
    sentences: list[str] = []
    for check in proof.checks:
        if check.alike:
            sentences.append(
                f"the template writes {check.answer.probe.id} as it writes other values"
            )
        elif not check.clean:
            sentences.append(f"tokens of the format stay in the text: {check.answer.probe.id}")
    for answer in answers.others.values():
        if answer.error:
            sentences.append(f"the template does not render {answer.probe.id}: {answer.error}")
        elif not expected(answer):
            sentences.append(f"the template writes no call: {answer.probe.id}")
    if not answers.wire.thought_key:
        sentences.append("the template writes no reasoning")
    if not Samples.of(answers).two and not answers.fit[TWO.id].error:
        sentences.append("the template writes the first of two calls")
    return sentences
