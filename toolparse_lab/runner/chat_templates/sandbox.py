"""The process that renders a chat template of a stranger: this file as a script.

It reads requests from its standard input and writes an answer to each to its standard output, both
a line of JSON. `renderer.py` starts it, bounds its time and ends it. Nothing but jinja2 and the
standard library is necessary here.
"""

# How it works. A template is a program: jinja2's sandbox keeps it from Python's internals, and the
# limits of this process keep it from time and memory: seconds of CPU, bytes of address space, and
# characters of output. Values come in by JSON and strings go out, so that nothing is shared.

from __future__ import annotations

import datetime
import functools
import json
import math
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from jinja2 import Environment, Template, nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

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
    # The time of earlier requests counts too.
    seconds += math.ceil(time.process_time())
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory)):
        try:
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
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
    one number or None a job, the renderings are traced (see `Tracer`). The answer is
    {renderings} in the order of the jobs, or {error} for a template that is none.
    """
    flips = request.get("flips")
    try:
        template = _compiled(request["template"], flips is not None)
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


@functools.lru_cache(maxsize=4)
def _compiled(source: str, is_traced: bool) -> Template:
    return traced(environment(), source) if is_traced else environment().from_string(source)


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


# The lines of a template that run while it renders, and what each of them writes. A template is
# traced by its syntax tree: what it writes, sets and tests goes through functions that keep a
# record and return the same value.

_LONGEST = 4_000  # characters kept of one value
_MOST = 50_000  # events of one rendering
_ENTER, _NOTE = "__line_enter", "__line_note"


class Tracer:
    """The record of one rendering.

    events: [kind, line, depth, text], in the order in which they end. kind: 'write', 'set', 'test'
    for a tag and 'choice' for `a if b else c`. depth: the number of events around it, as a macro's
    are inside the one that calls it. flip: the number of a test among all tests and choices that
    answers the opposite.
    """

    def __init__(self, flip: int | None = None) -> None:
        self.events: list[tuple[str, int, int, str]] = []
        self._depth = 0
        self._tests = 0
        self.flip = flip

    def enter(self) -> None:
        self._depth += 1

    def note(self, kind: str, line: int, _entered: None, value: Any) -> Any:
        self._depth -= 1
        if kind in ("test", "choice"):
            value = bool(value)
            if self._tests == self.flip:
                value = not value
            self._tests += 1
        # A mapping or a list that is set is nothing that was written yet.
        if kind != "set" or isinstance(value, str):
            if len(self.events) >= _MOST:
                raise OverflowError("too many steps to trace")
            self.events.append((kind, line, self._depth, str(value)[:_LONGEST]))
        return value

    @property
    def variables(self) -> Mapping[str, Any]:
        return {_ENTER: self.enter, _NOTE: self.note}


def traced(environment: Environment, source: str) -> Template:
    """Return the template of a text, to be rendered with the variables of a Tracer.

    Raises the errors of jinja2 for a text that is no template.
    """
    tree = _Instruments().visit(environment.parse(source))
    nodes.Node.set_environment(tree, environment)
    code = environment.compile(tree)
    return environment.template_class.from_code(environment, code, environment.make_globals(None))


class _Instruments(NodeTransformer):
    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802 - jinja2's name
        children: list[nodes.Expr] = []
        for child in node.nodes:
            if isinstance(child, nodes.TemplateData):
                children.append(child)
            else:
                children.append(_noted("write", self.visit(child)))
        node.nodes = children
        return node

    def visit_Assign(self, node: nodes.Assign) -> nodes.Node:  # noqa: N802 - jinja2's name
        self.generic_visit(node)
        if not isinstance(node.node, nodes.Tuple):
            node.node = _noted("set", node.node)
        return node

    def visit_If(self, node: nodes.If) -> nodes.Node:  # noqa: N802 - jinja2's name
        self.generic_visit(node)
        node.test = _noted("test", node.test)
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - jinja2's name
        self.generic_visit(node)
        if node.test is not None:
            node.test = _noted("test", node.test)
        return node

    def visit_CondExpr(self, node: nodes.CondExpr) -> nodes.Node:  # noqa: N802 - jinja2's name
        self.generic_visit(node)
        node.test = _noted("choice", node.test)
        return node


def _noted(kind: str, expression: Any) -> nodes.Expr:
    # Arguments are evaluated from left to right, so that the depth counts what is inside.
    line = expression.lineno
    enter = nodes.Call(nodes.Name(_ENTER, "load"), [], [], None, None, lineno=line)
    values = [nodes.Const(kind), nodes.Const(line), enter, expression]
    return nodes.Call(nodes.Name(_NOTE, "load"), values, [], None, None, lineno=line)


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        limit(request["seconds"], request["memory"])
        # The limit of memory counts now: what is written is short.
        sys.stdout.write(json.dumps(answer(request)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
