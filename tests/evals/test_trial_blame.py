"""Which layer broke an answer, weighed over all that was recorded of it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import EVALS, load
from tests.tables import for_each
from toolparse_lab.cli.app import main
from toolparse_lab.core.types import BLAME_CODES, LAYERS, Blame, Evidence
from toolparse_lab.core.types.tokens import Tokens
from toolparse_lab.evals.frames.parsing import parse_frame
from toolparse_lab.evals.scoring import blame as blame_rules
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.views.blame import render_blame

# Situations of public threads, written without knowing the rules. `open`: what is said instead of
# the right layer, where no rule sees it yet.
SITUATIONS = load("blame.jsonl", EVALS)


@pytest.fixture(scope="module")
def lab() -> Iterator[tp.Lab]:
    with tp.Lab(":memory:") as opened:
        yield opened


def test_situations_met_in_public(lab: tp.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: dict[str, list[dict[str, Any]]] = {}
    for case in SITUATIONS:
        groups.setdefault(json.dumps(case.get("ingest", {})), []).append(case)
    told: list[tuple[dict[str, Any], Trial, str]] = []
    for options, cases in groups.items():
        rows = [{**c["row"], "case_id": c["id"]} for c in cases]
        run = lab.ingest(rows, progress=False, **json.loads(options))
        layers = run.frame().set_index("case_id")["blame_layer"]
        trials = {trial.case.id: trial for trial in run.trials()}
        told += [(case, trials[case["id"]], layers[case["id"]]) for case in cases]
    for_each([pytest.param(*one, id=one[0]["id"]) for one in told], is_told)
    # A sound answer is not looked at, and no rule would say anything of it.
    said = [trial.blame for _, trial, _ in told]
    monkeypatch.setattr(blame_rules, "_is_sound", lambda *answer: False)
    assert [trial.blame for _, trial, _ in told] == said


def is_told(case: dict[str, Any], trial: Trial, in_frame: str) -> None:
    blame = trial.blame
    assert blame.layer == in_frame == case.get("open", case["layer"]), blame.explained()
    assert blame.layer in LAYERS
    assert blame.code in {"", *BLAME_CODES}
    if blame.layer == "cannot_tell":
        assert blame.would_tell
    elif blame.layer != "none":
        assert str(blame)
    for evidence in blame.evidence:
        if evidence.start is not None and trial.completion is not None:
            raw = trial.completion.raw[evidence.start : evidence.end]
            assert evidence.says[:20] == raw[:20]


def test_no_situation_is_told_wrong() -> None:
    assert len(SITUATIONS) >= 60
    wrong = [c for c in SITUATIONS if c.get("open", c["layer"]) not in (c["layer"], "cannot_tell")]
    assert wrong == []
    assert sum("open" in c for c in SITUATIONS) <= 3


def test_a_frame_says_the_same_when_it_is_read_again(lab: tp.Lab) -> None:
    # Only a completion has the tokens, the tools and the tool choice of its request, and the
    # numbers of the pieces of a stream.
    beyond = (
        "tools-not-in-request",
        "stream-parallel-index-0",
        "speculative-not-the-likeliest-at-0",
        "temperature-draws-wrong-city",
    )
    rows = [
        c["row"]
        for c in SITUATIONS
        if not c.get("ingest") and "tool_choice" not in str(c) and c["id"] not in beyond
    ]
    frame = lab.ingest(rows, progress=False, errors="skip").frame()
    again = parse_frame(frame, None)
    same = frame["blame_layer"].astype(str).tolist() == again["blame_layer"].astype(str).tolist()
    assert same
    assert {"server", "model", "transport", "none"} <= set(frame["blame_layer"].astype(str))


def test_the_report_counts_layers(lab: tp.Lab) -> None:
    rows = [c["row"] for c in SITUATIONS if not c.get("ingest")]
    report = lab.ingest(rows, progress=False, errors="skip").report()
    layers = report.layers
    assert set(layers["layer"]) >= {"server", "client", "transport", "template"}
    assert "none" not in set(layers["layer"])
    assert "Which layer broke it" in str(report)


def test_a_verdict_is_a_sentence_with_its_evidence() -> None:
    evidence = Evidence("raw", "<tool_call>\n{}", 3, 16)
    blame = Blame("Server lost it.", "server", "markup_in_content", (evidence,))
    again = pickle.loads(pickle.dumps(blame))
    assert (again, again.layer, again.evidence) == (blame, "server", (evidence,))
    assert blame.explained() == "server: Server lost it.\n  raw 3 to 16: <tool_call> {}"
    assert blame.to_dict()["evidence"][0]["start"] == 3
    assert Blame().layer == "none"


def test_the_view_of_a_trial_names_the_layer(tmp_path: Path, capsys: Any) -> None:
    store = str(tmp_path / "runs.db")
    case = next(c for c in SITUATIONS if c["layer"] == c.get("open", c["layer"]) == "server")
    with tp.Lab(store) as lab:
        run = lab.ingest([case["row"]], progress=False)
        trial = run.trials()[0]
    assert main(["view", "latest", trial.trial_id, "--store", store]) == 0
    assert "blame:  server" in capsys.readouterr().out


# A verdict and a template's findings as pages: evidence at its place, and nothing that acts.


RAW = 'I look. <tool_call>{"name": "f"}</tool_call>'
VERDICT = Blame(
    "Server lost it.", "server", "markup_in_content", (Evidence("raw", RAW[8:], 8, len(RAW)),)
)


def test_evidence_is_shown_with_the_text_its_tokens_and_its_chunks_around_it() -> None:
    tokens = Tokens(RAW, (8, 36), logprobs=(-0.1, -0.2))
    page = render_blame(VERDICT, RAW, tokens, [RAW[:4], RAW[4:20], RAW[20:]])
    assert "characters 8 to 44; token 1, the least likely" in page
    assert "82 %" in page
    assert "chunks 1 to 2" in page
    assert "I look. <mark>" in page
    assert "&lt;tool_call&gt;{&#34;name&#34;" in page or "&lt;tool_call&gt;{&quot;name" in page
    # Pieces of another text have no places in this one.
    assert "chunk" not in render_blame(VERDICT, RAW, None, ["another"])


def test_model_text_in_a_verdict_cannot_act() -> None:
    hostile = "<script>alert(1)</script>\x1b[31m\u202e"
    verdict = Blame(hostile, "model", "", (Evidence("content", hostile),), hostile)
    page = render_blame(verdict, hostile)
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_there_is_nothing_to_show_where_nothing_broke() -> None:
    assert render_blame(Blame(), RAW) == ""
    # A place outside the text is told in words.
    far = Blame("So.", "model", "", (Evidence("raw", "there", 100, 105),))
    assert "there" in render_blame(far, RAW)
