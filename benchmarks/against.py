"""CPU time of this tree beside another tree of the same package, in one run: reading whole texts,
streams, repair and coercion.

Run with `python benchmarks/against.py OLD_TREE [--blocks 40] [--only WORD]`, OLD_TREE being another
checkout (`git worktree add ../old COMMIT`). Each tree is imported by a process of its own, and the
two take turns, block by block, because a shared machine changes its speed within seconds. A block
is about 20 ms of one task. Shown are the least CPU milliseconds of one run under each tree, the
change between those two, and the median change of neighbouring blocks.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BLOCK_SECONDS = 0.02
PROTOCOLS = ("hermes", "morph_xml", "qwen3_coder_xml", "yaml_xml", "harmony_channel")
TOOLS: list[dict[str, Any]] = [
    {
        "name": "put_file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "body": {"type": "string"}},
            "required": ["path", "body"],
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
            "required": ["city", "guests"],
        },
    },
]
LINE = 'def area(r): return 3.14 * r ** 2  # "quoted", tagged <b>, and a path C:/x & more\n'
PLAIN_DAMAGE: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("trailing comma", lambda body: body[:-1] + ",}"),
    ("single quotes", lambda body: body.replace('"Bergen"', "'Bergen'")),
    ("Python words", lambda body: body.replace("true", "True").replace("false", "False")),
)


Task = tuple[str, str, Callable[[str], Callable[[], object]]]


def worker(tree: str) -> None:
    """Measure tasks for the other process: a line `[task, runs]` comes in, CPU seconds go out.

    The first line out says the tasks and their texts, which have to be the same in both trees.
    """
    sys.path.insert(0, tree)
    import toolparse_lab as tp

    assert Path(tp.__file__).is_relative_to(tree), tp.__file__
    tasks = list(_tasks(tp))
    print(json.dumps({name: text for name, text, _ in tasks}), flush=True)
    runs_of = {name: prepare(text) for name, text, prepare in tasks}
    for line in sys.stdin:
        name, runs = json.loads(line)
        run = runs_of[name]
        before = time.process_time()
        for _ in range(runs):
            run()
        print(time.process_time() - before, flush=True)


def _tasks(tp: Any) -> Iterator[Task]:
    specs = {tool["name"]: tp.ToolSpec.of(tool) for tool in TOOLS}
    for protocol in PROTOCOLS:
        codec = tp.protocols()[protocol]
        calls = [
            codec.write_call("book", json.dumps(_booking(n)), specs["book"]) for n in range(40)
        ]
        small = "\n".join(calls)
        file = {"path": "a.py", "body": LINE * (100_000 // len(LINE))}
        long = codec.write_call("put_file", json.dumps(file), specs["put_file"])
        batch, stream = partial(_batch, tp, protocol), partial(_stream, tp, protocol)
        yield f"batch, 40 small calls, {protocol}", small, batch
        yield f"stream by 4, 40 small calls, {protocol}", small, stream
        yield f"batch, an argument of 100,000, {protocol}", long, batch
        yield f"stream by 4, an argument of 100,000, {protocol}", long, stream
    yield from _repairs(tp)
    schema = json.dumps(TOOLS[1]["parameters"])
    typed = [_booking(n) for n in range(40)]
    texts = [{k: _plain(v) for k, v in value.items()} for value in typed]
    for name, values in (("clean", typed), ("texts", texts)):
        yield f"coerce 40 objects, {name}", json.dumps(values), partial(_coercion, tp, schema)


def _repairs(tp: Any) -> Iterator[Task]:
    bodies = [json.dumps({"name": "book", "arguments": _booking(n)}) for n in range(40)]
    items = ", ".join(json.dumps(_booking(n)) for n in range(200))
    for damage, change in PLAIN_DAMAGE:
        text = "\n".join(f"<tool_call>\n{change(body)}\n</tool_call>" for body in bodies)
        yield f"batch, 40 calls, {damage}, hermes", text, partial(_batch, tp, "hermes")
        array = '{"items": [' + change(items) + "]}"
        yield f"rjson.repair, 200 objects, {damage}", array, lambda t: lambda: tp.rjson.repair(t)
    inner = "".join(f"<{k}>{_plain(v)}</{k}>" for k, v in _booking(3).items())
    for damage, text in (
        ("clean", inner),
        ("a bare &", inner.replace("by the", "by & the")),
        ("an open element", inner.removesuffix("</note>")),
    ):
        yield (
            f"batch, 40 calls, {damage}, morph_xml",
            f"<book>{text}</book>\n" * 40,
            partial(_batch, tp, "morph_xml"),
        )
        yield f"rxml.parse with repair, {damage}", text, partial(_xml, tp)


def _batch(tp: Any, protocol: str, text: str) -> Callable[[], object]:
    return lambda: tp.parse(text, protocol, TOOLS)


def _stream(tp: Any, protocol: str, text: str) -> Callable[[], object]:
    chunks = [text[i : i + 4] for i in range(0, len(text), 4)]

    def run() -> object:
        parser = tp.stream(protocol, TOOLS)
        for chunk in chunks:
            parser.feed(chunk)
        return parser.close()

    return run


def _xml(tp: Any, text: str) -> Callable[[], object]:
    schema = TOOLS[1]["parameters"]
    return lambda: tp.rxml.parse(text, schema, repair=True)


def _coercion(tp: Any, schema: str, text: str) -> Callable[[], object]:
    values = json.loads(text)
    return lambda: [tp.coerce(value, schema) for value in values]


def _booking(n: int) -> dict[str, Any]:
    return {
        "city": "Bergen",
        "guests": n,
        "price": 12.5,
        "late": n % 2 == 0,
        "note": "by the window",
    }


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class Tree:
    """One tree, imported by a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, __file__, "--worker", str(folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.texts: dict[str, str] = self._answer()

    def seconds(self, task: str, runs: int) -> float:
        assert self._process.stdin is not None
        print(json.dumps([task, runs]), file=self._process.stdin, flush=True)
        return float(self._answer())

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline() or '"the worker has ended"')

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def compare(old: Tree, new: Tree, task: str, blocks: int) -> tuple[float, float, float]:
    """(least ms of one run in the old tree, in the new, median ratio of neighbouring blocks)."""
    once = min(old.seconds(task, 1) for _ in range(2))
    new.seconds(task, 2)
    runs = max(1, round(BLOCK_SECONDS / max(once, 1e-5)))
    pairs = []
    for n in range(blocks):
        order = (old, new) if n % 2 else (new, old)
        seconds = {tree: tree.seconds(task, runs) for tree in order}
        pairs.append((seconds[old], seconds[new]))
    least_old, least_new = (min(times) * 1000 / runs for times in zip(*pairs, strict=True))
    return least_old, least_new, statistics.median(b / a for a, b in pairs)


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("old", metavar="OLD_TREE", type=Path, help="another checkout")
    options.add_argument("--blocks", type=int, default=40, help="blocks of each tree a task")
    options.add_argument("--only", default="", metavar="WORD", help="tasks that hold this word")
    chosen = options.parse_args(argv)
    old, new = Tree(chosen.old.resolve()), Tree(ROOT)
    assert old.texts == new.texts, "the trees write calls differently"
    print(f"CPU milliseconds, n = {chosen.blocks} blocks of each tree in turn")
    print(f"{'':52} {'old':>8} {'new':>8} {'least':>8} {'median':>8}")
    try:
        for task in (t for t in new.texts if chosen.only in t):
            before, after, median = compare(old, new, task, chosen.blocks)
            print(f"{task:52} {before:8.3f} {after:8.3f}", end="")
            print(f" {after / before - 1:+8.1%} {median - 1:+8.1%}", flush=True)
    finally:
        old.close()
        new.close()
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:]))
