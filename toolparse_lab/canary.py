"""Canaries: one small question for a model and a protocol, and what its answer proves of the endpoint.

For a text protocol the model copies a call: if everything but the delimiters comes back, something on the way took
them. For `native` it calls a tool: the body that was sent shows whether the tool was offered as a tool at all. A model
that just does not do as it was told proves nothing: `uncertain`, never `failed`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, TypeAlias

from .api import parse_text
from .arms import NATIVE
from .protocols.base import Protocol
from .registry import protocol_of
from .runner.types import Completion, Model, Request
from .toolspec import ToolSpec
from .values import write_canonical

Verdict: TypeAlias = Literal["ok", "failed", "uncertain"]

_MARK = "Canary 7351: records one word."  # stands in the tool's description and nowhere else
_TOOL = ToolSpec.of(
    {
        "name": "record_word",
        "description": _MARK,
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    }
)
_WORD = "heron"
_ARGUMENTS = f'{{"word":"{_WORD}"}}'
_COPY = (
    "Copy the text between the two lines of dashes exactly as it is, with every tag, bracket and sign. "
    "Write nothing else.\n-----\n{text}\n-----"
)
_CALL = f'Call the tool record_word with the word "{_WORD}".'
_PARAMS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1024}
_TOKEN = re.compile(r"</?[^<>\s]+>|`{3}\w*|\[/?[A-Z_]+\]")
_FRAME = ("<copy>", "</copy>")  # of the same form as delimiters, and no model's special token
_IN_TEXT = ("messages", "system", "prompt", "input", "contents")
_PASSING = ("timeout", "rate_limited", "server_error", "connection", "cut_stream", "other")
_LONGEST = 60  # characters of a delimiter that are shown
_HIDDEN = 8  # tokens that were made and left no text behind


@dataclass(frozen=True, slots=True)
class Cell:
    """What one canary showed.

    why: one sentence. completion: the recorded answer, None where there is none; its `raw`, `reasoning` and
    `response["sent"]` are the evidence. notes: what is worth knowing and changes no verdict.
    """

    model: str
    protocol: str
    verdict: Verdict
    why: str
    completion: Completion | None = None
    notes: tuple[str, ...] = ()

    @property
    def tools_sent(self) -> bool | None:
        """Whether the body held the tool as a tool; None where no tool was to be sent or the body is not known."""
        return None if self.protocol != NATIVE or self.completion is None else _offered(self.completion)


def canary_for(alias: str, model: Model, protocol: str | Protocol, *, stream: bool = False) -> Request:
    """The question of one cell. The model's own parameters go before the canary's."""
    native = protocol == NATIVE
    said = _CALL if native else _COPY.format(text=_framed(_written(protocol)))
    params = {k: v for k, v in _PARAMS.items() if k not in (model.params or {})}
    tools = (_TOOL.to_openai(),) if native else ()
    return Request(model, alias, ({"role": "user", "content": said},), params, tools, stream=stream)


def judge(alias: str, protocol: str | Protocol, completion: Completion | None) -> Cell:
    """What the answer to a canary proves."""
    name = protocol if isinstance(protocol, str) else protocol.id
    verdict, why = _judged(protocol, completion)
    notes = []
    if completion is not None and completion.reasoning:
        notes.append(f"reasoning came apart from the text ({len(completion.reasoning)} characters); it is recorded")
    if completion is not None and (switches := (completion.response or {}).get("litellm")):
        notes.append(f"litellm was set: {', '.join(switches)}")
    return Cell(alias, name, verdict, why, completion, tuple(notes))


def _judged(protocol: str | Protocol, completion: Completion | None) -> tuple[Verdict, str]:
    if completion is None:
        return "uncertain", "there is no answer"
    if protocol == NATIVE and completion.endpoint_kind == "raw_completion":
        return "failed", "a raw-completion endpoint takes no tools"
    if not completion.ok:
        kind, message = completion.error_kind or "other", completion.error_message or "no message"
        return ("uncertain" if kind in _PASSING else "failed"), f"{kind}: {message}"
    return _judge_native(completion) if protocol == NATIVE else _judge_text(protocol, completion)


# text


def _written(protocol: str | Protocol) -> str:
    chosen = protocol_of(protocol)
    return chosen.join_calls([chosen.write_call(_TOOL.name, _ARGUMENTS, _TOOL)])


def _framed(text: str) -> str:
    return f"{_FRAME[0]}\n{text}\n{_FRAME[1]}"


def _judge_text(protocol: str | Protocol, completion: Completion) -> tuple[Verdict, str]:
    written = _written(protocol)
    delimiters = list(dict.fromkeys(_TOKEN.findall(written))) or [written]
    raw = completion.raw
    if completion.endpoint_kind == "native_tools":
        return "failed", "the endpoint read the call itself: the text is gone; turn its tool-call parser off"
    missing = [d for d in delimiters if d not in raw]
    if not missing:
        return "ok", f"all of {_listed(delimiters)} came back"
    if all(d in completion.reasoning for d in missing):
        return "failed", f"{_listed(missing)} came back in the reasoning, which somebody split off the text"
    if all(escape(d, quote=False) in raw for d in missing if "<" in d) and any("<" in d for d in missing):
        return "failed", f"{_listed(missing)} came back escaped, as HTML"
    rest = _framed(written)
    for d in missing:
        rest = rest.replace(d, "")
    if _WORD in rest and _squeezed(raw) == _squeezed(rest):
        return "failed", f"everything came back but {_listed(missing)}: special tokens are stripped on the way"
    if not raw and not completion.reasoning and (completion.completion_tokens or 0) >= _HIDDEN:
        made = completion.completion_tokens
        return "failed", f"{made} tokens were made, and no text came: the endpoint keeps it"
    return "uncertain", f"the model did not copy the text; {_listed(missing)} did not come back"


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _listed(delimiters: list[str]) -> str:
    return ", ".join(d if len(d) <= _LONGEST else d[: _LONGEST - 1] + "…" for d in delimiters)


# native


def _judge_native(completion: Completion) -> tuple[Verdict, str]:
    switches = (completion.response or {}).get("litellm") or {}
    if switches.get("add_function_to_prompt"):
        return "failed", "litellm.add_function_to_prompt is set: tools become words of the prompt"
    offered = _offered(completion)
    if offered is False:
        told = _MARK in write_canonical(_parts(completion, inside=True))
        return "failed", (
            "litellm put the tool into the prompt instead of offering it"
            if told
            else "the body that was sent offers no tool"
        )
    calls = parse_text(completion.raw, "openai_json", [_TOOL]).calls
    if any(c.name == _TOOL.name for c in calls):
        if offered is None:
            return "uncertain", "the tool was called, but the body that was sent is not known"
        return "ok", "the tool was offered and called"
    text = parse_text(completion.raw, "openai_json").text
    spoken = [c.protocol for c in parse_text(text, "auto", [_TOOL]).calls if c.ok]
    if spoken:
        return (
            "failed",
            f"the call stands in the text, as {spoken[0]}: the endpoint's tool-call parser is off or another",
        )
    return "uncertain", "the tool was offered, and the model did not call it"


def _offered(completion: Completion) -> bool | None:
    """Whether the body as sent holds the tool outside its texts; None where the body is not known."""
    sent = (completion.response or {}).get("sent")
    if not isinstance(sent, Mapping):
        return None
    if "tools" not in sent:  # what was sent as it was asked for is not recorded twice
        return True
    return _MARK in write_canonical(_parts(completion, inside=False))


def _parts(completion: Completion, *, inside: bool) -> dict[str, Any]:
    """The members of the body that are texts for the model, or all others."""
    sent = (completion.response or {}).get("sent") or {}
    return {k: v for k, v in sent.items() if (k in _IN_TEXT) is inside}
