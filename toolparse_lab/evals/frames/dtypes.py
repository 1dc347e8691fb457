"""Values to columns of their declared dtype, quickly: a hundred thousand rows are ordinary here."""

# How it works. `typed` makes every column. Lists of texts and Nones, which nearly all are, go to
# pandas in one piece; only where UTF-8 refuses them, or where they come as something else, are they
# looked at one by one. Categories are always the values that are there, sorted, so that equal
# frames are equal whichever pieces they were made of.

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.extensions import ExtensionArray
from pandas.api.types import union_categoricals

from .columns import columns_of

_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXTS = frozenset((str, type(None)))
EXTRA = "metadata_"
"""The beginning of the names of columns that a frame may have besides the declared ones; they hold
text."""
_NAMES = pd.Index([], dtype=str).dtype  # of the categories of every column
_MASKED: Mapping[str, tuple[Any, Any]] = {
    "Int64": (pd.arrays.IntegerArray, np.int64),
    "Float64": (pd.arrays.FloatingArray, np.float64),
    "boolean": (pd.arrays.BooleanArray, np.bool_),
}
_ESCAPE = 6  # the characters of \udXXX


def build_frame(
    kind: str, columns: Mapping[str, Any], length: int, extra: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return a frame of `length` rows with every declared column of its kind, in order, missing
    where it has no values, then the others, and a RangeIndex.

    columns: values by name, in any form `typed` takes. extra: dtypes of columns that are not
    declared, by default text for those named `EXTRA` and for others their own.
    """
    declared = {column.name: column.dtype for column in columns_of(kind)}
    # Arrays, since pandas would align the index of each Series.
    out: dict[str, Any] = {
        name: (typed(columns[name], dtype) if name in columns else missing(dtype, length)).array
        for name, dtype in declared.items()
    }

    # Then those of the caller, with or without values, each once and in their order.
    dtypes = extra or {}
    for name in dict.fromkeys([*columns, *dtypes]):
        if name in declared:
            continue
        dtype = dtypes.get(name, "string" if name.startswith(EXTRA) else "")
        if name not in columns:
            out[name] = missing(dtype, length).array
        else:
            values = columns[name]
            out[name] = typed(values, dtype).array if dtype else pd.Series(values, copy=False).array
    return pd.DataFrame(out, index=pd.RangeIndex(length), copy=False)


def conform(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the rows of a frame from a file or another worker as `build_frame` would make them."""
    return build_frame(kind, {str(name): frame[name].array for name in frame.columns}, len(frame))


def join_frames(
    frames: Sequence[pd.DataFrame], kind: str, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return the rows of one or more frames of a kind, one after the other, as one frame made at
    once would be. columns: only these, as far as they are there.
    """
    if columns is not None:
        frames = [frame[[name for name in columns if name in frame]] for frame in frames]
    if len(frames) == 1:
        return frames[0] if columns is not None else conform(frames[0], kind)

    names: dict[str, None] = {}  # of all columns, in the order in which they first come
    for frame in frames:
        names |= dict.fromkeys(map(str, frame.columns))
    categories = {column.name for column in columns_of(kind) if column.dtype == "category"}

    out: dict[str, Any] = {}
    for name in names:
        parts = [
            frame[name] if name in frame else pd.Series([None] * len(frame)) for frame in frames
        ]
        if name in categories:
            # Put together one by one they would become texts, at many times the memory.
            out[name] = union_categoricals([typed(part.array, "category") for part in parts])
        else:
            out[name] = pd.concat(parts, ignore_index=True).array
    joined = pd.DataFrame(out, copy=False)
    return joined if columns is not None else conform(joined, kind)


def typed(values: Any, dtype: str) -> pd.Series[Any]:
    """Return a column of one of the declared dtypes from a list or an array.

    Lone surrogates of texts become escapes.

    dtype: a name of pandas, see `columns.Column`. Anything that does not fit it raises the errors
        of pandas.

    >>> typed(["b", None, "a"], "category").cat.categories.tolist()
    ['a', 'b']
    """
    if dtype == "category":
        return pd.Series(_categorical(values), copy=False)
    if dtype == "string":
        return pd.Series(_texts(values), copy=False)
    if dtype == "boolean":
        own = getattr(values, "dtype", None)
        # A list, or an array that may hold anything, has to be looked through.
        if isinstance(own, pd.StringDtype) or (
            own in (None, object) and any(isinstance(value, str) for value in values)
        ):
            values = pd.Series(values).map({"True": True, "False": False})  # as CSV has them
    return pd.Series(values, dtype=dtype, copy=False)


def missing(dtype: str, length: int) -> pd.Series[Any]:
    """Return a column of one of the declared dtypes, or of objects for "", without a single value.

    >>> missing("Int64", 2).isna().tolist()
    [True, True]
    """
    values: Any = [None] * length if dtype == "" else None
    if dtype == "string":
        # Arrow's arrays never change, so that all such columns share one.
        text: Any = pd.StringDtype()
        values = text.__from_arrow__(_no_texts(length))
    elif dtype == "category":
        values = pd.Categorical.from_codes(
            np.full(length, -1, np.int8), dtype=pd.CategoricalDtype(pd.Index([], dtype=_NAMES))
        )
    elif dtype:
        array, of = _MASKED[dtype]
        # Zeros that nobody touches take no memory.
        values = array(np.zeros(length, of), np.ones(length, bool))
    return pd.Series(values, copy=False)


@lru_cache(maxsize=1)
def _no_texts(length: int) -> Any:
    return pa.nulls(length, pa.large_string())


def _is_plain_texts(values: Any) -> bool:
    # Strings and Nones alone need no look at each.
    return isinstance(values, list) and _TEXTS.issuperset(map(type, values))


def _texts(values: Any) -> ExtensionArray:
    # A value that is not a string becomes one, and NaN is missing.
    if isinstance(values, pd.Categorical):
        values = values.astype(object)
    # From the cheapest form to the dearest, which looks at every value.
    if _is_plain_texts(values):
        # In one piece where UTF-8 can hold them all: a lone surrogate in one of them cannot.
        with suppress(UnicodeEncodeError):
            plain: ExtensionArray = pd.array(values, dtype="string")
            return plain
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, pd.StringDtype) and dtype.na_value is pd.NA:
        return values  # type: ignore[no-any-return]  # typed as such above
    # NaN alone is not itself.
    texts = [None if v is None or v is pd.NA or v != v else storable(str(v)) for v in values]
    return pd.array(texts, dtype="string")


def _categorical(values: Any) -> pd.Categorical[Any]:
    texts: Any
    # An empty string is missing. Categories are factorized already, perhaps with some that no row
    # has.
    if isinstance(values, pd.Categorical):
        codes, texts = values.codes.astype(np.intp), values.categories
        is_used = np.bincount(codes + 1, minlength=len(texts) + 1)[1:] > 0
    else:
        values = values if _is_plain_texts(values) else _texts(values)
        codes, texts = pd.factorize(np.asarray(values, dtype=object))
        is_used = np.ones(len(texts), bool)

    # Two texts may become one by their escapes, so that places are by name and not by code.
    names = [storable(str(text)) for text in texts]
    ordered = sorted({name for name, used in zip(names, is_used, strict=True) if used and name})
    if isinstance(values, pd.Categorical) and ordered == list(texts) and texts.dtype == _NAMES:
        return values
    place = {name: i for i, name in enumerate(ordered)}

    # The last entry stands for -1, which is what a missing value's code is.
    new_codes = np.array([*(place.get(name, -1) for name in names), -1], dtype=np.int64)
    # Without it no values would be of another dtype than some, and the two could not be joined.
    categories = pd.Index(ordered, dtype=_NAMES)
    return pd.Categorical.from_codes(new_codes[codes], dtype=pd.CategoricalDtype(categories))


def storable(text: str) -> str:
    """Return a text with lone surrogates as escapes: Parquet and CSV hold UTF-8.

    >>> print(storable("a\\ud800b"))
    a\\ud800b
    """
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def surrogate_offsets(text: str | None) -> str | None:
    """Return the offsets of the escapes of lone surrogates in `storable(text)`, as JSON, or None if
    there are none.

    >>> surrogate_offsets("a\\ud800b\\udfff"), surrogate_offsets("plain")
    ('[1,8]', None)
    """
    if text is None or text.isascii() or not _SURROGATE.search(text):
        return None

    # Each escape before one moves it on by what it is longer than its character.
    longer = _ESCAPE - 1
    offsets = [m.start() + longer * n for n, m in enumerate(_SURROGATE.finditer(text))]
    return f"[{','.join(map(str, offsets))}]"


def restored(text: str, offsets: Iterable[int]) -> str:
    """Return the text that `storable` made the escapes of, from its output and their offsets.

    >>> restored("a\\\\ud800b", [1]) == "a\\ud800b"
    True
    """
    parts: list[str] = []
    end = 0
    for offset in offsets:
        digits = text[offset + 2 : offset + _ESCAPE]  # after the backslash and the u
        parts += [text[end:offset], chr(int(digits, 16))]
        end = offset + _ESCAPE
    return "".join([*parts, text[end:]])
