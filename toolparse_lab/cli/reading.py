"""Commands that read what is at hand: `parse`, `validate`, `config`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ..errors import BadToolSpec, UnreadableInput
from ..runner.redaction import redact
from ..settings import SETTINGS
from .options import Commands, add_color, add_json, add_policy, color, need, renaming, settings_of
from .output import put, put_json, table


def add_commands(commands: Commands) -> None:
    parse = commands.add(
        "parse", _parse, "read the tool calls of one answer",
        "toolparse parse answer.txt --protocol hermes --tools tools.json",
        "curl -s $URL | toolparse parse - --json",
    )  # fmt: skip
    parse.add_argument("file", help="a file with the model's text, or - for standard input")
    parse.add_argument("--protocol", default="auto", help="protocol id (default: auto)")
    parse.add_argument("--tools", metavar="FILE", help="JSON file with the tool definitions")
    add_policy(parse)
    parse.add_argument("--reasoning", default="auto", help="auto, prefilled or none (default: auto)")
    parse.add_argument("--no-repair", action="store_true", help="read strict bodies only")
    parse.add_argument("--no-recover", action="store_true", help="read no calls outside their format")
    parse.add_argument("--json", action="store_true", help="print the whole result as JSON")
    parse.add_argument("--html", metavar="FILE", help="write the parse view as one HTML file")
    add_color(parse)

    validate = commands.add(
        "validate", _validate, "say what is wrong or doubtful about a file of cases",
        "toolparse validate cases.jsonl --strict",
    )  # fmt: skip
    validate.add_argument("cases", nargs="?", help="a file of cases, or bfcl (default: the setting `cases`)")
    validate.add_argument(
        "--columns", type=renaming, metavar="A=B,...", help="what the file calls things: question=input"
    )
    validate.add_argument("--strict", action="store_true", help="exit code 1 where a case is doubtful")
    add_json(validate)

    config = commands.add(
        "config", _config, "show the settings that hold, and where they came from", "toolparse config --json"
    )
    add_json(config)


def read_text(name: str) -> str:
    """A text as it was written, whatever bytes it holds."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as e:
        raise UnreadableInput(f"{name}: {e.strerror or e}") from None
    return content.decode("utf-8", "surrogateescape")


def read_tools(name: str | None) -> Any:
    if name is None:
        return None
    try:
        return json.loads(read_text(name))
    except ValueError as e:
        raise BadToolSpec("the tools file is no JSON", got=f"{name}: {e}", expected="a list of tools") from None


def _parse(options: Any) -> int:
    from .. import ParseOptions, parse
    from ..render import render_ansi

    settings = settings_of(options)
    allowed = ParseOptions(
        repair=not options.no_repair,
        recover=not options.no_recover,
        coerce=settings["policy"],
        reasoning=options.reasoning,
    )
    result = parse(read_text(options.file), options.protocol, read_tools(options.tools), allowed)
    if options.html:
        from ..widgets import export_html

        export_html(result, options.html)
    if options.json:
        put_json(result.to_dict())
    else:
        put(render_ansi(result, color=color(settings, sys.stdout)))
    return 0


def _validate(options: Any) -> int:
    need("lab", "pandas")
    from ..evals.cases.checks import validate_cases
    from ..render.show import visible

    source = options.cases or settings_of(options)["cases"]
    if source is None:
        raise UnreadableInput("there are no cases to validate", hint="name a file: toolparse validate cases.jsonl")
    found = validate_cases(source, columns=options.columns)
    if options.json:
        put_json(found.to_dict())
    else:
        put(visible(str(found)))
    if not found.ok:
        return 2
    return 1 if options.strict and found.doubts else 0


def _config(options: Any) -> int:
    settings = settings_of(options)
    rows = [(name, _shown(settings[name]), settings.origins[name]) for name in SETTINGS]
    models = []
    for alias, written in settings.tables.items():
        given = dict(written)
        variable = given.pop("api_key_env", None)
        key = f"{variable} ({'set' if settings.environ.get(variable) else 'not set'})" if variable else None
        where = settings.source.place(alias) if settings.source else ""
        models.append({"alias": alias, **given, "api_key": key, "origin": where})
    file = str(settings.source.path) if settings.source else None
    if options.json:
        values = {n: {"value": _masked(settings[n]), "origin": settings.origins[n]} for n in SETTINGS}
        put_json({"file": file, "settings": values, "models": models})
        return 0
    put(f"file: {file or 'none'}\n")
    put(table(("setting", "value", "from"), rows))
    if models:
        shown = [
            (m["alias"], m["name"], m.get("api_base"), m["api_key"] or "the provider's own", m["origin"])
            for m in models
        ]
        put("\n" + table(("model", "name", "api_base", "key", "from"), shown))
    return 0


def _masked(value: Any) -> Any:
    return redact(value) if isinstance(value, str) else value


def _shown(value: Any) -> Any:
    return ", ".join(value) if isinstance(value, list) else _masked(value)
