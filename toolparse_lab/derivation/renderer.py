"""A chat template from a model's files, and its renderings in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import BadOptions, UnreadableTemplate

# Of one process, which renders all the conversations of one step of a derivation.
SECONDS = 20
MEMORY = 1 << 30  # bytes of address space
OUTPUT = 400_000  # characters of one rendering
_LONGEST = 2_000_000  # characters of a template or of a file with one
_FILES = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")
_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")

TemplateLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
"""Jinja text, the dict of a tokenizer_config.json or chat_template.json, or a path to such."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A conversation as a template writes it. error: the reason why it is not one."""

    text: str = ""
    error: str = ""


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
        if isinstance(x, Mapping):
            return cls._of_mapping(x)
        if isinstance(x, str) and ("{%" in x or "{{" in x or "\n" in x):
            return cls(_checked(x))
        if isinstance(x, (str, os.PathLike)):
            return cls._of_path(Path(x))
        raise _no_template(type(x).__name__)

    @classmethod
    def _of_path(cls, path: Path) -> ChatTemplate:
        """Return the template of a file, or of the first that a folder has.

        Raises BadOptions.
        """
        if path.is_dir():
            files = [path / name for name in _FILES if (path / name).is_file()]
            if not files:
                raise _no_template(str(path))
            template = cls._of_path(files[0])
            config = path / _FILES[-1]
            if files[0] == config or not config.is_file():
                return template
            return cls(template.text, _tokens(_json_of(_text_of(config), config)))
        text = _text_of(path)
        if path.suffix == ".json":
            return cls._of_mapping(_json_of(text, path))
        return cls(_checked(text))

    @classmethod
    def _of_mapping(cls, config: Mapping[str, Any]) -> ChatTemplate:
        """Return the template of a configuration. Raises BadOptions."""
        template = config.get("chat_template")
        if isinstance(template, Sequence) and not isinstance(template, str):
            named = {t.get("name"): t.get("template") for t in template if isinstance(t, Mapping)}
            template = named.get("tool_use") or named.get("default")
        elif isinstance(template, Mapping):
            template = template.get("tool_use") or template.get("default")
        if not isinstance(template, str):
            raise _no_template(", ".join(map(str, list(config)[:20])))
        return cls(_checked(template), _tokens(config))

    def render(self, jobs: Sequence[Mapping[str, Any]], seconds: int = SECONDS) -> list[Rendering]:
        """Return the renderings of these variables, in order.

        seconds: of CPU and of the clock for all of them together. Raises UnreadableTemplate for a
        text that is not a template, and one that takes more time or memory than it may.
        """
        # A template that names the tokens of its tokenizer needs them; any will do.
        defaults = {"bos_token": "", "eos_token": "", **self.tokens}
        request = {
            "template": self.text,
            "jobs": [{**defaults, **job} for job in jobs],
            "output": OUTPUT,
            "seconds": seconds,
            "memory": MEMORY,
        }
        answer = _answer(json.dumps(request), seconds)
        if "error" in answer:
            raise UnreadableTemplate("this is no Jinja template", got=answer["error"])
        return [Rendering(**rendering) for rendering in answer["renderings"]]


def _answer(request: str, seconds: int) -> dict[str, Any]:
    """Return the answer of the process of `sandbox.py` answers.

    Raises UnreadableTemplate for none.
    """
    # Its own environment: a template that broke out would find nothing of ours in it.
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    if "SYSTEMROOT" in os.environ:  # Windows starts no Python without it
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    command = (sys.executable, "-m", f"{__package__}.sandbox")
    try:
        process = subprocess.run(  # noqa: S603 - our own module, and no shell
            command,
            input=request,
            capture_output=True,
            encoding="utf-8",
            timeout=seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _too_much(f"{seconds} s") from None
    if process.returncode != 0:
        raise _too_much(f"{seconds} s of CPU or {MEMORY >> 20} MB")
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def _too_much(limit: str) -> UnreadableTemplate:
    """Return the error of a template that was stopped."""
    return UnreadableTemplate(
        "rendering the template took more than it may", got=limit, expected="a few milliseconds"
    )


def _no_template(got: str) -> BadOptions:
    """Return the error about input that holds no template."""
    return BadOptions(
        "there is no chat template here",
        got=got,
        expected="Jinja text, a tokenizer_config.json or chat_template.json, or a path to one",
    )


def _checked(text: str) -> str:
    """Return the text of a template. Raises BadOptions for one that is far too long."""
    if len(text) > _LONGEST:
        raise BadOptions("a chat template of this size", got=len(text), expected=f"<= {_LONGEST}")
    return text


def _text_of(path: Path) -> str:
    """Return the text of a file. Raises BadOptions if it cannot be read."""
    try:
        if path.stat().st_size > 20 * _LONGEST:  # a tokenizer_config.json lists added tokens
            raise _no_template(f"{path}, a file of {path.stat().st_size} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadOptions("this file cannot be read", got=f"{path}: {error}") from None


def json_file(path: Path) -> Mapping[str, Any]:
    """Return the object of a JSON file. Raises BadOptions if it cannot be read."""
    return _json_of(_text_of(path), path)


def _json_of(text: str, path: Path) -> Mapping[str, Any]:
    """Return the object of a JSON file. Raises BadOptions for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, Mapping):
        raise _no_template(str(path))
    return value


def _tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens of a configuration, each as text."""
    tokens: dict[str, str] = {}
    for name in _TOKENS:
        token = config.get(name)
        if isinstance(token, Mapping):
            token = token.get("content")
        if isinstance(token, str):
            tokens[name] = token
    return tokens
