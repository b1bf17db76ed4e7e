"""The page with the runs of the store: found by status, node, error and time, each with a link."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from nicegui import ui

from graphagent.checkpoint.finding import STATUSES, RunInfo, RunQuery
from graphagent.errors import GraphAgentError
from runner.studio.model import Place
from runner.studio.start import start_buttons
from runner.studio.theme import button, page_shell

if TYPE_CHECKING:
    from runner.studio.app import Studio

_PAGE, _EVERY = 50, 2.0
_SINCE = {"": None, "1h": 3600.0, "24h": 86400.0, "7d": 604800.0, "30d": 2592000.0}
_COLUMNS = [
    {"name": name, "label": label, "field": name, "align": "left"}
    for name, label in (
        ("lineage", "Run"),
        ("status", "Status"),
        ("graph", "Graph"),
        ("step", "Step"),
        ("what", "Last nodes, what failed, or what it waits for"),
        ("updated", "Written"),
    )
]
_CELLS = {
    "lineage": '<q-td :props="props"><a :href="props.row.link">{{ props.value }}</a></q-td>',
    "status": '<q-td :props="props"><span class="sg-chip" :data-status="props.value">{{ props.value }}</span></q-td>',
    "what": '<q-td :props="props" class="sg-what"><span :title="props.value">{{ props.value }}</span></q-td>',
}


class RunsPage:
    """What is asked for, and what was found. The query of the page's address has the same, so that it can be linked."""

    def __init__(self, studio: Studio, asked: dict[str, str]) -> None:
        self._studio, self._asked = studio, {name: value for name, value in asked.items() if value}
        self._found: list[RunInfo] = []
        self._pages = 1

    async def build(self) -> None:
        """The elements of the page."""
        with page_shell(self._studio, "Runs"):
            with (
                ui.element("form")
                .classes("sg-filters")
                .props('role=search aria-label="Find runs"')
                .on("submit.prevent", lambda: None)
            ):
                self._field("text", "Name has")
                self._choice("status", "Status", ["", *STATUSES])
                self._field("node", "Node has run")
                self._field("error", "Error has")
                self._choice("since", "Written within", [*_SINCE])
            if not self._studio.why_read_only:
                start_buttons(self._studio)
            self._problem = ui.label().classes("sg-banner").props("role=alert")
            self._table = (
                ui.table(columns=_COLUMNS, rows=[], row_key="key")
                .props("flat dense hide-pagination")
                .classes("sg-runs")
            )
            self._table.props('aria-label="Runs" :rows-per-page-options="[0]" no-data-label="No run fits"')
            for name, cell in _CELLS.items():
                self._table.add_slot(f"body-cell-{name}", cell)
            self._more = button("More runs", None, "Show more runs").on_click(self._show_more).classes("sg-more")
        await self.refresh()
        ui.timer(_EVERY, self.refresh, immediate=False)

    async def refresh(self) -> None:
        """Ask the store again."""
        try:
            self._found = await self._studio.find(self._query())
        except GraphAgentError as error:
            self._problem.text = str(error)
            self._problem.visible = True
            return
        self._problem.visible = False
        rows = [_row(info) for info in self._found]
        if rows != self._table.rows:
            self._table.rows = rows
        self._more.visible = len(self._found) == self._pages * _PAGE

    def _query(self) -> RunQuery:
        asked = self._asked
        ago = _SINCE.get(asked.get("since", ""))
        status = frozenset({asked["status"]}) if asked.get("status") else frozenset()
        query = RunQuery(text=asked.get("text", ""), node=asked.get("node"), error=asked.get("error"), status=status)  # type: ignore[arg-type]
        return replace(query, since=None if ago is None else time.time() - ago, limit=self._pages * _PAGE)

    def _field(self, name: str, label: str) -> None:
        field = ui.input(label, value=self._asked.get(name, "")).props("outlined dense clearable debounce=250")
        field.on_value_change(lambda event: self._ask(name, event.value))

    def _choice(self, name: str, label: str, choices: list[str]) -> None:
        shown = {choice: choice or "any" for choice in choices}
        value = self._asked.get(name, "")
        field = ui.select(shown, label=label, value=value if value in shown else "").props("outlined dense")
        field.on_value_change(lambda event: self._ask(name, event.value))

    async def _ask(self, name: str, value: Any) -> None:
        self._asked = {key: text for key, text in {**self._asked, name: value or ""}.items() if text}
        self._pages = 1
        query = urlencode(self._asked)
        ui.run_javascript(f"history.replaceState(null, '', {('/?' + query if query else '/')!r})")
        await self.refresh()

    async def _show_more(self) -> None:
        self._pages += 1
        await self.refresh()


def register(studio: Studio) -> None:
    """Make the page."""

    @ui.page("/")
    async def runs(text: str = "", status: str = "", node: str = "", error: str = "", since: str = "") -> None:
        await RunsPage(studio, {"text": text, "status": status, "node": node, "error": error, "since": since}).build()


def _row(info: RunInfo) -> dict[str, Any]:
    what = f"waits for {', '.join(info.waits)}" if info.waits else info.error or ", ".join(info.nodes)
    if info.holder:
        what = f"{info.holder}: {what}"
    return {
        "key": f"{info.lineage}:{info.namespace}",
        "lineage": info.lineage + (f" ({info.namespace})" if info.namespace else ""),
        "link": Place(info.lineage, info.namespace).link,
        "status": info.status,
        "graph": info.graph or "",
        "step": info.step,
        "what": what,
        "updated": datetime.fromtimestamp(info.updated).astimezone().isoformat(" ", "seconds")[:19],
    }
