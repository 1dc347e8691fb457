"""Recordings: completions as a JSONL file for git, and replays that never call a model."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadOptions, MissingRecording, UnreadableInput
from ...core.files import replace_file
from ...core.remote import local_path
from ..exchange.types import Completion, Request
from .batches import batches

if TYPE_CHECKING:
    from .store import Store

# How a recording is laid out. One JSON object a line: a head with format and version, then the
# completions, ASCII only, members and lines sorted. So the same completions always give the same
# bytes, and a change in one answer is a change in one line, which is what git shows. A file is
# written next to its place and moved there, so that nobody ever reads half of one.

FORMAT = "toolparse-recording"
VERSION = 1


def export_recording(
    store: Store, path: str | Path, *, run_id: str | None = None, keys: Iterable[str] | None = None
) -> int:
    """Write a run's completions, or those of `keys`, one line each, sorted by key. Return how many.

    The same completions give the same bytes. Raises MissingRecording for keys the store does not
    know, BadOptions where neither or both of `run_id` and `keys` are given.
    """
    if (run_id is None) == (keys is None):
        raise BadOptions(
            "A recording is of one run or of some keys.", expected="run_id=... or keys=..."
        )
    if keys is None:
        sorted_keys = sorted({item.key for item in store.items(run_id or "")})
    else:
        sorted_keys = sorted(set(keys))
        _check_recorded(sorted_keys, store.recorded_keys(sorted_keys), "the store")
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for batch in batches(sorted_keys):
            answers = store.answers(batch, run_id=run_id)
            count += len(answers)
            yield from (answers[key].to_json() for key in batch if key in answers)

    _write_lines(path, lines())
    return count


def write_recording(path: str | Path, completions: Iterable[Completion]) -> None:
    """Write completions sorted by key. The file is replaced as a whole or not at all."""
    _write_lines(path, (text for _, text in sorted((c.key, c.to_json()) for c in completions)))


def _write_lines(path: str | Path, lines: Iterable[str]) -> None:
    head = json.dumps({"format": FORMAT, "version": VERSION}, separators=(",", ":"))
    replace_file(path, (text + "\n" for text in chain([head], lines)))


def read_recording(path: str | Path) -> Iterator[Completion]:
    """Yield the completions of a recording. Raises UnreadableInput that names the line."""
    path = local_path(path)
    try:
        f = path.open("rb")
    except (OSError, ValueError) as e:
        raise UnreadableInput(
            "the recording cannot be opened",
            got=f"{path}: {getattr(e, 'strerror', None) or e}",
            hint="`toolparse run plan.toml --recording FILE` writes one",
        ) from None

    with f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            place = f"{path.name}, line {number}"
            try:
                obj = json.loads(line.decode("utf-8"))
            except UnicodeDecodeError as e:
                raise UnreadableInput(f"{place}: not UTF-8, so no recording.", got=str(e)) from None
            except (ValueError, RecursionError) as e:
                raise UnreadableInput(f"{place}: not JSON.", got=str(e)) from None
            if not isinstance(obj, dict):
                got = line[:80].decode("utf-8", "replace")
                raise UnreadableInput(f"{place}: not a recorded completion.", got=got)
            # A head is optional: lines of several recordings may be joined by hand.
            if number == 1 and obj.get("format") == FORMAT:
                if obj.get("version") != VERSION:
                    raise UnreadableInput(
                        "this recording was written by a newer version of toolparse_lab",
                        got=f"version {obj.get('version')}",
                        expected=f"at most {VERSION}",
                        hint="upgrade toolparse_lab",
                    )
                continue
            try:
                yield Completion.from_dict(obj)
            except UnreadableInput as e:
                raise UnreadableInput(
                    f"{place}: {e.message}", got=e.got, expected=e.expected
                ) from None


def is_recording(path: str | Path) -> bool:
    """Return True for a file with the head of a recording."""
    try:
        with local_path(path).open("rb") as f:
            head = json.loads(f.readline(1000))
    except (OSError, ValueError, RecursionError, UnreadableInput):
        return False
    return isinstance(head, dict) and head.get("format") == FORMAT


def import_recording(path: str | Path, store: Store, *, run_id: str | None = None) -> int:
    """Add a recording's completions to a store. Return how many were new.

    Every line is read before the first one is written. Stopped half way, the same import later adds
    the rest.
    """
    path = local_path(path)
    for _ in read_recording(path):
        pass

    new = 0
    for batch in batches(read_recording(path)):
        histories = store.histories(c.key for c in batch)
        adding = []
        for completion in batch:
            # The same answer twice in one file is one answer, too.
            history = histories.setdefault(completion.key, [])
            if _bare(completion) not in map(_bare, history):
                adding.append(completion)
                history.append(completion)
        store.record_many(adding, run_id)
        new += len(adding)
    return new


def _bare(completion: Completion) -> Completion:
    # The store keeps the request once for all completions of a key; results may be added later.
    return dataclasses.replace(completion, request={}, results=())


class Replay:
    """A completion function that only reads recordings: `await replay(request)`.

    Raises MissingRecording for questions never recorded, naming the keys. `check` does so for many
    at once, before anything is answered.
    """

    free = True  # no limit on cost is for what was paid already

    def __init__(self, source: Store | str | os.PathLike[str]) -> None:
        self._store: Store | None = None
        self._completions: dict[str, Completion] = {}
        if isinstance(source, (str, os.PathLike)):
            self._name = Path(source).name
            for completion in read_recording(str(source)):
                # Of several for a key the last success counts, else the last failure.
                earlier = self._completions.get(completion.key)
                if earlier is None or completion.ok or not earlier.ok:
                    self._completions[completion.key] = completion
        else:
            self._name = "the store"
            self._store = source

    def check(self, keys: Iterable[str]) -> None:
        """Raise MissingRecording that names every key without a recording."""
        unique = dict.fromkeys(keys)
        recorded: Collection[str] = self._completions
        if self._store is not None:
            recorded = self._store.recorded_keys(unique)
        _check_recorded(unique, recorded, self._name)

    async def __call__(self, request: Request) -> Completion:
        return self.answer(request)

    def answer(self, request: Request) -> Completion:
        """Return the recorded answer to a request, for code that is not async."""
        key = request.key
        read = self._completions if self._store is None else self._store
        completion = read.get(key)
        if completion is None:
            raise _missing([key], self._name)
        return dataclasses.replace(completion, fidelity="replayed")


def replay(source: Store | str | os.PathLike[str]) -> Replay:
    """Return a completion function that never calls a model.

    `run_requests(requests, store, complete=replay("recording.jsonl"))` records its answers as if
    they had just arrived, marked as replayed.
    """
    return Replay(source)


def _check_recorded(keys: Iterable[str], recorded: Collection[str], source: str) -> None:
    missing = [key for key in keys if key not in recorded]
    if missing:
        raise _missing(missing, source)


def _missing(keys: list[str], source: str) -> MissingRecording:
    names = ", ".join(keys[:5])
    if len(keys) > 5:
        names += f" and {len(keys) - 5} more"
    return MissingRecording(
        f"{len(keys)} of the completions asked for were never recorded in {source}: {names}",
        keys=tuple(keys),
        hint="record them by running the plan against the models, or change the plan back",
    )
