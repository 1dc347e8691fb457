"""A reader's process: JSON lines in, JSON lines out, one of each a text; and what a server does
around its parser, for vLLM, SGLang and transformers: request, chunks, end.

In: `{id, raw, tools, chunks?, template?}`. Out: `{id, batch, stream, error}`; batch and stream
are `{content, calls: [{name, arguments}]}` or null, and error is a text or null. The first line out
says that the parser is there: `{id: null, names, error}`.

Each engine answers `names()`, `batch(raw, tools)` and `stream(chunks, tools)` with arguments as
text, exactly as the server would send them. Exceptions of the parser pass: they are the answer of
that one text.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import logging
import os
import sys
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from .standins import StandIns, StandInTokenizer, learn_attributes

Answer = dict[str, Any]
_SERVING = "entrypoints/openai/serving_chat.py", "entrypoints/openai/chat_completion/serving.py"


class _Deltas:
    # The client's side of a stream: content joined, calls by their index.
    def __init__(self) -> None:
        self._content: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}

    def add(self, delta: Any) -> None:
        if delta is None:
            return
        if delta.content:
            self._content.append(delta.content)
        for call in delta.tool_calls or ():
            function = call.function
            if isinstance(function, dict):
                self.call(call.index, function.get("name"), function.get("arguments"))
            elif function is not None:
                self.call(call.index, function.name, function.arguments)

    def text(self, text: str | None) -> None:
        self._content.append(text or "")

    def call(self, index: int, name: str | None, arguments: str | None) -> None:
        call = self._calls.setdefault(index, {"name": "", "arguments": ""})
        call["name"] += name or ""
        call["arguments"] += arguments or ""

    def answer(self) -> Answer:
        calls = [self._calls[index] for index in sorted(self._calls)]
        return {"content": "".join(self._content), "calls": calls}


def _answer(content: str | None, calls: Any) -> Answer:
    named = [{"name": call.name, "arguments": call.arguments or ""} for call in calls or ()]
    return {"content": content or "", "calls": named}


def _arguments_text(call: dict[str, Any], keeps_text: bool = True) -> str:
    arguments = call.get("arguments", {})
    if keeps_text and isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False)


class Vllm:
    """vLLM's server of chat completions, from 0.10 on."""

    real = (
        "tool_parsers", "parser", "reasoning", "envs", "exceptions",
        "entrypoints.openai.tool_parsers",
    )  # fmt: skip

    def __init__(self, tree: Path, parser: str, reasoning: str) -> None:
        StandIns("vllm", tree, self.real).install()
        try:
            manager = importlib.import_module("vllm.tool_parsers")
            chat = importlib.import_module("vllm.entrypoints.openai.chat_completion.protocol")
        except ModuleNotFoundError:
            manager = importlib.import_module("vllm.entrypoints.openai.tool_parsers")
            chat = importlib.import_module("vllm.entrypoints.openai.protocol")
        self._manager = manager.ToolParserManager
        self._request_type = chat.ChatCompletionRequest
        self._parser_name = parser
        self._reasoning = reasoning
        self._is_unified = self._unifies()
        if reasoning and not self._is_unified:
            raise ValueError("this version has no parser of reasoning and calls in one")
        files = [tree / "vllm" / name for name in _SERVING]
        source = "".join(file.read_text("utf-8") for file in files if file.is_file())
        # What the end of a stream did changed twice without a sign in the parsers.
        self._keeps_names = "_create_remaining_args_delta" in source
        self._knows_text = "isinstance(args, str)" in source

    def names(self) -> list[str]:
        return sorted({*self._manager.tool_parsers, *getattr(self._manager, "lazy_parsers", ())})

    def _unifies(self) -> bool:
        # Not before the server left the end of a stream to its parser.
        try:
            base = importlib.import_module("vllm.parser.abstract_parser").DelegatingParser
        except (ModuleNotFoundError, AttributeError):
            return False
        return "finished" in inspect.signature(base.parse_delta).parameters

    @cached_property
    def _unified(self) -> Any:
        # Made with the first text, when plugins have registered their parsers.
        if not self._is_unified:
            return None
        return importlib.import_module("vllm.parser").ParserManager.get_parser(
            tool_parser_name=self._parser_name,
            reasoning_parser_name=self._reasoning or None,
            enable_auto_tools=True,
            model_name="stand-in",
        )

    template: Any = None

    def _new(self, tools: Any) -> tuple[Any, Any, StandInTokenizer]:
        fields = {"model": "stand-in", "messages": [{"role": "user", "content": ""}]}
        if tools:
            fields["tools"] = tools
        request = self._request_type.model_validate(fields)
        # The server asks no parser where a request has no tools; the caller of a reader does.
        request.tool_choice = "auto"
        tokenizer = StandInTokenizer(self.template)
        if self._unified is not None:
            parser = self._unified(tokenizer, request.tools, chat_template_kwargs={})
            parts = ("_tool_parser", "_reasoning_parser")
            inner = [parser, *(getattr(parser, part, None) for part in parts)]
        else:
            kind = self._manager.get_tool_parser(self._parser_name)
            takes_tools = "tools" in inspect.signature(kind.__init__).parameters
            parser = kind(tokenizer, request.tools) if takes_tools else kind(tokenizer)
            inner = [parser]
        for part in inner:
            learn_attributes(tokenizer, part)
        tokenizer.end_of_set_up()
        return parser, request, tokenizer

    def batch(self, raw: str, tools: Any) -> Answer:
        parser, request, tokenizer = self._new(tools)
        if self._unified is not None:
            _, content, calls = parser.parse(
                raw, request, enable_auto_tools=True, model_output_token_ids=tokenizer.encode(raw)
            )
            return _answer(content, calls)
        read = parser.extract_tool_calls(raw, request=request)
        if read.tools_called:
            return _answer(read.content, [call.function for call in read.tool_calls])
        return _answer(read.content or raw, ())

    def stream(self, chunks: Sequence[str], tools: Any) -> Answer:
        parser, request, tokenizer = self._new(tools)
        deltas = _Deltas()
        chunks = tokenizer.whole_markers(chunks)
        before, ids_before = "", list[int]()
        for i, chunk in enumerate(chunks):
            is_last = i == len(chunks) - 1
            ids = tokenizer.encode(chunk)
            if self._unified is not None:
                deltas.add(
                    parser.parse_delta(chunk, ids, request, prompt_token_ids=[], finished=is_last)
                )
                continue
            delta = parser.extract_tool_calls_streaming(
                previous_text=before,
                current_text=before + chunk,
                delta_text=chunk,
                previous_token_ids=ids_before,
                current_token_ids=ids_before + ids,
                delta_token_ids=ids,
                request=request,
            )
            before, ids_before = before + chunk, ids_before + ids
            deltas.add(self._ended(parser, delta) if is_last else delta)
        return deltas.answer()

    def _ended(self, parser: Any, delta: Any) -> Any:
        # The server's last step: arguments that were read and not sent yet take the place of the
        # last delta.
        calls = list((delta.tool_calls if delta is not None else None) or ())
        function = calls[0].function if calls else None
        if function is None or function.arguments is None:
            return delta
        read = parser.prev_tool_call_arr
        if not read and self._keeps_names:
            return delta
        index = max(len(read) - 1, 0)
        expected = _arguments_text(read[index], keeps_text=self._knows_text)
        sent = parser.streamed_args_for_tool[index]
        if function.arguments:
            sent = sent[: -len(function.arguments)]
        kept = next((c for c in calls if c.index == index), None) if self._keeps_names else None
        rest = type(function)(
            name=kept.function.name if kept is not None and kept.function else None,
            arguments=expected.replace(sent, "", 1),
        )
        return type(delta)(tool_calls=[type(calls[0])(index=index, function=rest)])


class Sglang:
    """SGLang's server of chat completions, from 0.5 on."""

    real = ("srt.function_call", "srt.parser", "srt.environ")

    def __init__(self, tree: Path, parser: str, reasoning: str) -> None:
        StandIns("sglang", tree, self.real).install()
        module = importlib.import_module("sglang.srt.function_call.function_call_parser")
        self._parser = module.FunctionCallParser
        self._tool = importlib.import_module("sglang.srt.entrypoints.openai.protocol").Tool
        self._name = parser
        if reasoning:
            raise ValueError("reasoning parsers are of vLLM's readers only")

    def names(self) -> list[str]:
        return sorted(self._parser.ToolCallParserEnum)

    template: Any = None

    def _new(self, tools: Any) -> Any:
        typed = [self._tool.model_validate(tool) for tool in tools]
        if self.template is None:
            return self._parser(typed, self._name)
        return self._parser(typed, self._name, tokenizer=StandInTokenizer(self.template))

    def batch(self, raw: str, tools: Any) -> Answer:
        parser = self._new(tools)
        if not parser.has_tool_call(raw):
            return {"content": raw, "calls": []}
        content, calls = parser.parse_non_stream(raw)
        named = [{"name": call.name or "", "arguments": call.parameters} for call in calls]
        return {"content": content or "", "calls": named}

    def stream(self, chunks: Sequence[str], tools: Any) -> Answer:
        parser = self._new(tools)
        tokenizer = StandInTokenizer()
        learn_attributes(tokenizer, parser.detector)
        tokenizer.end_of_set_up()
        deltas = _Deltas()
        steps = [partial(parser.parse_stream_chunk, c) for c in tokenizer.whole_markers(chunks)]
        if hasattr(parser, "parse_stream_end"):
            steps.append(parser.parse_stream_end)
        for step in steps:
            text, calls = step()
            deltas.text(text)
            for call in calls or ():
                deltas.call(call.tool_index, call.name, call.parameters)
        self._ended(parser.detector, deltas)
        return deltas.answer()

    def _ended(self, detector: Any, deltas: _Deltas) -> None:
        # The server's last step: arguments that were read and not sent yet.
        read = getattr(detector, "prev_tool_call_arr", None) or ()
        streamed = getattr(detector, "streamed_args_for_tool", None) or ()
        index = len(read) - 1
        if not read or index >= len(streamed):
            return
        expected = _arguments_text(read[index])
        if expected.startswith(streamed[index]):
            deltas.call(index, None, expected[len(streamed[index]) :])


class Transformers:
    """The response parser of transformers, from 5.13 on, which reads with a response template."""

    real = ("utils.chat_parsing",)

    def __init__(self, tree: Path, parser: str, reasoning: str) -> None:
        StandIns("transformers", tree, self.real).install()
        self._parser = importlib.import_module("transformers.utils.chat_parsing").ResponseParser
        if reasoning:
            raise ValueError("a response template says itself how reasoning is written")
        self.template: Any = None

    def names(self) -> list[str]:
        return ["response_template"]

    def batch(self, raw: str, tools: Any) -> Answer:
        return self.stream([raw], tools)

    def stream(self, chunks: Sequence[str], tools: Any) -> Answer:
        if not self.template:
            raise ValueError(
                "no response template: the format of the text has none, pass template="
            )
        parser = self._parser(self.template, prefix="", tools=tools or None)
        for chunk in chunks:
            parser.feed(chunk)
        message, _ = parser.finalize()
        calls = []
        for call in message.get("tool_calls") or ():
            function = call.get("function", call)
            # As its server sends them.
            arguments = function.get("arguments")
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments)
            calls.append({"name": function.get("name") or "", "arguments": arguments})
        return {"content": message.get("content") or "", "calls": calls}


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
