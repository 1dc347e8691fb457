"""A run to be killed, for tests only: `python crash_run.py URL` forks one for each line "SECONDS
SIGNAL STORE" on its input.

Its process id is said at once, since others may end it, too. It gets the signal when it has lived
so long; "killed", "interrupted" or "done" is said. Importing what a run
needs takes seconds, so it happens once, before the first of them.
"""

from __future__ import annotations

import base64
import os
import signal
import sys
import time
import traceback
from contextlib import suppress

import toolparse_lab as tp
from toolparse_lab.experiments.plan import Plan

CASES = 12
CALLS = CASES * 2 * 2 * 2  # models, protocols, trials


def answer_to(n: int) -> str:
    """The call that the mock answers question `n` with."""
    return f'<tool_call>{{"name": "f", "arguments": {{"n": "{n}"}}}}</tool_call>'


def plan_of(lab: tp.Lab, url: str) -> Plan:
    tool = {
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        },
    }
    cases = [
        {
            "id": f"c{n}",
            # In base64: an answer that stands in the question is an echo.
            "input": f"slow=0.03 say64={base64.b64encode(answer_to(n).encode()).decode()}",
            "tools": [tool],
            "target": [{"name": "f", "arguments": {"n": n}}],
        }
        for n in range(CASES)
    ]
    models = {
        alias: tp.Model(
            f"openai/{alias}",
            api_base=url,
            api_key="k",
            price=(1, 1),
            max_connections=3,
            timeout=20,
        )
        for alias in ("a", "b")
    }
    return lab.plan(cases, models, ["hermes", "morph_xml"], trials=2, few_shot=0)


def ask(url: str, store: str) -> None:
    with tp.Lab(store) as lab:
        run = lab.run(plan_of(lab, url), progress=False)
        assert run.summary is not None
        assert run.summary.complete


def main() -> None:
    url = sys.argv[1]
    from toolparse_lab.runner.litellm_door import litellm_module

    with suppress(ImportError):
        import psycopg  # noqa: F401  # the driver of a server

    litellm_module()
    tp.Lab(":memory:").close()
    for line in sys.stdin:
        seconds, sent, store = line.rstrip().split(" ", 2)
        child = os.fork()
        if not child:
            try:
                ask(url, store)
            except KeyboardInterrupt:
                os._exit(130)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        end = time.monotonic() + float(seconds)
        ended, status = 0, 0
        while not ended and time.monotonic() < end:
            time.sleep(0.002)
            ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            os.kill(child, signal.Signals[sent])
            _, status = os.waitpid(child, 0)
        words = {0: "done", 130: "interrupted"}
        word = "killed" if os.WIFSIGNALED(status) else words.get(os.waitstatus_to_exitcode(status))
        sys.stdout.write(f"{word or f'failed {status}'}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
