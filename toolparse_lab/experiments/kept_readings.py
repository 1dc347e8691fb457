"""A run's frames from what the store keeps of them: an answer is parsed once, and its columns are
read from then on.
"""

# How it works. The items of a run are cut into blocks, in the order of its frames. A block that the
# store does not keep, or whose answers have changed, is read, and its columns are kept: those of
# the trials and those of their calls. What tells one reading from another is in the name of its
# kind: who read, under which policy, and in which version. Notes of people may change at any time:
# their columns are not kept, and are filled when a frame is made. Conversations are not kept, since
# their later turns may come at any time; neither is the reading of a protocol whose version nobody
# knows.

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import StoreError
from ..core.types import Policy
from ..evals.readings.readers import version_of
from ..formats.registry import is_shipped, protocol_of
from ..middleware.flow.reading import internal_problem_of
from ..parser.foreign.protocol import AnyProtocol
from ..runner.exchange.types import PlanItem
from ..runner.progress import Progress, Show
from ..runner.store.readings import Block
from .run_reader import RunReader, in_batches

if TYPE_CHECKING:
    from ..evals.frames.recorded import Frame
    from ..evals.scoring.trial import Trial

BLOCK = 5000
"""Items in a block: reading one takes a few seconds, which is what Ctrl-C may cost."""
FRAMES = ("trials", "calls")
"""The kinds of frames that are kept of a reading."""
_REMARKS = {"note": "note", "override": "outcome", "override_why": "why"}  # column -> part
_ROOMS = ("core", "arguments", "formats", "parser", "middleware", "evals")  # of the readers' code


class KeptReadings:
    """The kept readings of one run."""

    def __init__(self, reader: RunReader) -> None:
        self.reader = reader
        self.store = reader.store
        self.run_id = reader.run_id

    def frame(
        self,
        kind: str,
        only: Mapping[str, Any],
        protocol: AnyProtocol | None,
        policies: Sequence[Policy],
        columns: Sequence[str] | None = None,
        progress: Show = None,
    ) -> Frame:
        """Return the trials frame, or the frame of their calls, of the chosen items.

        kind: "trials" or "calls". columns: only these, as far as they are there.
        """
        from ..evals.frames.dtypes import join_frames, typed  # pandas is slow to import

        chosen = self.reader.items(only)
        with Progress(len(chosen) * len(policies), show=progress, unit="answer") as bar:
            frames = []
            for policy in policies:
                name = self._name(protocol, policy)
                if name is None:
                    trials = self.reader.trials(chosen, protocol, policy)
                    frames += [self._made(kind, batch) for batch in in_batches(trials, BLOCK)]
                else:
                    way = _Way(name, protocol, policy)
                    frames += self._frames(kind, chosen, way, columns, bar)
            frames = frames or [self._made(kind, [])]
        frame = join_frames(frames, kind, columns)
        if kind == "trials" and (remarks := self.store.remarks(self.run_id)):
            for column, part in _REMARKS.items():
                if column in frame:
                    words = [remarks.get(i, {}).get(part) or None for i in frame["trial_id"]]
                    frame[column] = typed(words, "string")
        return frame

    def _frames(
        self,
        kind: str,
        chosen: Sequence[PlanItem],
        way: _Way,
        columns: Sequence[str] | None,
        bar: Progress,
    ) -> Iterator[Frame]:
        from ..evals.frames.files import unpacked  # pandas is slow to import

        everything = self.reader.items({})
        picked = None if len(chosen) == len(everything) else set(map(_identity, chosen))
        name = f"{kind}/{way.name}"
        kept = self.store.reading_blocks(self.run_id, name)
        mark = min((block.newest for block in kept.values()), default=0)
        changed = self.store.answered_since(self.run_id, mark) if kept else set()
        whole: list[bytes] = []  # blocks that follow one another are unpacked together
        for number, items in enumerate(in_batches(everything, BLOCK)):
            wanted = items
            if picked is not None:
                wanted = [item for item in items if _identity(item) in picked]
                if not wanted:
                    continue
            body = None
            if number in kept and self._is_true(kept[number], items, changed):
                body = self.store.reading_block(self.run_id, name, number)
                if body is None:
                    warnings.warn(
                        f"what the store kept of {len(items)} parsed answers is damaged or gone: "
                        "they are parsed again",
                        RuntimeWarning,
                        stacklevel=5,
                    )
            is_few = 2 * len(wanted) < len(items)
            if body is None and is_few:
                yield from self._joined(whole, kind, columns)
                trials = self.reader.trials(wanted, way.protocol, way.policy)
                yield self._made(kind, list(trials))
            else:
                body = self._read(kind, number, items, way) if body is None else body
                if len(wanted) == len(items):
                    whole.append(body)
                else:
                    yield from self._joined(whole, kind, columns)
                    loaded = None if columns is None else [*columns, *_IDENTITY]
                    frame = unpacked([body], kind, loaded)
                    of_row = zip(*(frame[column] for column in _IDENTITY), strict=True)
                    own = set(map(_identity, wanted))
                    yield frame[[identity in own for identity in of_row]]
            bar.advance(len(wanted))
        yield from self._joined(whole, kind, columns)

    @staticmethod
    def _joined(bodies: list[bytes], kind: str, columns: Sequence[str] | None) -> Iterator[Frame]:
        from ..evals.frames.files import unpacked  # pandas is slow to import

        if bodies:
            yield unpacked(bodies, kind, columns)
            bodies.clear()

    def _read(self, kind: str, number: int, items: Sequence[PlanItem], way: _Way) -> bytes:
        from ..evals.frames.files import packed  # pandas is slow to import

        # The mark comes first: an answer that is recorded meanwhile is seen the next time.
        mark = self.store.newest_row()
        made_of = Block(_digest_of_items(items), self._digest_of_answers(items), mark)
        trials = list(self.reader.trials(items, way.protocol, way.policy))
        bodies = {}
        for each in FRAMES:
            made = self._made(each, trials)
            kept = made.drop(columns=[name for name in _REMARKS if name in made])
            bodies[each] = packed(kept, each)
        # What failed for a fault of ours may do better the next time.
        if not any(internal_problem_of(trial.result) for trial in trials):
            # A store that cannot be written is read all the same.
            with suppress(StoreError):
                for each, body in bodies.items():
                    name = f"{each}/{way.name}"
                    self.store.keep_reading(self.run_id, name, number, made_of, body)
        return bodies[kind]

    def _is_true(self, block: Block, items: Sequence[PlanItem], changed: set[str]) -> bool:
        if block.items != _digest_of_items(items):
            return False
        untouched = changed.isdisjoint(item.key for item in items) if changed else True
        return untouched or block.answers == self._digest_of_answers(items)

    def _digest_of_answers(self, items: Sequence[PlanItem]) -> str:
        ids = self.store.answer_ids(self.run_id, {item.key for item in items})
        return _digest(str(ids.get(item.key)) for item in items)

    def _made(self, kind: str, trials: Sequence[Trial]) -> Frame:
        from ..evals.frames.recorded import calls_frame  # pandas is slow to import

        return calls_frame(trials) if kind == "calls" else self.reader.trials_frame(trials)

    def _name(self, protocol: AnyProtocol | None, policy: Policy) -> str | None:
        # What tells this reading from others; None for one that is not kept.
        arms = self.reader.plan.arms
        if any(arm.conversing for arm in arms):
            return None
        readers = [arm.reader for arm in arms] if protocol is None else [protocol]
        versions = [version_of(reader) for reader in readers]
        own = [is_shipped(r.id) and protocol_of(r.id) is not r for r in readers]
        if None in versions or any(own):
            return None
        version = _digest([code_digest(), *map(str, versions), *(r.id for r in readers)])
        return f"{'own' if protocol is None else protocol.id}/{policy}/{version[:16]}"


_IDENTITY = ("case_id", "model", "arm", "trial")


def _identity(item: PlanItem) -> tuple[str, str, str, int]:
    # The columns above say the same of a row.
    return item.case_id, item.model, str(item.arm["arm"]), item.trial


@dataclass(frozen=True, slots=True)
class _Way:
    name: str
    protocol: AnyProtocol | None
    policy: Policy


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()


def _digest_of_items(items: Iterable[PlanItem]) -> str:
    return _digest(f"{i.key} {i.trial} {i.model} {i.arm['arm']} {i.case_id}" for i in items)


@cache
def code_digest() -> str:
    """Return the version of our readers: a digest of the code that reads and scores."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for room in _ROOMS:
        for file in sorted((package / room).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
