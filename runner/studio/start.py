"""Begins runs of the graphs and agents that were given to the studio, held before their first step."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nicegui import ui

from graphagent.agents.graph_agent import session_lineage
from graphagent.errors import GraphAgentError
from graphagent.ids import fresh_id
from graphagent.ledger import SessionKey
from runner.studio.model import Place
from runner.studio.targets import Target
from runner.studio.theme import button

if TYPE_CHECKING:
    from runner.studio.app import Studio

_USER = "user"


def start_buttons(studio: Studio) -> None:
    """A button for each graph and agent; none if there are none."""
    if not studio.targets.named:
        return
    with ui.element("div").classes("sg-starts"):
        for target in studio.targets.named:
            name = f"Start {target.agent.name if target.agent is not None else target.graph.name}"
            button(name, None, f"{name}, held before its first step").on_click(lambda _, one=target: _ask(studio, one))


async def _ask(studio: Studio, target: Target) -> None:
    client = ui.context.client
    with ui.dialog() as dialog, ui.card().classes("sg-start").props('aria-label="Start a run"'):
        is_agent = target.agent is not None
        ui.label(f"A new {'session' if is_agent else 'run'} of {target.place}")
        name = ui.input("Its name", value=fresh_id()[:10]).props("outlined dense")
        said = ui.textarea("What the user says" if is_agent else "Input: a JSON object", value="" if is_agent else "{}")
        said.props("outlined dense").classes("sg-mono")
        problem = ui.label().classes("sg-banner").props("role=alert")
        problem.visible = False

        async def go() -> None:
            try:
                lineage = session_lineage(SessionKey(target.namespace, _USER, name.value)) if is_agent else name.value
                await studio.start(target, lineage, said.value if is_agent else _input(said.value), client.id)
            except (GraphAgentError, ValueError) as error:
                problem.text, problem.visible = str(error), True
                return
            dialog.close()
            ui.navigate.to(Place(lineage, target.namespace).link)

        with ui.element("div").classes("sg-visits"):
            ui.button("Start", on_click=go, color=None).props("no-caps flat").classes("sg-primary")
            ui.button("Cancel", on_click=dialog.close, color=None).props("no-caps flat")
    dialog.on("hide", dialog.delete)
    dialog.open()


def _input(text: str) -> Any:
    """What the JSON says. Raises ValueError in words."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the input is no JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
