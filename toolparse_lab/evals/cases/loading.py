"""Rows to cases: what `load_cases` does with each kind of source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import BadCase, BadOptions
from .case import KEYS, Case, Cases, Skipped, read_case
from .row_files import RowSource
from .rows import BadRows, Errors, Others, Renaming, fold_metadata, listed, read_cell, rows_of

_ROW_KEYS = (*KEYS, "messages")


def load(
    source: Any,
    *,
    columns: Mapping[str, str | None] | None = None,
    others: Others = "error",
    split: str | None = None,
    errors: Errors = "raise",
) -> Cases:
    """See `toolparse_lab.evals.cases.case.load_cases`."""
    cases, bad = read_all(source, columns=columns, others=others, split=split, errors=errors)
    if bad is not None:
        bad.end(len(cases) + bad.count)
    if len(cases) == 0:
        where = bad.source if bad is not None else RowSource("", iter(()))
        reason = bad.found[0].message if bad is not None and bad.found else None
        raise where.bad("there are no cases in it", got=reason, expected="at least one row that can be read")
    return cases


def read_all(
    source: Any,
    *,
    columns: Mapping[str, str | None] | None = None,
    others: Others = "error",
    split: str | None = None,
    errors: Errors = "raise",
) -> tuple[Cases, BadRows | None]:
    """The cases of a source, perhaps none, and its bad rows; None where it has no rows of its own."""
    from . import bfcl

    renaming = Renaming(_ROW_KEYS, columns or {}, others)
    is_bfcl = isinstance(source, (str, Path)) and bfcl.is_address(source)
    if is_bfcl or isinstance(source, Cases):
        if columns or split is not None:
            raise BadOptions("this source has no columns to name and no splits", got=str(source)[:80])
        return (bfcl.load_address(source) if is_bfcl else source), None
    found = rows_of(source, split=split)
    renaming.check(found)
    bad = BadRows(found, errors)
    seen: dict[str, int | None] = {}
    cases: list[Case] = []
    mapped = set(renaming.columns)
    for line, row in found.rows:
        if mapped and isinstance(row, Mapping):
            mapped.difference_update(row)
        try:
            case = row if isinstance(row, Case) else case_of(row, renaming, found, line)
            if case.id in seen:
                first = seen[case.id]
                raise found.bad(
                    "this id was used before", line, got=case.id,
                    expected=f"an id of its own (the other one is in {found.unit} {first})",
                )  # fmt: skip
        except BadCase as e:
            bad.add(e)
            continue
        seen[case.id] = line
        cases.append(case)
    if mapped and found.columns is None and cases:
        raise found.bad("no row has this column, which is mapped", column=sorted(mapped)[0])
    skipped = [Skipped("rows that cannot be read", bad.count, bad.found[0].message)] if bad.count else []
    return Cases(cases, found.name, skipped), bad


def case_of(row: Any, renaming: Renaming, source: RowSource, line: int | None) -> Case:
    """One row to a Case; raises BadCase naming the place."""
    if isinstance(row, BadCase):
        raise row
    if not isinstance(row, Mapping):
        raise source.bad("a case is a JSON object", line, got=row, expected="an object with " + ", ".join(KEYS))
    named, came = renaming.apply(row, source, line)
    return case_of_members(named, came, source, line)


def case_of_members(named: dict[str, Any], came: Mapping[str, str], source: RowSource, line: int | None) -> Case:
    """Members under their known names to a Case; `came` says which column each is from."""

    def column(name: str) -> str | None:
        return came.get(name) if source.table else None

    if "messages" in named:
        if "input" in named:
            raise source.bad(
                "a case has an input or messages, not both", line, column("messages"), hint="leave one out by columns="
            )
        named["input"] = listed(read_cell(named.pop("messages"), "messages", source, line, column("messages")))
        if isinstance(named["input"], str):
            raise source.bad("messages are a list", line, column("messages"), got=named["input"])
    fold_metadata(named, source, line)
    for name in ("tools", "target", "results"):
        if name in named:
            named[name] = read_cell(named[name], f"{name} of case {named.get('id')!r}", source, line, column(name))
            if source.table:
                named[name] = listed(named[name])
    if source.table:
        _read_table_cells(named, came, source, line)
    return read_case(named, source=source.name, line=line, unit=source.unit)


def _read_table_cells(named: dict[str, Any], came: Mapping[str, str], source: RowSource, line: int | None) -> None:
    """What a table keeps as JSON text, or in OpenAI's own shape, as a case has it."""
    if isinstance(named.get("metadata"), str):
        named["metadata"] = read_cell(named["metadata"], "metadata", source, line, came["metadata"])
    if isinstance(named.get("tools"), list):
        named["tools"] = [_tool(t, source, line, came["tools"]) for t in named["tools"]]
    if isinstance(named.get("target"), list):
        named["target"] = [_call(c, source, line, came["target"]) for c in named["target"]]


def _tool(tool: Any, source: RowSource, line: int | None, column: str) -> Any:
    tool = read_cell(tool, "tool", source, line, column)
    if not isinstance(tool, Mapping):
        return tool
    if isinstance(tool.get("function"), Mapping):
        return {**tool, "function": _tool(tool["function"], source, line, column)}
    texts = {k: read_cell(v, k, source, line, column) for k, v in tool.items() if k in ("parameters", "inputSchema")}
    return {**tool, **texts}


def _call(call: Any, source: RowSource, line: int | None, column: str) -> Any:
    call = read_cell(call, "wanted call", source, line, column)
    if not isinstance(call, Mapping):
        return call
    if isinstance(call.get("function"), Mapping) and not {"name", "arguments"} & call.keys():
        call = call["function"]
    if isinstance(call.get("arguments"), str):
        return {**call, "arguments": read_cell(call["arguments"], "arguments", source, line, column)}
    return call
