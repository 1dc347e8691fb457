"""`check_template`: does a call that a chat template writes come back as it was?"""

# How it works. The template writes one call for each sample, and the protocol derived from it reads
# the call back. A difference alone proves nothing: it may be the reader's fault. So the call that
# was read is rendered as well. Where its text is the same, no reader can tell the two apart, and
# the value is lost. Otherwise the text is clear, and only a literal that is not escaped, by the
# rules of the quotes around it, is the template's fault. The line is found by tracing: it is the
# first one that writes something else than for a plain word.

from __future__ import annotations

import ast
import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ....core.errors import BadOptions, UnreadableTemplate
from ....core.toolspec import ToolSpec
from ....core.types import ParseOptions, ToolCall
from ....core.values import Value, leaves, same, write_canonical
from ....entry.parse import parse_text
from ....formats.like import ProtocolLike
from ....runner.chat_templates.renderer import ChatTemplate, Rendering, TemplateLike, one_renderer
from ..derivation.answers import PLAIN, Call, Probe, Wire, answers_of, cut_answer, same_calls
from ..derivation.derive import best_proof, options_for
from .conversations import Turns, conversation_findings, finding_at
from .lines import first_difference, patched_lines
from .report import CODES, Finding, Loss, Patch, TemplateReport
from .samples import NAMES, OTHER, TOOL_NAMES, WORD, Sample, samples, tools

_ID = "derived"
_TOOL = "keep_note"
_BOX = {"in": [WORD], "by": "x"}
_FORGED = ("the text of another argument", "the text of another call")
_MARKERS = ("the format's opener", "the format's closer")
_OTHER_FORMS = ("template.encoded-twice", "template.object-arguments")
_PATCHES = 6  # that are tried for one line
_SECONDS = 10  # for a server to tell its template
_LONGEST = 8_000_000  # bytes of what it tells


def check_template(source: TemplateLike, *, protocol: ProtocolLike | None = None) -> TemplateReport:
    """Return which values, calls and results a chat template loses.

    Args:
        source: Jinja text, the dict or path of a tokenizer_config.json or chat_template.json, the
            path of a .jinja file or of a model's folder, or the address of a llama.cpp server.
        protocol: the format of the calls. By default it is derived from the template.

    Raises BadOptions for a source without a template, and UnreadableTemplate for a template that
    renders no call, or whose calls no protocol reads.

    >>> import toolparse_lab as tp
    >>> report = check_template(
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
    with one_renderer():
        return Exam.of(template, protocol).report()


def template_of_server(url: str) -> ChatTemplate:
    """Return the template that a llama.cpp server tells at `/props`.

    url: of the server, with or without `/v1`. Raises BadOptions for a server that cannot be
    reached, and for one that tells no template.
    """
    root = url.rstrip("/").removesuffix("/props").removesuffix("/v1").rstrip("/")
    try:
        with urllib.request.urlopen(f"{root}/props", timeout=_SECONDS) as answer:  # noqa: S310
            props: Any = json.loads(answer.read(_LONGEST))
        got = type(props).__name__
    except urllib.error.HTTPError as error:
        props, got = None, f"status {error.code}"
    except (OSError, ValueError) as error:
        raise BadOptions(
            "this server cannot be asked for its chat template",
            got=f"{root}/props: {getattr(error, 'reason', None) or error}",
            expected="the address of a llama.cpp server, such as http://127.0.0.1:8080",
        ) from None
    if isinstance(props, Mapping):
        got = ", ".join(map(str, list(props)[:20])) or "nothing"
        template = props.get("chat_template_tool_use") or props.get("chat_template")
        if isinstance(template, str) and template:
            return ChatTemplate.of({**props, "chat_template": template})
    raise BadOptions(
        "this server does not tell its chat template",
        got=f"{got} from {root}/props",
        expected="chat_template, as llama.cpp's server has it",
        hint="vLLM, SGLang, Ollama and others tell none: pass the chat_template.jinja, the "
        "tokenizer_config.json or the folder of the model that they serve",
    )


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One sample as the template wrote it and the protocol read it."""

    sample: Sample
    rendering: Rendering
    text: str
    calls: tuple[ToolCall, ...]
    came: tuple[Call, ...]
    expected: tuple[Call, ...]

    @property
    def returned(self) -> bool:
        return same_calls(self.came, self.expected)

    @property
    def _own(self) -> Mapping[str, Value]:
        # The arguments that came, if they are those of one call under the same names.
        names = [(call.name, call.arguments.keys()) for call in (*self.came, self.expected[0])]
        return self.came[0].arguments if len(names) == 2 and names[0] == names[1] else {}

    @property
    def value(self) -> Value:
        """What came in place of the sample's value, None if it is in no such call."""
        return self._own.get(self.sample.key)

    @property
    def words(self) -> str:
        if self.sample.key in self._own:
            return write_canonical(self.value)
        return _said(self.came) or "no call"


@dataclass(frozen=True, slots=True)
class Exam:
    """A template, what reads it, and how a plain call looks in it."""

    template: ChatTemplate
    protocol: ProtocolLike
    protocol_id: str
    wire: Wire
    tools: tuple[ToolSpec, ...]
    options: ParseOptions
    before: str  # the text of a rendering before an answer
    behind: str
    plain: dict[str, str] = field(default_factory=dict)  # argument -> an answer with a word in it

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
        # Some templates know no unions of types in the definitions of tools.
        for wire in (answers.wire, replace(answers.wire, plain_tools=True)):
            asked = wire.job(PLAIN, own_tools, prompt=True)
            call = wire.job(Probe("", (_call({"note": WORD}),)), own_tools)
            prompt, plain, base = template.render([asked, wire.job(PLAIN, own_tools), call])
            if not base.error:
                break
        else:
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
        calls = {sample.key: (_call({sample.key: WORD}),) for sample in samples()}
        calls["{}"] = (_call({"box": _BOX}),)
        renderings = exam.render(list(calls.values()))
        exam.plain.update(zip(calls, map(exam.answer, renderings), strict=True))
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
    ) -> list[RoundTrip]:
        every = list(chosen)
        expected = [
            (Call(s.key, {"note": s.value}) if s.key in TOOL_NAMES else _call({s.key: s.value}),)
            for s in every
        ]
        readings: list[RoundTrip] = []
        renderings = self.render(expected, template)
        for sample, calls, rendering in zip(every, expected, renderings, strict=True):
            found = self.read(rendering) if not rendering.error else ()
            came = tuple(
                Call(call.name or "", dict(call.arguments or {}), f"call{i + 1:05d}")
                for i, call in enumerate(found)
                if call.ok
            )
            readings.append(
                RoundTrip(sample, rendering, self.answer(rendering), found, came, calls)
            )
        return readings

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
        python = self.written("note", self.plain["note"])[2]
        others, n = conversation_findings(
            self.template, Turns(self.wire, self.tools), self.answer, self.read, python=python
        )
        for finding in others:
            # A line that garbles single values as well is told once.
            if (finding.code, finding.line) not in [(f.code, f.line) for f in findings]:
                of_text = finding.code in _OTHER_FORMS
                patch = self._patch_of_text(finding, readings) if of_text else None
                findings.append(replace(finding, patch=patch))
        order = list(CODES)
        findings.sort(key=lambda finding: (order.index(finding.code), finding.line or 0))
        example = self.plain["note"]
        return TemplateReport(tuple(findings), self.protocol_id, len(readings) + n, example)

    # what is to blame

    def _verdicts(self, readings: Sequence[RoundTrip]) -> list[tuple[RoundTrip, str, Loss]]:
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

    def _verdict(self, reading: RoundTrip, texts: Mapping[str, str]) -> tuple[str, Loss] | None:
        sample, value = reading.sample, reading.sample.value
        key, whole, is_text = sample.key, reading.rendering.text, isinstance(value, str)
        written, quote, python = self.written(key, reading.text)
        if written is None and not is_text and repr(value) in reading.text:
            # Its type is written as well, so that the text around it differs from a word's.
            written = repr(value) if repr(value) not in self.plain.get(key, "") else None
        came = reading.value

        def verdict(code: str, proof: str = "") -> tuple[str, Loss]:
            place = "tool name" if key in TOOL_NAMES else f"argument {key}"
            text = reading.rendering.error or reading.words
            put_in = write_canonical(value)
            return code, Loss(sample.title, place, put_in, text, written or "", proof)

        if reading.rendering.error:
            return verdict("template.value-crash")
        for rival in self._rivals(sample):
            if texts.get(repr(rival)) == whole:
                # Whatever was read: no reader can tell these two calls apart.
                proof = f"{_said(rival)} is written alike"
                if value is None:
                    return verdict("template.null", proof)
                if rival == _ABSENT:
                    return verdict("template.dropped", proof)
                return verdict("template.unescaped" if quote else "limit.markers", proof)
        is_python = not python and not is_text and written == repr(value) != json.dumps(value)
        if reading.returned:
            return verdict("template.python") if is_python else None
        if key in (*NAMES, *TOOL_NAMES):
            name = key.replace(".", "_") if key in TOOL_NAMES else key
            is_limit = self.written("note", self.plain["note"])[2] and not name.isidentifier()
            return verdict("limit.name" if is_limit else "reader.name")

        alike = texts.get(repr(reading.came)) == whole
        proof = f"{_said(reading.came)} is written alike" if alike else ""
        if written is not None and not _is_literal(written, value):
            literal = proof or "the literal means something else"
            if quote and isinstance(value, str):
                code = "template.unescaped" if value in written else "template.changed"
                return verdict(code, literal)
            box = self.written("box", self.plain["{}"])[0] or ""
            if isinstance(value, (dict, list)) and _is_literal(box, _BOX):
                strings = [text for _, text in leaves(value) if isinstance(text, str)]
                shown = [text for text in strings if text.isascii() and text in written]
                bare = any(json.dumps(text)[1:-1] != text for text in shown)
                return verdict("template.unescaped" if bare else "template.changed", literal)
        if written == value and not isinstance(came, str) and same(_json_of(written), came):
            return verdict("limit.union", proof or "a bare text is read as JSON first")
        if is_python:
            return verdict("template.null" if value is None else "template.python", proof)
        if not alike or not all(call.valid for call in reading.calls if call.ok):
            return verdict("reader.value", proof)
        if came is None and value is not None:
            return verdict("limit.markers", proof)
        union = is_text != isinstance(came, str)
        return verdict("limit.union" if union else "template.changed", proof)

    def written(self, key: str, answer: str) -> tuple[str | None, str, bool]:
        """Return (an argument with its quotes, the quote of a plain word, True for Python).

        None for an argument whose place in the answer cannot be told.
        """
        plain = self.plain.get(key, "")
        if plain.count(WORD) != 1:
            return None, "", False
        at, end = plain.find(WORD), plain.find(WORD) + len(WORD)
        quote = plain[at - 1 : at] if plain[at - 1 : at] in ('"', "'") else ""
        if quote and plain[end : end + 1] != quote:
            quote = ""
        head, tail = plain[: at - len(quote)], plain[end + len(quote) :]
        # Inside a tag, key="value" is an attribute.
        python = bool(quote) and head.endswith(f"{key}=") and head.rfind("<") <= head.rfind(">")
        fits = answer.startswith(head) and answer.endswith(tail)
        if not fits or len(answer) < len(head) + len(tail):
            return None, quote, python
        return answer[len(head) : len(answer) - len(tail)], quote, python

    # lines and patches

    def _grouped(
        self, verdicts: Sequence[tuple[RoundTrip, str, Loss]], readings: Sequence[RoundTrip]
    ) -> list[Finding]:
        jobs, owners, texts = [], [], {}
        for reading, code, loss in verdicts:
            texts[reading.sample.title] = loss.text
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
                    rendering.events, plain_rendering.events, reading.sample.value, texts[title]
                )
        groups: dict[tuple[str, int | None], list[tuple[RoundTrip, Loss]]] = {}
        for reading, code, loss in verdicts:
            key = (code, lines.get(reading.sample.title))
            groups.setdefault(key, []).append((reading, loss))
        findings = []
        for (code, line), members in groups.items():
            finding = finding_at(self.template, code, line, *(loss for _, loss in members))
            titles = {reading.sample.title for reading, _ in members}
            patch = self._patch(finding, titles, readings) if finding.kind == "template" else None
            findings.append(replace(finding, patch=patch))
        return findings

    def _patches(
        self, finding: Finding, readings: Sequence[RoundTrip]
    ) -> Iterator[tuple[Patch, ChatTemplate, list[RoundTrip]]]:
        # Each other text for the finding's line, and the template with it, all samples read again.
        lines, line = self.template.text.split("\n"), finding.line or 0
        others = patched_lines(finding.source, finding.code) if line else []
        for text in others[:_PATCHES]:
            again = [*lines[: line - 1], text, *lines[line:]]
            template = replace(self.template, text="\n".join(again))
            try:
                after = self.readings([r.sample for r in readings], template)
            except UnreadableTemplate:
                continue
            yield Patch(line, finding.source, text, 0), template, after

    def _patch(
        self, finding: Finding, titles: set[str], readings: Sequence[RoundTrip]
    ) -> Patch | None:
        best: Patch | None = None
        good = {r.sample.title for r in readings if r.returned} - titles
        for patch, _, after in self._patches(finding, readings):
            returned = {r.sample.title for r in after if r.returned}
            healed = returned & titles
            if finding.code == "template.python":
                # These did come back; they are to be written otherwise.
                healed -= {
                    r.sample.title
                    for r in after
                    if self.written(r.sample.key, r.text)[0] == repr(r.sample.value)
                }
            # The format itself stays, as the model has learnt it.
            pairs = zip(after, readings, strict=True)
            same_format = all(a.text == b.text for a, b in pairs if a.sample.value == WORD)
            if same_format and good <= returned and len(healed) > (best.healed if best else 0):
                best = replace(patch, healed=len(healed))
        return best

    def _patch_of_text(self, finding: Finding, readings: Sequence[RoundTrip]) -> Patch | None:
        # Arguments in the other form are to be written like those in the template's own.
        other = replace(self.wire, as_text=not self.wire.as_text)
        probe = Probe("", (_call({"note": WORD}),))
        jobs = [wire.job(probe, self.tools) for wire in (self.wire, other)]
        for patch, template, after in self._patches(finding, readings):
            pairs = zip(after, readings, strict=True)
            own, given = template.render(jobs)
            alike = "".join(own.text.split()) == "".join(given.text.split())
            if alike and all(a.rendering.text == b.rendering.text for a, b in pairs):
                return replace(patch, healed=len(finding.losses))
        return None


def _call(arguments: Mapping[str, Value], id: str = "call00001") -> Call:
    return Call(_TOOL, {**arguments, "street": OTHER}, id)


_ABSENT = (Call(_TOOL, {"street": OTHER}),)


def _said(calls: Sequence[Call]) -> str:
    return "; ".join(f"{call.name}({write_canonical(dict(call.arguments))})" for call in calls)


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
