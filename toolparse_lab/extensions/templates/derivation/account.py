"""The account of a protocol derived from a model's own files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import Any

from ....core.values.printable import printable, printable_lines


@dataclass(frozen=True, slots=True)
class Derivation:
    """The account of a format that a template showed, and of the proof.

    source: 'chat template' or 'response template'. family: of formats, as in
    `derived.FAMILIES`. opener, closer: around a call. separators: other text around and
    between calls. ids: how a call's id is written, or "" for none. encoding: (kind of value, how it
    is written). reasoning: opener and closer, of which the opener may stand in the prompt.
    result: before and behind a tool's result. parallel: several calls to an answer are written.
    read_back: the probes that were not used to fit and were read back whole. unclear: the undecided
    points, a sentence each. example: an answer as the template writes it. row: the shipped protocol
    that reads every probe as well.
    """

    source: str
    family: str
    opener: str = ""
    closer: str = ""
    separators: tuple[str, ...] = ()
    ids: str = ""
    encoding: tuple[tuple[str, str], ...] = ()
    reasoning: tuple[str, str] = ("", "")
    result: tuple[str, str] = ("", "")
    parallel: bool = True
    read_back: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    example: str = ""
    row: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return every field by its name, as JSON has it."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        plain: dict[str, Any] = json.loads(json.dumps(fields))
        return {**plain, "encoding": dict(self.encoding)}

    def __str__(self) -> str:
        return "\n".join(f"{head:<10} {printable(text)}" for head, text in self._rows())

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(head)}</th>'
            f'<td style="text-align:left"><code>{escape(printable(text))}</code></td></tr>'
            for head, text in self._rows()
        )
        example = escape(printable_lines(self.example))
        return {
            "text/plain": str(self),
            "text/html": f"<table>{rows}</table><p>An answer as the template writes it:</p>"
            f"<pre>{example}</pre>",
        }

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("family", self.family + (f" (as {self.row})" if self.row else "")),
            ("opener", _quoted(self.opener)),
            ("closer", _quoted(self.closer)),
            ("around", "  ".join(map(_quoted, self.separators)) or "nothing"),
            ("ids", self.ids or "none"),
            ("values", "; ".join(f"{kind}: {notation}" for kind, notation in self.encoding)),
            ("reasoning", " … ".join(self.reasoning) if any(self.reasoning) else "none"),
            ("results", " … ".join(map(repr, self.result)) if any(self.result) else "not told"),
            (
                "parallel",
                "several calls to an answer" if self.parallel else "one call to an answer",
            ),
            ("read back", f"{len(self.read_back)} probes: {', '.join(self.read_back)}"),
            *(("unclear", text) for text in self.unclear),
        ]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
