"""The planted bugs: each line that one changes is still there, once, so that none rots unseen until
the night."""

from __future__ import annotations

import pytest

from tests.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.about)
def test_the_line_is_there_once(mutant: Mutant) -> None:
    assert (ROOT / "toolparse_lab" / mutant.file).read_text("utf-8").count(mutant.old) == 1
