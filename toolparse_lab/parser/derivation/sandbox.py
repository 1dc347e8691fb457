"""The process that renders a chat template of a stranger: `python -m` this module.

It reads one request from its standard input and writes one answer to its standard output, both
JSON. `renderer.py` starts it, bounds its time and ends it. Nothing but jinja2 and the standard
library is necessary here.
"""

# How it works. A template is a program: jinja2's sandbox keeps it from Python's internals, and the
# limits of this process keep it from time and memory: seconds of CPU, bytes of address space, and
# characters of output. Values come in by JSON and strings go out, so that nothing is shared.

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .tracer import Tracer, traced

# A template may ask for the date; a derivation must not depend on it.
_TODAY = datetime.datetime(2026, 1, 1, 12, 0, 0)
# Templates collect in lists of their own. Ours are made for each rendering.
_COLLECTING = frozenset(("append", "extend", "insert", "pop", "update"))


class GenerationTag(Extension):
    """The tag `{% generation %}`, which marks the model's own text for training."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """jinja2's sandbox, in which lists and dicts may be added to."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if attr in _COLLECTING and isinstance(obj, (list, dict)):
            return True
        return super().is_safe_attribute(obj, attr, value)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Without the escapes for HTML that jinja2's own filter writes.
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
        default=list,  # what `map` and `select` give
    )


def _raise(message: str) -> None:
    raise TemplateError(message)


def environment() -> TemplateSandbox:
    sandbox = TemplateSandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols]
    )
    sandbox.filters["tojson"] = _to_json
    sandbox.filters["from_json"] = sandbox.filters["fromjson"] = json.loads
    sandbox.globals["raise_exception"] = _raise
    sandbox.globals["strftime_now"] = _TODAY.strftime
    return sandbox


def limit(seconds: int, memory: int) -> None:
    # A system without such limits leaves it to the caller's clock.
    try:
        import resource  # not on every system
    except ImportError:
        return
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory)):
        try:
            resource.setrlimit(kind, (most, most))
        except (ValueError, OSError):
            continue


def rendering(template: Any, variables: Mapping[str, Any], most: int) -> dict[str, str]:
    # most: characters of text, beyond which it is an error.
    pieces: list[str] = []
    length = 0
    for piece in template.generate(**variables):
        pieces.append(piece)
        length += len(piece)
        if length > most:
            return {"error": f"the text is longer than {most} characters"}
    return {"text": "".join(pieces)}


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a request.

    request: {template, jobs, output}, a job being the variables of one rendering. With {flips},
    one number or None a job, the renderings are traced (see `tracer.Tracer`). The answer is
    {renderings} in the order of the jobs, or {error} for a template that is none.
    """
    flips = request.get("flips")
    try:
        if flips is None:
            template = environment().from_string(request["template"])
        else:
            template = traced(environment(), request["template"])
    except Exception as error:
        return {"error": message_of(error)}
    renderings: list[dict[str, Any]] = []
    for i, job in enumerate(request["jobs"]):
        tracer = None if flips is None else Tracer(flips[i])
        variables = job if tracer is None else {**job, **tracer.variables}
        try:
            answer: dict[str, Any] = rendering(template, variables, request["output"])
        except Exception as error:  # a template may fail in any way that Python has
            answer = {"error": message_of(error), "line": _line_of(error.__traceback__)}
        # Of a flipped test the text is wanted alone.
        if tracer is not None and tracer.flip is None:
            answer["events"] = tracer.events
        renderings.append(answer)
    return {"renderings": renderings}


def _line_of(traceback: TracebackType | None) -> int | None:
    # jinja2 puts the template's own lines in place of those of the code made from it.
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename in ("<template>", "<unknown>"):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def message_of(error: Exception) -> str:
    line = getattr(error, "lineno", None)
    place = f"line {line}: " if isinstance(line, int) else ""
    return f"{type(error).__name__}: {place}{str(error)[:400]}".removesuffix(": ")


def main() -> None:
    # Before the limit of memory counts: whatever is written later is short.
    request = json.load(sys.stdin)
    limit(request["seconds"], request["memory"])
    json.dump(answer(request), sys.stdout)


if __name__ == "__main__":
    main()
