"""Runs the notebooks and stores their output so that it reads without a kernel: python
scripts/notebooks.py [NAME ...]

The plans are answered from the shipped recording; what else a notebook asks, the embedded model
answers live.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

import toolparse_lab as tp
from toolparse_lab.runner.store.recording import import_recording

FOLDER = Path(__file__).parent.parent / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"


def execute(path: Path) -> None:
    """Runs one notebook in an empty folder and writes its output back."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, folder)
        with tp.Lab(Path(folder) / "runs.db") as lab:
            import_recording(tp.example_recording(), lab.store)
        notebook = nbformat.read(path, as_version=4)
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(
            notebook, timeout=600, kernel_name="python3", resources=resources
        ).execute()
    nbformat.write(static(notebook), path)


def static(notebook: Any) -> Any:
    """Without widget models and times: a front end that finds no model would show nothing in their
    place."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            output.get("data", {}).pop(WIDGET, None)
        # A progress bar is a widget and a line of text that says nothing once it is over.
        cell.outputs = [
            o for o in cell.outputs if o.output_type != "display_data" or "text/html" in o.data
        ]
    return notebook


if __name__ == "__main__":
    for found in [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(
        FOLDER.glob("*.ipynb")
    ):
        execute(found)
        print(found.relative_to(FOLDER.parent))
    sys.exit(0)
