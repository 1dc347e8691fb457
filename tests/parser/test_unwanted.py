"""No call is executed that the model did not make: a part of what `unwanted.py` makes, in each way
of reading."""

from __future__ import annotations

from itertools import cycle

import pytest

from tests.laws import EXHAUSTIVE, part
from tests.unwanted import KINDS, READERS, Answer, answers, formats, verdict

# answers of each format and kind; `benchmarks/unwanted_calls.py` asks them all
PART = 8 if EXHAUSTIVE else 1
BY_NAME = ("name", "stream by 1", "stream by 4", "generate", "wrap_stream")
BY_AUTO = ("auto", "auto by 1", "auto by 4")


def readers(answer: Answer, names: tuple[str, ...]) -> tuple[str, ...]:
    """The middleware always offers its tools."""
    return (
        names if answer.tools else tuple(n for n in names if "generate" not in n and "_" not in n)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_only_calls_of_the_model_run_in_every_way_of_reading(kind: str) -> None:
    asked = {answer.format for answer in answers(kind)}
    # Some write no word that could be a marker, and some no call after words.
    assert len(asked) > len(formats()) * 0.7
    turn = cycle((*BY_NAME[1:], *BY_AUTO[1:]))
    wrong = [
        (reader, answer.format, answer.text, calls)
        for answer in answers(kind, PART)
        for reader in readers(answer, ("name", "auto", next(turn)))
        if verdict(answer, calls := READERS[reader](answer)) == "wrong"
    ]
    assert not wrong, f"{len(wrong)}: {wrong[:3]}"

    # Each kind asks other formats.
    for answer in part(answers(kind, 1), 3, [*KINDS].index(kind)):
        for names in (BY_NAME, BY_AUTO):
            whole, *others = (READERS[name](answer) for name in readers(answer, names))
            assert all(other == whole for other in others), (answer, names[0])
