"""Values to columns of their declared dtype, quickly: a hundred thousand rows are ordinary here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray
from pandas.api.types import union_categoricals

from .columns import columns_of

_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXTS = frozenset((str, type(None)))
EXTRA = "metadata_"
"""How the names of columns begin that a frame may have beside the declared ones; they hold text."""


def build_frame(
    kind: str, columns: Mapping[str, Any], length: int, extra: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """A frame of `length` rows with every declared column of its kind, in order, and a RangeIndex; what is not given
    is missing.

    columns: values by name, in any form `typed` takes; those that are not declared stay behind the declared ones.
    extra: dtypes of such columns, by default text for those named `EXTRA` and for others what they have.
    """
    declared = {c.name: c.dtype for c in columns_of(kind)}
    absent = [None] * length
    out = {name: typed(columns.get(name, absent), dtype) for name, dtype in declared.items()}
    dtypes = extra or {}
    for name in dict.fromkeys([*(c for c in columns if c not in declared), *dtypes]):
        values = columns.get(name, absent)
        dtype = dtypes.get(name, "string" if name.startswith(EXTRA) else None)
        out[name] = pd.Series(values, copy=False) if dtype is None else typed(values, dtype)
    return pd.DataFrame(out, index=pd.RangeIndex(length), copy=False)


def conform(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The same rows with every declared column of that kind of frame, in order and of its dtype, and a RangeIndex.

    For frames that came back from a file or from other workers; columns of your own stay behind the declared ones.
    """
    return build_frame(kind, {str(name): frame[name].array for name in frame.columns}, len(frame))


def join_frames(frames: Sequence[pd.DataFrame], kind: str) -> pd.DataFrame:
    """The rows of several frames of a kind one after the other, as one frame made at once would be."""
    if len(frames) == 1:
        return conform(frames[0], kind)
    names = dict.fromkeys(name for f in frames for name in map(str, f.columns))
    categories = {c.name for c in columns_of(kind) if c.dtype == "category"}
    out: dict[str, Any] = {}
    for name in names:
        parts = [f[name] if name in f else pd.Series([None] * len(f)) for f in frames]
        if name in categories:
            # Put together one by one they would become texts, at many times the memory.
            out[name] = union_categoricals([typed(p.array, "category") for p in parts])
        else:
            out[name] = pd.concat(parts, ignore_index=True).array
    return conform(pd.DataFrame(out, copy=False), kind)


def typed(values: Any, dtype: str) -> pd.Series[Any]:
    """A column of one of the declared dtypes from a list or an array; lone surrogates of texts become escapes."""
    if dtype == "category":
        return pd.Series(_categorical(values), copy=False)
    if dtype == "string":
        return pd.Series(_texts(values), copy=False)
    if dtype == "boolean" and _holds_text(values):  # as CSV has them
        values = pd.Series(values).map({"True": True, "False": False})
    return pd.Series(values, dtype=dtype, copy=False)


def _holds_text(values: Any) -> bool:
    dtype = getattr(values, "dtype", None)
    return isinstance(dtype, pd.StringDtype) or (dtype in (None, object) and any(isinstance(v, str) for v in values))


def _texts(values: Any) -> ExtensionArray:
    if isinstance(values, pd.Categorical):
        values = values.astype(object)
    if isinstance(values, list) and _TEXTS.issuperset(map(type, values)):
        try:
            return pd.array(values, dtype="string")
        except UnicodeEncodeError:
            return pd.array([None if v is None else storable(v) for v in values], dtype="string")
    if isinstance(getattr(values, "dtype", None), pd.StringDtype) and values.dtype.na_value is pd.NA:
        return values  # type: ignore[no-any-return]  # typed as such above
    return pd.array([None if _is_missing(v) else storable(str(v)) for v in values], dtype="string")


def _categorical(values: Any) -> pd.Categorical[Any]:
    """Categories are the values that are there, in order; an empty text is missing."""
    if isinstance(values, pd.Categorical):
        used = values.remove_unused_categories()
        names: list[Any] = [str(c) for c in used.categories]
        codes = used.codes
    else:
        texts = values if isinstance(values, list) and _TEXTS.issuperset(map(type, values)) else _texts(values)
        codes, uniques = pd.factorize(np.asarray(texts, dtype=object))
        names = [str(u) for u in uniques]
    names = [storable(n) for n in names]
    wanted = sorted({n for n in names if n})
    place = {name: i for i, name in enumerate(wanted)}
    # The last entry stands for -1, which is what a missing value's code is.
    moved = np.array([*(place.get(n, -1) for n in names), -1], dtype=np.int64)
    # Without it no values would be of another dtype than some, and the two could not be joined.
    categories = pd.Index(wanted, dtype=str)
    return pd.Categorical.from_codes(moved[codes], dtype=pd.CategoricalDtype(categories))


def _is_missing(v: Any) -> bool:
    return v is None or v is pd.NA or v != v


def storable(text: str) -> str:
    """Lone surrogates as escapes: Parquet and CSV hold UTF-8."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def surrogate_offsets(text: str | None) -> str | None:
    """Where the escapes of lone surrogates stand in `storable(text)`, as JSON; None where there are none.

    >>> surrogate_offsets("a\\ud800b\\udfff"), surrogate_offsets("plain")
    ('[1,8]', None)
    """
    if text is None or text.isascii() or not _SURROGATE.search(text):
        return None
    return f"[{','.join(str(m.start() + 5 * n) for n, m in enumerate(_SURROGATE.finditer(text)))}]"


def restored(text: str, offsets: Iterable[int]) -> str:
    """The text that `storable` was given, from what it gave and its offsets.

    >>> restored("a\\\\ud800b", [1]) == "a\\ud800b"
    True
    """
    parts: list[str] = []
    at = 0
    for offset in offsets:
        parts += [text[at:offset], chr(int(text[offset + 2 : offset + 6], 16))]
        at = offset + 6
    return "".join([*parts, text[at:]])
