"""A reader's process: started once, one JSON line a text, started anew after a crash or a limit."""

# How it works
# ------------
# State: the process, and a thread that puts its lines into a queue, so that waiting for an answer
# has a limit on every system. Both belong to one process of ours: a fork starts its own.
#
# Invariant: one question is open at a time, and its answer is the next line. Whatever breaks that
# ends the process, and the next text starts it anew.
#
# Cost: two switches of threads a text, about a tenth of a millisecond.

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from ...core.errors import SetupError, UnknownName, near

SECONDS = 2.0
"""Seconds that a text may take, unless the caller says otherwise."""
MEMORY = 2 << 30
"""Bytes of address space that a process may have."""
START_SECONDS = 60.0
_LONGEST = 64_000_000  # characters of an answer
_PIPE = 32_000  # bytes that fit into a pipe whose other end reads nothing
_MOST_COMPLAINT = 500
_SHOWN_NAMES = 80
# What a program needs to start; keys and addresses of the caller stay here.
_KEPT = ("PATH", "SYSTEMROOT", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class ReaderFailed(Exception):
    """No answer for a text: the parser raised, or its process ended or took too long."""


@dataclass(frozen=True, slots=True)
class OutsideAnswer:
    """What a reader makes of one text: the content, and (name, arguments) of each call, exactly as
    they would be sent. error: why there is none, '' if there is.
    """

    content: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    error: str = ""

    def parts(self) -> list[Any]:
        """Return it as parts of an AI SDK. Raises ReaderFailed for an error."""
        if self.error:
            raise ReaderFailed(self.error)
        calls = [{"type": "tool-call", "toolName": n, "input": a or None} for n, a in self.calls]
        return [self.content, *calls] if self.content else calls


@dataclass(frozen=True)
class Launch:
    """How a reader's process is started.

    settings: those of our own worker, which says first that it is there. None for another program.
    template: a function of the text and the tools to the response template that they are read with.
    """

    name: str
    version: str
    command: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] | None = None
    seconds: float = SECONDS
    memory: int = MEMORY
    template: Callable[[str, Any], Any] | None = None

    def argv(self) -> list[str]:
        if self.settings is None:
            return list(self.command)
        return [*self.command, json.dumps({**dict(self.settings), "memory": self.memory})]


class OutsideParser:
    """A reader's process as a protocol object, which `ForeignProtocol` gives our names.

    It is the same object for the same `launch`, also where it was pickled: see `outside_parser`.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self._running: _Running | None = None
        self._lock = threading.Lock()
        self._ids = count(1)

    def __reduce__(self) -> Any:
        return outside_parser, (self.launch,)

    def read(
        self, raw: str, tools: Sequence[Mapping[str, Any]], chunks: Sequence[str] | None = None
    ) -> tuple[OutsideAnswer, OutsideAnswer | None]:
        """Return the batch answer, and that of the chunks if there are any.

        tools: as AI SDKs have them. Raises SetupError if the process cannot be started.
        """
        asked: dict[str, Any] = {"raw": raw, "tools": [_openai_tool(tool) for tool in tools]}
        if chunks is not None:
            asked["chunks"] = list(chunks)
        if self.launch.template is not None:
            asked["template"] = self.launch.template(raw, tools)
        with self._lock:
            asked["id"] = next(self._ids)
            try:
                said = self._process().ask(asked, self.launch.seconds)
            except ReaderFailed as e:
                self._end()
                failed = OutsideAnswer(error=str(e))
                return failed, None if chunks is None else failed
            except BaseException:
                # An interrupt leaves an answer on its way, which is not that of the next text.
                self._end()
                raise
        error = str(said.get("error") or "")
        batch = _answer_of(said.get("batch"), error)
        stream = None if chunks is None else _answer_of(said.get("stream"), error)
        return batch, stream

    def parse_generated_text(self, text: str, tools: Any, options: Any) -> list[Any]:
        """Return the parts of a whole text. Raises ReaderFailed and SetupError."""
        return self.read(text, tools)[0].parts()

    def create_stream_parser(self, tools: Any, options: Any) -> Any:
        """Return a function of all chunks that gives the parts of their stream."""

        def parts_of(chunks: Iterable[str]) -> list[Any]:
            pieces = [chunk for chunk in chunks if chunk]
            stream = self.read("".join(pieces), tools, pieces)[1]
            return [] if stream is None else stream.parts()

        return parts_of

    def names(self) -> list[str]:
        """Return the names of the parsers there are, [] from another program."""
        with self._lock:
            return self._process().names

    def close(self) -> None:
        """End the process. The next text starts another."""
        with self._lock:
            self._end()

    def _process(self) -> _Running:
        if self._running is None or self._running.owner != os.getpid():
            self._running = _Running(self.launch)
        return self._running

    def _end(self) -> None:
        if self._running is not None:
            self._running.end()
            self._running = None


_parsers: dict[Launch, OutsideParser] = {}


def outside_parser(launch: Launch) -> OutsideParser:
    """Return the one parser of these settings: two of one name share their process."""
    return _parsers.setdefault(launch, OutsideParser(launch))


class _Running:
    # A started process. Raises SetupError where it cannot be started.
    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self.owner = os.getpid()
        self.names: list[str] = []
        folder = tempfile.mkdtemp(prefix="toolparse-reader-")
        self._stderr = Path(folder, "stderr")
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {"HOME": folder, "TMPDIR": folder}
        empty = Path(folder, "empty")
        empty.mkdir()
        try:
            with self._stderr.open("wb") as stderr:
                process = subprocess.Popen(  # noqa: S603 - the caller's program, without a shell
                    launch.argv(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
                    cwd=empty, env=environment, start_new_session=True,
                )  # fmt: skip
        except OSError as e:
            shutil.rmtree(folder, ignore_errors=True)
            raise SetupError(
                f"the reader {launch.name} cannot be started",
                got=f"{launch.command[0]}: {e.strerror or e}",
                expected="a program that can be run",
                code="reader-not-started",
            ) from e
        self._process = process
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_pump, args=(process.stdout, self._lines), daemon=True).start()
        self.end = weakref.finalize(self, _end, process, folder, self.owner)
        self._is_new = True
        if launch.settings is not None:
            self._greet()

    def _greet(self) -> None:
        name = self._launch.name
        try:
            said = self._next(START_SECONDS)
        except ReaderFailed as e:
            said = {"error": str(e)}
        self._is_new = False
        self.names = [str(name) for name in said.get("names") or ()]
        if said.get("error"):
            self.end()
            raise SetupError(
                f"the reader {name} cannot be started",
                got=str(said["error"]),
                code="reader-not-started",
            )
        parser = dict(self._launch.settings or ()).get("parser", "")
        if parser and parser not in self.names:
            self.end()
            raise UnknownName(
                f"no parser of this name in {name.partition(':')[0]}",
                got=parser,
                expected=", ".join(self.names[:_SHOWN_NAMES]),
                hint=near(parser, self.names),
                code="unknown-parser",
            )

    def ask(self, asked: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        line = json.dumps(asked).encode("ascii") + b"\n"
        # A process that reads nothing must not hold us: what fills the pipe is written beside.
        if len(line) > _PIPE:
            threading.Thread(target=self._write, args=(line,), daemon=True).start()
        else:
            self._write(line)
        said = self._next(max(seconds, START_SECONDS) if self._is_new else seconds)
        self._is_new = False
        if said.get("id") != asked["id"]:
            raise ReaderFailed(f"an answer to {said.get('id')!r} instead of {asked['id']}")
        return said

    def _write(self, line: bytes) -> None:
        # Of a process that ended, the end of its lines tells.
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.write(line)
                self._process.stdin.flush()

    def _next(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise ReaderFailed(f"no answer within {seconds:g} s") from None
        if not line:
            raise ReaderFailed(self._why_ended())
        try:
            said = json.loads(line)
        except (ValueError, RecursionError) as e:
            raise ReaderFailed(f"its answer is no JSON: {e}: {line[:80]!r}") from None
        if not isinstance(said, dict):
            raise ReaderFailed(f"its answer is no object: {line[:80]!r}")
        return said

    def _why_ended(self) -> str:
        try:
            status: Any = self._process.wait(1)
        except subprocess.TimeoutExpired:
            status = "unknown, its output is closed"
        said = b""
        with contextlib.suppress(OSError):
            said = self._stderr.read_bytes()
        complaint = said.decode("utf-8", "replace").strip()[-_MOST_COMPLAINT:]
        return f"the process ended with status {status}" + (f": {complaint}" if complaint else "")


def _pump(stdout: Any, lines: queue.SimpleQueue[bytes]) -> None:
    # b"" says that there are no more, or that one is too long to be an answer.
    with contextlib.suppress(OSError, ValueError):
        while line := stdout.readline(_LONGEST):
            if not line.endswith(b"\n"):
                break
            lines.put(line)
    lines.put(b"")


def _end(process: subprocess.Popen[bytes], folder: str, owner: int) -> None:
    # A child after a fork ends, too, and has to leave it alone.
    if os.getpid() != owner:
        return
    if process.poll() is None:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError, ValueError):
            if pipe is not None:
                pipe.close()
    shutil.rmtree(folder, ignore_errors=True)


def _openai_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": tool.get("name"), "parameters": tool.get("parameters")}
    if tool.get("description"):
        function["description"] = tool["description"]
    return {"type": "function", "function": function}


def _answer_of(said: Any, error: str) -> OutsideAnswer:
    if not isinstance(said, Mapping):
        return OutsideAnswer(error=error or "the reader gave no answer")
    pairs: list[tuple[str, str]] = []
    try:
        for call in said.get("calls") or ():
            name, arguments = str(call["name"] or ""), call["arguments"]
            if arguments is not None and not isinstance(arguments, str):
                arguments = json.dumps(arguments, ensure_ascii=False)
            pairs.append((name, arguments or ""))
    except (KeyError, TypeError) as e:
        return OutsideAnswer(error=f"its answer is not of the form of the lines: {e!r}")
    return OutsideAnswer(str(said.get("content") or ""), tuple(pairs))


WORKER = Path(__file__).with_name("worker")


def worker_command(python: str) -> tuple[str, ...]:
    """Return the command of our own worker under an interpreter, without its settings."""
    # Isolated: no environment, no site of the user, no current folder on the path. The folder of
    # the worker comes last on it, so that nothing is hidden.
    code = (
        f"import sys, runpy; sys.path.append({str(WORKER.parent)!r}); "
        "runpy.run_module('worker', run_name='__main__')"
    )
    return (python, "-I", "-c", code)
