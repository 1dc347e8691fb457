"""The dialects of providers and servers, replayed: `Server` answers with what
`cases_runner/provider_responses.jsonl` has for the situation that the question names.

A line with `dialect` describes one: `model` is litellm's model string, `path` follows the server's
address in api_base, `route` is how the paths of its requests end. A line with `dialects` has what
these answer in a situation, with or without tools in the request, as a stream or whole: the last
answer again and again. `missing`: how many bytes before its end the connection breaks off.

A dialect is not its provider. The shapes were tried against litellm's code in `reader`. With their
pages (stored excerpts, 2026) only Anthropic's streams, Cohere's streams and errors, and OpenRouter's
streams and errors were compared, and Cohere's stream with a recorded one. For all others `source` is
the page to compare with, which nobody has done line by line.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.providers import Providers, Wire

CACHED, THOUGHT = 4, 2  # tokens of every answer that come from the cache, and of thoughts
SITUATION = re.compile(r"situation=([\w-]+)")
Answers = tuple[tuple[int, Wire], ...]


@dataclass(frozen=True)
class Dialect:
    """`reader` is the file of litellm that reads the answers, under litellm/. counts: which counts
    its usage has beside the two that all have. overflow: what it says of a prompt that is too long.
    """

    model: str
    route: str
    source: str
    reader: str
    overflow: str
    path: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    refuses: bool = False  # by an error, not by a finish reason
    takes_tools: bool = True
    shows_reasoning: bool = True  # or litellm hands none on
    template: str | None = None
    counts: tuple[str, ...] = ("cached_tokens", "reasoning_tokens")
    whole_calls: bool = False  # a stream has each call in one piece


def _wire(answer: Mapping[str, Any]) -> tuple[int, Wire]:
    coded = answer.get("base64")
    body = answer["body"].encode() if coded is None else base64.b64decode(coded)
    kind = answer.get("type", "application/json")
    wire = Wire(body, kind, answer.get("headers", {}), answer.get("missing", 0))
    return answer.get("status", 200), wire


DIALECTS: dict[str, Dialect] = {}
ANSWERS: dict[tuple[str, str, bool, bool], Answers] = {}
_FILE = Path(__file__).parent / "cases_runner" / "provider_responses.jsonl"
for _row in map(json.loads, _FILE.read_text("utf-8").rstrip("\n").split("\n")):
    if "dialect" in _row:
        _name = _row.pop("dialect")
        DIALECTS[_name] = Dialect(**_row)
    for _name in _row.get("dialects", ()):
        _key = (_name, _row["situation"], _row["tools"], _row["stream"])
        ANSWERS[_key] = tuple(map(_wire, _row["answers"]))


class Server(Providers):
    """Speaks one dialect."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dialect = DIALECTS[name]
        self.turns: Counter[tuple[str, str, bool, bool]] = Counter()
        super().__init__(self._replayed)

    def model_settings(self) -> dict[str, Any]:
        """The arguments of `tp.Model` but for its name."""
        own = {k: str(v).replace("{url}", self.url) for k, v in self.dialect.params.items()}
        return {
            "api_base": self.url + self.dialect.path,
            "api_key": "planted",
            "params": own or None,
            "chat_template": self.dialect.template,
        }

    def _replayed(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        stream = "stream" in path.lower() or bool(body.get("stream"))
        if not path.removesuffix("-stream").endswith(self.dialect.route):
            return 404, {"error": {"message": f"{path} is none of this dialect's"}}
        found = SITUATION.search(json.dumps(body))
        if found is None:
            return 400, {"error": {"message": "no situation is named"}}
        key = (self.name, found[1], bool(body.get("tools") or body.get("toolConfig")), stream)
        turn = self.turns[key]
        self.turns[key] += 1
        answers = ANSWERS[key]
        return answers[min(turn, len(answers) - 1)]
