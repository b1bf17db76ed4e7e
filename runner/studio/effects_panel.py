"""How far the joins are at the cursor, and what its activations did outside of the run."""

from __future__ import annotations

from nicegui import ui

from graphagent.debug.effects import EffectSeen, effects_of
from graphagent.debug.joins import JoinProgress, joins_of
from graphagent.engine.executor import Executor
from graphagent.errors import GraphAgentError
from runner.studio.model import StudioRun
from runner.studio.node_panel import shown
from runner.studio.seen import WhenSeen


class EffectsPanel:
    """Two tables: joins and effects."""

    def __init__(self, run: StudioRun) -> None:
        self._run = run

    def build(self) -> None:
        """The elements; they are made when they are to be seen."""
        self._box = ui.element("div").classes("sg-node")
        WhenSeen(self._run, self._box, self._show, "moment")

    async def _show(self) -> None:
        run, executor = self._run, self._run.executor
        if executor is None:
            self._say(f"Joins and effects are told by the graph; {run.why_read_only or 'it is not known'}.")
            return
        try:
            joins = await joins_of(executor, run.moment)
            effects = await effects_of(executor, run.moment)
        except GraphAgentError as error:
            self._say(str(error))
            return
        self._box.clear()
        with self._box:
            self._joins(joins)
            self._effects(executor, effects)

    def _say(self, text: str) -> None:
        self._box.clear()
        with self._box:
            ui.label(text).classes("sg-empty")

    def _joins(self, joins: list[JoinProgress]) -> None:
        with ui.element("h3"):
            ui.label("Joins")
        if not joins:
            ui.label("This graph has none.").classes("sg-empty")
            return
        table(
            "Joins",
            ("Join", "Has", "Misses", ""),
            [
                (
                    f"{one.id} ({one.mode}) to {one.target}",
                    ", ".join(name if count == 1 else f"{name} x {count}" for name, count in one.have.items()) or "-",
                    ", ".join(one.missing) or "-",
                    join_state(one),
                )
                for one in joins
            ],
            bad={place for place, one in enumerate(joins) if one.starved},
        )

    def _effects(self, executor: Executor, effects: list[EffectSeen]) -> None:
        with ui.element("h3"):
            ui.label("Effects of the last step and of what comes next")
        if not effects:
            ui.label("None is recorded here.").classes("sg-empty")
            return
        table(
            "Effects",
            ("Activation", "Effect", "Outcome", "Result"),
            [
                (one.activation, f"{one.name} {one.ordinal}" if one.ordinal else one.name, outcome(one), result(one))
                for one in effects
            ],
            bad={place for place, one in enumerate(effects) if not one.committed},
        )


def join_state(one: JoinProgress) -> str:
    """How a join stands, in words."""
    if one.starved:
        return "starved: what it misses can't come any more"
    if one.fired:
        return "has fired in this lap"
    return "waits" if one.have else "nothing has arrived"


def outcome(one: EffectSeen) -> str:
    """What is known of an effect's end."""
    done = "carried out" if one.committed else "begun, its end is not known"
    return done if one.ended or one.committed else f"{done}; it runs again"


def result(one: EffectSeen) -> str:
    """What an effect came back with."""
    if one.lost is not None:
        return f"(not kept: {one.lost})"
    return shown(one.result) if one.committed else "-"


def table(name: str, heads: tuple[str, ...], rows: list[tuple[str, ...]], *, bad: set[int]) -> None:
    """A table of texts. `bad`: places of the rows that tell of something wrong."""
    with ui.element("table").classes("sg-table").props(f'aria-label="{name}"'):
        with ui.element("thead"), ui.element("tr"):
            for head in heads:
                with ui.element("th").props("scope=col"):
                    ui.label(head)
        with ui.element("tbody"):
            for place, row in enumerate(rows):
                with ui.element("tr").classes("sg-bad" if place in bad else ""):
                    for text in row:
                        with ui.element("td"):
                            ui.label(text)


def panel(run: StudioRun) -> None:
    """Joins and effects."""
    EffectsPanel(run).build()
