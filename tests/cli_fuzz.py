"""Looks for a command line that ends in a traceback: python -m tests.cli_fuzz [NUMBER] [--seed 1]

Every verb and option is taken from the parser itself, so that a new one is tried without a word
here. Each command is a likely one with some of its words, files and streams replaced by hostile
ones: binary files, folders, deep nesting, huge numbers, NUL, lone surrogates, nothing at all, a
closed standard input or output. It runs in a fork of this process, with a time limit. What must
hold: no traceback, an exit code of the documented ones, an end in time.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from toolparse_lab.cli import build_parser, main
from toolparse_lab.cli.parser import EXIT_CODES
from toolparse_lab.core.errors import SetupError
from toolparse_lab.runner.litellm_door import recording_litellm

ROOT = Path(__file__).parent.parent
RECORDING = ROOT / "datasets" / "recordings" / "smollm2-135m.jsonl"
SECONDS = 30.0  # for one command; the slowest good one takes two
MEMORY = 3 * 2**30  # bytes of address space above this process's own
NO_ONE = "http://127.0.0.1:9/v1"  # where nobody listens
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
CALL = '<tool_call>{"name": "f", "arguments": {"a": "1"}}</tool_call>'
DEEP = 6000
# Words of any option. A real command line has no NUL, a file of settings may.
SCALARS = (
    "", " ", "-", "--", "-1", "0", "1", "65536", "999999999999", "9223372036854775808", "9" * 5000, "1e400",
    "-1e400", "nan", "inf", "0x10", "1_000", "٣", "a=b=c", "=", "a=", "=a", ",", ",,a,,", "a,b", "a=1,2",
    "a=" + "[" * DEEP, "[" * DEEP, '{"a":' * DEEP, "{}", "null", "%s%n%d", "../..", "💥" * 50, "\udcff\udc80",
    "a\x00b", "x" * 5000, "latest~99999999999999999999", "latest~-1", "http://[", "sqlite:///", "sqlite:////nowhere/x.db",
    "postgresql://nobody:nothing@127.0.0.1:9/x", "mysql://x", "://", "success=0.9", "success=nan", "success>=1e999",
    "hermes", "auto", "safe", "latest", "c1", "gpt-4", "openai/none", "0.0.0.0", "::1", "localhost",
)  # fmt: skip


def hostile_contents() -> dict[str, bytes]:
    """Name of a file -> what is in it."""
    deep = b"[" * DEEP + b"]" * DEEP
    nested = b'{"a":' * DEEP + b"1" + b"}" * DEEP
    case = b'{"id": "c1", "input": "x", "tools": %s, "target": %s}\n'
    many = b"1" + b"0" * 5000
    return {
        "empty": b"",
        "nul": b"\x00" * 500,
        "binary": random.Random(0).randbytes(4000),
        "utf16": "a ünï".encode("utf-16") * 9,
        "latin1": "déjà vu <tool_call>".encode("latin-1"),
        "bom": b"\xef\xbb\xbf" + CALL.encode(),
        "deep.json": deep,
        "deeper.json": b"[" * 200_000,
        "nested.json": nested,
        "deep.jsonl": case % (deep, b"[]"),
        "target.jsonl": case % (b"[]", b'[{"name": "f", "arguments": ' + nested + b"}]"),
        "half-deep.jsonl": case
        % (b"[]", b'[{"name": "f", "arguments": ' + b'{"a":' * 700 + b"1" + b"}" * 700 + b"}]"),
        "metadata.jsonl": b'{"id": "c1", "input": "x", "output": "y", "metadata": '
        + b'{"a":' * 450
        + b"1"
        + b"}" * 450
        + b"}\n",
        "schema.json": b'[{"name": "f", "parameters": '
        + b'{"type": "array", "items": ' * 450
        + b"{}"
        + b"}" * 450
        + b"}]",
        "loop.json": b'[{"name": "f", "parameters": {"$ref": "#"}}]',
        "types.json": b'[{"name": 3, "parameters": 7}, null, [], "f", {"function": 1}]',
        "huge-int.json": many,
        "huge-float.json": b"[1e999999999, -1e999999999, 1e-999999999]",
        "case-int.jsonl": case % (b"[]", b'[{"name": "f", "arguments": {"a": ' + many + b"}}]"),
        "nan.json": b"[NaN, Infinity]",
        "surrogate.jsonl": b'{"id": "\\ud800", "input": "\\udfff", "output": "\\ud800", "tools": [], "model": "\\ud83d"}\n',
        "string.json": b'"text"',
        "null.json": b"null",
        "nulls.jsonl": b"null\n[]\n3\n{}\n",
        "torn.json": b'[{"name": "f", "param',
        "pack.gz": gzip.compress(CALL.encode()),
        "parquet.parquet": b"PAR1" + bytes(80) + b"PAR1",
        "table.csv": b'id,input,tools\n1,2\n,,,,,\n"' + b"x" * 200_000,
        "store-of-others.db": b"SQLite format 3\x00" + bytes(4000),
        "a.sse": b"data: {\n\ndata: [DONE]\n\n" + b"data: " + deep + b"\n\n",
        "log.jsonl": b'{"request": {"model": 3, "messages": 7}, "response": {"choices": [3]}}\n'
        * 3,
        "header.jsonl": b'{"recording": 99999999999999999999}\n{"key": 3}\n',
        **{f"{n}.toml": text.encode() for n, text in enumerate(HOSTILE_TOML)},
        "deep.toml": b"a = " + deep,
        "wide.toml": b"a." * DEEP + b"b = 1",
    }


HOSTILE_TOML = (
    "trials = 999999999999", "trials = -1", "trials = 99999999999999999999999999", "trials = true", "seed = 99999999999999999999999999",
    "sample = -3", "sample = 999999999999", 'cases = "a\\u0000b"', 'store = "a\\u0000b"', 'store = "/"', "cases = 3",
    "models = [[[]]]", "models = [3]", 'models = [""]', "protocols = [3]", 'protocols = [""]', "[limits]\nmax_cost = nan",
    "[limits]\nmax_calls = 99999999999999999999", "[limits]\ndeadline = inf", "[gate]\nsuccess = nan", '[gate]\nsuccess = "x"',
    "[gate]\nnothing = 1", "[settings]\nmax_tokens = inf", "[settings]\nfew_shot = [99999999999]", "[settings]\nwording = [[]]",
    "[settings]\ntemperature = 1979-05-27", "[columns]\na = 3", "[where]\nid = 1979-05-27T07:32:00Z", '[models.a]\nname = ""',
    '[models.a]\nname = "openai/x"\ntimeout = inf', '[models.a]\nname = "openai/x"\napi_base = "http://["',
    '[models.a]\nname = "openai/x"\nheaders = { a = [1] }', '[models.a]\nname = "openai/x"\nmax_connections = 0',
    '[models.a]\nname = "openai/x"\nparams = { env = "NOT_SET" }', '[models.a]\nname = 3', "policy = 3", "color = []",
    "max_cost = 1e400", 'baseline = ""', "stream = 1", "=", "[[models]]", "models = 3", "\x00", "deadline = 1979-05-27",
)  # fmt: skip


@dataclass(frozen=True)
class World:
    """A folder with good files, hostile ones, a store with a run in it, and settings."""

    folder: Path
    good: dict[str, str] = field(default_factory=dict)
    hostile: tuple[str, ...] = ()

    @classmethod
    def made(cls, folder: Path) -> World:
        """Write the files; makes one run by the shipped recording."""
        good = {
            "file": "answer.txt", "tools": "tools.json", "cases": "cases.jsonl", "plan": "plan.toml",
            "config": "toolparse.toml", "store": "good.db", "replay": str(RECORDING), "source": "log-good.jsonl",
            "run": "latest",
        }  # fmt: skip
        (folder / "answer.txt").write_text(CALL, "utf-8")
        (folder / "tools.json").write_text(json.dumps(TOOLS), "utf-8")
        case = {"id": "c1", "input": "x", "tools": TOOLS, "target": []}
        (folder / "cases.jsonl").write_text(json.dumps(case), "utf-8")
        (folder / "log-good.jsonl").write_text(
            json.dumps({"case_id": "c1", "model": "m", "output": CALL, "tools": TOOLS}), "utf-8"
        )
        (folder / "toolparse.toml").write_text(
            'store = "good.db"\n[models]\nsmall = "toolparse-local/smollm2-135m"\n'
            f'[models.none]\nname = "openai/x"\napi_base = "{NO_ONE}"\nmax_retries = 0\ntimeout = 2\n',
            "utf-8",
        )
        (folder / "plan.toml").write_text(
            f'cases = "{ROOT.as_posix()}/datasets/cases.jsonl"\nsample = 2\nmodels = ["small"]\n'
            'protocols = ["hermes"]\n[settings]\ndecoding = "grammar"\nwording = "brief"\nmax_tokens = 128\n',
            "utf-8",
        )
        hostile = ["no-such-file", "folder", "looped", "x" * 300, "unreadable", "answer.txt/below"]
        for name, content in hostile_contents().items():
            (folder / name).write_bytes(content)
            hostile.append(name)
        (folder / "folder").mkdir()
        (folder / "looped").symlink_to("looped")
        (folder / "unreadable").write_text("x")
        (folder / "unreadable").chmod(0)
        os.chdir(folder)
        with silence():
            assert main(["run", "plan.toml", "--replay", str(RECORDING), "--quiet"]) == 0
            assert main(["ingest", "log-good.jsonl"]) == 0
        return cls(folder, good, tuple(hostile))


@contextlib.contextmanager
def silence() -> Iterator[None]:
    with (
        open(os.devnull, "w") as out,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        yield


# commands

# Verb -> words that make it a good command; the rest comes from the parser.
LIKELY: dict[str, list[list[str]]] = {
    "parse": [["answer.txt"], ["answer.txt", "--tools", "tools.json"], ["-"], ["answer.txt", "--json"]],
    "validate": [["cases.jsonl"], ["cases.jsonl", "--json", "--strict"]],
    "run": [
        ["plan.toml", "--replay", str(RECORDING), "--quiet"],
        ["plan.toml", "--dry-run"],
        ["--retry", "latest", "--quiet"],
        ["--cases", "cases.jsonl", "--models", "none", "--protocols", "hermes", "--quiet"],
    ],
    "ingest": [["log-good.jsonl"]],
    "report": [["latest"], ["latest", "--ladder"], ["latest", "--score"]],
    "compare": [[], ["latest", "latest"], ["latest", "hermes", "morph_xml"]],
    "check": [["none"]],
}  # fmt: skip
# What installs, downloads or never ends is not run; its options are.
SKIPPED = ("demo",)


@dataclass(frozen=True)
class Command:
    """One command line, and the streams it gets: "closed", "empty", "full", "binary", "gone"."""

    words: tuple[str, ...]
    stdin: str = "empty"
    stdout: str = "read"
    stderr: str = "read"

    def __str__(self) -> str:
        words = " ".join(ascii(w if len(w) < 60 else f"{w[:50]}…({len(w)})") for w in self.words)
        return (
            f"toolparse {words}  [stdin {self.stdin}, stdout {self.stdout}, stderr {self.stderr}]"
        )


def verbs() -> dict[str, argparse.ArgumentParser]:
    """The parser of every verb that is tried."""
    (sub,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return {name: verb for name, verb in sub.choices.items() if name not in SKIPPED}


def commands(world: World, seed: int) -> Iterator[Command]:
    """Commands without end, the same for the same seed."""
    rng = random.Random(seed)
    parsers = verbs()
    names = sorted(parsers)
    while True:
        name = rng.choice(names)
        words = list(rng.choice(LIKELY.get(name, [[]])))
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            words = changed(rng, words, parsers[name], world)
        # No fuzz may spend hours on a recording of 10,000 cases.
        stdin = rng.choice(("empty", "empty", "call", "binary", "deep", "closed"))
        stdout = rng.choice(("read",) * 7 + ("closed", "full", "gone"))
        stderr = rng.choice(("read",) * 8 + ("closed", "gone"))
        yield Command((name, *words), stdin, stdout, stderr)


def changed(
    rng: random.Random, words: list[str], parser: argparse.ArgumentParser, world: World
) -> list[str]:
    """The words with one replaced, left out, or an option more."""
    options = [a for a in parser._actions if a.option_strings and a.dest not in ("help", "version")]
    kind = rng.random()
    if words and kind < 0.35:
        at = rng.randrange(len(words))
        return [*words[:at], value(rng, None, world), *words[at + 1 :]]
    if words and kind < 0.42:
        at = rng.randrange(len(words))
        return words[:at] + words[at + 1 :]
    if not options or kind < 0.5:
        return [*words, value(rng, None, world)]
    action = rng.choice(options)
    flag = rng.choice(action.option_strings)
    if action.nargs == 0:
        return [*words, flag]
    text = value(rng, action, world)
    return [*words, f"{flag}={text}"] if rng.random() < 0.5 else [*words, flag, text]


def value(rng: random.Random, action: argparse.Action | None, world: World) -> str:
    """A word for an option: one it may have, a hostile file, or a hostile text."""
    kind = rng.random()
    if action is not None and action.choices and kind < 0.3:
        return str(rng.choice(list(action.choices)))
    if action is not None and action.dest in world.good and kind < 0.2:
        return world.good[action.dest]
    if kind < 0.6:
        return rng.choice(world.hostile)
    return rng.choice(SCALARS)


# running them


@dataclass(frozen=True)
class End:
    """How a command ended. code: of the exit, minus the signal, or None for no end in time."""

    command: Command
    code: int | None
    said: str
    seconds: float

    @property
    def fault(self) -> str | None:
        """What is wrong, None where nothing is."""
        if self.code is None:
            return f"no end in {SECONDS:g} s"
        if self.code not in EXIT_CODES:
            return f"exit code {self.code}"
        for word in ("Traceback (most recent", "this should not happen", "Exception ignored"):
            if word in self.said:
                return word
        return None

    def __str__(self) -> str:
        return f"{self.fault or 'ok'} ({self.code}, {self.seconds:.1f} s): {self.command}\n{self.said[-3000:]}"


STDIN = {"empty": b"", "call": CALL.encode(), "binary": bytes(range(256)) * 20, "deep": b"[" * DEEP}


def run(command: Command) -> End:
    """Run a command in a fork of this process."""
    # In a file and not in a pipe, which the parent would have to fill while it reads.
    with tempfile.TemporaryFile() as stdin:
        stdin.write(STDIN.get(command.stdin, b""))
        stdin.seek(0)
        read_end, write_end = os.pipe()
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            _be(command, stdin.fileno(), write_end)
        os.close(write_end)
        said, code = _awaited(child, read_end, started)
        os.close(read_end)
    return End(command, code, said, time.monotonic() - started)


def _awaited(child: int, read_end: int, started: float) -> tuple[str, int | None]:
    """What a child wrote, and its exit code; None after the time limit, when it is killed."""
    said = b""
    while True:
        left = started + SECONDS - time.monotonic()
        if left <= 0 or not select.select([read_end], [], [], left)[0]:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return said.decode("utf-8", "replace"), None
        piece = os.read(read_end, 65536)
        if not piece:
            break
        said = (said + piece)[-200_000:]
    status = os.waitpid(child, 0)[1]
    return said.decode("utf-8", "replace"), os.waitstatus_to_exitcode(status)


def _be(command: Command, stdin: int, out: int) -> None:
    """Be the command: never returns."""
    os.setpgid(0, 0)
    own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (own + MEMORY, own + MEMORY))
    saved = os.dup(out)  # beyond 0, 1 and 2
    os.dup2(stdin, 0)
    for fd, kind in ((1, command.stdout), (2, command.stderr)):
        os.dup2(_target(kind, saved), fd)
    # As the interpreter makes them where a stream is closed.
    sys.stdin = None if command.stdin == "closed" else os.fdopen(0, "r", closefd=False)
    sys.stdout = None if command.stdout == "closed" else os.fdopen(1, "w", closefd=False)
    sys.stderr = None if command.stderr == "closed" else os.fdopen(2, "w", closefd=False)
    for fd, kind in enumerate((command.stdin, command.stdout, command.stderr)):
        if kind == "closed":
            os.close(fd)
    code = 99
    try:
        with quiet_world():
            code = main(command.words)
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 1
    except BaseException:
        import traceback

        os.write(saved, traceback.format_exc().encode("utf-8", "replace"))
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except Exception as e:  # the interpreter would say so at its end, and leave with 120
            os.write(saved, f"Exception ignored in a stream: {e!r}".encode())
            code = 120
    os._exit(code)


def _target(kind: str, saved: int) -> int:
    """The file descriptor of a stream of this kind."""
    if kind == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if kind == "gone":
        read_end, write_end = os.pipe()
        os.close(read_end)
        return write_end
    return saved


@contextlib.contextmanager
def quiet_world() -> Iterator[None]:
    """No embedded model: loading it takes seconds. No server, which would never end."""

    def missing(*_: Any, **__: Any) -> Any:
        raise SetupError(
            "the embedded model is not there",
            hint="none: this is a test",
            code="missing-model-package",
        )

    with contextlib.ExitStack() as stack:
        for name in (
            "toolparse_lab.cli.demo.local_model_path",
            "toolparse_lab.runner.complete.local_model_path",
            "toolparse_lab.runner.routes.local_model_path",
            "toolparse_lab.extensions.serve.local.engine_params",
            "toolparse_lab.notebook.live_page.serve_page",
        ):
            with contextlib.suppress(AttributeError, ImportError):
                stack.enter_context(mock.patch(name, missing))
        yield


def preload() -> None:
    """Import what verbs import, so that each fork does not."""
    import pandas  # noqa: F401
    import scipy.stats  # noqa: F401
    import sqlalchemy  # noqa: F401

    import toolparse_lab.evals.reparse
    import toolparse_lab.lab
    import toolparse_lab.notebook

    with contextlib.suppress(ImportError):  # an extra
        import toolparse_lab.notebook.live_page  # noqa: F401

    recording_litellm()
    verbs()


def faults(world: World, seed: int, number: int) -> Iterator[End]:
    """The commands of a seed that end badly, those that end in the same words once."""
    good = world.folder / "good.db"
    kept = good.read_bytes()
    seen: set[str] = set()
    stream = commands(world, seed)
    for _ in range(number):
        end = run(next(stream))
        if good.read_bytes()[:16] != kept[:16]:
            good.write_bytes(kept)
        if end.fault is not None:
            last = end.said.strip().splitlines()[-2:]
            if (words := f"{end.fault}{last}") not in seen:
                seen.add(words)
                yield end


def hunt(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", nargs="?", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    preload()
    folder = Path(tempfile.mkdtemp(prefix="toolparse-cli-"))
    try:
        n = 0
        for end in faults(World.made(folder), options.seed, options.number):
            n += 1
            print(end, flush=True)
        print(f"{options.number} commands, {n} faults")
        return 1 if n else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(hunt())
