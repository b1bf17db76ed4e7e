"""The state at the cursor as a tree: what changed is marked, and a value can be edited where it stands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from graphagent.agents.secrets_in import MASK
from graphagent.debug.moment import Moment
from graphagent.errors import GraphAgentError
from graphagent.unset import UNSET
from runner.studio.model import StudioRun
from runner.studio.state_editor import Editor
from runner.studio.theme import button
from runner.studio.tree import Item, Path, parts, plain, preview

_PAGE = 100
"""Parts of a list or mapping that are shown before more are asked for."""
_WORDS = {"same": "", "added": "new", "removed": "gone", "changed": "changed"}


class StatePanel:
    """The tree. What is open stays open when the cursor moves; while something is edited the tree stands still."""

    def __init__(self, run: StudioRun) -> None:
        self._run = run
        self._open: set[Path] = set()
        self._editor: Editor | None = None
        self._only_changed = False
        self._of: Moment | None = None
        self._fields: list[Item] = []
        self._secret: frozenset[str] = frozenset()

    async def build(self) -> None:
        """The elements, and what they listen to."""
        with ui.element("div").classes("sg-state-head"):
            self._about = ui.label().classes("sg-muted")
            ui.element("div").classes("sg-space")
            switch = ui.switch("Changed only", value=False).props("dense").classes("sg-follow")
            switch.props('aria-label="Show changed fields only"').on_value_change(self._filter)
        self._tree = ui.element("div").classes("sg-state")
        self._run.on_change(self._moved, "moment", "info", "busy")
        await self._read()

    async def _moved(self) -> None:
        if self._editor is not None:
            self._editor.run_changed()
        elif self._of is not self._run.moment:
            await self._read()
        else:
            self._allow()

    async def _read(self) -> None:
        """Read the state here and the one before, and show them."""
        run, moment = self._run, self._run.moment
        graph = run.graph_of(moment.namespace)
        before = self._before(moment)
        try:
            now = await run.values(moment)
            old = None if before is None else await run.values(replace(moment, seq=before))
        except GraphAgentError as error:
            self._tree.clear()
            with self._tree:
                ui.label(str(error)).classes("sg-empty")
            return
        self._of, self._secret = moment, frozenset() if graph is None else graph.schema.secret
        declared = [] if graph is None else [*graph.schema.names]
        names = dict.fromkeys([*(name for name in declared if name in now or name in (old or {})), *now, *(old or {})])
        self._fields = [self._field(name, old, now) for name in names]
        since = "" if old is None else f", changes since step {self._step_of(moment, before)}"
        self._about.text = f"{len(now)} field{'' if len(now) == 1 else 's'}{since}"
        self._show()

    def _field(self, name: str, old: Mapping[str, Any] | None, now: Mapping[str, Any]) -> Item:
        after = now.get(name, UNSET)
        before = after if old is None else old.get(name, UNSET)
        if name in self._secret:  # whether it has changed may be seen, what it is may not
            same = before is not UNSET and after is not UNSET and before != after
            texts = [UNSET if one is UNSET else MASK for one in (before, after)]
            return Item((name,), f"{MASK} (another)" if same else texts[0], texts[1])
        shown = plain(after)
        return Item((name,), shown if before is after or old is None else plain(before), shown)

    def _before(self, moment: Moment) -> int | None:
        """Seq of the row before the last step; rows of an end, a question or an error have the state of that step."""
        rows = {header.seq: header for header in self._run.rows.by_frame.get(moment.namespace, ())}
        header = rows.get(moment.seq)
        while header is not None and header.source in ("end", "interrupt", "error") and header.parent is not None:
            header = rows.get(header.parent)
        return header.parent if header is not None and header.parent in rows else None

    def _step_of(self, moment: Moment, seq: int | None) -> int:
        rows = self._run.rows.by_frame.get(moment.namespace, ())
        return next((header.step for header in rows if header.seq == seq), 0)

    # -- the elements ----------------------------------------------------------------------------

    def _show(self) -> None:
        self._tree.clear()
        self._edits: list[ui.button] = []
        with self._tree:
            shown = [item for item in self._fields if item.mark != "same" or not self._only_changed]
            for item in shown:
                self._row(item)
            if not shown:
                ui.label("nothing has changed" if self._fields else "the state is empty").classes("sg-empty")
        self._allow()

    def _row(self, item: Item) -> None:
        """A part: name, value, what became of it, and the way to edit it."""
        with ui.element("div").classes("sg-item").props(f"data-mark={item.mark}") as row:
            if item.has_parts:
                self._branch(item)
            else:
                with ui.element("div").classes("sg-leaf"):
                    self._text(item)
            if item.path[0] not in self._secret and item.mark != "removed":
                made = button("Edit", "edit", f"Edit {dotted(item.path)}").classes("sg-edit")
                made.on_click(lambda: self._edit(item, row))
                self._edits.append(made)

    def _branch(self, item: Item) -> None:
        is_open = item.path in self._open
        with ui.element("details") as branch:
            if is_open:
                branch.props("open")
            with ui.element("summary"):
                self._text(item)
            inside = ui.element("div").classes("sg-inside")

        def toggled(event: GenericEventArguments) -> None:
            if not event.args:
                self._open.discard(item.path)
            elif item.path not in self._open:
                self._open.add(item.path)
                self._fill(item, inside)

        branch.on("toggle", toggled, js_handler="(event) => emit(event.target.open)")
        if is_open:
            self._fill(item, inside)

    def _fill(self, item: Item, inside: ui.element, start: int = 0) -> None:
        """Show the parts inside, a page of them; those that changed come into view first where there are many."""
        if start == 0:
            inside.clear()
        found = parts(item)
        if self._only_changed:
            found = [one for one in found if one.mark != "same"]
        with inside:
            for one in found[start : start + _PAGE]:
                self._row(one)
            if (left := len(found) - start - _PAGE) > 0:
                more = button(f"{left:,} more", None, f"Show more of {dotted(item.path)}")

                def go_on() -> None:
                    more.delete()
                    self._fill(item, inside, start + _PAGE)

                more.on_click(go_on)
        self._allow()

    def _text(self, item: Item) -> None:
        ui.label(str(item.path[-1])).classes("sg-name")
        if item.mark == "changed" and not item.has_parts:
            ui.label(preview(item.before)).classes("sg-value sg-old").props('aria-label="before"')
            ui.label("to").classes("sg-muted")
        ui.label(preview(item.value)).classes("sg-value")
        if item.mark != "same":
            ui.label(_WORDS[item.mark]).classes("sg-mark")

    def _allow(self) -> None:
        """Let what can be edited be edited."""
        refused = self._run.refusal("edit") or (f"'{self._run.busy}' goes on" if self._run.busy else None)
        for made in self._edits:
            if made.is_deleted:
                continue
            made.set_enabled(refused is None)
            made.props(f"title={json.dumps(refused)}" if refused else "", remove="" if refused else "title")

    def _filter(self, event: Any) -> None:
        self._only_changed = bool(event.value)
        if self._editor is None:
            self._show()

    # -- editing ---------------------------------------------------------------------------------

    def _edit(self, item: Item, row: ui.element) -> None:
        if self._editor is not None:
            self._editor.focus()
            return
        assert self._of is not None
        field = next(one for one in self._fields if one.path[0] == item.path[0])
        self._editor = Editor(self._run, self._of, field.after, item.path, item.after, self._edited)
        with row:
            self._editor.build()

    async def _edited(self) -> None:
        """The editor is closed."""
        self._editor = None
        await self._read()


def dotted(path: Path) -> str:
    """A path in words, such as `items[3].name`."""
    text = str(path[0])
    for part in path[1:]:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text


async def panel(run: StudioRun) -> None:
    """The state at the cursor."""
    await StatePanel(run).build()
