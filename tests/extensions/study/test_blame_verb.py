"""The verb `blame`, of a record alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import toolparse_lab as tp
from tests.evals.test_trial_blame import SITUATIONS
from toolparse_lab.cli.app import main


def test_the_command(tmp_path: Path, capsys: Any) -> None:
    store = str(tmp_path / "runs.db")
    case = next(c for c in SITUATIONS if c["layer"] == c.get("open", c["layer"]) == "server")
    with tp.Lab(store) as lab:
        trial = lab.ingest([case["row"]], progress=False).trials()[0]
    assert main(["blame", "latest", trial.trial_id, "--store", store]) == 0
    assert "1 failed trial: server 1" in capsys.readouterr().out
    assert main(["blame", "latest", trial.trial_id, "--store", store, "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)
    assert (said["layer"], said["trial_id"]) == ("server", trial.trial_id)
