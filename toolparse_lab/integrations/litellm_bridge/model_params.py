"""Parameters of newer models, which litellm refuses where it does not know that a provider takes
them.
"""

from __future__ import annotations

from typing import Any

MODEL_PARAMS = ("reasoning_effort", "thinking", "verbosity")


def let_pass(litellm: Any, params: dict[str, Any]) -> None:
    """Send such parameters of a request on to a server that litellm does not know to take them:
    servers of open models take them, and one that does not says so.

    params: the arguments of the call. The parameters go into `extra_body`. Only where OpenAI's
    protocol is spoken: another provider's parameters have other names. A request that says
    `drop_params` has them dropped, as litellm does.
    """
    names = [name for name in MODEL_PARAMS if params.get(name) is not None]
    if not names or params.get("drop_params") or litellm.drop_params:
        return
    try:
        model, provider, *_ = litellm.get_llm_provider(
            model=params["model"],
            custom_llm_provider=params.get("custom_llm_provider"),
            api_base=params.get("api_base"),
        )
        supported = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
    except Exception:  # litellm says what is wrong with the model when it is asked
        return
    if provider != "openai" and provider not in litellm.openai_compatible_providers:
        return
    unknown = {name: params.pop(name) for name in names if name not in (supported or ())}
    if unknown:
        params["extra_body"] = {**unknown, **(params.get("extra_body") or {})}
