"""What the runner is given and what it records: `Model`, `Request`, `Chunk`, `Completion`, `PlanItem`.

Times are seconds, prices US dollars per million tokens. Credentials live in a `Model` only while it is in memory:
no `to_dict`, `repr`, key or record holds one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from ..errors import BadOptions, UnreadableInput
from ..values import read_strict, write_canonical
from .redaction import is_secret_name, redact, redact_named, redact_strings, redact_url, url_secrets

__all__ = [
    "ERROR_KINDS",
    "Chunk",
    "Completion",
    "ErrorKind",
    "Model",
    "PlanItem",
    "Request",
    "redact",
]

KEY_VERSION = 1
RAW_COMPLETION = "text-completion-"
"""How model strings begin whose endpoint takes a prompt instead of messages."""
RESULT_KEYS = ("call_id", "name", "arguments_json", "output_json")
EndpointKind: TypeAlias = Literal["chat_text", "native_tools", "raw_completion"]
Fidelity: TypeAlias = Literal["wire", "sdk", "replayed", "synthetic"]
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
    "other",
]
ERROR_KINDS: tuple[ErrorKind, ...] = (
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
    "other",
)


@dataclass(frozen=True, slots=True)
class Model:
    """A litellm model string and everything its endpoint needs.

    `params` are default sampling parameters, overridden by a request's own; `price` is (input, output) in US dollars
    per million tokens, (0, 0) = free, None = litellm's own list; `timeout` is in seconds; `max_connections` is how many
    calls it gets at once, found out by its rate limits and latency unless given; `max_retries` counts the tries after
    the first; `swaps` is for a server that holds one model at a time: the models of one `api_base` are then asked one
    after the other. Credentials are best left to the provider's own chain (environment, profile, role); `api_key` is
    never stored. Raises BadOptions for values that cannot work.
    """

    name: str
    api_base: str | None = None
    extra_body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] | None = None
    params: Mapping[str, Any] | None = None
    timeout: float = 120.0
    max_connections: int | Literal["adaptive"] = "adaptive"
    max_retries: int = 2
    swaps: bool = False
    price: tuple[float, float] | None = None
    api_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise BadOptions("A model needs a name.", got=self.name, expected="a litellm model string")
        _at_least("timeout", self.timeout, 0, open_end=True)
        if self.max_connections != "adaptive":
            _at_least("max_connections", self.max_connections, 1, also='"adaptive"')
        _at_least("max_retries", self.max_retries, 0)
        if self.price is not None:
            try:
                given, made = self.price
                bad = not (given >= 0 and made >= 0)
            except (TypeError, ValueError):
                bad = True
            if bad:
                raise BadOptions(
                    "A price is two numbers, US dollars per million input and output tokens.",
                    got=self.price,
                    expected="(0.15, 0.60), or (0, 0) for free",
                )
            object.__setattr__(self, "price", (float(self.price[0]), float(self.price[1])))

    def __repr__(self) -> str:
        parts = [repr(self.name)]
        parts += [f"{k}={v!r}" for k, v in self.to_dict().items() if k != "name"]
        return f"Model({', '.join(parts)})"

    @property
    def endpoint(self) -> str:
        """The endpoint's identity: `api_base` without credentials, "" for the provider's own address."""
        return redact_url(self.api_base) if self.api_base else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Credentials this model carries in memory, for removing them from messages."""
        found = [self.api_key or ""]
        if self.api_base:
            found += url_secrets(self.api_base)
        for holder in (self.headers, self.extra_body, self.params):
            found += _secret_members(holder)
        # A header's secret is also removed without its scheme, as servers echo it.
        found += [s.split(" ", 1)[1] for s in found if s.lower().startswith(("bearer ", "basic "))]
        return tuple(s for s in dict.fromkeys(found) if len(s) >= 4)

    def to_dict(self) -> dict[str, Any]:
        """JSON without credentials; members that have their default value are left out."""
        out: dict[str, Any] = {"name": self.name}
        if self.api_base:
            out["api_base"] = self.endpoint
        for name in ("extra_body", "headers", "params"):
            value = getattr(self, name)
            if value:
                out[name] = redact_named(value)
        for f in fields(self):
            if f.name in ("timeout", "max_connections", "max_retries", "swaps") and getattr(self, f.name) != f.default:
                out[f.name] = getattr(self, f.name)
        if self.price is not None:
            out["price"] = list(self.price)
        return out

    @classmethod
    def from_dict(cls, obj: Mapping[str, Any]) -> Model:
        """The model without its credentials. Raises BadOptions for members it does not know."""
        known = {f.name for f in fields(cls)}
        extra = sorted(set(obj) - known)
        if extra:
            raise BadOptions("A model has members that are not known.", got=extra, expected=sorted(known))
        values = dict(obj)
        if values.get("price") is not None:
            values["price"] = tuple(values["price"])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to ask once. `messages` and `tools` have OpenAI's shape; `tools` is for the native arm only.

    Two requests with the same `key` are the same question, and are asked once.
    """

    model: Model
    model_alias: str
    messages: tuple[Mapping[str, Any], ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Mapping[str, Any], ...] = ()
    stream: bool = False
    trial: int = 0
    _key: str = field(default="", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "tools", tuple(self.tools))

    @property
    def sent_params(self) -> dict[str, Any]:
        """Every parameter that is sent: the model's defaults under the request's own."""
        return {**(self.model.params or {}), **self.params}

    @property
    def key(self) -> str:
        """sha256 (hex) of canonical JSON of everything that can change the answer, credentials excluded.

        The order inside messages, tools and schemas counts, because models and grammars see it; the order of
        parameters does not. Computed once: what a request holds is not to be changed. Raises BadOptions where a value
        is not JSON.
        """
        if self._key:
            return self._key
        subject = {
            "version": KEY_VERSION,
            "model": self.model.name,
            "endpoint": self.model.endpoint,
            "messages": list(self.messages),
            "tools": list(self.tools),
            "params": _ordered(redact_named(self.sent_params)),
            "stream": bool(self.stream),
            "trial": self.trial,
        }
        if self.model.extra_body:
            subject["extra_body"] = _ordered(redact_named(self.model.extra_body))
        if self.model.headers:
            subject["headers"] = _ordered({k.lower(): v for k, v in redact_named(self.model.headers).items()})
        try:
            text = write_canonical(subject)
        except (TypeError, ValueError) as e:
            raise BadOptions("A request holds a value that is not JSON.", got=str(e), expected="JSON values") from None
        object.__setattr__(self, "_key", hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
        return self._key

    def to_dict(self) -> dict[str, Any]:
        """JSON without credentials; known secrets are removed from the messages too."""
        out: dict[str, Any] = {
            "model": self.model.to_dict(),
            "model_alias": self.model_alias,
            "messages": [dict(m) for m in self.messages],
            "params": redact_named(self.params),
        }
        if self.tools:
            out["tools"] = [dict(t) for t in self.tools]
        out["stream"] = self.stream
        out["trial"] = self.trial
        redacted: dict[str, Any] = redact_strings(out, self.model.secrets)
        return redacted

    @classmethod
    def from_dict(cls, obj: Mapping[str, Any]) -> Request:
        """The request without its credentials: put the model back by its alias before asking again."""
        return cls(
            model=Model.from_dict(obj["model"]),
            model_alias=obj["model_alias"],
            messages=tuple(obj["messages"]),
            params=obj.get("params") or {},
            tools=tuple(obj.get("tools") or ()),
            stream=bool(obj.get("stream", False)),
            trial=int(obj.get("trial", 0)),
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a stream: `at` is seconds since the request was sent, `text` exactly as received."""

    at: float
    text: str
    kind: Literal["content", "reasoning"] = "content"


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer, as recorded.

    `raw` is the model's text exactly as received; for `native_tools` it is canonical JSON of the message's
    `tool_calls` and content. `status` is "error" for every failure, with its class in `error_kind` and a redacted
    message. `cut` marks a stream that ended without a finish part: it is never reported as finished. `latency`,
    `ttft` (time to the first chunk) and `queue_wait` are seconds; `cost` is US dollars, None where no price is known.
    `results` is what functions gave back for the calls of this answer, where a conversation ran them: objects of
    `call_id`, `name`, `arguments_json` and `output_json`, so that nothing that reads a recording runs them again.
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
        return self.status == "ok"

    @property
    def retry_after(self) -> float | None:
        """Seconds the provider asked to wait, where it did."""
        value = (self.response or {}).get("retry_after")
        return float(value) if isinstance(value, (int, float)) else None

    def to_dict(self) -> dict[str, Any]:
        """JSON; texts may hold lone surrogates, so write it with `ensure_ascii=True` (`to_json` does)."""
        out = {f.name: getattr(self, f.name) for f in fields(self)}
        out["chunks"] = [[c.at, c.text, c.kind] for c in self.chunks]
        out["request"] = dict(self.request)
        out["response"] = None if self.response is None else dict(self.response)
        if self.results:
            out["results"] = [dict(r) for r in self.results]
        else:
            del out["results"]
        return out

    @classmethod
    def from_dict(cls, obj: Mapping[str, Any]) -> Completion:
        """The inverse of `to_dict`. Raises UnreadableInput for anything else."""
        try:
            values = dict(obj)
            values["chunks"] = tuple(Chunk(float(at), text, kind) for at, text, kind in values.get("chunks") or ())
            values["results"] = tuple({k: str(r[k]) for k in RESULT_KEYS} for r in values.get("results") or ())
            for result in values["results"]:
                read_strict(result["output_json"])
            return cls(**values)
        except (TypeError, ValueError, KeyError) as e:
            raise UnreadableInput(
                "Not a recorded completion.", got=str(e), expected=[f.name for f in fields(cls)]
            ) from None

    def to_json(self) -> str:
        """ASCII JSON text, byte-stable, safe for lone surrogates."""
        return json.dumps(self.to_dict(), ensure_ascii=True, separators=(",", ":"), sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Completion:
        return cls.from_dict(json.loads(text))


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One line of a plan: which question (`key`) answers which case, model, arm and trial.

    `model` is the alias; `arm` holds the other arm columns (prompt_protocol, factors) as JSON values.
    """

    case_id: str
    model: str
    key: str
    trial: int = 0
    arm: Mapping[str, Any] = field(default_factory=dict)


def _at_least(name: str, value: Any, low: float, *, open_end: bool = False, also: str = "") -> None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not good or value < low or (open_end and value == low):
        expected = f"a number {'above' if open_end else 'of at least'} {low}{also and f', or {also}'}"
        raise BadOptions(f"`{name}` is out of range.", got=value, expected=expected)


def _ordered(params: Mapping[str, Any]) -> dict[str, Any]:
    """Sorted by name, and 0.0 is the same setting as 0."""
    return {
        k: int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 2**53 else v
        for k, v in sorted(params.items())
    }


def _secret_members(value: Any) -> list[str]:
    found: list[str] = []
    if isinstance(value, Mapping):
        for k, v in value.items():
            if isinstance(v, str) and is_secret_name(str(k)):
                found.append(v)
            else:
                found += _secret_members(v)
    elif isinstance(value, (list, tuple)):
        for v in value:
            found += _secret_members(v)
    return found
