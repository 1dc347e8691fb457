"""A command from the text on its standard input to JSON on its output, as a reader."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.values import read_strict, write_canonical
from ...evals.parsers.outside import parts_of

TIMEOUT = 10.0
"""Seconds that a command may take for one text, unless the caller says otherwise."""
TOOLS_FILE = "TOOLPARSE_TOOLS"
"""The environment variable that names the file of the tools' JSON."""
_LONGEST = 16_000_000  # characters of a command's output
_LONGEST_COMPLAINT = 300


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
        """Return the calls as parts. Raises TimeoutError, OSError if it cannot be started, and
        ValueError for an exit status above 0 and for output that is not JSON.
        """
        with tempfile.TemporaryDirectory(prefix="toolparse") as folder:
            file = Path(folder, "tools.json")
            file.write_text(write_canonical(tools), "utf-8")
            output = self._run(text, {**os.environ, TOOLS_FILE: str(file)})
        return parts_of(read_strict(output) if output.strip() else None, text)

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
            if process.poll() is None:
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        if process.returncode:
            complaint = errors.decode("utf-8", "replace").strip()[-_LONGEST_COMPLAINT:]
            raise ValueError(f"exit status {process.returncode}: {complaint}")
        if len(output) > _LONGEST:
            raise ValueError(f"more than {_LONGEST} bytes of output")
        return output.decode("utf-8")
