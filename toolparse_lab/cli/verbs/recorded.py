"""Recorded answers: add, list, show, open, score and read them again."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadOptions, UnknownName, UnreadableInput, near
from ...core.values import write_canonical
from ...core.values.printable import counted
from ...formats.registry import protocols
from ...notebook.page import export_html
from ...runner.settings import Settings
from ...views import render_ansi
from ...views.sentences import question_of
from ...views.show import visible
from ...views.words import cause_words, groups_of
from ..console import (
    looks_pasted,
    put,
    put_json,
    put_table,
    put_told,
    read_text,
    read_tools,
    say,
    table,
    terminal_width,
)
from ..options import (
    COLOR,
    CONFIG,
    JSON,
    POLICY,
    RUN,
    RUN_HELP,
    STORE,
    Option,
    color,
    given,
    lab_to_write,
    need,
    need_lab,
    open_lab,
    options_of,
    settings_of,
    verb,
)

if TYPE_CHECKING:
    from ...evals.frames.recorded import Frame
    from ...evals.reports.figures.report import Report
    from ...evals.scoring.trial import Trial
    from ...experiments.run import Run
    from ...lab import Lab
    from ...runner.settings import Settings


_INGEST = "lab.Lab.ingest"
_REPARSE = ("lab.Lab.reparse", "evals.reparse.ReparseSettings")


@verb(
    "ingest",
    CONFIG,
    *options_of(
        _INGEST,
        "source",
        "--tools FILE",
        "--cases FILE",
        "--columns",
        "--model NAME",
        "--protocol ID",
        "--shape NAME",
        "--requests FILE",
        "--max-rows",
        "--engine",
        "--workers",
        source="JSONL, JSON, CSV, Parquet, inspect's .eval, .sse dumps or a folder of them; an "
        "export of a tracing tool; a store with what a proxy or a recorder has written; or a "
        "recording, whose answers are added to the store",
        tools="JSON file with the tools of rows that name none",
        columns="what the source calls things: text=raw; user= leaves one out",
    ),
    Option("--strict", "refuse a source with a row that cannot be read, instead of leaving it out"),
    STORE,
    JSON,
    examples=(
        "toolparse ingest answers.jsonl --tools tools.json --protocol hermes",
        "toolparse ingest log.csv --columns completion_text=raw,user= --cases cases.jsonl",
        "toolparse ingest langfuse-export.jsonl",
        "toolparse ingest live.db",
        "toolparse ingest recording.jsonl",
    ),
)
def _ingest(options: Any) -> int:
    settings = settings_of(options)
    need_lab()
    # SQLAlchemy: 0.8 s, and an extra.
    from ...runner.store.recording import import_recording, is_recording

    # A recording has its own reader: its answers are added to the store as they are.
    if is_recording(options.source):
        of_rows = ("tools", "cases", "columns", "model")
        flags = [f"--{name}" for name in of_rows if getattr(options, name) is not None]
        if flags:
            raise BadOptions(
                "a recording says itself what its answers are",
                got=", ".join(flags),
                expected="toolparse ingest FILE, with --store for another store",
            )
        with lab_to_write(settings) as lab:
            new = import_recording(options.source, lab.store)
        told = f"{counted(new, 'answer')} added; a run of the same plan finds them there\n"
        put_told(options.json, {"recording": options.source, "new": new}, told)
        return 0
    from ...experiments.ingest.build import UNREADABLE  # start-up time

    # Before the lab, so that a file that cannot be read makes no store.
    tools = read_tools(options.tools)
    with lab_to_write(settings) as lab:
        arguments = {**given(options, _INGEST), "tools": tools, "progress": "lines"}
        run = lab.ingest(errors="raise" if options.strict else "skip", **arguments)
        skipped = [
            {"what": s.name, "count": s.count, "reason": s.reason} for s in run.plan.cases.skipped
        ]
        # For this every answer is parsed, and kept as it was read: the next command finds it so.
        report = run.report(policy=settings["policy"])
        facts = _facts(report.headline)
        told = causes_told(report)
    if run.summary is not None:
        say(f"Run {run.run_id}: {run.summary}")
    for row in skipped:
        if row["what"] != UNREADABLE:  # said by the lab
            say(f"left out: {row['what']} {row['count']}: {row['reason']}")
    value = {"run_id": run.run_id, **facts, "skipped": skipped}
    put_told(options.json, value, f"run {run.run_id}\n\n{told}")
    return 0


def _facts(rows: Frame) -> dict[str, Any]:
    # kinds: outcome where there is a target, else what the calls are. failures: by cause, as
    # `run.failures()` has them.
    from ...evals.frames.account import (
        account_of,  # pandas: an extra
        causes,  # pandas: an extra
    )
    from ...evals.reports.figures.cells import kinds_of  # pandas: an extra

    outcomes = rows["outcome"].astype(object).fillna(rows["missing_reason"].astype(object))
    account, reasons = account_of(rows), causes(rows)
    unanswered = outcomes.isin(["provider_error", "context_overflow"])
    kinds = kinds_of(rows).astype(object).mask(rows["target"].notna() | unanswered, outcomes)
    return {
        "answers": account.answers,
        "not_answered": account.unanswered,
        "not_executable": account.broken,
        "kinds": Counter(
            f"{kind} {cause}" if cause and cause != kind else str(kind)
            for kind, cause in zip(kinds, reasons, strict=True)
        ),
        "outcomes": Counter(outcomes),
        "failures": Counter(filter(None, reasons)),
    }


def causes_told(report: Report) -> str:
    """Return what a report says first, below a table of the causes of its failures."""
    from ...evals.frames.account import account_of, failing_rows  # pandas: an extra
    from ...evals.reports.figures.conclusion import conclusion_of  # pandas: an extra

    groups = groups_of(failing_rows(report.headline)["cause"])
    rows = [(group.title, group.n, ", ".join(group.codes)) for group in groups]
    lines = [table(("what stops them", "n", "code"), rows), ""] if rows else []
    lines += textwrap.wrap(conclusion_of(report).text, 100)
    ungraded = report.headline[report.headline["target"].isna()]
    if report.has_targets and len(ungraded):
        lines += textwrap.wrap(f"Without a target: {account_of(ungraded).text}", 100)
    return "\n".join(lines)


# What `toolparse list` lists -> its columns.
_LISTS = {
    "runs": (
        "run_id", "created", "status", "items", "done", "not_answered", "cases", "cost", "models",
        "arms",
    ),
    "protocols": ("protocol", "aliases", "what"),
    "models": ("model", "name", "api_base", "api_key_env"),
}  # fmt: skip


@verb(
    "list",
    CONFIG,
    Option(
        "what", "what to list (default: runs)", nargs="?", default="runs", choices=tuple(_LISTS)
    ),
    STORE,
    JSON,
    examples=("toolparse list", "toolparse list protocols --json"),
)
def _list(options: Any) -> int:
    settings = settings_of(options)
    rows: list[tuple[Any, ...]]
    if options.what == "runs":
        with open_lab(settings) as lab:
            rows = [
                (
                    run.run_id,
                    run.created[:19].replace("T", " "),
                    run.status,
                    run.items,
                    run.done,
                    run.failed,
                    len(run.plan.get("cases") or ()),
                    # A run that is under way has no summary yet.
                    (run.summary or {}).get("cost"),
                    ", ".join(run.plan.get("models") or ()),
                    ", ".join(str(arm.get("name")) for arm in run.plan.get("arms") or ()),
                )
                for run in lab.runs()
            ]
    elif options.what == "protocols":
        rows = [
            (id, ", ".join(protocol.aliases) or None, protocol.title)
            for id, protocol in protocols().items()
        ]
    else:
        rows = [
            (alias, model["name"], model.get("api_base"), model.get("api_key_env"))
            for alias, model in settings.tables.items()
        ]
    put_table(_LISTS[options.what], rows, options.json, width=terminal_width())
    return 0


_TRIAL_ID = re.compile(r"[0-9a-f]{4,}")
_LISTED = "`toolparse report --score` lists the trials with their cases, models and arms"


@verb(
    "view",
    CONFIG,
    RUN,
    Option("trial [TRIAL]", "a trial's id (default: the first failure that fits)"),
    Option("--case ID", "of this case"),
    Option("--model NAME", "of this model"),
    Option("--arm NAME", "of this arm, or this prompt protocol"),
    Option("--code CODE", "with this outcome, sub-code or problem code"),
    Option("--protocol ID", "what reads the answer (default: what its prompt asked for)"),
    Option("--html FILE", "write the parse view as one HTML file"),
    Option("--pytest FILE", "write a test that pins how this answer is read"),
    STORE,
    POLICY,
    COLOR,
    JSON,
    examples=("toolparse view latest", "toolparse view latest --case timer-3 --html trial.html"),
)
def _view(options: Any) -> int:
    settings = settings_of(options)
    with open_lab(settings) as lab:
        run = _opened(lab, options)
        trial = _chosen_trial(run, options, settings)
        if options.trial is None and not options.json:
            put(f"{causes_told(run.report(policy=settings['policy']))}\n")
        if options.html:
            if trial.result is None:
                reason = trial.missing_reason or trial.outcome
                raise BadOptions("there is no answer to show", got=reason)
            export_html(trial.result, options.html)
            say(f"wrote {options.html}")
        if options.pytest:
            say(f"wrote {trial.as_pytest(options.pytest)}")
        if options.json:
            put_json(_json(trial))
        else:
            _put_trial(trial, color(settings, sys.stdout))
    return 0


def _opened(lab: Lab, options: Any) -> Run:
    name = options.run
    try:
        return lab.open(name)
    except UnknownName:
        # Reports show ids of trials, so that one is easily typed where a run belongs.
        if (
            options.trial is None
            and _TRIAL_ID.fullmatch(name)
            and lab.store.run_ids()
            and any(trial.trial_id.startswith(name) for trial in lab.open().trials())
        ):
            raise UnknownName(
                "this is the id of a trial, and the run comes first",
                got=name,
                hint=f"toolparse view latest {name}",
                code="unknown-run",
            ) from None
        raise


def _chosen_trial(run: Run, options: Any, settings: Settings) -> Trial:
    def fits(trial: Trial) -> bool:
        codes: set[str | None] = set()
        if trial.result:
            codes.update(problem.code for problem in trial.result.all_problems())
        if trial.score:
            codes.update((trial.score.outcome, trial.score.sub_code))
        return (
            (options.trial is None or trial.trial_id.startswith(options.trial))
            and options.case in (None, trial.case_id)
            and options.model in (None, trial.model)
            and options.arm in (None, trial.arm, trial.prompt_protocol)
            and (options.code is None or options.code in codes)
        )

    trials = run.trials(protocol=options.protocol, policies=(settings["policy"],))
    fitting = [trial for trial in trials if fits(trial)]
    if not fitting:
        # The most helpful error first: a name that no trial has.
        used = {
            "case": [trial.case_id for trial in trials],
            "model": [trial.model for trial in trials],
            "arm": [name for trial in trials for name in (trial.arm, trial.prompt_protocol)],
        }
        for kind, names in used.items():
            name = getattr(options, kind)
            if name is not None and name not in names:
                known = list(dict.fromkeys(names))
                raise UnknownName(
                    f"no trial of this run has this {kind}",
                    got=name,
                    expected=", ".join(known),
                    hint=near(name, known, cutoff=0.5) or _LISTED,
                    code="unknown-arm" if kind != "case" else None,
                )
        raise BadOptions(
            "no trial fits",
            got=options.trial or "these filters",
            expected=f"one of {counted(len(trials), 'trial')}",
            hint=_LISTED if options.trial else f"leave a filter out; {_LISTED}",
        )
    # The sort is stable, so the first failure of the run comes first.
    if options.trial is None:
        fitting.sort(key=lambda trial: not trial.failed)
    return fitting[0]


def _put_trial(trial: Trial, colored: bool) -> None:
    # Texts of cases, models and providers must not act on the terminal.
    lines = [str(trial)]
    if trial.cause:
        # In place of the outcome, of which the log of somebody who expects nothing knows none.
        cause = cause_words(trial.cause)
        lines = [trial.label, f"failed: {cause.word} ({trial.cause}): {cause.hint}"]
    if trial.case.input_text:
        lines.append(f"asked:  {question_of(trial.case.input_text)}")
    if trial.case.target is not None:
        lines.append(f"wanted: {write_canonical(trial.case.target)}")
    completion = trial.completion
    if completion is not None and not completion.ok:
        lines.append(f"error:  {completion.error_kind}: {completion.error_message}")
    if trial.blame.layer != "none":
        lines.append(f"blame:  {trial.blame.explained()}")
    put(visible("\n".join(lines)))
    if trial.result is not None:
        put("\n" + render_ansi(trial.result, color=colored))
    if trial.conversation is not None:
        put(visible(f"\nall turns:\n{trial.conversation}"))


def _json(trial: Trial) -> dict[str, Any]:
    completion = trial.completion
    return {
        "run_id": trial.run_id,
        "trial_id": trial.trial_id,
        "case": trial.case.to_dict(),
        "model": trial.model,
        "arm": trial.arm,
        "prompt_protocol": trial.prompt_protocol,
        "parse_protocol": trial.parse_protocol,
        "policy": trial.policy,
        "trial": trial.trial,
        "outcome": trial.outcome,
        "cause": trial.cause,
        "detail": trial.score.detail if trial.score else trial.missing_reason,
        "request": trial.request,
        "raw": completion.raw if completion else None,
        "error": completion.error_message if completion else None,
        "blame": trial.blame.to_dict(),
        "result": trial.result.to_dict() if trial.result else None,
        "conversation": str(trial.conversation) if trial.conversation else None,
    }


_OUTPUTS = (".jsonl", ".eval", ".parquet")
_STORE = b"SQLite format 3\x00"


@verb(
    "open",
    CONFIG,
    Option(
        "subject [RUN|FILE]",
        f"{RUN_HELP}; a store, whose latest run is shown; or a file with a model's text, "
        "- for standard input (default: latest)",
        default="latest",
    ),
    Option("trial [TRIAL]", "a trial's id (default: all trials of the run)"),
    Option("--protocol ID", "what reads the text or the trial"),
    Option("--tools FILE", "JSON file with the tools of a text"),
    STORE,
    POLICY,
    Option("--port PORT", "port, 0 for any free one (default: 0)", default=0),
    Option(
        "--theme",
        "auto is as the system is set (default: auto)",
        choices=("auto", "light", "dark"),
        default="auto",
    ),
    Option("--no-browser", "print the address and open no browser"),
    examples=(
        "toolparse open",
        "toolparse open latest --port 8866 --no-browser",
        "toolparse open answer.txt --protocol hermes --tools tools.json",
    ),
)
def _open(options: Any) -> int:
    """Serve the page until Ctrl-C, which leaves with 130."""
    need("open", "tornado", "anywidget", "pandas", "sqlalchemy")
    from ...notebook.live_page import serve_page  # an extra

    settings = settings_of(options)
    # A run, a file and its tools are looked for here, where an error is one line and no page.
    subject = _subject(options, settings)

    def tell(address: str) -> None:
        put(f"open {address}\nCtrl-C ends it; the address works on this machine only")
        # A script that started this waits for the line before it asks.
        sys.stdout.flush()

    serve_page(
        subject, port=options.port, theme=options.theme, browser=not options.no_browser, tell=tell
    )
    return 0


def _subject(options: Any, settings: Settings) -> Mapping[str, Any]:
    """Return what the page shows: a text and how it is read, or a store, a run and a trial."""
    name, policy = options.subject, settings["policy"]
    if name != "-" and _is_store(name):
        options.store, options.subject = name, "latest"
        return _subject(options, settings_of(options))
    if name == "-" or os.path.lexists(name) or looks_pasted(name):
        if options.trial is not None:
            raise BadOptions("a text has no trials", got=options.trial)
        if name.endswith(_OUTPUTS):
            say(
                f"toolparse: {name} is shown as one text; for a file of many recorded outputs "
                f"first `toolparse ingest {name}`, then `toolparse open`"
            )
        return {
            "text": read_text(name),
            "tools": read_tools(options.tools),
            "protocol": options.protocol or "auto",
            "policy": policy,
        }
    if options.tools is not None:
        raise BadOptions("the tools of a run are recorded with it", got=options.tools)
    with open_lab(settings) as lab:
        run = lab.open(name)
        trial = None
        if options.trial is not None:
            beginning = options.trial
            ids = [t.trial_id for t in run.trials() if t.trial_id.startswith(beginning)]
            if len(ids) != 1:
                raise BadOptions(
                    "several trials begin like this" if ids else "no trial of this run has this id",
                    got=beginning,
                    expected="the id of one trial, as `toolparse report --json` or the browser "
                    "shows it",
                )
            trial = ids[0]
        return {
            "store": lab.store.url.render_as_string(hide_password=False),
            "run": run.run_id,
            "trial": trial,
            "protocol": options.protocol,
            "policy": policy,
        }


def _is_store(name: str) -> bool:
    with suppress(OSError, ValueError), Path(name).open("rb") as file:
        return file.read(len(_STORE)) == _STORE
    return False


@verb(
    "reparse",
    CONFIG,
    Option(
        "source [source]",
        f"{RUN_HELP}, or Parquet of trials, a file or a folder (default: latest)",
        default="latest",
    ),
    *options_of(
        _REPARSE[0],
        "--protocols",
        "--policies A,B",
        policies="coercion policies (default: the setting `policy`)",
    ),
    *options_of(_REPARSE[1], "--engine", "--workers", "--overwrite"),
    Option("--out PATH", "write the trials frame, a .parquet file"),
    STORE,
    JSON,
    examples=(
        "toolparse reparse latest --protocols hermes,auto --policies none,safe --out again.parquet",
        "toolparse reparse trials.parquet --protocols auto --out again.parquet --workers 8",
    ),
)
def _reparse(options: Any) -> int:
    settings = settings_of(options)
    need_lab()
    trials = _trials(options, settings)
    if isinstance(trials, Path):
        say(f"wrote {trials}")
        if options.json:
            put_json({"path": str(trials)})
        return 0
    # A trial without an answer has no outcome, and is counted as such.
    keys = ["parse_protocol", "policy", "outcome"]
    counts = trials.groupby(keys, observed=True, dropna=False).size().reset_index(name="n")
    rows = [tuple(row) for row in counts.astype(object).where(counts.notna(), None).to_numpy()]
    put_table([*keys, "n"], rows, options.json)
    return 0


def _trials(options: Any, settings: Settings) -> Frame | Path:
    # Those of a file, a folder or a run, read again: a frame, or the path it was written to.
    settled = {"policies": [settings["policy"]], **given(options, *_REPARSE), "to": options.out}
    del settled["source"]
    # A path that is there goes before a run.
    if os.path.exists(options.source):
        from ...evals.reparse import reparse  # numpy: an extra

        trials: Frame | Path = reparse(options.source, **settled)
    elif options.source.endswith(".parquet") or os.sep in options.source:
        raise UnreadableInput(f"{options.source}: there is no such file or folder")
    else:
        with open_lab(settings) as lab:
            run = lab.open(options.source)
            trials = lab.reparse(run, **settled)
    return trials
