"""What is wrong with an answer, in one sentence that a person understands without our words."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..core.rules import RULES
from ..core.types import ParseResult, Problem, ToolCall
from ..core.values.printable import counted
from .rows import Fault, doubled_keys, json_of
from .show import shorten, visible
from .words import cause_words

_MOST_FAULTS = 3
_QUESTION = 300  # characters
_DOUBLED = ("decode.duplicate-key", "decode.duplicate-string-tag")
_CUT_BY = {
    "length": "the token limit was reached",
    "open_call": "nothing says why",
    "incomplete": "the server’s call is not complete",
    "cut_stream": "the stream broke off",
}
_EXPECTED = re.compile(r"expected (?P<type>\w+(?: or \w+)*), got \w+")


def sentence_of_answer(
    result: ParseResult | None, faults: Sequence[Fault] = (), sub_code: str = "", detail: str = ""
) -> str:
    """Return what is wrong, or how the answer was read.

    faults: where it is not what was expected. sub_code, detail: of its score.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2}}</tool_call>'
    >>> tools = [{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}]
    >>> sentence_of_answer(tp.parse(text, "hermes", tools))
    'The key “a” is given twice: 1 and 2. Nothing tells which is meant.'
    """
    if result is None:
        return _sentence(detail or "There is no answer to read.")
    stops = [_stop(call, sub_code) for call in result.calls if not call.valid]
    stopped = [words for words in stops if words]
    if faults and not (stopped and faults[0].call is None):
        told = " ".join(fault.sentence for fault in faults[:_MOST_FAULTS])
        left = len(faults) - _MOST_FAULTS
        return visible(told + (f" And {left} more." if left > 0 else ""))
    if stopped:
        more = f" {counted(len(stopped) - 1, 'further call')} cannot run either."
        return stopped[0] + (more if len(stopped) > 1 else "")
    errors = [problem for problem in result.problems if problem.severity == "error"]
    if errors:
        return _problem(errors[0], None)
    if not result.calls:
        return _sentence(detail or "No call was found, and nothing that looks like one.")
    return _fine(result)


def _fine(result: ParseResult) -> str:
    rules = [edit.rule for call in result.calls for edit in call.edits]
    rules += [s.rule for call in result.calls for s in call.steps if s.stage == "coerce"]
    can = "The call can" if len(result.calls) == 1 else f"All {len(result.calls):,} calls can"
    if not rules:
        return f"{can} be executed as written."
    told = [RULES[rule].sentence.rstrip(".") for rule in dict.fromkeys(rules) if rule in RULES]
    return f"{can} be executed after {counted(len(rules), 'change')}. {'. '.join(told[:3])}."


def _stop(call: ToolCall, sub_code: str) -> str:
    # The first of what stops a call.
    if call.status == "truncated":
        why = _CUT_BY.get(sub_code, "")
        return f"The answer ends inside the call{': ' + why if why else ''}."
    for problem in call.problems:
        if problem.severity == "error":
            return _problem(problem, call)
    return ""


def _problem(problem: Problem, call: ToolCall | None) -> str:
    name = visible(problem.path.removeprefix("/"))
    message = visible(shorten(problem.message, 400))
    if call is not None and problem.code in _DOUBLED:
        for key, values in doubled_keys(call).items():
            both = " and ".join(visible(shorten(value, 60)) for value in values)
            times = "twice" if len(values) == 2 else f"{len(values)} times"
            which = "which is meant"
            return f"The key “{visible(key)}” is given {times}: {both}. Nothing tells {which}."
    if call is not None and problem.code == "call.unknown-tool":
        offered = message.partition("none of the tools: ")[2]
        end = f" Offered: {offered}." if offered else ""
        return f"The tool {visible(call.name)} was not offered.{end}"
    if problem.code == "validate.required":
        missing = message.removeprefix("missing: ")
        return f"The required argument “{missing}” is not there."
    found = _found(call, problem.path) if call is not None and name else ""
    if problem.code == "validate.type" and found and (match := _EXPECTED.match(message)):
        return f"“{name}” is {found}; the schema asks for {match['type']}."
    if problem.code == "validate.enum" and found:
        allowed = (
            message.partition("one of ")[2].partition(", got")[0].strip("[]").replace("'", '"')
        )
        return f"“{name}” is {found}; allowed are {allowed}."
    said = f"“{name}”: {message}" if name else message
    hint = cause_words(problem.code).hint
    return _sentence(said or hint)


def _found(call: ToolCall, path: str) -> str:
    value: Any = call.arguments
    for token in path.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return ""
    return visible(shorten(json_of(value), 80))


def _sentence(text: str) -> str:
    text = visible(text)
    return text[:1].upper() + text[1:] + ("" if text[-1:] in ".?!" else ".")


def question_of(asked: str) -> str:
    """Return what was asked in one line: of the messages of a conversation the last of the user,
    with its number where there are several.

    >>> question_of('[{"role":"user","content":"A?"},{"role":"user","content":"B?"}]')
    'turn 2: B?'
    """
    if asked.startswith("[{"):
        try:
            messages = json.loads(asked)
        except (ValueError, RecursionError):
            messages = []
        said = [
            m.get("content") for m in messages if isinstance(m, dict) and m.get("role") == "user"
        ]
        if said and isinstance(said[-1], str):
            asked = said[-1] if len(said) == 1 else f"turn {len(said)}: {said[-1]}"
    return asked[:_QUESTION].replace("\n", " ")
