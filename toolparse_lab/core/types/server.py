"""The calls that a server read in an answer, beside ours: whose fault a missing call is."""

# How it works. Calls are paired by name and arguments, then by name alone, then one with one. What
# is left over on the model's side was lost, on the server's side made up; a pair that is not equal
# was changed. Arguments are equal as values, before or after our coercion.

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..values import read_plain, write_canonical
from ..values.printable import printable
from .blame import TOKENS_TELL, Blame

if TYPE_CHECKING:
    from .call import ToolCall

# Codes of problems with a response whose parts do not go together.
NO_CALL = "response.no-call"
ONLY_REASONED = "call.only-in-reasoning"
BESIDE_TEXT = "call.beside-text"
ESCAPED = "call.escaped"
IN_CONTENT = "call.in-content"
UNREAD_PART = "response.unread-part"
CUT = "response.cut"
_NOT_IT = "which the model did not write."
_MOST_NAMES = 5
_MOST_NAME = 60  # characters of a name
_LONGEST = 1_000_000  # characters of arguments that are compared as values


@dataclass(frozen=True, slots=True)
class ServerCall:
    """A call as the server says it: `arguments` is the text as it came, broken or not."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ServerReading:
    """The words of the response beside the text that was parsed.

    calls: the server's own tool calls. fidelity: where the text came from: logprobs, token_ids,
    raw_messages, wire or sdk. independent: the text is the model's, or False if it was made of
    these calls, and nothing can be compared.
    """

    calls: tuple[ServerCall, ...] = ()
    fidelity: str = "sdk"
    independent: bool = True

    @classmethod
    def of(cls, calls: Iterable[Any], fidelity: str, independent: bool) -> ServerReading:
        """Return the reading of tool calls in OpenAI's shape."""
        return cls(tuple(map(_server_call, calls)), fidelity, independent)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict, which `from_dict` reads."""
        return {
            "calls": [[call.name, call.arguments] for call in self.calls],
            "fidelity": self.fidelity,
            "independent": self.independent,
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> ServerReading:
        """Return the reading that `to_dict` described."""
        calls = tuple(ServerCall(str(name), str(arguments)) for name, arguments in d["calls"])
        return cls(calls, d["fidelity"], d["independent"])


def _server_call(call: Mapping[str, Any]) -> ServerCall:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else write_canonical(arguments)
    return ServerCall(str(function.get("name") or ""), arguments)


# Code of a problem with the response -> what it says by itself; the first that applies.
_BLAMES = {
    NO_CALL: Blame(
        "Server lost it: the response says that it ends with a call, and holds none.",
        "server",
        "dropped_by_server",
    ),
    ONLY_REASONED: Blame(
        "Cannot be told: the only call is in the reasoning, where the model wrote it or "
        "the server's parser left it.",
        "cannot_tell",
        "call_in_reasoning",
        would_tell=TOKENS_TELL,
    ),
    IN_CONTENT: Blame(
        "Server lost it: the content holds a call, and tool_calls hold none.",
        "server",
        "markup_in_content",
    ),
    ESCAPED: Blame(
        "Server lost it: the content holds a call whose marks are escaped.",
        "server",
        "markup_in_content",
    ),
}


def explain_blame(
    calls: tuple[ToolCall, ...], server: ServerReading, problems: Iterable[str] = ()
) -> Blame:
    """Return one sentence on where the calls of the model and of the server differ."""
    codes = set(problems)
    if UNREAD_PART in codes and not calls:
        return Blame(
            "Reader lost it: the response has a part of a kind that nobody knows.",
            "reader",
            "unread_part",
        )
    for code, blame in _BLAMES.items():
        if code in codes:
            return blame
    if BESIDE_TEXT in codes:
        return Blame(
            f"Server changed it: the text holds {_words([*calls])}, and in tool_calls it has no "
            "arguments.",
            "server",
            "changed_by_server",
        )
    if not server.independent:
        return Blame(
            "Cannot be told: the response holds the server's own calls and not what the model "
            "wrote; log probabilities or token ids would say it.",
            "cannot_tell",
            would_tell=TOKENS_TELL,
        )
    theirs = list(server.calls)
    # A call of no known tool is a whole call all the same.
    whole = ("ok", "unknown_tool")
    good = [call for call in calls if call.status in whole]
    bad = [call for call in calls if call.status not in whole and call.verdict != "echoed"]
    bad = [call for call in bad if not any(p.code == "call.held-back" for p in call.problems)]
    ours = _unmatched(good, theirs)
    if not calls:
        names = f"say {_names(theirs)}" if theirs else "hold none"
        why = f"Model wrote none: its text holds no call, and tool_calls {names}."
        return Blame(why, "server", "changed_by_server") if theirs else Blame(why)
    if theirs:
        said = f"tool_calls say {_names(theirs)}"
        written = [*ours, *bad]
        why = f"the model wrote {_words(written)}, and {said}." if written else f"{said}, {_NOT_IT}"
        return Blame(f"Server changed it: {why}", "server", "changed_by_server")
    if ours:
        in_content = server.fidelity in ("sdk", "wire")
        as_text = " It was left in the content, as it is where no tools are sent."
        return Blame(
            f"Server lost it: the model wrote {_words(ours)}, which is not in tool_calls."
            f"{as_text if in_content else ''}",
            "server",
            "markup_in_content" if in_content else "dropped_by_server",
        )
    if bad:
        why = f"Agree: the model wrote {_words(bad)}, and the server gave no such call."
        return Blame(why, "model")
    if not good:
        return Blame("Agree: neither takes a call for the model's own.")
    count = len(good)
    return Blame(
        f"Agree: tool_calls say the {count} call{'s' if count > 1 else ''} that the model wrote."
    )


def same_json(one: str, other: str) -> bool:
    """Return True if two texts of arguments say the same."""
    return _canonical(one) == _canonical(other)


def same_arguments(text: str, call: ToolCall) -> bool:
    """Return True if the text of a server's arguments says those of a call that was read."""
    canonical = _canonical(text)
    return canonical in (_canonical(call.arguments_json), _canonical(call.source_json))


def _unmatched(calls: list[ToolCall], theirs: list[ServerCall]) -> list[ToolCall]:
    alone = []
    waiting: dict[str, dict[str, list[ServerCall]]] = {}
    for their in theirs:
        waiting.setdefault(their.name, {}).setdefault(_canonical(their.arguments), []).append(their)
    for call in calls:
        by_arguments = waiting.get(call.name, {})
        for text in (call.arguments_json, call.source_json):
            if equal := by_arguments.get(_canonical(text)):
                equal.pop(0)
                break
        else:
            alone.append(call)
    theirs[:] = [t for by in waiting.values() for equals in by.values() for t in equals]
    return alone


def _canonical(text: str) -> str:
    # A value that is not JSON, or very long, is compared as it is. Without arguments it is an empty
    # object.
    if not text.strip():
        return "{}"
    if len(text) > _LONGEST:
        return text
    try:
        return json.dumps(read_plain(text), sort_keys=True, default=str)
    except (ValueError, TypeError, RecursionError):
        return text


def _words(calls: list[ToolCall]) -> str:
    words = [
        f"{_name(call.name)}{'' if call.ok else f' ({call.verdict})'}"
        for call in calls[:_MOST_NAMES]
    ]
    return _listed(words, len(calls))


def _names(calls: list[ServerCall]) -> str:
    return _listed([_name(call.name) for call in calls[:_MOST_NAMES]], len(calls))


def _name(name: str) -> str:
    name = name[:_MOST_NAME]
    return printable(name) or "a call without a name"


def _listed(words: list[str], count: int) -> str:
    more = count - len(words)
    return ", ".join(words) + (f" and {more} more" if more > 0 else "")
