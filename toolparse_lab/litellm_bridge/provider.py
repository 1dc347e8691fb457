"""Tool calling as a litellm provider: model string `toolparse/<protocol>/<provider>/<model>`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from ..errors import UsageError
from ..middleware import ToolCallMiddleware
from ..runner.litellm_door import litellm_module
from .calls import acompletion_with, completion_with, middleware_for
from .gateway import allow_tools_without_mcp

PROVIDER = "toolparse"
# What litellm keeps apart from a provider's parameters, and the inner provider needs.
_KEPT = ("api_version", "drop_params", "organization", "region_name")
_KEPT_OF = ("aws_", "azure_", "vertex_", "watsonx_")


def register() -> None:
    """Makes `toolparse/hermes/openai/my-model` a model of litellm: model `openai/my-model` with the tools described
    in its prompt and the calls read from its text by protocol `hermes`. Doing it again does nothing.

    From then on `completion`, `acompletion`, their streams and Router take such a model string; key, base address,
    headers, timeout and the other parameters go to the inner call, and `tool_choice_by="prompt"` is read here.
    Failures are the inner provider's; an unknown protocol is a litellm.BadRequestError that lists the known ones.
    """
    litellm = litellm_module()
    if not any(item["provider"] == PROVIDER for item in litellm.custom_provider_map):
        made = {"provider": PROVIDER, "custom_handler": _provider_class(litellm)()}
        litellm.custom_provider_map = [*litellm.custom_provider_map, made]
        litellm.utils.custom_llm_setup()
    allow_tools_without_mcp()


def _provider_class(litellm: Any) -> Any:
    def inner_call(kw: Mapping[str, Any], *, stream: bool) -> tuple[ToolCallMiddleware, dict[str, Any]]:
        params = {name: value for name, value in kw["optional_params"].items() if value is not None}
        protocol, _, model = kw["model"].partition("/")
        try:
            by = middleware_for(protocol, params.pop("tool_choice_by", "response_format"))
        except UsageError as e:
            raise refused(e, kw["model"]) from e
        if not model:
            raise litellm.BadRequestError(
                message=f"The model string is toolparse/<protocol>/<provider>/<model>; got toolparse/{kw['model']}",
                model=kw["model"],
                llm_provider=PROVIDER,
            )
        kept = kw["litellm_params"] or {}
        params.update(
            (name, value)
            for name, value in kept.items()
            if value is not None and (name in _KEPT or name.startswith(_KEPT_OF)) and name not in params
        )
        params.update(
            {name: kw[name] for name in ("api_key", "api_base", "timeout", "client", "logger_fn") if kw.get(name)}
        )
        if kw.get("headers"):
            params["extra_headers"] = kw["headers"]
        # The outer call logs and caches; both would do it twice.
        params.update({"no-log": True, "caching": False, "stream": stream, "messages": kw["messages"], "model": model})
        return by, params

    def refused(e: UsageError, model: str) -> Exception:
        made: Exception = litellm.BadRequestError(message=str(e), model=model, llm_provider=PROVIDER)
        return made

    class ToolCalling(litellm.CustomLLM):  # type: ignore[misc]
        def completion(self, *args: Any, **kw: Any) -> Any:
            by, params = inner_call(kw, stream=False)
            try:
                return completion_with(by, **params)
            except UsageError as e:
                raise refused(e, kw["model"]) from e

        async def acompletion(self, *args: Any, **kw: Any) -> Any:
            by, params = inner_call(kw, stream=False)
            try:
                return await acompletion_with(by, **params)
            except UsageError as e:
                raise refused(e, kw["model"]) from e

        def streaming(self, *args: Any, **kw: Any) -> Iterator[Any]:
            by, params = inner_call(kw, stream=True)
            try:
                # Asked at once, so that a failure is raised where litellm's own providers raise it.
                stream = completion_with(by, **params)
            except UsageError as e:
                raise refused(e, kw["model"]) from e
            return _passed_on(stream, kw["model"])

        def astreaming(self, *args: Any, **kw: Any) -> AsyncIterator[Any]:
            by, params = inner_call(kw, stream=True)

            async def chunks() -> AsyncIterator[Any]:
                try:
                    stream = await acompletion_with(by, **params)
                except UsageError as e:
                    raise refused(e, kw["model"]) from e
                try:
                    end = None
                    async for chunk in stream:
                        if _ends(chunk):
                            end = end or chunk
                        else:
                            chunk.model = kw["model"]
                            yield chunk
                    if end is not None:
                        yield end
                finally:
                    await stream.aclose()

            return chunks()

    return ToolCalling


def _passed_on(stream: Any, model: str) -> Iterator[Any]:
    end = None
    with contextlib.closing(stream):
        for chunk in stream:
            if _ends(chunk):
                end = end or chunk
            else:
                chunk.model = model
                yield chunk
        if end is not None:
            yield end


def _ends(chunk: Any) -> bool:
    # litellm reads nothing of a provider's stream after its first finish reason, the usage neither: it is sent last.
    return bool(chunk.choices) and chunk.choices[0].finish_reason is not None
