"""What nodes of a graph tell of themselves: how far they are, and what is of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ag_ui.core import ActivityDeltaEvent, ActivitySnapshotEvent, BaseEvent, CustomEvent

from graphagent.agents.function_tool import DELTA
from graphagent.ledger import Event
from runner.servers.agui.state import plain_copy

PROGRESS = "graph.node"
"""The type of the activity that shows a node's progress: `node`, `fraction` from 0 to 1, `message`."""
PIECES = "tool.result.stream"
"""The type of the activity that shows a tool's result as it comes: `toolCallId`, `name`, `pieces`."""
OWN = "node.custom"
"""The name of the CUSTOM event with what a node sends of its own: `node`, `kind`, `payload`."""
_AROUND = ("node", "activation", "failed")
"""Extensions of an event of a node that are not its own; `failed` names things of the server's."""


class Activities:
    """The activities of one run: each is shown whole once, then what changes of it."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._shown: dict[str, tuple[str, dict[str, Any]]] = {}  # message id -> type and content

    def take(self, event: Event) -> Iterator[BaseEvent]:
        """What an event of a node says."""
        node = str(event.extensions.get("node", ""))
        for kind, payload in event.extensions.items():
            if kind == "progress" and isinstance(payload, Mapping):
                yield from self._progress(event, node, payload)
            elif kind == DELTA and isinstance(payload, Mapping):
                yield from self._piece(payload)
            elif kind not in _AROUND:
                yield CustomEvent(name=OWN, value={"node": node, "kind": kind, "payload": plain_copy(payload)})

    def reopened(self) -> Iterator[BaseEvent]:
        """All of them as they are."""
        for name, (kind, content) in self._shown.items():
            yield ActivitySnapshotEvent(message_id=name, activity_type=kind, content=plain_copy(content))

    def _progress(self, event: Event, node: str, payload: Mapping[str, Any]) -> Iterator[BaseEvent]:
        place = f"{event.branch}/{event.extensions.get('activation', '')}"
        new = plain_copy({"node": node, "fraction": payload.get("fraction"), "message": payload.get("message")})
        name = f"activity-{self._run_id}-{place}"
        old = self._shown.get(name)
        self._shown[name] = PROGRESS, new
        if old is None:
            yield ActivitySnapshotEvent(message_id=name, activity_type=PROGRESS, content=new)
        elif old[1] != new:
            patch: list[Any] = [{"op": "replace", "path": f"/{key}", "value": new[key]} for key in new
                                if new[key] != old[1][key]]  # fmt: skip
            yield ActivityDeltaEvent(message_id=name, activity_type=PROGRESS, patch=patch)

    def _piece(self, payload: Mapping[str, Any]) -> Iterator[BaseEvent]:
        call, piece = str(payload.get("call_id", "")), plain_copy(payload.get("delta", ""))
        name = f"activity-{self._run_id}-{call}"
        if name not in self._shown:
            content = {"toolCallId": call, "name": str(payload.get("name", "")), "pieces": [piece]}
            self._shown[name] = PIECES, content
            yield ActivitySnapshotEvent(message_id=name, activity_type=PIECES, content=plain_copy(content))
            return
        self._shown[name][1]["pieces"].append(piece)
        patch: list[Any] = [{"op": "add", "path": "/pieces/-", "value": piece}]
        yield ActivityDeltaEvent(message_id=name, activity_type=PIECES, patch=patch)
