"""A chat template from a model's files, and its renderings in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from ...core.errors import BadOptions, UnreadableTemplate

# Of one process, which renders all the conversations of one step of a derivation.
SECONDS = 20
MEMORY = 1 << 30  # bytes of address space
OUTPUT = 400_000  # characters of one rendering
_LONGEST = 2_000_000  # characters of a template or of a file with one
_FILES = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")
_SUFFIXES = (".jinja", ".jinja2", ".json", ".txt")
_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")

TemplateLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
"""Jinja text, the dict of a tokenizer_config.json or chat_template.json, or a path to such."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A conversation as a template writes it."""

    text: str = ""
    error: str = ""  # the reason why it is not one
    line: int | None = None  # of the template that failed
    # What each line wrote, set and tested (see `sandbox.Tracer`), if the rendering was traced.
    events: Sequence[tuple[str, int, int, str]] = ()


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """The text of a chat template, and the special tokens it may name."""

    text: str
    tokens: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, x: TemplateLike) -> ChatTemplate:
        """Return the template that `x` holds.

        x: Jinja text, the dict of a tokenizer_config.json or chat_template.json, the path of such a
        file, of a .jinja file, or of a folder with one of them. Of several named templates that for
        tools is taken. Raises BadOptions for input that holds none, and where a file cannot be
        read.
        """
        other: Any = x
        if isinstance(x, Mapping):
            return cls._of_mapping(x)
        if isinstance(x, str) and not x.strip():
            raise _no_template("an empty text")
        if isinstance(x, str) and ("{%" in x or "{{" in x or "\n" in x):
            return cls(_checked(x))
        if isinstance(other, (str, os.PathLike)):
            return cls._of_path(Path(other))
        advice = None
        if isinstance(getattr(other, "chat_template", None), (str, Mapping)):
            advice = "pass its chat_template"
        elif isinstance(other, bytes):
            advice = "decode the bytes first"
        elif isinstance(other, Sequence):
            named = '{"chat_template": [{"name": …, "template": …}]}'
            advice = f"pass one template, or named ones as {named}"
        raise _no_template(type(x).__name__, advice)

    @classmethod
    def _of_path(cls, path: Path) -> ChatTemplate:
        if is_folder(path):
            files = [path / name for name in _FILES if (path / name).is_file()]
            if not files:
                raise _no_template(
                    f"the folder {path} without {', '.join(_FILES[:-1])} and {_FILES[-1]}"
                )
            template = cls._of_path(files[0])
            config = path / _FILES[-1]
            if files[0] == config or not config.is_file():
                return template
            return cls(template.text, _tokens(_json_of(_text_of(config), config)))
        text = _text_of(path)
        if path.suffix == ".json":
            return cls._of_mapping(_json_of(text, path), path)
        if not text.strip():
            raise _no_template(f"{path}, which is empty")
        return cls(_checked(text))

    @classmethod
    def _of_mapping(cls, config: Mapping[str, Any], path: Path | None = None) -> ChatTemplate:
        template = config.get("chat_template")
        if isinstance(template, Sequence) and not isinstance(template, (str, bytes)):
            pairs = [(t.get("name"), t.get("template")) for t in template if isinstance(t, Mapping)]
            template = {name: text for name, text in pairs if isinstance(name, str)}
        if isinstance(template, Mapping):
            names = ", ".join(map(str, template)) or "none"
            template = template.get("tool_use") or template.get("default")
            if not isinstance(template, str):
                raise _no_template(
                    f"named templates: {names}", "pass the text of the one that writes calls"
                )
        if not isinstance(template, str):
            keys = ", ".join(map(str, list(config)[:20])) or "no keys"
            is_other = "chat_template" in config
            value = f", chat_template being {type(template).__name__}" if is_other else ""
            where = f"{path} with " if path else ""
            files = (
                [path.parent / name for name in _FILES[:-1] if path.name != name] if path else []
            )
            other = next((file for file in files if file.is_file()), None)
            advice = f"pass {other}, or the folder" if other else None
            raise _no_template(f"{where}{keys}{value}", advice)
        return cls(_checked(template), _tokens(config))

    def render(
        self,
        jobs: Sequence[Mapping[str, Any]],
        seconds: int = SECONDS,
        flips: Sequence[int | None] | None = None,
    ) -> list[Rendering]:
        """Return the renderings of these variables, in order.

        seconds: of CPU and of the clock for all of them together. flips: for traced renderings, one
        for each job: the test that is to answer the opposite, counted from 0, or None. Raises
        UnreadableTemplate for a text that is not a template, and one that takes more time or memory
        than it may.
        """
        # A template that names the tokens of its tokenizer needs them; any will do.
        defaults = {"bos_token": "", "eos_token": "", **self.tokens}
        request = {
            "template": self.text,
            "jobs": [{**defaults, **job} for job in jobs],
            "output": OUTPUT,
            "seconds": seconds,
            "memory": MEMORY,
            "flips": flips,
        }
        with one_renderer() as renderer:
            answer = renderer.answer(json.dumps(request), seconds)
        error = answer.get("error")
        if error is None:
            return [Rendering(**rendering) for rendering in answer["renderings"]]
        if error.startswith("MemoryError"):
            raise _too_much(f"{MEMORY >> 20} MB")
        raise UnreadableTemplate(
            "this is no Jinja template",
            got=error,
            expected="a template as apply_chat_template of transformers takes it",
            hint="take the text as it is in the model's own files",
        )


class _Renderer:
    # A process of sandbox.py, which answers one request after the other.

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._turn = threading.Lock()

    def answer(self, request: str, seconds: int) -> dict[str, Any]:
        with self._turn:
            process = self._process = self._process or _started()
            requests, answers = cast("tuple[IO[str], IO[str]]", (process.stdin, process.stdout))
            clock = threading.Timer(seconds, process.kill)
            clock.start()
            try:
                requests.write(request + "\n")
                requests.flush()
                line = answers.readline()
            except OSError:  # it ended while it was written to
                line = ""
            except BaseException:  # Ctrl-C: its answer would be taken for that to another request
                self._close()
                raise
            finally:
                clock.cancel()
            if not line.endswith("\n"):
                self._close()
                raise _too_much(f"{seconds} s or {MEMORY >> 20} MB")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        with self._turn:
            self._close()

    def _close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            # Waits, and closes its pipes; what it did not read cannot be written any more.
            with suppress(BrokenPipeError), process:
                pass


_SHARED: ContextVar[_Renderer | None] = ContextVar("renderer", default=None)


@contextmanager
def one_renderer() -> Iterator[_Renderer]:
    """Let one process make all renderings of the block.

    To start a process takes far longer than to render a conversation.
    """
    if (renderer := _SHARED.get()) is not None:
        yield renderer
        return
    renderer = _Renderer()
    token = _SHARED.set(renderer)
    try:
        yield renderer
    finally:
        _SHARED.reset(token)
        renderer.close()


def _started() -> subprocess.Popen[str]:
    # Its own environment: a template that broke out would find nothing of ours in it.
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    if "SYSTEMROOT" in os.environ:  # Windows starts no Python without it
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    # As a file, not as a module: with its package it would take three times as long to start.
    command = (sys.executable, "-P", str(Path(__file__).with_name("sandbox.py")))
    return subprocess.Popen(  # noqa: S603 - our own module, and no shell
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        encoding="utf-8", env=environment,
    )  # fmt: skip


def _too_much(limit: str) -> UnreadableTemplate:
    return UnreadableTemplate(
        "rendering the template took more than it may",
        got=limit,
        expected="a few milliseconds",
        hint="look for loops without an end, and for texts that are repeated",
    )


def _no_template(got: str, advice: str | None = None) -> BadOptions:
    return BadOptions(
        "there is no chat template here",
        got=got,
        expected="Jinja text, a tokenizer_config.json or chat_template.json, the path of such a "
        "file, of a .jinja file, or of a model's folder",
        hint=advice,
    )


def is_folder(path: Path) -> bool:
    # False also for a path that no file can have.
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _checked(text: str) -> str:
    if len(text) > _LONGEST:
        raise BadOptions(
            "this chat template is too long",
            got=f"{len(text):,} characters",
            expected=f"at most {_LONGEST:,}",
            hint="pass the template alone, without other files of the model",
        )
    return text


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > 20 * _LONGEST:  # a tokenizer_config.json lists added tokens
            raise _no_template(f"{path}, a file of {path.stat().st_size} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        short = str(path) if len(str(path)) <= 200 else f"{str(path)[:200]}…"
        is_missing = isinstance(error, FileNotFoundError) and not path.is_absolute()
        advice = (
            "for a model's name, download its chat_template.jinja or tokenizer_config.json, or "
            "call tp.protocol_for"
        )
        raise BadOptions(
            "this file cannot be read",
            got=f"{short}: {reason}",
            expected="the path of a file with text in UTF-8, or the template itself",
            hint=advice if is_missing and path.suffix not in _SUFFIXES else None,
        ) from None


def json_file(path: Path) -> Mapping[str, Any]:
    return _json_of(_text_of(path), path)


def _json_of(text: str, path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_template(f"{path}, which is no JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise _no_template(f"{path} with a {type(value).__name__} in it")
    return value


def _tokens(config: Mapping[str, Any]) -> dict[str, str]:
    tokens = {name: config.get(name) for name in _TOKENS}
    texts = {k: t.get("content") if isinstance(t, Mapping) else t for k, t in tokens.items()}
    return {name: text for name, text in texts.items() if isinstance(text, str)}
