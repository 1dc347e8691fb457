"""Answers conformance cases through the public API: python tests/conformance.py CASES.jsonl >
ANSWERS.jsonl

Maps each case's `op`, its camel-case option names and its protocol names onto this package, and the
results onto the shapes that `tests/cases/check.py` compares. Values that JSON cannot carry exactly
use its markers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import toolparse_lab as tp
from toolparse_lab.arguments.schema.sound import unwrap_json_schema
from toolparse_lab.arguments.schema.view import get_schema_type
from toolparse_lab.core.errors import BadToolChoice, RJSONParseError, ToolparseError
from toolparse_lab.core.toolspec import ToolSpec, tool_specs
from toolparse_lab.core.values import read_plain
from toolparse_lab.formats.base import Protocol
from toolparse_lab.formats.registry import protocol_of
from toolparse_lab.formats.scan import partial_start
from toolparse_lab.middleware import (
    ToolCallMiddleware,
    Turn,
    create_stream_parser,
    debug,
    extract_tool_call_segments,
    parse_generated_text,
    parts_of,
)

PROTOCOLS = {"morph-xml": "morph_xml", "qwen3coder": "qwen3_coder_xml", "yaml-xml": "yaml_xml"}
SHAPES = {
    "text-start": "ts", "text-delta": "td", "text-end": "te", "tool-input-start": "is",
    "tool-input-delta": "id", "tool-input-end": "ie", "tool-call": "TC", "finish": "F",
}  # fmt: skip


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """The result of one case in the shape of check.py's docstring, or of the files without `op`."""
    try:
        return _ANSWERS[case.get("op", "")](case)
    except ToolparseError as e:
        return {"error": _error(e)}


def _error(e: ToolparseError) -> dict[str, Any]:
    name = "SyntaxError" if isinstance(e, RJSONParseError) else type(e).__name__
    name = "Error" if isinstance(e, BadToolChoice) else name
    out: dict[str, Any] = {"class": name, "message": e.message}
    line = getattr(e, "line", None)
    if line is not None:
        out["line"] = line
        out["column"] = getattr(e, "column", None)
    cause = getattr(e, "cause", None)
    if isinstance(cause, ToolparseError):
        out["cause"] = _error(cause)
    return out


# values


def _value(x: Any) -> Any:
    """A value that `json.dumps` takes: a Decimal becomes the number that check.py compares with."""
    if isinstance(x, dict):
        return {k: _value(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [_value(v) for v in x]
    return float(x) if isinstance(x, Decimal) else x


def _given(x: Any) -> Any:
    """A case's value without its markers."""
    if isinstance(x, dict):
        if set(x) == {"$bigint"}:
            return int(x["$bigint"])
        return {k: _given(v) for k, v in x.items()}
    return [_given(v) for v in x] if isinstance(x, list) else x


def _snake(options: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "".join("_" + c.lower() if c.isupper() else c for c in k): v
        for k, v in (options or {}).items()
    }


def _coerce(case: dict[str, Any]) -> dict[str, Any]:
    return {"value": _value(tp.coerce_by_schema(_given(case["value"]), case.get("schema")))}


def _rjson_parse(case: dict[str, Any]) -> dict[str, Any]:
    return {"value": _value(tp.rjson.parse(case["text"], **_snake(case.get("options"))))}


def _rjson_transform(case: dict[str, Any]) -> dict[str, Any]:
    return {"value": tp.rjson.transform(case["text"])}


def _rjson_stringify(case: dict[str, Any]) -> dict[str, Any]:
    value = _given(case["value"])
    if "undef" in case:
        value = {**value, case["undef"]: None}
    return {"value": tp.rjson.stringify(value)}


def _rxml_parse(case: dict[str, Any]) -> dict[str, Any]:
    return {
        "value": _value(
            tp.rxml.parse(case["xml"], case.get("schema"), **_snake(case.get("options")))
        )
    }


def _rxml_stringify(case: dict[str, Any]) -> dict[str, Any]:
    options = _snake(case.get("options"))
    return {"value": tp.rxml.stringify(case["root"], _given(case["value"]), **options)}


def _rxml_nodes(case: dict[str, Any]) -> dict[str, Any]:
    options = _snake(case.get("options"))
    if case.get("how") == "node":
        return {"value": _node(tp.rxml.parse_node(case["xml"], **options))}
    nodes = tp.rxml.parse_without_schema(case["xml"], **options)
    if case.get("how") == "simplify":
        return {"value": _value(tp.rxml.simplify(nodes))}
    return {"value": [_node(n) for n in nodes]}


def _node(node: Any) -> Any:
    """A node as the cases write it."""
    if isinstance(node, str):
        return node
    return {**node, "children": [_node(c) for c in node["children"]]}


def _potential(case: dict[str, Any]) -> dict[str, Any]:
    text, search = case["text"], case["search"]
    at = text.find(search)
    if at < 0:
        at = partial_start(text, (search,))
    return {"value": at if text and at < len(text) else None}


def _schema_type(case: dict[str, Any]) -> dict[str, Any]:
    found = get_schema_type(case["schema"])
    return {"value": {"$undefined": True} if found is None else found}


def _schema_unwrap(case: dict[str, Any]) -> dict[str, Any]:
    return {"value": unwrap_json_schema(case["schema"])}


# protocols


def _protocol(case: dict[str, Any]) -> Protocol:
    options = case.get("protocolOptions") or {}
    name = case["protocol"]
    if options.get("toolCallStart") or options.get("toolCallEnd"):
        base = protocol_of(PROTOCOLS.get(name, name)).envelope
        given = {
            "tool_call_start": getattr(base, "openers", ("",))[0],
            "tool_call_end": getattr(base, "closers", ("",))[-1],
        }
        return tp.json_mix_protocol(**{**given, **_snake(options)})
    return protocol_of(PROTOCOLS.get(name, name))


def _tools(case: dict[str, Any]) -> tuple[ToolSpec, ...]:
    return tool_specs(
        [t for t in case.get("tools") or [] if t.get("type", "function") == "function"]
    )


def _compat(case: dict[str, Any]) -> Any:
    """The preset that the cases call `seed`."""
    return "ai-sdk-2" if case.get("compat") == "seed" else None


def _options(case: dict[str, Any]) -> dict[str, Any]:
    return {"repair": not (_compat(case) and case.get("protocol") == "morph-xml")}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] != "tool-call":
        return {"type": part["type"], "text": part["text"]}
    return {
        "type": "tool-call",
        "toolName": part["toolName"],
        "input": _value(read_plain(part["input"])),
        "inputRaw": part["input"],
    }


def _parse(case: dict[str, Any]) -> dict[str, Any]:
    errors: list[dict[str, str]] = []
    options = {**_options(case), "on_error": lambda message, _: errors.append({"message": message})}
    parts = parse_generated_text(_protocol(case), case["text"], _tools(case), options)
    called = any(p["type"] == "tool-call" for p in parts)
    return {
        "parts": [_part(p) for p in parts],
        "onError": errors,
        "finishReason": "tool-calls" if called else "stop",
    }


def _stream(case: dict[str, Any]) -> dict[str, Any]:
    chunks = [c for c in case["chunks"] if isinstance(c, str)]
    return _streamed(case, chunks)


def _streamed(case: dict[str, Any], chunks: list[str]) -> dict[str, Any]:
    errors: list[dict[str, str]] = []
    options = {
        **_options(case),
        "input_events": _compat(case) is None,
        "on_error": lambda message, _: errors.append({"message": message}),
    }
    stream = create_stream_parser(_protocol(case), _tools(case), options)
    events = [part for chunk in chunks for part in stream.feed(chunk)]
    events += stream.close()
    called = any(e["type"] == "tool-call" for e in events)
    events.append({"type": "finish", "finishReason": "tool-calls" if called else "stop"})
    out: dict[str, Any] = {
        "parts": _joined(events),
        "onError": errors,
        "shape": _shape(events),
        "finishReason": events[-1]["finishReason"],
    }
    if problems := _stream_problems(events):
        out["problems"] = problems
    if empty := _empty_blocks(events):
        out["emptyTextBlocks"] = empty
    return out


def _joined(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for e in events:
        if e["type"] == "text-start":
            parts.append({"type": "text", "text": ""})
        elif e["type"] == "text-delta":
            parts[-1]["text"] += e["delta"]
        elif e["type"] == "tool-call":
            parts.append(_part(e))
    return parts


def _shape(events: list[dict[str, Any]]) -> str:
    """Run-length coded kinds of events."""
    runs: list[list[Any]] = []
    for e in events:
        kind = SHAPES.get(e["type"])
        if kind is None:
            continue
        if runs and runs[-1][0] == kind:
            runs[-1][1] += 1
        else:
            runs.append([kind, 1])
    return " ".join(kind if n == 1 else f"{kind}*{n}" for kind, n in runs)


def _stream_problems(events: list[dict[str, Any]]) -> list[str]:
    """What a consumer would stumble over: unbalanced blocks, inputs that do not add up."""
    problems: list[str] = []
    open_text: str | None = None
    inputs: dict[str, str] = {}
    for e in events:
        kind = e["type"]
        if kind == "text-start":
            problems += ["text-start inside a text block"] if open_text is not None else []
            open_text = e["id"]
        elif kind == "text-delta" and e["id"] != open_text:
            problems.append("text-delta outside its block")
        elif kind == "text-end":
            problems += ["text-end of another block"] if e["id"] != open_text else []
            open_text = None
        elif kind == "tool-input-delta":
            inputs[e["id"]] = inputs.get(e["id"], "") + e["delta"]
        elif kind == "tool-call":
            if open_text is not None:
                problems.append("tool-call inside a text block")
            if e["toolCallId"] in inputs and inputs[e["toolCallId"]] != e["input"]:
                problems.append("deltas != final input")
    if open_text is not None:
        problems.append("text block never closed")
    return problems


def _empty_blocks(events: list[dict[str, Any]]) -> int:
    starts = [i for i, e in enumerate(events) if e["type"] == "text-start"]
    return sum(1 for i in starts if events[i + 1]["type"] == "text-end")


def _splits(case: dict[str, Any]) -> dict[str, Any]:
    """Every two-way split, a few sizes of chunks, and character by character."""
    text = case["text"]
    plans = [[text[:i], text[i:]] for i in range(len(text) + 1)]
    plans += [[text[i : i + n] for i in range(0, len(text), n)] for n in (1, 2, 3, 5, 7)]
    seen: dict[str, list[dict[str, Any]]] = {}
    problems: list[str] = []
    for plan in plans:
        result = _streamed(case, plan)
        parts = [{k: v for k, v in p.items() if k != "inputRaw"} for p in result["parts"]]
        seen.setdefault(json.dumps(_merged(parts)), parts)
        problems += result.get("problems", [])
    out: dict[str, Any] = {"distinct": len(seen), "parts": next(iter(seen.values()))}
    if problems:
        out["streamProblems"] = problems
    return out


def _merged(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for part in parts:
        if out and part["type"] == out[-1]["type"] == "text":
            out[-1] = {**out[-1], "text": out[-1]["text"] + part["text"]}
        else:
            out.append(part)
    return out


def _segments(case: dict[str, Any]) -> dict[str, Any]:
    return {"segments": extract_tool_call_segments(_protocol(case), case["text"], _tools(case))}


def _format(case: dict[str, Any]) -> dict[str, Any]:
    protocol, tools = _protocol(case), {t.name: t for t in _tools(case)}
    out: dict[str, Any] = {"tools": protocol.format_tools(tools.values(), lambda text: text)}
    if "toolCall" in case:
        name = case["toolCall"].get("toolName") or case["toolCall"].get("name")
        out["toolCall"] = protocol.format_tool_call(case["toolCall"], tools.get(name))
    if "toolResult" in case:
        out["toolResponse"] = protocol.format_tool_response(
            case["toolResult"], compat=_compat(case)
        )
    return out


# the middleware


def _middleware(case: dict[str, Any], errors: list[dict[str, str]]) -> ToolCallMiddleware:
    return tp.create_tool_middleware(
        _protocol(case), compat=_compat(case), placement=case.get("placement", "first"),
        unknown_tools="call", on_error=lambda message, _: errors.append({"message": message}),
    )  # fmt: skip


def _turn(case: dict[str, Any], middleware: ToolCallMiddleware) -> Turn:
    prompt = case.get("prompt", [{"role": "user", "content": [{"type": "text", "text": "hi"}]}])
    given = {"messages": prompt, "tools": case.get("tools"), "tool_choice": case.get("toolChoice")}
    return middleware.transform_params(given)


def _transform(case: dict[str, Any]) -> dict[str, Any]:
    errors: list[dict[str, str]] = []
    turn = _turn(case, _middleware(case, errors))
    flag = {"type": turn.choice, **({"toolName": turn.tool_name} if turn.tool_name else {})}
    return {
        "prompt": [_as_parts(m) for m in turn.params["messages"]],
        "tools": turn.params.get("tools", []),
        "toolChoice": turn.params.get("tool_choice"),
        "responseFormat": _response_format(turn),
        "toolCallMiddleware": {
            "originalTools": [{"name": t.name, "inputSchema": t.schema_json} for t in turn.tools],
            "toolChoice": flag if turn.forced else None,
        },
        "onError": errors,
    }


def _as_parts(message: dict[str, Any]) -> dict[str, Any]:
    """A message as an AI SDK has it: content in parts, a system message's as text."""
    content = message["content"]
    if isinstance(content, str) and message["role"] != "system":
        content = [{"type": "text", "text": content}]
    return {**message, "content": content}


def _response_format(turn: Turn) -> dict[str, Any] | None:
    given = turn.params.get("response_format")
    if given is None:
        return None
    schema = given["json_schema"]
    named = {k: schema[k] for k in ("name", "description") if k in schema} if turn.tool_name else {}
    return {"type": "json", "schema": schema["schema"], **named}


def _generate(case: dict[str, Any]) -> dict[str, Any]:
    errors: list[dict[str, str]] = []
    middleware = _middleware(case, errors)
    turn = _turn(case, middleware)
    asked = (case.get("providerOptions") or {}).get("toolCallMiddleware", {})
    summary: dict[str, str] | None = {} if "debugSummary" in asked else None
    parts: list[dict[str, Any]] = []
    finish = "stop"
    content = case.get("content") or [{"type": "text", "text": case["text"]}]
    if turn.forced:  # one call, however many parts its text comes in
        said = "".join(i["text"] for i in content if i["type"] == "text")
        content = [*(i for i in content if i["type"] != "text"), {"type": "text", "text": said}]
    for item in content:
        if item["type"] == "text":
            answer = middleware.wrap_generate(
                turn, item["text"], finish_reason=finish, debug_summary=summary
            )
            parts += [_part(p) for p in (parts_of(answer.result) if answer.result else [item])]
        elif item["type"] == "tool-call":
            answer = middleware.wrap_generate(
                turn, None, finish_reason=finish, tool_calls=[_native(item)]
            )
            parts += [
                _part({**item, "input": c["function"]["arguments"]}) for c in answer.tool_calls
            ]
        else:
            parts.append(item)
            continue
        finish = answer.finish_reason
    out: dict[str, Any] = {
        "parts": parts,
        "onError": errors,
        "finishReason": finish.replace("_", "-"),
    }
    if summary is not None:
        out["debugSummary"] = {
            "originalText": summary["original_text"],
            "toolCalls": summary["tool_calls"],
        }
    return out


def _native(item: dict[str, Any]) -> dict[str, Any]:
    """A call that the provider read itself, in OpenAI shape."""
    called = {"name": item["toolName"], "arguments": item["input"]}
    ran = {"provider_executed": True} if item.get("providerExecuted") else {}
    return {"id": item.get("toolCallId"), "type": "function", "function": called, **ran}


def _wrap_stream(case: dict[str, Any]) -> dict[str, Any]:
    errors: list[dict[str, str]] = []
    middleware = _middleware(case, errors)
    stream = middleware.wrap_stream(_turn(case, middleware))
    deltas = [d for chunk in case["chunks"] if isinstance(chunk, str) for d in stream.feed(chunk)]
    last, answer = stream.close("stop")
    events = list(_as_events([*deltas, *last]))
    events.append({"type": "finish", "finishReason": answer.finish_reason.replace("_", "-")})
    out = {
        "parts": _joined(events),
        "onError": errors,
        "shape": _shape(events),
        "finishReason": events[-1]["finishReason"],
    }
    if problems := _stream_problems(events):
        out["problems"] = problems
    return out


def _as_events(deltas: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Deltas as an AI SDK's stream parts."""
    block, is_open = 0, False
    for delta in deltas:
        if "content" in delta:
            if not is_open:
                yield {"type": "text-start", "id": f"text_{block}"}
                is_open = True
            yield {"type": "text-delta", "id": f"text_{block}", "delta": delta["content"]}
            continue
        if is_open:
            yield {"type": "text-end", "id": f"text_{block}"}
            block, is_open = block + 1, False
        if "tool_input" in delta:
            yield delta["tool_input"]
        for call in delta.get("tool_calls", ()):
            name, given = call["function"]["name"], call["function"]["arguments"]
            yield {"type": "tool-call", "toolCallId": call["id"], "toolName": name, "input": given}
    if is_open:
        yield {"type": "text-end", "id": f"text_{block}"}


def _debug_level(case: dict[str, Any]) -> dict[str, Any]:
    return {"value": debug.level_of(case["env"])}


def _debug_summary(case: dict[str, Any]) -> dict[str, Any]:
    style = debug.style_of(case.get("style"))
    return {
        "lines": debug.render_summary(
            case.get("originalText") or "", case.get("toolCalls") or [], style
        )
    }


# files without `op`


def _plain(case: dict[str, Any]) -> dict[str, Any]:
    if "raw" in case:
        result = tp.parse(case["raw"], case.get("format", "auto"), case.get("tools"))
        return {
            "calls": [
                {"name": c.name, "arguments": _value(c.arguments)} for c in result.calls if c.ok
            ]
        }
    repaired = tp.rjson.repair(case["text"])
    return {"values": _value(list(repaired.values))} if repaired.ok else {"refused": True}


_ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "": _plain,
    "coerce": _coerce,
    "rjson": _rjson_parse,
    "rjson.parse": _rjson_parse,
    "rjson.transform": _rjson_transform,
    "rjson.stringify": _rjson_stringify,
    "rxml.parse": _rxml_parse,
    "rxml.stringify": _rxml_stringify,
    "rxml.nodes": _rxml_nodes,
    "potential": _potential,
    "schema.type": _schema_type,
    "schema.unwrap": _schema_unwrap,
    "parse": _parse,
    "stream": _stream,
    "splits": _splits,
    "segments": _segments,
    "format": _format,
    "transform": _transform,
    "generate": _generate,
    "wrapstream": _wrap_stream,
    "debug.level": _debug_level,
    "debug.summary": _debug_summary,
}


def main(argv: list[str]) -> int:
    """Prints one {"id", "result"} line for each case of the files named."""
    for name in argv:
        with open(name, encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    case = json.loads(line)
                    print(json.dumps({"id": case.get("id"), "result": answer(case)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
