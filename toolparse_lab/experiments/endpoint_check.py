"""Canaries: one small question for a model and a protocol, and the proof that its answer gives of
the endpoint.

For a text protocol the model copies a call: if everything but the delimiters comes back, something
on the way took them. For `native` it calls a tool: the body that was sent shows whether the tool
was offered as a tool at all. A model that just does not do as it was told proves nothing:
`uncertain`, never `failed`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..core.errors import BadPlan
from ..core.toolspec import ToolSpec
from ..core.values import write_canonical
from ..core.values.printable import counted
from ..entry.foreign.protocol import AnyProtocol
from ..entry.parse import parse_text
from ..runner.exchange.types import Completion, Model, Request
from ..runner.loop import run_sync
from ..runner.pool import run_requests
from ..runner.store.store import Store
from ..views.show import one_line, visible
from .arms import NATIVE, prompt_protocol, prompt_protocols
from .models import ChatPrompts, Fitting
from .plan import Plan

if TYPE_CHECKING:
    from ..evals.frames.recorded import Frame

Verdict: TypeAlias = Literal["ok", "failed", "uncertain"]

_MARK = "Canary 7351: records one word."  # in the tool's description and nowhere else
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
_MOST_SHOWN = 160  # characters of an answer in the table
_STYLE = 'style="text-align:left;vertical-align:top;padding-right:1em"'
_COLORS = {"ok": "#1a7f37", "failed": "#cf222e", "uncertain": "#9a6700"}
_LONGEST = 60  # characters of a delimiter that are shown
_HIDDEN = 8  # tokens that were made without any text


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
        """True if the body held the tool as a tool, False for one that only names it in its texts,
        as a prompt would. None if no tool was to be sent or the body is unknown.
        """
        if self.protocol != NATIVE or self.completion is None:
            return None
        return _offered(self.completion)


# How a verdict is reached: the canary of a text protocol asks for a copy of a call of `_TOOL`, so
# every delimiter that is missing in the answer was either not copied or taken on the way. `failed`
# takes evidence in the answer of one way in which it was taken; the first counts. Without any the
# model may just have failed to copy: `uncertain`.


def canary_for(
    alias: str, model: Model, protocol: AnyProtocol | None, *, stream: bool = False
) -> Request:
    """Return the question of one cell. The model's own parameters go before the canary's.

    protocol: the text format to copy a call in, None to have a tool called natively.
    """
    native = protocol is None
    prompt = _CALL if protocol is None else _COPY.format(text=_framed(_call_text(protocol)))
    params = {k: v for k, v in _PARAMS.items() if k not in (model.params or {})}
    tools = (_TOOL.to_openai(),) if native else ()
    message = {"role": "user", "content": prompt}
    request = Request(model, alias, (message,), params, tools, stream=stream)
    if model.chat_template is not None and not native:
        request = ChatPrompts.of({alias: model}).written(request)
    return Fitting().fitted(request)


def judge(alias: str, protocol: AnyProtocol | None, completion: Completion | None) -> Cell:
    """Return the cell of one answer: its verdict, the reason, and notes that change no verdict.

    protocol: as for `canary_for`. completion: the recorded answer, None if there is none yet.
    """
    verdict, why = _verdict(protocol, completion)
    notes = []
    if completion is not None and completion.reasoning:
        size = counted(len(completion.reasoning), "character")
        notes.append(f"reasoning came apart from the text ({size}); it is recorded")
    switches = completion and (completion.response or {}).get("litellm")
    if switches:
        notes.append(f"litellm was set: {', '.join(switches)}")
    return Cell(alias, prompt_protocol(protocol), verdict, why, completion, tuple(notes))


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
    text, raw = _call_text(protocol), completion.raw
    delimiters = list(dict.fromkeys(_TOKEN.findall(text))) or [text]
    missing = [d for d in delimiters if d not in raw]
    if not missing:
        return "ok", f"all of {_names(delimiters)} came back"
    names = _names(missing)
    if all(d in completion.reasoning for d in missing):
        return "failed", f"{names} came back in the reasoning, which somebody split off the text"
    tags = [d for d in missing if "<" in d]
    if tags and all(escape(tag, quote=False) in raw for tag in tags):
        return "failed", f"{names} came back escaped, as HTML"
    # All but special tokens came back? White space is not compared: models copy it carelessly, and
    # a server that strips a token may take the space next to it.
    rest = _framed(text)
    for delimiter in missing:
        rest = rest.replace(delimiter, "")
    # Without the word in the rest, an empty answer would pass for a copy.
    if _WORD in rest and "".join(raw.split()) == "".join(rest.split()):
        return (
            "failed",
            f"everything came back but {names}: special tokens are stripped on the way",
        )
    # A provider that counts no tokens gives no evidence.
    tokens = completion.completion_tokens or 0
    if not raw and not completion.reasoning and tokens >= _HIDDEN:
        return "failed", f"{tokens} tokens were made, and no text came: the endpoint keeps it"
    return "uncertain", f"the model did not copy the text; {names} did not come back"


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

    # Searched by every protocol that 'auto' knows.
    text = parse_text(completion.raw, "openai_json").text
    found = next((c.protocol for c in parse_text(text, "auto", [_TOOL]).calls if c.ok), None)
    if found is not None:
        return (
            "failed",
            f"the call is in the text, as {found}: the endpoint's tool-call parser is off or "
            "another",
        )
    return "uncertain", "the tool was offered, and the model did not call it"


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


class Check(Sequence[Cell]):
    """The cells of a check, each with its verdict, its reason and its evidence.

    Shows itself as a table. `frame()` is the same with all the evidence.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells = tuple(cells)

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, index: Any) -> Any:
        """Return a cell by its place, or by (model alias, protocol).

        A slice gives a tuple of cells. Raises KeyError.
        """
        if isinstance(index, tuple):
            for cell in self._cells:
                if (cell.model, cell.protocol) == index:
                    return cell
            raise KeyError(index)
        return self._cells[index]

    @property
    def ok(self) -> bool:
        """No cell failed. An uncertain cell proves nothing."""
        return not self.failed

    @property
    def failed(self) -> tuple[Cell, ...]:
        """The cells that failed, in the order of the table."""
        return tuple(c for c in self._cells if c.verdict == "failed")

    def frame(self) -> Frame:
        """Return one row per cell: model, protocol, verdict, why, and the request sent and
        received.

        The request sent is in the column `sent_json`, the response in `raw` and `reasoning`.
        """
        from ..evals.frames.dtypes import build_frame  # pandas: 0.5 s

        rows = [_row(cell) for cell in self._cells]
        names = rows[0] if rows else ()
        columns = {name: [row[name] for row in rows] for name in names}
        return build_frame("checks", columns, len(rows))

    def __str__(self) -> str:
        if not self._cells:
            return "nothing was checked"
        heads = [(cell.model, cell.protocol, cell.verdict) for cell in self._cells]
        sizes = [max(map(len, column)) for column in zip(*heads, strict=True)]
        lines = []
        for cell, words in zip(self._cells, heads, strict=True):
            head = "  ".join(word.ljust(size) for word, size in zip(words, sizes, strict=True))
            lines.append(f"{head}  {cell.why}")
            # Notes are below the reason.
            lines += [f"{' ' * len(head)}  {note}" for note in cell.notes]
        return visible("\n".join(lines))

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        titles = ("model", "protocol", "verdict", "why", "answer")
        head = "".join(f"<th {_STYLE}>{title}</th>" for title in titles)
        body = ""
        for cell in self._cells:
            # Texts of models and providers are escaped.
            answer = one_line(cell.completion.raw if cell.completion else "", _MOST_SHOWN)
            columns = (
                escape(cell.model),
                escape(cell.protocol),
                f'<b style="color:{_COLORS[cell.verdict]}">{cell.verdict}</b>',
                "<br>".join(escape(visible(sentence)) for sentence in (cell.why, *cell.notes)),
                f'<code style="overflow-wrap:anywhere">{escape(answer)}</code>',
            )
            body += f"<tr>{''.join(f'<td {_STYLE}>{column}</td>' for column in columns)}</tr>"
        html = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return {"text/plain": str(self), "text/html": html}


def _row(cell: Cell) -> dict[str, Any]:
    # Every row has the same columns in the same order: the first one names those of the frame. The
    # request sent is canonical JSON, because a body has no fixed members.
    one = cell.completion
    body = (one.response or {}).get("sent") if one else None
    return {
        "model": cell.model,
        "protocol": cell.protocol,
        "verdict": cell.verdict,
        "why": cell.why,
        "notes": "; ".join(cell.notes) or None,
        "tools_sent": cell.tools_sent,
        "raw": one.raw if one else None,
        "reasoning": (one.reasoning or None) if one else None,
        "finish_reason": one.finish_reason if one else None,
        "error": one.error_kind if one else None,
        "endpoint_kind": one.endpoint_kind if one else None,
        "sent_json": None if body is None else write_canonical(body),
        "completion_key": one.key if one else None,
    }


_HINT = (
    "see lab.check(models, ['native']); to run it all the same: lab.run(plan, despite_check=True)"
)


def check_cells(
    models: Mapping[str, Model],
    protocols: Any,
    store: Store,
    *,
    complete: Callable[..., Any] | None = None,
    stream: bool = False,
) -> Check:
    """Ask every canary again, record the answers and judge them.

    models: by alias. protocols: as for `Lab.plan`. complete: the function that asks, None for
    litellm. Raises BadPlan for no protocols, UnknownProtocol, and what the runner raises before
    anything is sent.
    """
    canaries: list[tuple[str, AnyProtocol | None, Request]] = [
        (alias, protocol, canary_for(alias, model, protocol, stream=stream))
        for alias, model in models.items()
        for protocol in prompt_protocols(protocols)
    ]
    # An answer of yesterday says nothing of the endpoint of today.
    requests = [request for *_, request in canaries]
    run_sync(run_requests(requests, store, complete=complete, fresh=True, progress=False))
    return Check([_latest(store, *canary) for canary in canaries])


def refuse_failed(plan: Plan, store: Store) -> None:
    """Raise BadPlan if a native arm of the plan would measure something else.

    That is so where its latest canary failed, or where litellm is set to write tools into the
    prompt. A plan without native arms passes, and so does a model that was never checked.
    """
    if not any(arm.native for arm in plan.arms):
        return

    litellm = sys.modules.get("litellm")  # a switch of a module that is not imported cannot be set
    if getattr(litellm, "add_function_to_prompt", False):
        raise BadPlan(
            "litellm.add_function_to_prompt is set: it writes tools into the prompt, so nothing "
            "is native",
            got="add_function_to_prompt = True",
            hint="set it to False",
        )

    for alias, model in plan.models.items():
        cell = _latest(store, alias, None, canary_for(alias, model, None, stream=plan.stream))
        if cell.verdict == "failed":
            raise BadPlan(
                f"the native arm of {alias!r} failed its canary", got=cell.why, hint=_HINT
            )


def _latest(store: Store, alias: str, protocol: AnyProtocol | None, request: Request) -> Cell:
    # Answers come oldest first. Without one the verdict is 'uncertain'.
    history = store.history(request.key)
    return judge(alias, protocol, history[-1] if history else None)
