"""Two runs side by side: step by step, with the place where they part marked, and what differs there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from nicegui import ui

from graphagent.agents.secrets_in import MASK
from graphagent.checkpoint.finding import RunQuery
from graphagent.checkpoint.store import CheckpointStore
from graphagent.debug.compare import AlignedStep, Comparison, Parting, compare_runs
from graphagent.engine.executor import Executor
from graphagent.engine.frame import is_root
from graphagent.engine.timetravel import Change, place_of
from graphagent.errors import CheckpointNotFound, GraphAgentError, UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph
from runner.studio.model import Place
from runner.studio.theme import button, page_shell
from runner.studio.tree import plain, preview

if TYPE_CHECKING:
    from runner.studio.app import Studio

_BEFORE, _PAGE = 20, 60
"""Steps that are shown before the parting, and steps that are shown at first and at each time more are asked for."""
_CUT, _KNOWN = 600, 200
_PARTED = {
    "nodes": "other nodes ran",
    "state": "the same nodes made another state of it",
    "route": "they went another way from the same state",
    "length": "one of them has ended",
}


class ComparePage:
    """The two runs that are compared, and what came of it. The query of the address names them."""

    def __init__(self, studio: Studio, a: str, b: str) -> None:
        self._studio, self._names = studio, {"a": a, "b": b}
        self._found: Comparison | None = None
        self._places: tuple[Place, Place] | None = None
        self._graph: CompiledGraph | None = None

    async def build(self) -> None:
        """All elements of the page."""
        with page_shell(self._studio, "Compare", "Compare"):
            form = ui.element("form").classes("sg-filters").props('role=search aria-label="Compare two runs"')
            form.on("submit.prevent", self._compare)
            known = [info.lineage for info in await self._studio.find(RunQuery(limit=_KNOWN))]
            with form:
                for name, label in (("a", "Run or checkpoint"), ("b", "is compared with")):
                    field = ui.input(label, value=self._names[name], autocomplete=known).props("outlined dense")
                    field.on_value_change(lambda event, name=name: self._names.update({name: event.value or ""}))
                button("Compare", None, "Compare the two runs").classes("sg-primary").props("type=submit")
            self._box = ui.element("div").classes("sg-compare")
        if all(self._names.values()):
            await self._compare()

    async def _compare(self) -> None:
        names = {name: text.strip() for name, text in self._names.items()}
        ui.run_javascript(f"history.replaceState(null, '', {json.dumps('/compare?' + urlencode(names))})")
        self._box.clear()
        with self._box:
            try:
                if not all(names.values()):
                    raise UsageError("name two runs, or two checkpoints of one")
                store = self._studio.store
                self._places = (await run_of(store, names["a"]), await run_of(store, names["b"]))
                self._found = await compare_runs(await self._executor(), names["a"], names["b"])
            except GraphAgentError as error:
                ui.label(str(error)).classes("sg-banner").props("role=alert")
                return
            self._show()

    async def _executor(self) -> Executor:
        """An executor of the first run's graph. Raises UsageError if nothing is known of it."""
        assert self._places is not None
        place, store = self._places[0], self._studio.store
        head = (await store.history(place.lineage, place.namespace, limit=1))[0]
        known = await self._studio.targets.of(store, head.fingerprint, place.namespace)
        self._graph = known.graph
        if known.graph is None:
            raise UsageError(f"the graph of '{place.lineage}' is not known: give it to the studio as module:graph")
        return self._studio.executor(known.target) if known.target is not None else Executor(known.graph, store)

    def _show(self) -> None:
        assert self._found is not None
        found, parting = self._found, self._found.parting
        with ui.element("div").classes("sg-panel sg-parting").props("role=status"):
            ui.label(summary(found)).classes("sg-said")
            if parting is not None:
                self._parting(parting)
        with ui.element("div").classes("sg-panel sg-sides"):
            first = 0 if parting is None else max(0, parting.index - _BEFORE)
            self._steps(first, first + _PAGE)

    def _parting(self, parting: Parting) -> None:
        for node, (one, other) in parting.labels.items():
            ui.label(f"the route of '{node}': {one or 'none'} here, {other or 'none'} there")
        if parting.changes:
            with ui.element("table").classes("sg-table").props('aria-label="Fields that differ"'):
                _heads("Field", self._names["a"], self._names["b"])
                with ui.element("tbody"):
                    for name, change in parting.changes.items():
                        self._change(name, change)

    def _change(self, name: str, change: Change) -> None:
        secret = self._graph is not None and name in self._graph.schema.secret
        with ui.element("tr"):
            with ui.element("th").props("scope=row"):
                ui.label(name)
            for value, sort in ((change.before, "sg-old"), (change.after, "sg-new")):
                with ui.element("td"):
                    ui.label(MASK if secret else preview(plain(value), _CUT)).classes(f"sg-value {sort}")

    def _steps(self, first: int, last: int) -> None:
        """The steps side by side, as many as are wanted; the others are brought by the buttons around them."""
        assert self._found is not None
        steps, parting = self._found.steps, self._found.parting
        box = ui.element("div")

        def again(first: int, last: int) -> None:
            box.clear()
            with box:
                if first > 0:
                    text = f"{first:,} earlier step{'' if first == 1 else 's'}"
                    button(text, None, f"Show some of the {text}").on_click(lambda: again(max(0, first - _PAGE), last))
                with ui.element("table").classes("sg-table").props('aria-label="Steps of both runs"'):
                    _heads("", self._names["a"], self._names["b"])
                    with ui.element("tbody"):
                        for place in range(first, min(last, len(steps))):
                            self._step(place, steps[place], parting is not None and parting.index == place)
                if (left := len(steps) - last) > 0:
                    text = f"{left:,} later step{'' if left == 1 else 's'}"
                    button(text, None, f"Show some of the {text}").on_click(lambda: again(first, last + _PAGE))

        with box:
            again(first, last)

    def _step(self, place: int, step: AlignedStep, parts: bool) -> None:
        assert self._places is not None
        mark = "parting" if parts else "alike" if step.alike else "differs"
        with ui.element("tr").props(f"data-mark={mark}"):
            with ui.element("th").props("scope=row"):
                ui.label({"parting": "they part", "alike": "=", "differs": "differs"}[mark])
            for run, checkpoint, nodes in zip(
                self._places, (step.a, step.b), (step.nodes_a, step.nodes_b), strict=True
            ):
                with ui.element("td"):
                    if checkpoint is None:
                        ui.label("nothing more").classes("sg-muted")
                        continue
                    ui.label(", ".join(nodes) or "(input or edit)")
                    lineage = _lineage_in(checkpoint, run)
                    ui.link(checkpoint, Place(lineage, run.namespace, checkpoint).link)


def summary(found: Comparison) -> str:
    """What a comparison says, in a line."""
    shared = f"They have {found.shared:,} checkpoint(s) in common. " if found.shared else ""
    if found.parting is None:
        return f"{shared}{found.a} and {found.b} are alike, step by step."
    alike = f"{found.parting.index:,} step{'' if found.parting.index == 1 else 's'} alike, then "
    return f"{shared}{alike}{_PARTED[found.parting.why]}."


async def run_of(store: CheckpointStore, text: str) -> Place:
    """The run that a lineage, or the id of a checkpoint, names. Raises CheckpointNotFound with the names that come
    near."""
    spaces = [space for space in await store.namespaces(text) if is_root(space)]
    if spaces:
        return Place(text, "" if "" in spaces else spaces[0])
    try:
        lineage, namespace, _ = await place_of(store, text)
    except CheckpointNotFound as error:
        known = await store.lineages(limit=1000)
        raise CheckpointNotFound(f"nothing is stored of '{text}': {alternatives(text, known)}") from error
    return Place(lineage, namespace)


def _lineage_in(checkpoint: str, run: Place) -> str:
    """The lineage of a checkpoint of one of the runs; a fork has the first rows of the run that it left."""
    own = f":{run.namespace}" if run.namespace else ""
    return checkpoint.rpartition(":")[0].removesuffix(own)


def _heads(*texts: str) -> None:
    with ui.element("thead"), ui.element("tr"):
        for text in texts:
            with ui.element("th").props("scope=col"):
                ui.label(text)


def register(studio: Studio) -> None:
    """Make the page."""

    @ui.page("/compare")
    async def compare(a: str = "", b: str = "") -> None:
        await ComparePage(studio, a, b).build()
