"""The message of a tool when it refused a call: its words, its body, and the fields that its error
objects name.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...arguments.schema.validate import validate
from ...core.errors import BadOptions
from ...core.values import escape_token

# How it works. A validator says more than its message does: which field, which rule, what was
# expected. That is in the exception where the tool is a function, and in the body where it is a
# service. Both are read by their shape, so that no validator has to be installed to read it. What
# has no objects at all, as Go's JSON reader, is read by the message's own words.

_MOST_ISSUES = 50
_MOST_TEXT = 100_000  # characters of a body that are looked at
_MOST_NODES = 2_000  # of a body
_LOCATIONS = ("loc", "path", "instancePath", "instance_path", "pointer", "field", "param")
_MESSAGES = ("msg", "message", "detail", "error", "reason")
_KEYWORDS = ("keyword", "validator", "type", "code", "rule")
# Where a service says that the field was in the body, and not in the address.
_PLACES = ("body", "json", "arguments", "parameters")
_PATH_PIECE = re.compile(r"\[(\d{1,9})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]|([^.\[\]]+)")
_GO = re.compile(
    r"cannot unmarshal (?P<got>\w{1,30})(?: [^\s]{1,60})? into Go "
    r"(?:struct field (?P<field>[^\s]{1,300}) of type|value of type) "
    r"(?P<expected>[\w.*\[\]{}]{1,80})"
)
_PYDANTIC = re.compile(
    r"^(?P<loc>[^\s:]{1,300})\n {2}(?P<message>[^\n]{1,500}?) \[type=(?P<keyword>\w{1,60})", re.M
)
_JSONSCHEMA_RULE = re.compile(r"Failed validating '(?P<keyword>\w{1,60})'")
_JSONSCHEMA_PATH = re.compile(r"On instance(?P<path>(?:\[[^\]\n]{1,300}\]){0,50}):")


@dataclass(frozen=True, slots=True)
class Issue:
    """One complaint about the arguments of a call.

    Attributes:
        path: JSON Pointer of the value, "" for the arguments as a whole, None if it is unknown.
        keyword: the rule that was broken, in the words of whoever checked it ("type", "required",
            "float_parsing"), "" for none.
        expected, got: as they were told, "" for nothing.
    """

    path: str | None
    keyword: str = ""
    message: str = ""
    expected: str = ""
    got: str = ""


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """Why a tool did not take a call.

    Attributes:
        message: the error in words.
        body: the body that a service sent with it.
        status: of HTTP, None elsewhere.
        issues: the faults that the tool's own error objects say.
        called: False for a call that was held back.
    """

    message: str
    body: str = ""
    status: int | None = None
    issues: tuple[Issue, ...] = ()
    called: bool = True

    @property
    def text(self) -> str:
        """Message and body with a space between them, as the Go orchestrator reads them."""
        return f"{self.message} {self.body}"

    @classmethod
    def of(cls, error: BaseException | str) -> ToolFailure:
        """Return the failure that an exception of a tool is.

        Error objects are read from pydantic's and jsonschema's exceptions, and from the body of
        HTTP errors (httpx, requests). A ToolRefused says its failure itself.
        """
        if isinstance(error, str):
            return cls(error)
        if isinstance(error, ToolRefused):
            return error.failure
        response = getattr(error, "response", None)
        status, body = getattr(response, "status_code", None), ""
        with suppress(Exception):  # no response, and a body that was not read
            body = response.text if isinstance(response.text, str) else ""  # type: ignore[union-attr]
        try:
            message = str(error) or type(error).__name__
        except Exception:  # its own __str__ failed
            message = type(error).__name__
        issues = tuple(_issues_of_error(error)) or issues_in_body(body)
        return cls(message, body, status if isinstance(status, int) else None, issues)


class ToolRefused(Exception):
    """Raised by a tool that wants to say more than a message: it is in `failure`."""

    def __init__(self, failure: ToolFailure) -> None:
        self.failure = failure
        super().__init__(failure.message)


# error objects of Python


def _issues_of_error(error: BaseException) -> Iterator[Issue]:
    # By its shape: an `errors()` method is pydantic's or similar, `absolute_path` next to
    # `validator` is jsonschema's.
    errors = getattr(error, "errors", None)
    if callable(errors):
        try:
            rows = errors()
        except Exception:  # a method of that name that is not a validator's
            return
        if isinstance(rows, Iterable):
            named = (
                row for row in itertools.islice(rows, _MOST_ISSUES) if isinstance(row, Mapping)
            )
            yield from filter(None, map(_issue_of_row, named))
        return
    path = getattr(error, "absolute_path", None)
    if path is not None and hasattr(error, "validator"):
        yield Issue(
            _pointer(list(path)),
            str(getattr(error, "validator", "")),
            str(getattr(error, "message", "")),
            _short(getattr(error, "validator_value", "")),
            _short(getattr(error, "instance", "")),
        )


def _issue_of_row(row: Mapping[Any, Any]) -> Issue | None:
    # Validators write the place, the rule and the message under one of several names. A row that
    # names no place is none.
    for name in _LOCATIONS:
        path = pointer_of(row.get(name))
        if path is not None:
            got = row.get("input", row.get("got", row.get("instance", "")))
            rule, words = _first_text(row, _KEYWORDS), _first_text(row, _MESSAGES)
            expected = _short(row.get("expected", row.get("schemaValue", "")))
            return Issue(path, rule, words, expected, _short(got))
    return None


def _first_text(row: Mapping[Any, Any], names: Sequence[str]) -> str:
    return next((row[name] for name in names if isinstance(row.get(name), str)), "")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 200 else text[:197] + "..."


# places


def pointer_of(place: Any) -> str | None:
    """Return a place as a JSON Pointer, from how validators write it.

    None for anything that is not a place.

    >>> pointer_of(["body", "lat"]), pointer_of("$.stops[0].lat"), pointer_of("/a/b"), pointer_of(7)
    ('/lat', '/stops/0/lat', '/a/b', None)
    """
    if isinstance(place, (list, tuple)):
        if not all(isinstance(token, (str, int)) for token in place):
            return None
        tokens = list(place)
        if tokens and tokens[0] in _PLACES:
            tokens = tokens[1:]
        return _pointer(tokens)
    if not isinstance(place, str) or len(place) > 1000:
        return None
    if place == "" or place.startswith("/"):
        return place
    pieces = [
        next(group for group in match.groups() if group is not None)
        for match in _PATH_PIECE.finditer(place.removeprefix("$"))
    ]
    if pieces and pieces[0] in _PLACES and len(pieces) > 1:
        pieces = pieces[1:]
    return _pointer(pieces)


def _pointer(tokens: Iterable[str | int]) -> str:
    return "".join(f"/{escape_token(str(token))}" for token in tokens)


# bodies and messages


def issues_in_body(body: str) -> tuple[Issue, ...]:
    """Return the issues in the body of a response: JSON with error objects, at any depth.

    FastAPI's 422, lists of pydantic's or Ajv's errors, and objects of their kind.
    """
    if body.lstrip()[:1] not in ("{", "[") or len(body) > _MOST_TEXT:
        return ()
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return ()
    return tuple(_issues_in(value))[:_MOST_ISSUES]


def _issues_in(value: Any) -> Iterator[Issue]:
    # Without recursion, since a body may nest as deep as it likes.
    waiting = [value]
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        here = waiting.pop()
        if isinstance(here, Mapping):
            issue = _issue_of_row(here) if _first_text(here, _MESSAGES) else None
            if issue is not None:
                yield issue
            else:
                waiting += reversed(list(here.values()))
        elif isinstance(here, list):
            waiting += reversed(here)


def issues_in_text(text: str) -> tuple[Issue, ...]:
    """Return the issues in an error's words, for validators that send no objects: Go's JSON reader,
    and pydantic and jsonschema as they print themselves.
    """
    text = text[:_MOST_TEXT]
    issues = []
    for match in _GO.finditer(text):
        # The first name is that of the struct, and may be empty.
        field = (match["field"] or "").partition(".")[2]
        path = _pointer(field.split(".")) if field else None
        issues.append(Issue(path, "type", match[0], match["expected"], match["got"]))
    issues += [
        Issue(pointer_of(match["loc"]), match["keyword"], match["message"])
        for match in _PYDANTIC.finditer(text)
    ]
    rule, place = _JSONSCHEMA_RULE.search(text), _JSONSCHEMA_PATH.search(text)
    if rule is not None and place is not None:
        first_line = text.partition("\n")[0]
        issues.append(Issue(pointer_of(place["path"]), rule["keyword"], first_line))
    return tuple(dict.fromkeys(issues))[:_MOST_ISSUES]


# Detectors: whether a failure is about the arguments, so that the model can mend it, and which
# fields it names.


@dataclass(frozen=True, slots=True)
class Refused:
    """A call and its failure, as a detector sees them.

    Attributes:
        arguments: as the tool got them.
        schema_json: of the tool, "" if it has none.
    """

    failure: ToolFailure
    arguments: Mapping[str, Any]
    schema_json: str = ""


# Gives the issues of a failure that a correction may mend, [] for none.
Detector: TypeAlias = Callable[[Refused], Sequence[Issue]]

# What Go's orchestrator looks for, in lower case, anywhere in the error and its body. Its design
# and its code differ in one line each.
GO_PHRASES_PLANNED = (
    "cannot unmarshal string into", "cannot unmarshal number into", "cannot unmarshal bool into",
    "json: cannot unmarshal", "type mismatch", "invalid type", "expected number", "expected string",
    "expected boolean",
)  # fmt: skip
GO_PHRASES = (
    "cannot unmarshal string into", "cannot unmarshal number into", "json: cannot unmarshal",
    "type mismatch", "invalid type", "expected number", "expected string", "expected boolean",
    "invalid value",
)  # fmt: skip
_TRANSIENT = frozenset((401, 403, 404, 408, 425, 429))


def by_objects(refused: Refused) -> Sequence[Issue]:
    """Return the issues of the tool's own error objects, in its exception or in its body."""
    return refused.failure.issues or issues_in_body(refused.failure.body)


def by_messages(refused: Refused) -> Sequence[Issue]:
    """Return the issues in the words of validators that are known: Go's, pydantic's,
    jsonschema's.
    """
    return issues_in_text(refused.failure.text)


def by_schema(refused: Refused) -> Sequence[Issue]:
    """Return the problems of the arguments under the tool's schema, where the failure can be about
    them.

    A tool that cannot be reached, or will not be asked, says nothing about arguments.
    """
    status = refused.failure.status
    if not refused.schema_json or (status is not None and (status >= 500 or status in _TRANSIENT)):
        return ()
    problems = validate(dict(refused.arguments), refused.schema_json)
    return [
        Issue(p.path, p.code.rpartition(".")[2], p.message)
        for p in problems
        if p.severity == "error"
    ]


def _by_patterns(patterns: Sequence[str]) -> Detector:
    def detect(refused: Refused) -> Sequence[Issue]:
        text = refused.failure.text.lower()
        if not any(pattern in text for pattern in patterns):
            return ()
        return issues_in_text(refused.failure.text) or (Issue(None, "", refused.failure.message),)

    return detect


# Name -> detector: error objects, our validation, words of validators, the two phrase lists.
DETECTORS: Mapping[str, Detector] = {
    "objects": by_objects,
    "schema": by_schema,
    "messages": by_messages,
    "go-phrases-planned": _by_patterns(GO_PHRASES_PLANNED),
    "go-phrases": _by_patterns(GO_PHRASES),
}

DEFAULT_DETECTORS = ("objects", "schema", "messages", "go-phrases")


def detectors_of(names: Sequence[str | Detector]) -> tuple[Detector, ...]:
    """Return the detectors of these names. Functions are taken as they are. Raises BadOptions."""
    chosen: list[Detector] = []
    for name in names:
        if callable(name):
            chosen.append(name)
            continue
        if name not in DETECTORS:
            raise BadOptions.unknown("there is no detector of this name", name, DETECTORS)
        chosen.append(DETECTORS[name])
    return tuple(chosen)


def detect(refused: Refused, detectors: Sequence[Detector]) -> tuple[Issue, ...]:
    """Return the issues of the first detector that finds one.

    () where the failure is about something else than the arguments.

    >>> from toolparse_lab.middleware.correction import Refused, ToolFailure, detect
    >>> from toolparse_lab.middleware.correction.failure import DEFAULT_DETECTORS, detectors_of
    >>> schema = '{"properties": {"n": {"type": "integer"}}}'
    >>> refused = Refused(ToolFailure("bad request"), {"n": "x"}, schema)
    >>> detect(refused, detectors_of(DEFAULT_DETECTORS))[0].path
    '/n'
    """
    for detector in detectors:
        issues = tuple(detector(refused))
        if issues:
            return issues
    return ()
