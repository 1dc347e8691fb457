"""One partition of recorded answers read: an Arrow table in, an Arrow table out.

`read_table` is a function of its arguments alone and can be pickled, so that whatever spreads work
over machines calls it: Dask, Ray Data, Spark's `mapInArrow`, an array of jobs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from ..core.errors import UnreadableInput
from ..core.toolspec import ToolsLike, tool_specs
from ..core.types import ParseOptions, Policy
from ..core.values import write_canonical
from ..entry.foreign.protocol import AnyProtocol
from .frames.columns import columns_of
from .frames.files import PANDAS_TYPES, table_of
from .frames.parsing import ParseSettings, read_again


def read_table(
    table: pa.Table | pa.RecordBatch,
    protocol: str | AnyProtocol | None = None,
    *,
    tools: ToolsLike = None,
    policy: Policy = "safe",
    options: ParseOptions | Mapping[str, Any] | None = None,
) -> pa.Table:
    """Return recorded answers parsed and scored: a row each, in order.

    It has the columns of the trials frame, whose types do not depend on the contents. No store and
    no model is asked.

    Args:
        table: answers, with a column `raw` at least. Every other column of the trials frame counts
            that is there: `input`, `target`, `tools_json`, `case_id`, `trial`, `model` … Lists and
            structs are written as JSON. Columns with other names stay as they are.
        protocol: reads all answers. None: each row's `prompt_protocol`, `auto` without it.
        tools: of rows that have no `tools_json`.
        policy, options: as for `parse`.

    Answers without `case_id` are of one case if they are to the same `input`, or have the same text
    where there is none. Without `trial` they are its first. Raises UnreadableInput for a missing
    column `raw` and for a cell that cannot be read, and the errors of `parse`.

    >>> import pyarrow as pa
    >>> text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    >>> answers = pa.table({"raw": [text, "Hi"], "page": [1, 2]})
    >>> read = read_table(answers, "hermes", tools=[{"name": "f"}])
    >>> read.select(["n_calls", "verdict", "page"]).to_pylist()[0]
    {'n_calls': 1, 'verdict': 'clean', 'page': 1}
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if "raw" not in table.column_names:
        raise UnreadableInput(
            "a partition has the texts of its answers in the column raw",
            got=", ".join(table.column_names) or "no columns",
            expected="raw",
            hint='table.rename_columns({"completion": "raw"}) names the columns',
        )
    reading = ParseSettings.of(protocol, policy, options)
    declared = {column.name for column in columns_of("trials")}
    columns = {
        name: _as_text(table[name]) if pa.types.is_nested(table[name].type) else table[name]
        for name in table.column_names
        if name in declared
    }
    frame = pa.table(columns).to_pandas(types_mapper=PANDAS_TYPES.get)
    _complete(frame, reading, tools)
    read = table_of(read_again(frame, reading), "trials")
    for name in table.column_names:
        if name not in declared:
            read = read.append_column(name, table[name])
    return read


def _as_text(column: Any) -> Any:
    texts = [None if value is None else write_canonical(value) for value in column.to_pylist()]
    return pa.array(texts, pa.large_string())


def _complete(frame: pd.DataFrame, reading: ParseSettings, tools: ToolsLike) -> None:
    # Fills the columns that tell answers apart, and the tools, where they are not there.
    (protocol,) = reading.protocols or ("auto",)
    asked = protocol if isinstance(protocol, str) else protocol.id
    _fill(frame, "prompt_protocol", lambda: asked)
    _fill(frame, "arm", lambda: frame["prompt_protocol"])
    _fill(frame, "model", lambda: "unknown")
    _fill(frame, "run_id", lambda: None)
    _fill(frame, "trial", lambda: 0)
    _fill(frame, "case_id", lambda: [_case_id(texts) for texts in _questions(frame)])
    offered = tool_specs(tools)
    text = write_canonical([tool.to_dict() for tool in offered]) if offered else None
    _fill(frame, "tools_json", lambda: text)


def _fill(frame: pd.DataFrame, name: str, values: Any) -> None:
    if name not in frame:
        frame[name] = pd.Series(values(), index=frame.index, dtype=object)
    elif frame[name].isna().any() and (filled := values()) is not None:
        own = frame[name].astype(object)
        frame[name] = own.where(own.notna(), pd.Series(filled, index=frame.index, dtype=object))


def _questions(frame: pd.DataFrame) -> Any:
    names = [name for name in ("input", "raw") if name in frame]
    return zip(*(frame[name].astype(object) for name in names), strict=True)


def _case_id(texts: tuple[Any, ...]) -> str:
    text = next((text for text in texts if isinstance(text, str) and text), "")
    return f"input-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
