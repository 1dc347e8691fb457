"""What was found in a chat template, as text and as HTML: the guilty line beside the lost value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ....core.values.affixes import common_prefix, common_suffix
from ....core.values.printable import printable
from ....views.cells import text_of
from ....views.show import shorten, visible
from ....views.templating import Markup, render

CODES: Mapping[str, tuple[str, str]] = {
    "template.unescaped": ("error", "a string is put between quotes without escapes"),
    "template.changed": ("error", "a value is written as another one"),
    "template.dropped": ("error", "a value is left out"),
    "template.null": ("error", "null is left out, or written as the text None"),
    "template.value-crash": ("error", "a value stops the rendering"),
    "template.python": ("warning", "a value is written as Python has it, not JSON"),
    "template.encoded-twice": ("warning", "arguments as JSON text become a JSON string"),
    "template.object-arguments": ("warning", "arguments as an object are refused or not JSON"),
    "template.parallel": ("error", "of several calls in one answer, some are left out"),
    "template.beside-text": ("error", "calls next to a text are left out"),
    "template.turn-end": ("error", "the turn ends otherwise after one call, two and three"),
    "template.earlier-call": ("error", "a later turn drops an earlier call"),
    "template.result": ("error", "a result of a tool is left out"),
    "template.result-changed": ("warning", "a result of a tool is written as another one"),
    "template.conversation": ("warning", "a conversation with calls stops the rendering"),
    "limit.union": ("warning", "under a union of types a text and another value look alike"),
    "limit.markers": ("warning", "a string with the format's markers looks like several values"),
    "limit.name": ("warning", "a name that is no identifier cannot be written as Python"),
    "limit.text-arguments": ("warning", "arguments as JSON text are refused or take another form"),
    "limit.parallel": ("warning", "several calls in one answer are refused"),
    "limit.result-opens-call": ("warning", "a tool's result can open a call"),
    "reader.value": ("warning", "the text is clear, and our reader reads another value"),
    "reader.name": ("warning", "the text is clear, and our reader does not read the name"),
}  # fmt: skip
"""Code -> (severity, sentence). Codes are permanent. What comes before the dot says whose matter it
is: the template's, which can be mended; the format's, which has no way to write such a call; or
that of this package's reader."""

_LONGEST = 160
# Of a page: characters of a value, losses of a finding, and the look of each severity.
_LONGEST_ON_PAGE = 400
_MOST = 12
_LOOKS = {"error": "bad", "warning": "warn", "info": "flat"}


@dataclass(frozen=True, slots=True)
class Loss:
    """One value that does not come back.

    place: where it was put, such as "argument note". value, came: as JSON, or in words. text: what
    the template writes for it. proof: why no reader could know better, or what it could know.
    """

    title: str
    place: str
    value: str
    came: str
    text: str = ""
    proof: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """Another text for one line. Nothing that came back before is lost by it.

    healed: how many losses of the finding come back.
    """

    line: int
    source: str
    text: str
    healed: int

    @property
    def old(self) -> str:
        """The part of the line that changes, in its tag."""
        return self._part(self.source)

    @property
    def new(self) -> str:
        return self._part(self.text)

    def _part(self, text: str) -> str:
        # From the tag's beginning to its end, which both lines have alike.
        start = common_prefix(self.source, self.text)
        end = common_suffix(self.source[start:], self.text[start:])
        opener = max(self.source.rfind("{{", 0, start), self.source.rfind("{%", 0, start), 0)
        ends = (self.source.find(mark, len(self.source) - end) for mark in ("}}", "%}"))
        last = min((at + 2 for at in ends if at >= 0), default=len(self.source))
        return text[opener : len(text) - len(self.source) + last]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, with every value that meets it.

    line, source: the line of the template that is why, counted from 1, and its text. None and ""
    where no line could be proved.
    """

    code: str
    losses: tuple[Loss, ...]
    line: int | None = None
    source: str = ""
    patch: Patch | None = None

    @property
    def kind(self) -> str:
        """'template', 'limit' or 'reader'."""
        return self.code.partition(".")[0]

    @property
    def severity(self) -> str:
        """'error' or 'warning'."""
        return CODES[self.code][0]

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON has it."""
        patch = self.patch
        return {
            "code": self.code,
            "kind": self.kind,
            "severity": self.severity,
            "meaning": CODES[self.code][1],
            "line": self.line,
            "source": self.source,
            "losses": list(map(asdict, self.losses)),
            "patch": patch and {"line": patch.line, "text": patch.text, "healed": patch.healed},
        }

    def __str__(self) -> str:
        lines = [f"{self.severity} {self.code}: {CODES[self.code][1]}"]
        if self.line is not None:
            lines.append(f"  line {self.line}:  {shortened(self.source.strip())}")
        elif self.kind == "template":
            lines.append("  line unknown")
        first, *others = self.losses
        lines.append(f"  put in:   {shortened(first.value)}  ({first.title}, {first.place})")
        lines.append(f"  came out: {shortened(first.came)}")
        if first.text:
            lines.append(f"  written:  {shortened(first.text)}")
        if first.proof:
            lines.append(f"  proof:    {shortened(first.proof)}")
        if others:
            lines.append(f"  as well:  {'; '.join(dict.fromkeys(o.title for o in others))}")
        if self.patch is not None:
            n, healed = len(self.losses), self.patch.healed
            count = f"all {n} of these" if healed == n > 1 else f"{healed} of {n}"
            lines.append(f"  patch:    heals {count}, and harms no other value")
            lines.append(f"          - {self.patch.old}")
            lines.append(f"          + {self.patch.new}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class TemplateReport:
    """What a chat template loses.

    Attributes:
        protocol: id of the protocol that parsed the calls.
        checked: number of rendered conversations.
        example: a call as the template writes it.
    """

    findings: tuple[Finding, ...]
    protocol: str
    checked: int
    example: str = ""

    @property
    def ok(self) -> bool:
        """Return True if the template itself loses nothing. Limits of its format do not count."""
        return not any(finding.kind == "template" for finding in self.findings)

    def __getitem__(self, code: str) -> Finding:
        """Return the first finding of a code. Raises KeyError."""
        for finding in self.findings:
            if finding.code == code:
                return finding
        raise KeyError(code)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        return {
            "ok": self.ok,
            "protocol": self.protocol,
            "checked": self.checked,
            "example": self.example,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def __str__(self) -> str:
        heads = {
            "template": "in the template:",
            "limit": "limits of the format, which no other text of a line would mend:",
            "reader": "the reader's fault, not the template's (please report it):",
        }
        lines: list[str] = []
        for kind, head in heads.items():
            findings = [str(f) for f in self.findings if f.kind == kind]
            if findings:
                lines += [head, "", *(f"{text}\n" for text in findings)]
        n = sum(f.kind == "template" for f in self.findings)
        found = f"{n} finding{'s' if n > 1 else ''} in the template"
        verdict = found if n else "the template is ok"
        lines.append(f"{verdict}: {self.checked} conversations, read as {self.protocol}")
        return "\n".join(lines)

    __repr__ = __str__

    def html(self) -> str:
        """Return the findings as HTML: each with its line, the patch, and the values it loses."""
        return render(
            "extensions/templates/doctor/view.html",
            summary=str(self).rpartition("\n")[2],
            findings=[_finding_of_page(finding) for finding in self.findings],
            example=text_of(shorten(self.example, 2_000)),
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ....views.html import standalone  # of pages alone

        return {"text/plain": visible(str(self)), "text/html": standalone(self.html())}


def _finding_of_page(finding: Finding) -> dict[str, Any]:
    source = finding.source.strip()
    before, guilty, behind = source, "", ""
    patch = finding.patch
    if patch is not None and patch.old in source:
        before, guilty, behind = source.partition(patch.old)
    losses = [
        (text_of(f"{loss.title}, {loss.place}"), *map(_shown, (loss.value, loss.came, loss.text)))
        for loss in finding.losses[:_MOST]
    ]
    more = len(finding.losses) - _MOST
    proof = next((loss.proof for loss in finding.losses if loss.proof), "")
    return {
        "look": _LOOKS[finding.severity],
        "severity": finding.severity,
        "code": finding.code,
        "meaning": CODES[finding.code][1],
        "line": finding.line,
        "source": tuple(map(_shown, (before, guilty, behind))),
        "patch": None if patch is None else _shown(patch.new),
        "healed": "" if patch is None else f"heals {patch.healed} of {len(finding.losses)}",
        "losses": losses,
        "more": f"and {more} more" if more > 0 else "",
        "proof": _shown(proof),
    }


def _shown(text: str) -> Markup:
    return text_of(shorten(text, _LONGEST_ON_PAGE))


def shortened(text: str, most: int = _LONGEST) -> str:
    words = printable(text)
    return words if len(words) <= most else f"{words[:most]}…"
