"""The values that a run asks with and records: `Model`, `Request`, `Chunk`, `Completion`,
`PlanItem`, and many requests by their keys: `Questions`.

Times are seconds, prices US dollars per million tokens. Credentials live in a `Model` only while it
is in memory: no `to_dict`, `repr`, key or record contains one.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, get_args

from ...core.errors import BadOptions, UnreadableInput
from ...core.values import read_strict, write_canonical
from .redaction import (
    is_http_address,
    parts_of,
    redact,
    redact_named,
    redact_strings,
    redact_url,
    secrets_in,
    url_secrets,
)

# -- models

MOST_ANSWER = 8 * 2**20
"""Bytes of an answer, if nobody says another number."""
RAW_COMPLETION = "text-completion-"
"""How model strings begin whose endpoint takes a prompt instead of messages."""
PARAMETERS: tuple[str, ...] = (
    "audio", "chat_template_kwargs", "extra_body", "extra_headers", "frequency_penalty", "grammar",
    "guided_choice", "guided_grammar", "guided_json", "guided_regex", "keep_alive", "logit_bias",
    "logprobs", "max_completion_tokens", "max_tokens", "metadata", "min_p", "min_tokens",
    "modalities", "n", "num_ctx", "parallel_tool_calls", "prediction", "presence_penalty",
    "prompt_cache_key", "repeat_penalty", "repetition_penalty", "response_format",
    "safety_identifier", "safety_settings", "seed", "service_tier", "skip_special_tokens", "stop",
    "store", "structured_outputs", "thinking", "top_k", "top_logprobs", "top_p", "typical_p",
    "user", "verbosity", "web_search_options",
)  # fmt: skip
"""Parameters that are sent as they are: those of litellm and OpenAI, and of common servers."""


@dataclass(frozen=True, slots=True)
class Model:
    """A litellm model string and everything its endpoint needs.

    Args:
        params: the model's own sampling parameters. They override those of a plan. None: the
            parameter is not sent.
        timeout: seconds.
        max_connections: calls at once. "adaptive" follows rate limits and latency.
        max_retries: tries after the first.
        swaps: for a server that holds one model at a time. The models of one `api_base` are then
            asked one after the other.
        max_answer: the size limit of an answer, in bytes of its text. A response around it may have
            a megabyte more, and a stream as a whole eight times as much.
        price: (input, output) in US dollars per million tokens, with the price of cached input as a
            third where it differs. (0, 0) is free, None is litellm's own list.
        api_key: never stored. Credentials are best left to the provider's own chain (environment,
            profile, role).
        chat_template: writes the prompt for an endpoint without chat (`text-completion-…`). The
            path of the model's folder, of its chat_template.jinja or tokenizer_config.json, the
            template itself, or "chatml".

    Raises BadOptions for values that cannot work.

    >>> import toolparse_lab as tp
    >>> tp.Model("hosted_vllm/Qwen3-8B", api_base="http://localhost:8000/v1", price=(0, 0))
    Model('hosted_vllm/Qwen3-8B', api_base='http://localhost:8000/v1', price=[0.0, 0.0])
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
    max_answer: int = MOST_ANSWER
    price: tuple[float, float] | tuple[float, float, float] | None = None
    api_key: str | None = field(default=None, repr=False)
    chat_template: str | os.PathLike[str] | Mapping[str, Any] | None = None
    # Found when first asked for; a frozen class can only keep them in a field.
    _secrets: tuple[str, ...] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # What cannot work is refused here and not by the first call, hours into a run.
        if not isinstance(self.name, str) or not self.name.strip():
            raise BadOptions(
                "a model needs a name", got=self.name, expected="a litellm model string"
            )
        if self.api_base is not None and not is_http_address(self.api_base):
            raise BadOptions(
                "api_base is an address",
                got=redact_url(str(self.api_base)),
                expected='such as "http://localhost:8000/v1"',
                hint="begin it with http:// or https://",
            )
        if self.chat_template is not None and not self.name.startswith(RAW_COMPLETION):
            raise BadOptions(
                "a chat template is for an endpoint without chat",
                got=self.name,
                expected=f"a model string such as '{RAW_COMPLETION}openai/NAME'",
                hint="a chat endpoint has its own; vLLM takes another one as "
                'extra_body={"chat_template": …}',
            )
        for name, low, expected in (
            ("timeout", 0, "a number above 0"),
            ("max_connections", 1, 'a number of at least 1, or "adaptive"'),
            ("max_retries", 0, "a number of at least 0"),
            ("max_answer", 1, "a number of at least 1"),
        ):
            value = getattr(self, name)
            if name == "max_connections" and value == "adaptive":
                continue
            # True and False are no numbers here, although Python counts with them.
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or value < low or (name == "timeout" and value == low):
                raise BadOptions(f"`{name}` is out of range.", got=value, expected=expected)
        if self.price is not None:
            object.__setattr__(self, "price", _checked_price(self.price))

    def __repr__(self) -> str:
        """Return a model as it could be typed again, without credentials and without defaults."""
        parts = [repr(self.name)]
        parts += [f"{k}={v!r}" for k, v in self.to_dict().items() if k != "name"]
        return f"Model({', '.join(parts)})"

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: object) -> Model:
        # Nothing changes it, and a copy by way of `__reduce__` would lose its credentials.
        return self

    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any]]]:
        """Return a pickle of the model without its credentials, as every other record of it."""
        return Model.from_dict, (self.to_dict(),)

    @property
    def endpoint(self) -> str:
        """The endpoint's identity: `api_base` without credentials, "" for the provider's own
        address. It is part of a request's key, so two spellings of one address give one identity.
        """
        return redact_url(self.api_base) if self.api_base else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The model's credentials in memory, which are removed from messages.

        They are the key, those of the address, the headers that are not known to be open, the
        members of body and parameters that have a credential's name, and the values of
        `{env = "…"}`, with the parts of them that may turn up alone.

        Secrets shorter than four characters are left out: removing them would tear ordinary words
        apart. So is text in the model's own name, which is not a secret.
        """
        if self._secrets is None:
            secrets = list(parts_of(self.api_key)) if self.api_key else []
            if self.api_base:
                secrets += url_secrets(self.api_base)
            secrets += secrets_in([{"headers": self.headers}, self.extra_body, self.params])
            secrets = [s for s in secrets if len(s) >= 4 and s not in self.name]
            object.__setattr__(self, "_secrets", tuple(dict.fromkeys(secrets)))
        return self._secrets or ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON without credentials. Members that have their default value drop out."""
        out: dict[str, Any] = {"name": self.name}
        if self.api_base:
            out["api_base"] = self.endpoint
        names = ("extra_body", "headers", "params")
        members = {name: member for name in names if (member := getattr(self, name))}
        if members:
            out.update(redact_strings(redact_named(members), self.secrets))
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            if value != default:
                out[name] = value
        if self.price is not None:
            out["price"] = list(self.price)
        # A template itself is recorded once, with its plan, and not with each answer.
        template = self.chat_template
        if isinstance(template, (str, os.PathLike)):
            path = os.fspath(template)
            if len(path) < 300 and "\n" not in path and "{" not in path:
                out["chat_template"] = path
        return out

    @classmethod
    def from_dict(cls, obj: Mapping[str, Any]) -> Model:
        """Return the model without its credentials, from the result of `to_dict`.

        Raises BadOptions for members it does not know, and for values that cannot work.
        """
        names = {f.name for f in fields(cls) if f.init}
        extra = sorted(set(obj) - names)
        # A record of a newer version may have settings that would silently be lost.
        if extra:
            raise BadOptions(
                "A model has members that are not known.", got=extra, expected=sorted(names)
            )
        values = dict(obj)
        if values.get("price") is not None:
            values["price"] = tuple(values["price"])
        return cls(**values)


# Their default says nothing about the endpoint, and is therefore left out of records.
_DEFAULTS = {
    f.name: f.default
    for f in fields(Model)
    if f.name in ("timeout", "max_connections", "max_retries", "swaps", "max_answer")
}


def _checked_price(price: Any) -> tuple[float, ...]:
    try:
        numbers = tuple(price)
        if 2 <= len(numbers) <= 3 and all(n >= 0 for n in numbers):
            return tuple(map(float, numbers))
    except (TypeError, ValueError):
        pass
    raise BadOptions(
        "a price is two numbers, US dollars per million input and output tokens",
        got=price,
        expected="(0.15, 0.60), with a third for cached input, or (0, 0) for free",
    )


# -- questions

KEY_VERSION = 1
"""Part of every key: another number would make every recorded answer a stranger."""


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to ask once.

    `messages` and `tools` have OpenAI's shape. `tools` is for the native arm only.

    Two requests with the same `key` are the same question, and are asked once.
    """

    model: Model
    model_alias: str
    messages: tuple[Mapping[str, Any], ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Mapping[str, Any], ...] = ()
    stream: bool = False
    trial: int = 0
    # Computed when first asked for; a frozen class can only keep them in fields.
    _key: str = field(default="", init=False, repr=False, compare=False)
    _secrets: tuple[str, ...] | None = field(default=None, init=False, repr=False, compare=False)
    _record: dict[str, Any] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Any sequence is taken; a tuple keeps the key true, because nobody can append to it.
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "tools", tuple(self.tools))

    def __repr__(self) -> str:
        """Return a request as it could be typed again, without credentials."""
        members = {**self.to_dict(), "model": self.model}
        return f"Request({', '.join(f'{name}={value!r}' for name, value in members.items())})"

    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any], str]]:
        """Return a pickle of the request without credentials, under the key that it had
        with them.
        """
        return _request_of_pickle, (self.to_dict(), self.key)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Credentials of the model and of the request's own parameters, as `Model.secrets`."""
        if self._secrets is None:
            found = (*self.model.secrets, *secrets_in(self.params))
            object.__setattr__(self, "_secrets", found)
        return self._secrets or ()

    @property
    def sent_params(self) -> dict[str, Any]:
        """Every parameter that is sent: the model's defaults under the request's own.

        A new dict each time, which may be changed by the caller.
        """
        return {**(self.model.params or {}), **self.params}

    @property
    def key(self) -> str:
        """sha256 (hex) of canonical JSON of everything that can change the answer, credentials
        excluded.

        The order inside messages, tools and schemas counts, because models and grammars see it. The
        order of parameters does not. Computed once: the contents of a request are not to be
        changed. Raises BadOptions if a value is not JSON.
        """
        if self._key:
            return self._key
        # 0.1 to 1 ms, depending on the length of messages and schemas. Changing anything here
        # changes every key, and with it the knowledge of a store: see KEY_VERSION.
        model = self.model
        subject = {
            "version": KEY_VERSION,
            "model": model.name,
            "endpoint": model.endpoint,
            "messages": list(self.messages),
            "tools": list(self.tools),
            "params": _ordered(redact_named(self.sent_params, headers=False)),
            "stream": bool(self.stream),
            "trial": self.trial,
        }
        # Members that most requests lack are left out, so that their keys did not change when
        # these members were added.
        if model.extra_body:
            subject["extra_body"] = _ordered(redact_named(model.extra_body, headers=False))
        if model.headers:
            headers = redact_named(model.headers, headers=False)
            subject["headers"] = _ordered({name.lower(): v for name, v in headers.items()})
        try:
            text = write_canonical(subject)
        except (TypeError, ValueError) as e:
            raise BadOptions(
                "A request holds a value that is not JSON.", got=str(e), expected="JSON values"
            ) from None
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        object.__setattr__(self, "_key", key)
        return key

    def to_dict(self) -> dict[str, Any]:
        """Return JSON without credentials. Known secrets are removed from the messages too.

        Keys of requests are computed from the request and not from this, since a value redacted
        here may be part of the question.
        """
        if self._record is not None:
            return dict(self._record)
        record: dict[str, Any] = {
            "messages": [dict(m) for m in self.messages],
            "params": redact_named(self.params),
        }
        if self.tools:
            record["tools"] = [dict(t) for t in self.tools]
        # Names are no secrets, even where a header says one of them again.
        whole = {
            "model": self.model.to_dict(),
            "model_alias": self.model_alias,
            **redact_strings(record, self.secrets),
            "stream": self.stream,
            "trial": self.trial,
        }
        object.__setattr__(self, "_record", whole)
        return dict(whole)

    @classmethod
    def from_dict(cls, obj: Mapping[str, Any]) -> Request:
        """Return the request without its credentials: put the model back by its alias before asking
        again.

        Raises BadOptions for a model that cannot work, KeyError for a missing member.
        """
        return cls(
            model=Model.from_dict(obj["model"]),
            model_alias=obj["model_alias"],
            messages=tuple(obj["messages"]),
            params=obj.get("params") or {},
            tools=tuple(obj.get("tools") or ()),
            stream=bool(obj.get("stream", False)),
            trial=int(obj.get("trial", 0)),
        )


def _request_of_pickle(record: Mapping[str, Any], key: str) -> Request:
    request = Request.from_dict(record)
    object.__setattr__(request, "_key", key)
    return request


def _ordered(params: Mapping[str, Any]) -> dict[str, Any]:
    # Order and 0.0 against 0 are the caller's accident, and no model sees them. Nested values are
    # left as they are. Above 2**53 two integers may be the same float, and must not become one key.
    return {
        name: int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 2**53 else v
        for name, v in sorted(params.items())
    }


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One line of a plan: which question (`key`) answers which case, model, arm and trial.

    `model` is the alias. `arm` has the other arm columns (prompt_protocol, factors) as JSON
    values.
    """

    case_id: str
    model: str
    key: str
    trial: int = 0
    arm: Mapping[str, Any] = field(default_factory=dict)


class Questions(Mapping[str, Request]):
    """Requests by their keys, in the order to ask them.

    A plan of 100,000 is 100,000 keys here: looking one up makes the request, and `route` says where
    it goes without making it.
    """

    @abstractmethod
    def route(self, key: str) -> tuple[str, Model]:
        """Return the alias of a request's model, and the model. Raises KeyError."""


class Held(Questions):
    """Requests that are in memory anyway. The same question is in it once."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self._requests = {request.key: request for request in requests}

    def __getitem__(self, key: str) -> Request:
        return self._requests[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._requests)

    def __len__(self) -> int:
        return len(self._requests)

    def route(self, key: str) -> tuple[str, Model]:
        request = self._requests[key]
        return request.model_alias, request.model


def questions_of(requests: Iterable[Request] | Questions) -> Questions:
    """Return `requests` as Questions. A plan's come back as they are and stay lazy: making all its
    requests at once is the thing they avoid.
    """
    return requests if isinstance(requests, Questions) else Held(requests)


# -- answers

RESULT_KEYS = ("call_id", "name", "arguments_json", "output_json")
EndpointKind: TypeAlias = Literal["chat_text", "native_tools", "raw_completion"]
Fidelity: TypeAlias = Literal[
    "wire", "sdk", "replayed", "synthetic", "logprobs", "token_ids", "raw_messages"
]
OF_TOKENS = ("logprobs", "token_ids", "raw_messages")
"""Fidelities of a text that was put together from the tokens that the model drew."""
ErrorKind: TypeAlias = Literal[
    "timeout", "rate_limited", "context_overflow", "refused", "auth", "not_found", "bad_request",
    "server_error", "connection", "cut_stream", "too_large", "setup", "other",
]  # fmt: skip
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
        """Seconds the provider asked to wait, where it did: as recorded, so that a run that is
        taken up again knows it too.
        """
        value = (self.response or {}).get("retry_after")
        return float(value) if isinstance(value, (int, float)) else None

    @property
    def refused_param(self) -> str | None:
        """The parameter that the endpoint refused to take, None for any other answer or failure."""
        name = (self.response or {}).get("refused")
        return name if isinstance(name, str) else None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON. Chunks are lists of time, text and kind, because there may be thousands.

        Strings may have lone surrogates, so write it with `ensure_ascii=True` (`to_json` does).
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
        """Return the inverse of `to_dict`. Raises UnreadableInput for anything else.

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
            # An output that is not JSON is found here, with its line, and not by the first reader.
            for result in values["results"]:
                read_strict(result["output_json"])
            return cls(**values)
        except (TypeError, ValueError, KeyError) as e:
            raise UnreadableInput(
                "not a recorded completion", got=str(e), expected=[f.name for f in fields(cls)]
            ) from None

    def to_json(self) -> str:
        """Return ASCII JSON text, byte-stable, safe for lone surrogates.

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
        """Return the inverse of `to_json`. Raises UnreadableInput, or ValueError for no JSON."""
        return cls.from_dict(json.loads(text))


__all__ = [
    "ERROR_KINDS", "KEY_VERSION", "PROVIDER_HINTS", "RAW_COMPLETION", "RESULT_KEYS", "Chunk",
    "Completion", "EndpointKind", "ErrorKind", "Fidelity", "Held", "Model", "PlanItem", "Questions",
    "Request", "questions_of", "redact",
]  # fmt: skip


End: TypeAlias = Literal["whole", "cut", "caller", "unreachable"]
"""How a response ended: whole, cut off by the server, left by the caller, or it never began."""


@dataclass(frozen=True, slots=True)
class Passed:
    """One exchange as it will be recorded.

    Attributes:
        app: the application that asked, by the name that its operator gave it.
        created: when the request came, ISO time.
        path: of the request, without its query. It says which API this is.
        request, response: the bodies, decompressed, with the bytes that passed.
        pieces: of the response, (seconds since the request, bytes) each.
        fidelity: `wire` for bytes that passed, `sdk` for what a client made of them.
        facts: method, query, headers and whatever else is known, as JSON.
    """

    app: str
    created: str
    path: str
    request: bytes = b""
    response: bytes = b""
    status: int | None = None
    pieces: tuple[tuple[float, int], ...] = ()
    seconds: float = 0.0
    end: End = "whole"
    fidelity: Literal["wire", "sdk"] = "wire"
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of both bodies."""
        return len(self.request) + len(self.response)
