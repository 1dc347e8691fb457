"""The chat template of a server, from its own address."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from ...core.errors import BadOptions
from ..derivation.renderer import ChatTemplate

_SECONDS = 10
_LONGEST = 8_000_000  # bytes of an answer


def template_of_server(url: str) -> ChatTemplate:
    """Return the template that a llama.cpp server tells at `/props`.

    url: of the server, with or without `/v1`. Raises BadOptions for a server that cannot be
    reached, and for one that tells no template.
    """
    root = url.rstrip("/").removesuffix("/props").removesuffix("/v1").rstrip("/")
    try:
        with urllib.request.urlopen(f"{root}/props", timeout=_SECONDS) as answer:  # noqa: S310
            props: Any = json.loads(answer.read(_LONGEST))
    except urllib.error.HTTPError as error:
        raise _untold(root, f"status {error.code}") from None
    except (OSError, ValueError) as error:
        raise BadOptions(
            "this server cannot be asked for its chat template",
            got=f"{root}/props: {getattr(error, 'reason', None) or error}",
            expected="the address of a llama.cpp server, such as http://127.0.0.1:8080",
        ) from None
    if not isinstance(props, Mapping):
        raise _untold(root, type(props).__name__)
    template = props.get("chat_template_tool_use") or props.get("chat_template")
    if not isinstance(template, str) or not template:
        raise _untold(root, ", ".join(map(str, list(props)[:20])) or "nothing")
    return ChatTemplate.of({**props, "chat_template": template})


def _untold(root: str, got: str) -> BadOptions:
    return BadOptions(
        "this server does not tell its chat template",
        got=f"{got} from {root}/props",
        expected="chat_template, as llama.cpp's server has it",
        hint="vLLM, SGLang, Ollama and others tell none: pass the chat_template.jinja, the "
        "tokenizer_config.json or the folder of the model that they serve",
    )
