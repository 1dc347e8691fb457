"""`tp.check_template`: does a call that a chat template writes come back as it was?"""

# How it works. The template writes one call for each sample, and the protocol derived from it reads
# the call back. A difference alone proves nothing: it may be the reader's fault. So the call that
# was read is rendered as well. Where its text is the same, no reader can tell the two apart, and
# the value is lost. Otherwise the text is clear, and only a literal that is not escaped, by the
# rules of the quotes around it, is the template's fault. The line is found by tracing: it is the
# first one that writes something else than for a plain word.

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.errors import UnreadableTemplate
from ...core.toolspec import ToolSpec
from ...core.types import ParseOptions, ToolCall
from ...core.values import Value, same, write_canonical
from ...formats.like import ProtocolLike
from ..derivation.answers import PLAIN, Call, Probe, Wire, answers_of, cut_answer
from ..derivation.derive import best_proof, options_for
from ..derivation.renderer import ChatTemplate, Rendering, TemplateLike
from ..parse import parse_text
from .conversations import conversation_findings
from .lines import first_difference
from .patches import patched_lines
from .report import CODES, Finding, Loss, Patch, TemplateReport
from .samples import NAMES, OTHER, TOOL_NAMES, WORD, Sample, samples, tools
from .server import template_of_server

_ID = "derived"
_TOOL = "keep_note"
_BOX = {"in": [WORD], "by": "x"}
_FORGED = ("the text of another argument", "the text of another call")
_MARKERS = ("the format's opener", "the format's closer")
_OTHER_FORMS = ("template.encoded-twice", "template.object-arguments")
_PATCHES = 6  # that are tried for one line


def check_template(source: TemplateLike, *, protocol: ProtocolLike | None = None) -> TemplateReport:
    """Return which values, calls and results a chat template loses.

    Args:
        source: Jinja text, the dict or path of a tokenizer_config.json or chat_template.json, the
            path of a .jinja file or of a model's folder, or the address of a llama.cpp server.
        protocol: what reads the calls. By default it is derived from the template.

    Raises BadOptions for a source without a template, and UnreadableTemplate for a template that
    renders no call, or whose calls no protocol reads.

    >>> import toolparse_lab as tp
    >>> report = tp.check_template(
    ...     "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    ...     "{% for c in m.tool_calls or [] %}<call>{"
    ...     '"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}'
    ...     "}</call>{% endfor %}\\n{% endfor %}"
    ... )
    >>> report.ok, report["template.encoded-twice"].line
    (False, 1)
    """
    server = isinstance(source, str) and source.startswith(("http://", "https://"))
    template = template_of_server(str(source)) if server else ChatTemplate.of(source)
    exam = Exam.of(template, protocol)
    return exam.report()


@dataclass(frozen=True, slots=True)
class Reading:
    """One sample as the template wrote it and the protocol read it."""

    sample: Sample
    rendering: Rendering
    text: str
    calls: tuple[ToolCall, ...]
    came: tuple[Call, ...]
    expected: tuple[Call, ...]

    @property
    def returned(self) -> bool:
        return len(self.came) == len(self.expected) and all(
            a.name == b.name and same(dict(a.arguments), dict(b.arguments))
            for a, b in zip(self.came, self.expected, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Exam:
    """A template, what reads it, and how a plain call looks in it.

    before, behind: the text of a rendering around an answer. plain: argument -> the answer in which
    it is a plain word. protocol_id: for the report.
    """

    template: ChatTemplate
    protocol: ProtocolLike
    protocol_id: str
    wire: Wire
    tools: tuple[ToolSpec, ...]
    options: ParseOptions
    before: str
    behind: str
    plain: dict[str, str] = field(default_factory=dict)
    markers: tuple[str, ...] = ()

    @classmethod
    def of(cls, template: ChatTemplate, protocol: ProtocolLike | None) -> Exam:
        answers = answers_of(template)
        own_tools = tools()
        if protocol is None:
            proof = best_proof(answers, template, _ID)
            if proof is None or not any(check.whole for check in proof.checks):
                raise UnreadableTemplate(
                    "no protocol reads the calls of this template",
                    got=answers.fit["one call"].text,
                    expected="JSON, tags around names and values, or Python",
                    hint="name the protocol that reads them: protocol=, or --protocol",
                )
            protocol = proof.protocol
        wire, jobs = answers.wire, _first_jobs(answers.wire, own_tools)
        prompt, plain, base = template.render(jobs)
        if base.error:
            # Some templates know no unions of types in the definitions of tools.
            wire = replace(wire, plain_tools=True)
            prompt, plain, base = template.render(_first_jobs(wire, own_tools))
        if base.error:
            raise UnreadableTemplate(
                "the template does not render a conversation with a call",
                got=base.error,
                expected="the name and the arguments of message.tool_calls",
            )
        answer = cut_answer(base.text, prompt.text, plain.text)
        start = base.text.rfind(answer)
        exam = cls(
            template,
            protocol,
            getattr(protocol, "id", str(protocol)),
            wire,
            own_tools,
            # A call outside the format would hide that the template writes another one.
            replace(options_for(answer), recover=False),
            base.text[:start],
            base.text[start + len(answer) :],
        )
        keys = dict.fromkeys(sample.key for sample in samples())
        calls = [(_call({key: WORD}),) for key in keys]
        renderings = exam.render([*calls, (_call({"box": _BOX}),)])
        exam.plain.update(zip((*keys, "{}"), map(exam.answer, renderings), strict=True))
        if not exam.readings([Sample("a word", "note", WORD)])[0].returned:
            raise UnreadableTemplate(
                "a plain call of this template is not read back",
                got=answer,
                expected=f"a call that {exam.protocol_id} reads",
                hint="name the protocol that reads them: protocol=, or --protocol",
                text=answer,
            )
        return exam

    def render(
        self, calls: Sequence[tuple[Call, ...]], template: ChatTemplate | None = None
    ) -> list[Rendering]:
        jobs = [self.wire.job(Probe("", each), self.tools) for each in calls]
        return (template or self.template).render(jobs)

    def answer(self, rendering: Rendering) -> str:
        # The text around an answer is that around a plain call.
        text = rendering.text
        if text.startswith(self.before) and text.endswith(self.behind):
            return text[len(self.before) : len(text) - len(self.behind)]
        return text

    def read(self, rendering: Rendering) -> tuple[ToolCall, ...]:
        text = self.answer(rendering)
        return parse_text(text, self.protocol, self.tools, self.options).calls

    def readings(
        self, chosen: Iterable[Sample], template: ChatTemplate | None = None
    ) -> list[Reading]:
        every = list(chosen)
        expected = [self._expected(sample) for sample in every]
        readings: list[Reading] = []
        renderings = self.render(expected, template)
        for sample, calls, rendering in zip(every, expected, renderings, strict=True):
            found = self.read(rendering) if not rendering.error else ()
            came = tuple(
                Call(call.name or "", dict(call.arguments or {}), f"call{i + 1:05d}")
                for i, call in enumerate(found)
                if call.ok
            )
            readings.append(Reading(sample, rendering, self.answer(rendering), found, came, calls))
        return readings

    @staticmethod
    def _expected(sample: Sample) -> tuple[Call, ...]:
        if sample.key in TOOL_NAMES:
            return (Call(sample.key, {"note": sample.value}),)
        return (_call({sample.key: sample.value}),)

    def samples(self) -> list[Sample]:
        """Return every sample, with the format's own markers among the strings."""
        both = (Call(_TOOL, {"note": WORD}), Call(_TOOL, {"note": OTHER}, "call00002"))
        pair = (Call(_TOOL, {"note": WORD, "port": OTHER}),)
        own: dict[str, str] = {}
        for title, rendering in zip(_FORGED, self.render([pair, both]), strict=True):
            between = self.answer(rendering).partition(WORD)[2].partition(OTHER)[0]
            own[title] = f"{WORD}{between}{OTHER}"
        opener, _, closer = self.plain["note"].partition(WORD)
        own[_MARKERS[0]] = f"x {opener} y"
        own[_MARKERS[1]] = f"x {closer[closer.find(OTHER) + len(OTHER) :]} y"
        names = [Sample(f"the argument name {name}", name, WORD) for name in NAMES]
        names += [Sample(f"the tool name {name}", name, WORD) for name in TOOL_NAMES]
        return [*samples(), *(Sample(title, "note", own[title]) for title in own), *names]

    def report(self) -> TemplateReport:
        readings = self.readings(self.samples())
        verdicts = self._verdicts(readings)
        findings = self._grouped(verdicts, readings)
        others, n = conversation_findings(
            self.template, self.wire, self.tools, self.answer, self.read
        )
        findings += [self._with_patch_of_text(finding, readings) for finding in others]
        order = list(CODES)
        findings.sort(key=lambda finding: (order.index(finding.code), finding.line or 0))
        example = self.plain["note"]
        return TemplateReport(tuple(findings), self.protocol_id, len(readings) + n, example)

    # what is to blame

    def _verdicts(self, readings: Sequence[Reading]) -> list[tuple[Reading, str, Loss]]:
        # Everything that is compared is rendered at once.
        wanted: list[tuple[Call, ...]] = []
        for reading in readings:
            wanted += [reading.came, *self._rivals(reading.sample)]
        known = {tool.name for tool in self.tools}
        wanted = [calls for calls in wanted if calls and all(c.name in known for c in calls)]
        wanted = list({repr(calls): calls for calls in wanted}.values())
        texts = dict(zip(map(repr, wanted), self.render(wanted), strict=True))
        verdicts = []
        for reading in readings:
            verdict = self._verdict(reading, {k: r.text for k, r in texts.items() if not r.error})
            if verdict is not None:
                verdicts.append((reading, *verdict))
        # A format whose strings may look like several values has no way to write its markers.
        if "limit.markers" in [code for _, code, _ in verdicts]:
            verdicts = [
                (r, "limit.markers" if r.sample.title in (*_FORGED, *_MARKERS) else code, loss)
                if code == "reader.value"
                else (r, code, loss)
                for r, code, loss in verdicts
            ]
        return verdicts

    @staticmethod
    def _rivals(sample: Sample) -> list[tuple[Call, ...]]:
        # Other calls that may be written alike.
        if sample.value is None:
            return [_ABSENT, (_call({sample.key: "None"}),)]
        if sample.title == _FORGED[0]:
            return [(_call({"note": WORD, "port": OTHER}),)]
        if sample.title == _FORGED[1]:
            return [(Call(_TOOL, {"note": WORD}), _call({"note": OTHER}, "call00002"))]
        return [] if sample.key in TOOL_NAMES else [_ABSENT]

    def _verdict(self, reading: Reading, texts: Mapping[str, str]) -> tuple[str, Loss] | None:
        sample, value = reading.sample, reading.sample.value
        whole = reading.rendering.text
        is_name = sample.key in (*NAMES, *TOOL_NAMES)
        if reading.rendering.error:
            return "template.value-crash", self._loss(reading, reading.rendering.error)
        written, quote, python = self._written(reading)
        rivals = [calls for calls in self._rivals(sample) if texts.get(repr(calls)) == whole]
        if _ABSENT in rivals:
            code = "template.null" if value is None else "template.dropped"
            return code, self._loss(reading, "the call without the argument is written alike")
        if rivals and value is None and not python:
            return "template.null", self._loss(reading, 'the text "None" is written alike')
        if rivals and value is not None:
            proof = f"{_said(rivals[0])} is written alike"
            code = "template.unescaped" if quote else "limit.markers"
            return code, self._loss(reading, proof)
        if reading.returned:
            is_python = not python and not isinstance(value, str) and written == repr(value)
            if is_python and not same(_json_of(written), value):
                return "template.python", self._loss(reading, "")
            return None
        alike = texts.get(repr(reading.came)) == whole and bool(reading.came)
        proof = f"{_said(reading.came)} is written alike" if alike else ""
        is_valid = all(call.valid for call in reading.calls if call.ok)
        is_text = isinstance(value, str)
        came = self._value_of(reading)
        if is_name:
            is_python = self._written(replace(reading, sample=Sample("", "note", WORD)))[2]
            name = sample.key.replace(".", "_") if sample.key in TOOL_NAMES else sample.key
            is_limit = is_python and not name.isidentifier()
            return "limit.name" if is_limit else "reader.name", self._loss(reading, "")
        if quote and is_text and written is not None and not _is_literal(written, value):
            code = "template.unescaped" if value in written else "template.changed"
            literal = "between quotes it means something else"
            return code, self._loss(reading, proof or literal)
        if isinstance(value, (dict, list)) and written is not None:
            base = self._region(self.plain["{}"], "box", _BOX)
            if base is not None and _is_literal(base, _BOX) and not _is_literal(written, value):
                bare = [text for text in _strings(value) if json.dumps(text)[1:-1] != text]
                is_bare = any(text in written for text in bare if text.isascii())
                code = "template.unescaped" if is_bare else "template.changed"
                return code, self._loss(reading, proof or "it is no literal")
        is_bare = is_text and written == value and not quote
        if is_bare and not isinstance(came, str) and same(_json_of(written), came):
            return "limit.union", self._loss(reading, proof or "a bare text is read as JSON first")
        if not alike or not is_valid:
            return "reader.value", self._loss(reading, proof)
        if came is None and value is not None:
            return "limit.markers", self._loss(reading, proof)
        if not python and not is_text and written == repr(value) != json.dumps(value):
            return "template.python", self._loss(reading, proof)
        if is_text != isinstance(came, str):
            return "limit.union", self._loss(reading, proof)
        return "template.changed", self._loss(reading, proof)

    def _loss(self, reading: Reading, proof: str) -> Loss:
        sample = reading.sample
        if reading.rendering.error:
            came = reading.rendering.error
        elif reading.returned:
            came = write_canonical(sample.value)
        else:
            came = self._came(reading)
        is_tool = sample.key in TOOL_NAMES
        place = "tool name" if is_tool else f"argument {sample.key}"
        written = self._written(reading)[0]
        return Loss(sample.title, place, write_canonical(sample.value), came, written or "", proof)

    def _value_of(self, reading: Reading) -> Value:
        # What came in its place, None unless it is one call with the same names.
        if [call.name for call in reading.came] != [_TOOL]:
            return None
        arguments = reading.came[0].arguments
        if {*arguments, "street"} != {reading.sample.key, "street"}:
            return None
        return arguments.get(reading.sample.key)

    def _came(self, reading: Reading) -> str:
        if [call.name for call in reading.came] == [call.name for call in reading.expected]:
            arguments = reading.came[0].arguments
            if arguments.keys() == reading.expected[0].arguments.keys():
                return write_canonical(arguments[reading.sample.key])
        return _said(reading.came) if reading.came else "no call"

    def _written(self, reading: Reading) -> tuple[str | None, str, bool]:
        """Return (text of the value with its quotes, the quote of a plain word, True for Python).

        None for a text whose place cannot be told.
        """
        key, plain = reading.sample.key, self.plain.get(reading.sample.key)
        if plain is None or plain.count(WORD) != 1:
            return None, "", False
        at = plain.find(WORD)
        quote = plain[at - 1] if at and plain[at - 1] in "\"'" else ""
        if quote and plain[at + len(WORD)] != quote:
            quote = ""
        head = plain[: at - len(quote)]
        tail = plain[at + len(WORD) + len(quote) :]
        text = reading.text
        fits = text.startswith(head) and text.endswith(tail) and len(text) >= len(head + tail)
        python = bool(quote) and head.endswith(f"{key}=") and not _opens_tag(head)
        return (text[len(head) : len(text) - len(tail)] if fits else None), quote, python

    def _region(self, text: str, key: str, value: Value) -> str | None:
        rendering = Rendering(text)
        sample = Sample("", key, value)
        return self._written(Reading(sample, rendering, text, (), (), ()))[0]

    # lines and patches

    def _grouped(
        self, verdicts: Sequence[tuple[Reading, str, Loss]], readings: Sequence[Reading]
    ) -> list[Finding]:
        jobs, owners = [], []
        for reading, code, _ in verdicts:
            if code.startswith("template."):
                plain = {reading.sample.key: WORD}
                for arguments in (reading.expected[0].arguments, {**plain, "street": OTHER}):
                    probe = Probe("", (Call(reading.expected[0].name, arguments),))
                    jobs.append(self.wire.job(probe, self.tools))
                owners.append(reading.sample.title)
        traced = self.template.render(jobs, flips=[None] * len(jobs)) if jobs else []
        lines: dict[str, int | None] = {}
        for i, title in enumerate(owners):
            reading = next(r for r in readings if r.sample.title == title)
            rendering, plain_rendering = traced[2 * i], traced[2 * i + 1]
            if reading.rendering.error:
                lines[title] = reading.rendering.line
            elif rendering.text == reading.rendering.text:
                lines[title] = first_difference(
                    rendering.events, plain_rendering.events, reading.sample.value
                )
        groups: dict[tuple[str, int | None], list[tuple[Reading, Loss]]] = {}
        for reading, code, loss in verdicts:
            key = (code, lines.get(reading.sample.title))
            groups.setdefault(key, []).append((reading, loss))
        source = self.template.text.split("\n")
        findings = []
        for (code, line), members in groups.items():
            text = source[line - 1] if line is not None and line <= len(source) else ""
            finding = Finding(code, tuple(loss for _, loss in members), line, text)
            titles = {reading.sample.title for reading, _ in members}
            findings.append(replace(finding, patch=self._patch(finding, titles, readings)))
        return findings

    def _patch(
        self, finding: Finding, titles: set[str], readings: Sequence[Reading]
    ) -> Patch | None:
        if finding.kind != "template" or finding.line is None:
            return None
        best: Patch | None = None
        good = {r.sample.title for r in readings if r.returned} - titles
        for line, text in patched_lines(self.template.text, finding.line, finding.code)[:_PATCHES]:
            source, template = self._with_line(line, text)
            try:
                after = self.readings([r.sample for r in readings], template)
            except UnreadableTemplate:
                continue
            harmed = any(r.sample.title in good and not r.returned for r in after)
            healed = [r for r in after if r.sample.title in titles and self._is_healed(r)]
            if not harmed and len(healed) > (best.healed if best else 0):
                best = Patch(line, source, text, len(healed))
        return best

    def _with_line(self, line: int, text: str) -> tuple[str, ChatTemplate]:
        lines = self.template.text.split("\n")
        source, lines[line - 1] = lines[line - 1], text
        return source, replace(self.template, text="\n".join(lines))

    def _is_healed(self, reading: Reading) -> bool:
        written, _, python = self._written(reading)
        value = reading.sample.value
        is_python = not python and written == repr(value) != json.dumps(value)
        return reading.returned and not is_python

    def _with_patch_of_text(self, finding: Finding, readings: Sequence[Reading]) -> Finding:
        # A patch for arguments as text must leave those given as an object as they are.
        if finding.line is None or finding.code not in _OTHER_FORMS:
            return finding
        other = replace(self.wire, as_text=not self.wire.as_text)
        probe = Probe("", (_call({"note": WORD}),))
        for line, text in patched_lines(self.template.text, finding.line, finding.code)[:_PATCHES]:
            source, template = self._with_line(line, text)
            jobs = [wire.job(probe, self.tools) for wire in (self.wire, other)]
            try:
                own, given = template.render(jobs)
                after = self.readings([r.sample for r in readings], template)
            except UnreadableTemplate:
                continue
            unchanged = all(
                a.rendering.text == b.rendering.text for a, b in zip(after, readings, strict=True)
            )
            alike = "".join(own.text.split()) == "".join(given.text.split())
            if unchanged and not given.error and alike:
                return replace(finding, patch=Patch(line, source, text, len(finding.losses)))
        return finding


def _first_jobs(wire: Wire, own_tools: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    call = Probe("", (_call({"note": WORD}),))
    return [
        wire.job(PLAIN, own_tools, prompt=True),
        wire.job(PLAIN, own_tools),
        wire.job(call, own_tools),
    ]


def _call(arguments: Mapping[str, Value], id: str = "call00001") -> Call:
    return Call(_TOOL, {**arguments, "street": OTHER}, id)


_ABSENT = (Call(_TOOL, {"street": OTHER}),)


def _said(calls: Sequence[Call]) -> str:
    return "; ".join(f"{call.name}({write_canonical(dict(call.arguments))})" for call in calls)


def _opens_tag(text: str) -> bool:
    # Inside a tag, key="value" is an attribute.
    return text.rfind("<") > text.rfind(">")


def _strings(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for member in value.values() if isinstance(value, dict) else ():
        yield from _strings(member)
    for member in value if isinstance(value, list) else ():
        yield from _strings(member)


def _json_of(text: str | None) -> Value:
    try:
        value: Value = json.loads(text or "")
    except (ValueError, RecursionError):
        return {"": text}
    return value


def _is_literal(text: str, value: Value) -> bool:
    # By JSON or by Python.
    if same(_json_of(text), value):
        return True
    try:
        return same(ast.literal_eval(text), value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
