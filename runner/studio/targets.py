"""Which graph a stored run is of: one that was named on the command line, or else the document that the store keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from graphagent.agents.graph_agent import GraphAgent
from graphagent.checkpoint.store import CheckpointStore
from graphagent.engine.frame import Mode
from graphagent.errors import GraphAgentError
from graphagent.graph.compiled import CompiledGraph
from graphagent.validation.version import Version


@dataclass(frozen=True, slots=True)
class Target:
    """A graph that was named: `place` is what was said (`module:name`). `agent`: set if it is that of an agent, whose
    runs are in the namespace of its name."""

    place: str
    graph: CompiledGraph
    agent: GraphAgent | None = None

    @property
    def namespace(self) -> str:
        """The frame in which its runs are."""
        return self.agent.name if self.agent is not None else ""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the graph of a run. `target` None: only its document is, so nothing of it can be run; `graph`
    None: not even that."""

    graph: CompiledGraph | None = None
    target: Target | None = None


class Targets:
    """The named graphs, and those that were read from documents of a store."""

    def __init__(self, named: Sequence[Target], engine: Mode = "superstep") -> None:
        self.named = tuple(named)
        self.engine: Mode = engine
        self._read: dict[str, CompiledGraph | None] = {}

    async def of(self, store: CheckpointStore, fingerprint: str, namespace: str = "") -> Known:
        """The graph of a run whose rows have this fingerprint: a named one that is the same, or of the same name, else
        what the document says."""
        fitting = [target for target in self.named if target.namespace == namespace]
        for target in fitting:
            if target.graph.fingerprint == fingerprint:
                return Known(target.graph, target)
        document = await store.graph(fingerprint)
        name = None if document is None else document.get("name")
        for target in fitting:
            if target.graph.name == name or (document is None and len(self.named) == 1):
                return Known(target.graph, target)
        return Known(self._from_document(fingerprint, document))

    def _from_document(self, fingerprint: str, document: Mapping[str, Any] | None) -> CompiledGraph | None:
        if fingerprint not in self._read:
            self._read[fingerprint] = None
            if document is not None:
                with suppress(GraphAgentError):  # of an old release: the run is shown without its picture
                    self._read[fingerprint] = Version.read(document, path="the store").graph
        return self._read[fingerprint]
