"""The notebooks run from top to bottom, and read well with no kernel."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.runner.store.recording import import_recording

pytestmark = pytest.mark.slow

nbformat = pytest.importorskip("nbformat")
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
HOSTILE = ("<script", "onerror=", "http://", "javascript:")


# What a shell says where a command failed.
FAILED = ("command not found", "No such file", "Traceback (most recent", "toolparse: ")


def _html(notebook: Any) -> list[str]:
    return [
        "".join(output["data"]["text/html"])
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]


def assert_nothing_failed(code: Any) -> None:
    """No cell ended in an error, nor a command of the shell in one."""
    outputs = [o for cell in code for o in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error"]
    said = "".join(o.text for o in outputs if o.output_type == "stream")
    assert not [word for word in FAILED if word in said]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_stored_output_reads_without_a_kernel(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [c for c in notebook.cells if c.cell_type == "code"]
    assert all(c.execution_count for c in code), "a cell was never run"
    assert_nothing_failed(code)
    pages = _html(notebook)
    assert len(pages) >= 8
    for page in pages:
        assert not [word for word in HOSTILE if word in page.lower()]
    assert "widgets" not in notebook.metadata, "a stored widget model would hide the static view"
    text = path.read_text("utf-8")
    assert "/home/" not in text
    assert str(Path.cwd()) not in text


# Two of them by day, which use most of the package; the calls of the others are those of pages.
BY_DAY = ("01", "05")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=[] if p.name.startswith(BY_DAY) else pytest.mark.exhaustive)
        for p in NOTEBOOKS
    ],
    ids=lambda p: p.name,
)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    """From an empty folder but for the recording."""
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
    assert_nothing_failed(c for c in notebook.cells if c.cell_type == "code")
