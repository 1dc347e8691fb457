"""Copy the checkout without some extensions, and run what is left: lint, types, one case of each test.

python -m tests.without_extension [NAME ...]      one copy for each name, and one without them all
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def without(names: Sequence[str], source: Path, target: Path) -> None:
    """Copy the tracked files of a checkout, but for the folders of these extensions."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=source, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    gone = tuple(
        f"{folder}/extensions/{name}/" for name in names for folder in ("toolparse_lab", "tests")
    )
    for file in listed:
        if not file.startswith(gone) and (source / file).is_file():
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / file, target / file)  # with its time, which make compares


def main(names: Sequence[str]) -> int:
    every = sorted(
        path.parent.name for path in (ROOT / "toolparse_lab/extensions").glob("*/__init__.py")
    )
    failed = 0
    for gone in [*([name] for name in names or every), *([] if names else [every])]:
        with tempfile.TemporaryDirectory() as folder:
            without(gone, ROOT, Path(folder))
            # The environment is the checkout's; the copy comes before it on the path of modules.
            command = ["make", "quick", f"VENV={ROOT / '.venv'}"]
            done = subprocess.run(
                ["env", f"PYTHONPATH={folder}", *command], cwd=folder, check=False
            )
        print(f"== without {', '.join(gone)}: {'held' if done.returncode == 0 else 'FAILED'}")
        failed += done.returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
