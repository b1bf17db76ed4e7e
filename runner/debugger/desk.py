"""What the commands of the debugger work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from graphagent.agents.invocation import Services
from graphagent.agents.secrets_in import MASK
from graphagent.debug.moment import Moment
from graphagent.debug.session import DebugSession, Stopped
from graphagent.engine.executor import Executor
from graphagent.errors import CheckpointNotFound, UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph


@dataclass(slots=True)
class Desk:
    """The session that is debugged, and what is known around it.

    `target`: what the command line named. `again`: loads the graph anew after its source was changed. `db`: of the
    store, for commands that are printed. `services`: those of an agent's runs; None if a graph is debugged.
    """

    session: DebugSession
    executor: Executor
    target: str
    db: str
    again: Callable[[], CompiledGraph]
    services: Services | None = None
    as_json: bool = False
    done: bool = False
    last: Stopped | None = field(default=None)

    @property
    def moment(self) -> Moment:
        """Where the cursor stands. Raises UsageError where there is nothing yet."""
        if self.last is None:
            raise UsageError("nothing has been opened or started yet: say 'start', or 'goto CHECKPOINT'")
        return self.session.moment

    async def graph(self) -> CompiledGraph:
        """The graph of the frame that the cursor is in. Raises CheckpointNotFound for one that has gone."""
        found = await self.session.graph_of()
        if found is None:
            space = self.moment.namespace
            raise CheckpointNotFound(f"the graph of child frame '{space}' is not in '{self.target}' any more")
        return found

    async def values(self) -> dict[str, Any]:
        """The state at the cursor, by field in order of declaration, without secrets."""
        values = await self.session.values()
        schema = (await self.graph()).schema
        return {name: MASK if name in schema.secret else values[name] for name in schema.names if name in values}

    async def node(self, name: str) -> str:
        """The name of a node of the graph at the cursor. Raises UsageError."""
        graph = await self.graph()
        if name not in graph.index:
            raise UsageError(f"there is no node '{name}' in graph '{graph.name}': {alternatives(name, graph.names)}")
        return name

    async def activation(self, wanted: str) -> tuple[str, Moment]:
        """An activation by its id, or the newest one of a node up to the cursor: its id, and the moment at which it was
        due. Raises UsageError."""
        moment = self.moment
        for one in moment.coming:
            if wanted in (one.activation, one.node):
                return one.activation, moment
        visit = wanted.rpartition("#")[2].partition("~")[0]
        node = node_of(wanted) if "#" in wanted else await self.node(wanted)
        for header in reversed(await self.session.timeline(moment.namespace)):
            ran = header.source == "step" and node in header.nodes and header.seq <= moment.seq
            if not ran or header.parent is None or ("#" in wanted and not visit.isdigit()):
                continue
            before = await self.session.stored.moment(header.namespace, header.parent)
            for one in before.coming:
                if wanted == one.activation or ("#" not in wanted and one.node == node):
                    return one.activation, before
        raise UsageError(f"'{wanted}' has not run up to here, and is not about to: 'history' lists what has run")


def node_of(activation: str) -> str:
    """The node in an activation's id (`<branch>/<node>#<step>`)."""
    return activation.rpartition("#")[0].rpartition("/")[2]
