"""Lines for the type checkers: `RIGHT` ones they accept, `WRONG` ones they refuse.

`test_typed_api.py` writes both into one file and runs each checker over it once.
"""

HEAD = """
from pathlib import Path
from typing import Any, Literal
import toolparse_lab as tp
from toolparse_lab.integrations import litellm_bridge as bridge

TOOL: dict[str, Any] = {"name": "f", "parameters": {"type": "object"}}
lab = tp.Lab("runs.db")
plan = lab.plan("cases.jsonl", "openai/m", "hermes")
run = lab.open("latest")
result = tp.parse("x", "hermes", [TOOL])


def mine(text: str) -> list[object]:
    return []
"""

RIGHT = """
tp.parse("x")
tp.parse("x", "hermes", [TOOL])
tp.parse({"choices": []}, "auto", TOOL, {"coerce": "none"})
tp.parse("x", tp.Protocol.from_spec(id="x", opener="<c>", closer="</c>"))
tp.Protocol.from_spec({"id": "x"}, body="tags", trim=False)
tp.stream("hermes", [TOOL]).feed(None)
tp.coerce("5", {"type": "integer"})
tp.compare("x", [TOOL], ["hermes"], {"mine": mine})
tp.load_cases([{"id": "a", "input": "x"}])
tp.load_cases(Path("cases.jsonl"), errors="skip")
tp.Model("openai/m", api_base="http://x/v1", price=(0, 0))
tp.Lab(Path("runs.db")).close()
lab.plan(tp.example_cases(), {"m": tp.Model("openai/m")}, ["hermes", "native"])
lab.plan("cases.jsonl", "openai/m", "hermes", temperature=0.5, max_tokens=64, stop=["x"])
lab.plan("cases.jsonl", "openai/m", "hermes", temperature=[0, 1], decoding=["free", "grammar"])
lab.plan("cases.jsonl", ["openai/m"], "hermes", few_shot=[0, 2], type_rules=[False, "pairs"])
lab.plan([{"input": "x"}], "openai/m", "hermes", extra_body={"anything": 1}, trials=3, seed=1)
lab.run(plan, max_cost=5, deadline=60.0, progress=False)
lab.retry("latest", fresh=True)
lab.open("latest", models={"m": tp.Model("openai/m")})
lab.ask("x", [TOOL], model="openai/m", protocol="hermes", max_tokens=9, fresh=True).calls
lab.answer("x", [TOOL], model="openai/m", feedback="production")
lab.ingest([{"raw": "x"}], tools=[TOOL], protocol="auto", columns={"x": None})
lab.reparse(run, ["hermes"], engine="serial", workers=2).shape
lab.reparse(run, to="parts").name
lab.diff(run, "latest", within="model", policy="safe")
run.frame(protocol="hermes", policies=("safe",), model=["m"]).shape
run.trials(case_id="a", arm="hermes")[0].outcome
run.trials()[0].retry(protocol="native", temperature=1.0, fresh=True)
run.report(baseline="hermes", level=0.9)
result.frame().shape
result.debug(stage="coerced").export_html("x.html")
bridge.completion("openai/m", [], protocol="hermes", tools=[TOOL], stream=True, api_base="http://x")
bridge.completion("openai/m", [], unknown_tools="call", feedback="production", timeout=5)
tp.create_tool_middleware("hermes", placement="last")
"""

WRONG = """
tp.parze("x")
tp.parse("x", 17, 18)
tp.parse(5)
tp.parse("x", "hermes", policy="safe")
tp.Protocol.from_spec(id="x", opner="<c>")
tp.Protocol.from_spec(id="x", body="jsn")
tp.stream("hermes").feed(5)
tp.coerce("5", 5)
tp.compare("x", also=5)
tp.load_cases(5)
tp.load_cases("x", errors="skp")
tp.Model("openai/m", temprature=0.5)
tp.Lab(5)
lab.plan(3, 4, 5)
lab.plan("cases.jsonl", "openai/m", "hermes", temprature=0.5)
lab.plan("cases.jsonl", "openai/m", "hermes", temperature="hot")
lab.plan("cases.jsonl", "openai/m", "hermes", decoding="grammer")
lab.plan("cases.jsonl", "openai/m", "hermes", trials="3")
lab.plan("cases.jsonl", [5], "hermes")
lab.run(plan, max_costs=5)
lab.run(plan, max_cost="5")
lab.run("cases.jsonl")
lab.open(5)
lab.ask("x", [TOOL], model="openai/m", protcol="hermes")
lab.ask("x", 5, model="openai/m")
lab.ask("x", [TOOL])
lab.ingest([{"raw": "x"}], protocol=5)
lab.reparse(run, engin="serial")
lab.reparse(run, engine="threads")
run.frame(colums=1)
run.trials(outcom="correct")
run.trials()["a"].outcme
run.trials()[0].retry(temprature=1)
run.report(formt="html")
result.frame(5)
result.debug(stage="fixed")
result.cals
bridge.completion("openai/m", [], tols=[TOOL])
bridge.completion("openai/m", [], unknown_tools="calls")
bridge.completion(5, [])
tp.create_tool_middleware("hermes", placement="middle")
"""
