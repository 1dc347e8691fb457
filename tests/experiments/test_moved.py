"""Paths of earlier versions lead to the modules of today."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import pytest

import toolparse_lab as tp
from toolparse_lab.core.moved import KEPT, MERGED, MOVED, new_name


@pytest.mark.parametrize("old", sorted((MOVED.keys() | MERGED.keys()) - {"protocols"}))
def test_an_old_path_is_the_module_of_today(old: str) -> None:
    name = f"toolparse_lab.{old}"
    sys.modules.pop(name, None)
    if old.partition(".")[0] in KEPT:
        module = importlib.import_module(name)
    else:
        with pytest.warns(DeprecationWarning, match=f"{name} is now") as caught:
            module = importlib.import_module(name)
        assert caught[0].filename.endswith(("importlib/__init__.py", "test_moved.py"))
    assert module is importlib.import_module(new_name(name) or "")


def test_the_function_protocols_stays_a_function() -> None:
    module = importlib.import_module("toolparse_lab.protocols")
    assert module is importlib.import_module("toolparse_lab.formats")
    assert "hermes" in tp.protocols()


def test_modules_below_and_their_classes_are_the_same() -> None:
    with pytest.warns(DeprecationWarning, match="engine"):
        old = importlib.import_module("toolparse_lab.engine.detect")
    assert old.Candidate is tp.Candidate


def test_a_pickle_of_an_earlier_version_loads() -> None:
    now = pickle.dumps(tp.Span(1, 2), protocol=0)
    before = now.replace(b"toolparse_lab.core.types", b"toolparse_lab.types")
    assert before != now
    assert pickle.loads(before) == tp.Span(1, 2)


def test_what_was_never_there_is_still_missing() -> None:
    for name in ("toolparse_lab.engine.nothing", "toolparse_lab.enginery"):
        with pytest.raises(ModuleNotFoundError, match=name):
            importlib.import_module(name)


def test_the_package_itself_uses_no_old_path() -> None:
    code = (
        "import toolparse_lab as tp; [getattr(tp, n) for n in tp.__all__]; import toolparse_lab.cli"
    )
    subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:toolparse_lab", "-c", code], check=True
    )
