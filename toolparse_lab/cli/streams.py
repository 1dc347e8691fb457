"""The standard streams as a shell hands them over: closed, full, or without a reader."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any

OUTPUT = "standard output"


class _Output:
    """Standard output: a reader that went away is no fault, every other failure is raised once.

    A failure is an OSError with `OUTPUT` as its file. Everything written after it disappears in
    silence, so that neither the rest of a command nor the interpreter's end complains of it again.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text. Raises OSError if it cannot be written."""
        if self._stream is None:
            raise OSError(errno.EBADF, "it is closed", OUTPUT)
        with self._failures():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write the text held back. Raises OSError if it cannot be written."""
        if self._stream is not None:
            with self._failures():
                self._stream.flush()

    def isatty(self) -> bool:
        """Return False for a closed one."""
        return self._stream is not None and bool(self._stream.isatty())

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Take a failure of the stream as the class says."""
        try:
            yield
        except OSError as e:
            _silence(self._stream)
            # A pager that was left, or `head`, has all that it wanted.
            if not isinstance(e, BrokenPipeError):
                raise OSError(e.errno, e.strerror, OUTPUT) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Messages:
    """Standard error: no command ends because no one can be told of it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text where that is possible."""
        if self._stream is not None:
            try:
                self._stream.write(text)
            except OSError:
                _silence(self._stream)
        return len(text)

    def flush(self) -> None:
        """Write the text held back where that is possible."""
        if self._stream is not None:
            try:
                self._stream.flush()
            except OSError:
                _silence(self._stream)

    def isatty(self) -> bool:
        """Return False for a closed one."""
        return self._stream is not None and bool(self._stream.isatty())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def shell_streams() -> Iterator[None]:
    """Standard output and error for one command.

    Both are put back and written out in the end.

    Raises OSError at the end for an output that cannot be written out.
    """
    _fill_numbers()
    output, messages = sys.stdout, sys.stderr
    for stream in (output, messages):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a character ends no command.
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = _Output(output), _Messages(messages)
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stdout, sys.stderr = output, messages


def _fill_numbers() -> None:
    """Open the null device where a standard stream is closed: the next file that is opened, a store
    for one, would get its number, and be written to by whatever writes to a standard stream.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is the one that is given out.
            os.open(os.devnull, os.O_RDWR)


def _silence(stream: Any) -> None:
    """Let a stream end in the null device, with the text held back."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        stream.flush()
