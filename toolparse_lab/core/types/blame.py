"""Which layer between a model and its reader broke an answer, and by which evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Layer: TypeAlias = Literal[
    "model", "sampler", "template", "server", "transport", "client", "reader", "none", "cannot_tell"
]

LAYERS: Mapping[str, str] = {
    "model": "It wrote the wrong call, a broken one, or none.",
    "sampler": "Temperature, quantisation or speculative decoding made the text fall apart.",
    "template": "The chat template did not show the model what was sent, or could not be rendered.",
    "server": "Its parser, flags, stream or filter lost or changed the text, or it refused.",
    "transport": "The connection failed or ended before the answer did.",
    "client": "The request asked for it: a token limit, a wrong key, another format.",
    "reader": "The parser that read the recorded answer failed.",
    "none": "Nothing is wrong.",
    "cannot_tell": "What was recorded does not say which of several.",
}
"""Layer -> what it does where it is at fault."""

BLAME_CODES: Mapping[str, str] = {
    "call_in_reasoning": "The only call stands in the reasoning.",
    "unread_part": "The response has a part of a kind that nobody knows.",
    "dropped_by_server": "The response says that it ends with a call, or its tokens hold one that "
    "the response does not.",
    "markup_in_content": "A call was left in the content of a request that offered tools.",
    "all_output_lost": "Tokens were paid for, and neither text nor reasoning nor a call came.",
    "changed_by_server": "The server's calls are not those that the model wrote.",
    "stream_differs": "The pieces of a stream say something else than the whole.",
    "parser_failed": "The server's own parser gave an error instead of an answer.",
    "token_limit": "The answer ended at the token limit.",
    "tools_not_shown": "The prompt has too few tokens to hold the tools.",
    "tool_choice_ignored": "A call was forced, and the server let the model answer in words.",
    "end_token_in_content": "The content holds a token that ends a turn.",
    "other_format": "The answer is in another format than the one it was read by.",
    "repeats": "The text ends by repeating itself.",
}
"""Code -> what was found. Most verdicts on a model have none: the outcome says more."""


TOKENS_TELL = "log probabilities or token ids of the answer"
"""What to record where the model's own text would decide."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that a verdict rests on.

    where: raw, content, reasoning, tool_calls, finish_reason, usage, chunks, request, error,
    outcome or problem. says: it, or its beginning. start, end: where in the raw text it stands,
    None for anything else.
    """

    where: str
    says: str
    start: int | None = None
    end: int | None = None


class Blame(str):
    """A verdict in one sentence, with the layer and the evidence. '' where there is nothing to say.

    Attributes:
        layer: one of `LAYERS`.
        code: one of `BLAME_CODES`, or ''.
        evidence: what it rests on.
        would_tell: for `cannot_tell`, what to record or to try.
    """

    layer: Layer
    code: str
    evidence: tuple[Evidence, ...]
    would_tell: str

    def __new__(
        cls,
        why: str = "",
        layer: Layer = "none",
        code: str = "",
        evidence: tuple[Evidence, ...] = (),
        would_tell: str = "",
    ) -> Blame:
        self = super().__new__(cls, why)
        self.layer, self.code = layer, code
        self.evidence, self.would_tell = evidence, would_tell
        return self

    def explained(self) -> str:
        """Return the layer with the sentence, then a line for each piece of evidence."""
        lines = [f"{self.layer}: {self}" if self else self.layer]
        for e in self.evidence:
            place = e.where if e.start is None else f"{e.where} {e.start} to {e.end}"
            lines.append(f"  {place}: {' '.join(e.says.split())}")
        if self.would_tell:
            lines.append(f"  would tell: {self.would_tell}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict."""
        evidence = [
            {name: value for name in Evidence.__slots__ if (value := getattr(e, name)) is not None}
            for e in self.evidence
        ]
        return {
            "layer": self.layer,
            "code": self.code,
            "why": str(self),
            "evidence": evidence,
            "would_tell": self.would_tell,
        }
