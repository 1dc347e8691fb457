"""Readers: whatever turns the text of an answer into calls, behind the one interface of protocols.

How it works. A plain function and a command become protocol objects with the one method that
reading needs. From there on they go the way of every foreign protocol: their calls are placed in
the text, coerced by the policy, validated and scored. An error of theirs is a problem of that one
answer. Whoever wants to judge exactly the calls that a reader gave compares under the policy
"none".
"""

from __future__ import annotations

import hashlib
import inspect
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...core import VERSION
from ...core.errors import BadOptions, UnreadableInput
from ...core.values import read_strict, write_canonical
from ...formats.registry import is_shipped
from ...parser.foreign.protocol import AnyProtocol, ForeignProtocol, any_protocol
from .outside import outside_calls

TIMEOUT = 10.0
"""Seconds that a command may take for one text, unless the caller says otherwise."""
TOOLS_FILE = "TOOLPARSE_TOOLS"
"""The environment variable that names the file of the tools' JSON, for commands."""
_LONGEST = 16_000_000  # characters of a command's output
_LONGEST_COMPLAINT = 300
_OURS = ("auto", "native")


def reader(x: Any, *, name: str = "", version: str = "", timeout: float = TIMEOUT) -> AnyProtocol:
    """Return the reader that x is.

    Args:
        x: a protocol's id or object. A function of the raw text, or of the text and the tools, that
            returns calls in any of the usual shapes (`outside.outside_calls`). Or a command as a
            list of arguments, which gets the text on its standard input as UTF-8, finds the tools
            in the file that `TOOLPARSE_TOOLS` names, and writes the calls to its standard output as
            JSON. No shell is involved.
        name, version: its name in frames and diffs. By default a function's own name and the
            version of its package, or a digest of its code, and a command's program and a digest of
            that file.
        timeout: seconds a command may take for one text.

    Raises BadOptions for anything that is none of these, and UnknownProtocol.

    >>> import toolparse_lab as tp
    >>> mine = reader(lambda text: [{"name": text, "arguments": {}}], name="mine", version="2")
    >>> tp.parse("f", mine, [{"name": "f"}]).calls[0].name
    'f'
    """
    subject = _subject_of(x, timeout)
    if subject is None:
        if x is None or (callable(x) and not isinstance(x, type) and _takes_text(x)):
            raise _no_reader(x)
        chosen = any_protocol(x)
        if isinstance(chosen, ForeignProtocol) and (name or version):
            chosen = replace(chosen, id=name or chosen.id, version=version or chosen.version)
        return chosen
    own_name, own_version = subject.identity()
    return ForeignProtocol(
        name or own_name, subject, title="a reader of one's own", version=version or own_version
    )


def version_of(protocol: Any) -> str | None:
    """Return the version of the reader of an answer, None if no one knows it.

    protocol: an object, or the id of one.
    """
    if isinstance(protocol, ForeignProtocol):
        return protocol.version or None
    protocol_id = protocol if isinstance(protocol, str) else getattr(protocol, "id", "")
    return VERSION if protocol_id in _OURS or is_shipped(protocol_id) else None


def is_reader(x: Any) -> bool:
    """Return True for the inputs of `reader`, but for names: these may be those of runs, too."""
    if isinstance(x, str) or x is None:
        return False
    return callable(x) or _is_command(x) or hasattr(x, "parse_generated_text")


def _subject_of(x: Any, timeout: float) -> FunctionReader | CommandReader | None:
    if _is_command(x):
        return CommandReader(tuple(map(os.fspath, x)), _seconds(timeout))
    if isinstance(x, (list, tuple)):
        raise _no_reader(x)
    is_plain = callable(x) and not isinstance(x, type) and not hasattr(x, "parse_generated_text")
    return FunctionReader(x) if is_plain and _takes_text(x) else None


def _seconds(timeout: Any) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise BadOptions("timeout is a number of seconds", got=timeout, expected="above 0")
    return float(timeout)


def _no_reader(x: Any) -> BadOptions:
    return BadOptions(
        "this is no reader",
        got=x,
        expected="a protocol, a function of the text, or a command as a list of arguments",
    )


def _is_command(x: Any) -> bool:
    if not isinstance(x, (list, tuple)) or not x:
        return False
    return all(isinstance(word, (str, os.PathLike)) for word in x)


def _takes_text(function: Callable[..., Any]) -> bool:
    # A factory of a protocol takes nothing. A builtin without a signature is taken for a reader.
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    in_order = [p for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    return any(p.default is p.empty for p in in_order)


@dataclass(frozen=True, eq=False)
class FunctionReader:
    """A function from a text, or a text and the tools, to calls, as a protocol object."""

    function: Callable[..., Any]

    def identity(self) -> tuple[str, str]:
        """Return the function's name, and the version of its package or a digest of its code."""
        function = self.function
        name = str(getattr(function, "__name__", "") or type(function).__name__)
        return name, _package_version(function) or _code_digest(function)

    def parse_generated_text(self, text: str, tools: Any, options: Any) -> list[Any]:
        """Return the calls as parts. Raises the error that the function raises."""
        returned = self.function(text, tools) if self._takes_tools() else self.function(text)
        return _parts(returned, text)

    def _takes_tools(self) -> bool:
        # True for a second place without a default, or one named tools.
        try:
            parameters = list(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError):
            return False
        second = parameters[1:2]
        return any(p.name == "tools" or p.default is p.empty for p in second) and all(
            p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in second
        )


@dataclass(frozen=True, eq=False)
class CommandReader:
    """A command from the text on its standard input to JSON on its output, as a protocol object.

    One process a text: it cannot take anything along from one answer to the next.
    """

    command: tuple[str, ...]
    timeout: float = TIMEOUT

    def identity(self) -> tuple[str, str]:
        """Return the name of the program or its script, and a digest of that file."""
        files = [Path(word) for word in self.command if Path(word).is_file()]
        # Behind `python` or `node` it is the script that changes.
        program = files[-1] if files else Path(self.command[0])
        digest = hashlib.sha256(program.read_bytes()).hexdigest()[:8] if files else ""
        return program.name, digest

    def parse_generated_text(self, text: str, tools: Any, options: Any) -> list[Any]:
        """Return the calls as parts.

        Raises TimeoutError, OSError if it cannot be started, and ValueError for an exit status
        above 0 and for output that is not JSON.
        """
        with tempfile.TemporaryDirectory(prefix="toolparse") as folder:
            file = Path(folder, "tools.json")
            file.write_text(write_canonical(tools), "utf-8")
            output = self._run(text, {**os.environ, TOOLS_FILE: str(file)})
        return _parts(read_strict(output) if output.strip() else None, text)

    def _run(self, text: str, environment: Mapping[str, str]) -> str:
        # A session of its own, so that children it started end with it.
        process = subprocess.Popen(  # noqa: S603 - the caller's own command, without a shell
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            # Lone surrogates have no UTF-8: the command sees a question mark.
            output, errors = process.communicate(text.encode("utf-8", "replace"), self.timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"no answer within {self.timeout:g} s") from None
        finally:
            _end(process)
        if process.returncode:
            complaint = errors.decode("utf-8", "replace").strip()[-_LONGEST_COMPLAINT:]
            raise ValueError(f"exit status {process.returncode}: {complaint}")
        if len(output) > _LONGEST:
            raise ValueError(f"more than {_LONGEST} bytes of output")
        return output.decode("utf-8")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _parts(returned: Any, text: str) -> list[Any]:
    # Without a call all of it is text.
    try:
        calls = outside_calls(returned)
    except UnreadableInput as e:
        raise ValueError(str(e)) from e
    return [
        {"type": "tool-call", "toolName": call.name, "input": call.arguments_json} for call in calls
    ] or [text]


def _package_version(function: Callable[..., Any]) -> str:
    own = getattr(function, "__version__", None)
    root = str(getattr(function, "__module__", "") or "").partition(".")[0]
    version = own or getattr(sys.modules.get(root), "__version__", None)
    return version if isinstance(version, str) else ""


def _code_digest(function: Callable[..., Any]) -> str:
    # Changes with the function's code; '' where it has none to see.
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    text = repr((code.co_code, code.co_names, [c for c in code.co_consts if isinstance(c, str)]))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
