"""What users get wrong: `snippet | text that the error names`, one a line.

`test_user_errors.py` runs each. Every one raises an error of this package that names the value it
got and says what to do, by a hint or by what it expected.
"""

ERRORS = r"""
tp.parse(17, "hermes") | 17
tp.parse(None, "hermes") | None
tp.parse({"choices": []}, "hermes") | choices
tp.parse({}, "hermes") | dict
tp.parse(b"x", "hermes") | bytes
tp.parse("x", "hermse") | hermes
tp.parse("x", 17) | 17
tp.parse("x", "") | tp.protocols()
tp.parse("x", "hermes", [17]) | 17
tp.parse("x", "hermes", 17) | 17
tp.parse("x", "hermes", "get_weather") | get_weather
tp.parse("x", "hermes", [{"name": ""}]) | no name
tp.parse("x", "hermes", [{"function": {}}]) | function
tp.parse("x", "hermes", [{"name": 5}]) | 5
tp.parse("x", "hermes", [TOOL, TOOL]) | get_weather
tp.parse("x", "hermes", [{"name": "f", "parameters": "city: string"}]) | city: string
tp.parse("x", "hermes", [{"name": "f", "parameters": [1]}]) | 1
tp.parse("x", "hermes", options={"polcy": "safe"}) | polcy
tp.parse("x", "hermes", options={"policy": "safe"}) | coerce
tp.parse("x", "hermes", options={"coerce": "loose"}) | loose
tp.parse("x", "hermes", options={"max_depth": 0}) | 0
tp.parse("x", "hermes", options={"repair": "yes"}) | yes
tp.parse("x", "hermes", options=5) | int
tp.stream("nope") | nope
tp.stream("hermes").feed(5) | 5
tp.stream("hermes").feed(b"x") | bytes
closed().feed("x") | tp.stream()
tp.coerce("5", "integer") | integer
tp.coerce("5", 5) | 5
tp.coerce("5", {"type": "integer"}, policy="saef") | safe
tp.detect(5) | 5
tp.compare("x", "hermes") | hermes
tp.compare("x", also=[closed]) | also
tp.compare("x", None, ["hermes", "nope"]) | nope
tp.Protocol.from_spec(id="x", opner="<a>") | opener
tp.Protocol.from_spec(id="x", opener="<a>", closer="<a>") | <a>
tp.Protocol.from_spec(id="x", opener="", closer="<a>") | opener
tp.Protocol.from_spec(id="", opener="<a>", closer="</a>") | id
tp.Protocol.from_spec(id="x", body="jsn") | jsn
tp.Protocol.from_spec(5) | int
tp.json_mix_protocol("", "") | tool_call_start
tp.load_cases("missing.jsonl") | missing.jsonl
tp.load_cases("What is the weather?") | What is the weather?
tp.load_cases("bad.jsonl") | line 2
tp.load_cases("empty.jsonl") | empty.jsonl
tp.load_cases([{"prompt": "x", "tools": [TOOL]}]) | prompt
tp.load_cases([{"id": "a", "tools": [TOOL]}]) | no input
tp.load_cases([CASE, CASE]) | c1
tp.load_cases(5) | int
tp.load_cases([]) | no cases
tp.load_cases("cases.jsonl", errors="skp") | skp
tp.load_cases("cases.jsonl", columns={"question": "input"}) | question
tp.load_cases("cases.jsonl").filter(tag="x") | target
tp.load_cases("cases.jsonl")["c2"] | c1
tp.Model("") | litellm model string
tp.Model("gpt-4o", api_base="localhost:8000/v1") | http://
tp.Model("gpt-4o", timeout=-1) | -1
tp.Model("gpt-4o", max_connections=0) | 0
tp.Model("gpt-4o", price=5) | 5
tp.Lab(5) | 5
tp.Lab("/proc/nope/x.db") | /proc/nope/x.db
tp.Lab("cases.jsonl") | cases.jsonl
lab.plan("What is the weather?", MODEL, "hermes") | What is the weather?
lab.plan(3, MODEL, "hermes") | int
lab.plan([], MODEL, "hermes") | no cases
lab.plan([CASE], "", "hermes") | litellm model string
lab.plan([CASE], [], "hermes") | tp.Model
lab.plan([CASE], {"m": 5}, "hermes") | 5
lab.run(lab.plan([CASE], "gpt_4o_mini", "hermes")) | gpt_4o_mini
lab.plan([CASE], "toolparse-local/smollm", "hermes") | smollm2-135m
lab.plan([CASE], MODEL, "hermse") | hermes
lab.plan([CASE], MODEL, []) | hermes
lab.plan([CASE], MODEL, "auto") | auto
lab.plan([CASE], MODEL, "hermes", trials=0) | 0
lab.plan([CASE], MODEL, "hermes", trials="3") | 3
lab.plan([CASE], MODEL, "hermes", temprature=0.5) | temperature
lab.plan([CASE], MODEL, "hermes", temperature="hot") | hot
lab.plan([CASE], MODEL, "hermes", max_tokens="many") | many
lab.plan([CASE], MODEL, "hermes", decoding="grammer") | grammer
lab.plan([CASE], MODEL, "hermes", wording="poetic") | poetic
lab.plan([CASE], MODEL, "hermes", api_base="http://x") | Model
lab.run("cases.jsonl") | lab.plan(
lab.run([CASE]) | list
lab.run(5) | int
lab.run(lab.plan([CASE], MODEL, "hermes"), max_costs=5) | max_cost
lab.run(lab.plan([CASE], MODEL, "hermes"), max_cost="5") | 5
lab.run(lab.plan([CASE], MODEL, "hermes"), deadline=-1) | -1
lab.open("nope") | lab.runs()
lab.open(5) | lab.runs()
lab.ingest("missing.jsonl") | missing.jsonl
lab.ingest("bad.jsonl") | line 2
lab.ingest([{"x": 1}]) | raw
lab.ingest([{"raw": RAW}], columns={"rwa": "raw"}) | rwa
lab.ingest([{"raw": RAW}], protocol="nope") | nope
lab.ingest(5) | int
lab.reparse("nope") | nope
lab.reparse(run, ["nope"]) | nope
lab.reparse(run, engine="threads") | threads
lab.diff("a", "b") | a
lab.ask("x", [TOOL], model="") | model
lab.ask("x", [TOOL], model="nope/nope") | hosted_vllm
lab.ask("x", [TOOL], model=MODEL, protcol="hermes") | protcol
lab.ask("x", [TOOL], model=MODEL, max_turns=3) | 3
lab.ask("x", [TOOL], model=OPENAI) | OPENAI_API_KEY
lab.ask("x", [TOOL], model=CLOSED) | server runs
run.frame(modle="x") | model
run.frame(protocol="nope") | nope
run.frame(model="nope") | nope
run.trials(outcome="correct") | where=
run.trials()[99] | 99
run.trial("nope") | nope
run.report(baseline="nope") | nope
run.report(by="modle") | model
run.report(policy="sfe") | sfe
run.failures(protocol="nope") | nope
run.failures(code="nope") | nope
run.compare("hermes", "nope") | nope
run.chunks_df("nope") | nope
run.batches(0) | 0
tp.parse(RAW, "hermes", [TOOL]).calls[0].origin("/nope") | /city
tp.parse(RAW, "hermes").content("keep") | keep
tp.ParseResult.from_dict({"version": 99}) | 99
tp.create_tool_middleware("nope") | nope
tp.create_tool_middleware("hermes", placement="middle") | middle
tp.create_tool_middleware("hermes", feedback="prod") | prod
bridge.completion("openai/m", "hi", protocol="hermes") | hi
bridge.completion("openai/m", protocol="hermes") | messages=
bridge.completion("openai/m", ["hi"], protocol="hermes") | hi
bridge.completion("openai/m", MESSAGES, protocol="nope") | nope
bridge.completion("openai/m", MESSAGES, unknown_tools="calls", tools=[TOOL]) | calls
bridge.completion("openai/m", MESSAGES, tools=[TOOL], tool_choice="must") | must
"""
