"""What a model was asked, message by message, with where each comes from and why it is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nicegui import ui

from graphagent.agents.stored_calls import StoredCall
from graphagent.errors import GraphAgentError
from graphagent.graph.compiled import CompiledGraph
from runner.debugger.agent_driver import RunnerDriver
from runner.studio.effects_panel import table
from runner.studio.model import StudioRun
from runner.studio.node_panel import shown
from runner.studio.requests import Explained, explained
from runner.studio.requests_rows import RequestRow
from runner.studio.seen import WhenSeen
from runner.studio.theme import button

_PAGE, _LONG = 50, 600
"""Messages that are shown before more are asked for; characters of one that are shown before it is opened."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that can be shown: the node, or an activation of it, and the branch if several are due."""

    node: str
    branch: str
    words: str


class ModelPanel:
    """One request at a time; which, is chosen above."""

    def __init__(self, run: StudioRun) -> None:
        self._run = run
        self._chosen: str | None = None

    def build(self) -> None:
        """The elements; they are made when they are to be seen, since a request is made again for it."""
        with ui.element("div").classes("sg-node") as outer:
            self._choice = ui.select({}, label="Request of").props("outlined dense options-dense")
            self._choice.on_value_change(self._choose)
            self._box = ui.element("div").classes("sg-requests")
        self._seen = WhenSeen(self._run, outer, self._show, "moment", "selected")

    async def _choose(self, event: Any) -> None:
        if event.value is not None and event.value != self._chosen:
            self._chosen = event.value
            await self._seen.changed()

    async def _show(self) -> None:
        run = self._run
        graph = run.graph_of(run.moment.namespace)
        asked = {one.words: one for one in asked_at(run, graph)} if graph is not None else {}
        if self._chosen not in asked:
            selected = [words for words, one in asked.items() if one.node.partition("#")[0] == run.selected]
            self._chosen = next(iter([*selected, *asked]), None)
        self._choice.set_options([*asked], value=self._chosen)
        self._choice.visible = len(asked) > 0
        executor = run.executor
        if executor is None or self._chosen is None:
            self._say(
                "No node of this graph asks a model."
                if executor is not None
                else f"Requests are made again by the graph; {run.why_read_only or 'it is not known'}."
            )
            return
        one, moment = asked[self._chosen], run.moment
        driver = run.session.driver if run.session is not None else None
        try:
            found = await explained(
                executor,
                run.lineage,
                moment.seq,
                one.node,
                namespace=moment.namespace,
                branch=one.branch,
                around=driver.services if isinstance(driver, RunnerDriver) else None,
            )
        except GraphAgentError as error:
            self._say(str(error))
            return
        self._box.clear()
        with self._box:
            self._request(found)

    def _say(self, text: str) -> None:
        self._box.clear()
        with self._box:
            ui.label(text).classes("sg-empty")

    def _request(self, found: Explained) -> None:
        stored = found.stored
        sort = "exactly as it was sent" if stored.exact else "made again from what is stored"
        ui.label(f"{stored.activation} asked {stored.model or 'its model'}; {sort}").classes("sg-muted")
        if doubts := stored.doubts:
            with ui.element("details").classes("sg-doubts"):
                with ui.element("summary").classes("sg-doubt"):
                    ui.label(f"by what it may differ from what was sent: {', '.join(doubts)}")
                for name, doubt in doubts.items():
                    ui.label(f"{name}: {doubt}").classes("sg-doubt")
        for note in found.notes:
            ui.label(f"guard: {shown(note)}").classes("sg-doubt")
        with ui.element("h3"):
            ui.label(f"Request, {len(found.rows)} message{'' if len(found.rows) == 1 else 's'}")
        with ui.element("ol").classes("sg-messages").props('aria-label="Messages of the request"'):
            self._messages(found.rows)
        with ui.element("h3"):
            ui.label(f"Answer{tokens(found)}")
        if found.answer is None:
            ui.label("There is none yet.").classes("sg-empty")
        else:
            with ui.element("ol").classes("sg-messages").props('aria-label="Answer"'):
                message(found.answer)
        self._calls(found.calls)

    def _messages(self, rows: tuple[RequestRow, ...], start: int = 0) -> None:
        for row in rows[start : start + _PAGE]:
            message(row)
        if (left := len(rows) - start - _PAGE) > 0:
            outer = ui.context.slot.parent
            with ui.element("li").classes("sg-more-rows") as item:
                more = button(f"{left} more", None, "Show more messages")

            def go_on() -> None:
                item.delete()
                with outer:
                    self._messages(rows, start + _PAGE)

            more.on_click(go_on)

    def _calls(self, calls: tuple[StoredCall, ...]) -> None:
        if not calls:
            return
        with ui.element("h3"):
            ui.label("Tool calls")
        table(
            "Tool calls",
            ("Call", "Status", "Result"),
            [
                (
                    f"{one.name}({shown(one.arguments)})"
                    + (f", used instead: {shown(one.used)}" if one.used is not None else ""),
                    one.status,
                    "-" if one.result is None else cut(one.result),
                )
                for one in calls
            ],
            bad={place for place, one in enumerate(calls) if one.status in ("failed", "unknown", "refused")},
        )


def asked_at(run: StudioRun, graph: CompiledGraph) -> Iterator[Asked]:
    """The requests around the cursor: those that come next, those of the last step, and the last of other nodes."""
    models = {name for name, node in graph.nodes.items() if node.kind == "llm"}
    moment = run.moment
    for one in moment.coming:
        if one.node in models:
            yield Asked(one.node, one.branch, f"{one.activation}, which comes next")
    ran = [name for name in dict.fromkeys(moment.ran) if name in models]
    for name in ran:
        yield Asked(f"{name}#{moment.step}", "", f"{name}#{moment.step}, the last step")
    before = {name for row in run.rows.by_frame.get(moment.namespace, ()) if row.seq < moment.seq for name in row.nodes}
    due = {one.node for one in moment.coming}
    for name in sorted((models & before) - {*ran} - due):
        yield Asked(name, "", f"{name}, the last time before")


def message(row: RequestRow) -> None:
    """A message: role, origin and reason, and its text, the whole of a long one by request."""
    with ui.element("li").props(f"data-origin={row.origin}"):
        with ui.element("div").classes("sg-why"):
            ui.label(f"{row.place} {row.role}").classes("sg-name")
            ui.label(row.origin.replace("_", " ")).classes("sg-chip")
            ui.label(row.reason).classes("sg-muted")
        if len(row.text) <= _LONG:
            if row.text:
                ui.label(row.text).classes("sg-text")
        else:
            with ui.element("details"):
                with ui.element("summary"):
                    ui.label(cut(row.text))
                ui.label(row.text).classes("sg-text")
        for call in row.calls:
            ui.label(f"calls {call}").classes("sg-text")


def cut(text: str) -> str:
    """A text, or its beginning if it is long."""
    return text if len(text) <= _LONG else f"{text[:_LONG]}... ({len(text):,} characters)"


def tokens(found: Explained) -> str:
    """What the answers took, if that is known."""
    used = found.usage
    if used is None or not (used.input_tokens or used.output_tokens):
        return ""
    return f" ({used.input_tokens:,} tokens in, {used.output_tokens:,} out)"


def panel(run: StudioRun) -> None:
    """The requests of the run's models."""
    ModelPanel(run).build()
