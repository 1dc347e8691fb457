"""The tokens of an answer: where they are in its text, what they are part of, and what is kept."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.core_cases import load
from tests.laws import EXHAUSTIVE, part
from tests.tables import every_case
from tests.vocabularies import VOCABULARIES, answer_of, vocabulary
from toolparse_lab.core.errors import NoSuchItem
from toolparse_lab.core.types import Span
from toolparse_lab.core.types.tokens import TokenPieces, Tokens, leaves_of, pieces_of

SHARED = Path(__file__).parents[1] / "cases"
CASES = [
    (row.get("raw") or row.get("text"), row.get("protocol") or "auto", row.get("tools"))
    for name in ("formats.jsonl", "field_reports.jsonl", "damaged_calls.jsonl")
    for row in load(name, SHARED)
]


def is_text(raw: str) -> bool:
    """Whether there are no lone surrogates in it, which no vocabulary has."""
    return raw == raw.encode("utf-8", "replace").decode()


# -- places


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_argument_of_every_case_is_made_of_its_tokens(name: str) -> None:
    words, seen = vocabulary(name), 0
    for raw, protocol, tools in part(CASES, 3, [*VOCABULARIES].index(name)):
        if not isinstance(raw, str) or not raw or not is_text(raw):
            continue
        cut = words.cut(raw)
        if b"".join(data for _, data in cut) != raw.encode():
            continue  # the tokenizer normalises, and draws another text
        case = raw
        result = tp.parse(answer_of(cut, raw), protocol, tools)
        if result.raw != raw:
            continue  # a provider's own calls
        assert result.tokens is not None
        assert "".join(label.token.text for label in result.token_labels()) == "".join(
            token.text for token in result.tokens
        )
        for call in result.calls:
            for path, span in leaves_of(call.origins.get()):
                tokens = call.tokens(path)
                assert tokens, (case, path)
                if len(span):
                    start, end = tokens[0].span.start, tokens[-1].span.end
                    assert start <= span.start < tokens[0].span.end, (case, path)
                    assert tokens[-1].span.start < span.end <= end, (case, path)
                    assert all(token.logprob == -0.25 for token in tokens)
                    seen += 1
    assert seen > (300 if EXHAUSTIVE else 100)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_ids_alone_say_the_same_places_as_bytes(name: str) -> None:
    words = vocabulary(name)
    for text in (
        'Hi <tool_call>{"city": "São 🎉 Paulo", "n": 12}</tool_call>',
        "naïve 👩‍👩‍👧 ok",
        "  a  b",
    ):
        cut = words.cut(text)
        pieces = pieces_of([id for id, _ in cut], words)
        assert b"".join(pieces).decode() == text
        # Those that are whole characters are the same.
        for (_, data), piece in zip(cut, pieces, strict=True):
            try:
                data.decode()
            except UnicodeDecodeError:
                continue
            assert piece == data


def test_tokens_that_make_one_character_together_all_have_its_span() -> None:
    data = "a🎉b".encode()
    tokens = Tokens("a🎉b", (1, 1, 3, 1))
    assert [(t.span.start, t.span.end) for t in tokens] == [(0, 1), (1, 2), (1, 2), (2, 3)]
    assert tokens.at(Span(1, 2)) == tokens[1:3]
    assert b"".join(t.text.encode("utf-8", "surrogateescape") for t in tokens) == data


def test_an_answer_that_ends_within_a_character_keeps_its_tokens() -> None:
    cut = [(1, b"Hi "), (2, "🎉".encode()[:2])]
    result = tp.parse(answer_of(cut, "Hi "), "hermes")
    assert [len(t.span) for t in result.tokens or ()] == [3, 2]


@given(st.text(st.characters(codec="utf-8"), max_size=30), st.lists(st.integers(1, 5), max_size=30))
def test_the_spans_of_tokens_cover_the_text(raw: str, sizes: list[int]) -> None:
    data, pieces = raw.encode(), []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    pieces.append(data)
    taken = TokenPieces()
    taken.take_logprobs([{"token": "", "bytes": list(piece)} for piece in pieces if piece])
    tokens = taken.tokens(raw)
    if not raw:
        assert tokens is None
        return
    assert tokens is not None
    covered = {i for token in tokens for i in range(token.span.start, token.span.end)}
    assert covered == set(range(len(raw)))
    assert Tokens.from_dict(raw, json.loads(json.dumps(tokens.to_dict()))) == tokens
    for i in range(len(raw)):
        assert all(t.span.start <= i < t.span.end for t in tokens.at(Span(i, i + 1)))


def test_what_is_drawn_around_the_text_is_kept_beside_it() -> None:
    cut = [(7, b"\n"), (8, b"Hello"), (2, b"<|im_end|>")]
    tokens = tp.parse(answer_of(cut, "Hello"), "hermes").tokens
    assert tokens is not None
    assert (tokens.before, tokens.raw, tokens.after) == ("\n", "Hello", "<|im_end|>")
    assert [len(token.span) for token in tokens] == [0, 5, 0]
    assert tokens.ids == (7, 8, 2)


def test_ids_are_kept_where_nobody_can_say_their_text() -> None:
    cut = vocabulary("cl100k_base").cut("Hello there")
    choice = {"message": {"content": "Hello there"}, "token_ids": [id for id, _ in cut]}
    answer = {"choices": [choice], "prompt_token_ids": [1, 2]}
    tokens = tp.parse(answer, "hermes").tokens
    assert tokens is not None
    assert (tokens.ids, tokens.prompt_ids) == (tuple(id for id, _ in cut), (1, 2))
    assert Tokens.from_dict("Hello there", tokens.to_dict()) == tokens
    # A tokenizer says it.
    words = vocabulary("cl100k_base")
    placed = tp.parse(answer, "hermes", tokenizer=words).tokens
    assert placed is not None
    assert "".join(token.text for token in placed) == placed.raw == "Hello there"


def test_a_record_of_another_text_is_none() -> None:
    tokens = Tokens("Hello", (2, 3), ids=(1, 2))
    record = tokens.to_dict()
    assert Tokens.from_dict("Hello", record) == tokens
    assert Tokens.from_dict("Hello!", record) is None
    assert Tokens.from_dict("Hello", {**record, "ids": [1]}) is None
    assert Tokens.from_dict("Hello", None) is None


# -- shapes of responses


@every_case
def test_log_probabilities_and_entropies_of_every_shape(choice: dict[str, Any]) -> None:
    tokens = tp.parse({"choices": [choice]}, "hermes").tokens
    assert tokens is not None
    assert list(tokens.logprobs) == [-1, -2]
    first, second = tokens.entropies
    shares = [math.exp(-1), math.exp(-0.5)]
    shares.append(1 - sum(shares))  # everything that is not listed
    assert first == pytest.approx(sum(-p * math.log(p) for p in shares))
    assert second is None


def test_a_stream_has_the_tokens_of_the_whole() -> None:
    cut = vocabulary("cl100k_base").cut(
        '<tool_call>{"name": "f", "arguments": {"a": "Rome"}}</tool_call>'
    )
    chunks = [
        {
            "choices": [
                {
                    "delta": {"content": data.decode()},
                    "logprobs": {"content": [{"token": data.decode(), "id": id, "logprob": -1}]},
                }
            ]
        }
        for id, data in cut
    ]
    tokens = tp.parse(chunks, "hermes").tokens
    assert tokens is not None
    assert tokens.ids == tuple(id for id, _ in cut)


# -- labels


def test_labels_say_which_thing_each_token_is_part_of() -> None:
    pieces = [
        "<think>", "hm", "</think>", "So", ' <tool_call>{"name": "', "f", '", "arguments": {"a": "',
        "x", '", "b": 1', ', "c": ""', "}}", "</tool_call>", " done", "<|im_end|>",
    ]  # fmt: skip
    cut = [(i, piece.encode()) for i, piece in enumerate(pieces)]
    result = tp.parse(answer_of(cut, "".join(pieces[:-1])), "hermes")
    labels = result.token_labels()
    assert [label.kind for label in labels] == [
        "markup", "reasoning", "markup", "text", "text", "name", "markup", "argument", "argument",
        "argument", "markup", "markup", "text", "outside",
    ]  # fmt: skip
    assert [label.path for label in labels if label.kind == "argument"] == ["/a", "/b", "/c"]
    assert {label.call for label in labels} == {None, 0}


def test_a_repair_is_told_where_it_happened() -> None:
    pieces = ['<tool_call>{"name": "f", "arguments": {"a": "x", "b": 1', "}", "</tool_call>"]
    cut = [(i, piece.encode()) for i, piece in enumerate(pieces)]
    result = tp.parse(answer_of(cut, "".join(pieces)), "hermes")
    (call,) = result.calls
    assert call.edits
    assert [label.repaired for label in result.token_labels()] == [False, True, False]


def test_without_tokens_there_is_nothing_to_label() -> None:
    result = tp.parse('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>', "hermes")
    assert result.token_labels() == ()
    assert result.calls[0].tokens("/a") == ()
    with pytest.raises(NoSuchItem):
        result.calls[0].tokens("/b")


def test_tokens_of_another_text_than_was_parsed_have_no_place_in_it() -> None:
    # A text that is read as native calls is JSON, which nobody drew.
    result = tp.parse(answer_of([(7, b"Hello")], "Hello"), "openai_json")
    assert result.tokens is not None
    assert (result.tokens.drawn, result.tokens.raw) == ("Hello", "")
    assert [label.kind for label in result.token_labels()] == ["outside"]
    assert Tokens.from_dict(result.raw, result.tokens.to_dict()) == result.tokens


def test_calls_that_a_server_made_come_without_tokens() -> None:
    function = {"name": "f", "arguments": '{"a": 1}'}
    message = {
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    assert tp.parse({"choices": [{"message": message}]}, "auto").tokens is None


def test_a_result_brings_its_tokens_back() -> None:
    cut = vocabulary("cl100k_base").cut(
        '<tool_call>{"name": "f", "arguments": {"a": "Rome"}}</tool_call>'
    )
    result = tp.parse(answer_of(cut, "".join(data.decode() for _, data in cut)), "hermes")
    again = tp.ParseResult.from_dict(json.loads(result.to_json()))
    assert again.token_labels() == result.token_labels()
    assert again.calls[0].tokens("/a") == result.calls[0].tokens("/a")
