"""The text that a response's tokens say: log probabilities, token ids, raw messages.

A server's parser may take a call out of the content and lose it. The tokens that the response lists
beside the content are still there.
"""

# How it works. A reader of a shape hands over each object that may list tokens (a choice, a part, a
# whole response); `Tokens` keeps what it knows: bytes of tokens, ids, raw messages. Tokens are
# pieces of UTF-8, so their bytes are joined before they are decoded: one character may be split
# over several. At the end each kind of evidence is one text, and the longest counts, since a server
# that holds something back may drop its log probabilities too. All is linear in the tokens.

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from ...core.types.call_pieces import member as _get

Evidence: TypeAlias = Literal["logprobs", "token_ids", "raw_messages"]

# What ends a turn, where it is the last token: no words of the model, and no delimiter of a call.
_END_OF_TURN = (
    "<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<eos>",
    "<end_of_turn>", "<|end_of_turn|>", "<｜end▁of▁sentence｜>", "<|user|>", "<|observation|>",
)  # fmt: skip
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ESCAPED_BYTES = re.compile(r"bytes:(?:\\x[0-9A-Fa-f]{2})+")
_ID = re.compile(r"token_id:(\d{1,9})")


def items(x: Any) -> list[Any]:
    """Return the items of a list, none for anything else, strings included."""
    return list(x) if isinstance(x, (list, tuple)) else []


class Tokens:
    """The tokens of one answer, as far as they were received."""

    __slots__ = ("_bytes", "_ids", "_listed_ids", "_messages", "_prompt_ids", "_unknown")

    def __init__(self) -> None:
        self._bytes: list[bytes] = []
        self._unknown = False  # a token came whose text the response does not say
        self._listed_ids: list[int] = []  # of tokens that are named by their ids
        self._ids: list[int] = []
        self._prompt_ids: list[int] = []
        self._messages: list[str] = []

    def take_choice(self, choice: Any) -> None:
        """Take in a choice, whole or a delta: its log probabilities and ids."""
        self.take_logprobs(_get(choice, "logprobs"))
        message = _get(choice, "message")
        extra = _get(choice, "provider_specific_fields")
        for holder in (choice, message, extra):
            ids = _ids_in(_get(holder, "token_ids")) or _ids_in(_get(holder, "output_ids"))
            if ids:
                self._ids += ids
                break

    def take_response(self, response: Any) -> None:
        """Take in the text beside the choices: ids of prompt and answer, raw messages."""
        self._prompt_ids = _ids_in(_get(response, "prompt_token_ids")) or self._prompt_ids
        engine = _get(_get(response, "nvext"), "engine_data")
        self._ids += _ids_in(_get(engine, "completion_token_ids"))
        for message in items(_get(response, "output_messages")):
            self._take_message(message)

    def take_logprobs(self, logprobs: Any) -> None:
        """Take in log probabilities of any shape: a list of tokens, or an object whose `content` or
        `tokens` is one.
        """
        entries = logprobs if isinstance(logprobs, (list, tuple)) else _get(logprobs, "content")
        if not isinstance(entries, (list, tuple)):
            entries = _get(logprobs, "tokens")
        for entry in items(entries):
            self._take_entry(entry)

    def text(self, tokenizer: Any = None) -> tuple[str, Evidence | None]:
        """Return the text of the tokens and the member that says it.

        ('', None) where nothing does.

        tokenizer: a function from a list of ids to text, or an object whose `decode` is one. Ids do
        not count without it. Anything that is not UTF-8 becomes lone surrogates.
        """
        candidates: list[tuple[str, Evidence | None]] = [("", None)]
        if self._bytes and not self._unknown:
            joined = b"".join(self._bytes)
            candidates.append((_without_end(_decoded(joined)), "logprobs"))
        candidates.append((_without_end("".join(self._messages)), "raw_messages"))
        ids = self._ids or self._listed_ids
        if ids and tokenizer is not None:
            candidates.append((_without_end(_detokenized(ids, tokenizer)), "token_ids"))
        return max(candidates, key=lambda candidate: len(candidate[0]))

    def prompt(self, tokenizer: Any = None) -> str:
        if not self._prompt_ids or tokenizer is None:
            return ""
        return _detokenized(self._prompt_ids, tokenizer)

    def _take_entry(self, entry: Any) -> None:
        token: Any = entry
        values: Any = None
        if not isinstance(entry, (bytes, str)):
            token, values = _get(entry, "token"), _get(entry, "bytes")
        if isinstance(values, (list, tuple)) and values and all(map(_is_byte, values)):
            self._bytes.append(bytes(values))
        elif isinstance(token, bytes):
            self._bytes.append(token)
        elif isinstance(token, str):
            self._take_token(token)
        else:
            self._unknown = True

    def _take_token(self, token: str) -> None:
        # Some servers write a single byte, or bytes that are not UTF-8, or the id, in its place.
        if named := _ID.fullmatch(token):
            self._listed_ids.append(int(named[1]))
            self._unknown = True
        elif byte := _BYTE.fullmatch(token):
            self._bytes.append(bytes((int(byte[1], 16),)))
        elif _ESCAPED_BYTES.fullmatch(token):
            self._bytes.append(bytes.fromhex(token.removeprefix("bytes:").replace("\\x", "")))
        else:
            self._bytes.append(token.encode("utf-8", "surrogatepass"))

    def _take_message(self, message: Any) -> None:
        """Take in a raw message: a string with all that was written, or a Harmony message, which is
        written as the model wrote it."""
        text = _get(message, "message")
        if isinstance(text, str):
            self._messages.append(text)
            return
        role = _get(message, "role") or _get(_get(message, "author"), "role")
        channel = _get(message, "channel")
        if role != "assistant" or not isinstance(channel, str):
            return
        words = _get(message, "content")
        parts = [words] if isinstance(words, str) else [_get(p, "text") for p in items(words)]
        # The prompt ends with the start of the first message.
        start = "<|start|>assistant" if self._messages else ""
        body = "".join(part for part in parts if isinstance(part, str))
        self._messages.append(f"{start}{_harmony(message, channel, body)}")


def _harmony(message: Any, channel: str, body: str) -> str:
    recipient, kind = _get(message, "recipient"), _get(message, "content_type")
    to = f" to={recipient}" if isinstance(recipient, str) and recipient else ""
    kind = f" {kind}" if isinstance(kind, str) and kind else ""
    end = "<|call|>" if to else "<|return|>" if channel == "final" else "<|end|>"
    return f"<|channel|>{channel}{to}{kind}<|message|>{body}{end}"


_MARKS = re.compile(r"(?:\s*(?:<[|｜][^<>|｜]{1,40}[|｜]>|</s>|<eos>|<end_of_turn>))*")


def eats(raw: str, content: str) -> bool:
    """Return True if the content is less than was written: something was taken out of it.

    White space around either, and marks after the end of the turn, count for nothing.
    """
    raw, content = raw.strip(), content.strip()
    if len(raw) <= len(content):
        return False
    only_marks = content and raw.startswith(content) and _MARKS.fullmatch(raw, len(content))
    return not only_marks


def _without_end(text: str) -> str:
    for end in _END_OF_TURN:
        if text.endswith(end):
            return text.removesuffix(end)
    return text


def _decoded(joined: bytes) -> str:
    # Lone surrogates may be in them as such, and anything but UTF-8 becomes lone surrogates: every
    # parser here takes them.
    try:
        return joined.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return joined.decode("utf-8", "surrogateescape")


def _detokenized(ids: list[int], tokenizer: Any) -> str:
    # The error that a tokenizer raises passes through: it is the caller's.
    decode = getattr(tokenizer, "decode", tokenizer)
    try:
        text = decode(ids, skip_special_tokens=False)
    except TypeError:
        # Not every tokenizer leaves special tokens out, and those that do not take no such switch.
        text = decode(ids)
    return text if isinstance(text, str) else ""


def _is_byte(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and 0 <= x <= 255


def _ids_in(x: Any) -> list[int]:
    ids = items(x)
    whole = all(isinstance(i, int) and not isinstance(i, bool) and i >= 0 for i in ids)
    return ids if whole else []
