"""Edits that make a body YAML without touching its content."""

from __future__ import annotations

import re

from ...arguments.rjson.damage import Refusal
from ...arguments.schema.view import View
from ...core.types import Edit, Span
from .reader import MappingReader, NoYaml
from .write import write_quoted

_FENCE = re.compile(
    r"\s*(?P<open>```[ \t]*(?:ya?ml)?[ \t]*\r?\n)(?:.*\n)?(?P<close>[ \t]*```[ \t]*)\s*\Z",
    re.DOTALL,
)
_LINE = re.compile(r"^([ \t]*)\S", re.MULTILINE)
_FIRST = re.compile(r"(?:[ \t]*\r?\n)*+( *)(?=\S)")
_MARKED = re.compile(r"[!|>]|[&*][\w-]+(?:\s|\Z)|[-?](?:\s|\Z)")


def wrapping(body: str) -> tuple[Edit, ...]:
    """Return edits that take off a code fence around the body, and tabs before every line."""
    edits: list[Edit] = []
    fence = _FENCE.match(body)
    start, end = 0, len(body)
    if fence:
        start, end = fence.end("open"), fence.start("close")
        edits.append(Edit(Span(fence.start("open"), start), "", "yaml.fence"))

    # Only tabs that all lines have are no part of the mapping's own shape. YAML forbids them.
    lines = [(match.start(1), match[1]) for match in _LINE.finditer(body, start, end)]
    tabs = min((len(lead) - len(lead.lstrip("\t")) for _, lead in lines), default=0)
    if tabs:
        edits += [Edit(Span(at, at + tabs), "", "yaml.tabs") for at, _ in lines]
    if fence:
        edits.append(Edit(Span(end, fence.end("close")), "", "yaml.fence"))
    return tuple(edits)


def raw_texts(body: str, view: View, max_depth: int) -> tuple[Edit, ...]:
    """Return edits that quote text that is not YAML as it is; () where that would be a guess."""
    # Each member is read on its own, so that only those that are broken are touched: where the
    # schema knows the key and wants a text under it. Members are keys of the schema as far to the
    # right as the first line is, which has to be one.
    first = _FIRST.match(body)
    names = "|".join(re.escape(name) for name in view.properties)
    if first is None or not names:
        return ()
    key = rf"^{first[1]}({names})[ \t]*:(?=\s|\Z)"
    keys = list(re.finditer(key, body, re.MULTILINE))
    if not keys or keys[0].start() != first.start(1):
        return ()

    edits: list[Edit] = []
    ends = [match.start() for match in keys[1:]] + [len(body)]
    for match, end in zip(keys, ends, strict=True):
        start = match.start(1)
        try:
            MappingReader(body[start:end], max_depth).read(view)
        except NoYaml:
            edit = None
            if _wants_text(view.properties[match[1]]):
                edit = _quoting(body, body.index(":", match.end(1)) + 1, end, names)
            if edit is None:
                return ()
            edits.append(edit)
        except Refusal:
            return ()
    return tuple(edits)


def _quoting(body: str, start: int, end: int, names: str) -> Edit | None:
    # None if the value in [start, end) is not one line that is plainly a text: a comment after it,
    # a tag, an anchor, a block, a list; a quoted text, or brackets, that lack their end.
    text = body[start:end].strip()
    if not text or "\n" in text or " #" in text or _MARKED.match(text):
        return None
    if text[0] in "\"'" and text.count(text[0]) % 2 == 1:
        return None
    if text[0] in "[{" and any(text.count(a) != text.count(b) for a, b in ("[]", "{}")):
        return None
    if re.search(rf"(?:^|\s)(?:{names})[ \t]*:(?:\s|\Z)", text):
        return None  # two parameters on one line

    # Only blanks may be between the colon and it: a line break would make it another line.
    at = body.index(text, start)
    if body[start:at].strip(" \t"):
        return None
    return Edit(Span(at, at + len(text)), write_quoted(text), "yaml.raw-text")


def _wants_text(view: View) -> bool:
    # Nothing but a text, or null. Of several schemas each has to agree, and one has to want a text.
    kinds = [set(branch.types or ("any",)) for branch in view.any_of or (view,)]
    return any("string" in kind for kind in kinds) and all(
        kind <= {"string", "null"} for kind in kinds
    )
