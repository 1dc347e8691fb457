"""Answers in which a call is easily read that the model did not make, for every format.

Each generator is one kind of mistake. Every answer says which calls may be executed; anything else
that could be executed is wrong. `benchmarks/unwanted_calls.py` counts them all, and
`test_unwanted.py` asks a part of them.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import toolparse_lab as tp
from toolparse_lab.core.values import same
from toolparse_lab.formats.base import Protocol
from toolparse_lab.formats.reasoning import MARKS
from toolparse_lab.formats.registry import family_heads
from toolparse_lab.formats.turns import PLAIN, TURNS, Turns

Call = tuple[str, Any]

_STRING, _NUMBER = {"type": "string"}, {"type": "number"}
_PARAMETERS: dict[str, dict[str, Any]] = {
    "skill_view": {"name": _STRING},
    "delete": {},
    "now": {},
    "note": {"text": _STRING},
    "add": {"x": _NUMBER, "y": _NUMBER},
    # Parameters named like tools, like the keys of a call, and without a type.
    "tagger": {"delete": _STRING, "note": _STRING},
    "route": {"function": _STRING, "arguments": {"type": "object"}},
    "keep": {"data": {}},
    "pair": {"left": {}, "right": {}},
}
TOOLS: list[dict[str, Any]] = [
    {"name": name, "parameters": {"type": "object", "properties": properties}}
    for name, properties in _PARAMETERS.items()
]
SPECS: dict[str, tp.ToolSpec] = {tool["name"]: tp.ToolSpec.of(tool) for tool in TOOLS}


@dataclass(frozen=True)
class Answer:
    """One answer.

    way: how it was made. format: of the call in it. allowed: the calls that may be executed, of
    which each counts once. right: what a reader should make of it, None where refusing is as good.
    tools: False if none are offered. choices: other calls, one of which may be executed instead.
    """

    way: str
    format: str
    text: str
    allowed: tuple[Call, ...] = ()
    right: tuple[Call, ...] | None = None
    tools: bool = True
    choices: tuple[Call, ...] = ()


Generator = Callable[[str, Protocol, random.Random], Iterator[Answer]]


@cache
def formats() -> dict[str, Protocol]:
    """Every format that writes calls."""
    return {id: p for id, p in tp.protocols().items() if write(p, "note", {"text": "x"})}


def write(protocol: Protocol, name: str, arguments: Any) -> str | None:
    """A call as a format writes it, None where it cannot."""
    try:
        return protocol.write_call(name, json.dumps(arguments), SPECS[name])
    except tp.errors.UnwritableCall:
        return None


# Verdicts


def executed(calls: Sequence[Any]) -> list[Call]:
    """The calls that somebody would run."""
    return [(call.name, call.arguments) for call in calls if call.ok and call.valid]


def verdict(answer: Answer, calls: Sequence[Call]) -> str:
    """ "wrong", "right" or "none" for the calls that would be executed."""
    left = list(answer.allowed)
    for call in calls:
        mine = next((a for a in left if _equal(a, call)), None)
        if mine is not None:
            left.remove(mine)
        elif len(calls) > 1 or not any(_equal(a, call) for a in answer.choices):
            return "wrong"
    if answer.right is None:
        return "right"
    whole = len(calls) == len(answer.right)
    return "right" if whole or calls else "none"


def _equal(a: Call, b: Call) -> bool:
    return a[0] == b[0] and same(a[1], b[1])


# Ways of reading


def _by_name(answer: Answer) -> list[Call]:
    return executed(tp.parse(answer.text, answer.format, _tools(answer)).calls)


def _by_auto(answer: Answer) -> list[Call]:
    return executed(tp.parse(answer.text, "auto", _tools(answer)).calls)


def _stream(answer: Answer, protocol: str, size: int) -> list[Call]:
    parser = tp.stream(protocol, _tools(answer))
    for i in range(0, len(answer.text), size):
        parser.feed(answer.text[i : i + size])
    return executed(parser.close().calls)


@cache
def _middleware(protocol: str) -> Any:
    middleware = tp.create_tool_middleware(protocol)
    return middleware, middleware.transform_params({"messages": [], "tools": TOOLS})


def _handed_on(answer: Any) -> list[Call]:
    calls = [call["function"] for call in answer.message.get("tool_calls", ())]
    valid = [[call.name, call.arguments] for call in answer.result.calls if call.valid]
    pairs = [(call["name"], json.loads(call["arguments"])) for call in calls]
    return [pair for pair in pairs if any(_equal(pair, (n, a)) for n, a in valid)]


def _generated(answer: Answer) -> list[Call]:
    middleware, turn = _middleware(answer.format)
    return _handed_on(middleware.wrap_generate(turn, answer.text))


def _streamed(answer: Answer) -> list[Call]:
    middleware, turn = _middleware(answer.format)
    stream = middleware.wrap_stream(turn)
    deltas = [d for i in range(0, len(answer.text), 4) for d in stream.feed(answer.text[i : i + 4])]
    last, whole = stream.close("stop")
    ids = {c["id"] for d in (*deltas, *last) for c in d.get("tool_calls", ()) if c.get("id")}
    assert ids == {call["id"] for call in whole.message.get("tool_calls", ())}
    return _handed_on(whole)


def _tools(answer: Answer) -> Any:
    return TOOLS if answer.tools else None


READERS: dict[str, Callable[[Answer], list[Call]]] = {
    "name": _by_name,
    "auto": _by_auto,
    "stream by 1": lambda a: _stream(a, a.format, 1),
    "stream by 4": lambda a: _stream(a, a.format, 4),
    "auto by 1": lambda a: _stream(a, "auto", 1),
    "auto by 4": lambda a: _stream(a, "auto", 4),
    "generate": _generated,
    "wrap_stream": _streamed,
}
"""The same answer, read in each of these ways. The last two always offer the tools."""


# 1. An argument becomes the tool

_DATA: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
# Arguments that look like calls.
_INNER, _LISTS = _DATA["inner"], _DATA["lists"]
_CUTS = 6  # places at which a written call is cut off; the seed draws which
# How a name and its arguments are written by hand; in the first group they mean the call.
_NAMED = _DATA["named"]
_LOOSE = _DATA["loose"]


def frames_of(protocol: Protocol) -> list[tuple[str, str]]:
    """The delimiters around a call of a format, and around its body: the outermost and the inner."""
    note, other = write(protocol, "note", {"text": "x"}), write(protocol, "delete", {})
    assert note is not None
    heads = [h for h in protocol.envelope.heads(SPECS) if note.startswith(h)]
    head = max(heads, key=len, default="")
    found = re.compile(r"\{|\[(?=\s*\{|note)|note").search(note, len(head))
    if "note" in head or found is None:
        return [("", "")]
    closers = [c for c in protocol.envelope.closers if note.endswith(c)]
    closer = _common_end(note, other or note).lstrip("}])>")
    inner = (note[: found.start()], closer)
    frames = [inner if inner[0] else ("", "")]
    if head and not (head[-1].isalnum() or head.endswith(":")):  # the opener is not whole
        frames.append((head, max(closers, key=len, default="")))
    return list(dict.fromkeys(frames))


def _common_end(a: str, b: str) -> str:
    n = 0
    while n < min(len(a), len(b)) and a[-n - 1] == b[-n - 1]:
        n += 1
    return a[len(a) - n :]


def an_argument_as_tool(id: str, protocol: Protocol, dice: random.Random) -> Iterator[Answer]:
    """Arguments that look like a call, or name another tool."""
    yield from _own_bodies(id, protocol, dice)
    yield from _foreign_bodies(id, protocol)
    yield from _lost_heads(id, protocol)
    yield from _of_others(id, protocol, dice)


def _own_bodies(id: str, protocol: Protocol, dice: random.Random) -> Iterator[Answer]:
    """What the format itself writes: read back, or refused."""
    other = write(protocol, "delete", {}) or ""
    calls: list[Call] = [("skill_view", inner) for inner in _INNER]
    calls += [("keep", {"data": inner}) for inner in (*_INNER, *_LISTS)]
    calls += [
        ("tagger", {"delete": "", "note": "x"}),
        ("tagger", {"delete": "now"}),
        ("route", {"function": "delete", "arguments": {}}),
        ("route", {"function": "delete", "arguments": {"name": "now", "arguments": {}}}),
        ("note", {"text": other}),
        ("note", {"text": f"Please {other} it"}),
        ("note", {"text": '{"name": "delete", "arguments": {}}'}),
        ("note", {"text": "delete()"}),
        ("note", {"text": "[delete()]"}),
        ("note", {"text": "<delete></delete>"}),
        ("skill_view", {"name": '{"name": "delete"}'}),
    ]
    for name, arguments in calls:
        text = write(protocol, name, arguments)
        if text is not None:
            call = (name, arguments)
            yield Answer("as the format writes it", id, text, (call,), (call,))
            for cut in dice.sample(range(1, len(text)), min(_CUTS, len(text) - 1)):
                yield Answer("cut off", id, text[:cut], (call,))


def _foreign_bodies(id: str, protocol: Protocol) -> Iterator[Answer]:
    """A body that another format has, between this one's delimiters."""
    frames = frames_of(protocol)
    for inner in _INNER:
        text = json.dumps(inner)
        meant: Call = ("skill_view", inner)
        for pattern in _NAMED:
            body = pattern.format(text)
            yield Answer("a named body alone", id, body, (meant,))
            for opener, closer in frames:
                yield Answer("a named body", id, opener + body + closer, (meant,))
        for pattern in _LOOSE:
            body = pattern.format(text)
            choices = (("skill_view", {"skill": inner}),) if "skill=" in pattern else ()
            for opener, closer in frames:
                if opener:
                    whole = opener + body + closer
                    yield Answer("words before a body", id, whole, (meant,), choices=choices)


def _lost_heads(id: str, protocol: Protocol) -> Iterator[Answer]:
    """A call whose beginning was lost, up to its arguments."""
    for inner in _INNER[:4]:
        for name, arguments in (("skill_view", inner), ("keep", {"data": inner})):
            text = write(protocol, name, arguments)
            if text is None or "delete" not in text:
                continue
            # Behind the name the inner object is a call like any other.
            for cut in range(1, text.find(name) + 1):
                if not text[cut:].lstrip().startswith("{"):
                    yield Answer("its beginning is lost", id, text[cut:], ((name, arguments),))


def _of_others(id: str, protocol: Protocol, dice: random.Random) -> Iterator[Answer]:
    """A format's call, read by the name of another one."""
    calls: list[Call] = [("skill_view", inner) for inner in _INNER]
    calls += [("note", {"text": "<delete></delete>"}), ("tagger", {"delete": "now"})]
    for other in family_heads():
        for name, arguments in dice.sample(calls, 3):
            text = write(protocol, name, arguments)
            if text is not None and other != id:
                call = (name, arguments)
                yield Answer(f"read as {other}", other, text, (call,))
                yield Answer(f"read as {other}", other, text[: len(text) * 3 // 4], (call,))


# 2. After the end of the turn


def after_the_turn(id: str, protocol: Protocol, dice: random.Random) -> Iterator[Answer]:
    """Turns that the model made up, and the tokens around its own."""
    call = write(protocol, "delete", {})
    note = write(protocol, "note", {"text": "x"})
    if call is None or note is None:
        return
    mine: Call = ("note", {"text": "x"})
    plain = _reads(id, f"Sure.\n{note}")
    for family, turns in TURNS.items():
        yield from _foreign_turns(id, protocol, family, turns, call)
        for end in turns.ends:
            yield Answer(f"{family}: its end after a call", id, note + end, (mine,), (mine,))
            text = f"{note}{end}\n{call}"
            if not (turns.several or _goes_on(protocol, end, call)):
                yield Answer(f"{family}: a call after a call's end", id, text, (mine,))
            if plain and end not in PLAIN:
                text = f"The token `{end}` ends a turn.\n{note}"
                yield Answer(f"{family}: its end in quoted code", id, text, (mine,), (mine,))
        for head in turns.assistant:
            yield Answer(f"{family}: its header first", id, f"{head}\n{note}", (mine,), (mine,))
        for head in turns.results:
            head, closer = head + "\n" * head.startswith("```"), _closer_of(head)
            text = f'{note}\n{head}{{"ok": true}}{closer}\n{call}'
            yield Answer(f"{family}: after a result", id, text, (mine,))
            if head not in PLAIN:
                text = f"Sure.\n{head}done{closer}\n{call}"
                yield Answer(f"{family}: after a result", id, text)
                yield Answer(f"{family}: in a result", id, f"Sure.\n{head}{call}{closer}")
    own = protocol.format_tool_response({"toolName": "note", "output": "done"})
    if not own.startswith("{"):
        yield Answer("own result", id, f"{note}\n{own}\n{call}", (mine,))
        if id != "react":
            yield Answer("own result", id, f"I wait.\n{own}\n{call}")


def _goes_on(protocol: Protocol, end: str, call: str) -> bool:
    """Return True if a format has messages of its own that end so and go on with a call."""
    own = (*protocol.envelope.heads(SPECS), *protocol.envelope.closers)
    return end in own or any(
        turns.several and end in turns.ends and call.lstrip().startswith(turns.assistant)
        for turns in TURNS.values()
    )


def _foreign_turns(
    id: str, protocol: Protocol, family: str, turns: Turns, call: str
) -> Iterator[Answer]:
    heads = (*turns.user, *turns.system, *turns.tool)
    for end in turns.ends or ("",):
        for head in heads:
            role = "user" if head in turns.user else "system" if head in turns.system else "tool"
            way = f"{family}: {role}"
            yield Answer(way, id, f"Sure.{end}\n{head}\n{call}")
            if end or head not in PLAIN:
                yield Answer(way, id, f"Sure.{end}{head}{call}")
            yield Answer(way, id, f"Sure.{end}\n{head}\n\nPlease do it:\n{call}{end}")
            if head in turns.user[:1] and head not in PLAIN:
                text = f"<think>Yes.{end}\n{head}\nDo it.</think>\n{call}"
                yield Answer(f"{way}, in reasoning", id, text)
            if turns.assistant and (end or head not in PLAIN):
                go_on = f"{end}\n{turns.assistant[0]}\n{call}"
                yield Answer(f"{way}, then the answer", id, f"Sure.{end}{head}\nDo it.{go_on}")
        if end and not (turns.several or _goes_on(protocol, end, call)):
            yield Answer(f"{family}: after the end", id, f"Sure.{end}\n{call}")
            for head in turns.assistant:
                text = f"Sure.{end}\n{head}\n{call}"
                yield Answer(f"{family}: another answer", id, text)
    for head in heads:
        yield Answer(f"{family}: a header alone", id, f"Sure.\n{head}\n{call}")
        if "begin" not in head and head not in ("<|startoftext|>", "]~!b["):
            yield Answer(f"{family}: a header first", id, f"{head}\n{call}")


def _closer_of(opener: str) -> str:
    """The closer that a literal of a result has, as far as its looks say."""
    if opener.startswith("```"):
        return "\n```"
    for a, b in (
        ("_start|>", "_end|>"),
        (":begin|>", ":end|>"),
        ("begin", "end"),
        ("START", "END"),
    ):
        if a in opener:
            return opener.replace(a, b)
    if opener.startswith("<|"):
        return f"<{opener[2:].removesuffix('|>').removesuffix('>')}|>"
    if opener.startswith(("<", "[")):
        return f"{opener[0]}/{opener[1:]}"
    return ""


@cache
def _reads(id: str, text: str) -> bool:
    return bool(executed(tp.parse(text, id, TOOLS).calls))


# 3. The same calls twice


def the_same_calls_twice(id: str, protocol: Protocol, dice: random.Random) -> Iterator[Answer]:
    """Calls that are announced, explained or summed up, and then made."""
    ones: tuple[Call, ...] = (("add", {"x": 1, "y": 2}), ("note", {"text": "milk"}))
    texts = [write(protocol, *call) for call in ones]
    if None in texts:
        return
    first, second = (str(text) for text in texts)
    if not _reads(id, f"First I add.\n{first}"):
        return
    both = protocol.join_calls([first, second])
    ways = {
        "steps, then all": f"1. Add:\n{first}\n\n2. Write:\n{second}\n\nThe final answer is:\n{both}",
        "steps in lines, then all": f"Step 1\n{first}\nStep 2\n{second}\nSo, all calls:\n\n{both}",
        "all, then steps": f"All calls:\n{both}\n\nFirst:\n{first}\n\nThen:\n{second}",
        "all twice": f"{both}\n\nAgain, the final answer:\n\n{both}",
        "all in a later fence": f"{both}\n\nIn short:\n\n```\n{both}\n```",
        "one, then all": f"I begin with this.\n{first}\n\nAnd together:\n{both}",
    }
    if second not in both:
        # Without words only a list says that it is all of them; single calls may be meant again.
        ways["all twice, no words"] = f"{both}\n\n{both}"
        ways["numbers, then all"] = f"1. {first}\n2. {second}\n\n{both}"
    for way, text in ways.items():
        yield Answer(way, id, text, ones, ones)
    one = ones[:1]
    for way, text in {
        "one twice": f"{first}\n\nSo the call is:\n\n{first}",
        "one in a later fence": f"{first}\n\nThat is:\n\n```\n{first}\n```",
        "one in a fence before": f"```\n{first}\n```\n\nI make the call now.\n\n{first}",
    }.items():
        yield Answer(way, id, text, one, one)
    turned = write(protocol, "add", {"y": 2, "x": 1}) or first
    text = f"{first}\n\nOnce more, the call is:\n\n{turned}"
    yield Answer("in another order", id, text, one, one)
    # In one list each counts, however alike they are.
    two = (ones[0], ones[0])
    yield Answer("twice in one list", id, protocol.join_calls([first, first]), two, two)


# 4. A marker in prose

_PROSE = _DATA["prose"]


def a_marker_in_prose(id: str, protocol: Protocol, dice: random.Random) -> Iterator[Answer]:
    """A sentence about the format's own marker."""
    markers = {opener.strip(): closer for opener, closer in frames_of(protocol)}
    for marker, closer in markers.items():
        if not re.search(r"[^\W\d_]", marker) or marker.startswith("```"):
            continue
        for sentence in _PROSE:
            text = sentence.format(marker)
            yield Answer("a sentence", id, text)
            yield Answer("a sentence and the closer", id, f"{text}\n{closer}")
            yield Answer("a later line", id, f"In this format:\n\n{text}\n\nIs that clear?")


# 5. One foreign character at a boundary

_FOREIGN = ",;.:x7\"'<>/\\{}[]()=|-*`#&\n\u4e2d\u200b\u00a0"
_CHARACTERS = 4  # of them at each place; the seed draws which
_SUBJECTS: tuple[Call, ...] = (
    ("note", {"text": "quince jelly"}),
    ("add", {"x": 4711, "y": 8033}),
    ("tagger", {"delete": "quince", "note": "jelly"}),
    ("delete", {}),
)


def a_foreign_character(id: str, protocol: Protocol, dice: random.Random) -> Iterator[Answer]:
    """A written call with one character too many, outside of its names and values."""
    for name, arguments in _SUBJECTS:
        text = write(protocol, name, arguments)
        if text is None:
            continue
        strings = [value for value in arguments.values() if isinstance(value, str)]
        words = (name, *arguments, *(v for v in arguments.values() if v not in strings))
        inside = _word_places(text, words) | _word_places(text, strings, edges=False)
        edges = _word_places(text, strings)
        places = [at for at in range(1, len(text) + 1) if at not in inside]
        # At the edge of a value the character may be a part of it. Two places may give one text.
        choices = {
            text[:at] + character + text[at:]: (name, {**arguments, key: value % character})
            for at in places
            for key, value in _values_around(text, at, arguments)
            for character in _FOREIGN
        }
        call: Call = (name, arguments)
        for at in places:
            for character in dice.sample(_FOREIGN, _CHARACTERS):
                damaged = text[:at] + character + text[at:]
                choice = (choices[damaged],) if damaged in choices else ()
                way = f"one character {_place(text, at)}"
                yield Answer(way, id, damaged, (call,), (call,), choices=choice)
        untouched = [at for at in places if not {at, at + 1, at + 2} & (inside | edges)]
        for at in untouched:
            lost = text[:at] + text[at + 1 :]
            turned = text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]
            yield Answer(f"one lost {_place(text, at)}", id, lost, (call,), (call,))
            yield Answer(f"two turned {_place(text, at + 1)}", id, turned, (call,), (call,))


def _place(text: str, at: int) -> str:
    beside = text[at - 1 : at + 1]
    return "in a token" if any(c.isalnum() for c in beside) else "at a boundary"


def _values_around(text: str, at: int, arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The parameters and values, with %s in them, to which a character there may belong: nothing
    but white space is between."""
    before, after = text[:at].rstrip(), text[at:].lstrip()
    for key, value in arguments.items():
        if isinstance(value, str) and after.startswith(value):
            yield key, "%s" + text[at : len(text) - len(after)] + value
        if isinstance(value, str) and before.endswith(value):
            yield key, value + text[len(before) : at] + "%s"


def _word_places(text: str, words: Any, edges: bool = True) -> set[int]:
    """The offsets in words, and at their edges."""
    return {
        place
        for word in words
        for found in re.finditer(re.escape(str(word)), text)
        for place in range(found.start() + (not edges), found.end() + edges)
    }


# 6. No call at all


def no_call(id: str, protocol: Protocol, dice: random.Random) -> Iterator[Answer]:
    """Names and values that nobody wrote as such."""
    note = write(protocol, "note", {"text": "quince"})
    add = write(protocol, "add", {"x": 4711, "y": 8033})
    keep = write(protocol, "keep", {"data": "quince"})
    bare = re.sub(r'(?<=[:{])(\s*)"note"', r"\1note", note or "")
    if bare != (note or ""):
        yield Answer("a bare word as a name, no tools", id, bare, tools=False)
    for word in ("NaN", "nan", "Infinity", "-Infinity", "undefined"):
        if add and "4711" in add:
            yield Answer("not a number", id, add.replace("4711", word))
        if keep and ': "quince"' in keep:
            yield Answer("not a value", id, keep.replace('"quince"', word))
    for name, first, second in (("tagger", "delete", "note"), ("pair", "left", "right")):
        text = write(protocol, name, {first: "quince", second: "jelly"})
        if text is not None:
            one: list[Call] = [(name, {first: value}) for value in ("quince", "jelly")]
            if id == "morph_xml" and name == "pair":
                one.append((name, {first: ["quince", "jelly"]}))  # how XML writes a list
            twice = re.sub(rf"\b{second}\b", first, text)
            yield Answer("a key twice", id, twice, choices=tuple(one))


# 7. A call that is thought

# Marks that the parser's table does not have, and slips in those that it has.
_MORE_MARKS = _DATA["marks"]


def a_call_that_is_thought(id: str, protocol: Protocol, dice: random.Random) -> Iterator[Answer]:
    """A call inside reasoning, whose marks are any model's."""
    call, note = write(protocol, "delete", {}), write(protocol, "note", {"text": "x"})
    if call is None or note is None:
        return
    mine: Call = ("note", {"text": "x"})
    right = (mine,) if _reads(id, f"Sure.\n{note}") else None
    weak = [m.opener for m in MARKS if m.first] + [
        "<plan>",
        "<rationale>",
        "◁reason▷",
        "<|reflect|>",
    ]
    pairs = [(m.opener, end, m.stops) for m in MARKS for end in (m.closers or m.stops)[:1]]
    for opener, closer, stops in (*pairs, *((a, b, ()) for a, b in _MORE_MARKS)):
        # What begins a message of the format's own ends the reasoning before it.
        if any(stop in call for stop in stops):
            continue
        thought = f"{opener.strip()}\nI might call it.\n{call}\n"
        way = f"in {opener.strip()}"
        yield Answer(way, id, f"{thought}But no.\n{closer}\n\n{note}", (mine,), right)
        yield Answer(way, id, f"{thought}{closer}\nI did nothing.")
        yield Answer(way, id, thought)
        yield Answer(way, id, f"{thought}But no, let me see.")
        if opener not in weak:
            text = f"Sure.\n{thought}But no.\n{closer}\n\n{note}"
            yield Answer(f"{way}, behind a line", id, text, (mine,), right)


KINDS: dict[str, Generator] = {
    "an argument becomes the tool": an_argument_as_tool,
    "after the end of the turn": after_the_turn,
    "the same calls twice": the_same_calls_twice,
    "a marker in prose": a_marker_in_prose,
    "one foreign character": a_foreign_character,
    "no call": no_call,
    "a call that is thought": a_call_that_is_thought,
}


@cache
def _made(kind: str, seed: int) -> list[list[Answer]]:
    """All answers of a kind, a list for each format."""
    return [
        list(KINDS[kind](id, protocol, random.Random(f"{id} {seed}")))
        for id, protocol in formats().items()
    ]


def answers(kind: str, n: int | None = None, seed: int = 0) -> list[Answer]:
    """The answers of one kind over all formats; n: that many of each format, as the seed draws.

    A way of which there are few is drawn as often as the others.
    """
    dice = random.Random(f"{kind} {seed}")
    return [
        answer
        for made in _made(kind, seed)
        for answer in (made if n is None or n >= len(made) else _draw(made, n, dice))
    ]


def _draw(made: list[Answer], n: int, dice: random.Random) -> list[Answer]:
    ways: dict[str, list[Answer]] = {}
    for answer in made:
        ways.setdefault(answer.way, []).append(answer)
    drawn: list[Answer] = []
    while len(drawn) < n:
        way = dice.choice(list(ways))
        found = ways[way]
        drawn.append(found.pop(dice.randrange(len(found))))
        if not found:
            del ways[way]
    return drawn
