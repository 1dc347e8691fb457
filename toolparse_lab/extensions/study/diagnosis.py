"""Which layer broke an answer, found out by asking again under interventions."""

# How it works. Every layer is a hypothesis, with several shares of requests that it may break. A
# probe is the same request with one thing changed; it heals the faults of some layers and leaves
# those of others. What comes of a probe, and what a failing answer says of itself (`trial.blame`),
# make hypotheses more or less likely by Bayes' rule. The next probe is the one that is expected to
# tell most; asking ends when one layer is likely enough, or at the budget. The numbers in `_SIGNS`
# and the thresholds were set on faults that `benchmarks/blame.py` simulates, and looked at again on
# those that it plants over HTTP.

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args, overload

from ...core.errors import BadOptions, BadPlan, UnknownProtocol
from ...core.toolspec import ToolSpec
from ...core.types import Blame, Evidence, Layer
from ...core.values.printable import counted
from ...core.values.wording import span
from ...evals.cases.case import Case
from ...evals.scoring.blame import drawn_beside, words_of_tool
from ...evals.scoring.outcomes import SUCCESSES
from ...evals.scoring.trial import Trial
from ...experiments.arms import NATIVE
from ...experiments.models import ModelLike
from ...experiments.run import Run
from ...formats.like import ProtocolLike
from ...formats.models import protocol_for
from ...runner.chat_templates.renderer import TemplateLike
from ...runner.exchange.details import sampling_of
from ...runner.exchange.types import OF_TOKENS
from ...views.blame import render_blame
from ...views.html import standalone
from ...views.show import visible

if TYPE_CHECKING:
    from ...evals.frames.recorded import Frame

ProbeName: TypeAlias = Literal[
    "as asked", "temperature 0", "read here", "longer request", "other transfer", "more tokens",
    "no call", "raw completion", "elsewhere",
]  # fmt: skip
PROBES: Mapping[ProbeName, str] = {
    "as asked": "the same request again, with log probabilities where the server gives them",
    "temperature 0": "the same request at temperature 0",
    "read here": "the tools in the prompt, and the text read here: no parser of the server",
    "longer request": "a longer question and longer descriptions of tools, to count their tokens",
    "other transfer": "whole instead of a stream, or a stream instead of whole",
    "more tokens": "four times as many tokens, at least 1,024, and no stop texts",
    "no call": "a question that needs no call, with the same tools: does the error stay?",
    "raw completion": "a prompt that your template wrote, and the text read here",
    "elsewhere": "the same request to another endpoint",
}
"""Probe -> what is asked."""

# Parser and stream are both the server's. A template may lose the tools or the messages ("turns").
_Hypothesis: TypeAlias = Literal[
    "model", "sampler", "template", "turns", "parser", "stream", "transport", "client"
]
_HYPOTHESES: tuple[_Hypothesis, ...] = get_args(_Hypothesis)
_LAYER: Mapping[_Hypothesis, Layer] = {
    "model": "model", "sampler": "sampler", "template": "template", "turns": "template",
    "parser": "server", "stream": "server", "transport": "transport", "client": "client",
}  # fmt: skip
# Probe -> the hypotheses whose fault it takes away.
_HEALS: Mapping[ProbeName, frozenset[_Hypothesis]] = {
    "as asked": frozenset(),
    "temperature 0": frozenset({"sampler"}),
    "read here": frozenset({"template", "parser", "stream"}),
    "longer request": frozenset(),
    "other transfer": frozenset({"stream"}),
    "more tokens": frozenset({"client"}),
    # Where the answer is an error: a parser without a call has nothing to fail at.
    "no call": frozenset({"model", "sampler", "parser", "stream", "client"}),
    "raw completion": frozenset({"template", "turns", "parser", "stream"}),
    "elsewhere": frozenset({"sampler", "template", "turns", "parser", "stream", "transport"}),
}
_OUR_READING = ("read here", "raw completion")
# How likely each is beforehand, beside the others. Only the tokens of prompts tell a lost turn from
# what a model wrote, so that one is rare until they do.
_PRIOR: Mapping[_Hypothesis, float] = {"parser": 0.5, "stream": 0.5, "turns": 0.006}
# Shares of requests that a fault breaks, and how likely each is beforehand.
_SHARES: Mapping[float, float] = {0.98: 0.6, 0.66: 0.13, 0.5: 0.13, 0.33: 0.14}
_BY_CHANCE = 0.02  # a request that nothing broke fails all the same
_ENOUGH = 0.97
_ENOUGH_AT_LAST = 0.93  # where no further request would tell more
_LEAST_GAIN = 0.012

_Sign: TypeAlias = Literal[
    "server", "template", "sampler", "transport", "client", "unknown", "broken", "words", "wrong",
    "error", "bare",
]  # fmt: skip
# What a failing answer looks like under each hypothesis: what it says of itself, or for a fault
# that it lays on the model, whether the call is broken, missing, or well-formed and wrong. A call
# that was left in the text without marks is bare.
_SIGNS: Mapping[_Hypothesis, Mapping[_Sign, float]] = {
    "model": {
        "broken": 0.36, "wrong": 0.33, "words": 0.19, "unknown": 0.03, "server": 0.02, "bare": 0.06,
    },
    "sampler": {
        "broken": 0.53, "wrong": 0.15, "words": 0.1, "unknown": 0.1, "sampler": 0.08, "bare": 0.02,
    },
    "template": {
        "words": 0.58, "wrong": 0.13, "template": 0.2, "broken": 0.02, "unknown": 0.03,
        "error": 0.02,
    },
    "turns": {
        "words": 0.5, "wrong": 0.3, "template": 0.1, "broken": 0.03, "unknown": 0.03, "error": 0.02,
    },
    "parser": {
        "server": 0.43, "words": 0.1, "wrong": 0.2, "broken": 0.05, "unknown": 0.13, "error": 0.03,
        "bare": 0.05,
    },
    "stream": {
        "server": 0.34, "words": 0.1, "wrong": 0.3, "broken": 0.05, "unknown": 0.18, "error": 0.02,
    },
    "transport": {"transport": 0.9, "error": 0.08},
    "client": {"client": 0.75, "words": 0.1, "wrong": 0.05, "broken": 0.06, "unknown": 0.02},
}  # fmt: skip
# The same where the answer holds the model's own text, token by token.
_SIGNS_OF_TOKENS: Mapping[_Hypothesis, Mapping[_Sign, float]] = {
    **_SIGNS,
    "model": {"broken": 0.42, "wrong": 0.36, "words": 0.2, "unknown": 0.01},
    "parser": {"server": 0.985},
    "stream": {"server": 0.985},
}
_SELDOM = 0.003
# How often the prompt has enough more tokens once question and tools are longer.
_TOOLS_SHOWN: Mapping[bool, float] = {True: 0.06, False: 0.97}  # whether the template is at fault
# Probes that leave the prompt as it is. How often its tokens are then counted otherwise, whether or
# not a template that breaks some requests is at fault; and how often such a template writes a
# prompt that fails as long as one that does not.
_SAME_PROMPT = ("as asked", "temperature 0", "other transfer", "more tokens")
_TWO_LENGTHS: Mapping[bool, float] = {True: 0.5, False: 0.0004}
_SAME_LENGTH = 0.3
_ALWAYS = 0.9
# Rare words among common ones: about four characters a token in the tokenizers tried.
_LONGER = " Nothing else is meant hereby: disregard zwieback, quincunxes." * 4
_GREETING = "Answer with the word hello, and call nothing."
_CHARACTERS_A_TOKEN = 4.0
_MOST_OF_IT = 0.75
_IN_TEXT = ("template", "server", "transport", "client", "sampler")


class Asker(Protocol):
    """Asks a failing trial's question again.

    probes: those that can be asked. spent: requests so far.
    """

    probes: Sequence[ProbeName]
    spent: int

    def ask(self, probe: ProbeName) -> Trial | None:
        """Return the answer under a probe, None where its question cannot be asked so."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One probe and what came of it."""

    probe: ProbeName
    trial: Trial

    @property
    def failed(self) -> bool:
        """True if the answer is not right as it was written, or there is none."""
        if self.probe == "no call":
            return self.trial.completion is None or not self.trial.completion.ok
        return is_wrong(self.trial)


@dataclass(frozen=True)
class Diagnosis:
    """Which layer broke an answer, by what came of asking again.

    Attributes:
        trial: the failing trial.
        blame: the verdict. `cannot_tell` where the budget did not suffice.
        asked: every probe in its order, with the recorded trial.
        likely: layer -> how likely it is after all answers, if each is as likely beforehand.
    """

    trial: Trial
    blame: Blame
    asked: tuple[Asked, ...] = ()
    likely: Mapping[Layer, float] = field(default_factory=dict)

    @property
    def layer(self) -> Layer:
        """The layer of the verdict."""
        return self.blame.layer

    @property
    def frame(self) -> Frame:
        """One row a probe: asked, failed, and the share of failures with Wilson's interval."""
        from ...evals.reports.figures.stats import failures_frame  # pandas is slow to import

        rows = []
        for probe in PROBES:
            ends = [a.failed for a in self.asked if a.probe == probe != "longer request"]
            if ends:
                rows.append((probe, len(ends), sum(ends)))
        return failures_frame(rows)

    def __str__(self) -> str:
        return "\n".join([visible(self.blame.explained()), *self._asked_lines()])

    def _asked_lines(self) -> list[str]:
        lines = []
        for probe, asked, failed, low, high in self.frame.itertuples(index=False):
            lines.append(f"  {probe}: {failed} of {asked} failed ({span(low, high, asked)})")
        return lines

    __repr__ = __str__

    def _repr_html_(self) -> str:
        result = self.trial.result
        verdict = render_blame(
            self.blame, result.raw if result else "", result.tokens if result else None
        )
        return standalone(f"{verdict}<pre>{escape(chr(10).join(self._asked_lines()))}</pre>")


def is_wrong(trial: Trial) -> bool:
    """Return True for an answer that is not right as it was written, or for none.

    Without a target it has to hold a call that may be executed, and nothing that failed. A call
    that we repair, or find outside its format, is one that something broke, whoever else might have
    read it.
    """
    if trial.completion is None or not trial.completion.ok:
        return True
    calls = trial.result.calls if trial.result is not None else ()
    if any(call.repair_steps or call.confidence < 1 for call in calls):
        return True
    if trial.outcome == "ungraded":
        return trial.failed or not any(call.ok for call in calls)
    return trial.outcome not in SUCCESSES


def diagnose(trial: Trial, asker: Asker, budget: int) -> Diagnosis:
    """Ask again until one layer is likely enough, or `budget` requests are spent.

    trial: a failing one.
    """
    probes = [name for name in PROBES if name in asker.probes]
    beliefs = _Beliefs(trial, probes)
    asked: list[Asked] = []
    while probes and asker.spent < budget and beliefs.best()[1] < _ENOUGH:
        gain, probe = max(((beliefs.gain(name), name) for name in probes), key=lambda x: x[0])
        if gain < _LEAST_GAIN:
            break
        answer = asker.ask(probe)
        if answer is None or probe == "longer request":
            # A question that cannot be asked, or whose tokens are the same each time.
            probes.remove(probe)
        if answer is not None:
            asked.append(Asked(probe, answer))
            beliefs.learn(asked[-1])
    layer, share = beliefs.best()
    told = share >= _ENOUGH_AT_LAST
    return Diagnosis(trial, _verdict(trial, layer, told, asked), tuple(asked), beliefs.layers())


@overload
def blame(
    trials: Trial,
    *,
    budget: int = ...,
    protocol: ProtocolLike | None = ...,
    model: ModelLike | None = ...,
    template: TemplateLike | None = ...,
    other: ModelLike | None = ...,
) -> Diagnosis: ...
@overload
def blame(
    trials: Run | Iterable[Trial],
    *,
    budget: int = ...,
    protocol: ProtocolLike | None = ...,
    model: ModelLike | None = ...,
    template: TemplateLike | None = ...,
    other: ModelLike | None = ...,
) -> tuple[Diagnosis, ...]: ...
def blame(
    trials: Trial | Run | Iterable[Trial],
    *,
    budget: int = 12,
    protocol: ProtocolLike | None = None,
    model: ModelLike | None = None,
    template: TemplateLike | None = None,
    other: ModelLike | None = None,
) -> Diagnosis | tuple[Diagnosis, ...]:
    """Find out which layer broke an answer, asking again with one change at a time.

    Each request is recorded like any other. The question that is expected to tell most comes first:
    the same again, at temperature 0, with the tools in the prompt and the text parsed here,
    streamed or whole, with more tokens, and, if you pass them, by your own template or at another
    endpoint. `trial.blame` uses the record alone.

    Args:
        trials: a failing trial, several, or a run, whose failures are taken.
        budget: requests at most, for each trial.
        protocol: the text format that the model writes, by default that of its name, or hermes.
        model: what to ask, for a trial from a log, whose name of a model says no endpoint.
        template: the model's own chat template; the prompt is then written here, and sent to the
            endpoint for raw completions.
        other: an endpoint with the same model, in another precision or version.

    Returns a `Diagnosis` for a trial, a tuple of them for several. Raises BadOptions for a trial
    that did not fail, or that came without its lab.
    """
    if not isinstance(trials, Trial):
        several = trials.failures() if isinstance(trials, Run) else trials
        return tuple(
            blame(
                trial, budget=budget, protocol=protocol, model=model, template=template, other=other
            )
            for trial in several
        )
    check_failed(trials, "no layer is to blame")
    ways = Interventions.of(trials, protocol, model, template, other, budget)
    return diagnose(trials, ways, budget)


def check_failed(trial: Trial, otherwise: str) -> None:
    """Raise BadOptions for a trial that did not fail."""
    if not is_wrong(trial):
        raise BadOptions(
            f"this trial did not fail, so {otherwise}", got=str(trial), hint="run.failures()"
        )


@dataclass
class Interventions:
    """The probes of one trial: how its question is asked again under each.

    protocol: the format in which the model writes calls itself. limit: the most tokens of the
    failing request, None if it set none.
    """

    trial: Trial
    probes: Sequence[ProbeName]
    protocol: ProtocolLike
    model: ModelLike | None
    template: TemplateLike | None
    other: ModelLike | None
    limit: int | None
    budget: int = 12
    logprobs: bool = True  # whether to ask for them
    spent: int = 0

    @classmethod
    def of(
        cls,
        trial: Trial,
        protocol: ProtocolLike | None,
        model: ModelLike | None,
        template: TemplateLike | None,
        other: ModelLike | None,
        budget: int,
    ) -> Interventions:
        """Return the interventions that a trial's endpoint allows."""
        completion = trial.completion
        sampling = (
            sampling_of(completion.request, completion.response) if completion else {}
        ) or {}
        limit = sampling.get("max_tokens")
        probes: list[ProbeName] = ["as asked", "other transfer"]
        if sampling.get("temperature") != 0:
            probes.append("temperature 0")
        if trial.prompt_protocol == NATIVE:
            probes.append("read here")
            if completion is not None and completion.prompt_tokens:
                probes.append("longer request")
        if completion is not None and completion.error_kind == "server_error":
            probes.append("no call")
        if limit is not None or "stop" in sampling or trial.blame.code == "token_limit":
            probes.append("more tokens")
        if template is not None:
            probes.append("raw completion")
        if other is not None:
            probes.append("elsewhere")
        if protocol is None:
            recorded = (trial.request.get("model") or {}).get("name") or trial.model
            name = str(recorded if model is None else getattr(model, "name", model))
            try:
                protocol = protocol_for(name.rpartition("/")[2])
            except UnknownProtocol:
                protocol = "hermes"
        limit = limit if isinstance(limit, int) else None
        return cls(trial, probes, protocol, model, template, other, limit, budget)

    def ask(self, probe: ProbeName) -> Trial | None:
        """Return the answer under a probe, None where its question cannot be asked so."""
        changes: dict[str, Any] = {"model": self.model}
        if probe == "temperature 0":
            changes["temperature"] = 0
        elif probe == "other transfer":
            changes["stream"] = not self.trial.request.get("stream", False)
        elif probe == "more tokens":
            changes |= {"max_tokens": max(1024, 4 * (self.limit or 0)), "stop": None}
        elif probe == "elsewhere":
            changes["model"] = self.other
        elif probe in _OUR_READING:
            # Whatever breaks a stream breaks its text as well.
            changes |= {"protocol": self.protocol, "stream": False}
            if probe == "raw completion":
                changes["chat_template"] = self.template
        elif probe in _OTHER_CASE:
            changes["case"] = _OTHER_CASE[probe](self.trial.case)
        # A server that refuses them is asked twice.
        has_room = self.logprobs and self.spent + 2 <= self.budget
        if not has_room or probe in (*_OTHER_CASE, *_OUR_READING, "elsewhere"):
            return self._asked(changes)
        trial = self._asked({**changes, "logprobs": True})
        error = trial and trial.completion and trial.completion.error_message
        if error and "logprob" in error.lower():
            self.logprobs = False
            return self._asked(changes)
        return trial

    def _asked(self, changes: dict[str, Any]) -> Trial | None:
        # The same seed would draw the same answer each time, which is no further evidence.
        seeded = {"seed": 1 + self.spent, **changes}
        try:
            trial = self.trial.retry(fresh=True, may_fail=True, **seeded)
        except BadPlan:
            return None
        self.spent += 1
        return trial


class _Beliefs:
    def __init__(self, trial: Trial, probes: Sequence[ProbeName]) -> None:
        # trial: the failing one. That it fails says nothing, since it was chosen for that.
        self._trial = trial
        # Tokens of the prompt -> whether the answers to it failed, of one and the same request.
        self._counts: dict[int, set[bool]] = {}
        sign, has_tokens = _sign_of(trial)
        self._weights: dict[tuple[_Hypothesis, float], float] = {}
        for hypothesis in _HYPOTHESES:
            # A layer that no probe can tell from the model is one only if the answer says so.
            is_told = any(hypothesis in _HEALS[probe] for probe in probes)
            is_told |= hypothesis == "turns"
            layer = _LAYER[hypothesis]
            if not is_told and layer not in ("model", "transport", trial.blame.layer):
                continue
            prior = math.log(_chance_of(sign, hypothesis, has_tokens))
            prior += math.log(_PRIOR.get(hypothesis, 1.0))
            for share, chance in _SHARES.items():
                self._weights[hypothesis, share] = prior + math.log(chance)
        self._count(trial, failed=True)

    def learn(self, asked: Asked) -> None:
        probe, failed = asked.probe, asked.failed
        if probe == "longer request":
            shown = _are_shown(self._trial, asked.trial)
            for key in self._weights if shown is not None else ():
                chance = _chance_of_failure(*key, probe)
                self._weights[key] += math.log(chance if shown else 1 - chance)
            return
        if probe in _SAME_PROMPT:
            self._count(asked.trial, failed=failed)
        sign, has_tokens = _sign_of(asked.trial)
        for (hypothesis, share), weight in self._weights.items():
            chance = _chance_of_failure(hypothesis, share, probe)
            if failed and probe != "no call":
                chance *= _chance_of(sign, hypothesis, has_tokens)
            self._weights[hypothesis, share] = weight + math.log(chance if failed else 1 - chance)

    def _count(self, trial: Trial, *, failed: bool) -> None:
        # Only a template writes one request in two lengths.
        tokens = trial.completion.prompt_tokens if trial.completion is not None else None
        if not tokens:
            return
        several = len(self._counts) > 1
        ends = self._counts.setdefault(tokens, set())
        both = len(ends) > 1
        ends.add(failed)
        for hypothesis, share in self._weights:
            if len(self._counts) > 1 and not several:
                self._weights[hypothesis, share] += math.log(
                    _TWO_LENGTHS[_LAYER[hypothesis] == "template" and share < _ALWAYS]
                )
            elif len(ends) > 1 and not both and _LAYER[hypothesis] == "template":
                self._weights[hypothesis, share] += math.log(_SAME_LENGTH)

    def gain(self, probe: ProbeName) -> float:
        # How much less is unknown of the layer afterwards, on average.
        before = self._shares(self._weights)
        gained = _entropy(before)
        for failed in (True, False):
            weights = {}
            for (hypothesis, share), weight in self._weights.items():
                chance = _chance_of_failure(hypothesis, share, probe)
                weights[hypothesis, share] = weight + math.log(chance if failed else 1 - chance)
            total = _log_sum(weights.values()) - _log_sum(self._weights.values())
            gained -= math.exp(total) * _entropy(self._shares(weights))
        return gained

    def layers(self) -> dict[Layer, float]:
        return self._shares(self._weights)

    def best(self) -> tuple[Layer, float]:
        return max(self.layers().items(), key=lambda item: item[1])

    def _shares(self, weights: Mapping[tuple[_Hypothesis, float], float]) -> dict[Layer, float]:
        total = _log_sum(weights.values())
        shares: dict[Layer, float] = {}
        for (hypothesis, _), weight in weights.items():
            layer = _LAYER[hypothesis]
            shares[layer] = shares.get(layer, 0.0) + math.exp(weight - total)
        return shares


def _log_sum(weights: Iterable[float]) -> float:
    weights = list(weights)
    top = max(weights)
    return top + math.log(sum(math.exp(w - top) for w in weights))


def _entropy(shares: Mapping[Layer, float]) -> float:
    return -sum(p * math.log(p) for p in shares.values() if p > 0)


def _chance_of_failure(hypothesis: _Hypothesis, share: float, probe: ProbeName) -> float:
    if probe == "longer request":  # whose event is that the prompt shows them
        return _TOOLS_SHOWN[_LAYER[hypothesis] == "template"]
    if hypothesis in _HEALS[probe]:
        return _BY_CHANCE
    return share


def longer_case(case: Case) -> Case:
    """Return a case that asks the same, with so many sentences more in its last question and in
    each description of its tools.

    Half of what is added is in the question.
    """
    longer = []
    added = 0
    for tool in case.tools:
        schema = dict(tool.schema)
        properties = schema.get("properties")
        added += len(_LONGER)
        if isinstance(properties, Mapping):
            schema["properties"] = {
                name: {**of, "description": f"{of.get('description') or ''}{_LONGER}"}
                if isinstance(of, Mapping)
                else of
                for name, of in properties.items()
            }
            added += len(_LONGER) * len(properties)
        description = f"{tool.description or ''}{_LONGER}"
        function = {"name": tool.name, "description": description, "parameters": schema}
        longer.append(ToolSpec.of(function))
    words = _LONGER * (added // len(_LONGER) or 1)
    return replace(case, input=_asked(case.input, lambda text: text + words), tools=tuple(longer))


def callless_case(case: Case) -> Case:
    """Return a case with the same tools whose question needs none of them."""
    return replace(case, input=_asked(case.input, lambda _: _GREETING), target=[])


_OTHER_CASE: Mapping[ProbeName, Callable[[Case], Case]] = {
    "longer request": longer_case,
    "no call": callless_case,
}


def _asked(input: Any, change: Callable[[str], str]) -> Any:
    # Another last question.
    if isinstance(input, str):
        return change(input)
    messages = [dict(message) for message in input]
    last = next((m for m in reversed(messages) if isinstance(m.get("content"), str)), None)
    if last is not None:
        last["content"] = change(last["content"])
    return messages


def characters_of(case: Case) -> int:
    """Return the characters of the question and of the words of its tools."""
    words = [word for tool in case.tools for word in words_of_tool(tool)]
    return len(case.input_text) + sum(map(len, words))


def _are_shown(asked: Trial, longer: Trial) -> bool | None:
    # None where the tokens of a prompt were not counted.
    counts = [t.completion.prompt_tokens for t in (asked, longer) if t.completion is not None]
    if len(counts) < 2 or not counts[0] or not counts[1]:
        return None
    added = characters_of(longer.case) - characters_of(asked.case)
    return (counts[1] - counts[0]) * _CHARACTERS_A_TOKEN >= _MOST_OF_IT * added


def _chance_of(sign: _Sign, hypothesis: _Hypothesis, has_tokens: bool) -> float:
    return (_SIGNS_OF_TOKENS if has_tokens else _SIGNS)[hypothesis].get(sign, _SELDOM)


def _sign_of(trial: Trial) -> tuple[_Sign, bool]:
    # With whether the answer holds the model's own text.
    blame, completion = trial.blame, trial.completion
    has_tokens = completion is not None and (
        completion.fidelity in OF_TOKENS or bool(drawn_beside(completion))
    )
    is_vague = blame.layer in ("server", "cannot_tell") and not blame.code
    if completion is not None and not completion.ok and is_vague:
        return "error", False
    calls = trial.result.calls if trial.result is not None else ()
    is_bare = blame.code == "markup_in_content" and any(_BARE.match(e.says) for e in blame.evidence)
    if is_bare or (blame.layer == "none" and any(call.confidence < 1 for call in calls)):
        return "bare", has_tokens
    if blame.layer in _IN_TEXT:
        return blame.layer, has_tokens  # type: ignore[return-value]
    if blame.layer != "model":
        return "unknown", has_tokens
    if (
        blame.code == "markup_in_content"
        or trial.outcome == "attempted_unparseable"
        or any(call.repair_steps or not call.readable for call in calls)
    ):
        return "broken", has_tokens
    return ("wrong" if calls else "words"), has_tokens


# A call without any mark of its format: the model left them out, or the server took them away.
_BARE = re.compile(r"\s*(?:\{|\[\s*[\w{]|[A-Za-z_][\w.]*\()")

_WHY: Mapping[Layer, str] = {
    "model": "It fails in every way of asking.",
    "sampler": "It does not fail at temperature 0.",
    "template": "It does not fail once the tools stand in the prompt, and no answer holds a call "
    "that the server lost.",
    "server": "The model writes the call, and the server's answer does not hold it.",
    "transport": "The connection failed before the answer was whole.",
    "client": "It does not fail once the request allows more tokens.",
}


def _verdict(trial: Trial, layer: Layer, told: bool, asked: Sequence[Asked]) -> Blame:
    own = [a.trial.blame for a in asked if a.failed] + [trial.blame]
    if not told:
        return Blame(
            "Cannot be told by so many requests.",
            "cannot_tell",
            trial.blame.code,
            trial.blame.evidence,
            trial.blame.would_tell
            or "more requests, log probabilities, or another endpoint with the same model",
        )
    # The plainest words are those of an answer that says it of itself.
    said = next((blame for blame in own if blame.layer == layer), None)
    evidence = said.evidence if said is not None else ()
    spent = Evidence("request", f"{counted(len(asked), 'request')} more")
    for longer in (a.trial.completion for a in asked if a.probe == "longer request"):
        first = trial.completion
        if longer is not None and longer.prompt_tokens and first is not None:
            more = longer.prompt_tokens - (first.prompt_tokens or 0)
            words = f"a longer question and longer tools added {more} tokens to the prompt"
            evidence = (*evidence, Evidence("usage", words))
    why = str(said) if said is not None and layer != "model" else _WHY[layer]
    return Blame(why, layer, said.code if said is not None else "", (*evidence, spent))
