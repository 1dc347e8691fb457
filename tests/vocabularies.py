"""Real tokenizers, and answers with the tokens that they make of a text."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any


def _folder() -> Path:
    # litellm brings the vocabularies of three models along; it is not imported for them.
    places = importlib.util.find_spec("litellm").submodule_search_locations  # type: ignore[union-attr]
    return Path(next(iter(places))) / "litellm_core_utils" / "tokenizers"  # type: ignore[arg-type]


class Vocabulary:
    """A real tokenizer: `cut` gives (id, bytes) of each token, `decode` the text of ids."""

    def __init__(
        self, cut: Callable[[str], list[tuple[int, bytes]]], decode: Callable[[list[int]], str]
    ) -> None:
        self.cut = cut
        self.decode = decode


@cache
def vocabulary(name: str) -> Vocabulary:
    if name == "cl100k_base":
        import tiktoken
        from tiktoken.load import load_tiktoken_bpe

        file = next(p for p in _folder().glob("9b5ad71b*"))
        ranks = load_tiktoken_bpe(str(file))
        pattern = r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
        bpe = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

        def cut(text: str) -> list[tuple[int, bytes]]:
            return [(i, bpe.decode_single_token_bytes(i)) for i in bpe.encode(text)]

        return Vocabulary(cut, bpe.decode)

    from tokenizers import Tokenizer

    model = Tokenizer.from_file(str(_folder() / f"{name}_tokenizer.json"))
    byte_of = {sign: value for value, sign in _signs().items()}

    def cut_by_model(text: str) -> list[tuple[int, bytes]]:
        encoded = model.encode(text, add_special_tokens=False)
        return [
            (id, bytes(byte_of[sign] for sign in token))
            if all(sign in byte_of for sign in token)
            else (id, token.encode())
            for id, token in zip(encoded.ids, encoded.tokens, strict=True)
        ]

    return Vocabulary(cut_by_model, lambda ids: model.decode(ids, skip_special_tokens=False))


def _signs() -> dict[int, str]:
    # The signs in which a vocabulary of bytes is written, as GPT-2 has them.
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(hidden)}


VOCABULARIES = ["cl100k_base", "anthropic", "deepseek"]


def answer_of(tokens: list[tuple[int, bytes]], content: str) -> dict[str, Any]:
    drawn = [
        {"token": data.decode("utf-8", "replace"), "bytes": list(data), "id": id, "logprob": -0.25}
        for id, data in tokens
    ]
    return {"choices": [{"message": {"content": content}, "logprobs": {"content": drawn}}]}
