"""The smallest text that is refused for the same reasons as a long one."""

# How it works. A text is cut along its own joints, the largest first: calls, paragraphs, lines and
# sentences, the members of each bracket and each pair of tags, words, characters. The pieces of one
# joint are dropped by halves, then by quarters and so on down to single ones (Zeller's ddmin); a
# cut stays if the rest is read with the same complaints at the same kinds of places. Then the tools
# are cut the same way: whole tools, descriptions, parameters. All of it is done again until nothing
# more goes, or the time is up; what is there then is smaller, but may not be the smallest.

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

from ...core.errors import BadOptions, near
from ...core.toolspec import ToolsLike, ToolSpec, tool_specs
from ...core.types import ParseOptions, ParseResult, Problem, Span
from ...core.values.printable import counted, printable
from ...evals.scoring.exports import pinning_test
from ...evals.scoring.trial import Trial
from ...formats.like import ProtocolLike
from ...middleware.flow import asked_of, read_answer
from ...views.show import shorten

_Pieces: TypeAlias = tuple[str, list[str], str]  # what is before, the pieces, what is after
_Reads: TypeAlias = Callable[[str, Sequence[ToolSpec]], "ParseResult"]
_CLOSERS = {"{": "}", "[": "]", "(": ")"}
_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"'  # a string that ends on its line
    r"|</[^<>\s]{1,80}>|<(?P<tag>[A-Za-z_|][^<>\s=]{0,80})[^<>\n]{0,200}>"
    r"|[{}\[\]()]|[,;\n]"
)
_LONGEST_TO_CUT_BY_CHARACTERS = 4000
_ROUNDS = 10  # each finds less than the one before it
_SHOWN = 300


@dataclass(frozen=True)
class Shrunk:
    """A text that is read with the same complaints as the one it was cut from.

    `raw` and `tools` are what is left of `original`. `codes` are the complaints, with the kind of
    place each is at. `cuts` says for each kind of piece, in order, how many characters went with
    it. `whole` is False if the time was up before nothing more could be left out.
    """

    raw: str
    protocol: str
    tools: tuple[ToolSpec, ...]
    original: str
    codes: tuple[tuple[str, str], ...]
    cuts: tuple[tuple[str, int], ...]
    n_parses: int
    whole: bool
    result: ParseResult
    tool_choice: str | Mapping[str, Any] = "auto"

    def as_test(self, name: str = "test_shrunk") -> str:
        """Return a test function that pins how the text is read, as Python source."""
        words = f"shrunk from {counted(len(self.original), 'character')}"
        return pinning_test(name, self.result, words, self.tool_choice)

    def __repr__(self) -> str:
        lengths = f"{len(self.original):,} to {counted(len(self.raw), 'character')}"
        lines = [f"{lengths}, after {counted(self.n_parses, 'parse')}:"]
        lines += [f"  {line}" for line in shorten(printable(self.raw), _SHOWN).splitlines()]
        lines += [f"still {code} ({place})" for code, place in self.codes]
        lines += [f"cut: {', '.join(f'{what} {count:,}' for what, count in self.cuts)}"]
        if self.tools:
            lines += [f"tools: {', '.join(tool.name for tool in self.tools)}"]
        if not self.whole:
            lines += ["the time was up: more may go with seconds=…"]
        return "\n".join(lines)


def shrink(
    source: str | Trial,
    protocol: ProtocolLike = "auto",
    tools: ToolsLike = None,
    *,
    code: str | None = None,
    keeps: Callable[[ParseResult], bool] | None = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
    tool_choice: str | Mapping[str, Any] = "auto",
    finish_reason: str | None = None,
    request: Any = None,
    reasoning: str = "",
    seconds: float = 2.0,
) -> Shrunk:
    """Cut an answer down to the cause of its problems, without a model.

    The rest has the same codes at the same kinds of places (the text, a call, an argument, inside
    an argument), their calls the same verdicts, and there is no other problem or repair. With
    errors, warnings may go. Without problems, repairs and coercions stay.

    Args:
        source: a text, or a trial, which is read as it was: protocol, tools, options and all that
            was recorded are its own then.
        code: keep this problem only.
        keeps: a function of a parse that returns True while your own condition holds, instead of
            codes.
        seconds: of CPU time, after which the rest so far is returned.

    The others are as for `read_answer`. Raises BadOptions for a text with nothing to keep, or
    without that code, for a trial that was never parsed, and the errors of `parse`.

    >>> raw = 'Let me see.\\n<tool_call>{"name": "f", "arguments": {"a": 1, "b": oops}}</tool_call>'
    >>> shrink(raw, "hermes").raw
    '<tool_call>{"name":"f","arguments":{"":s}}</tool_call>'
    """
    if isinstance(source, Trial):
        return _shrink_trial(source, code, keeps, seconds)
    raw, specs = source, tuple(tool_specs(tools))

    def read(text: str, offered: Sequence[ToolSpec]) -> ParseResult:
        return read_answer(
            text,
            protocol,
            offered,
            options,
            tool_choice,
            finish_reason,
            request=request,
            reasoning=reasoning,
        )

    first = read(raw, specs)
    if keeps is None:
        wanted = _complaints(first, code)
        if not wanted:
            raise _nothing_to_keep(first, code)

        marks = _marks(first)

        def keeps(result: ParseResult) -> bool:
            # A cut that damages the text somewhere else would say something new.
            return _complaints(result, code) == wanted and _marks(result) <= marks

        codes = tuple(sorted({(word, place) for word, place, _ in wanted}))
    else:
        codes = ()
        if not keeps(first):
            raise BadOptions(
                "the text itself does not show what is looked for",
                got=shorten(raw, _SHOWN),
                expected="a text of which keeps(result) is true",
            )
    work = _Work(raw, specs, read, keeps, time.process_time() + seconds)
    whole = work.run()
    return Shrunk(
        raw=work.raw,
        protocol=str(first.protocol),
        tools=work.tools,
        original=raw,
        codes=codes,
        cuts=tuple(work.cuts.items()),
        n_parses=work.n_parses,
        whole=whole,
        result=read(work.raw, work.tools),
        tool_choice=tool_choice,
    )


def _shrink_trial(trial: Trial, code: Any, keeps: Any, seconds: float) -> Shrunk:
    if trial.completion is None or trial.result is None:
        raise BadOptions(
            "this trial was never parsed, so there is nothing to shrink", got=trial.trial_id
        )
    return shrink(
        trial.result.raw,
        trial.protocols.parse or trial.parse_protocol,
        trial.case.tools,
        code=code,
        keeps=keeps,
        options=trial.result.options,
        tool_choice=trial.levels.get("tool_choice", "auto"),
        finish_reason=trial.completion.finish_reason,
        request=asked_of(trial.completion, trial.case.input),
        reasoning=trial.completion.reasoning or "",
        seconds=seconds,
    )


def _complaints(result: ParseResult, code: str | None) -> set[tuple[str, str, str]]:
    # Code, kind of place, and verdict of the call. The gravest kind alone, unless one is named.
    own = [(p, "text", "") for p in result.problems]
    own += [(p, _place_of(p), c.verdict) for c in result.calls for p in c.problems]
    if code is not None:
        return {(p.code, place, verdict) for p, place, verdict in own if p.code == code}
    for severity in ("error", "warning"):
        found = {(p.code, place, v) for p, place, v in own if p.severity == severity}
        if found:
            return found
    steps = [(step, c) for c in result.calls for step in (*c.repair_steps, *c.steps)]
    return {(step.rule, "call", c.verdict) for step, c in steps}


def _marks(result: ParseResult) -> set[str]:
    # Whatever was complained about or changed.
    steps = (step.rule for c in result.calls for step in (*c.repair_steps, *c.steps))
    return {*steps, *(problem.code for problem in result.all_problems())}


def _place_of(problem: Problem) -> str:
    depth = problem.path.count("/")
    return ("call", "argument")[depth] if depth < 2 else "inside an argument"


def _nothing_to_keep(result: ParseResult, code: str | None) -> BadOptions:
    codes = {problem.code for problem in result.all_problems()}
    if code is None:
        return BadOptions(
            "the text is read without a complaint, so there is nothing to keep",
            got=shorten(result.raw, _SHOWN),
            hint="say what to look for: keeps=lambda result: …",
        )
    return BadOptions(
        "the text has no such complaint",
        got=code,
        expected=", ".join(sorted(codes)) or "none at all",
        hint=near(code, codes),
    )


class _TimeIsUp(Exception):
    pass


class _Work:
    def __init__(
        self,
        raw: str,
        tools: tuple[ToolSpec, ...],
        read: _Reads,
        keeps: Callable[[ParseResult], bool],
        until: float,
    ) -> None:
        self.raw = raw
        self.tools = tools
        self.cuts: dict[str, int] = {}
        self.n_parses = 0
        self._read = read
        self._keeps = keeps
        self._until = until
        self._seen: set[str] = set()  # texts that did not hold with these tools

    def run(self) -> bool:
        # True if it came to an end before the time was up.
        try:
            for _ in range(_ROUNDS):
                before = (self.raw, self.tools)
                self._cut_text()
                self._cut_tools()
                if before == (self.raw, self.tools):
                    break
        except _TimeIsUp:
            return False
        return True

    def _cut_text(self) -> None:
        self._cut("calls", self._calls())
        for what, joint in JOINTS.items():
            self._cut(what, _pieces(joint, self.raw))
        place = 0
        while True:
            lists = list(_members(self.raw))
            if place >= len(lists):
                break
            # A bracket begins before those inside it, so its place among them stays.
            self._cut("members", lists[place])
            place += 1
        self._cut("words", _pieces(_WORDS, self.raw))
        if len(self.raw) <= _LONGEST_TO_CUT_BY_CHARACTERS:
            self._cut("characters", ("", list(self.raw), ""))

    def _calls(self) -> _Pieces:
        # The calls, and what is between them.
        result, pieces, end = self._read(self.raw, self.tools), [], 0
        for span in sorted(call.segment.span for call in result.calls):
            if span.start >= end:
                pieces += [self.raw[end : span.start], self.raw[span.start : span.end]]
                end = span.end
        return "", [*pieces, self.raw[end:]], ""

    def _cut(self, what: str, pieces: _Pieces) -> None:
        before, own, after = pieces
        kept = smallest(own, lambda some: self._try_text(before + "".join(some) + after))
        cut = sum(map(len, own)) - sum(map(len, kept))
        if cut:
            self.cuts[what] = self.cuts.get(what, 0) + cut

    def _try_text(self, raw: str) -> bool:
        if raw in self._seen or not self._holds(raw, self.tools):
            self._seen.add(raw)
            return False
        self.raw = raw
        return True

    def _cut_tools(self) -> None:
        smallest(self.tools, self._try_tools)
        for place in range(len(self.tools)):
            tool = self.tools[place].to_dict()
            self._change_tool(place, {**tool, "description": ""})
            schema = tool.get("parameters") or {}
            members = schema.get("properties") if isinstance(schema, dict) else None
            if isinstance(members, dict):
                smallest(list(members), partial(self._keep_parameters, place))

    def _keep_parameters(self, place: int, names: Sequence[str]) -> bool:
        tool = self.tools[place].to_dict()
        schema = dict(tool["parameters"])
        schema["properties"] = {n: v for n, v in schema["properties"].items() if n in names}
        if isinstance(schema.get("required"), list):
            schema["required"] = [name for name in schema["required"] if name in names]
        return self._change_tool(place, {**tool, "parameters": schema})

    def _change_tool(self, place: int, tool: Mapping[str, Any]) -> bool:
        changed = [*self.tools]
        (changed[place],) = tool_specs([tool])
        return self._try_tools(changed)

    def _try_tools(self, tools: Sequence[ToolSpec]) -> bool:
        if not self._holds(self.raw, tools):
            return False
        self.tools = tuple(tools)
        self._seen.clear()
        return True

    def _holds(self, raw: str, tools: Sequence[ToolSpec]) -> bool:
        if time.process_time() > self._until:
            raise _TimeIsUp
        self.n_parses += 1
        return self._keeps(self._read(raw, tools))


def smallest(pieces: Sequence[Any], holds: Callable[[Sequence[Any]], bool]) -> Sequence[Any]:
    """Return the pieces that are left when no further one can go. holds: whether some still show
    what is looked for.
    """
    size = (len(pieces) + 1) // 2
    while size:
        start = 0
        while start < len(pieces):
            rest = [*pieces[:start], *pieces[start + size :]]
            if holds(rest):
                pieces = rest
            else:
                start += size
        size //= 2
    return pieces


JOINTS = {
    "paragraphs": re.compile(r"(?<=\n)(?=\n)"),
    "lines": re.compile(r"(?<=\n)"),
    "sentences": re.compile(r"(?<=[.!?])(?=\s)"),
}
_WORDS = re.compile(r"(?<=\S)(?=\s)")


def _pieces(joint: re.Pattern[str], raw: str) -> _Pieces:
    return "", joint.split(raw), ""


def _members(raw: str) -> Iterator[_Pieces]:
    # What each bracket, each pair of tags, and the text itself contain, the outermost first. One
    # that does not close contains the rest. Twice each: a member goes with the comma after it or,
    # as the last one has to, with the one before it.
    opened: list[tuple[int, str, list[Span]]] = [(0, "", [])]  # start, closer, separators
    found: list[tuple[int, int, list[Span]]] = []
    for token in _TOKEN.finditer(raw):
        word, span = token[0], Span(*token.span())
        if word in ",;\n":
            opened[-1][2].append(span)
        elif word in _CLOSERS:
            opened.append((span.end, _CLOSERS[word], []))
        elif token["tag"]:
            opened[-1][2].append(Span(span.start, span.start))
            opened.append((span.end, f"</{token['tag']}>", []))
        elif word[0] != '"':
            places = [n for n, (_, closer, _) in enumerate(opened) if closer == word]
            if not places:
                continue
            found += [(start, span.start, own) for start, _, own in opened[places[-1] :]]
            del opened[places[-1] :]
            if word[0] == "<":
                opened[-1][2].append(Span(span.end, span.end))
    found += [(start, len(raw), own) for start, _, own in opened]
    for start, end, separators in sorted(found, key=lambda one: (one[0], -one[1])):
        for cuts in ([s.end for s in separators], [s.start for s in separators]):
            places = [start, *cuts, end]
            pieces = [raw[a:b] for a, b in pairwise(places)]
            yield raw[:start], pieces, raw[end:]
