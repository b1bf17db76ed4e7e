"""How pages of the studio look: one style sheet for light and dark, the top line, and the switch between both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING

from nicegui import ui

from runner.picture.script import APPLY_JS
from runner.studio.style import COLOURS_DARK, COLOURS_LIGHT

if TYPE_CHECKING:
    from runner.studio.app import Studio


def shared_head() -> str:
    """What the head of every page has: style sheet and programs."""
    sheets = [_static("studio.css"), _static("panels.css")]
    programs = [_static("studio.js"), _static("panels.js"), APPLY_JS]
    colours = (
        f":root{{{_declared(COLOURS_LIGHT)};color-scheme:light}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{_declared(COLOURS_DARK)};color-scheme:dark}}}}\n"
        f":root[data-theme=light]{{{_declared(COLOURS_LIGHT)};color-scheme:light}}\n"
        f":root[data-theme=dark]{{{_declared(COLOURS_DARK)};color-scheme:dark}}\n"
    )
    return f"<style>{colours}{''.join(sheets)}</style><script>{''.join(programs)}</script>"


@contextmanager
def page_shell(studio: Studio, title: str, *trail: str) -> Iterator[None]:
    """The top of a page and, inside the block, its main part. `trail`: what stands behind the name of the studio."""
    ui.page_title(f"{title} - graphagent studio")
    ui.query(".nicegui-content").classes("sg-page")
    with ui.element("header").classes("sg-top"):
        ui.link("graphagent studio", "/").classes("sg-home")
        for part in trail:
            ui.label("/").classes("sg-muted").props("aria-hidden=true")
            ui.label(part).classes("sg-trail")
        ui.element("div").classes("sg-space")
        ui.label(studio.url).classes("sg-muted sg-db").tooltip(studio.url)
        button("Theme", "contrast", "Switch between light and dark").on(
            "click", js_handler="() => window.graphagentTheme()"
        )
    if studio.why_read_only:
        with ui.element("div").classes("sg-banner").props("role=note"):
            ui.label(f"Read-only: {studio.why_read_only}")
    with ui.element("main").classes("sg-main"):
        yield


def button(text: str, icon: str | None, name: str, *, keys: str | None = None) -> ui.button:
    """A flat, dense button. `name`: what it does, for those who hear the page, and as a tooltip; without an icon the
    text is shown. `keys`: the key that does the same."""
    made = ui.button(text if icon is None else "", icon=icon, color=None).props("flat dense no-caps")
    made.props(f"aria-label={json.dumps(name)}" + (f' aria-keyshortcuts="{keys}"' if keys else ""))
    with made:
        ui.tooltip(f"{name} ({keys})" if keys else name).props("delay=400")
    return made.classes("sg-button")


def _static(name: str) -> str:
    return resources.files("runner.studio").joinpath("static", name).read_text(encoding="utf-8")


def _declared(colours: Mapping[str, str]) -> str:
    return ";".join(f"--sg-{name}:{value}" for name, value in colours.items())
