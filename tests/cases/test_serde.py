"""Public fault reports about stored values (kind `serde`): what comes back after a save is what was put in, or nothing
was put in and the node that tried is named. Every case goes through a run, a pause and a store that was opened again.
"""

from __future__ import annotations

import collections
import dataclasses
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, create_model

from graphagent import Executor, NodeContext, SqlCheckpoints, StateGraph, Transient
from graphagent.errors import CheckpointError, EncodeError

pytestmark = pytest.mark.anyio


async def after_a_pause(open_store: Callable[[], Any], lineage: str, declared: Any, value: Any) -> Any:
    """The value as a node sees it that runs after a pause, in another executor on a store that was opened again."""
    found = []
    state = create_model("State", value=(declared | None, None))

    async def write(state: Any) -> dict[str, Any]:
        return {"value": value}

    async def ask(state: Any, ctx: NodeContext) -> None:
        await ctx.interrupt("go on")
        found.append(state.value)

    graph = StateGraph(state).add_node("write", write).add_node("ask", ask)
    compiled = graph.set_entry_point("write").add_edge("write", "ask").set_finish_point("ask").compile()
    async with open_store() as store:
        result = await Executor(compiled, store).run({}, lineage=lineage)
        if result.error is not None:
            raise result.error
        assert result.status == "interrupted"
    async with open_store() as store:
        (await Executor(compiled, store).resume(lineage, answer=True)).unwrap()
    return found[0]


async def kept_or_refused(
    open_store: Callable[[], Any], lineage: str, declared: Any, value: Any
) -> tuple[Any, EncodeError | None]:
    """What came back, or why the node that wrote it was refused."""
    try:
        return await after_a_pause(open_store, lineage, declared, value), None
    except EncodeError as error:
        return None, error


# -- C129 --------------------------------------------------------------------------------------------

CONTAINERS = {
    "defaultdict": (defaultdict[str, list[int]], defaultdict(list, {"a": [1]}), lambda v: v["new"] == []),
    "counter": (Counter[str], Counter("abracadabra"), lambda v: v.most_common(1) == [("a", 5)]),
    "ordered": (OrderedDict[str, int], OrderedDict([("b", 1), ("a", 2)]), lambda v: v.popitem(last=False)[0] == "b"),
    "bounded": (deque[int], deque([1, 2, 3], maxlen=3), lambda v: v.maxlen == 3),
}


@pytest.mark.parametrize("name", list(CONTAINERS))
async def test_c129_containers_keep_class_and_behaviour(open_store: Any, lineage: str, name: str) -> None:
    """A default map, counter, ordered map or bounded deque that is declared as such comes back as such."""
    declared, value, behaves = CONTAINERS[name]
    found = await after_a_pause(open_store, lineage, declared, value)
    assert type(found) is type(value)
    assert found == value
    assert behaves(found)


@pytest.mark.parametrize("name", list(CONTAINERS))
async def test_c129_containers_inside_any_are_refused_or_kept(open_store: Any, lineage: str, name: str) -> None:
    """In a field of type Any no special container turns into a plain one unseen."""
    _, value, _ = CONTAINERS[name]
    found, refused = await kept_or_refused(open_store, lineage, Any, {"inner": value})
    if refused is not None:
        assert refused.path == "state.value['inner']"
        assert "node 'write'" in str(refused)
    else:
        assert type(found["inner"]) is type(value)


# -- C130 --------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Area:
    width: int
    size: int = dataclasses.field(init=False, default=0)

    def __post_init__(self) -> None:
        self.size = self.width**2


@dataclasses.dataclass(frozen=True)
class Fixed:
    width: int
    size: int = dataclasses.field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.width**2)


@pytest.mark.parametrize("value", [Area(3), Fixed(4)], ids=["plain", "frozen"])
async def test_c130_a_computed_field_survives(open_store: Any, lineage: str, value: Any) -> None:
    """A data class with a field that its constructor computes comes back equal."""
    found = await after_a_pause(open_store, lineage, type(value), value)
    assert (type(found), found, found.size) == (type(value), value, value.width**2)


async def test_c130_a_computed_field_that_was_changed(open_store: Any, lineage: str) -> None:
    """What the field held when it was saved counts, not what the constructor would make of it."""
    value = Area(3)
    value.size = 77
    assert (await after_a_pause(open_store, lineage, Area, value)).size == 77


# -- C131 --------------------------------------------------------------------------------------------

NEW_YORK = ZoneInfo("America/New_York")
MOMENTS = {
    "before the change": datetime(2026, 10, 31, 12, 0, tzinfo=NEW_YORK),
    "repeated hour, first": datetime(2026, 11, 1, 1, 30, tzinfo=NEW_YORK),
    "repeated hour, second": datetime(2026, 11, 1, 1, 30, tzinfo=NEW_YORK, fold=1),
    "utc": datetime(2026, 11, 1, 1, 30, tzinfo=UTC),
    "naive": datetime(2026, 11, 1, 1, 30, fold=1),
}


@pytest.mark.parametrize("declared", [datetime, Any], ids=["declared", "any"])
@pytest.mark.parametrize("name", list(MOMENTS))
async def test_c131_zone_and_fold_survive(open_store: Any, lineage: str, name: str, declared: Any) -> None:
    """A date-time keeps its zone's name and the repeated-hour flag: a day later is what it was before saving."""
    moment = MOMENTS[name]
    found = await after_a_pause(open_store, lineage, declared, moment)
    assert (found, found.fold, str(found.tzinfo)) == (moment, moment.fold, str(moment.tzinfo))
    later, wanted = found + timedelta(days=1), moment + timedelta(days=1)
    assert (later, later.utcoffset()) == (wanted, wanted.utcoffset())


# -- C132 and C133 -----------------------------------------------------------------------------------


class Scalar64(float):
    """Like the scalar of a numeric library: a subclass of float of foreign make."""


Scalar64.__module__ = "numpy"


class Array:
    """Like an array of a numeric library: no class that the codec knows."""

    def __init__(self, *items: object) -> None:
        self.items = items


Array.__module__ = "numpy"


@pytest.mark.parametrize("value", [Scalar64(0.5), Array(1, 2), Array(object())], ids=["scalar", "array", "objects"])
@pytest.mark.parametrize("nested", [False, True])
async def test_c132_c133_foreign_numbers_are_refused(open_store: Any, lineage: str, value: Any, nested: bool) -> None:
    """Scalars and arrays of a numeric library are refused at the writing node, with the path and the way to convert.

    The library itself is no dependency; classes that say they come from it stand for its own. Nothing of the value is
    written: no memory address, no opaque bytes. The memory store keeps the value itself.
    """
    given = {"mean": [value]} if nested else value
    found, refused = await kept_or_refused(open_store, lineage, Any, given)
    if refused is not None:
        assert "node 'write'" in str(refused)
        assert refused.path == ("state.value['mean'][0]" if nested else "state.value")
        assert ".item() or .tolist()" in str(refused)
        assert "0x" not in str(refused)
    else:
        assert (found["mean"][0] if nested else found) is value


# -- C134 --------------------------------------------------------------------------------------------

TEXTS = {
    "nul": "a\0b",
    "escaped nul": "a\\u0000b",
    "surrogate": "a\ud800b",
    "emoji": "🙂\u200d🙂",
    "controls": "\x01\x7f\x85",
}


@pytest.mark.parametrize("name", list(TEXTS))
async def test_c134_any_text_round_trips(open_store: Any, lineage: str, name: str) -> None:
    """Text with NUL and other odd characters is the same after a save, and the thread can be listed."""
    text = TEXTS[name]
    assert await after_a_pause(open_store, lineage, Any, {text: [text]}) == {text: [text]}
    async with open_store() as store:
        assert await store.history(lineage)
        assert lineage in await store.lineages(prefix=lineage)


async def test_c134_names_that_databases_refuse(store: Any) -> None:
    """A lineage with a NUL in its name is refused before anything runs, on every store."""
    ran = []

    async def node(state: Any) -> None:
        ran.append(1)

    state = create_model("State", n=(int, 0))
    graph = StateGraph(state).add_node("node", node).set_entry_point("node").set_finish_point("node").compile()
    with pytest.raises(CheckpointError, match="NUL"):
        await Executor(graph, store).run({}, lineage="a\0b")
    assert ran == []


# -- C140 --------------------------------------------------------------------------------------------


class Client:
    """An open connection: nothing that could be stored."""


class Handles(BaseModel, arbitrary_types_allowed=True):
    found: Any = None
    client: Transient[Client | None] = None
    answer: str = ""


def handles(write: Callable[..., Any], seen: list[Any]) -> StateGraph:
    """`write` -> `ask`, which asks, and notes whether the client is there."""

    async def ask(state: Handles, ctx: NodeContext) -> dict[str, Any]:
        seen.append(state.client)
        return {"answer": await ctx.interrupt("approve", answer_type=str), "client": state.client or Client()}

    graph = StateGraph(Handles).add_node("write", write).add_node("ask", ask)
    return graph.set_entry_point("write").add_edge("write", "ask").set_finish_point("ask")


@pytest.mark.parametrize("durability", ["step", "exit"])
async def test_c140_a_handle_is_refused_before_the_pause(
    database: str, engine: Any, lineage: str, durability: Any
) -> None:
    """An open client inside a value fails the run with the path, and no pause is announced.

    With durability `step` the node that wrote it is named; with `exit` nothing is written before the pause.
    """

    async def write(state: Handles) -> dict[str, Any]:
        return {"found": {"text": "hi", "raw": [Client()]}}

    async with SqlCheckpoints(database) as store:
        executor = Executor(handles(write, []).compile(), store, engine, durability=durability)
        result = await executor.run({}, lineage=lineage)
        assert (result.status, result.interrupts) == ("failed", ())
        assert isinstance(result.error, EncodeError)
        assert "state.found['raw'][0]" in str(result.error)
        if durability == "step":
            assert "node 'write'" in str(result.error)
        assert await executor.interrupts(lineage) == []


async def test_c140_a_transient_field_is_rebuilt(open_store: Any, engine: Any, lineage: str) -> None:
    """A field declared `Transient` carries the client within the run; after a restart it has its default again."""
    client, seen = Client(), []

    async def write(state: Handles) -> dict[str, Any]:
        return {"client": client, "found": 1}

    compiled = handles(write, seen).compile()
    async with open_store() as store:
        assert (await Executor(compiled, store, engine).run({}, lineage=lineage)).status == "interrupted"
    async with open_store() as store:
        result = await Executor(compiled, store, engine).resume(lineage, {"approve": "yes"})
    assert (result.unwrap().answer, result.state.found) == ("yes", 1)
    assert seen == [client, None]
    assert isinstance(result.state.client, Client)


async def test_c140_parallel_nodes_keep_what_can_be_kept(database: str, lineage: str) -> None:
    """A node that returns a handle fails alone; the result its sibling paid for is not computed again."""
    runs: collections.Counter[str] = collections.Counter()

    async def good(state: Any) -> dict[str, Any]:
        runs["good"] += 1
        return {"a": 1}

    async def bad(state: Any) -> dict[str, Any]:
        runs["bad"] += 1
        return {"b": Client() if runs["bad"] == 1 else 2}

    state = create_model("State", a=(Any, None), b=(Any, None))
    graph = StateGraph(state).add_node("good", good).add_node("bad", bad).set_entry_point("good", "bad")
    compiled = graph.set_finish_point("good").set_finish_point("bad").compile()
    async with SqlCheckpoints(database) as store:
        executor = Executor(compiled, store)
        result = await executor.run({}, lineage=lineage)
        assert result.status == "failed"
        assert "node 'bad'" in str(result.error)
        again = (await executor.resume(lineage)).unwrap()
    assert (again.a, again.b, dict(runs)) == (1, 2, {"good": 1, "bad": 2})
