"""A form of a JSON schema as elements of a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nicegui import ui

from graphagent.unset import UNSET
from runner.studio.forms import Entry, Field, Path, entries_of, form_of, value_of

_FEW = 4
"""Choices that are shown all at once."""


class FormView:
    """The elements of a form, and what is entered in them."""

    def __init__(self, schema: Any) -> None:
        self.form = form_of(schema)
        self._entries: dict[Path, Entry] = entries_of(self.form, UNSET)
        self._problems: dict[Path, ui.label] = {}

    def build(self) -> None:
        """A field for everything that is entered."""
        with ui.element("div").classes("sg-form"):
            self._part(self.form)
            if self.form.path not in self._problems:
                self._problem(self.form.path)

    def value(self) -> Any:
        """What the entries amount to. Raises FormError."""
        return value_of(self.form, self._entries)

    def show_problems(self, problems: Mapping[Path, str]) -> None:
        """Say at each field what is wrong with it; those that aren't named are right."""
        for path, label in self._problems.items():
            text = problems.get(path, "")
            label.text, label.visible = text, bool(text)

    def _part(self, field: Field) -> None:
        if field.kind != "object":
            self._leaf(field)
            return
        if not field.path:
            for one in field.fields:
                self._part(one)
            return
        with ui.element("fieldset"):
            with ui.element("legend"):
                ui.label(_named(field))
            self._help(field)
            for one in field.fields:
                self._part(one)

    def _leaf(self, field: Field) -> None:
        with ui.element("div").classes("sg-field"):
            match field.kind:
                case "bool":
                    self._choice(field, {True: "yes", False: "no"})
                case "choice":
                    self._choice(field, {place: _text(one) for place, one in enumerate(field.choices)})
                case _:
                    self._typed(field)
            self._help(field)
            self._problem(field.path)

    def _choice(self, field: Field, choices: dict[Any, str]) -> None:
        name = _named(field)
        entry = self._entries[field.path]
        if len(choices) <= _FEW:
            ui.label(name).classes("sg-field-name").props("aria-hidden=true")
            made: Any = ui.radio(choices, value=entry).props("inline dense")
        else:
            made = ui.select(choices, label=name, value=entry).props("outlined dense options-dense")
            if field.nullable or not field.required:
                made.props("clearable")
        made.props(f"aria-label={json.dumps(name)}")
        made.on_value_change(lambda event: self._enter(field, event.value))

    def _typed(self, field: Field) -> None:
        name, entry = _named(field), self._entries[field.path]
        text = "" if entry is None else str(entry)
        made: Any
        if field.kind == "json":
            made = ui.textarea(f"{name} (JSON)", value=text).props("autogrow").classes("sg-mono")
        else:
            made = ui.input(name, value=text, password=field.kind == "secret")
            if field.kind in ("integer", "number"):
                made.props(f"inputmode={'numeric' if field.kind == 'integer' else 'decimal'}")
        made.props("outlined dense")
        made.on_value_change(lambda event: self._enter(field, event.value))

    def _enter(self, field: Field, value: Any) -> None:
        """Keep an entry. An emptied text that may be left out is left out."""
        if value == "" and (field.nullable or not field.required or field.kind not in ("text", "secret")):
            value = None
        self._entries[field.path] = value

    def _help(self, field: Field) -> None:
        if field.help and field.path:
            ui.label(field.help).classes("sg-muted")

    def _problem(self, path: Path) -> None:
        label = self._problems[path] = ui.label().classes("sg-problem").props("role=alert")
        label.visible = False


def _named(field: Field) -> str:
    name = field.label or (field.path[-1] if field.path else "Answer")
    return name if field.required and not field.nullable else f"{name} (may be left out)"


def _text(choice: Any) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice, ensure_ascii=False)
