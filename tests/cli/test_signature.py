"""Options are those of the functions that verbs call."""

from __future__ import annotations

import inspect

import pytest

import toolparse_lab as tp
from toolparse_lab.cli.demo import run_demo
from toolparse_lab.cli.options import Option, options_of, parameters
from toolparse_lab.evals.reports.figures.comparison import ArmComparison
from toolparse_lab.experiments.run import Run
from toolparse_lab.runner.ledger import RunLimits


@pytest.mark.parametrize(
    ("path", "function"),
    [
        ("lab.Lab.ingest", tp.Lab.ingest),
        ("lab.Lab.reparse", tp.Lab.reparse),
        ("experiments.run.Run.compare", Run.compare),
        ("evals.reports.figures.comparison.ArmComparison.regression", ArmComparison.regression),
        ("cli.demo.run_demo", run_demo),
    ],
)
def test_a_signature_is_read_as_python_reads_it(path: str, function: object) -> None:
    real = inspect.signature(function).parameters  # type: ignore[arg-type]
    named = {n: p for n, p in real.items() if p.kind is not inspect.Parameter.VAR_KEYWORD}
    read = parameters(path)
    assert read.keys() == named.keys()
    for name, parameter in named.items():
        if isinstance(read[name].default, str | bool | int) and name != "budget":
            assert read[name].default == parameter.default


def test_members_of_a_type_are_parameters() -> None:
    assert parameters("runner.ledger.RunLimits").keys() == RunLimits.__annotations__.keys()
    with pytest.raises(LookupError):
        parameters("lab.Lab.nothing")


def test_an_option_has_type_default_and_help_of_its_parameter() -> None:
    rows, columns, stream = options_of("lab.Lab.ingest", "--max-rows", "--columns", "--protocol ID")
    assert isinstance(rows, Option)
    assert (rows.members["type"], rows.members["metavar"]) == (int, "N")
    assert columns.members["metavar"] == "A=B,..."
    assert stream.members["help"].endswith("(default: auto)")
    assert rows.members["help"].startswith("refuse a source with more rows")
    (switch,) = options_of("lab.Lab.plan", "--stream")
    assert switch.members["action"] == "store_true"
