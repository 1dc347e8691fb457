"""CPU time of a call by inspect-ai, for `runner.py --inspect`: run by the interpreter of its own
environment.

Arguments: the endpoint's address, how many calls, how many connections, the system prompt, the
answer. What is counted is `eval` of one task with one sample a question, its log on disk included,
after a small one that imports what is imported late.
"""

from __future__ import annotations

import sys
import time
from typing import Any


def main() -> None:
    from importlib.metadata import version

    import inspect_ai  # type: ignore[import-not-found,unused-ignore]
    from inspect_ai.dataset import MemoryDataset, Sample  # type: ignore[import-not-found,unused-ignore]
    from inspect_ai.model import (  # type: ignore[import-not-found,unused-ignore]
        ChatMessageSystem,
        ChatMessageUser,
        GenerateConfig,
        get_model,
    )
    from inspect_ai.solver import generate  # type: ignore[import-not-found,unused-ignore]

    url, count, connections, system, answer = sys.argv[1:]
    config = GenerateConfig(
        temperature=0, max_tokens=256, seed=0, max_connections=int(connections), max_retries=0
    )
    model = get_model("openai/m", base_url=url, api_key="k", config=config, responses_api=False)

    def ask(name: str, calls: int) -> Any:
        # As messages, because its own `system_message` takes braces for places to fill in.
        first = ChatMessageSystem(content=system)
        asked = [ChatMessageUser(content=f"no={name}.{n} say={answer}") for n in range(calls)]
        samples = [Sample(input=[first, question]) for question in asked]
        task = inspect_ai.Task(dataset=MemoryDataset(samples), solver=[generate()])
        (log,) = inspect_ai.eval(
            task, model=model, display="none", max_samples=2 * int(connections), log_level="error"
        )
        return log

    ask("warm", 20)
    began = time.process_time()
    log = ask("counted", int(count))
    took = time.process_time() - began
    answers = [s.output.completion for s in log.samples or []]
    right = sum(text == answer for text in answers)
    print(
        f"inspect-ai {version('inspect-ai')}: {took / int(count) * 1000:6.2f} ms, {right} of "
        f"{count} answered"
    )


if __name__ == "__main__":
    main()
