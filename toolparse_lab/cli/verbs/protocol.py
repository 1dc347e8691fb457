"""`toolparse protocol`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ...formats.base import Protocol
from ...parser.derivation.answers import FIT, tools_of
from ...parser.laws.check_protocol import check_protocol
from ...parser.parse import parse_text
from ...views.show import visible
from ..inputs import read_text
from ..options import add_json
from ..output import put, put_json

if TYPE_CHECKING:
    from ...core.types import ParseResult

EXAMPLES = (
    "toolparse protocol derive chat_template.jinja",
    "toolparse protocol derive tokenizer_config.json --laws",
    "curl -sL $URL | toolparse protocol derive - --id mine",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the files of the model, and the way to deal with them."""
    command.add_argument("action", choices=("derive",), help="what to do")
    command.add_argument(
        "file",
        help="a chat template, a tokenizer_config.json, a chat_template.json, or a model's folder; "
        "- for standard input",
    )
    command.add_argument("--id", help="the id of the protocol (default: from the template's text)")
    command.add_argument(
        "--laws", action="store_true", help="try the laws of parsing on the protocol as well"
    )
    add_json(command)


def run(options: Any) -> int:
    """Derive a protocol and show how it reads an answer. Return 1 if a law is violated."""
    template = _standard_input() if options.file == "-" else options.file
    protocol = Protocol.from_chat_template(template, id=options.id)
    derivation = protocol.derivation
    if derivation is None:
        raise AssertionError("a derived protocol has its derivation")
    result = parse_text(derivation.example, protocol, tools_of(FIT))
    laws = check_protocol(protocol) if options.laws else None
    if options.json:
        account = {"id": protocol.id, **derivation.to_dict(), "calls": _calls(result)}
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


def _standard_input() -> Any:
    """Return the template on standard input, or the object of a configuration there."""
    text = read_text("-")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return f"{text}\n"  # a text, though it might be the name of a file
    return value if isinstance(value, dict) else f"{text}\n"


def _calls(result: ParseResult) -> list[dict[str, Any]]:
    """Return the calls of a result as JSON."""
    return [{"name": call.name, "arguments": call.arguments} for call in result.calls]
