"""Names of a package that are imported when they are first asked for (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .errors import MissingExtra


def late_names(
    package: str, modules: Mapping[str, str], extras: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names load on first use.

    Args:
        package: its `__name__`.
        modules: module below the package -> its names, with blanks between them.
        extras: package from elsewhere -> the extra that brings it. A name that lacks one of them
            raises MissingExtra.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def getattr_late(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = importlib.import_module(f"{package}.{module_of[name]}")
        except ModuleNotFoundError as e:
            missing = (e.name or "").partition(".")[0]
            if not extras or missing not in extras:
                raise
            extra = extras[missing]
            raise MissingExtra(
                f"{package}.{name} needs the package {missing}",
                got=f"no module named {e.name}",
                expected=f"the extra {extra!r}",
                hint=f"in a checkout: pip install '.[{extra}]'",
            ) from e
        value = getattr(module, name, None)
        if value is None:  # a module of that package
            value = importlib.import_module(f"{module.__name__}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    return getattr_late
