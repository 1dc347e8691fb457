"""How often `study.blame` finds the layer of a planted fault:
python benchmarks/blame.py [http [SEEDS]] [-v]

Two sets of faults. The first is simulated answer by answer: what a fault of a layer makes of the
same request under each probe. The second (`http`) are those of a server of the tests, over HTTP,
by code that was written without knowing how `study.blame` judges; SEEDS are of their questions (0
by default). Each fault breaks one layer, a part of them not in every request. Prints
right, wrong and cannot tell, by layer, with the requests that were spent; with -v also what was
left open. The exit code is 1 below 95 % right or above 1 % wrong.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import toolparse_lab as tp
from toolparse_lab.entry.capture import capture
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.reports.figures.stats import wilson
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.extensions.study import blame
from toolparse_lab.extensions.study.diagnosis import (
    Diagnosis,
    ProbeName,
    characters_of,
    diagnose,
    longer_case,
)
from toolparse_lab.middleware.flow import read_answer
from toolparse_lab.runner.exchange.types import Completion

TOOL = {
    "name": "find_berth",
    "description": "A free berth.",
    "parameters": {
        "type": "object",
        "properties": {"port": {"type": "string"}, "nights": {"type": "integer"}},
        "required": ["port", "nights"],
    },
}
LAYERS = ("model", "sampler", "template", "server", "transport", "client")
A_LAYER = 34


class Simulated:
    """One fault: what it makes of the question, under each probe."""

    probes: Sequence[ProbeName] = (
        "as asked", "other transfer", "temperature 0", "read here", "more tokens", "longer request",
    )  # fmt: skip

    def __init__(self, layer: str, number: int) -> None:
        self.spent = 0
        self.layer = layer
        self.random = random.Random(f"{layer}{number}")
        self.share = (1.0, 1.0, 0.5, 1 / 3)[number % 4]
        self.kind = self.random.randrange(6)
        self.has_logprobs = number % 3 != 0
        self.streams = number % 2 == 1
        arguments = {"port": self.random.choice(["Ystad", "Visby", "Kiel"]), "nights": 2}
        self.call: dict[str, Any] = {"name": "find_berth", "arguments": arguments}
        self.case = Case("c", "A berth?", tp.core.toolspec.tool_specs([TOOL]), [self.call])

    def ask(self, probe: ProbeName) -> Trial:
        """Return the answer to one request."""
        self.spent += 1
        heals = {
            "sampler": {"temperature 0"},
            "template": {"read here"},
            "server": {"read here"} | ({"other transfer"} if self.kind == 5 else set()),
            "client": {"more tokens"},
        }.get(self.layer, set())
        if probe == "longer request":
            case = longer_case(self.case)
            more = characters_of(case) - characters_of(self.case)
            shown = 30 if self.layer == "template" else 90 + more // 4
            longer = Completion("k", "No.", finish_reason="stop", prompt_tokens=shown)
            return replace(self._trial(longer), case=case)
        broken = probe not in heals and self.random.random() < self.share
        return self._answered(broken, native=probe != "read here")

    def _answered(self, broken: bool, *, native: bool) -> Trial:
        written = self._written(broken)
        if broken and self.layer == "transport":
            kind = ("connection", "timeout", "cut_stream")[self.kind % 3]
            return self._trial(Completion("k", "", "error", kind, "the connection was reset"))
        text = f"<tool_call>\n{json.dumps(written)}\n</tool_call>"
        reason = "stop"
        if broken and self.layer in ("model", "sampler"):
            text = self._damaged(text)
        elif broken and self.layer == "template":
            text = "I have no tool for that."
        elif broken and self.layer == "client":
            text, reason = text[:30], "length"
        if not native:
            return self._trial(Completion("k", text, finish_reason=reason), protocol="hermes")
        read = tp.parse(text, "hermes", [TOOL])
        calls = [(c.name, c.arguments_json) for c in read.calls if c.verdict == "clean"]
        content: str | None = read.content() if not calls else None
        if calls:
            reason = "tool_calls"
        if broken and self.layer == "server":
            calls, content, reason = self._parsed_wrong(calls, text)
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if calls:
            message["tool_calls"] = [
                {"id": "c", "type": "function", "function": {"name": n, "arguments": a}}
                for n, a in calls
            ]
        choice: dict[str, Any] = {"message": message, "finish_reason": reason}
        if self.has_logprobs:
            choice["logprobs"] = {"content": [{"token": text, "bytes": list(text.encode())}]}
        usage = {
            "prompt_tokens": 30 if broken and self.layer == "template" else 90,
            "completion_tokens": len(text) // 4,
        }
        captured = capture({"choices": [choice], "usage": usage})
        captured = captured if captured.token_text else captured.as_native()
        server = captured.server() if captured.token_text else None
        response = {"usage": usage, "server": server and server.to_dict()}
        completion = Completion(
            "k", captured.raw, finish_reason=reason, completion_tokens=len(text) // 4,
            prompt_tokens=usage["prompt_tokens"],
            endpoint_kind=captured.endpoint_kind, fidelity=captured.fidelity, response=response,
            request={"params": {"temperature": 0.7, "max_tokens": 40}},
        )  # fmt: skip
        return self._trial(completion, protocol="hermes" if captured.token_text else "native")

    def _written(self, broken: bool) -> dict[str, Any]:
        if broken and self.layer == "model" and self.kind < 3:
            arguments = {**self.call["arguments"], "nights": 9 + self.kind}
            return {"name": "find_berth", "arguments": arguments}
        return self.call

    def _damaged(self, text: str) -> str:
        if self.layer == "model":
            if self.kind < 3:
                return text
            return (text.replace('"', "'"), "I cannot do that.", text.replace("}}", "}"))[
                self.kind - 3
            ]
        letters = list(text)
        for _ in range(6):
            letters[self.random.randrange(len(letters))] = self.random.choice("{}<>xq\"'7 ")
        return "".join(letters)

    def _parsed_wrong(
        self, calls: list[tuple[str, str]], text: str
    ) -> tuple[list[tuple[str, str]], str | None, str]:
        name, arguments = calls[0]
        return (
            ([], "", "tool_calls"),
            ([], text, "stop"),
            ([(name, "{}")], None, "tool_calls"),
            ([(name, arguments[:-1])], None, "tool_calls"),
            ([(name, json.dumps({"port": "Ystad"}))], None, "tool_calls"),
            ([(name, arguments.replace("2", ""))], None, "tool_calls"),
        )[self.kind]

    def _trial(self, completion: Completion, protocol: str = "native") -> Trial:
        result = None
        if completion.ok:
            result = read_answer(
                completion.raw, protocol, self.case.tools, finish_reason=completion.finish_reason
            )
        return Trial.of(self.case, completion, result, prompt_protocol=protocol, arm=protocol)

    def diagnosed(self) -> Diagnosis:
        """Ask until it fails, then find out why."""
        first = self._answered(True, native=True)
        return diagnose(first, self, 12)


def simulated() -> list[tuple[str, str, Diagnosis]]:
    """Layer, kind of fault and diagnosis of each."""
    found = []
    for layer in LAYERS:
        for number in range(A_LAYER):
            fault = Simulated(layer, number)
            found.append((layer, f"{fault.kind} {fault.share:.2f}", fault.diagnosed()))
    return found


def over_http(seed: int) -> list[tuple[str, str, Diagnosis]]:
    """Return the same of the faults in the server of the tests."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.extensions.study.faulty_server import FaultyServer, failing_trial, planted

    found: list[tuple[str, str, Diagnosis]] = []
    for fault in planted(seed):
        with (
            tempfile.TemporaryDirectory() as folder,
            tp.Lab(Path(folder) / "runs.db") as lab,
            FaultyServer(fault) as server,
        ):
            try:
                trial = failing_trial(lab, fault, server)
            except AssertionError as e:
                print(f"left out: {e}")
                continue
            found.append((fault.layer, fault.id, blame(trial)))
    return found


def main() -> int:
    """Print the table."""
    seeds = [int(word) for word in sys.argv[1:] if word.isdecimal()] or [0]
    found = (
        [one for seed in seeds for one in over_http(seed)]
        if "http" in sys.argv[1:]
        else simulated()
    )
    print(f"{'layer':>10} {'n':>4} {'right':>6} {'wrong':>6} {'cannot tell':>12} {'requests':>9}")
    for layer in (*LAYERS, ""):
        part = [(kind, d) for true, kind, d in found if layer in (true, "")]
        truths = [true for true, _, _ in found if layer in (true, "")]
        right = sum(d.layer == true for true, (_, d) in zip(truths, part, strict=True))
        unknown = sum(d.layer == "cannot_tell" for _, d in part)
        asked = sum(len(d.asked) for _, d in part) / max(1, len(part))
        row = f"{layer or 'all':>10} {len(part):>4} {right:>6} {len(part) - right - unknown:>6}"
        print(f"{row} {unknown:>12} {asked:>9.1f}")
    right = sum(d.layer == true for true, _, d in found)
    interval = wilson(right, len(found))
    print(
        f"right: {right / len(found):.1%}, 95 % interval {interval.low:.1%} to {interval.high:.1%}"
    )
    wrong = Counter(
        (true, kind, d.layer) for true, kind, d in found if d.layer not in (true, "cannot_tell")
    )
    for (true, kind, said), count in wrong.items():
        print(f"  {count} × {true} ({kind}) was called {said}")
    if "-v" in sys.argv:
        for true, kind, d in found:
            if d.layer == "cannot_tell":
                print(f"  {true} ({kind}): { ({k: round(v, 2) for k, v in d.likely.items()}) }")
    return int(right < 0.95 * len(found) or sum(wrong.values()) > 0.01 * len(found))


if __name__ == "__main__":
    sys.exit(main())
