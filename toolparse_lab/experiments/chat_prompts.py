"""Prompts for endpoints without chat: the messages of a question, as a template has them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.errors import BadPlan
from ..core.values import write_canonical
from ..parser.derivation.renderer import ChatTemplate
from ..runner.exchange.types import RAW_COMPLETION, Model, Request

_NAMED = {
    "chatml": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endfor %}<|im_start|>assistant\n"
}
# Questions whose prompts are written by one process: starting it takes longer than writing them.
_AT_ONCE = 500


def is_raw(model: Model) -> bool:
    """Return True for a model whose endpoint takes a prompt and no messages."""
    return model.name.startswith(RAW_COMPLETION)


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
                alias: ChatTemplate.of(_template_of(model))
                for alias, model in models.items()
                if is_raw(model) and model.chat_template is not None
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
                self._write([r for r in batch if r.model_alias == alias])

    def written(self, request: Request) -> Request:
        """Return a request as its endpoint takes it: one prompt in place of messages.

        Raises BadPlan for tools, and for several messages where there is no template.
        """
        if not is_raw(request.model):
            return request
        if request.tools:
            raise BadPlan(
                "an endpoint without chat takes no tools",
                got=request.model.name,
                expected="a protocol that a prompt explains, such as 'hermes'",
            )
        if request.model_alias not in self.templates:
            return _one_prompt(request)
        self.prepare([request])
        prompt = {"role": "user", "content": self._prompts[self._key(request)]}
        return replace(request, messages=(prompt,))

    def _key(self, request: Request) -> tuple[str, str]:
        return request.model_alias, write_canonical(list(request.messages))

    def _write(self, requests: list[Request]) -> None:
        template = self.templates[requests[0].model_alias]
        # The endpoint puts the first token before a prompt by itself.
        shared = {"add_generation_prompt": True, "bos_token": ""}
        jobs = [{**shared, "messages": list(map(dict, r.messages))} for r in requests]
        for request, rendering in zip(requests, template.render(jobs), strict=True):
            if rendering.error:
                raise BadPlan(
                    "the chat template of this model refuses a question",
                    got=f"{request.model_alias}: {rendering.error}",
                    expected="a template for these roles",
                    hint="where it takes no system message, plan with placement='last'",
                )
            self._prompts[self._key(request)] = rendering.text


def _template_of(model: Model) -> Any:
    template = model.chat_template
    return _NAMED.get(template, template) if isinstance(template, str) else template


def _one_prompt(request: Request) -> Request:
    if len(request.messages) > 1:
        raise BadPlan(
            "an endpoint without chat takes one prompt: litellm sends each message as a prompt of "
            "its own",
            got=f"{len(request.messages)} messages",
            expected="the model's chat template: tp.Model(…, chat_template=PATH)",
            hint="PATH is the model's folder, its chat_template.jinja or tokenizer_config.json",
        )
    return request
