"""Configuration: which file holds, what goes before what, and what a file must not hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import each_case, table
from toolparse_lab.core.errors import BadSettings
from toolparse_lab.experiments.plan_file import read_plan_file
from toolparse_lab.runner.settings import SETTINGS, Settings, load_settings

MODEL = """
[models.qwen-a]
name = "hosted_vllm/Qwen3-8B"
api_base = "http://localhost:8000/v1"
api_key_env = "VLLM_KEY"
extra_body = { chat_template_kwargs = { enable_thinking = false } }
headers = { Authorization = { env = "GATEWAY" }, X-Team = "tools" }
params = { top_p = 0.9 }
timeout = 30
max_connections = "adaptive"
max_retries = 1
price = { input = 0.5, output = 1 }

[models]
small = "toolparse-local/smollm2-135m"
"""


def load(
    folder: Path, text: str | None = None, *, name: str = "toolparse.toml", **how: Any
) -> Settings:
    if text is not None:
        (folder / name).write_text(text, "utf-8")
    return load_settings(start=folder, **{"environ": {}, "trust": True, **how})


def test_defaults_hold_where_nothing_is_said(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert dict(settings.values) == {name: s.default for name, s in SETTINGS.items()}
    assert set(settings.origins.values()) == {"default"}
    assert settings.models == {}


@each_case
def test_a_flag_goes_before_the_environment_and_that_before_the_file(
    tmp_path: Path,
    file: str,
    environ: dict[str, str],
    flags: dict[str, Any],
    holds: str,
    origin: str,
) -> None:
    settings = load(tmp_path, file, environ=environ, flags=flags)
    assert settings["policy"] == holds
    assert settings.origins["policy"].endswith(origin)


def test_the_nearest_file_upward_holds(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    load(tmp_path, "max_calls = 1")
    assert load(inner)["max_calls"] == 1
    load(tmp_path / "a", "[tool.toolparse]\nmax_calls = 2", name="pyproject.toml")
    assert load(inner)["max_calls"] == 2
    load(inner, "[tool.other]\nmax_calls = 3", name="pyproject.toml")
    assert load(inner)["max_calls"] == 2
    load(tmp_path / "a", "max_calls = 4")
    assert load(inner)["max_calls"] == 4  # beside a pyproject.toml, its own file goes first
    assert load(inner, config=tmp_path / "toolparse.toml")["max_calls"] == 1
    assert (
        load(inner, environ={"TOOLPARSE_CONFIG": str(tmp_path / "a" / "pyproject.toml")})[
            "max_calls"
        ]
        == 2
    )


@pytest.mark.parametrize("root", [None, "work"])
def test_a_file_beyond_the_repository_does_not_hold(tmp_path: Path, root: str | None) -> None:
    work = tmp_path / "work"
    work.mkdir()
    if root:
        (tmp_path / root / ".git").mkdir()
    load(tmp_path, "max_calls = 1")
    settings = load(work)
    assert settings["max_calls"] is None
    assert str(tmp_path / "toolparse.toml") in settings.passed_over[0]
    assert load(work, config=tmp_path / "toolparse.toml")["max_calls"] == 1


def test_a_file_of_somebody_else_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(tmp_path, "max_calls = 1")
    monkeypatch.setattr("os.geteuid", lambda: 12_345)
    settings = load(tmp_path, trust=False)
    assert settings["max_calls"] is None
    assert "somebody else" in settings.passed_over[0]


# What gets a variable: another host than the provider's, one that ends as its name does, one by
# another name of litellm's for an address or a key, a fallback, and what anybody on the way can read.
KEYS = {
    row["variable"]: f"planted-{row['variable']}" for row in table(__file__) if "variable" in row
}


@each_case
def test_a_file_does_not_decide_alone_who_gets_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, variable: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    text = f"[models.m]\n{table}"
    settings = load(tmp_path, text, trust=False, environ=KEYS)
    with pytest.raises(BadSettings, match=variable) as refused:
        settings.model("m")
    assert "trust" in str(refused.value)
    # A plan is as much a stranger's as the settings beside it.
    plan = tmp_path / "plan.toml"
    plan.write_text(text, "utf-8")
    with pytest.raises(BadSettings, match=variable):
        read_plan_file(plan, load(tmp_path, "", trust=False, environ=KEYS))
    # Whoever knows where it comes from says so, by a flag or once in their own settings.
    if "api_base = {" not in table:
        assert load(tmp_path, text, environ=KEYS).model("m")
        own = tmp_path / "own" / "toolparse" / "settings.toml"
        own.parent.mkdir(parents=True)
        own.write_text(f'trusted = ["{tmp_path}"]', "utf-8")
        assert load(tmp_path, text, trust=False, environ=KEYS).model("m")
        assert read_plan_file(plan, load(tmp_path, "", trust=False, environ=KEYS)).models


@each_case
def test_a_provider_s_own_names_and_hosts_need_no_word(tmp_path: Path, table: str) -> None:
    environ = {
        "OPENAI_API_KEY": "planted-a",
        "VLLM_KEY": "planted-b",
        "ANTHROPIC_API_KEY": "planted-c",
        "OPENROUTER_API_KEY": "planted-d",
    }
    assert load(tmp_path, f"[models.m]\n{table}", trust=False, environ=environ).model("m")


def test_a_host_of_nobody_gets_no_key_that_litellm_finds(tmp_path: Path) -> None:
    # It sends OpenAI's to every host that speaks as OpenAI does.
    text = '[models.m]\nname = "perplexity/m"\napi_base = "https://evil.example/v1"'
    environ = {"OPENAI_API_KEY": "planted"}
    assert load(tmp_path, text, trust=False, environ=environ).model("m").api_key == "none"
    assert load(tmp_path, text, environ=environ).model("m").api_key is None


def test_a_file_does_not_put_answers_on_another_machine(tmp_path: Path) -> None:
    store = 'store = "postgresql://evil.example/db"'
    with pytest.raises(BadSettings, match=r"evil\.example") as refused:
        load(tmp_path, store, trust=False).elsewhere("store")
    # Not every command that opens a store has --trust.
    assert "--store" in str(refused.value)
    load(tmp_path, store).elsewhere("store")
    load(tmp_path, 'store = "postgresql://localhost/db"', trust=False).elsewhere("store")


@pytest.mark.parametrize(
    "store",
    [
        "postgresql+psycopg:///db?host=evil.example",
        "postgresql://localhost/db?service=x",
        # One reader takes the first name for the host, another the last.
        "postgresql://localhost:x/@evil.example/db",
        "postgresql://localhost#@evil.example/db",
        "https://localhost/x.db",
    ],
)
def test_an_address_of_a_store_is_read_as_whoever_opens_it_reads_it(
    tmp_path: Path, store: str
) -> None:
    with pytest.raises(BadSettings, match="does not decide alone"):
        load(tmp_path, f'store = "{store}"', trust=False).elsewhere("store")


def test_places_outside_of_the_repository_are_named(tmp_path: Path) -> None:
    (tmp_path / "work" / ".git").mkdir(parents=True)
    (tmp_path / "work" / "link").symlink_to(tmp_path)
    for place in ("/else/x.db", "../x.db", "link/x.db", "~/x.db", "sqlite:////else/x.db"):
        settings = load(tmp_path / "work", f'store = "{place}"', trust=False)
        assert "outside of the repository" in settings.elsewhere("store"), place
        assert load(tmp_path / "work", f'store = "{place}"').elsewhere("store") == ""
    inside = load(tmp_path / "work", 'store = "a/x.db"\ncases = "../c.jsonl"', trust=False)
    assert inside.elsewhere("store") == ""
    assert "c.jsonl" in inside.elsewhere("cases")
    for cases in ("../c.jsonl", "/etc/passwd", "link/c.jsonl", "https://x.example/c.jsonl"):
        settings = load(tmp_path / "work", f'cases = "{cases}"', trust=False)
        with pytest.raises(BadSettings, match=r"evil\.example gets"):
            settings.elsewhere("cases", ["evil.example"])


def test_a_stranger_s_host_gets_no_file_as_a_template(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret", "utf-8")
    (tmp_path / "work" / ".git").mkdir(parents=True)
    text = (
        '[models.m]\nname = "text-completion-openai/m"\n'
        f'chat_template = "{tmp_path.as_posix()}/key"\napi_base = "{{}}"'
    )
    bad = load(tmp_path / "work", text.format("https://evil.example/v1"), trust=False)
    with pytest.raises(BadSettings, match=r"evil\.example gets"):
        bad.model("m")
    assert load(tmp_path / "work", text.format("http://127.0.0.1:8/v1"), trust=False).model("m")


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / ".git").mkdir()
    settings = load(tmp_path, 'store = "data/runs.db"\ncases = "a/live.jsonl"')
    assert load(tmp_path / "in")["store"] == str(tmp_path / "data" / "runs.db")
    assert settings["cases"] == str(tmp_path / "a" / "live.jsonl")
    assert load(tmp_path, 'store = "sqlite:///x.db"')["store"] == "sqlite:///x.db"
    assert load(tmp_path, "", environ={"TOOLPARSE_STORE": "here.db"})["store"] == "here.db"


def test_lists_and_numbers_come_from_the_environment_too(tmp_path: Path) -> None:
    environ = {
        "TOOLPARSE_PROTOCOLS": "hermes, gemma",
        "TOOLPARSE_MAX_COST": "2.5",
        "TOOLPARSE_MAX_CALLS": "7",
    }
    settings = load(tmp_path, environ=environ)
    assert (settings["protocols"], settings["max_cost"], settings["max_calls"]) == (
        ["hermes", "gemma"],
        2.5,
        7,
    )


def test_a_model_has_everything_its_endpoint_needs(tmp_path: Path) -> None:
    environ = {"VLLM_KEY": "planted-key", "GATEWAY": "Bearer planted-token"}
    settings = load(tmp_path, MODEL, environ=environ)
    assert settings.models == {
        "qwen-a": tp.Model(
            "hosted_vllm/Qwen3-8B",
            api_base="http://localhost:8000/v1",
            api_key="planted-key",
            extra_body={"chat_template_kwargs": {"enable_thinking": False}},
            headers={"Authorization": "Bearer planted-token", "X-Team": "tools"},
            params={"top_p": 0.9},
            timeout=30,
            max_connections="adaptive",
            max_retries=1,
            price=(0.5, 1),
        ),
        "small": tp.Model("toolparse-local/smollm2-135m"),
    }
    assert "planted" not in repr(settings)


def test_a_missing_variable_stands_only_in_the_way_of_its_model(tmp_path: Path) -> None:
    settings = load(tmp_path, MODEL)
    assert settings.model("small").name == "toolparse-local/smollm2-135m"
    with pytest.raises(BadSettings, match=r"toolparse\.toml:2.*(VLLM_KEY|GATEWAY) is not set"):
        settings.model("qwen-a")
    with pytest.raises(BadSettings, match="did you mean small"):
        settings.model("smal")


SECRET = "sk-planted0123456789abcdef"


@each_case
def test_a_file_holds_no_credential(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadSettings) as e:
        load(tmp_path, text)
    assert says in str(e.value)
    assert SECRET not in str(e.value)


@each_case
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadSettings) as e:
        load(tmp_path, text)
    assert says in str(e.value)


@each_case
def test_a_model_that_cannot_be_is_named_when_it_is_used(
    tmp_path: Path, text: str, says: str
) -> None:
    settings = load(tmp_path, text)
    with pytest.raises(BadSettings) as e:
        settings.model("a")
    assert says in str(e.value)


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="cannot be read"):
        load(tmp_path, config=tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'store = "\xe4.db"')
    with pytest.raises(BadSettings, match="not UTF-8"):
        load(tmp_path, config=tmp_path / "latin.toml")


def test_variables_that_are_no_settings_are_told_of(tmp_path: Path) -> None:
    environ = {
        "TOOLPARSE_POLICI": "none",
        "TOOLPARSE_LOCAL_THREADS": "1",
        "TOOLPARSE_ZZZ": "",
        "PATH": "",
    }
    assert load(tmp_path, environ=environ).unknown == {
        "TOOLPARSE_POLICI": "TOOLPARSE_POLICY",
        "TOOLPARSE_ZZZ": "",
    }


def test_the_examples_of_the_page_hold(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text("utf-8")
    plan, settings = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    environ = {"VLLM_KEY": "key", "GATEWAY_TOKEN": "token"}
    held = load(tmp_path, settings, environ=environ)
    assert list(held.models) == ["qwen-a", "small"]
    (tmp_path / "plan.toml").write_text(plan, "utf-8")
    read = read_plan_file(tmp_path / "plan.toml", held)
    assert list(read.models) == ["qwen-a", "openai/gpt-4o-mini"]
    assert read.cases == str(tmp_path / "cases.jsonl")
