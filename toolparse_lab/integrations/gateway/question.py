"""A request for a chat completion as it came in, and the endpoint that is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...runner.exchange.redaction import secrets_in, url_secrets
from ...runner.local.gate import Refusal
from .http_body import Headers

# Members of a body that the bridge reads or litellm has to know. All others go to the upstream
# endpoint as they came: what litellm would make of them (another address, a callback, a made-up
# answer) is not for a caller to say.
_READ = (
    *("messages", "tools", "tool_choice", "parallel_tool_calls", "response_format"),
    *("n", "stream_options", "functions", "function_call"),
)
_NO_KEY = "none-needed"  # OpenAI's client insists on one


@dataclass(frozen=True, slots=True)
class Upstream:
    """The endpoint that is asked: its address, up to /v1, and its key, "" if callers bring their
    own.
    """

    url: str
    key: str = field(default="", repr=False)

    def key_for(self, headers: Headers) -> str:
        """Return the key to ask with: this endpoint's, or the one that the caller sent."""
        if self.key:
            return self.key
        values = [value for name, value in headers if name == "authorization"]
        keys = [value[7:].strip() for value in values if value[:7].lower() == "bearer "]
        return keys[0] if keys and keys[0] else _NO_KEY


@dataclass(frozen=True, slots=True)
class Question:
    """A request for a chat completion as it came in.

    body: its JSON object. key: for the upstream endpoint. secrets: everything in it that is a
    credential.
    """

    body: Mapping[str, Any]
    model: str
    stream: bool
    key: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, body: Mapping[str, Any], headers: Headers, upstream: Upstream) -> Question:
        """Read a request. Raises Refusal for one that cannot be asked."""
        model, messages = body.get("model"), body.get("messages")
        if not isinstance(model, str) or not model:
            raise Refusal(400, "model: a request says which model it asks.")
        if not isinstance(messages, list) or not messages:
            raise Refusal(400, "messages: a request has a list of at least one message.")
        # Only the shape is looked at here; the bridge reads the messages.
        if not all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages):
            raise Refusal(400, "messages: each of them is an object with a role.")
        key = upstream.key_for(headers)
        passing = secrets_in({"headers": [list(pair) for pair in headers], "body": body})
        credentials = [key, *url_secrets(upstream.url), *passing]
        secrets = tuple(dict.fromkeys(s for s in credentials if s and s != _NO_KEY))
        return cls(body, model, body.get("stream") is True, key, secrets)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the bridge for it, without the address."""
        out = {name: self.body[name] for name in _READ if self.body.get(name) is not None}
        rest = {k: v for k, v in self.body.items() if k not in (*_READ, "model", "stream")}
        if rest:
            out["extra_body"] = rest
        return {**out, "stream": self.stream}
