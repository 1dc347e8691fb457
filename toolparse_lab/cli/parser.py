"""The parser of the command line.

A verb's file is imported when the verb is chosen, so `toolparse --help` and `toolparse parse` pay
for no other. Names and one-line helps come from the tables that `verbs.groups` joins.
"""

from __future__ import annotations

import argparse
import importlib
import re
from typing import Any, NoReturn

from .. import __version__
from ..core.errors import near
from ..core.values.printable import printable
from .options import DECLARED
from .verbs import groups, verbs

EXIT_CODES = {
    0: "all is well",
    1: "a gate failed: a threshold is not kept, something has become worse or nobody can tell, or "
    "`parse` found a call that may not be executed",
    2: "wrong usage, or an input that cannot be used",
    3: "incomplete: a provider, the disk or this program failed, or a limit was reached; what was "
    "recorded is kept",
    130: "interrupted by Ctrl-C; what was recorded is kept",
    143: "ended by SIGTERM; what was recorded is kept",
}


class VerbParser(argparse.ArgumentParser):
    """The parser of one verb: empty until `load` has imported the verb's file."""

    loaded = False

    def load(self) -> None:
        """Take over what the verb's file declares. A second call does nothing."""
        if self.loaded:
            return
        self.loaded = True
        name = self.prog.rpartition(" ")[2]  # `prog` is "toolparse serve-local"
        module, _ = verbs()[name]
        importlib.import_module(module)
        if name not in DECLARED:
            raise LookupError(f"{module}, which is to declare `{name}`, does not")
        DECLARED[name].declare(self)

    # argparse hands the words after a verb to this method of the verb's parser.
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words of this verb, its file imported."""
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
            # The program's own parser has options too, such as --version.
            verb: argparse.ArgumentParser = self
            if options.command is not None:
                verb = self._subparsers_action().choices[options.command]
            flags = [text for action in verb._actions for text in action.option_strings]
            hints = [near(word.partition("=")[0], flags, 1) for word in unknown if word[:1] == "-"]
            hint = next((f"; {hint}" for hint in hints if hint), "")
            verb.error(f"unrecognized arguments: {' '.join(map(printable, unknown))}{hint}")
        return options

    def error(self, message: str) -> NoReturn:
        """Leave with the usage. A command that does not exist is named with the likely one."""
        unknown = re.match(r"argument COMMAND: invalid choice: '(.*?)' \(", message)
        if unknown:
            hint = near(unknown[1], verbs()) or "`toolparse --help` lists the commands"
            message = f"there is no command {unknown[1]!r}; {hint}"
        super().error(message)

    def format_help(self) -> str:
        """Return the help: usage, a section per job, options and exit codes."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        actions = {a.dest: a for a in self._subparsers_action()._get_subactions()}
        for job, names in groups().items():
            formatter.start_section(job)
            formatter.add_arguments([actions[name] for name in names])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments(self._optionals._group_actions)
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _subparsers_action(self) -> Any:
        return next(a for a in self._actions if isinstance(a, argparse._SubParsersAction))


def lazy_parser() -> JobParser:
    """Return a parser that knows every verb and loads only the one that is chosen."""
    codes = (f"{code} {re.split('[:;,]', meaning)[0]}" for code, meaning in EXIT_CODES.items())
    parser = JobParser(
        prog="toolparse",
        description="Evaluate and debug how text of language models becomes exact tool calls.",
        epilog=f"Exit codes: {'; '.join(codes)}. `toolparse COMMAND --help` shows an example of "
        "each command.",
    )
    parser.add_argument("--version", action="version", version=f"toolparse_lab {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=VerbParser)
    for name, (_, sentence) in verbs().items():
        commands.add_parser(
            name,
            help=sentence,
            description=f"{sentence[0].upper()}{sentence[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    return parser


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with the arguments of every verb, as the documentation needs it."""
    parser = lazy_parser()
    for verb in parser._subparsers_action().choices.values():
        verb.load()
    return parser
