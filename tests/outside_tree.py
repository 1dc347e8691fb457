"""Trees with the module names of vLLM, small enough to read: what a reader's process is tested on.

A call is `[name arguments]`, arguments being JSON. The old tree is laid out like vLLM 0.10 and
forgets the last character of a streamed call, which the server's last step brings back. The new
one is laid out like vLLM 0.33, where parsers end their streams themselves; a call of its stream
has no arguments if it comes in one chunk. Some words make either misbehave.
"""

from __future__ import annotations

import json
from pathlib import Path

REQUEST = """
class ChatCompletionRequest:
    def __init__(self, tools):
        self.tools = tools

    @classmethod
    def model_validate(cls, fields):
        return cls(fields.get("tools"))
"""
BASE = """
import os, re, socket, sys, time
from types import SimpleNamespace as Thing

import torch
from PIL import Image
from transformers import PreTrainedTokenizerBase
from vllm.logger import init_logger
from vllm.sampling_params import StructuredOutputsParams
from vllm.utils import random_uuid

logger = init_logger(__name__)
CALL = re.compile(r"\\[(\\w+) (\\{.*?\\})\\]", re.S)


class Function:
    def __init__(self, name=None, arguments=None):
        self.name, self.arguments = name, arguments


class Call:
    def __init__(self, index, function):
        self.index, self.function = index, function


class Delta:
    def __init__(self, content=None, tool_calls=()):
        self.content, self.tool_calls = content, tool_calls


@torch.inference_mode()
def misbehave(text):
    logger.info("a line that nobody reads")
    if "CRASH" in text:
        sys.stderr.write("out of luck\\n")
        sys.stderr.flush()
        os._exit(3)
    if "SLEEP" in text:
        time.sleep(60)
    if "MEMORY" in text:
        bytearray(1 << 40)
    if "RAISE" in text:
        raise ValueError("no such luck")
    if "CONNECT" in text:
        socket.create_connection(("127.0.0.1", 9))
    if "PRINT" in text:
        print("{}")
    if "FOLDER" in text:
        raise ValueError(repr((os.listdir("."), sorted(os.environ))))


class Manager:
    tool_parsers = {}

    @classmethod
    def get_tool_parser(cls, name):
        return cls.tool_parsers[name]
"""
PARSER = """
class Brackets:
    call_token = "[["

    def __init__(self, tokenizer):
        assert tokenizer.get_vocab()["<call>"] == tokenizer.get_vocab().get("<call>")
        self.prev_tool_call_arr, self.streamed_args_for_tool = [], []
        self.chunks = []

    def extract_tool_calls(self, text, request):
        misbehave(text)
        assert not isinstance(random_uuid(), StructuredOutputsParams)
        calls = [Thing(function=Function(m[1], m[2])) for m in CALL.finditer(text)]
        return Thing(tools_called=bool(calls), tool_calls=calls, content=text.partition("[")[0])

    def extract_tool_calls_streaming(
        self, previous_text, current_text, delta_text, previous_token_ids, current_token_ids,
        delta_token_ids, request,
    ):
        assert len(delta_token_ids) >= 1 and current_text == previous_text + delta_text
        m = CALL.search(current_text)
        if m and not self.prev_tool_call_arr:
            self.prev_tool_call_arr = [{"name": m[1], "arguments": __import__("json").loads(m[2])}]
            self.streamed_args_for_tool = [m[2][:-1]]
            return Delta(None, [Call(0, Function(m[1], m[2][:-1]))])
        if m:
            return Delta(None, [Call(0, Function(None, ""))])
        return Delta(delta_text if "[" not in current_text else None)


Manager.tool_parsers = {"brackets": Brackets, "broken": None}
ToolParserManager = Manager
"""
UNIFIED = """
from vllm.tool_parsers import CALL, Brackets, Call, Delta, Function, misbehave


class DelegatingParser:
    def __init__(self, tokenizer, tools, chat_template_kwargs=None):
        self._tool_parser = Brackets(tokenizer)
        self.text, self.sent = "", 0

    def parse(self, text, request, enable_auto_tools=False, model_output_token_ids=()):
        read = self._tool_parser.extract_tool_calls(text, request)
        return None, read.content, [call.function for call in read.tool_calls]

    def parse_delta(self, delta_text, delta_token_ids, request, prompt_token_ids=None, *, finished):
        misbehave(delta_text)
        whole = not self.text and finished
        self.text += delta_text
        if not finished:
            return None
        calls = [
            Call(i, {"name": m[1], "arguments": "" if whole else m[2]})
            for i, m in enumerate(CALL.finditer(self.text))
        ]
        return Delta(self.text.partition("[")[0], calls)
"""
MANAGER = """
from vllm.parser.abstract_parser import DelegatingParser


class ParserManager:
    @classmethod
    def get_parser(cls, tool_parser_name, reasoning_parser_name, enable_auto_tools, model_name):
        return DelegatingParser
"""
_OLD = "vllm/entrypoints/openai/"
OLD = {
    f"{_OLD}protocol.py": REQUEST,
    f"{_OLD}tool_parsers/__init__.py": BASE + PARSER,
    f"{_OLD}serving_chat.py": "",
    "vllm/__init__.py": "raise RuntimeError('the package itself is never loaded')",
    "vllm/logger.py": "raise RuntimeError('nor are its other modules')",
}
NEW = {
    "vllm/entrypoints/openai/chat_completion/protocol.py": REQUEST,
    "vllm/tool_parsers/__init__.py": BASE + PARSER,
    "vllm/parser/__init__.py": MANAGER,
    "vllm/parser/abstract_parser.py": UNIFIED,
}


def write_tree(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def add_by_hand(cache: Path, version: str, files: dict[str, str]) -> None:
    """A reader as `add_reader` leaves it in the cache folder."""
    folder = cache / "readers" / f"vllm-{version}"
    write_tree(folder, files)
    record = {
        "package": "vllm", "version": version, "parsers": ["brackets", "broken"],
        "file": f"vllm-{version}.tar.gz", "sha256": "0" * 64,
    }  # fmt: skip
    (folder / "reader.json").write_text(json.dumps(record), "utf-8")
