"""The lines of a template that run while it renders, and what each of them writes.

A template is traced by its syntax tree: what it writes, sets and tests goes through functions that
keep a record and return the same value. The text that comes out is the same, by construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, Template, nodes
from jinja2.visitor import NodeTransformer

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
