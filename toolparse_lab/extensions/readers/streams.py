"""Two readers over recorded answers as a server meets them, whole and in chunks, judged apart."""

# How it works. Every answer is read four times: by either reader, as a whole and in its chunks. A
# reader of another project does both in its process; ours is fed the chunks; a function or a
# command has no stream. Answers are compared as they would be sent: names, arguments as JSON, and
# the words of the content. Cost: the readers', and one comparison of each pair.

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...core.errors import BadOptions
from ...core.toolspec import ToolSpec, tool_specs
from ...core.types import ParseOptions, ParseResult
from ...core.types.call import is_meant
from ...core.values import read_strict, same
from ...entry.foreign.protocol import AnyProtocol, ForeignProtocol, tools_for_them
from ...entry.parse import Reader
from ...evals.engines import is_count
from ...evals.scoring.match import match_calls
from ...experiments.run import Run
from .process import OutsideAnswer, OutsideParser
from .released import reader

if TYPE_CHECKING:
    from ...evals.frames.recorded import Frame

Chunks: TypeAlias = int | Literal["recorded", "all"]
"""How an answer is cut: as it was recorded, as one, or into so many characters."""
SYNTHETIC = 4
"""Characters in a chunk where none was recorded, about those of a token."""
_EXACTLY = ParseOptions(coerce="none")
_SHOWN = 20
_VERDICTS = ("same", "changed", "mended", "broken", "reader_error", "no stream")


_PLACE = ("run_id", "case_id", "trial", "model", "arm")
COLUMNS = {
    "run_id": "category",
    "case_id": "string",
    "trial": "Int64",
    **dict.fromkeys(("model", "arm", "chunking"), "category"),
    **dict.fromkeys(("batch", "batch_what", "stream", "stream_what"), "category"),
    "stream_evidence": "category",
    **dict.fromkeys(("stream_differs_a", "stream_differs_b"), "boolean"),
    **dict.fromkeys(("batch_a", "stream_a", "error_a", "batch_b", "stream_b", "error_b"), "string"),
    "raw": "string",
}
"""Column of `StreamDiff.frame` -> its dtype; docs/extensions/readers.md says what each holds."""


@dataclass(frozen=True, slots=True)
class _Row:
    # place: the columns that name an answer. recorded: its chunks.
    place: Mapping[str, Any]
    raw: str
    recorded: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    target: Any


@dataclass(frozen=True)
class StreamDiff:
    """What changes from reader a to reader b, for each answer, its batch and its stream apart.

    Attributes:
        a, b: the names of the readers, with their versions.
        frame: one row per answer, with the `COLUMNS`.
        left_out: how many answers are not in it, because the provider took the calls out of their
            texts and these are recorded nowhere.

    A batch or a stream is `same` or `changed`, or with a target `mended` or `broken`: only one of
    the two readers gives the wanted calls. `reader_error`: one of them failed. What changes in
    recorded chunks, or in the whole text, is found. What changes only where a text was cut by us
    is possible: `stream_evidence` says which.
    """

    a: str
    b: str
    frame: Frame
    left_out: int = 0

    def count(self, part: Literal["batch", "stream"], verdict: str) -> int:
        """Return the number of answers with a verdict."""
        return int((self.frame[part] == verdict).sum())

    @property
    def changed(self) -> Frame:
        """The rows in which the batch or the stream is not the same."""
        rows = self.frame
        still = rows["batch"].isin(("same",)) & rows["stream"].isin(("same", "no stream"))
        return rows[~still]

    @cached_property
    def _lines(self) -> list[str]:
        rows = self.frame
        cuts = rows["chunking"].value_counts()
        how = ", ".join(f"{n} {cut}" for cut, n in cuts.items())
        lines = [f"{self.a} → {self.b}: {len(rows)} answers; chunks: {how or 'none'}"]
        for part in ("batch", "stream"):
            counts = [(v, int((rows[part] == v).sum())) for v in _VERDICTS]
            lines.append(f"  {part}: " + ", ".join(f"{n} {v}" for v, n in counts if n))
        if self.left_out:
            lines.append(f"  {self.left_out} left out: the provider's calls, without their text")
        possible = int((rows["stream_evidence"] == "possible").sum())
        if possible:
            lines.append(f"  {possible} of the changed streams are possible: their cuts are ours")
        differs = [
            (name, int(rows[f"stream_differs_{side}"].sum()))
            for name, side in ((self.a, "a"), (self.b, "b"))
        ]
        lines.append("  stream ≠ batch: " + ", ".join(f"{n} by {name}" for name, n in differs))
        return lines

    def __str__(self) -> str:
        return "\n".join(self._lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        columns = ["case_id", "model", "chunking", "batch", "stream", "stream_evidence",
                   "batch_a", "batch_b", "stream_a", "stream_b"]  # fmt: skip
        table = self.changed[columns].head(_SHOWN).to_html(index=False, escape=True, na_rep="")
        return f"<pre>{html.escape(str(self))}</pre>{table}"


def stream_diff(a: Any, b: Any, source: Any, *, chunks: Chunks = "recorded") -> StreamDiff:
    """Return what changes from reader a to reader b over recorded answers, whole and in chunks.

    Args:
        a, b: each whatever `reader` takes.
        source: a Run, or a trials frame, which has no chunks.
        chunks: how an answer is cut: "recorded" (4 characters each if no chunks were recorded),
            "all", or a number of characters.

    Raises BadOptions for chunks that are none of the forms, and the errors of `reader`.
    """
    import pandas as pd  # slow to import

    from ...evals.frames.dtypes import missing, typed  # pandas: a second

    if not is_count(chunks) and chunks not in ("recorded", "all"):
        raise BadOptions(
            "chunks says how answers are cut",
            got=chunks,
            expected='"recorded", "all", or a number of characters above 0',
        )
    sides = [_Side(reader(x)) for x in (a, b)]
    columns: dict[str, list[Any]] = {}
    left_out = 0
    for row in _rows(source):
        if row is None:
            left_out += 1
            continue
        chunking, pieces = _cut(row, chunks)
        read = [side.read(row, pieces) for side in sides]
        for name, value in _compared(row, chunking, *read).items():
            columns.setdefault(name, []).append(value)
    series = {
        name: typed(columns[name], dtype) if columns else missing(dtype, 0)
        for name, dtype in COLUMNS.items()
    }
    return StreamDiff(sides[0].name, sides[1].name, pd.DataFrame(series), left_out)


def _rows(source: Any) -> Iterator[_Row | None]:
    # None for an answer whose text was not recorded.
    if isinstance(source, Run):
        for trial in source.recorded():
            answer = trial.completion
            if answer is None or not answer.ok:
                continue
            raw = _text_of(answer.raw, answer.endpoint_kind)
            if raw is None:
                yield None
                continue
            pieces = tuple(chunk.text for chunk in answer.chunks if chunk.kind == "content")
            yield _Row(
                {name: getattr(trial, name) for name in _PLACE},
                raw,
                # Chunks of an answer whose text was put together from elsewhere are not its own.
                pieces if "".join(pieces) == raw else (),
                trial.case.tools,
                trial.case.target,
            )
        return
    if not hasattr(source, "drop_duplicates") or "raw" not in source:
        raise BadOptions(
            "source holds recorded answers",
            got=type(source).__name__,
            expected="a run or a trials frame",
        )
    once = source.drop_duplicates([name for name in _PLACE if name in source])
    for cells in once[once["raw"].notna()].to_dict("records"):
        raw = _text_of(cells["raw"], cells.get("endpoint_kind"))
        if raw is None:
            yield None
            continue
        tools, target = cells.get("tools_json"), cells.get("target")
        yield _Row(
            {name: str(cells.get(name, "")) for name in _PLACE}
            | {"trial": int(cells.get("trial", 0))},
            raw,
            (),
            tool_specs(read_strict(tools) if isinstance(tools, str) else None),
            read_strict(target) if isinstance(target, str) else None,
        )


def _text_of(raw: str, endpoint_kind: Any) -> str | None:
    # What the model wrote. Where a provider read its calls that is recorded only if it found none.
    if endpoint_kind != "native_tools":
        return raw
    try:
        message = read_strict(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("tool_calls"):
        return None
    return content if isinstance(content := message.get("content"), str) else None


def _cut(row: _Row, chunks: Chunks) -> tuple[str, Sequence[str]]:
    if chunks == "all":
        return "all", [row.raw]
    if chunks == "recorded" and row.recorded:
        return "recorded", row.recorded
    size = chunks if isinstance(chunks, int) else SYNTHETIC
    return f"{size} characters", [row.raw[i : i + size] for i in range(0, len(row.raw), size)]


class _Side:
    def __init__(self, protocol: AnyProtocol) -> None:
        self._protocol = protocol
        version = getattr(protocol, "version", "")
        is_named = not version or f"=={version}" in protocol.id
        self.name = protocol.id if is_named else f"{protocol.id} {version}"
        subject = getattr(protocol, "subject", None)
        self._outside = subject if isinstance(subject, OutsideParser) else None
        self._tools: dict[tuple[ToolSpec, ...], Any] = {}

    def read(self, row: _Row, pieces: Sequence[str]) -> tuple[OutsideAnswer, OutsideAnswer | None]:
        if self._outside is not None:
            # The cases of a run share their tools, which take longer to write than a text to read.
            if row.tools not in self._tools:
                self._tools[row.tools] = tools_for_them(row.tools)
            return self._outside.read(row.raw, self._tools[row.tools], pieces)
        protocol = self._protocol
        if isinstance(protocol, ForeignProtocol):
            # What they gave is compared, so nothing of it is coerced. Ours coerces as it does.
            batch = _said(protocol.parse(row.raw, row.tools, _EXACTLY))
            if protocol.method("create_stream_parser") is None:
                return batch, None
            return batch, _said(protocol.stream(pieces, row.tools, _EXACTLY))
        ours = Reader(protocol, row.tools)
        parser = ours.stream()
        for piece in pieces:
            parser.feed(piece)
        return _said(ours.parse(row.raw)), _said(parser.close())


def _said(result: ParseResult) -> OutsideAnswer:
    failed = [p.message for p in result.problems if p.code == "parser.failed"]
    if failed:
        return OutsideAnswer(error=failed[0])
    calls = tuple((c.name, c.arguments_json or "") for c in result.calls if is_meant(c))
    return OutsideAnswer(result.text, calls)


def _compared(row: _Row, chunking: str, a: tuple[Any, Any], b: tuple[Any, Any]) -> dict[str, Any]:
    # The columns of one answer.
    batch, batch_what = _verdict(row, a[0], b[0])
    stream, stream_what = _verdict(row, a[1], b[1])
    evidence = None
    if stream not in ("same", "no stream"):
        evidence = "found" if chunking == "recorded" else "possible"
    out: dict[str, Any] = {
        **row.place,
        "chunking": chunking,
        "batch": batch,
        "batch_what": batch_what,
        "stream": stream,
        "stream_what": stream_what,
        "stream_evidence": evidence,
    }
    for side, (whole, streamed) in (("a", a), ("b", b)):
        is_read = streamed is not None and not whole.error and not streamed.error
        out[f"stream_differs_{side}"] = is_read and not _same_calls(whole.calls, streamed.calls)
        out[f"batch_{side}"] = _shown(whole)
        out[f"stream_{side}"] = _shown(streamed)
        errors = [x.error for x in (whole, streamed) if x is not None and x.error]
        out[f"error_{side}"] = errors[0] if errors else None
    out["raw"] = row.raw
    return out


def _verdict(row: _Row, a: OutsideAnswer | None, b: OutsideAnswer | None) -> tuple[str, str | None]:
    # The verdict, and what is different: calls, content or both.
    if a is None or b is None:
        return "no stream", None
    if a.error or b.error:
        return "reader_error", None
    calls = not _same_calls(a.calls, b.calls)
    content = a.content.split() != b.content.split()
    if not calls:
        return ("changed", "content") if content else ("same", None)
    what = "calls and content" if content else "calls"
    if row.target is not None:
        right = [_is_right(row, answer) for answer in (a, b)]
        if right[0] != right[1]:
            return ("mended" if right[1] else "broken"), what
    return "changed", what


def _same_calls(a: Iterable[tuple[str, str]], b: Iterable[tuple[str, str]]) -> bool:
    first, second = tuple(a), tuple(b)
    if first == second:
        return True
    return len(first) == len(second) and all(
        x[0] == y[0] and _same_json(x[1], y[1]) for x, y in zip(first, second, strict=True)
    )


def _same_json(a: str, b: str) -> bool:
    try:
        return a == b or same(read_strict(a), read_strict(b))
    except (ValueError, RecursionError):
        return False


def _is_right(row: _Row, answer: OutsideAnswer) -> bool:
    try:
        calls = [(name, read_strict(arguments or "{}")) for name, arguments in answer.calls]
    except (ValueError, RecursionError):
        return False
    return match_calls(calls, row.target, row.tools).ok


def _shown(answer: OutsideAnswer | None) -> str | None:
    if answer is None or answer.error:
        return None
    calls = [{"name": name, "arguments": arguments} for name, arguments in answer.calls]
    return json.dumps({"content": answer.content, "calls": calls}, ensure_ascii=False)
