"""One trial to carry elsewhere: as Python that reads its answer again, as the curl of its request,
and as a page of its own.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import BadOptions
from ...runner.exchange.redaction import redact_named
from ...views import render_page, render_result
from .pinning import Pinnable, changed_options, literal_of, text_of

_OPENAI = "https://api.openai.com/v1"
# What litellm is told, and no endpoint.
_OURS = ("timeout", "api_base", "api_key", "extra_headers", "headers", "max_retries", "num_retries")


def python_of(trial: Pinnable) -> str:
    """Return ASCII source that reads a trial's answer again and prints the outcome.

    Raises BadOptions for a trial that was never parsed.
    """
    result = trial.result
    if result is None:
        raise BadOptions(
            "this trial was never parsed, so there is nothing to read", got=trial.trial_id
        )
    tools = json.loads(json.dumps([tool.to_dict() for tool in result.tools]))
    arguments = [text_of(result.raw), repr(str(result.protocol)), literal_of(tools)]
    if options := changed_options(result):
        arguments.append(f"options={literal_of(options)}")
    choice = trial.levels.get("tool_choice", "auto")
    if choice != "auto":
        arguments.append(f"tool_choice={choice!r}")
    body = "".join(f"        {argument},\n" for argument in arguments)
    return (
        "import toolparse_lab as tp\n\n\ndef read():\n    return tp.parse(\n"
        f"{body}    )\n\n\nresult = read()\nprint(result.why())\n"
    )


def curl_of(trial_id: str, request: Mapping[str, Any]) -> str:
    """Return the request of a trial as one command of a POSIX shell, without credentials: the key
    comes from the environment variable API_KEY.

    request: as it was recorded. Raises BadOptions if nothing is recorded, and for a provider whose
    own API is not that of OpenAI.
    """
    model = request.get("model") or {}
    provider, _, name = str(model.get("name", "")).partition("/")
    base = model.get("api_base") or (_OPENAI if provider == "openai" or not name else None)
    if not request or base is None:
        raise BadOptions(
            "this request cannot be written as curl",
            got=f"{trial_id}: {model.get('name', 'nothing is recorded')}",
            expected="a recorded request to an OpenAI-compatible endpoint",
            hint="give the model an api_base, or use as_python()",
        )
    params = {**(model.get("params") or {}), **(request.get("params") or {})}
    body: dict[str, Any] = {
        "model": name or provider,
        "messages": request.get("messages", []),
        **{key: value for key, value in redact_named(params).items() if key not in _OURS},
        **(redact_named(model.get("extra_body") or {})),
    }
    if request.get("tools"):
        body["tools"] = request["tools"]
    if request.get("stream"):
        body["stream"] = True
    # JSON as ASCII has no control character but DEL.
    text = json.dumps(body, ensure_ascii=True).replace("\x7f", "\\u007f")
    address = shlex.quote(f"{str(base).rstrip('/')}/chat/completions")
    return (
        f"curl {address} \\\n  -H 'Content-Type: application/json' \\\n"
        f'  -H "Authorization: Bearer $API_KEY" \\\n  --data-binary {shlex.quote(text)}\n'
    )


def write_page(trial: Pinnable, path: str | Path) -> Path:
    """Write the static view of a trial's answer as one self-contained page, and return its path.

    Raises BadOptions for a trial that was never parsed.
    """
    if trial.result is None:
        raise BadOptions("this trial was never parsed, so there is no view", got=trial.trial_id)
    target = Path(path)
    title = f"{trial.case_id} · {trial.model} · {trial.outcome or 'not judged'}"
    target.write_text(render_page(title, render_result(trial.result)), encoding="utf-8")
    return target
