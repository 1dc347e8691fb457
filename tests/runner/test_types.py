import dataclasses
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_case
from toolparse_lab.core.errors import BadOptions, UnreadableInput
from toolparse_lab.runner.exchange.redaction import is_secret_name, redact, redact_named, redact_url
from toolparse_lab.runner.exchange.types import Chunk, Completion, Model, PlanItem, Request

SECRET = "planted-secret-0123456789"
ASK = ({"role": "user", "content": "hi"},)


def ask(**changes: object) -> Request:
    values: dict[str, object] = {
        "model": Model("openai/m"),
        "model_alias": "m",
        "messages": ASK,
        "params": {},
    }
    values.update(changes)
    return Request(**values)  # type: ignore[arg-type]


SAME_KEY = {
    "alias": ask(model_alias="other"),
    "timeout": ask(
        model=Model("openai/m", timeout=3, max_connections=1, max_retries=0, price=(1, 1))
    ),
    "api_key": ask(model=Model("openai/m", api_key=SECRET)),
    "list of messages": ask(messages=list(ASK)),
}


@pytest.mark.parametrize("other", SAME_KEY.values(), ids=SAME_KEY)
def test_what_cannot_change_the_answer_is_not_in_the_key(other: Request) -> None:
    assert other.key == ask().key


OTHER_KEY = {
    "model": ask(model=Model("openai/n")),
    "endpoint": ask(model=Model("openai/m", api_base="http://a/v1")),
    "extra_body": ask(model=Model("openai/m", extra_body={"top_k": 1})),
    "headers": ask(model=Model("openai/m", headers={"x-beta": "1"})),
    "default params": ask(model=Model("openai/m", params={"temperature": 0})),
    "messages": ask(messages=({"role": "user", "content": "ho"},)),
    "params": ask(params={"seed": 1}),
    "tools": ask(tools=({"type": "function"},)),
    "stream": ask(stream=True),
    "trial": ask(trial=1),
}


def test_everything_that_can_change_the_answer_is_in_the_key() -> None:
    keys = {name: r.key for name, r in OTHER_KEY.items()}
    assert len({*keys.values(), ask().key}) == len(keys) + 1


def test_the_order_of_parameters_does_not_count_but_that_of_a_schema_does() -> None:
    assert (
        ask(params={"a": 1, "temperature": 0.0}).key == ask(params={"temperature": 0, "a": 1}).key
    )
    schemas: list[dict[str, object]] = [{"b": {}, "a": {}}, {"a": {}, "b": {}}]
    assert len({ask(params={"response_format": {"properties": s}}).key for s in schemas}) == 2


def test_the_endpoint_counts_without_its_credentials() -> None:
    def at(base: str) -> str:
        return ask(model=Model("openai/m", api_base=base)).key

    assert at(f"https://user:{SECRET}@host:81/v1?api-key={SECRET}&v=2") == at(
        "https://host:81/v1/?v=2"
    )
    assert at("https://host:81/v1?v=2") != at("https://host:81/v1?v=3")


def test_a_key_is_the_same_in_every_process_and_version() -> None:
    assert (
        ask(params={"temperature": 0}).key
        == "96a1857244854a07ea41be573820fc06b52c3a5c802055aabf00b2c2f0eec2cc"
    )


def test_a_request_survives_json_and_keeps_its_key() -> None:
    request = ask(
        model=Model("openai/m", params={"top_p": 0.5}),
        tools=({"type": "function"},),
        stream=True,
        trial=3,
    )
    again = Request.from_dict(json.loads(json.dumps(request.to_dict())))
    assert again == request
    assert again.key == request.key


def test_a_value_that_is_not_json_is_named() -> None:
    with pytest.raises(BadOptions, match="not JSON"):
        _ = ask(params={"temperature": float("nan")}).key
    with pytest.raises(BadOptions, match="not JSON"):
        _ = ask(params={"response_format": Model}).key


@each_case
def test_a_model_that_cannot_work_is_refused(values: dict[str, object], said: str) -> None:
    with pytest.raises(BadOptions, match=said):
        Model(**values)  # type: ignore[arg-type]


def test_a_model_comes_back_from_json_without_its_key() -> None:
    model = Model(
        "openai/m",
        api_base="http://h/v1",
        extra_body={"a": 1},
        timeout=5,
        price=(1, 2),
        api_key="x" * 9,
    )
    assert Model.from_dict(json.loads(json.dumps(model.to_dict()))) == dataclasses.replace(
        model, api_key=None
    )
    with pytest.raises(BadOptions, match="not known"):
        Model.from_dict({"name": "m", "tiemout": 3})


@each_case
def test_ordinary_messages_stay(text: str) -> None:
    assert redact(text) == text


def test_values_of_key_like_environment_variables_are_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "orange-juice")
    monkeypatch.setenv("ACME_REGION", "north-east-1")
    assert redact("orange-juice from north-east-1") == "[redacted] from north-east-1"
    assert "orange" not in json.dumps(
        ask(messages=({"role": "user", "content": "say orange-juice"},)).to_dict()
    )
    assert os.environ["ACME_API_KEY"] == "orange-juice"
    own = ask(
        model=Model("openai/m", api_key=SECRET),
        messages=({"role": "user", "content": f"my key is {SECRET}"},),
    )
    assert SECRET not in json.dumps(own.to_dict())


@each_case
def test_names_that_carry_credentials(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret
    assert (redact_named({"a": [{name: "v"}]}) == {"a": [{name: "v"}]}) is not secret


def test_an_address_keeps_what_identifies_it() -> None:
    assert redact_url("http://[::1]:80/v1/") == "http://[::1]:80/v1"
    assert redact_url("http://u:p@h:99999999/x") == "http://h:99999999/x"
    assert redact_url("unix/socket") == "unix/socket"


TEXT = st.text(st.characters(codec=None)).map(
    lambda s: s.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)


@given(TEXT, st.lists(TEXT), TEXT)
def test_a_completion_survives_json_lone_surrogates_included(
    raw: str, parts: list[str], reasoning: str
) -> None:
    completion = Completion(
        key="k",
        raw=raw,
        chunks=tuple(Chunk(0.5, p) for p in parts),
        reasoning=reasoning,
        response={"id": raw},
    )
    text = completion.to_json()
    assert text.isascii()
    assert Completion.from_json(text) == completion


@pytest.mark.parametrize("obj", [{}, {"key": "k", "unknown": 1}, {"key": "k", "chunks": [1]}])
def test_something_else_is_no_completion(obj: dict[str, object]) -> None:
    with pytest.raises(UnreadableInput, match="not a recorded completion"):
        Completion.from_dict(obj)


def test_plan_items_are_plain() -> None:
    assert PlanItem("c", "m", "k").arm == {}
