"""`Request`, one question to one model, many of them by key, and `PlanItem`, the line of a plan."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import BadOptions
from ...core.values import write_canonical
from .credentials import secrets_in
from .model import Model
from .redaction import redact_named, redact_strings

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
        if not self._key:
            object.__setattr__(self, "_key", self._computed_key())
        return self._key

    def _computed_key(self) -> str:
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
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON without credentials.

        Known secrets are removed from the messages too.

        Keys of requests are computed from the request and not from this, since a value redacted
        here may be part of the question.
        """
        record: dict[str, Any] = {
            "messages": [dict(m) for m in self.messages],
            "params": redact_named(self.params),
        }
        if self.tools:
            record["tools"] = [dict(t) for t in self.tools]
        # Names are no secrets, even where a header says one of them again.
        return {
            "model": self.model.to_dict(),
            "model_alias": self.model_alias,
            **redact_strings(record, self.secrets),
            "stream": self.stream,
            "trial": self.trial,
        }

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
    # Without its credentials, under the key that it had.
    request = Request.from_dict(record)
    object.__setattr__(request, "_key", key)
    return request


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One line of a plan: which question (`key`) answers which case, model, arm and trial.

    `model` is the alias. `arm` holds the other arm columns (prompt_protocol, factors) as JSON
    values.
    """

    case_id: str
    model: str
    key: str
    trial: int = 0
    arm: Mapping[str, Any] = field(default_factory=dict)


def _ordered(params: Mapping[str, Any]) -> dict[str, Any]:
    # Order and 0.0 against 0 are the caller's accident, and no model sees them. Nested values are
    # left as they are.
    return {name: _as_integer(value) for name, value in sorted(params.items())}


def _as_integer(value: Any) -> Any:
    # Above 2**53 two integers may be the same float, and must not become the same key.
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


class Questions(Mapping[str, Request]):
    """Requests by their keys, in the order to ask them.

    A plan of 100,000 is 100,000 keys here: looking one up makes the request, and `route` says where
    it goes without making it.
    """

    @abstractmethod
    def route(self, key: str) -> tuple[str, Model]:
        """Return the alias of a request's model, and the model. Raises KeyError."""


class Held(Questions):
    """Requests that are in memory anyway. The same question stands in it once."""

    def __init__(self, requests: Iterable[Request]) -> None:
        """`requests` are read once, and their keys computed now."""
        # By key: two equal questions are one entry.
        self._requests = {request.key: request for request in requests}

    def __getitem__(self, key: str) -> Request:
        return self._requests[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._requests)

    def __len__(self) -> int:
        return len(self._requests)

    def route(self, key: str) -> tuple[str, Model]:
        """Return the alias of a request's model, and the model.

        Raises KeyError.

        Nothing has to be made for it, since the request is there.
        """
        request = self._requests[key]
        return request.model_alias, request.model


def questions_of(requests: Iterable[Request] | Questions) -> Questions:
    """`requests` as Questions.

    Questions come back as they are, unread.

    A plan's Questions stay lazy: making all its requests at once is the thing they avoid.
    """
    return requests if isinstance(requests, Questions) else Held(requests)
