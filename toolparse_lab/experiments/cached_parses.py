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
#
# Blocks are read by this process or by a pool. Whoever reads takes the answers from the store
# itself, and sends back columns, which are small; this process alone writes them. So what was read
# before Ctrl-C or a lost worker stays.
#
# When all blocks of a run were found true, one more row says so (`_seal`). While nothing was
# recorded since, the next frame needs neither the run's items nor its cases.

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import StoreError
from ..core.types import Policy
from ..entry.foreign.protocol import AnyProtocol
from ..evals.cases.collection import Cases
from ..evals.engines import (
    Engine,
    available_processes,
    collector_paused,
    results_of,
    travels,
)
from ..evals.parsers.outside import version_of
from ..evals.scoring.trial import Trial
from ..formats.registry import is_shipped, protocol_of
from ..middleware.flow.reading import internal_problem_of
from ..runner.exchange.types import Held, PlanItem
from ..runner.progress import Progress
from ..runner.store.cached_parses import Block
from ..runner.store.store import Store
from .plan import Plan
from .trial_reader import TrialReader, in_batches

if TYPE_CHECKING:
    from ..evals.frames.files import FrameEngine
    from ..evals.frames.recorded import Frame

BLOCK = 5000
"""Items in a block: reading one takes a few seconds, which is what Ctrl-C may cost."""
MANY = 20_000
"""Answers from which on all cores read them: others have begun before one is through with fewer."""
_SHOWN = 3000  # answers that take two seconds, from which on progress is shown
FRAMES = ("trials", "calls")
"""The kinds of frames that are kept of a reading."""
_SEAL = -1  # the number, among the blocks of the trials, of the row that speaks of all
_REMARKS = {"note": "note", "override": "outcome", "override_why": "why"}  # column -> part
_ROOMS = ("core", "arguments", "formats", "parser", "middleware", "evals")  # of the readers' code
_IDENTITY = ("case_id", "model", "arm", "trial")


class _Gone(Exception):
    """A block is not there any more, or damaged."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to read: by one protocol, or by each arm's own, under a policy.

    `readers` names who reads, `version` the code that does.
    """

    readers: str
    version: str
    protocol: AnyProtocol | None
    policy: Policy

    def kind(self, frame: str) -> str:
        """Return the name under which the store keeps a kind of frame of this reading."""
        return f"{frame}/{self.readers}/{self.policy}/{self.version}"


class CachedParses:
    """The kept readings of one run."""

    def __init__(self, reader: TrialReader) -> None:
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
    ) -> Frame:
        """Return the trials frame, or the frame of their calls, of the chosen items.

        kind: "trials" or "calls". columns: only these, as far as they are there; a person's remarks
        with the trial_id.
        """
        from ..evals.frames.dtypes import join_frames  # pandas is slow to import

        ways = [self._way(protocol, policy) for policy in policies]
        unkept = {} if only else self._parse_missing(ways)
        frames = []
        whole = None
        for policy, way in zip(policies, ways, strict=True):
            if way is None:
                trials = self.reader.trials(self.reader.items(only), protocol, policy)
                frames += [_made(self.reader, kind, batch) for batch in in_batches(trials, BLOCK)]
                continue
            whole = None if only else _whole(self._sealed(kind, [way]), kind, columns)
            bodies = unkept.get(policy, {})
            frames += self._frames(kind, only, way, columns, bodies) if whole is None else [whole]
        if len(frames) != 1 or whole is None:
            frames = [join_frames(frames or [_made(self.reader, kind, [])], kind, columns)]
        (frame,) = frames
        return self._remarked(frame, columns) if kind == "trials" else frame

    def coded(
        self, columns: Sequence[str], policies: Sequence[Policy], as_texts: Collection[str]
    ) -> Frame:
        """Return columns of the trials frame, of all trials, as `unpacked` has them coded where the
        run is kept.
        """
        bodies = self._all_kept(None, policies)
        frame = _whole(bodies, "trials", columns, coded=True, as_texts=as_texts)
        if frame is None:
            return self.frame("trials", {}, None, policies, columns)
        return self._remarked(frame, columns)

    def table(
        self, protocol: AnyProtocol | None, policies: Sequence[Policy], engine: FrameEngine
    ) -> Any:
        """Return the trials frame of all items as another library has it."""
        # pandas is slow to import
        from ..evals.frames.files import convert_frame, unpacked, unpacked_table

        if (bodies := self._all_kept(protocol, policies)) is not None:
            with suppress(_Gone):
                kept = list(bodies)
                remarks = {}
                if self.store.remarks(self.run_id):
                    ids = unpacked(kept, "trials", ["trial_id"])["trial_id"].tolist()
                    remarks = self._remarks_on(ids)
                return unpacked_table(kept, "trials", engine, remarks)
        return convert_frame(self.frame("trials", {}, protocol, policies), "trials", engine)

    def _all_kept(
        self, protocol: AnyProtocol | None, policies: Sequence[Policy]
    ) -> Iterator[bytes] | None:
        # The blocks of all trials, which are parsed where they are not there. None if they cannot
        # be kept.
        ways = [way for policy in policies if (way := self._way(protocol, policy)) is not None]
        self._parse_missing(ways)
        return self._sealed("trials", ways) if len(ways) == len(policies) else None

    def _parse_missing(self, ways: Iterable[Way | None]) -> dict[Policy, dict[int, _Parsed]]:
        # Parses what is not kept of all trials, and returns the blocks that cannot be kept.
        unkept = {}
        for way in ways:
            if way is not None and self._sealed("trials", [way]) is None:
                parsed = self._parsed_of_all(way)
                unkept[way.policy] = {block.number: block for block in parsed if not block.kept}
        if unkept:
            self.reader.forget_plan()  # or it is in memory next to the frame
        return unkept

    def _remarked(self, frame: Frame, columns: Sequence[str] | None = None) -> Frame:
        from ..evals.frames.dtypes import missing, typed  # pandas is slow to import

        wanted = [name for name in _REMARKS if columns is None or name in columns]
        if wanted and self.store.remarks(self.run_id):
            remarks = self._remarks_on(frame["trial_id"].tolist())
            for name in wanted:
                frame[name] = typed(remarks[name], "string")
        else:
            for name in wanted:
                frame[name] = missing("string", len(frame))
        return frame

    def _remarks_on(self, ids: Collection[str]) -> dict[str, list[str | None]]:
        # The columns of what people have said of trials.
        remarks = self.store.remarks(self.run_id)
        return {
            column: [remarks.get(i, {}).get(part) or None for i in ids]
            for column, part in _REMARKS.items()
        }

    def rows(
        self, ids: Collection[str], protocol: AnyProtocol | None, policies: Sequence[Policy]
    ) -> Frame:
        """Return the rows of some trials, without loading the columns of all the others."""
        from ..evals.frames.dtypes import join_frames  # pandas is slow to import

        frames = []
        for policy in policies:
            way = self._way(protocol, policy)
            bodies = None if way is None else self._sealed("trials", [way])
            frame = _whole(bodies, "trials", ids=ids)
            if frame is None:
                frame = self.frame("trials", {}, protocol, (policy,))
                frame = frame[frame["trial_id"].isin(ids)]
            frames.append(frame)
        return self._remarked(join_frames(frames, "trials"))

    def _parsed_of_all(self, way: Way) -> list[_Parsed]:
        # Parses the blocks of all trials that are not kept.
        mark = self.store.newest_row()
        since = self.store.recorded_since(mark)
        blocks = dict(enumerate(in_batches(self.reader.items({}), BLOCK)))
        missing = {n: blocks[n] for n in blocks.keys() - self._true(way, blocks)}
        # The columns of what is kept come from the store again, when they are wanted.
        parsed = [
            replace(block, bodies={}) if block.kept else block
            for block in self._parsed(missing, way)
        ]
        if blocks and all(block.kept for block in parsed):
            self._seal(way, mark, since)
        return parsed

    def _way(self, protocol: AnyProtocol | None, policy: Policy) -> Way | None:
        # None for a reading that is not kept.
        arms = self.reader.plan.arms
        if any(arm.conversing for arm in arms):
            return None
        readers = [arm.reader for arm in arms] if protocol is None else [protocol]
        versions = [version_of(reader) for reader in readers]
        own = [is_shipped(r.id) and protocol_of(r.id) is not r for r in readers]
        if None in versions or any(own):
            return None
        version = _digest([code_digest(), *map(str, versions), *(r.id for r in readers)])
        readers_name = "own" if protocol is None else protocol.id
        return Way(readers_name, version[:16], protocol, policy)

    # -- what is there

    def _frames(
        self,
        kind: str,
        only: Mapping[str, Any],
        way: Way,
        columns: Sequence[str] | None,
        parsed: Mapping[int, _Parsed],
    ) -> Iterator[Frame]:
        # parsed: blocks that could not be kept.
        from ..evals.frames.files import unpacked  # pandas is slow to import

        chosen = self.reader.items(only)
        everything = self.reader.items({})
        picked = set(map(_identity, chosen)) if len(chosen) < len(everything) else None
        blocks, wanted = {}, {}
        for number, items in enumerate(in_batches(everything, BLOCK)):
            own = [i for i in items if _identity(i) in picked] if picked is not None else items
            if own:
                blocks[number], wanted[number] = items, own

        true = self._true(way, blocks) | parsed.keys()
        # Of a block of which little is wanted, just that is read.
        few = {n for n, own in wanted.items() if n not in true and 2 * len(own) < len(blocks[n])}
        missing = {n: blocks[n] for n in blocks if n not in true and n not in few}
        parsed = {**parsed, **{p.number: p for p in self._parsed(missing, way) if not p.kept}}

        whole: list[bytes] = []  # blocks that follow one another are unpacked together
        for number, items in blocks.items():
            own = wanted[number]
            body = None
            if number not in few:
                body = (
                    parsed[number].bodies[kind]
                    if number in parsed
                    else self._body(kind, number, items, way)
                )
                if len(own) == len(items):
                    whole.append(body)
                    continue
            if whole:
                yield unpacked(whole, kind, columns)
                whole.clear()
            if body is None:
                trials = self.reader.trials(own, way.protocol, way.policy)
                yield _made(self.reader, kind, list(trials))
            else:
                loaded = None if columns is None else [*columns, *_IDENTITY]
                frame = unpacked([body], kind, loaded)
                of_row = zip(*(frame[column] for column in _IDENTITY), strict=True)
                identities = set(map(_identity, own))
                yield frame[[identity in identities for identity in of_row]]
        if whole:
            yield unpacked(whole, kind, columns)

    def _body(self, kind: str, number: int, items: Sequence[PlanItem], way: Way) -> bytes:
        body = self.store.reading_block(self.run_id, way.kind(kind), number)
        if body is not None:
            return body
        warnings.warn(
            f"what the store kept of {len(items)} parsed answers is damaged or gone: "
            "they are parsed again",
            RuntimeWarning,
            stacklevel=6,
        )
        (parsed,) = self._parsed({number: items}, way)
        return parsed.bodies[kind]

    def _true(self, way: Way, blocks: Mapping[int, Sequence[PlanItem]]) -> set[int]:
        # The numbers of those blocks that are kept and say what would be read now.
        kept = self.store.reading_blocks(self.run_id, way.kind("trials"))
        mark = min((block.newest for block in kept.values()), default=0)
        changed = self.store.answered_since(self.run_id, mark) if kept else set()
        true = set()
        for number in kept.keys() & blocks.keys():
            block, items = kept[number], blocks[number]
            if block.items == _digest_of_items(items) and (
                changed.isdisjoint(item.key for item in items)
                or block.answers == _digest_of_answers(self.reader, items)
            ):
                true.add(number)
        return true

    # -- all of it at once

    def _digest_of(self, blocks: Mapping[int, Block]) -> str:
        # What a seal speaks of: the items in the order of frames, and their blocks.
        plan = self.reader.plan
        arms = [arm.name for arm in plan.arms]
        rows = [(n, b.items, b.answers) for n, b in sorted(blocks.items()) if n != _SEAL]
        made_of = [str(len(plan.items)), *plan.models, "", *arms, str(BLOCK)]
        return _digest([*made_of, *map(str, rows)])

    def _seal(self, way: Way, mark: int, since: str) -> None:
        # mark, since: of the store before the blocks were found true.
        kind = way.kind("trials")
        blocks = self.store.reading_blocks(self.run_id, kind)
        seal = Block(self._digest_of(blocks), since, mark)
        with suppress(StoreError):  # a store that cannot be written is read all the same
            self.store.keep_reading(self.run_id, kind, _SEAL, seal, b"")

    def _sealed(self, kind: str, ways: Sequence[Way]) -> Iterator[bytes] | None:
        # The bodies of all blocks, one after the other, if it is sure that they are true.
        places = []
        for way in ways:
            blocks = self.store.reading_blocks(self.run_id, way.kind("trials"))
            seal = blocks.get(_SEAL)
            if seal is None or seal.items != self._digest_of(blocks):
                return None
            if seal.answers != self.store.recorded_since(seal.newest):
                return None
            places += [(way.kind(kind), number) for number in sorted(blocks.keys() - {_SEAL})]

        def body_of(place: tuple[str, int]) -> bytes:
            body = self.store.reading_block(self.run_id, *place)
            if body is None:
                raise _Gone
            return body

        return map(body_of, places)

    # -- parsing

    def _parsed(self, blocks: Mapping[int, Sequence[PlanItem]], way: Way) -> Iterator[_Parsed]:
        # Yields each block when it is parsed, and kept as far as that can be.
        count = sum(map(len, blocks.values()))
        # A store in memory is not there for other processes.
        url = str(self.store.shared_url or "")
        on_all_cores = count >= MANY and available_processes() > 1 and url
        can_travel = on_all_cores and travels((way, self.reader.plan.arms))
        engine: Engine = "processes" if can_travel else "serial"
        parse = partial(parse_block, self.reader) if engine == "serial" else parse_elsewhere
        works = (
            _Work(number, tuple(items), way, self.run_id, self.reader.plan)
            if engine == "serial"
            else self._travelling(number, items, way, url)
            for number, items in sorted(blocks.items())
        )
        results = results_of(parse, works, engine)
        show = None if count >= _SHOWN else False
        with Progress(count, show=show, unit="answer") as bar, closing(results):
            for parsed in results:
                bar.advance(len(blocks[parsed.number]))
                if not parsed.faulty:
                    with suppress(StoreError):  # as in `_seal`
                        for kind, body in parsed.bodies.items():
                            self.store.keep_reading(
                                self.run_id, way.kind(kind), parsed.number, parsed.made_of, body
                            )
                        parsed = replace(parsed, kept=True)
                yield parsed

    def _travelling(self, number: int, items: Sequence[PlanItem], way: Way, url: str) -> _Work:
        # With as much of the plan as reading these takes, and none of the models' credentials.
        plan = self.reader.plan
        cases = Cases(plan.cases[case_id] for case_id in dict.fromkeys(i.case_id for i in items))
        part = Plan(cases, {}, plan.arms, plan.trials, tuple(items), Held(()))
        return _Work(number, tuple(items), way, self.run_id, part, url, self.reader.metadata())


def _whole(
    bodies: Iterable[bytes] | None, kind: str, columns: Sequence[str] | None = None, **options: Any
) -> Frame | None:
    # None where the blocks are not known to be true, or one of them is gone.
    from ..evals.frames.files import unpacked  # pandas is slow to import

    if bodies is not None:
        with suppress(_Gone):
            return unpacked(bodies, kind, columns, **options)
    return None


@dataclass(frozen=True, slots=True)
class _Work:
    # One block. The end is for another process, which has no reader.
    number: int
    items: tuple[PlanItem, ...]
    way: Way
    run_id: str
    plan: Plan
    url: str = ""
    metadata: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Parsed:
    # bodies: kind -> what is to be kept. faulty: for a fault of ours, which may be gone next time.
    number: int
    made_of: Block
    bodies: Mapping[str, bytes]
    faulty: bool
    count: int  # of its answers
    kept: bool = False


def parse_elsewhere(work: _Work) -> _Parsed:
    """Parse a block in a process that has nothing but the work."""
    with Store(work.url) as store:
        reader = TrialReader(store, work.run_id, work.plan, metadata=work.metadata)
        return parse_block(reader, work)


def parse_block(reader: TrialReader, work: _Work) -> _Parsed:
    """Return the columns of a block's answers, and what made it."""
    from ..evals.frames.files import packed  # pandas is slow to import

    way = work.way
    # The mark comes first: an answer that is recorded meanwhile is seen the next time.
    mark = reader.store.newest_row()
    answers = _digest_of_answers(reader, work.items)
    made_of = Block(_digest_of_items(work.items), answers, mark)
    bodies = {}
    with collector_paused():
        trials = list(reader.trials(work.items, way.protocol, way.policy, remarked=False))
        for kind in FRAMES:
            frame = _made(reader, kind, trials)
            frame = frame.drop(columns=[name for name in _REMARKS if name in frame])
            bodies[kind] = packed(frame, kind)
        faulty = any(internal_problem_of(trial.result) for trial in trials)
    return _Parsed(work.number, made_of, bodies, faulty, len(work.items))


def _made(reader: TrialReader, kind: str, trials: Sequence[Trial]) -> Frame:
    from ..evals.frames.recorded import calls_frame  # pandas is slow to import

    return calls_frame(trials) if kind == "calls" else reader.trials_frame(trials)


def _identity(item: PlanItem) -> tuple[str, str, str, int]:
    # The columns of this name say the same of a row.
    return item.case_id, item.model, str(item.arm["arm"]), item.trial


def _digest(words: Iterable[str]) -> str:
    return sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()


def _digest_of_items(items: Iterable[PlanItem]) -> str:
    return _digest(f"{i.key} {i.trial} {i.model} {i.arm['arm']} {i.case_id}" for i in items)


def _digest_of_answers(reader: TrialReader, items: Sequence[PlanItem]) -> str:
    ids = reader.store.answer_ids(reader.run_id, {item.key for item in items})
    return _digest(str(ids.get(item.key)) for item in items)


@cache
def code_digest() -> str:
    """Return the version of our readers: a digest of the code that reads and scores."""
    digest = sha256()
    package = Path(__file__).parents[1]
    for room in _ROOMS:
        for file in sorted((package / room).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
