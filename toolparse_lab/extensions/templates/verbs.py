"""The verb `template`: derive the protocol of a chat template, check it, replay a conversation."""

from __future__ import annotations

import json
from typing import Any

from ...cli.console import put, put_json, put_told, read_text, say
from ...cli.options import JSON, Option, verb
from ...core.errors import BadOptions, UnreadableInput
from ...core.files import replace_file
from ...views.show import visible

_OF_ACTION = {
    "derive": ("id", "laws"),
    "check": ("protocol", "strict", "html"),
    "replay": ("protocol", "conversation"),
}


@verb(
    "template",
    Option("action", "what to do", choices=tuple(_OF_ACTION)),
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
    Option("--id ID", "of derive: the id of the protocol (default: from the template's text)"),
    Option("--laws", "of derive: try the laws of parsing on the protocol as well"),
    Option(
        "--protocol ID",
        "of check and replay: what reads the calls (default: derived from the template)",
    ),
    Option("--strict", "of check: exit with 1 for limits of the format as well"),
    Option("--html FILE", "of check: write the findings as one HTML file"),
    JSON,
    examples=(
        "toolparse template derive chat_template.jinja",
        "toolparse template derive tokenizer_config.json --laws",
        "curl -sL $URL | toolparse template derive - --id mine",
        "toolparse template check http://127.0.0.1:8080 --json",
        "toolparse template check models/mine --protocol hermes",
        "toolparse template replay chat_template.jinja conversation.json",
    ),
)
def _template_verb(options: Any) -> int:
    """Return 1 if a law is violated, a value lost, or a turn shown otherwise than drawn."""
    for name in {name for names in _OF_ACTION.values() for name in names}:
        if getattr(options, name) and name not in _OF_ACTION[options.action]:
            of = " and ".join(action for action, names in _OF_ACTION.items() if name in names)
            raise BadOptions(f"{name} goes with {of}", got=options.action)
    return _ACTIONS[options.action](options)


def _derive(options: Any) -> int:
    # As little as each action needs is imported: `--help` waits for none.
    from ...entry.parse import parse_text
    from .derivation.answers import FIT, tools_of
    from .derivation.derive import protocol_from_chat_template
    from .laws.check_protocol import check_protocol

    protocol = protocol_from_chat_template(_template(options.file), id=options.id)
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


def _check(options: Any) -> int:
    # as above
    from ...views import render_page
    from .doctor.check import check_template

    report = check_template(_template(options.file), protocol=options.protocol)
    if options.html:
        page = render_page("What the chat template loses", report.html())
        replace_file(options.html, [page])
        say(f"wrote {options.html}")
    put_told(options.json, report.to_dict(), report)
    return 1 if not report.ok or (options.strict and report.findings) else 0


def _replay(options: Any) -> int:
    from .doctor.replay import replay_check  # as above

    if options.conversation is None:
        raise BadOptions("replay takes a conversation behind the template", got="none")
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


_ACTIONS = {"derive": _derive, "check": _check, "replay": _replay}


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
