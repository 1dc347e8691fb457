"""A result as the rows that every view shows: the arguments of a call in document order, anything
changed, and what was wrong, in the same words everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from ..core.rules import CODES, RULES
from ..core.types import Origin, ParseResult, Problem, Span, Step, ToolCall
from ..core.values import escape_token, read_plain, read_strict, write_canonical

ChangeKind: TypeAlias = Literal["repair", "read", "coerce"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A place of an answer that is not what was expected, in the words of every test and page.

    `call` is the number of the call in its result, None for one that was not made, and of all calls
    together. `path` is the JSON Pointer of the argument, '' for the call itself. `found` and
    `expected` are in words, '' for none. `tool` is that of the call, `nearest` the wanted call that
    is nearest to it.
    """

    call: int | None
    path: str
    code: str
    found: str
    expected: str
    tool: str = ""
    nearest: str = ""

    @property
    def sentence(self) -> str:
        """The fault in one sentence.

        >>> Fault(0, "/days", "wrong_argument", "2", "1").sentence
        '“days” is 2; 1 was expected.'
        """
        name = self.path.removeprefix("/")
        if self.code == "order":
            return f"{self.found} were called; {self.expected} was expected."
        if self.call is None:
            return f"This call was expected, and not made: {self.expected}."
        if not name:
            return f"{self.found} was called; {self.expected or 'no such call'} was expected."
        if self.code == "missing_argument":
            return f"“{name}” is missing; {self.expected} was expected."
        return f"“{name}” is {self.found}; {self.expected or 'nothing'} was expected."

    def __str__(self) -> str:
        """Return the fault in one line of a terminal.

        >>> str(Fault(0, "/days", "wrong_argument", "2", "1", "book", "book(days: 1)"))
        '#0 book /days: wanted 1, got 2 (nearest: book(days: 1))'
        """
        where = "no call" if self.code == "count" else "all calls"
        if self.call is not None:
            where = f"#{self.call} {self.tool}"
        path = self.path or ("(arguments)" if self.code == "wrong_argument" else "")
        nothing = "nothing" if path else "no such call"
        text = f"{where} {path}".rstrip()
        text += f": wanted {self.expected or nothing}, got {self.found or 'nothing'}"
        return f"{text} (nearest: {self.nearest})" if self.nearest else text


@dataclass(frozen=True, slots=True)
class Row:
    """One value of the arguments."""

    path: str
    key: str
    depth: int
    kind: str
    text: str  # JSON of a leaf, a summary ('3 keys') of a container
    leaf: bool
    origin: Origin | None
    steps: tuple[Step, ...]  # the coercions at the value itself
    inherited: tuple[str, ...]  # the rules of the values around it

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that changed the value or one around it, each once, from the outside in."""
        return tuple(dict.fromkeys([*self.inherited, *(step.rule for step in self.steps)]))


def read_value(text: str) -> Any:
    """Return the value of canonical JSON text. Numbers keep their digits as Decimal, except where
    the text nests beyond the strict reader.
    """
    try:
        return read_strict(text)
    except RecursionError:  # deeper than Python's own reader goes
        return read_plain(text)


def json_of(value: Any) -> str:
    """Return the canonical JSON of a value. A Decimal is written with its own digits.

    >>> json_of({"b": 1, "a": None}), json_of(Decimal("1.50"))
    ('{"b":1,"a":null}', '1.50')
    """
    if isinstance(value, Decimal):
        return str(value)
    return write_canonical(value)


def kind_of(value: Any) -> str:
    """Return the JSON type of a value, as a schema names it. A Decimal is a number.

    >>> kind_of(True), kind_of(3), kind_of(Decimal("3.0")), kind_of([])
    ('boolean', 'integer', 'number', 'array')
    """
    match value:
        # Before int, of which bool is a kind.
        case bool():
            return "boolean"
        case None:
            return "null"
        case str():
            return "string"
        case int():
            return "integer"
        case dict():
            return "object"
        case list():
            return "array"
    return "number"


def summary(value: Any) -> str:
    """Return the size of a container, in words.

    >>> summary({"a": 1}), summary([1, 2])
    ('1 key', '2 items')
    """
    noun = "key" if isinstance(value, dict) else "item"
    return f"{len(value)} {noun}{'' if len(value) == 1 else 's'}"


def rows_of(call: ToolCall) -> Iterator[Row]:
    """Return a row for every value of the call's arguments, each before the values inside it.

    The first row is that of the arguments as a whole, with an empty path. There are none if the
    body was not read.
    """
    if not call.arguments_json:
        return

    origins = call.origins.get()
    steps: dict[str, list[Step]] = {}
    for step in call.steps:
        steps.setdefault(step.path, []).append(step)

    # A stack of our own, because arguments may nest deeper than Python recurses: path, key, depth,
    # value, and the rules of the values around it.
    stack: list[tuple[str, str, int, Any, tuple[str, ...]]] = [
        ("", "", 0, read_value(call.arguments_json), ())
    ]
    while stack:
        path, key, depth, value, inherited = stack.pop()
        own = steps.get(path, ())
        # An empty container has no rows of its own, so it is shown as a value.
        leaf = not isinstance(value, (dict, list)) or not value
        yield Row(
            path=path,
            key=key,
            depth=depth,
            kind=kind_of(value),
            text=json_of(value) if leaf else summary(value),
            leaf=leaf,
            origin=origins.get(path),
            steps=tuple(own),
            inherited=inherited,
        )

        if not leaf:
            # The values inside inherit the coercions alone.
            if own:
                inherited = (*inherited, *(step.rule for step in own if step.stage == "coerce"))
            # Reversed, because the last one put on the stack is the first to be taken from it.
            inside = reversed(children(path, value))
            stack.extend((p, k, depth + 1, child, inherited) for p, k, child in inside)


def children(path: str, value: dict[str, Any] | list[Any]) -> list[tuple[str, str, Any]]:
    """Return (path, key, value) of each value directly inside a container at `path`.

    >>> children("/x", {"a/b": 1}), children("", [True])
    ([('/x/a~1b', 'a/b', 1)], [('/0', '0', True)])
    """
    if isinstance(value, dict):
        return [(f"{path}/{escape_token(k)}", k, v) for k, v in value.items()]
    return [(f"{path}/{i}", str(i), v) for i, v in enumerate(value)]


@dataclass(frozen=True, slots=True)
class Change:
    """One repair (raw characters) or step (JSON values). `before` and `after` are not escaped."""

    kind: ChangeKind
    call: int
    path: str
    rule: str
    before: str
    after: str
    span: Span | None

    @property
    def sentence(self) -> str:
        """The sentence that describes its rule, '' for an unknown one."""
        return sentence_of(self.rule)

    @property
    def lossless(self) -> bool:
        """True if its rule is known to lose nothing."""
        return is_lossless(self.rule)


def protocol_words(result: ParseResult) -> str:
    """Return the protocol of a result, with the formats that matched where it was 'auto'.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    >>> protocol_words(tp.parse(text))
    'auto (hermes)'
    """
    matched = [name for name in result.formats if name != result.protocol]
    if result.protocol != "auto" or not matched:
        return result.protocol
    return f"auto ({', '.join(matched)})"


def sentence_of(rule: str) -> str:
    """Return the sentence of a rule or of a problem's code, by its id. '' for one that a user's own
    protocol brought along.

    >>> sentence_of("my_protocol.some_rule")
    ''
    """
    entry = RULES.get(rule) or CODES.get(rule)
    return "" if entry is None else entry.sentence


def is_lossless(rule: str) -> bool:
    """Return True for a rule known to lose nothing. One that no one described may lose."""
    return rule in RULES and RULES[rule].lossless


def doubled_keys(call: ToolCall) -> dict[str, list[str]]:
    """Return key -> its values as JSON, of the keys that a refused call gives more than once."""
    readings = [reading for reading in call.readings if reading.name == call.name]
    values: dict[str, list[str]] = {}
    for reading in readings:
        for key, value in reading.arguments.items():
            text = json_of(value)
            if text not in values.setdefault(key, []):
                values[key].append(text)
    return {key: texts for key, texts in values.items() if len(texts) > 1}


def step_change(call: ToolCall, step: Step) -> Change:
    """Return the change that a step of a call made, its two values as JSON text."""
    kind: ChangeKind = "coerce" if step.stage == "coerce" else "read"
    return Change(
        kind, call.index, step.path, step.rule, json_of(step.before), json_of(step.after), step.span
    )


def changes_of(call: ToolCall, raw: str) -> Iterator[Change]:
    """Yield the call's repairs in text order, then its steps in the order they were applied. Lazy,
    because a view shows only the first few hundred.
    """
    for edit in call.edits:
        yield Change("repair", call.index, "", edit.rule, edit.span.of(raw), edit.text, edit.span)
    for step in call.steps:
        yield step_change(call, step)


def problems_of(result: ParseResult) -> Iterator[tuple[int | None, Problem]]:
    """Return every problem with the index of its call, None for the text's own, which go first."""
    for problem in result.problems:
        yield None, problem
    for call in result.calls:
        for problem in call.problems:
            yield call.index, problem


# The words are the same in tooltips, tables and on the terminal.
def place(span: Span | None) -> str:
    """Return the place of a span, in words: code points, the end not included.

    >>> place(Span(3, 8)), place(Span(3, 3)), place(None)
    ('characters 3 to 8', 'before character 3', '')
    """
    if span is None:
        return ""
    if not len(span):
        return f"before character {span.start}"
    return f"characters {span.start} to {span.end}"
