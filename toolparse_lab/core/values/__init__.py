"""JSON values: canonical text, numbers with their lexemes, any depth, JSON Pointers."""

from .canonical import (
    Decoders,
    Value,
    decoder_for,
    decoders,
    escape_surrogates,
    escape_token,
    leaves,
    nodes,
    pointer_get,
    pointer_set,
    pointer_tokens,
    read_plain,
    read_strict,
    same,
    space_end,
    unescape,
    write_canonical,
)
from .numbers import BigNum, Num, number, plain_number

__all__ = [
    "BigNum", "Decoders", "Num", "Value", "decoder_for", "decoders", "escape_surrogates",
    "escape_token", "leaves", "nodes", "number", "plain_number", "pointer_get", "pointer_set",
    "pointer_tokens", "read_plain", "read_strict", "same", "space_end", "unescape",
    "write_canonical",
]  # fmt: skip
