"""Canaries: one small question for a model and a protocol, and the proof that its answer gives of
the endpoint.

For a text protocol the model copies a call: if everything but the delimiters comes back, something
on the way took them. For `native` it calls a tool: the body that was sent shows whether the tool
was offered as a tool at all. A model that just does not do as it was told proves nothing:
`uncertain`, never `failed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, TypeAlias

from ...core.toolspec import ToolSpec
from ...core.values import write_canonical
from ...core.values.printable import counted
from ...parser.foreign.protocol import AnyProtocol
from ...parser.parse import parse_text
from ...runner.exchange.types import Completion, Model, Request
from ..arms import NATIVE, prompt_protocol
from ..chat_prompts import ChatPrompts
from ..fitting import Fitting

Verdict: TypeAlias = Literal["ok", "failed", "uncertain"]

_MARK = "Canary 7351: records one word."  # stands in the tool's description and nowhere else
_TOOL = ToolSpec.of(
    {
        "name": "record_word",
        "description": _MARK,
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
    }
)
_WORD = "heron"
_ARGUMENTS = f'{{"word":"{_WORD}"}}'
_COPY = (
    "Copy the text between the two lines of dashes exactly as it is, with every tag, bracket and "
    "sign. "
    "Write nothing else.\n-----\n{text}\n-----"
)
_CALL = f'Call the tool record_word with the word "{_WORD}".'
_PARAMS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1024}
_TOKEN = re.compile(r"</?[^<>\s]+>|`{3}\w*|\[/?[A-Z_]+\]")
_FRAME = ("<copy>", "</copy>")  # of the same form as delimiters, and no model's special token
# Members of a request's body that are texts for the model, in the words of several providers.
_IN_TEXT = ("messages", "system", "prompt", "input", "contents")
# Classes of errors that say nothing of the endpoint's way with tools.
_PASSING = ("timeout", "rate_limited", "server_error", "connection", "cut_stream", "other")
_LONGEST = 60  # characters of a delimiter that are shown
_HIDDEN = 8  # tokens that were made and left no text behind


@dataclass(frozen=True, slots=True)
class Cell:
    """The outcome of one canary.

    why: one sentence. completion: the recorded answer, None if there is none. Its `raw`,
    `reasoning` and `response["sent"]` are the evidence. notes: facts worth knowing and changes no
    verdict.
    """

    model: str
    protocol: str
    verdict: Verdict
    why: str
    completion: Completion | None = None
    notes: tuple[str, ...] = ()

    @property
    def tools_sent(self) -> bool | None:
        """True if the body held the tool as a tool.

        None if no tool was to be sent or the body is unknown.

        It is False for a body that only names the tool in its texts, as a prompt would.
        """
        if self.protocol != NATIVE or self.completion is None:
            return None
        return _offered(self.completion)


# How a verdict is reached: the canary of a text protocol asks for a copy of a call of `_TOOL`, so
# every delimiter that is missing in the answer was either not copied or taken on the way. Each
# judge below knows one way in which it was taken, and claims 'failed' only with evidence in the
# answer; the first claim counts. Without one the model may just have failed to copy: 'uncertain'.


def canary_for(
    alias: str, model: Model, protocol: AnyProtocol | None, *, stream: bool = False
) -> Request:
    """Return the question of one cell.

    The model's own parameters go before the canary's.

    alias: the name of the model in the plan.
    protocol: the text format to copy a call in, None to have a tool called natively.
    stream: whether the answer is asked for in pieces.
    """
    native = protocol is None
    prompt = _CALL
    if protocol is not None:
        prompt = _COPY.format(text=_framed(_call_text(protocol)))
    message = {"role": "user", "content": prompt}
    params = {k: v for k, v in _PARAMS.items() if k not in (model.params or {})}
    tools = (_TOOL.to_openai(),) if native else ()
    request = Request(model, alias, (message,), params, tools, stream=stream)
    if model.chat_template is not None and not native:
        request = ChatPrompts.of({alias: model}).written(request)
    return Fitting().fitted(request)


def judge(alias: str, protocol: AnyProtocol | None, completion: Completion | None) -> Cell:
    """Return the cell of one answer: its verdict, the reason, and notes that change no verdict.

    alias: the name of the model in the plan.
    protocol: as for `canary_for`, None for native.
    completion: the recorded answer, None if there is none yet.
    """
    name = prompt_protocol(protocol)
    verdict, why = _verdict(protocol, completion)
    notes = () if completion is None else tuple(_notes(completion))
    return Cell(alias, name, verdict, why, completion, notes)


def _notes(completion: Completion) -> Iterator[str]:
    # Reasoning that came apart from the text, and switches of litellm that were set.
    if completion.reasoning:
        size = counted(len(completion.reasoning), "character")
        yield f"reasoning came apart from the text ({size}); it is recorded"

    switches = (completion.response or {}).get("litellm")
    if switches:
        yield f"litellm was set: {', '.join(switches)}"


def _verdict(protocol: AnyProtocol | None, completion: Completion | None) -> tuple[Verdict, str]:
    # A missing answer and errors that pass are 'uncertain'. Other errors are 'failed', because an
    # endpoint that refuses the question refuses every such question.
    if completion is None:
        return "uncertain", "there is no answer"
    if protocol is None and completion.endpoint_kind == "raw_completion":
        return "failed", "a raw-completion endpoint takes no tools"
    if not completion.ok:
        kind = completion.error_kind or "other"
        # An error that may be gone the next time proves nothing.
        verdict: Verdict = "uncertain" if kind in _PASSING else "failed"
        return verdict, f"{kind}: {completion.error_message or 'no message'}"

    return _judge_native(completion) if protocol is None else _judge_text(protocol, completion)


# text


def _call_text(protocol: AnyProtocol) -> str:
    # The protocol's own joining is used, because some formats put all calls of an answer into one
    # frame. Its delimiters are looked for in the answer.
    return protocol.join_calls([protocol.write_call(_TOOL.name, _ARGUMENTS, _TOOL)])


def _framed(text: str) -> str:
    # Between two tags that no format has: a provider that strips white space at the ends of an
    # answer so does no harm to the text itself.
    return f"{_FRAME[0]}\n{text}\n{_FRAME[1]}"


def _judge_text(protocol: AnyProtocol, completion: Completion) -> tuple[Verdict, str]:
    # Delimiters are the tags, fences and bracketed words of the written call. A format that has
    # none of them counts as one delimiter as a whole.
    if completion.endpoint_kind == "native_tools":
        return (
            "failed",
            "the endpoint read the call itself: the text is gone; turn its tool-call parser off",
        )

    text = _call_text(protocol)
    delimiters = list(dict.fromkeys(_TOKEN.findall(text))) or [text]
    missing = [d for d in delimiters if d not in completion.raw]
    if not missing:
        return "ok", f"all of {_names(delimiters)} came back"

    for claim in (_moved_to_reasoning, _escaped, _stripped, _withheld):
        why = claim(completion, text, missing)
        if why is not None:
            return "failed", why

    return "uncertain", f"the model did not copy the text; {_names(missing)} did not come back"


def _moved_to_reasoning(completion: Completion, text: str, missing: list[str]) -> str | None:
    # Each claim takes the recorded answer, the call to be copied and the delimiters that are not in
    # the answer, and returns its sentence or None.
    if not all(d in completion.reasoning for d in missing):
        return None
    return f"{_names(missing)} came back in the reasoning, which somebody split off the text"


def _escaped(completion: Completion, text: str, missing: list[str]) -> str | None:
    # Only if every missing tag is there as entities of HTML.
    tags = [d for d in missing if "<" in d]
    if not tags or not all(escape(tag, quote=False) in completion.raw for tag in tags):
        return None
    return f"{_names(missing)} came back escaped, as HTML"


def _stripped(completion: Completion, text: str, missing: list[str]) -> str | None:
    # All but special tokens came back. White space is not compared: a server that strips a token
    # may take the space next to it.
    rest = _framed(text)
    for delimiter in missing:
        rest = rest.replace(delimiter, "")

    # Without the word in the rest, an empty answer would pass for a copy.
    if _WORD not in rest or _squeezed(completion.raw) != _squeezed(rest):
        return None

    return f"everything came back but {_names(missing)}: special tokens are stripped on the way"


def _withheld(completion: Completion, text: str, missing: list[str]) -> str | None:
    # A provider that counts no tokens gives no evidence.
    tokens = completion.completion_tokens or 0
    if completion.raw or completion.reasoning or tokens < _HIDDEN:
        return None
    return f"{tokens} tokens were made, and no text came: the endpoint keeps it"


def _squeezed(text: str) -> str:
    # Models copy white space carelessly.
    return "".join(text.split())


def _names(delimiters: list[str]) -> str:
    return ", ".join(d if len(d) <= _LONGEST else d[: _LONGEST - 1] + "…" for d in delimiters)


# native


def _judge_native(completion: Completion) -> tuple[Verdict, str]:
    # A call counts only where the body is recorded and offers the tool as a tool.
    switches = (completion.response or {}).get("litellm") or {}
    if switches.get("add_function_to_prompt"):
        return "failed", "litellm.add_function_to_prompt is set: tools become words of the prompt"

    offered = _offered(completion)
    if offered is False:
        if _MARK in write_canonical(_parts(completion, inside=True)):
            return "failed", "litellm put the tool into the prompt instead of offering it"
        return "failed", "the body that was sent offers no tool"

    calls = parse_text(completion.raw, "openai_json", [_TOOL]).calls
    if any(call.name == _TOOL.name for call in calls):
        if offered is None:
            return "uncertain", "the tool was called, but the body that was sent is not known"
        return "ok", "the tool was offered and called"

    protocol = _protocol_in_text(completion)
    if protocol is not None:
        return (
            "failed",
            f"the call stands in the text, as {protocol}: the endpoint's tool-call parser is off "
            "or another",
        )

    return "uncertain", "the tool was offered, and the model did not call it"


def _protocol_in_text(completion: Completion) -> str | None:
    # Searched by every protocol that 'auto' knows.
    text = parse_text(completion.raw, "openai_json").text
    protocols = (c.protocol for c in parse_text(text, "auto", [_TOOL]).calls if c.ok)
    return next(protocols, None)


def _offered(completion: Completion) -> bool | None:
    # None if it is unknown. The mark is only in the tool's description: outside the texts it means
    # that the tool itself is there.
    body = (completion.response or {}).get("sent")
    if not isinstance(body, Mapping):
        return None
    # A member that was sent as it was asked for is not recorded twice.
    if "tools" not in body:
        return True

    return _MARK in write_canonical(_parts(completion, inside=False))


def _parts(completion: Completion, *, inside: bool) -> dict[str, Any]:
    # inside: True for texts (messages, prompts), False for everything else (tools, parameters).
    body = (completion.response or {}).get("sent") or {}
    return {k: v for k, v in body.items() if (k in _IN_TEXT) is inside}
