"""Every exception this package raises on purpose.

- `UsageError`: the caller's input is wrong; exit code 2
- `SetupError`: something must be installed first; exit code 2
- `IncompleteError`: the work stopped half way, what was recorded is kept; exit code 3
- `GateFailed`: a threshold is missed, or an arm became worse; exit code 1
- `RJSONParseError`, `RXMLError`: text and values that these two dialects cannot handle

All others are kinds of these, and all are a `ToolparseError`: what was got, what was expected, what
to do, and `code`, which fault.

Model output never raises any of them from `parse`, `feed` or `close`: there it becomes a Problem of
the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self, TypedDict, Unpack

from .values.printable import printable_lines

_MARGIN = 0.15  # how much less alike than the best another suggestion may be


def near(name: object, names: Iterable[object], most: int = 3, cutoff: float = 0.6) -> str | None:
    """Return the hint "did you mean …?" for an unknown name.

    None if nothing comes near.

    Args:
        names: those there are.
        most: how many are suggested.
        cutoff: how alike they must be, up to 1. One that is much less alike than the nearest is not
            suggested with it.

    >>> near("hermse", ["hermes", "gemma"])
    'did you mean hermes?'
    """
    import difflib  # only errors need it, and every program imports this module

    name = str(name)
    nearest = difflib.get_close_matches(name, [str(n) for n in names], most, cutoff)
    # A far second would only make the reader doubt a near first.
    alike = [difflib.SequenceMatcher(None, name, other).ratio() for other in nearest]
    nearest = [other for other, a in zip(nearest, alike, strict=True) if a > max(alike) - _MARGIN]
    return f"did you mean {' or '.join(nearest)}?" if nearest else None


class Details(TypedDict, total=False):
    """What an error says besides its message."""

    got: object
    expected: object
    hint: str | None
    code: str | None


class ToolparseError(Exception):
    """Base class.

    `code` names the fault, for a program: that of the class, or a closer one. `exit_code` is the
    exit code of the command line when the error reaches it.

    >>> import toolparse_lab as tp
    >>> try:
    ...     tp.parse("Hello", "hermse")
    ... except tp.errors.ToolparseError as error:
    ...     print(error.code, error.got, error.hint)
    unknown-protocol hermse did you mean hermes?
    """

    code = "error"
    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        got: object = None,
        expected: object = None,
        hint: str | None = None,
        code: str | None = None,
    ) -> None:
        self.message = message
        self.got = got
        self.expected = expected
        self.hint = hint
        if code is not None:
            self.code = code
        super().__init__(message)

    @classmethod
    def unknown(cls, message: str, name: object, names: Iterable[object], **more: Any) -> Self:
        """Return the error of a name that is none of `names`, with the nearest as its hint."""
        known = list(names)
        expected = ", ".join(map(str, known))
        return cls(message, got=name, expected=expected, hint=near(name, known), **more)

    def __str__(self) -> str:
        parts = [self.message]
        if self.got is not None:
            parts.append(f"got: {_short(self.got)}")
        if self.expected is not None:
            parts.append(f"expected: {_short(self.expected)}")
        if self.hint:
            parts.append(f"what to do: {self.hint}")

        return printable_lines("\n  ".join(parts))


def _short(x: object) -> str:
    try:
        # A credential is a kind of text whose `repr` hides it.
        text = x if type(x) is str else repr(x)
    except (RecursionError, ValueError):  # nested too deep, or an integer of too many digits
        return f"{type(x).__name__}, too large to show"
    return text if len(text) <= 300 else text[:297] + "..."


class UsageError(ToolparseError):
    """Base of the errors that the caller can mend."""

    code = "usage"
    exit_code = 2


class UnknownProtocol(UsageError):
    """Raised by `parse`, `stream` and every place that takes a protocol id."""

    code = "unknown-protocol"


class BadToolSpec(UsageError):
    """Raised by `ToolSpec.of` for a definition that is none of the accepted shapes.

    >>> import toolparse_lab as tp
    >>> tp.parse("Hello", "hermes", [{"name": ""}])
    Traceback (most recent call last):
    toolparse_lab.core.errors.BadToolSpec: a tool has no name
      got: {'name': ''}
      ...
    """

    code = "bad-tool-spec"


class NoStrictForm(BadToolSpec):
    """Raised for a schema that a provider's strict mode cannot be told.

    `keyword` is in the way, or is missing, at the JSON Pointer `path` of the schema.

    >>> from toolparse_lab.arguments.schema.strict_form import strict_form
    >>> strict_form({"properties": {"a": {"type": "array"}}})
    Traceback (most recent call last):
    toolparse_lab.core.errors.NoStrictForm: this schema has no strict form: the items of this ...
      got: items at /properties/a
      ...
    """

    code = "no-strict-form"

    def __init__(self, keyword: str, path: str, reason: str, *, hint: str | None = None) -> None:
        self.keyword = keyword
        self.path = path
        super().__init__(
            f"this schema has no strict form: {reason}",
            got=f"{keyword} at {path or 'the root'}",
            hint=hint or "change the schema, or ask with decoding='free'",
        )


class BadOptions(UsageError):
    """Raised for an option of a wrong name, type or value.

    >>> import toolparse_lab as tp
    >>> tp.parse("Hello", "hermes", options={"repairs": False})
    Traceback (most recent call last):
    toolparse_lab.core.errors.BadOptions: unknown option
      got: repairs
      ...
    """

    code = "bad-options"


class UnknownName(BadOptions):
    """Raised for a name or id that names nothing, or several things.

    `code` is one of unknown-model, unknown-rule (or coercion policy, problem code, matcher),
    unknown-run, unknown-trial, unknown-arm (or model, protocol of a run or frame) and
    unknown-column.

    >>> import toolparse_lab as tp
    >>> tp.coerce("5", {"type": "integer"}, policy="loose")
    Traceback (most recent call last):
    toolparse_lab.core.errors.UnknownName: no coercion policy of this name
      got: loose
      ...
    """

    code = "unknown-name"


class BadSpec(UsageError):
    """Raised by `Protocol.from_spec`.

    `field` names the fault.

    >>> import toolparse_lab as tp
    >>> tp.Protocol.from_spec(id="c", title="C", opener="[C]", closer="]]")
    Traceback (most recent call last):
    toolparse_lab.core.errors.BadSpec: closer: JSON itself is written with these characters, s...
    """

    code = "bad-spec"

    def __init__(self, field: str, message: str, **details: Unpack[Details]) -> None:
        self.field = field
        super().__init__(f"{field}: {message}", **details)


class UnreadableTemplate(UsageError):
    """Raised for a template that no protocol reads.

    Args:
        probe: the conversation whose calls read back differently, `text`: the answer as the
            template writes it. None and "" if it was not even rendered.
    """

    code = "unreadable-template"

    def __init__(
        self, message: str, *, probe: str | None = None, text: str = "", **details: Unpack[Details]
    ) -> None:
        self.probe, self.text = probe, text
        super().__init__(message, **details)


class BadCase(UsageError):
    """An unreadable row.

    `source`, `line` (1-based, `unit` says of what) and `column` say where.

    If several rows cannot be read, `rows` holds an error for each of the first of them.
    """

    code = "bad-case"

    def __init__(
        self,
        message: str,
        *,
        source: str = "",
        line: int | None = None,
        column: str | None = None,
        unit: str = "line",
        rows: tuple[BadCase, ...] = (),
        **details: Unpack[Details],
    ) -> None:
        self.source, self.line, self.column, self.unit = source, line, column, unit
        self.rows = rows
        self.reason = message
        # `unit` is a word for people: "line 3", "row 3".
        where = [source or "cases"]
        if line is not None:
            where.append(f"{unit} {line}")
        if column is not None:
            where.append(f"column {column}")
        super().__init__(f"{', '.join(where)}: {message}", **details)


class BadPlan(UsageError):
    """Raised for a plan that cannot be run, such as one without cases or models."""

    code = "bad-plan"


class BadTaskPlan(UsageError):
    """Raised for steps of a task that cannot be read, or do not fit together.

    `code` is unresolved-template for a template that names no part of an earlier result.

    Args:
        kind: "no_plan", "bad_step" or "unknown_tool".

    >>> from toolparse_lab.middleware.plans import read_plan
    >>> read_plan({"steps": []})
    Traceback (most recent call last):
    toolparse_lab.core.errors.BadTaskPlan: a plan has steps
      got: {'steps': []}
      ...
    """

    code = "bad-task-plan"

    def __init__(
        self,
        message: str,
        *,
        kind: Literal["no_plan", "bad_step", "unknown_tool"] = "bad_step",
        **details: Unpack[Details],
    ) -> None:
        self.kind: Literal["no_plan", "bad_step", "unknown_tool"] = kind
        super().__init__(message, **details)


class BadSettings(UsageError):
    """Raised for settings with an unknown key, a bad value or a credential in a file."""

    code = "bad-settings"


class UnreadableInput(UsageError):
    """Raised for a file, response or stream that holds no readable model output.

    >>> import toolparse_lab as tp
    >>> tp.parse(None, "hermes")
    Traceback (most recent call last):
    toolparse_lab.core.errors.UnreadableInput: this holds no answer of a model
      got: NoneType None
      ...
    """

    code = "unreadable-input"


class UnwritableCall(UsageError):
    """Raised by `write_call` if the format cannot write a call.

    A call counts as written only if it reads back the same.
    """

    code = "unwritable-call"


class NoSuchItem(UsageError, KeyError, IndexError):
    """Raised for a JSON Pointer or an index with nothing there.

    By `ToolCall.origin` for a path that is not in the arguments (`code` no-origin), and by an index
    into trials that are fewer (no-trial).

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
    >>> tp.parse(text, "hermes").calls[0].origin("/b")
    Traceback (most recent call last):
    toolparse_lab.core.errors.NoSuchItem: no argument at this path
      got: /b
      ...
    """

    code = "no-such-item"
    __str__ = UsageError.__str__  # KeyError would show the repr of the message


class BadMessage(UsageError):
    """Raised by `transform_params` for messages in a wrong shape.

    It takes a list of `{role, content}`. `code` is unknown-tool-call-id for a tool's result that
    names neither its tool nor a call before it.
    """

    code = "bad-message"


class BadToolChoice(UsageError):
    """Raised by `transform_params` for an unreadable or unsupported tool choice.

    `code` is no-tools where a call is required and no tool could be called, tool-not-found where
    the tool to be called is none of the tools, provider-tool where only the provider can run it.
    """

    code = "bad-tool-choice"


class ParserClosed(UsageError):
    """Raised by `feed` or `close` on a parser that was closed already.

    >>> import toolparse_lab as tp
    >>> parser = tp.stream("hermes")
    >>> result = parser.close()
    >>> parser.feed("Hello")
    Traceback (most recent call last):
    toolparse_lab.core.errors.ParserClosed: this parser is closed
      what to do: make a new one with tp.stream()
    """

    code = "parser-closed"


class SetupError(ToolparseError):
    """Something is not installed.

    `code` is missing-model-package for the embedded model's packages; the hint is the command that
    installs them.
    """

    code = "setup"
    exit_code = 2


class MissingExtra(SetupError):
    """An optional dependency is missing. The hint names the extra."""

    code = "missing-extra"


class IncompleteError(ToolparseError):
    """The work stopped half way.

    `code` is worker-lost where a process, or a part of a cluster, ended before all its recorded
    answers were read. Nothing recorded disappears.
    """

    code = "incomplete"
    exit_code = 3


class CallRetracted(IncompleteError):
    """A call whose arguments were streamed turned out to be none that may be executed."""

    code = "call-retracted"


class StoreError(IncompleteError):
    """The store cannot be used: full disk, locked, newer version.

    Everything recorded stays.
    """

    code = "store"


class StoreLost(StoreError):
    """The store's file was deleted or replaced while it was open.

    The message says where the answers are.
    """

    code = "store-lost"


class ProviderError(IncompleteError):
    """A provider failed. `kind`: as in the column `error`. The message is redacted."""

    code = "provider"

    def __init__(
        self, message: str, *, kind: str = "provider_error", hint: str | None = None
    ) -> None:
        self.kind = kind
        super().__init__(message, hint=hint)


class ResponseFormatRejected(ProviderError):
    """Raised by the litellm calls for a forced tool choice that the provider refuses.

    Also of litellm's own class, and with what that carries, its `code` included.
    """

    code = "response-format-rejected"


class CorrectionFailed(IncompleteError):
    """Raised if a correction of a call brings no arguments.

    Its tokens and cost count all the same.
    """

    code = "correction-failed"
    tokens: int = 0
    cost: float = 0.0


class MissingRecording(IncompleteError):
    """Replay needs completions that were never recorded. `keys` names them."""

    code = "missing-recording"

    def __init__(
        self, message: str, *, keys: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        self.keys = keys
        super().__init__(message, hint=hint)


class GateFailed(ToolparseError):
    """Raised by `raise_` of a gate or a regression that failed.

    The message has its sentences.
    """

    code = "gate-failed"


class RJSONParseError(ToolparseError, ValueError):
    """Relaxed JSON that cannot be read.

    `line` and `column` are 1-based, `position` is a code point offset. In tolerant mode `warnings`
    holds every complaint and `obj` the partial value.
    """

    code = "rjson-parse"
    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        position: int = 0,
        line: int = 1,
        column: int = 1,
        warnings: tuple[dict[str, Any], ...] = (),
        obj: Any = None,
    ) -> None:
        self.position, self.line, self.column = position, line, column
        self.warnings, self.obj = warnings, obj
        super().__init__(message)


class RXMLError(ToolparseError, ValueError):
    """Base of the robust-XML errors.

    `cause` is the error below it, when there is one.

    >>> from toolparse_lab import rxml
    >>> rxml.parse("<a>1</a>", "no schema")
    Traceback (most recent call last):
    toolparse_lab.core.errors.RXMLCoercionError: the schema cannot be read: ...
      got: no schema
      ...
    """

    code = "rxml"
    exit_code = 2

    def __init__(
        self, message: str, *, cause: BaseException | None = None, code: str | None = None
    ) -> None:
        self.cause = cause
        super().__init__(message, code=code)


class RXMLParseError(RXMLError):
    """XML that cannot be read.

    `line` and `column` are 1-based, `position` is a code point offset.
    """

    code = "rxml-parse"

    def __init__(
        self,
        message: str,
        *,
        cause: BaseException | None = None,
        position: int = 0,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.position, self.line, self.column = position, line, column
        super().__init__(message, cause=cause)


class RXMLCoercionError(RXMLError):
    """The text was read but could not be brought to the schema."""

    code = "rxml-coercion"


class RXMLStringifyError(RXMLError):
    """The value cannot be written as XML.

    >>> from toolparse_lab import rxml
    >>> rxml.stringify("a", float("nan"))
    Traceback (most recent call last):
    toolparse_lab.core.errors.RXMLStringifyError: XML cannot carry this: float
    """

    code = "rxml-stringify"


class RXMLStreamError(RXMLError):
    """A stream of XML was used in a way that it does not allow."""

    code = "rxml-stream"


class RXMLDuplicateStringTagError(RXMLError):
    """A string field was written more than once."""

    code = "rxml-duplicate-string-tag"
