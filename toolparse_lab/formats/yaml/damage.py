"""Damaged YAML bodies: the edits that put them right, and which reading counts, if any does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from ...arguments.rjson.nearest import QUOTES
from ...arguments.rjson.strict import Refusal
from ...arguments.schema.view import View
from ...core.types import Edit, Span
from ...core.values import Value, leaves
from ..base import Decoded
from ..disambiguation import RULE, OneCall, is_doubtful_name, names_below
from .reader import MappingReader, NoYaml
from .write import write_quoted

_KEY_RULE = "yaml.near-key"
_MOST_LINES = 8
_SHORTEST_GLUED = 4  # letters of a parameter whose line break may have been lost before it
_BREAK = re.compile(r" \n(?= *[^ \n])|\n[:\"]")
# A line's value after its key or dash.
_LINE = re.compile(r"^[ \t]*+(?:- )*+(?:[\w.\-]++: )?(?P<value>[^\n]*?)[ \t]*$", re.MULTILINE)


def sign_edits(body: str) -> list[Edit]:
    """Return the edits that each put one sign of a body right, () if too many lines need one."""
    edits: list[Edit] = []
    # The second bracket of a tag that has it twice.
    if body.startswith(">"):
        edits.append(Edit(Span(0, 1), "", RULE))
    end = len(body.rstrip())
    if body[end - 1 : end] == "<":
        edits.append(Edit(Span(end - 1, end), "", RULE))

    # A line break that changed places with the first blank of its line's indent, or with a sign.
    breaks = list(islice(_BREAK.finditer(body), _MOST_LINES + 1))
    if len(breaks) <= _MOST_LINES:
        edits += [Edit(Span(*match.span()), match[0][::-1], _KEY_RULE) for match in breaks]

    lines = 0
    for match in _LINE.finditer(body):
        near = list(_quote_edits(match["value"], match.start("value")))
        edits += near
        lines += bool(near)
        if lines > _MOST_LINES:
            return []
    return edits


def _quote_edits(value: str, at: int) -> Iterator[Edit]:
    end = at + len(value)
    first, last = value[:1], value[-1:]
    if len(value) < 2:
        return
    if first == '"' and last != '"':
        if last in QUOTES:
            yield Edit(Span(end - 1, end), '"', _KEY_RULE)
        elif value[1:][-2:-1] == '"':
            yield Edit(Span(end - 2, end), last + '"', _KEY_RULE)
        else:
            yield Edit(Span(end, end), '"', _KEY_RULE)
    elif last == '"' and first != '"':
        if first in QUOTES:
            yield Edit(Span(at, at + 1), '"', _KEY_RULE)
        elif value[:-1][1:2] == '"':
            yield Edit(Span(at, at + 2), '"' + first, _KEY_RULE)
        else:
            yield Edit(Span(at, at), '"', _KEY_RULE)
    elif first == last == '"':
        if value.startswith('""'):
            yield Edit(Span(at, at + 1), "", _KEY_RULE)
        if value.endswith('""'):
            yield Edit(Span(end - 1, end), "", _KEY_RULE)


def is_half_quoted(value: Value, body: str) -> bool:
    """Return True if a text is bare in a body, with a quote at its end and not at its beginning."""
    for _, node in leaves(value):
        if isinstance(node, str) and node[-1:] == '"' and "\n" not in node:
            is_pair = node.count('"') % 2 == 0 and node[1:2] != '"'
            if is_pair or node[:1] == '"' or (node[-2:-1].isdigit() and node[:1] not in QUOTES):
                continue
            if re.search(rf"[:\-] +{re.escape(node)}\s*(?:\n|\Z)", body):
                return True
    return False


_INDENTS = ("\n  ", "\n    ", "\n  - ", "\n- ")


class MappingDisambiguation(OneCall):
    """One body. Its alphabet: a line break, the indentation, a key of the schema and its colon."""

    rule = "yaml.near-key"  # what is put right here is no tag
    doubt = "a key looks like a damaged one of the schema"

    def may_be_better(self, call: Decoded) -> bool:
        return not call.arguments.keys() >= set(self.parameters.required)

    def is_doubtful(self, call: Decoded) -> bool:
        arguments = call.arguments
        return holds_unknown(arguments, self.parameters) or is_half_quoted(arguments, self.body)

    def is_doubtful_once_edited(self, call: Decoded, text: str) -> bool:
        value = call.arguments
        if not value.keys() <= self.parameters.properties.keys():
            return True
        # A value that begins with a colon has that of its key, or contains half a pair of quotes.
        return is_half_quoted(value, text) or any(
            isinstance(item, str)
            and ((item[:1] == ":" and item[1:2].isalnum()) or item.count('"') % 2 == 1)
            for item in value.values()
        )

    def tags(self) -> list[str]:
        # Members may be in a mapping, in a mapping of a list, or deeper by one level.
        properties = self.parameters.properties
        deeper = sorted(names_below(self.parameters) - set(properties))
        inner = [f"{indent}{name}:" for name in deeper for indent in _INDENTS]
        return [*(f"\n{name}:" for name in properties), *inner]

    def other_edits(self) -> Sequence[Edit]:
        return sign_edits(self.body)


def holds_unknown(value: dict[str, Value], view: View) -> bool:
    """Return True if a key is near to a parameter's that is missing, or belongs further inside."""
    if not view.properties:
        return False
    unknown = [key for key in value if key not in view.properties]
    # A sign at the end of a name belongs to the YAML around it.
    return any(not str(key)[-1:].isalnum() and key[-1:] != "_" for key in unknown) or any(
        is_doubtful_name(key, value, view, repaired=False) for key in unknown
    )


_FENCE = re.compile(
    r"\s*(?P<open>```[ \t]*(?:ya?ml)?[ \t]*\r?\n)(?:.*\n)?(?P<close>[ \t]*```[ \t]*)\s*\Z",
    re.DOTALL,
)
_INDENTED = re.compile(r"^([ \t]*)\S", re.MULTILINE)
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
    lines = [(match.start(1), match[1]) for match in _INDENTED.finditer(body, start, end)]
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
            # Nothing but a text, or null. Of several schemas each has to agree, and one has to want
            # a text.
            member = view.properties[match[1]]
            kinds = [set(branch.types or ("any",)) for branch in member.any_of or (member,)]
            wants_text = any("string" in kind for kind in kinds)
            if wants_text and all(kind <= {"string", "null"} for kind in kinds):
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
    if text[0] == '"' and '\\"' in text:
        return None  # quoted, and one of its quotes is out of place
    glued = "|".join(name for name in names.split("|") if len(name) >= _SHORTEST_GLUED)
    inside = rf"(?:^|[\s\"'])(?:{names})" + (rf"|(?:{glued})" if glued else "")
    if re.search(rf"(?:{inside})[\"']?[ \t]*:(?:\s|\Z)", text):
        return None  # two parameters on one line

    # Only blanks may be between the colon and it: a line break would make it another line.
    at = body.index(text, start)
    if body[start:at].strip(" \t"):
        return None
    return Edit(Span(at, at + len(text)), write_quoted(text), "yaml.raw-text")
