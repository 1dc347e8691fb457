"""A reader's process: JSON lines in, JSON lines out, one of each a text.

In: `{id, raw, tools, chunks?, template?}`. Out: `{id, batch, stream, error}`; batch and stream
are `{content, calls: [{name, arguments}]}` or null, and error is a text or null. The first line out
says that the parser is there: `{id: null, names, error}`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from .engines import Sglang, Transformers, Vllm

_ENGINES = {"vllm": Vllm, "sglang": Sglang, "hf": Transformers}
_DEEPEST = 2_000  # Python frames; a text that nests deeper is an error of its parser


def _limit_memory(most: int) -> None:
    try:
        import resource  # not on every system
    except ImportError:
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


# A parser has no business with any of these. It is no sandbox: it stops what is done by mistake.
_REFUSED = ("socket.connect", "socket.bind", "subprocess.Popen", "os.system", "os.exec", "os.fork")


def _refuse(event: str, arguments: Any) -> None:
    if event.startswith(_REFUSED):
        raise PermissionError(f"a parser's process may not do this: {event}")


def _read(engine: Any, asked: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"id": asked.get("id"), "batch": None, "stream": None, "error": None}
    tools = asked.get("tools") or []
    engine.template = asked.get("template")
    try:
        out["batch"] = engine.batch(asked["raw"], tools)
        if asked.get("chunks") is not None:
            out["stream"] = engine.stream(asked["chunks"], tools)
    except Exception as error:
        out["error"] = f"{type(error).__name__}: {error}"[:2_000]
    return out


def main(settings: dict[str, Any]) -> None:
    """Serve until the input ends.

    settings: `{engine, tree, parser, reasoning, memory}`, with the module of a plugin and the path
    that it is found on, where there is one.
    """
    # What the parser prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _limit_memory(settings["memory"])
    sys.addaudithook(_refuse)
    logging.disable(logging.CRITICAL)
    sys.setrecursionlimit(_DEEPEST)

    def say(line: dict[str, Any]) -> None:
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    try:
        kind: Any = _ENGINES[settings["engine"]]
        engine = kind(Path(settings["tree"]), settings["parser"], settings["reasoning"])
        if settings.get("plugin"):
            # Last on the path: packages of this environment go first.
            sys.path.extend(json.loads(settings["path"]))
            importlib.import_module(settings["plugin"])
        names = engine.names()
    except Exception as error:
        say({"id": None, "names": [], "error": f"{type(error).__name__}: {error}"[:2_000]})
        return
    say({"id": None, "names": names, "error": None})
    for line in sys.stdin:
        say(_read(engine, json.loads(line)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
