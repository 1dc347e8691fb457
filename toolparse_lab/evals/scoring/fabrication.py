"""Is every name and value of a call said by the text? The parser's own claims are checked against `raw`."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from ...errors import NoOrigin
from ...rules import RULES
from ...types import Edit, Span, Step, ToolCall
from ...values import Num, Value, leaves, read_strict, write_canonical

_NAME_RULES = frozenset({"read.kimi-id", "read.alias-name", "read.function-wrapper"})
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?")
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}


def find_fabrication(raw: str, call: ToolCall, *, coerced: bool = True, value: Value = None) -> str:
    """One sentence on the first name or leaf with no exact origin in `raw` and no lossless step from one, or ''.

    `coerced` False looks at the arguments before coercion. value: the arguments looked at, where they were read before.
    """
    if call.name and not _name_is_said(raw, call):
        return f"the text does not say the name {call.name}"
    text = call.arguments_json if coerced else call.source_json
    if not text:
        return ""
    steps = [s for s in call.steps if coerced or s.stage != "coerce"]
    body = "" if call.edits else call.segment.span.of(raw)
    for path, leaf in leaves(read_strict(text) if value is None else value):
        over = [s for s in steps if _covers(s.path, path)] if steps else ()
        if body and not over and _is_plainly_said(body, path, leaf):
            continue
        if isinstance(leaf, (dict, list)):
            # An empty object or array claims nothing, unless something was dropped to make it.
            if all(s.lossless for s in over if s.stage == "coerce"):
                continue
        elif (over and all(s.lossless for s in over) and _has_origin(call, over)) or _is_said(raw, call, path, leaf):
            continue
        return f"the text does not say {path or 'the arguments'} = {_short(leaf)}"
    return ""


def _is_plainly_said(body: str, path: str, leaf: Value) -> bool:
    """Whether a call's own text gives the leaf to its key in so many words, in JSON or in markup: true of most leaves,
    and much cheaper than to trace where each of them came from."""
    kind = type(leaf)
    if kind is str:
        said = word = leaf
    elif kind is int:
        said = word = str(leaf)
    elif kind is Num:
        said = word = leaf.text
    elif kind is bool:
        said = word = "true" if leaf else "false"
    else:
        return False
    key = path[path.rfind("/") + 1 :]
    if not key:
        return False
    if f"{key}>{said}<" in body or f"{key}>\n{said}\n<" in body:
        return True
    if kind is str:
        word = f'"{leaf}"'
        return "\\" not in leaf and (f'"{key}": {word}' in body or f'"{key}":{word}' in body)
    return any(f'"{key}":{space}{word}{end}' in body for space in (" ", "") for end in (",", "}"))


def _covers(step_path: str, leaf_path: str) -> bool:
    return leaf_path == step_path or leaf_path.startswith(step_path + "/")


def _has_origin(call: ToolCall, steps: Iterable[Step]) -> bool:
    """Whether the value that the steps began with stands somewhere in the text."""
    if any(s.span is not None for s in steps):
        return True
    return any(_origin(call, s.path) is not None for s in steps)


def _origin(call: ToolCall, path: str) -> tuple[Span, bool] | None:
    try:
        origin = call.origin(path)
    except NoOrigin:
        return None
    return origin.span, origin.exact


def _name_is_said(raw: str, call: ToolCall) -> bool:
    if any(s.rule in _NAME_RULES for s in call.steps):
        return True
    if call.name_span is None:
        return False
    said = call.name_span.of(raw)
    return (
        call.name == said
        or call.name in _readings(said)
        or call.name in _readings(_edited(raw, call.name_span, call.edits))
    )


def _is_said(raw: str, call: ToolCall, path: str, leaf: Value) -> bool:
    place = _origin(call, path)
    if place is None:
        return False
    span, exact = place
    if not exact:
        return False
    said = span.of(raw)
    if leaf == said or (type(leaf) is int and str(leaf) == said):
        return True  # as it stands, which is what most leaves are
    texts = {said, _edited(raw, span, call.edits)}
    if isinstance(leaf, str):
        if any(leaf in _readings(t) for t in texts):
            return True
    elif any(_says_scalar(t, leaf) for t in texts):
        return True
    # A repair inside the value is a step too: lossless ones keep it the text's own.
    inside = [e for e in call.edits if span.start <= e.span.start and e.span.end <= span.end]
    return bool(inside) and all(e.rule in RULES and RULES[e.rule].lossless for e in inside) and len(span) > 0


def _edited(raw: str, span: Span, edits: tuple[Edit, ...]) -> str:
    out, at = [], span.start
    for e in edits:
        if span.start <= e.span.start and e.span.end <= span.end and e.span.start >= at:
            out += [raw[at : e.span.start], e.text]
            at = e.span.end
    return "".join([*out, raw[at : span.end]])


def _readings(text: str) -> set[str]:
    """What a piece of text can say as a string: as it stands, trimmed, or with its escapes read."""
    out = {text, text.strip(), text.strip("\"'")}
    if "&" in text:
        out |= {html.unescape(t) for t in tuple(out)}
    if "<![CDATA[" in text:
        out |= {t.replace("<![CDATA[", "").replace("]]>", "") for t in tuple(out)}
    if "\\" in text:
        for t in tuple(out):
            for body in (t, t.replace("\\'", "'"), t.replace('"', '\\"')):
                try:
                    out.add(json.loads(f'"{body}"', strict=False))
                except ValueError:
                    continue
    if "\r" in text:
        out |= {t.replace("\r\n", "\n").replace("\r", "\n") for t in tuple(out)}
    if "''" in text:
        out |= {t.replace("''", "'") for t in tuple(out)}
    return out


def _says_scalar(text: str, leaf: Value) -> bool:
    word = text.strip().strip("\"'").strip()
    if leaf is None or isinstance(leaf, bool):
        folded = word.lower()
        return folded in _CONSTANTS and _CONSTANTS[folded] is leaf
    if not _NUMBER.fullmatch(word):
        return False
    lexeme = leaf.text if isinstance(leaf, Num) else str(leaf)
    if word == lexeme:
        return True
    try:
        return Decimal(word) == Decimal(lexeme)
    except InvalidOperation:
        return False


def _short(leaf: Value) -> str:
    text = write_canonical(leaf)
    return text if len(text) <= 80 else text[:77] + "…"
