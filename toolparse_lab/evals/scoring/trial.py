"""A trial: one completion read by one parse protocol under one coercion policy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

from ...core import hooks
from ...core.errors import BadOptions, near
from ...core.types import DEFAULT_OPTIONS, Blame, ParseResult, Policy
from ...core.values.printable import printable
from ...formats.base import Signs
from ...formats.like import ProtocolLike
from ...formats.registry import is_shipped
from ...middleware.flow import asked_of, read_answer, with_recorded
from ...middleware.flow.factors import QuestionSettings
from ..cases.case import Case
from ..cases.matchers import DEFAULT_MATCHERS, Matchers
from .blame import blame_of
from .exports import Exports, curl_of
from .outcomes import OUTCOMES, cause_of, first_error
from .score import Score, attempt, score_answer, score_corrected, score_in_isolation

if TYPE_CHECKING:
    from ...middleware.flow import Conversation
    from ...runner.chat_templates.renderer import TemplateLike
    from ...runner.exchange.types import Completion, Model


# `json.dumps` takes three times as long for a short list of texts.
_quoted = json.encoder.encode_basestring_ascii


def trial_id_of(
    run_id: str, case_id: str, model: str, arm: str,
    prompt_protocol: str, parse_protocol: str, policy: str, trial: int,
) -> str:  # fmt: skip
    """Return a short id that is the same for the same trial, wherever it is computed.

    It is stored: the hashed text is the JSON of the eight arguments, and must stay so.

    >>> trial_id_of("run", "case", "m", "arm", "hermes", "hermes", "safe", 0)
    'c150e826fa28'
    """
    words = (run_id, case_id, model, arm, prompt_protocol, parse_protocol, policy)
    text = f"[{', '.join(map(_quoted, words))}, {trial}]"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def judged_case(case: Case, tool_choice: Any) -> Case:
    """Return the case as its answer is judged: where no call is allowed, none is right, whatever
    the case wants.

    tool_choice: the arm's level of that factor, None if it has none.
    """
    # A case without a target is not graded under any choice.
    if tool_choice == "none" and case.target is not None:
        return replace(case, target=[])
    return case


def reason_missing(completion: Completion | None) -> str:
    return "not recorded" if completion is None else "not parsed"


@dataclass(frozen=True, slots=True)
class TrialProtocols:
    """The protocols of a trial as objects, where they are at hand: the format that the model was
    told to write by, and the reader of the answer.
    """

    prompt: Any = None
    parse: Any = None

    def signs(self) -> Signs | None:
        """Return the signs of attempts in a format that is neither shipped nor installed."""
        if self.prompt is None or is_shipped(self.prompt.id):
            return None
        signs: Signs = self.prompt.signs_of_attempts()
        return signs


NO_PROTOCOLS = TrialProtocols()


@dataclass(frozen=True, slots=True)
class Remarks:
    """A person's note on a trial, and an outcome set by hand with its reason. '' if there is none.

    `keep` writes changed parts of a trial's remarks, by its id, into the store of its run. It is
    None if a trial comes without one.
    """

    note: str = ""
    outcome: str = ""
    why: str = ""
    keep: Callable[[str, Mapping[str, str]], None] | None = field(
        default=None, repr=False, compare=False
    )


NO_REMARKS = Remarks()


@dataclass(frozen=True, slots=True)
class Trial(Exports):
    """One row of the trials frame, with everything it comes from.

    `completion` is None if nothing is recorded yet, `result` if nothing was parsed (a provider
    error, say). `score` is then None too. `asker` is set by the lab and lets `retry` ask the model
    again. `levels` are the arm's factors. `conversation` holds all turns where the arm has several.
    `completion`, `result` and the outcome are the first turn's. `protocols` are the objects of
    the two ids. `remarks` are a person's. No score or rate goes by them.
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
    protocols: TrialProtocols = field(default=NO_PROTOCOLS, repr=False, compare=False)
    remarks: Remarks = field(default=NO_REMARKS, repr=False, compare=False)

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
        protocols: TrialProtocols = NO_PROTOCOLS,
    ) -> Trial:
        """Return a scored trial with an id of its own.

        Anything not named comes from those present: protocol and policy from the result, the
        prompt's protocol from the parser's, the arm from the prompt's protocol. missing_reason: why
        there is no score, where completion and result do not say it. matchers: how arguments are
        compared with the target. The others are the fields of a trial.
        """
        if result is not None:
            parse_protocol = parse_protocol or result.protocol
            policy = policy or result.options.coerce
        policy = policy or "safe"
        prompt_protocol = prompt_protocol or parse_protocol
        arm = arm or prompt_protocol
        levels = levels or {}

        judged = judged_case(case, levels.get("tool_choice"))
        score, result, fault = score_in_isolation(
            judged, completion, result, matchers, protocols.signs()
        )
        if score is not None and conversation is not None:
            own, read = score, result

            def with_later_turns() -> Score:
                corrected = None
                if levels.get("corrections"):
                    corrected = score_corrected(judged, own, read, conversation, matchers)
                return replace(own, answer=score_answer(case, conversation), corrected=corrected)

            score, result, fault = attempt(with_later_turns, result)
        # A trial has a score or a reason for having none, never both.
        if score is None:
            missing_reason = missing_reason or fault or reason_missing(completion)
        trial_id = trial_id_of(
            run_id, case.id, model, arm, prompt_protocol, parse_protocol, policy, trial
        )
        return cls(
            run_id, trial_id, case, model, arm, prompt_protocol, parse_protocol, policy, trial,
            completion, result, score, missing_reason, asker, levels, conversation, protocols,
        )  # fmt: skip

    @property
    def case_id(self) -> str:
        return self.case.id

    @property
    def outcome(self) -> str:
        """The outcome's id, '' if there is no score."""
        return self.score.outcome if self.score is not None else ""

    @property
    def sub_code(self) -> str:
        """The outcome more exactly, one of `outcomes.SUB_CODES` or a provider's class of errors. ''
        if there is no such thing.
        """
        return self.score.sub_code if self.score is not None else ""

    @property
    def detail(self) -> str:
        """The outcome in words, or why there is none."""
        return self.score.detail if self.score is not None else self.missing_reason

    @property
    def failed(self) -> bool:
        """True if there is something to look at: if it has a `cause`."""
        return bool(self.cause)

    @property
    def cause(self) -> str:
        """Why the trial is a failure, as a code; '' for one that is none, or is not recorded.

        With a target every outcome that is no success is a failure. Without one it is a failure if
        not every call can be executed, or if an attempt was lost. See `outcomes.cause_of`.
        """
        code = first_error(self.result) if self.result is not None else ""
        graded = self.case.target is not None
        return cause_of(self.outcome, self.sub_code, code, graded=graded)

    @property
    def blame(self) -> Blame:
        """Which layer broke the answer, in one sentence, with `layer`, `code` and `evidence`.

        It weighs the text, the provider's own calls and reasoning, the finish reason, tokens,
        errors and the request. The layer is one of `core.types.LAYERS`: `none` where nothing is
        wrong, `cannot_tell` where several may be at fault.
        """
        choice = self.levels.get("tool_choice", "auto")
        return blame_of(self.case, self.completion, self.result, self.score, tool_choice=choice)

    def why(self) -> str:
        """Return the outcome and its reason, which layer broke it if any, then a line per call."""
        reason = "\n".join(self.score.why) if self.score else self.missing_reason
        blame = self.blame
        if blame.layer not in ("none", "model"):
            reason = f"{reason}\n{blame}"
        return f"{reason}\n{self.result.why()}" if self.result is not None else reason

    @property
    def request(self) -> Mapping[str, Any]:
        """The request as it was sent, without credentials. {} where nothing is recorded."""
        return self.completion.request if self.completion is not None else {}

    @property
    def wire(self) -> dict[str, Any]:
        """Request, response, raw text and chunks as they went over the line, and how faithful the
        record is. {} where nothing is recorded.
        """
        if self.completion is None:
            return {}
        c = self.completion
        return {
            "request": c.request, "response": c.response, "raw": c.raw, "chunks": c.chunks,
            "finish_reason": c.finish_reason, "endpoint_kind": c.endpoint_kind,
            "fidelity": c.fidelity,
        }  # fmt: skip

    def reparse(self, protocol: Any = None, policy: Policy | None = None) -> Trial:
        """Return the same recorded answer read again: no model is called.

        protocol: an id or a protocol object, by default the reader of this trial. Raises BadOptions
        if nothing is recorded.
        """
        if self.completion is None:
            raise BadOptions(
                "nothing is recorded for this trial, so there is nothing to read", got=self.trial_id
            )

        # The protocol itself where it is at hand: its id may stand for another one by now.
        reader = protocol or self.protocols.parse or self.parse_protocol
        policy = policy or self.policy
        result = None  # of a provider's failure there is nothing to read
        if self.completion.ok:
            options = self.result.options if self.result else DEFAULT_OPTIONS
            read = read_answer(
                self.completion.raw,
                reader,
                self.case.tools,
                replace(options, coerce=policy),
                self.levels.get("tool_choice", "auto"),
                self.completion.finish_reason,
                request=asked_of(self.completion, self.case.input),
                reasoning=self.completion.reasoning or "",
            )
            result = with_recorded(read, self.completion)

        kept = (
            "run_id", "model", "arm", "prompt_protocol", "trial", "asker", "levels", "conversation",
        )  # fmt: skip
        return Trial.of(
            self.case,
            self.completion,
            result,
            parse_protocol=result.protocol if result else getattr(reader, "id", reader),
            policy=policy,
            protocols=replace(self.protocols, parse=None if isinstance(reader, str) else reader),
            **{name: getattr(self, name) for name in kept},
        )

    def rescored(self, matchers: Matchers) -> Trial:
        """Return the same reading held to the target by other matchers."""
        case = judged_case(self.case, self.levels.get("tool_choice"))
        score, result, fault = score_in_isolation(
            case, self.completion, self.result, matchers, self.protocols.signs()
        )
        # A conversation's last text is compared without matchers.
        if score is not None and self.score is not None:
            score = replace(score, answer=self.score.answer)
        return replace(
            self, score=score, result=result, missing_reason=fault or self.missing_reason
        )

    def retry(
        self,
        *,
        protocol: ProtocolLike | None = None,
        case: Case | None = None,
        model: Model | str | None = None,
        chat_template: TemplateLike | None = None,
        stream: bool | None = None,
        may_fail: bool = False,
        **changes: Unpack[QuestionSettings],
    ) -> Trial:
        """Ask the model again, with `protocol=` or other changes, as a new recorded trial.

        Args:
            protocol: by default the one asked for.
            case: another question, other tools.
            model: another endpoint, by default the one asked.
            chat_template: writes the prompt here, for an endpoint of raw completions.
            stream: whether to ask for a stream, by default as the run did.
            may_fail: return a trial without an answer too, instead of raising ProviderError.
            changes: other levels of factors, sampling parameters, and `fresh` to ask again although
                the answer is recorded.

        Raises BadOptions if the trial came without the lab that can ask, and the errors of asking.
        """
        if self.asker is None:
            raise BadOptions(
                "this trial cannot ask its model again",
                got=self.trial_id,
                hint="take it from a run of a Lab, or use reparse() to read the recorded answer "
                "anew",
            )
        named: dict[str, Any] = {"protocol": protocol, "case": case, "model": model}
        named |= {"chat_template": chat_template, "stream": stream, "may_fail": may_fail or None}
        return self.asker(self, **{k: v for k, v in named.items() if v is not None}, **changes)

    def debug(self) -> Any:
        """Open this trial on the workbench: wanted next to got, the request, the request and the
        response as recorded, and the answer to change and read again.

        Raises BadOptions if there is no answer, MissingExtra without the `jupyter` extra.
        """
        return hooks.call("workbench", self)

    def note(self, text: str) -> Trial:
        """Keep a note on this trial in the store of its run, and return the trial with it. '' takes
        the note back. Raises BadOptions if the trial came without a store.
        """
        return self._with_remarks(note=str(text))

    def override(self, outcome: str | None, *, why: str = "") -> Trial:
        """Keep an outcome set by hand next to the score, and return the trial with it.

        The score stays, and so does every rate. Frames have the outcome in columns of its own, and
        reports count how many there are. outcome: an outcome's id, None to take it back. Raises
        BadOptions for an outcome that does not exist, and where the trial came without a store.
        """
        if outcome is not None and outcome not in OUTCOMES:
            raise BadOptions(
                "there is no such outcome",
                got=outcome,
                expected=", ".join(OUTCOMES),
                hint=near(outcome, OUTCOMES),
            )
        return self._with_remarks(outcome=outcome or "", why=str(why) if outcome else "")

    def _with_remarks(self, **parts: Any) -> Trial:
        if self.remarks.keep is None:
            raise BadOptions(
                "this trial has no store that could keep a remark",
                got=self.trial_id,
                hint="take it from a run of a Lab",
            )
        self.remarks.keep(self.trial_id, parts)
        return replace(self, remarks=replace(self.remarks, **parts))

    def as_curl(self) -> str:
        """Return the request as a command of a POSIX shell, without credentials.

        Raises BadOptions if nothing is recorded, and for a provider without an OpenAI-compatible
        endpoint.
        """
        return curl_of(self.trial_id, self.request)

    def __repr__(self) -> str:
        return f"Trial({self})"

    @property
    def label(self) -> str:
        """Which trial it is: its id, case, model and reader."""
        return f"{self.trial_id} {self.case.id} · {self.model} · {self.parse_protocol}"

    def __str__(self) -> str:
        """Return one line: which trial it is, and its outcome or why there is none."""
        return printable(f"{self.label}: {self.score or self.missing_reason}")
