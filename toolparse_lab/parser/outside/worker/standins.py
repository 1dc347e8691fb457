"""Inert stand-ins for what a parser imports and never needs: an import hook.

A server's parser modules are a few files of pure Python in a package that wants a GPU. They run as
they are. Every other module of their package, and every package that is not installed, is a module
in which any name is a class that does nothing.
"""

from __future__ import annotations

import importlib.util
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
        if top not in self._standing and not self._is_asked_by_server(sys._getframe(1)):
            return None
        self._standing.add(top)
        return importlib.util.spec_from_loader(name, _InertLoader(), is_package=True)

    def _is_asked_by_server(self, frame: FrameType | None) -> bool:
        while frame is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        asking = "" if frame is None else str(frame.f_globals.get("__name__"))
        return asking.partition(".")[0] == self._package
