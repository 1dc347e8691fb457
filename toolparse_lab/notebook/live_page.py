"""The page of `toolparse open`: the notebook's views without a notebook, served on loopback."""

# How it works. The page is an empty frame that is there at once. Its script asks for the first
# screen, mounts the front end of the notebook's widgets on it, and carries messages between that
# and the same Python that answers a kernel's. Every tab has a
# view of its own; a tab that is loaded again finds the one that it had.

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
import socket
import webbrowser
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html import escape
from typing import Any
from urllib.parse import parse_qsl

from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

from ..core import hooks
from ..core.errors import BadOptions, UnknownName
from ..lab import Lab
from ..runner.progress import TOLD
from ..views.templating import style_sheet
from .bench import Workbench, workbench
from .browser import Browser
from .page import front, source
from .widget import NOT_OF_ITS_FORM, in_words

View = Browser | Workbench
_MOST_VIEWS = 16  # tabs whose views are kept; an older one is made anew when it is asked for
_MOST_MESSAGE = 64 * 2**20  # bytes; a text that is edited comes back whole
_POLICY = (
    "default-src 'none'; script-src 'self' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
_PAGE = """<!doctype html>
<html lang="en" data-theme="{theme}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>toolparse</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/front/style.css">
<body class="tpx page"><main id="view"><p class="empty" role="status">{reading}</p></main>
<script type="module" src="/front/live_page.js"></script>
</html>
"""
_FRONTS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "live_page.js": ("text/javascript", partial(source, "live_page.js")),
    "screens.js": ("text/javascript", front),
    "style.css": ("text/css", style_sheet),
}


class ViewGone(KeyError):
    """A tab asks for a view that is no longer kept."""


class OpenViews:
    """The views of the tabs that show one subject, the latest of each."""

    def __init__(self, subject: Mapping[str, Any]) -> None:
        """subject: as `serve_page` takes it."""
        self.subject = subject
        self.reading = "Reading …"
        self._lab: Lab | None = None
        self._views: OrderedDict[str, View] = OrderedDict()

    def first(self, view_id: str, run_id: str, place: str = "") -> dict[str, Any]:
        """Return what a tab begins with: the view that it had, else a new one of a run.

        run_id: '' for the subject's own. place: the query of its address, as it is to be shown.

        Raises ToolparseError for one that the store lacks.
        """
        if view_id not in self._views:
            view_id = secrets.token_urlsafe(8)
            self._views[view_id] = self._made(run_id or str(self.subject.get("run", "")))
            while len(self._views) > _MOST_VIEWS:
                self._views.popitem(last=False)
        view = self._views[view_id]
        self._views.move_to_end(view_id)
        self.reading = "Reading …"
        title = "Workbench"
        if isinstance(view, Browser):
            title = view.reply({"kind": "place", "place": dict(parse_qsl(place))})["title"]
        return {"view": view_id, "html": view.page(), "title": title}

    def answer(self, view_id: str, message: Any) -> Any:
        """Return the answer of a view to its front end. Raises ViewGone."""
        if view_id not in self._views:
            raise ViewGone
        return self._views[view_id].reply(message)

    def report(self, run_id: str) -> dict[str, Any]:
        """Return the page of a run's report, as the status of an answer has it.

        Raises ToolparseError for a run that the store lacks.
        """
        report = self._opened(run_id).report(policy=self.subject["policy"])
        page = hooks.call("figure_html", report, page=True, answers=f"/run/{run_id}")
        return {"page": page}

    def _heard(self, done: int, total: int | None) -> None:
        self.reading = f"Reading {done:,} of {total or done:,} answers …"

    def _opened(self, run_id: str) -> Any:
        TOLD.set(self._heard)
        # Left open: the notes of the view go into this store for as long as the page lives.
        self._lab = self._lab or Lab(self.subject["store"])
        return self._lab.open(run_id)

    def _made(self, run_id: str) -> View:
        subject = self.subject
        if "text" in subject:
            return workbench(
                subject["text"], subject["protocol"], subject["tools"], coerce=subject["policy"]
            )
        run = self._opened(run_id)
        if subject["trial"] is None:
            browser: Browser = run.browse(policy=subject["policy"])
            browser.report_at = f"/report/{run.run_id}"
            return browser
        trials = run.trials(protocol=subject["protocol"], policies=(subject["policy"],))
        if all(trial.trial_id != subject["trial"] for trial in trials):
            raise UnknownName("there is no such trial", got=subject["trial"], code="unknown-trial")
        return workbench(trials[subject["trial"]])


def serve_page(
    subject: Mapping[str, Any], *, port: int, theme: str, browser: bool, tell: Callable[[str], None]
) -> None:
    """Serve the live view of a subject until Ctrl-C, which is raised as KeyboardInterrupt.

    subject: "store", "run" and "trial" (or None) with "protocol" and "policy"; or "text", "tools",
    "protocol" and "policy". port: 0 for any free one. tell: gets the address once it answers.

    Raises BadOptions for a port that is taken.
    """
    listener = _listener(port)
    # The front end of a closed tab goes away in the middle of an answer, and that is no error.
    logging.getLogger("tornado").setLevel(logging.CRITICAL)
    asyncio.run(_serve(OpenViews(subject), listener, theme, browser, tell))


async def _serve(
    views: OpenViews,
    listener: socket.socket,
    theme: str,
    browser: bool,
    tell: Callable[[str], None],
) -> None:
    port, token = listener.getsockname()[1], secrets.token_urlsafe(24)
    # One thread: a store and a view are used by one at a time.
    with ThreadPoolExecutor(1) as worker:
        shared = {"views": views, "worker": worker, "theme": theme, "token": token, "port": port}
        pages = [
            (r"/first", _First, shared),
            (r"/answer", _Answer, shared),
            (r"/reading", _Reading, shared),
            (r"/report/([\w.-]+)", _Report, shared),
            (r"/front/([a-z_]+\.(?:js|css))", _Front, shared),
            (r"/(?:run/([\w.-]+))?", _Page, shared),
        ]
        server = HTTPServer(
            Application(pages, default_handler_class=_Nothing, default_handler_args=shared),
            max_body_size=_MOST_MESSAGE,
        )
        server.add_socket(listener)
        address = f"http://127.0.0.1:{port}/?token={token}"
        tell(address)
        if browser:
            webbrowser.open(address)
        try:
            await asyncio.Event().wait()
        finally:
            server.stop()
            await server.close_all_connections()


class _Handler(RequestHandler):
    """What is asked of all: this machine's address, and the token, which becomes a cookie."""

    def initialize(
        self, views: OpenViews, worker: ThreadPoolExecutor, theme: str, token: str, port: int
    ) -> None:
        self.views, self.worker, self.theme, self.token = views, worker, theme, token
        # Cookies do not know ports: two pages of one machine need two names.
        self.key = f"toolparse-{port}"
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    @property
    def chosen_theme(self) -> str:
        """The theme of the command, or the one that the page's button chose."""
        kept = self.get_cookie("toolparse-theme", "auto")
        return kept if self.theme == "auto" and kept in ("light", "dark") else self.theme

    def set_default_headers(self) -> None:
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Cache-Control", "no-store")
        self.clear_header("Server")

    def prepare(self) -> None:
        # A foreign site's name may lead here, and a foreign page may ask; neither has the token.
        given = self.get_cookie(self.key) or self.get_query_argument("token", "")
        if self.request.host not in self.hosts or not hmac.compare_digest(
            given.encode(), self.token.encode()
        ):
            self.set_status(403)
            self.finish("This page opens with the whole address that `toolparse open` printed.\n")

    async def ask(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Answer with what a function of the views returns, or its error in words."""
        loop = asyncio.get_running_loop()
        try:
            reply = await loop.run_in_executor(self.worker, function, *arguments)
            if "status" in reply:
                self.set_status(reply.pop("status"))
        except ViewGone:
            self.set_status(410)
            reply = {"error": "this view is gone: load the page again"}
        except Exception as e:
            status, words = in_words(e)
            self.set_status(status)
            reply = {"error": words}
        if "page" in reply:
            html = f'<html data-theme="{escape(self.chosen_theme)}"'
            page = str(reply["page"]).replace("<html", html, 1)
            self.finish(page.encode("utf-8", "backslashreplace"))
            return
        # Characters that are no text of Unicode alone stay escapes.
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(reply))


class _Page(_Handler):
    def get(self, run_id: str | None) -> None:
        if self.get_query_argument("token", None):
            self.set_cookie(self.key, self.token, httponly=True, samesite="Strict", path="/")
            # The token leaves the address, and with it the history.
            return self.redirect(self.request.path)
        subject = self.views.subject
        if run_id is None and (run := subject.get("run")) and subject.get("trial") is None:
            return self.redirect(f"/run/{run}")
        self.finish(_PAGE.format(theme=escape(self.chosen_theme), reading=self.views.reading))
        return None


class _Report(_Handler):
    async def get(self, run_id: str) -> None:
        if "store" not in self.views.subject:
            self.set_status(404)
            return
        await self.ask(self.views.report, run_id)


class _First(_Handler):
    async def get(self) -> None:
        names = ("view", "run", "place")
        await self.ask(self.views.first, *(self.get_query_argument(name, "") for name in names))


class _Reading(_Handler):
    def get(self) -> None:
        self.finish({"said": self.views.reading})


class _Answer(_Handler):
    async def post(self) -> None:
        try:
            asked = json.loads(self.request.body)
            view_id, message = str(asked["view"]), dict(asked["message"])
        except (ValueError, TypeError, KeyError, RecursionError):
            self.set_status(400)
            self.finish(json.dumps({"error": NOT_OF_ITS_FORM}))
            return
        await self.ask(self.views.answer, view_id, message)


class _Front(_Handler):
    def get(self, name: str) -> None:
        if name not in _FRONTS:
            self.set_status(404)
            return
        kind, text = _FRONTS[name]
        self.set_header("Content-Type", f"{kind}; charset=utf-8")
        self.finish(text())


class _Nothing(_Handler):
    def get(self) -> None:
        self.set_status(404)
        self.finish("There is nothing here.\n")


def _listener(port: int) -> socket.socket:
    """Return a listening socket of loopback. Raises BadOptions for a port that is taken."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setblocking(False)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as e:
        listener.close()
        raise BadOptions(
            "this port cannot be used",
            got=port,
            expected="a free one",
            hint=f"{e.strerror}; --port 0 takes any free one",
        ) from None
    return listener
