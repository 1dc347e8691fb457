"""A model gets the parameters that it takes: over real litellm, against a server that answers in
each provider's shape.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests import providers as shapes
from tests.experiments.test_plan import timer_case
from tests.providers import Providers, Reply
from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.runner import routes
from toolparse_lab.runner.complete import complete
from toolparse_lab.runner.exchange.details import sampling_of
from toolparse_lab.runner.exchange.types import Completion, Request
from toolparse_lab.runner.loop import run_sync
from toolparse_lab.runner.routes import token_cost

# The lowest version that is taken knows less, which is said where it does.
LOWEST = importlib.metadata.version("litellm").startswith("1.80.")
CASES = [timer_case(i) for i in range(1, 9)]
# Model string, path of the address, parameters of the address, and what its plan says.
MODELS: dict[str, tuple[str, str, dict[str, str], str]] = {
    "claude": ("anthropic/claude-sonnet-4-5", "", {}, "without seed"),
    "bedrock": (
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "",
        {"aws_bedrock_runtime_endpoint": "{url}"},
        "without seed",
    ),
    "gpt-5": ("openai/gpt-5", "/v1", {}, "without temperature=0"),
    "o3-mini": ("openai/o3-mini", "/v1", {}, "without temperature=0"),
    # 1.80 has no seed in its table of Gemini.
    "gemini": ("gemini/gemini-2.5-pro", "", {}, "without seed" if LOWEST else ""),
    "vertex": (
        "vertex_ai/claude-sonnet-4@20250514",
        "",
        {"vertex_project": "p", "vertex_location": "us-east5"},
        "without seed",
    ),
    "mistral": ("mistral/mistral-large-latest", "/v1", {}, ""),
    "cohere": ("cohere_chat/command-a-03-2025", "/v2/chat", {}, ""),
    "ollama": ("ollama_chat/qwen3", "", {}, ""),
    "deepseek": ("deepseek/deepseek-reasoner", "/v1", {}, ""),
    "groq": ("groq/llama-3.3-70b-versatile", "/v1", {}, ""),
    "openrouter": ("openrouter/openai/gpt-5", "/v1", {}, ""),
    "xai": ("xai/grok-4", "/v1", {}, ""),
    "azure": ("azure/gpt-5", "", {"api_version": "2025-01-01-preview"}, "without temperature=0"),
}


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "planted-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-secret")
    monkeypatch.setenv("AWS_REGION_NAME", "us-east-1")
    routes.forget_refusals()
    yield
    routes.forget_refusals()


def models_at(url: str) -> dict[str, tp.Model]:
    models = {}
    for alias, (name, path, params, _) in MODELS.items():
        own = {key: value.replace("{url}", url) for key, value in params.items()}
        models[alias] = tp.Model(
            name, api_base=url + path, api_key="planted", params=own or None, price=(0, 0),
            max_retries=0, timeout=30,
        )  # fmt: skip
    return models


def said(plan: Any) -> dict[str, str]:
    """What a plan says of each model, by alias."""
    lines = [line for line in str(plan).splitlines() if line.startswith("fitted: ")]
    return dict(line.removeprefix("fitted: ").split(" ", 1) for line in lines)


def ask(reply: Reply | Any, name: str, path: str = "", *, stream: bool = False) -> Completion:
    answer = reply if callable(reply) else lambda _path, _body: (200, reply)
    with Providers(answer) as server:
        own = {"aws_bedrock_runtime_endpoint": server.url} if name.startswith("bedrock") else None
        model = tp.Model(
            name, api_base=server.url + path, api_key="planted", params=own, max_retries=0,
            timeout=30, price=(1, 1),
        )  # fmt: skip
        question = ({"role": "user", "content": "hi"},)
        return run_sync(complete(Request(model, "m", question, stream=stream)))


# -- fourteen providers


def test_fourteen_models_get_what_they_take(tmp_path: Path) -> None:
    with Providers() as server:
        lab = tp.Lab(tmp_path / "runs.db")
        plan = lab.plan(CASES[:1], models_at(server.url), ["native", "hermes"], max_tokens=64)
        assert said(plan) == {
            alias: f"{clause} (by litellm's tables)"
            for alias, (_, _, _, clause) in MODELS.items()
            if clause
        }
        run = lab.run(plan, progress=False)
    answers = {alias: [] for alias in MODELS}  # type: dict[str, list[Any]]
    for trial in run.trials():
        answers[trial.model].append(trial.completion)
    # litellm asks Vertex through Google's own package, which is not installed here, and Bedrock
    # signs with Amazon's, which is. By then it has accepted the parameters. The first question says
    # so, and the second one is not asked.
    assert run.summary is not None
    absent = ["vertex"] if importlib.util.find_spec("boto3") else ["vertex", "bedrock"]
    for alias in absent:
        asked = [completion for completion in answers.pop(alias) if completion is not None]
        assert [(c.error_kind, c.attempt) for c in asked] == [("setup", 1)]
        assert "pip install" in run.summary.given_up[alias]["message"]
    failures = {
        alias: completion.error_message
        for alias, completions in answers.items()
        for completion in completions
        if not completion.ok
    }
    # 1.80 writes tools of Ollama into the prompt and takes nothing but JSON then.
    assert failures == ({"ollama": "Expecting value: line 1 column 1 (char 0)"} if LOWEST else {})
    assert all(c.refused_param is None for c in itertools.chain(*answers.values()))
    sent = {alias: sampling_of(c[0].request, c[0].response) for alias, c in answers.items()}
    assert sent["claude"] == sent.get("bedrock", sent["claude"])
    assert sent["claude"] == {"max_tokens": 64, "temperature": 0}
    assert sent["gpt-5"] == sent["o3-mini"] == sent["azure"] == {"max_tokens": 64, "seed": 0}
    assert sent["mistral"] == {"max_tokens": 64, "seed": 0, "temperature": 0}


@each_case
def test_other_parameters_are_asked_alike(
    name: str, settings: dict[str, Any], clauses: list[str], tmp_path: Path
) -> None:
    lab = tp.Lab(tmp_path / "runs.db")
    plan = lab.plan(CASES[:1], {"m": tp.Model(name)}, ["native", "hermes"], **settings)
    left_out = {row["name"] for row in plan.to_dict()["left_out"]}
    assert all(clause in said(plan)["m"] for clause in clauses)
    assert not any(left_out & request.params.keys() for request in plan.requests.values())


def test_the_length_is_sent_under_the_name_that_is_taken(tmp_path: Path) -> None:
    model = tp.Model("openai/own", api_base="http://127.0.0.1:1/v1")
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead."
    )
    routes.note_refusal(model, {"max_tokens": 5}, "max_tokens", message)
    plan = tp.Lab(tmp_path / "runs.db").plan(CASES[:1], {"m": model}, ["hermes"], max_tokens=64)
    params = plan.requests[plan.items[0].key].params
    assert (params.get("max_completion_tokens"), params.get("max_tokens")) == (64, None)
    assert said(plan) == {"m": "max_tokens as max_completion_tokens"}


# -- whose parameters count


@each_case
def test_the_models_own_parameters_go_first_and_none_is_not_sent(
    own: dict[str, Any] | None, settings: dict[str, Any], sent: dict[str, Any], tmp_path: Path
) -> None:
    with Providers() as server:
        model = tp.Model("openai/own", api_base=f"{server.url}/v1", api_key="planted", params=own)
        lab = tp.Lab(tmp_path / "runs.db")
        lab.run(lab.plan(CASES[:1], {"m": model}, ["hermes"], **settings), progress=False)
        (body,) = server.bodies
    assert {k: v for k, v in body.items() if k not in ("model", "messages", "stream")} == sent


def test_a_parameter_that_is_typed_for_one_question_goes_first(tmp_path: Path) -> None:
    with Providers() as server:
        model = tp.Model(
            "openai/own", api_base=f"{server.url}/v1", api_key="planted", params={"temperature": 1}
        )
        tp.Lab(tmp_path / "runs.db").ask("hi", model=model, temperature=0.5)
        assert server.bodies[0]["temperature"] == 0.5


def test_a_stored_run_is_asked_on_as_it_was_planned(tmp_path: Path) -> None:
    lab = tp.Lab(tmp_path / "runs.db")
    plan = lab.plan(CASES[:1], {"m": tp.Model("anthropic/claude-sonnet-4-5")}, ["hermes"])
    record = plan.to_dict()
    from toolparse_lab.experiments.models import Fitting

    again = Fitting.of_record(json.loads(json.dumps(record["left_out"])))
    request = plan.requests[plan.items[0].key]
    asked = Request(
        request.model, "m", request.messages, {**request.params, "seed": 3}, trial=request.trial
    )
    assert again.fitted(asked).params == request.params


# -- refusals


@each_case
def test_a_refusal_names_its_parameter(message: str, sent: list[str], refused: str | None) -> None:
    assert routes.refused_param(message, sent) == refused


def test_a_refused_parameter_stops_its_model_and_is_left_out_by_the_next_plan(
    tmp_path: Path,
) -> None:
    def reply(_path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if "top_p" in body:
            message = "Unsupported parameter: 'top_p' is not supported with this model."
            return 400, {"error": {"message": message, "param": "top_p", "type": "invalid"}}
        return 200, shapes.openai({"content": "fine"})

    with Providers(reply) as server:
        model = tp.Model(
            "openai/own", api_base=f"{server.url}/v1", api_key="planted", max_connections=1
        )
        lab = tp.Lab(tmp_path / "runs.db")
        run = lab.run(lab.plan(CASES, {"m": model}, ["hermes"], top_p=0.9), progress=False)
        assert len(server.bodies) == 3  # each once, and no more than three
        assert run.summary is not None
        given_up = run.summary.given_up["m"]
        assert given_up["kind"] == "bad_request"
        assert "it refuses top_p" in given_up["message"]
        assert given_up["not_asked"] == len(CASES) - 3
        assert set(run.frame()["error_param"].dropna()) == {"top_p"}

        again = lab.plan(CASES, {"m": model}, ["hermes"], top_p=0.9)
        assert said(again) == {"m": "without top_p (refused by the endpoint)"}
        assert lab.run(again, progress=False).frame()["status"].tolist() == ["ok"] * len(CASES)


def test_what_one_arm_is_refused_does_not_stop_another_arm(tmp_path: Path) -> None:
    def reply(_path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if body["temperature"] == 1:
            message = "Unsupported value: 'temperature' does not support 1 with this model."
            return 400, {"error": {"message": message, "param": "temperature"}}
        return 200, shapes.openai({"content": "fine"})

    with Providers(reply) as server:
        model = tp.Model(
            "openai/own", api_base=f"{server.url}/v1", api_key="planted", max_connections=1
        )
        lab = tp.Lab(tmp_path / "runs.db")
        plan = lab.plan(CASES, {"m": model}, ["hermes"], temperature=[0, 1])
        run = lab.run(plan, progress=False)
        sent = [body["temperature"] for body in server.bodies]
    # The arms take turns, so that an answer stands between any two refusals.
    assert (sent.count(0), sent.count(1)) == (len(CASES), 3)
    assert run.summary is not None
    assert run.summary.given_up["m"]["not_asked"] == len(CASES) - 3 == run.summary.missing - 3


def test_a_refused_value_is_not_a_parameter_that_is_not_taken() -> None:
    model = tp.Model("openai/own", api_base="http://127.0.0.1:1/v1")
    routes.note_refusal(model, {"top_p": 9}, "top_p", "top_p must be at most 1")
    assert routes.untaken(model, {"top_p": 9}) == []


# -- where arms and runs differ


def test_report_diff_and_compare_say_where_sampling_differs(tmp_path: Path) -> None:
    with Providers() as server:
        model = tp.Model("openai/own", api_base=f"{server.url}/v1", api_key="planted")
        lab = tp.Lab(tmp_path / "runs.db")

        def run(**settings: Any) -> Any:
            plan = lab.plan(CASES[:2], {"m": model}, ["hermes"], trials=2, **settings)
            return lab.run(plan, progress=False)

        cold, hot = run(max_tokens=64), run(max_tokens=7, temperature=1)
        both = run(temperature=[0, 1])
    assert cold.frame()["sampling_json"].tolist()[0] == (
        '{"max_tokens":64,"seed":0,"temperature":0}'
    )
    (note,) = [n for n in lab.diff(cold, hot).notes if "sampled" in n]
    assert f"temperature is 0 in {cold.run_id}, 1 in {hot.run_id}" in note
    assert f"max_tokens is 64 in {cold.run_id}, 7 in {hot.run_id}" in note
    assert "seed" not in note
    arms = ("hermes temperature=0", "hermes temperature=1")
    expected = f"temperature is 0 in {arms[0]}, 1 in {arms[1]}"
    assert any(expected in note for note in both.compare(*arms).notes)
    assert any(expected in note for note in both.report(by=["arm"]).notes)
    assert not any("sampled" in note for note in cold.report(by=["arm"]).notes)


@each_case
def test_sampling_is_what_went_out(sent: dict[str, Any], expected: dict[str, Any]) -> None:
    assert sampling_of({"params": {"temperature": 1}}, {"sent": sent}) == expected


def test_a_log_s_parameters_are_those_of_the_model() -> None:
    params = {"user": "u", "top_p": 1, "extra_body": {"top_a": 2}}
    model = {"name": "m", "extra_body": {"top_b": 3}}
    found = sampling_of({"params": params, "model": model}, None)
    assert found == {"top_a": 2, "top_b": 3, "top_p": 1}


@pytest.mark.skipif(LOWEST, reason="this litellm asks one endpoint in both arms")
def test_two_arms_at_two_endpoints_are_told_apart(tmp_path: Path) -> None:
    """With an effort, litellm asks for native tools by the Responses API, which takes no seed."""
    with Providers() as server, tp.Lab(tmp_path / "runs.db") as lab:
        model = tp.Model("openai/gpt-5.4", api_base=f"{server.url}/v1", api_key="planted",
                         params={"reasoning_effort": "low"})  # fmt: skip
        run = lab.run(lab.plan(CASES[:1], {"m": model}, ["hermes", "native"]), progress=False)
        assert sorted(server.paths) == ["/v1/chat/completions", "/v1/responses"]
    frame = run.frame().set_index("arm")
    assert frame["endpoint"].to_dict() == {
        "hermes": "/v1/chat/completions", "native": "/v1/responses",
    }  # fmt: skip
    assert json.loads(str(frame.at["hermes", "sampling_json"]))["seed"] == 0
    assert "seed" not in json.loads(str(frame.at["native", "sampling_json"]))
    places = "/v1/chat/completions for hermes, /v1/responses for native"
    for notes in (run.report(by=["arm"]).notes, run.compare("hermes", "native").notes):
        assert f"m was not asked at one endpoint: {places}." in notes
        assert any("seed is 0 in hermes, not sent in native" in note for note in notes)


def only_responses(path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """A model that takes tools by the Responses API alone, as gpt-5.4 and later."""
    if path == "/v1/responses" or not body.get("tools"):
        return shapes.any_answer(path, body)
    said = (
        "Function tools with reasoning_effort are not supported for gpt-6-sol in "
        "/v1/chat/completions. Please use /v1/responses instead."
    )
    return 400, {"error": {"message": said, "type": "invalid_request_error", "param": None}}


@pytest.mark.skipif(LOWEST, reason="this litellm asks one endpoint in both arms")
def test_a_model_that_wants_the_responses_api_for_tools_is_asked_by_it(tmp_path: Path) -> None:
    """The refusal says so once; from then on it is known."""
    with Providers(only_responses) as server, tp.Lab(tmp_path / "runs.db") as lab:
        model = tp.Model("openai/gpt-6-sol", api_base=f"{server.url}/v1", api_key="planted")
        run = lab.run(lab.plan(CASES[:2], {"m": model}, ["hermes", "native"]), progress=False)
        assert server.paths.count("/v1/responses") == 2
        assert server.paths.count("/v1/chat/completions") == 3
    frame = run.frame()
    assert "provider_error" not in set(frame["outcome"])
    assert set(frame.loc[frame["arm"] == "native", "endpoint"]) == {"/v1/responses"}


@each_case
def test_a_body_that_is_no_answer_is_the_provider_s(body: Any, kind: str, says: str) -> None:
    wire = shapes.Wire((body if isinstance(body, str) else json.dumps(body)).encode(),
                       "text/html" if isinstance(body, str) else "application/json")  # fmt: skip
    with Providers(lambda *_: (200, wire)) as server:
        model = tp.Model("openai/own", api_base=f"{server.url}/v1", api_key="planted")
        c = run_sync(complete(Request(model, "m", ({"role": "user", "content": "Hi"},))))
    assert (c.status, c.error_kind) == ("error", kind), c
    assert says in (c.error_message or "")


@pytest.mark.parametrize(("text", "counts"), [("fine", (None, None)), ("", (0, 0))])
def test_zeros_beside_an_answer_count_nothing(text: str, counts: Any) -> None:
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    with Providers(lambda *_: (200, shapes.openai({"content": text}, usage))) as server:
        model = tp.Model("openai/own", api_base=f"{server.url}/v1", api_key="planted", price=(1, 1))
        c = run_sync(complete(Request(model, "m", ({"role": "user", "content": "Hi"},))))
    assert (c.prompt_tokens, c.completion_tokens) == counts
    assert (c.cost is None) == bool(text)
    # Five letters are one token. The estimate stands under its own name alone.
    estimate = 1 if text else None
    assert (c.response or {}).get("tokens_estimate") == estimate
    response = {"response": shapes.openai({"content": text}, usage)}
    columns = {"output": text or " ", "completion_tokens": 0, "prompt_tokens": 0}
    for row in (response, columns):
        run = tp.Lab(":memory:").ingest([{**row, "target": []}])
        frame, report = run.frame(), run.report()
        if row is columns or text:
            assert frame[["prompt_tokens", "completion_tokens"]].isna().all(axis=None)
            assert frame["tokens_estimate"].tolist() == [1]
            assert report.frame["tokens_mean"].isna().all()
            assert any("1 answer came with a usage of zeros" in n for n in report.warnings)
            assert any("1 token on average" in note for note in report.warnings)
        else:
            assert frame["prompt_tokens"].tolist() == [0]
            assert frame["tokens_estimate"].isna().all()
            assert not any("usage of zeros" in note for note in report.warnings)


@pytest.mark.skipif(LOWEST, reason="this litellm sends a budget in place of the effort")
def test_effort_is_a_factor_and_claude_thinks_without_a_temperature(tmp_path: Path) -> None:
    with Providers() as server, tp.Lab(tmp_path / "runs.db") as lab:
        model = tp.Model("anthropic/claude-sonnet-4-6", api_base=server.url, api_key="planted")
        plan = lab.plan(CASES[:1], {"m": model}, ["native"], reasoning_effort=["low", "high", None])
        assert plan.varied == ("reasoning_effort",)
        assert "without temperature (while it thinks, by Anthropic's rule)" in str(plan)
        run = lab.run(plan, progress=False)
        sent = [(b.get("output_config"), b.get("temperature")) for b in server.bodies]
    assert sorted(sent, key=str) == [
        (None, None), ({"effort": "high"}, None), ({"effort": "low"}, None),
    ]  # fmt: skip
    frame = run.frame()[["arm", "sampling_json"]].astype(str)
    efforts = {
        row.arm: json.loads(str(row.sampling_json)).get("reasoning_effort")
        for row in frame.itertuples()
    }
    assert efforts == {
        "native reasoning_effort=low": "low", "native reasoning_effort=high": "high",
        "native reasoning_effort=None": None,
    }  # fmt: skip
    with pytest.raises(tp.errors.BadPlan, match="no factor and no sampling parameter"):
        lab.plan(CASES[:1], {"m": model}, ["native"], cache_prompt=True)  # type: ignore[call-arg]


# -- who answered


@pytest.mark.skipif(LOWEST, reason="this litellm gives a fallback its own price in streams alone")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_fallback_s_answer_is_its_own(stream: bool, tmp_path: Path) -> None:
    """One question of four is refused by the first model and answered by the second, at ten times
    the price: 10 tokens at $10 and 5 at $20 a million, beside three at $1 and $2."""

    def first(path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if "fails" in str(body["messages"][-1]["content"]):
            return 500, {"error": {"message": "no"}}
        return answer("first", stream)

    def answer(model: str, stream: bool) -> tuple[int, Any]:
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        chunk = {"id": "x", "created": 1, "model": model, "object": "chat.completion.chunk"}
        if not stream:
            return 200, {**shapes.openai({"content": "fine"}, usage), "model": model}
        delta = {"index": 0, "delta": {"content": "fine"}, "finish_reason": "stop"}
        return 200, [{**chunk, "choices": [delta]},
                     {**chunk, "choices": [], "usage": usage}, "[DONE]"]  # fmt: skip

    cases: list[dict[str, Any]] = [
        {"id": id, "input": id, "target": []} for id in ("fails", "b", "c", "d")
    ]
    with (
        Providers(first) as server,
        Providers(lambda *_: answer("second-large", stream)) as other,
        tp.Lab(tmp_path / "runs.db") as lab,
    ):
        fallback = {
            "model": "openai/second-large", "api_base": f"{other.url}/v1", "api_key": "planted-2",
            "input_cost_per_token": 10e-6, "output_cost_per_token": 20e-6,
        }  # fmt: skip
        model = tp.Model("openai/first", api_base=f"{server.url}/v1", api_key="planted-1",
                         price=(1, 2), params={"fallbacks": [fallback]})  # fmt: skip
        plan = lab.plan(cases, {"m": model}, ["hermes"], stream=stream)
        run = lab.run(plan, progress=False)
        frame = run.frame().set_index("case_id")
        by_fallback = frame["served_by"].dropna()
        assert by_fallback.to_dict() == {"fails": other.url}
    assert frame["served_model"].to_dict() == {
        "fails": "second-large", "b": "first", "c": "first", "d": "first",
    }  # fmt: skip
    assert frame["cost"].round(9).to_dict() == {"fails": 2e-4, "b": 2e-5, "c": 2e-5, "d": 2e-5}
    assert "planted" not in str(frame.to_dict())
    assert any(
        note.startswith("1 of 4 answers of m name another model than the one that was asked")
        for note in run.report().notes
    )


SERVED = [
    # asked, the names of four answers, which of them are right
    ("gpt-4o", ["gpt-4o-2024-05-13"] * 4, [1, 1, 0, 0]),
    ("gpt-4o", ["gpt-4o-2024-08-06"] * 4, [1, 1, 1, 0]),
    ("gpt-4o", ["gpt-4o", "gpt-4o", "gpt-4o", "haiku"], [1, 1, 0, 1]),
    ("deploy-7", ["gpt-4o"] * 4, [1, 0, 0, 0]),
]


def test_compare_does_not_mix_models_and_says_what_moved(tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        runs = [
            lab.ingest(
                [{"case_id": f"c{n}", "model": model, "served_model": name, "target": [],
                  "output": "Hi" if right else '<tool_call>{"name": "f", "arguments": {}}</tool_call>',
                  "prompt_protocol": "hermes", "tools": [tool_named("f")]}
                 for n, (name, right) in enumerate(zip(names, rights, strict=True))]
            )
            for model, names, rights in SERVED
        ]  # fmt: skip
        may, august, mixed, deployed = runs
        moved = lab.diff(may, august)
        assert moved.frame["difference"].tolist() == [0.25]
        assert any(
            f"gpt-4o-2024-05-13 in {may.run_id}, gpt-4o-2024-08-06 in {august.run_id}" in note
            for note in moved.notes
        )
        # Without the one answer of another model there are three cases, alike in both.
        unmixed = lab.diff(may, mixed)
        assert unmixed.frame[["n_cases", "difference"]].values.tolist() == [[3, 0]]
        assert any("1 answer under" in n and "(haiku)" in n for n in unmixed.notes)
        # A name of its own that an endpoint gives all its answers is an alias.
        assert lab.diff(deployed, deployed).frame["n_cases"].tolist() == [4]


# -- reasoning and tokens

_MESSAGE = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
_OUTPUT = (
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "because"}]},
    {**_MESSAGE, "content": [{"type": "output_text", "text": "fine", "annotations": []}]},
)


@each_case
@pytest.mark.exhaustive(3)
def test_reasoning_is_kept_in_every_shape(name: str, path: str, reply: Any, stream: bool) -> None:
    if name.startswith("bedrock"):
        pytest.importorskip("boto3")
    if LOWEST and stream and name.startswith("groq"):
        pytest.skip("1.80 drops the reasoning of Groq's streams")
    completion = ask(reply, name, path, stream=stream)
    assert (completion.reasoning, completion.raw) == ("because", "fine"), completion.error_message
    if stream:
        kinds = [chunk.kind for chunk in completion.chunks]
        assert kinds == sorted(kinds, reverse=True)
        assert set(kinds) == {"reasoning", "content"}


@pytest.mark.parametrize(
    ("name", "path", "reply", "tokens"),
    [
        # 1.80 drops the count of reasoning tokens.
        ("openai/responses/gpt-5", "/v1", shapes.responses(*_OUTPUT), (None if LOWEST else 2, 4)),
        ("gemini/gemini-2.5-pro", "",
         shapes.gemini({"text": "fine"},
                       usage={"thoughtsTokenCount": 2, "cachedContentTokenCount": 4}), (2, 4)),
        ("openai/own", "/v1",
         shapes.openai({"content": "fine"},
                       {"prompt_tokens": 9, "completion_tokens": 3,
                        "prompt_tokens_details": {"cached_tokens": 4},
                        "completion_tokens_details": {"reasoning_tokens": 2}}), (2, 4)),
        ("deepseek/deepseek-reasoner", "/v1",
         shapes.openai({"content": "fine"},
                       {"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 4}),
         (None, 4)),
    ],
)  # fmt: skip
def test_reasoning_and_cached_tokens_are_columns(
    name: str, path: str, reply: Any, tokens: tuple[int | None, int]
) -> None:
    from toolparse_lab.evals.frames.rows import COMPLETION, completion_cells

    row = dict(zip(COMPLETION, completion_cells(ask(reply, name, path)), strict=True))
    assert (row["reasoning_tokens"], row["cached_tokens"]) == tokens


def test_cached_tokens_have_their_price() -> None:
    listed = tp.Model("openai/gpt-4.1-mini")
    full, cached = token_cost(listed, 1000, 0), token_cost(listed, 1000, 0, cached=1000)
    assert full is not None
    assert cached is not None
    assert cached < full / 2
    own = tp.Model("openai/own", price=(1, 2, 0.1))
    assert token_cost(own, 1_000_000, 0, cached=500_000) == pytest.approx(0.55)
    pair = tp.Model("openai/own", price=(1, 2))
    assert token_cost(pair, 1_000_000, 0, cached=500_000) == 1


# -- endpoints without chat

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def raw_answer(_path: str, body: dict[str, Any]) -> tuple[int, Any]:
    text = (
        '<think>hm</think><tool_call>{"name": "set_timer", "arguments": {"minutes": 1}}</tool_call>'
    )
    if "[tool]" in str(body["prompt"]) or "<tool_response>" in str(body["prompt"]):
        text = "Done."
    choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    return 200, {
        "id": "x", "object": "text_completion", "created": 1, "model": "m", "choices": [choice],
        "usage": usage,
    }  # fmt: skip


@pytest.mark.parametrize("form", ["text", "file", "folder", "mapping"])
def test_an_endpoint_without_chat_gets_a_prompt_of_its_template(form: str, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    template: Any = {
        "text": TEMPLATE,
        "file": tmp_path / "chat_template.jinja",
        "folder": str(tmp_path),
        "mapping": {"chat_template": TEMPLATE, "bos_token": "<s>"},
    }[form]
    with Providers(raw_answer) as server:
        model = tp.Model(
            "text-completion-openai/m", api_base=f"{server.url}/v1", api_key="planted",
            chat_template=template,
        )  # fmt: skip
        lab = tp.Lab(tmp_path / "runs.db")
        run = lab.run(lab.plan(CASES[:1], {"m": model}, ["hermes"]), progress=False)
        (body,) = server.bodies
    assert server.paths == ["/v1/completions"]
    (prompt,) = [body["prompt"]] if isinstance(body["prompt"], str) else body["prompt"]
    assert prompt.startswith("[system]")
    assert prompt.endswith("[user]Set a timer for 1 minutes.[assistant]")
    (trial,) = run.trials()
    assert trial.completion is not None
    assert trial.completion.endpoint_kind == "raw_completion"
    assert trial.completion.raw.startswith("<think>hm</think><tool_call>")
    assert trial.outcome == "correct"


def test_a_stored_conversation_without_chat_is_read_again(tmp_path: Path) -> None:
    with Providers(raw_answer) as server:
        model = tp.Model(
            "text-completion-openai/m", api_base=f"{server.url}/v1", api_key="planted",
            chat_template=TEMPLATE,
        )  # fmt: skip
        lab = tp.Lab(tmp_path / "runs.db")
        plan = lab.plan(
            CASES[:1], {"m": model}, ["hermes"], max_turns=2,
            runnable={"set_timer": lambda **_: "ok"},
        )  # fmt: skip
        run_id = lab.run(plan, progress=False).run_id
    (trial,) = tp.Lab(tmp_path / "runs.db").open(run_id).trials()
    assert trial.conversation is not None
    assert trial.conversation.answer == "Done."


@pytest.mark.parametrize(
    ("name", "template", "error", "words"),
    [
        ("openai/m", "chatml", tp.errors.BadOptions, "endpoint without chat"),
        ("text-completion-openai/m", None, tp.errors.BadPlan, "takes one prompt"),
        ("text-completion-openai/m", "{{ raise_exception('no system') }}", tp.errors.BadPlan,
         "no system"),
        ("text-completion-openai/m", "nowhere/", tp.errors.BadOptions, "cannot be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_told_by_the_plan(
    name: str, template: str | None, error: type[Exception], words: str, tmp_path: Path
) -> None:
    def planned() -> Any:
        model = tp.Model(name, chat_template=template)
        return tp.Lab(tmp_path / "runs.db").plan(CASES[:1], {"m": model}, ["hermes"])

    with pytest.raises(error, match=words):
        planned()
