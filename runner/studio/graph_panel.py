"""The picture of the graph with the state of every node: a click selects one, one on its corner sets a breakpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping

from nicegui import ui
from nicegui.events import GenericEventArguments

from graphagent.graph.compiled import CompiledGraph
from runner.picture import Mark, mark_patch, picture
from runner.studio.marking import marks_of
from runner.studio.model import StudioRun
from runner.studio.theme import button


class GraphPanel:
    """The picture of the frame that the cursor stands in; drawn anew only for another graph."""

    def __init__(self, run: StudioRun) -> None:
        self._run = run
        self._graph: CompiledGraph | None = None
        self._marks: Mapping[str, Mark] = {}

    def build(self) -> None:
        """The elements, and what they listen to."""
        with ui.element("div").classes("sg-bar"):
            self._title = ui.element("h2")
            with self._title:
                self._name = ui.label()
            ui.element("div").classes("sg-space")
            for text, icon, name, code in (
                ("-", "zoom_out", "Smaller", "sgZoom(root.sgScale / 1.25)"),
                ("+", "zoom_in", "Larger", "sgZoom(root.sgScale * 1.25)"),
                ("fit", "fit_screen", "Fit the picture", "sgFit(0.1)"),
            ):
                self._zoom(button(text, icon, name), code)
        with ui.element("div").classes("sg-picture"):
            self._picture = ui.html("", sanitize=False)
        ui.on("studio_node", self._selected)
        ui.on("studio_stop", self._stopped)
        self._draw()
        self._run.on_change(self._draw, "moment", "rows", "info", "busy")
        self._run.on_change(lambda: self._apply({"selected": self._run.selected}), "selected")
        self._run.on_change(lambda: self._apply({"breakpoints": sorted(self._breakpoints())}), "breakpoints")

    def _zoom(self, made: ui.button, code: str) -> None:
        self._zooms = [*getattr(self, "_zooms", []), (made, code)]
        made.on_click(lambda: ui.run_javascript(f"const root = document.getElementById('{self._id}'); root.{code};"))

    @property
    def _id(self) -> str:
        return f"c{self._picture.id}"

    def _draw(self) -> None:
        run = self._run
        graph = run.graph_of(run.moment.namespace)
        where = f" in {run.moment.namespace}" if run.moment.namespace != run.namespace else ""
        self._name.text = "Graph" if graph is None else f"Graph {graph.name}{where}"
        if graph is None:
            self._picture.content = (
                '<p class="sg-empty">The graph of this frame is not known: give it to the studio as module:graph.</p>'
            )
            self._graph = None
            return
        marks = marks_of(run, graph)
        coming = [one.node for one in run.moment.coming] or list(run.moment.ran)
        if graph is not self._graph:
            chosen = run.selected if run.selected in graph.index else None
            self._graph, self._marks = graph, marks
            self._picture.content = picture(graph, marks, breakpoints=self._breakpoints(), selected=chosen)
            ui.run_javascript(f"sgPicture('{self._id}', {json.dumps(coming)})")
            return
        changes = mark_patch(self._marks, marks)
        self._marks = marks
        self._apply({"marks": changes, "show": coming})

    def _breakpoints(self) -> frozenset[str]:
        assert self._graph is not None or self._run.graph is not None
        graph = self._graph or self._run.graph_of(self._run.moment.namespace)
        nodes = {point.node for point in self._run.breakpoints if point.enabled and point.node is not None}
        return frozenset(node for node in nodes if graph is not None and node in graph.index)

    def _apply(self, change: dict[str, object]) -> None:
        if self._graph is not None:
            ui.run_javascript(f"sgApply('{self._id}', {json.dumps(change)})")

    async def _selected(self, event: GenericEventArguments) -> None:
        await self._run.select(str(event.args))

    async def _stopped(self, event: GenericEventArguments) -> None:
        await self._run.toggle_breakpoint(str(event.args))


def panel(run: StudioRun) -> None:
    """The picture of the run's graph."""
    GraphPanel(run).build()
