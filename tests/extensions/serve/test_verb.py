"""The verb `serve`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.cli.test_extras import PROGRAM
from tests.tables import each_case
from tests.waiting import PATIENCE, running
from toolparse_lab.cli import main
from toolparse_lab.extensions.serve import verbs

ROOT = Path(__file__).parents[3]
UPSTREAM = ["--upstream", "http://127.0.0.1:9/v1"]


@each_case
def test_options_that_do_not_fit_are_refused(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main(["serve", *words])
    except SystemExit as e:
        code = e.code
    assert code == 2
    assert complaint in capsys.readouterr().err


def test_without_extras_it_names_what_to_install(tmp_path: Path) -> None:
    lacking = [
        "serve --local",
        *(f"serve {' '.join([*UPSTREAM, *m])}" for m in ([], ["--pass-through"])),
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(lacking)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for words, code, complaint in json.loads(done.stdout):
        assert code == 2, (words, complaint)
        assert complaint.startswith("toolparse: this command needs "), (words, complaint)


@pytest.mark.local_model
def test_ctrl_c_stops_a_server_with_130() -> None:
    pytest.importorskip("xllamacpp", reason="the embedded model's engine is not installed")
    command = [sys.executable, "-m", "toolparse_lab.cli", "serve", "--local", "--port", "0"]
    with running(command, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        assert process.stdout is not None
        assert "serving" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of threads")
def test_a_server_sees_a_signal_that_another_thread_gets() -> None:
    def interrupt() -> None:
        time.sleep(0.1)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        verbs._wait("serving")
    thread.join()
