"""A trial: one completion read by one parse protocol under one coercion policy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import BadOptions
from ...types import ParseResult, Policy
from ..cases.case import Case
from ..cases.matchers import DEFAULT_MATCHERS, Matchers
from .outcomes import is_failure
from .score import Score, score_answer, score_completion

if TYPE_CHECKING:
    from ...flow import Conversation
    from ...runner.types import Completion


_quoted = json.encoder.encode_basestring_ascii  # `json.dumps` takes three times as long for a short list


def trial_id_of(
    run_id: str,
    case_id: str,
    model: str,
    arm: str,
    prompt_protocol: str,
    parse_protocol: str,
    policy: str,
    trial: int,
) -> str:
    """A short id that is the same for the same trial, wherever it is computed."""
    said = ", ".join(map(_quoted, (run_id, case_id, model, arm, prompt_protocol, parse_protocol, policy)))
    text = f"[{said}, {trial}]"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def judged_case(case: Case, tool_choice: Any) -> Case:
    """The case as its answer is judged: where no call is allowed, none is right, whatever the case wants."""
    return replace(case, target=[]) if case.target is not None and tool_choice == "none" else case


@dataclass(frozen=True, slots=True)
class Trial:
    """One row of the trials frame, with everything behind it.

    `completion` is None where nothing is recorded yet, `result` where nothing was parsed (a provider error, say);
    `score` is then None too. `asker` is set by the lab and lets `retry` ask the model again. `levels` are the arm's
    factors. `conversation` holds all turns where the arm has several; `completion`, `result` and the outcome are the
    first turn's.
    """

    run_id: str
    trial_id: str
    case: Case
    model: str
    arm: str
    prompt_protocol: str
    parse_protocol: str
    policy: Policy
    trial: int = 0
    completion: Completion | None = None
    result: ParseResult | None = None
    score: Score | None = None
    missing_reason: str = ""
    asker: Callable[..., Trial] | None = field(default=None, repr=False, compare=False)
    levels: Mapping[str, Any] = field(default_factory=dict, repr=False)
    conversation: Conversation | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        case: Case,
        completion: Completion | None,
        result: ParseResult | None = None,
        *,
        run_id: str = "",
        model: str = "",
        arm: str = "",
        prompt_protocol: str = "",
        parse_protocol: str = "",
        policy: Policy | None = None,
        trial: int = 0,
        missing_reason: str = "",
        matchers: Matchers = DEFAULT_MATCHERS,
        asker: Callable[..., Trial] | None = None,
        levels: Mapping[str, Any] | None = None,
        conversation: Conversation | None = None,
    ) -> Trial:
        """A scored trial with an id of its own; what `result` says of protocol and policy fills what is not given."""
        if result is not None:
            parse_protocol = parse_protocol or result.protocol
            policy = policy or result.options.coerce
        policy = policy or "safe"
        prompt_protocol = prompt_protocol or parse_protocol
        arm = arm or prompt_protocol
        score = score_completion(judged_case(case, (levels or {}).get("tool_choice")), completion, result, matchers)
        if score is not None and conversation is not None:
            score = replace(score, answer=score_answer(case, conversation))
        if score is None and not missing_reason:
            missing_reason = "not recorded" if completion is None else "not parsed"
        return cls(
            run_id,
            trial_id_of(run_id, case.id, model, arm, prompt_protocol, parse_protocol, policy, trial),
            case, model, arm, prompt_protocol, parse_protocol, policy, trial, completion, result, score,
            missing_reason, asker, levels or {}, conversation,
        )  # fmt: skip

    @property
    def case_id(self) -> str:
        return self.case.id

    @property
    def outcome(self) -> str:
        """The outcome's id, '' where there is no score."""
        return self.score.outcome if self.score else ""

    @property
    def sub_code(self) -> str:
        """What the outcome is more exactly, one of `outcomes.SUB_CODES` or a provider's class of errors; '' if none."""
        return self.score.sub_code if self.score else ""

    @property
    def detail(self) -> str:
        """The outcome in words, or why there is none."""
        return self.score.detail if self.score else self.missing_reason

    @property
    def failed(self) -> bool:
        """Whether there is something to look at: an outcome that is no success, or, where the case has no target, an
        answer with a problem of severity error (a call that breaks its schema, say). What is not recorded has not
        failed."""
        problems = self.result.all_problems() if self.result else ()
        return is_failure(self.outcome, any(p.severity == "error" for p in problems))

    def why(self) -> str:
        """The outcome and its reason, then a line a call of what happened to it; there is always something."""
        said = str(self.score) if self.score else self.missing_reason
        return said if self.result is None else f"{said}\n{self.result.why()}"

    @property
    def request(self) -> Mapping[str, Any]:
        """The request as it was sent, without credentials; {} where nothing is recorded."""
        return self.completion.request if self.completion else {}

    @property
    def wire(self) -> dict[str, Any]:
        """What went over the line: request, response, raw text, chunks, and how faithful the record is."""
        c = self.completion
        if c is None:
            return {}
        return {
            "request": c.request,
            "response": c.response,
            "raw": c.raw,
            "chunks": c.chunks,
            "finish_reason": c.finish_reason,
            "endpoint_kind": c.endpoint_kind,
            "fidelity": c.fidelity,
        }

    def reparse(self, protocol: str | None = None, policy: Policy | None = None) -> Trial:
        """The same recorded answer read anew: no model is called."""
        from ...flow import read_answer
        from ...types import DEFAULT_OPTIONS

        if self.completion is None:
            raise BadOptions("nothing is recorded for this trial, so there is nothing to read", got=self.trial_id)
        protocol, policy = protocol or self.parse_protocol, policy or self.policy
        options = replace(self.result.options if self.result else DEFAULT_OPTIONS, coerce=policy)
        choice = self.levels.get("tool_choice", "auto")
        raw, tools = self.completion.raw, self.case.tools
        result = read_answer(raw, protocol, tools, options, choice) if self.completion.ok else None
        return Trial.of(
            self.case, self.completion, result, run_id=self.run_id, model=self.model, arm=self.arm,
            prompt_protocol=self.prompt_protocol, parse_protocol=protocol, policy=policy, trial=self.trial,
            asker=self.asker, levels=self.levels, conversation=self.conversation,
        )  # fmt: skip

    def rescored(self, matchers: Matchers) -> Trial:
        """The same reading held to the target by other matchers."""
        case = judged_case(self.case, self.levels.get("tool_choice"))
        score = score_completion(case, self.completion, self.result, matchers)
        if score is not None and self.score is not None:
            score = replace(score, answer=self.score.answer)
        return replace(self, score=score)

    def retry(self, **changes: Any) -> Trial:
        """Ask the model again, with `protocol=` or other changes, as a new recorded trial.

        Raises BadOptions where the trial came without the lab that can ask.
        """
        if self.asker is None:
            raise BadOptions(
                "this trial cannot ask its model again",
                got=self.trial_id,
                hint="take it from a run of a Lab, or use reparse() to read the recorded answer anew",
            )
        return self.asker(self, **changes)

    def as_pytest(self, path: str | Path) -> Path:
        """Write this trial as a test that pins what is read from its answer, into a new pytest file or to the end of
        one that is there; returns its path. Writing it again changes nothing. See `pinning.write_tests`."""
        from .pinning import write_tests

        return write_tests([self], path)

    def __str__(self) -> str:
        said = self.score or self.missing_reason
        return f"{self.trial_id} {self.case.id} · {self.model} · {self.parse_protocol}: {said}"
