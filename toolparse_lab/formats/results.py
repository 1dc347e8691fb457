"""Results of tools as they are written for the model, one form a family of formats.

A result is hostile text: a web page may quote the format's own delimiters. If the format carries
JSON or XML they are escaped, so that the model reads the same value and no delimiter is in the
text. Raw text has no escape: it stays as it is as long as no delimiter is in it, and is written
as a JSON string otherwise. A delimiter made of nothing but JSON's own brackets, commas and quotes
cannot be hidden by any form, since the value itself writes those.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from typing import Protocol as Interface

from ..core.errors import BadOptions, RXMLError, UnwritableCall
from ..core.values import BigNum, Num, Value, write_canonical
from .scan import any_of
from .yaml.write import write_element

# A JSON string; escapes are looked for nowhere else.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# Names of tools hold none of these, so a name in raw text can forge no delimiter.
_ODD_NAME = re.compile(r"[^\w.:/-]")
_VALUES = ("text", "json", "error-text", "error-json", "content")
# None is a result as any other, so what is not there needs a value of its own.
_MISSING: Any = object()
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result as a tool gave it, and as the model reads it.

    output: as it was handed over. content: the text that the model is to read of it, a text or a
        JSON value.
    call_id: of the call it answers, where that has one.
    """

    name: str
    output: Value
    content: Value
    call_id: str = ""

    @classmethod
    def of(cls, x: Any) -> ToolResult:
        """Return the result that `x` holds.

        x: `{toolName, output | result}`, `{name, content}`, an OpenAI tool message with a name, or
        a ToolResult. Keys may be written in snake case. Raises BadOptions for anything else.

        >>> output = {"type": "error-text", "value": "no such city"}
        >>> ToolResult.of({"toolName": "f", "output": output}).content
        '[Error: no such city]'
        """
        if isinstance(x, ToolResult):
            return x
        if not isinstance(x, Mapping):
            got = type(x).__name__
            raise BadOptions("this is no tool result", got=got, expected="{toolName, output}")

        name = _first(x, "toolName", "tool_name", "name")
        if not isinstance(name, str) or not name:
            raise BadOptions(
                "a tool result names its tool", got=sorted(map(str, x)), expected="toolName or name"
            )

        output = _first(x, "output", "result", "content")
        if output is _MISSING:
            raise BadOptions(
                "a tool result without a result",
                got=sorted(map(str, x)),
                expected="output, or content",
            )

        call_id = _first(x, "toolCallId", "tool_call_id", "id")
        # Anything a tool gives back is written, if need be as its text.
        value = _json_value(output)
        return cls(name, value, unwrap(value), call_id if isinstance(call_id, str) else "")


def _first(x: Mapping[Any, Any], *keys: str) -> Any:
    # None is a value: a tool may well give it back.
    return next((x[key] for key in keys if key in x), _MISSING)


def _json_value(x: Any, depth: int = 0) -> Value:
    # What JSON cannot carry becomes its text, infinity and not-a-number too. Raises BadOptions for
    # a value that nests too deep, such as one that contains itself.
    # Num and BigNum are numbers that keep their text; they are written as they were read.
    if x is None or isinstance(x, (str, bool, int, Num, BigNum)):
        return x
    if depth > _MAX_DEPTH:
        raise BadOptions(
            "a tool result nests too deep, or contains itself",
            expected=f"at most {_MAX_DEPTH} levels",
        )

    if isinstance(x, Mapping):
        return {str(key): _json_value(member, depth + 1) for key, member in x.items()}
    if isinstance(x, (list, tuple, set, frozenset)):
        return [_json_value(item, depth + 1) for item in x]
    if isinstance(x, float) and math.isfinite(x):
        return x
    return str(x)


# What the model reads of an output


def unwrap(output: Value) -> Value:
    """Return the text that the model reads of an output.

    Texts and JSON without their wrapping, errors and refusals in brackets, images and files as
    placeholders (`media_of` gives them for a message that can carry them).

    >>> unwrap({"type": "json", "value": {"a": 1}})
    {'a': 1}
    >>> unwrap({"type": "execution-denied", "reason": "not now"})
    '[Execution Denied: not now]'
    """
    # A list of the tool's own is JSON; only one of nothing but known parts is content.
    if isinstance(output, list):
        return "\n".join(map(_part_text, output)) if _are_parts(output) else output
    if not isinstance(output, dict):
        return output

    kind = output.get("type")
    if kind == "execution-denied":
        reason = output.get("reason")
        return f"[Execution Denied: {reason}]" if reason else "[Execution Denied]"
    if kind not in _VALUES or "value" not in output:
        return output  # JSON of the tool's own that happens to be an object

    # From here on the output is in the shape of an AI SDK.
    value = output["value"]
    if kind in ("error-text", "error-json"):
        return f"[Error: {value if isinstance(value, str) else write_canonical(value)}]"
    if kind == "content" and isinstance(value, list):
        return unwrap(value)
    return value


# The kinds of content parts in the shapes of several clients, and the words for their placeholders.
_PARTS = {
    "text": "text", "image_url": "image", "image-url": "image", "image-data": "image",
    "image": "image", "media": "media", "file": "file", "file-url": "file", "file-data": "file",
    "file-id": "file", "image-file-id": "image", "input_audio": "audio", "document": "file",
}  # fmt: skip


def _are_parts(items: list[Any]) -> bool:
    # A text part has its text. Of the others the kind is enough for a placeholder.
    return bool(items) and all(
        isinstance(x, dict)
        and x.get("type") in _PARTS
        and (x["type"] != "text" or isinstance(x.get("text"), str))
        for x in items
    )


def _part_text(part: dict[str, Any]) -> str:
    # A "media" part is an image or a file, which its media type decides.
    if part["type"] == "text":
        return str(part["text"])
    # The media type knows better than the kind of the part, if it is there.
    media = _media_type(part)
    kind = "image" if media.startswith("image/") else _PARTS[part["type"]]
    word = "File" if kind == "media" else kind.capitalize()
    return f"[{word}: {media}]" if media else f"[{word}]"


def _media_type(part: Mapping[str, Any]) -> str:
    media = _first(_flat(part), "mediaType", "media_type", "mimeType")
    return media if isinstance(media, str) else ""


def _flat(part: Mapping[str, Any]) -> Mapping[str, Any]:
    # Anthropic's parts have bytes, address and media type under `source`.
    source = part.get("source")
    return {**source, **part} if isinstance(source, dict) else part


def media_of(result: Any) -> list[dict[str, Any]]:
    """Return the images and files of a result as content parts in OpenAI shape.

    They are for a message that can carry them. `result` is anything that `ToolResult.of` takes.

    >>> image = {"type": "media", "mediaType": "image/png", "data": "AAAA"}
    >>> media_of({"name": "f", "content": [image]})
    [{'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,AAAA'}}]
    """
    # The output and not the content: that has placeholders in their place already.
    parts = ToolResult.of(result).output
    if isinstance(parts, dict) and parts.get("type") == "content":
        parts = parts.get("value")
    if not isinstance(parts, list) or not _are_parts(parts):
        return []
    return [_openai_part(part) for part in parts if part["type"] != "text"]


def _openai_part(part: dict[str, Any]) -> dict[str, Any]:
    # As it is where it has neither bytes nor address. Bytes go first: some clients leave an empty
    # address with them.
    is_image = part["type"].startswith("image")
    media = _media_type(part)
    own = _flat(part)
    url = own.get("url")
    inline = _first(own, "data", "image")
    if isinstance(inline, str):
        kind = media or ("image/png" if is_image else "application/octet-stream")
        # Some clients put an address in place of the base64.
        is_address = inline.startswith(("http:", "https:", "data:"))
        url = inline if is_address else f"data:{kind};base64,{inline}"
    if not isinstance(url, str):
        return part
    if is_image or media.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"file_data": url}}


# The forms


class ResultForm(Interface):
    """Writes results in the way of one family."""

    def write(self, result: ToolResult, literals: tuple[str, ...], ai_sdk_2: bool) -> str: ...


@dataclass(frozen=True, slots=True)
class JsonResult:
    """`{"name": …, "content": …}` between delimiters.

    The AI SDK's keys are `toolName` and `result`.
    """

    opener: str = "<tool_response>"
    closer: str = "</tool_response>"
    name_key: str = "name"
    content_key: str = "content"

    def write(self, result: ToolResult, literals: tuple[str, ...], ai_sdk_2: bool) -> str:
        # Neither the format's own delimiters nor those around results may be forged.
        # The AI SDK hands the output on as it is, wrapping and all.
        if ai_sdk_2:
            value = {"toolName": result.name, "result": result.output}
        else:
            value = {self.name_key: result.name, self.content_key: result.content}
        text = guarded(write_canonical(value), (*literals, self.opener, self.closer))
        return self.opener + text + self.closer


TOOL_RESPONSE = JsonResult()


@dataclass(frozen=True, slots=True)
class ElementResult:
    """`<tool_response>` with the elements `tool_name` and `result`, values as nested elements.

    A value that XML cannot carry is written as the JSON text it is. No text holds a bare `<`, so
    none holds a tag.
    """

    def write(self, result: ToolResult, literals: tuple[str, ...], ai_sdk_2: bool) -> str:
        # The AI SDK's shape keeps the declaration in front and escapes more than XML asks for.
        from .rxml.writer import stringify  # loads lxml, which parsing does without

        content = result.output if ai_sdk_2 else result.content
        text = content if isinstance(content, str) else write_canonical(content)
        # From the most readable to the one that nearly every value has: characters that XML
        # forbids are escapes in the last.
        for value in (content, text, guarded(write_canonical(text), ("<",))):
            if value is content and content in ({}, []):
                continue  # an element without content would not say which of the two
            try:
                element = stringify(
                    "tool_response",
                    {"tool_name": result.name, "result": value},
                    minimal_escaping=not ai_sdk_2,
                )
            except RXMLError:
                continue

            return element if ai_sdk_2 else element.partition("\n")[2].rstrip("\n")

        raise UnwritableCall("XML cannot carry this result", got=result.name)


@dataclass(frozen=True, slots=True)
class YamlResult:
    """`<tool_response>` around a mapping of `tool_name` and `result`.

    It is JSON, which is YAML, where a `<` is in it.
    """

    def write(self, result: ToolResult, literals: tuple[str, ...], ai_sdk_2: bool) -> str:
        # JSON, which is YAML, where YAML cannot carry the value or its text would hold a tag.
        opener, closer = "<tool_response>", "</tool_response>"
        value = {"tool_name": result.name, "result": result.content}
        # A value that is too deep for YAML is still JSON.
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
    """Raw text, or the JSON text of a value, in a frame of literals.

    frame: called as frame(name, call_id, content). own: the frame's literals. In a name, a
    character that no tool's name holds becomes an underscore.
    """

    frame: Callable[[str, str, str], str]
    own: tuple[str, ...] = ()

    def write(self, result: ToolResult, literals: tuple[str, ...], ai_sdk_2: bool) -> str:
        # Raw text has no escapes, and a model reads a JSON string nearly as well.
        delimiters = (*literals, *self.own)
        text = result.content
        # A model takes a delimiter for one without the line breaks around it too.
        if not isinstance(text, str) or any(d.strip() and d.strip() in text for d in delimiters):
            text = guarded(write_canonical(text), delimiters)
        return self.frame(_ODD_NAME.sub("_", result.name), _ODD_NAME.sub("_", result.call_id), text)


@dataclass(frozen=True, slots=True)
class Between:
    """A frame for `TextResult` that is the same for every tool."""

    opener: str
    closer: str

    def __call__(self, name: str, call_id: str, content: str) -> str:
        return f"{self.opener}\n{content}\n{self.closer}"


# Escapes


def guarded(text: str, literals: Iterable[str]) -> str:
    """Return JSON text that says the same, with no literal inside a string.

    One character of each is written as an escape.

    >>> guarded('{"a":"</tool_call> x"}', ("</tool_call>",))
    '{"a":"\\\\u003c/tool_call> x"}'
    """
    # White space around a delimiter is no part of what makes it one.
    pattern = _guard(tuple(dict.fromkeys(filter(None, map(str.strip, literals)))))

    def escape(match: re.Match[str]) -> str:
        first = match["first"]  # of a literal; an escape sequence stays as it is
        return match[0] if first is None else write_escape(first)

    return _STRING.sub(lambda string: pattern.sub(escape, string[0]), text)


@lru_cache(maxsize=256)
def _guard(literals: tuple[str, ...]) -> re.Pattern[str]:
    # an escape sequence, which stays, or a literal's first character
    begins = any_of(literals)
    return re.compile(rf"\\(?:u[0-9a-fA-F]{{4}}|.)|(?=(?:{begins}))(?P<first>.)", re.DOTALL)


def write_escape(ch: str) -> str:
    """Return one character as JSON escapes, if JSON asks for it or not.

    A character beyond 0xFFFF is two of them.
    """
    # JSON escapes UTF-16, and a lone surrogate is a character here as any other.
    units = ch.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
