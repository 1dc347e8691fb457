"""Every dialect in every situation, prompted and native, whole and streamed: what the frame says of
each cell, and what is expected of it.

`python benchmarks/providers.py` prints the table.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import toolparse_lab as tp
from tests.provider_dialects import CACHED, DIALECTS, THOUGHT, Dialect, Server
from tests.tools import tool_named
from toolparse_lab.runner import routes
from toolparse_lab.runner.litellm_door import litellm_module

TOOLS: list[dict[str, Any]] = [tool_named("set_timer", required=["minutes"], minutes="integer")]
Calls = tuple[int, ...]


@dataclass(frozen=True)
class Situation:
    """target: minutes of the calls that are right, None where nothing is graded. expected: columns
    of the frame, for both ways of sending.
    """

    target: Calls | None
    expected: Mapping[str, Any]
    whole: Mapping[str, Any] | None = None  # where a whole answer is another thing
    turns: int = 1


_RIGHT = {"status": "ok", "outcome": "correct"}
_CUT = {"status": "error", "error": "cut_stream", "cut": True}
SITUATIONS: dict[str, Situation] = {
    "one call": Situation((5,), _RIGHT),
    "two calls": Situation((5, 7), _RIGHT),
    "text": Situation(
        (), {"status": "ok", "outcome": "abstained_correctly", "text": "It is noon."}
    ),
    "reasoning": Situation((5,), _RIGHT),
    "tool loop": Situation(
        (5,),  # the first turn is graded
        {
            **_RIGHT,
            "n_turns": 3,
            "conversation_tokens": 36,
            "conversation_cost": 45e-6,
            "final_text": "Both are set.",
        },
        turns=4,
    ),
    "refusal": Situation((5,), {}),
    "context": Situation((5,), {"status": "error", "error": "context_overflow", "retries": 0}),
    "429": Situation((5,), {**_RIGHT, "retries": 1}),
    "529": Situation((5,), {"status": "error", "error": "server_error", "retries": 2}),
    "500": Situation((5,), {**_RIGHT, "retries": 2}),
    "cut": Situation((5,), _CUT, whole={"status": "error", "error": "connection"}),
    "short": Situation((5,), _CUT, whole=_RIGHT),
    "empty": Situation((), {"status": "ok", "text": ""}),
    "parts": Situation((5,), _RIGHT),
}
WAYS = ("prompted", "native")


@dataclass(frozen=True)
class Cell:
    """One dialect in one situation: the row of the frame, and what of it is not as expected."""

    dialect: str
    situation: str
    native: bool
    stream: bool
    row: Mapping[str, Any]
    faults: tuple[str, ...]


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """litellm asks nobody but the server: a token for Vertex AI is Google's to give, through a
    package that is not installed, and the length of a model's context Hugging Face's to say, once a
    call. Bedrock's keys are of the environment.
    """
    litellm_module()
    vertex = importlib.import_module("litellm.llms.vertex_ai.vertex_llm_base").VertexBase
    utils = importlib.import_module("litellm.utils")

    async def token(*_: Any, **__: Any) -> tuple[str, str]:
        return "planted", "p"

    keys = {"AWS_ACCESS_KEY_ID": "planted-id", "AWS_SECRET_ACCESS_KEY": "planted-secret",
            "AWS_REGION_NAME": "us-east-1"}  # fmt: skip
    with (
        mock.patch.dict(os.environ, keys),
        mock.patch.object(vertex, "get_access_token_async", token),
        mock.patch.object(vertex, "get_access_token", return_value=("planted", "p")),
        mock.patch.object(utils, "_get_max_position_embeddings", return_value=None),
    ):
        yield


def ask(name: str) -> Iterator[Cell]:
    """All cells of a dialect."""
    dialect = DIALECTS[name]
    routes.forget_refusals()
    arms = ["hermes", *(["native"] if dialect.takes_tools else [])]
    with alone(), tempfile.TemporaryDirectory() as folder, Server(name) as server:
        model = tp.Model(
            dialect.model, price=(1, 2), max_retries=2, timeout=20, **server.model_settings()
        )
        with tp.Lab(Path(folder) / "runs.db") as lab:
            for stream in (False, True):
                for turns in sorted({s.turns for s in SITUATIONS.values()}):
                    plan = lab.plan(
                        list(_cases(turns)), {"m": model}, arms, stream=stream, max_tokens=64,
                        max_turns=turns, runnable={"set_timer": lambda minutes: f"{minutes} set"},
                    )  # fmt: skip
                    run = lab.run(plan, progress=False, backoff=0.001, give_up_after=None)
                    chunks = {t.trial_id: t.completion.chunks for t in run.trials() if t.completion}
                    rows: list[dict[str, Any]] = run.frame().to_dict("records")  # type: ignore[assignment]
                    for row in rows:
                        native = row["arm"].startswith("native")
                        key = row["case_id"]
                        row["text"] = _text(row["raw"], native)
                        row["chunks"] = chunks[row["trial_id"]]
                        faults = tuple(_faults(dialect, key, native, stream, row))
                        yield Cell(name, key, native, stream, row, faults)


def _text(raw: str, native: bool) -> str:
    """The text of an answer; that of a native one is a member of its record."""
    return (json.loads(raw)["content"] or "") if native and raw else raw


def _cases(turns: int) -> Iterator[dict[str, Any]]:
    for key, situation in SITUATIONS.items():
        if situation.turns == turns:
            yield {
                "id": key,
                "input": f"Set a timer. situation={key.replace(' ', '-')}",
                "tools": TOOLS,
                "target": [
                    {"name": "set_timer", "arguments": {"minutes": m}}
                    for m in situation.target or ()
                ],
            }


def _faults(
    dialect: Dialect, key: str, native: bool, stream: bool, row: Mapping[str, Any]
) -> Iterable[str]:
    """What is not as expected, in words."""
    situation = SITUATIONS[key]
    expected = dict(situation.expected)
    if not stream and situation.whole is not None:
        expected = dict(situation.whole)
    if key == "refusal":
        if dialect.refuses:
            expected = {"status": "error", "error": "refused", "retries": 0}
        elif not dialect.model.startswith("ollama"):
            expected = {"status": "ok", "finish_reason": "content_filter"}
    elif expected.get("status") == "ok":
        called = native and key not in ("text", "empty")
        expected |= {
            "finish_reason": "tool_calls" if called else "stop",
            "prompt_tokens": 9,
            "completion_tokens": 3,
            "cost": 15e-6,
            "cut": False,
        }
        if "cached_tokens" in dialect.counts:
            expected["cached_tokens"] = CACHED
        if key == "reasoning" and dialect.shows_reasoning:
            expected["reasoning"] = "five is asked"
            if "reasoning_tokens" in dialect.counts:
                expected["reasoning_tokens"] = THOUGHT
    for column, value in expected.items():
        found = row[column]
        if isinstance(value, float) and isinstance(found, float):
            found = round(found, 9)
        if found != value:
            yield f"{column} is {row[column]!r}, not {value!r}"
    if stream and expected.get("status") == "ok" and key != "empty":
        chunks = row["chunks"]
        one = native and dialect.whole_calls and key not in ("text", "parts", "refusal")
        least = 1 if one else 2
        if len(chunks) < least:
            yield f"{len(chunks)} chunks"
        elif not math.isclose(row["ttft"], chunks[0].at) or row["ttft"] <= 0:
            yield f"ttft is {row['ttft']!r}, and the first chunk came at {chunks[0].at}"
