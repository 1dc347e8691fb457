"""Module paths of earlier versions: `toolparse_lab.schema.coerce` is in `arguments` now.

An old path gives the very module of the new one, with a DeprecationWarning, so pickles,
scripts and settings of the version before go on working.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

PACKAGE = "toolparse_lab"
# Old name below the package -> new name.
MOVED = {
    "ablation": "experiments.ablation",
    "capture": "entry.capture",
    "correction": "middleware.correction",
    "derivation": "parser.derivation",
    "endpoint_check": "experiments.endpoint_check",
    "engine": "parser",
    "errors": "core.errors",
    "exchange": "runner.exchange",
    "experiment": "experiments",
    "flow": "middleware.flow",
    "gateway": "integrations.gateway",
    "hooks": "core.hooks",
    "ingest": "experiments.ingest",
    "laws": "parser.laws",
    "litellm_bridge": "integrations.litellm_bridge",
    "plans": "middleware.plans",
    "prompt": "formats.prompt",
    "protocols": "formats",
    "render": "views",
    "reparse": "evals.reparse",
    "rjson": "arguments.rjson",
    "rules": "core.rules",
    "rxml": "formats.rxml",
    "schema": "arguments.schema",
    "settings": "runner.settings",
    "store": "runner.store",
    "telemetry": "integrations.telemetry",
    "testing": "integrations.testing",
    "toolspec": "core.toolspec",
    "types": "core.types",
    "values": "core.values",
    "widgets": "notebook",
}
# Files whose classes are in stored pickles, or that a page names, and that another file took in.
MERGED = {
    "evals.scoring.naive": "evals.scoring.score",
    "runner.exchange.completion": "runner.exchange.types",
    "runner.exchange.credentials": "runner.exchange.redaction",
    "runner.exchange.model": "runner.exchange.types",
    "runner.exchange.request": "runner.exchange.types",
    "cli.record": "cli.demo",
    "notebook.bench.snippets": "notebook.bench.setup",
    "experiments.ablation.layers": "experiments.ablation.figures",
    "experiments.ablation.pictures": "experiments.ablation.chart",
    "experiments.fitting": "experiments.models",
    "experiments.ingest.names": "experiments.ingest.columns",
    "experiments.limits": "experiments.rounds",
    "formats.neutral": "formats.surface",
    "types.readings": "core.types.call",
    "types.sources": "core.types.call",
}
# Names that the API promises for good: `import toolparse_lab.errors` is no mistake.
KEPT = ("errors", "litellm_bridge", "rjson", "rxml", "types")


def new_name(name: str) -> str | None:
    """Return today's name of a module of an earlier version, or None if it has not moved."""
    package, _, rest = name.partition(".")
    if package == PACKAGE and rest in MERGED:
        return f"{PACKAGE}.{MERGED[rest]}"
    head, dot, tail = rest.partition(".")
    return f"{PACKAGE}.{MOVED[head]}{dot}{tail}" if package == PACKAGE and head in MOVED else None


class _Finder:
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = new_name(fullname)
        if name is None:
            return None
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as e:
            if e.name == name:
                return None
            raise
        return ModuleSpec(fullname, cast(Any, self), is_package=True)

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system: `exec_module` puts another module in its place."""

    def exec_module(self, module: ModuleType) -> None:
        name = cast(str, new_name(module.__name__))
        if module.__name__.split(".")[1] not in KEPT:
            warnings.warn(
                f"{module.__name__} is now {name}; the old path goes in the next version",
                DeprecationWarning,
                stacklevel=2,
            )
        # The import system looks here for what it returns, so both paths are one module.
        sys.modules[module.__name__] = sys.modules[name]


def install() -> None:
    """Let imports find the old paths."""
    # First, or `toolparse_lab.types.spans` would be a second copy, found in the folder of
    # `toolparse_lab.types`.
    sys.meta_path.insert(0, cast(Any, _Finder()))
    # Found by an import, it would take the place of the function `toolparse_lab.protocols`.
    sys.modules[f"{PACKAGE}.protocols"] = sys.modules[f"{PACKAGE}.formats"]
