"""Edits that make a body YAML without touching what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..rjson.damage import Refusal
from ..schema.view import View
from ..types import Edit, Span
from .yaml_reader import MappingReader, NoYaml
from .yaml_write import write_quoted

_FENCE = re.compile(r"\s*(?P<open>```[ \t]*(?:ya?ml)?[ \t]*\r?\n)(?:.*\n)?(?P<close>[ \t]*```[ \t]*)\s*\Z", re.DOTALL)
_LINE = re.compile(r"^([ \t]*)\S", re.MULTILINE)
_FIRST = re.compile(r"(?:[ \t]*\r?\n)*+( *)(?=\S)")
_MARKED = re.compile(r"[!|>]|[&*][\w-]+(?:\s|\Z)|[-?](?:\s|\Z)")


def wrapping(body: str) -> tuple[Edit, ...]:
    """Edits that make a body YAML without touching what it says: a code fence around it, tabs before every line."""
    edits: list[Edit] = []
    fence = _FENCE.match(body)
    start, end = 0, len(body)
    if fence:
        start, end = fence.end("open"), fence.start("close")
        edits.append(Edit(Span(fence.start("open"), start), "", "yaml.fence"))
    leads = [(m.start(1), m[1]) for m in _LINE.finditer(body, start, end)]
    tabs = min((len(lead) - len(lead.lstrip("\t")) for _, lead in leads), default=0)
    if tabs:
        edits += [Edit(Span(at, at + tabs), "", "yaml.tabs") for at, _ in leads]
    if fence:
        edits.append(Edit(Span(end, fence.end("close")), "", "yaml.fence"))
    return tuple(edits)


def raw_texts(body: str, view: View, max_depth: int) -> tuple[Edit, ...]:
    """Edits that quote what is no YAML as it stands, where the schema knows the key and wants a text under it.

    Empty where anything else of the body is no YAML, or a text could also be meant as something else.
    """
    edits: list[Edit] = []
    names = "|".join(re.escape(name) for name in view.properties)
    for key, start, end in _members(body, names):
        try:
            MappingReader(body[start:end], max_depth).read(view)
        except NoYaml:
            edit = _quoting(body, body.index(":", start + len(key)) + 1, end, names)
            if edit is None or not _wants_text(view.properties[key]):
                return ()
            edits.append(edit)
        except Refusal:
            return ()
    return tuple(edits)


def _members(body: str, names: str) -> Iterator[tuple[str, int, int]]:
    """Each key of the schema that begins a line as far to the right as the first line, and what its lines span."""
    first = _FIRST.match(body)
    if first is None or not names:
        return
    found = list(re.finditer(rf"^{first[1]}({names})[ \t]*:(?=\s|\Z)", body, re.MULTILINE))
    if found and found[0].start() == first.start(1):
        ends = [m.start() for m in found[1:]] + [len(body)]
        yield from ((m[1], m.start(1), end) for m, end in zip(found, ends, strict=True))


def _quoting(body: str, start: int, end: int, names: str) -> Edit | None:
    """The edit that quotes the value in [start, end), None where it is not one line that is plainly a text."""
    text = body[start:end].strip()
    if not text or "\n" in text or " #" in text or _MARKED.match(text):
        return None
    if text[0] in "\"'" and text.count(text[0]) % 2:
        return None  # its closing quote may be what is missing
    if text[0] in "[{" and any(text.count(a) != text.count(b) for a, b in ("[]", "{}")):
        return None
    if re.search(rf"(?:^|\s)(?:{names})[ \t]*:(?:\s|\Z)", text):
        return None  # two parameters on one line
    at = body.index(text, start)
    if body[start:at].strip(" \t"):
        return None
    return Edit(Span(at, at + len(text)), write_quoted(text), "yaml.raw-text")


def _wants_text(view: View) -> bool:
    """Nothing but a text, or null, may stand there."""
    kinds = [set(branch.types or ("any",)) for branch in view.any_of or (view,)]
    return all(kind <= {"string", "null"} for kind in kinds) and any("string" in kind for kind in kinds)
