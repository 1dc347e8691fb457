"""One damaged character in a call, at every place: how many calls are read right, refused or wrong.

    python benchmarks/damage.py                      # the table, from a sample of the texts
    python benchmarks/damage.py --every 1 --formats morph_xml qwen3_coder_xml
    python benchmarks/damage.py --misses --formats hermes   # and the texts that were not read right

Each structural character of a body is deleted, doubled, swapped with the next character, and
replaced by a look-alike. Bodies that are whole as they stand are left out. A call is wrong where it
could be executed (ok and valid) and says something else than was meant. `json-repair` with
jsonschema reads the same bodies, and lxml (which recovers) with jsonschema those of `morph_xml`,
where they are installed. Calls that the reader was tuned on stand apart from those it never saw.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import toolparse_lab as tp
from benchmarks.damage_calls import HELD_OUT, TOOLS, TUNED
from toolparse_lab.evals.reports.figures.stats import wilson

JSON_FORMATS = ("hermes", "gemma", "kimi_k2", "harmony_channel", "openai_json", "bracketed")
TAG_FORMATS = ("morph_xml", "qwen3_coder_xml", "yaml_xml")
SETS = {"tuned": TUNED, "held out": HELD_OUT}
WAYS = ("deleted", "doubled", "swapped", "look-alike")
_JSON_SIGNS = '{}[],:"'
_XML_SIGNS = '<>/="'
_YAML_SIGNS = '<>/:-"\n'
_LOOK_ALIKES = {
    "{": "(｛[", "}": ")｝]", "[": "({［", "]": ")}］", ",": ";，.", ":": "=；：", '"': "'“”`",
    "<": "‹(", ">": "›)", "/": "\\|", "=": ":-",
    "-": "–=", "\n": " ",
}  # fmt: skip


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


Peer = Callable[[Any, str, str], Reading]
"""(protocol, body, name of the call) -> what another package makes of it."""


def peer(name: str) -> Peer | None:
    """Return the reading of a format's peer with jsonschema, None where there is none."""
    try:
        import jsonschema

        reader: Peer | None = None
        if name == "morph_xml":
            reader = _lxml_peer(importlib.import_module("lxml.etree"))
        elif name not in XML_FORMATS:
            reader = _json_peer(importlib.import_module("json_repair"))
    except ImportError:
        return None
    if reader is None:
        return None
    schemas = {tool["name"]: tool["parameters"] for tool in TOOLS}

    def read(protocol: Any, body: str, called: str) -> Reading:
        """Return the peer's reading of a body, if the tool's schema takes it."""
        reading = reader(protocol, body, called)
        if reading is None or reading[0] not in schemas or not isinstance(reading[1], dict):
            return None
        try:
            jsonschema.validate(reading[1], schemas[reading[0]])
        except jsonschema.ValidationError:
            return None
        return reading

    return read


def _json_peer(json_repair: Any) -> Peer:
    """Return the reading of json-repair."""

    def read(protocol: Any, body: str, name: str) -> Reading:
        """Return what json-repair makes of a body."""
        value = json_repair.loads(body)
        if protocol.id not in ("hermes", "gemma", "bracketed"):
            return name, value
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            return None
        arguments = value.get("arguments")
        return (value["name"], arguments) if isinstance(arguments, dict) else None

    return read


def _lxml_peer(etree: Any) -> Peer:
    """Return the reading of lxml, which recovers; leaves are typed by the schema, lists by name."""
    parser = etree.XMLParser(recover=True, resolve_entities=False)
    schemas = {tool["name"]: tool["parameters"] for tool in TOOLS}

    def value_of(element: Any, schema: Any) -> Any:
        """Return an element as the value its schema wants."""
        kind = schema.get("type")
        if kind == "object":
            return members_of(element, schema)
        text = element.text or ""
        if kind in ("integer", "number", "boolean") or isinstance(kind, list):
            try:
                return json.loads(text)
            except ValueError:
                return text
        return text

    def members_of(element: Any, schema: Any) -> dict[str, Any]:
        """Return the children of an element by their names."""
        members: dict[str, Any] = {}
        for child in element:
            inner = schema.get("properties", {}).get(child.tag, {})
            if inner.get("type") != "array":
                members[child.tag] = value_of(child, inner)
                continue
            wrapped = [item for item in child if item.tag == "item"] or [child]
            items = [value_of(item, inner["items"]) for item in wrapped]
            members.setdefault(child.tag, []).extend(items)
        return members

    def read(protocol: Any, body: str, name: str) -> Reading:
        """Return what lxml makes of an element."""
        root = etree.fromstring(body.encode(), parser)
        if root is None or root.tag not in schemas:
            return None
        return root.tag, members_of(root, schemas[root.tag])

    return read


def verdict(reading: Reading, meant: tuple[str, dict[str, Any]]) -> str:
    """Return "right", "refused" or "wrong"."""
    if reading is None:
        return "refused"
    return "right" if _canonical(reading) == _canonical(meant) else "wrong"


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def texts_of(
    name: str, calls: list[tuple[str, dict[str, Any]]], every: int
) -> Iterator[tuple[str, str, str, tuple[str, dict[str, Any]]]]:
    """Yield (way, whole text, body as it is read, what is meant) of a format, each text once.

    every: one of so many texts is drawn, the same ones in each run.
    """
    protocol = protocol_of(name)
    signs = _XML_SIGNS if name in XML_FORMATS else _JSON_SIGNS
    if name == "yaml_xml":
        signs = _YAML_SIGNS
    draw = random.Random(f"{name} {len(calls)}")
    for call in calls:
        text = written(protocol, *call)
        start, end = body_span(protocol, text)
        inner = text[start:end]
        nested = name == "openai_json"
        body = json.loads(f'"{inner}"') if nested else inner
        for way, damaged in dict.fromkeys(damages(body, signs)):
            if draw.randrange(every):
                continue
            placed = json.dumps(damaged, ensure_ascii=False)[1:-1] if nested else damaged
            raw = text[:start] + placed + text[end:]
            if not is_whole(protocol, damaged, raw):
                yield way, raw, damaged, call


def rows(
    name: str, calls: list[tuple[str, dict[str, Any]]], every: int, misses: bool
) -> Iterator[tuple[str, Counter[str], Counter[str]]]:
    """Yield (way, our verdicts, the peer's) of a format; misses: print what was not read right."""
    protocol, read_peer = protocol_of(name), peer(name)
    counts = {way: (Counter[str](), Counter[str]()) for way in WAYS}
    for way, raw, body, meant in texts_of(name, calls, every):
        mine, theirs = counts[way]
        reading = ours(protocol, raw)
        result = verdict(reading, meant)
        mine[result] += 1
        if misses and result != "right":
            print(f"{result} {way}: {raw}\n    {reading}")
        if read_peer is not None:
            theirs[verdict(read_peer(protocol, body, meant[0]), meant)] += 1
    for way, (mine, theirs) in counts.items():
        yield way, mine, theirs


def main() -> int:
    """Print the table; 1 where too many bodies of a format are read wrong: 2 %, of tags 5 %."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    formats = [*JSON_FORMATS, *TAG_FORMATS]
    parser.add_argument("--formats", nargs="+", default=formats, metavar="NAME")
    parser.add_argument("--every", type=int, default=40, help="one text of so many (40)")
    parser.add_argument("--misses", action="store_true", help="show what was not read right")
    options = parser.parse_args()

    print("| format | calls | damage | n | right | refused | wrong | right % "
          "| peer: right | refused | wrong |")  # fmt: skip
    print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    too_many = False
    of_json, of_tags = Counter[str](), Counter[str]()
    for name in options.formats:
        for label, calls in SETS.items():
            total, total_peer = Counter[str](), Counter[str]()
            for way, mine, theirs in rows(name, calls, options.every, options.misses):
                print(row(f"{name} | {label} | {way}", mine, theirs))
                total += mine
                total_peer += theirs
            print(row(f"{name} | {label} | **all**", total, total_peer), flush=True)
            sums = of_tags if name in XML_FORMATS else of_json
            sums.update(total)
            limit = 0.05 if name in XML_FORMATS else 0.02
            too_many = too_many or total["wrong"] > limit * total.total()
    for kind, counts in (("JSON", of_json), ("tags", of_tags)):
        if number := counts.total():
            most = wilson(counts["wrong"], number).high
            print(f"\n{kind}: {counts['wrong']} wrong of {number:,}, at most {most:.2%} (95 %); "
                  f"right {counts['right'] / number:.1%}")  # fmt: skip
    return int(too_many)


def row(head: str, mine: Counter[str], theirs: Counter[str]) -> str:
    """Return a line of the table; a peer that read nothing has no figures."""
    results = ("right", "refused", "wrong")
    number = mine.total()
    share = f"{100 * mine['right'] / number:.1f}" if number else ""
    beside = [theirs[r] if theirs else "" for r in results]
    figures = [number, *(mine[r] for r in results), share, *beside]
    return "| " + " | ".join(map(str, [head, *figures])) + " |"


if __name__ == "__main__":
    sys.exit(main())
