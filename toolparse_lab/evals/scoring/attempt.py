"""Signs in the text alone that a call was tried, or that the model wrote a tool's result itself.

No parser is involved: a call that a parser failed to read must not pass for the model's silence.
"""

# How it works. Each pattern is searched once, and the first sign in the text wins. The openers of
# formats need the head of a body behind them, so that prose about a format is no attempt; inline
# code and quoted examples are blanked out before, with their length kept so that offsets stay true.
#
# Patterns depend on the tools' names, so they are compiled once for a set of tools and cached.
#
# Cost: an answer may be long, so repetitions are bounded wherever a line break does not end them.

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...protocols.base import Signs
from ...protocols.registry import protocols
from ...types import ParseResult, Span

# Signs of formats without a protocol here; those of protocols are their own `signs`.
_OTHER_FORMATS = Signs(
    openers=(
        r"<\|?/?(?:\w{1,20}:)?(?:tool_?calls?|function_?calls?|tool_use|invoke|action|TOOLCALL)"
        r"(?:_begin|_start)?\b[^<>\n]{0,200}>",
        r"<[|｜]tool▁calls?▁begin[|｜]>",
        r"<start_function_call>",
        r"<\|(?:python_tag|python_start|action_start|function_start|START_ACTION)\|?>",
        r"\[TOOL_CALLS?\]",
        r"\[TOOL_REQUEST\]",
        r"functools(?=\[)",
        r"✿FUNCTION✿\s*:?",
        r">>>(?=\w)",
    ),
)
# The two lines of the ReAct format, and a JSON body that ends with a closing tag.
_REACT = r"^[ \t]*Action[ \t]*:[ \t]*\S[^\n]*\n+[ \t]*Action[ _]Input[ \t]*:"
_CLOSERS = r"[}\]>][ \t\r\n]*</(?:tool_call|function|tool_use|invoke)>"
_MARKS = (_REACT, _CLOSERS)

# Calls as JSON: a member that names a function. Typographic quotes count, since models write them.
_NAME_KEYS = r"name|tool|tool_name|tool_call|function|function_name|action|recipient_name"
_JSON_NAME = re.compile(
    rf"""[{{,\[]\s*["'“]?(?:{_NAME_KEYS})["'”]?\s*:\s*"""
    r"""["'“](?:functions\.)?([^"'“”\n]{1,200})["'”]"""
)
# Members of a tool's definition, which a model may quote, and of a call's arguments.
_DEFINITION = re.compile(r"""["'](?:description|properties|inputSchema)["']\s*:""")
_ARGUMENTS = re.compile(
    r"""["']?(?:arguments|parameters|args|action_input|input|tool_input)["']?\s*[:=]"""
)

# Results that the model wrote itself: marked as such, or as plain lines.
_RESULTS = re.compile(
    r"<(?:\|)?(?:tool_?(?:response|result|output)s?|function_?(?:response|result|output)s?)"
    r"\b[^<>\n]{0,80}>\s*(?=\S)(?!</)"
    r"|\[TOOL_RESULTS?\]\s*(?=\S)"
    r"|<\|im_start\|>\s*tool\b|<\|start_header_id\|>\s*(?:ipython|tool)\b|<\|start\|>functions\.",
    re.IGNORECASE,
)
_RESULT_LINES = re.compile(
    r"^[ \t>*#]*(?:observation|"
    r"(?:tool|function)[ _-]?(?:response|result|output|returned|returns))[ \t*]*:[ \t]*\S",
    re.IGNORECASE | re.MULTILINE,
)
# Characters around a JSON member in which arguments, or a definition, are searched.
_NEARBY = 400
# A line of code may be as long as the answer.
_MAX_SIGN = 120
_ELEMENT = re.compile(r"<[A-Za-z_][\w.-]*>\s*<([A-Za-z_][\w.-]*)>")
_FENCED = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)
_INLINE_CODE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A sign of a call that was tried.

    code: a sub-code of `attempted_unparseable`. text: the sign itself. start: its offset.
    """

    code: str
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class _Patterns:
    """The patterns of an attempt for certain tools and formats.

    opener: a format's opener with the head of a body. mark: a format's mark wherever it is. code: a
    call of a tool in Python. markup: a tag with a tool's name. call_word: a line with "call:" and a
    tool's name. member: a JSON object whose key is a tool's name.
    """

    opener: re.Pattern[str]
    mark: re.Pattern[str]
    code: re.Pattern[str]
    markup: re.Pattern[str]
    call_word: re.Pattern[str]
    member: re.Pattern[str]


@lru_cache(maxsize=1)
def _all_signs() -> Signs:
    """Return the signs of every protocol, and of the formats without one, each once."""
    every = [_OTHER_FORMATS]
    every += (protocol.signs_of_attempts() for protocol in protocols().values())

    # Dicts instead of sets: an alternative that stands first in a pattern is tried first.
    openers: dict[str, None] = {}
    marks: dict[str, None] = {}
    for signs in every:
        openers |= dict.fromkeys(signs.openers)
        marks |= dict.fromkeys(signs.marks)
    return Signs(tuple(openers), tuple(marks))


@lru_cache(maxsize=512)
def _patterns(names: tuple[str, ...], signs: Signs | None) -> _Patterns:
    """Return the patterns for tools of these names and for the signs of one more format.

    names: sorted, so that one set of tools is compiled once. signs: None for no further format.
    """
    # Longer names first, so that the longest one matches. Without tools nothing matches.
    by_length = sorted(names, key=len, reverse=True)
    tool = "|".join(re.escape(name) for name in by_length) or r"(?!)"

    formats = _all_signs()
    own = signs or Signs()
    openers = "|".join((*formats.openers, *own.openers))
    head = rf"(?=\s*(?:[\[{{<\"'(]|\Z|(?:functions\.|call:)?(?:{tool})(?!\w)))"
    marks = "|".join(f"(?:{mark})" for mark in (*formats.marks, *own.marks, *_MARKS))
    return _Patterns(
        opener=re.compile(f"(?:{openers}){head}", re.IGNORECASE),
        mark=re.compile(marks, re.MULTILINE | re.IGNORECASE),
        code=_code_pattern(tool),
        markup=re.compile(rf"</?(?:{tool})(?:\s[^<>\n]{{0,300}})?/?>"),
        call_word=re.compile(rf"^[ \t]*call:(?:{tool})\b", re.MULTILINE),
        member=re.compile(rf"""[{{,\[]\s*["'](?:{tool})["']\s*:\s*\{{"""),
    )


def _code_pattern(tool: str) -> re.Pattern[str]:
    """Return the pattern of a call in Python; `tool` is the expression of the tools' names.

    Such a call is on a line of its own, or has keywords and ends its line, or is in a list that
    begins the answer.
    """
    return re.compile(
        rf"^[ \t]*(?:\[[ \t]*)?(?:print\(|await )?(?:\w+\.)?(?:{tool})[ \t]*"
        r"\([^\n]*\)[\])]*[;,]?[ \t]*$"
        rf"|(?<![\w.])(?:{tool})\((?=[ \t]{{0,9}}[A-Za-z_]\w{{0,60}}[ \t]{{0,9}}=)"
        r"[^\n]{0,300}\)[.!;,]?[ \t]{0,9}$"
        rf"|\A\s*\[\s*(?:{tool})\s*\("
        r"|\A\s*\[\s*[A-Za-z_][\w.]*\(\s*(?:[A-Za-z_]\w*\s*=|\))",
        re.MULTILINE,
    )


def find_attempt(
    text: str,
    tool_names: Iterable[str] = (),
    quoted: Sequence[tuple[int, int]] = (),
    parameters: Iterable[str] = (),
    signs: Signs | None = None,
) -> Attempt | None:
    """Return the first sign of a call in `text`, from which reasoning is left out; None for none.

    tool_names: the tools on offer. quoted: ranges that hold examples; they and inline code are not
    searched. parameters: the names of the tools' parameters: an element around one of
    them, or a lone JSON object of nothing else, is a call whose own name went wrong. signs: those
    of a protocol that is neither shipped nor installed.

    >>> find_attempt('<tool_call>{"name": "f"', ["f"]).code
    'delimiter'
    >>> find_attempt("I would need a `<tool_call>` for that, but f(x) does not fit.", ["f"])
    """
    searched = _masked(text, quoted)
    names = tuple(sorted(set(tool_names)))

    # Of two that begin together, the one that is searched first wins.
    attempts = [
        *_find_patterns(searched, _patterns(names, signs)),
        *_find_json_call(searched, names),
        *_find_parameters(searched, frozenset(parameters)),
    ]
    return min(attempts, key=lambda attempt: attempt.start, default=None)


def _find_patterns(text: str, patterns: _Patterns) -> Iterator[Attempt]:
    """Yield the first match of each pattern, in the order in which they win over one another.

    text: masked, see `_masked`. patterns: those of the tools on offer.
    """
    for code, pattern in (
        ("delimiter", patterns.opener),
        ("delimiter", patterns.mark),
        ("code", patterns.call_word),
        ("markup", patterns.markup),
        ("json", patterns.member),
        ("code", patterns.code),
    ):
        match = pattern.search(text)
        if match is None:
            continue
        sign = match[0].strip()
        if pattern is patterns.code:
            sign = sign[:_MAX_SIGN]
        yield Attempt(code, sign, match.start())


def _find_json_call(text: str, names: tuple[str, ...]) -> Iterator[Attempt]:
    """Yield the first JSON member that names a tool and belongs to a call.

    text: masked, see `_masked`. names: those of the tools on offer.

    >>> [sign.text for sign in _find_json_call('{"name": "f", "arguments": {}}', ())]
    ['{"name": "f"']
    """
    for match in _JSON_NAME.finditer(text):
        if _is_json_call(text, match, names):
            yield Attempt("json", match[0].strip(), match.start())
            return


def _find_parameters(text: str, parameters: frozenset[str]) -> Iterator[Attempt]:
    """Yield calls without a name of their own: parameters as elements, or as one JSON object.

    text: masked, see `_masked`. parameters: the names of the parameters of all tools.

    >>> [sign.code for sign in _find_parameters("<call> <city>Oslo</city>", frozenset(["city"]))]
    ['markup']
    """
    if not parameters:
        return

    for match in _ELEMENT.finditer(text):
        if match[1] in parameters:
            yield Attempt("markup", match[0].strip(), match.start())
            return

    if _is_lone_object(text, parameters):
        yield Attempt("json", text.strip(), 0)


def _is_lone_object(text: str, parameters: frozenset[str]) -> bool:
    """Return whether the text is one JSON object, fenced or not, whose keys are all parameters.

    >>> _is_lone_object('{"city": "Oslo"}', frozenset(["city", "days"]))
    True
    >>> _is_lone_object("{}", frozenset(["city"]))
    False
    """
    body = _FENCED.sub(r"\1", text.strip()).strip()
    if not (body.startswith("{") and body.endswith("}")):
        return False

    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    # An empty object says nothing, not even that a tool without parameters was meant.
    return bool(value) and parameters.issuperset(value)


def _is_json_call(text: str, match: re.Match[str], names: tuple[str, ...]) -> bool:
    """Return whether a name member belongs to a call and not to a tool's definition.

    It does if the tool is on offer, or if there are arguments beside it.

    match: of `_JSON_NAME` in the text. names: those of the tools on offer.
    """
    behind = text[match.end() : match.end() + _NEARBY]
    if _DEFINITION.search(behind.split("\n\n")[0]):
        return False
    if match[1] in names:
        return True

    # The arguments come next, or stood before the name.
    before = text[max(0, match.start() - _NEARBY) : match.start() + 1]
    next_member = behind.lstrip(" \t\r\n,")
    if _ARGUMENTS.match(next_member):
        return True
    return _ARGUMENTS.search(before) is not None


def example_spans(result: ParseResult) -> list[Span]:
    """Return where the parser saw examples: each from its opener to the end of its paragraph.

    The parser marks the opener alone; what it quotes stands behind it.
    """
    spans = []
    for problem in result.problems:
        if problem.code == "call.quoted-example" and problem.span is not None:
            end = result.raw.find("\n\n", problem.span.end)
            spans.append(Span(problem.span.start, len(result.raw) if end < 0 else end))
    return spans


def find_own_result(text: str, *, after_call: bool) -> str:
    """Return the text with which a model began a tool's result itself, or "".

    Plain lines such as "Observation: …" count only where a call was made before (`after_call`),
    since they may be prose elsewhere.

    >>> find_own_result("Observation: 7 degrees", after_call=True)
    'Observation: 7'
    """
    searched = _masked(text, ())
    match = _RESULTS.search(searched)
    if match is None and after_call:
        match = _RESULT_LINES.search(searched)
    return match[0].strip() if match else ""


def _masked(text: str, quoted: Sequence[tuple[int, int]]) -> str:
    """Return the text with inline code and quoted ranges blanked out, of the same length.

    quoted: (start, end) of examples in the text.

    >>> _masked("a `b` c", [(6, 7)])
    'a ··· ·'
    """
    masked = _INLINE_CODE.sub(lambda match: "·" * len(match[0]), text)
    if not quoted:
        return masked
    # As a list, because an answer may hold many examples, and each would copy the text.
    characters = list(masked)
    for start, end in quoted:
        characters[start:end] = "·" * (end - start)
    return "".join(characters)
