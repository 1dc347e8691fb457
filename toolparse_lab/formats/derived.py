"""A protocol from the constants that a derivation found, family by family.

The constants are JSON, so that a run can record them and make the protocol again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .bare.gemma import bare_protocol
from .bare.reader import BareForm
from .base import Envelope, Protocol, Signs
from .json.forms import NamedJson
from .json.grammar import Frame, FramedGrammar, JsonGrammar
from .json.mix import FAILURE
from .json.openers import JsonHeaders
from .json.scan import JsonTags
from .json.shaped import ShapedJson
from .parameters.form import SlotForm, TagForm
from .parameters.tags import tag_protocol
from .prompt.wording import Wordings
from .python.call import PythonCalls
from .python.tags import PythonTags
from .python.type_rules import PYTHON_TYPE_RULES
from .registry import protocol_of
from .results import Between, TextResult
from .surrounded import SurroundedCalls, SurroundedCodec
from .turns import THINK_TAGS

_SPACE = re.compile(r"\s+")


def derived_protocol(constants: Mapping[str, Any]) -> Protocol:
    """Return the protocol of these constants.

    constants: {body: "derived", id, family, form, section, between, markup, thought, lost, result,
    prompt}, of which only id, family and form have to be there. A form holds the fields of its
    family.
    """
    family = _FAMILIES[constants["family"]](constants["form"])
    return replace(
        _surrounded(family, constants),
        id=constants["id"],
        title=constants.get("title", ""),
        aliases=(),
        wordings=_wordings(family, constants),
        spec=json.dumps(dict(constants), ensure_ascii=False),
    )


def _wordings(family: Protocol, constants: Mapping[str, Any]) -> Wordings:
    # with 'model' where there is a template to render tools
    if "prompt" not in constants:
        return family.wordings
    own = ("model", "{{model_prompt}}")
    return replace(family.wordings, texts=(*family.wordings.texts, own))


def _surrounded(protocol: Protocol, constants: Mapping[str, Any]) -> Protocol:
    envelope, codec = protocol.envelope, protocol.codec
    opener, closer = constants.get("thought", ("", ""))
    # Readers take these for reasoning in every format.
    thought = ("", "") if THINK_TAGS.get(opener) == closer else (opener, closer)
    own = {*envelope.heads({}), *envelope.closers}
    # Of two tokens at one place the longer one counts.
    others = set(constants.get("markup", ())) - own
    tokens = sorted(others, key=lambda token: (-len(token), token))
    markup = tuple(tokens)
    lost = tuple(constants.get("lost", ()))
    if thought[0] or markup or lost:
        whole = constants["family"] == "json"
        envelope = SurroundedCalls(envelope, markup, thought, lost, whole)
    if "section" in constants or "between" in constants:
        section = tuple(constants.get("section", ("", "")))
        codec = SurroundedCodec(codec, section, constants.get("between", "\n"))
    results = protocol.results
    if "result" in constants:
        pair = tuple(constants["result"])
        results = TextResult(Between(*pair), tuple(tag for tag in pair if tag.strip()))
    return replace(protocol, envelope=envelope, codec=codec, results=results)


def _json(form: Mapping[str, Any]) -> Protocol:
    opener, closer, shape = form["opener"], form["closer"], tuple(form["shape"])
    name, arguments = form["name_key"], form["arguments_key"]
    prefix, suffix = form.get("list", ("", ""))
    is_key = bool(form.get("name_is_key", False))
    codec = ShapedJson(opener, closer, name, arguments, name_is_key=is_key, shape=shape)
    if prefix:
        inner = replace(codec, opener="", closer="")
        edges = (opener + prefix, suffix + closer)
        return replace(
            _between(opener, closer), codec=SurroundedCodec(inner, edges, form.get("between", ", "))
        )
    grammar = JsonGrammar(opener, closer, name, arguments)
    return replace(_between(opener, closer), codec=codec, grammar=grammar)


def _between(opener: str, closer: str) -> Protocol:
    head = opener.strip()
    # Models drop the white space of a delimiter.
    closers = tuple(dict.fromkeys(text for text in (closer, closer.strip()) if text.strip()))
    envelope: Envelope
    if closers and not _SPACE.search(head):
        envelope = JsonTags((head,), closers)
    else:
        # A part of a role's header may be in the prompt: its last line tells enough.
        last = head.rsplit("\n", 1)[-1]
        headers = dict.fromkeys((_relaxed(head), _relaxed(last) if "<" in last else _relaxed(head)))
        envelope = JsonHeaders(tuple(headers), closers, runs=not closers, separators=",;")
    return Protocol(
        id="",
        envelope=envelope,
        codec=ShapedJson(opener, closer),
        tags=frozenset(("delimited",)),
        failure=FAILURE,
        signs=Signs(openers=(re.escape(head),)),
    )


def _relaxed(header: str) -> str:
    # white space may be missing, or more
    return _SPACE.sub("{ }", header.strip())


def _named(form: Mapping[str, Any]) -> Protocol:
    header, closer = form["header"], form["closer"]
    closers = tuple(dict.fromkeys(text for text in (closer, closer.strip()) if text.strip()))
    relaxed = _relaxed(header)
    frame = Frame(header.replace("{any}", "0"), closer)
    return Protocol(
        id="",
        envelope=JsonHeaders(
            (relaxed + "{ }",), closers, markup=tuple(form.get("markup", ())), runs=not closers
        ),
        codec=NamedJson(frame),
        tags=frozenset(("delimited",)),
        grammar=FramedGrammar(frame),
        failure=FAILURE,
        signs=Signs(openers=(re.escape(relaxed.split("{")[0]),)),
    )


def _tags(form: Mapping[str, Any]) -> Protocol:
    return tag_protocol(TagForm(**_tuples(form)), "")


def _slots(form: Mapping[str, Any]) -> Protocol:
    return tag_protocol(SlotForm(**_tuples(form)), "")


def _tuples(form: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in form.items()}


def _python(form: Mapping[str, Any]) -> Protocol:
    opener, closer = form["opener"], form["closer"]
    closers = tuple(dict.fromkeys(text for text in (closer, closer.strip()) if text.strip()))
    return Protocol(
        id="",
        envelope=PythonTags((opener.strip(),), closers),
        codec=PythonCalls(
            opener, closer, form["listed"], form["between"], json_words=form["json_words"]
        ),
        tags=frozenset(("delimited",)),
        type_rules=PYTHON_TYPE_RULES,
        signs=Signs(openers=(re.escape(opener.strip()),)),
    )


def _bare(form: Mapping[str, Any]) -> Protocol:
    return bare_protocol("", BareForm(**form))


def _row(form: Mapping[str, Any]) -> Protocol:
    return protocol_of(form["id"])


_FAMILIES: Mapping[str, Callable[[Mapping[str, Any]], Protocol]] = {
    "json": _json,
    "named": _named,
    "tags": _tags,
    "slots": _slots,
    "python": _python,
    "bare": _bare,
    "row": _row,
}
FAMILIES = tuple(_FAMILIES)
"""The families of which derived protocols are, and 'row' for a shipped one."""
