"""Edits that make a body YAML without touching its content."""

from __future__ import annotations

import re
from collections.abc import Iterator

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


# A bracket that opens, and the one that closes it.
_PAIRS = (("[", "]"), ("{", "}"))


def wrapping(body: str) -> tuple[Edit, ...]:
    """Return edits that take off a code fence around the body, and tabs before every line."""
    edits: list[Edit] = []
    fence = _FENCE.match(body)
    start, end = 0, len(body)
    if fence:
        start, end = fence.end("open"), fence.start("close")
        edits.append(Edit(Span(fence.start("open"), start), "", "yaml.fence"))

    # Only tabs that all lines have are no part of the mapping's own shape.
    lines = [(match.start(1), match[1]) for match in _LINE.finditer(body, start, end)]
    tabs = min((_leading_tabs(lead) for _, lead in lines), default=0)
    if tabs:
        edits += [Edit(Span(at, at + tabs), "", "yaml.tabs") for at, _ in lines]
    if fence:
        edits.append(Edit(Span(end, fence.end("close")), "", "yaml.fence"))
    return tuple(edits)


def _leading_tabs(line: str) -> int:
    return len(line) - len(line.lstrip("\t"))


def raw_texts(body: str, view: View, max_depth: int) -> tuple[Edit, ...]:
    """Return edits that quote text that is not YAML as it is; () where that would be a guess."""
    edits: list[Edit] = []
    names = "|".join(re.escape(name) for name in view.properties)
    for key, start, end in _members(body, names):
        try:
            MappingReader(body[start:end], max_depth).read(view)
        except NoYaml:
            if not _wants_text(view.properties[key]):
                return ()
            colon = body.index(":", start + len(key))
            edit = _quoting(body, colon + 1, end, names)
            if edit is None:
                return ()
            edits.append(edit)
        except Refusal:
            return ()

    return tuple(edits)


def _members(body: str, names: str) -> Iterator[tuple[str, int, int]]:
    # It has to be as far to the right as the first line is, and the first line has to be one.
    # names: the keys, as the source of a pattern.
    first = _FIRST.match(body)
    if first is None or not names:
        return

    key = rf"^{first[1]}({names})[ \t]*:(?=\s|\Z)"
    # Keys that are deeper belong to a value; one that is less deep is no member of this mapping.
    matches = list(re.finditer(key, body, re.MULTILINE))
    if matches and matches[0].start() == first.start(1):
        yield from _up_to_next(matches, len(body))


def _up_to_next(matches: list[re.Match[str]], size: int) -> Iterator[tuple[str, int, int]]:
    ends = [match.start() for match in matches[1:]] + [size]
    for match, end in zip(matches, ends, strict=True):
        yield match[1], match.start(1), end


def _quoting(body: str, start: int, end: int, names: str) -> Edit | None:
    # None if the value in [start, end) is not one line that is plainly a text.
    text = body[start:end].strip()
    if not _is_plainly_text(text):
        return None
    if re.search(rf"(?:^|\s)(?:{names})[ \t]*:(?:\s|\Z)", text):
        return None  # two parameters on one line

    # Behind the colon only blanks may stand before it: a line break would make it another line.
    at = body.index(text, start)
    if body[start:at].strip(" \t"):
        return None
    return Edit(Span(at, at + len(text)), write_quoted(text), "yaml.raw-text")


def _is_plainly_text(text: str) -> bool:
    # not meant as anything else that YAML knows: a comment after it, a tag, an anchor, a block, a
    # list; a quoted text, or brackets, that lack their end
    if not text or "\n" in text:
        return False
    if " #" in text or _MARKED.match(text):
        return False
    return not _lacks_its_end(text)


def _lacks_its_end(text: str) -> bool:
    first = text[0]
    if first in "\"'":
        return text.count(first) % 2 == 1
    if first in "[{":
        return any(text.count(opener) != text.count(closer) for opener, closer in _PAIRS)
    return False


def _wants_text(view: View) -> bool:
    # A schema without types admits anything. At least one branch has to want a text.
    # Of several schemas each has to agree.
    branches = view.any_of or (view,)
    kinds = [set(branch.types or ("any",)) for branch in branches]
    if not any("string" in kind for kind in kinds):
        return False
    return all(kind <= {"string", "null"} for kind in kinds)
