"""The prompt a model was trained with: the text that its chat template writes about tools."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ...core.errors import BadOptions
from ...core.toolspec import ToolSpec
from ...formats.base import Protocol
from .answers import common_prefix, common_suffix
from .probes import QUESTION, plain_tool
from .renderer import ChatTemplate

WORDING = "model"
"""The wording of a derived protocol in which the model's own template explains the tools."""

_SYSTEM = "Zq system words."
_SPECIAL = r"(?:<[|｜][^<>\n]{1,60}>|<[^<>\n]{1,60}[|｜]>|\[/?[A-Z][A-Z_]+\])"
# A role's header in front, and the end of its turn behind.
_HEADER = re.compile(rf"(?:\s*{_SPECIAL}(?:system|developer|user)?)+")
_END = re.compile(rf"(?:\s*{_SPECIAL})+\s*[\[<]?\Z")


def prompt_of(template: ChatTemplate) -> dict[str, Any]:
    return {"template": template.text, "tokens": dict(template.tokens)}


def model_prompt_of(protocol: Protocol, tools: tuple[ToolSpec, ...]) -> str:
    """Return the text that a derived protocol's chat template writes about tools, for a system
    message.

    Raises BadOptions for a protocol without such a template, UnreadableTemplate for one that takes
    more time or memory than it may.
    """
    constants = json.loads(protocol.spec or "{}")
    source = constants.get("prompt") if isinstance(constants, Mapping) else None
    if source is None:
        raise BadOptions(
            "this protocol has no chat template to explain tools with",
            got=protocol.id,
            expected="a protocol of Protocol.from_chat_template",
        )
    definitions = json.dumps([tool.to_openai() for tool in tools])
    return _prompt(source["template"], json.dumps(source["tokens"]), definitions)


@lru_cache(maxsize=256)
def _prompt(text: str, tokens: str, definitions: str) -> str:
    template = ChatTemplate(text, json.loads(tokens))
    whole = json.loads(definitions)
    plain = [plain_tool(tool) for tool in json.loads(definitions)]
    user = {"role": "user", "content": QUESTION}
    jobs: list[dict[str, Any]] = []
    for messages in ([{"role": "system", "content": _SYSTEM}, user], [user]):
        jobs += [
            {"messages": messages, "tools": tools, "add_generation_prompt": True}
            for tools in (None, [], whole, plain)
        ]
    texts = template.render(jobs)
    for absent, empty, *offered in (texts[:4], texts[4:]):
        # Some templates take no tools for an error, others an empty list of them.
        without = empty if absent.error else absent
        for rendering in offered:
            if rendering.error or without.error:
                continue
            words = _inserted(rendering.text, without.text)
            if words:
                return words
    errors = "; ".join(dict.fromkeys(text.error for text in texts if text.error))
    raise BadOptions(
        "this chat template writes nothing about tools",
        got=errors or "the same text with tools and without",
        hint="take another wording, such as plain",
    )


def _inserted(text: str, without: str) -> str:
    start = common_prefix(text, without)
    rest, other = text[start:], without[start:]
    end = len(rest) - common_suffix(rest, other)
    # A cut goes through no token: it moves to where the token begins.
    torn = re.search(r"<[^<>\s]{0,60}\Z|\[[A-Z_]{0,40}\Z", text[:start])
    if torn is not None:
        end += len(torn[0])
        rest = text[torn.start() :]
        closing = re.match(r"[^<>\s]{0,60}>", rest[end:])
        if rest[:end].endswith(torn[0]) and closing is not None:
            end -= len(torn[0])
    words = rest[:end].replace(_SYSTEM, "").strip()
    header = _HEADER.match(words)
    words = words[header.end() :] if header else words
    return _END.sub("", words).strip()
