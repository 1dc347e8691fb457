"""One damaged character in a call, at every place: how many calls are read right, refused or wrong.

    python benchmarks/damage.py                      # the table of the JSON bodies
    python benchmarks/damage.py --formats morph_xml qwen3_coder_xml
    python benchmarks/damage.py --misses hermes      # and the texts that were read wrong

Each structural character of a body is deleted, doubled, swapped with the next character, and
replaced by a look-alike. Bodies that are whole as they stand are left out. A call is wrong where it
could be executed (ok and valid) and says something else than was meant. `json-repair` with
jsonschema reads the same bodies, where it is installed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import toolparse_lab as tp

JSON_FORMATS = ("hermes", "gemma", "kimi_k2", "harmony_channel", "openai_json", "bracketed")
WAYS = ("deleted", "doubled", "swapped", "look-alike")
_JSON_SIGNS = '{}[],:"'
_XML_SIGNS = '<>/="'
_LOOK_ALIKES = {
    "{": "(｛[", "}": ")｝]", "[": "({［", "]": ")}］", ",": ";，.", ":": "=；：", '"': "'“”`",
    "<": "‹(", ">": "›)", "/": "\\|", "=": ":-",
}  # fmt: skip


def _tool(name: str, required: list[str], **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": f"{name}.", "parameters": parameters}


_TEXT, _WHOLE, _NUMBER, _SWITCH = ({"type": t} for t in ("string", "integer", "number", "boolean"))
_TEXTS = {"type": "array", "items": _TEXT}
_PERSON = {"type": "object", "properties": {"name": _TEXT, "mail": _TEXT}, "required": ["name"]}
TOOLS: list[dict[str, Any]] = [
    _tool("reserve_berth", ["harbour", "nights"], harbour=_TEXT, nights=_WHOLE, draught=_NUMBER,
        shore_power=_SWITCH),
    _tool("write_note", ["path", "text"], path=_TEXT, text=_TEXT, append=_SWITCH),
    _tool("find_trains", ["start", "goal"], start=_TEXT, goal=_TEXT, day=_TEXT, changes=_WHOLE,
        classes=_TEXTS),
    _tool("invite", ["title", "guests"], title=_TEXT,
        guests={"type": "array", "items": _PERSON}, remind={"type": "array", "items": _WHOLE}),
    _tool("plot", ["series"], series={"type": "array", "items": {"type": "array",
        "items": _NUMBER}}, style={"type": "object", "properties": {"colour": _TEXT,
        "width": _NUMBER, "grid": _SWITCH}}),
    _tool("set_alarm", ["hour", "minute"], hour=_WHOLE, minute=_WHOLE, label=_TEXT,
        snooze={"type": ["integer", "null"]}),
]  # fmt: skip
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("reserve_berth", {"harbour": "Stavanger", "nights": 3, "draught": 1.85, "shore_power": True}),
    ("reserve_berth", {"harbour": "Port of Spain, east pier", "nights": 1}),
    ("write_note", {"path": "notes/todo.md", "text": "Buy milk, eggs and bread", "append": True}),
    ("write_note", {"path": "a/b.txt", "text": "Dear all: we meet at 10:30, as ever."}),
    ("find_trains", {"start": "Kiel", "goal": "Basel SBB", "day": "2031-05-04", "changes": 2,
        "classes": ["first", "quiet"]}),
    ("find_trains", {"start": "Gare de Lyon", "goal": "Nîmes", "classes": []}),
    ("invite", {"title": "Review", "guests": [{"name": "Ada", "mail": "ada@example.org"},
        {"name": "Kurt"}], "remind": [10, 60]}),
    ("invite", {"title": "Tea & cake", "guests": [{"name": "Emmy"}]}),
    ("plot", {"series": [[1, 2.5], [3, -4]], "style": {"colour": "teal", "width": 0.5,
        "grid": False}}),
    ("set_alarm", {"hour": 6, "minute": 45, "label": "Ferry", "snooze": None}),
]  # fmt: skip
Reading = tuple[str, dict[str, Any]] | None
"""Name and arguments of the only call that could be executed; None for a refusal."""


def protocol_of(name: str) -> Any:
    """Return what `parse` takes for a format's name; "bracketed" is one made from data."""
    if name != "bracketed":
        return tp.protocols()[name]
    return tp.Protocol.from_spec(id="bracketed", opener="[CALL]", closer="[/CALL]")


def written(protocol: Any, name: str, arguments: dict[str, Any]) -> str:
    """Return the call as models write it, with spaces behind commas and colons."""
    tool = next(tp.ToolSpec.of(t) for t in TOOLS if t["name"] == name)
    text: str = protocol.write_call(name, json.dumps(arguments, ensure_ascii=False), tool)
    if protocol.id == "openai_json":
        return text
    # The format's own frame is written without spaces.
    return text.replace('{"name":', '{"name": ').replace(',"arguments":', ', "arguments": ')


def body_span(protocol: Any, text: str) -> tuple[int, int]:
    """Return where the damage goes: the JSON or the elements of the call, without its frame."""
    if protocol.id == "openai_json":
        # The arguments are a text inside the message, which is the provider's and never damaged.
        start = text.index('"arguments":') + len('"arguments":')
        return start + 1, text.rindex('"')
    first, last = ("{", "}") if protocol.id not in XML_FORMATS else ("<", ">")
    if first == "{":
        return text.index(first), text.rindex(last) + 1
    return 0, len(text)


XML_FORMATS = frozenset(
    name for name in tp.protocols() if "schema-typed" in tp.protocols()[name].tags
)


def damages(body: str, signs: str) -> Iterator[tuple[str, str]]:
    """Yield (way, damaged body) for every structural character."""
    for at, sign in enumerate(body):
        if sign not in signs:
            continue
        before, behind = body[:at], body[at + 1 :]
        yield "deleted", before + behind
        yield "doubled", before + sign + sign + behind
        if behind[:1] != sign:
            yield "swapped", before + behind[:1] + sign + behind[1:]
        for look_alike in _LOOK_ALIKES[sign]:
            yield "look-alike", before + look_alike + behind


def is_whole(protocol: Any, body: str, raw: str) -> bool:
    """Return whether a body is right as it stands, so that nothing in it can be called damaged."""
    if protocol.id not in XML_FORMATS:
        try:
            json.loads(body)
        except ValueError:
            return False
        return True
    calls = tp.parse(raw, protocol, TOOLS, tp.ParseOptions(repair=False)).calls
    return len(calls) == 1 and calls[0].valid and not calls[0].problems


def ours(protocol: Any, raw: str) -> Reading:
    """Return the reading of this package; several calls that could be executed are wrong."""
    calls = [call for call in tp.parse(raw, protocol, TOOLS).calls if call.valid]
    if not calls:
        return None
    return (calls[0].name, calls[0].arguments) if len(calls) == 1 else ("", {})


def peer() -> Callable[[Any, str, str], Reading] | None:
    """Return the reading of json-repair with jsonschema, None where it is not installed."""
    try:
        json_repair = importlib.import_module("json_repair")
        import jsonschema
    except ImportError:
        return None
    schemas = {tool["name"]: tool["parameters"] for tool in TOOLS}

    def read(protocol: Any, body: str, name: str) -> Reading:
        """Return what json-repair makes of a body, if the tool's schema takes it."""
        value = json_repair.loads(body)
        if protocol.id in ("hermes", "gemma", "bracketed"):
            if not isinstance(value, dict) or not isinstance(value.get("name"), str):
                return None
            name, value = value["name"], value.get("arguments")
        if name not in schemas or not isinstance(value, dict):
            return None
        try:
            jsonschema.validate(value, schemas[name])
        except jsonschema.ValidationError:
            return None
        return name, value

    return read


def verdict(reading: Reading, meant: tuple[str, dict[str, Any]]) -> str:
    """Return "right", "refused" or "wrong"."""
    if reading is None:
        return "refused"
    return "right" if _canonical(reading) == _canonical(meant) else "wrong"


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def texts_of(name: str) -> Iterator[tuple[str, str, str, tuple[str, dict[str, Any]]]]:
    """Yield (way, whole text, body as it is read, what is meant) of a format, each text once."""
    protocol = protocol_of(name)
    signs = _XML_SIGNS if name in XML_FORMATS else _JSON_SIGNS
    for call in CALLS:
        text = written(protocol, *call)
        start, end = body_span(protocol, text)
        inner = text[start:end]
        nested = name == "openai_json"
        body = json.loads(f'"{inner}"') if nested else inner
        for way, damaged in dict.fromkeys(damages(body, signs)):
            placed = json.dumps(damaged, ensure_ascii=False)[1:-1] if nested else damaged
            raw = text[:start] + placed + text[end:]
            if not is_whole(protocol, damaged, raw):
                yield way, raw, damaged, call


def rows(name: str, misses: bool) -> Iterator[tuple[str, Counter[str], Counter[str]]]:
    """Yield (way, our verdicts, the peer's) of a format; misses: print what was read wrong."""
    protocol, read_peer = protocol_of(name), peer()
    counts = {way: (Counter[str](), Counter[str]()) for way in WAYS}
    for way, raw, body, meant in texts_of(name):
        mine, theirs = counts[way]
        reading = ours(protocol, raw)
        result = verdict(reading, meant)
        mine[result] += 1
        if misses and result != "right":
            print(f"{result} {way}: {raw}\n    {reading}")
        if read_peer is not None and name not in XML_FORMATS:
            theirs[verdict(read_peer(protocol, body, meant[0]), meant)] += 1
    for way, (mine, theirs) in counts.items():
        yield way, mine, theirs


def main() -> int:
    """Print the table; 1 where more than 2 % of a format's JSON bodies are read wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--formats", nargs="+", default=list(JSON_FORMATS), metavar="NAME")
    parser.add_argument("--misses", action="store_true", help="show what was not read right")
    options = parser.parse_args()

    print(
        "| format | damage | n | right | refused | wrong | json-repair: right | refused | wrong |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    too_many = False
    for name in options.formats:
        total, total_peer = Counter[str](), Counter[str]()
        for way, mine, theirs in rows(name, options.misses):
            print(row(name, way, mine, theirs))
            total += mine
            total_peer += theirs
        print(row(name, "all", total, total_peer))
        too_many = too_many or total["wrong"] > 0.02 * total.total()
    return int(too_many)


def row(name: str, way: str, mine: Counter[str], theirs: Counter[str]) -> str:
    """Return a line of the table; a peer that read nothing has no figures."""
    results = ("right", "refused", "wrong")
    figures = [mine.total(), *(mine[r] for r in results)]
    beside = [theirs[r] if theirs else "" for r in results]
    return "| " + " | ".join(map(str, [name, way, *figures, *beside])) + " |"


if __name__ == "__main__":
    sys.exit(main())
