"""What a refusal says, in the dialects of validators: exceptions, bodies, words."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pydantic
import pytest

from tests.tables import each_case
from tests.tools import object_schema
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.middleware.correction import DETECTORS, Issue, Refused, ToolFailure, detect
from toolparse_lab.middleware.correction.failure import (
    DEFAULT_DETECTORS,
    GO_PHRASES,
    GO_PHRASES_PLANNED,
    detectors_of,
    issues_in_body,
    issues_in_text,
    pointer_of,
)

SCHEMA = object_schema(
    required=["lat"], lat="number", stops={"type": "array", "items": {"type": "integer"}}
)


class Weather(pydantic.BaseModel):
    lat: float
    stops: list[int] = []


def refusal_of_pydantic(arguments: dict[str, Any]) -> Exception:
    with pytest.raises(pydantic.ValidationError) as e:
        Weather(**arguments)
    return e.value


def refusal_of_jsonschema(arguments: dict[str, Any]) -> Exception:
    with pytest.raises(jsonschema.ValidationError) as e:
        jsonschema.validate(arguments, SCHEMA)
    error: Exception = e.value
    return error


class HttpError(Exception):
    """As those of httpx and requests are: with a response."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"Client error '{status}'")
        self.response = type("Response", (), {"status_code": status, "text": body})()


FASTAPI = json.dumps(
    {
        "detail": [
            {
                "type": "float_parsing",
                "loc": ["body", "lat"],
                "msg": "Input should be a valid number",
                "input": "north",
            },
            {"type": "int_parsing", "loc": ["body", "stops", 1], "msg": "no", "input": "x"},
        ]
    }
)
AJV = json.dumps([{"instancePath": "/stops/1", "keyword": "type", "message": "must be integer"}])
NESTED = json.dumps({"error": {"message": "bad", "details": [{"field": "lat", "reason": "text"}]}})
BAD = {"lat": "north", "stops": [1, "x"]}


@pytest.mark.parametrize(
    ("error", "paths"),
    [
        (refusal_of_pydantic(BAD), ["/lat", "/stops/1"]),
        (refusal_of_pydantic({}), ["/lat"]),
        (refusal_of_jsonschema({"lat": "north"}), ["/lat"]),
        (refusal_of_jsonschema({"lat": 1, "stops": [1, "x"]}), ["/stops/1"]),
        (refusal_of_jsonschema({}), [""]),
        (HttpError(422, FASTAPI), ["/lat", "/stops/1"]),
        (HttpError(400, AJV), ["/stops/1"]),
        (HttpError(400, NESTED), ["/lat"]),
        (HttpError(400, "no JSON"), []),
        (HttpError(500, "[" * 100_000), []),
        (ValueError("plain"), []),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_error_objects_name_their_fields(error: Exception, paths: list[str]) -> None:
    assert [issue.path for issue in ToolFailure.of(error).issues] == paths


def test_an_issue_says_rule_words_expectation_and_value() -> None:
    (issue,) = ToolFailure.of(refusal_of_jsonschema({"lat": "north"})).issues
    assert issue == Issue("/lat", "type", "'north' is not of type 'number'", "number", "north")
    first = issues_in_body(FASTAPI)[0]
    assert first == Issue("/lat", "float_parsing", "Input should be a valid number", "", "north")


@each_case
def test_words_of_validators_name_their_fields(text: str, paths: list[str | None]) -> None:
    assert [issue.path for issue in issues_in_text(text)] == paths


@each_case
def test_places_become_pointers(place: Any, path: str | None) -> None:
    assert pointer_of(place) == path


@pytest.mark.parametrize("name", ["go-phrases-planned", "go-phrases"])
def test_the_orchestrator_s_two_lists_differ_in_one_line_each(name: str) -> None:
    patterns = {"go-phrases-planned": GO_PHRASES_PLANNED, "go-phrases": GO_PHRASES}
    assert set(GO_PHRASES_PLANNED) ^ set(GO_PHRASES) == {
        "cannot unmarshal bool into",
        "invalid value",
    }
    for pattern in patterns[name]:
        # In the error or in the body, in any case.
        for failure in (ToolFailure(f"x {pattern.upper()} y"), ToolFailure("no", pattern.title())):
            assert DETECTORS[name](Refused(failure, {}))
    assert not DETECTORS[name](Refused(ToolFailure("connection refused", "timeout"), {}))


@pytest.mark.parametrize(
    ("failure", "is_about_arguments"),
    [
        (ToolFailure("unit not found"), True),
        (ToolFailure("bad", status=400), True),
        (ToolFailure("bad gateway", status=502), False),
        (ToolFailure("slow down", status=429), False),
        (ToolFailure("who are you", status=401), False),
        (
            ToolFailure(GO := "json: cannot unmarshal string into Go value of type T", status=500),
            True,
        ),
    ],
)
def test_a_tool_that_cannot_be_asked_says_nothing_of_arguments(
    failure: ToolFailure, is_about_arguments: bool
) -> None:
    issues = detect(
        Refused(failure, {"lat": "x"}, json.dumps(SCHEMA)), detectors_of(DEFAULT_DETECTORS)
    )
    assert bool(issues) == is_about_arguments


def test_detectors_are_names_or_functions() -> None:
    found = (Issue("/a"),)
    assert detect(Refused(ToolFailure("x"), {}), detectors_of([lambda refused: found])) == found
    with pytest.raises(BadOptions, match="did you mean schema"):
        detectors_of(["shema"])


def test_an_exception_that_cannot_be_printed_is_a_failure_too() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

        def errors(self) -> Any:
            raise RuntimeError

    assert ToolFailure.of(Silent()).message == "Silent"
    assert ToolFailure.of("words").text == "words "
