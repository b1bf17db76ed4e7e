"""What LangGraph's builder and compiled graph look like from outside, without LangGraph: for the converter's tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

START, END = "__start__", "__end__"


class Send:
    """Like LangGraph's: one task for a node, with a state of its own."""

    def __init__(self, node: str, arg: Any) -> None:
        self.node, self.arg = node, arg


class Command:
    """Like LangGraph's: an update and where to go."""

    def __init__(self, *, goto: Any = (), update: Any = None) -> None:
        self.goto, self.update = goto, update

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


class Wrapped:
    """A runnable around a function, like LangGraph's `RunnableCallable`."""

    def __init__(self, func: Callable[..., Any] | None, afunc: Callable[..., Any] | None = None) -> None:
        self.func, self.afunc = func, afunc

    def invoke(self, value: Any) -> Any:
        """Runnables have one."""


class Spec:
    """A node as declared."""

    def __init__(self, runnable: Any, *, ends: Any = (), defer: bool = False, handler: str | None = None) -> None:
        self.runnable, self.ends, self.defer = runnable, ends, defer
        self.error_handler_node, self.retry_policy = handler, None


class Branch:
    """A conditional edge: its router, and what its path map leads to."""

    def __init__(self, path: Any, ends: Mapping[Any, str] | None) -> None:
        self.path, self.ends = path, ends


class Builder:
    """A `StateGraph` under construction; `shape` is a list of edges, a list of sources making a waiting one."""

    def __init__(self, *shape: tuple[Any, str], **nodes: Spec) -> None:
        self.edges = {edge for edge in shape if isinstance(edge[0], str)}
        self.waiting_edges = {(tuple(sources), target) for sources, target in shape if not isinstance(sources, str)}
        ids = [
            end for sources, target in shape for end in (*([sources] if isinstance(sources, str) else sources), target)
        ]
        plain = [id for id in dict.fromkeys(ids) if id not in (START, END)]
        self.nodes = {**{id: Spec(Wrapped(lambda state: {})) for id in plain if id not in nodes}, **nodes}
        self.branches: dict[str, dict[str, Branch]] = defaultdict(dict)
        self.channels: dict[str, Any] = {}

    def route(self, source: str, router: Any, ends: Any = None) -> Builder:
        """Conditional edges out of a node."""
        path = Wrapped(router)
        declared = {end: end for end in ends} if isinstance(ends, list) else ends
        self.branches[source][f"{len(self.branches[source])}"] = Branch(path, declared)
        return self


class Compiled:
    """A compiled graph."""

    def __init__(self, builder: Builder, *, name: str = "LangGraph", **options: Any) -> None:
        self.builder, self.name = builder, name
        self.nodes = builder.nodes
        self.checkpointer = options.get("checkpointer")
        self.interrupt_before_nodes = options.get("before", [])
        self.interrupt_after_nodes = options.get("after", [])
        self.inside: dict[str, Any] = options.get("inside", {})

    def get_graph(self) -> Any:
        """The drawing, which a compiled graph can always give."""
        raise AssertionError("the builder shows more than the drawing")

    def get_subgraphs(self) -> Any:
        """The graphs inside, by node."""
        yield from self.inside.items()
