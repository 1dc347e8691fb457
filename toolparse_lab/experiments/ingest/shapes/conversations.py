"""Conversations as training data have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .attributes import at, items_of
from .parts import first, tools_of, turns
from .shape import Cells, Damaged, Log, Row, shape


@shape(
    "sharegpt",
    ("conversations",),
    "conversations as ShareGPT has them",
    {"output": "conversations[gpt]", "messages": "conversations before it", "tools": "tools"},
    "model and time",
    lambda row: isinstance(at(row, "conversations", 0), Mapping),
)
def sharegpt(row: Row, log: Log) -> Iterator[Cells]:
    # A turn of the role function_call is the model's as well.
    said = [
        {**turn, "from": "gpt"} if at(turn, "from") == "function_call" else turn
        for turn in items_of(row["conversations"])
    ]
    if isinstance(row.get("system"), str) and row["system"]:
        said.insert(0, {"from": "system", "value": row["system"]})
    others = {k: v for k, v in row.items() if k not in ("conversations", "system", "tools")}
    id = first(row.get("id"), row.get("case_id"))
    for cells, turn in turns(said, id, f"row-{log.line}"):
        text = first(at(turn, "value"), at(turn, "content"))
        if not isinstance(text, str):
            raise Damaged("output", "a turn of the model has no text", turn)
        yield {
            **others,
            **cells,
            "id": None,
            "output": text,
            "tools": tools_of(row.get("tools")),
        }


_IDS = ("case_id", "id", "custom_id", "example_id")
_ANSWERS = frozenset(("raw", "output", "response", "error", "completion", "raw_output",
                      "output_text", "tool_calls"))  # fmt: skip


def _is_conversation(row: Row) -> bool:
    if row.keys() & _ANSWERS or "messages" not in row:
        return False
    messages = items_of(row["messages"])
    return any(at(message, "role") == "assistant" for message in messages)


@shape(
    "messages",
    ("messages",),
    "conversations as messages, as training data have them",
    {"output": "messages[assistant]", "messages": "messages before it", "tools": "tools"},
    "model and time",
    _is_conversation,
)
def messages(row: Row, log: Log) -> Iterator[Cells]:
    others = {k: v for k, v in row.items() if k != "messages"}
    key = next((name for name in _IDS if row.get(name) is not None), None)
    id = others.pop(key) if key else None
    said = list(turns(items_of(row["messages"]), id, f"row-{log.line}"))
    # A target is of one answer: the last.
    if "target" in row or "expected_calls" in row:
        said = [({**said[-1][0], "case_id": id}, said[-1][1])]
    for cells, message in said:
        yield {**others, **cells, "output": message}
