"""Answers of the embedded model to a forced choice: how many fit the schema that was asked for.

Run with `python benchmarks/forced_choice.py [if_then_else|any_of|any_of_many]`; a minute each. The
last form asks for a list of calls. Twelve questions, three tools, one of them with a reference in
its schema.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

sys.path.insert(0, str(Path(__file__).parent.parent))

from toolparse_lab.middleware import create_tool_middleware
from toolparse_lab.runner.local.engine import local_engine

QUESTIONS = (
    "Weather in Oslo?", "Set a timer for five minutes.", "Mail Ann.",
    "What is the weather in Rome tomorrow?", "Wake me in 3 hours.", "Tell bob@x.org it is urgent.",
    "Is it raining in Paris?", "Ten seconds, please.", "Write to the boss.",
    "Forecast for Lima, 3 days.", "Timer: 1 h.", "Send a note to Eve.",
)  # fmt: skip
SHORT = {"type": "string", "maxLength": 30}


def tool(name: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A tool all of whose parameters are required."""
    schema = {"type": "object", "properties": properties, "required": list(properties), **more}
    return {"name": name, "parameters": schema}


TOOLS = (
    tool("get_weather", {"city": SHORT, "days": {"type": "integer"}}),
    tool(
        "set_timer",
        {"amount": {"type": "integer"}, "unit": {"$ref": "#/$defs/Unit"}},
        **{"$defs": {"Unit": {"enum": ["s", "min", "h"]}}},
    ),
    tool("send_mail", {"to": SHORT, "urgent": {"type": "boolean"}}),
)


def measure(form: Any) -> tuple[int, int]:
    """(answers that fit the schema, answers whose calls may be executed) of a form of schema."""
    middleware = create_tool_middleware("hermes", choice_schema=form)
    n_fit = n_good = 0
    for question in QUESTIONS:
        turn = middleware.transform_params(
            {
                "messages": [{"role": "user", "content": question}],
                "tools": list(TOOLS),
                "tool_choice": "required",
                "parallel_tool_calls": True,
            }
        )
        wanted = turn.params["response_format"]
        params = {"response_format": wanted, "max_tokens": 200}
        answer = local_engine().chat(turn.params["messages"], params)
        try:
            value = json.loads(answer.text)
        except ValueError:
            value = None
        n_fit += Draft202012Validator(wanted["json_schema"]["schema"]).is_valid(value)
        result = middleware.wrap_generate(
            turn, answer.text, finish_reason=answer.finish_reason
        ).result
        calls = result.calls if result is not None else ()
        n_good += bool(calls) and all(call.ok and call.valid for call in calls)
    return n_fit, n_good


def main() -> int:
    for form in sys.argv[1:] or ("if_then_else", "any_of", "any_of_many"):
        n_fit, n_good = measure(form)
        print(f"{form}: {n_fit} of {len(QUESTIONS)} fit the schema, {n_good} may be executed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
