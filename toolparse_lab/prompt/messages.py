"""Requests in OpenAI shape: a case's input with the prompt that explains its tools and the form of a call.

The form itself is not known here: whoever asks passes the protocol's writer, `write_call(name, arguments_json)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from ..errors import BadCase, BadOptions, UnwritableCall
from ..toolspec import ToolSpec, tool_specs
from .shots import Shot, make_shots
from .signatures import write_tools_json, write_tools_signatures, write_tools_xml
from .type_rules import Form, render_type_rules
from .wording import asks_for, fill, read_template

WriteCall: TypeAlias = Callable[[str, str], str]
Placement = Literal["first", "last"]
Message: TypeAlias = Mapping[str, Any]

_FORMS: Mapping[str, Form] = {"morph_xml": "xml", "qwen3_coder_xml": "tags"}  # all others: json
_FORM_CALL = ("TOOL_NAME", '{"PARAMETER":"VALUE"}')


class PromptBuilder(Protocol):
    """A system prompt of the user's own: called with what the built-in one is made from, returns its text."""

    def __call__(
        self, *, protocol_id: str, tools: tuple[ToolSpec, ...], shots: tuple[tuple[str, str], ...], type_rules: bool
    ) -> str: ...


def render_system(
    protocol_id: str,
    tools: Any,
    *,
    wording: str = "plain",
    write_call: WriteCall | None = None,
    few_shot: int = 0,
    type_rules: bool = False,
) -> str:
    """The system prompt alone: tools, the form of a call, type rules and examples; "" where there are no tools.

    `tools` is anything `tool_specs` takes. A wording without a place for examples shows none here; `build_messages`
    gives them as turns. Examples and the wordings of a protocol without texts of its own need
    `write_call`. Raises BadOptions for an unknown wording, listing those there are.
    """
    specs = tool_specs(tools)
    template = read_template(protocol_id, wording)
    _check_few_shot(few_shot)
    shots = _written(make_shots(specs, few_shot), write_call)
    return _render(protocol_id, template, specs, shots, write_call, type_rules) if specs else ""


def fill_template(protocol_id: str, template: str, tools: Any, *, write_call: WriteCall | None = None) -> str:
    """A template of the caller's own, filled as the built-in ones are: `{{tools_json}}`, `{{tools_signatures}}`,
    `{{tools_xml}}`, `{{type_rules}}` and `{{form}}`. Raises BadOptions for another placeholder."""
    return _render(protocol_id, template, tool_specs(tools), (), write_call, True)


def build_messages(
    case_input: str | Sequence[Message],
    tools: Any,
    *,
    protocol_id: str,
    write_call: WriteCall,
    wording: str = "plain",
    few_shot: int = 2,
    type_rules: bool = False,
    placement: Placement = "first",
    target: Iterable[Mapping[str, Any]] | None = None,
    builder: PromptBuilder | None = None,
    on_error: Callable[[str, Mapping[str, Any]], None] | None = None,
) -> tuple[dict[str, Any], ...]:
    """The messages of one request, as new dicts in OpenAI shape.

    `case_input` is the user's text or a message list; the messages of a list are kept as they are, except that an
    existing system message is merged with the prompt (prompt, blank line, theirs). With `placement="last"` the order
    is turned round, and where there is no system message the prompt goes to the end.

    `few_shot` examples are made from `tools`; none shows what the input, or `target` where given, asks for. They
    stand in the prompt where its wording has a place for them, else as user and assistant turns before the input.
    One that the protocol cannot write is left out.

    `builder` replaces the system prompt. When it raises, the built-in one is used and `on_error(message, metadata)`
    is called. Without tools the input comes back unchanged.

    Raises BadOptions for an unknown wording, placement or count, BadCase for an input that is no text and no
    message list.
    """
    if placement not in ("first", "last"):
        raise BadOptions("the prompt goes first or last", got=placement, expected="first, last")
    messages = _read_input(case_input)
    prompt, turns = explain_tools(
        messages, tools, protocol_id=protocol_id, write_call=write_call, wording=wording, few_shot=few_shot,
        type_rules=type_rules, target=target, builder=builder, on_error=on_error,
    )  # fmt: skip
    return tuple(_place(prompt, turns, messages, placement) if tool_specs(tools) else messages)


def explain_tools(
    case_input: str | Sequence[Message],
    tools: Any,
    *,
    protocol_id: str,
    write_call: WriteCall,
    wording: str = "plain",
    few_shot: int = 2,
    type_rules: bool = False,
    target: Iterable[Mapping[str, Any]] | None = None,
    builder: PromptBuilder | None = None,
    on_error: Callable[[str, Mapping[str, Any]], None] | None = None,
) -> tuple[str, list[dict[str, Any]]]:
    """What `build_messages` adds to an input: the system prompt, and the examples that come as turns behind it.

    ("", []) without tools. Arguments and errors are those of `build_messages`.
    """
    specs = tool_specs(tools)
    template = read_template(protocol_id, wording)
    _check_few_shot(few_shot)
    messages = _read_input(case_input)
    if not specs:
        return "", []
    drawn = make_shots(specs, few_shot, text="\n".join(_text_of(m) for m in messages), target=target)
    shots = _written(drawn, write_call)
    prompt = _ask_builder(builder, on_error, protocol_id, specs, shots, type_rules) if builder else None
    if prompt is not None:
        return prompt, []
    prompt = _render(protocol_id, template, specs, shots, write_call, type_rules)
    return prompt, [] if asks_for(template, "examples") else _turns(shots)


def _check_few_shot(few_shot: int) -> None:
    if isinstance(few_shot, bool) or not isinstance(few_shot, int) or not 0 <= few_shot <= 16:
        raise BadOptions("few_shot is a number of examples", got=few_shot, expected="0 to 16")


def _written(shots: Sequence[Shot], write_call: WriteCall | None) -> tuple[tuple[str, str], ...]:
    if not shots:
        return ()
    if write_call is None:
        raise BadOptions("examples need the protocol's writer", got="write_call=None", expected="write_call")
    written: list[tuple[str, str]] = []
    for shot in shots:
        try:
            written.append((shot.request, write_call(shot.name, shot.arguments_json)))
        except UnwritableCall:
            continue  # a format that cannot carry this call is shown by the other examples
    return tuple(written)


def _render(
    protocol_id: str,
    template: str,
    specs: tuple[ToolSpec, ...],
    shots: Sequence[tuple[str, str]],
    write_call: WriteCall | None,
    type_rules: bool,
) -> str:
    def form() -> str:
        if write_call is None:
            raise BadOptions(
                f"protocol {protocol_id!r} has no prompt texts of its own, so its form must be shown by its writer",
                got="write_call=None",
                expected="write_call",
            )
        return write_call(*_FORM_CALL)

    return fill(
        template,
        {
            "tools_json": lambda: write_tools_json(specs),
            "tools_signatures": lambda: write_tools_signatures(specs),
            "tools_xml": lambda: write_tools_xml(specs),
            "type_rules": lambda: render_type_rules(_FORMS.get(protocol_id, "json")) if type_rules else "",
            "examples": lambda: "\n\n".join(f"Request: {request}\nAnswer:\n{call}" for request, call in shots),
            "form": form,
        },
    )


def _ask_builder(
    builder: PromptBuilder,
    on_error: Callable[[str, Mapping[str, Any]], None] | None,
    protocol_id: str,
    specs: tuple[ToolSpec, ...],
    shots: tuple[tuple[str, str], ...],
    type_rules: bool,
) -> str | None:
    try:
        prompt: object = builder(protocol_id=protocol_id, tools=specs, shots=shots, type_rules=type_rules)
        if isinstance(prompt, str):
            return prompt
        problem = f"it returned {type(prompt).__name__}, not text"
    except Exception as e:
        problem = f"{type(e).__name__}: {e}"
    if on_error is not None:
        on_error("The prompt builder failed; the built-in prompt is used.", {"error": problem, "protocol": protocol_id})
    return None


def _read_input(case_input: Any) -> list[dict[str, Any]]:
    if isinstance(case_input, str):
        return [{"role": "user", "content": case_input}]
    if isinstance(case_input, (list, tuple)) and all(
        isinstance(m, Mapping) and isinstance(m.get("role"), str) for m in case_input
    ):
        return [dict(m) for m in case_input]
    raise BadCase("the input is neither a text nor a list of messages", got=case_input, expected="str or [{role, ...}]")


def _text_of(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(p.get("text", "")) for p in parts if isinstance(p, Mapping))


def _turns(shots: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        message
        for request, call in shots
        for message in ({"role": "user", "content": request}, {"role": "assistant", "content": call})
    ]


def _place(
    prompt: str, turns: list[dict[str, Any]], messages: list[dict[str, Any]], placement: Placement
) -> list[dict[str, Any]]:
    at = next((i for i, m in enumerate(messages) if m["role"] == "system"), None)
    if at is None:
        ours = {"role": "system", "content": prompt}
        return [ours, *turns, *messages] if placement == "first" else [*turns, *messages, ours]
    theirs = messages[at]
    merged = {**theirs, "content": merge_prompt(prompt, theirs.get("content"), placement)}
    return [*messages[:at], merged, *turns, *messages[at + 1 :]]


def merge_prompt(prompt: str, content: Any, placement: Placement) -> Any:
    """The content of a system message with the prompt before or behind it, a blank line between the two."""
    if isinstance(content, list):
        ours = {"type": "text", "text": f"{prompt}\n\n" if placement == "first" else f"\n\n{prompt}"}
        return [ours, *content] if placement == "first" else [*content, ours]
    if not content:
        return prompt
    return f"{prompt}\n\n{content}" if placement == "first" else f"{content}\n\n{prompt}"
