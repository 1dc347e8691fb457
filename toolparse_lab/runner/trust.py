"""Which hosts get which environment variables, and who has said so.

A file of settings comes with a checkout, and a checkout may come from anybody. So a model of a file
gets only what its provider's own name and host stand for, and a file names only places of its own
repository. All else has to be said by whoever works here: by `--trust`, or by a line in their own
settings.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..core.errors import BadSettings
from .exchange.types import PARAMETERS

OWN_FILE = "toolparse/settings.toml"
"""Of one's own, below `$XDG_CONFIG_HOME` or `~/.config`: `trusted = ["/folder", ...]`."""

# Provider -> more beginnings of the names of its variables; its own name is always one.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "hosted_vllm": ("VLLM",),
    "together_ai": ("TOGETHER", "TOGETHERAI"),
    "fireworks_ai": ("FIREWORKS",),
    "nvidia_nim": ("NVIDIA",),
    "huggingface": ("HF",),
    "gemini": ("GOOGLE",),
    "vertex_ai": ("VERTEX", "VERTEXAI", "GOOGLE", "GEMINI"),
    "bedrock": ("AWS",),
    "sagemaker": ("AWS",),
    "cohere": ("CO",),
    "cohere_chat": ("CO", "COHERE"),
    "azure_ai": ("AZURE",),
    "openrouter": ("OR",),
    "perplexity": ("PERPLEXITYAI",),
    "watsonx": ("WX", "WML"),
    "ollama_chat": ("OLLAMA",),
}
# Provider -> the hosts that its key may go to; without `api_base` it is its own. A star is one
# label: below many a cloud's name anybody may have a server.
_HOSTS: Mapping[str, tuple[str, ...]] = {
    "openai": ("api.openai.com",),
    "anthropic": ("api.anthropic.com",),
    "azure": (
        "*.openai.azure.com", "*.cognitiveservices.azure.com", "*.api.cognitive.microsoft.com",
    ),
    "azure_ai": (
        "*.openai.azure.com", "*.cognitiveservices.azure.com", "*.services.ai.azure.com",
        "*.*.models.ai.azure.com",
    ),
    "openrouter": ("openrouter.ai",),
    "mistral": ("api.mistral.ai",),
    "groq": ("api.groq.com",),
    "deepseek": ("api.deepseek.com",),
    "together_ai": ("api.together.xyz", "api.together.ai"),
    "fireworks_ai": ("api.fireworks.ai",),
    "gemini": ("generativelanguage.googleapis.com",),
    "vertex_ai": ("aiplatform.googleapis.com", "*-aiplatform.googleapis.com"),
    "xai": ("api.x.ai",),
    "bedrock": ("bedrock-runtime.*.amazonaws.com",),
    "cerebras": ("api.cerebras.ai",),
    "cohere": ("api.cohere.com", "api.cohere.ai"),
    "cohere_chat": ("api.cohere.com", "api.cohere.ai"),
    "dashscope": ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"),
    "deepinfra": ("api.deepinfra.com",),
    "huggingface": ("router.huggingface.co",),
    "moonshot": ("api.moonshot.ai", "api.moonshot.cn"),
    "nvidia_nim": ("integrate.api.nvidia.com",),
    "perplexity": ("api.perplexity.ai",),
    "sambanova": ("api.sambanova.ai",),
    "zai": ("api.z.ai",),
}  # fmt: skip
_LOCAL = ("hosted_vllm", "ollama", "lm_studio")
# Arguments of litellm that say how a model answers; all others may say where it is asked.
_ANSWERING = frozenset(PARAMETERS) | {
    "allowed_openai_params", "fallbacks", "models", "reasoning_effort", "stream_options",
    "temperature", "tool_choice",
}  # fmt: skip
_REGIONS = frozenset(
    (
        "account_id",
        "api_version",
        "aws_region_name",
        "organization",
        "vertex_location",
        "vertex_project",
    )
)
"""Arguments that become a part of a provider's address: a word alone."""
_NAME = re.compile(r"[\w.:@+ -]+(/[\w.:@+ -]+)*")
"""A model string that is no address."""
_OWN_SERVER = re.compile(
    r"postgres\w*(\+\w+)?://([\w.-]+@)?(localhost|127\.0\.0\.1|\[::1\])?(:\d+)?/[\w-]*"
)
"""An address that all who read one read alike."""
_PLAIN = ((re.compile(r"(chat)?gpt|o\d|ft:"), "openai"), (re.compile("claude"), "anthropic"))
# What litellm looks for by itself where it is given no key; AWS's two others only sign.
_KEY = re.compile(r"(API_?KEY|(?<!_ACCESS)_KEY|TOKEN|JWT)(?!_ID)")
_ON_DISK = frozenset({"vertex_ai", "vertex_ai_beta", "github_copilot", "chatgpt"})
"""Providers whose login is found without any variable."""
NO_KEY = "none"
"""In the place of a key, so that litellm does not look for one of its own, such as OpenAI's."""


def provider_word(name: str) -> str:
    """Return the provider that a model string names, "" if none.

    >>> provider_word("openai/gpt-4o"), provider_word("claude-sonnet-4"), provider_word("x")
    ('openai', 'anthropic', '')
    """
    name = name.removeprefix("text-completion-")
    word, slash, _ = name.partition("/")
    if slash:
        return word.lower()
    return next((provider for begin, provider in _PLAIN if begin.match(name)), "")


def is_own_name(variable: str, provider: str) -> bool:
    """Return True for a variable that bears its provider's name, such as OPENAI_API_KEY."""
    words = (provider.upper(), *_NAMES.get(provider, ()))
    return any(
        word and re.fullmatch(rf"{re.escape(word)}(_[A-Z0-9_]+)?", variable) for word in words
    )


def host_of(address: str | None) -> str:
    """Return the host of an address with its port, "" if there is none."""
    with suppress(ValueError):
        return urlsplit(address or "").netloc.rpartition("@")[2].lower()
    return ""


def is_this_machine(address: str | None) -> bool:
    """Return True for an address of this machine alone."""
    try:
        name = urlsplit(address or "").hostname or ""
        if name == "localhost":
            return True
        place = ipaddress.ip_address(name)
        return place.is_loopback or place.is_unspecified
    except ValueError:
        return False


def variables_in(value: Any) -> Iterator[str]:
    """Yield the variables that a model's table names: those of `{ env = "NAME" }`."""
    if isinstance(value, Mapping):
        if set(value) == {"env"} and isinstance(value["env"], str):
            yield value["env"]
        else:
            for member in value.values():
                yield from variables_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from variables_in(member)


def _own_keys(provider: str, environ: Mapping[str, str]) -> list[str]:
    # Of vLLM litellm reads the long name alone.
    return [
        name
        for name in environ
        if is_own_name(name, provider) and _KEY.search(name) and not name.startswith("VLLM_")
    ]


def sent_variables(table: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """Return the variables that the host of a model gets: those that are set, the provider's own
    keys among them where the file names none.
    """
    key = table.get("api_key_env")
    keys = [str(key)] if key else _own_keys(provider_word(str(table["name"])), environ)
    return [name for name in dict.fromkeys([*keys, *variables_in(table)]) if environ.get(name)]


def is_own_host(table: Mapping[str, Any]) -> bool:
    """Return True for a model that is asked at its provider, or on this machine."""
    base = table.get("api_base")
    if base is None:
        return True
    if not isinstance(base, str):
        return False
    return is_this_machine(base) or _is_host_of(base, provider_word(str(table["name"])))


def _is_host_of(address: str, provider: str) -> bool:
    host = host_of(address).partition(":")[0]
    if not address.lower().startswith("https:"):  # else anybody on the way reads the key
        return False
    patterns = (re.escape(name).replace(r"\*", "[a-z0-9-]+") for name in _HOSTS.get(provider, ()))
    return any(re.fullmatch(pattern, host) for pattern in patterns)


def _goes_home(variable: str, address: Any) -> bool:
    # Many are asked as openai/…: a key may go to the provider whose name it bears, and any key of
    # a model to this machine.
    if not isinstance(address, str):
        return False
    here = is_this_machine(address) and _KEY.search(variable) is not None
    return any(
        is_own_name(variable, provider) and (here or _is_host_of(address, provider))
        for provider in (*_HOSTS, *_LOCAL)
    )


def doubtful(table: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """Return the variables of a model that go beyond its provider's own names and hosts, its login
    where that is in no variable, and the members that tell litellm where to ask.
    """
    provider = provider_word(str(table["name"]))
    own_host = is_own_host(table)
    fallbacks = list(_fallbacks(table))
    own = {**table, "params": {k: v for k, v in _params(table).items() if k != "fallbacks"}}
    names = [
        name
        for name in sent_variables(own, environ)
        if not (own_host and is_own_name(name, provider))
        and not _goes_home(name, table.get("api_base"))
    ]
    if not own_host and provider in _ON_DISK:
        names.append(f"the login of {provider}")
    if not _NAME.fullmatch(str(table["name"])):
        names.append(f"the name {table['name']}")
    names += [f"params.{name}" for name, value in own["params"].items() if _steers(name, value)]
    for model in fallbacks:
        names += doubtful(model, environ)
        # litellm sends OpenAI's key where it has no other.
        if not is_own_host(model) and environ.get("OPENAI_API_KEY"):
            names.append("OPENAI_API_KEY")
    return list(dict.fromkeys(names))


def check_trust(
    table: Mapping[str, Any], environ: Mapping[str, str], where: str, file: Path
) -> None:
    """Raise BadSettings for a model that a file, not trusted, sends beyond its provider's own."""
    names = doubtful(table, environ)
    if names:
        base = table.get("api_base")
        host = host_of(base) if isinstance(base, str) else str(table["name"])
        what = f"a file does not decide alone that {host} gets these, or is asked by them"
        raise untrusted(where, what, names, file)


def _params(table: Mapping[str, Any]) -> Mapping[str, Any]:
    params = table.get("params")
    return params if isinstance(params, Mapping) else {}


def _steers(name: str, value: Any) -> bool:
    """Return True for an argument of litellm that may say where or by whose login it asks."""
    if name in _REGIONS:
        return not (isinstance(value, str) and re.fullmatch(r"[\w-]+", value))
    return name not in _ANSWERING


def _fallbacks(table: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    # litellm asks these in the model's place, each at an address of its own.
    listed = _params(table).get("fallbacks")
    for one in listed if isinstance(listed, list) else () if listed is None else (listed,):
        fallback = dict(one) if isinstance(one, Mapping) else {"model": one}
        name, base = fallback.pop("model", table["name"]), fallback.pop("api_base", None)
        yield {"name": name, "api_base": base, "params": fallback}


def trusted_folders() -> list[Path]:
    """Return the folders that one's own settings trust. Raises BadSettings."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    path = Path(base).expanduser() / OWN_FILE
    try:
        folders = tomllib.loads(path.read_text("utf-8")).get("trusted", [])
    except OSError:
        return []
    except ValueError as e:
        raise BadSettings("your own settings are no TOML", got=f"{path}: {e}") from None
    if not isinstance(folders, list) or not all(isinstance(f, str) for f in folders):
        raise BadSettings(f"{path}: `trusted` is a list of folders", got=repr(folders))
    return [Path(folder).expanduser().resolve() for folder in folders]


def is_trusted(path: Path) -> bool:
    """Return True for a file below a folder that one's own settings trust."""
    place = path.resolve()
    return any(place.is_relative_to(folder) for folder in trusted_folders())


def is_foreign(path: Path) -> bool:
    """Return True for a file that belongs to somebody else."""
    if not hasattr(os, "geteuid"):
        return False
    try:
        return path.stat().st_uid != os.geteuid()
    except OSError:
        return False


def folders_upward(start: Path) -> tuple[list[Path], list[Path]]:
    """Return the folders whose files hold for a folder, the nearest first, and those beyond.

    They end at the root of the repository; outside of one the folder stands alone.
    """
    place = start.resolve()
    folders = [place, *place.parents]
    root = next((n for n, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return folders[: root + 1], folders[root + 1 :]


def is_beyond(place: str, file: Path) -> bool:
    """Return True for a place that is neither in a file's own repository, links followed, nor a
    server's database on this machine.

    place: a path, or the address of a file or a store.
    """
    path = place.removeprefix("sqlite:///")
    if "://" in path:
        return _OWN_SERVER.fullmatch(path) is None
    if path == ":memory:":
        return False
    root = folders_upward(file.parent)[0][-1]
    try:
        # A query of SQLite's can name another file than the one before it.
        inside = (file.parent / Path(path).expanduser()).resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        return True
    return not inside or (path != place and "?" in path)


def untrusted(
    where: str,
    what: str,
    names: Iterable[str],
    file: Path,
    *,
    expected: str = "a name and a host of the model's own provider",
    way: str = "pass trust=True",
) -> BadSettings:
    """Return the error for what a file of settings may not decide alone. way: one way out."""
    return BadSettings(
        f"{where}: {what}",
        got=", ".join(names),
        expected=expected,
        hint=f"if you know where this file comes from, {way}, or add its folder to "
        f'~/.config/{OWN_FILE}: trusted = ["{file.resolve().parent}"]',
    )
