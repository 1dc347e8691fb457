"""Readers by name: `vllm==0.33.0:hermes`, `sglang==0.5.23:qwen25`, `hf:response_template`."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.errors import BadOptions, SetupError, UnknownName, near
from ...entry.foreign.protocol import AnyProtocol, ForeignProtocol
from ...evals.parsers.outside import foreign_parser
from ...evals.parsers.outside import parser_of as plain_reader
from .command import TIMEOUT, CommandReader
from .names import PREFIXES, is_outside_name
from .packages import PACKAGES, installed_version, python_of_readers, reader_added
from .process import SECONDS, Launch, outside_parser, worker_command

_NAME = re.compile(
    r"(?P<package>\w[\w.-]*)(==(?P<version>[^:+]+))?:(?P<parser>[^+]+)(\+(?P<reasoning>.+))?"
)
_FORM = "PACKAGE==VERSION:PARSER, such as vllm==0.33.0:hermes or sglang==0.5.23:qwen25"
OF_THE_TEMPLATE = "response_template"
"""The one parser of transformers."""


def reader(
    x: Any = None,
    *,
    name: str = "",
    version: str = "",
    timeout: float | None = None,
    python: str | os.PathLike[str] = "",
    command: Sequence[str | os.PathLike[str]] | None = None,
    template: Any = None,
    plugin: str = "",
) -> AnyProtocol:
    """Return a reader: a parser for recorded answers, to be passed where a protocol is.

    Args:
        x: the name of a parser of vLLM, SGLang or transformers that `toolparse reader add` has
            fetched, such as "vllm==0.33.0:hermes". Or a command as a list of arguments, which gets
            the text on its standard input as UTF-8, finds the tools in the file that
            `TOOLPARSE_TOOLS` names, and writes the calls to its standard output as JSON; no shell
            is involved. Or a protocol, or a function of the raw text (and the tools) that returns
            calls.
        name, version: its name in frames and diffs. By default a command's program and a digest of
            that file, and a function's own name and the version of its package.
        timeout: seconds per text, by default 10 for a command and 2 for a process that stays.
        python: for a name, the interpreter in which the package is installed.
        command: a program that is started once and answers one JSON line a text, in place of x:
            `{"id", "raw", "tools", "chunks"?}` in, `{"id", "batch": {"content", "calls": [{"name",
            "arguments"}]}, "stream", "error"}` out, arguments as text.
        template: a response template, for a parser that reads with one, or a function of the text
            and the tools that returns one.
        plugin: a module that registers more of a server's parsers, such as
            "toolparse_lab.extensions.serve.vllm".

    Raises BadOptions for anything that is none of these, UnknownProtocol, UnknownName for a parser
    that the package does not have, and SetupError for a package that was not added.
    """
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0
    ):
        raise BadOptions("timeout is a number of seconds", got=timeout, expected="above 0")
    if command is not None:
        if x is not None or not _is_command(command):
            raise BadOptions(
                "command= is a program with its arguments, and comes alone",
                got=x if x is not None else command,
                expected='such as command=["node", "parser.js"]',
            )
        words = [os.fspath(word) for word in command]
        return command_reader(words, name=name, version=version, seconds=timeout or SECONDS)
    if is_outside_name(x):
        outside = outside_reader(
            x,
            python=os.fspath(python),
            template=template,
            plugin=plugin,
            seconds=timeout or SECONDS,
        )
        return replace(outside, id=name or outside.id, version=version or outside.version)
    if python or plugin or template is not None:
        raise BadOptions(
            "python=, plugin= and template= are for parsers of servers",
            got=x,
            expected="a name such as vllm==0.33.0:hermes",
        )
    if _is_command(x):
        subject = CommandReader(tuple(map(os.fspath, x)), float(timeout or TIMEOUT))
        own_name, own_version = subject.identity()
        return foreign_parser(subject, name or own_name, version or own_version)
    return plain_reader(x, name=name, version=version)


def _is_command(x: Any) -> bool:
    is_list = isinstance(x, (list, tuple)) and bool(x)
    return is_list and all(isinstance(word, (str, os.PathLike)) for word in x)


def outside_reader(
    name: str, *, python: str = "", template: Any = None, plugin: str = "", seconds: float = SECONDS
) -> ForeignProtocol:
    """Return the reader of a name. Its process starts with the first text.

    Args:
        name: the package with its version, a colon, and the name of its parser; after a `+` the
            name of a reasoning parser, which vLLM's newer versions run before it. Without a
            version it is the newest that was added. `hf:response_template` is the parser of
            transformers.
        python: the path of an interpreter in which the package is installed, instead of one that
            was added.
        template: a response template, for parsers that read with one, or a function of the text
            and the tools that returns one.
        plugin: a module that registers more parsers when it is imported, as for vLLM's flag
            `--tool-parser-plugin`. It is imported in the process, from where it is importable here.
        seconds: that a text may take.

    Raises SetupError if the package was not added, or is not installed there, and UnknownName for
    a package or a parser that there is not, and BadOptions for transformers without a template.
    """
    found = _NAME.fullmatch(name)
    if found is None or found["package"] not in PREFIXES:
        raise UnknownName(
            "no reader of this name",
            got=name,
            expected=_FORM,
            hint="readers that were added: toolparse reader list",
            code="unknown-reader",
        )
    package = PACKAGES[PREFIXES[found["package"]]]
    wanted, parser, reasoning = found["version"] or "", found["parser"], found["reasoning"] or ""
    if python:
        version, tree = installed_version(python, package)
        if wanted and wanted != version:
            raise SetupError(
                f"another version of {package.name} is installed there",
                got=version,
                expected=wanted,
                hint=f"name that one: {package.name}=={version}:{parser}",
                code="wrong-version",
            )
    else:
        added = reader_added(package.name, wanted)
        version, tree, python = added.version, added.folder, python_of_readers()
        if package.engine != "hf" and not plugin and parser not in added.parsers:
            raise UnknownName(
                f"{added} has no parser of this name",
                got=parser,
                expected=", ".join(added.parsers),
                hint=near(parser, added.parsers),
                code="unknown-parser",
            )
    # The name says the version that reads, so that a recorded reading does.
    name = f"{found['package']}=={version}:{name.partition(':')[2]}"
    settings = {"engine": package.engine, "tree": tree, "parser": parser, "reasoning": reasoning}
    if plugin:
        settings["plugin"] = plugin
        settings["path"] = json.dumps([entry for entry in sys.path if entry])
    if package.engine == "hf":
        settings["parser"] = OF_THE_TEMPLATE
        if template is None:
            raise BadOptions(
                "the parser of transformers reads with a response template",
                got=name,
                expected="template=, the dict of one or a function of the text and the tools",
            )
    choose = template
    if template is not None and not callable(template):
        choose = _Fixed(json.dumps(template))
    launch = Launch(
        name,
        version,
        worker_command(python),
        tuple(settings.items()),
        float(seconds),
        template=choose,
    )
    return ForeignProtocol(
        name, outside_parser(launch), title=f"{parser} of {package.name} {version}", version=version
    )


def command_reader(
    command: Sequence[str], *, name: str = "", version: str = "", seconds: float = SECONDS
) -> ForeignProtocol:
    """Return the reader of a program that speaks the lines of `worker`. It is started once."""
    launch = Launch(
        name or str(command[-1]), version, tuple(map(str, command)), None, float(seconds)
    )
    return ForeignProtocol(
        launch.name, outside_parser(launch), title="a program of one's own", version=version
    )


@dataclass(frozen=True)
class _Fixed:
    # A response template for every text. As JSON, so that the launch can be hashed.
    template: str

    def __call__(self, raw: str, tools: Any) -> Any:
        return json.loads(self.template)
