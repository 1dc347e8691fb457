"""`assert_parses` as a function and as a fixture, and trials written as tests, run by a pytest of
their own."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.evals.test_frames import RAW, UNRECORDED, make
from tests.tables import each_case
from toolparse_lab.core.errors import BadOptions, StoreError
from toolparse_lab.evals.scoring.exports import write_tests
from toolparse_lab.integrations.testing import assert_parses

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
TEXT = 'hi <tool_call>{"name": "f", "arguments": {"a": "1", "b": [1, {"c": "x"}]}}</tool_call>'
ARGUMENTS = {"a": 1, "b": [1, {"c": "x"}]}


@each_case
def test_what_is_read_as_wanted_gives_the_result(calls: Any) -> None:
    assert (
        assert_parses(TEXT, "hermes", TOOLS, calls=calls, text="hi ").calls[0].arguments
        == ARGUMENTS
    )


@each_case
def test_a_failure_says_what_differs_and_shows_the_text(how: dict[str, Any], says: str) -> None:
    with pytest.raises(AssertionError) as e:
        assert_parses(TEXT, "hermes", TOOLS, **how)
    message = str(e.value)
    assert says in message
    assert "[name|f]" in message
    assert "\x1b" not in message


def test_hostile_text_does_nothing_to_the_terminal() -> None:
    raw = '\x1b[2J\u202e<tool_call>{"name": "\x1b[31mf", "arguments": {"\x1b": "\x07"}}</tool_call>'
    with pytest.raises(AssertionError) as e:
        assert_parses(raw, "hermes", calls=[("f", {"\x1b": "\x08"})], text="\x1b")
    assert not {"\x1b", "\x07", "\x08", "\u202e"} & set(str(e.value))


@pytest.mark.parametrize("calls", [[3], [()], [("f",)], [{"function": "f"}], [("f", 1, {})]])
def test_a_wanted_call_that_is_none_is_named(calls: Any) -> None:
    with pytest.raises(BadOptions, match="this is no wanted call"):
        assert_parses(TEXT, "hermes", TOOLS, calls=calls)


# the fixture


@pytest.fixture
def installed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A pytest that finds the plugin by its entry point, as an installed package's."""
    name, _, module = ENTRY_POINT.partition(" = ")
    info = pytester.mkdir("site") / "toolparse_of_this_test-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: toolparse-of-this-test\nVersion: 1\n"
    )
    (info / "entry_points.txt").write_text(f"[pytest11]\n{name} = {module}\n")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{info.parent}")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return pytester


ENTRY_POINT = "toolparse = toolparse_lab.integrations.testing.pytest_plugin"
STRICT = ("-p", "no:cacheprovider", "-p", "no:xdist", "-W", "error")


def test_the_entry_point_is_the_one_of_the_package() -> None:
    import tomllib

    table = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    name, _, module = ENTRY_POINT.partition(" = ")
    assert table["project"]["entry-points"]["pytest11"] == {name: module}


def test_the_fixture_is_there_where_the_package_is_installed(installed: pytest.Pytester) -> None:
    """The plugin itself loads nothing until it is asked."""
    installed.makepyfile(
        f"""
        import sys

        RAW = {TEXT!r}

        def test_light():
            assert "toolparse_lab.integrations.testing.pytest_plugin" in sys.modules
            assert not {{"toolparse_lab.integrations.testing.assertions", "toolparse_lab.middleware.flow", "pandas", "litellm"}} & set(sys.modules)

        def test_good(assert_parses):
            assert_parses(RAW, "hermes", calls=["f"])

        def test_bad(assert_parses):
            assert_parses(RAW, "hermes", calls=["g"])
        """
    )
    done = installed.runpytest_subprocess(*STRICT)
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(
        ["*the text reads otherwise (1 difference):", "*wanted the name 'g', read 'f'*"]
    )
    assert "testing.py" not in done.stdout.str()  # the failure is shown where the test asserts
    colored = installed.runpytest_subprocess(*STRICT, "--color=yes", "-k", "bad")
    assert "48;5;" in colored.stdout.str()


# trials as tests


def test_tests_that_are_written_pass_and_can_fail(installed: pytest.Pytester) -> None:
    raw = RAW + " \ud800 '''\"\"\" \\ \u2028 \x00 ä " + "long " * 60 + "\r\nend"
    pinned = make(raw=raw).as_pytest(installed.path / "test_pinned.py")
    # Tests are added to those of a file, and each is written once.
    path = installed.path / "test_mine.py"
    path.write_text(
        '"""Mine."""\n\nfrom __future__ import annotations\n\nimport sys\n\n\ndef test_mine():\n  '
        "  assert sys"
    )
    one, other = make(raw=RAW), make(raw="nothing")
    one.as_pytest(path)
    first = path.read_text("utf-8")
    other.as_pytest(path)
    both = path.read_text("utf-8")
    assert both.startswith(first)
    assert both.count("import assert_parses") == 1
    assert write_tests([one, other, one], path).read_text("utf-8") == both
    others = write_tests([other, one], installed.path / "test_other.py").read_text("utf-8")
    assert others.count("def test_") == 2
    # The trials of a run are written together.
    with tp.Lab(":memory:").replaying(tp.example_recording()) as lab:
        plan = lab.plan(
            tp.example_cases(demo=True)[:8], {"m": tp.Model("toolparse-local/smollm2-135m")},
            ["hermes", "morph_xml"], decoding=["free", "grammar"], wording="brief", max_tokens=128,
        )  # fmt: skip
        trials = lab.run(plan, progress=False).trials()
        trials.as_pytest(installed.path / "test_run.py")
    of_run = len({t.result for t in trials}) or len(trials)
    installed.runpytest_subprocess(*STRICT).assert_outcomes(passed=1 + 3 + 2 + of_run)

    text = pinned.read_text("utf-8")
    assert max(map(len, text.splitlines())) <= 130
    pinned.write_text(text.replace("'ok'", "'truncated'"), "utf-8")
    done = installed.runpytest_subprocess(*STRICT, pinned.name)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*wanted the status truncated, read ok*"])


def test_a_test_that_was_laid_out_anew_is_left(tmp_path: Path) -> None:
    path = make(raw=RAW).as_pytest(tmp_path / "test_it.py")
    laid_out = ast.unparse(ast.parse(path.read_text("utf-8")))
    assert laid_out != path.read_text("utf-8")
    path.write_text(laid_out, "utf-8")
    assert make(raw=RAW).as_pytest(path).read_text("utf-8") == laid_out


def test_what_reads_otherwise_now_replaces_what_was_pinned(tmp_path: Path) -> None:
    path = make(raw=RAW).as_pytest(tmp_path / "test_it.py")
    now = path.read_text("utf-8")
    now = now.replace("import assert_parses", "import assert_parses  # \x0c \u2028 \x85")
    path.write_text(
        now.replace("'ok'", "'truncated'") + "\n\ndef test_behind():\n    pass\n", "utf-8"
    )
    make(raw=RAW).as_pytest(path)
    assert path.read_text("utf-8") == now + "\n\ndef test_behind():\n    pass\n"


@pytest.mark.parametrize(
    ("name", "content", "error", "says"),
    [
        ("test_a.py", "def (", BadOptions, "file of Python"),
        ("none/test_a.py", None, StoreError, "cannot be written"),
        ("test_latin.py", "# \udce4", StoreError, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_is_named_and_left(
    tmp_path: Path, name: str, content: str | None, error: type[Exception], says: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content.encode("utf-8", "surrogateescape"))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error, match=says):
        make().as_pytest(file)
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(BadOptions, match="never parsed"):
        UNRECORDED.as_pytest(tmp_path / "test_b.py")
