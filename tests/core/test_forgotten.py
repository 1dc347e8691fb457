"""Whoever adds a format, a rule, an outcome, a section, a verb or a migration is told what is
missing.

CONTRIBUTING.md says how each is added; each test here names what was forgotten.
"""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

import toolparse_lab as tp
from tests.docs.test_docs import used_ids
from tests.evals.test_breakdowns import TRIALS, two_models
from tests.evals.test_report import FRAME
from toolparse_lab.cli.options import DECLARED
from toolparse_lab.cli.verbs import verbs
from toolparse_lab.core import hooks
from toolparse_lab.core.rules import CODES, RULES
from toolparse_lab.evals.frames.recorded import calls_frame, trials_frame
from toolparse_lab.evals.reports.figures.cells import READ
from toolparse_lab.evals.reports.figures.report import Report
from toolparse_lab.evals.reports.figures.view import RunView
from toolparse_lab.evals.reports.pages import tables
from toolparse_lab.evals.reports.pages.columns import Listing
from toolparse_lab.evals.reports.pages.text import said_before
from toolparse_lab.evals.scoring.outcomes import OUTCOMES, SUB_CODES
from toolparse_lab.formats.registry import TABLES, family_heads
from toolparse_lab.runner.store.schema import MIGRATIONS, VERSION

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
BENCHMARKS = ROOT / "benchmarks"  # some tests read a file through one


@lru_cache(maxsize=1)
def words_of_tests() -> frozenset[str]:
    """Every word of the tests and their case files, in which ids stand whole."""
    files = [*TESTS.rglob("*.py"), *TESTS.rglob("*.jsonl")]
    text = "\n".join(p.read_text("utf-8") for p in files if p.name != Path(__file__).name)
    return frozenset(re.findall(r"[A-Za-z_][\w.-]*[\w]", text))


def without_case(ids: Iterable[str]) -> list[str]:
    """The ids that no case and no test speaks of."""
    return sorted(set(ids) - words_of_tests())


@lru_cache(maxsize=1)
def formats_with_cases() -> frozenset[str]:
    """The formats of which a raw text stands in a case file, with what is to be read from it."""
    formats: set[str] = set()
    for file in TESTS.glob("cases*/**/*.jsonl"):
        for line in file.read_text("utf-8").splitlines():
            if line.strip():
                case = json.loads(line)
                formats |= {str(case.get("format")), str(case.get("protocol"))}
    return frozenset(formats)


def test_every_format_has_a_case() -> None:
    aliases = {p.id: {p.id, *p.aliases} for p in tp.protocols().values()}
    bare = [i for i, names in aliases.items() if not names & formats_with_cases()]
    assert not bare, "add a line to a file in tests/cases_core/texts/"


def test_no_format_takes_the_id_of_another() -> None:
    modules = [importlib.import_module(f"toolparse_lab.formats.{name}") for name in TABLES]
    ids = Counter([*family_heads(), *(row.id for module in modules for row in module.PROTOCOLS)])
    assert not [i for i, n in ids.items() if n > 1], "two rows have this id: one hides the other"


def test_every_case_file_is_read() -> None:
    tests = "\n".join(
        p.read_text("utf-8") for p in (*TESTS.rglob("*.py"), *BENCHMARKS.glob("*.py"))
    )
    unread = [p.name for p in TESTS.glob("cases*/*.jsonl") if p.name not in tests]
    assert not unread, "no test names this file: put the case into one that a test reads"


def test_every_rule_has_a_case() -> None:
    assert not without_case(RULES), "add a case in tests/cases_core/ whose `rules` hold the id"


def test_every_problem_code_has_a_case() -> None:
    assert not without_case(CODES), "add a case or a test that meets the code"


def test_every_outcome_has_a_labelled_answer() -> None:
    assert not without_case([*OUTCOMES, *SUB_CODES]), "add an answer with this outcome to the tests"


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    """Reports that together have something to say in every section."""
    conversations = FRAME.copy()
    conversations[["n_turns", "n_ran", "n_failed", "n_rejected"]] = [2, 1, 1, 0]
    conversations[["blame_layer", "blame_code"]] = ["server", "markup_in_content"]
    rules = {"hermes": {"type_rules": False}, "morph_xml": {"type_rules": True}}
    return [
        Report(FRAME, ["model"]),
        Report(RunView(FRAME, arms=rules), ["model", "arm"]),
        Report(conversations),
        Report(two_models()),
        Report(trials_frame(TRIALS)),
        Report(
            RunView(
                trials_frame(TRIALS).assign(target=None, score_success=None, outcome="ungraded"),
                calls=lambda: calls_frame(TRIALS),
            )
        ),
    ]


@pytest.fixture(scope="module")
def sections(reports: list[Report]) -> dict[str, tuple[Report, Listing]]:
    """For the name of each maker, a report in which its section has rows."""
    made = ((make, r, make(r)) for make in tables._MAKERS for r in reports)
    return {m.__name__: (r, s) for m, r, s in made if s is not None and s.rows}


def test_every_section_is_tried(sections: dict[str, tuple[Report, Listing]]) -> None:
    untried = {make.__name__ for make in tables._MAKERS} - set(sections)
    assert not untried, "make a report in `reports` above where this section has rows"


def test_every_maker_of_a_section_is_in_the_list() -> None:
    # The public ones without a place in the list have one of their own on the pages.
    made = {
        name
        for name, made in vars(tables).items()
        if name.startswith("_")
        and str(getattr(made, "__annotations__", {}).get("return")).startswith("Listing")
    }
    unlisted = made - {make.__name__ for make in tables._MAKERS}
    assert not unlisted, "add it to `_MAKERS` in evals/reports/pages/tables.py, at its place"


def test_every_section_reaches_every_page(sections: dict[str, tuple[Report, Listing]]) -> None:
    for report in {id(report): report for report, _ in sections.values()}.values():
        markdown = str(hooks.call("figure_markdown", report))
        html, text = report._repr_mimebundle_()["text/html"], report.text(200).lower()
        for title in (s.title for r, s in sections.values() if r is report):
            assert title in markdown
            assert title in html
            assert title.lower() in text or title in said_before(report)


def test_every_section_is_in_the_report_of_files(
    sections: dict[str, tuple[Report, Listing]],
) -> None:
    # Of Parquet only the columns of `READ` are loaded.
    for make in tables._MAKERS:
        report, section = sections[make.__name__]
        columns = [c for c in report.trials if c in READ or c in report.by]
        again = make(Report(replace(report.view, trials=report.trials[columns]), report.by))
        n_rows = len(again.rows) if again else 0
        assert n_rows == len(section.rows), (
            f"{make.__name__}: add the columns that it reads to `READ` in figures/cells.py"
        )


def test_every_id_in_the_code_is_a_rule_or_a_code() -> None:
    unknown = used_ids() - RULES.keys() - CODES.keys()
    assert not unknown, "add a `Rule` or a `Code` to core/rules.py"


def test_every_verb_is_declared_and_has_a_place_in_the_docs() -> None:
    modules = {verb: module for verb, (module, _) in verbs().items()}
    for module in set(modules.values()):
        importlib.import_module(module)
    places = {name: verb.run.__module__ for name, verb in DECLARED.items()}
    assert places == modules, "declare it by `@verb` in the module that its table names"
    for name, verb in DECLARED.items():
        assert verb.examples, f"{name} shows no example"
    for name, module in modules.items():
        _, _, extension = module.partition(".extensions.")
        folder, page = (
            ("extensions", extension.partition(".")[0]) if extension else ("reference", "cli")
        )
        text = (ROOT / "docs" / folder / f"{page}.md").read_text("utf-8")
        assert f"toolparse {name}" in text, f"run `make docs`: {page}.md lacks {name}"


def test_every_version_of_the_store_has_its_migration() -> None:
    assert sorted(MIGRATIONS) == list(range(1, VERSION))


def test_what_is_forgotten_is_named() -> None:
    assert without_case(["rjson.never-heard-of", "rjson.trailing-comma"]) == [
        "rjson.never-heard-of"
    ]
