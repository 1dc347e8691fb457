"""Every limit in scanners and engine: a text around it reads alike in one piece and in many."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.tools import tool_named
from toolparse_lab.entry.laws import run_chunks

TOOLS = [tool_named(name, text="string", rows="object") for name in ("note", "get tide", "x" * 250)]
Build = Callable[[int], str]
_HERMES = '<tool_call>{"name": "note", "arguments": {}}</tool_call>'
_HARMONY = '<|message|>{"text": "a"}<|call|>'

# A name, the protocol, the limits that are near, and the text with something as long as `n`.
LIMITS: list[tuple[str, str, tuple[int, ...], Build]] = [
    (
        "harmony: a header's role",
        "harmony_channel",
        (480, 512),
        lambda n: f"<|start|>{'a' * n} to=functions.note{_HARMONY}",
    ),
    (
        "harmony: a header's channel",
        "harmony_channel",
        (480, 512),
        lambda n: f"<|channel|>commentary {'a' * n}to=functions.note{_HARMONY}",
    ),
    (
        "harmony: a constraint",
        "harmony_channel",
        (450, 512),
        lambda n: f"<|channel|>to=functions.note<|constrain|>{' ' * n}{_HARMONY}",
    ),
    (
        "kimi: a call's id",
        "kimi_k2",
        (480, 500, 512),
        lambda n: f"<|tool_call_begin|>{'a' * n}:0<|tool_call_argument_begin|>{{}}<|tool_call_end|>",
    ),
    ("gemma: blanks behind the opener", "gemma", (40, 52, 64), lambda n: f"```tool_call{' ' * n}\n{{}}\n```"),
    ("backticks", "hermes", (256, 512), lambda n: f"a {'`' * n}{_HERMES}{'`' * n} b"),
    ("a fence of backticks", "hermes", (256,), lambda n: f"{'`' * n}\n{_HERMES}\n{'`' * n}\n{_HERMES}"),
    ("a fence's word", "hermes", (8, 12, 20), lambda n: f"```{' ' * n}json{' ' * n}\n" + '{"name": "note", "arguments": {}}\n```'),
    ("a fence's first line", "hermes", (40,), lambda n: "```json\n" + " " * n + '{"name": "note", "arguments": {}}\n```'),
    ("a bare call's beginning", "hermes", (10, 20, 40), lambda n: "{" + " " * n + '"name"' + " " * n + ': "note", "arguments": {}}'),
    ("a bare call's key", "hermes", (20,), lambda n: '{"' + "a" * n + '": "note", "arguments": {}}'),
    ("a bare list", "hermes", (40,), lambda n: "[" + " " * n + '{"name": "note", "arguments": {}}]'),
    ("pythonic: blanks", "pythonic", (40, 64), lambda n: f"[{' ' * n}note{' ' * n}(text='a'){' ' * n}]{' ' * n}"),
    ("pythonic: a name", "pythonic", (200,), lambda n: f"[{'a' * n}(text='a')]"),
    ("pythonic: behind the list", "pythonic", (64,), lambda n: f"[note(text='a')]{' ' * n}b"),
    ("openai_json: a head", "openai_json", (10, 40), lambda n: "{" + " " * n + '"tool_calls"' + " " * n + ': [{"name": "note", "arguments": "{}"}]}'),
    ("a tag's attributes", "morph_xml", (500, 512, 2040, 2048), lambda n: f"<note {'a' * n}><text>a</text></note>"),
    ("a quoted attribute", "morph_xml", (500, 512, 2040, 2048), lambda n: f"<note a=\"{'b' * n}\" c='{'d' * n}'><text>a</text></note>"),
    ("many quoted attributes", "morph_xml", (4, 7), lambda n: "<note " + 'a="' * 1 + "b" * 300 + '" ' + f'c="{"d" * 300}" ' * n + "><text>a</text></note>"),
    ("a tag in an attribute", "morph_xml", (500, 512, 600), lambda n: f'<note><rows a="{"b" * n}>" c=">"><text>a</text></rows></note>'),
    ("a comment", "morph_xml", (4080, 4090, 4096), lambda n: f"<!--{'a' * n}--><note><text>a</text></note>"),
    ("a comment over a call", "morph_xml", (4030, 4090), lambda n: f"<!--{'a' * n}<note><text>a</text></note>-->"),
    ("a child's attributes", "morph_xml", (500, 512, 590, 600), lambda n: f"<note><rows {'a' * n}><text></note></text></rows></note>"),
    ("a child's quoted attributes", "morph_xml", (280, 300, 500, 512, 590, 600), lambda n: f"<note><rows a=\"{'b' * n}\" c=\"{'d' * n}\"><text></note></text></rows></note>"),
    ("a quoted bracket in a child", "morph_xml", (4, 500, 590), lambda n: f"<note><rows a=\"{'b' * n}></rows>\" ><text></note></text></rows></note>"),
    ("a child's name", "morph_xml", (256, 600), lambda n: f"<note><{'a' * n}></note></{'a' * n}></note>"),
    ("blanks in a closing tag", "morph_xml", (16, 32), lambda n: f"<note><text>a</{' ' * n}text{' ' * n}></{' ' * n}note{' ' * n}>"),
    ("blanks in a child's closing tag", "morph_xml", (16, 32), lambda n: f"<note><rows><text></note></text></{' ' * n}rows{' ' * n}></note>"),
    ("blanks in the closing tag of a long name", "morph_xml", (16, 32), lambda n: f"<{'x' * 250}><text>a</{' ' * n}{'x' * 250}{' ' * n}>"),
    ("blanks before an opener", "morph_xml", (64, 256), lambda n: f"<note><text>a</note>{' ' * n}<note><text>b</text></note>"),
    ("yaml: blanks behind the opener", "yaml_xml", (256,), lambda n: f"<tool_call>{' ' * n}{{\"name\": \"note\", \"arguments\": {{}}}}</tool_call>"),
    ("yaml: indentation", "yaml_xml", (32, 64), lambda n: f"<note>\n{' ' * n}text: a\n{' ' * n}</note>"),
    ("yaml: a deeper line", "yaml_xml", (64,), lambda n: f"<note>\ntext: |\n{' ' * n}b\n{' ' * n}</note>\n</note>"),
    ("yaml: blanks in the closing tag", "yaml_xml", (16, 40), lambda n: f"<note>\ntext: a\n</{' ' * n}note{' ' * n}>"),
    ("auto: a key", "auto", (128, 256), lambda n: f"<note>\n{'a' * n}: b\n</note>"),
    ("auto: blanks before a key", "auto", (256,), lambda n: f"<note>{' ' * n}\ntext: b\n</note>"),
    ("a function's name", "qwen3_coder_xml", (128, 200, 256, 400), lambda n: f"<tool_call><function={'a' * n}><parameter=text>a</parameter></function></tool_call>"),
    ("a parameter's name", "qwen3_coder_xml", (128, 200, 256, 400), lambda n: f"<tool_call><function=note><parameter={'a' * n}>a</parameter></function></tool_call>"),
    ("a name alone", "qwen3_coder_xml", (64, 128), lambda n: f"<function>{'a' * n}</function><parameter=text>b</parameter></function>"),
    ("a name between tags", "qwen3_coder_xml", (8, 64), lambda n: f"<function>{' ' * n}note{' ' * n}</function>{' ' * n}<parameter>{' ' * n}text{' ' * n}</parameter>{' ' * n}b</parameter></function>"),
    ("a parameter between tags", "qwen3_coder_xml", (8, 64, 128), lambda n: f"<tool_call><function=note><parameter>{'a' * n}</parameter>{' ' * 3}b</parameter></function></tool_call>"),
    ("blanks in tags", "qwen3_coder_xml", (8, 16), lambda n: f"<tool_call><function{' ' * n}={' ' * n}note{' ' * n}><parameter{' ' * n}name{' ' * n}={' ' * n}\"text\"{' ' * n}>a</{' ' * n}parameter{' ' * n}></function></tool_call>"),
    ("blanks behind a function's tag", "qwen3_coder_xml", (256,), lambda n: f"<function=note>{' ' * n}<parameter=text>a</parameter></function>"),
    ("blanks before a block's closer", "qwen3_coder_xml", (64,), lambda n: f"<function=note><parameter=text>a</parameter></function>{' ' * n}</tool_call> b"),
    ("a deep tag", "qwen3_coder_xml", (64,), lambda n: f"<tool_call>\n<function=note>\n<parameter=text>\na\n{' ' * n}</parameter>\nb\n{' ' * n}<parameter=rows>\nc\n</parameter>\n</function>\n</tool_call>"),
    ("a bare name", "qwen3_coder_xml", (64, 128, 400), lambda n: f"<tool_call>\n{'a' * n}\n{' ' * n}<parameter=text>\na\n</parameter>\n</function>\n</tool_call>"),
    ("a known bare name", "qwen3_coder_xml", (8, 64), lambda n: f"<tool_call>\nnote{' ' * n}\n{' ' * n}<parameter=text>\na\n</parameter>\n</function>\n</tool_call>"),
    ("a tag that lost its bracket", "qwen3_coder_xml", (64, 256, 400), lambda n: f"<tool_call>\nfunction={'a' * n}>{' ' * n}<parameter=text>\na\n</parameter>\n</function>\n</tool_call>"),
    ("half a tag", "qwen3_coder_xml", (200, 256, 400), lambda n: f"<tool_call><function=note><parameter=text>a <function={'b' * n}>c</parameter></function></tool_call>"),
    ("quoted calls", "qwen3_coder_xml", (8,), lambda n: "<tool_call>" + "<function=note><parameter=text>" * n + "a" + "</parameter></function>" * n + "</tool_call>"),
    ("hermes: blanks before an opener", "hermes", (64, 256, 4096), lambda n: f'<tool_call>{{"name": "note", "arguments": {{"text": "a}}}}</tool_call>{" " * n}{_HERMES}'),
    ("a block of the feed", "hermes", (4096, 8192), lambda n: "a" * n + _HERMES + "`" * 5),
]  # fmt: skip


def around(limits: tuple[int, ...]) -> Iterator[int]:
    """The lengths at and beside each limit, and twice as long."""
    seen: set[int] = set()
    for limit in limits:
        for n in (*range(limit - 3, limit + 4), 2 * limit):
            if n > 0 and n not in seen:
                seen.add(n)
                yield n


def pieces(raw: str) -> Iterator[list[str]]:
    """Some ways to cut a text: everywhere, in sevens, and in two."""
    if len(raw) < 3000:
        yield list(raw)
    for size in (7, 64, 511):
        yield [raw[i : i + size] for i in range(0, len(raw), size)]
    for part in (3, 2):
        yield [raw[: len(raw) // part], raw[len(raw) // part :]]
    for behind in (1, 2, 12):
        yield [raw[:-behind], raw[-behind:]]
    places = [i + 1 for i, char in enumerate(raw) if char in "<>\"'="]
    yield from ([raw[:at], raw[at:]] for at in places[:24] + places[-8:])


@pytest.mark.parametrize(
    ("protocol", "limits", "build"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS]
)
@pytest.mark.exhaustive(5)
def test_a_text_around_a_limit_reads_alike_however_it_is_cut(
    protocol: str, limits: tuple[int, ...], build: Build
) -> None:
    for n in around(limits):
        raw = build(n)
        whole = run_chunks([raw], protocol, TOOLS, None)
        for chunks in pieces(raw):
            assert run_chunks(chunks, protocol, TOOLS, None) == whole, (n, [len(c) for c in chunks])
