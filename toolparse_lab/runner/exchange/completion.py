"""`Completion`, one answer as it is recorded, and `Chunk`, a piece of a streamed one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, get_args

from ...core.errors import UnreadableInput
from ...core.values import read_strict

RESULT_KEYS = ("call_id", "name", "arguments_json", "output_json")
EndpointKind: TypeAlias = Literal["chat_text", "native_tools", "raw_completion"]
Fidelity: TypeAlias = Literal[
    "wire", "sdk", "replayed", "synthetic", "logprobs", "token_ids", "raw_messages"
]
ErrorKind: TypeAlias = Literal[
    "timeout",
    "rate_limited",
    "context_overflow",
    "refused",
    "auth",
    "not_found",
    "bad_request",
    "server_error",
    "connection",
    "cut_stream",
    "too_large",
    "setup",
    "other",
]
ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)

PROVIDER_HINTS: Mapping[str, str] = {
    "auth": "set the provider's key in the environment, such as OPENAI_API_KEY, or pass "
    'tp.Model(name, api_key=…); a server of your own takes any key: api_key="none"',
    "connection": "check that the server runs, and the address in tp.Model(name, api_base=…)",
    "not_found": "check the model's name; the server lists its models at /v1/models",
    "setup": "install the provider's package, and run the same again",
}
"""Kind of failure -> what to do; for those that a person can mend."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a stream: `at` is seconds since the request was sent, `text` exactly as
    received.
    """

    at: float
    text: str
    kind: Literal["content", "reasoning"] = "content"


# Its 23 fields are the columns of the store and the members of a recording's line; the record of an
# answer is flat, so that a frame shows it without another step.
@dataclass(frozen=True, slots=True)
class Completion:
    """One answer, as recorded.

    `raw` is the model's text exactly as received. For `native_tools` it is canonical JSON of the
    message's `tool_calls` and content. `status` is "error" for every failure, with its class in
    `error_kind` and a redacted message. `cut` marks a stream that ended without a finish part: it
    is never reported as finished. `latency`, `ttft` (time to the first chunk) and `queue_wait` are
    seconds. `cost` is US dollars, None if no price is known. `results` is the result of functions
    back for the calls of this answer, where a conversation ran them: objects of `call_id`, `name`,
    `arguments_json` and `output_json`, so that nothing that reads a recording runs them again.
    """

    key: str
    raw: str = ""
    status: Literal["ok", "error"] = "ok"
    error_kind: str | None = None
    error_message: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    latency: float | None = None
    ttft: float | None = None
    queue_wait: float | None = None
    attempt: int = 1
    chunks: tuple[Chunk, ...] = ()
    reasoning: str = ""
    endpoint_kind: EndpointKind = "chat_text"
    fidelity: Fidelity = "sdk"
    stream: bool = False
    cut: bool = False
    system_fingerprint: str | None = None
    created: str = ""
    request: Mapping[str, Any] = field(default_factory=dict)
    response: Mapping[str, Any] | None = None
    results: tuple[Mapping[str, str], ...] = ()

    @property
    def ok(self) -> bool:
        """True for an answer, False for a failure."""
        return self.status == "ok"

    @property
    def retry_after(self) -> float | None:
        """Seconds the provider asked to wait, where it did.

        It stands in the recorded response, so that a run that is taken up again knows it too.
        """
        value = (self.response or {}).get("retry_after")
        return float(value) if isinstance(value, (int, float)) else None

    @property
    def refused_param(self) -> str | None:
        """The parameter that the endpoint refused to take, None for any other answer or failure."""
        name = (self.response or {}).get("refused")
        return name if isinstance(name, str) else None

    def to_dict(self) -> dict[str, Any]:
        """JSON.

        Texts may hold lone surrogates, so write it with `ensure_ascii=True` (`to_json` does).

        Chunks are lists of time, text and kind, because there may be thousands of them.
        """
        out = {f.name: getattr(self, f.name) for f in fields(self)}
        out["chunks"] = [[c.at, c.text, c.kind] for c in self.chunks]
        out["request"] = dict(self.request)
        out["response"] = None if self.response is None else dict(self.response)

        # Recordings made before conversations had results must keep their bytes.
        if self.results:
            out["results"] = [dict(r) for r in self.results]
        else:
            del out["results"]
        return out

    @classmethod
    def from_dict(cls, obj: Mapping[str, Any]) -> Completion:
        """Return the inverse of `to_dict`.

        Raises UnreadableInput for anything else.

        Members it does not know are refused, since they would be lost. Missing ones get their
        defaults, except for the key.
        """
        try:
            values = dict(obj)
            values["chunks"] = tuple(
                Chunk(float(at), text, kind) for at, text, kind in values.get("chunks") or ()
            )
            values["results"] = tuple(
                {k: str(r[k]) for k in RESULT_KEYS} for r in values.get("results") or ()
            )
            # An output that is no JSON is found here, with its line, and not by the first reader.
            for result in values["results"]:
                read_strict(result["output_json"])
            return cls(**values)
        except (TypeError, ValueError, KeyError) as e:
            raise UnreadableInput(
                "not a recorded completion", got=str(e), expected=[f.name for f in fields(cls)]
            ) from None

    def to_json(self) -> str:
        """ASCII JSON text, byte-stable, safe for lone surrogates.

        Raises ValueError for a number that JSON does not have (NaN, infinity).
        """
        return json.dumps(
            self.to_dict(),
            ensure_ascii=True,
            separators=(",", ":"),
            sort_keys=True,
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Completion:
        """Return the inverse of `to_json`.

        Raises UnreadableInput, or ValueError for no JSON at all.

        Texts with lone surrogates come back as they were.
        """
        return cls.from_dict(json.loads(text))
