"""The turns of a parser of SGLang or vLLM beside ours, in a process of its own.

`benchmarks/peers.py` starts it under the interpreter of the added readers. In: a JSON line
`{parser, text, tools, chunk, runs}`, chunk 0 for the whole text. Out: `{seconds, calls}`, CPU
seconds for all runs and the calls of one, as [name, arguments].
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

engine_name, tree, root = sys.argv[1:]
sys.path.append(str(Path(root, "toolparse_lab", "extensions", "readers")))
from worker import __main__ as servers  # type: ignore[import-not-found]  # noqa: E402

ENGINE = {"sglang": servers.Sglang, "vllm": servers.Vllm}[engine_name]
parsers: dict[str, Any] = {}
for line in sys.stdin:
    asked = json.loads(line)
    name, text, tools, size = (asked[key] for key in ("parser", "text", "tools", "chunk"))
    answer: dict[str, Any] = {}
    try:
        if name not in parsers:
            parsers[name] = ENGINE(Path(tree), name, "")
        server = parsers[name]
        chunks = [text[i : i + size] for i in range(0, len(text), size)] if size else []
        # A server makes a parser for each request, but the types of its tools are there.
        before = time.process_time()
        for _ in range(asked["runs"]):
            read = server.stream(chunks, tools) if size else server.batch(text, tools)
        answer["seconds"] = time.process_time() - before
        answer["calls"] = [[call["name"], call["arguments"]] for call in read["calls"]]
    except Exception as error:
        answer["error"] = f"{type(error).__name__}: {error}"[:200]
    print(json.dumps(answer), flush=True)
