"""How an ablation is shown: pages, pictures, files and the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from lxml import etree, html

import toolparse_lab as tp
from tests.ablation_model import CELLS, KnownModel, cases_of, known_ablation
from tests.mock_openai import MockOpenAI, unseen
from toolparse_lab.cli import main
from toolparse_lab.core.errors import BadOptions, MissingExtra
from toolparse_lab.experiments.ablation import Ablation
from toolparse_lab.experiments.ablation.chart import PICTURES, SHARES, Axis, Line, Picture
from toolparse_lab.experiments.ablation.figures import FIGURES
from toolparse_lab.runner.store.recording import import_recording

HOSTILE = '<script>alert(1)</script>"&|`'


@pytest.fixture(scope="module")
def ablation(tmp_path_factory: pytest.TempPathFactory) -> Ablation:
    one: Ablation = known_ablation(tmp_path_factory.mktemp("ablation"))
    return one


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Ablation:
    """An ablation of a model whose name is markup, of which half is not recorded."""
    with tp.Lab(tmp_path_factory.mktemp("hostile") / "runs.db") as lab:
        models = {HOSTILE: tp.Model("openai/known")}
        cases = cases_of(["layer 2", "layer 3"])
        return lab.ablation(
            cases, models, ["hermes"], few_shot=0, complete=KnownModel(), max_calls=4,
            progress=False,
        )  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_each_picture_is_svg_that_can_be_read_aloud(ablation: Ablation, name: str) -> None:
    picture = ablation.picture(name)
    root = etree.fromstring(picture.svg.encode())
    assert root.get("role") == "img"
    label = root.get("aria-label") or ""
    texts = {" ".join(str(text).split()) for text in root.itertext()}
    # Who cannot see the picture gets every figure that is in it.
    for line in picture.lines:
        assert (f"{line.label}: {line.value}" if line.value else line.label) in label
        assert line.value in repr(picture)
        assert {" ".join(line.label.split()), line.value} <= {*texts, ""}
    assert "n = " in label, "a figure without its n"
    colours = {one.get(part) for one in root.iter() for part in ("fill", "stroke")}
    assert not colours & {"black", "white", "#000", "#fff"}, "unseen on one of two backgrounds"
    bars = [bar for line in picture.lines for bar in line.bars]
    assert {picture.colours[bar.part] for bar in bars} <= colours
    assert "text/html" in picture._repr_mimebundle_()


def test_a_picture_without_the_extra_is_its_text(
    ablation: Ablation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    picture = ablation.picture("cells")
    assert picture._repr_mimebundle_() == {"text/plain": repr(picture)}
    assert "<svg" not in ablation.html()
    with pytest.raises(MissingExtra, match="charts"):
        ablation.save(tmp_path / "a.svg")


def test_the_picture_of_cells_says_each_rate_with_its_interval(ablation: Ablation) -> None:
    words = repr(ablation.picture("cells"))
    assert all(cell in words for cell in CELLS)
    assert "S000  no layer: 10 % [2–40], valid 10 %, n = 10" in words
    assert "S111  layer 1 + 2 + 3: 60 % [31–83], valid 70 %, n = 10" in words
    assert "layer 3: Shapley: +38" in repr(ablation.picture("attribution"))
    assert "all three: +50 [+5, +78], n = 10, p = 0.062" in repr(ablation.picture("tests"))
    assert "lossy, layer 1 off: false 62 % [31–86], n = 8" in repr(ablation.picture("layer2"))
    assert "S111: 228 [82–810] × 5, n = 10" in repr(ablation.picture("costs"))


def test_what_is_not_known_is_said_and_not_drawn(hostile: Ablation) -> None:
    assert hostile.missing
    for name in ("cells", "waterfall", "attribution", "tests", "layer3", "costs"):
        assert "not recorded" in repr(hostile.picture(name)), name
    assert "nan" not in hostile.html(page=True).lower().replace("finance", "")
    assert any("no recorded answer" in line for line in hostile.markdown().splitlines())


def test_names_are_escaped_everywhere(hostile: Ablation) -> None:
    page = hostile.html(page=True)
    assert "<script" not in page
    assert HOSTILE in str(html.fromstring(page).xpath("string()"))
    assert "<script" not in hostile.markdown()
    for name in PICTURES:
        assert "<script" not in hostile.picture(name).svg
        etree.fromstring(hostile.picture(name).file().encode())


def test_a_page_has_every_figure_and_stands_alone(ablation: Ablation) -> None:
    page = ablation.html(page=True)
    tree = html.fromstring(page)
    assert len(tree.findall(".//h2")) == len(FIGURES) + 1
    assert len(tree.findall(".//svg")) == len(PICTURES)
    assert "prefers-color-scheme" in page
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
    fragment = ablation.html()
    assert "<html" not in fragment
    assert ablation._repr_mimebundle_()["text/html"] == fragment


def test_every_kind_of_file(ablation: Ablation, tmp_path: Path) -> None:
    files = {suffix: ablation.save(tmp_path / f"a{suffix}").read_text("utf-8")
             for suffix in (".html", ".md", ".json", ".csv", ".svg")}  # fmt: skip
    assert files[".md"].startswith("# Three layers of type safety")
    assert files[".md"].count("\n## ") == len(FIGURES) + 1
    document = json.loads(files[".json"])
    assert set(FIGURES) < set(document)
    assert [row["cell"] for row in document["cells"]] == list(CELLS)
    assert document["layer2"][0]["false_rescue_low"] is not None
    assert document == ablation.to_dict()
    assert len(files[".csv"].splitlines()) == 9
    assert etree.fromstring(files[".svg"].encode()).tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme:dark" in files[".svg"]
    with pytest.raises(BadOptions, match="pdf"):
        ablation.save(tmp_path / "a.pdf")


def test_text_for_a_terminal(ablation: Ablation) -> None:
    assert "S111" in ablation.text("cells")
    assert "Shapley" not in ablation.text("cells")
    assert "Shapley" in ablation.text()
    for wrong in (lambda: ablation.text("celles"), lambda: ablation.picture("celles")):
        with pytest.raises(BadOptions, match="cells"):
            wrong()


def test_an_axis_of_differences_holds_zero() -> None:
    axis = Axis.of_differences([0.23, float("nan"), 0.41])
    assert axis.ticks == (-0.1, 0.0, 0.5)
    assert Axis.of_differences([]).ticks == (-0.1, 0.0, 0.1)
    assert Axis.of_differences([-0.61, -0.2]).ticks == (-0.7, 0.0, 0.1)


def test_rows_that_do_not_fit_are_counted() -> None:
    picture = Picture("title", "words", [Line(str(i)) for i in range(100)], SHARES)
    assert repr(picture).endswith("59\n… and 40 more rows: see the table")
    assert "… and 40 more rows" in picture.svg


# the shipped ablation, and the command line


def out_of(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 0) -> Any:
    """The JSON that a command writes."""
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_the_shipped_ablation_is_whole_and_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [part for name in ("a.html", "a.md", "a.svg") for part in ("--out", name)]
    document = out_of(capsys, ["ablation", "--shipped", "--figures", "cells,tests", *files])
    assert set(document) == {"run_id", "settings", "missing", "cells", "tests"}
    assert document["missing"] == []
    assert len(document["cells"]) == 16
    for row in document["cells"]:
        assert row["gold"] <= row["valid"] <= row["parsed"] <= 1
        assert row["gold_low"] <= row["gold"] <= row["gold_high"]
        assert (row["n"], row["missing"], row["missing_corrections"]) == (25, 0, 0)
    assert "Three layers" in (tmp_path / "a.html").read_text("utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"a.html", "a.md", "a.svg"}


def test_a_run_is_ablated_and_its_corrections_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cases = cases_of(["hopeless", "hopeless"])
    for case, word in zip(cases, ("N/A", "none"), strict=True):
        call = json.dumps({"name": "weather", "arguments": {"lat": word}})
        case["input"] = unseen(f"say=<tool_call>{call}</tool_call>")
    text = "\n".join(map(json.dumps, cases))
    (tmp_path / "cases.jsonl").write_text(text, "utf-8")
    with MockOpenAI() as mock:
        (tmp_path / "toolparse.toml").write_text(
            f'store = "runs.db"\n[models.mock]\nname = "openai/m"\napi_base = "{mock.url}"\n'
            'api_key_env = "MOCK_KEY"\n',
            "utf-8",
        )
        monkeypatch.setenv("MOCK_KEY", "planted-0123456789")
        ask = ["run", "--cases", "cases.jsonl", "--models", "mock", "--protocols", "hermes"]
        assert main([*ask, "--set", "type_rules=false,true", "--quiet"]) == 0
        assert mock.calls == 4
        capsys.readouterr()
        # Nothing is asked unless somebody says so.
        before = out_of(capsys, ["ablation"])
        assert mock.calls == 4
        assert len(before["missing"]) == 2
        assert [row["gold"] for row in before["cells"]] == [0, None] * 4
        limited = ["ablation", "latest", "--ask", "--quiet", "--max-calls", "1"]
        assert out_of(capsys, limited, code=3)["missing"]
        assert mock.calls == 5
        after = out_of(capsys, ["ablation", "latest", "--ask", "--quiet"])
        assert after["missing"] == []
        assert mock.calls == 6, "each different correction once"
        assert [row["gold"] for row in after["cells"]] == [0] * 8
        assert main(["ablation", "--by", "model", "--policy", "lossy", "--figures", "layer2"]) == 0
        assert mock.calls == 6
        assert "lossy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--figures", "celles"], "cells"),
        (["--out", "a.pdf"], "a.pdf"),
        (["--out", "none/a.html"], "none"),
        (["--shipped", "--ask"], "--shipped"),
        (["--shipped", "--by", "arm"], "arm"),
        (["--shipped", "--policy", "saef"], "saef"),
        (["--store", "none.db"], "none.db"),
    ],
)
def test_wrong_usage_is_2_and_says_what(
    flags: list[str],
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["ablation", *flags]) == 2
    assert word in capsys.readouterr().err


def test_a_run_with_one_level_of_layer_1_is_said_to_have_one(tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        plan = lab.plan(
            cases_of(["right"]), {"m": tp.Model("openai/known")}, ["hermes"], few_shot=0
        )
        run = lab.run(plan, complete=KnownModel(), progress=False)
        half = lab.ablation(run, ask=False)
        assert "half of the cells" in half.text("cells")
        assert half.cells["gold"].isna().sum() == 4
        assert half.html()


def test_the_recording_is_made_by_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = tp.example_recording(ablation=True)
    with tp.Lab(tmp_path / "runs.db") as lab:
        import_recording(shipped, lab.store)
    # Every answer is there by now, so that nobody is asked.
    out = tmp_path / "again.jsonl"
    assert (
        main(["record", "--ablation", "--out", str(out), "--store", str(tmp_path / "runs.db")]) == 0
    )
    assert sorted(out.read_text("utf-8").splitlines()) == sorted(
        shipped.read_text("utf-8").splitlines()
    )
    with pytest.raises(SystemExit):
        main(["record", "--ablation", "--conversations", "--out", str(out)])
