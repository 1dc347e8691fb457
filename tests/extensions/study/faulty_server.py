"""An OpenAI-compatible endpoint with a fault planted in one layer, for tests only.

A request goes through the layers of a serving stack: the template writes the prompt, a pretend
model reads it and writes, the sampler picks tokens, the parser takes calls out, the stream cuts the
answer into chunks, and the transport sends it. A `Fault` corrupts exactly one of them (or, for the
layer client, is in the request itself), so that what says which layer is at fault can be checked.

The model does what the last turn of the user says: a line ``CALL name {json}`` is a call, which it
writes as ``<tool_call>`` if the prompt it sees describes a tool of that name with its parameters,
and ``SAY text`` is an answer in words.

>>> len(planted())
33
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from tests.replay_server import Answer, Asked, ReplayServer, json_answer

if TYPE_CHECKING:
    from toolparse_lab import Lab
    from toolparse_lab.evals.scoring.trial import Trial

Layer = Literal["template", "model", "sampler", "server", "transport", "client"]
Json = dict[str, Any]
Call = tuple[str, Any]

_TOKEN = 4  # characters


@dataclass(frozen=True)
class Fault:
    """One planted fault and the request that meets it.

    `kind` is what is done, `rate` the share of requests it is done to. `logprobs`: given on request
    (True), ignored (False) or answered with a 400. `stream`, `temperature`, `max_tokens`, `params`,
    `messages` and `tools` are the failing request, `target` the calls that were wanted.
    """

    id: str
    layer: Layer
    kind: str
    rate: float
    logprobs: bool | Literal["refused"]
    stream: bool
    temperature: float
    messages: list[Json]
    tools: list[Json]
    target: list[Json]
    max_tokens: int = 512
    params: Json = field(default_factory=dict)

    @property
    def settings(self) -> Json:
        """The sampling parameters of the failing request."""
        return {"temperature": self.temperature, "max_tokens": self.max_tokens, **self.params}

    def mended(self) -> Fault:
        """The same stack and question with nothing wrong: nothing is corrupted, and the request
        has room and no parameter that forbids the call."""
        return replace(self, kind="", rate=0.0, max_tokens=1024, params={})


class Refused(Exception):
    """A layer answers with a status and a message in place of an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


# --- 1. The template -----------------------------------------------------------------------------

_ABOUT_TOOLS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""


def _without_parameters(tool: Json) -> Json:
    return {**tool, "function": {k: v for k, v in tool["function"].items() if k != "parameters"}}


def render(messages: list[Json], tools: list[Json], kind: str = "") -> str:
    """The prompt of a chat request, as a Hermes template writes it. `kind`: what goes wrong."""
    if tools and kind == "raises_items":
        raise Refused(500, "Can only get item pairs from a mapping.")
    system = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
    if tools and kind != "tools_lost":
        shown = map(_without_parameters, tools) if kind == "no_parameters" else tools
        lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in shown)
        system = f"{system}\n\n{_ABOUT_TOOLS.format(tools=lines)}".strip()
    parts = [("system", system)] if system else []
    for message in messages:
        if message["role"] != "system":
            cut = kind == "user_cut" and message["role"] == "user"
            parts.append((message["role"], message["content"][: 24 if cut else None]))
    prompt = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in parts)
    return prompt if kind == "no_generation_prompt" else prompt + "<|im_start|>assistant\n"


# --- 2. The model --------------------------------------------------------------------------------


def _bodies(calls: list[Call]) -> list[str]:
    return [json.dumps({"name": n, "arguments": a}, ensure_ascii=False) for n, a in calls]


def write_calls(calls: list[Call]) -> str:
    """Calls as the model writes them."""
    return "\n".join(f"<tool_call>\n{body}\n</tool_call>" for body in _bodies(calls))


def tools_in(prompt: str) -> dict[str, Json | None]:
    """The tools a prompt describes as JSON: by name the properties, None where none are given."""
    found: dict[str, Json | None] = {}
    for match in re.finditer(r"\{", prompt):
        try:
            thing = json.JSONDecoder().raw_decode(prompt, match.start())[0]
        except ValueError:
            continue
        name, schema = thing.get("name"), thing.get("parameters", thing.get("input_schema"))
        if isinstance(name, str) and isinstance(schema, dict) and "type" in schema:
            found[name] = dict(schema.get("properties") or {})
        elif isinstance(name, str) and "description" in thing:
            found.setdefault(name, None)
    return found


def intend(prompt: str, forced: str | None = None) -> list[Call] | str:
    """What a model without a fault wants to say to a prompt: calls, or words."""
    if not prompt.rpartition("<|im_start|>")[2].startswith("assistant"):
        return "Also, please be quick, I am in a hurry."  # it goes on in the user's place
    turn = prompt.rpartition("<|im_start|>user\n")[2].partition("<|im_end|>")[0]
    lines = re.findall(r"^\s*CALL (\S+) (\{.*)", turn, re.M)
    wanted = [(name, json.JSONDecoder().raw_decode(text)[0]) for name, text in lines]
    if not wanted:
        said = re.search(r"^\s*SAY (.*)", turn, re.M)
        return said[1].strip() if said else "Hello! How can I help you today?"
    tools = tools_in(prompt)
    if forced is not None and forced in tools:
        return [(forced, {k: v for k, v in wanted[0][1].items() if k in (tools[forced] or {})})]
    for name, arguments in wanted:
        if name not in tools:
            return "I have no such tool."
        if not set(arguments) <= set(tools[name] or {}):
            return f"I cannot do that: I do not know the parameters of {name}."
    return wanted


def _wrong_value(calls: list[Call]) -> list[Call]:
    (name, arguments), *rest = calls
    key = next(key for key, value in arguments.items() if isinstance(value, str))
    return [(name, {**arguments, key: "Springfield"}), *rest]


_BROKEN_TEXTS: dict[str, Callable[[list[Call]], str]] = {
    "wrong_value": lambda calls: write_calls(_wrong_value(calls)),
    "wrong_name": lambda calls: write_calls([(f"{calls[0][0]}_v2", calls[0][1]), *calls[1:]]),
    "missing_brace": lambda calls: re.sub(r"\}+\n", "\n", write_calls(calls)),
    "bare_json": lambda calls: "\n".join(_bodies(calls)),
    "refusal": lambda calls: "I am sorry, but I cannot help with that request.",
    "preamble": lambda calls: _PREAMBLE + write_calls(calls),
}
# What the model sometimes says before a call: some 70 tokens. No fault of its own: it needs a
# `max_tokens` that has room.
_PREAMBLE = (
    "Let me see what is needed here. The request names everything that I need to know, so there is "
    "nothing to ask back. I have checked which of the tools fits best and how its parameters are "
    "meant, and I will now call it with exactly the values from the message above.\n"
)


def think(prompt: str, kind: str = "", forced: str | None = None) -> str:
    """What the model writes to a prompt. `kind`: what goes wrong in it."""
    wanted = intend(prompt, forced)
    if not isinstance(wanted, str):
        return _BROKEN_TEXTS.get(kind, write_calls)(wanted)
    tools = sorted(tools_in(prompt))
    return write_calls([(tools[0], {})]) if kind == "call_for_nothing" and tools else wanted


# --- 3. The sampler ------------------------------------------------------------------------------


def sample(text: str, kind: str, temperature: float, rng: random.Random) -> str:
    """The text as it is sampled. At temperature 0 it is always what the model meant.

    `kind`: what goes wrong; a text with calls then never reads as the same calls.
    """
    if kind not in ("replaces_characters", "loops", "ends_early") or temperature <= 0:
        return text
    names = [m.span(1) for m in re.finditer(r'"name": ("[^\n]*)', text)] or [(0, len(text))]
    places = [at for start, end in names for at in range(start, end) if text[at].isalnum()]
    if kind == "replaces_characters":
        for at in rng.sample(places, min(5, len(places))):
            text = text[:at] + rng.choice("~^¤") + text[at + 1 :]
        return text
    at = rng.choice(places)
    return text[:at] + (text[at : at + 2 * _TOKEN] * 2000 if kind == "loops" else "")


def tokens_of(text: str) -> list[str]:
    """A text in tokens."""
    return [text[i : i + _TOKEN] for i in range(0, len(text), _TOKEN)]


@dataclass(frozen=True)
class Generated:
    """What came out of the model and its sampler, with what the model would have picked."""

    text: str
    meant: str
    finish: str
    prompt_tokens: int

    @property
    def usage(self) -> Json:
        count = len(tokens_of(self.text)) + (self.finish == "stop")  # the end is a token as well
        total = self.prompt_tokens + count
        return {
            "prompt_tokens": self.prompt_tokens, "completion_tokens": count, "total_tokens": total
        }  # fmt: skip

    def logprobs(self, top: int = 0) -> list[Json]:
        """Its tokens with their logarithmic probabilities: low where the sampler went astray."""
        found = []
        for i, token in enumerate(tokens_of(self.text)):
            sure = token == self.meant[i * _TOKEN : i * _TOKEN + len(token)]
            one: Json = {"token": token, "logprob": -0.02 if sure else -9.4}
            one["bytes"] = [*token.encode()]
            better = [] if sure else [{"token": " the", "logprob": -0.05, "bytes": [*b" the"]}]
            found.append({**one, "top_logprobs": [*better, one][:top]})
        return found


def generate(body: Json, prompt: str, kind: str, rng: random.Random) -> Generated:
    """Model and sampler: the text for a prompt, cut by `stop` and `max_tokens`."""
    choice = body.get("tool_choice")
    meant = think(prompt, kind, choice["function"]["name"] if isinstance(choice, dict) else None)
    temperature = body.get("temperature")
    text = sample(meant, kind, 1.0 if temperature is None else temperature, rng)
    stops = body.get("stop") or []
    for stop in [stops] if isinstance(stops, str) else stops:
        text = text.partition(stop)[0]
    room = _TOKEN * (body.get("max_completion_tokens") or body.get("max_tokens") or 4096)
    finish = "length" if len(text) > room else "stop"
    return Generated(text[:room], meant, finish, len(tokens_of(prompt)))


# --- 4. The parser of the server, and its stream -------------------------------------------------

_BLOCK = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.S)
_BEGUN = re.compile(r'\s*\{\s*"name":\s*"([^"]+)",\s*"arguments":\s*(\{.*)\Z', re.S)


def read_calls(text: str, streaming: bool) -> list[tuple[str, str]]:
    """The calls of a text, with the texts of their arguments: none if one does not read.

    `streaming`: of a call that is cut off, what came of it counts, as it is sent before the end.
    """
    calls: list[tuple[str, str]] = []
    for match in _BLOCK.finditer(text):
        try:
            body = json.loads(match[1])
            calls.append((body["name"], json.dumps(body["arguments"], ensure_ascii=False)))
        except (ValueError, KeyError, TypeError):
            begun = (
                _BEGUN.match(match[1]) if streaming and match[0] == text[match.start() :] else None
            )
            if begun is None:
                return []
            calls.append((begun[1], begun[2]))
    return calls


def _lost_last(text: str) -> str:
    try:
        return json.dumps(dict(list(json.loads(text).items())[:-1]), ensure_ascii=False)
    except ValueError:  # a call that is cut off
        return text


def read_message(made: Generated, kind: str, streaming: bool) -> tuple[Json, str]:
    """Message and finish reason of the chat answer to a generated text. `kind`: what goes wrong."""
    calls = read_calls(made.text, streaming)
    finish = "tool_calls" if calls and made.finish == "stop" else made.finish
    content = made.text.partition("<tool_call>")[0].strip() if calls else made.text
    message: Json = {"role": "assistant", "content": content or None}
    if "<tool_call>" in made.text:
        if kind == "error_500_index":
            raise Refused(500, "list index out of range")
        if kind == "drops_call":
            return {**message, "content": ""}, "stop"
        if kind == "leaves_markup":
            marked = re.sub(r"</?tool_call>", "<|tool|>", made.text)
            return {**message, "content": marked}, "stop"
        if kind == "into_reasoning":
            return {**message, "content": None, "reasoning_content": made.text}, "stop"
        if kind == "loses_argument":
            calls = [(name, _lost_last(text)) for name, text in calls]
        if kind == "swaps_arguments":
            texts = [text for _, text in calls]
            calls = [(name, texts[i - 1]) for i, (name, _) in enumerate(calls)]
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": text}}
            for i, (name, text) in enumerate(calls)
        ]
    return message, finish


def _pieces(text: str | None) -> list[str]:
    return [(text or "")[i : i + 7] for i in range(0, len(text or ""), 7)]


def deltas_of(message: Json, kind: str) -> list[Json]:
    """The deltas of an answer that is streamed. `kind`: what goes wrong."""
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": part} for part in _pieces(message.get("reasoning_content"))]
    deltas += [{"content": part} for part in _pieces(message["content"])]
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        parts = [{**call, "function": {**function, "arguments": ""}}]
        parts += [{"function": {"arguments": part}} for part in _pieces(function["arguments"])]
        parts = parts[kind == "stream_head_lost" : -1 if kind == "stream_last_piece_lost" else None]
        deltas += [{"tool_calls": [{"index": index, **part}]} for part in parts]
    return deltas


def chat(body: Json, fault: Fault | None, stack: Fault | None, rng: random.Random) -> Answer:
    """The answer to a chat request. `fault` is what corrupts it, `stack` what it goes to."""
    kind = fault.kind if fault else ""
    served = stack.logprobs if stack else True
    if served == "refused" and body.get("logprobs"):
        raise Refused(400, "logprobs are not supported by this deployment")
    tools = list(body.get("tools") or [])
    made = generate(body, render(body["messages"], tools, kind), kind, rng)
    message: Json = {"role": "assistant", "content": made.text}
    finish, stream = made.finish, bool(body.get("stream"))
    if tools and body.get("tool_choice") != "none":
        message, finish = read_message(made, kind, stream)
    if body.get("parallel_tool_calls") is False and "tool_calls" in message:
        del message["tool_calls"][1:]
    about: Json = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
    last: Json = {"index": 0, "finish_reason": finish}
    if body.get("logprobs") and served is True:
        last["logprobs"] = {"content": made.logprobs(int(body.get("top_logprobs") or 0))}
    if not stream:
        choices = [{**last, "message": message}]
        return json_answer({**about, "choices": choices, "usage": made.usage})
    about["object"] = "chat.completion.chunk"
    changes = [{"index": 0, "delta": d, "finish_reason": None} for d in deltas_of(message, kind)]
    events = [{**about, "choices": [choice]} for choice in [*changes, {**last, "delta": {}}]]
    if (body.get("stream_options") or {}).get("include_usage"):
        events.append({**about, "choices": [], "usage": made.usage})
    lines = [*(json.dumps(event, ensure_ascii=False) for event in events), "[DONE]"]
    pieces = [f"data: {line}\n\n".encode() for line in lines]
    return Answer(pieces, headers={"Content-Type": "text/event-stream"}, chunked=True)


# --- 5. The transport ----------------------------------------------------------------------------


def sent(answer: Answer, kind: str) -> Answer:
    """The answer as the transport sends it. `kind`: what goes wrong."""
    if kind == "bad_gateway_502":
        page = b"<html><body><h1>502 Bad Gateway</h1><hr>nginx/1.24.0</body></html>\r\n"
        return Answer([page], 502, {"Content-Type": "text/html"})
    if kind == "bad_chunks":
        return Answer([replace(answer, chunked=True).head, b"zz\r\n{\r\n"], bare=True, cut=2)
    if len(answer.pieces) == 1:  # a body in one piece breaks off inside of it
        body = answer.pieces[0]
        answer = replace(answer, pieces=[body[: len(body) // 3], body[len(body) // 3 :]])
    third = max(1, len(answer.pieces) // 3)
    if kind == "hangs_midway":
        length = str(sum(map(len, answer.pieces)))
        headers = answer.headers if answer.chunked else {**answer.headers, "Content-Length": length}
        return replace(answer, headers=headers, pieces=answer.pieces[:third], hang=True)
    return replace(answer, cut=third, reset=kind == "reset_midway")


class FaultyServer(ReplayServer):
    """`with FaultyServer(fault) as server`: `server.url` ends in /v1. Without a fault it is sound.

    `fault` may be changed while it serves. `corrupted` counts the requests that the fault was drawn
    for.
    """

    def __init__(self, fault: Fault | None = None, *, seed: int = 0) -> None:
        super().__init__()
        self.url += "/v1"
        self.fault = fault
        self.corrupted = 0
        self.rng = random.Random(f"{seed} {fault.id if fault else ''}")

    def reply(self, asked: Asked) -> Answer:
        stack = self.fault
        drawn = stack if stack is not None and self.rng.random() < stack.rate else None
        self.corrupted += drawn is not None
        try:
            answer = chat(asked.json, drawn, stack, self.rng)
        except Refused as e:
            error = {"message": str(e), "type": "server_error", "code": e.status}
            answer = json_answer({"error": error}, e.status)
        return sent(answer, drawn.kind) if drawn and drawn.layer == "transport" else answer


# --- The faults ----------------------------------------------------------------------------------

_CITIES = ("Lisbon", "São Paulo", "Kraków", "Osaka", "New York", "Zürich", "Nairobi")
_PROSE = (
    "the heating in the small meeting room has been off since Monday and the guests are cold",
    "all invoices of the spring quarter are in the shared folder, please check the totals again",
    "we move the workshop to the larger hall because more people than expected have signed up",
)
# Tool: what it does, and of each parameter its type and values.
_BANK: dict[str, tuple[str, dict[str, tuple[str, tuple[Any, ...]]]]] = {
    "get_weather": (
        "The weather of a city.", {"city": ("string", _CITIES), "days": ("integer", (1, 3, 5, 10))},
    ),
    "send_email": (
        "Send an e-mail.",
        {
            "recipient": ("string", ("ada@example.org", "desk@example.com")),
            "subject": ("string", ("Room change", "Invoices for spring", "Toner")),
            "body_text": ("string", _PROSE),
        },
    ),
    "create_event": (
        "Put an event into the calendar.",
        {
            "title": ("string", ("Team lunch", "Dental check", "Jörg's farewell")),
            "attendees": ("array", (["Ada", "Li"], ["Zoë", "Sam", "Bo"])),
        },
    ),
    "query_orders": (
        "Look for orders in the shop.",
        {
            "customer": ("string", ("Ada Obi", "Li Wei", "Zoë Müller")),
            "where": ("object", ({"status": "open"}, {"status": "sent", "total": {"min": 5}})),
            "limit": ("integer", (5, 20, 100)),
        },
    ),
    "set_thermostat": (
        "Set the temperature of a room.",
        {"room": ("string", ("kitchen", "Büro", "attic")), "degrees": ("number", (18.5, 21.25))},
    ),
}  # fmt: skip
_OPENINGS = (
    "Please take care of this for me today.",
    "This has to be done before the meeting.",
    "Could you do the following, exactly as it is written?",
)
# Layer: the kinds of its faults, each with another kind of evidence, and what its question needs:
# `two` calls, a `long` one, `words` alone; asked as a `stream`; `half`: not in every request.
_KINDS: dict[Layer, dict[str, str]] = {
    "template": {"tools_lost": "", "no_parameters": "half", "raises_items": "", "user_cut": "half",
                 "no_generation_prompt": "half"},
    "model": {"wrong_value": "", "missing_brace": "half", "refusal": "", "bare_json": "two",
              "wrong_name": "long", "call_for_nothing": "words"},
    "sampler": {"replaces_characters": "", "loops": "half", "ends_early": "stream"},
    "server": {"drops_call": "", "leaves_markup": "half", "into_reasoning": "",
               "loses_argument": "", "swaps_arguments": "two", "error_500_index": "",
               "stream_head_lost": "stream", "stream_last_piece_lost": "stream long"},
    "transport": {"reset_midway": "", "cut_midway": "half stream", "hangs_midway": "",
                  "bad_gateway_502": "half", "bad_chunks": "stream"},
    "client": {"max_tokens": "long", "preamble": "half", "choice_none": "", "choice_other": "",
               "stop_line": "", "parallel_off": "two"},
}  # fmt: skip


def _tool(name: str) -> Json:
    description, values = _BANK[name]
    properties = {key: {"type": kind} for key, (kind, _) in values.items()}
    schema = {"type": "object", "properties": properties, "required": list(values)}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


def _planted(layer: Layer, kind: str, needs: set[str], number: int, rng: random.Random) -> Fault:
    names = rng.sample(list(_BANK), 4)
    wanted = ["send_email"] if "long" in needs else names[: 1 + ("two" in needs)]
    names = list(dict.fromkeys([*wanted, *names[1:]]))
    rng.shuffle(names)
    target: list[Json] = [
        {"name": n, "arguments": {k: rng.choice(v) for k, (_, v) in _BANK[n][1].items()}}
        for n in wanted
    ]
    lines = [f"CALL {c['name']} {json.dumps(c['arguments'], ensure_ascii=False)}" for c in target]
    room = len(tokens_of(write_calls([(c["name"], c["arguments"]) for c in target])))
    if "words" in needs:
        target, lines = [], ["SAY All is well here."]
    params: dict[str, Json] = {
        # As the lab's own factor it would also change what is wanted.
        "choice_none": {"extra_body": {"tool_choice": "none"}},
        "choice_other": {"tool_choice": {"name": next(n for n in names if n not in wanted)}},
        "stop_line": {"stop": ["\n"]},
        "parallel_off": {"parallel_tool_calls": False},
    }
    return Fault(
        id=f"{layer}-{kind}",
        layer=layer,
        kind=kind,
        rate=0.5 if "half" in needs else 1.0,
        logprobs="refused" if number % 12 == 11 else number % 3 != 1,
        stream="stream" in needs or number % 4 == 3,
        temperature=0.0 if layer != "sampler" and number % 5 == 4 else 0.7,
        messages=[
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "\n".join([rng.choice(_OPENINGS), *lines])},
        ],
        tools=[_tool(name) for name in names],
        target=target,
        max_tokens={"max_tokens": room // 2, "preamble": room + 20}.get(kind, 512),
        params=params.get(kind, {}),
    )


def planted(seed: int = 0) -> list[Fault]:
    """All faults, the same for the same seed: every layer with its kinds, in varied questions."""
    rows = [(layer, *row) for layer, kinds in _KINDS.items() for row in kinds.items()]
    return [
        _planted(layer, kind, set(needs.split()), number, random.Random(f"{seed} {kind}"))
        for number, (layer, kind, needs) in enumerate(rows)
    ]


# --- For those who use it ------------------------------------------------------------------------


def failing_trial(lab: Lab, fault: Fault, server: FaultyServer, attempts: int = 30) -> Trial:
    """A trial of the fault's request that is not a success, asked by the lab until there is one.

    Each attempt has a seed of its own, which the server does not heed: of one request the lab goes
    by its latest answer, and a failure of the provider does not replace an answer. Raises
    AssertionError if there is none in so many attempts.
    """
    import toolparse_lab as tp

    case = {
        "id": fault.id, "messages": fault.messages, "tools": fault.tools, "target": fault.target
    }  # fmt: skip
    model = tp.Model(
        "openai/m",
        api_base=server.url,
        api_key="k",
        timeout=1 if fault.kind == "hangs_midway" else 60,
        max_retries=0,
        price=(0, 0),
    )
    for seed in range(attempts):
        plan = lab.plan(
            [case], {"m": model}, ["native"], stream=fault.stream, seed=seed, **fault.settings
        )
        trial = lab.run(plan, progress=False, fresh=True).trials()[0]
        if trial.failed:
            return trial
    raise AssertionError(f"{fault.id} did not fail in {attempts} attempts")
