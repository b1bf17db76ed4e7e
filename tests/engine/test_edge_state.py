"""State: edge cases 25 to 32 of the graph specification, on every store and both engines."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from support.graphs import flow

from graphagent import (
    Executor,
    Message,
    MessagesState,
    RemoveMessage,
    StateGraph,
    add,
    any_of,
    append,
    merge,
    union,
)
from graphagent.errors import InvalidUpdate, MutatedState, StateError, UndeclaredField, WriteConflict
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


WRONG_TYPES: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"items": "x"}, ("'items'", "list[str]", "'append'", "str")),
    ({"items": ["x", 3]}, ("'items[1]'", "3 (int)")),
    ({"scores": ["x"]}, ("'scores'", "dict[str, int]")),
    ({"scores": {"x": "much"}}, ("'scores['x']'", "'much' (str)")),
    ({"total": "many"}, ("'total'", "'int'", "'add'")),
    ({"name": 3}, ("'name'", "'str'", "'last'")),
    ({"name": None}, ("'name'", "None (NoneType)")),
]


async def test_e26_a_value_of_another_type(store: Any, engine: Any, lineage: str) -> None:
    """A wrong type fails the node that wrote it, and names field, types and rule; the old value stays."""
    for turn, (update, words) in enumerate(WRONG_TYPES):
        graph = returning({"items": ["kept"]}, update).compile()
        result = await Executor(graph, store, engine).run({"name": "old"}, lineage=f"{lineage}-{turn}")
        assert isinstance(result.error, InvalidUpdate)
        assert result.error.node == "w1"
        for word in ("node 'w1'", *words):
            assert word in result.reason
        assert (result.state.items, result.state.name) == (["kept"], "old")


async def test_e26_a_result_that_is_no_result(store: Any, engine: Any, lineage: str) -> None:
    """Anything but None, a mapping, Send, Sends or Command is an error that says so, never ignored."""
    for turn, value in enumerate([3, "text", ["a"], object()]):
        result = await Executor(returning(value).compile(), store, engine).run(lineage=f"{lineage}-{turn}")
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


async def test_e30_the_engine_keeps_nothing_in_the_state(store: Any, engine: Any, lineage: str) -> None:
    """No key is special: a name the engine of the reference uses inside is an undeclared field like any other."""
    for key in ("__command__", "__next_nodes__", "resume_map", "lineage_id", "session", "messages"):
        result = await Executor(returning({key: "x"}).compile(), store, engine).run(lineage=f"{lineage}-{key}")
        assert isinstance(result.error, UndeclaredField)
        assert set(result.state.model_dump()) == set(Wide.model_fields)


class Bounded(BaseModel):
    n: Annotated[int, Field(ge=0)] = 0


async def test_e26_constraints_of_a_field_hold(store: Any, engine: Any, lineage: str) -> None:
    """Annotated constraints are part of the type: a write that breaks one is an error."""
    result = await Executor(returning({"n": -1}, state=Bounded).compile(), store, engine).run(lineage=lineage)
    assert isinstance(result.error, InvalidUpdate)
    assert "greater than or equal to 0" in result.reason
