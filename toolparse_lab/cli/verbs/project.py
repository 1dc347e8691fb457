"""The files of a project: begin one, check its cases, show its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import StoreError, UnreadableInput
from ...evals.cases.checks import validate_cases
from ...runner.exchange.redaction import redact
from ...runner.settings import SETTINGS
from ...views.show import visible
from ..console import as_flags, put, put_json, table
from ..options import COLUMNS, CONFIG, JSON, Option, need, settings_of, verb


@verb(
    "init",
    Option(
        "folder", nargs="?", default=".", metavar="DIR", help="the project (default: this folder)"
    ),
    JSON,
    examples=("toolparse init", "toolparse init my-project"),
)
def _init(options: Any) -> int:
    """Write settings, a plan and cases to begin with. A file that is there stays as it is."""
    folder = Path(options.folder)
    written: dict[str, bool] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in _STARTER.items():
            # Exclusive, so that a file made in the meantime, or a link, is never written over.
            try:
                with (folder / name).open("x", encoding="utf-8") as stream:
                    stream.write(text)
                written[name] = True
            except FileExistsError:
                written[name] = False
    except OSError as e:
        message = "a project cannot be begun here"
        raise StoreError(message, got=f"{folder}: {e.strerror or e}") from None
    if options.json:
        put_json({"folder": str(folder), "written": written})
        return 0
    for name, is_new in written.items():
        put(visible(f"{'wrote' if is_new else 'kept '}  {folder / name}"))
    here = "" if folder == Path() else visible(f"cd {folder} && ")
    put(f"\nnext: {here}toolparse validate cases.jsonl && toolparse run plan.toml --dry-run")
    return 0


@verb(
    "validate",
    CONFIG,
    Option("cases", nargs="?", help="a file of cases, or bfcl (default: the setting `cases`)"),
    COLUMNS,
    Option("--strict", action="store_true", help="exit code 1 where a case is doubtful"),
    JSON,
    examples=("toolparse validate cases.jsonl --strict",),
)
def _validate(options: Any) -> int:
    """Check a file of cases: 2 where one is wrong, 1 if one is doubtful and that matters."""
    # Cases may be a table, which pandas reads.
    need("lab", "pandas")
    source = options.cases or settings_of(options)["cases"]
    if source is None:
        raise UnreadableInput(
            "there are no cases to validate", hint="name a file: toolparse validate cases.jsonl"
        )
    report = validate_cases(source, columns=options.columns)
    if options.json:
        put_json(report.to_dict())
    else:
        put(visible(as_flags(str(report))))
    if not report.ok:
        return 2
    return 1 if options.strict and report.doubts else 0


@verb("config", CONFIG, JSON, examples=("toolparse config --json",))
def _config(options: Any) -> int:
    """Show the settings and models that apply, credentials only by their variable's name."""
    settings = settings_of(options)
    source = settings.source
    file = str(source.path) if source else None
    # An address of a database may contain a password.
    values = {
        name: redact(settings[name]) if isinstance(settings[name], str) else settings[name]
        for name in SETTINGS
    }
    models: list[dict[str, Any]] = []
    for alias, configured in settings.tables.items():
        members = dict(configured)
        # Only the variable's name is shown, never its value.
        variable = members.pop("api_key_env", None)
        key = None
        if variable:
            key = f"{variable} ({'set' if settings.environ.get(variable) else 'not set'})"
        place = source.place(alias) if source else ""
        models.append({"alias": alias, **members, "api_key": key, "origin": place})
    if options.json:
        origins = settings.origins
        shown = {name: {"value": v, "origin": origins[name]} for name, v in values.items()}
        put_json({"file": file, "settings": shown, "models": models})
        return 0
    put(f"file: {file or 'none'}\n")
    rows = [
        (name, ", ".join(v) if isinstance(v, list) else v, settings.origins[name])
        for name, v in values.items()
    ]
    put(table(("setting", "value", "from"), rows))
    if models:
        cells = [
            (
                model["alias"],
                model["name"],
                model.get("api_base"),
                model["api_key"] or "the provider's own",
                model["origin"],
            )
            for model in models
        ]
        put("\n" + table(("model", "name", "api_base", "key", "from"), cells))
    return 0


# the files that a new project begins with

_SETTINGS = """\
# Settings of every command below this folder; `toolparse config` shows them with their sources.
store = "toolparse.db"

[models]
small = "toolparse-local/smollm2-135m"     # runs in the process: toolparse setup-local

# A model of your own; take the signs away and put its name into plan.toml:
# [models.mine]
# name = "hosted_vllm/Qwen3-8B"            # a litellm model string
# api_base = "http://localhost:8000/v1"
# api_key_env = "MY_KEY"                   # the variable that holds the key, never the key itself
# price = [0, 0]                           # US dollars per million tokens, in and out
"""

_PLAN = """\
# toolparse run plan.toml --dry-run      the calls and what they cost; asks nothing
# toolparse run plan.toml                asks, records, reports
cases = "cases.jsonl"
models = ["small"]
protocols = ["hermes", "morph_xml"]
baseline = "hermes"
trials = 1

[settings]
wording = "brief"                        # the short prompt; leave it out for larger models
max_tokens = 128

[limits]
max_cost = 1.0                           # US dollars
deadline = 300                           # seconds

# [gate]                                 # exit code 1 below it; see docs/ci.md
# success = 0.9
"""


def _tool(name: str, description: str, **properties: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "parameters": parameters}


_TIMER = _tool("set_timer", "Start a timer.", minutes={"type": "integer", "minimum": 1})
_LAMP = _tool(
    "set_lamp", "Switch a lamp on or off.", room={"type": "string"}, on={"type": "boolean"}
)
_WEATHER = _tool("get_weather", "Current weather in a city.", city={"type": "string"})

# The embedded model gets all but the two calls right, so that a first report shows both.
_CASES: tuple[Mapping[str, Any], ...] = (
    {
        "id": "one-call",
        "input": "Set a timer for 5 minutes.",
        "tools": [_TIMER],
        "target": [{"name": "set_timer", "arguments": {"minutes": 5}}],
        "metadata": {"category": "single"},
    },
    {
        "id": "two-types",
        "input": "Turn on the lamp in the office.",
        "tools": [_LAMP],
        "target": [{"name": "set_lamp", "arguments": {"room": "office", "on": True}}],
        "metadata": {"category": "single"},
    },
    {
        "id": "two-calls",
        "input": "What is the weather in Oslo and in Porto?",
        "tools": [_WEATHER, _TIMER],
        "target": [
            {"name": "get_weather", "arguments": {"city": "Oslo"}},
            {"name": "get_weather", "arguments": {"city": "Porto"}},
        ],
        "metadata": {"category": "parallel"},
    },
    {
        "id": "no-call",
        "input": "Write one sentence about the sea.",
        "tools": [_WEATHER, _TIMER],
        "target": [],
        "metadata": {"category": "irrelevance"},
    },
)

_STARTER = {
    "toolparse.toml": _SETTINGS,
    "plan.toml": _PLAN,
    "cases.jsonl": "".join(json.dumps(case) + "\n" for case in _CASES),
}
