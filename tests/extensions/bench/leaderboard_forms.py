"""Answers in the eight return formats of a leaderboard's study of prompt formats, as models write
them: for the tests and `benchmarks/leaderboard_forms.py`.

The writers here are independent of the library's own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from tests.core_cases import CORE

FORMS = {
    "python": "pythonic",
    "python, tag": "bfcl_python_tag",
    "json": "bfcl_json",
    "json, tag": "bfcl_json_tag",
    "verbose_xml": "bfcl_verbose_xml",
    "verbose_xml, tag": "bfcl_verbose_xml_tag",
    "concise_xml": "bfcl_concise_xml",
    "concise_xml, tag": "bfcl_concise_xml_tag",
}
"""Form -> the protocol of its name."""

Calls = list[tuple[str, dict[str, Any]]]


class Answer(NamedTuple):
    """An answer of a model, and the calls that it means."""

    form: str
    text: str
    calls: Calls


TOOLS = json.loads((CORE / "texts" / "tools.json").read_text("utf-8"))["typed"]
_WORDS = ("Bergen", "Puerto Natales", "Łeba", "R&D pier", "it's 5 o'clock", 'the "Aurora"', "a, b")
_PLAIN_WORDS = ("Bergen", "Puerto Natales", "Łeba", "pier 4")
_LEVELS = ("high", "3", "true", "007", "12.50")


def _arguments(tool: dict[str, Any], rng: random.Random, words: tuple[str, ...]) -> dict[str, Any]:
    properties: dict[str, Any] = tool["parameters"]["properties"]
    values: dict[str, Any] = {
        "harbour": rng.choice(words), "nights": rng.randint(0, 400), "vessel": rng.choice(words),
        "draught": rng.choice((0.5, 3.25, 7, -2.0)), "power": rng.random() < 0.5,
        "roles": rng.sample(words, rng.randint(0, 3)), "active": rng.random() < 0.5,
        "levels": [rng.choice((1, 2.5, -3)) for _ in range(rng.randint(1, 3))],
        "style": {"colour": rng.choice(words), "grid": rng.random() < 0.5, "size": [3, 4]},
        "title": rng.choice(words), "text": rng.choice(words), "level": rng.choice(_LEVELS),
        "code": rng.choice(_LEVELS),
    }  # fmt: skip
    first, *rest = properties or [""]
    return {k: values[k] for k in properties if k == first or (k in rest and rng.random() < 0.7)}


def _type_word(value: Any, rng: random.Random) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "float"
    if isinstance(value, str):
        return "string"
    return rng.choice(("array", "tuple")) if isinstance(value, list) else "dict"


def _xml_text(value: Any, rng: random.Random) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return rng.choice((str(value), str(value).lower()))
    return rng.choice((repr, lambda v: json.dumps(v, ensure_ascii=False)))(value)


def _xml(calls: Calls, verbose: bool, rng: random.Random) -> str:
    line, indent = rng.choice((("", ""), ("\n", "  "), ("\n", "\t")))
    parts = ["<functions>"]
    for name, arguments in calls:
        parts.append(f'{indent}<function name="{name}">')
        parts += [f"{indent * 2}<params>"] * verbose
        for key, value in arguments.items():
            text, word = _xml_text(value, rng), _type_word(value, rng)
            if verbose:
                space = rng.choice(("", " "))
                attributes = f'name="{key}" value="{escape(text)}" type="{word}"'
                parts.append(f"{indent * 3}<param {attributes}{space}/>")
            else:
                inner = escape(text, quote=rng.random() < 0.5)
                parts.append(f'{indent * 2}<param name="{key}" type="{word}">{inner}</param>')
        parts += [f"{indent * 2}</params>"] * verbose
        parts.append(f"{indent}</function>")
    return line.join([*parts, "</functions>"])


def _python(calls: Calls, rng: random.Random) -> str:
    def value_of(value: Any) -> str:
        # Both kinds of quotes are usual.
        quoted = json.dumps(value, ensure_ascii=False)
        return quoted if isinstance(value, str) and rng.random() < 0.5 else repr(value)

    line = rng.choice(("", "", "\n"))
    between = ",\n" if line else ", "
    texts = [f"{n}({', '.join(f'{k}={value_of(v)}' for k, v in a.items())})" for n, a in calls]
    return f"[{line}{between.join(texts)}{line}]"


def _json(calls: Calls, rng: random.Random) -> str:
    values = [{"function": name, "parameters": arguments} for name, arguments in calls]
    indent = rng.choice((None, None, 2))
    return json.dumps(values, indent=indent, ensure_ascii=rng.random() < 0.5)


def _bare(form: str, calls: Calls, rng: random.Random) -> str:
    if form.startswith("python"):
        return _python(calls, rng)
    if form.startswith("json"):
        return _json(calls, rng)
    return _xml(calls, form.startswith("verbose"), rng)


def _dressed(form: str, text: str, rng: random.Random) -> str:
    """Return a text with what models put around it: the tag, a fence, a sentence."""
    kind = form.partition(",")[0]
    language = {"python": "", "json": "json"}.get(kind, "xml")
    fence = f"```{language}\n{text}\n```"
    if form.endswith("tag"):
        fenced = kind == "json" and rng.random() < 0.5
        space = rng.choice(("", "", "\n"))
        tagged = f"<TOOLCALL>{space}{fence if fenced else text}{space}</TOOLCALL>"
        return rng.choice((tagged, tagged, f"I will look this up.\n\n{tagged}"))
    if kind == "json":
        return rng.choice((fence, fence, text))
    if kind == "python":
        return rng.choice((text, text, text, fence, text.replace("\n", "")[1:-1], f"{text}\n"))
    return rng.choice((text, text, fence))


def answers(seed: int, count: int, *, plain: bool = False) -> Iterator[Answer]:
    """Yield answers of every form, `count` of each. plain: no text in them holds a sign."""
    words = _PLAIN_WORDS if plain else _WORDS
    rng = random.Random(seed)
    for form in FORMS:
        for _ in range(count):
            calls: Calls = []
            for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
                tool = rng.choice(TOOLS)
                arguments = _arguments(tool, rng, words)
                if (tool["name"], arguments) not in calls:
                    calls.append((tool["name"], arguments))
            yield Answer(form, _dressed(form, _bare(form, calls, rng), rng), calls)


def abstentions() -> Iterator[Answer]:
    """Yield answers that call nothing, as the prompts of the forms ask for them."""
    words = "None of the functions can be used: the harbour is missing."
    for form in FORMS:
        yield Answer(form, words, [])
        for empty in ("[]", "<functions></functions>"):
            around = ("<TOOLCALL>", "</TOOLCALL>") if form.endswith("tag") else ("", "")
            yield Answer(form, empty.join(around), [])


_SIGNS = "<>/=\"'()[]{},:"


def damaged(text: str, rng: random.Random) -> str:
    """Return a text with one structural character deleted, doubled, or swapped with another one."""
    at = rng.choice([i for i, char in enumerate(text[:-1]) if char in _SIGNS])
    char, follows = text[at], text[at + 1]
    ways = [("", 1), (char * 2, 1)]
    if follows in _SIGNS:
        ways.append((follows + char, 2))
    instead, size = rng.choice(ways)
    return text[:at] + instead + text[at + size :]
