"""The tokens that an answer was drawn as, and what each of them is part of."""

# How it works. A response lists its tokens in one of many shapes; `TokenPieces` takes them in as
# they come and keeps bytes, ids and log probabilities. Tokens are pieces of UTF-8, so their bytes
# are joined before they are decoded: one character may be split over several, and such tokens all
# have the span of that character.
#
# `Tokens` is what is kept of them: how many bytes each has, and no text of its own where the text
# that was parsed says it. What was drawn around that text (an end mark, white space that a server
# took off) is kept beside it. A record whose sizes do not add up to its text (somebody changed it)
# is no record. All is linear in the tokens.

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal, Protocol, TypeAlias, get_args, overload

from .call_pieces import member as get
from .spans import Edit, Segment, Span

TokenEvidence: TypeAlias = Literal["logprobs", "token_ids", "raw_messages"]
"""The member of a response that says what was drawn."""

TokenKind: TypeAlias = Literal["argument", "name", "text", "reasoning", "markup", "outside"]
TOKEN_KINDS: tuple[TokenKind, ...] = get_args(TokenKind)
"""What a token is part of, the first that applies; `outside` is not in the text that was parsed."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token of an answer.

    Attributes:
        index: its place among the tokens, from 0.
        text: its own text. Bytes of a character that is split over several tokens are lone
            surrogates.
        span: its place in the text that was parsed, in whole characters. Empty, at one end of that
            text, where it is not part of it.
        id: its number in the model's vocabulary.
        logprob: the natural logarithm of its probability.
        entropy: of the choice that the model had here, in nats. It is worked out from the listed
            alternatives, with all others counted as one, so that the true one may be higher.

    `id`, `logprob` and `entropy` are None where they were not recorded.
    """

    index: int
    text: str
    span: Span
    id: int | None = None
    logprob: float | None = None
    entropy: float | None = None


@dataclass(frozen=True, slots=True)
class TokenLabel:
    """A token and what it is part of.

    Attributes:
        token: the token.
        kind: `argument`, `name`, `text`, `reasoning`, `markup` or `outside`. A token that is part
            of several things has the first of these words; among arguments, the one that most of
            its characters belong to.
        call: the index of the call whose name or argument it is, None elsewhere.
        path: the JSON Pointer of the argument, '' elsewhere.
        repaired: a repair changed something here.
    """

    token: Token
    kind: TokenKind
    call: int | None = None
    path: str = ""
    repaired: bool = False


class Placed(Protocol):
    """A call, as far as tokens concern it: where its name, its arguments and its edits are."""

    @property
    def index(self) -> int: ...
    @property
    def name_span(self) -> Span | None: ...
    @property
    def origins(self) -> Any: ...
    @property
    def edits(self) -> tuple[Edit, ...]: ...


@dataclass(frozen=True)
class Tokens(Sequence[Token]):
    """The tokens of one answer, in order.

    Attributes:
        raw: the text that was parsed. '' where it is no part of what was drawn, as the JSON of the
            calls that a server read in it; then no token has a place in it.
        sizes: the bytes of each token in UTF-8, 0 where only its id is known.
        before, after: what was drawn before and after that text.
        ids, logprobs, entropies: one for each token, or empty where they were not recorded.
        prompt_ids: the tokens of the prompt, where they were recorded.
    """

    raw: str
    sizes: tuple[int, ...]
    before: str = ""
    after: str = ""
    ids: tuple[int, ...] = ()
    logprobs: tuple[float | None, ...] = ()
    entropies: tuple[float | None, ...] = ()
    prompt_ids: tuple[int, ...] = ()

    @property
    def drawn(self) -> str:
        """All that was drawn, with what was before and after the text that was parsed."""
        return self.before + self.raw + self.after

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Token]:
        return iter(self._all)

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Token, ...]: ...
    def __getitem__(self, index: int | slice) -> Token | tuple[Token, ...]:
        return self._all[index]

    @cached_property
    def _all(self) -> tuple[Token, ...]:
        text = self.drawn
        data = _bytes_of(text)
        start, end = len(self.before), len(self.before) + len(self.raw)
        # Where each character begins among the bytes. In a plain text they are the same.
        is_plain = len(data) == len(text)
        starts = range(len(text)) if is_plain else _starts_of_characters(text)
        tokens: list[Token] = []
        at = 0
        for i, size in enumerate(self.sizes):
            first = at if is_plain else bisect_right(starts, at) - 1
            last = at + size if is_plain else bisect_left(starts, at + size)
            low = min(max(first, start), end) - start
            high = min(max(last if size else first, start), end) - start
            tokens.append(
                Token(
                    i,
                    _text_of(data[at : at + size]),
                    Span(low, high),
                    self.ids[i] if self.ids else None,
                    self.logprobs[i] if self.logprobs else None,
                    self.entropies[i] if self.entropies else None,
                )
            )
            at += size
        return tuple(tokens)

    @cached_property
    def _inside(self) -> tuple[list[Token], list[int], list[int]]:
        # The tokens that have characters of the text, their starts and their ends.
        tokens = [token for token in self._all if len(token.span)]
        return tokens, [t.span.start for t in tokens], [t.span.end for t in tokens]

    def at(self, span: Span) -> tuple[Token, ...]:
        """Return the tokens that a span of the text has characters of.

        For an empty span, the one that is drawn at its place: the token that ends an empty value.
        """
        tokens, starts, ends = self._inside
        first = bisect_right(ends, span.start)
        last = bisect_left(starts, max(span.end, span.start + 1))
        return tuple(tokens[first:last]) or tuple(tokens[-1:])

    def of_text(self, raw: str) -> Tokens:
        """Return the same tokens for another text that was parsed, with their places in it if it is
        part of what was drawn.
        """
        if raw == self.raw:
            return self
        drawn = self.drawn
        start = drawn.find(raw)
        if start < 0:
            start, raw = 0, ""
        return replace(self, raw=raw, before=drawn[:start], after=drawn[start + len(raw) :])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict, without the text that was parsed. `from_dict` reads it.

        Numbers have six digits, which is what a server computes with.
        """
        out: dict[str, Any] = {"sizes": list(self.sizes)}
        if not self.raw:
            out["apart"] = True
        for name in ("before", "after", "ids", "prompt_ids"):
            if value := getattr(self, name):
                out[name] = value if isinstance(value, str) else list(value)
        for name in ("logprobs", "entropies"):
            if numbers := getattr(self, name):
                out[name] = [None if x is None else float(f"{x:.6g}") for x in numbers]
        return out

    @classmethod
    def from_dict(cls, raw: str, d: Any) -> Tokens | None:
        """Return the tokens that `to_dict` described, of this text.

        None where the record is not of this text, or is none.
        """
        if not isinstance(d, Mapping):
            return None
        raw = "" if d.get("apart") is True else raw
        before, after = d.get("before", ""), d.get("after", "")
        sizes = _ids_in(d.get("sizes"))
        if not sizes or not isinstance(before, str) or not isinstance(after, str):
            return None
        if sum(sizes) != len(_bytes_of(before + raw + after)):
            return None
        ids, numbers = _ids_in(d.get("ids")), [d.get(n) or () for n in ("logprobs", "entropies")]
        if any(each and len(each) != len(sizes) for each in (ids, *numbers)):
            return None
        logprobs, entropies = ([_number(x) for x in each] for each in numbers)
        return cls(
            raw, tuple(sizes), before, after, tuple(ids), tuple(logprobs), tuple(entropies),
            tuple(_ids_in(d.get("prompt_ids"))),
        )  # fmt: skip


def label_tokens(
    tokens: Tokens, segments: Iterable[Segment], calls: Iterable[Placed]
) -> tuple[TokenLabel, ...]:
    """Return each token of a text with what it is part of, see `TokenLabel`.

    segments, calls: of the result of that text.
    """
    calls = list(calls)
    # Each thing is painted over the characters that are its own, the smallest thing last.
    things: list[tuple[TokenKind, int | None, str]] = []
    paint = [0] * len(tokens.raw)

    def cover(span: Span, kind: TokenKind, call: int | None = None, path: str = "") -> None:
        things.append((kind, call, path))
        paint[span.start : span.end] = [len(things) - 1] * len(span)

    for segment in segments:
        kind: Any = segment.kind if segment.kind in ("text", "reasoning") else "markup"
        if kind == "markup" or segment.body is None:
            cover(segment.span, kind)
        else:
            cover(segment.span, "markup")
            cover(segment.body, kind)
    empty: list[tuple[int, tuple[TokenKind, int | None, str]]] = []
    for call in calls:
        if call.name_span is not None:
            cover(call.name_span, "name", call.index)
        for path, span in leaves_of(call.origins.get()):
            if len(span):
                cover(span, "argument", call.index, path)
            else:
                empty.append((span.start, ("argument", call.index, path)))

    found: list[tuple[TokenKind, int | None, str]] = []
    for token in tokens:
        counts: dict[int, int] = {}
        for at in paint[token.span.start : token.span.end]:
            counts[at] = counts.get(at, 0) + 1
        # The first kind that applies, then the most characters, then the first in the text.
        best = min(
            counts, key=lambda i: (TOKEN_KINDS.index(things[i][0]), -counts[i], i), default=None
        )
        found.append(("outside", None, "") if best is None else things[best])
    # The token that ends an empty value is all that the value has.
    for at, thing in empty:
        for token in tokens.at(Span(at, at)):
            if found[token.index][0] not in ("argument", "name"):
                found[token.index] = thing

    repaired = {
        token.index
        for call in calls
        for edit in call.edits
        # What was put in is missing after the token before it.
        for token in tokens.at(
            edit.span or Span(max(edit.span.start - 1, 0), max(edit.span.start, 1))
        )
    }
    return tuple(
        TokenLabel(token, *thing, token.index in repaired)
        for token, thing in zip(tokens, found, strict=True)
    )


def total_logprob(tokens: Iterable[Token]) -> float | None:
    """Return the log probability of some tokens together. None for none, and where that of one is
    not known: a part of them would pass for the whole.
    """
    numbers = [token.logprob for token in tokens]
    known = [number for number in numbers if number is not None]
    return sum(known) if numbers and len(known) == len(numbers) else None


def leaves_of(origins: Mapping[str, Any]) -> list[tuple[str, Span]]:
    """Return path and span of each argument that contains no other: texts, numbers, empty lists."""
    inner = {path.rpartition("/")[0] for path in origins}
    return [(path, o.span) for path, o in origins.items() if path and path not in inner]


def _starts_of_characters(text: str) -> list[int]:
    starts, at = [], 0
    for character in text:
        starts.append(at)
        code = ord(character)
        at += 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    return starts


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text_of(data: bytes) -> str:
    # Lone surrogates may be in them as such, and anything but UTF-8 becomes lone surrogates: every
    # parser here takes them.
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")


def _joined(pieces: Sequence[bytes]) -> tuple[str, list[int]]:
    # The text of some pieces, and how many bytes of it each is. A byte that is not UTF-8 is a lone
    # surrogate, which has three; the answer may end in the middle of a character.
    data = b"".join(pieces)
    text, sizes = _text_of(data), [len(piece) for piece in pieces]
    if len(_bytes_of(text)) == len(data):
        return text, sizes
    ends, at = list(accumulate(sizes)), 0
    for character in text:
        if "\udc80" <= character <= "\udcff":
            sizes[bisect_right(ends, at)] += 2
            at += 1
        else:
            at += len(_bytes_of(character))
    return text, sizes


# -- as received

# What ends a turn, where it is the last token: no words of the model, and no delimiter of a call.
_END_OF_TURN = (
    "<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<eos>",
    "<end_of_turn>", "<|end_of_turn|>", "<｜end▁of▁sentence｜>", "<|user|>", "<|observation|>",
)  # fmt: skip
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ESCAPED_BYTES = re.compile(r"bytes:(?:\\x[0-9A-Fa-f]{2})+")
_ID = re.compile(r"token_id:(\d{1,9})")
# Where tokens may be listed.
_ID_LISTS = frozenset({"token_ids", "output_ids"})
_OF_CHOICE = _ID_LISTS | {"logprobs", "message", "provider_specific_fields"}
_OF_RESPONSE = frozenset({"prompt_token_ids", "nvext", "output_messages"})
_Entry: TypeAlias = tuple[bytes | None, int | None, float | None, float | None]


class TokenPieces:
    """The tokens of one answer as they are received, in any shape.

    A reader of a shape hands over each object that may list tokens: a choice, a part, a whole
    response. What is not understood is passed over, and nothing is raised.
    """

    __slots__ = ("_entries", "_ids", "_messages", "_prompt_ids")

    def __init__(self) -> None:
        # Bytes (None where the response does not say them), id, log probability, entropy.
        self._entries: list[_Entry] = []
        self._ids: list[int] = []
        self._prompt_ids: list[int] = []
        self._messages: list[str] = []

    def take_choice(self, choice: Any) -> None:
        """Take in a choice, whole or a delta: its log probabilities and ids."""
        if not _has_any(choice, _OF_CHOICE):
            return
        self.take_logprobs(get(choice, "logprobs"))
        message = get(choice, "message")
        extra = get(choice, "provider_specific_fields")
        for holder in (choice, message, extra):
            if not _has_any(holder, _ID_LISTS):
                continue
            ids = _ids_in(get(holder, "token_ids")) or _ids_in(get(holder, "output_ids"))
            if ids:
                self._ids += ids
                break

    def take_response(self, response: Any) -> None:
        """Take in what is beside the choices: ids of prompt and answer, raw messages."""
        if not _has_any(response, _OF_RESPONSE):
            return
        self._prompt_ids = _ids_in(get(response, "prompt_token_ids")) or self._prompt_ids
        engine = get(get(response, "nvext"), "engine_data")
        self._ids += _ids_in(get(engine, "completion_token_ids"))
        for message in _items(get(response, "output_messages")):
            self._take_message(message)

    def take_logprobs(self, logprobs: Any) -> None:
        """Take in log probabilities of any shape: a list of tokens, an object whose `content` is
        one, or the three lists of a text completion.
        """
        if logprobs is None:
            return
        entries = logprobs if isinstance(logprobs, (list, tuple)) else get(logprobs, "content")
        if isinstance(entries, (list, tuple)):
            for entry in entries:
                top = get(entry, "top_logprobs")
                self._take_entry(entry, get(entry, "logprob"), top)
            return
        numbers = _items(get(logprobs, "token_logprobs"))
        tops = _items(get(logprobs, "top_logprobs"))
        for i, token in enumerate(_items(get(logprobs, "tokens"))):
            self._take_entry(
                token, numbers[i] if i < len(numbers) else None, tops[i] if i < len(tops) else None
            )

    def text(self, tokenizer: Any = None) -> tuple[str, TokenEvidence | None]:
        """Return the text of the tokens and the member that says it.

        ('', None) where nothing does. The longest counts, since a server that holds something back
        may drop its log probabilities too.

        tokenizer: a function from a list of ids to text, or an object whose `decode` is one. Ids do
        not count without it. Anything that is not UTF-8 becomes lone surrogates.
        """
        candidates: list[tuple[str, TokenEvidence | None]] = [("", None)]
        pieces = [entry[0] for entry in self._entries]
        if pieces and None not in pieces:
            written = _text_of(b"".join(piece for piece in pieces if piece is not None))
            candidates.append((_without_end(written), "logprobs"))
        candidates.append((_without_end("".join(self._messages)), "raw_messages"))
        ids = self._all_ids()
        if ids and tokenizer is not None:
            candidates.append((_without_end(detokenized(ids, tokenizer)), "token_ids"))
        return max(candidates, key=lambda candidate: len(candidate[0]))

    def tokens(self, raw: str, tokenizer: Any = None) -> Tokens | None:
        """Return the tokens for the text that is parsed, None where they are not known."""
        if not self._entries and not self._ids:
            return None
        entries, ids = self._entries, self._all_ids()
        if not entries or any(entry[0] is None for entry in entries):
            if not ids:
                return None
            if tokenizer is None:
                # Their text is not known; the numbers are.
                prompt_ids = tuple(self._prompt_ids)
                return Tokens("", (0,) * len(ids), ids=tuple(ids), prompt_ids=prompt_ids)
            pieces = pieces_of(ids, tokenizer)
            if len(entries) != len(ids):
                entries = []  # nothing says which of them is whose
        else:
            pieces = [entry[0] or b"" for entry in entries]
            if len(ids) > len(pieces) and tokenizer is not None:
                # Servers leave the end of a turn out of their log probabilities.
                pieces += pieces_of(ids, tokenizer)[len(pieces) :]
            pieces += [b""] * (len(ids) - len(pieces))
        missing = [None] * (len(pieces) - len(entries))
        numbers = ([e[2] for e in entries] + missing, [e[3] for e in entries] + missing)
        logprobs, entropies = (
            tuple(each) if any(x is not None for x in each) else () for each in numbers
        )
        drawn, sizes = _joined(pieces)
        return Tokens(
            drawn,
            tuple(sizes),
            ids=tuple(ids) if len(ids) == len(pieces) else (),
            logprobs=logprobs,
            entropies=entropies,
            prompt_ids=tuple(self._prompt_ids),
        ).of_text(raw)

    def prompt(self, tokenizer: Any = None) -> str:
        """Return the text of the prompt's ids, '' where there are none or no tokenizer."""
        if not self._prompt_ids or tokenizer is None:
            return ""
        return detokenized(self._prompt_ids, tokenizer)

    def _all_ids(self) -> list[int]:
        listed = [entry[1] for entry in self._entries]
        known = [id for id in listed if id is not None]
        return self._ids or (known if len(known) == len(listed) else [])

    def _take_entry(self, entry: Any, logprob: Any, top: Any) -> None:
        token: Any = entry
        values: Any = None
        number: Any = None
        if not isinstance(entry, (bytes, str)):
            token, values, number = get(entry, "token"), get(entry, "bytes"), get(entry, "id")
        written: bytes | None = None
        if _ids_in(values) and max(values) < 256:
            written = bytes(values)
        elif isinstance(token, bytes):
            written = token
        elif isinstance(token, str):
            # In its place some servers write a byte, or bytes that are not UTF-8, or the id.
            if named := _ID.fullmatch(token):
                number = int(named[1])
            elif byte := _BYTE.fullmatch(token):
                written = bytes((int(byte[1], 16),))
            elif _ESCAPED_BYTES.fullmatch(token):
                written = bytes.fromhex(token.removeprefix("bytes:").replace("\\x", ""))
            else:
                written = _bytes_of(token)
        id = number if type(number) is int and number >= 0 else None
        own = _number(logprob)
        self._entries.append((written, id, own, _entropy(own, token, top)))

    def _take_message(self, message: Any) -> None:
        # A raw message: a string with all that was written, or a Harmony message, which is written
        # as the model wrote it.
        text = get(message, "message")
        if isinstance(text, str):
            self._messages.append(text)
            return
        role = get(message, "role") or get(get(message, "author"), "role")
        channel = get(message, "channel")
        if role != "assistant" or not isinstance(channel, str):
            return
        words = get(message, "content")
        parts = [words] if isinstance(words, str) else [get(p, "text") for p in _items(words)]
        # The prompt ends with the start of the first message.
        start = "<|start|>assistant" if self._messages else ""
        body = "".join(part for part in parts if isinstance(part, str))
        recipient, kind = get(message, "recipient"), get(message, "content_type")
        to = f" to={recipient}" if isinstance(recipient, str) and recipient else ""
        kind = f" {kind}" if isinstance(kind, str) and kind else ""
        end = "<|call|>" if to else "<|return|>" if channel == "final" else "<|end|>"
        self._messages.append(f"{start}<|channel|>{channel}{to}{kind}<|message|>{body}{end}")


def _entropy(logprob: float | None, token: Any, top: Any) -> float | None:
    # Of the listed alternatives and the one that was drawn; all others are one more.
    if isinstance(top, Mapping):
        listed = [(name, _number(x)) for name, x in top.items()]
    else:
        listed = [(get(each, "token"), _number(get(each, "logprob"))) for each in _items(top)]
    numbers = [x for _, x in listed if x is not None]
    if logprob is not None and token not in [name for name, _ in listed]:
        numbers.append(logprob)
    if len(numbers) < 2:
        return None
    shares = [math.exp(min(x, 0.0)) for x in numbers]
    shares.append(max(0.0, 1.0 - sum(shares)))
    return -sum(p * math.log(p) for p in shares if p > 0)


def _number(x: Any) -> float | None:
    # Infinite ones say that nothing is known, and JSON has none.
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        return None
    try:
        return float(x) if math.isfinite(x) else None
    except OverflowError:
        return None


# Numbers of tokens: how many are decoded with one, so that it is not at a beginning, and how many
# wait for the rest of a character at most, which has four bytes.
_AROUND, _LONGEST_CHARACTER = 4, 8


def pieces_of(ids: Sequence[int], tokenizer: Any) -> list[bytes]:
    """Return the bytes of each token.

    A tokenizer decodes a token by what is before it: white space at a beginning is left out, and
    half a character is none. So a token's bytes are what the text of those before it gets longer
    by. Tokens that make one character together have equal parts of it.
    """
    pieces: list[bytes] = []
    for i in range(len(ids)):
        done = len(pieces)
        start = max(0, done - _AROUND)
        before = detokenized(ids[start:done], tokenizer)
        text = detokenized(ids[start : i + 1], tokenizer)
        waiting = i + 1 - done
        is_part = text.endswith("\ufffd") and i + 1 < len(ids) and waiting < _LONGEST_CHARACTER
        if not is_part:
            fresh = text.removeprefix(before) if text.startswith(before) else ""
            pieces += _shared(_bytes_of(fresh), waiting)
    return pieces


def _shared(data: bytes, count: int) -> list[bytes]:
    size, more = divmod(len(data), count)
    sizes = [size + (k < more) for k in range(count)]
    ends = accumulate(sizes)
    return [data[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _without_end(text: str) -> str:
    for end in _END_OF_TURN:
        if text.endswith(end):
            return text.removesuffix(end)
    return text


def detokenized(ids: Sequence[int], tokenizer: Any) -> str:
    """Return the text of token ids. The error that a tokenizer raises passes through: it is the
    caller's.
    """
    decode = getattr(tokenizer, "decode", tokenizer)
    numbers = list(ids)
    try:
        text = decode(numbers, skip_special_tokens=False)
    except TypeError:
        # Not every tokenizer leaves special tokens out, and those that do not take no such switch.
        text = decode(numbers)
    return text if isinstance(text, str) else ""


def _has_any(obj: Any, names: frozenset[str]) -> bool:
    # Of a dict it is told at once: a stream may have thousands.
    return obj is not None and not (type(obj) is dict and names.isdisjoint(obj))


def _items(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else []


def _ids_in(x: Any) -> list[int]:
    # Numbers from 0 on, none where anything else is among them.
    ids = _items(x)
    whole = all(isinstance(i, int) and not isinstance(i, bool) and i >= 0 for i in ids)
    return ids if whole else []
