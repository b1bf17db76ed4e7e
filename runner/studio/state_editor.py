"""The editor of a value of a stored state: JSON, checked before it is written, here or in a fork."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import ui

from graphagent.debug.moment import Moment
from graphagent.engine.outcome import checked_overlay
from graphagent.errors import GraphAgentError
from graphagent.ids import fresh_id
from runner.studio.forking import forked
from runner.studio.forms import read_json
from runner.studio.model import Place, StudioRun
from runner.studio.tree import Path, replaced

_ROWS = 14


class Editor:
    """Edits a part of a field at a moment. `whole`: the field's value as plain data; `closed`: called at the end."""

    def __init__(
        self,
        run: StudioRun,
        moment: Moment,
        whole: Any,
        path: Path,
        value: Any,
        closed: Callable[[], Awaitable[None]],
    ) -> None:
        self._run, self._moment, self._whole, self._path = run, moment, whole, path
        self._text = json.dumps(value, ensure_ascii=False, indent=2)
        self._closed = closed

    def build(self) -> None:
        """The elements; the text has the focus."""
        run = self._run
        name = ".".join(map(str, self._path))
        with ui.element("div").classes("sg-editor").props(f"role=group aria-label={json.dumps(f'Edit {name}')}") as box:
            self._box = box
            lines = min(self._text.count("\n") + 1, _ROWS)
            self._value = ui.textarea("Value, as JSON", value=self._text).props("outlined dense autofocus autogrow")
            self._value.props(f"rows={lines}").classes("sg-mono")
            self._value.on("keydown.ctrl.enter", self._write_here).on("keydown.escape", self._cancel)
            self._problem = ui.label().classes("sg-banner").props("role=alert")
            self._problem.visible = False
            with ui.element("div").classes("sg-visits"):
                here = ui.button("Write here", on_click=self._write_here, color=None).props("no-caps flat dense")
                here.classes("sg-primary").tooltip("A new checkpoint behind this one; the run goes on from it")
                fork = ui.button("Write to a fork", on_click=self._fork, color=None).props("no-caps flat dense")
                fork.classes("sg-button").tooltip("A new run that goes on from here; this one stays as it is")
                ui.button("Cancel", on_click=self._cancel, color=None).props("no-caps flat dense").classes("sg-button")
            self._name = ui.input("Name of the fork", value=f"{run.lineage}-{fresh_id()[:6]}").props("outlined dense")
            self._where = ui.label().classes("sg-muted")

    def focus(self) -> None:
        """Go to the text."""
        self._value.run_method("focus")

    def run_changed(self) -> None:
        """The cursor may have moved on meanwhile."""
        moved = self._run.moment.id != self._moment.id
        self._where.text = f"this edits checkpoint {self._moment.id}; the cursor has moved on" if moved else ""

    async def _write_here(self) -> None:
        patch = self._patch()
        if patch is None:
            return
        run = self._run
        if run.moment.id != self._moment.id and not await run.goto(self._moment.id):
            return
        if await run.do("edit", patch):
            run.say(f"'{self._path[0]}' is edited: checkpoint {run.moment.id}", "positive")
            await self._close()

    async def _fork(self) -> None:
        patch, run, name = self._patch(), self._run, str(self._name.value or "").strip()
        if patch is None:
            return
        if not name:
            self._say("give the fork a name")
            return
        if refused := run.refusal("fork"):
            self._say(refused)
            return
        assert run.session is not None
        try:
            place = await forked(run.session.driver, self._moment.id, name, patch)
        except GraphAgentError as error:
            self._say(str(error))
            return
        ui.navigate.to(Place(name, run.namespace, place).link)

    async def _cancel(self) -> None:
        await self._close()

    async def _close(self) -> None:
        self._box.delete()
        await self._closed()

    def _patch(self) -> dict[str, Any] | None:
        """The edit as the session takes it; None, with the reason shown, for what doesn't fit."""
        self._problem.visible = False
        name = str(self._path[0])
        try:
            new = replaced(self._whole, self._path[1:], read_json(self._value.value or ""))
            graph = self._run.graph_of(self._moment.namespace)
            if graph is not None:
                checked_overlay(graph.schema, "the edit", name, new)
        except (GraphAgentError, ValueError) as error:
            self._say(str(error))
            return None
        return {name: new}

    def _say(self, text: str) -> None:
        self._problem.text, self._problem.visible = text, True
