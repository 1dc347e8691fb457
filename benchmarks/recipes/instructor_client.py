"""The recipe of instructor: answers as pydantic models, by a forced call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cells
import instructor
from pydantic import BaseModel


class get_weather(BaseModel):  # noqa: N801 - the name of the tool that is forced
    """The weather of a city."""

    city: str
    days: int = 1


class now(BaseModel):  # noqa: N801
    """The time."""


ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "What is the weather?"}]}


def ask(cell: str, script: str = "", **more: Any) -> Any:
    """The answer of a cell; script: the cell whose words the model says."""
    client = cells.block("instructor", script or cell)["client"]
    return client.chat.completions.create(**{"response_model": get_weather, **ASKED, **more})


def use(*answers: Any) -> str:
    """Call the tool that each answer names."""
    for answer in answers:
        cells.get_weather(answer.city, answer.days)
    return "It is sunny." if len(answers) == 1 else "Both are sunny."


def stream(cell: str) -> str:
    """A model that fills up while it comes."""
    client = cells.block("instructor", "instructor stream")["client"]
    *_, last = client.chat.completions.create_partial(response_model=get_weather, **ASKED)
    return use(last)


def parallel(cell: str) -> str:
    """Several models in one answer."""
    client = cells.block("instructor", cell)["client"]
    inner = instructor.from_openai(client.client, mode=instructor.Mode.PARALLEL_TOOLS)
    answers = inner.chat.completions.create(
        response_model=Iterable[get_weather | now], model=cell.replace(" ", "+"), **ASKED
    )
    return use(*answers)


def text(cell: str) -> Any:
    """An answer without a model."""
    return ask(cell, response_model=None).choices[0].message.content


def malformed(cell: str) -> str:
    """A call that nobody can read is an error and no answer."""
    try:
        ask(cell, max_retries=1)
    except Exception as e:
        kinds = {c.__name__ for c in type(e).__mro__}
        return "I call" if "InstructorError" in kinds else f"{type(e)}: {e}"
    return "an answer came"


def schema(cell: str) -> Any:
    """A model by response_format."""
    client = cells.block("instructor", cell)["client"]
    inner = instructor.from_openai(client.client, mode=instructor.Mode.JSON_SCHEMA)
    return inner.chat.completions.create(
        response_model=get_weather, model=cell.replace(" ", "+"), **ASKED
    ).model_dump_json()


if __name__ == "__main__":
    litellm = "from_litellm gives the client no other mode"
    in_process = "--litellm" in cells.sys.argv
    cells.run(
        {
            "whole": lambda cell: use(ask(cell, "choice")),
            "stream": stream if not in_process else "create_partial needs instructor's own client",
            "no tools": text,
            "parallel": litellm if in_process else parallel,
            "three turns": "instructor has no loop",
            "tool error": "instructor calls no tools",
            "choice": lambda cell: use(ask(cell)),
            "malformed call": malformed,
            "response_format": litellm if in_process else schema,
        }
    )
