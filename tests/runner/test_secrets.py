"""Keys planted everywhere a user may put one, looked for everywhere this package leaves
something, in every form in which it may stand there."""

from __future__ import annotations

import base64
import contextlib
import copy
import html
import io
import json
import logging
import pickle
import sqlite3
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import toolparse_lab as tp
from tests.mock_openai import MockOpenAI
from tests.tables import asked_of, every_case
from tests.tools import object_schema
from toolparse_lab.core.errors import BadSettings, ProviderError, StoreError
from toolparse_lab.runner.complete import guard_logs
from toolparse_lab.runner.exchange.redaction import (
    SecretText,
    redact,
    redact_exact,
    redact_named,
    redact_strings,
    secrets_in,
)
from toolparse_lab.runner.exchange.types import Request
from toolparse_lab.runner.settings import load_settings
from toolparse_lab.runner.store.recording import export_recording

TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
ANSWER = 'say=<tool_call>{"name": "f", "arguments": {"n": "3"}}</tool_call>'
# The server says again what it was sent, in forms that servers, proxies and logs have.
ORDERS = [
    "", "status=401 confess ", "status=500 confess ", "status=400 confess=quoted ",
    "status=403 confess=base64 ", "status=422 confess=html ", "cut=2 ", "abort=1 ",
]  # fmt: skip

_PEM = "\n".join(
    [
        "-----BEGIN PRIVATE KEY-----",
        *(f"Planted{n}PemLine" * 3 for n in range(3)),
        "-----END PRIVATE KEY-----",
    ]
)
# Where a user may put a secret -> the secret. A quotation mark, a slash, a letter that is no ASCII:
# each is written in another way by JSON, by addresses and by HTML.
PLANTED: dict[str, str] = {
    "key of the environment": "planted-environment-0123456789",
    "argument api_key": "planted-argument-0123456789",
    "header X-Api-Key": "planted-header-0123456789",
    "bearer": "planted-bearer-0123456789",
    "header of any name": 'planted/gate+"0123456789',
    "header from {env}": "planted-from-a-variable-01234",
    "cookie": "planted-cookie-0123456789",
    "basic user": "planted-basic-user-0123456789",
    "basic password": "planted-basic-password-01234",
    "user of the address": "planted-user-0123456789",
    "password of the address": "planted-password-0123456789",
    "query": "planted-query-0123456789",
    "body": "planted-body-0123456789",
    "nested in the body": "planted-nested-0123456789",
    "body from {env}": "planted-body-variable-0123456789",
    "extra_headers of parameters": "planted-extra-0123456789",
    "headers in the body": "planted-default-0123456789",
    "password of a proxy in the body": "planted-proxy-0123456789",
    "aws_secret_access_key": "planted/Aws+Secret/0123456789",
    "aws_session_token": "planted-session-0123456789==",
    "key file": _PEM,
    "key file as JSON": "planted-json-0123456789",
    "client_secret": "plänted-client-0123456789",
    "factor": "planted-factor-0123456789",
}
# What travels in a header comes back in every answer that confesses; the rest is in the body.
SETTINGS = """
[models.settings]
name = "openai/s"
api_base = "{url}"
api_key_env = "PLANTED_MODEL"
price = [1, 1]
max_retries = 0
[models.settings.headers]
X-Corp-Gate = {{ env = "PLANTED_ROUTE" }}
[models.settings.extra_body]
routing = {{ env = "PLANTED_LANE" }}
"""


def models(url: str, folder: Path) -> dict[str, tp.Model]:
    """One model a place, or a few that fit together."""
    host = url.removeprefix("http://")
    common: dict[str, Any] = {"price": (1, 1), "max_retries": 0, "timeout": 5.0}
    key: dict[str, Any] = {**common, "api_base": url, "api_key": "none"}
    login = f"{PLANTED['basic user']}:{PLANTED['basic password']}"
    service = json.dumps({"type": "service_account", "private_key": PLANTED["key file as JSON"]})
    (folder / "toolparse.toml").write_text(SETTINGS.format(url=url), "utf-8")
    return {
        "environment": tp.Model("openai/a", api_base=url, **common),
        "argument": tp.Model(
            "openai/b", api_base=url, api_key=PLANTED["argument api_key"], **common
        ),
        "headers": tp.Model(
            "openai/c",
            headers={
                "X-Api-Key": PLANTED["header X-Api-Key"],
                "Authorization": f"Bearer {PLANTED['bearer']}",
                "X-Corp-Gate": PLANTED["header of any name"],
                "Cookie": f"lang=en; session={PLANTED['cookie']}",
                "User-Agent": "shown-agent",
            },
            **key,
        ),
        "basic": tp.Model(
            "openai/c",
            headers={"Authorization": "Basic " + base64.b64encode(login.encode()).decode()},
            **key,
        ),
        "address": tp.Model(
            "openai/d",
            **{
                **key,
                "api_base": f"http://{PLANTED['user of the address']}:"
                f"{PLANTED['password of the address']}@{host}",
            },
        ),
        "query": tp.Model(
            "openai/e", **{**key, "api_base": f"{url}?version=1&key={PLANTED['query']}"}
        ),
        "body": tp.Model(
            "openai/f",
            extra_body={
                "api_key": PLANTED["body"],
                "auth": {"token": PLANTED["nested in the body"]},
                "upstream": {
                    "default_headers": {"X-Team": PLANTED["headers in the body"]},
                    "proxy": f"http://me:{PLANTED['password of a proxy in the body']}@proxy:3128",
                    "aws_secret_access_key": PLANTED["aws_secret_access_key"],
                    "aws_session_token": PLANTED["aws_session_token"],
                    "private_key": PLANTED["key file"],
                    "vertex_credentials": service,
                    "client_secret": PLANTED["client_secret"],
                },
            },
            **key,
        ),
        "params": tp.Model(
            "openai/g",
            params={"extra_headers": {"X-Tenant": PLANTED["extra_headers of parameters"]}},
            **key,
        ),
        "settings": load_settings(folder / "toolparse.toml", trust=True).model("settings"),
    }


@pytest.fixture
def said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> pytest.LogCaptureFixture:
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED["key of the environment"])
    monkeypatch.setenv("PLANTED_MODEL", "none-of-the-settings")
    monkeypatch.setenv("PLANTED_ROUTE", PLANTED["header from {env}"])
    monkeypatch.setenv("PLANTED_LANE", PLANTED["body from {env}"])
    caplog.set_level(logging.DEBUG)
    return caplog


def stored(folder: Path) -> Iterator[tuple[str, str]]:
    """Everything on disk, also what is packed in there; not what the user wrote."""
    for file in folder.rglob("*"):
        if file.is_file() and file.name != "toolparse.toml":
            yield file.name, file.read_bytes().decode("latin-1")
    for file in folder.rglob("*.db"):
        with contextlib.closing(sqlite3.connect(file)) as connection:
            yield from tables_of(connection)


def tables_of(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Every cell that is packed, unpacked."""
    named = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
    for (table,) in named:
        for row in connection.execute(f"select * from {table}"):
            for value in row:
                if isinstance(value, bytes):
                    with contextlib.suppress(zlib.error):
                        yield table, zlib.decompress(value).decode("utf-8", "surrogatepass")


def forms(secret: str) -> Iterator[str]:
    """How a secret may stand somewhere; written without the code that removes it."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(json.dumps(secret))[3:-3]
    yield repr(secret)[1:-1]
    yield html.escape(secret)
    yield quote(secret, safe="")
    yield secret.encode().decode("latin-1")
    yield base64.b64encode(secret.encode()).decode()
    yield base64.urlsafe_b64encode(secret.encode()).decode()
    yield secret.encode().hex()
    if "\n" in secret:
        yield from (line for line in secret.split("\n") if "-----" not in line)


def found(where: str, text: str) -> list[str]:
    """The secrets in a text, each with what stands around it."""
    login = f"{PLANTED['user of the address']}:{PLANTED['password of the address']}"
    return [
        f"{name} in {where}: …{text[max(0, text.index(form) - 60) :][:160]}"
        for name, secret in {**PLANTED, "login": login}.items()
        for form in dict.fromkeys(forms(secret))
        if form in text
    ]


def chain(e: BaseException) -> Iterator[BaseException]:
    """An exception and everything behind it, whether Python would show it or not."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [e]
    while waiting:
        here = waiting.pop()
        if here is not None and id(here) not in seen:
            seen.add(id(here))
            yield here
            waiting += [here.__cause__, here.__context__]


def shown(value: Any) -> str:
    """Everything that Python, a notebook and a pickle make of a value."""
    out = [repr(value), str(value), ascii(value), f"{value!r:>10}"]
    methods = [m for m in ("_repr_html_", "_repr_markdown_") if hasattr(value, m)]
    out += [str(getattr(value, method)()) for method in methods]
    with contextlib.suppress(TypeError, AttributeError, pickle.PicklingError, StoreError):
        out.append(pickle.dumps(value).decode("latin-1"))
    return "\n".join(out)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.exhaustive(2)
def test_a_planted_key_is_found_nowhere(
    tmp_path: Path, said: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], stream: bool
) -> None:
    left: list[tuple[str, str]] = []
    cases = [
        {"id": f"c{n}", "input": o + ANSWER, "tools": [TOOL], "target": []}
        for n, o in enumerate(ORDERS)
    ]
    with MockOpenAI() as mock, tp.Lab(str(tmp_path / "runs.db")) as lab:
        named = models(mock.url, tmp_path)
        plan = lab.plan(
            cases,
            named,
            ["hermes"],
            few_shot=0,
            stream=stream,
            extra_body={"api_token": PLANTED["factor"]},
        )
        events: list[Any] = []
        run = lab.run(plan, progress=True, on_event=events.append)
        assert len(mock.bodies) == len(cases) * len(named)
        assert unsent(mock) == []
        trials = list(run.trials())
        frames = {"trials": run.frame(), "calls": run.calls_df(), "events": run.events_df()}
        report = run.report(baseline=None)
        for name in ("report.html", "report.md"):
            report.save(str(tmp_path / name))
        for name, frame in frames.items():
            left.append((name, frame.to_json(default_handler=str) + frame.to_html()))
            frame.to_parquet(tmp_path / f"{name}.parquet")
            frame.to_csv(tmp_path / f"{name}.csv")
        reopened = lab.open(run.run_id).plan
        for name, value in {
            "events": events,
            "run": run,
            "summary": run.summary,
            "lab": lab,
            "runs": lab.runs(),
            "plan": plan,
            "models of the plan": plan.models,
            "models": list(named.values()),
            "models of the store": reopened.models,
            "settings": load_settings(tmp_path / "toolparse.toml", trust=True),
            "trials": trials,
            "completions": [t.completion for t in trials],
            "requests": list(plan.requests.values()),
            "report": report,
        }.items():
            left.append((name, shown(value)))
        left.append(
            ("requests of trials", "".join(json.dumps(t.request, default=str) for t in trials))
        )
        export_recording(lab.store, tmp_path / "recording.jsonl", run_id=run.run_id)
        for alias in named:
            for order in ("status=401 confess ", "status=429 confess=quoted after=900 "):
                with pytest.raises(ProviderError) as e:
                    lab.ask(order + "say=hi", [TOOL], model=named[alias])
                left.append(("traceback", "".join(traceback.format_exception(e.value))))
                left += [("exception", shown(error)) for error in chain(e.value)]
        # While it is open, what was written last is in the WAL.
        left += list(stored(tmp_path))
    left += list(stored(tmp_path))
    printed = capsys.readouterr()
    left += [("stdout", printed.out), ("stderr", printed.err), ("log", said.text)]
    left += [("log record", shown(record.__dict__)) for record in said.records]
    assert [line for where, text in left for line in found(where, text)] == []
    everything = "".join(text for _, text in left)
    assert "[redacted]" in everything
    assert "shown-agent" in everything


def unsent(mock: MockOpenAI) -> list[str]:
    """The planted secrets that never reached the server: a test of them would test nothing."""
    sent = json.dumps([mock.headers, mock.bodies, mock.paths])
    logins = [
        f"{PLANTED['basic user']}:{PLANTED['basic password']}",
        f"{PLANTED['user of the address']}:{PLANTED['password of the address']}",
    ]
    for login in logins:
        if base64.b64encode(login.encode()).decode() in sent:
            sent += login
    return [name for name, key in PLANTED.items() if not any(f in sent for f in forms(key))]


FORMS: dict[str, Any] = {
    "as it is": str,
    "in JSON": json.dumps,
    "in JSON in JSON": lambda s: json.dumps(json.dumps(s)),
    "in JSON as it is written": lambda s: json.dumps(s, ensure_ascii=False),
    "with its slashes escaped": lambda s: json.dumps(s).replace("/", "\\/"),
    "as Python writes it": repr,
    "in HTML": html.escape,
    "in an address": lambda s: f"https://host/v1?x={quote(s, safe='')}&y=1",
    "in a path": quote,
    "in base64": lambda s: base64.b64encode(s.encode()).decode(),
    "in base64 behind a user": lambda s: base64.b64encode(b"u:" + s.encode()).decode(),
    "in base64 behind another user": lambda s: base64.b64encode(b"me:" + s.encode()).decode(),
    "in base64 before a word": lambda s: base64.b64encode(s.encode() + b":x").decode(),
    "in base64 for addresses": lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
    "in hexadecimal digits": lambda s: s.encode().hex(),
}


@asked_of("form", FORMS)
@pytest.mark.parametrize("secret", PLANTED.values(), ids=PLANTED)
def test_a_secret_is_removed_in_every_form(form: str, secret: str) -> None:
    written = f"before {FORMS[form](secret)} behind"
    for clean in (
        redact_exact(written, [secret]),
        redact(written, [secret]),
        redact_strings({written: [written]}, [secret]),
    ):
        assert [f for f in forms(secret) if f in str(clean)] == []
        assert "before" in str(clean)
        assert "behind" in str(clean)


@every_case
def test_the_shape_of_a_credential_is_enough_for_a_message(text: str) -> None:
    assert "0123456789" not in redact(text)
    assert "[redacted]" in redact(text)


@pytest.mark.parametrize(
    ("headers", "shown_names"),
    [
        ({"X-Anything": "v" * 9, "User-Agent": "me", "Accept": "*/*"}, {"User-Agent", "Accept"}),
        ({"anthropic-beta": "tools", "X-Title": "t", "Route": 7}, {"anthropic-beta", "X-Title"}),
        ([["X-Anything", "v" * 9], ["User-Agent", "me"]], {"User-Agent"}),
        ([{"name": "X-A", "value": "v"}, {"name": "User-Agent", "value": "m"}], {"User-Agent"}),
    ],
)
@pytest.mark.parametrize("name", ["headers", "extra_headers", "default_headers", "Request-Headers"])
def test_of_headers_only_those_of_a_list_are_shown(
    name: str, headers: Any, shown_names: set[str]
) -> None:
    (clean,) = redact_named({name: headers}).values()
    pairs = (
        clean.items()
        if isinstance(clean, dict)
        else [(h["name"], h["value"]) if isinstance(h, dict) else h for h in clean]
    )
    assert {name for name, value in pairs if value != "[redacted]"} == shown_names


def test_names_of_parameters_in_a_schema_say_nothing() -> None:
    schema = object_schema(password="string", headers=object_schema(token="integer"))
    assert redact_named({"response_format": {"schema": schema}}) == {
        "response_format": {"schema": schema}
    }
    assert secrets_in({"schema": schema}) == []


def test_two_headers_that_are_hidden_are_two_questions() -> None:
    asked = {
        Request(tp.Model("openai/m", headers={"X-Route": route}), "m", ()).key
        for route in ("route-a", "route-b")
    }
    assert len(asked) == 2


def test_a_header_that_says_the_name_of_the_model_hides_no_name() -> None:
    model = tp.Model("openai/llama-3.1-8b", headers={"X-Model": "llama-3.1-8b", "X-A": "my-alias"})
    request = Request(model, "my-alias", ({"role": "user", "content": "hi"},))
    assert request.to_dict()["model"]["name"] == "openai/llama-3.1-8b"
    assert request.to_dict()["model_alias"] == "my-alias"


def test_a_pickle_has_no_credentials_and_the_same_key() -> None:
    model = tp.Model("openai/m", headers={"X-Gate": "planted-gate"}, api_key="planted-key")
    request = Request(model, "m", (), {"extra_headers": {"X-Gate": "planted-extra"}})
    packed = pickle.dumps([model, request])
    assert b"planted" not in packed
    assert pickle.loads(packed)[1].key == request.key
    # A copy within a process is the model itself.
    assert copy.deepcopy(model).api_key == copy.copy(model).api_key == "planted-key"


def test_a_secret_text_is_sent_and_not_shown() -> None:
    text = SecretText("planted")
    assert json.dumps({"a": text}) == '{"a": "planted"}'
    assert repr({"a": text}) == "{'a': '[redacted]'}"
    assert b"planted" not in pickle.dumps(text)
    assert str(copy.deepcopy([text])[0]) == "planted"


def test_an_error_about_a_value_of_the_environment_does_not_say_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_LANE", "planted-0123456789")
    for member in ("timeout", "headers", "params", "price", "max_connections"):
        file = tmp_path / f"{member}.toml"
        file.write_text(
            f'[models.m]\nname = "openai/m"\n{member} = {{ env = "PLANTED_LANE" }}\n', "utf-8"
        )
        with pytest.raises(BadSettings) as e:
            load_settings(file, trust=True).model("m")
        assert [error for error in chain(e.value) if "planted" in shown(error)] == []


class Headers:
    """An object that shows nothing and holds everything, as those of clients do."""

    def __init__(self) -> None:
        self.items = {"X-Any": "planted-0123456789"}

    def __repr__(self) -> str:
        return "Headers()"


class HttpError(Exception):
    """An error that holds its request."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.request = Headers()


def test_a_log_record_is_clean_in_every_part() -> None:
    guard_logs(["planted-0123456789"])
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(message)s %(extra)s", defaults={"extra": ""}))
    logger = logging.getLogger("botocore.endpoint")
    logger.addHandler(handler)
    records: list[logging.LogRecord] = []

    def keep(record: logging.LogRecord) -> bool:
        records.append(record)
        return True

    handler.addFilter(keep)
    try:
        logger.error("key %s", "planted-0123456789")
        logger.error("%s %s", "planted-0123456789")  # too few arguments
        logger.error("extra", extra={"extra": {"headers": {"X-Any": "planted-0123456789"}}})
        logger.error("sent %s with %d", Headers(), 7)
        logger.error("extra", extra={"extra": Headers()})
        try:
            raise HttpError("status 500")
        except HttpError as e:
            logger.exception("failed with %s", e)
        try:
            raise ValueError("planted-0123456789")
        except ValueError:
            logger.exception("failed", stack_info=True)
    finally:
        logger.removeHandler(handler)
    assert "planted" not in out.getvalue()
    assert "planted" not in shown([vars(record) for record in records])
    assert "ValueError" in out.getvalue()
    assert "sent Headers() with 7" in out.getvalue()


def test_an_address_of_the_environment_gives_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:planted-0123@host/db")
    monkeypatch.setenv("PGPASSWORD", "planted-9876")
    assert redact_exact("planted-0123 planted-9876 host") == "[redacted] [redacted] host"
