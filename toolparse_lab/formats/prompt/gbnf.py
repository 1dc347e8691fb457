"""The vocabulary of grammars in GBNF: terminals, alternatives, and the rules they all share.

Nothing in this module knows schemas. `grammar` builds on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Rules that do not depend on a schema. None of them uses another; see `shared_rules`.
_SHARED = {
    # At most 15 significant digits, which a double keeps.
    "integer": '"0" | "-"? [1-9] [0-9]{0,14}',
    "natural": '"0" | [1-9] [0-9]{0,14}',
    "number": '"0" | "-"? [1-9] [0-9]{0,8} | "-"? ("0" | [1-9] [0-9]{0,8}) "." [0-9]{1,6}',
    "positive": '("0" | [1-9] [0-9]{0,8}) ("." [0-9]{1,6})?',
    "date": '[12] [0-9]{3} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | "1" [0-9] | "2" [0-8])',
    "clock": '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] "Z"',
    "email": '[a-z] [a-z0-9_]{0,19} "@" [a-z] [a-z0-9]{0,14} "." ("com" | "org" | "net" | "de" | '
    '"example")',
    # A blank is only allowed before something visible, so that no value is padded and none is
    # endless blanks.
    "jchar": r'" "? ([^"\\\x00-\x20\x7F] | "\\" ["\\nt])',
    "jsafe": r'" "? ([^"\\<&\x00-\x20\x7F] | "\\" ["\\nt])',
    # YAML takes a JSON string, but not every character of one.
    "ychar": r'" "? ([^"\\<\x00-\x20\x7F-\x9F\u2028\u2029\uFEFF\uFFFE\uFFFF] | "\\" ["\\nt])',
    "xchar": r'[ \n]? ([^<&\x00-\x20\x7F] | "&lt;" | "&amp;")',
    "xfirst": r'[^<&\x00-\x20\x7F] | "&lt;" | "&amp;"',
    # Where a schema limits the length, a blank counts as a character of its own.
    "jany": r'[^"\\\x00-\x1F\x7F] | "\\" ["\\nt]',
    "jsafeany": r'[^"\\<&\x00-\x1F\x7F] | "\\" ["\\nt]',
    "yany": r'[^"\\<\x00-\x1F\x7F-\x9F\u2028\u2029\uFEFF\uFFFE\uFFFF] | "\\" ["\\nt]',
    "xany": r'[^<&\x00-\x1F\x7F] | "&lt;" | "&amp;"',
    # Free keys of one object begin in different parts of the alphabet, so that no two are the same.
    "key1": "[a-f] [a-z0-9_]{0,15}",
    "key2": "[g-m] [a-z0-9_]{0,15}",
    "key3": "[n-s] [a-z0-9_]{0,15}",
    "key4": "[t-z] [a-z0-9_]{0,15}",
}
# Characters that YAML refuses in a double-quoted string, and the one that would open a tag.
_NOT_YAML = re.compile("[<\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_RULE_NAME = re.compile(r"[a-z]+\d*")
# The names in a grammar, searched once its terminals are blanked out.
_RULE_USES = re.compile(r"(?<![\w-])([a-z]+\d*)(?![\w-])")
_TERMINALS = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]')
_LINE_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

FORMATS = {"date": "date", "email": "email", "date-time": 'date "T" clock', "time": "clock"}
"""A schema's `format` -> the expression of its texts."""


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The characters that JSON text may hold at one place.

    visible: the rule for a character, which takes a blank before it. counted: the rule for a
    character where the schema limits the length. escape: JSON text as it is written there.
    """

    visible: str
    counted: str
    escape: Callable[[str], str] = str


def _escape_xml(text: str) -> str:
    # JSON's own escapes say the same, so that no second layer of escapes is needed.
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


def _escape_yaml(text: str) -> str:
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


PLAIN = Alphabet("jchar", "jany")
IN_XML = Alphabet("jsafe", "jsafeany", _escape_xml)
IN_YAML = Alphabet("ychar", "yany", _escape_yaml)


def literal(text: str) -> str:
    r"""Return the GBNF terminal for exactly this text.

    >>> literal('a"b\n')
    '"a\\"b\\n"'
    """
    return f'"{"".join(map(_escape_terminal, text))}"'


def _escape_terminal(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character in _LINE_ESCAPES:
        return _LINE_ESCAPES[character]
    if ord(character) < 0x20 or ord(character) == 0x7F:
        return f"\\x{ord(character):02X}"
    return character


def one_of(options: Sequence[str]) -> str:
    """Return an expression for any of these, each once.

    options: expressions, at least one.

    >>> one_of(['"a"', '"b"', '"a"']), one_of(['"a"'])
    ('("a" | "b")', '"a"')
    """
    unique = list(dict.fromkeys(options))
    if len(unique) == 1:
        return unique[0]
    return f"({' | '.join(unique)})"


def is_rule_name(expression: str) -> bool:
    """Return True if an expression is the name of a rule and nothing else."""
    return _RULE_NAME.fullmatch(expression) is not None


def shared_rules(grammar: str) -> list[str]:
    """Return the lines of the shared rules that a grammar uses.

    One look at the grammar suffices, since no shared rule uses another.
    """
    names = set(_RULE_USES.findall(_TERMINALS.sub(" ", grammar)))
    return [f"{name} ::= {body}" for name, body in _SHARED.items() if name in names]
