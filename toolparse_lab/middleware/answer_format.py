"""A caller's `response_format` beside tools: an answer is a call, or the form that the format asks
for.
"""

# How it works. A format that was sent as it is would forbid calls: the first answer would have the
# caller's shape, and no tool would ever be called. So what is sent admits both, by a schema whose
# branches are the calls and the caller's own, and the answer is read as the one or the other. A
# call in such an answer is exactly `{name, arguments}` of a tool that was offered; no reading that
# is kind to other keys applies, since everything else may be the caller's own.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..arguments.schema.references import resolve, unwrap_json_schema
from ..core.errors import BadOptions
from ..core.toolspec import ToolSpec
from ..core.values import write_canonical
from .choice_schema import Schema, any_of_schema

_EXPECTED = (
    '{"type": "json_schema", "json_schema": {"name": …, "schema": …}}, {"type": "json_object"}, '
    '{"type": "text"} or a pydantic model'
)
_EITHER = (
    "Your whole answer is a single JSON value without any tags, code fence or explanation: either "
    'one tool call, {"name": <tool>, "arguments": {…}}, or, when you need no tool, the answer '
    "itself"
)
_ANSWER = (
    "When you answer without calling a tool, your whole answer is a single JSON value, without any "
    "code fence or explanation"
)


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The format that an answer has where it is not a call.

    schema: a JSON Schema, None for any JSON object. name: of the schema. original: the format as
    the caller gave it.
    """

    schema: Any
    name: str
    original: Any

    def beside(self, tools: Sequence[ToolSpec]) -> Any:
        """Return the `response_format` that admits a call of one of the tools as well."""
        if self.schema is None:
            return self.original  # a call is a JSON object, too
        schema = any_of_schema(tools, answer=self.schema)
        return {"type": "json_schema", "json_schema": {"name": self.name, "schema": schema}}

    @property
    def words(self) -> str:
        """The sentence for a model that decodes by the format."""
        return f"{_EITHER}, {self._form}"

    @property
    def words_alone(self) -> str:
        """The sentence for a model to which no format is sent. It writes calls as ever."""
        return f"{_ANSWER}, {self._form}"

    @property
    def _form(self) -> str:
        """The end of the sentence that says the form of an answer."""
        if self.schema is None:
            return "as a JSON object."
        return f"which satisfies this JSON Schema:\n{write_canonical(self.schema)}"


def read_format(response_format: Any) -> AnswerFormat | None:
    """Return the format of a request's `response_format`.

    None if it asks for nothing.

    Raises BadOptions for a format that cannot stand beside tools: of a type that no one here knows,
    or one whose answers may look like calls.
    """
    if response_format is None:
        return None
    if callable(getattr(response_format, "model_json_schema", None)):
        name = str(getattr(response_format, "__name__", "answer"))
        return _checked(response_format.model_json_schema(), name, response_format)
    if not isinstance(response_format, Mapping):
        raise _refused(response_format)

    kind = response_format.get("type")
    if kind == "text":
        return None
    inner = response_format.get("json_schema")
    if kind == "json_schema" and isinstance(inner, Mapping) and "schema" in inner:
        return _checked(inner["schema"], str(inner.get("name") or "answer"), response_format)
    if kind == "json_object":
        # Some providers take the schema beside the type.
        schemas = (response_format.get(key) for key in ("response_schema", "schema"))
        schema = next((schema for schema in schemas if schema is not None), None)
        if schema is not None:
            return _checked(schema, "answer", response_format)
        return AnswerFormat(None, "answer", response_format)
    raise _refused(response_format)


def _refused(response_format: Any) -> BadOptions:
    """Return the error of a format that cannot stand beside tools."""
    return BadOptions(
        "this response_format cannot stand beside tools",
        got=response_format,
        expected=_EXPECTED,
        hint="send it without tools, in a last turn of its own",
    )


def _checked(schema: Any, name: str, original: Any) -> AnswerFormat:
    """Return the format of a schema.

    Raises BadOptions if its answers may look like calls.
    """
    node = resolve(schema, unwrap_json_schema(schema))
    properties = node.get("properties") if isinstance(node, Mapping) else None
    if isinstance(properties, Mapping) and {"name", "arguments"} <= properties.keys():
        raise BadOptions(
            "an answer of this response_format cannot be told from a tool call",
            got=sorted(properties),
            expected="a schema without the properties name and arguments beside each other",
            hint="rename one of them, or send the format without tools, in a last turn of its own",
        )
    return AnswerFormat(schema, name, original)


def add_format(request: Schema, tools: Sequence[ToolSpec], *, by_prompt: bool) -> tuple[str, bool]:
    """Make the `response_format` of a request one that admits calls.

    request: the request sent. It is changed. by_prompt: the provider takes no `response_format`, so
    that it drops out. Returns the tools that the model is told of it, and whether it decodes by
    it.

    Raises BadOptions for a format that cannot stand beside tools.
    """
    form = read_format(request.get("response_format"))
    if form is None:
        return "", False
    if by_prompt:
        del request["response_format"]
        return form.words_alone, False
    request["response_format"] = form.beside(tools)
    return form.words, True
