"""One trial to carry elsewhere: as a test that pins its reading, as Python that reads its answer
again, as the curl of its request, and as HTML.
"""

# How it works. A test's name ends in a digest of everything that its reading depends on (text,
# protocol, tools, options, tool choice), so the same answer under the same reading has the same
# name wherever it is written. A file is changed by lines, never written anew from its syntax tree:
# what somebody else put there, comments and layout included, stays.

from __future__ import annotations

import ast
import hashlib
import json
import pprint
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadOptions, StoreError
from ...core.files import replace_file
from ...core.toolspec import ToolSpec
from ...core.types import DEFAULT_OPTIONS, Blame, ParseResult
from ...runner.exchange.redaction import redact_named
from ...views import render_page, render_result
from ...views.blame import render_blame
from ...views.html import standalone
from ...views.rows import Fault
from ...views.templating import Markup, render
from .match import match_calls, numbered

if TYPE_CHECKING:
    from ...runner.exchange.types import Completion
    from ..cases.case import Case
    from .score import Score

_HEAD = '"""Pins how recorded answers are read; see toolparse_lab.integrations.testing."""\n'
_MODULE = "toolparse_lab.integrations.testing"
_IMPORT = f"from {_MODULE} import assert_parses\n"
_WIDTH = 100
_LONGEST_SLUG = 60
_OPENAI = "https://api.openai.com/v1"
# What litellm is told, and no endpoint.
_OURS = ("timeout", "api_base", "api_key", "extra_headers", "headers", "max_retries", "num_retries")


class Exports:
    """What a trial can be written as, for anything that has the fields of one."""

    __slots__ = ()
    trial_id: str
    case: Case
    model: str
    arm: str
    levels: Mapping[str, Any]
    completion: Completion | None
    result: ParseResult | None
    score: Score | None
    missing_reason: str

    if TYPE_CHECKING:

        @property
        def blame(self) -> Blame: ...

    def as_pytest(self, path: str | Path) -> Path:
        """Write this trial as a test that pins everything read from its answer, into a new pytest
        file or to the end of one that is there. Returns its path. Writing it again changes nothing.
        See `exports.write_tests`.
        """
        return write_tests([self], path)

    def as_python(self) -> str:
        """Return Python source that reads this answer again and prints the outcome.

        Raises BadOptions if it was never parsed.
        """
        return parsing_source(_parsed(self, "to read"), self.levels.get("tool_choice", "auto"))

    def as_html(self, path: str | Path) -> Path:
        """Write the static view of this answer as one self-contained page, and return its path.
        Raises BadOptions if it was never parsed.
        """
        if self.result is None:
            raise BadOptions("this trial was never parsed, so there is no view", got=self.trial_id)
        title = f"{self.case.id} · {self.model} · {_outcome_of(self)}"
        return replace_file(path, [render_page(title, render_result(self.result))])

    def _repr_html_(self) -> str:
        result, target = self.result, self.case.target
        faults = faults_of(result, target, self.case.tools) if result and target is not None else []
        completion = self.completion
        chunks = [c.text for c in completion.chunks if c.kind == "content"] if completion else ()
        blame = render_blame(
            self.blame,
            result.raw if result else completion.raw if completion else "",
            result.tokens if result else None,
            chunks,
        )
        html = render(
            "evals/scoring/templates/trial.html",
            title=f"{self.case.id} · {self.model} · {self.arm}",
            outcome=str(self.score or self.missing_reason),
            blame=Markup(blame),
            answer=Markup(render_result(result, faults)) if result else "",
        )
        return standalone(html)


def write_tests(trials: Iterable[Exports], path: str | Path) -> Path:
    """Write trials as tests into a file of pytest, or add them to it: a function for each, which
    pins everything read from the recorded answer. Returns the file's path.

    The same answer under the same reading has one test: writing it again replaces the pinned values
    where it reads otherwise now. Raises BadOptions for a trial that was never parsed and for a file
    that is not Python, and StoreError.
    """
    file = Path(path)
    blocks = dict(_block(trial) for trial in trials)
    try:
        text = file.read_text("utf-8") if file.exists() else _HEAD
    except (OSError, UnicodeDecodeError) as e:
        raise StoreError("the file of tests cannot be read", got=f"{file}: {e}") from None
    new_text = _joined(text, blocks, file)
    compile(new_text, str(file), "exec")  # whatever was there and was added, it is Python
    # A file that would not change keeps its time of change, too.
    if file.exists() and new_text == text:
        return file

    try:
        return replace_file(file, [new_text])
    except OSError as e:
        raise StoreError("the test cannot be written", got=f"{file}: {e.strerror}") from None


def _joined(text: str, blocks: dict[str, str], file: Path) -> str:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as e:
        raise BadOptions(
            "tests are added to a file of Python", got=f"{file}: {e}", hint="name another file"
        ) from None
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)  # as Python counts them: a form feed ends none
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}

    # From the end of the file to its beginning, so that line numbers above stay what they are. Of
    # two functions of one name, Python runs the last.
    for node in sorted(functions.values(), key=lambda n: n.lineno, reverse=True):
        block = blocks.get(node.name)
        # By their trees, since somebody may have laid the test out anew.
        if block is not None and ast.dump(node) != ast.dump(ast.parse(block).body[0]):
            lines[node.lineno - 1 : node.end_lineno] = [block]

    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in imports if node.module == _MODULE for alias in node.names}
    if "assert_parses" not in names:
        start = 0  # after the docstring and the imports of the future
        for i, statement in enumerate(tree.body):
            value = statement.value if isinstance(statement, ast.Expr) and i == 0 else None
            module = statement.module if isinstance(statement, ast.ImportFrom) else None
            if not isinstance(value, ast.Constant) and module != "__future__":
                break
            start = statement.end_lineno or start
        space = [] if start == 0 else ["\n"]
        lines[start:start] = [*space, _IMPORT]

    added = [f"\n\n{block}" for name, block in blocks.items() if name not in functions]
    if added and lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join([*lines, *added])


def _outcome_of(trial: Exports) -> str:
    return trial.score.outcome if trial.score is not None else "not judged"


def _parsed(trial: Exports, for_what: str) -> ParseResult:
    if trial.result is None:
        message = f"this trial was never parsed, so there is nothing {for_what}"
        raise BadOptions(message, got=trial.trial_id)
    return trial.result


def _block(trial: Exports) -> tuple[str, str]:
    result, choice = _parsed(trial, "to pin"), trial.levels.get("tool_choice", "auto")
    # Equal subjects give equal names, wherever the test is written.
    json_text = json.dumps(_subject(result, choice), sort_keys=True, default=str)
    digest = hashlib.sha256(json_text.encode()).hexdigest()[:8]
    slug = re.sub(r"[^a-z0-9]+", "_", trial.case.id.lower()).strip("_")[:_LONGEST_SLUG]
    name = f"test_{slug or 'answer'}_{digest}"
    words = f"case {trial.case.id!r}, model {trial.model!r}, {_outcome_of(trial)}"
    return name, pinning_test(name, result, words, choice)


def parsing_source(result: ParseResult, choice: Any = "auto") -> str:
    """Return Python source that parses the text of a result again and prints what came of it."""
    return (
        "import toolparse_lab as tp\n\n\ndef read():\n    return tp.parse(\n"
        f"{_arguments(_subject(result, choice))}    )\n\n\nresult = read()\nprint(result.why())\n"
    )


def pinning_file(
    name: str, result: ParseResult, words: str, target: Sequence[Mapping[str, Any]] | None
) -> str:
    """Return the source of a file with one test, which holds a result to a target, or, if that is
    None, pins its calls. See `pinning_test`.
    """
    return f"{_IMPORT}\n\n{pinning_test(name, result, words, target=target)}"


def pinning_test(
    name: str,
    result: ParseResult,
    words: str,
    choice: Any = "auto",
    target: Sequence[Mapping[str, Any]] | None = None,
) -> str:
    """Return the source of a test function that pins the calls of a result.

    words: a comment in it, on one line. choice: the tool choice under which it was read. target:
    what the calls have to be, in the place of those of the result.
    """
    calls = [(call.name, call.status, call.arguments_json) for call in result.calls]
    pinned = f"calls={_literal(calls)}" if target is None else f"target={_literal(target)}"
    body = _arguments(_subject(result, choice), pinned)
    # In ASCII on one line: a case id may contain anything.
    comment = ascii(words.replace("\\", "/"))[1:-1]
    return f"def {name}():\n    # {comment}\n    assert_parses(\n{body}    )\n"


def _subject(result: ParseResult, choice: Any) -> list[Any]:
    # Everything that a reading depends on: text, protocol, tools, changed options, tool choice.
    default = DEFAULT_OPTIONS.to_dict()
    options = {k: v for k, v in result.options.to_dict().items() if default.get(k) != v}
    tools = json.loads(json.dumps([tool.to_dict() for tool in result.tools]))
    return [result.raw, str(result.protocol), tools, options, choice]


def _arguments(subject: list[Any], *more: str) -> str:
    # What is as it is by default is not said, so that a reader sees what is special.
    text, protocol, tools, options, choice = subject
    arguments = [_text_literal(text), repr(protocol), _literal(tools), *more]
    if options:
        arguments.append(f"options={_literal(options)}")
    if choice != "auto":
        arguments.append(f"tool_choice={choice!r}")
    return "".join(f"        {argument},\n" for argument in arguments)


def _text_literal(raw: str) -> str:
    # As Python literals, one a line of it, in pieces that fit the page.
    parts: list[str] = []
    for line in raw.splitlines(keepends=True):
        parts += (line[start : start + _WIDTH] for start in range(0, len(line), _WIDTH))
    if len(parts) <= 1:
        return ascii(raw)
    inner = "".join(f"            {part!a}\n" for part in parts)
    return f"(\n{inner}        )"


def _literal(value: Any) -> str:
    # A JSON-like value as Python, laid out for an argument.
    return pprint.pformat(value, width=_WIDTH, sort_dicts=False).replace("\n", "\n        ")


def curl_of(trial_id: str, request: Mapping[str, Any]) -> str:
    """Return the request of a trial as one command of a POSIX shell, without credentials: the key
    comes from the environment variable API_KEY.

    request: as it was recorded. Raises BadOptions if nothing is recorded, and for a provider whose
    own API is not that of OpenAI.
    """
    model = request.get("model") or {}
    provider, _, name = str(model.get("name", "")).partition("/")
    base = model.get("api_base") or (_OPENAI if provider == "openai" or not name else None)
    if not request or base is None:
        raise BadOptions(
            "this request cannot be written as curl",
            got=f"{trial_id}: {model.get('name', 'nothing is recorded')}",
            expected="a recorded request to an OpenAI-compatible endpoint",
            hint="give the model an api_base, or use as_python()",
        )
    params = {**(model.get("params") or {}), **(request.get("params") or {})}
    body: dict[str, Any] = {
        "model": name or provider,
        "messages": request.get("messages", []),
        **{key: value for key, value in redact_named(params).items() if key not in _OURS},
        **(redact_named(model.get("extra_body") or {})),
    }
    if request.get("tools"):
        body["tools"] = request["tools"]
    if request.get("stream"):
        body["stream"] = True
    # JSON as ASCII has no control character but DEL.
    text = json.dumps(body, ensure_ascii=True).replace("\x7f", "\\u007f")
    address = shlex.quote(f"{str(base).rstrip('/')}/chat/completions")
    return (
        f"curl {address} \\\n  -H 'Content-Type: application/json' \\\n"
        f'  -H "Authorization: Bearer $API_KEY" \\\n  --data-binary {shlex.quote(text)}\n'
    )


def faults_of(
    result: ParseResult, target: Sequence[Mapping[str, Any]], tools: Sequence[ToolSpec]
) -> list[Fault]:
    """Return where the calls of a result are not those of a target, in the order of the calls, then
    the calls that were not made.
    """
    calls = [call for call in result.calls if call.ok]
    match = match_calls([(call.name, call.arguments) for call in calls], target, tools)
    return list(numbered(match.rows, calls))
