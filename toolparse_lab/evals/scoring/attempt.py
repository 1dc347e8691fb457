"""Signs in the text alone that a call was tried, or that the model wrote a tool's result itself.

Nothing here asks a parser: what a parser failed to read must not become the model's silence. A sign needs the head of
a body behind it, so that prose about a format is no attempt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

_OPENERS = (
    r"<\|?/?(?:\w{1,20}:)?(?:tool_?calls?|function_?calls?|tool_use|invoke|action|TOOLCALL)(?:_begin|_start)?\b[^<>\n]{0,200}>",
    r"<\|tool_calls?_(?:section_)?(?:begin|start)\|>",
    r"<[|｜]tool▁calls?▁begin[|｜]>",
    r"<start_function_call>",
    r"<\|(?:python_tag|python_start|action_start|function_start|START_ACTION)\|?>",
    r"<function=[^<>\n]{1,200}>?",
    r"\[TOOL_CALLS?\]",
    r"\[TOOL_REQUEST\]",
    r"functools(?=\[)",
    r"✿FUNCTION✿\s*:?",
    r">>>(?=\w)",
)
_FENCES = r"^[ \t]*```[ \t]*(?:tool_calls?|tool_code|function_call)[ \t]*$"
_CHANNEL = r"<\|channel\|>\s*\w+\s+to=[\w.]+|to=functions\.[\w.]+"
_REACT = r"^[ \t]*Action[ \t]*:[ \t]*\S[^\n]*\n+[ \t]*Action[ _]Input[ \t]*:"
_CLOSERS = r"[}\]>][ \t\r\n]*</(?:tool_call|function|tool_use|invoke)>"
_MARKED = re.compile(f"(?:{_FENCES})|(?:{_CHANNEL})|(?:{_REACT})|(?:{_CLOSERS})", re.MULTILINE | re.IGNORECASE)

_NAME_KEYS = r"name|tool|tool_name|tool_call|function|function_name|action|recipient_name"
_JSON_NAME = re.compile(
    rf"""[{{,\[]\s*["'“]?(?:{_NAME_KEYS})["'”]?\s*:\s*["'“](?:functions\.)?([^"'“”\n]{{1,200}})["'”]"""
)
_DEFINITION = re.compile(r"""["'](?:description|properties|inputSchema)["']\s*:""")
_ARGUMENTS = re.compile(r"""["']?(?:arguments|parameters|args|action_input|input|tool_input)["']?\s*[:=]""")

_RESULTS = re.compile(
    r"<(?:\|)?(?:tool_?(?:response|result|output)s?|function_?(?:response|result|output)s?)\b[^<>\n]{0,80}>\s*(?=\S)(?!</)"
    r"|\[TOOL_RESULTS?\]\s*(?=\S)"
    r"|<\|im_start\|>\s*tool\b|<\|start_header_id\|>\s*(?:ipython|tool)\b|<\|start\|>functions\.",
    re.IGNORECASE,
)
_RESULT_LINES = re.compile(
    r"^[ \t>*#]*(?:observation|(?:tool|function)[ _-]?(?:response|result|output|returned|returns))[ \t*]*:[ \t]*\S",
    re.IGNORECASE | re.MULTILINE,
)
_ELEMENT = re.compile(r"<[A-Za-z_][\w.-]*>\s*<([A-Za-z_][\w.-]*)>")
_FENCED = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)
_INLINE_CODE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A sign of a call that was tried: `code` is a sub-code of `attempted_unparseable`, `text` the sign itself."""

    code: str
    text: str
    start: int


@lru_cache(maxsize=512)
def _tool_patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    # A pattern that matches nothing stands in where no tool is known.
    known = "|".join(re.escape(n) for n in sorted(names, key=len, reverse=True)) or r"(?!)"
    head = rf"(?=\s*(?:[\[{{<\"'(]|\Z|(?:functions\.|call:)?(?:{known})(?!\w)))"
    opener = re.compile(f"(?:{'|'.join(_OPENERS)}){head}", re.IGNORECASE)
    code = re.compile(
        rf"^[ \t]*(?:\[[ \t]*)?(?:print\(|await )?(?:\w+\.)?(?:{known})[ \t]*\([^\n]*\)[\])]*[;,]?[ \t]*$"
        rf"|(?<![\w.])(?:{known})\((?=[ \t]{{0,9}}[A-Za-z_]\w{{0,60}}[ \t]{{0,9}}=)[^\n]{{0,300}}\)[.!;,]?[ \t]{{0,9}}$"
        rf"|\A\s*\[\s*(?:{known})\s*\("
        r"|\A\s*\[\s*[A-Za-z_][\w.]*\(\s*(?:[A-Za-z_]\w*\s*=|\))",
        re.MULTILINE,
    )
    markup = re.compile(rf"</?(?:{known})(?:\s[^<>\n]{{0,300}})?/?>")
    call_word = re.compile(rf"^[ \t]*call:(?:{known})\b", re.MULTILINE)
    member = re.compile(rf"""[{{,\[]\s*["'](?:{known})["']\s*:\s*\{{""")
    return opener, code, markup, call_word, member


def find_attempt(
    text: str,
    tool_names: Iterable[str] = (),
    quoted: Sequence[tuple[int, int]] = (),
    parameters: Iterable[str] = (),
) -> Attempt | None:
    """The first sign of a call in `text` (reasoning left out), or None.

    `parameters` are the names of the tools' parameters: an element around one of them, or a lone JSON object of
    nothing else, is a call whose own name went wrong. Inline code and the ranges in `quoted` are examples and are
    not looked at.

    >>> find_attempt('<tool_call>{"name": "f"', ["f"]).code
    'delimiter'
    >>> find_attempt("I would need a `<tool_call>` for that, but f(x) does not fit.", ["f"])
    """
    shown = _masked(text, quoted)
    names = tuple(sorted(set(tool_names)))
    opener, code, markup, call_word, member = _tool_patterns(names)
    found: list[Attempt] = []
    for kind, pattern in (
        ("delimiter", opener),
        ("delimiter", _MARKED),
        ("code", call_word),
        ("markup", markup),
        ("json", member),
    ):
        if m := pattern.search(shown):
            found.append(Attempt(kind, m[0].strip(), m.start()))
    if m := code.search(shown):
        found.append(Attempt("code", m[0].strip()[:120], m.start()))
    for m in _JSON_NAME.finditer(shown):
        if _is_json_call(shown, m, names):
            found.append(Attempt("json", m[0].strip(), m.start()))
            break
    if known := frozenset(parameters):
        m = next((m for m in _ELEMENT.finditer(shown) if m[1] in known), None)
        if m:
            found.append(Attempt("markup", m[0].strip(), m.start()))
        elif _is_lone_object(shown, known):
            found.append(Attempt("json", shown.strip(), 0))
    return min(found, key=lambda a: a.start, default=None)


def _is_lone_object(text: str, known: frozenset[str]) -> bool:
    """Whether the text is one JSON object, fenced or not, whose keys are all parameters."""
    body = _FENCED.sub(r"\1", text.strip()).strip()
    if not (body.startswith("{") and body.endswith("}")):
        return False
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return bool(value) and known.issuperset(value)


def _is_json_call(text: str, m: re.Match[str], names: tuple[str, ...]) -> bool:
    """Whether a name member belongs to a call: of a known name or with arguments, and no tool definition."""
    around = text[m.end() : m.end() + 400]
    if _DEFINITION.search(around.split("\n\n")[0]):
        return False
    before = text[max(0, m.start() - 400) : m.start() + 1]
    return m[1] in names or bool(_ARGUMENTS.match(around.lstrip(" \t\r\n,")) or _ARGUMENTS.search(before))


def find_own_result(text: str, *, after_call: bool) -> str:
    """The text by which a model began a tool's result itself, or ''.

    Plain lines such as "Observation: …" count only where a call was made before (`after_call`).
    """
    shown = _masked(text, ())
    m = _RESULTS.search(shown) or (_RESULT_LINES.search(shown) if after_call else None)
    return m[0].strip() if m else ""


def _masked(text: str, quoted: Sequence[tuple[int, int]]) -> str:
    out = _INLINE_CODE.sub(lambda m: "·" * len(m[0]), text)
    for start, end in quoted:
        out = out[:start] + "·" * (end - start) + out[end:]
    return out
