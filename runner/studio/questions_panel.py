"""The open questions of a run, each with a form made from the schema of its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nicegui import ui

from graphagent.checkpoint.record import Question
from graphagent.engine.questions import asks_for_secret, take_answers
from graphagent.engine.result import Interrupt
from graphagent.errors import AnswerError
from graphagent.unset import UNSET
from runner.studio.form_view import FormView
from runner.studio.forms import FormError
from runner.studio.model import StudioRun
from runner.studio.node_panel import shown
from runner.studio.theme import button

_HELD = {
    "before": "held by a breakpoint before '{}'",
    "after": "held by a breakpoint after '{}'",
    "pause": "paused before '{}'",
}


class QuestionsPanel:
    """The questions at the cursor. Answers are taken one by one, and used when the run goes on."""

    def __init__(self, run: StudioRun) -> None:
        self._run = run
        self._answered: dict[str, Any] = {}
        self._views: dict[str, FormView] = {}
        self._buttons: list[ui.button] = []
        self._told: dict[str, ui.label] = {}
        self._shown: tuple[str, tuple[str, ...]] | None = None

    def build(self) -> None:
        """The elements; they are made anew only for other questions, so that what is entered stays."""
        self._box = ui.element("div").classes("sg-questions")
        self._run.on_change(self._show, "moment", "rows", "info", "busy")
        self._show()

    def _show(self) -> None:
        waits = self._run.moment.waits
        key = (self._run.moment.id, tuple(one.id for one in waits))
        if key != self._shown:
            self._shown = key
            self._answered = {}
            self._build(waits)
        self._allow()

    def _build(self, waits: tuple[Interrupt, ...]) -> None:
        self._box.clear()
        self._views, self._buttons, self._told = {}, [], {}
        asked = [one for one in waits if one.kind == "ask"]
        with self._box:
            self._why = ui.label().classes("sg-muted")
            if not waits:
                ui.label("Nothing is asked here.").classes("sg-empty")
                return
            for one in waits:
                if one.kind == "ask":
                    self._question(one)
                else:
                    ui.label(f"The run is {_HELD.get(one.kind, 'held at {}').format(one.node)}.")
            with ui.element("div").classes("sg-visits"):
                if len(asked) > 1:
                    both = button("Answer all and continue", None, "Answer all and continue: the run goes on")
                    self._buttons.append(both.on_click(lambda: self._all(asked)).classes("sg-primary"))
                go_on = button("Continue", None, "Continue with the answers given", keys="c")
                self._buttons.append(go_on.on_click(lambda: self._run.do("run")))

    def _question(self, one: Interrupt) -> None:
        with ui.element("section").classes("sg-question").props(f"aria-label={json.dumps(f'Question {one.key}')}"):
            with ui.element("h3"):
                ui.label(one.key if one.key == one.node else f"{one.key}, asked by {one.node}")
            for line in prompt_lines(one.prompt):
                ui.label(line).classes("sg-prompt")
            if one.path:
                ui.label(f"in {one.path}").classes("sg-muted")
            view = self._views[one.id] = FormView(one.schema)
            view.build()
            with ui.element("div").classes("sg-visits"):
                made = button("Answer", None, f"Answer {one.key}")
                self._buttons.append(made.on_click(lambda: self._answer(one)))
                self._told[one.id] = ui.label().classes("sg-told").props("role=status")

    def _allow(self) -> None:
        run = self._run
        refused = None
        if not run.at_newest:
            refused = "these were asked at an older checkpoint: go to the newest one to answer, or fork here"
        elif run.busy:
            refused = f"'{run.busy}' goes on"
        else:
            refused = run.refusal("answer")
        self._why.text = refused if refused and run.moment.waits else ""
        self._why.visible = bool(self._why.text)
        for made in self._buttons:
            made.set_enabled(refused is None)

    async def _all(self, asked: list[Interrupt]) -> None:
        """Answer all questions that are open, then go on; nothing is done unless every answer fits."""
        left = [one for one in asked if one.id not in self._answered]
        values = {one.id: self._read(one) for one in left}
        if any(value is UNSET for value in values.values()):
            return
        for one in left:
            if not await self._take(one, values[one.id]):
                return
        await self._run.do("run")

    async def _answer(self, one: Interrupt) -> None:
        value = self._read(one)
        if value is not UNSET:
            await self._take(one, value)

    def _read(self, one: Interrupt) -> Any:
        """What was entered; UNSET, with the reason shown, if it is no answer."""
        view = self._views[one.id]
        try:
            value = view.value()
            take_answers([as_question(one)], {one.id: value}, UNSET)
        except FormError as error:
            view.show_problems(error.problems)
            return UNSET
        except AnswerError as error:
            view.show_problems({(): str(error)})
            return UNSET
        view.show_problems({})
        return value

    async def _take(self, one: Interrupt, value: Any) -> bool:
        if not await self._run.answer(one.id, value):
            return False
        self._answered[one.id] = value
        told = "" if asks_for_secret(one.schema) else f" with {shown(value)}"
        left = sum(1 for other in self._run.moment.waits if other.kind == "ask" and other.id not in self._answered)
        more = f"; {left} more to answer, or continue" if left else "; continue goes on"
        self._told[one.id].text = f"answered{told}{more}"
        return True


def as_question(one: Interrupt) -> Question:
    """A question as answers are checked against it."""
    return Question(one.id, one.key, one.node, 0, 0, one.prompt, one.schema, one.kind)


def prompt_lines(prompt: Any) -> list[str]:
    """A prompt as text: of a mapping the question first, then the rest by name."""
    if prompt is None:
        return []
    if isinstance(prompt, str):
        return [prompt]
    if isinstance(prompt, Mapping):
        first = [str(prompt[name]) for name in ("question", "message", "prompt") if isinstance(prompt.get(name), str)][
            :1
        ]
        rest = {name: value for name, value in prompt.items() if not (first and value == first[0])}
        return first + [f"{name}: {value if isinstance(value, str) else shown(value)}" for name, value in rest.items()]
    return [shown(prompt)]


def panel(run: StudioRun) -> None:
    """The open questions."""
    QuestionsPanel(run).build()
