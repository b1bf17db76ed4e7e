"""The page of a run: timeline, graph and details side by side, or one below tabs where the window is narrow."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from nicegui import ui

from graphagent.errors import GraphAgentError
from runner.studio import controls, graph_panel
from runner.studio.follow import Follower
from runner.studio.model import Place, StudioRun
from runner.studio.theme import page_shell

if TYPE_CHECKING:
    from runner.studio.app import Studio

DETAILS = (
    ("state", "State", "state_panel"),
    ("node", "Node", "node_panel"),
    ("questions", "Questions", "questions_panel"),
    ("model", "Model", "model_panel"),
    ("effects", "Effects", "effects_panel"),
)
_COLUMNS = (("timeline", "Timeline"), ("graph", "Graph"), ("details", "Details"))


class RunPage:
    """The frame around the panels of a run."""

    def __init__(self, run: StudioRun) -> None:
        self._run = run

    async def build(self) -> None:
        """All elements of the page."""
        self._head()
        controls.panel(self._run)
        with ui.element("div").classes("sg-columns").props('role=tablist aria-label="Parts of the page"'):
            for name, label in _COLUMNS:
                chosen = "true" if name == "graph" else "false"
                made = ui.element("button").props(f"type=button role=tab data-column={name} aria-selected={chosen}")
                made.on("click", js_handler=f"() => window.sgColumn('{name}')")
                with made:
                    ui.label(label)
        with ui.element("div").classes("sg-grid").props("data-column=graph"):
            with ui.element("section").classes("sg-panel sg-timeline").props("aria-label=Timeline"):
                await _panel("timeline_panel", self._run)
            with ui.element("section").classes("sg-panel sg-graph").props("aria-label=Graph"):
                graph_panel.panel(self._run)
            with ui.element("section").classes("sg-panel sg-details").props("aria-label=Details"):
                await self._details()
        self._run.on_change(self._say_place, "moment", "selected")

    def _head(self) -> None:
        with ui.element("div").classes("sg-head"):
            self._status = ui.label().classes("sg-chip").props("role=status")
            self._about = ui.label().classes("sg-muted")
            ui.element("div").classes("sg-space")
            ui.link("Compare", f"/compare?{urlencode({'a': self._run.lineage})}")
        self._note = ui.label().classes("sg-banner").props("role=note")
        self._run.on_change(self._show_head, "info", "rows")
        self._show_head()

    def _show_head(self) -> None:
        run, info = self._run, self._run.info
        status = info.status if info is not None else "unfinished"
        self._status.text = status
        self._status.props(f"data-status={status}")
        told = [f"graph {info.graph}" if info and info.graph else "", f"{run.rows.count} checkpoints"]
        told += [f"run by {info.holder}"] if info and info.holder else []
        told += [info.error] if info and info.error else []
        self._about.text = ", ".join(part for part in told if part)
        own = None if run.studio.why_read_only else run.why_read_only
        self._note.text = f"Read-only: {own}" if own else ""
        self._note.visible = bool(own)

    async def _details(self) -> None:
        with ui.tabs().props('dense no-caps align=left outside-arrows mobile-arrows aria-label="Details"') as tabs:
            for name, label, _ in DETAILS:
                ui.tab(name, label)
        first = "questions" if self._run.moment.waits else "node" if self._run.selected else "state"
        with ui.tab_panels(tabs, value=first, animated=False, keep_alive=True):
            for name, _, module in DETAILS:
                with ui.tab_panel(name):
                    await _panel(module, self._run)

        def show_node() -> None:
            if self._run.selected is not None:
                tabs.set_value("node")

        self._run.on_change(show_node, "selected")

    def _say_place(self) -> None:
        ui.run_javascript(f"history.replaceState(null, '', {json.dumps(self._run.place.link)})")


async def _panel(module: str, run: StudioRun) -> None:
    """A panel by the name of its module."""
    made: Any = importlib.import_module(f"runner.studio.{module}").panel(run)
    if made is not None:
        await made


def register(studio: Studio) -> None:
    """Make the page."""

    @ui.page("/run/{lineage:path}")
    async def run_page(lineage: str, ns: str = "", cp: str | None = None, node: str | None = None) -> None:
        client = ui.context.client
        try:
            run = await studio.run(Place(lineage, ns, cp, node), client.id)
        except GraphAgentError as error:
            with page_shell(studio, lineage, lineage):
                ui.label(str(error)).classes("sg-banner").props("role=alert")
            return

        def say(text: str, kind: str) -> None:
            with client:
                ui.notify(text, type=kind, multi_line=True, close_button="Close", position="bottom")  # type: ignore[arg-type]

        run.on_message(say)
        run.within = client
        with page_shell(studio, lineage, lineage):
            await RunPage(run).build()
        Follower(run)
        client.on_disconnect(run.leave)
        client.on_connect(run.come_back)
        client.on_delete(run.leave)
