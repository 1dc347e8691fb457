"""The models of a plan: each by its alias, the format that it writes by its training, its
parameters, and the prompts of endpoints without chat.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

from ..core.errors import BadPlan, UnknownName, UnknownProtocol
from ..core.values import write_canonical
from ..core.values.printable import printable
from ..entry.foreign.protocol import listed_names
from ..formats.models import protocol_for, reason_for
from ..runner.chat_templates.renderer import ChatTemplate
from ..runner.exchange.types import RAW_COMPLETION, Model, Request
from ..runner.local.provider import check_local, is_local
from ..runner.routes import LENGTHS, Untaken, shape_of, untaken
from .arms import Arm, prompt_protocol, prompt_protocols

ModelLike: TypeAlias = Model | str
"""A Model, a litellm model string, or an alias that the lab knows."""
ModelsLike: TypeAlias = ModelLike | Mapping[str, ModelLike] | Iterable[ModelLike]
"""One model, several, or a mapping of alias to model."""


def model_map(models: ModelsLike) -> dict[str, Model]:
    """Return {alias: Model} from a mapping, a list, one Model or a litellm model string.

    Models of a list are named by themselves. Raises UnknownName for anything that is not a model,
    and BadPlan for none at all.
    """
    given: Any = [models] if isinstance(models, (Model, str)) else models
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, Iterable):
        pairs = [(model.name if isinstance(model, Model) else model, model) for model in given]
    else:
        raise UnknownName(
            "these are no models",
            got=models,
            expected="{alias: tp.Model(...)}",
            code="unknown-model",
        )
    by_alias = {}
    for alias, one in pairs:
        model = Model(one) if isinstance(one, str) else one
        # An alias is the name of a column's value, and of an argument on the command line.
        if not isinstance(alias, str) or not alias or not isinstance(model, Model):
            raise UnknownName(
                "this is no model",
                got=model,
                expected="a tp.Model or a litellm model string",
                code="unknown-model",
            )
        # A misspelled one would be looked for on the network, and fail only when it is asked.
        if is_local(model.name):
            check_local(model.name)
        by_alias[alias] = model
    if not by_alias:
        raise BadPlan("there are no models to plan", expected="{alias: tp.Model(...)}")
    return by_alias


OWN = "model"
"""The name, among protocols, of the format that each model has of its own."""


@dataclass(frozen=True, slots=True)
class OwnFormats:
    """The formats of a plan's models, where the plan asks each model in its own.

    by_alias: alias -> id of the model's protocol, empty if no format is chosen by model. reasons:
    alias -> the reason. shared: ids of the protocols that all models are asked in.
    """

    by_alias: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()

    def has(self, alias: str, arm: Arm) -> bool:
        """Return True if a model is asked in an arm."""
        own = self.by_alias.get(alias)
        return own is None or arm.prompt_protocol == own or arm.prompt_protocol in self.shared

    def lines(self) -> list[str]:
        """Return a line for each model: its format, and why."""
        return [
            f"format: {alias}: {protocol_id}, {self.reasons[alias]}"
            for alias, protocol_id in self.by_alias.items()
        ]


def own_formats(models: Mapping[str, Model], protocols: Any) -> tuple[Any, OwnFormats]:
    """Return the protocols of a plan, each 'model' replaced, and the formats it stood for.

    Raises UnknownProtocol for a model whose format is not known.
    """
    names = listed_names(protocols)
    others = [name for name in names if not (isinstance(name, str) and name == OWN)]
    if len(others) == len(names):
        return protocols, OwnFormats()
    shared = frozenset(map(prompt_protocol, prompt_protocols(others))) if others else frozenset()
    by_alias = {alias: _format_of(alias, model) for alias, model in models.items()}
    reasons = {alias: reason_for(model.name) for alias, model in models.items()}
    ids = [id for id in dict.fromkeys(by_alias.values()) if id not in shared]
    return [*ids, *others], OwnFormats(by_alias, reasons, shared)


def _format_of(alias: str, model: Model) -> str:
    # The error names the alias.
    try:
        return protocol_for(model.name).id
    except UnknownProtocol as error:
        raise UnknownProtocol(
            error.message,
            got=f"{alias}: {model.name}",
            expected="a model of the table in docs/reference/formats.md",
            hint=f"list its protocol in the place of {OWN!r}: an id, one of "
            "extensions.templates.protocol_from_chat_template, or 'native'",
        ) from None


_LONGEST = 40  # characters of a value in the lines of a plan

_Shapes = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Fitting:
    """The parameters that are not sent to which model of a plan, found out once and then kept.

    An endpoint that refuses something in the course of a run changes nothing for that run: its
    questions keep their keys, and its arms stay alike. The next plan knows of the refusal.

    left_out: by alias, then by name and shape of the value. own: by alias, the model's own
    parameters that are sent in place of the plan's. typed: names that go before the model's own,
    because they were given for one question. known: no model is asked, because the run was recorded
    with `left_out`.
    """

    left_out: dict[str, dict[tuple[str, str], Untaken]] = field(default_factory=dict)
    own: dict[str, dict[str, Any]] = field(default_factory=dict)
    typed: frozenset[str] = frozenset()
    known: bool = False
    _asked: dict[tuple[str, _Shapes, bool], tuple[Untaken, ...]] = field(default_factory=dict)

    @classmethod
    def of_record(cls, rows: Iterable[Mapping[str, Any]]) -> Fitting:
        """Return the fitting of a recorded run, from the result of `to_list`."""
        fitting = cls(known=True)
        for row in rows:
            values = dict(row)
            alias = values.pop("model")
            fitting._keep(alias, Untaken(**values))
        return fitting

    def to_list(self) -> list[dict[str, Any]]:
        """Return what was left out, as it is recorded with a run."""
        return [
            {"model": alias, **asdict(replace(u, value=shape_of(u.name, u.value)))}
            for alias, found in self.left_out.items()
            for u in found.values()
        ]

    def fitted(self, request: Request) -> Request:
        """Return a request with the parameters that its model takes."""
        model, alias = request.model, request.model_alias
        own, params = model.params or {}, dict(request.params)
        # The model's own parameters settle these.
        names = {*own, *(LENGTHS if own.keys() & set(LENGTHS) else ())} - self.typed
        for name in [name for name in params if name in names]:
            value = params.pop(name)
            if name in own and own[name] != value:
                self.own.setdefault(alias, {})[name] = own[name]
        for u in self._untaken(alias, model, {**own, **params}, bool(request.tools)):
            value = own.get(u.name) if u.name not in params else params.pop(u.name)
            if u.name in own:
                params[u.name] = None  # the model's own is taken back
            if u.sent_as:
                params[u.sent_as] = value
        return request if params == request.params else replace(request, params=params)

    def settle(self) -> None:
        """Let what was found of some requests hold for all that follow."""
        self._asked.clear()

    def _untaken(
        self, alias: str, model: Model, params: Mapping[str, Any], tools: bool
    ) -> Iterable[Untaken]:
        shapes = tuple(
            (name, repr(shape_of(name, v))) for name, v in params.items() if v is not None
        )
        key = (alias, shapes, tools)
        if key not in self._asked:
            if not self.known:
                for found in untaken(model, params, tools=tools):
                    self._keep(alias, found)
            of_model = self.left_out.get(alias, {})
            self._asked[key] = tuple(of_model[shape] for shape in shapes if shape in of_model)
        return self._asked[key]

    def _keep(self, alias: str, found: Untaken) -> None:
        shape = (found.name, repr(shape_of(found.name, found.value)))
        self.left_out.setdefault(alias, {}).setdefault(shape, found)

    def lines(self, aliases: Iterable[str]) -> Iterator[str]:
        """Yield a line for each of these models that is not sent the plan's parameters as they
        are.
        """
        for alias in aliases:
            clauses = []
            if own := self.own.get(alias):
                shown = ", ".join(itertools.starmap(_shown, sorted(own.items())))
                clauses.append(f"its own {shown}")
            clauses += _clauses(self.left_out.get(alias, {}).values())
            if clauses:
                yield printable(f"fitted: {alias} {'; '.join(clauses)}")


def _clauses(left_out: Iterable[Untaken]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for u in sorted(left_out, key=lambda u: u.name):
        if u.sent_as:
            yield f"{u.name} as {u.sent_as}"
        else:
            name = _shown(u.name, u.value) if u.value_alone else u.name
            by_reason.setdefault(u.why, []).append(name)
    for why, names in sorted(by_reason.items()):
        yield f"without {', '.join(names)} ({why})"


def _shown(name: str, value: Any) -> str:
    text = str(value)
    return f"{name}={text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}"


_NAMED = {
    "chatml": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endfor %}<|im_start|>assistant\n"
}
# Questions whose prompts are written by one process: starting it takes longer than writing them.
_AT_ONCE = 500


@dataclass(slots=True)
class ChatPrompts:
    """The chat templates of a plan's models, by alias, and the prompts that they made.

    Every prompt is kept: a question is made several times, and a later turn only once.
    """

    templates: Mapping[str, ChatTemplate]
    _prompts: dict[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def of(cls, models: Mapping[str, Model]) -> ChatPrompts:
        """Return the prompts of these models. Raises BadOptions for what is no template."""
        return cls(
            {
                alias: ChatTemplate.of(
                    _NAMED.get(model.chat_template, model.chat_template)
                    if isinstance(model.chat_template, str)
                    else model.chat_template
                )
                for alias, model in models.items()
                if model.name.startswith(RAW_COMPLETION) and model.chat_template is not None
            }
        )

    @classmethod
    def of_record(cls, texts: Mapping[str, str]) -> ChatPrompts:
        """Return those of a recorded run, from the result of `to_dict`."""
        return cls({alias: ChatTemplate(text) for alias, text in texts.items()})

    def to_dict(self) -> dict[str, str]:
        """Return the text of each template, as it is recorded with a run."""
        return {alias: template.text for alias, template in self.templates.items()}

    def prepare(self, requests: Iterable[Request]) -> None:
        """Write the prompts of many requests, with few processes. Raises BadPlan as `written`."""
        waiting = (r for r in requests if self._key(r) not in self._prompts)
        while batch := list(itertools.islice(waiting, _AT_ONCE)):
            for alias in dict.fromkeys(request.model_alias for request in batch):
                self._write(alias, [r for r in batch if r.model_alias == alias])

    def written(self, request: Request) -> Request:
        """Return a request as its endpoint takes it: one prompt in place of messages.

        Raises BadPlan for tools, and for several messages where there is no template.
        """
        if not request.model.name.startswith(RAW_COMPLETION):
            return request
        if request.tools:
            raise BadPlan(
                "an endpoint without chat takes no tools",
                got=request.model.name,
                expected="a protocol that a prompt explains, such as 'hermes'",
            )
        if request.model_alias not in self.templates:
            if len(request.messages) > 1:
                raise BadPlan(
                    "an endpoint without chat takes one prompt: litellm sends each message as a "
                    "prompt of its own",
                    got=f"{len(request.messages)} messages",
                    expected="the model's chat template: tp.Model(…, chat_template=PATH)",
                    hint="PATH is the model's folder, its chat_template.jinja or "
                    "tokenizer_config.json",
                )
            return request
        self.prepare([request])
        prompt = {"role": "user", "content": self._prompts[self._key(request)]}
        return replace(request, messages=(prompt,))

    def _key(self, request: Request) -> tuple[str, str]:
        return request.model_alias, write_canonical(list(request.messages))

    def _write(self, alias: str, requests: list[Request]) -> None:
        # The endpoint puts the first token before a prompt by itself.
        shared = {"add_generation_prompt": True, "bos_token": ""}
        jobs = [{**shared, "messages": list(map(dict, r.messages))} for r in requests]
        for request, rendering in zip(requests, self.templates[alias].render(jobs), strict=True):
            if rendering.error:
                raise BadPlan(
                    "the chat template of this model refuses a question",
                    got=f"{alias}: {rendering.error}",
                    expected="a template for these roles",
                    hint="where it takes no system message, plan with placement='last'",
                )
            self._prompts[self._key(request)] = rendering.text
