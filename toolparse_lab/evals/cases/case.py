"""A case: the question, with which tools, and which calls would be right.

And one row read as one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import BadCase, BadToolSpec
from ...core.toolspec import ToolSpec, tool_specs
from ...core.values import write_canonical
from .final_text import check_answer
from .likely_keys import likely_key
from .target import Complaint, check_target
from .tool_results import check_results

KEYS = ("id", "input", "tools", "target", "results", "answer", "metadata")
# PostgreSQL refuses NUL in texts, and lone surrogates have no UTF-8.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_TOOLS = "a list of tool definitions with different names"
_INPUT = "a text, or a list of messages with role and content"


@dataclass(frozen=True, slots=True)
class Case:
    """One question with its right answer.

    `input` is the user's text or a list of OpenAI messages. `target` is a list of ``{"name",
    "arguments"}``. ``[]`` says that no call is right, None that the case is not graded. Values of a
    target may be alternatives, see `toolparse_lab.evals.scoring.match`. For conversations of
    several turns, `results` says the result of the tools back (see
    `toolparse_lab.evals.cases.tool_results`), and `answer` the text that the last one is to say
    (see `toolparse_lab.evals.cases.final_text`).

    >>> Case("c1", "Weather in Paris?", metadata={"category": "simple"}).category
    'simple'
    """

    id: str
    input: str | list[dict[str, Any]]
    tools: tuple[ToolSpec, ...] = ()
    target: list[Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    results: tuple[dict[str, Any], ...] = ()
    answer: Any = None

    @property
    def category(self) -> str:
        """Return the category named in the metadata, or ''."""
        return str(self.metadata.get("category", ""))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the input as OpenAI messages.

        They are new dicts at each call, so that a conversation can be added to without changing the
        case.
        """
        if isinstance(self.input, str):
            return [{"role": "user", "content": self.input}]
        return [dict(m) for m in self.input]

    @property
    def input_text(self) -> str:
        """Return the input on one page: the text, or the messages as canonical JSON."""
        if isinstance(self.input, str):
            return self.input
        return write_canonical(self.input)

    def __hash__(self) -> int:
        """Return a hash that equal cases share."""
        # The other fields hold dicts and lists; ids are different within one set of cases.
        return hash(self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return the row that `load_cases` reads back as this case.

        Members that say nothing drop out: the target of an ungraded case, and results, answer
        and metadata if there are none. Cases share their tools' schemas, so that those are not to
        be changed.

        >>> Case("c1", "Weather in Oslo?", target=[]).to_dict()
        {'id': 'c1', 'input': 'Weather in Oslo?', 'tools': [], 'target': []}
        """
        tools = [
            {"name": tool.name, "description": tool.description, "parameters": tool.schema}
            for tool in self.tools
        ]
        row: dict[str, Any] = {"id": self.id, "input": self.input, "tools": tools}

        # An empty target is not left out: it says that no call is right.
        if self.target is not None:
            row["target"] = self.target
        if self.results:
            row["results"] = [dict(result) for result in self.results]
        if self.answer is not None:
            row["answer"] = self.answer
        if self.metadata:
            row["metadata"] = self.metadata
        return row


def read_case(row: Any, *, source: str = "", line: int | None = None, unit: str = "line") -> Case:
    """Return one row as a Case.

    row: a mapping with the keys of `KEYS`, of which `id` and `input` are required.
    source: the origin of the rows, such as a file's name.
    line: the row's number in the source, counted in `unit`s.

    Raises BadCase that names source and line.

    >>> read_case({"id": 7, "input": "Weather in Oslo?"}).id
    '7'
    """
    return _RowReader(source, line, unit).read(row)


def is_storable(name: str) -> bool:
    r"""Return True if a name can be a key of a database: no NUL, no lone surrogate.

    >>> is_storable("Zürich"), is_storable("\ud800")
    (True, False)
    """
    return not _UNSTORABLE.search(name)


def _has_role(message: Any) -> bool:
    # Its other members are the provider's business.
    return isinstance(message, Mapping) and isinstance(message.get("role"), str)


@dataclass(frozen=True, slots=True)
class _RowReader:
    # The id comes first, because all later complaints name it.
    source: str
    line: int | None
    unit: str

    def read(self, row: Any) -> Case:
        self._check_keys(row)

        case_id = self._id(row)
        question = self._input(row.get("input"))
        tools = self._tools(case_id, row.get("tools"))
        target = self._target(case_id, row.get("target"))
        results = self._results(case_id, row.get("results"), tools)
        answer = self._answer(case_id, row.get("answer"))
        metadata = self._metadata(case_id, row.get("metadata"))
        return Case(case_id, question, tools, target, metadata, results, answer)

    def _check_keys(self, row: Any) -> None:
        if not isinstance(row, Mapping):
            raise self._bad("a case is a JSON object", row, "an object with " + ", ".join(KEYS))

        unknown = [str(key) for key in row if key not in KEYS]
        if unknown:
            likely = likely_key(unknown[0], KEYS)
            hint = f"call it {likely}" if likely else "put what is your own under metadata"
            raise self._bad("unknown key", ", ".join(unknown), ", ".join(KEYS), hint)

    def _id(self, row: Mapping[str, Any]) -> str:
        case_id = row.get("id")
        # Data sets number their rows; True is an int to Python, too.
        if isinstance(case_id, int) and not isinstance(case_id, bool):
            case_id = str(case_id)
        if not isinstance(case_id, str) or not case_id.strip():
            actual = repr(case_id) if "id" in row else "no id"
            raise self._bad("a case has an id", actual, "a text that is not empty")
        if not is_storable(case_id):
            raise self._bad(
                "an id holds a character that no database holds",
                ascii(case_id),
                "no NUL and no lone surrogate",
            )
        return case_id

    def _input(self, question: Any) -> str | list[dict[str, Any]]:
        if isinstance(question, str):
            return question

        if not isinstance(question, (list, tuple)) or not question:
            actual = "no input" if question is None else question
            raise self._bad("the input is neither a text nor messages", actual, _INPUT)

        for message in question:
            if not _has_role(message):
                raise self._bad("a message of the input has no role", message, _INPUT)
        return [dict(message) for message in question]

    def _tools(self, case_id: str, tools: Any) -> tuple[ToolSpec, ...]:
        try:
            return tool_specs(tools)
        except BadToolSpec as e:
            message = f"the tools of case {case_id!r} cannot be read: {e.message}"
            raise self._bad(message, e.got, e.expected or _TOOLS, e.hint) from None

    def _target(self, case_id: str, target: Any) -> list[Any] | None:
        if target is None:
            return None
        if not isinstance(target, list):
            raise self._bad(
                f"the target of case {case_id!r} is not a list",
                target,
                'a list of {"name", "arguments"}; [] where no call is right; no target where it '
                "is not graded",
            )
        self._check(f"the target of case {case_id!r}", check_target(target))
        return target

    def _results(
        self, case_id: str, results: Any, tools: tuple[ToolSpec, ...]
    ) -> tuple[dict[str, Any], ...]:
        if results is None:
            return ()
        self._check(f"the results of case {case_id!r}", check_results(results, tools))
        return tuple(dict(result) for result in results)

    def _answer(self, case_id: str, answer: Any) -> Any:
        if answer is not None:
            self._check(f"the answer of case {case_id!r}", check_answer(answer))
        return answer

    def _metadata(self, case_id: str, metadata: Any) -> dict[str, Any]:
        if metadata is None:
            return {}
        if not isinstance(metadata, Mapping):
            message = f"the metadata of case {case_id!r} are no object"
            raise self._bad(message, metadata, "an object")
        return dict(metadata)

    def _check(self, subject: str, complaint: Complaint | None) -> None:
        if complaint is not None:
            message, actual, expected = complaint
            raise self._bad(f"{subject} cannot be read: {message}", actual, expected)

    def _bad(self, message: str, got: object, expected: object, hint: str | None = None) -> BadCase:
        return BadCase(
            message,
            source=self.source,
            line=self.line,
            unit=self.unit,
            got=got,
            expected=expected,
            hint=hint,
        )
