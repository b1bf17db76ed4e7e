"""The pages: the talks of a user, and one talk."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI
from nicegui import ui
from starlette.requests import HTTPConnection

from graphagent.checkpoint.record import Question
from graphagent.engine.questions import take_answers
from graphagent.engine.result import Interrupt
from graphagent.errors import AnswerError, GraphAgentError
from graphagent.ids import fresh_id
from graphagent.unset import UNSET
from runner.servers.access import Identity
from runner.servers.app import ServerContext
from runner.servers.ui.talk import Line, Shown, Talk, Talks
from runner.studio.form_view import FormView
from runner.studio.forms import FormError
from runner.studio.questions_panel import prompt_lines
from runner.studio.theme import button, shared_head

Identify = Callable[[ServerContext, HTTPConnection], Awaitable[Identity | None]]
_MOST_TALKS, _ID = 50, 200
_app: list[FastAPI] = []


def make_pages(context: ServerContext, identify: Identify) -> FastAPI:
    """The app of the pages. NiceGUI has one app a process."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    talks = Talks(context)

    @ui.page("/ui")
    async def home() -> None:
        user = await _who(context, identify)
        if user is not None:
            await _home(context, user)

    @ui.page("/ui/talk/{session:path}")
    async def talk(session: str) -> None:
        user = await _who(context, identify)
        if user is not None and 0 < len(session) <= _ID and session.isprintable():
            await TalkPage(context, talks.of(user.user_id, session)).build()
        elif user is not None:
            ui.label("That is no name of a talk.").props("role=alert")

    ui.run_with(
        app,
        title=context.agent_name,
        dark=None,
        language="en-US",
        tailwind=False,
        binding_refresh_interval=None,
        show_welcome_message=False,
        reconnect_timeout=5.0,
    )
    own = resources.files("runner.servers.ui").joinpath("static", "chat.css").read_text(encoding="utf-8")
    ui.add_head_html(f"{shared_head()}<style>{own}</style>", shared=True)
    _app[:] = [app]
    return app


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """NiceGUI's own work, while the block lasts."""
    app = _app[0]
    async with app.router.lifespan_context(app):
        yield


async def _who(context: ServerContext, identify: Identify) -> Identity | None:
    """Who looks; the page says what is needed if it is nobody that may."""
    request: Any = ui.context.client.request
    user = await identify(context, request)
    if user is None:
        ui.label("This server wants its token: open /ui/enter?token=... with it.").props("role=alert")
    return user


def _top(context: ServerContext, *trail: str) -> None:
    ui.page_title(" - ".join([*trail, context.agent_name]))
    ui.query(".nicegui-content").classes("sg-page")
    with ui.element("header").classes("sg-top"):
        ui.link(context.agent_name, "/ui").classes("sg-home")
        for part in trail:
            ui.label("/").classes("sg-muted").props("aria-hidden=true")
            ui.label(part).classes("sg-trail")
        ui.element("div").classes("sg-space")
        button("Theme", "contrast", "Switch between light and dark").on(
            "click", js_handler="() => window.graphagentTheme()"
        )


async def _home(context: ServerContext, user: Identity) -> None:
    """The talks of a user, the last first."""
    _top(context)
    runner = context.runner
    with ui.element("main").classes("sg-main chat-home"):
        ui.link("New talk", f"/ui/talk/{fresh_id()}").classes("chat-new")
        sessions = await runner.sessions.list(runner.app_name, user.user_id, limit=_MOST_TALKS)
        if not sessions:
            ui.label("Nothing was said yet.").classes("sg-empty")
        with ui.element("ul").props('aria-label="Talks, the last first"'):
            for one in sessions:
                with ui.element("li"):
                    ui.link(one.id, f"/ui/talk/{quote(one.id, safe='')}")


class TalkPage:
    """One talk: what was said, the questions, the steps of the graph, the files, and a field to say something."""

    def __init__(self, context: ServerContext, talk: Talk) -> None:
        self._context, self._talk = context, talk
        self._views: dict[str, FormView] = {}
        self._asked: tuple[str, ...] | None = None
        self._lines = 0

    async def build(self) -> None:
        """All elements, and what is told when the talk changes."""
        talk, client = self._talk, ui.context.client
        _top(self._context, talk.session_id)
        try:
            await talk.open()
        except GraphAgentError as error:
            ui.label(str(error)).classes("sg-banner").props("role=alert")
            return
        with ui.element("main").classes("sg-main chat-main"):
            with ui.element("section").classes("chat-talk").props("aria-label=Talk"):
                self._log = ui.element("div").classes("chat-log").props("role=log aria-live=polite tabindex=0")
                self._live = ui.element("div").classes("chat-live").props("aria-hidden=true")
                self._questions = ui.element("div").classes("chat-questions")
                self._status = ui.label().classes("sg-chip").props("role=status")
                with ui.element("form").classes("chat-say").on("submit.prevent", self._say):
                    self._text = ui.input("Message").props('outlined dense autocomplete=off aria-label="Message"')
                    button("Send", None, "Send").props("type=submit").classes("sg-primary")
                    self._stop = button("Stop", None, "Stop the run").on_click(self._talk.stop)
            with ui.element("aside").classes("chat-side").props("aria-label=Run"):
                with ui.element("h2"):
                    ui.label("Steps")
                self._steps = ui.element("ol").classes("chat-steps")
                with ui.element("h2"):
                    ui.label("Files")
                self._files = ui.element("ul").classes("chat-files")

        def changed() -> None:
            with client:
                self._show()

        talk.listen(changed)
        client.on_delete(lambda: talk.leave(changed))
        self._show()

    def _show(self) -> None:
        shown = self._talk.shown
        if len(shown.lines) < self._lines:
            self._log.clear()
            self._lines = 0
        with self._log:
            for line in shown.lines[self._lines :]:
                _line(line)
        grown, self._lines = len(shown.lines) > self._lines, len(shown.lines)
        self._live.clear()
        with self._live:
            for (who, _), text in shown.live.items():
                _line(Line("said", who, text))
        self._show_questions(shown)
        status = "running" if shown.busy else "interrupted" if shown.questions else shown.outcome
        self._status.text = {"interrupted": "waits for an answer"}.get(status, status)
        self._status.visible = bool(status)
        self._status.props(f"data-status={status}" if status else "", remove=None if status else "data-status")
        self._stop.set_visibility(shown.busy)
        self._show_side(shown)
        if grown or shown.live:
            ui.run_javascript(f"const log = document.getElementById('c{self._log.id}').parentElement;"
                              f"log.scrollTop = log.scrollHeight;")  # fmt: skip

    def _show_questions(self, shown: Shown) -> None:
        """The open questions, made anew only for others, so that what is entered stays."""
        asked = () if shown.busy else tuple(one.id for one in shown.questions)
        if asked == self._asked:
            return
        self._asked, self._views = asked, {}
        self._questions.clear()
        if not asked:
            return
        with self._questions:
            for one in shown.questions:
                with ui.element("section").classes("sg-question").props(f"aria-label={json.dumps(one.key)}"):
                    with ui.element("h3"):
                        ui.label(one.key)
                    for line in prompt_lines(one.prompt):
                        ui.label(line).classes("sg-prompt")
                    view = self._views[one.id] = FormView(one.schema)
                    view.build()
            button("Answer", None, "Answer").on_click(lambda: self._answer(shown.questions)).classes("sg-primary")

    def _show_side(self, shown: Shown) -> None:
        self._steps.clear()
        with self._steps:
            for step, nodes in shown.steps:
                with ui.element("li").props(f"value={step}"):
                    ui.label(nodes)
        self._files.clear()
        with self._files:
            for file in shown.files:
                with ui.element("li"):
                    ui.label(file.name)
                    for version in file.versions:
                        which = {"session": self._talk.session_id, "name": file.name, "version": version}
                        ui.link(f"version {version}", f"/ui/file?{urlencode(which)}")

    async def _say(self) -> None:
        text = (self._text.value or "").strip()
        if not text:
            return
        try:
            self._talk.say(text)
            self._text.value = ""
        except GraphAgentError as error:
            ui.notify(str(error), type="negative")

    def _answer(self, asked: tuple[Interrupt, ...]) -> None:
        """Answer all open questions at once; nothing is sent unless every answer fits."""
        values: dict[str, Any] = {}
        for one in asked:
            view = self._views[one.id]
            try:
                values[one.id] = view.value()
                question = Question(one.id, one.key, one.node, 0, 0, one.prompt, one.schema, one.kind)
                take_answers([question], {one.id: values[one.id]}, UNSET)
                view.show_problems({})
            except FormError as error:
                view.show_problems(error.problems)
                return
            except AnswerError as error:
                view.show_problems({(): str(error)})
                return
        self._talk.answer(values)


def _line(line: Line) -> None:
    marks = {"call": "calls", "result": "got", "error": "error", "note": "note"}
    with ui.element("div").classes(f"chat-line {line.kind}").props(f"data-who={json.dumps(line.who)}"):
        ui.label(line.who if line.kind == "said" else f"{line.who} {marks[line.kind]}").classes("chat-who sg-muted")
        ui.label(line.text).classes("chat-text")
