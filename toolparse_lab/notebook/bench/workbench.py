"""The workbench: change a text or how it is read, and see the parse change."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from ...core.errors import BadOptions, ToolparseError
from ...core.toolspec import ToolsLike
from ...core.types import ParseResult
from ...evals.parsers.compare import compare, compared_html
from ...evals.scoring.exports import faults_of
from ...formats.like import ProtocolLike
from ...views import render_result, render_side_by_side
from ...views.html import look_of, view_of
from ...views.rows import Fault
from ...views.sentences import sentence_of_answer
from ...views.show import shorten, visible
from ...views.stages import parts_of
from ...views.templating import Markup, macro
from ..page import as_widget
from ..widget import Screen
from .view import (
    EVENT_WORDS,
    KINDS,
    POLICIES,
    Setup,
    choices,
    conversation_of,
    next_steps,
    setups_of,
    snippet_of,
    timeline_of,
    written,
)

TEMPLATE = "notebook/templates/bench.html"
_PARSE = "views/templates/parse.html"
_ANSWER = "notebook/templates/answer.html"
_MOST_UNDOS = 200
_LABELS = {"protocol": "Read as", "coerce": "Policy", "reasoning": "Reasoning"}
_KEEP = {"pytest": "As a test", "python": "As Python", "curl": "The request as curl"}


class Workbench(Screen):
    """The interactive workbench, as `tp.workbench(…)` shows it. `result` and `setup` have the
    changes of a person, for the next cell.
    """

    def __init__(self, subjects: list[Setup], **traits: Any) -> None:
        self._desk = Desk(subjects)
        super().__init__(_html=as_widget(self._desk.html()), **traits)

    @property
    def setup(self) -> Setup:
        """The text shown and how it was read, with the changes of a person."""
        return self._desk.setup

    @property
    def result(self) -> ParseResult:
        """The parse shown."""
        return self._desk.result

    def answer(self, message: Any) -> dict[str, Any] | None:
        """Return the answer to a message of the front end, see `Desk.answer`."""
        return self._desk.answer(message)

    def page(self) -> str:
        """Return what a page of its own begins with, which finds the text as it is now."""
        return f'<div class="doc">{self._desk.html()}</div>'

    def static_html(self) -> str:
        """Return the present view as HTML without JavaScript."""
        words = Markup('<div class="tpx"><p class="soft">{}</p><p class="why">{}</p></div>').format(
            shorten(self.setup.title, 200), self._desk.sentence
        )
        return f"{words}{render_result(self.result, self._desk.faults)}"

    def _heading(self) -> str:
        return "Workbench"

    def _words(self) -> str:
        return visible(str(self.result))


def workbench(
    subject: Any, protocol: ProtocolLike = "auto", tools: ToolsLike = None, **options: Any
) -> Workbench:
    """Open the workbench, see `tp.workbench`. Raises BadOptions for another subject."""
    if options and not isinstance(subject, str):
        raise BadOptions(
            "options say how a text is read; this has been read already", got=min(options)
        )
    return Workbench(setups_of(subject, protocol, tools, **options))


class Desk:
    """The setups on the workbench, and the answers to its front end, whatever carries them.

    `setup` is the present one with the person's changes, `result` its parse, `faults` where that
    is not what was expected. back: it stands in the place of an answer, which it leads back to.
    """

    def __init__(self, subjects: list[Setup], *, back: bool = False) -> None:
        self._subjects = subjects
        self._back = back
        self._index = 0
        self._undos: list[Setup] = []
        self._error = ""
        self._milliseconds = 0.0
        self.setup = subjects[0]
        self.result: ParseResult
        self.faults: list[Fault] = []
        self._read()

    @property
    def sentence(self) -> str:
        """What is wrong with the text as it is read now."""
        return shorten(sentence_of_answer(self.result, self.faults), 600)

    def _read(self) -> None:
        start = time.perf_counter()
        result = self.setup.parse()
        self._milliseconds = (time.perf_counter() - start) * 1000
        target = self.setup.target
        self.faults = [] if target is None else faults_of(result, target, self.setup.tools)
        self.result = result

    def html(self) -> str:
        """Return the whole workbench."""
        view = macro(_PARSE, "view", self._view())
        return str(macro(TEMPLATE, "bench", {**self._shown(), **self._around(), "view": view}))

    def _view(self) -> dict[str, Any]:
        # The parse view, in which a reading can be put in the text where its format can write it.
        parts = parts_of(self.result, self.faults)
        self._marks = parts.marks
        view = view_of(self.result, parts, self.faults, "raw", editor=True)
        for card in view["cards"]:
            call = self.result.calls[card["at"]["call"]]
            if written(self.setup, call, call.readings[card["at"]["reading"]]) is not None:
                card["ask"] = json.dumps({"kind": "take", **card["at"]})
        return view

    def _shown(self) -> dict[str, Any]:
        # What changes with the text.
        result, setup = self.result, self.setup
        executable = bool(result.calls) and all(call.valid for call in result.calls)
        look, pill = "good", "✓ Can be executed"
        if not executable:
            look, pill = (
                ("bad", "✗ Cannot be executed") if result.calls else look_of(result.verdict)
            )
        stuck = look == "bad"
        if self.faults and executable:
            look, pill = "bad", "✗ Not what was expected"
        recorded = self._subjects[self._index]
        said = "Text as recorded" if setup.raw == recorded.raw else "Text changed"
        selects = [
            (name, label, _with(choices()[name], chosen), chosen)
            for name, label in _LABELS.items()
            for chosen in [
                setup.protocol.id if name == "protocol" else getattr(setup.options, name)
            ]
        ]
        return {
            "look": look,
            "pill": pill,
            "stuck": stuck,
            "sentence": self.sentence,
            "said": f"{said} · parsed in {self._milliseconds:.1f} ms",
            "error": self._error,
            "wanted": [fault.sentence for fault in self.faults],
            "selects": selects,
            "switches": [(name, getattr(setup.options, name)) for name in ("repair", "recover")],
            "undos": len(self._undos),
            "changed": setup != recorded,
        }

    def _around(self) -> dict[str, Any]:
        # What stays as it is while a text is changed.
        setup = self.setup
        offered = choices()
        return {
            "raw": setup.raw,
            "marks": json.dumps(self._marks),
            "back": self._back,
            "title": shorten(setup.title, 200),
            "count": len(self._subjects),
            "at": f"{self._index + 1:,} of {len(self._subjects):,}",
            "formats": len(offered["protocol"]) - 1,
            "others": [
                (f"{name} {choice}", f"{label.lower()} {choice}")
                for name, label in (("coerce", "Policy"), ("protocol", "Read as"))
                for choice in offered[name]
            ],
            "tools": json.dumps([t.to_dict() for t in setup.tools], ensure_ascii=False, indent=1),
            "tool_names": shorten(", ".join(tool.name for tool in setup.tools) or "none", 200),
            "asked": conversation_of(setup),
            "exchange": [(name, shorten(text, 100_000)) for name, text in setup.exchange.items()],
            "kinds": [(kind, _KEEP[kind]) for kind in KINDS],
        }

    def answer(self, message: Any) -> dict[str, Any] | None:
        """Return the answer to a message of the front end: the HTML of the parts that changed, and
        the marks of the text. What cannot be is told in words. None for a message of no known kind.
        """
        kind = message.get("kind") if isinstance(message, Mapping) else None
        before = self.setup, self._index, list(self._undos)
        try:
            if kind in _CHANGES:
                return _CHANGES[kind](self, message)
            if kind in _QUESTIONS:
                return {"html": _QUESTIONS[kind](self, message)}
        except ToolparseError as e:
            self._error = visible(str(e))
            shown = macro(TEMPLATE, "status", self._shown())
            self._error = ""
            return {"html": str(shown), "error": visible(str(e))}
        except Exception:
            # Members that are not what they should be; what they changed is taken back.
            self.setup, self._index, self._undos = before
            self._read()
            raise
        return None

    # what changes the text or how it is read

    def _change(self, setup: Setup, *, typed: bool = False) -> dict[str, Any]:
        if setup != self.setup:
            self._undos = [*self._undos[1 - _MOST_UNDOS :], self.setup]
        return self._show(setup, typed=typed)

    def _show(self, setup: Setup, *, typed: bool = False) -> dict[str, Any]:
        before = self.setup
        self.setup = setup
        try:
            self._read()
        except Exception:
            self.setup = before
            raise
        view, shown = self._view(), self._shown()
        html = [macro(TEMPLATE, name, shown) for name in ("options", "status", "after")]
        bench: dict[str, Any] = {"marks": self._marks}
        if not typed:
            bench["raw"] = setup.raw
        return {
            "html": "".join([*map(str, html), str(macro(_PARSE, "bits", view))]),
            "bench": bench,
        }

    def _edit(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return self._change(self.setup.changed({"raw": str(message["raw"])}), typed=True)

    def _values(self, message: Mapping[str, Any]) -> dict[str, Any]:
        values = message.get("values") or {}
        typed = "raw" not in values
        return self._change(self.setup.changed(dict(values)), typed=typed)

    def _undo(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return self._show(self._undos.pop() if self._undos else self.setup)

    def _reset(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return self._change(self._subjects[self._index])

    def _take(self, message: Mapping[str, Any]) -> dict[str, Any]:
        call = self.result.calls[int(message["call"])]
        text = written(self.setup, call, call.readings[int(message["reading"])])
        return self._change(self.setup.changed({"raw": text or self.setup.raw}))

    def _go(self, message: Mapping[str, Any]) -> dict[str, Any]:
        # To another subject, as it was recorded.
        self._index = (self._index + int(message.get("by") or 0)) % len(self._subjects)
        self.setup, self._undos = self._subjects[self._index], []
        self._read()
        return {"html": self.html()}

    # what is asked about it

    def _next(self, message: Mapping[str, Any]) -> str:
        steps = [
            (step["words"], json.dumps({"kind": "values", "values": step["values"]}))
            for step in next_steps(self.setup, self.result)
        ]
        return str(macro(_ANSWER, "next", steps))

    def _compare(self, message: Mapping[str, Any]) -> str:
        readings = compare(self.setup.raw, self.setup.tools, options=self.setup.options).readings
        asks = {
            r.name: json.dumps({"kind": "values", "values": {"protocol": r.name}}) for r in readings
        }
        return compared_html(readings, asks)

    def _beside(self, message: Mapping[str, Any]) -> str:
        other = str((message.get("values") or {}).get("other") or f"coerce {POLICIES[0]}")
        name, _, choice = other.partition(" ")
        there = self.setup.changed({name: choice}).parse()
        words = f"{_LABELS[name].lower()} {choice}"
        html = render_side_by_side(self.result, there, ("as above", words))
        return f'<div data-part="beside">{html}</div>'

    def _stream(self, message: Mapping[str, Any]) -> str:
        values = message.get("values") or {}
        timeline = timeline_of(self.setup, int(values.get("size") or 0))
        last = len(timeline["ends"]) - 1
        # The end at first, and for chunks of another size.
        moved = message.get("changed") == ["step"]
        step = min(max(int(values.get("step") or 0), 0), last) if moved else last
        return str(macro(TEMPLATE, "stream", _replayed(self.setup.raw, timeline, step)))

    def _keep(self, message: Mapping[str, Any]) -> str:
        text = snippet_of(self.setup, self.result, str(message.get("as")))
        return str(macro(TEMPLATE, "kept", text))


_CHANGES = {
    "edit": Desk._edit,
    "values": Desk._values,
    "undo": Desk._undo,
    "reset": Desk._reset,
    "take": Desk._take,
    "go": Desk._go,
}
_QUESTIONS = {
    "next": Desk._next,
    "compare": Desk._compare,
    "beside": Desk._beside,
    "stream": Desk._stream,
    "keep": Desk._keep,
}


def _with(names: list[str], chosen: str) -> list[str]:
    return names if chosen in names else [chosen, *names]


def _replayed(raw: str, timeline: Mapping[str, Any], step: int) -> dict[str, Any]:
    """Return what a replay has come to after a chunk: text, thought and calls as far as they are
    settled, what is held back, and the events of the chunk.
    """
    pieces: list[list[Any]] = []
    for events in timeline["events"][: step + 1]:
        for kind, start, end, _ in events:
            if kind == "Retract":
                pieces = [[k, s, min(e, start)] for k, s, e in pieces if s < start]
            elif end > start:
                # The body of a call comes in many pieces, and is drawn as one.
                if pieces and pieces[-1][0] == kind and pieces[-1][2] == start:
                    pieces[-1][2] = end
                else:
                    pieces.append([kind, start, end])
    fed, settled = timeline["ends"][step], timeline["settled"][step]
    drawn = [(_LOOKS.get(k, ""), EVENT_WORDS.get(k, k), raw[s:e]) for k, s, e in pieces]
    if fed > settled:
        drawn.append(("held", "held back: it may still be a part of a call", raw[settled:fed]))
    if fed < len(raw):
        drawn.append(("later", "not there yet", raw[fed:]))
    last = len(timeline["ends"]) - 1
    place = "the end of the text" if step == last else f"chunk {step + 1:,} of {last:,}"
    return {
        "last": last,
        "step": step,
        "said": f"{place}, {fed:,} characters, {max(fed - settled, 0):,} held back",
        "silent": "Nothing new is settled." if fed > settled else "No event.",
        "pieces": drawn,
        "events": [
            (EVENT_WORDS.get(k, k), f"“{shorten(raw[s:e], 60)}” {said}" if e > s else said)
            for k, s, e, said in timeline["events"][step]
        ],
    }


_LOOKS = {"ReasoningDelta": "k-reasoning", "Markup": "k-opener", "CallStart": "k-name",
          "CallDelta": "k-argument", "CallEnd": "k-value", "Recovered": "k-recovered"}  # fmt: skip
