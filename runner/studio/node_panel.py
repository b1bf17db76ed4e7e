"""What there is to know of the selected node: its code, its visits, what it wrote, and a run of it alone."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from nicegui import ui
from pydantic_core import to_jsonable_python

from graphagent.agents.secrets_in import MASK
from graphagent.debug.moment import Moment
from graphagent.errors import GraphAgentError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef
from runner.sources import sources_of
from runner.studio.look import moment_at
from runner.studio.marking import way_to
from runner.studio.model import StudioRun
from runner.studio.theme import button

_VISITS, _LONGEST = 40, 400


class NodePanel:
    """The details of the node that is selected."""

    def __init__(self, run: StudioRun) -> None:
        self._run = run

    async def build(self) -> None:
        """The elements; they are made anew for another node, and for another moment."""
        self._box = ui.element("div").classes("sg-node")
        self._run.on_change(self._show, "selected", "moment", "breakpoints")
        await self._show()

    async def _show(self) -> None:
        run = self._run
        graph = run.graph_of(run.moment.namespace)
        self._box.clear()
        with self._box:
            if graph is None or run.selected is None or run.selected not in graph.index:
                ui.label("Select a node in the graph: click it, or go to it with Tab and press Enter.").classes(
                    "sg-empty"
                )
                return
            node = graph.nodes[run.selected]
            self._head(node)
            await self._visits(node)
            if run.executor is not None:
                await self._writes(node)
            self._code(graph, node)

    def _head(self, node: NodeDef) -> None:
        run = self._run
        ui.label(f"{node.id} - {node.kind}").classes("sg-trail")
        if node.description:
            ui.label(node.description).classes("sg-muted")
        has = any(point.node == node.id for point in run.breakpoints)
        with ui.element("div").classes("sg-visits"):
            made = button(
                "Remove breakpoint" if has else "Set breakpoint", None, "Breakpoint before this node", keys="b"
            )
            made.on_click(lambda: run.toggle_breakpoint(node.id)).set_enabled(run.session is not None)
            button("Run to here", None, "Continue to this node", keys="u").on_click(
                lambda: run.do("until", node.id)
            ).set_enabled(run.refusal("until") is None)
            if run.executor is not None and any(one.node == node.id for one in run.moment.coming):
                button("Run it alone", None, "Run this node alone on the state here; nothing is stored").on_click(
                    lambda: self._alone(node.id)
                )
        self._result = ui.element("div")

    async def _visits(self, node: NodeDef) -> None:
        run = self._run
        line = way_to(run.rows.by_frame.get(run.moment.namespace, ()), run.moment.seq)
        found = [header for header in line if header.source == "step" and node.id in header.nodes]
        with ui.element("h3"):
            ui.label(
                f"{len(found)} visit{'' if len(found) == 1 else 's'} up to here"
                + (f", the last {_VISITS}" if len(found) > _VISITS else "")
            )
        with ui.element("div").classes("sg-visits"):
            for header in found[-_VISITS:]:
                button(f"step {header.step}", None, f"Go to checkpoint {header.id}, after this visit").on_click(
                    partial(run.goto, header.id)
                )

    async def _writes(self, node: NodeDef) -> None:
        """What the newest visit up to here wrote."""
        run = self._run
        line = way_to(run.rows.by_frame.get(run.moment.namespace, ()), run.moment.seq)
        last = next((h for h in reversed(line) if h.source == "step" and node.id in h.nodes), None)
        if last is None:
            return
        moment = await moment_at(
            run.store, {last.namespace: run.graph_of(last.namespace)}, run.lineage, last.namespace, last.seq
        )
        for write in await _writes_of(run, moment):
            if write.node != node.id:
                continue
            with ui.element("h3"):
                ui.label(f"Written by {write.activation}")
            if not write.fields:
                ui.label("nothing").classes("sg-muted")
            with ui.element("table").classes("sg-writes"):
                for name, part in write.fields.items():
                    told = "(not told apart)" if part.kind == "unknown" else self._shown(name, part.value)
                    row_of(name, ("+ " if part.kind == "items" else "") + told)

    async def _alone(self, node: str) -> None:
        from graphagent.debug.alone import run_alone

        run = self._run
        assert run.executor is not None
        coming = next(one for one in run.moment.coming if one.node == node)
        self._result.clear()
        try:
            done = await run_alone(run.executor, run.moment, coming.activation)
        except GraphAgentError as error:
            run.say(str(error), "negative")
            return
        with self._result:
            with ui.element("h3"):
                ui.label(f"Run alone: {coming.activation}")
            with ui.element("table").classes("sg-writes"):
                if done.error is not None:
                    row_of("error", str(done.error))
                for name, value in done.update.items():
                    row_of(name + (" (differs)" if name in done.differs else ""), self._shown(name, value))

    def _shown(self, field: str, value: Any) -> str:
        """A value of a field as text; that of a secret one is masked."""
        graph = self._run.graph_of(self._run.moment.namespace)
        return MASK if graph is not None and field in graph.schema.secret else shown(value)

    def _code(self, graph: CompiledGraph, node: NodeDef) -> None:
        if self._run.executor is None:
            ui.label("Its code is not known: give the graph to the studio as module:graph.").classes("sg-muted")
            return
        for source in sources_of(graph, node.id):
            with ui.element("h3"):
                ui.label(f"{source.what} - {source.place}")
            with ui.element("pre").props("tabindex=0").props(f"aria-label={json.dumps(f'Code of {source.what}')}"):
                ui.label(source.text).style("white-space: pre")


async def _writes_of(run: StudioRun, moment: Moment) -> list[Any]:
    from graphagent.debug.writes import writes_of

    assert run.executor is not None
    try:
        return await writes_of(run.executor, moment)
    except GraphAgentError as error:
        ui.label(str(error)).classes("sg-muted")
        return []


def shown(value: Any) -> str:
    """A value as a line of JSON, cut if it is long; secrets are hidden."""
    text = json.dumps(
        to_jsonable_python(value, fallback=str, bytes_mode="base64", inf_nan_mode="strings"), ensure_ascii=False
    )
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def row_of(name: str, value: str) -> None:
    """A row of a table: name and value."""
    with ui.element("tr"):
        with ui.element("th").props("scope=row"):
            ui.label(name)
        with ui.element("td"):
            ui.label(value).classes("sg-mono")


async def panel(run: StudioRun) -> None:
    """The details of the selected node."""
    await NodePanel(run).build()
