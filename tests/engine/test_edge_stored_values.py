"""What is stored of a state and comes back: edge cases 31 and 32 of the graph specification."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict
from support.graphs import Trail, flow, says

from graphagent import Executor, Message, Send, StateGraph, Transient, append, merge
from graphagent.errors import EncodeError

pytestmark = pytest.mark.anyio


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    when: datetime.datetime


@dataclasses.dataclass
class Size:
    width: decimal.Decimal


class Client:
    """Something open that can't be stored."""


class Rich(BaseModel):
    """Values that a plain JSON round trip would lose."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    log: Annotated[list[str], append] = []
    messages: list[Message] = []
    point: Point | None = None
    size: Size | None = None
    colour: Colour = Colour.RED
    pairs: dict[int, tuple[str, ...]] = {}
    raw: bytes = b""
    kinds: set[str] = set()
    client: Transient[Client | None] = None
    extra: str = "default"


async def test_e31_a_restored_state_has_its_types(
    open_store: Any, anyio_backend: str, engine: Any, lineage: str
) -> None:
    """After a restart each declared field is of its type again; unset and transient ones have their defaults."""
    point = Point(x=1, when=datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC))
    kept = {
        "messages": [Message.user("hi", id="m1")],
        "point": point,
        "size": Size(decimal.Decimal("1.50")),
        "pairs": {7: ("a", "b")},
        "raw": b"\x00\xff",
        "kinds": {"k"},
    }
    seen: list[Any] = []

    async def make(state: Rich) -> dict[str, Any]:
        return {**kept, "client": Client()}

    async def look(state: Rich) -> None:
        seen.append(state)

    def graph() -> Any:
        return (
            flow("START -> make -> look -> END", state=Rich, make=make, look=look)
            .interrupt_before_nodes("look")
            .compile()
        )

    async with open_store() as store:
        assert (await Executor(graph(), store, engine).run(lineage=lineage)).status == "interrupted"
    async with open_store() as store:
        state = (await Executor(graph(), store, engine).resume(lineage)).unwrap()
    for view in (state, *seen):
        assert {name: getattr(view, name) for name in kept} == kept
        assert isinstance(view.messages[0], Message)
        assert (view.colour, view.client, view.extra) == (Colour.RED, None, "default")


class Loose(BaseModel):
    """A field that takes anything, and one that is never stored."""

    data: Any = None
    nested: dict[str, Any] = {}
    handle: Transient[Any] = None
    log: Annotated[list[str], append] = []


@pytest.mark.parametrize(
    ("update", "path"),
    [
        pytest.param({"data": lambda: None}, "state.data", id="function"),
        pytest.param({"nested": {"a": [1, {"b": object()}]}}, "state.nested['a'][1]['b']", id="nested"),
    ],
)
async def test_e32_a_value_that_can_not_be_stored(
    store: Any, engine: Any, lineage: str, update: dict[str, Any], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails the node that wrote it, at write time, with the path to it; the last good row stands.

    A store in memory keeps values as they are; there the debug mode of tests finds what a database would refuse.
    """
    if not store.persistent:
        monkeypatch.setenv("GRAPHAGENT_DEBUG", "1")
    executor = Executor(flow("START -> w0 -> w1 -> END", state=Loose, w1=says("w1", **update)).compile(), store, engine)
    result = await executor.run(lineage=lineage)
    assert isinstance(result.error, EncodeError)
    assert result.error.path.startswith(path)
    assert "node 'w1'" in result.reason
    assert (await executor.state(lineage)).log == ["w0"]


async def test_e32_an_overlay_that_can_not_be_stored(
    store: Any, engine: Any, lineage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Send's overlay is part of the checkpoint, so it is held to the same rule; the sender is named."""
    if not store.persistent:
        monkeypatch.setenv("GRAPHAGENT_DEBUG", "1")

    async def split(state: Loose) -> Send:
        return Send("worker", {"data": object()})

    builder = StateGraph(Loose).add_node("split", split, destinations=["worker"]).add_node("worker", says("worker"))
    result = await Executor(builder.set_entry_point("split").compile(), store, engine).run(lineage=lineage)
    assert isinstance(result.error, EncodeError)
    assert "'split'" in result.reason
    assert "data" in result.error.path


async def test_e32_transient_fields_are_never_stored(store: Any, engine: Any, lineage: str) -> None:
    """What can't be stored may live in a `Transient` field: nodes of the run see it, no row has it."""
    handle = object()

    async def opens(state: Loose) -> dict[str, Any]:
        return {"handle": handle, "log": ["open"]}

    async def uses(state: Loose) -> dict[str, Any]:
        return {"log": [str(state.handle is handle)]}

    executor = Executor(flow("START -> a -> b -> END", state=Loose, a=opens, b=uses).compile(), store, engine)
    assert (await executor.run(lineage=lineage)).unwrap().log == ["open", "True"]
    for header in await executor.history(lineage):
        assert (await executor.state(lineage, header.id)).handle is None


async def test_e31_a_field_that_came_later_has_its_default(store: Any, engine: Any, lineage: str) -> None:
    """A run that was stored before a field was declared resumes with that field's default."""

    class Later(Trail):
        """Trail with one more field."""

        added: Annotated[dict[str, int], merge] = {"start": 1}

    async def look(state: Any) -> dict[str, Any]:
        return {"log": [str(state.added)]}

    for state in (Trail, Later):
        graph = flow("START -> a -> b -> END", state=state, b=look).interrupt_before_nodes("b").compile()
        executor = Executor(graph, store, engine)
        if state is Trail:
            assert (await executor.run(lineage=lineage)).status == "interrupted"
    assert (await executor.resume(lineage)).unwrap().log == ["a", "{'start': 1}"]
