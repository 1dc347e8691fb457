"""Read one answer: parse it, derive the protocol of the model that wrote it, check its template."""

from __future__ import annotations

import json
import sys
from typing import Any

from ...core.errors import BadOptions, UnreadableInput
from ...core.files import replace_file
from ...core.types import EXECUTABLE, ParseOptions
from ...entry.parse import parse, parse_text
from ...notebook.page import export_html
from ...parser.derivation.answers import FIT, tools_of
from ...parser.derivation.derive import from_chat_template
from ...parser.laws.check_protocol import check_protocol
from ...parser.recognition.attempts import example_spans, find_attempt, parameter_names
from ...views import render_ansi, render_page
from ...views.show import visible
from ..console import put, put_json, put_told, read_text, read_tools, say
from ..options import COLOR, CONFIG, JSON, POLICY, Option, color, settings_of, verb


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
    Option("--shrink", "print the smallest text that fails alike"),
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
    if options.shrink:
        from ...evals.scoring.shrink import shrink  # slow to import

        small = shrink(raw, options.protocol, tools, options=allowed)
        account = {
            "raw": small.raw,
            "tools": [tool.to_dict() for tool in small.tools],
            "codes": small.codes,
            "test": small.as_test(),
        }
        put_told(options.json, account, f"{small}\n\n{small.as_test()}")
        return 0
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


@verb(
    "protocol",
    Option("action", "what to do", choices=("derive",)),
    Option(
        "file",
        "a chat template, a tokenizer_config.json, a chat_template.json, or a model's folder; "
        "- for standard input",
    ),
    Option("--id ID", "the id of the protocol (default: from the template's text)"),
    Option("--laws", "try the laws of parsing on the protocol as well"),
    JSON,
    examples=(
        "toolparse protocol derive chat_template.jinja",
        "toolparse protocol derive tokenizer_config.json --laws",
        "curl -sL $URL | toolparse protocol derive - --id mine",
    ),
)
def _protocol(options: Any) -> int:
    """Derive a protocol and show how it reads an answer. Return 1 if a law is violated."""
    protocol = from_chat_template(_template(options.file), id=options.id)
    derivation = protocol.derivation
    if derivation is None:
        raise AssertionError("a derived protocol has its derivation")
    result = parse_text(derivation.example, protocol, tools_of(FIT))
    laws = check_protocol(protocol) if options.laws else None
    if options.json:
        calls = [{"name": call.name, "arguments": call.arguments} for call in result.calls]
        account = {"id": protocol.id, **derivation.to_dict(), "calls": calls}
        if laws is not None:
            account["violated"] = [str(finding) for finding in laws.violated]
        put_json(account)
    else:
        put(visible(f"{protocol.id}\n{derivation}\n\nan answer as the template writes it:"))
        put(visible(derivation.example))
        put("\nread back:")
        for call in result.calls:
            put(visible(f"  {call.name} {call.arguments_json}"))
        if laws is not None:
            put(f"\n{laws}")
    return 1 if laws is not None and not laws.ok else 0


@verb(
    "template",
    Option("action", "what to do", choices=("check", "replay")),
    Option(
        "file SOURCE",
        "a chat template, a tokenizer_config.json, a chat_template.json, a model's folder, or "
        "the address of a llama.cpp server; - for standard input",
    ),
    Option(
        "conversation [FILE]",
        "of replay: JSON of the messages, or of {messages, tools}; what the model drew is the "
        "`raw` of an assistant's message",
    ),
    Option("--protocol ID", "what reads the calls (default: derived from the template)"),
    Option("--strict", "exit with 1 for limits of the format as well"),
    Option("--html FILE", "write the findings of check as one HTML file"),
    JSON,
    examples=(
        "toolparse template check chat_template.jinja",
        "toolparse template check http://127.0.0.1:8080 --json",
        "toolparse template check models/mine --protocol hermes",
        "toolparse template replay chat_template.jinja conversation.json",
    ),
)
def _template_verb(options: Any) -> int:
    """Check a template. Return 1 if it loses something, or shows a turn otherwise than drawn."""
    if options.action == "replay":
        return _replay(options)
    if options.conversation is not None:
        raise BadOptions("check takes a template alone", got=options.conversation)
    from ...parser.doctor.check import check_template  # only this verb: 25 ms of each parse

    report = check_template(_template(options.file), protocol=options.protocol)
    if options.html:
        from ...notebook.template_view import render_template_report  # as above

        page = render_page("What the chat template loses", render_template_report(report))
        replace_file(options.html, [page])
        say(f"wrote {options.html}")
    put_told(options.json, report.to_dict(), report)
    return 1 if not report.ok or (options.strict and report.findings) else 0


def _replay(options: Any) -> int:
    from ...parser.doctor.replay import replay_check  # only this verb, as above

    if options.conversation is None:
        raise BadOptions("replay takes a conversation behind the template", got="none")
    if options.strict or options.html:
        raise BadOptions("--strict and --html go with check", got="replay")
    try:
        conversation = json.loads(read_text(options.conversation))
    except (ValueError, RecursionError) as e:
        raise UnreadableInput(
            "the conversation is no JSON", got=str(e), expected="messages, or {messages, tools}"
        ) from None
    messages, tools = conversation, None
    if isinstance(conversation, dict):
        messages, tools = conversation.get("messages"), conversation.get("tools")
    report = replay_check(
        messages or [], _template(options.file), tools=tools, protocol=options.protocol or "auto"
    )
    put_told(options.json, report.to_dict(), report)
    return 0 if report.ok else 1


def _template(file: str) -> Any:
    # What a chat template is taken from: the argument as it is, or what standard input has.
    if file != "-":
        return file
    text = read_text("-")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    # With a line break it is a template, though it might be the name of a file.
    return value if isinstance(value, dict) else f"{text}\n"
