"""XML as nodes, without a schema: `{"tagName", "attributes", "children"}` dicts, with text between them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeAlias

from ..errors import BadOptions, RXMLParseError
from ..rjson.damage import Refusal
from ..schema.scalars import SPACE
from .element import Element, Manner, walk
from .marks import ATTRIBUTE
from .parsing import MAX_DEPTH, VOID, error_of
from .stringifier import write_attributes, write_text
from .text import unescape
from .tree import read_tree

Node: TypeAlias = dict[str, Any]
Nodes: TypeAlias = Sequence[Node | str]


def parse_without_schema(
    xml: str, *, no_child_nodes: Collection[str] | None = None, keep_comments: bool = False,
    keep_whitespace: bool = False, repair: bool = False,
) -> list[Node | str]:  # fmt: skip
    """Nodes and the text between them. Text is trimmed and dropped where empty, unless keep_whitespace.

    An attribute without a value is None; an instruction is a node named `?…` without children; a declaration is the
    text inside its angle brackets. Raises RXMLParseError with line and column.

    >>> parse_without_schema('<a k="1"> x <b/></a>')
    [{'tagName': 'a', 'attributes': {'k': '1'}, 'children': ['x', {'tagName': 'b', 'attributes': {}, 'children': []}]}]
    """
    if not isinstance(xml, str):
        raise BadOptions("XML is read from text", got=type(xml).__name__, expected="str")
    void = VOID if no_child_nodes is None else frozenset(no_child_nodes)
    manner = Manner(repair=repair, void=void, code=True, loose=True, max_depth=MAX_DEPTH)
    try:
        root, _ = read_tree(xml, None, manner)
    except Refusal as no:
        raise error_of(no, xml) from no
    made: dict[int, Node] = {}
    for element in reversed(list(walk(root))):
        children = list(_content(xml, element, made, keep_comments, keep_whitespace))
        attributes = _attributes(xml, *element.attributes)
        made[id(element)] = {"tagName": element.name, "attributes": attributes, "children": children}
    return list(_content(xml, root, made, keep_comments, keep_whitespace))


def _content(
    xml: str, element: Element, made: dict[int, Node], comments: bool, whitespace: bool
) -> Iterator[Node | str]:
    """What stands inside an element, in order."""
    pieces = element.pieces
    if element.raw:
        pieces = [(element.start, element.end, "code")]
    at = 0
    for child in [*element.children, None]:
        while at < len(pieces) and (child is None or pieces[at][0] < child.begin):
            start, end, kind = pieces[at]
            at += 1
            text = xml[start:end]
            if kind in ("text", "code"):
                text = unescape(text if whitespace or kind == "code" else text.strip(SPACE))
                if text:
                    yield text
            elif kind == "cdata":
                yield text[9:-3]
            elif kind == "comment":
                if comments:
                    yield text
            elif kind == "instruction":
                yield _instruction(text)
            else:
                yield text[1:-1]
        if child is not None:
            yield made[id(child)]


def _attributes(xml: str, start: int, end: int) -> dict[str, str | None]:
    out: dict[str, str | None] = {}
    for m in ATTRIBUTE.finditer(xml, start, end):
        value = next((g for g in m.groups()[1:] if g is not None), None)
        out[m["name"]] = None if value is None else unescape(value)
    return out


def _instruction(text: str) -> Node:
    name, _, rest = text[1:-2].replace("\n", " ").partition(" ")
    return {"tagName": name, "attributes": _attributes(" " + rest, 0, len(rest) + 1), "children": []}


def parse_node(
    xml: str, *, no_child_nodes: Collection[str] | None = None, keep_comments: bool = False,
    keep_whitespace: bool = False, repair: bool = False,
) -> Node:  # fmt: skip
    """The first element of `xml` as a node; raises RXMLParseError, also where there is none."""
    nodes = parse_without_schema(
        xml, no_child_nodes=no_child_nodes, keep_comments=keep_comments, keep_whitespace=keep_whitespace, repair=repair
    )
    for node in nodes:
        if isinstance(node, dict) and not node["tagName"].startswith("?"):
            return node
    raise RXMLParseError("Failed to parse XML: there is no element", line=1, column=1)


parse_nodes = parse_without_schema


def simplify(children: Nodes) -> Any:
    """Nodes as an object of tag names: a list where a name stands more than once, text where there is nothing else,
    attributes under `_attributes` (beside text under `value`). Text between elements is left out.

    >>> simplify(parse_without_schema("<a><b>1</b><b>2</b><c/></a>"))
    {'a': {'b': ['1', '2'], 'c': ''}}
    """
    done: dict[int, Any] = {}
    stack: list[tuple[Nodes, bool]] = [(children, False)]
    while stack:
        nodes, ready = stack.pop()
        if not ready:
            stack.append((nodes, True))
            stack.extend((n["children"], False) for n in nodes if isinstance(n, dict))
        else:
            done[id(nodes)] = _simple(nodes, done)
    return done[id(children)]


def _simple(nodes: Nodes, done: dict[int, Any]) -> Any:
    if not nodes:
        return ""
    if len(nodes) == 1 and isinstance(nodes[0], str):
        return nodes[0]
    groups: dict[str, list[Any]] = {}
    for node in nodes:
        if isinstance(node, str):
            continue
        value, attributes = done[id(node["children"])], node["attributes"]
        if attributes:
            if isinstance(value, dict):
                value = {**value, "_attributes": attributes}
            else:
                value = {"_attributes": attributes, **({"value": value} if value else {})}
        groups.setdefault(node["tagName"], []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in groups.items()}


def filter(children: Nodes, keep: Callable[..., bool]) -> list[Node]:
    """The nodes at any depth that `keep` accepts, in the order of the text.

    keep(node, index, depth, path): index among its siblings, depth from 0, path `index.tag.index.tag` of its
    ancestors. A function of one argument gets the node alone.
    """
    wide = _takes_place(keep)
    out: list[Node] = []
    stack: list[tuple[Node | str, int, int, str]] = [(n, i, 0, "") for i, n in reversed(list(enumerate(children)))]
    while stack:
        node, index, depth, path = stack.pop()
        if isinstance(node, str):
            continue
        if keep(node, index, depth, path) if wide else keep(node):
            out.append(node)
        below = f"{path + '.' if path else ''}{index}.{node['tagName']}" if wide else ""
        stack.extend((n, i, depth + 1, below) for i, n in reversed(list(enumerate(node["children"]))))
    return out


def _takes_place(keep: Callable[..., bool]) -> bool:
    try:
        inspect.signature(keep).bind(None, 0, 0, "")
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def to_content_string(children: Nodes) -> str:
    """All text of the nodes, joined by spaces.

    >>> to_content_string(parse_without_schema("<a>one <b>two</b> three</a>"))
    'one two three'
    """
    words: list[str] = []
    stack: list[Node | str] = list(reversed(children))
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            words.append(node.strip(SPACE))
        else:
            stack.extend(reversed(node["children"]))
    return " ".join(w for w in words if w)


def stringify_nodes(
    nodes: Nodes, *, format: bool = True, minimal_escaping: bool = False, strict_boolean_attributes: bool = False
) -> str:
    """Nodes back to XML text, indented by two spaces with `format`. Raises RXMLStringifyError.

    >>> stringify_nodes(parse_without_schema("<a><b>1</b></a>"), format=False)
    '<a><b>1</b></a>'
    """
    out: list[str] = []
    stack: list[tuple[Node | str, int, bool] | str] = [(n, 0, False) for n in reversed(nodes)]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            out.append(top)
            continue
        node, depth, inside = top
        if isinstance(node, str):
            out.append(write_text(node, minimal_escaping) if inside else node)
            continue
        name, children = node["tagName"], node["children"]
        line = "\n" if format else ""
        indent = "  " * depth if format else ""
        attributes = write_attributes(node["attributes"], minimal_escaping, strict_boolean_attributes)
        out.append(f"{indent}<{name}{attributes}")
        if name.startswith("?"):
            out.append("?>" + line)
        elif not children:
            out.append("/>" + line)
        else:
            out.append(">")
            nested = any(isinstance(c, dict) for c in children)
            stack.append(f"{indent if nested else ''}</{name}>{line}")
            first = next((i for i, c in enumerate(children) if isinstance(c, dict)), len(children))
            for i in range(len(children) - 1, -1, -1):
                stack.append((children[i], depth + 1, True))
                if i == first and format:
                    stack.append("\n")
    return "".join(out)
