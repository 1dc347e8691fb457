"""Messages in OpenAI shape: an input with the prompt that explains its tools and how to call them.

Everything about a format comes with its protocol: its prompt texts, its rules about types and its
way to write a call. Nothing in this module asks which format it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeAlias
from typing import Protocol as Interface

from ...arguments.schema.validate import validate
from ...core.errors import BadCase, BadOptions, UnwritableCall
from ...core.toolspec import ToolSpec, tool_specs
from ...core.values import read_plain
from .shots import Shot, make_shots
from .signatures import write_tools_json, write_tools_lines, write_tools_signatures, write_tools_xml
from .type_rules import RulesLevel, TypeRules
from .wording import Wordings, asks_for, fill

Placement = Literal["first", "last"]
Message: TypeAlias = Mapping[str, Any]

# Written by a protocol to show the form of a call without any tool.
_FORM_CALL = ("TOOL_NAME", '{"PARAMETER":"VALUE"}')


class Explained(Interface):
    """The part of a protocol that a prompt needs, of ours or of somebody else's."""

    @property
    def id(self) -> str: ...

    @property
    def type_rules(self) -> TypeRules: ...

    @property
    def wordings(self) -> Wordings: ...

    def write_call(self, name: str, arguments_json: str, tool: ToolSpec | None = None) -> str: ...


class PromptBuilder(Interface):
    """A system prompt of the user's own, called with the parts of the built-in one.

    shots: examples as (request, written call). type_rules: whether the prompt should hold them, see
    `TypeRules.at`. Returns the text of the prompt.
    """

    def __call__(
        self,
        *,
        protocol_id: str,
        tools: tuple[ToolSpec, ...],
        shots: tuple[tuple[str, str], ...],
        type_rules: RulesLevel,
    ) -> str: ...


def render_system(
    protocol: Explained,
    tools: Any,
    *,
    wording: str = "plain",
    few_shot: int = 0,
    type_rules: RulesLevel = False,
) -> str:
    """Return the system prompt alone: tools, the form of a call, type rules and examples.

    The tools' own examples of their input are at its end. tools: anything `tool_specs` takes, or ""
    for none. A wording without a place for few-shot examples shows none here. `build_messages`
    gives them as turns. Raises BadOptions for an unknown wording, listing those there are.
    """
    specs = tool_specs(tools)
    # Before the early return: a wrong argument is an error without tools, too.
    template = protocol.wordings.template(wording)
    _check_few_shot(few_shot)
    if not specs:
        return ""
    shots = _shots(protocol, specs, make_shots(specs, few_shot))
    return _render(protocol, template, specs, shots, type_rules)


def fill_template(protocol: Explained, template: str, tools: Any) -> str:
    """Return a template of the caller's own, filled like the built-in ones.

    Placeholders: `{{tools_json}}`, `{{tools_lines}}`, `{{tools_signatures}}`, `{{tools_xml}}`,
    `{{type_rules}}` and `{{form}}`. Raises BadOptions for another one.
    """
    return _render(protocol, template, tool_specs(tools), (), True)


def build_messages(
    case_input: str | Sequence[Message],
    tools: Any,
    *,
    protocol: Explained,
    wording: str = "plain",
    few_shot: int = 2,
    type_rules: RulesLevel = False,
    placement: Placement = "first",
    target: Iterable[Mapping[str, Any]] | None = None,
    builder: PromptBuilder | None = None,
    on_error: Callable[[str, Mapping[str, Any]], None] | None = None,
) -> tuple[dict[str, Any], ...]:
    """Return the messages of one request, as new dicts in OpenAI shape.

    `case_input` is the user's text or a message list. The messages of a list stay as they are,
    except that an existing system message is merged with the prompt (prompt, blank line, theirs).
    With `placement="last"` the order is turned round, and if there is no system message the prompt
    goes to the end.

    `few_shot` examples are made from `tools`. None shows what the input, or `target` if given, asks
    for. They are in the prompt where its wording has a place for them, else as user and assistant
    turns before the input. One that the protocol cannot write drops out.

    `builder` replaces the system prompt. When it raises, the built-in one is used and
    `on_error(message, metadata)` is called. Without tools the input comes back unchanged.

    Raises BadOptions for an unknown wording, placement or count, BadCase for an input that is not
    text and no message list.
    """
    if placement not in ("first", "last"):
        raise BadOptions("the prompt goes first or last", got=placement, expected="first, last")
    messages = _read_input(case_input)
    prompt, turns = explain_tools(
        messages,
        tools,
        protocol=protocol,
        wording=wording,
        few_shot=few_shot,
        type_rules=type_rules,
        target=target,
        builder=builder,
        on_error=on_error,
    )
    if not tool_specs(tools):
        return tuple(messages)
    return tuple(_place(prompt, turns, messages, placement))


def explain_tools(
    case_input: str | Sequence[Message],
    tools: Any,
    *,
    protocol: Explained,
    wording: str = "plain",
    few_shot: int = 2,
    type_rules: RulesLevel = False,
    target: Iterable[Mapping[str, Any]] | None = None,
    builder: PromptBuilder | None = None,
    on_error: Callable[[str, Mapping[str, Any]], None] | None = None,
    template: str = "",
) -> tuple[str, list[dict[str, Any]]]:
    """Return the system prompt that `build_messages` adds, and the examples to follow it as turns.

    ("", []) without tools. template: of the caller's own, instead of a wording. Other arguments and
    errors are those of `build_messages`.
    """
    specs = tool_specs(tools)
    template = template or protocol.wordings.template(wording)
    _check_few_shot(few_shot)
    messages = _read_input(case_input)
    if not specs:
        return "", []

    shots = _shots(protocol, specs, shots_for(messages, specs, few_shot, target))
    if builder is not None:
        prompt = _ask_builder(builder, on_error, protocol.id, specs, shots, type_rules)
        if prompt is not None:
            return prompt, []  # a builder is handed the examples and shows them itself

    prompt = _render(protocol, template, specs, shots, type_rules)
    if asks_for(template, "examples"):
        return prompt, []
    turns = [(("user", request), ("assistant", call)) for request, call in shots]
    return prompt, [{"role": role, "content": text} for turn in turns for role, text in turn]


def _check_few_shot(few_shot: int) -> None:
    if isinstance(few_shot, bool) or not isinstance(few_shot, int) or not 0 <= few_shot <= 16:
        raise BadOptions("few_shot is a number of examples", got=few_shot, expected="0 to 16")


def shots_for(
    case_input: str | Sequence[Message],
    specs: Sequence[ToolSpec],
    count: int,
    target: Iterable[Mapping[str, Any]] | None = None,
) -> tuple[Shot, ...]:
    """Return the examples that `explain_tools` shows, which give away neither input nor target.

    Raises BadOptions for a count that is none from 0 to 16.
    """
    _check_few_shot(count)
    text = "\n".join([_text_of(message) for message in _read_input(case_input)])
    return make_shots(specs, count, text=text, target=target)


def _shots(
    protocol: Explained, specs: tuple[ToolSpec, ...], chosen: Iterable[Shot]
) -> tuple[tuple[str, str], ...]:
    tools = {tool.name: tool for tool in specs}  # a fixed example has one that is not among these
    shots: list[tuple[str, str]] = []
    for shot in chosen:
        # A format that cannot carry this call is shown by the other examples.
        with suppress(UnwritableCall):
            tool = tools.get(shot.name)
            shots.append((shot.request, protocol.write_call(shot.name, shot.arguments_json, tool)))
    return tuple(shots)


def _render(
    protocol: Explained,
    template: str,
    specs: tuple[ToolSpec, ...],
    shots: Sequence[tuple[str, str]],
    type_rules: RulesLevel,
) -> str:  # Functions, since a template asks for few of these parts and some take long to write.
    prompt = fill(
        template,
        {
            "tools_json": lambda: write_tools_json(specs),
            "tools_signatures": lambda: write_tools_signatures(specs),
            "tools_xml": lambda: write_tools_xml(specs),
            "tools_lines": lambda: write_tools_lines(specs),
            "type_rules": lambda: protocol.type_rules.at(type_rules),
            "examples": lambda: "\n\n".join(
                f"Request: {request}\nAnswer:\n{call}" for request, call in shots
            ),
            "form": lambda: protocol.write_call(*_FORM_CALL),
        },
    )
    return with_input_examples(prompt, protocol, specs)


def _ask_builder(
    builder: PromptBuilder,
    on_error: Callable[[str, Mapping[str, Any]], None] | None,
    protocol_id: str,
    specs: tuple[ToolSpec, ...],
    shots: tuple[tuple[str, str], ...],
    type_rules: RulesLevel,
) -> str | None:
    # None if it fails, which `on_error` is told
    try:
        prompt: object = builder(
            protocol_id=protocol_id, tools=specs, shots=shots, type_rules=type_rules
        )
        if isinstance(prompt, str):
            return prompt
        problem = f"it returned {type(prompt).__name__}, not text"
    except Exception as e:  # the user's code may raise anything, and the run goes on without it
        problem = f"{type(e).__name__}: {e}"
    if on_error is not None:
        on_error(
            "The prompt builder failed; the built-in prompt is used.",
            {"error": problem, "protocol": protocol_id},
        )
    return None


def _read_input(case_input: Any) -> list[dict[str, Any]]:
    if isinstance(case_input, str):
        return [{"role": "user", "content": case_input}]
    if isinstance(case_input, (list, tuple)) and all(
        isinstance(message, Mapping) and isinstance(message.get("role"), str)
        for message in case_input
    ):
        return [dict(message) for message in case_input]
    raise BadCase(
        "the input is neither a text nor a list of messages",
        got=case_input,
        expected="str or [{role, ...}]",
    )


def _text_of(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [str(part.get("text", "")) for part in parts if isinstance(part, Mapping)]
    return "\n".join(texts)


def _place(
    prompt: str, turns: list[dict[str, Any]], messages: list[dict[str, Any]], placement: Placement
) -> list[dict[str, Any]]:
    at = next((i for i, message in enumerate(messages) if message["role"] == "system"), None)
    if at is None:
        ours = {"role": "system", "content": prompt}
        return [ours, *turns, *messages] if placement == "first" else [*turns, *messages, ours]

    theirs = messages[at]
    merged = {**theirs, "content": merge_prompt(prompt, theirs.get("content"), placement)}
    return [*messages[:at], merged, *turns, *messages[at + 1 :]]


def merge_prompt(prompt: str, content: Any, placement: Placement) -> Any:
    """Return a system message's content with the prompt before or after it.

    A blank line separates the two. Content in parts gets the prompt as one more part.

    >>> merge_prompt("ours", "theirs", "first"), merge_prompt("ours", "theirs", "last")
    ('ours\\n\\ntheirs', 'theirs\\n\\nours')
    """
    if isinstance(content, list):
        # The blank line belongs to our part, so that theirs stay as they are.
        if placement == "first":
            return [{"type": "text", "text": f"{prompt}\n\n"}, *content]
        return [*content, {"type": "text", "text": f"\n\n{prompt}"}]

    if not content:
        return prompt
    return f"{prompt}\n\n{content}" if placement == "first" else f"{content}\n\n{prompt}"


_HEADING = "# Input examples"


class LeftOut(NamedTuple):
    """An example that the prompt does not show, and why. text: of its JSON."""

    tool: str
    text: str
    why: str


def input_examples(
    protocol: Explained, tools: Iterable[ToolSpec]
) -> tuple[tuple[str, ...], tuple[LeftOut, ...]]:
    """Return the calls of all examples of some tools, and the examples that are left out: they are
    no objects, break the tool's schema, or the format cannot write them.
    """
    calls: list[str] = []
    left_out: list[LeftOut] = []
    for tool in tools:
        for text in tool.examples:
            value = read_plain(text)
            problems = validate(value, tool.schema_json) if isinstance(value, dict) else ()
            why = next((p.message for p in problems if p.severity == "error"), "")
            if not isinstance(value, dict):
                why = "an example is an object"
            if not why:
                try:
                    calls.append(protocol.write_call(tool.name, text, tool))
                    continue
                except UnwritableCall as e:
                    why = e.message
            left_out.append(LeftOut(tool.name, text, why))
    return tuple(calls), tuple(left_out)


def with_input_examples(prompt: str, protocol: Explained, tools: Iterable[ToolSpec]) -> str:
    """Return a prompt with the examples of its tools at the end, itself if they have none."""
    calls, _ = input_examples(protocol, tools)
    return "\n\n".join((prompt.rstrip("\n"), _HEADING, *calls)) if calls else prompt
