"""The command line as Markdown: the parts of docs/reference/cli.md that are made from code, and
the page of all options, which the site alone has."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields

from scripts.tables import write_table
from toolparse_lab.cli.parser import EXIT_CODES, build_parser
from toolparse_lab.cli.verbs import GROUPS, groups
from toolparse_lab.experiments.plan_file import KEYS
from toolparse_lab.runner.exchange.types import Model
from toolparse_lab.runner.settings import MODEL_KEYS, SETTINGS


def command_parts() -> dict[str, str]:
    """Part of the page -> its Markdown."""
    parts = {
        "exit codes": write_table(
            ("code", "meaning"), [(f"`{c}`", said) for c, said in EXIT_CODES.items()]
        ),
        "settings": write_table(
            ("setting", "environment variable", "default", "meaning"),
            [
                (f"`{s.name}`", f"`{s.variable}`", _shown(s.default), s.meaning)
                for s in SETTINGS.values()
            ],
        ),
        "model settings": write_table(
            ("key", "default"), [(f"`{name}`", _default(name)) for name in MODEL_KEYS]
        ),
        "plan keys": write_table(
            ("key", "meaning"), [(f"`{key}`", said) for key, said in KEYS.items()]
        ),
        "commands": _commands({verb for group in GROUPS.values() for verb in group}),
    }
    return {name: "\n".join(lines) for name, lines in parts.items()}


def extension_parts(extension: str) -> dict[str, str]:
    """Part of an extension's page -> its Markdown; nothing for one without verbs."""
    names = {
        verb
        for verb, (module, _) in groups().get("extensions", {}).items()
        if f".extensions.{extension}." in module
    }
    return {"commands": "\n".join(_commands(names))} if names else {}


def _commands(names: Collection[str]) -> list[str]:
    rows = [
        (f"`toolparse {name}`", str(command.description), f"`{examples[0]}`")
        for name, command, examples in _verbs()
        if name in names
    ]
    return write_table(("command", "purpose", "example"), rows)


def _shown(value: object) -> str:
    return "–" if value is None else f"`{value}`"


def _default(name: str) -> str:
    defaults: Mapping[str, object] = {f.name: f.default for f in fields(Model)}
    return "must be there" if name == "name" else _shown(defaults.get(name))


def _verbs() -> Iterator[tuple[str, argparse.ArgumentParser, list[str]]]:
    """Yield (name, parser, examples) of each verb."""
    parser = build_parser()
    (sub,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in sub.choices.items():
        yield name, command, [line.strip() for line in str(command.epilog).splitlines()[1:]]


def options_page() -> str:
    """Every verb with its examples and options."""
    lines = ["# Options of the command line"]
    for name, command, examples in _verbs():
        options = [
            a
            for a in command._actions
            if not isinstance(a, argparse._HelpAction) and a.help is not argparse.SUPPRESS
        ]
        options.sort(key=lambda a: (bool(a.option_strings), "--config" in a.option_strings))
        lines += ["", f"## `toolparse {name}`", "", str(command.description), ""]
        lines += ["```text", *examples, "```"]
        if options:
            lines += ["", *write_table(("argument", "meaning"), [_option(a) for a in options])]
    return "\n".join(lines) + "\n"


def _option(action: argparse.Action) -> tuple[str, str]:
    choices = ",".join(map(str, action.choices)) if action.choices else ""
    shown = str(action.metavar or (f"{{{choices}}}" if choices else action.dest.upper()))
    if not action.option_strings:
        name = action.metavar or action.dest
        return f"`[{name}]`" if action.nargs == "?" else f"`{name}`", str(action.help)
    value = "" if action.nargs == 0 else f" {shown}"
    return f"`{action.option_strings[0]}{value}`", str(action.help)
