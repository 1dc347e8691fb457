"""`toolparse init`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...views.show import visible
from ..options import add_json
from ..output import put, put_json
from ..starter import write_starter

EXAMPLES = ("toolparse init", "toolparse init my-project")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the folder."""
    command.add_argument(
        "folder", nargs="?", default=".", metavar="DIR", help="the project (default: this folder)"
    )
    add_json(command)


def run(options: Any) -> int:
    """Write settings, a plan and cases to begin with.

    Any that is there already stays as it is.
    """
    folder = Path(options.folder)
    files = write_starter(folder)
    if options.json:
        put_json({"folder": str(folder), "written": files})
        return 0

    for name, is_new in files.items():
        put(visible(f"{'wrote' if is_new else 'kept '}  {folder / name}"))
    here = "" if folder == Path() else visible(f"cd {folder} && ")
    put(f"\nnext: {here}toolparse validate cases.jsonl && toolparse run plan.toml --dry-run")
    return 0
