"""An OpenAI-compatible endpoint with a fault planted in one layer, for tests only.

A request goes through the layers a serving stack has: the template writes the prompt, a pretend
model reads it and writes, the sampler picks tokens, the parser takes calls out, the stream cuts the
answer into chunks, and the transport sends it. A `Fault` corrupts exactly one of them (or, for the
layer client, is in the request itself), so that what says which layer is at fault can be checked.

The model does what the last turn of the user says: a line ``CALL name {json}`` is a call, which it
writes as ``<tool_call>`` if the prompt it sees describes a tool of that name with its parameters,
and ``SAY text`` is an answer in words.

>>> faults = planted()
>>> len(faults)
200
"""

from __future__ import annotations

import html
import json
import os
import random
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    from toolparse_lab import Lab
    from toolparse_lab.evals.scoring.trial import Trial

Layer = Literal["template", "model", "sampler", "server", "transport", "client"]
Json = dict[str, Any]

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
    max_tokens: int
    messages: list[Json]
    tools: list[Json]
    target: list[Json]
    params: Json = field(default_factory=dict)

    @property
    def settings(self) -> Json:
        """The sampling parameters of the failing request."""
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            **self.params,
        }

    def mended(self) -> Fault:
        """The same stack and question with nothing wrong: nothing is corrupted, and the request
        has room and no parameter that forbids the call."""
        return replace(self, kind="", rate=0.0, max_tokens=1024, params={})


# --- 1. The template -----------------------------------------------------------------------------


class TemplateError(Exception):
    """The template could not be rendered: `status` and the message of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


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

# Raised where tools are offered; the rest of what a template raises depends on the messages.
_RAISED_FOR_TOOLS: dict[str, tuple[int, str]] = {
    "raises_undefined": (400, "'dict object' has no attribute 'parameters'"),
    "raises_filter": (500, "jinja2.exceptions.TemplateRuntimeError: No filter named 'tojson_v2'."),
    "raises_items": (500, "Can only get item pairs from a mapping."),
    "raises_alternate": (
        400,
        "jinja2.exceptions.TemplateError: After the optional system message, conversation roles "
        "must alternate user/assistant/user/assistant/...",
    ),
    "raises_concat": (500, 'TypeError: can only concatenate str (not "dict") to str'),
}


def _line(tool: Json) -> str:
    return json.dumps(tool, ensure_ascii=False)


def _without_parameters(tool: Json) -> Json:
    inner = {k: v for k, v in tool["function"].items() if k != "parameters"}
    return {**tool, "function": inner}


def _with_function(tool: Json, **changed: Any) -> Json:
    return {**tool, "function": {**tool["function"], **changed}}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


def _camel_properties(tool: Json) -> Json:
    schema = tool["function"]["parameters"]
    properties = {f"{_camel(name)}_": v for name, v in schema["properties"].items()}
    return _with_function(tool, parameters={**schema, "properties": properties})


_LINES: dict[str, Callable[[list[Json]], list[str]]] = {
    "first_tool_only": lambda tools: [_line(tools[0])],
    "last_tool_only": lambda tools: [_line(tools[-1])],
    "no_parameters": lambda tools: [_line(_without_parameters(tool)) for tool in tools],
    "no_properties": lambda tools: [
        _line(_with_function(tool, parameters={"type": "object", "properties": {}}))
        for tool in tools
    ],
    "camel_properties": lambda tools: [_line(_camel_properties(tool)) for tool in tools],
    "double_escaped": lambda tools: [json.dumps(_line(tool)) for tool in tools],
    "html_escaped": lambda tools: [html.escape(_line(tool)) for tool in tools],
    "python_repr": lambda tools: [str(tool) for tool in tools],
    "object_object": lambda tools: ["[object Object]" for _ in tools],
    "names_lost": lambda tools: [_line(_with_function(tool, name=None)) for tool in tools],
    "numbered": lambda tools: [
        _line(_with_function(tool, name=f"function_{i}")) for i, tool in enumerate(tools)
    ],
    "empty_block": lambda tools: [],
    "types_only": lambda tools: [_line({"type": tool["type"]}) for tool in tools],
    "cut_lines": lambda tools: [_line(tool)[:60] + "…" for tool in tools],
}


def _written(message: Json) -> str:
    """A message's text, its calls as the model writes them."""
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    calls = [
        (call["function"]["name"], json.loads(call["function"]["arguments"] or "{}"))
        for call in message.get("tool_calls") or []
    ]
    text = f"{content}\n{write_calls(calls)}".strip() if calls else str(content)
    return f"<tool_response>\n{text}\n</tool_response>" if message["role"] == "tool" else text


def render(messages: list[Json], tools: list[Json], kind: str = "") -> str:
    """The prompt of a chat request, as a Hermes template writes it. `kind`: what goes wrong."""
    system = "\n\n".join(_written(m) for m in messages if m["role"] in ("system", "developer"))
    turns = [m for m in messages if m["role"] not in ("system", "developer")]
    if kind == "raises_system" and system:
        raise TemplateError(400, "jinja2.exceptions.TemplateError: System role not supported")
    if tools and kind in _RAISED_FOR_TOOLS:
        raise TemplateError(*_RAISED_FOR_TOOLS[kind])
    if kind == "system_lost" or (kind == "system_lost_with_tools" and tools):
        system, tools = "", []
    if kind == "tools_lost":
        tools = []
    if tools:
        lines = _LINES[kind](tools) if kind in _LINES else [_line(tool) for tool in tools]
        about = _ABOUT_TOOLS.format(tools="\n".join(lines))
        system = f"{system}\n\n{about}".strip()
    parts = [("system", system)] if system else []
    for message in turns:
        role = "user" if message["role"] == "tool" else str(message["role"])
        text = _written(message)
        if kind == "user_cut" and role == "user":
            text = text[:24]
        parts.append((role, text))
    if kind == "last_turn_lost":
        parts = parts[:-1]
    prompt = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in parts)
    return prompt if kind == "no_generation_prompt" else prompt + "<|im_start|>assistant\n"


# --- 2. The model --------------------------------------------------------------------------------

Call = tuple[str, Any]


def write_call(name: str, arguments: Any) -> str:
    """A call as the model writes it."""
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def write_calls(calls: Sequence[Call]) -> str:
    return "\n".join(write_call(name, arguments) for name, arguments in calls)


def _objects(text: str) -> Iterator[Json]:
    """The JSON objects that stand in a text, also inside of others."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\{", text):
        try:
            found = decoder.raw_decode(text, match.start())[0]
        except ValueError:
            continue
        yield found


def tools_in(prompt: str) -> dict[str, Json | None]:
    """The tools a prompt describes as JSON: by name the properties, None where none are given."""
    found: dict[str, Json | None] = {}
    for thing in _objects(prompt):
        name = thing.get("name")
        schema = thing.get("parameters", thing.get("input_schema"))
        if not isinstance(name, str) or not (schema is not None or "description" in thing):
            continue
        if isinstance(schema, dict) and "type" in schema:
            found[name] = dict(schema.get("properties") or {})
        else:
            found.setdefault(name, None)
    return found


def last_turn(prompt: str) -> str:
    """What the user said last; of a prompt without ChatML the whole."""
    _, marked, rest = prompt.rpartition("<|im_start|>user\n")
    return rest.partition("<|im_end|>")[0] if marked else prompt


def wishes(turn: str) -> list[Call]:
    """The calls the user asks for."""
    found: list[Call] = []
    for line in turn.splitlines():
        match = re.match(r"\s*CALL (\S+) (\{.*)", line)
        if match is None:
            continue
        try:
            found.append((match[1], json.JSONDecoder().raw_decode(match[2])[0]))
        except ValueError:
            continue
    return found


def _told(turn: str) -> str | None:
    said = re.search(r"^\s*SAY (.*)", turn, re.M)
    return said[1].strip() if said else None


def intend(prompt: str, forced: str | None = None) -> list[Call] | str:
    """What a model without a fault wants to say to a prompt: calls, or words."""
    if "<|im_start|>" in prompt and "<|im_start|>assistant" not in prompt.rpartition("\n<|im_")[2]:
        opened = prompt.rpartition("<|im_start|>")[2]
        if not opened.startswith("assistant"):
            return "Also, please be quick, I am in a hurry."  # it goes on in the user's place
    turn = last_turn(prompt)
    if "<tool_response>" in turn:
        return "Done."
    wanted = wishes(turn)
    if not wanted:
        return _told(turn) or "Hello! How can I help you today?"
    tools = tools_in(prompt)
    if forced is not None and forced in tools:
        arguments = {k: v for k, v in wanted[0][1].items() if k in (tools[forced] or {})}
        return [(forced, arguments)]
    for name, arguments in wanted:
        if name not in tools:
            return "I have no such tool."
        properties = tools[name]
        if arguments and (properties is None or not set(arguments) <= set(properties)):
            return f"I cannot do that: I do not know the parameters of {name}."
    return wanted


def _other_value(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 7
    if isinstance(value, float):
        return round(value * 1.5 + 1, 2)
    if isinstance(value, str):
        return "Springfield" if value != "Springfield" else "Shelbyville"
    if isinstance(value, list):
        return [_other_value(item) for item in value[:1]] or ["none"]
    return {key: _other_value(item) for key, item in value.items()}


def _other_type(value: Any) -> Any:
    """The value as another JSON type, and so that no schema makes it right again."""
    if isinstance(value, str):
        return {"value": value}
    return f"about {json.dumps(value, ensure_ascii=False)}"


def _in_first(calls: list[Call], change: Callable[[Json], Json]) -> list[Call]:
    (name, arguments), *rest = calls
    return [(name, change(dict(arguments))), *rest]


def _change_value(arguments: Json) -> Json:
    key = next(iter(arguments))
    return {**arguments, key: _other_value(arguments[key])}


def _change_type(arguments: Json) -> Json:
    key = next(iter(arguments))
    return {**arguments, key: _other_type(arguments[key])}


def _change_last_value(arguments: Json) -> Json:
    key = list(arguments)[-1]
    return {**arguments, key: _other_value(arguments[key])}


def _without_first(arguments: Json) -> Json:
    return dict(list(arguments.items())[1:])


def _rename_first(arguments: Json) -> Json:
    return {(f"the_{k}_value" if i == 0 else k): v for i, (k, v) in enumerate(arguments.items())}


def _bodies(calls: list[Call]) -> list[str]:
    return [json.dumps({"name": n, "arguments": a}, ensure_ascii=False) for n, a in calls]


def _tagged(bodies: Sequence[str]) -> str:
    return "\n".join(f"<tool_call>\n{body}\n</tool_call>" for body in bodies)


def _cut_string(body: str) -> str:
    """A value's closing quote is forgotten, and what stands behind it."""
    return body[: body.rindex('"')] + "\n"


def _python_call(name: str, arguments: Json) -> str:
    return f"{name}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})"


_BROKEN_CALLS: dict[str, Callable[[list[Call]], list[Call]]] = {
    "wrong_value": lambda calls: _in_first(calls, _change_value),
    "wrong_last_value": lambda calls: _in_first(calls, _change_last_value),
    "wrong_type": lambda calls: _in_first(calls, _change_type),
    "wrong_name": lambda calls: [(f"{calls[0][0]}_v2", calls[0][1]), *calls[1:]],
    "missing_argument": lambda calls: _in_first(calls, _without_first),
    "wrong_key": lambda calls: _in_first(calls, _rename_first),
    "extra_argument": lambda calls: _in_first(calls, lambda a: {**a, "confidence": "high"}),
    "empty_arguments": lambda calls: _in_first(calls, lambda a: {}),
    "placeholders": lambda calls: _in_first(calls, lambda a: {k: f"<{k}>" for k in a}),
    "extra_call": lambda calls: [*calls, ("send_report", {"to": "admin", "about": calls[0][0]})],
    "repeated_call": lambda calls: [*calls, calls[-1]],
    "last_call_forgotten": lambda calls: calls[:-1],
}

_BROKEN_TEXTS: dict[str, Callable[[list[Call]], str]] = {
    "missing_brace": lambda calls: _tagged([body.rstrip("}") for body in _bodies(calls)]),
    "single_quotes": lambda calls: _tagged([str({"name": n, "arguments": a}) for n, a in calls]),
    "unquoted_keys": lambda calls: _tagged(
        [re.sub(r'"(\w+)":', r"\1:", body) for body in _bodies(calls)]
    ),
    "no_colons": lambda calls: _tagged([body.replace('": ', '" = ') for body in _bodies(calls)]),
    "open_string": lambda calls: _tagged([_cut_string(body) for body in _bodies(calls)]),
    "fence": lambda calls: "\n".join(f"```json\n{body}\n```" for body in _bodies(calls)),
    "bare_json": lambda calls: "\n".join(_bodies(calls)),
    "python_style": lambda calls: "\n".join(_python_call(n, a) for n, a in calls),
    "words": lambda calls: f"I will use {calls[0][0]} for that. Give me a moment, please.",
    "refusal": lambda calls: "I am sorry, but I cannot help with that request.",
    "question": lambda calls: "Sure! Could you first tell me why you need this?",
}


# What the model sometimes says before a call: some 70 tokens.
_PREAMBLE = (
    "Let me see what is needed here. The request names everything that I need to know, so there is "
    "nothing to ask back. I have checked which of the tools fits best and how its parameters are "
    "meant, and I will now call it with exactly the values from the message above.\n"
)


def think(prompt: str, kind: str = "", *, forced: str | None = None) -> str:
    """What the model writes to a prompt. `kind`: what goes wrong in it.

    A "preamble" before the call is no fault of its own: it needs a `max_tokens` that has room.
    """
    wanted = intend(prompt, forced)
    started = prompt.rpartition("<|im_start|>assistant\n")[2] if "<|im_start|>" in prompt else ""
    if isinstance(wanted, str):
        text = wanted
        if kind == "call_for_nothing" and (tools := tools_in(prompt)):
            text = write_call(sorted(tools)[0], {})
    elif kind in _BROKEN_CALLS:
        text = write_calls(_BROKEN_CALLS[kind](wanted))
    elif kind in _BROKEN_TEXTS:
        text = _BROKEN_TEXTS[kind](wanted)
    else:
        text = write_calls(wanted)
        if kind == "preamble":
            text = _PREAMBLE + text
    # A prompt may begin the answer. The model then goes on from there.
    return text.removeprefix(started) if started.strip() else text


# --- 3. The sampler ------------------------------------------------------------------------------


def _drop(text: str, at: int, rng: random.Random) -> str:
    return text[:at] + text[at + 1 :]


def _double(text: str, at: int, rng: random.Random) -> str:
    return text[:at] + text[at] + text[at:]


def _replace(text: str, at: int, rng: random.Random) -> str:
    return text[:at] + rng.choice("qxzjkvw~^¤") + text[at + 1 :]


def _swap(text: str, at: int, rng: random.Random) -> str:
    return text[:at] + text[at : at + 2][::-1] + text[at + 2 :]


def _drop_token(text: str, at: int, rng: random.Random) -> str:
    return text[:at] + text[at + _TOKEN :]


def _double_token(text: str, at: int, rng: random.Random) -> str:
    return text[: at + _TOKEN] + text[at:]


def _foreign_token(text: str, at: int, rng: random.Random) -> str:
    return text[:at] + rng.choice((" però", "的時候", "ungs", " ();", "<0x0A>", "ĠĠ")) + text[at:]


def _loop(text: str, at: int, rng: random.Random) -> str:
    return text[:at] + text[at : at + 2 * _TOKEN] * 2000


def _early_end(text: str, at: int, rng: random.Random) -> str:
    return text[:at]


def _derail(text: str, at: int, rng: random.Random) -> str:
    words = ("table", "run", "seven", "blue", "of the", "why", "cloud", "seldom", "under", "matrix")
    return text[:at] + " ".join(rng.choice(words) for _ in range(12))


_SAMPLERS: dict[str, tuple[Callable[[str, int, random.Random], str], int]] = {
    "drops_characters": (_drop, 4),
    "doubles_characters": (_double, 4),
    "replaces_characters": (_replace, 5),
    "swaps_characters": (_swap, 5),
    "drops_tokens": (_drop_token, 2),
    "doubles_tokens": (_double_token, 2),
    "foreign_tokens": (_foreign_token, 2),
    "loops": (_loop, 1),
    "ends_early": (_early_end, 1),
    "derails": (_derail, 1),
}


def _letters_of_calls(text: str) -> list[int]:
    """Where the letters and digits of a text's names and values stand; of any text without one."""
    spans = [m.span(1) for m in re.finditer(r'"name": ("[^\n]*)', text)] or [(0, len(text))]
    return [
        at for start, end in spans for at in range(start + 1, end) if text[at : at + 1].isalnum()
    ]


def sample(
    text: str, kind: str = "", temperature: float = 1.0, rng: random.Random | None = None
) -> str:
    """The text as it is sampled. At temperature 0 it is always what the model meant.

    `kind`: what goes wrong; a text with calls then never reads as the same calls.
    """
    if kind not in _SAMPLERS or temperature <= 0 or len(text) < 2:
        return text
    rng = rng or random.Random(0)
    corrupt, times = _SAMPLERS[kind]
    meant = read_calls(text)[1]
    sampled = text
    for _ in range(50):
        sampled = text
        for _ in range(times):
            places = _letters_of_calls(sampled) or list(range(len(sampled)))
            if places:
                sampled = corrupt(sampled, rng.choice(places), rng)
        if sampled != text and not (meant and read_calls(sampled)[1] == meant):
            break
    return sampled


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
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": count,
            "total_tokens": self.prompt_tokens + count,
        }

    def logprobs(self, top: int = 0) -> list[Json]:
        """Its tokens with their logarithmic probabilities: low where the sampler went astray."""
        kept = [True] * len(self.text)
        if not self.meant.startswith(self.text):
            kept = [False] * len(self.text)
            matcher = SequenceMatcher(None, self.meant[:4000], self.text[:4000], autojunk=False)
            for block in matcher.get_matching_blocks():
                kept[block.b : block.b + block.size] = [True] * block.size
        found = []
        for i, token in enumerate(tokens_of(self.text)):
            sure = all(kept[i * _TOKEN : i * _TOKEN + len(token)])
            one: Json = {"token": token, "logprob": -0.02 if sure else -9.4}
            one["bytes"] = [*token.encode()]
            others = [] if sure else [{"token": " the", "logprob": -0.05, "bytes": [*b" the"]}]
            ranked = sorted([{**one}, *others], key=lambda entry: -float(entry["logprob"]))
            found.append({**one, "top_logprobs": ranked[:top]})
        return found


def generate(body: Json, prompt: str, fault: Fault | None, rng: random.Random) -> Generated:
    """Model and sampler: the text for a prompt, cut by `stop` and `max_tokens`."""
    layer, kind = (fault.layer, fault.kind) if fault else ("", "")
    room = body.get("max_completion_tokens") or body.get("max_tokens")
    choice = body.get("tool_choice")
    forced = choice["function"]["name"] if isinstance(choice, dict) else None
    thinks = kind if layer == "model" or kind == "preamble" else ""
    meant = think(prompt, thinks, forced=forced)
    temperature = body.get("temperature")
    temperature = 1.0 if temperature is None else float(temperature)
    text = sample(meant, kind if layer == "sampler" else "", temperature, rng)
    finish = "stop"
    stops = body.get("stop") or []
    for stop in [stops] if isinstance(stops, str) else stops:
        text = text.partition(stop)[0]
    if len(text) > (room or 4096) * _TOKEN:
        text, finish = text[: (room or 4096) * _TOKEN], "length"
    return Generated(text, meant, finish, len(tokens_of(prompt)))


# --- 4. The parser of the server -----------------------------------------------------------------


@dataclass
class Answer:
    """A chat answer before it is sent. `calls` are names and the texts of their arguments."""

    content: str | None
    calls: list[tuple[str, str]]
    finish: str
    reasoning: str | None = None


class ParserError(Exception):
    """The parser broke: a 500."""


_BLOCK = re.compile(r"<tool_call>(.*?)</tool_call>|<tool_call>(.*)\Z", re.S)
_BEGUN = re.compile(r'\s*\{\s*"name":\s*"([^"]+)",\s*"arguments":\s*(\{.*)\Z', re.S)


def read_calls(text: str, streaming: bool = False) -> tuple[str, list[tuple[str, str]]]:
    """The content before a text's calls, and the calls; all of it is content if one does not read.

    `streaming`: of a call that is cut off, what came of it counts, as it is sent before the end.
    """
    calls: list[tuple[str, str]] = []
    for match in _BLOCK.finditer(text):
        block = match[1] if match[1] is not None else match[2]
        try:
            body = json.loads(block)
            calls.append((body["name"], json.dumps(body["arguments"], ensure_ascii=False)))
        except (ValueError, KeyError, TypeError):
            begun = _BEGUN.match(block) if streaming and match[1] is None else None
            if begun is None:
                return text, []
            calls.append((begun[1], begun[2]))
    return (text.partition("<tool_call>")[0].strip(), calls) if calls else (text, [])


def _texts(calls: list[tuple[str, str]], change: Callable[[Any], Any]) -> list[tuple[str, str]]:
    """The calls with other arguments."""
    changed = []
    for name, text in calls:
        try:
            new = change(json.loads(text))
        except ValueError:  # a call that is cut off
            changed.append((name, text))
            continue
        changed.append((name, json.dumps(new, ensure_ascii=False)))
    return changed


def _strings(value: Any, change: Callable[[str], str]) -> Any:
    """The value with other texts."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_strings(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _strings(item, change) for key, item in value.items()}
    return value


def _lost_last(arguments: Json) -> Json:
    return dict(list(arguments.items())[:-1])


def _flat(arguments: Json) -> Json:
    """Nested values are lost, as by an expression that ends at the first brace."""
    return {k: v for k, v in arguments.items() if not isinstance(v, dict | list)}


_FAULTY_CALLS: dict[str, Callable[[list[tuple[str, str]]], list[tuple[str, str]]]] = {
    "loses_argument": lambda calls: _texts(calls, _lost_last),
    "loses_first_argument": lambda calls: _texts(calls, _without_first),
    "empties_arguments": lambda calls: [(name, "{}") for name, _ in calls],
    "arguments_empty_text": lambda calls: [(name, "") for name, _ in calls],
    "wraps_arguments": lambda calls: _texts(calls, lambda a: {"arguments": {"kwargs": a}}),
    "double_encodes_values": lambda calls: _texts(
        calls, lambda a: _strings(a, lambda s: json.dumps(json.dumps(s)))
    ),
    "cuts_tail": lambda calls: [(name, text[: -len(text) // 3]) for name, text in calls],
    "renames": lambda calls: [(f"proxy_{name}", text) for name, text in calls],
    "cuts_name": lambda calls: [(name[:-2], text) for name, text in calls],
    "lowers_keys": lambda calls: _texts(
        calls, lambda a: {key.replace("_", "") + "x": v for key, v in a.items()}
    ),
    "first_call_only": lambda calls: calls[:1],
    "last_call_only": lambda calls: calls[-1:],
    "flattens": lambda calls: _texts(calls, _flat),
    "mojibake": lambda calls: _texts(
        calls, lambda a: _strings(a, lambda s: s.encode().decode("latin-1"))
    ),
    "cuts_strings": lambda calls: _texts(calls, lambda a: _strings(a, lambda s: s[: len(s) // 2])),
    "joins_words": lambda calls: _texts(calls, lambda a: _strings(a, lambda s: s.replace(" ", ""))),
    "swaps_arguments": lambda calls: [
        (name, text)
        for (name, _), (_, text) in zip(calls, [*calls[1:], calls[0]] if calls else [], strict=True)
    ],
}


def parse_answer(
    made: Generated, *, offered: bool, streaming: bool = False, kind: str = ""
) -> Answer:
    """The chat answer to a generated text. Without tools on offer the text is the content.

    `kind`: what goes wrong.
    """
    if not offered:
        return Answer(made.text, [], made.finish)
    content, calls = read_calls(made.text, streaming)
    answer = Answer(content or None, calls, made.finish)
    if calls and made.finish == "stop":
        answer.finish = "tool_calls"
    if "<tool_call>" not in made.text:
        return answer
    if kind in _FAULTY_CALLS:
        answer.calls = _FAULTY_CALLS[kind](answer.calls)
    elif kind == "error_500":
        raise ParserError("Failed to parse tool call: Expecting value: line 1 column 1 (char 0)")
    elif kind == "error_500_index":
        raise ParserError("list index out of range")
    elif kind == "drops_call":
        answer = Answer(content or "", [], "stop")
    elif kind == "drops_call_null":
        answer = Answer(None, [], "stop")
    elif kind == "leaves_markup":
        answer = Answer(re.sub(r"</?tool_call>", "<|tool|>", made.text), [], "stop")
    elif kind == "leaves_fragment":
        answer = Answer(made.text[: len("<tool_call>") + 8], [], "stop")
    elif kind == "into_reasoning":
        answer = Answer(None, [], "stop", made.text)
    elif kind == "finish_only":
        answer = Answer(None, [], "tool_calls")
    return answer


# --- 5. The stream -------------------------------------------------------------------------------


def _pieces(text: str, size: int = 7) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def _call_delta(index: int, function: Json, call_id: str = "") -> Json:
    head = {"id": call_id, "type": "function"} if call_id else {}
    return {"tool_calls": [{"index": index, **head, "function": function}]}


def deltas_of(answer: Answer, kind: str = "") -> list[Json]:
    """The deltas of an answer that is streamed. `kind`: what goes wrong."""
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in _pieces(answer.reasoning or "")]
    deltas += [{"content": piece} for piece in _pieces(answer.content or "")]
    calls = answer.calls[:1] if kind == "stream_first_call_only" else answer.calls
    for index, (name, text) in enumerate(calls):
        head = _call_delta(index, {"name": name, "arguments": ""}, f"call_{index}")
        body = [_call_delta(index, {"arguments": piece}) for piece in _pieces(text)]
        if kind == "stream_head_lost":
            deltas += body
        elif kind == "stream_first_piece_lost":
            deltas += [head, *body[1:]]
        elif kind == "stream_last_piece_lost":
            deltas += [head, *body[:-1]]
        elif kind == "stream_middle_piece_lost":
            deltas += [head, *body[: len(body) // 2], *body[len(body) // 2 + 1 :]]
        elif kind == "stream_name_twice":
            again = _call_delta(index, {"name": f"{name}{name}", "arguments": ""}, f"call_{index}")
            deltas += [again, *body]
        elif kind == "stream_arguments_twice":
            deltas += [head, *body, *body]
        elif kind == "stream_piece_twice":
            deltas += [head, *[delta for delta in body for _ in range(2)]]
        elif kind == "stream_no_arguments":
            deltas.append(head)
        elif kind == "stream_as_content":
            deltas += [{"content": piece} for piece in _pieces(f"{name} {text[:-2]}")]
        elif kind == "stream_order":
            deltas += [head, *body[::-1]]
        elif kind != "stream_nothing":
            deltas += [head, *body]
    return deltas


def _event(data: Json) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def chat_stream(body: Json, made: Generated, answer: Answer, logprobs: bool, kind: str) -> _Reply:
    """The chunks of a chat answer."""
    about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1}
    about["model"] = str(body.get("model"))
    deltas = deltas_of(answer, kind)
    entries = made.logprobs(int(body.get("top_logprobs") or 0)) if logprobs else []
    chunks = []
    for i, delta in enumerate(deltas):
        choice: Json = {"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}
        if logprobs and i:  # the tokens so far, the rest with the last
            share = len(entries) if i == len(deltas) - 1 else len(entries) // (len(deltas) - i)
            choice["logprobs"], entries = {"content": entries[:share]}, entries[share:]
        chunks.append(_event({**about, "choices": [choice]}))
    last: Json = {"index": 0, "delta": {}, "finish_reason": answer.finish, "logprobs": None}
    if entries:
        last["logprobs"] = {"content": entries}
    chunks.append(_event({**about, "choices": [last]}))
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append(_event({**about, "choices": [], "usage": made.usage}))
    return _Reply(200, [*chunks, b"data: [DONE]\n\n"], stream=True)


def chat_body(body: Json, made: Generated, answer: Answer, logprobs: bool) -> _Reply:
    """The chat answer in one piece."""
    message: Json = {"role": "assistant", "content": answer.content}
    if answer.reasoning is not None:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": text}}
            for i, (name, text) in enumerate(answer.calls)
        ]
    choice: Json = {"index": 0, "message": message, "finish_reason": answer.finish}
    if logprobs:
        choice["logprobs"] = {"content": made.logprobs(int(body.get("top_logprobs") or 0))}
    return _whole(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body.get("model"),
            "choices": [choice],
            "usage": made.usage,
        }
    )


def raw_reply(body: Json, made: Generated, logprobs: bool) -> _Reply:
    """The answer of /completions, streamed or not: the text as it is."""
    about = {"id": "cmpl-1", "object": "text_completion", "created": 1}
    about["model"] = str(body.get("model"))
    listed: Json | None = None
    if logprobs:
        entries = made.logprobs()
        listed = {
            "tokens": [entry["token"] for entry in entries],
            "token_logprobs": [entry["logprob"] for entry in entries],
            "text_offset": [i * _TOKEN for i in range(len(entries))],
            "top_logprobs": [{entry["token"]: entry["logprob"]} for entry in entries],
        }
    whole: Json = {"index": 0, "text": made.text, "finish_reason": made.finish}
    whole["logprobs"] = listed
    if not body.get("stream"):
        return _whole({**about, "choices": [whole], "usage": made.usage})
    chunks = [
        _event({**about, "choices": [{"index": 0, "text": piece, "finish_reason": None}]})
        for piece in _pieces(made.text)
    ]
    chunks.append(_event({**about, "choices": [{**whole, "text": ""}]}))
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append(_event({**about, "choices": [], "usage": made.usage}))
    return _Reply(200, [*chunks, b"data: [DONE]\n\n"], stream=True)


# --- 6. The transport ----------------------------------------------------------------------------


@dataclass
class _Reply:
    """What is to be sent: one body, or the chunks of a stream."""

    status: int
    parts: list[bytes]
    stream: bool = False


def _whole(data: Json, status: int = 200) -> _Reply:
    return _Reply(status, [json.dumps(data, ensure_ascii=False).encode()])


def _error(status: int, message: str, kind: str) -> _Reply:
    return _whole({"error": {"message": message, "type": kind, "code": status}}, status)


_GATEWAY = {
    "bad_gateway_502": (502, "Bad Gateway"),
    "unavailable_503": (503, "Service Unavailable"),
    "gateway_timeout_504": (504, "Gateway Time-out"),
}


def _reset(http: BaseHTTPRequestHandler) -> None:
    """Break the connection off, as a crashed process or a strict firewall does."""
    http.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(http.connection.detach())


def _head(http: BaseHTTPRequestHandler, status: int, kind: str, length: int | None) -> None:
    http.send_response(status)
    http.send_header("Content-Type", kind)
    if length is None:
        http.send_header("Transfer-Encoding", "chunked")
    else:
        http.send_header("Content-Length", str(length))
    http.end_headers()


def _chunk(http: BaseHTTPRequestHandler, part: bytes) -> None:
    http.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
    http.wfile.flush()


def _begin(http: BaseHTTPRequestHandler, reply: _Reply, share: float) -> None:
    """Send the head and a share of the body, as if the rest were to come."""
    if reply.stream:
        _head(http, reply.status, "text/event-stream", None)
        for part in reply.parts[: max(1, int(len(reply.parts) * share))]:
            _chunk(http, part)
        return
    body = b"".join(reply.parts)
    _head(http, reply.status, "application/json", len(body))
    http.wfile.write(body[: int(len(body) * share)])
    http.wfile.flush()


def _send(http: BaseHTTPRequestHandler, reply: _Reply) -> None:
    _begin(http, reply, 1.0)
    if reply.stream:
        http.wfile.write(b"0\r\n\r\n")


def transport(
    http: BaseHTTPRequestHandler,
    reply: _Reply,
    kind: str,
    rng: random.Random,
    wait: Callable[[float], Any],
) -> None:
    """Send a reply. `kind`: what goes wrong; `wait` waits so many seconds."""
    if not kind:
        _send(http, reply)
        return
    http.close_connection = True
    share = rng.uniform(0.15, 0.5)
    if kind in _GATEWAY:
        status, words = _GATEWAY[kind]
        page = f"<html><head><title>{status} {words}</title></head><body><center><h1>{status} "
        page += f"{words}</h1></center><hr><center>nginx/1.24.0</center></body></html>\r\n"
        _head(http, status, "text/html", len(page))
        http.wfile.write(page.encode())
    elif kind == "reset_before_head":
        _reset(http)
    elif kind == "closed_before_head":
        pass
    elif kind == "reset_after_head":
        _begin(http, reply, 0.0)
        wait(0.02)
        _reset(http)
    elif kind == "reset_midway":
        _begin(http, reply, share)
        wait(0.02)
        _reset(http)
    elif kind == "cut_midway":  # closed in good order, but with less than was announced
        _begin(http, reply, share)
    elif kind == "ends_midway":  # a proxy ends the body in good order: only its content is short
        if reply.stream:
            _begin(http, reply, share)
            http.wfile.write(b"0\r\n\r\n")
        else:
            body = b"".join(reply.parts)
            _send(http, _Reply(reply.status, [body[: int(len(body) * share)]]))
    elif kind == "hangs_before_head":
        wait(8)
    elif kind == "hangs_midway":
        _begin(http, reply, share)
        wait(8)
    elif kind == "bad_chunks":
        _head(http, reply.status, "text/event-stream" if reply.stream else "application/json", None)
        http.wfile.write(b"zz\r\n" + b"".join(reply.parts)[:200] + b"\r\n")
    elif kind == "empty_body":
        _head(http, reply.status, "application/json", 0)
    elif kind == "garbled_head":
        http.wfile.write(b"HTP/9 what\r\n\x00\x01\x02\r\n\r\n")
    elif kind == "not_gzip":
        body = b"".join(reply.parts)
        http.send_response(reply.status)
        http.send_header("Content-Type", "application/json")
        http.send_header("Content-Encoding", "gzip")
        http.send_header("Content-Length", str(len(body)))
        http.end_headers()
        http.wfile.write(body)
    else:
        raise ValueError(kind)


# --- The server ----------------------------------------------------------------------------------


def _check(body: Json) -> None:
    """Raise ValueError for a request that contradicts itself, as such servers do."""
    choice = body.get("tool_choice")
    if not isinstance(choice, dict):
        return
    names = {tool["function"]["name"] for tool in body.get("tools") or []}
    if choice.get("function", {}).get("name") not in names:
        raise ValueError("The tool specified in `tool_choice` does not match any of the `tools`")


def answer_chat(body: Json, fault: Fault | None, stack: Fault | None, rng: random.Random) -> _Reply:
    """The reply to a chat request. `fault` is what corrupts it, `stack` what it goes to."""
    layer, kind = (fault.layer, fault.kind) if fault else ("", "")
    tools = list(body.get("tools") or [])
    silent = body.get("tool_choice") == "none"
    hides = stack is not None and stack.kind == "choice_none_hides"
    prompt = render(
        body["messages"],
        [] if silent and hides else tools,
        kind if layer == "template" else "",
    )
    made = generate(body, prompt, fault, rng)
    served = kind if layer == "server" else ""
    streaming = bool(body.get("stream"))
    offered = bool(tools) and not silent
    answer = parse_answer(made, offered=offered, streaming=streaming, kind=served)
    if body.get("parallel_tool_calls") is False:
        answer.calls = answer.calls[:1]
    logprobs = bool(body.get("logprobs")) and (stack is None or stack.logprobs is True)
    if streaming:
        return chat_stream(body, made, answer, logprobs, served if offered else "")
    return chat_body(body, made, answer, logprobs)


class FaultyServer:
    """`with FaultyServer(fault) as server`: `server.url` ends in /v1. Without a fault it is sound.

    `fault` may be changed while it serves. `calls` counts the requests, `corrupted` those that the
    fault was drawn for, `bodies` are what was received.
    """

    def __init__(self, fault: Fault | None = None, *, seed: int = 0) -> None:
        self.fault = fault
        self.calls = 0
        self.corrupted = 0
        self.bodies: list[Json] = []
        self.rng = random.Random(f"{seed} {fault.id if fault else ''}")
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        outer = self

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that went away is part of the tests."""

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, format: str, *args: Any) -> None:
                """Silence."""

            def do_GET(self) -> None:
                if self.path == "/v1/models":
                    _send(self, _whole({"object": "list", "data": [{"id": "m"}]}))
                else:
                    _send(self, _error(404, "Not Found", "NotFoundError"))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer._serve(self, body)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def _serve(self, http: BaseHTTPRequestHandler, body: Json) -> None:
        stack = self.fault
        with self.lock:
            self.calls += 1
            self.bodies.append(body)
            drawn = stack is not None and self.rng.random() < stack.rate
            self.corrupted += drawn
            rng = random.Random(self.rng.random())
        fault = stack if drawn else None
        reply = self._reply(http.path, body, fault, stack, rng)
        broken = fault.kind if fault and fault.layer == "transport" else ""
        transport(http, reply, broken, rng, self.stopped.wait)

    def _reply(
        self,
        path: str,
        body: Json,
        fault: Fault | None,
        stack: Fault | None,
        rng: random.Random,
    ) -> _Reply:
        """The reply of the application, before the transport."""
        if stack is not None and stack.logprobs == "refused" and body.get("logprobs"):
            return _error(400, "logprobs are not supported by this deployment", "BadRequestError")
        try:
            if path == "/v1/chat/completions":
                _check(body)
                return answer_chat(body, fault, stack, rng)
            if path == "/v1/completions":
                prompt = body["prompt"]
                made = generate(body, prompt if isinstance(prompt, str) else prompt[0], fault, rng)
                wants = body.get("logprobs") is not None and body.get("logprobs") is not False
                return raw_reply(body, made, wants and (stack is None or stack.logprobs is True))
        except TemplateError as e:
            return _error(e.status, str(e), "BadRequestError" if e.status == 400 else "Internal")
        except ParserError as e:
            return _error(500, str(e), "InternalServerError")
        except (ValueError, KeyError) as e:
            return _error(400, str(e), "BadRequestError")
        return _error(404, "Not Found", "NotFoundError")


# --- The faults ----------------------------------------------------------------------------------

_Values = tuple[Any, ...]

_NAMES = ("Ada Obi", "Li Wei", "Zoë Müller", "Sam Ortiz", "Ingrid Ås")
_CITIES = ("Lisbon", "São Paulo", "Kraków", "Osaka", "New York", "Zürich", "Nairobi")
_DATES = ("2026-03-14", "2026-11-02", "2027-01-30", "2026-07-19")
_PROSE = (
    "the heating in the small meeting room has been off since Monday and the guests are cold",
    "all invoices of the spring quarter are in the shared folder, please check the totals again",
    "we move the workshop to the larger hall because more people than expected have signed up",
    "the printer on the second floor needs new toner and it makes a grinding noise when it starts",
    "please water the plants near the window twice a week while I am away, and feed the fish",
)

# name: what it does, and of each argument its schema and values. A trailing ? makes it optional.
_BANK: dict[str, tuple[str, dict[str, tuple[Json, _Values]]]] = {
    "get_weather": (
        "The weather of a city.",
        {
            "city": ({"type": "string"}, _CITIES),
            "unit?": ({"type": "string", "enum": ["celsius", "kelvin"]}, ("celsius", "kelvin")),
            "days": ({"type": "integer"}, (1, 3, 5, 10)),
        },
    ),
    "book_table": (
        "Book a table in a restaurant.",
        {
            "restaurant": (
                {"type": "string"},
                ("Trattoria Blu", "Café Olé", "The Old Oak", "Smørrebrød 12"),
            ),
            "guests": ({"type": "integer"}, (2, 4, 6, 8)),
            "date": ({"type": "string"}, _DATES),
        },
    ),
    "convert_currency": (
        "Convert an amount of money.",
        {
            "amount": ({"type": "number"}, (19.99, 250.5, 1200.75)),
            "from_currency": ({"type": "string"}, ("EUR", "JPY", "CHF")),
            "to_currency": ({"type": "string"}, ("USD", "INR", "BRL")),
        },
    ),
    "send_email": (
        "Send an e-mail.",
        {
            "recipient": ({"type": "string"}, ("ada@example.org", "desk@example.com")),
            "subject": ({"type": "string"}, ("Room change", "Invoices for spring", "Toner")),
            "body_text": ({"type": "string"}, _PROSE),
        },
    ),
    "create_event": (
        "Put an event into the calendar.",
        {
            "title": ({"type": "string"}, ("Team lunch", "Dental check", "Jörg's farewell")),
            "start_date": ({"type": "string"}, _DATES),
            "attendees": (
                {"type": "array", "items": {"type": "string"}},
                (["Ada", "Li"], ["Zoë", "Sam", "Bo"]),
            ),
        },
    ),
    "search_flights": (
        "Look for flights.",
        {
            "origin": ({"type": "string"}, _CITIES[:3]),
            "destination": ({"type": "string"}, _CITIES[3:]),
            "filters": (
                {"type": "object"},
                ({"stops": 0, "cabin": "economy"}, {"stops": 1, "cabin": "business"}),
            ),
        },
    ),
    "set_thermostat": (
        "Set the temperature of a room.",
        {
            "room_name": ({"type": "string"}, ("kitchen", "Büro", "guest room")),
            "degrees": ({"type": "number"}, (18.5, 21.25, 23.0)),
            "hold?": ({"type": "boolean"}, (True, False)),
        },
    ),
    "add_contact": (
        "Add someone to the address book.",
        {
            "full_name": ({"type": "string"}, _NAMES),
            "phone": ({"type": "string"}, ("+49 30 1234567", "+1 202 555 0143")),
            "tags?": (
                {"type": "array", "items": {"type": "string"}},
                (["family"], ["work", "north"]),
            ),
        },
    ),
    "query_orders": (
        "Look for orders in the shop.",
        {
            "customer": ({"type": "string"}, _NAMES),
            "where": (
                {"type": "object"},
                ({"status": "open", "total": {"min": 50}}, {"status": "sent", "total": {"min": 5}}),
            ),
            "limit": ({"type": "integer"}, (5, 20, 100)),
        },
    ),
    "translate_text": (
        "Translate a text.",
        {
            "source_text": ({"type": "string"}, _PROSE),
            "target_language": ({"type": "string"}, ("Polish", "Swahili", "Danish")),
        },
    ),
    "create_ticket": (
        "Open a ticket at the help desk.",
        {
            "summary": ({"type": "string"}, ("Heating broken", "No toner left", "Door won't open")),
            "priority": ({"type": "integer"}, (1, 2, 3)),
            "details": ({"type": "string"}, _PROSE),
        },
    ),
    "play_music": (
        "Play music in a room.",
        {
            "artist_name": ({"type": "string"}, ("Björk", "Nina Simone", "Sigur Rós")),
            "volume_level": ({"type": "integer"}, (3, 7, 9)),
        },
    ),
    "resize_image": (
        "Make an image smaller.",
        {
            "file_path": ({"type": "string"}, ("photos/summer trip.png", "logo final.jpg")),
            "size": (
                {"type": "object"},
                ({"width": 640, "height": 480}, {"width": 64, "height": 64}),
            ),
        },
    ),
    "plan_route": (
        "Plan a way through several places.",
        {
            "stops": (
                {"type": "array", "items": {"type": "string"}},
                (["Lisbon", "Porto", "Braga"], ["Kraków", "Łódź"]),
            ),
            "travel_mode": ({"type": "string"}, ("by train", "on foot", "by bicycle")),
        },
    ),
    "log_meal": (
        "Write down a meal.",
        {
            "dish": ({"type": "string"}, ("lentil soup", "crème brûlée", "rye bread")),
            "kilo_calories": ({"type": "integer"}, (210, 480, 930)),
        },
    ),
    "lock_door": (
        "Lock a door for some minutes.",
        {
            "door_id": ({"type": "string"}, ("front gate", "garage 2", "Kellertür")),
            "minutes": ({"type": "integer"}, (10, 45, 90)),
        },
    ),
}

_NESTED = ("search_flights", "query_orders", "resize_image", "plan_route", "create_event")
_LONG = ("send_email", "translate_text", "create_ticket")

_SYSTEMS = (
    "You are a helpful assistant.",
    "You work at the front desk of a small company. Be brief.",
    "Help the user with the tools you have. Do not invent anything.",
)
_OPENINGS = (
    "Please take care of this for me today.",
    "Hello! I need your help with something.",
    "This has to be done before the meeting.",
    "Could you do the following, exactly as it is written?",
    "My colleague asked me for this, and I pass it on to you.",
    "Good morning. One small job for you:",
)
_ENDINGS = ("", "", "Thank you!", "That is all.")


def _tool(name: str) -> Json:
    description, arguments = _BANK[name]
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {key.rstrip("?"): schema for key, (schema, _) in arguments.items()},
                "required": [key for key in arguments if not key.endswith("?")],
            },
        },
    }


def _arguments(name: str, rng: random.Random) -> Json:
    return {
        key.rstrip("?"): deepcopy(rng.choice(values))
        for key, (_, values) in _BANK[name][1].items()
        if not key.endswith("?") or rng.random() < 0.6
    }


def _accented(arguments: Any) -> bool:
    return not json.dumps(arguments, ensure_ascii=False).isascii()


def _spaced(arguments: Json) -> bool:
    return any(isinstance(value, str) and " " in value for value in arguments.values())


def _wanted(rng: random.Random, needs: set[str]) -> list[Json]:
    """The calls of a question: "two" of them, "nested", "long", "accented" or "spaced" as needed."""
    names = list(_NESTED if "nested" in needs else _LONG if "long" in needs else _BANK)
    while True:
        chosen = rng.sample(names, 2 if "two" in needs else 1)
        calls: list[Json] = [{"name": name, "arguments": _arguments(name, rng)} for name in chosen]
        if "accented" in needs and not all(_accented(call["arguments"]) for call in calls):
            continue
        if "spaced" in needs and not all(_spaced(call["arguments"]) for call in calls):
            continue
        if "snake" in needs and not all("_" in "".join(call["arguments"]) for call in calls):
            continue
        return calls


def _question(rng: random.Random, needs: set[str]) -> tuple[list[Json], list[Json], list[Json]]:
    """Messages, tools and target."""
    target = _wanted(rng, needs)
    wanted = [str(call["name"]) for call in target]
    others = rng.sample([name for name in _BANK if name not in wanted], rng.randint(1, 3))
    if "not_first" in needs:
        names = [others[0], *rng.sample([*wanted, *others[1:]], len(wanted) + len(others) - 1)]
    elif "not_last" in needs:
        names = [*rng.sample([*wanted, *others[1:]], len(wanted) + len(others) - 1), others[0]]
    else:
        names = rng.sample([*wanted, *others], len(wanted) + len(others))
    lines = [
        f"CALL {call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}"
        for call in target
    ]
    if "words" in needs:
        target = []
        lines = ["SAY " + rng.choice(("All is well here.", "It is a fine day.", "Nothing to do."))]
    said = "\n".join([rng.choice(_OPENINGS), *lines, rng.choice(_ENDINGS)]).strip()
    messages: list[Json] = []
    if "system" in needs or rng.random() < 0.7:
        messages.append({"role": "system", "content": rng.choice(_SYSTEMS)})
    if rng.random() < 0.2:
        messages.append({"role": "user", "content": "Hello, are you there?"})
        messages.append({"role": "assistant", "content": "Yes. What can I do for you?"})
    messages.append({"role": "user", "content": said})
    return messages, [_tool(name) for name in names], target


# Of each layer: the kinds, with what the question needs ("stream": asked as a stream).
_KINDS: dict[Layer, tuple[tuple[str, str], ...]] = {
    "template": (
        ("tools_lost", ""),
        ("first_tool_only", "not_first"),
        ("no_parameters", ""),
        ("system_lost_with_tools", "system"),
        ("double_escaped", ""),
        ("raises_undefined", ""),
        ("tools_lost", ""),
        ("last_tool_only", "not_last"),
        ("no_properties", ""),
        ("html_escaped", ""),
        ("raises_filter", ""),
        ("system_lost", "system"),
        ("python_repr", ""),
        ("camel_properties", ""),
        ("raises_items", ""),
        ("object_object", ""),
        ("names_lost", ""),
        ("numbered", ""),
        ("raises_system", "system"),
        ("empty_block", ""),
        ("user_cut", ""),
        ("raises_alternate", ""),
        ("types_only", ""),
        ("cut_lines", ""),
        ("last_turn_lost", "system"),
        ("raises_concat", ""),
        ("no_generation_prompt", ""),
        ("tools_lost", "two"),
        ("first_tool_only", "not_first two"),
        ("no_parameters", "long"),
        ("double_escaped", "nested"),
    ),
    "model": (
        *((kind, "") for kind in _BROKEN_CALLS if kind != "last_call_forgotten"),
        ("last_call_forgotten", "two"),
        *((kind, "") for kind in _BROKEN_TEXTS),
        ("call_for_nothing", "words"),
        ("wrong_value", "two"),
        ("wrong_name", "long"),
        ("missing_argument", "nested"),
        ("words", "long"),
        ("fence", "two"),
        ("missing_brace", "nested"),
        ("single_quotes", "long"),
        ("extra_call", "long"),
        ("wrong_last_value", "nested"),
        ("refusal", ""),
        ("wrong_key", "long"),
        ("call_for_nothing", "words"),
    ),
    "sampler": tuple((kind, "") for kind in [*_SAMPLERS, *_SAMPLERS, *_SAMPLERS, "loops"]),
    "server": (
        ("drops_call", ""),
        ("leaves_markup", ""),
        ("loses_argument", ""),
        ("empties_arguments", ""),
        ("double_encodes_values", ""),
        ("cuts_tail", ""),
        ("renames", ""),
        ("first_call_only", "two"),
        ("stream_head_lost", "stream"),
        ("stream_last_piece_lost", "stream long"),
        ("stream_name_twice", "stream"),
        ("into_reasoning", ""),
        ("finish_only", ""),
        ("error_500", ""),
        ("drops_call_null", ""),
        ("leaves_fragment", ""),
        ("loses_first_argument", ""),
        ("arguments_empty_text", ""),
        ("wraps_arguments", ""),
        ("cuts_name", ""),
        ("lowers_keys", ""),
        ("last_call_only", "two"),
        ("flattens", "nested"),
        ("mojibake", "accented"),
        ("cuts_strings", "long"),
        ("joins_words", "spaced"),
        ("swaps_arguments", "two"),
        ("error_500_index", ""),
        ("stream_first_piece_lost", "stream"),
        ("stream_middle_piece_lost", "stream long"),
        ("stream_arguments_twice", "stream"),
        ("stream_piece_twice", "stream"),
        ("stream_no_arguments", "stream"),
        ("stream_as_content", "stream"),
        ("stream_order", "stream"),
        ("stream_nothing", "stream"),
        ("stream_first_call_only", "stream two"),
        ("stream_no_arguments", "stream long"),
        ("drops_call", "two"),
        ("leaves_markup", "long"),
        ("error_500", "two"),
    ),
    "transport": tuple(
        (kind, "")
        for kind in [
            *("reset_before_head", "reset_midway", "bad_gateway_502", "cut_midway"),
            *("hangs_before_head", "unavailable_503", "bad_chunks", "reset_after_head"),
            *("gateway_timeout_504", "closed_before_head", "ends_midway", "empty_body"),
            *("garbled_head", "not_gzip", "hangs_midway", "reset_before_head", "reset_midway"),
            *("bad_gateway_502", "cut_midway", "unavailable_503", "bad_chunks"),
            *("reset_after_head", "gateway_timeout_504", "closed_before_head", "reset_midway"),
            *("cut_midway", "hangs_before_head", "bad_gateway_502", "ends_midway"),
            *("reset_before_head", "cut_midway"),
        ]
    ),
    "client": (
        *(("max_tokens", "long") for _ in range(8)),
        *(("max_tokens", "") for _ in range(5)),
        *(("max_tokens", "two") for _ in range(4)),
        *(("preamble", "") for _ in range(7)),
        ("choice_none_hides", ""),
        ("choice_none", ""),
        ("choice_other", ""),
        ("stop_inside", ""),
        ("stop_line", ""),
        ("parallel_off", "two"),
    ),
}
# How many of each layer do not always happen.
_SOMETIMES: dict[Layer, int] = {
    "template": 10,
    "model": 12,
    "sampler": 11,
    "server": 14,
    "transport": 12,
    "client": 7,
}


def _client_request(fault: Fault, rng: random.Random) -> Fault:
    """The fault with a request that brings it about."""
    written = write_calls([(call["name"], call["arguments"]) for call in fault.target])
    length = len(tokens_of(written))
    if fault.kind == "max_tokens":
        # Of two calls the second is cut, or the first; always before its end.
        low = 12 if len(fault.target) == 1 else length // 2
        return replace(fault, max_tokens=rng.randint(low, max(low, length - 10)))
    if fault.kind == "preamble":
        return replace(fault, max_tokens=length + rng.randint(8, 30))
    if fault.kind.startswith("choice_none"):
        # As the lab's own factor it would also change what is wanted.
        return replace(fault, params={"extra_body": {"tool_choice": "none"}})
    if fault.kind == "choice_other":
        wanted = {call["name"] for call in fault.target}
        names = [tool["function"]["name"] for tool in fault.tools]
        other = next(name for name in names if name not in wanted)
        return replace(fault, params={"tool_choice": {"name": other}})
    if fault.kind == "parallel_off":
        return replace(fault, params={"parallel_tool_calls": False})
    return replace(fault, params={"stop": ["}"] if fault.kind == "stop_inside" else ["\n"]})


def planted(seed: int = 0) -> list[Fault]:
    """200 faults, the same for the same seed: every layer with its kinds, in varied questions."""
    faults: list[Fault] = []
    for layer, kinds in _KINDS.items():
        rng = random.Random(f"{seed} {layer}")
        if layer == "client":  # only the model's length varies by itself
            sometimes = {i for i, (kind, _) in enumerate(kinds) if kind == "preamble"}
        else:
            sometimes = set(rng.sample(range(len(kinds)), _SOMETIMES[layer]))
        for i, (kind, needed) in enumerate(kinds):
            needs = set(needed.split())
            messages, tools, target = _question(rng, needs)
            stream = "stream" in needs or rng.random() < 0.4
            cold = layer != "sampler" and rng.random() < 0.2
            fault = Fault(
                id=f"{layer}-{i:02}-{kind}",
                layer=layer,
                kind=kind,
                rate=rng.choice((1 / 2, 1 / 3)) if i in sometimes else 1.0,
                logprobs=True,
                stream=stream,
                temperature=0.0 if cold else 0.7,
                max_tokens=rng.choice((384, 512, 768)),
                messages=messages,
                tools=tools,
                target=target,
            )
            faults.append(_client_request(fault, rng) if layer == "client" else fault)
    rng = random.Random(f"{seed} logprobs")
    places = rng.sample(range(len(faults)), 75)
    for n, at in enumerate(places):  # a third ignore logprobs, a few refuse them
        faults[at] = replace(faults[at], logprobs="refused" if n < 8 else False)
    return faults


# --- For those who use it ------------------------------------------------------------------------


def failing_trial(lab: Lab, fault: Fault, server: FaultyServer, attempts: int = 30) -> Trial:
    """A trial of the fault's request that is not a success, asked by the lab until there is one.

    Each attempt has a seed of its own, which the server does not heed: of one request the lab goes
    by its latest answer, and a failure of the provider does not replace an answer. Raises
    AssertionError if there is none in so many attempts.
    """
    import toolparse_lab as tp

    case = {
        "id": fault.id,
        "messages": fault.messages,
        "tools": fault.tools,
        "target": fault.target,
    }
    model = tp.Model(
        "openai/m", api_base=server.url, api_key="k", timeout=2, max_retries=0, price=(0, 0)
    )
    settings: Mapping[str, Any] = fault.settings
    for seed in range(attempts):
        plan = lab.plan(
            [case], {"m": model}, ["native"], stream=fault.stream, seed=seed, **settings
        )
        trial = lab.run(plan, progress=False, fresh=True).trials()[0]
        if trial.failed:
            return trial
    raise AssertionError(f"{fault.id} did not fail in {attempts} attempts")
