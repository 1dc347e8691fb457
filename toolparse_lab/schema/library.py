"""The validator library, loaded when a schema first needs it, without the second it can take to load."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_GRAMMARS = "rfc3987_syntax"
_HEAVY = frozenset(("jsonschema", _GRAMMARS))


def load_jsonschema() -> Any:
    """The module `jsonschema`, whole.

    Where `rfc3987_syntax` is installed (Jupyter brings it), the library imports it for the format "iri", and that
    builds grammars at import, for a second. It is loaded here when such a format is first checked, by whomever.
    """
    stand_in = None
    if _HEAVY.isdisjoint(sys.modules) and find_spec("rfc3987") is None and find_spec(_GRAMMARS) is not None:
        stand_in = ModuleType(_GRAMMARS)
        stand_in.is_valid_syntax = _is_valid_syntax  # type: ignore[attr-defined]  # the one name the library takes
        sys.modules[_GRAMMARS] = stand_in
    try:
        import jsonschema
    finally:
        # Whoever imports it from now on gets the real one.
        if stand_in is not None and sys.modules.get(_GRAMMARS) is stand_in:
            del sys.modules[_GRAMMARS]
    return jsonschema


def _is_valid_syntax(term: str, value: str) -> bool:
    from rfc3987_syntax import is_valid_syntax

    return bool(is_valid_syntax(term, value))
