"""Tool calling as a litellm provider: model string `toolparse/<protocol>/<provider>/<model>`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any

from ...core.errors import BadOptions, UsageError
from ...middleware import ToolCallMiddleware
from ...runner.answer import close_stream
from ...runner.litellm_door import litellm_module
from ...runner.litellm_faults import (
    allow_tools_without_mcp,
    chunk_form,
    let_params_pass,
    name_outer_stream,
)
from ...runner.local.provider import is_local
from ...runner.local.provider import register as register_local
from .calls import MODEL_PARAMS, acompletion_with, completion_with
from .options import middleware_for, take_options
from .stream import close_connection

# What litellm keeps apart from a provider's parameters, and the inner provider needs.
_PASSED = ("api_version", "drop_params", "organization", "region_name")
_PASSED_PREFIXES = ("aws_", "azure_", "vertex_", "watsonx_")
PROVIDER = "toolparse"
# Abilities that a model has by the bridge, whatever the model below it has.
_ABILITIES = ("supports_function_calling", "supports_tool_choice")
_PRICES = ("input_cost_per_token", "output_cost_per_token")
_CACHE_PRICES = ("cache_creation_input_token_cost", "cache_read_input_token_cost", "tiered_pricing")
# Short names that models of different prices share.
_ambiguous: set[str] = set()


def register(models: Iterable[str] = ()) -> None:
    """Make `toolparse/hermes/openai/my-model` a model of litellm.

    It is model `openai/my-model` with the tools described in its prompt and the calls read
    from its text by protocol `hermes`. A second call does nothing.

    From then on `completion`, `acompletion`, their streams and Router take such a model string.
    Key, base address, headers, timeout and the other parameters go to the inner call. Options are
    read here (see `options`): keywords of the request, or words after the protocol, as in
    `toolparse/hermes;choice=prompt;unknown=call/openai/my-model`. Failures are the inner
    provider's. An unknown protocol is a litellm.BadRequestError that lists the known ones.

    Args:
        models: model strings of which litellm is to know that they call tools, and their cost: the
            prices of the models below them. Frameworks such as dspy and CrewAI ask litellm, and
            send no tools otherwise.

    Raises BadOptions and UnknownProtocol for a string of another form.

    >>> import litellm
    >>> from toolparse_lab.integrations import litellm_bridge
    >>> litellm_bridge.register()
    >>> "toolparse" in [entry["provider"] for entry in litellm.custom_provider_map]
    True
    """
    litellm = litellm_module()
    if not any(item["provider"] == PROVIDER for item in litellm.custom_provider_map):
        provider = {"provider": PROVIDER, "custom_handler": provider_handler()}
        litellm.custom_provider_map = [*litellm.custom_provider_map, provider]
        litellm.utils.custom_llm_setup()
    allow_tools_without_mcp()
    let_params_pass(PROVIDER, MODEL_PARAMS)
    register_models(litellm, models)


@functools.lru_cache(maxsize=1)
def provider_handler() -> Any:
    """Return the provider's object, for those who fill litellm's list of providers themselves, as
    the LiteLLM proxy does from its config.
    """
    allow_tools_without_mcp()
    let_params_pass(PROVIDER, MODEL_PARAMS)
    return _provider_class(litellm_module())()


# How the provider works. litellm strips the model string of `toolparse/` and calls one of four
# methods with everything a provider might need, sorted its own way. The method takes the next part
# of the string for the protocol, the rest for the model to ask, and makes the inner call through
# `calls`, which goes to litellm again. So there are two calls of litellm for each of the user's:
# the inner one talks to the provider, the outer one logs, caches, retries and routes.


def _inner_params(kw: Mapping[str, Any], model: str, *, stream: bool) -> dict[str, Any]:
    params = {name: value for name, value in kw["optional_params"].items() if value is not None}
    take_options(params)  # read already, and no provider's
    for name, value in (kw["litellm_params"] or {}).items():
        passed = name in _PASSED or name.startswith(_PASSED_PREFIXES)
        if passed and value is not None and name not in params:
            params[name] = value
    for name in ("api_key", "api_base", "timeout", "client", "logger_fn"):
        if kw.get(name):
            params[name] = kw[name]
    if kw.get("headers"):
        params["extra_headers"] = kw["headers"]
    # The outer call logs and caches; both would do it twice.
    params.update({"no-log": True, "caching": False, "stream": stream})
    params.update(messages=kw["messages"], model=model)
    return params


def _provider_class(litellm: Any) -> Any:
    # A subclass of litellm's CustomLLM: litellm takes seconds to import, so it is made late.

    def inner_call(
        kw: Mapping[str, Any], *, stream: bool
    ) -> tuple[ToolCallMiddleware, dict[str, Any]]:
        """Return the middleware and the arguments of the inner call."""
        spec, _, model = kw["model"].partition("/")
        with usage_as_bad_request(kw):
            by = middleware_for(spec, take_options(dict(kw["optional_params"])))
        if is_local(model):
            # Whoever filled the list of providers may have left this one out.
            register_local(litellm)
        if not model:
            raise litellm.BadRequestError(
                message="The model string is toolparse/<protocol>/<provider>/<model>; got "
                f"toolparse/{kw['model']}",
                model=kw["model"],
                llm_provider=PROVIDER,
            )
        return by, _inner_params(kw, model, stream=stream)

    @contextlib.contextmanager
    def usage_as_bad_request(kw: Mapping[str, Any]) -> Iterator[None]:
        # A mistake of the caller's, as the exception that litellm's own providers raise.
        try:
            yield
        except UsageError as e:
            raise litellm.BadRequestError(
                message=str(e), model=kw["model"], llm_provider=PROVIDER
            ) from e

    form = chunk_form()

    class ToolCalling(litellm.CustomLLM):  # type: ignore[misc]
        """The four ways in which litellm asks a provider."""

        def completion(self, *args: Any, **kw: Any) -> Any:
            by, params = inner_call(kw, stream=False)
            with usage_as_bad_request(kw):
                return completion_with(by, **params)

        async def acompletion(self, *args: Any, **kw: Any) -> Any:
            by, params = inner_call(kw, stream=False)
            with usage_as_bad_request(kw):
                return await acompletion_with(by, **params)

        def streaming(self, *args: Any, **kw: Any) -> Iterator[Any]:
            by, params = inner_call(kw, stream=True)
            # Asked at once, so that a failure is raised where litellm's own providers raise it.
            with usage_as_bad_request(kw):
                stream = completion_with(by, **params)
            return _passed_on(stream, form)

        def astreaming(self, *args: Any, **kw: Any) -> AsyncIterator[Any]:
            # Not itself a generator: a wrong model string is refused at once, as in `streaming`.
            by, params = inner_call(kw, stream=True)

            async def chunks() -> AsyncIterator[Any]:
                with usage_as_bad_request(kw):
                    stream = await acompletion_with(by, **params)
                ends = _Ends()
                try:
                    async for chunk in stream:
                        if not ends.take(chunk):
                            yield form(chunk)
                    for chunk in ends.chunks:
                        yield form(chunk)
                finally:
                    # litellm's own stream has no `aclose` before 1.81.
                    await close_stream(stream)

            return chunks()

    return ToolCalling


def _passed_on(stream: Any, form: Callable[[Any], Any]) -> Iterator[Any]:
    # `form` makes of each chunk what litellm takes.
    ends = _Ends()
    try:
        for chunk in stream:
            if not ends.take(chunk):
                yield form(chunk)
        yield from map(form, ends.chunks)
    finally:
        # Without active tools it is litellm's own stream, which has no `close`.
        close_connection(stream)


class _Ends:
    """Holds back the end of a stream: litellm reads nothing of a provider's stream after its first
    finish reason, the usage neither, and nothing that comes with it.
    """

    def __init__(self) -> None:
        self.chunks: list[Any] = []
        self._began = False

    def take(self, chunk: Any) -> bool:
        """Return True for a chunk with a finish reason, which waits, the first of several."""
        if not self._began:
            self._began = True
            name_outer_stream(chunk.model)
        if not chunk.choices or chunk.choices[0].finish_reason is None:
            return False
        if self.chunks:
            return True
        choice = chunk.choices[0]
        parts = [choice]
        if getattr(choice.delta, "provider_specific_fields", None) is not None:
            # What the parse found goes in a chunk of its own before the end.
            delta = choice.delta.model_copy(update={"provider_specific_fields": None})
            parts = [
                choice.model_copy(update={"finish_reason": None}),
                choice.model_copy(update={"delta": delta}),
            ]
        self.chunks += [chunk.model_copy(update={"choices": [part]}) for part in parts]
        return True


def register_models(litellm: Any, models: Iterable[str]) -> None:
    """Tell litellm that these model strings call tools, and their cost: as much as the models below
    them, where its list has those.

    models: `toolparse/<protocol>/<model>`. Raises BadOptions, and UnknownProtocol for a string that
    names no protocol; nothing is registered then.
    """
    if isinstance(models, str):
        raise BadOptions("models is a list of model strings", got=models, expected=[models])
    entries = {name: _entry_of(litellm, name) for name in models}
    if not entries:
        return
    # Priced models are listed once more, under the name that an answer has: a stream's cost is
    # looked up by `toolparse/` and that. Where two models of one name cost differently none of them
    # has such an entry: an unknown cost is better than a wrong one.
    short: dict[str, Any] = {}
    for name, entry in entries.items():
        alias = f"{PROVIDER}/{name.split('/', 3)[-1]}"
        before = short.get(alias) or litellm.model_cost.get(alias)
        if before is not None and any(before.get(key) != entry.get(key) for key in _PRICES):
            _ambiguous.add(alias)
        if "input_cost_per_token" in entry:
            short[alias] = entry
    for alias in _ambiguous:
        short.pop(alias, None)
        litellm.model_cost.pop(alias, None)
    litellm.register_model({**entries, **short})


def _entry_of(litellm: Any, name: str) -> dict[str, Any]:
    """Return the entry of one model string for litellm's list: that of the model below, and what
    it can do by the bridge. Raises BadOptions and UnknownProtocol.
    """
    words = name.split("/", 2) if isinstance(name, str) else []
    if len(words) < 3 or words[0] != PROVIDER or not words[2]:
        raise BadOptions(
            "not a model string of the bridge",
            got=name,
            expected="toolparse/<protocol>/<provider>/<model>",
        )
    middleware_for(words[1], {})
    # Only the list is looked into: litellm's own function asks some providers over the network.
    below = litellm.model_cost.get(words[2])
    if below is None:
        # Most models are listed without their provider, which is then a member.
        provider, _, bare = words[2].partition("/")
        below = litellm.model_cost.get(bare)
        if below is not None and not str(below.get("litellm_provider")).startswith(provider):
            below = None
    entry = {**(below or {}), "litellm_provider": PROVIDER, "mode": "chat"}
    entry.update(dict.fromkeys(_ABILITIES, True))
    entry.pop("supported_openai_params", None)  # those of the provider, not of this one
    # litellm bills nothing for cached tokens without a price, and logs that it does so for every
    # model that is registered; where the price says so, there is nothing to log.
    if "input_cost_per_token" in entry and not any(entry.get(key) for key in _CACHE_PRICES):
        entry["cache_read_input_token_cost"] = 0.0
    return entry
