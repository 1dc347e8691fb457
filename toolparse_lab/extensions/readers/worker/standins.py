"""Inert stand-ins for what a parser imports and never needs: an import hook; and a stand-in for a
model's tokenizer.

A server's parser modules are a few files of pure Python in a package that wants a GPU. They run as
they are. Every other module of their package, and every package that is not installed, is a module
in which any name is a class that does nothing.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

_DECORATED = (FunctionType, type, classmethod, staticmethod)


class _InertType(type):
    """Any name of an inert class is another one."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _inert(name)

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


class Inert(metaclass=_InertType):
    """Takes any arguments and does nothing. As a decorator it returns what it decorates."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], _DECORATED):
            return args[0]
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Inert(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert()

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, item: Any) -> bool:
        return False

    def __getitem__(self, key: Any) -> Any:
        return Inert()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # of the worker's interpreter

        return core_schema.any_schema()


def _inert(name: str) -> Any:
    # A name of an exception has to stand after `except`.
    if name.endswith(("Error", "Exception", "Warning")):
        return type(name, (ValueError,), {})
    return type(name, (Inert,), {"__module__": __name__})


def _call_id(id_type: str = "random", func_name: str = "", idx: Any = None) -> str:
    if id_type == "kimi_k2":
        return f"functions.{func_name}:{idx}"
    return f"chatcmpl-tool-{uuid.uuid4().hex}"


def _is_list_of(value: Any, kind: Any, *, check: str = "first") -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(item, kind) for item in (value[:1] if check == "first" else value))


# The few names whose results a parser uses.
_WORKING: Mapping[str, Callable[..., Any]] = {
    "get_tool_call_id_type": lambda *_: "random",
    "iinfo": lambda *_: SimpleNamespace(min=-(2**63), max=2**63 - 1),  # torch's, of the seed
    "is_list_of": _is_list_of,
    "make_tool_call_id": _call_id,
    "random_tool_call_id": _call_id,
    "random_uuid": lambda: uuid.uuid4().hex,
    "replace": replace,
}


class _InertModule(ModuleType):
    __all__: Sequence[str] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        # Kept, so that a class is the same one each time it is imported.
        value = _WORKING.get(name) or _inert(name)
        setattr(self, name, value)
        return value


class _InertLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _InertModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class StandIns(MetaPathFinder):
    """The import hook.

    package: the name of the server's package, in the folder `tree`. real: modules of it, by their
    dotted names below the package, that are loaded as they are, with all below them. Modules named
    `protocol`, the types of requests and answers, always are.
    """

    def __init__(self, package: str, tree: Path, real: Sequence[str]) -> None:
        self._package = package
        self._tree = tree
        self._real = [f"{package}.{name}" for name in real]

    def install(self) -> None:
        # Before all others for the package itself, after all others for what is absent.
        sys.meta_path.insert(0, self)
        sys.meta_path.append(_Absent(self._package))

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self._package and not name.startswith(f"{self._package}."):
            return None
        folder = self._tree.joinpath(*name.split("."))
        is_real = any(name == real or name.startswith(f"{real}.") for real in self._real)
        if is_real or name.endswith(".protocol"):
            spec = PathFinder.find_spec(name, [str(folder.parent)])
            if spec is not None and spec.origin is not None:
                return spec
            # A parser module that this version does not have is missing, as in the server.
            if not folder.is_dir():
                return None
        spec = importlib.util.spec_from_loader(name, _InertLoader(), is_package=True)
        if spec is not None:
            spec.submodule_search_locations = [str(folder)]
        return spec


class _Absent(MetaPathFinder):
    # For imports of the server's own code only: other packages have to hear the truth.
    def __init__(self, package: str) -> None:
        self._package = package
        self._standing: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        top = name.partition(".")[0]
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        asking = "" if frame is None else str(frame.f_globals.get("__name__"))
        if top not in self._standing and asking.partition(".")[0] != self._package:
            return None
        self._standing.add(top)
        return importlib.util.spec_from_loader(name, _InertLoader(), is_package=True)


class _Vocab(dict[str, int]):
    # Whatever a parser asks for is there, and is one token from then on.
    def __init__(self, tokenizer: StandInTokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and bool(text)

    def __missing__(self, text: str) -> int:
        return self._tokenizer.learn(text)

    def get(self, text: Any, default: Any = None) -> Any:
        # Of a mapping that has every text, `dict.get` would say that it has none.
        return self[text] if text in self else default  # noqa: SIM401


class StandInTokenizer:
    """Knows the markers that a parser asks for, each as one token. Other text is a token a piece.

    A vocabulary is megabytes that belong to a model, and parsers use little of it: the ids of
    their markers, and texts of ids that they were given.
    """

    chat_template = None
    is_fast = True
    name_or_path = "stand-in"
    unk_token_id = None
    bos_token = eos_token = pad_token = None
    bos_token_id = eos_token_id = pad_token_id = None

    def __init__(self, template: Any = None) -> None:
        self.response_template = template
        self.vocab = _Vocab(self)
        # An id of 0 would be taken for none by some parsers.
        self._texts: list[str] = [""]
        self._ids: dict[str, int] = {}
        self._is_marker: list[bool] = [False]
        self._is_learning = True
        self._pattern: re.Pattern[str] | None = None

    def _id(self, text: str, is_marker: bool) -> int:
        if text not in self._ids:
            self._ids[text] = len(self._texts)
            self._texts.append(text)
            self._is_marker.append(False)
        id = self._ids[text]
        if is_marker and not self._is_marker[id]:
            self._is_marker[id] = True
            self._pattern = None
        return id

    def learn(self, text: str) -> int:
        """Return the id of a marker, which is one token from now on, if it was none."""
        id = self._id(text, self._is_learning)
        self.vocab[text] = id
        return id

    def end_of_set_up(self) -> None:
        """From now on texts are an answer's: none becomes a marker."""
        self._is_learning = False

    def pieces(self, text: str) -> Iterator[str]:
        """Cut a text at its markers."""
        if self._pattern is None:
            markers = [
                t for t, is_marker in zip(self._texts, self._is_marker, strict=True) if is_marker
            ]
            # The longest first: one may begin with another.
            markers.sort(key=len, reverse=True)
            self._pattern = re.compile(
                "(" + "|".join(map(re.escape, markers)) + ")" if markers else "(?!)"
            )
        return (piece for piece in self._pattern.split(text) if piece)

    def whole_markers(self, chunks: Sequence[str]) -> list[str]:
        """Move the ends of chunks that cut a marker to the end of that marker."""
        ends: list[int] = []
        at = 0
        for chunk in chunks:
            at += len(chunk)
            ends.append(at)
        raw = "".join(chunks)
        spans: list[tuple[int, int]] = []
        at = 0
        for piece in self.pieces(raw):
            spans.append((at, at + len(piece)))
            at += len(piece)
        out: list[str] = []
        start = i = 0
        for end in ends:
            while i < len(spans) and spans[i][1] < end:
                i += 1
            if i < len(spans) and spans[i][0] < end:
                first, after = spans[i]
                id = self._ids.get(raw[first:after])
                if id is not None and self._is_marker[id]:
                    end = after
            if end > start:
                out.append(raw[start:end])
                start = end
        return out

    def encode(self, text: str, *args: Any, **kwargs: Any) -> list[int]:
        if self._is_learning and text:
            return [self.learn(text)]
        return [self._id(piece, False) for piece in self.pieces(text)]

    def __call__(self, text: str, *args: Any, **kwargs: Any) -> dict[str, list[int]]:
        return {"input_ids": self.encode(text)}

    def decode(self, ids: Any, *args: Any, **kwargs: Any) -> str:
        ids = [ids] if isinstance(ids, int) else ids
        return "".join(self._texts[id] for id in ids if 0 <= id < len(self._texts))

    def tokenize(self, text: str, *args: Any, **kwargs: Any) -> list[str]:
        return [self._texts[id] for id in self.encode(text)]

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        return self.vocab[tokens] if isinstance(tokens, str) else [self.vocab[t] for t in tokens]

    def convert_ids_to_tokens(self, ids: Any, *args: Any, **kwargs: Any) -> Any:
        return self.decode(ids) if isinstance(ids, int) else [self.decode(id) for id in ids]

    def get_vocab(self) -> dict[str, int]:
        return self.vocab

    def get_added_vocab(self) -> dict[str, int]:
        return self.vocab

    @property
    def all_special_tokens(self) -> list[str]:
        return [t for t, is_marker in zip(self._texts, self._is_marker, strict=True) if is_marker]

    @property
    def all_special_ids(self) -> list[int]:
        return [self._ids[text] for text in self.all_special_tokens]


def learn_attributes(tokenizer: StandInTokenizer, parser: Any) -> None:
    """Learn the texts that a parser keeps under names such as `tool_call_start_token`."""
    for owner in (type(parser), parser):
        for name in dir(owner):
            if "token" not in name or name.startswith("__"):
                continue
            value = getattr(owner, name, None)
            if isinstance(value, str) and value.strip() and not value.isalnum():
                tokenizer.learn(value.strip())
