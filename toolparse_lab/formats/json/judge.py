"""Decides the meaning of a damaged JSON body: the nearest reading that the tool's schema takes, and
what words around its JSON say.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter
from typing import Any

from ...arguments.rjson.nearest import ESCAPES, escape_readings, is_certain, nearest_readings
from ...arguments.rjson.positions import apply_edits
from ...arguments.rjson.strict import Refusal, by_span, read_sequence
from ...arguments.schema.coerce import coerce
from ...arguments.schema.validate import find_problems, fits, validate
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Span
from ...core.types.call import Reading
from ...core.types.spans import rule_of
from ...core.values import Value, write_canonical
from ..base import DecodeContext, Decoded

# How it works. The fast repair has one reading of most texts. It counts as it is where each of its
# edits can mean one thing only (a trailing comma, another language's quotes) and the schema takes
# it. Anything else is a proposal beside those of the search: what a sign or two, put right, make of
# the body. Of all that the schema takes the cheapest counts, if it is alone at its cost. Two that
# cost the same are refused, and shown.
#
# Where no tools are given the schema has nothing to say, and the nearest reading counts alone.

_COSTS = (3, 5)  # one sign put right; then two, or three of the plainest
_MOST_SHOWN = 5
# What speaks against a reading, added to the cost of its edits: a parameter inside a string, values
# that only coercion makes fit.
_SWALLOWED = 4
_COERCED = 2
_ESCAPE_COST = 2
_PAIRS = (("{", "}"), ("[", "]"))
# Edits of the fast repair that can mean one thing only.
_PLAIN = frozenset(
    (
        "rjson.trailing-comma", "rjson.single-quotes", "rjson.triple-quotes", "rjson.unquoted-key",
        "rjson.python-literal", "rjson.comment", "rjson.raw-control", "rjson.bad-escape",
        "rjson.loose-number", "rjson.escaped-apostrophe", "rjson.odd-space", "rjson.fence",
        "rjson.equal-duplicate-key",
    )
)  # fmt: skip
_PRICES = {
    "rjson.unescaped-quote": 3,
    "rjson.prose": 4,
    "rjson.missing-comma": 2,
    "rjson.missing-colon": 2,
}
_FENCE = re.compile(r"\s{0,64}```[\w-]{0,16}[ \t]{0,16}\r?\n")
_FINAL = ("decode.empty", "decode.too-deep", "decode.words")

Decode = Callable[[list[Value], list[Edit]], tuple[Decoded, ...]]
"""Values of a body and the edits they took -> its calls. Raises Refusal."""


@dataclass(frozen=True, slots=True)
class _Proposal:
    # `fits` is None if no schema can tell. Readings with equal keys (their values under the
    # schema) are one. stray: the only thing against it is a member that is not a parameter,
    # which validation may let pass. swallows: a string contains a parameter that is missing.

    calls: tuple[Decoded, ...]
    edits: tuple[Edit, ...]
    cost: int
    fits: bool | None
    why: str
    key: str
    stray: bool
    swallows: bool


def settle(
    body: str,
    context: DecodeContext,
    repaired: tuple[list[Value], list[Edit]] | Refusal,
    decode: Decode,
) -> tuple[Decoded, ...]:
    """Return the calls of a damaged body.

    Raises Refusal if no one can tell the meaning.

    repaired: the fast repair's form of it.
    """
    first: _Proposal | None = None
    refusal: Refusal | None = None
    if isinstance(repaired, Refusal):
        refusal = repaired
    else:
        edits = repaired[1]
        rules = set(map(rule_of, edits))
        try:
            # No other damage leaves half of an escape.
            escaped = ESCAPES.issuperset(rules) and _escaped_quote(body, context, edits, decode)
            if escaped:
                return escaped
            calls = decode(*repaired)
            if _PLAIN.issuperset(rules) and _fit(calls, context):
                if _BAD_ESCAPE in rules:
                    _refuse_moved_quote(body, edits)
                return calls
            first = _proposal(calls, edits, _price(edits), context)
        except _Ambiguous:
            raise
        except Refusal as reason:
            refusal = reason

    if refusal is None:
        message = "the damage can be put right in more than one way"
        refusal = Refusal("decode.ambiguous", message, 0)

    guesses = first is not None and _guesses(first.edits)
    if not _may_search(body, context, first, refusal):
        # No closer says that the body ends there, or a member is none of the tool's parameters.
        if first is None or (guesses and (first.stray or not context.closed)):
            refusal.readings = refusal.readings or _either(body, refusal, context, decode)
            raise refusal
        _refuse_moved_quote(body, first.edits, first)
        return first.calls
    calls = _choose(_proposals(body, context, decode, first), first, refusal, body)
    # Where no closer says that the body ends here, a guess at quotes has to be the nearest reading.
    if guesses and not context.closed and first is not None and calls is first.calls:
        raise refusal
    return calls


def _either(
    body: str, refusal: Refusal, context: DecodeContext, decode: Decode
) -> tuple[Reading, ...]:
    # A key with two values is never decided, but both calls are shown.
    proposals = []
    for edits in refusal.alternatives:
        try:
            calls = decode(read_sequence(apply_edits(body, edits)), list(edits))
        except (Refusal, ValueError):
            return ()
        proposals.append(_proposal(calls, edits, _price(edits), context))
    return tuple(_shown(proposals))


def _may_search(
    body: str, context: DecodeContext, first: _Proposal | None, refusal: Refusal
) -> bool:
    # JSON that is whole but for a key with two values says two things. What a moved bracket would
    # make of it is an invention, however near it is.
    if not context.repair or refusal.code in _FINAL:
        return False
    if refusal.code == "decode.duplicate-key" and _PLAIN.issuperset(map(rule_of, refusal.edits)):
        return False
    # A quote too many hides the end from the scanner of a format that needs no closer.
    ends_itself = (
        first is not None
        and body.rstrip()[-1:] in ("}", "]")
        and all(edit.rule != "rjson.missing-bracket" for edit in first.edits)
    )
    return (context.closed or ends_itself) and not _holds_delimiter(body, context)


def _guesses(edits: Sequence[Edit]) -> bool:
    return any(edit.rule == "rjson.unescaped-quote" for edit in edits)


class _Ambiguous(Refusal):
    # A refusal that no other reading can lift.
    pass


def _escaped_quote(
    body: str, context: DecodeContext, edits: Sequence[Edit], decode: Decode
) -> tuple[Decoded, ...]:
    # Raises Refusal if it may be one, and the repair's literal reading may be right as well.
    if not context.repair or not context.closed:
        return ()
    readings = escape_readings(body, edits)
    proposals: list[_Proposal] = []
    for near in readings:
        try:
            calls = decode(near.values, [near.edit])
        except Refusal:
            continue
        proposals.append(_proposal(calls, [near.edit], _ESCAPE_COST, context))
    candidates = [proposal for proposal in proposals if proposal.fits is not False]
    if not candidates:
        return ()
    if len(candidates) == 1 and is_certain(body, readings, edits[0].rule):
        return candidates[0].calls
    message = "a damaged escape can be read in more than one way"
    refusal = _Ambiguous("decode.ambiguous", message, edits[0].span.start)
    refusal.readings = tuple(_shown(candidates))
    raise refusal


def _holds_delimiter(body: str, context: DecodeContext) -> bool:
    # It is in a string then, or a closer was lost. Where the strings of a damaged body end is
    # no longer plain, and their quotations must not become a call.
    if context.envelope is None:
        return False
    marks = (*context.envelope.closers, *context.envelope.heads(context.tools))
    # A bracket that any JSON begins with is no sign of another call, nor is a fence around it.
    fence = _fence_edits(body) if "```" in body else []
    inside = body[fence[0].span.end : fence[1].span.start] if fence else body
    return any(mark in inside for mark in marks if len(mark) > 1)


def _fit(calls: tuple[Decoded, ...], context: DecodeContext) -> bool:
    # Whether the schemas take them as they are or coerced; True where no tools are known. Nothing
    # else can speak against what a plain repair gives.
    for call in calls:
        value, tool = call.arguments, context.tools.get(call.name)
        if not call.readable or not isinstance(value, dict) or (tool is None and context.tools):
            return False
        if tool is None:
            continue
        if not fits(value, tool.schema_json):
            value = coerce(value, tool.schema_json).value
            if not fits(value, tool.schema_json) and any(
                problem.severity == "error" for problem in find_problems(value, tool.schema_json)
            ):
                return False
        if _unknown_key(value, tool.schema):
            return False
    return bool(calls)


def _proposals(
    body: str, context: DecodeContext, decode: Decode, first: _Proposal | None
) -> list[_Proposal]:
    # The cheapest first, the repair's own among them. The search goes further only where
    # nothing within one sign is right.
    proposals: dict[str, _Proposal] = {}
    # Edits put in signs, and no letters: a call of an unknown tool stays one, however far the
    # search goes, and is never executed.
    is_known = (
        not context.tools
        or context.opening.name
        or any(name in body or name.replace(".", "_") in body for name in context.tools)
    )
    costs = _COSTS if is_known else _COSTS[:1]
    fence = _fence_edits(body)
    start, stop = (fence[0].span.end, fence[1].span.start) if fence else (0, len(body))
    for max_cost in costs:
        proposals = {first.key: first} if first is not None else {}
        for near in nearest_readings(body[start:stop], max_cost, context.max_depth):
            edits = [*fence[:1], *(replace(e, span=e.span.shift(start)) for e in near.edits)]
            edits += fence[1:]
            try:
                calls = decode(near.values, edits)
            except Refusal:
                continue
            proposal = _proposal(calls, edits, near.cost + _price(fence), context)
            rival = proposals.get(proposal.key)
            if rival is None or proposal.cost < rival.cost:
                proposals[proposal.key] = proposal
        if any(p.fits is not False and p.cost <= max_cost for p in proposals.values()):
            break

    return sorted(proposals.values(), key=lambda proposal: proposal.cost)


def _fence_edits(body: str) -> list[Edit]:
    # The search reads what is inside.
    opener = _FENCE.match(body)
    end = body.rfind("```")
    if opener is None or end < opener.end() or body[end + 3 :].strip():
        return []
    edges = Span(0, opener.end()), Span(end, len(body))
    return [Edit(span, "", "rjson.fence") for span in edges]


def _choose(
    proposals: list[_Proposal], first: _Proposal | None, refusal: Refusal, body: str
) -> tuple[Decoded, ...]:
    candidates = [proposal for proposal in proposals if proposal.fits is not False]
    if candidates:
        least = [p for p in candidates if p.cost == candidates[0].cost]
        if len(least) == 1:
            if least[0].swallows and _guesses(least[0].edits):
                refusal.readings = tuple(_shown(candidates))
                raise refusal
            _refuse_moved_quote(body, least[0].edits, *candidates)
            return least[0].calls
        message = f"{len(least)} readings are equally near to the text"
        position = min((edit.span.start for p in least for edit in p.edits), default=0)
        refusal = Refusal("decode.ambiguous", message, position)
    elif first is not None and not first.stray:
        # The schema takes none: the call is shown as it was repaired, and is not valid.
        return first.calls

    refusal.readings = tuple(_shown(candidates or proposals))
    raise refusal


# A quote that was moved, dropped or put in beside one that is right may belong to the text or to
# the JSON. Two things say so: other quotes of the same text have their backslash, or the text has
# the half of a pair, whose other half may be what was taken for a sign of the JSON. A backslash
# before such a sign, in a text whose others are doubled, may have changed places with it.

_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_MOVES = frozenset(
    ("rjson.missing-quote", "rjson.extra-sign", "rjson.wrong-sign", "rjson.swapped-signs",
     "rjson.extra-bracket", "rjson.unquoted-value")
)  # fmt: skip
_SIGNS = frozenset("{}[],:")
_MOST_BRACKETS = 64  # behind a text, before an edit
_UNESCAPED, _BAD_ESCAPE = "rjson.unescaped-quote", "rjson.bad-escape"
_DOUBTFUL = _MOVES | {_UNESCAPED, _BAD_ESCAPE}
_QUOTES_IN_TEXT = re.compile(r"(?<![^\W_])['`]|['`](?![^\W_])")


def _refuse_moved_quote(body: str, edits: Sequence[Edit], *proposals: _Proposal) -> None:
    # Raises Refusal if an edit may as well have moved a quote of a text. proposals: to be shown.
    if _DOUBTFUL.isdisjoint(map(rule_of, edits)):
        return
    places: list[tuple[int, int, Edit]] = []  # of each edit in the edited text
    parts: list[str] = []
    end = size = 0
    for edit in edits:
        parts += body[end : edit.span.start], edit.text
        size += edit.span.start - end
        places.append((size, size + len(edit.text), edit))
        size += len(edit.text)
        end = edit.span.end
    edited = "".join((*parts, body[end:]))
    strings = [match.span() for match in _STRING.finditer(edited)]
    inserted = [at for at, _, edit in places if edit.rule == _UNESCAPED]

    @cache
    def has_two_readings(string: int, rule: str) -> bool:
        begin, after = strings[string]
        text = edited[begin + 1 : after - 1]
        if rule == _UNESCAPED:
            own = bisect_left(inserted, after) - bisect_left(inserted, begin)
            return text.replace("\\\\", "").count('\\"') > own
        return text.count("\\\\") > 1 if rule == _BAD_ESCAPE else _is_half(text)

    for start, stop, edit in places:
        rule = edit.rule if edit.rule in (_UNESCAPED, _BAD_ESCAPE) else ""
        if (
            (not rule and edit.rule not in _MOVES)
            or (
                rule == _BAD_ESCAPE
                and edited[start + 2 : start + 3] not in _SIGNS
                # It may have lost its quote behind another backslash.
                and (edited[max(0, start - 2) : start] != "\\\\" or edited[start + 2].isalnum())
            )
        ):
            continue
        # The strings that it touches, and one that only brackets of the JSON part from it.
        string = bisect_right(strings, stop, key=itemgetter(0)) - 1
        while string >= 0:
            after = strings[string][1]
            if after < start and edited[max(after, start - _MOST_BRACKETS) : start].strip(
                "]} \n\t"
            ):
                break
            if has_two_readings(string, rule):
                message = "a quote may belong to the text or to the JSON around it"
                refusal = _Ambiguous("decode.ambiguous", message, edit.span.start)
                refusal.readings = tuple(_shown(proposals))
                raise refusal
            if after < start:
                break
            string -= 1


def _is_half(text: str) -> bool:
    # Half of a pair of brackets or quotes.
    if any(text.count(a) != text.count(b) for a, b in (*_PAIRS, ("(", ")"))):
        return True
    return len(_QUOTES_IN_TEXT.findall(text)) % 2 == 1 or text.count('\\"') % 2 == 1


def _shown(proposals: Iterable[_Proposal]) -> list[Reading]:
    # Of a body of several calls a person sees the first one.
    readings: list[Reading] = []
    for proposal in proposals:
        call = proposal.calls[0]
        if isinstance(call.arguments, dict) and len(readings) < _MOST_SHOWN:
            text = write_canonical(call.arguments)
            readings.append(Reading(call.name, text, proposal.edits, proposal.cost, proposal.why))
    return readings


def _price(edits: Sequence[Edit]) -> int:
    # What the edits of the fast repair would cost the search.
    price = 0
    for edit in edits:
        if edit.rule == "rjson.missing-bracket":
            price += 2 * len(edit.text)
        elif edit.rule == "rjson.single-quotes":
            price += edit.text != '"'
        else:
            price += _PRICES.get(edit.rule, 1)
    return price


def _proposal(
    calls: tuple[Decoded, ...], edits: Sequence[Edit], cost: int, context: DecodeContext
) -> _Proposal:
    all_fit: bool | None = bool(calls)
    stray = swallows_any = False
    whys: list[str] = []
    meanings: list[Value] = []
    for call in calls:
        value: Value = call.arguments
        tool = context.tools.get(call.name)
        fits_one: bool | None = False
        if not call.readable or not isinstance(value, dict):
            value, why = None, "there is no call in it"
        elif tool is None:
            cost += loose_signs(value)
            why = f"{call.name!r} is no tool"
            if not context.tools:
                fits_one, why = None, "no schema says what is right"
        else:
            is_swallowed = swallows(value, tool)
            coerced = coerce(value, tool.schema_json, "safe")
            cost += loose_signs(value) + _SWALLOWED * is_swallowed + _COERCED * bool(coerced.steps)
            value = coerced.value
            problems = [p for p in validate(value, tool.schema_json) if p.severity == "error"]
            unknown = "" if problems else _unknown_key(value, tool.schema)
            if problems:
                why = problems[0].message
            elif unknown:
                stray, why = True, f"{unknown!r} is no parameter"
            else:
                fits_one, why = True, f"fits the parameters of {call.name}"
                swallows_any = swallows_any or is_swallowed
        all_fit = False if False in (fits_one, all_fit) else fits_one
        whys.append(why)
        meanings.append([call.name, value])
    key = write_canonical(meanings)
    return _Proposal(calls, tuple(edits), cost, all_fit, "; ".join(whys), key, stray, swallows_any)


def loose_signs(value: Value) -> int:
    """Return how many strings look as if they held a sign of the JSON around them.

    >>> loose_signs(["a,", "f(x) { }", "b}", {"c:": 1}])
    3
    """
    count = 0
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            ends_open = value[-1:] in (",", ":")
            count += ends_open or any(value.count(a) != value.count(b) for a, b in _PAIRS)
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, dict):
            todo += value
            todo += value.values()
    return count


def _unknown_key(value: Value, schema: Any) -> str:
    # Only a schema that lists its properties, and does not say that it takes others, is looked
    # at.
    todo: list[tuple[Value, Any]] = [(value, schema)]
    while todo:
        value, schema = todo.pop()
        if not isinstance(schema, dict):
            continue
        if isinstance(value, list):
            todo.extend((item, schema.get("items")) for item in value)
        properties = schema.get("properties")
        # A schema that names no property says nothing of the keys.
        if not isinstance(value, dict) or not isinstance(properties, Mapping) or not properties:
            continue
        others = schema.get("additionalProperties")
        for key, member in value.items():
            if key in properties:
                if isinstance(member, (dict, list)):
                    todo.append((member, properties[key]))
            elif others is None and "patternProperties" not in schema and "$ref" not in schema:
                return str(key)
    return ""


def swallows(arguments: Value, tool: ToolSpec) -> bool:
    """Return True if a string among the arguments holds a declared parameter that is missing there.

    A quote too few or too many does that: the next parameter becomes a part of the value.
    """
    schema = tool.schema
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(arguments, dict) or not isinstance(properties, dict):
        return False
    missing = [re.escape(name) for name in properties if name not in arguments]
    if not missing:
        return False
    # As JSON text, strings at any depth are looked at together; their quotes are escaped there.
    pattern = rf"""(?:\\["n]|['\s,{{“])(?:{"|".join(missing)})(?:\\?["'”])?\s*[:=：]"""
    return re.search(pattern, write_canonical(arguments)) is not None


# Dropping words to reach the next brace is how an argument becomes the tool: the object in
# `skill_view({"name": "delete"})` is what `skill_view` was given, and no call of `delete`. So words
# before an object are a name, or the body is refused. Words between two values refuse it too. Words
# after the last value change nothing of what was read: they are dropped, as an edit.


_PROSE = "rjson.prose"
_NAMED = "rjson.name-before"
WORDS = frozenset((_PROSE, "rjson.comment"))
_NAME = re.compile(
    r"\s*+[\"'`*]{0,3}+(?P<name>[\w./@+-]{1,256}+)[\"'`*]{0,3}+\s*+(?P<sign>[(:=,]|->)?+\s*+"
)
_CLOSER = re.compile(r"\s*+\)\s*+;?+\s*+")
# What a body may say in front of a whole call without naming a tool.
_LABELS = frozenset(("json", "tool_call", "tool_calls", "function", "function_call", "call"))


def read_words(
    body: str,
    values: list[Value],
    edits: list[Edit],
    context: DecodeContext,
    keys: tuple[str, str] = ("", ""),
    whole_name: str = "",
) -> tuple[list[Value], list[Edit]]:
    """Return the values and edits of a body whose words around them are read for what they say.

    Only edits by a rule of `WORDS` drop any. keys: of name and arguments, in a format whose objects
    have both. whole_name: the tool that its only value calls by itself, "" if it is none. Raises
    Refusal where words other than a tool's name are in front of a value.
    """
    prose = [edit for edit in edits if edit.rule == _PROSE]
    behind = next((edit for edit in prose if not body[edit.span.end :].strip()), None)
    # A sign by itself is damage of the brackets around it.
    words = [e for e in prose if e is not behind and any(map(str.isalnum, e.span.of(body)))]
    if not words:
        _refuse_comment(body, edits, context, whole_name)
        return values, edits
    match = None
    if len(words) == 1 and keys[0] and _is_first(words[0], body):
        match = _NAME.fullmatch(words[0].span.of(body))
    if match is not None:
        name = match["name"]
        is_label = name in _LABELS and name not in context.tools
        # It only labels the whole call after it, or says its name beforehand.
        if whole_name and not match["sign"] and (name == whole_name or is_label):
            return values, edits
        is_tool = name in context.tools or not context.tools
        if is_tool and len(values) == 1 and isinstance(values[0], dict):
            named = _named(body, edits, words[0], behind, match, keys)
            if named is not None:
                return [{keys[0]: name, keys[1]: values[0]}], named
    # A sign first, as in `("name": …`, is the damaged beginning of the object itself.
    if not words[0].span.of(body).lstrip()[:1].isalnum():
        raise Refusal("decode.json", "the beginning of this JSON is damaged", words[0].span.start)
    message = "the words in front of this JSON are no tool's name, so it may not be a call"
    raise Refusal("decode.words", message, words[0].span.start)


def _refuse_comment(
    body: str, edits: Sequence[Edit], context: DecodeContext, whole_name: str
) -> None:
    for edit in edits:
        if edit.rule != "rjson.comment" or not _is_first(edit, body):
            continue
        words = re.findall(r"[\w./@+-]+", edit.span.of(body))
        if any(word in context.tools and word != whole_name for word in words):
            message = "a comment in front of this JSON names another tool"
            raise Refusal("decode.words", message, edit.span.start)


def _is_first(words: Edit, body: str) -> bool:
    return not body[: words.span.start].strip()


def _named(
    body: str,
    edits: Sequence[Edit],
    words: Edit,
    behind: Edit | None,
    match: re.Match[str],
    keys: tuple[str, str],
) -> list[Edit] | None:
    # The edits that put an object and the name in front of it into one call. None if its
    # parenthesis does not close, or more follows than that.
    start, end = words.span.start + match.start("name"), words.span.start + match.end("name")
    closes = behind is not None and _CLOSER.fullmatch(behind.span.of(body))
    if (match["sign"] == "(") != bool(closes):
        return None
    others = [edit for edit in edits if edit is not words and not (closes and edit is behind)]
    tail = behind.span if closes and behind is not None else Span(len(body), len(body))
    return sorted(
        (
            Edit(Span(words.span.start, start), f'{{"{keys[0]}":"', _NAMED),
            Edit(Span(end, words.span.end), f'","{keys[1]}":', _NAMED),
            *others,
            Edit(tail, "}", _NAMED),
        ),
        key=by_span,
    )
