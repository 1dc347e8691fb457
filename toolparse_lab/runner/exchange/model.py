"""`Model`: a litellm model string and everything that its endpoint needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from ...core.errors import BadOptions
from .credentials import parts_of, secrets_in, url_secrets
from .redaction import is_http_address, redact_named, redact_strings, redact_url

RAW_COMPLETION = "text-completion-"
"""How model strings begin whose endpoint takes a prompt instead of messages."""

# A shorter secret would be replaced in the middle of ordinary words.
_MIN_SECRET = 4
_MEMBERS = ("extra_body", "headers", "params")
# Fields whose default says nothing about the endpoint, and is therefore left out of records.
_SETTINGS = ("timeout", "max_connections", "max_retries", "swaps", "max_answer")


@dataclass(frozen=True, slots=True)
class Model:
    """A litellm model string and everything its endpoint needs.

    `params` are the model's own sampling parameters: they go before those of a plan, and None sends
    no such parameter. `price` is (input,
    output) in US dollars per million tokens, with the price of cached input as a third where it
    differs, (0, 0) = free, None = litellm's own list. `timeout` is
    in seconds. `max_connections` is how many calls it gets at once, found out by its rate limits
    and latency unless given. `max_retries` counts the tries after the first. `swaps` is for a
    server that holds one model at a time: the models of one `api_base` are then asked one after the
    other. `chat_template` writes the prompt for an endpoint without chat (`text-completion-…`): the
    path of the model's folder or of its chat_template.jinja or tokenizer_config.json, the template
    itself, or "chatml". `max_answer` is the most taken of an answer, in bytes of its text.
    Credentials are best left to the provider's own chain (environment, profile, role). `api_key` is
    never stored. Raises BadOptions for values that cannot work.

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
    max_answer: int = 8 * 2**20
    price: tuple[float, float] | tuple[float, float, float] | None = None
    api_key: str | None = field(default=None, repr=False)
    chat_template: str | os.PathLike[str] | Mapping[str, Any] | None = None
    # Found when first asked for; a frozen class can only keep them in a field.
    _secrets: tuple[str, ...] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
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

        # What cannot work is refused here and not by the first call, hours into a run.
        _check_range("timeout", self.timeout, 0, open_end=True)
        if self.max_connections != "adaptive":
            _check_range("max_connections", self.max_connections, 1, also='"adaptive"')
        _check_range("max_retries", self.max_retries, 0)
        _check_range("max_answer", self.max_answer, 1)

        if self.price is not None:
            object.__setattr__(self, "price", _price_pair(self.price))

    def __repr__(self) -> str:
        """Return a model as it could be typed again, without credentials and without defaults."""
        parts = [repr(self.name)]
        parts += [f"{k}={v!r}" for k, v in self.to_dict().items() if k != "name"]
        return f"Model({', '.join(parts)})"

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: object) -> Model:
        """Return the model itself, which nothing changes.

        A copy by way of `__reduce__` would lose its credentials.
        """
        return self

    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any]]]:
        """Return a pickle of the model without its credentials, as every other record of it."""
        return Model.from_dict, (self.to_dict(),)

    @property
    def endpoint(self) -> str:
        """The endpoint's identity: `api_base` without credentials.

        "" for the provider's own address.

        It is part of a request's key, so two spellings of one address give one identity.
        """
        return redact_url(self.api_base) if self.api_base else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Credentials this model carries in memory, for removing them from messages.

        They come from the key, the address, the headers that are not known to be open, the members
        of body and parameters that have a credential's name, and the values of `{env = "…"}`.
        Anything that may turn up alone is there too: a key behind its scheme, a password, the lines
        of a key.

        Secrets shorter than four characters drop out: removing them would tear ordinary words
        apart. So is the text in the model's own name, which is not a secret.
        """
        if self._secrets is None:
            secrets = list(parts_of(self.api_key)) if self.api_key else []
            if self.api_base:
                secrets += url_secrets(self.api_base)
            secrets += secrets_in([{"headers": self.headers}, self.extra_body, self.params])
            secrets = [s for s in secrets if len(s) >= _MIN_SECRET and s not in self.name]
            object.__setattr__(self, "_secrets", tuple(dict.fromkeys(secrets)))
        return self._secrets or ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON without credentials.

        Members that have their default value drop out.

        An endpoint that is the provider's own has no `api_base` in it.
        """
        out: dict[str, Any] = {"name": self.name}
        if self.api_base:
            out["api_base"] = self.endpoint
        members = {name: member for name in _MEMBERS if (member := getattr(self, name))}
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
        if isinstance(template, (str, os.PathLike)) and _is_path(os.fspath(template)):
            out["chat_template"] = os.fspath(template)
        return out

    @classmethod
    def from_dict(cls, obj: Mapping[str, Any]) -> Model:
        """Return the model without its credentials, from the result of `to_dict`.

        Raises BadOptions for members it does not know, and for values that cannot work.
        """
        names = {f.name for f in fields(cls) if f.init}
        extra = sorted(set(obj) - names)
        # A record of a newer version may hold settings that would silently be lost.
        if extra:
            raise BadOptions(
                "A model has members that are not known.", got=extra, expected=sorted(names)
            )
        values = dict(obj)
        if values.get("price") is not None:
            values["price"] = tuple(values["price"])
        return cls(**values)


_DEFAULTS = {f.name: f.default for f in fields(Model) if f.name in _SETTINGS}


def _is_path(text: str) -> bool:
    return len(text) < 300 and "\n" not in text and "{" not in text


def _price_pair(price: Any) -> tuple[float, float] | tuple[float, float, float]:
    # US dollars per million input, output and cached input tokens.
    try:
        input_price, output_price, *cached = price
        good = len(cached) < 2 and all(p >= 0 for p in (input_price, output_price, *cached))
    except (TypeError, ValueError):
        good = False
    if not good:
        raise BadOptions(
            "a price is two numbers, US dollars per million input and output tokens",
            got=price,
            expected="(0.15, 0.60), with a third for cached input, or (0, 0) for free",
        )
    if cached:
        return float(input_price), float(output_price), float(cached[0])
    return float(input_price), float(output_price)


def _check_range(
    name: str, value: Any, low: float, *, open_end: bool = False, also: str = ""
) -> None:
    # True and False are no numbers here, although Python counts with them. open_end: `low` itself
    # is left out. also: another allowed value, to name in the error.
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and not value < low and not (open_end and value == low):
        return
    expected = f"a number {'above' if open_end else 'of at least'} {low}"
    if also:
        expected += f", or {also}"
    raise BadOptions(f"`{name}` is out of range.", got=value, expected=expected)
