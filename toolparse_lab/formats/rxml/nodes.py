"""XML as nodes, without a schema: `{"tagName", "attributes", "children"}` dicts, with text between
them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, Unpack

from ...arguments.rjson.strict import Refusal
from ...arguments.schema.scalars import SPACE
from ...core.errors import RXMLParseError
from .element import ATTRIBUTE, Element, pieces_between_children, unescape, walk
from .parsing import NodeOptions, Options, error_of
from .tree import read_tree
from .writer import write_attributes, write_text

# How it works. The same tree builder as for parameters, without a schema, so that nothing is raw
# but scripts and styles. Nodes are made from the tree backwards, children first. All walks over
# nodes use a stack of their own: the depth of a document is bounded by an option, not by Python.

Node: TypeAlias = dict[str, Any]
Nodes: TypeAlias = Sequence[Node | str]


def parse_without_schema(xml: str, **options: Unpack[NodeOptions]) -> list[Node | str]:
    """Nodes and the text between them.

    Text is trimmed and dropped where empty, unless keep_whitespace.

    An attribute without a value is None. An instruction is a node named `?…` without children. A
    declaration is the text inside its angle brackets. Raises RXMLParseError with line and column.

    >>> parse_without_schema('<a k="1"> x <b/></a>')
    [{'tagName': 'a', 'attributes': {'k': '1'}, 'children': ['x', {'tagName': 'b', 'attributes': {},
    'children': []}]}]
    """
    return nodes_of(xml, Options(**options))


def nodes_of(
    xml: str, options: Options, before: tuple[int, int, int] = (0, 0, 0)
) -> list[Node | str]:
    """Return the nodes of a text.

    before: characters, lines, and characters of the last line that came before it, for errors.
    """
    manner = options.manner(xml)
    try:
        root, _ = read_tree(xml, None, manner)
    except Refusal as refusal:
        raise error_of(refusal, xml, before) from refusal

    return _Nodes(xml, options.keep_comments, options.keep_whitespace).below(root)


class _Nodes:
    def __init__(self, xml: str, comments: bool, whitespace: bool) -> None:
        self._xml = xml
        self._comments = comments
        self._whitespace = whitespace
        self._nodes: dict[int, Node] = {}  # by the identity of their elements

    def below(self, root: Element) -> list[Node | str]:
        # Backwards, so that children come before their parents, and depth costs no recursion.
        for element in reversed(list(walk(root))):
            self._nodes[id(element)] = {
                "tagName": element.name,
                "attributes": _attributes(self._xml, *element.attributes),
                "children": self._content(element),
            }

        return self._content(root)

    def _content(self, element: Element) -> list[Node | str]:
        if element.raw:
            # Scripts and styles keep their white space, for it may mean something.
            code = unescape(self._xml[element.start : element.end])
            return [code] if code else []

        content: list[Node | str] = []
        for pieces, child in pieces_between_children(element):
            content += [node for piece in pieces if (node := self._piece(*piece)) is not None]
            if child is not None:
                content.append(self._nodes[id(child)])

        return content

    def _piece(self, start: int, end: int, kind: str) -> Node | str | None:
        text = self._xml[start:end]
        if kind == "text":
            return unescape(text if self._whitespace else text.strip(SPACE)) or None
        if kind == "comment":
            return text if self._comments else None

        return _SECTIONS[kind](text)


def _attributes(xml: str, start: int, end: int) -> dict[str, str | None]:
    # Of two with one name, the last one counts. None for one without a value.
    attributes: dict[str, str | None] = {}
    for match in ATTRIBUTE.finditer(xml, start, end):
        value = next((group for group in match.groups()[1:] if group is not None), None)
        attributes[match["name"]] = None if value is None else unescape(value)

    return attributes


def _instruction(text: str) -> Node:
    name, _, rest = text[1:-2].replace("\n", " ").partition(" ")
    return {
        "tagName": name,
        "attributes": _attributes(" " + rest, 0, len(rest) + 1),
        "children": [],
    }


# Kind of a section -> what stands for it among the nodes.
_SECTIONS: dict[str, Callable[[str], Node | str]] = {
    "cdata": lambda text: text[len("<![CDATA[") : -len("]]>")],
    "doctype": lambda text: text[1:-1],
    "instruction": _instruction,
}


def parse_node(xml: str, **options: Unpack[NodeOptions]) -> Node:
    """Return the first element of `xml` as a node, or raise RXMLParseError.

    >>> parse_node("text <b>1</b>")["tagName"]
    'b'
    """
    for node in parse_without_schema(xml, **options):
        if isinstance(node, dict) and not node["tagName"].startswith("?"):
            return node

    raise RXMLParseError("Failed to parse XML: there is no element", line=1, column=1)


parse_nodes = parse_without_schema


def simplify(children: Nodes) -> Any:
    """Return nodes as an object of tag names.

    A list if a name is there more than once, text if there is nothing else, attributes under
    `_attributes` (beside text under `value`). Text between elements does not count.

    >>> simplify(parse_without_schema("<a><b>1</b><b>2</b><c/></a>"))
    {'a': {'b': ['1', '2'], 'c': ''}}
    """
    # Each list of nodes is put on the stack twice: to take it apart, and when its parts are done.
    values: dict[int, Any] = {}
    stack: list[tuple[Nodes, bool]] = [(children, False)]
    while stack:
        nodes, is_ready = stack.pop()
        if is_ready:
            values[id(nodes)] = _simple(nodes, values)
        else:
            stack.append((nodes, True))
            stack.extend((node["children"], False) for node in nodes if isinstance(node, dict))

    return values[id(children)]


def _simple(nodes: Nodes, values: dict[int, Any]) -> Any:
    if not nodes:
        return ""
    if len(nodes) == 1 and isinstance(nodes[0], str):
        return nodes[0]
    groups: dict[str, list[Any]] = {}
    for node in nodes:
        if isinstance(node, str):
            continue
        value, attributes = values[id(node["children"])], node["attributes"]
        if attributes and isinstance(value, dict):
            value = {**value, "_attributes": attributes}
        elif attributes:
            value = {"_attributes": attributes, **({"value": value} if value else {})}
        groups.setdefault(node["tagName"], []).append(value)

    return {name: group[0] if len(group) == 1 else group for name, group in groups.items()}


def filter(children: Nodes, keep: Callable[..., bool]) -> list[Node]:
    """Return the nodes at any depth that `keep` accepts, in the order of the text.

    keep(node, index, depth, path): index among its siblings, depth from 0, path
    `index.tag.index.tag` of its ancestors. A function of one argument gets the node alone.

    >>> from toolparse_lab import rxml
    >>> nodes = rxml.parse_without_schema('<a><b/><c/></a>')
    >>> [node["tagName"] for node in rxml.filter(nodes, lambda node: node["tagName"] != "a")]
    ['b', 'c']
    """
    takes_place = _takes_place(keep)
    matches: list[Node] = []
    stack: list[tuple[Node | str, int, int, str]] = []

    def put(nodes: Nodes, depth: int, path: str) -> None:
        # Reversed, so that the first one is taken first.
        places = range(len(nodes) - 1, -1, -1)
        stack.extend((nodes[index], index, depth, path) for index in places)

    put(children, 0, "")
    while stack:
        node, index, depth, path = stack.pop()
        if isinstance(node, str):
            continue
        if keep(node, index, depth, path) if takes_place else keep(node):
            matches.append(node)

        # The path costs a text for each node, so it is made only for those who take it.
        below = ""
        if takes_place:
            below = f"{path}.{index}.{node['tagName']}" if path else f"{index}.{node['tagName']}"

        put(node["children"], depth + 1, below)

    return matches


def _takes_place(keep: Callable[..., bool]) -> bool:
    # Asked by its signature: calling it to find out might have effects.
    try:
        inspect.signature(keep).bind(None, 0, 0, "")
    except TypeError:
        return False
    except ValueError:  # a function in C that does not say
        return True

    return True


def to_content_string(children: Nodes) -> str:
    """Return all text of the nodes, joined by spaces.

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
    nodes: Nodes,
    *,
    format: bool = True,
    minimal_escaping: bool = False,
    strict_boolean_attributes: bool = False,
) -> str:
    """Nodes back to XML text, indented by two spaces with `format`.

    Raises RXMLStringifyError.

    >>> stringify_nodes(parse_without_schema("<a><b>1</b></a>"), format=False)
    '<a><b>1</b></a>'
    """
    return _NodeWriter(format, minimal_escaping, strict_boolean_attributes).write(nodes)


class _NodeWriter:
    # A stack of strings to write, and of (node, depth, it is inside an element) to take apart.

    def __init__(self, format: bool, minimal: bool, strict_booleans: bool) -> None:
        self._format = format
        self._minimal = minimal
        self._strict_booleans = strict_booleans
        self._line = "\n" if format else ""
        self._out: list[str] = []
        self._stack: list[tuple[Node | str, int, bool] | str] = []

    def write(self, nodes: Nodes) -> str:
        self._stack.extend((node, 0, False) for node in reversed(nodes))
        while self._stack:
            top = self._stack.pop()
            if isinstance(top, str):
                self._out.append(top)
                continue

            node, depth, is_inside = top
            if isinstance(node, dict):
                self._element(node, depth)
            else:
                # Outside of all elements a text is markup already, such as a declaration.
                self._out.append(write_text(node, self._minimal) if is_inside else node)

        return "".join(self._out)

    def _element(self, node: Node, depth: int) -> None:
        name, children = node["tagName"], node["children"]
        indent = "  " * depth if self._format else ""
        attributes = write_attributes(node["attributes"], self._minimal, self._strict_booleans)
        self._out.append(f"{indent}<{name}{attributes}")
        if name.startswith("?"):
            self._out.append("?>" + self._line)
        elif not children:
            self._out.append("/>" + self._line)
        else:
            self._out.append(">")
            # Only elements go on lines of their own: white space next to text would be content.
            first_element = next((i for i, n in enumerate(children) if isinstance(n, dict)), -1)
            # After text alone the closing tag is on the same line.
            closer_indent = indent if first_element >= 0 else ""
            self._stack.append(f"{closer_indent}</{name}>{self._line}")
            for i in range(len(children) - 1, -1, -1):
                self._stack.append((children[i], depth + 1, True))
                if i == first_element:
                    self._stack.append(self._line)
