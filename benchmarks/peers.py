"""CPU time beside peers, in one run: python benchmarks/peers.py [--json FILE]

Peers: the npm package @ai-sdk-tool/parser under node (installed into a temporary folder, or the one
that --node names), `json-repair` and `fast-json-repair` (compiled, without provenance); for small
calls and streams the parsers of SGLang and vLLM, as a server asks them (`toolparse reader add
sglang==0.5.23 vllm==0.33.0`), and the compiled `llm-beacon` and `agent-tool-parser`, which read no
stream. Each figure is the least of several repeats, in milliseconds of process CPU time; those of
small calls take turns with their peers. What is not installed is left out and said so.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import toolparse_lab as tp
from toolparse_lab.extensions.readers.packages import python_of_readers, reader_added

NPM = "@ai-sdk-tool/parser@4.1.26"
TOOLS: list[dict[str, Any]] = [
    {
        "name": "put_file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "body": {"type": "string"}},
        },
    },
    {
        "name": "book",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "guests": {"type": "integer"},
                "price": {"type": "number"},
                "late": {"type": "boolean"},
                "note": {"type": "string"},
            },
        },
    },
]
LINE = 'def area(r): return 3.14 * r ** 2  # "quoted", tagged <b>, and a path C:/x & more\n'


def best(run: Callable[[], Any], repeat: int) -> float:
    """The least CPU milliseconds of `repeat` runs."""
    least = float("inf")
    for _ in range(repeat):
        before = time.process_time()
        run()
        least = min(least, time.process_time() - before)
    return least * 1000


def long_text(size: int) -> str:
    return (LINE * (size // len(LINE) + 1))[:size]


def write_call(protocol: str, name: str, arguments: dict[str, Any]) -> str:
    if protocol == "hermes":
        return (
            "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"
        )
    if protocol == "morph_xml":
        inner = "".join(f"<{k}>{_plain(v)}</{k}>" for k, v in arguments.items())
        return f"<{name}>{inner}</{name}>"
    if protocol == "yaml_xml":
        inner = "".join(f"{k}: {_yaml(v)}\n" for k, v in arguments.items())
        return f"<{name}>\n{inner}</{name}>"
    inner = "".join(f"<parameter={k}>\n{_plain(v)}\n</parameter>\n" for k, v in arguments.items())
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _yaml(value: Any) -> str:
    """A text of more than a line as a block, anything else as it is."""
    text = _plain(value)
    if "\n" not in text:
        return text
    return "|\n" + "\n".join(f"  {line}" for line in text.split("\n"))


ARGUMENTS = {"city": "Bergen", "guests": 2, "price": 12.5, "late": True, "note": "by the window"}


def small_calls(protocol: str, size: int) -> str:
    """Calls of about 150 characters, up to a size."""
    pieces: list[str] = []
    total = 0
    n = 0
    while total < size:
        n += 1
        arguments = {**ARGUMENTS, "guests": n, "late": n % 2 == 0}
        pieces.append(write_call(protocol, "book", arguments))
        total += len(pieces[-1]) + 1
    return "\n".join(pieces)


def damaged(size: int, every: int) -> str:
    """An array of objects in which every so many-th has a trailing comma, single quotes or a bare
    word."""
    rng = random.Random(7)
    items: list[str] = []
    total = 0
    while total < size:
        item = json.dumps(
            {"id": len(items), "name": "Bergen harbour", "tags": ["a", "b"], "ok": True, "x": 1.5}
        )
        if len(items) % every == 0:
            item = rng.choice(
                [item[:-1] + ",}", item.replace('"a"', "'a'"), item.replace("true", "True")]
            )
        items.append(item)
        total += len(item) + 2
    return "[" + ", ".join(items) + "]"


class Lines:
    """A process that answers each line of JSON with one."""

    def __init__(self, command: list[Any]) -> None:
        self._process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **task: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline() or "{}")
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Node:
    """The npm package in a process of its own; None answers where it is missing."""

    def __init__(self, folder: str | None) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._process: Lines | None = None
        node, npm = shutil.which("node"), shutil.which("npm")
        if node is None or npm is None:
            return
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory()
            folder = self._temporary.name
            done = subprocess.run(
                [npm, "install", "--silent", "--prefix", folder, NPM],
                capture_output=True,
                check=False,
            )
            if done.returncode:
                return
        self._process = Lines([node, Path(__file__).with_name("peer.mjs"), folder])

    def ms(self, kind: str, protocol: str, text: str, repeat: int, chunk: int = 4) -> float | None:
        if self._process is None:
            return None
        answer = self._process.ask(
            kind=kind, protocol=protocol, text=text, tools=TOOLS, repeat=repeat, chunk=chunk
        )
        ms: float | None = answer.get("ms")
        return ms

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
        if self._temporary is not None:
            self._temporary.cleanup()


@contextlib.contextmanager
def node_peer(folder: str | None) -> Iterator[Node]:
    node = Node(folder)
    try:
        yield node
    finally:
        node.close()


def feed(protocol: str, text: str, chunk: int = 4) -> None:
    parser = tp.stream(protocol, TOOLS)
    for i in range(0, len(text), chunk):
        parser.feed(text[i : i + chunk])
    parser.close()


Row = tuple[str, float, Mapping[str, "float | str | None"]]


def rows(node: Node, quick: bool) -> Iterator[Row]:
    protocols = ("hermes", "morph_xml", "qwen3_coder_xml", "yaml_xml")
    # The npm package takes hours for what is not quick: its cost grows with the square of the text.
    for size, beside in ((100_000, True),) if quick else ((100_000, True), (1_000_000, False)):
        for protocol in protocols:
            text = write_call(protocol, "put_file", {"path": "a.py", "body": long_text(size)})
            # A stream of YAML takes the npm package longer than all other rows together.
            beside_npm = beside and protocol != "yaml_xml"
            peer = {"npm": node.ms("stream", protocol, text, 1)} if beside_npm else {}
            yield (
                f"stream {size:,} characters by 4, {protocol}",
                best(partial(feed, protocol, text), 2),
                peer,
            )
    yield from one_call()
    for protocol in protocols:
        for size, repeat in ((2_000, 40), (200_000, 3)):
            text = small_calls(protocol, size)
            ours = best(partial(tp.parse, text, protocol, TOOLS), repeat)
            yield (
                f"batch {size:,} of small calls, {protocol}",
                ours,
                {"npm": node.ms("batch", protocol, text, repeat)},
            )
        text = write_call(protocol, "put_file", {"path": "a.py", "body": long_text(200_000)})
        ours = best(partial(tp.parse, text, protocol, TOOLS), 5)
        yield (
            f"batch one argument of 200,000, {protocol}",
            ours,
            {"npm": node.ms("batch", protocol, text, 5)},
        )
    for name, every in (("dense", 1), ("sparse", 200)):
        text = damaged(100_000, every)
        ours = best(partial(tp.rjson.repair, text), 3)
        peers: dict[str, float | None] = {}
        for package, function in (("json_repair", "loads"), ("fast_json_repair", "loads")):
            try:
                load = getattr(importlib.import_module(package), function)
            except ImportError:
                peers[package.replace("_", "-")] = None
            else:
                peers[package.replace("_", "-")] = best(partial(load, text), 3)
        yield f"repair 100,000 of {name} damage", ours, peers
    yield from coercion()


def one_call() -> Iterator[Row]:
    """Milliseconds for 1,000 answers of one small call, so microseconds for one; beside them what
    reads only the best case."""
    text = write_call("hermes", "put_file", {"path": "a.py", "body": "print(1)"})
    call = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)

    def naive() -> None:
        for _ in range(1000):
            json.loads(call.findall(text)[0])

    def parsed(protocol: str, *, origin: bool = False) -> None:
        for _ in range(1000):
            result = tp.parse(text, protocol, TOOLS)
            if origin:
                result.calls[0].origin("/path")

    peers: dict[str, float | None] = {"regex and json.loads": best(naive, 5)}
    yield "parse 1,000 small calls, hermes", best(partial(parsed, "hermes"), 5), peers
    origin = partial(parsed, "hermes", origin=True)
    yield "parse 1,000 small calls, with an origin", best(origin, 5), {}
    yield "parse 1,000 small calls, auto", best(partial(parsed, "auto"), 5), {}

    # As in a log of many applications, where hardly two rows have the same tools.
    several = [[{**TOOLS[0], "name": f"put_{n}"}, *TOOLS[1:]] for n in range(1000)]
    texts = [text.replace("put_file", f"put_{n}") for n in range(1000)]

    def varying(protocol: str) -> None:
        for answer, tools in zip(texts, several, strict=True):
            tp.parse(answer, protocol, tools)

    for protocol in ("hermes", "auto"):
        name = f"parse 1,000 small calls of different tools, {protocol}"
        yield name, best(partial(varying, protocol), 3), {}


# Format: (parser of SGLang, parser of vLLM), '' where there is none that runs without a vocabulary.
SERVERS = {
    "hermes": ("hermes", "hermes"),
    "kimi_k2": ("kimi_k2", "kimi_k2"),
    "deepseek_v31": ("deepseekv31", "deepseek_v31"),
    "mistral_v3": ("mistral", ""),
    "llama3_json": ("llama3", "llama3_json"),
    "pythonic": ("pythonic", "pythonic"),
    "gemma4": ("gemma4", "gemma4"),
    "glm47_compact": ("glm47", "glm47"),
    "harmony_channel": ("gpt-oss", ""),
    "minimax_m2": ("minimax-m2", "minimax_m2"),
    "qwen3_coder_xml": ("qwen3_coder", "qwen3_coder"),
    "yaml_xml": ("", ""),
    "openai_json": ("", ""),
}
COMPILED = {"llm-beacon": "beacon", "agent-tool-parser": "agent_tool_parser"}
OTHERWISE = "reads otherwise"
Turn = Callable[[int], "float | str"]
"""CPU seconds of so many runs, or why there are none."""


class Server:
    """The parsers of an added release in a process of their own, see `peer_python.py`."""

    def __init__(self, package: str) -> None:
        self._process: Lines | None = None
        self.name = package
        with contextlib.suppress(tp.errors.SetupError):
            added = reader_added(package)
            self.name = str(added).replace("==", " ")
            script = Path(__file__).with_name("peer_python.py")
            root = script.parent.parent
            self._process = Lines([python_of_readers(), script, package, added.folder, root])

    def turn(self, parser: str, text: str, wanted: list[list[str]], chunk: int, runs: int) -> Any:
        if self._process is None:
            return "not added"
        tools = [{"type": "function", "function": tool} for tool in TOOLS]
        answer = self._process.ask(parser=parser, text=text, tools=tools, chunk=chunk, runs=runs)
        if _decoded(answer.get("calls", [])) != _decoded(wanted):
            return OTHERWISE
        return answer["seconds"]

    def close(self) -> None:
        if self._process is not None:
            self._process.close()


def _decoded(calls: list[list[str]]) -> Any:
    with contextlib.suppress(ValueError):
        return [[name, json.loads(arguments)] for name, arguments in calls]
    return None


def in_turn(turns: dict[str, Turn], rounds: int, runs: int) -> dict[str, float | str]:
    """The least milliseconds of 1,000 runs of each, all taking turns."""
    least: dict[str, float | str] = {}
    for name, turn in [*turns.items()] * rounds:
        seconds = turn(runs)
        before = least.get(name)
        if isinstance(seconds, str) or isinstance(before, str):
            least[name] = seconds if isinstance(seconds, str) else str(before)
        else:
            ms = seconds * 1e6 / runs
            least[name] = ms if before is None else min(before, ms)
    return least


def beside_servers() -> Iterator[tuple[str, dict[str, float | str]]]:
    """(what, {ours and each peer: milliseconds of 1,000 runs}) of a small call, whole and by 4."""
    servers = [Server(package) for package in ("sglang", "vllm")]
    arguments = json.dumps({"path": "a.py", "body": "print(1)"})
    protocols = tp.protocols()

    def compiled(module: Any, text: str) -> Turn:
        def turn(runs: int) -> float | str:
            with contextlib.suppress(Exception):
                calls = module.parse_tool_calls(text)
                read = [c["arguments"] if isinstance(c, dict) else c.args for c in calls]
                if read == [json.loads(arguments)]:
                    return _seconds(partial(module.parse_tool_calls, text), runs)
            return OTHERWISE

        return turn

    try:
        for protocol, parsers in SERVERS.items():
            codec = protocols[protocol]
            text = codec.join_calls([codec.write_call("put_file", arguments)])
            for chunk, what in ((0, "small calls"), (4, "small streams by 4")):
                own = partial(feed, protocol, text) if chunk else partial(
                    tp.parse, text, protocol, TOOLS
                )  # fmt: skip
                turns: dict[str, Turn] = {"ours": partial(_seconds, own)}
                for server, parser in zip(servers, parsers, strict=True):
                    if parser:
                        wanted = [["put_file", arguments]]
                        turns[server.name] = partial(server.turn, parser, text, wanted, chunk)
                for name, module in COMPILED.items():
                    if not chunk:
                        with contextlib.suppress(ImportError):
                            turns[name] = compiled(importlib.import_module(module), text)
                yield f"1,000 {what}, {protocol}", in_turn(turns, 9, 40 if chunk else 200)
    finally:
        for server in servers:
            server.close()


def _seconds(run: Callable[[], Any], runs: int) -> float:
    before = time.process_time()
    for _ in range(runs):
        run()
    return time.process_time() - before


def coercion() -> Iterator[Row]:
    """Milliseconds for 1,000 objects of seven properties, so microseconds for one."""
    names = {
        "a": "integer",
        "b": "number",
        "c": "boolean",
        "d": "string",
        "e": "integer",
        "f": "string",
        "g": "boolean",
    }
    schema = json.dumps(
        {"type": "object", "properties": {k: {"type": t} for k, t in names.items()}}
    )
    clean = {"a": 1, "b": 2.5, "c": True, "d": "x", "e": 4, "f": "y", "g": False}
    steps = {**clean, "a": "1", "b": "2.5", "c": "true", "e": "4"}
    for name, value in (("clean", clean), ("four steps", steps)):

        def many(v: Any = value) -> None:
            for _ in range(1000):
                tp.coerce(v, schema)

        yield f"coerce 1,000 objects of 7, {name}", best(many, 5), {}


def beside_auto() -> Iterator[tuple[str, float, float]]:
    """(format, milliseconds of its own name, milliseconds of `auto`) for one answer of two calls,
    in every format that writes calls which `auto` reads as the format does."""
    calls = [("book", ARGUMENTS), ("put_file", {"path": "a.py", "body": "print(1)"})]
    for name, protocol in tp.protocols().items():
        try:
            text = protocol.join_calls([protocol.write_call(f, json.dumps(a)) for f, a in calls])
        except tp.errors.UnwritableCall:
            continue
        if len(tp.parse(text, "auto", TOOLS).calls) != len(tp.parse(text, name, TOOLS).calls):
            continue
        own = best(partial(repeat_parse, text, name), 5)
        yield name, own, best(partial(repeat_parse, text, "auto"), 5)


def repeat_parse(text: str, protocol: str) -> None:
    for _ in range(20):
        tp.parse(text, protocol, TOOLS)


def _printed(row: Row) -> dict[str, Any]:
    name, ours, peers = row
    beside = "  ".join(
        f"{peer} {ms:.2f} ({ms / ours:.1f}x)"
        if isinstance(ms, (int, float))
        else f"{peer} {ms or 'not installed or failed'}"
        for peer, ms in peers.items()
    )
    print(f"{name:48} {ours:10.2f}   {beside}", flush=True)
    return {"what": name, "ms": ours, **{f"{p}_ms": ms for p, ms in peers.items()}}


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--node", metavar="FOLDER", help="folder with the npm package installed")
    options.add_argument("--quick", action="store_true", help="no stream of a million characters")
    options.add_argument("--json", metavar="FILE", help="write the figures too")
    chosen = options.parse_args(argv)
    print(
        f"Python {platform.python_version()}, toolparse_lab {tp.__version__}; CPU milliseconds, "
        "least of several runs"
    )
    with node_peer(chosen.node) as node:
        figures = [_printed(row) for row in rows(node, chosen.quick)]
    faster: dict[str, list[str]] = {}
    for name, least in beside_servers():
        own = least.pop("ours")
        assert isinstance(own, float)
        figures.append(_printed((name, own, least)))
        for peer in (peer for peer, ms in least.items() if isinstance(ms, float) and ms < own):
            faster.setdefault(peer, []).append(name.removeprefix("1,000 small "))
    print("faster than this package:", end=" ")
    print("; ".join(f"{peer} in {' and '.join(rows)}" for peer, rows in faster.items()) or "none")
    ratios = sorted(((auto / own, name) for name, own, auto in beside_auto()), reverse=True)
    print(f"\nauto beside the named protocol, two calls an answer, {len(ratios)} formats")
    print(f"median {ratios[len(ratios) // 2][0]:.2f}x, the most:", end=" ")
    print(", ".join(f"{name} {ratio:.2f}x" for ratio, name in ratios[:5]), flush=True)
    figures.extend({"what": f"auto: {name}", "ratio": ratio} for ratio, name in ratios)
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
