"""The notebooks run from top to bottom, and read well with no kernel."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.runner.local.setup import local_model_ready
from toolparse_lab.runner.store.recording import import_recording

pytestmark = pytest.mark.slow

nbformat = pytest.importorskip("nbformat")
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
ASKS_LIVE = ("01_quickstart.ipynb", "09_which_layer.ipynb")
# Minutes of simulation and of the embedded model, whose parts have tests of their own; and a
# server's parser, which comes from the package index.
AT_NIGHT = (
    "05_is_it_really_better.ipynb",
    "08_my_production_failure.ipynb",
    "09_which_layer.ipynb",
)
HOSTILE = ("<script", "onerror=", "http://", "javascript:")


def _marked(path: Path) -> Any:
    missing = not local_model_ready()
    reason = "the embedded model is not installed: toolparse demo --install-only"
    marks = (
        [pytest.mark.local_model, pytest.mark.skipif(missing, reason=reason)]
        if path.name in ASKS_LIVE
        else []
    )
    if path.name in AT_NIGHT:
        marks.append(pytest.mark.exhaustive)
    return pytest.param(path, marks=marks)


def _html(notebook: Any) -> list[str]:
    return [
        "".join(output["data"]["text/html"])
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_stored_output_reads_without_a_kernel(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [c for c in notebook.cells if c.cell_type == "code"]
    assert all(c.execution_count for c in code), "a cell was never run"
    assert not [o for c in code for o in c.outputs if o.output_type == "error"]
    pages = _html(notebook)
    assert len(pages) >= 8
    for page in pages:
        assert not [word for word in HOSTILE if word in page.lower()]
    assert "widgets" not in notebook.metadata, "a stored widget model would hide the static view"
    text = path.read_text("utf-8")
    assert "/home/" not in text
    assert str(Path.cwd()) not in text


@pytest.mark.parametrize("path", [_marked(p) for p in NOTEBOOKS], ids=lambda p: p.name)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    """From an empty folder but for the recording, so that only the question of its own is asked
    live."""
    nbclient = pytest.importorskip("nbclient")
    shutil.copy(path, tmp_path / path.name)
    with tp.Lab(tmp_path / "runs.db") as lab:
        import_recording(tp.example_recording(), lab.store)
    notebook = nbformat.read(tmp_path / path.name, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=240,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    assert len(_html(notebook)) >= 8
