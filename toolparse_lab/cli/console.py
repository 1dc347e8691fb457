"""What commands read and write: standard streams, inputs, tables, JSON, and messages with flags."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core.errors import BadToolSpec, ToolparseError, UnreadableInput
from ..core.values.printable import printable
from ..views.show import aligned, visible

# output

_NONE = "–"  # the cell of a value that is not there


def say(text: str) -> None:
    """Write for people: to standard error."""
    print(text, file=sys.stderr, flush=True)


def put(text: str) -> None:
    """Write data: to standard output."""
    print(text)


def put_json(value: Any) -> None:
    """Write JSON, ASCII alone, so that no terminal and no pipe changes it."""
    print(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value as JSON has it: missing figures are null, numbers of numpy are numbers."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        # Not a number, or infinite: such a difference is not 0.
        return value if value - value == 0 else None
    # pandas has marks of its own for what is missing.
    return None if str(value) in ("<NA>", "NaT") else str(value)


def records(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a pandas frame, as JSON has them."""
    rows: list[dict[str, Any]] = plain(frame.to_dict("records"))
    return rows


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int | None = None) -> str:
    """Aligned columns, those of numbers to the right.

    width: columns of the terminal. A longer line is cut there, None cuts none.
    """
    # A line break in a cell would break the columns.
    cells = [[visible(_cell(value)).replace("\n", "⏎") for value in row] for row in rows]
    numeric = {i for i, c in enumerate(zip(*cells, strict=True)) if all(map(_is_number, c))}
    lines = aligned([list(head), *cells], numeric)
    if width is not None:
        lines = [line if len(line) <= width else f"{line[: width - 1]}…" for line in lines]
    return "\n".join(lines)


def put_table(
    head: Sequence[str], rows: Iterable[Sequence[Any]], as_json: bool, *, width: int | None = None
) -> None:
    """Write rows as a list of JSON objects, or as a table. See `table`."""
    if as_json:
        put_json([dict(zip(head, row, strict=True)) for row in rows])
    else:
        put(table(head, rows, width=width))


def put_told(as_json: bool, value: Any, text: object) -> None:
    """Write a value as JSON, or the text of it, which cannot act on the terminal."""
    if as_json:
        put_json(value)
    else:
        put(visible(str(text)))


def report_width() -> int:
    """Columns for a report: those of the terminal, or those that COLUMNS asks for.

    Any other pipe or file has room for every column.
    """
    columns = os.environ.get("COLUMNS", "")
    asked = int(columns) if columns.isascii() and columns.isdigit() else 0
    return terminal_width() or asked or sys.maxsize


def terminal_width() -> int | None:
    """Columns of the terminal that reads this, None if none does."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


def _cell(value: Any) -> str:
    if value is None:
        return _NONE
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)


def _is_number(text: str) -> bool:
    # With thousands, a sign or a currency; a missing number counts too.
    return text == _NONE or text.replace(",", "").replace(".", "", 1).lstrip("-+$").isdigit()


# inputs

# What is seldom in the name of a file, and nearly always in an answer with a call.
_PASTED = re.compile(r"[<{\n]|\A\s*\[|\w\([^)]*=.*\)\s*\Z", re.S)

# A character beyond ASCII as UTF-8 has it: bytes in another encoding hardly ever look like one.
_MULTIBYTE = re.compile(rb"[\xc3-\xf4][\x80-\xbf]+")

_CUT_CHARACTER = re.compile(rb"[\xc2-\xf4][\x80-\xbf]{0,2}\Z")

# What is in no text.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def read_text(name: str) -> str:
    """Return a text as it was written, whatever bytes it contains.

    name: a file, `-` for standard input, or, if there is no such file and it looks like one, the
    text itself. Anything that was understood otherwise than it was said goes to standard error.
    Raises UnreadableInput.
    """
    if name == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise UnreadableInput(
                "standard input is closed", hint="name a file, or pipe the text into the command"
            )
        if sys.stdin.isatty():
            say("toolparse: paste the text; Ctrl-D on a line of its own ends it")
        try:
            return _decoded(sys.stdin.buffer.read(), "standard input")
        except OSError as e:
            raise UnreadableInput(f"standard input: {e.strerror or e}") from None
    if looks_pasted(name):
        say("toolparse: there is no file of this name, so the argument is read as the text itself")
        return name
    from ..core.remote import local_path  # start-up time

    try:
        content = local_path(name).read_bytes()
    except OSError as e:
        raise UnreadableInput(f"{name}: {e.strerror or e}") from None
    except ValueError:  # a NUL
        raise UnreadableInput("this is no name of a file", got=ascii(name)) from None
    return _decoded(content, name)


def looks_pasted(name: str) -> bool:
    """Return True if there is no such file, and the name looks like text with a call."""
    return _PASTED.search(name) is not None and not os.path.lexists(name)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as e:
        place = f"{name} is not UTF-8 (byte {e.start})"
    encoding = _guessed(content)
    if encoding is not None:
        say(f"toolparse: {place}; guessed and read as {encoding}")
        return content.decode(encoding)
    say(f"toolparse: {place}; such bytes are kept, and shown as \\udc80 to \\udcff")
    # They become lone surrogates, which the parser takes as they are.
    return content.decode("utf-8", "surrogateescape")


def _guessed(content: bytes) -> str | None:
    """Return the encoding that bytes look like that are not UTF-8.

    None for damaged UTF-8, and for bytes that are not text.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\x00" in content:
        encoding = "utf-16"
    elif _MULTIBYTE.search(content) or _CONTROL.search(content):
        return None
    else:
        # An answer that was cut off may end inside a character.
        cut = _CUT_CHARACTER.search(content)
        if cut is not None and content[: cut.start()].isascii():
            return None
        encoding = "windows-1252"
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return None
    return encoding


def read_tools(name: str | None) -> Any:
    """Return the tools of a JSON file, or of JSON on the command line; None for no file.

    Raises BadToolSpec and UnreadableInput.
    """
    if name is None:
        return None
    label = name if len(name) <= 80 else f"{name[:77]}..."
    try:
        return json.loads(read_text(name))
    except RecursionError:
        raise BadToolSpec("the tools are nested deeper than any schema", got=label) from None
    except ValueError as e:
        raise BadToolSpec(
            "the tools file is no JSON",
            got=f"{label}: {e}",
            expected="a list of tools",
            hint='write each as {"name": "f", "parameters": {…}}, as in the "tools" of a request',
        ) from None


# the standard streams as a shell hands them over: closed, full, or without a reader

OUTPUT = "standard output"


class _Stream:
    """A standard stream whose text disappears in silence after its first failure, so neither the
    rest of a command nor the interpreter's end complains of it again.

    The failure of an output that `matters` is raised, as an OSError with `OUTPUT` as its file. No
    command ends because a message cannot be told.
    """

    def __init__(self, stream: Any, matters: bool) -> None:
        self._stream, self._matters = stream, matters

    def write(self, text: str) -> int:
        """Write text. Raises OSError if it cannot be written, and matters."""
        if self._stream is not None:
            self._try(self._stream.write, text)
        elif self._matters:
            raise OSError(errno.EBADF, "it is closed", OUTPUT)
        return len(text)

    def flush(self) -> None:
        """Write the text held back. Raises OSError as `write` does."""
        if self._stream is not None:
            self._try(self._stream.flush)

    def isatty(self) -> bool:
        """Return False for a closed one."""
        return self._stream is not None and bool(self._stream.isatty())

    def _try(self, act: Callable[..., Any], *args: Any) -> None:
        try:
            act(*args)
        except OSError as e:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                # The stream ends in the null device, with the text held back.
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, self._stream.fileno())
                os.close(null)
                self._stream.flush()
            # A pager that was left, or `head`, has all that it wanted.
            if self._matters and not isinstance(e, BrokenPipeError):
                raise OSError(e.errno, e.strerror, OUTPUT) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def shell_streams() -> Iterator[None]:
    """Standard output and error for one command, put back in the end.

    Raises OSError at the end for an output that cannot be written out.
    """
    # The next file that is opened, a store for one, would get the number of a closed standard
    # stream, and be written to by whatever writes to that stream.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is the one that is given out.
            os.open(os.devnull, os.O_RDWR)
    output, messages = sys.stdout, sys.stderr
    for stream in (output, messages):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a character ends no command.
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = _Stream(output, True), _Stream(messages, False)
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stdout, sys.stderr = output, messages


# messages: errors are written for callers from Python, and name the flags of a shell here

# Names in the messages of `evals.cases` and `ingest`; a message that is changed there and not here
# only shows the argument of Python again.
_NAMED = r"columns=\{(['\"])(?P<old>.+?)\1: "

_PRICE = r"tp\.Model\(\.\.\., price=\(input, output\) per million tokens; \(0, 0\) = free\)"

_LONG_LIST = 64  # letters of the names that an error lists next to the likely one

_FLAGS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), flag)
    # The longer pattern first: each is replaced in the text that the one before it left.
    for pattern, flag in (
        (
            _NAMED + r"(['\"])(?P<new>.+?)\3\}, or None",
            r"--columns '\g<old>=\g<new>', or '\g<old>='",
        ),
        (_NAMED + r"(['\"])(?P<new>.+?)\3\}", r"--columns '\g<old>=\g<new>'"),
        (_NAMED + r"None\}", r"--columns '\g<old>='"),
        (r"columns= maps (.*): \{'(\w+)': '(\w+)'\}", r"--columns maps \1: --columns '\2=\3'"),
        (r"by columns=", "by --columns"),
        (r"by errors=\"skip\"", "by --skip-bad (of ingest: without --strict)"),
        (_PRICE, "`price = [input, output]` per million tokens in [models.NAME], [0, 0] = free"),
        (
            r"pass tp\.Model\(name, api_key=…\)",
            "name its variable by `api_key_env` in [models.NAME]",
        ),
        (r"pass trust=True", "give --trust"),
        (r"any key: api_key=\"none\"", "any key"),
        (r"tp\.Model\(name, api_base=…\)", "`api_base` of [models.NAME]"),
        (r"give Model\(price=\.\.\.\)", "give `price = [input, output]` in [models.NAME]"),
        (r"tp\.protocols\(\)", "`toolparse list protocols`"),
        (r"open another store: tp\.Lab\(path\)", "name another store: --store PATH"),
        (r"lab\.runs\(\)", "`toolparse list`"),
        (r"(?m)^(  expected: .*\b0 or more), or None$", r"\1"),
        (r"by max_calls\b", "by --max-calls"),
        (r"lab\.check\(models, \['native'\]\)", "`toolparse check`"),
        (r"lab\.run\(plan, despite_check=True\)", "--despite-check"),
        (r"\bengine=(['\"])(\w+)\1", r"--engine \2"),
        (r"pass api_key=\.\.\., or stay on 127", "name its variable by --key-env, or stay on 127"),
        (r"\bmax_rows=(\d+)", r"--max-rows \1"),
        (
            r"toolparse_lab\.runner\.store\.recording\.import_recording(?:\(path, store\))?",
            "`toolparse ingest FILE`",
        ),
        (r"pass api_base=\.\.\.", "give `api_base` in [models.NAME]"),
        (r"run\.frame\(\)\['trial_id'\]", "the column trial_id of `toolparse export`"),
        (r"run\.trials\(protocol=\.\.\.\)", "--protocol ID"),
        (r"go to lab\.plan\b", "belong to the plan"),
        (r"lab\.plan\(run\.plan\.cases, models, protocols\)", "`toolparse run --cases FILE`"),
        (r"run\.trials_df\(\)", "`toolparse export`"),
        (r"\blab\.ingest\b", "`toolparse ingest`"),
        (r"\brun\.frame\(\)", "`toolparse export`"),
    )
)


def shortened(error: ToolparseError) -> str:
    """Return an error's text. Where one name is like the given one, it comes first and the long
    list of all names is cut.

    >>> names = ", ".join(f"name{i}" for i in range(100))
    >>> print(shortened(ToolparseError("no such name", got="nme1", expected=names,
    ...     hint="did you mean name1?")))
    no such name
      got: nme1
      what to do: did you mean name1?
      expected: name0, name1, name2, name3, name4, name5, name6, name7, name8, …
    """
    text = str(error)
    expected = str(error.expected or "")
    if len(expected) <= _LONG_LIST or not (error.hint or "").startswith("did you mean"):
        return text
    head = str(ToolparseError(error.message, got=error.got, hint=error.hint))
    few = expected[:_LONG_LIST].rpartition(", ")[0]
    return f"{head}\n  expected: {printable(few)}, …"


def as_flags(text: str) -> str:
    """Return an error's text with flags where it names arguments of Python.

    >>> as_flags('mend them, or leave them out by errors="skip"')
    'mend them, or leave them out by --skip-bad (of ingest: without --strict)'
    """
    for pattern, flag in _FLAGS:
        text = pattern.sub(flag, text)
    return text
