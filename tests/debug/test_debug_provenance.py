"""Which activation wrote which part of a field."""

from __future__ import annotations

import random
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from support.writing import Writers, moment_at, random_case

from graphagent import (
    END,
    START,
    Executor,
    Limits,
    MemoryCheckpoints,
    Message,
    Send,
    SqlCheckpoints,
    StateGraph,
    append,
    merge,
    messages,
)
from graphagent.checkpoint.record import Retention
from graphagent.debug.provenance import Part, provenance
from graphagent.debug.rows import UNKNOWN
from graphagent.errors import UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.messages import RemoveMessage
from graphagent.testing.store_proxy import StoreProxy

pytestmark = pytest.mark.anyio
FIELDS = ("log", "notes", "seen", "named", "table", "places", "visits", "talk", "total", "newest", "agreed", "item")


def together(parts: list[Part], value: Any) -> Any:
    """What the parts make if put together, in the class of the value."""
    if isinstance(value, dict):
        return {part.key: part.value for part in parts}
    if isinstance(value, list | tuple | set):
        assert [part.span[0] for part in parts if part.span][1:] == [part.span[1] for part in parts if part.span][:-1]
        return type(value)(item for part in parts for item in part.value)
    return parts[0].value if len(parts) == 1 else None


async def assert_told(executor: Executor, nodes: Writers, lineage: str, seq: int) -> None:
    """The parts of every field at a row are its value, and items that say whose they are come from there."""
    state = await executor.state(lineage, seq)
    for name in FIELDS:
        parts = await provenance(executor, moment_at(lineage, seq), name)
        assert together(parts, getattr(state, name)) == getattr(state, name)
        assert all(part.activation != UNKNOWN for part in parts), name
        marked = [(part.activation, item) for part in parts if name in ("log", "notes") for item in part.value]
        marked += [(part.activation, part.key) for part in parts if name == "table"]
        for activation, item in marked:
            namespace, own, _ = item.split("|")
            if namespace:
                assert activation.rpartition("#")[0] == namespace.partition("@")[0]
            else:
                assert activation == own
        if name == "newest" and "|" in state.newest and not state.newest.partition("|")[0]:
            assert parts[0].activation.split(", ")[-1] == state.newest.partition("|")[2]


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10_000), engine=st.sampled_from(("superstep", "eager")))
async def test_parts_together_are_the_value(seed: int, engine: Any) -> None:
    """Random graphs of nodes that write at random: at any row the parts put together are the value, each from the
    activation that wrote it."""
    case = random_case(seed)
    if case is None:
        return
    graph, nodes = case
    executor = Executor(graph, MemoryCheckpoints(), engine)
    result = await executor.run(lineage="l")
    assert result.ok, result.reason
    for header in random.Random(seed).sample(await executor.history("l"), 1):
        await assert_told(executor, nodes, "l", header.seq)


@pytest.mark.parametrize("seed", [3, 4])
async def test_every_store_tells_the_same(store: Any, engine: Any, lineage: str, seed: int) -> None:
    """Databases keep plain data, and in snapshots: the parts are told alike."""
    case = random_case(seed)
    assert case is not None
    graph, nodes = case
    executor = Executor(graph, store, engine)
    assert (await executor.run(lineage=lineage)).ok
    for header in (await executor.history(lineage))[:2]:
        await assert_told(executor, nodes, lineage, header.seq)


class Talk(BaseModel):
    log: Annotated[list[str], append] = []
    by_key: Annotated[dict[str, int], merge] = {}
    last: str = ""
    round: int = 0


def loop(rounds: int, *, wide: bool = False) -> CompiledGraph:
    """A node that comes `rounds` times; with `wide` two others write beside it in the first round."""

    async def turn(state: Talk) -> dict[str, Any]:
        number = state.round + 1
        return {"log": [f"{number}"], "by_key": {f"k{number % 3}": number}, "last": f"{number // 4}", "round": number}

    async def beside(state: Talk) -> dict[str, Any]:
        return {"log": ["beside"], "by_key": {"beside": 1}}

    graph = StateGraph(Talk).add_node("turn", turn).add_node("beside", beside)
    graph.set_entry_point(*(["turn", "beside"] if wide else ["turn"]))
    graph.add_conditional_edges("turn", lambda s: "turn" if s.round % rounds else END, ["turn", END])
    return graph.compile()


async def told(executor: Executor, lineage: str, field: str, seq: int | None = None) -> list[tuple[Any, ...]]:
    """The parts of a field as short tuples, checkpoints without the lineage's name."""
    headers = await executor.history(lineage)
    moment = moment_at(lineage, headers[0].seq if seq is None else seq)
    parts = await provenance(executor, moment, field)
    return [(part.what, part.checkpoint.rpartition(":")[2], part.activation) for part in parts]


async def test_turns_inputs_and_edits_are_named(store: Any, lineage: str) -> None:
    """Items of an input, of nodes and of an edit, over two turns; the last writer of a plain field; entries by key."""
    executor = Executor(loop(2), store)
    await executor.run({"log": ["hello"]}, lineage=lineage)
    header = await executor.edit(lineage, None, {"log": ["hello", "1", "2", "edited"], "last": "by hand"})
    await executor.run({"log": ["again"]}, lineage=lineage)
    assert await told(executor, lineage, "log", header.seq) == [
        ("items[0:1]", "0", "input"),
        ("items[1:2]", "1", "turn#1"),
        ("items[2:3]", "2", "turn#2"),
        ("items[3:4]", "4", "edit"),
    ]
    assert await told(executor, lineage, "last", header.seq) == [("value", "4", "edit")]
    assert await told(executor, lineage, "log") == [
        ("items[0:1]", "0", "input"),
        ("items[1:2]", "1", "turn#1"),
        ("items[2:3]", "2", "turn#2"),
        ("items[3:4]", "4", "edit"),
        ("items[4:5]", "5", "input"),
        ("items[5:6]", "6", "turn#3"),
        ("items[6:7]", "7", "turn#4"),
    ]
    assert await told(executor, lineage, "by_key") == [
        ("key 'k1'", "7", "turn#4"),
        ("key 'k2'", "2", "turn#2"),
        ("key 'k0'", "6", "turn#3"),
    ]
    assert await told(executor, lineage, "last") == [("value", "7", "turn#4")]


async def test_only_what_goes_on_into_a_turn_is_looked_for_behind_it(store: Any, lineage: str) -> None:
    """With `carry` the other fields begin anew; what went on is still from the turn before."""
    executor = Executor(loop(2), store)
    await executor.run({"log": ["hello"]}, lineage=lineage)
    await executor.run({"log": ["again"]}, lineage=lineage, carry=["log"])
    assert [activation for _, _, activation in await told(executor, lineage, "log")] == [
        *("input", "turn#1", "turn#2", "input", "turn#3", "turn#4")
    ]
    assert [activation for _, _, activation in await told(executor, lineage, "by_key")] == ["turn#3", "turn#4"]


async def test_a_fork_is_looked_through_into_the_other_lineage(store: Any, lineage: str) -> None:
    """Parts that a fork took over are from the rows of the lineage it was made from, while those are there."""
    executor = Executor(loop(4), store)
    await executor.run(lineage=lineage)
    other = f"{lineage}-fork"
    await executor.fork(lineage, 2, new_lineage=other)
    await executor.resume(other)
    newest = (await executor.history(other))[0].seq
    parts = await provenance(executor, moment_at(other, newest), "log")
    assert [(part.checkpoint, part.activation) for part in parts] == [
        (f"{lineage}:1", "turn#1"),
        (f"{lineage}:2", "turn#2"),
        (f"{other}:1", "turn#3"),
        (f"{other}:2", "turn#4"),
    ]
    await executor.delete(lineage)
    assert await told(executor, other, "log") == [
        ("items[0:2]", "0", "fork"),
        ("items[2:3]", "1", "turn#3"),
        ("items[3:4]", "2", "turn#4"),
    ]


async def test_going_back_in_a_lineage_leaves_out_what_was_left(store: Any, lineage: str) -> None:
    """After a resume at an older checkpoint parts come from the rows before it and from the new ones only."""
    executor = Executor(loop(4), store)
    await executor.run(lineage=lineage)
    await executor.resume(lineage, checkpoint=2)
    assert await told(executor, lineage, "log") == [
        ("items[0:1]", "1", "turn#1"),
        ("items[1:2]", "2", "turn#2"),
        ("items[2:3]", "7", "turn#3"),
        ("items[3:4]", "8", "turn#4"),
    ]
    assert await told(executor, lineage, "last") == [("value", "8", "turn#4")]


async def test_snapshots_and_equal_values_hide_no_writer(store: Any, lineage: str) -> None:
    """Over rows that are snapshots: entries keep their writer, a value that only a snapshot repeats does too."""
    executor = Executor(loop(150), store)
    await executor.run({"last": "x"}, lineage=lineage)
    parts = await told(executor, lineage, "by_key")
    assert [activation for _, _, activation in parts] == ["turn#148", "turn#149", "turn#150"]
    items = await told(executor, lineage, "log")
    assert [activation for _, _, activation in items] == [f"turn#{number}" for number in range(1, 151)]


async def test_pruned_rows_are_not_guessed_at(store: Any, lineage: str) -> None:
    """What lies behind a gap is told as unknown, what came after it as before."""
    executor = Executor(loop(6), store)
    await executor.run(lineage=lineage)
    await executor.prune(Retention(keep_last=4), lineage=lineage)
    parts = await told(executor, lineage, "log")
    assert [activation for _, _, activation in parts[-2:]] == ["turn#5", "turn#6"]
    assert {activation for _, _, activation in parts[:-2]} == {UNKNOWN}
    assert sum(1 for what, *_ in parts) < 6


async def test_rows_without_a_note_are_unknown(lineage: str) -> None:
    """Rows of an older release don't say who of several wrote a field; one activation alone is told all the same."""
    store = MemoryCheckpoints()
    executor = Executor(loop(2, wide=True), store)
    await executor.run(lineage=lineage)
    for row in await store.changes(lineage, "", 0, 99):
        row.note = None
    assert await told(executor, lineage, "log") == [
        ("items[0:2]", "1", UNKNOWN),
        ("items[2:3]", "2", "turn/turn#2"),
    ]
    assert [one[2] for one in await told(executor, lineage, "by_key")] == [UNKNOWN, UNKNOWN, "turn/turn#2"]


async def test_steps_saved_as_one_are_unknown(store: Any, lineage: str) -> None:
    """With durability `exit` one row stands for all steps, so no activation can be named."""
    executor = Executor(loop(3), store, durability="exit")
    await executor.run(lineage=lineage)
    assert {activation for _, _, activation in await told(executor, lineage, "log")} == {UNKNOWN}


class Slow(StoreProxy):
    """A store that doesn't tell changes; `loads` counts how often a state is read."""

    changes = None
    loads = 0

    async def load(self, *args: Any, **kwargs: Any) -> Any:
        self.loads += 1
        return await super().load(*args, **kwargs)


async def test_a_store_without_changes_is_looked_through_row_by_row(store: Any, lineage: str) -> None:
    """A store of somebody else, which has the port only, gives the same answer."""
    executor = Executor(loop(4, wide=True), store)
    await executor.run({"log": ["hello"]}, lineage=lineage)
    slow = Executor(executor.graph, Slow(store))
    for field in ("log", "by_key", "last"):
        assert await told(slow, lineage, field) == await told(executor, lineage, field)


async def test_replaced_and_removed_messages(store: Any, lineage: str) -> None:
    """A message that was replaced is the replacing node's; those that others wrote stay theirs."""

    class State(BaseModel):
        talk: Annotated[list[Message], messages] = []

    def says(*said: Any) -> Any:
        async def node(state: State) -> dict[str, Any]:
            return {"talk": list(said)}

        return node

    def message(text: str, id: str) -> Message:
        return Message.assistant(text).model_copy(update={"id": id})

    graph = StateGraph(State).add_node("first", says(message("a", "1"), message("b", "2"), message("c", "3")))
    graph.add_node("mend", says(message("B", "2"), message("d", "4"))).add_node("cut", says(RemoveMessage(remove="1")))
    graph.add_edge(START, "first").add_edge("first", "mend").add_edge("mend", "cut").add_edge("cut", END)
    executor = Executor(graph.compile(), store)
    assert (await executor.run(lineage=lineage)).ok
    assert await told(executor, lineage, "talk") == [
        ("items[0:1]", "2", "mend#2"),
        ("items[1:2]", "1", "first#1"),
        ("items[2:3]", "2", "mend#2"),
    ]


async def test_fields_that_have_no_provenance(store: Any, lineage: str) -> None:
    """An unknown field is an error with the nearest name; an unset one has no parts."""

    class State(BaseModel):
        needed: str

    async def nothing(state: State) -> None:
        return None

    graph = StateGraph(State).add_node("nothing", nothing).set_entry_point("nothing").set_finish_point("nothing")
    executor = Executor(graph.compile(), store)
    await executor.run(lineage=lineage)
    assert await provenance(executor, moment_at(lineage, 1), "needed") == []
    with pytest.raises(UsageError, match="no field 'neded': did you mean 'needed'"):
        await provenance(executor, moment_at(lineage, 1), "neded")


async def test_workers_of_a_fan_out_have_their_items(store: Any, lineage: str) -> None:
    """Each of many workers is named by its branch."""

    class State(BaseModel):
        item: int = 0
        found: Annotated[list[int], append] = []

    async def split(state: State) -> list[Send]:
        return [Send("worker", {"item": i}) for i in range(20)]

    async def worker(state: State) -> dict[str, Any]:
        return {"found": [state.item] * (state.item % 3)}

    graph = StateGraph(State).add_node("split", split, destinations=["worker"]).add_node("worker", worker)
    executor = Executor(graph.set_entry_point("split").compile(), store)
    await executor.run(lineage=lineage)
    parts = await provenance(executor, moment_at(lineage, 2), "found")
    assert [(part.activation, part.value) for part in parts] == [
        (f"worker[{i}]/worker#2", [i] * (i % 3)) for i in range(20) if i % 3
    ]


async def test_a_long_history_is_walked_without_its_states(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2,000 rows one state is loaded, whatever the field."""
    monkeypatch.setenv("GRAPHAGENT_DEBUG", "0")
    async with SqlCheckpoints(f"{tmp_path}/long.db") as inner:
        executor = Executor(loop(2000), inner, limits=Limits(max_steps=4000))
        await executor.run(lineage="l")
        store = Slow(inner)
        store.__dict__["changes"] = inner.changes
        parts = await provenance(Executor(executor.graph, store), moment_at("l", 2000), "log")
        assert [part.activation for part in parts] == [f"turn#{number}" for number in range(1, 2001)]
        assert store.loads == 1
