"""What `hooks` reaches: views by type, and a missing extra that says what to install."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from tests.render_samples import HOSTILE, example, hostile, several
from tests.tables import asked_of
from toolparse_lab.core import hooks
from toolparse_lab.core.errors import MissingExtra
from toolparse_lab.notebook import display as notebook
from toolparse_lab.views import render_diff, render_result
from toolparse_lab.views.html import standalone
from toolparse_lab.views.show import HIDDEN


def test_html_goes_by_type() -> None:
    assert notebook.html(example()) == standalone(render_result(example()))
    assert notebook.html(several().calls[0]) == standalone(render_diff(several().calls[0]))
    assert notebook.html("<b>\x1b") == '<pre style="white-space:pre-wrap">&lt;b&gt;⟨ESC⟩</pre>'


def test_rich_display_has_no_widget_in_it() -> None:
    assert set(hooks.mimebundle(example())) == {"text/plain", "text/html"}


@asked_of("text", HOSTILE.values(), ids=HOSTILE)
def test_rich_display_is_safe_for_terminals_and_messages(text: str) -> None:
    for shown in hooks.mimebundle(hostile(text)).values():
        shown.encode("utf-8")
        assert not HIDDEN.search(shown)


@pytest.mark.parametrize(
    ("call", "module", "extra"),
    [
        (notebook.debug, "toolparse_lab.notebook.parse_view", "jupyter"),
        (notebook.frame, "toolparse_lab.evals.frames.recorded", "lab"),
    ],
)
def test_a_missing_extra_says_what_to_install(
    call: object, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> ModuleType:
        assert name == module
        raise ModuleNotFoundError("No module named 'anywidget'", name="anywidget")

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(MissingExtra, match=rf"pip install '\.\[{extra}\]'"):
        call(example())  # type: ignore[operator]


def test_a_defect_of_our_own_is_not_called_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> ModuleType:
        raise ModuleNotFoundError(f"No module named {name!r}", name="toolparse_lab.notebook.gone")

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(ModuleNotFoundError, match=r"toolparse_lab\.notebook"):
        notebook.debug(example())
