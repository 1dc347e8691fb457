"""`check_protocol` and `check_stream`: good protocols pass, and each planted defect breaks the law
it breaks."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest

import toolparse_lab as tp
from tests.entry.test_foreign import TOOLS, Camel, Collecting, Segmenting, Snake, a_call
from tests.laws import EXHAUSTIVE
from toolparse_lab.arguments.rjson.strict import Refusal
from toolparse_lab.entry.laws import TEXT_LAWS, LawBroken, check_all, try_text
from toolparse_lab.entry.laws import TOOLS as SHIPPED_TOOLS
from toolparse_lab.extensions.templates import check_protocol, check_stream
from toolparse_lab.extensions.templates.laws import check_protocol as module
from toolparse_lab.extensions.templates.laws.check_protocol import LAWS, LawReport, shrink
from toolparse_lab.formats.base import DecodeContext, NeedMore, Opening, Protocol, Tools
from toolparse_lab.formats.json.call import JsonCall
from toolparse_lab.formats.json.scan import JsonTags
from toolparse_lab.formats.registry import family_heads

pytestmark = pytest.mark.slow

OURS = [*family_heads(), "auto"]
EXAMPLES = 10 if EXHAUSTIVE else 4


@pytest.mark.parametrize("id", OURS)
@pytest.mark.exhaustive(12)
def test_our_protocols_keep_the_laws(id: str) -> None:
    report = check_protocol(id, examples=EXAMPLES)
    assert report.ok, str(report)
    assert {f.law for f in report.findings} == set(LAWS)
    not_ours = {"surface", "stream agrees", "repeatable"} | (
        {"round trip"} if id == "auto" else set()
    )
    assert {f.law for f in report.findings if f.verdict == "not applicable"} == not_ours


def test_protocols_of_one_s_own_keep_the_laws() -> None:
    for protocol in (
        tp.json_mix_protocol("[[C]]", "[[/C]]"),
        tp.Protocol.from_spec(id="x", body="tags"),
    ):
        report = check_protocol(protocol, TOOLS, examples=4, seed=3)
        assert report.ok, str(report)


# planted defects of protocols of ours


@dataclass(frozen=True, slots=True)
class Hasty(JsonTags):
    """Takes the end of a chunk for the end of the text."""

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        return Opening(len("<c>")) if text.startswith("<c>", pos) and len(text) > pos + 3 else None


@dataclass(frozen=True, slots=True)
class Raising(JsonTags):
    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        raise ZeroDivisionError("no")


@dataclass(frozen=True, slots=True)
class Wide(JsonTags):
    """Opens further than its opener goes."""

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        return Opening(40, "markup")


@dataclass(frozen=True, slots=True)
class Lax(JsonCall):
    """Says of every body that it is strict."""

    def strict(self, body: str, context: DecodeContext) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Stubborn(JsonCall):
    """Says of no body that it is strict."""

    def strict(self, body: str, context: DecodeContext) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Swapping(JsonCall):
    """Writes what nobody asked for, and fails on some calls."""

    def write(self, name: str, arguments_json: str, tool: Any) -> str:
        raise RuntimeError("no ink")


@dataclass(frozen=True, slots=True)
class Slow(JsonCall):
    def read(self, body: str, context: DecodeContext) -> Any:
        end = time.process_time() + len(body) ** 2 / 2e9
        while time.process_time() < end:
            pass
        raise Refusal("decode.json", "slow", 0)


def made(envelope: Any = None, codec: Any = None) -> Protocol:
    return Protocol(
        "planted",
        envelope or JsonTags(("<c>",), ("</c>",)),
        codec or JsonCall("<c>", "</c>"),
        tags=frozenset(("delimited",)),
    )


DEFECTS: list[tuple[str, Protocol]] = [
    ("split invariance", made(Hasty(("<c>",), ("</c>",)))),
    ("total", made(Raising(("<c>",), ("</c>",)))),
    ("log replay", made(Wide(("<c>",), ("</c>",)))),
    ("strict identity", made(codec=Lax("<c>", "</c>"))),
    ("edit law", made(codec=Stubborn("<c>", "</c>"))),
    ("round trip", made(codec=Swapping("<c>", "</c>"))),
    ("linear", made(codec=Slow("<c>", "</c>"))),
]


@functools.cache
def report_of(protocol: Any) -> LawReport:
    tools = None if isinstance(protocol, Protocol) else TOOLS
    return check_protocol(protocol, tools, examples=EXAMPLES)


@pytest.mark.parametrize(("law", "protocol"), DEFECTS, ids=[law for law, _ in DEFECTS])
@pytest.mark.exhaustive(3, 1)
def test_a_planted_defect_is_found(law: str, protocol: Protocol) -> None:
    report = report_of(protocol)
    found = report[law]
    assert found.verdict == "violated", str(report)
    assert not report.ok
    assert found.counterexample is not None
    assert len(found.counterexample) <= 130
    assert f"{law:<17} violated: {LAWS[law]}" in str(report)
    if law not in ("round trip", "linear"):
        with pytest.raises((LawBroken, ZeroDivisionError)):
            check_all(found.counterexample, protocol, SHIPPED_TOOLS)


def test_one_text_breaks_each_law_of_texts() -> None:
    texts = ("<c><", "<c>", "<c>", "<c>'name':'f','s':{}}", '<c>"name":"f""s":{}}')
    for (law, protocol), text in zip(DEFECTS, texts, strict=False):
        with pytest.raises(LawBroken) as caught:
            TEXT_LAWS.get(law, print)(try_text(text, protocol, SHIPPED_TOOLS))
        assert caught.value.law == law


@pytest.mark.parametrize("power", [1, 2])
def test_one_slow_measurement_changes_no_growth(power: int, monkeypatch: Any) -> None:
    now, hiccups = 0.0, [0.05, 0.0, 0.0] * 5

    def parse_slowly(raw: str) -> None:
        nonlocal now
        now += (len(raw) / 50_000) ** power + hiccups.pop(0)

    monkeypatch.setattr(time, "process_time", lambda: now)
    assert module._growth("", "x", parse_slowly) == pytest.approx(4**power, rel=0.01)


def test_the_counterexample_is_the_smallest_there_is() -> None:
    assert report_of(DEFECTS[1][1])["total"].counterexample == "<c>"
    assert shrink("xxabxxxxcxx", lambda text: "a" in text and "c" in text) == "ac"


# planted defects of objects of one's own


class Losing(Snake):
    """Drops the text behind the last call."""

    def parse_generated_text(
        self, text: str, tools: Any, options: Any = None
    ) -> list[dict[str, Any]]:
        parts = super().parse_generated_text(text, tools, options)
        return parts[:-1] if len(parts) > 1 and parts[-1]["type"] == "text" else parts


class Failing(Snake):
    def parse_generated_text(
        self, text: str, tools: Any, options: Any = None
    ) -> list[dict[str, Any]]:
        if "{" in text and "}" not in text:
            raise KeyError("brace")
        return super().parse_generated_text(text, tools, options)


class Chunky(Snake):
    """Its stream parser reads each chunk for itself."""

    def create_stream_parser(self, tools: Any, options: Any = None) -> Any:
        return lambda chunks: [
            p for chunk in chunks for p in self.parse_generated_text(chunk, tools, options)
        ]


class Deaf(Snake):
    """Its stream parser finds no calls."""

    def create_stream_parser(self, tools: Any, options: Any = None) -> Any:
        return lambda chunks: [{"type": "text", "text": "".join(chunks)}]


class Forgetful(Snake):
    def format_tool_call(self, tool_call: Any) -> str:
        return a_call("{}")


class Counting(Snake):
    """Says something else each time."""

    count = 0

    def parse_generated_text(
        self, text: str, tools: Any, options: Any = None
    ) -> list[dict[str, Any]]:
        self.count += 1
        return [{"type": "tool-call", "toolName": "f", "input": {"a": self.count}}]


class Quadratic(Snake):
    def parse_generated_text(
        self, text: str, tools: Any, options: Any = None
    ) -> list[dict[str, Any]]:
        end = time.process_time() + len(text) ** 2 / 2e9
        while time.process_time() < end:
            pass
        return [{"type": "text", "text": text}]


class Bare:
    def parseGeneratedText(self, args: Any) -> list[Any]:
        return [args["text"]]


THEIRS: list[tuple[str, Any]] = [
    ("partition", Losing()),
    ("total", Failing()),
    ("split invariance", Chunky()),
    ("stream agrees", Deaf()),
    ("round trip", Forgetful()),
    ("repeatable", Counting()),
    ("linear", Quadratic()),
    ("surface", Bare()),
]


@pytest.mark.parametrize(("law", "protocol"), THEIRS, ids=[law for law, _ in THEIRS])
@pytest.mark.exhaustive(2)
def test_a_defect_of_an_object_is_found(law: str, protocol: Any) -> None:
    report = report_of(protocol)
    assert report[law].verdict == "violated", str(report)
    assert law in str(report)


def test_the_same_seed_finds_the_same() -> None:
    protocol = THEIRS[0][1]
    assert report_of(protocol) == check_protocol(protocol, TOOLS, examples=EXAMPLES)


@pytest.mark.parametrize("protocol", [Snake, Segmenting()])
def test_a_sound_object_passes(protocol: Any) -> None:
    report = check_protocol(protocol, TOOLS, examples=EXAMPLES)
    assert report.ok, str(report)
    assert report.protocol == f"custom:{'Snake' if protocol is Snake else 'Segmenting'}"
    assert "12 laws" not in str(report)


@pytest.mark.parametrize("what", [1, object(), {"formatTools": len}, "no_such", lambda: 1])
def test_what_is_no_protocol_is_said(what: Any) -> None:
    with pytest.raises(tp.errors.UnknownProtocol):
        check_protocol(what)


def test_a_wrong_number_of_examples_and_a_wrong_law_are_said() -> None:
    with pytest.raises(tp.errors.BadOptions):
        check_protocol("hermes", examples=-1)
    with pytest.raises(KeyError, match="no law 'gravity'"):
        report_of(THEIRS[0][1])["gravity"]


# check_stream


RAW = 'a <tool_call>{"name":"f","arguments":{}}</tool_call> b'


class Naive:
    """Looks for the opener in each chunk."""

    def __init__(self) -> None:
        self.inside = False

    def feed(self, chunk: str) -> Iterable[Any]:
        if "<tool_call>" in chunk:
            self.inside = True
            return [{"type": "tool-call", "toolName": "f", "input": "{}"}]
        return [] if self.inside else [{"type": "text-delta", "delta": chunk}]

    def finish(self) -> None:
        return None


@pytest.mark.parametrize(
    "parser",
    [
        "hermes",
        tp.protocols()["hermes"],
        tp.stream("hermes"),
        lambda: tp.stream("hermes"),
        Snake(),
        tp.stream(Snake()),
    ],
)
def test_sound_parsers_do_not_mind_the_chunks(parser: Any) -> None:
    report = check_stream(RAW, parser)
    assert report.ok
    assert report.tried == len(RAW) + 8
    assert (
        str(report) == f"the same result for all {report.tried} chunkings of {len(RAW)} characters"
    )


def test_a_parser_that_minds_the_chunks_is_shown_where() -> None:
    report = check_stream(RAW, Naive)
    assert not report.ok
    single = [d.cuts[0] for d in report.differences if len(d.cuts) == 1]
    assert single == list(range(1, 13))
    assert "one cut is enough at 1-12" in str(report)
    assert report.differences[0].expected == "[('call', 'f', '{}')]"


def test_a_parser_that_raises_has_that_as_its_result() -> None:
    class Breaks:
        def feed(self, chunk: str) -> list[Any]:
            return [1 // (len(chunk) - 3)]

    report = check_stream("abcdef", Breaks)
    assert next(d.cuts for d in report.differences if d.got.startswith("ZeroDivisionError: ")) == (
        3,
    )
    assert check_stream("abc", lambda: Collecting(Snake(), TOOLS, None)).ok
    assert check_stream(a_call("{}"), Camel()).ok


def test_what_is_no_stream_parser_is_said() -> None:
    with pytest.raises(tp.errors.UnknownProtocol):
        check_stream("a", 1)
    with pytest.raises(tp.errors.UnknownProtocol):
        check_stream("a", lambda: 1)


def test_a_law_says_what_it_is_and_why() -> None:
    with pytest.raises(LawBroken) as caught:
        check_all("<c>x", replace(DEFECTS[2][1], id="wide"))
    assert str(caught.value).startswith(caught.value.law + ": ")
