"""Recorded texts as tests, for hooks and continuous integration. Needs no extra."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from ...core.errors import BadOptions, UnreadableInput
from ...core.types import EXECUTABLE, ParseOptions
from ...entry.parse import parse
from ...notebook.page import export_html
from ...parser.recognition.attempts import example_spans, find_attempt, parameter_names
from ...views import render_ansi
from ...views.junit import add_suite, add_test, add_verdict, junit_file, xml_text
from ...views.show import visible
from ..console import put, put_json, read_text, read_tools, say
from ..options import COLOR, CONFIG, JSON, POLICY, Option, color, settings_of, verb

if TYPE_CHECKING:
    from ...evals.scoring.text_tests import TextVerdict

_MOST_SHOWN = 50
_LONGEST_RAW = 2000


@verb(
    "test",
    CONFIG,
    Option(
        "files FILE ...",
        "rows of raw, tools, protocol and target (.jsonl, .json, .csv, .parquet), or a text",
    ),
    Option("--tools FILE", "JSON file with the tools of rows that name none"),
    Option("--protocol PROTOCOL", "the protocol of rows that name none (auto)", default="auto"),
    POLICY,
    Option("--fail-under RATE", "the share of tests that has to pass (default: all)"),
    Option("--baseline FILE", "what --json printed before: tests that failed there may fail"),
    Option("--junit FILE", "write the verdicts as JUnit XML"),
    Option("--summary FILE", "add a summary in Markdown, as GitHub shows it"),
    JSON,
    examples=(
        "toolparse test answers.jsonl",
        "toolparse test tests/*.jsonl --junit report.xml",
        "toolparse test answers.jsonl --json",
        "toolparse test answers.jsonl --baseline baseline.json",
    ),
)
def _test(options: Any) -> int:
    """Read every text. The exit code is 1 if one fails that should not."""
    from ...evals.scoring.text_tests import run_test, text_tests  # only this verb needs it

    settings = settings_of(options)
    rate = options.fail_under
    if rate is not None and not 0 <= rate <= 1:
        raise BadOptions("a share is from 0 to 1", got=rate, expected="--fail-under 0.95")
    known = set() if options.baseline is None else _failed_before(options.baseline)
    tools, allowed = read_tools(options.tools), ParseOptions(coerce=settings["policy"])
    verdicts = [
        run_test(test, allowed)
        for file in options.files
        for test in text_tests(file, tools=tools, protocol=options.protocol)
    ]
    if not verdicts:
        raise UnreadableInput("there are no tests in it", got=", ".join(options.files))
    failed = [verdict for verdict in verdicts if not verdict.passed]
    new = [verdict for verdict in failed if _name(verdict) not in known]
    passed, total = len(verdicts) - len(failed), len(verdicts)
    ok = passed / total >= rate if rate is not None else not new
    headline = f"{passed} of {total} passed"
    if known:
        headline += f", {len(failed) - len(new)} failed before as well"
    if options.junit:
        Path(options.junit).write_text(_junit(verdicts, known), "utf-8")
    if options.summary:
        with Path(options.summary).open("a", encoding="utf-8") as file:
            file.write(_summary(headline, new))
    if options.json:
        rows = [_row(verdict, known) for verdict in failed]
        put_json({"tests": total, "passed": passed, "ok": ok, "failed": rows})
        return 0 if ok else 1
    for verdict in new[:_MOST_SHOWN]:
        put(visible(f"FAILED {verdict}"))
    if len(new) > _MOST_SHOWN:
        put(f"and {len(new) - _MOST_SHOWN} more")
    put(headline)
    return 0 if ok else 1


def _name(verdict: TextVerdict) -> str:
    # The same wherever the file lies, and whichever line the test is on.
    return f"{Path(verdict.test.file).name}:{verdict.test.case.id}"


def _row(verdict: TextVerdict, known: set[str]) -> dict[str, Any]:
    score = verdict.score
    return {
        "name": _name(verdict),
        "place": verdict.test.place,
        "outcome": score.outcome,
        "sub_code": score.sub_code,
        "detail": score.detail,
        "mismatches": [asdict(row) for row in score.mismatches],
        "new": _name(verdict) not in known,
    }


def _failed_before(file: str) -> set[str]:
    try:
        return {row["name"] for row in json.loads(Path(file).read_text("utf-8"))["failed"]}
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise UnreadableInput(
            "this is no baseline", got=f"{file}: {e}", expected="what toolparse test --json printed"
        ) from None


def _junit(verdicts: Sequence[TextVerdict], known: set[str]) -> str:
    root = ET.Element("testsuites", name="toolparse test")
    suites: dict[str, ET.Element] = {}
    for verdict in verdicts:
        file = verdict.test.file
        if file not in suites:
            suites[file] = add_suite(root, file)
        test = add_test(suites[file], file, verdict.test.case.id)
        if not verdict.passed:
            tag = "skipped" if _name(verdict) in known else "failure"
            element = add_verdict(test, tag, str(verdict.score))
            lines = [verdict.test.place, *verdict.score.why[1:], verdict.test.raw[:_LONGEST_RAW]]
            element.text = xml_text("\n".join(lines))
    return junit_file(root)


def _summary(headline: str, failed: Sequence[TextVerdict]) -> str:
    lines = ["### Tool calls", "", headline, ""]
    if failed:
        lines += ["| test | outcome | why |", "| --- | --- | --- |"]
    for verdict in failed[:_MOST_SHOWN]:
        score = verdict.score
        outcome = "/".join(filter(None, (score.outcome, score.sub_code)))
        cells = (_name(verdict), outcome, score.detail)
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    # Names and details hold words of the model: nothing of them is Markdown or HTML.
    plain = visible(text).replace("\n", " ").replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|>~])", r"\\\1", plain)


@verb(
    "parse",
    CONFIG,
    Option("file", "a file with the model's text, - for standard input, or the text itself"),
    Option("--protocol PROTOCOL", "protocol id (default: auto)", default="auto"),
    Option("--tools FILE", "JSON file with the tool definitions"),
    POLICY,
    Option("--reasoning REASONING", "auto, prefilled or none (default: auto)", default="auto"),
    Option("--no-repair", "read strict bodies only"),
    Option("--no-recover", "read no calls outside their format"),
    Option("--json", "print the whole result as JSON"),
    Option("--html FILE", "write the parse view as one HTML file"),
    COLOR,
    examples=(
        "toolparse parse answer.txt --protocol hermes --tools tools.json",
        "curl -s $URL | toolparse parse - --json",
        'toolparse parse \'<tool_call>{"name": "f", "arguments": {}}</tool_call>\'',
    ),
)
def _parse(options: Any) -> int:
    """Parse one text and show the result. The exit code says whether its calls may be executed."""
    settings = settings_of(options)
    allowed = ParseOptions(
        repair=not options.no_repair,
        recover=not options.no_recover,
        coerce=settings["policy"],
        reasoning=options.reasoning,
    )
    if options.file == options.tools == "-":
        raise BadOptions("standard input is one of the text and the tools, not both")
    tools = read_tools(options.tools)
    raw = read_text(options.file)
    result = parse(raw, options.protocol, tools, allowed)
    # The page is written first: a full disk is told before anything is printed.
    if options.html:
        export_html(result, options.html)
    if options.json:
        put_json(result.to_dict())
    else:
        put(render_ansi(result, color=color(settings, sys.stdout)))
        if tools is None and result.calls:
            say(
                "toolparse: no tools were given, so names and arguments were not checked; "
                "--tools FILE checks them"
            )
    if result.calls:
        return 0 if all(call.verdict in EXECUTABLE for call in result.calls) else 1
    # Without a call the text may still show that one was tried, outside thoughts and examples.
    thoughts = [segment.span for segment in result.segments if segment.kind == "reasoning"]
    passed_over = [(span.start, span.end) for span in (*thoughts, *example_spans(result))]
    names = [tool.name for tool in result.tools]
    attempt = find_attempt(result.raw, names, sorted(passed_over), parameter_names(result.tools))
    if attempt is not None:
        say(f"toolparse: no call was read, though this looks like one: {visible(attempt.text)}")
    return 0 if result.ok and attempt is None else 1
