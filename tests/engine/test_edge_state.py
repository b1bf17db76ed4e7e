"""State: edge cases 25 to 32 of the graph specification, on every store and both engines."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field
from support.graphs import Trail, flow, says

from graphagent import (
    Executor,
    Message,
    MessagesState,
    RemoveMessage,
    Send,
    StateGraph,
    Transient,
    add,
    any_of,
    append,
    merge,
    union,
)
from graphagent.errors import EncodeError, InvalidUpdate, MutatedState, StateError, UndeclaredField, WriteConflict
from graphagent.messages import ReplaceLastUser

pytestmark = pytest.mark.anyio


class Wide(BaseModel):
    """A field of each merge rule."""

    items: Annotated[list[str], append] = []
    scores: Annotated[dict[str, int], merge] = {}
    total: Annotated[int, add] = 0
    tags: Annotated[list[str], union] = []
    verdict: Annotated[str, any_of] = ""
    name: str = ""


def returning(*updates: Any, state: type = Wide) -> StateGraph:
    """A chain of nodes w0 -> w1 ... each of which returns one of the updates."""

    def node(update: Any) -> Any:
        async def write(state: Any) -> Any:
            return update

        return write

    chain = "START -> " + " -> ".join(f"w{i}" for i in range(len(updates))) + " -> END"
    return flow(chain, state=state, **{f"w{i}": node(update) for i, update in enumerate(updates)})


async def test_e25_an_undeclared_key(store: Any, engine: Any, lineage: str) -> None:
    """A key that the state doesn't declare fails its node, with the nearest field in the message."""
    result = await Executor(returning({"itmes": ["x"]}).compile(), store, engine).run(lineage=lineage)
    assert isinstance(result.error, UndeclaredField)
    assert (result.error.node, result.error.field) == ("w0", "itmes")
    for part in ("node 'w0'", "'itmes'", "did you mean 'items'?"):
        assert part in result.reason


async def test_e25_an_undeclared_key_of_the_input(store: Any, engine: Any, lineage: str) -> None:
    """The caller's input is held to the same rule; the call raises and nothing is stored."""
    executor = Executor(returning({}).compile(), store, engine)
    with pytest.raises(UndeclaredField, match=r"the input writes 'nmae'.*did you mean 'name'\?"):
        await executor.run({"nmae": "x"}, lineage=lineage)
    assert await executor.history(lineage) == []


async def test_e25_declared_keys_merge(store: Any, engine: Any, lineage: str) -> None:
    """Each merge rule does to the old value what it says, over two steps and over a new turn's input."""
    updates = [
        {"items": ["a"], "scores": {"x": 1, "y": 1}, "total": 2, "tags": ["t", "t"], "verdict": "no", "name": "n"},
        {"items": ["b"], "scores": {"x": 5}, "total": 3, "tags": ["t", "u"], "verdict": "yes"},
    ]
    executor = Executor(returning(*updates).compile(), store, engine)
    state = (await executor.run({"items": ["in"], "total": 1}, lineage=lineage)).unwrap()
    assert state.model_dump() == {
        "items": ["in", "a", "b"],
        "scores": {"x": 5, "y": 1},
        "total": 6,
        "tags": ["t", "u"],
        "verdict": "yes",
        "name": "n",
    }
    again = (await executor.run({"items": ["new"], "total": 10}, lineage=lineage)).unwrap()
    assert (again.items, again.total) == (["in", "a", "b", "new", "a", "b"], 21)


async def test_e25_no_messages_are_no_update(store: Any, engine: Any, lineage: str) -> None:
    """None as an update of a message history changes nothing."""
    graph = returning({"messages": "hello"}, {"messages": None}, state=MessagesState).compile()
    state = (await Executor(graph, store, engine).run(lineage=lineage)).unwrap()
    assert [(m.role, m.text) for m in state.messages] == [("user", "hello")]


@pytest.mark.parametrize(
    ("update", "words"),
    [
        pytest.param({"items": "x"}, ["'items'", "list[str]", "'append'", "str"], id="append"),
        pytest.param({"items": ["x", 3]}, ["'items[1]'", "3 (int)"], id="append-item"),
        pytest.param({"scores": ["x"]}, ["'scores'", "dict[str, int]"], id="merge"),
        pytest.param({"scores": {"x": "much"}}, ["'scores['x']'", "'much' (str)"], id="merge-entry"),
        pytest.param({"total": "many"}, ["'total'", "'int'", "'add'"], id="add"),
        pytest.param({"name": 3}, ["'name'", "'str'", "'last'"], id="last"),
        pytest.param({"name": None}, ["'name'", "None (NoneType)"], id="none"),
    ],
)
async def test_e26_a_value_of_another_type(
    store: Any, engine: Any, lineage: str, update: dict[str, Any], words: list[str]
) -> None:
    """A wrong type fails the node that wrote it, and names field, types and rule; the old value stays."""
    graph = returning({"items": ["kept"]}, update).compile()
    result = await Executor(graph, store, engine).run({"name": "old"}, lineage=lineage)
    assert isinstance(result.error, InvalidUpdate)
    assert result.error.node == "w1"
    for word in ["node 'w1'", *words]:
        assert word in result.reason
    assert (result.state.items, result.state.name) == (["kept"], "old")


@pytest.mark.parametrize("value", [3, "text", ["a"], object()], ids=["int", "str", "list", "object"])
async def test_e26_a_result_that_is_no_result(store: Any, engine: Any, lineage: str, value: Any) -> None:
    """Anything but None, a mapping, Send, Sends or Command is an error that says so, never ignored."""
    result = await Executor(returning(value).compile(), store, engine).run(lineage=lineage)
    assert isinstance(result.error, InvalidUpdate)
    assert "node 'w0' returned" in result.reason
    assert "Command" in result.reason


async def test_e26_two_writers_of_one_field(store: Any, engine: Any, lineage: str) -> None:
    """Writers that run side by side on a field with room for one are an error naming the field and both."""

    async def write(state: Wide) -> dict[str, Any]:
        return {"name": "x"}

    graph = flow("START -> a, b -> END", state=Wide, a=write, b=write).compile()
    result = await Executor(graph, store, engine).run(lineage=lineage)
    assert isinstance(result.error, WriteConflict)
    for part in ("'a'", "'b'", "'name'"):
        assert part in result.reason


async def test_e27_remove_all_then_append(store: Any, engine: Any, lineage: str) -> None:
    """One update that first removes all messages and then brings new ones leaves just the new ones."""
    new = [RemoveMessage.all(), Message.assistant("fresh", id="m9")]
    graph = returning({"messages": new}, state=MessagesState).compile()
    given = {"messages": [Message.user("old", id="m1"), Message.assistant("older", id="m2")]}
    state = (await Executor(graph, store, engine).run(given, lineage=lineage)).unwrap()
    assert [message.text for message in state.messages] == ["fresh"]


@pytest.mark.parametrize(
    ("history", "texts"),
    [
        pytest.param([], ["new"], id="empty"),
        pytest.param([Message.assistant("hi")], ["hi", "new"], id="no-user-message"),
        pytest.param([Message.user("old"), Message.assistant("hi")], ["new", "hi"], id="last-of-all"),
    ],
)
async def test_e28_replace_last_user(
    store: Any, engine: Any, lineage: str, history: list[Message], texts: list[str]
) -> None:
    """The last user message anywhere gets the new text; without one, a message is appended."""
    graph = returning({"messages": ReplaceLastUser(last_user="new")}, state=MessagesState).compile()
    state = (await Executor(graph, store, engine).run({"messages": history}, lineage=lineage)).unwrap()
    assert [message.text for message in state.messages] == texts
    assert state.messages[texts.index("new")].role == "user"


@pytest.mark.parametrize("field", ["items", "scores"])
async def test_e29_a_change_in_place_is_found(
    store: Any, engine: Any, lineage: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that changes its state in place fails by name, and the state of the run and its rows stay as they were."""
    monkeypatch.setenv("GRAPHAGENT_DEBUG", "1")

    async def mutate(state: Wide) -> None:
        (state.items.append if field == "items" else lambda _: state.scores.update(x=2))("sneaked in")

    executor = Executor(flow("START -> m -> END", state=Wide, m=mutate).compile(), store, engine)
    result = await executor.run({"items": ["one"], "scores": {"x": 1}}, lineage=lineage)
    assert isinstance(result.error, MutatedState)
    assert f"node 'm' changed '{field}' of the state in place" in result.reason
    for state in (result.state, await executor.state(lineage)):
        assert (state.items, state.scores) == (["one"], {"x": 1})


async def test_e29_a_field_can_not_be_assigned(store: Any, engine: Any, lineage: str) -> None:
    """Assigning to the state a node was given is an error that says what to return instead."""

    async def assign(state: Wide) -> None:
        state.name = "x"

    result = await Executor(flow("START -> m -> END", state=Wide, m=assign).compile(), store, engine).run(
        lineage=lineage
    )
    assert isinstance(result.error, StateError)
    assert "'name' can't be assigned" in result.reason
    assert "return {'name': ...}" in result.reason


async def test_e29_handing_back_what_was_given(store: Any, engine: Any, lineage: str) -> None:
    """The very object of a field is no write for most rules; for a list that grows it is an error with the mend."""

    async def same(state: Wide) -> dict[str, Any]:
        return {"name": state.name, "scores": state.scores}

    async def doubling(state: Wide) -> dict[str, Any]:
        return {"items": state.items}

    graph = flow("START -> a, b -> END", state=Wide, a=same, b=same).compile()
    given = {"name": "kept", "scores": {"x": 1}, "items": ["one"]}
    state = (await Executor(graph, store, engine).run(given, lineage=lineage)).unwrap()
    assert (state.name, state.scores) == ("kept", {"x": 1})

    graph = flow("START -> a -> END", state=Wide, a=doubling).compile()
    result = await Executor(graph, store, engine).run(given, lineage=lineage + "-list")
    assert "return the new items only" in result.reason
    assert result.state.items == ["one"]


@pytest.mark.parametrize("key", ["__command__", "__next_nodes__", "resume_map", "lineage_id", "session", "messages"])
async def test_e30_the_engine_keeps_nothing_in_the_state(store: Any, engine: Any, lineage: str, key: str) -> None:
    """No key is special: a name the engine of the reference uses inside is an undeclared field like any other."""
    executor = Executor(returning({key: "x"}).compile(), store, engine)
    result = await executor.run(lineage=lineage)
    assert isinstance(result.error, UndeclaredField)
    assert set(result.state.model_dump()) == set(Wide.model_fields)


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
    executor = Executor(returning({"log": ["ok"]}, update, state=Loose).compile(), store, engine)
    result = await executor.run(lineage=lineage)
    assert isinstance(result.error, EncodeError)
    assert result.error.path.startswith(path)
    assert "node 'w1'" in result.reason
    assert (await executor.state(lineage)).log == ["ok"]


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


class Bounded(BaseModel):
    n: Annotated[int, Field(ge=0)] = 0


async def test_e26_constraints_of_a_field_hold(store: Any, engine: Any, lineage: str) -> None:
    """Annotated constraints are part of the type: a write that breaks one is an error."""
    result = await Executor(returning({"n": -1}, state=Bounded).compile(), store, engine).run(lineage=lineage)
    assert isinstance(result.error, InvalidUpdate)
    assert "greater than or equal to 0" in result.reason


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
