"""The ablation on a model of which everything is known: each figure against a count by hand."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.ablation_model import (
    CELLS,
    GOLD,
    KINDS,
    MODELS,
    NODES,
    OFF_TOKENS,
    ON_TOKENS,
    TOOL,
    VALID,
    KnownModel,
    cases_of,
    known_ablation,
)
from tests.tool_server import SCHEMA, ToolServer
from toolparse_lab.core.errors import BadOptions, BadPlan, MissingRecording
from toolparse_lab.core.toolspec import ToolSpec
from toolparse_lab.experiments.ablation import DIALECTS, Ablation, AblationSettings, MockTool
from toolparse_lab.experiments.ablation.figures import FIGURES
from toolparse_lab.experiments.ablation.tools import problems_of
from toolparse_lab.middleware.correction import (
    DETECTORS,
    Feedback,
    Refused,
    ToolFailure,
    ToolRefused,
)
from toolparse_lab.runner.store.recording import export_recording


@pytest.fixture(scope="module")
def model() -> KnownModel:
    return KnownModel()


@pytest.fixture(scope="module")
def ablation(tmp_path_factory: pytest.TempPathFactory, model: KnownModel) -> Ablation:
    one: Ablation = known_ablation(tmp_path_factory.mktemp("ablation"), model=model)
    return one


def row(frame: pd.DataFrame, **values: Any) -> pd.Series[Any]:
    """The one row with these values."""
    for name, value in values.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1, frame
    return frame.iloc[0]


# what is asked


def test_a_model_is_asked_once_a_prompt(ablation: Ablation, model: KnownModel) -> None:
    assert model.calls == 2 * len(KINDS) + sum(NODES.values()) == 29
    assert set(model.asked.values()) == {1}
    assert ablation.missing == ()
    ablation.check()


def test_a_correction_is_asked_with_the_request_and_the_schema(
    ablation: Ablation, model: KnownModel
) -> None:
    request = model.corrections[0]
    assert "Weather at" in str(request.messages[0]["content"])
    assert '"lat"' in str(request.messages[-1]["content"])
    assert request.tools == ()


# cells


def test_cells_are_what_the_truth_says(ablation: Ablation) -> None:
    for i, cell in enumerate(CELLS):
        figures = row(ablation.cells, cell=cell)
        assert figures["gold"] == pytest.approx(sum(GOLD[k][i] == "1" for k in KINDS) / 10)
        assert figures["valid"] == pytest.approx(sum(VALID[k][i] == "1" for k in KINDS) / 10)
        assert figures["accepted"] == figures["valid"], "the mock takes what is valid"
        assert figures["parsed"] == 0.9
        assert (figures["n"], figures["n_cases"], figures["missing"]) == (10, 10, 0)
        assert figures["gold_low"] < figures["gold"] < figures["gold_high"]


def test_intervals_are_wilson_where_each_case_is_asked_once(ablation: Ablation) -> None:
    figures = row(ablation.cells, cell="S000")
    # Wilson's interval of 1 in 10.
    assert (round(figures["gold_low"], 3), round(figures["gold_high"], 3)) == (0.018, 0.404)


def test_contrasts_are_tested_in_pairs(ablation: Ablation) -> None:
    found = row(ablation.tests, rung="gold", contrast="all three")
    assert (found["rate_a"], found["rate_b"], found["n"]) == (0.1, 0.6, 10)
    assert (found["only_a"], found["only_b"], found["test"]) == (0, 5, "McNemar")
    assert found["p"] == found["p_holm"] == pytest.approx(2 * 0.5**5)
    layer2 = row(ablation.tests, rung="gold", contrast="layer 2 after 1")
    assert (layer2["only_a"], layer2["only_b"], layer2["p"]) == (0, 1, 1.0)


def test_the_waterfall_and_shapley_add_up(ablation: Ablation) -> None:
    gold = ablation.attribution[ablation.attribution["rung"] == "gold"]
    assert gold["gain"].tolist() == pytest.approx([0.1, 0.1, 0.3])
    # One case any layer mends, one that layers 2 and 3 do, three that only layer 3 does.
    share = [1 / 3, 1 / 3 + 1 / 2, 1 / 3 + 1 / 2 + 3]
    assert gold["shapley"].tolist() == pytest.approx([one / 10 for one in share])
    assert gold["shapley"].sum() == pytest.approx(gold["gain"].sum()) == pytest.approx(0.5)
    assert (gold["gain_low"] <= gold["gain"]).all()
    assert (gold["gain"] <= gold["gain_high"]).all()
    assert set(gold["n"]) == set(gold["n_shapley"]) == {10}


# layers


def test_layer_1_counts_mistyped_parameters_and_their_price(ablation: Ablation) -> None:
    off, on = (row(ablation.layer1, l1=level) for level in (False, True))
    assert (off["typed"], off["mistyped"], on["mistyped"]) == (27, 7, 6)
    assert off["type_error_rate"] == pytest.approx(7 / 27)
    assert on["lift"] == pytest.approx(0.1)
    assert on["extra_prompt_tokens"] == 10 * (ON_TOKENS - OFF_TOKENS) == on["tokens_per_error"]
    assert on["errors_avoided"] == 1


@pytest.mark.parametrize(
    ("policy", "rescues", "true", "false", "changed", "faithful"),
    [
        ("safe", 3, 2, 1, 0, 1),
        ("go-strconv", 3, 2, 1, 0, 1),
        ("lossy", 8, 3, 5, 4, 1),
    ],
)
def test_layer_2_tells_true_rescues_from_false(
    ablation: Ablation,
    policy: str,
    rescues: int,
    true: int,
    false: int,
    changed: int,
    faithful: int,
) -> None:
    found = row(ablation.layer2, policy=policy, l1=False)
    assert (found["calls"], found["invalid"]) == (9, 8)
    assert (found["rescues"], found["true_rescues"], found["false_rescues"]) == (
        rescues,
        true,
        false,
    )
    assert (found["changed_meaning"], found["faithful"]) == (changed, faithful)
    assert found["rescued"] == rescues / 8
    assert found["true_rescue"] == true / 8
    assert found["false_rescue"] == pytest.approx(false / rescues)
    assert (found["right_before"], found["harmed"], found["idempotent"]) == (1, 0, 1)


def test_rules_are_counted_at_their_own_place(ablation: Ablation) -> None:
    found = row(ablation.rules, policy="safe")
    assert found["rule"] == "coerce.integer-from-string"
    # "{n}" twice without layer 1 and once with it, "99" both times.
    assert (found["applied"], found["right"], found["wrong"]) == (5, 3, 2)
    assert bool(found["lossless"])
    lossy = row(ablation.rules, policy="lossy", rule="coerce.lossy")
    # "{n} degrees" alone is read rightly.
    assert (lossy["right"], lossy["wrong"], bool(lossy["lossless"])) == (2, 8, False)


def test_layer_3_counts_corrections(ablation: Ablation) -> None:
    found = row(ablation.layer3, policy="safe", l1=False)
    assert (found["entered"], found["corrections"], found["missing"]) == (5, 7, 0)
    assert found["parse_rate"] == pytest.approx(5 / 7)
    assert (found["success_at_1"], found["success_at_2"]) == (2 / 5, 3 / 5)
    assert (found["true_rescues"], found["harmed"], found["net_rescue"]) == (3, 0, 3)
    assert found["gold_rate"] == 3 / 5
    assert found["repeat_rate"] == found["collateral"] == 1 / 5
    assert row(ablation.layer3, policy="none", l1=False)["entered"] == 8


def test_costs_count_every_attempt(ablation: Ablation) -> None:
    base, all_three, alone = (row(ablation.costs, cell=c) for c in ("S000", "S111", "S001"))
    assert (base["model_calls"], base["tokens"], base["prompt_tokens"]) == (0, 120, 100)
    assert alone["model_calls"] == pytest.approx(1.0)
    assert all_three["model_calls"] == pytest.approx(0.7)
    # Seven corrections of 120 tokens beside ten longer prompts, for five answers more.
    assert all_three["true_rescues"] == 5
    assert all_three["tokens_per_rescue"] == pytest.approx((7 * 120 + 10 * 30) / 5)
    assert all_three["calls_per_rescue"] == pytest.approx(7 / 5)
    assert all_three["cost_per_rescue"] == pytest.approx(7 * 0.001 / 5)
    # A refused call is tried three times, with pauses of 1 and 2 seconds.
    assert base["pauses"] == pytest.approx(8 * 3 / 10)
    assert base["tool_calls"] == pytest.approx((8 * 3 + 1) / 10)
    assert base["latency_p50"] == 0.25
    assert alone["latency_p95"] == pytest.approx(0.75)


def test_detectors_are_held_to_the_validator(ablation: Ablation) -> None:
    frame = ablation.detectors
    assert len(frame) == len(DIALECTS) * (len(DETECTORS) + 1)
    schema = frame[frame["detector"] == "schema"]
    assert set(schema["recall"]) == set(schema["precision"]) == {1.0}
    assert row(frame, detector="objects", dialect="fastapi")["recall"] == 1
    assert row(frame, detector="objects", dialect="go")["recall"] == 0
    # Of nine different invalid calls the one with a wrong unit is no type error to Go's reader.
    go = row(frame, detector="go-phrases-planned", dialect="go")
    assert (go["invalid"], go["detected"], go["false_alarms"]) == (8, 7, 0)
    implemented = row(frame, detector="go-phrases", dialect="go")
    assert implemented["detected"] == 8
    assert implemented["false_alarms"] > 0, "a cache's invalid value is taken for an argument's"
    assert implemented["precision"] < 1


# recorded, replayed, stopped


def test_thresholds_are_held_against_calls(ablation: Ablation) -> None:
    frame = ablation.thresholds[ablation.thresholds["l1"]]
    counts = {name: (n, of) for name, n, of in frame[["threshold", "count", "total"]].to_numpy()}
    assert counts == {
        "coercion rate": (2, 9),
        "feedback rate": (5, 9),
        "correction success": (3, 5),
        "total success": (7, 9),
    }
    assert frame["ok"].tolist() == [False] * 4
    # Of nine calls only a rate far from its limit tells anything.
    assert frame["tells"].tolist() == [False, True, False, True]
    text = ablation.text("thresholds")
    assert "broken: Review prompt, may need enhancement (too few to tell)" in text
    assert "at most 20 %" in text


def test_corrections_cost_by_how_many_were_needed(ablation: Ablation) -> None:
    frame = ablation.scenarios[ablation.scenarios["l1"]]
    assert frame[["n", "calls", "seconds", "tokens"]].to_numpy().tolist() == [
        [5, 0, 0, 0],
        [2, 1, 0.25, 120],
        [1, 2, 0.5, 240],
        [2, 1.5, 0.375, 180],
    ]
    assert frame["accepted"].tolist() == [0.8, 1, 1, 0]
    assert frame["base_seconds"].tolist() == [0.25] * 4


def assert_same(a: Ablation, b: Ablation, names: tuple[str, ...] = FIGURES) -> None:
    """The same rows, and so the same figures, which are made of them alone."""
    for name in ("answers", "calls", "corrections", *names):
        pd.testing.assert_frame_equal(getattr(a, name), getattr(b, name))


def test_a_recording_replays_to_the_same_figures(ablation: Ablation, tmp_path: Path) -> None:
    path = tmp_path / "ablation.jsonl"
    assert export_recording(ablation.run.store, path, run_id=ablation.run.run_id) == 29
    with tp.Lab(tmp_path / "other.db") as lab:
        lab.replaying(path)
        again = lab.ablation(cases_of(KINDS), MODELS, ["hermes"], few_shot=0, progress=False)
        assert_same(ablation, again)


def test_a_run_is_opened_again_by_its_id(ablation: Ablation, model: KnownModel) -> None:
    calls = model.calls
    with tp.Lab(str(ablation.run.store.url.database)) as lab:
        again = lab.ablation(ablation.run.run_id, ask=False)
        assert_same(ablation, again)
        assert lab.store.run(ablation.run.run_id).status == "complete"
        assert len(lab.open(ablation.run.run_id).trials()) == 20, "corrections are no trials"
    assert model.calls == calls


def test_a_missing_correction_is_named_and_no_failure(ablation: Ablation, tmp_path: Path) -> None:
    path = tmp_path / "ablation.jsonl"
    export_recording(ablation.run.store, path, run_id=ablation.run.run_id)
    key = ablation.corrections[ablation.corrections["policy"] == "safe"]["key"].iloc[0]
    lines = [line for line in path.read_text("ascii").splitlines() if key not in line]
    path.write_text("\n".join(lines), "ascii")
    with tp.Lab(tmp_path / "other.db") as lab:
        lab.replaying(path)
        part = lab.ablation(cases_of(KINDS), MODELS, ["hermes"], few_shot=0, progress=False)
        assert part.missing == (key,)
        with pytest.raises(MissingRecording, match=key):
            part.check()
        for cell in CELLS:
            figures = row(part.cells, cell=cell)
            corrected = cell.endswith("1")
            assert pd.isna(figures["gold"]) == corrected
            assert figures["missing_corrections"] == corrected
            assert figures["best"] - figures["worst"] == pytest.approx(0.1 * corrected)
        assert pd.isna(row(part.tests, rung="gold", contrast="all three")["p"])
        assert row(part.tests, rung="gold", contrast="layer 1 alone")["n"] == 10
        assert pd.isna(row(part.layer3, policy="safe", l1=False)["success_at_1"])


def test_a_missing_base_answer_is_left_out(ablation: Ablation, tmp_path: Path) -> None:
    path = tmp_path / "ablation.jsonl"
    export_recording(ablation.run.store, path, run_id=ablation.run.run_id)
    first = next(one for one in ablation.recorded.answers if not one.question.on)
    key = first.question.item.key
    lines = [line for line in path.read_text("ascii").splitlines() if key not in line]
    path.write_text("\n".join(lines), "ascii")
    with tp.Lab(tmp_path / "other.db") as lab:
        lab.replaying(path)
        part = lab.ablation(cases_of(KINDS), MODELS, ["hermes"], few_shot=0, progress=False)
        assert part.missing == (key,)
        assert row(part.cells, cell="S000")["missing"] == 1
        assert row(part.cells, cell="S000")["n"] == 9
        assert row(part.cells, cell="S100")["n"] == 10
        assert row(part.tests, rung="gold", contrast="all three")["n"] == 9


def test_nothing_is_asked_where_nothing_is_to_be(tmp_path: Path) -> None:
    model = KnownModel()
    part = known_ablation(tmp_path, model=model, ask=False)
    assert model.calls == 0
    assert len(part.missing) == 20
    assert part.cells["gold"].isna().all()
    assert part.cells["n"].sum() == 0
    for name in FIGURES:
        assert isinstance(part.figure(name), pd.DataFrame)


@pytest.mark.parametrize("most", [1, 19, 20, 21, 27, 28])
def test_a_stopped_ablation_goes_on_where_it_was(tmp_path: Path, most: int) -> None:
    model = KnownModel()
    first = known_ablation(tmp_path, model=model, max_calls=most)
    assert model.calls == most
    assert first.missing
    assert first.run.store.run(first.run.run_id).status == "incomplete"
    second = known_ablation(tmp_path, model=model)
    assert model.calls == 29
    assert not second.missing
    assert set(model.asked.values()) == {1}


def test_ctrl_c_keeps_what_is_recorded(tmp_path: Path) -> None:
    class Interrupting(KnownModel):
        async def __call__(self, request: Any) -> Any:
            if self.calls == 24:
                os.kill(os.getpid(), signal.SIGINT)
            return await super().__call__(request)

    model = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        known_ablation(tmp_path, model=model)
    calls = model.calls
    assert 24 < calls <= 29
    with tp.Lab(tmp_path / "runs.db") as lab:
        assert [one.status for one in lab.runs()] == ["interrupted"]
    rest = KnownModel()
    ablation = known_ablation(tmp_path, model=rest)
    assert not ablation.missing
    # What was under way when it was stopped may be asked twice.
    assert calls + rest.calls <= 29 + 8


def test_a_provider_that_fails_leaves_a_gap_and_no_failure(tmp_path: Path) -> None:
    model = KnownModel()
    model.dead = {"layer 3"}
    part = known_ablation(tmp_path, model=model)
    assert len(part.missing) == 1
    assert pd.isna(row(part.cells, cell="S111")["gold"])
    model.dead = set()
    whole = known_ablation(tmp_path, model=model)
    assert not whole.missing
    assert row(whole.cells, cell="S111")["gold"] == 0.6


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=5), most=st.integers(0, 12))
def test_live_stopped_and_replayed_are_one(
    kinds: list[str], most: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    model = KnownModel()
    known_ablation(folder, kinds, model, max_calls=most)
    live = known_ablation(folder, kinds, model)
    assert model.calls == 2 * len(kinds) + sum(NODES.get(kind, 0) for kind in kinds)
    for i, cell in enumerate(CELLS):
        truth = sum(GOLD[kind][i] == "1" for kind in kinds) / len(kinds)
        assert row(live.cells, cell=cell)["gold"] == pytest.approx(truth)
    path = folder / "ablation.jsonl"
    export_recording(live.run.store, path, run_id=live.run.run_id)
    with tp.Lab(folder / "other.db") as lab:
        lab.replaying(path)
        again = lab.ablation(cases_of(kinds), MODELS, ["hermes"], few_shot=0, progress=False)
        assert_same(live, again, ())


# more than one of everything


def test_models_and_trials_are_grouped_and_adjusted(tmp_path: Path) -> None:
    models = {name: tp.Model(f"openai/{name}", price=(1, 1)) for name in ("a", "b")}
    kinds = ("layer 3",) * 6
    with tp.Lab(tmp_path / "runs.db") as lab:
        found = lab.ablation(
            cases_of(kinds), models, ["hermes"], trials=2, few_shot=0, complete=KnownModel(),
            progress=False,
        )  # fmt: skip
        tests = found.tests[
            (found.tests["rung"] == "gold") & (found.tests["contrast"] == "all three")
        ]
        assert tests["test"].tolist() == ["sign-flip"] * 2
        assert tests["p"].tolist() == pytest.approx([2 * 0.5**6] * 2)
        assert tests["p_holm"].tolist() == pytest.approx([4 * 0.5**6] * 2)
        assert row(found.cells, cell="S111", model="a")["n"] == 12
        pooled = found.grouped([])
        assert row(pooled.cells, cell="S111")["n"] == 24
        assert row(found.grouped("protocol").cells, cell="S111")["n_cases"] == 6


def test_an_answer_is_right_where_all_its_calls_are(tmp_path: Path) -> None:
    class Twice(KnownModel):
        async def __call__(self, request: Any) -> Any:
            from dataclasses import replace

            answer = await super().__call__(request)
            if "was refused" in str(request.messages[-1]["content"]):
                return answer
            return replace(answer, raw=answer.raw + answer.raw.replace('"10"', "10"))

    case = cases_of(["layer 2"])[0]
    case["target"] = case["target"] * 2
    with tp.Lab(tmp_path / "runs.db") as lab:
        found = lab.ablation(
            [case], MODELS, ["hermes"], few_shot=0, complete=Twice(), progress=False
        )
        assert row(found.cells, cell="S000")["gold"] == 0
        assert row(found.cells, cell="S010")["gold"] == 1
        assert len(found.calls[(found.calls["policy"] == "none") & ~found.calls["l1"]]) == 2


def test_cases_without_a_target_and_without_a_wanted_call(tmp_path: Path) -> None:
    cases = cases_of(["layer 2", "right", "right"])
    del cases[0]["target"]
    cases[1]["target"] = []
    with tp.Lab(tmp_path / "runs.db") as lab:
        found = lab.ablation(
            cases, MODELS, ["hermes"], few_shot=0, complete=KnownModel(), progress=False
        )
        figures = row(found.cells, cell="S010")
        assert (figures["n"], figures["answers"], figures["valid"], figures["gold"]) == (1, 2, 1, 1)
        assert figures["worst"] == figures["best"] == 1
        assert row(found.layer2, policy="safe", l1=False)["true_rescues"] == 0


def test_a_tool_that_nobody_offered_is_parsed_and_no_more(tmp_path: Path) -> None:
    class Elsewhere(KnownModel):
        async def __call__(self, request: Any) -> Any:
            from dataclasses import replace

            answer = await super().__call__(request)
            return replace(answer, raw=answer.raw.replace('"weather"', '"climate"'))

    found = known_ablation(tmp_path, ["layer 2"], Elsewhere())
    figures = row(found.cells, cell="S111")
    assert [figures[rung] for rung in ("parsed", "valid", "accepted", "gold")] == [1, 0, 0, 0]


# tools


@pytest.mark.parametrize("dialect", DIALECTS)
def test_mock_tools_refuse_alike_and_each_in_its_own_words(dialect: str) -> None:
    tool = MockTool({"name": "weather", "parameters": SCHEMA}, dialect)
    assert tool(lat=1.5, unit="C") == {"lat": 1.5, "unit": "C"}
    messages = set()
    for arguments in ({"lat": "x"}, {"days": 1}, {"lat": 1, "unit": "K"}, {"lat": 1, "days": 1.5}):
        with pytest.raises(ToolRefused) as refused:
            tool(**arguments)
        failure: ToolFailure = refused.value.failure
        messages.add(failure.text)
        one = Refused(failure, arguments, tool.tool.schema_json)
        seen = {name for name, detect in DETECTORS.items() if detect(one)}
        assert "schema" in seen
        assert ("objects" in seen) == (dialect in ("pydantic", "fastapi"))
    assert len(messages) == (1 if dialect == "silent" else 4)


def test_a_mock_speaks_as_the_server_does() -> None:
    tool = ToolSpec.of({"name": "weather_request", "parameters": SCHEMA})
    with ToolServer() as server:
        for dialect in ("go", "fastapi", "pydantic"):
            status, body = server.answer(f"/{dialect}", {"lat": "x"})
            with pytest.raises(ToolRefused) as refused:
                MockTool(tool, dialect)(lat="x")
            failure = refused.value.failure
            assert failure.status == status
            if dialect == "go":
                assert failure.message == body
                continue
            ours, theirs = json.loads(failure.body), json.loads(body)
            rows = (ours["detail"], theirs["detail"]) if dialect == "fastapi" else (ours, theirs)
            assert rows[0][0]["loc"] == rows[1][0]["loc"]
            assert rows[0][0]["type"] == rows[1][0]["type"]


def test_a_case_names_its_tool_by_address_or_by_name(tmp_path: Path) -> None:
    def strict(**arguments: Any) -> str:
        calls.append(arguments)
        if arguments["lat"] > 10:
            raise ValueError("lat: too far north for this station")
        return "ok"

    calls: list[Any] = []
    cases = cases_of(["right", "right", "right"])
    with ToolServer() as server:
        cases[0]["metadata"] = {"tools": {"weather": f"{server.url}/fastapi"}}
        cases[1]["metadata"] = {"tools": {"weather": "station"}}
        with tp.Lab(tmp_path / "runs.db") as lab:
            found = lab.ablation(
                cases, MODELS, ["hermes"], few_shot=0, complete=KnownModel(), progress=False,
                functions={"station": strict},
            )  # fmt: skip
            rungs = found.answers[(found.answers["policy"] == "none") & ~found.answers["l3"]]
            accepted = rungs[~rungs["l1"]].set_index("case_id")["accepted"].to_dict()
            assert accepted == {"case-0": True, "case-1": False, "case-2": True}
            # Once for each attempt, however many cells, policies and answers ask for it.
            assert len(calls) == 3
            assert len(server.bodies) == 1
            assert row(found.cells, cell="S000")["valid"] == 1
            with pytest.raises(BadOptions, match="station"):
                lab.ablation(found.run, ask=False)


def test_problems_are_those_of_validation() -> None:
    assert problems_of({"lat": 1}, ToolSpec.of(TOOL)) == ()
    assert [p.path for p in problems_of({"lat": "1"}, ToolSpec.of(TOOL))] == ["/lat"]


# what is refused


def test_settings_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    for wrong in (
        {"policy": "strict"},
        {"policy": "none"},
        {"policies": ("saef",)},
        {"dialect": "rust"},
        {"level": 1.5},
        {"layer1": ("typerules", 0, 1)},
        {"policies": "safe"},
        {"feedback": "often"},
        {"functions": {"weather": 3}},
    ):
        with pytest.raises(BadOptions):
            AblationSettings(**wrong)
    with tp.Lab(tmp_path / "runs.db") as lab:
        for settings_, match in (
            ({"type_rules": True}, "layer 1"),
            ({"max_turns": 3}, "one question"),
        ):
            with pytest.raises(BadPlan, match=match):
                lab.ablation(
                    cases_of(["right"]), MODELS, ["hermes"], complete=KnownModel(), **settings_
                )
        with pytest.raises(BadPlan, match="models and protocols"):
            lab.ablation(cases_of(["right"]))


def test_settings_are_recorded_with_the_run(tmp_path: Path) -> None:
    feedback = Feedback(max_validation_retries=1, wording="go-orchestrator")
    first = known_ablation(
        tmp_path, ["second"], policy="go-strconv", feedback=feedback, dialect="go", level=0.9
    )
    with tp.Lab(tmp_path / "runs.db") as lab:
        again = lab.ablation("latest", ask=False)
        assert again.settings == first.settings
        assert again.settings.feedback.wording == "go-orchestrator"
        assert lab.ablation("latest", ask=False, policy="safe").settings.policy == "safe"
    assert "success_at_2" not in first.layer3


def test_another_factor_can_be_layer_1_beside_type_rules(tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        found = lab.ablation(
            cases_of(["layer 2"]), MODELS, ["hermes"], complete=KnownModel(), progress=False,
            layer1=("few_shot", 0, 2), type_rules=[False, True],
        )  # fmt: skip
    assert sorted(found.cells["protocol"].unique()) == ["hermes no-rules", "hermes type-rules"]  # fmt: skip
    for protocol in found.cells["protocol"].unique():
        for cell in CELLS:
            gold = row(found.cells, protocol=protocol, cell=cell)["gold"]
            assert gold == int(GOLD["layer 2"][CELLS.index(cell)])


def test_cases_in_which_no_call_is_right_are_not_asked(tmp_path: Path) -> None:
    cases = cases_of(["right", "right", "layer 2"])
    cases[0]["target"] = []
    model = KnownModel()
    with tp.Lab(tmp_path / "runs.db") as lab:
        found = lab.ablation(cases, MODELS, ["hermes"], few_shot=0, complete=model, progress=False)
        assert model.calls == 5
        assert row(found.cells, cell="S000")["n"] == 2
        assert "no type can be wrong: 1" in found.markdown()
        assert "no type can be wrong: 1" in lab.ablation("latest", ask=False).markdown()
        with pytest.raises(BadPlan, match="no call is wanted"):
            lab.ablation(cases[:1], MODELS, ["hermes"], complete=model)


def test_outputs_from_elsewhere_have_no_corrections(tmp_path: Path) -> None:
    answers = [
        {"case_id": f"case-{i}", "model": "x", "raw": f"<tool_call>{json.dumps(call)}</tool_call>"}
        for i, call in enumerate(
            {"name": "weather", "arguments": {"lat": lat, "days": 3, "unit": "F"}}
            for lat in (10, "11", "north")
        )
    ]
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(answers, cases=tp.load_cases(cases_of(["right"] * 3)), protocol="hermes")
        found = lab.ablation(run)
        gold = found.cells.set_index("cell")["gold"]
        assert gold["S000"] == pytest.approx(1 / 3)
        assert gold["S010"] == pytest.approx(2 / 3)
        assert gold.drop(["S000", "S010"]).isna().all()
        assert row(found.cells, cell="S011")["missing_corrections"] == 1
        assert row(found.layer2, policy="safe")["true_rescues"] == 1
        assert "outputs from elsewhere" in found.text("cells")
        assert found.html()
