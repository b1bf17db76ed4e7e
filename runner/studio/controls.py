"""The buttons that move a run and its cursor, and the keys that do the same."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nicegui import ui
from nicegui.events import GenericEventArguments

from graphagent.errors import GraphAgentError
from graphagent.ids import fresh_id
from runner.studio.forking import forked
from runner.studio.model import FORWARD, Place, StudioRun
from runner.studio.theme import button


@dataclass(frozen=True, slots=True)
class Control:
    """A button. `key`: what does the same; `others`: further keys."""

    command: str
    icon: str
    name: str
    key: str
    others: tuple[str, ...] = ()


CONTROLS = (
    Control("oldest", "first_page", "To the first checkpoint", "Home"),
    Control("back", "arrow_back", "Step back", "k", ("ArrowLeft",)),
    Control("step", "arrow_forward", "Step, also into child graphs", "s", ("ArrowRight",)),
    Control("next", "redo", "Next step of this frame", "n"),
    Control("out", "arrow_upward", "Step out of this frame", "o"),
    Control("run", "play_arrow", "Continue to a breakpoint or the end", "c"),
    Control("until", "sports_score", "Continue to the selected node", "u"),
    Control("leave", "pause", "Pause the run, so that anybody can resume it", "p"),
    Control("newest", "last_page", "To the newest checkpoint", "End"),
    Control("breakpoint", "radio_button_checked", "Breakpoint before the selected node", "b"),
    Control("fork", "fork_right", "Fork from here", "f"),
)
_GAPS = ("oldest", "step", "breakpoint")


class Controls:
    """The row of buttons above the panels."""

    def __init__(self, run: StudioRun) -> None:
        self._run = run
        self._buttons: dict[str, ui.button] = {}
        self._hints: dict[str, ui.tooltip] = {}

    def build(self) -> None:
        """The elements, and the keys."""
        self._by_key = {key: one.command for one in CONTROLS for key in (one.key, *one.others)}
        bar = ui.element("div").classes("sg-controls").props('role=toolbar aria-label="Steps"')
        with bar.props(f'data-keys="{" ".join(self._by_key)}"'):
            for control in CONTROLS:
                if control.command in _GAPS and control.command != "oldest":
                    ui.element("div").classes("sg-gap")
                made = button("", control.icon, control.name, keys=control.key)
                self._buttons[control.command] = made.on_click(self._doer(control.command))
            ui.element("div").classes("sg-gap")
            self._follow = ui.switch("Follow", value=self._run.following).props("dense").classes("sg-follow")
            self._follow.props('aria-label="Follow the newest checkpoint"')
            self._follow.on_value_change(lambda event: setattr(self._run, "following", bool(event.value)))
            self._where = ui.label().classes("sg-where").props("role=status aria-live=polite")
        ui.on("studio_key", self._pressed)
        self._run.on_change(self._show, "moment", "rows", "busy", "info", "selected")
        self._show()

    def _doer(self, command: str) -> Callable[[], Awaitable[None]]:
        async def act() -> None:
            await self._act(command)

        return act

    async def _pressed(self, event: GenericEventArguments) -> None:
        await self._act(self._by_key[str(event.args)])

    async def _act(self, command: str) -> None:
        run = self._run
        if command in FORWARD and self._refused(command) is None:
            run.following = self._follow.value = False
        match command:
            case "oldest":
                await self._goto(run.rows.oldest_id)
            case "newest":
                await self._goto(run.rows.newest_id)
            case "until" | "breakpoint" if run.selected is None:
                run.say("select a node first: click it, or go to it with Tab and press Enter", "info")
            case "until":
                await run.do("until", run.selected)
            case "breakpoint":
                await run.toggle_breakpoint(str(run.selected))
            case "fork":
                await self._ask_for_fork()
            case _:
                await run.do(command)

    async def _goto(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            await self._run.goto(checkpoint)

    async def _ask_for_fork(self) -> None:
        if refused := self._run.refusal("fork"):
            self._run.say(refused, "warning")
            return
        with ui.dialog() as dialog, ui.card().props('aria-label="Fork"'):
            ui.label(f"Fork from checkpoint {self._run.moment.id}")
            name = ui.input("Name of the new run", value=f"{self._run.lineage}-{fresh_id()[:6]}").props(
                "outlined dense"
            )
            with ui.row():
                ui.button("Fork", on_click=lambda: dialog.submit(name.value)).props("no-caps flat").classes(
                    "sg-primary"
                )
                ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("no-caps flat")
            name.on("keydown.enter", lambda: dialog.submit(name.value))
        wanted = await dialog
        dialog.delete()
        session = self._run.session
        if not wanted or session is None:
            return
        try:
            place = await forked(session.driver, self._run.moment.id, wanted)
        except GraphAgentError as error:
            self._run.say(str(error), "negative")
            return
        ui.navigate.to(Place(wanted, self._run.namespace, place).link)

    def _refused(self, command: str) -> str | None:
        run = self._run
        if run.busy and command != "leave":
            return f"'{run.busy}' goes on"
        if command == "leave" and not (run.busy or (run.session is not None and run.session.live)):
            return "no run is held here"
        if command in ("until", "breakpoint") and run.selected is None:
            return "select a node first"
        if command == "breakpoint" and run.session is None:
            return run.why_read_only or "there is no session"
        return run.refusal(command) if command not in ("oldest", "newest", "breakpoint") else None

    def _show(self) -> None:
        for control in CONTROLS:
            refused, made = self._refused(control.command), self._buttons[control.command]
            made.set_enabled(refused is None)
            text = f"{control.name} ({control.key})" + (f" - {refused}" if refused else "")
            made.props(f"title={json.dumps(text)}")
        self._where.text = where(self._run)
        self._follow.value = self._run.following


def where(run: StudioRun) -> str:
    """Where the cursor stands, in a line."""
    moment = run.moment
    told = [f"step {moment.step}", moment.source]
    if moment.coming:
        told.append("next: " + ", ".join(dict.fromkeys(one.node for one in moment.coming)))
    if run.busy:
        told.append(f"{run.busy} ...")
    elif run.session is not None and run.session.live:
        told.append("held here")
    stopped = run.stopped
    if stopped is not None and stopped.moment.id == moment.id and stopped.why not in ("moved", "step"):
        told.append(stopped.why + (f": {stopped.reason}" if stopped.reason else ""))
    elif moment.error:
        told.append(moment.error)
    return f"{moment.id} - " + ", ".join(told)


def panel(run: StudioRun) -> None:
    """The row of buttons."""
    Controls(run).build()
