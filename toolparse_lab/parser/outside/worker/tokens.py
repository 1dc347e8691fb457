"""A stand-in for a model's tokenizer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any


class _Vocab(dict[str, int]):
    # Whatever a parser asks for is there, and is one token from then on.
    def __init__(self, tokenizer: StandInTokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and bool(text)

    def __missing__(self, text: str) -> int:
        return self._tokenizer.learn(text)

    def get(self, text: Any, default: Any = None) -> Any:
        # Of a mapping that has every text, `dict.get` would say that it has none.
        return self[text] if text in self else default  # noqa: SIM401


class StandInTokenizer:
    """Knows the markers that a parser asks for, each as one token. Other text is a token a piece.

    A vocabulary is megabytes that belong to a model, and parsers use little of it: the ids of
    their markers, and texts of ids that they were given.
    """

    chat_template = None
    is_fast = True
    name_or_path = "stand-in"
    unk_token_id = None
    bos_token = eos_token = pad_token = None
    bos_token_id = eos_token_id = pad_token_id = None

    def __init__(self, template: Any = None) -> None:
        self.response_template = template
        self.vocab = _Vocab(self)
        # An id of 0 would be taken for none by some parsers.
        self._texts: list[str] = [""]
        self._ids: dict[str, int] = {}
        self._is_marker: list[bool] = [False]
        self._is_learning = True
        self._pattern: re.Pattern[str] | None = None

    def _id(self, text: str, is_marker: bool) -> int:
        if text not in self._ids:
            self._ids[text] = len(self._texts)
            self._texts.append(text)
            self._is_marker.append(False)
        id = self._ids[text]
        if is_marker and not self._is_marker[id]:
            self._is_marker[id] = True
            self._pattern = None
        return id

    def learn(self, text: str) -> int:
        """Return the id of a marker, which is one token from now on, if it was none."""
        id = self._id(text, self._is_learning)
        self.vocab[text] = id
        return id

    def end_of_set_up(self) -> None:
        """From now on texts are an answer's: none becomes a marker."""
        self._is_learning = False

    def pieces(self, text: str) -> Iterator[str]:
        """Cut a text at its markers."""
        if self._pattern is None:
            markers = [
                t for t, is_marker in zip(self._texts, self._is_marker, strict=True) if is_marker
            ]
            # The longest first: one may begin with another.
            markers.sort(key=len, reverse=True)
            self._pattern = re.compile(
                "(" + "|".join(map(re.escape, markers)) + ")" if markers else "(?!)"
            )
        return (piece for piece in self._pattern.split(text) if piece)

    def whole_markers(self, chunks: Sequence[str]) -> list[str]:
        """Move the ends of chunks that cut a marker to the end of that marker."""
        ends: list[int] = []
        at = 0
        for chunk in chunks:
            at += len(chunk)
            ends.append(at)
        raw = "".join(chunks)
        spans: list[tuple[int, int]] = []
        at = 0
        for piece in self.pieces(raw):
            spans.append((at, at + len(piece)))
            at += len(piece)
        out: list[str] = []
        start = i = 0
        for end in ends:
            while i < len(spans) and spans[i][1] < end:
                i += 1
            if i < len(spans) and spans[i][0] < end:
                first, after = spans[i]
                id = self._ids.get(raw[first:after])
                if id is not None and self._is_marker[id]:
                    end = after
            if end > start:
                out.append(raw[start:end])
                start = end
        return out

    def encode(self, text: str, *args: Any, **kwargs: Any) -> list[int]:
        if self._is_learning and text:
            return [self.learn(text)]
        return [self._id(piece, False) for piece in self.pieces(text)]

    def __call__(self, text: str, *args: Any, **kwargs: Any) -> dict[str, list[int]]:
        return {"input_ids": self.encode(text)}

    def decode(self, ids: Any, *args: Any, **kwargs: Any) -> str:
        ids = [ids] if isinstance(ids, int) else ids
        return "".join(self._texts[id] for id in ids if 0 <= id < len(self._texts))

    def tokenize(self, text: str, *args: Any, **kwargs: Any) -> list[str]:
        return [self._texts[id] for id in self.encode(text)]

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        return self.vocab[tokens] if isinstance(tokens, str) else [self.vocab[t] for t in tokens]

    def convert_ids_to_tokens(self, ids: Any, *args: Any, **kwargs: Any) -> Any:
        return self.decode(ids) if isinstance(ids, int) else [self.decode(id) for id in ids]

    def get_vocab(self) -> dict[str, int]:
        return self.vocab

    def get_added_vocab(self) -> dict[str, int]:
        return self.vocab

    @property
    def all_special_tokens(self) -> list[str]:
        return [t for t, is_marker in zip(self._texts, self._is_marker, strict=True) if is_marker]

    @property
    def all_special_ids(self) -> list[int]:
        return [self._ids[text] for text in self.all_special_tokens]


def learn_attributes(tokenizer: StandInTokenizer, parser: Any) -> None:
    """Learn the texts that a parser keeps under names such as `tool_call_start_token`."""
    for owner in (type(parser), parser):
        for name in dir(owner):
            if "token" not in name or name.startswith("__"):
                continue
            value = getattr(owner, name, None)
            if isinstance(value, str) and value.strip() and not value.isalnum():
                tokenizer.learn(value.strip())
