"""A case: the question, its tools and the calls that would be right. One row read as a case."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from ...core.errors import BadCase, BadToolSpec
from ...core.toolspec import ToolSpec, tool_specs
from ...core.values import write_canonical
from .target import check_target, rules_apart
from .tool_results import check_results

_SHAPE = 'a text, {"contains": text or texts} or {"equals": text}'


def check_answer(answer: Any) -> tuple[str, Any, str] | None:
    """Return the complaint about a wanted answer of any form: (message, got, expected), or None.

    >>> check_answer({"equals": "yes"}) is None, check_answer({"contains": []})[1]
    (True, [])
    """
    way, parts = _parts_of(answer)
    if not way:
        return "an answer is a text to be contained, or one of the ways to match it", answer, _SHAPE
    for part in parts:
        is_any = isinstance(part, Mapping) and set(part) == {"$any"}
        texts = part["$any"] if is_any else [part]
        is_texts = isinstance(texts, list) and all(isinstance(t, str) and t.strip() for t in texts)
        if not texts or not is_texts:
            return f"{way} wants texts that are not empty", part, _SHAPE
    return None


def matches_answer(answer: Any, text: str) -> bool:
    """Return True if the last text of a conversation is the wanted one. answer: as `check_answer`
    allows it.
    """
    way, parts = _parts_of(answer)
    plain = _plain(text)
    for part in parts:
        wanted = map(_plain, part["$any"] if isinstance(part, Mapping) else [part])
        if not (plain in wanted if way == "equals" else any(one in plain for one in wanted)):
            return False
    return True


def _parts_of(answer: Any) -> tuple[str, list[Any]]:
    # The way, '' for none there is, and the texts or alternatives that have to match.
    if isinstance(answer, str):
        return "contains", [answer]
    if not isinstance(answer, Mapping) or len(answer) != 1:
        return "", []
    ((way, inner),) = answer.items()
    if way not in ("contains", "equals"):
        return "", []
    # Only `contains` has several texts, since one text cannot equal two.
    return way, inner if way == "contains" and isinstance(inner, list) and inner else [inner]


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


KEYS = ("id", "input", "tools", "target", "results", "answer", "metadata")
# PostgreSQL refuses NUL in texts, and lone surrogates have no UTF-8.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_TOOLS = "a list of tool definitions with different names"
_INPUT = "a text, or a list of messages with role and content"
_TARGET = (
    'a list of {"name", "arguments"}, or a rule such as {"$ordered": […]}; [] where no call is '
    "right; no target where it is not graded"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One question with its right answer.

    `input` is the user's text or a list of OpenAI messages. `target` is a list of ``{"name",
    "arguments"}``, or a rule such as ``{"$ordered": [...]}``. ``[]`` says that no call is right,
    None that the case is not graded. Values of a target may be alternatives, see
    `evals.scoring.match`. For conversations of several turns,
    `results` has the results of the tools (see `tool_results`), and `answer` the expected text of
    the last turn (see `final_text`).
    """

    id: str
    input: str | list[dict[str, Any]]
    tools: tuple[ToolSpec, ...] = ()
    target: list[Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    results: tuple[dict[str, Any], ...] = ()
    answer: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", tool_specs(self.tools))
        if self.target is not None:
            object.__setattr__(self, "target", _read_target(self.id, self.target))

    @property
    def category(self) -> str:
        """Return the category named in the metadata, or ''."""
        return str(self.metadata.get("category", ""))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the input as OpenAI messages, new dicts at each call."""
        if isinstance(self.input, str):
            return [{"role": "user", "content": self.input}]
        return [dict(m) for m in self.input]

    @property
    def input_text(self) -> str:
        """Return the text, or the messages as canonical JSON."""
        if isinstance(self.input, str):
            return self.input
        return write_canonical(self.input)

    def __hash__(self) -> int:
        # The other fields hold dicts and lists; ids are different within one set of cases.
        return hash(self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return the row that `load_cases` reads back as this case.

        A target, results, an answer and metadata that are not set are left out. Cases share their
        tools' schemas: never change those.

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


_OTHER_NAMES = {
    "input": "prompt question query instruction user user_input text task request",
    "target": "expected expected_calls expected_output expected_tool_calls gold ground_truth label "
    "labels reference calls tool_calls output solution",
    "tools": "functions tool function_definitions tool_definitions available_tools",
    "id": "case_id task_id example_id sample_id uid key name",
    "results": "tool_results responses tool_outputs",
    "answer": "final_answer final_text",
    "messages": "conversation turns chat history",
    "metadata": "meta tags extra",
}
_KEY_OF = {other: key for key, others in _OTHER_NAMES.items() for other in others.split()}


def likely_key(name: object, keys: Collection[str]) -> str | None:
    """Return the one of `keys` that `name` probably means in other tools, or None.

    >>> likely_key("prompt", ["id", "input"]), likely_key("Expected", ["target"])
    ('input', 'target')
    >>> likely_key("colour", ["target"]) is None
    True
    """
    plain = str(name).strip().lower().replace("-", "_").replace(" ", "_")
    likely = _KEY_OF.get(plain)
    if likely is not None and likely in keys:
        return likely
    # A slip of the pen; a name that is only a little alike is its owner's own.
    return next(iter(get_close_matches(plain, keys, 1, 0.8)), None)


def is_storable(name: str) -> bool:
    r"""Return True if a name can be a key of a database: no NUL, no lone surrogate.

    >>> is_storable("Zürich"), is_storable("\ud800")
    (True, False)
    """
    return not _UNSTORABLE.search(name)


def _read_target(case_id: str, target: Any) -> list[Any]:
    target = rules_apart(target)
    if not isinstance(target, list):
        raise BadCase(f"the target of case {case_id!r} is not a list", got=target, expected=_TARGET)
    if complaint := check_target(target):
        message, actual, expected = complaint
        message = f"the target of case {case_id!r} cannot be read: {message}"
        raise BadCase(message, got=actual, expected=expected)
    return target


def read_case(row: Any, *, source: str = "", line: int | None = None, unit: str = "line") -> Case:
    """Return a row, a mapping with the keys of `KEYS` and at least `id` and `input`, as a Case.

    Raises BadCase that names the source, such as a file, and the row's number, counted in `unit`s.

    >>> read_case({"id": 7, "input": "Weather in Oslo?"}).id
    '7'
    """

    def bad(message: str, got: object, expected: object, hint: str | None = None) -> BadCase:
        place: dict[str, Any] = {"source": source, "line": line, "unit": unit}
        return BadCase(message, **place, got=got, expected=expected, hint=hint)

    if not isinstance(row, Mapping):
        raise bad("a case is a JSON object", row, "an object with " + ", ".join(KEYS))
    if unknown := [str(key) for key in row if key not in KEYS]:
        likely = likely_key(unknown[0], KEYS)
        hint = f"call it {likely}" if likely else "put what is your own under metadata"
        raise bad("unknown key", ", ".join(unknown), ", ".join(KEYS), hint)

    # The id comes first, because all later complaints name it. Data sets number their rows; True
    # is an int to Python, too.
    case_id = row.get("id")
    if isinstance(case_id, int) and not isinstance(case_id, bool):
        case_id = str(case_id)
    if not isinstance(case_id, str) or not case_id.strip():
        actual = repr(case_id) if "id" in row else "no id"
        raise bad("a case has an id", actual, "a text that is not empty")
    if not is_storable(case_id):
        message = "an id holds a character that no database holds"
        raise bad(message, ascii(case_id), "no NUL and no lone surrogate")

    question = row.get("input")
    if not isinstance(question, str):
        if not isinstance(question, (list, tuple)) or not question:
            message = "the input is neither a text nor messages"
            raise bad(message, "no input" if question is None else question, _INPUT)
        for part in question:
            # Its other members are the provider's business.
            if not (isinstance(part, Mapping) and isinstance(part.get("role"), str)):
                raise bad("a message of the input has no role", part, _INPUT)
        question = [dict(part) for part in question]

    try:
        tools = tool_specs(row.get("tools"))
    except BadToolSpec as e:
        message = f"the tools of case {case_id!r} cannot be read: {e.message}"
        raise bad(message, e.got, e.expected or _TOOLS, e.hint) from None

    target, results, answer = row.get("target"), row.get("results"), row.get("answer")
    if target is not None:
        try:
            target = _read_target(case_id, target)
        except BadCase as e:
            raise bad(e.message, e.got, e.expected) from None
    for member, complaint in (
        ("results", None if results is None else check_results(results, tools)),
        ("answer", None if answer is None else check_answer(answer)),
    ):
        if complaint:
            message, actual, expected = complaint
            message = f"the {member} of case {case_id!r} cannot be read: {message}"
            raise bad(message, actual, expected)

    metadata = row.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise bad(f"the metadata of case {case_id!r} are no object", metadata, "an object")
    results = tuple(dict(result) for result in results or ())
    return Case(case_id, question, tools, target, dict(metadata or {}), results, answer)
