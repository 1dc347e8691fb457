"""The parser of the command line.

A verb's module loads when its verb is chosen, so that `toolparse --help` and `toolparse parse` pay
for no module of another verb. The names and the one-line helps of all verbs come from the table
`VERBS`.
"""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol, cast

from .. import __version__
from ..core.errors import near
from ..core.values.printable import printable
from .verbs import GROUPS, VERBS

EXIT_CODES = {
    0: "all is well",
    1: "a gate failed: a threshold is not kept, something has become worse or nobody can tell, or "
    "`parse` found a call that may not be executed",
    2: "wrong usage, or an input that cannot be used",
    3: "incomplete: a provider, the disk or this program failed, or a limit was reached; what was "
    "recorded is kept",
    130: "interrupted by Ctrl-C or SIGTERM; what was recorded is kept",
}


class Verb(Protocol):
    """The contract of a module in `verbs/`."""

    EXAMPLES: tuple[str, ...]
    """Command lines that the verb's help shows."""

    def add_arguments(self, command: argparse.ArgumentParser) -> None:
        """Declare the verb's arguments and flags."""

    def run(self, options: Any) -> int:
        """Do the work and return the exit code."""


class VerbParser(argparse.ArgumentParser):
    """The parser of one verb: empty until `load` has imported the verb's module."""

    loaded = False

    def load(self) -> None:
        """Take arguments and examples over from the verb's module.

        A second call does nothing.
        """
        if self.loaded:
            return
        self.loaded = True
        # `prog` is "toolparse serve-local"; a module's name has no hyphen.
        name = self.prog.rpartition(" ")[2].replace("-", "_")
        verb = cast(Verb, importlib.import_module(f".verbs.{name}", __package__))
        verb.add_arguments(self)
        self.set_defaults(run_verb=verb.run)
        title = "example:" if len(verb.EXAMPLES) == 1 else "examples:"
        self.epilog = "\n".join([title, *(f"  {example}" for example in verb.EXAMPLES)])

    # argparse hands the words behind a verb to this method of the verb's parser.
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words of this verb, its module loaded."""
        self.load()
        for word in args or ():
            # Python 3.11's argparse makes a list without a text of this.
            if word.startswith("--") and word.endswith("=--"):
                self.error(f"argument {word[:-3]}: -- is no value")
        return super().parse_known_args(args, namespace)


class JobParser(argparse.ArgumentParser):
    """The parser of the program, whose help groups the verbs by job."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words of a command. A word too many is an error of its verb."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._refuse(unknown, options.command)
        return options

    def _refuse(self, words: Sequence[str], verb: str | None) -> None:
        """Leave with the usage of the verb, and with the option that was likely meant."""
        # The program's own parser has options too, such as --version.
        parser = self if verb is None else self._parser_of(verb)
        options = [text for action in parser._actions for text in action.option_strings]
        hints = [near(word.partition("=")[0], options, 1) for word in words if word[:1] == "-"]
        hint = next((f"; {hint}" for hint in hints if hint), "")
        parser.error(f"unrecognized arguments: {' '.join(map(printable, words))}{hint}")

    def error(self, message: str) -> NoReturn:
        """Leave with the usage. A command that does not exist is named with the likely one."""
        unknown = re.match(r"argument COMMAND: invalid choice: '(.*?)' \(", message)
        if unknown:
            hint = near(unknown[1], VERBS) or "`toolparse --help` lists the commands"
            message = f"there is no command {unknown[1]!r}; {hint}"
        super().error(message)

    def format_help(self) -> str:
        """Return the help: usage, a section per job, options and exit codes."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        verbs = {action.dest: action for action in self._verbs()}
        for job, names in GROUPS.items():
            formatter.start_section(job)
            formatter.add_arguments([verbs[name] for name in names])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments(self._optionals._group_actions)
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _parser_of(self, verb: str) -> argparse.ArgumentParser:
        """Return the parser of a verb."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                parser: argparse.ArgumentParser = action.choices[verb]
                return parser
        return self

    def _verbs(self) -> Sequence[argparse.Action]:
        """Return an action per verb, as argparse makes them for its help."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return list(action._get_subactions())
        return []


def lazy_parser() -> argparse.ArgumentParser:
    """Return a parser that knows every verb and loads only the one that is chosen."""
    return _parser()[0]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with the arguments of every verb, as the documentation needs it."""
    parser, verbs = _parser()
    for verb in verbs:
        verb.load()
    return parser


def _parser() -> tuple[argparse.ArgumentParser, Sequence[VerbParser]]:
    """Return the parser of the program, and those of its verbs, which are not loaded yet."""
    codes = (f"{code} {re.split('[:;,]', meaning)[0]}" for code, meaning in EXIT_CODES.items())
    parser = JobParser(
        prog="toolparse",
        description="Evaluate and debug how text of language models becomes exact tool calls.",
        epilog=f"Exit codes: {'; '.join(codes)}. `toolparse COMMAND --help` shows an example of "
        "each command.",
    )
    parser.add_argument("--version", action="version", version=f"toolparse_lab {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=VerbParser)
    verbs = [
        commands.add_parser(
            name,
            help=sentence,
            description=f"{sentence[0].upper()}{sentence[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for name, sentence in VERBS.items()
    ]
    return parser, verbs
