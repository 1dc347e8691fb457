"""Recordings: completions as a JSONL file for git, and replays that never call a model."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import BadOptions, MissingRecording, UnreadableInput
from .batches import batches
from .types import Completion, Request

if TYPE_CHECKING:
    from .store import Store

FORMAT = "toolparse-recording"
VERSION = 1


def export_recording(
    store: Store, path: str | Path, *, run_id: str | None = None, keys: Iterable[str] | None = None
) -> int:
    """Writes a run's completions, or those of `keys`, one line each, sorted by key; returns how many.

    The same completions give the same bytes. Raises MissingRecording for keys the store does not know, BadOptions
    where neither or both of `run_id` and `keys` are given.
    """
    if (run_id is None) == (keys is None):
        raise BadOptions("A recording is of one run or of some keys.", expected="run_id=... or keys=...")
    if keys is None:
        wanted = sorted({item.key for item in store.items(run_id or "")})
    else:
        wanted = sorted(set(keys))
        known = store.recorded_keys(wanted)
        missing = [key for key in wanted if key not in known]
        if missing:
            raise _missing(missing, "the store")
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for batch in batches(wanted):
            found = store.answers(batch, run_id=run_id)
            count += len(found)
            yield from (found[key].to_json() for key in batch if key in found)

    _write_lines(path, lines())
    return count


def write_recording(path: str | Path, completions: Iterable[Completion]) -> None:
    """Writes completions sorted by key; the file is replaced as a whole or not at all."""
    _write_lines(path, (text for _, text in sorted((c.key, c.to_json()) for c in completions)))


def _write_lines(path: str | Path, lines: Iterable[str]) -> None:
    path = Path(path)
    head = json.dumps({"format": FORMAT, "version": VERSION}, separators=(",", ":"))
    handle, temporary = tempfile.mkstemp(dir=path.parent or Path(), prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="ascii", newline="\n") as f:
            f.write(head + "\n")
            f.writelines(text + "\n" for text in lines)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def read_recording(path: str | Path) -> Iterator[Completion]:
    """The completions of a recording. Raises UnreadableInput that names the line."""
    path = Path(path)
    try:
        f = path.open(encoding="utf-8")
    except OSError as e:
        raise UnreadableInput("The recording cannot be opened.", got=str(e)) from None
    with f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            where = f"{path.name}, line {number}"
            try:
                obj = json.loads(line)
            except ValueError as e:
                raise UnreadableInput(f"{where}: not JSON.", got=str(e)) from None
            if not isinstance(obj, dict):
                raise UnreadableInput(f"{where}: not a recorded completion.", got=line[:80])
            if number == 1 and obj.get("format") == FORMAT:
                if obj.get("version") != VERSION:
                    raise UnreadableInput(
                        "This recording was written by a newer version of toolparse_lab.",
                        got=f"version {obj.get('version')}",
                        expected=f"at most {VERSION}",
                        hint="upgrade toolparse_lab",
                    )
                continue
            try:
                yield Completion.from_dict(obj)
            except UnreadableInput as e:
                raise UnreadableInput(f"{where}: {e.message}", got=e.got, expected=e.expected) from None


def import_recording(path: str | Path, store: Store, *, run_id: str | None = None) -> int:
    """Adds a recording's completions to a store; returns how many were new.

    Every line is read before the first one is written. Stopped half way, the same import later adds the rest.
    """
    for _ in read_recording(path):
        pass
    new = 0
    for some in batches(read_recording(path)):
        known = store.histories(c.key for c in some)
        adding = []
        for completion in some:
            seen = known.setdefault(completion.key, [])
            if _bare(completion) not in map(_bare, seen):
                adding.append(completion)
                seen.append(completion)
        store.record_many(adding, run_id)
        new += len(adding)
    return new


def _bare(completion: Completion) -> Completion:
    """Without the request, which the store keeps once for all completions of a key, and without results, which may
    have been added later."""
    return dataclasses.replace(completion, request={}, results=())


class Replay:
    """A completion function that only reads recordings: `await replay(request)`.

    Raises MissingRecording for what was never recorded, naming the keys; `check` does so for many at once, before
    anything is answered.
    """

    free = True  # no limit on cost holds for what was paid already

    def __init__(self, source: Store | str | Path) -> None:
        self._store: Store | None = None
        self._recorded: dict[str, Completion] = {}
        if isinstance(source, (str, Path)):
            self._name = Path(source).name
            for completion in read_recording(source):
                known = self._recorded.get(completion.key)
                if known is None or completion.ok or not known.ok:
                    self._recorded[completion.key] = completion
        else:
            self._name = "the store"
            self._store = source

    def _get(self, key: str) -> Completion | None:
        return self._store.get(key) if self._store is not None else self._recorded.get(key)

    def check(self, keys: Iterable[str]) -> None:
        """Raises MissingRecording that names every key without a recording."""
        asked = dict.fromkeys(keys)
        known = self._recorded.keys() if self._store is None else self._store.recorded_keys(asked)
        missing = [key for key in asked if key not in known]
        if missing:
            raise _missing(missing, self._name)

    async def __call__(self, request: Request) -> Completion:
        return self.answer(request)

    def answer(self, request: Request) -> Completion:
        """The same, for code that is not async."""
        key = request.key
        completion = self._get(key)
        if completion is None:
            raise _missing([key], self._name)
        return dataclasses.replace(completion, fidelity="replayed")


def replay(source: Store | str | Path) -> Replay:
    """`run_requests(requests, store, complete=replay("recording.jsonl"))` never calls a model."""
    return Replay(source)


def _missing(keys: list[str], where: str) -> MissingRecording:
    shown = ", ".join(keys[:5]) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
    return MissingRecording(
        f"{len(keys)} of the completions asked for were never recorded in {where}: {shown}",
        keys=tuple(keys),
        hint="record them by running the plan against the models, or change the plan back",
    )
