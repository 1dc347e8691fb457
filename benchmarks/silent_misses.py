"""Answers that call a tool in ways that no format has: how many of them are lost without a word.

    python benchmarks/silent_misses.py                 # 2,400 texts, by `auto` and by name
    python benchmarks/silent_misses.py --n 500 --seed 7 --misses 10

Each text names an offered tool before `(`, `{`, `=` or inside a tag, alone on its line, in a fence,
between tags, or as the whole answer: an attempt. Silent is one without a call and without a
problem that says where the tool is named. Remarks have the name in a sentence, and are no attempts.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import toolparse_lab as tp

NAMES = ("get_tide", "find_berth", "crew.list", "log_entry2", "weather-now", "setAlarm")
READERS = ("auto", "hermes", "qwen3_coder_xml", "morph_xml", "pythonic")
# What follows the name, {k} and {v} a parameter and its value: brackets and signs of no format.
HEADS = (
    "{name}({k} -> {v})", "{name}({k}: {v}, )!", "{name}({v}; {v2})", "{name}(({k} {v}))",
    "{name}<{k}|{v}>", "{name}<<{k}={v}>>", "{name}{{{k} {v}}}", "{name}{{{k} => {v} ; {v2}}}",
    "{name} = {{{k}: {v}", "{name} := ({k} is {v})", "{name}([{k}, {v})", "{name}({k}=‹{v}›)",
    "<{name} : {k} = {v}", "<call {name} {k}={v}", "<use:{name} [{k}] {v} >", "[{name} | {k} = {v}",
    "<tool>{name}({k} {v}",
    "invoke {name}({k} as {v})", "{name}(**{{{k}; {v}}})", "{name}({k}⇒{v})",
)  # fmt: skip
PLACES = (
    "{call}", "{call}\n", "Let me look that up.\n\n{call}", "Let me look that up.\n{call}\n",
    "```\n{call}\n```", "```tool\n{call}\n```", "<action>\n{call}\n</action>",
    "I check the harbour first.\n\n```\n{call}\n```\n", "<|call|>{call}<|done|>", "\n\n{call}\n\n",
)  # fmt: skip
REMARKS = (
    "I would call {name}({k}) if you name the city.", "You can use {name}({v}) for that, I think.",
    "The tool {name} takes {k}; it is not needed here.", "I have no value of {k} for {name}(…).",
    "Without the {k}, {name}({k}) would fail, so please tell me.", "{name} is what I would use.",
)  # fmt: skip
WORDS = ("port", "city", "crew", "depth", "quince", "Bergen", "1847", "true", "'Oslo'", '"Hull"')


def texts(seed: int, ways: Sequence[str], places: Sequence[str]) -> Iterator[str]:
    """Yield texts without end."""
    dice = random.Random(seed)
    while True:
        name = dice.choice(NAMES)
        k, v, v2 = (dice.choice(WORDS) for _ in range(3))
        call = dice.choice(ways).format(name=name, k=k, v=v, v2=v2)
        yield dice.choice(places).format(call=call)


def outcome(text: str, reader: str) -> str:
    """Return what becomes of a text: a call, an attempt, a remark, or nothing."""
    result = tp.parse(text, reader, TOOLS)
    if any(call.ok for call in result.calls):
        return "call"
    severities = {problem.severity for problem in result.all_problems()}
    return "attempt" if "error" in severities else "remark" if severities else "silent"


TOOLS = [
    {"name": name, "parameters": {"properties": {"port": {"type": "string"}, "city": {}}}}
    for name in NAMES
]
OUTCOMES = ("call", "attempt", "remark", "silent")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if an attempt was lost in silence, or a remark taken for one."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--n", type=int, default=2400, help="texts of each kind")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--misses", type=int, default=0, help="texts to print of each reader")
    chosen = options.parse_args(arguments)
    wrong = 0
    print("| texts | reader | n | read | told: attempt | told: remark | silent |")
    print("|---|---|--:|--:|--:|--:|--:|")
    kinds = (
        ("attempts", HEADS, PLACES, ("remark", "silent")),
        ("remarks", REMARKS, ("{call}", "Sure. {call}"), ("call", "attempt")),
    )
    for kind, ways, places, wrongs in kinds:
        for reader in READERS:
            made = islice(texts(chosen.seed, ways, places), chosen.n)
            found = [(outcome(text, reader), text) for text in made]
            counts = Counter(what for what, _ in found)
            figures = " | ".join(str(counts[what]) for what in OUTCOMES)
            print(f"| {kind} | {reader} | {chosen.n} | {figures} |", flush=True)
            missed = [text for what, text in found if what in wrongs]
            wrong += len(missed)
            for text in missed[: chosen.misses]:
                print(f"    {text!r}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
