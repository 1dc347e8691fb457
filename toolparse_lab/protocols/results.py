"""How the result of a tool is written for the model: one form a family of formats, and what a result may look like.

A result is hostile text: a web page may quote the format's own delimiters. Where the format carries JSON or XML they
are escaped, so that the model reads the same value and no delimiter stands in the text. Raw text has no escape: it
stays as it is as long as no delimiter stands in it, and is written as a JSON string otherwise. What no form can hide
is a delimiter made of nothing but JSON's own brackets, commas and quotes, since the value itself writes those.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from typing import Protocol as Interface

from ..errors import BadOptions, RXMLStringifyError, UnwritableCall
from ..values import BigNum, Num, Value, write_canonical

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_ODD_NAME = re.compile(r"[^\w.:/-]")
_VALUES = ("text", "json", "error-text", "error-json", "content")
_MISSING: Any = object()
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back. output: as it was handed over. content: what the model is to read of it, a text or a
    JSON value. call_id: of the call it answers, where that has one."""

    name: str
    output: Value
    content: Value
    call_id: str = ""

    @classmethod
    def of(cls, x: Any) -> ToolResult:
        """A result from `{toolName, output | result}`, `{name, content}`, an OpenAI tool message with a name, or a
        ToolResult. Keys may be written in snake case. Raises BadOptions for anything else.

        >>> ToolResult.of({"toolName": "f", "output": {"type": "error-text", "value": "no such city"}}).content
        '[Error: no such city]'
        """
        if isinstance(x, ToolResult):
            return x
        if not isinstance(x, Mapping):
            raise BadOptions("this is no tool result", got=type(x).__name__, expected="{toolName, output}")
        name = _first(x, "toolName", "tool_name", "name")
        if not isinstance(name, str) or not name:
            raise BadOptions("a tool result names its tool", got=sorted(map(str, x)), expected="toolName or name")
        output = _first(x, "output", "result", "content")
        if output is _MISSING:
            raise BadOptions("a tool result without a result", got=sorted(map(str, x)), expected="output, or content")
        call_id = _first(x, "toolCallId", "tool_call_id", "id")
        value = _json_value(output)
        return cls(name, value, unwrap(value), call_id if isinstance(call_id, str) else "")


def _first(x: Mapping[Any, Any], *keys: str) -> Any:
    return next((x[k] for k in keys if k in x), _MISSING)


def _json_value(x: Any, depth: int = 0) -> Value:
    """Any Python value as JSON can carry it: what it cannot carry becomes its text. Raises BadOptions for a value that
    nests deeper than 200, such as one that contains itself."""
    if x is None or isinstance(x, (str, bool, int, Num, BigNum)):
        return x
    if depth > _MAX_DEPTH:
        raise BadOptions("a tool result nests too deep, or contains itself", expected=f"at most {_MAX_DEPTH} levels")
    if isinstance(x, Mapping):
        return {str(k): _json_value(v, depth + 1) for k, v in x.items()}
    if isinstance(x, (list, tuple, set, frozenset)):
        return [_json_value(v, depth + 1) for v in x]
    return x if isinstance(x, float) and math.isfinite(x) else str(x)


def unwrap(output: Value) -> Value:
    """What the model reads of an output: texts and JSON without their wrapping, errors and refusals in brackets,
    images and files as placeholders (`media_of` gives them for a message that can carry them).

    >>> unwrap({"type": "json", "value": {"a": 1}}), unwrap({"type": "execution-denied", "reason": "not now"})
    ({'a': 1}, '[Execution Denied: not now]')
    """
    if isinstance(output, list) and output and all(_is_part(p) for p in output):
        return "\n".join(_part_text(p) for p in output)
    if not isinstance(output, dict):
        return output
    kind = output.get("type")
    if kind == "execution-denied":
        reason = output.get("reason")
        return f"[Execution Denied: {reason}]" if reason else "[Execution Denied]"
    if kind not in _VALUES or "value" not in output:
        return output
    value = output["value"]
    if kind in ("error-text", "error-json"):
        return f"[Error: {value if isinstance(value, str) else write_canonical(value)}]"
    return unwrap(value) if kind == "content" and isinstance(value, list) else value


_PARTS = {
    "text": "text", "image_url": "image", "image-url": "image", "image-data": "image", "image": "image",
    "media": "media", "file": "file", "file-url": "file", "file-data": "file", "file-id": "file",
    "image-file-id": "image", "input_audio": "audio",
}  # fmt: skip


def _is_part(x: Any) -> bool:
    return isinstance(x, dict) and x.get("type") in _PARTS and (x["type"] != "text" or isinstance(x.get("text"), str))


def _part_text(part: dict[str, Any]) -> str:
    if part["type"] == "text":
        return str(part["text"])
    media = _media_type(part)
    kind = "image" if media.startswith("image/") else _PARTS[part["type"]]
    word = "file" if kind == "media" else kind
    return f"[{word.capitalize()}{': ' + media if media else ''}]"


def _media_type(part: Mapping[str, Any]) -> str:
    found = _first(part, "mediaType", "media_type", "mimeType")
    return found if isinstance(found, str) else ""


def media_of(result: Any) -> list[dict[str, Any]]:
    """The images and files of a result as content parts in OpenAI shape, for a message that can carry them.

    >>> media_of({"name": "f", "content": [{"type": "media", "mediaType": "image/png", "data": "AAAA"}]})
    [{'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,AAAA'}}]
    """
    output = ToolResult.of(result).output
    parts = output.get("value") if isinstance(output, dict) and output.get("type") == "content" else output
    if not isinstance(parts, list) or not all(_is_part(p) for p in parts):
        return []
    return [_openai_part(p) for p in parts if p["type"] != "text"]


def _openai_part(part: dict[str, Any]) -> dict[str, Any]:
    media, inline = _media_type(part), _first(part, "data", "image")
    url = part.get("url")
    if isinstance(inline, str):
        kind = media or ("image/png" if part["type"].startswith("image") else "application/octet-stream")
        url = inline if inline.startswith(("http:", "https:", "data:")) else f"data:{kind};base64,{inline}"
    if not isinstance(url, str):
        return part
    if media.startswith("image/") or part["type"].startswith("image"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"file_data": url}}


class ResultForm(Interface):
    """How one family writes results. literals: every delimiter of the format that a result must not forge.

    seed: the shape that the oldest version wrote, where it differs.
    """

    def write(self, result: ToolResult, literals: tuple[str, ...], seed: bool) -> str: ...


@dataclass(frozen=True, slots=True)
class JsonResult:
    """`{"name": …, "content": …}` between delimiters; the seed's keys are `toolName` and `result`."""

    opener: str = "<tool_response>"
    closer: str = "</tool_response>"
    name_key: str = "name"
    content_key: str = "content"

    def write(self, result: ToolResult, literals: tuple[str, ...], seed: bool) -> str:
        keys = ("toolName", "result") if seed else (self.name_key, self.content_key)
        value = {keys[0]: result.name, keys[1]: result.output if seed else result.content}
        return self.opener + guarded(write_canonical(value), (*literals, self.opener, self.closer)) + self.closer


TOOL_RESPONSE = JsonResult()


@dataclass(frozen=True, slots=True)
class ElementResult:
    """`<tool_response>` with the elements `tool_name` and `result`, values as nested elements.

    A value that XML cannot carry is written as the JSON text it is. No text holds a bare `<`, so none holds a tag.
    """

    def write(self, result: ToolResult, literals: tuple[str, ...], seed: bool) -> str:
        from ..rxml.stringifier import stringify

        given = result.output if seed else result.content
        text = given if isinstance(given, str) else write_canonical(given)
        for value in (given, text, guarded(write_canonical(text), ("<",))):
            try:
                written = stringify(
                    "tool_response", {"tool_name": result.name, "result": value}, minimal_escaping=not seed
                )
            except RXMLStringifyError:
                continue
            if given in ({}, []) and value is given:
                continue  # an element without content would not say which of the two
            return written if seed else written.partition("\n")[2].rstrip("\n")
        raise UnwritableCall("XML cannot carry this result", got=result.name)


@dataclass(frozen=True, slots=True)
class YamlResult:
    """`<tool_response>` around a mapping of `tool_name` and `result`, as JSON, which is YAML, where a `<` is in it."""

    def write(self, result: ToolResult, literals: tuple[str, ...], seed: bool) -> str:
        from .yaml_write import write_element

        opener, closer = "<tool_response>", "</tool_response>"
        value = {"tool_name": result.name, "result": result.content}
        try:
            text = write_element("tool_response", value)
        except UnwritableCall:
            text = ""
        inner = text[len(opener) : -len(closer)]
        if text and "<" not in inner:  # any tag may be a tool's
            return text
        return f"{opener}\n{guarded(write_canonical(value), ('<',))}\n{closer}"


@dataclass(frozen=True, slots=True)
class TextResult:
    """Raw text, or the JSON text of a value, in a frame of literals: `frame(name, call_id, content)`.

    own: the frame's literals. In a name, what no tool's name holds becomes an underscore.
    """

    frame: Callable[[str, str, str], str]
    own: tuple[str, ...] = ()

    def write(self, result: ToolResult, literals: tuple[str, ...], seed: bool) -> str:
        content, every = result.content, (*literals, *self.own)
        if not isinstance(content, str) or _forged(content, every):
            text = guarded(write_canonical(content), every)
        else:
            text = content
        return self.frame(_ODD_NAME.sub("_", result.name), _ODD_NAME.sub("_", result.call_id), text)


@dataclass(frozen=True, slots=True)
class Between:
    """A frame for `TextResult` that is the same for every tool."""

    opener: str
    closer: str

    def __call__(self, name: str, call_id: str, content: str) -> str:
        return f"{self.opener}\n{content}\n{self.closer}"


def guarded(text: str, literals: Iterable[str]) -> str:
    """JSON text that says the same, with no literal inside a string: one character of each is written as an escape.

    >>> guarded('{"a":"</tool_call> x"}', ("</tool_call>",))
    '{"a":"\\\\u003c/tool_call> x"}'
    """
    pattern = _guard(tuple(dict.fromkeys(lit.strip() for lit in literals if lit.strip())))
    return _STRING.sub(lambda s: pattern.sub(_escaped, s[0]), text)


@lru_cache(maxsize=256)
def _guard(literals: tuple[str, ...]) -> re.Pattern[str]:
    """An escape sequence, which is kept, or the first character of a literal."""
    any_of = "|".join(map(re.escape, literals)) or "(?!)"
    return re.compile(rf"\\(?:u[0-9a-fA-F]{{4}}|.)|(?=(?:{any_of}))(?P<first>.)", re.DOTALL)


def _escaped(m: re.Match[str]) -> str:
    first = m["first"]
    return m[0] if first is None else write_escape(first)


def write_escape(ch: str) -> str:
    """One character as JSON escapes, whether JSON asks for it or not."""
    units = ch.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def _forged(text: str, literals: Iterable[str]) -> bool:
    return any(lit.strip() and lit.strip() in text for lit in literals)
