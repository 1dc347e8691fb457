"""Signs in the text alone that a call was tried, or that the model wrote a tool's result itself.

No parser is involved: a call that a parser failed to read must not pass for the model's silence.
"""

# How it works. A sign is one of two kinds. A format's own: the openers and marks that protocols say
# themselves, and whatever is shaped like a delimiter and speaks of a call (`<|tool_call|>`,
# `[TOOL_CALLS]`), with the head of a body behind it, so that prose about a format is no attempt. Or
# a structure: the name of a tool on offer beside anything that is shaped like a call: JSON, a tag,
# parentheses, keys of the tool. A structure needs no format to be known, so that a new one is no
# silence.
#
# What only shows something (`examples`) is blanked out before, with its length kept so that offsets
# stay true; a sign in quotation marks is passed over. Of all signs the first in the text wins.
#
# Patterns depend on the tools' names, so they are compiled once for a set of tools and cached.
#
# Cost: an answer may be long, so repetitions are bounded wherever a line break does not end them,
# and only so many quoted signs are passed over.

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..core.toolspec import ToolSpec
from ..core.types import ParseResult, Problem, Span
from ..formats.base import Signs
from ..formats.registry import protocols
from .call_sites import call_sites
from .examples import example_end, is_shown, merged, shown_ranges

# What is shaped like a delimiter and speaks of a call, in tags, brackets or special tokens. Closers
# and results speak of calls, too, so that a word of them excludes it.
_CALL_WORD = (
    r"(?:tool|function|func|api|plugin)[_▁\s:-]?(?:calls?|uses?|requests?|invocations?)"
    r"|calls?|invoke|actions?|function(?==|\s+name=|>|[_▁](?:start|begin))|python_(?:tag|start)"
)
_NO_CALL_WORD = r"(?<![^\W_])(?:end|results?|responses?|outputs?|observations?)(?![^\W_])"
_DELIMITER = Signs(
    openers=(
        rf"<(?!/)(?![^<>\s=]{{0,80}}{_NO_CALL_WORD})(?:[^<>\n]{{0,40}}[\W_▁])?(?:{_CALL_WORD})"
        r"(?![^\W_])[^<>\n]{0,200}>+",
        r"\[(?:(?:TOOL|FUNCTION|API)_(?:CALLS?|REQUEST|USE)|CALLS?)\]",
        # Openers that have no shape of their own.
        r"functools(?=\[)",
        r"✿FUNCTION✿\s*:?",
        r">>>(?=\w)",
    ),
)
# The two lines of the ReAct format, where they name a tool, and a JSON body that ends with a
# closing tag.
_NO_ACTION = r"(?!(?i:none|null|n/?a|no (?:action|tool)|final answer|finish)(?!\w))"
_REACT = rf"^[ \t]*Action[ \t]*:[ \t]*{_NO_ACTION}\S[^\n]*\n+[ \t]*Action[ _]Input[ \t]*:"
_CLOSERS = r"[}\]>][ \t\r\n]*</(?:tool_call|function|tool_use|invoke)>"
_MARKS = (_REACT, _CLOSERS)

# Calls as JSON: a member that names a function. Typographic quotes count, since models write them.
_NAME_KEYS = r"name|tool|tool_name|tool_call|function|function_name|action|recipient_name"
_JSON_NAME = re.compile(
    rf"""[{{,\[]\s*["'“]?(?:{_NAME_KEYS})["'”]?\s*:\s*"""
    r"""["'“](?:functions\.)?([^"'“”\n]{1,200})["'”]"""
)
_JSON_WORD = re.compile(
    r"""[{,\[]\s*["'“][\w -]{1,40}["'”]\s*:\s*["'“](?:functions\.)?([\w.-]{1,200})["'”]"""
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
# Quoted signs of one pattern that are passed over; behind them the next one counts, so that a
# hostile text costs no more than that many looks.
_MOST_PASSED = 200
_ELEMENT = re.compile(r"<[A-Za-z_][\w.-]*>\s*<([A-Za-z_][\w.-]*)>")
_FENCED = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)

# What may stand between a tool's name and what it is called with: tokens, tags, a fence, a label.
_GLUE = (
    r"(?:\s|[\"'”*`]|,|[:：=]|->|<[^<>\n]{1,80}>|\[[A-Z_]{1,20}\]\w{0,40}|```\w{0,20}"
    r"|:\d{1,4}(?!\d)|(?i:\W{0,3}\b(?:with|and|(?:(?:action|tool|function)[ _])?"
    r"(?:arguments?|args|parameters?|params|input))\b\W{0,3})){0,12}?"
)
# The beginning of a JSON object, with a key or nothing in it.
_OBJECT = r"""\{\s*(?:["'“][^"'”\n]{1,80}["'”]\s*[:=]|\w{1,60}\s*[:=]|\})"""
# Tags that only show a word.
_SHOWING = (
    r"(?:li|code|b|i|u|strong|em|td|th|tr|p|a|h[1-6]|span|div|pre|kbd|tt|samp|dt|dd|option|summary)"
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A sign of a call that was tried.

    code: a sub-code of `attempted_unparseable`. text: the sign itself. start: its offset.
    """

    code: str
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One way in which an attempt shows, with the sub-code it gets.

    checked: a match is only a sign where `_is_call` says so.
    """

    code: str
    expression: re.Pattern[str]
    checked: bool = False


_ORDINARY = re.compile(r"\W+(?:json)?")


@lru_cache(maxsize=1)
def _all_signs() -> Signs:
    """Return the signs of every protocol, and of whatever looks like one, each once."""
    every = [_DELIMITER]
    every += (protocol.signs_of_attempts() for protocol in protocols().values())

    # Dicts instead of sets: an alternative that stands first in a pattern is tried first.
    openers: dict[str, None] = {}
    marks: dict[str, None] = {}
    for signs in every:
        # Brackets and fences, which formats of bare JSON begin with, begin much else.
        openers |= dict.fromkeys(sign for sign in signs.openers if not _ORDINARY.fullmatch(sign))
        marks |= dict.fromkeys(signs.marks)
    return Signs(tuple(openers), tuple(marks))


@lru_cache(maxsize=512)
def _patterns(
    names: tuple[str, ...], parameters: tuple[str, ...], signs: Signs | None
) -> tuple[_Pattern, ...]:
    """Return the patterns for certain tools, in the order in which they win over one another.

    names, parameters: of the tools, sorted, so that one set of tools is compiled once. signs: those
    of one more format, None for no further one.
    """
    tool = _one_of(names)
    key = _one_of(parameters)
    formats = _all_signs()
    own = signs or Signs()
    openers = "|".join((*formats.openers, *own.openers))
    head = rf"(?=\s*(?:[\[{{<\"'(]|\Z|(?:functions\.|call:)?(?:{tool})(?!\w)))"
    marks = "|".join(f"(?:{mark})" for mark in (*formats.marks, *own.marks, *_MARKS))
    # The name as a word of its own, in the namespace that some formats put before it.
    name = rf"(?<![\w.-])(?:functions?\.|tools?\.|default_api\.)?(?:{tool})(?![\w-])"

    return (
        _Pattern("delimiter", re.compile(f"(?:{openers}){head}", re.IGNORECASE)),
        _Pattern("delimiter", re.compile(marks, re.MULTILINE | re.IGNORECASE)),
        _Pattern("code", re.compile(rf"^[ \t]*call:(?:{tool})\b", re.MULTILINE)),
        _Pattern("markup", _markup_pattern(tool, name)),
        _Pattern("json", re.compile(rf"""[{{,\[]\s*["'](?:{tool})["']\s*:\s*\{{"""), checked=True),
        _Pattern("json", re.compile(rf"""["'“*`]{{0,3}}{name}{_GLUE}{_OBJECT}"""), checked=True),
        _Pattern("code", re.compile(r"\A\s*\[\s*[A-Za-z_][\w.]*\(\s*(?:[A-Za-z_]\w*\s*=|\))")),
        _Pattern("keys", _keys_pattern(name, key)),
    )


def _one_of(names: tuple[str, ...]) -> str:
    """Return the expression of one of some names, which matches nothing if there are none."""
    # Longer names first, so that the longest one matches.
    by_length = sorted(names, key=len, reverse=True)
    return "|".join(re.escape(name) for name in by_length) or r"(?!)"


def _markup_pattern(tool: str, name: str) -> re.Pattern[str]:
    """Return the pattern of a tag named after a tool, or of a tool's name among tags.

    The name is an attribute's value, inside a tag or between two, or stands between two tags, of
    which the first is none that only shows a word. tool, name: the expressions of the tools' names,
    bare and with a namespace.
    """
    return re.compile(
        rf"</(?:\w{{1,20}}:)?(?:{tool})>"
        rf"|<(?!{_SHOWING}\b)[^<>\n]{{1,120}}=\s*[\"']?{name}[\"']?[^<>\n]{{0,120}}>"
        rf"|>[^<>\n]{{0,60}}=\s*[\"']?{name}[\"']?[^<>\n]{{0,60}}<"
        rf"|<(?!/|{_SHOWING}\b)[^<>\n]{{1,80}}>\s{{0,9}}{name}(?::\d{{1,4}})?\s{{0,9}}<",
        re.IGNORECASE,
    )


def _keys_pattern(name: str, key: str) -> re.Pattern[str]:
    """Return the pattern of a tool's name with its parameters as keys, on its line or below it.

    A list with bullets below a name describes the tool. name, key: the expressions of the names of
    tools and of parameters.
    """
    label = r"[ \t]*(?:[^\W\d_][\w ]{0,30}[ \t]*[:：=][ \t]*)?"
    return re.compile(
        rf"^{label}[\"'`*]{{0,3}}{name}[\"'`*]{{0,3}}[ \t]*[:：]?[ \t]*\n"
        rf"(?:[ \t]*(?:arguments?|args|parameters?|params|(?:action[ _])?input)[ \t]*[:：=]\s*)?"
        rf"[ \t]*[\"'`]?(?:{key})[\"'`]?[ \t]*[:：=][ \t]*\S"
        rf"|^{label}{name}[ \t]*[:：,]?[ \t]+(?:--)?[\"']?(?:{key})[\"']?[ \t]*[:：=][ \t]*\S"
        rf"|^{label}{name}[ \t]+--(?:{key})\b",
        re.MULTILINE | re.IGNORECASE,
    )


def find_attempt(
    text: str,
    tool_names: Iterable[str] = (),
    quoted: Sequence[tuple[int, int]] = (),
    parameters: Iterable[str] = (),
    signs: Signs | None = None,
) -> Attempt | None:
    """Return the first sign of a call in `text`, from which reasoning drops out.

    None for none.

    tool_names: the tools on offer. quoted: ranges that hold examples. They and inline code are not
    searched. parameters: the names of the tools' parameters: an element around one of them, or a
    lone JSON object of nothing else, is a call whose own name went wrong. signs: those of a
    protocol that is neither shipped nor installed.

    >>> find_attempt('<tool_call>{"name": "f"', ["f"]).code
    'delimiter'
    >>> find_attempt("I would need a `<tool_call>` for that, but f(x) does not fit.", ["f"])
    """
    searched = _masked(text, [*quoted, *shown_ranges(text)])
    names = tuple(sorted(set(tool_names)))
    keys = tuple(sorted(set(parameters)))

    # Of two that begin together, the one that is searched first wins.
    attempts = [
        *_find_patterns(searched, _patterns(names, keys, signs)),
        *_find_sites(searched, names),
        *_find_json_call(searched, names, keys),
        *_find_parameters(searched, frozenset(keys)),
    ]
    return min(attempts, key=lambda attempt: attempt.start, default=None)


def _find_sites(text: str, names: tuple[str, ...]) -> Iterator[Attempt]:
    """Yield the first place where a tool's name meets a sign of a call, if it is an attempt."""
    for site in call_sites(text, names):
        if site.attempt and not is_shown(text, site.start):
            code = "markup" if text[site.start] == "<" else "code"
            yield Attempt(code, text[site.start : site.end], site.start)
            return


def _find_patterns(text: str, patterns: tuple[_Pattern, ...]) -> Iterator[Attempt]:
    """Yield the first match of each pattern that is a sign, in the order of the patterns.

    text: masked, see `_masked`. patterns: those of the tools on offer.
    """
    for pattern in patterns:
        matches = pattern.expression.finditer(text)
        if pattern.checked:
            matches = (match for match in matches if _is_call(text, match))
        match = _first_unquoted(text, matches)
        if match is not None:
            yield Attempt(pattern.code, match[0].strip()[:_MAX_SIGN], match.start())


def _first_unquoted(text: str, matches: Iterator[re.Match[str]]) -> re.Match[str] | None:
    """Return the first match that stands in no quotation marks.

    Behind many that do, the next.
    """
    for passed, match in enumerate(matches):
        if passed >= _MOST_PASSED or not is_shown(text, match.start()):
            return match
    return None


def _is_call(text: str, match: re.Match[str]) -> bool:
    """Return False for a tool's definition, which only describes a call."""
    behind = text[match.start() : match.end() + _NEARBY]
    return _DEFINITION.search(behind.split("\n\n")[0]) is None


def _find_json_call(
    text: str, names: tuple[str, ...], parameters: tuple[str, ...] = ()
) -> Iterator[Attempt]:
    """Yield the first JSON member that names a tool and belongs to a call.

    text: masked, see `_masked`. names, parameters: those of the tools on offer.

    >>> [sign.text for sign in _find_json_call('{"name": "f", "arguments": {}}', ())]
    ['{"name": "f"']
    >>> [sign.text for sign in _find_json_call('{"do": "f", "a": 1}', ("f",), ("a",))]
    ['{"do": "f"']
    """
    named = (m for m in _JSON_NAME.finditer(text) if _is_json_call(text, m, names))
    match = _first_unquoted(text, named)
    if match is None:
        # Any other key may hold the name, too, where there are arguments with it.
        arguments = _argument_pattern(parameters)
        words = (m for m in _JSON_WORD.finditer(text) if m[1] in names)
        match = _first_unquoted(text, (m for m in words if _has_arguments(text, m, arguments)))
    if match is not None:
        yield Attempt("json", match[0].strip(), match.start())


def _has_arguments(text: str, match: re.Match[str], arguments: re.Pattern[str]) -> bool:
    """Return True if arguments stand near a match, and no tool's definition."""
    near = text[max(0, match.start() - _NEARBY) : match.end() + _NEARBY]
    return arguments.search(near) is not None and _DEFINITION.search(near) is None


@lru_cache(maxsize=512)
def _argument_pattern(parameters: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of a key that holds arguments, or is a parameter of a tool."""
    return re.compile(rf"""{_ARGUMENTS.pattern}|["'](?:{_one_of(parameters)})["']\s*:""")


def _find_parameters(text: str, parameters: frozenset[str]) -> Iterator[Attempt]:
    """Yield calls without a name of their own: parameters as elements, or as one JSON object.

    text: masked, see `_masked`. parameters: the names of the parameters of all tools.

    >>> [sign.code for sign in _find_parameters("<call> <city>Oslo</city>", frozenset(["city"]))]
    ['markup']
    """
    if not parameters:
        return

    match = _first_unquoted(text, (m for m in _ELEMENT.finditer(text) if m[1] in parameters))
    if match is not None:
        yield Attempt("markup", match[0].strip(), match.start())
        return

    if _is_lone_object(text, parameters):
        yield Attempt("json", text.strip(), 0)


def _is_lone_object(text: str, parameters: frozenset[str]) -> bool:
    """Return True if the text is one JSON object, fenced or not, whose keys are all parameters.

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
    """Return True if a name member belongs to a call and not to a tool's definition.

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
    """Return where the parser saw examples, each from its opener to where it ends.

    The parser marks the opener alone. Its quotation stands behind it, up to the end of the
    quotation or the format's own closer (see `example_end`).
    """
    return list(iter_examples(result.problems, result.raw, _closers(result)))


def iter_examples(problems: Iterable[Problem], raw: str, closers: Sequence[str]) -> Iterator[Span]:
    """Yield the span of each example that the parser noted. closers: of the format's calls."""
    end = 0
    for problem in problems:
        if problem.code == "call.quoted-example" and problem.span is not None:
            start = problem.span.start
            if start >= end:
                end = max(problem.span.end, example_end(raw, start, closers))
                yield Span(start, end)


def _closers(result: ParseResult) -> tuple[str, ...]:
    """Return the end of a call of the format that a text was read by, none if it is unknown."""
    protocol = protocols().get(result.protocol)
    if protocol is None:
        return ()
    return protocol.envelope.closers_in_text({tool.name: tool for tool in result.tools})


def parameter_names(tools: Iterable[ToolSpec]) -> set[str]:
    """Return the names of all parameters of the tools, of the outermost objects alone."""
    names: set[str] = set()
    for tool in tools:
        schema = tool.schema
        if not isinstance(schema, Mapping):
            continue  # `true` is a schema, too
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            names.update(properties)
    return names


def find_own_result(text: str, *, after_call: bool) -> str:
    """Return the text with which a model began a tool's result itself, or "".

    Plain lines such as "Observation: …" count only where a call was made before (`after_call`),
    since they may be prose elsewhere.

    >>> find_own_result("Observation: 7 degrees", after_call=True)
    'Observation: 7'
    """
    searched = _masked(text, shown_ranges(text))
    match = _RESULTS.search(searched)
    if match is None and after_call:
        match = _RESULT_LINES.search(searched)
    return match[0].strip() if match else ""


def _masked(text: str, quoted: Sequence[tuple[int, int]]) -> str:
    """Return the text with ranges of it blanked out, of the same length.

    quoted: (start, end) of text that only shows something, in any order.

    >>> _masked("a b c", [(4, 5), (2, 3)])
    'a · ·'
    """
    parts: list[str] = []
    end = 0
    for start, stop in merged([*quoted]):
        parts += (text[end:start], "·" * (stop - start))
        end = stop
    return "".join([*parts, text[end:]])
