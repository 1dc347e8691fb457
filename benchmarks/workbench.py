"""What a person waits for who looks for failing answers, in a real browser:

    python benchmarks/workbench.py [154 10000 …] [--inspect PYTHON] [--promptfoo COMMAND]

For each number of answers a log is ingested, and `toolparse open` is started on it. Printed are
seconds from the command to the first answer on the screen, of a reload, of a filter, of opening an
answer, of the next failure; and from a key to the new parse of a text of one megabyte. Each is the
median of three.

`--inspect` names a Python that has inspect-ai, `--promptfoo` the command of promptfoo: the same
answers are then opened by `inspect view` and `promptfoo view`, as far as these have the steps.
Neither tells which answers fail to be executed: the filter of one is a word, of the other an
assertion.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from playwright.sync_api import Page, sync_playwright

import toolparse_lab as tp
from benchmarks.scale import rows as log_rows

ROOT = Path(__file__).parent.parent
REPEATS = 3
MEGABYTE = 1_000_000
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
PATIENCE = 120_000  # milliseconds

# Notes when a key went down, and when the view that it led to was on the screen.
UNTIL_PAINTED = """() => {
  addEventListener("keydown", () => (window.pressed = performance.now()), { capture: true });
  const paint = () => (window.painted = performance.now());
  const seen = () => requestAnimationFrame(() => setTimeout(paint));
  const bench = document.querySelector("[data-bench]");
  new MutationObserver(seen).observe(bench, { childList: true, subtree: true });
}"""
# Writes the log of inspect-ai for the same answers; run by a Python that has it.
INSPECT_LOG = """
import json, sys
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.model import ChatMessageUser, ModelOutput
rows = [json.loads(line) for line in open(sys.argv[1])]
samples = [
    EvalSample(
        id=i, epoch=1, input=row["prompt"], target="",
        messages=[ChatMessageUser(content=row["prompt"])],
        output=ModelOutput.from_content(row["model"], row["output"]),
    )
    for i, row in enumerate(rows)
]
spec = EvalSpec(created="2026-01-01T00:00:00+00:00", task="calls", model="mockllm/model",
                dataset=EvalDataset(samples=len(samples)), config=EvalConfig())
write_eval_log(EvalLog(eval=spec, status="success", samples=samples), sys.argv[2])
"""


@contextmanager
def served(
    command: list[str], folder: Path, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A server that ends with the block."""
    server = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield server
    finally:
        os.killpg(server.pid, signal.SIGINT)
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)


@contextmanager
def opened(words: list[str], folder: Path) -> Iterator[str]:
    """The address of `toolparse open`."""
    command = [sys.executable, "-m", "toolparse_lab.cli", "open", *words, "--no-browser"]
    with served(command, folder, {"PYTHONPATH": str(ROOT)}) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        yield found.group()


def own_times(page: Page, store: Path) -> dict[str, float]:
    """Seconds of what a person does first."""
    times = {}
    start = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal start
        times[name] = time.perf_counter() - start
        start = time.perf_counter()

    with opened([str(store)], store.parent) as address:
        page.goto(address)
        page.wait_for_selector(".item", timeout=PATIENCE)
        lap("first answer")
        page.reload()
        page.wait_for_selector(".item", timeout=PATIENCE)
        lap("reload")
        page.locator(".chips .chip").first.click()
        page.wait_for_selector('.chip[aria-pressed="true"]', timeout=PATIENCE)
        lap("filter")
        page.locator(".item").first.click()
        page.wait_for_selector(".detail .pv.live", timeout=PATIENCE)
        lap("open an answer")
        for name in ("next failure, first", "next failure, later"):
            place = page.url
            page.keyboard.press("n")
            while page.url == place:
                page.wait_for_timeout(1)
            lap(name)
    return times


def key_time(page: Page, folder: Path) -> float:
    """Seconds from a key in a text of a megabyte to its new parse on the screen."""
    call = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
    (folder / "long.txt").write_text("word " * ((MEGABYTE - len(call)) // 5) + call)
    with opened(["long.txt", "--protocol", "hermes"], folder) as address:
        page.goto(address)
        text = page.get_by_label("Raw text", exact=True)
        text.wait_for(timeout=PATIENCE)
        page.evaluate(UNTIL_PAINTED)
        text.focus()
        page.keyboard.press("x")
        milliseconds = 0.0
        while milliseconds <= 0:
            page.wait_for_timeout(100)
            milliseconds = page.evaluate("(window.painted ?? 0) - (window.pressed ?? 0)")
        return milliseconds / 1000


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def peer_times(
    page: Page,
    command: list[str],
    folder: Path,
    steps: Mapping[str, Callable[[], object]],
    environment: dict[str, str] | None = None,
) -> dict[str, float]:
    """Seconds of the same steps in another viewer. steps: what a person does in it, by name."""
    times, port = {}, free_port()
    address = f"http://127.0.0.1:{port}/"
    first = page.get_by_text("What about City").first

    def begin() -> None:
        while True:
            with suppress(urllib.error.URLError, OSError):
                urllib.request.urlopen(address, timeout=1)
                break
            time.sleep(0.02)
        page.goto(address)
        first.wait_for(timeout=PATIENCE)

    def again() -> None:
        page.reload()
        first.wait_for(timeout=PATIENCE)

    start = time.perf_counter()
    with served([*command, "--port", str(port)], folder, environment):
        for name, step in {"first answer": begin, "reload": again, **steps}.items():
            step()
            times[name] = time.perf_counter() - start
            page.wait_for_timeout(500)  # what was begun ends before the next step
            start = time.perf_counter()
    return times


def inspect_times(page: Page, python: str, log: Path) -> dict[str, float]:
    """The same answers in `inspect view`."""
    folder = log.parent / "inspect"
    if not folder.exists():
        folder.mkdir()
        target = str(folder / "log.eval")
        subprocess.run([python, "-c", INSPECT_LOG, str(log), target], check=True)

    def search() -> None:
        page.locator(".cm-content").first.click()
        page.keyboard.type('input_contains("City 7 ")')
        page.get_by_text("3 Samples").wait_for(timeout=PATIENCE)

    def opened() -> None:
        page.get_by_text("What about City 7 ").first.click()
        page.get_by_label("Next sample").wait_for(timeout=PATIENCE)

    def step() -> None:
        place = page.url
        page.get_by_label("Next sample").click()
        while page.url == place:
            page.wait_for_timeout(1)

    command = [str(Path(python).parent / "inspect"), "view", "--log-dir", str(folder)]
    steps = {"filter": search, "open an answer": opened, "next answer": step}
    return peer_times(page, command, folder, steps)


def promptfoo_times(page: Page, promptfoo: str, log: Path) -> dict[str, float]:
    """The same answers in `promptfoo view`."""
    folder = log.parent / "promptfoo"
    environment = {
        "PROMPTFOO_CONFIG_DIR": str(folder / "home"),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
    }
    if not folder.exists():
        folder.mkdir()
        rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
        wanted = [{"type": "contains", "value": "<tool_call>"}]
        tests = [
            {"vars": {"question": row["prompt"], "answer": row["output"]}, "assert": wanted}
            for row in rows
        ]
        config = {"prompts": ["{{question}}\n{{answer}}"], "providers": ["echo"], "tests": tests}
        (folder / "config.json").write_text(json.dumps(config))
        command = [promptfoo, "eval", "-c", "config.json", "--no-progress-bar", "--no-table"]
        subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            check=False,  # its logger may fail after the results are written
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def filtered() -> None:
        page.get_by_role("button", name="Failures", exact=True).click()
        page.get_by_text("FAIL", exact=True).first.wait_for(timeout=PATIENCE)

    def opened() -> None:
        page.get_by_role("button", name="View output and test details").first.click()
        page.get_by_role("dialog").wait_for(timeout=PATIENCE)

    steps = {"filter": filtered, "open an answer": opened}
    return peer_times(page, [promptfoo, "view", "--no"], folder, steps, environment)


def main() -> None:
    """Print a row for each number of answers and step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("answers", type=int, nargs="*", default=[154, 10_000])
    parser.add_argument("--inspect", help="a Python that has inspect-ai")
    parser.add_argument("--promptfoo", help="the command of promptfoo")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder_name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)

        def said(what: str, measured: list[float]) -> None:
            spread = f"{min(measured):.2f} to {max(measured):.2f}"
            print(f"{what:44}{statistics.median(measured):7.2f} s   ({spread})", flush=True)

        def page() -> Page:
            return browser.new_context(viewport={"width": 1280, "height": 900}).new_page()

        for n in options.answers:
            folder = Path(folder_name) / str(n)
            folder.mkdir()
            log, store = folder / "log.jsonl", folder / "toolparse.db"
            log.write_text("".join(json.dumps(row) + "\n" for row in log_rows(n)), "utf-8")
            with tp.Lab(store) as lab:
                lab.ingest(log, protocol="hermes", progress=False).frame()
            runs = [own_times(page(), store) for _ in range(REPEATS)]
            for step in runs[0]:
                said(f"{n:,} answers: {step}", [run[step] for run in runs])
            peers = {
                "inspect": (inspect_times, options.inspect),
                "promptfoo": (promptfoo_times, options.promptfoo),
            }
            for name, (measure, program) in peers.items():
                runs = [measure(page(), program, log) for _ in range(REPEATS if program else 0)]
                for step in runs[0] if runs else ():
                    said(f"{n:,} answers: {name}, {step}", [run[step] for run in runs])
        times = [key_time(page(), Path(folder_name)) for _ in range(REPEATS)]
        said(f"a text of {MEGABYTE:,} characters: key to parse", times)
        browser.close()


if __name__ == "__main__":
    main()
