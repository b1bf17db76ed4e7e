"""Who wrote what in a step: the notes of rows against what the nodes returned."""

from __future__ import annotations

from typing import Any

import pytest
from support.writing import Kept, moment_at, random_case

from graphagent import Executor, StateGraph
from graphagent.debug.writes import NodeWrite, WrittenPart, writes_of
from graphagent.engine.merge import merge_writes, writers_of
from graphagent.graph.schema import StateSchema
from graphagent.unset import UNSET

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("seed", range(3, 7))
async def test_writes_are_what_the_nodes_returned(seed: int, store: Any, engine: Any, lineage: str) -> None:
    """Every step of every frame: each activation has the parts that it returned, in terms of the state after."""
    case = random_case(seed)
    if case is None:
        return
    graph, nodes = case
    executor = Executor(graph, store, engine)
    result = await executor.run(lineage=lineage)
    assert result.ok, result.reason
    seen = 0
    for namespace in await store.namespaces(lineage):
        for header in await store.history(lineage, namespace):
            for write in await writes_of(executor, moment_at(lineage, header.seq, namespace)):
                returned = nodes.wrote.get((namespace, write.activation))
                if returned is not None and header.source == "step":
                    seen += 1
                    check(write, returned)
    assert seen == len(nodes.wrote)


def check(write: NodeWrite, returned: dict[str, Any]) -> None:
    """The parts of an activation against its update."""
    fields = write.fields
    for name in ("log", "notes"):
        wanted = list(returned.get(name, ()))
        assert fields.get(name, WrittenPart("items", [])) == WrittenPart("items", wanted)
    for name in ("seen", "named"):
        part = fields.get(name, WrittenPart("items", []))
        assert part.kind == "items"
        assert set(part.value) <= set(returned.get(name, ()))
    for name in ("table", "visits"):
        part = fields.get(name, WrittenPart("keys", {}))
        assert part.kind == "keys"
        assert all(part.value.get(key, value) in (value, UNSET) for key, value in returned.get(name, {}).items())
        assert part.value.keys() <= returned.get(name, {}).keys()


SCHEMA = StateSchema(Kept)
CASES: list[tuple[str, dict[str, Any], list[dict[str, Any]], dict[str, Any]]] = [
    ("one writer is a position", {}, [{}, {"newest": "a"}], {"newest": 1}),
    ("like counts are one run", {}, [{"log": ["a"]}, {"log": ["b"]}, {"log": ["c"]}], {"log": [[0, 3, 1]]}),
    (
        "others are runs of their own",
        {},
        [{"log": ["a"]}, {"log": []}, {"log": ["b", "c"]}],
        {"log": [[0, 1, 1], [2, 1, 2]]},
    ),
    ("nothing added is not noted", {}, [{"log": []}, {"log": []}], {}),
    (
        "of equal items the first counts",
        {"named": ["a"]},
        [{"named": ["a", "b"]}, {"named": ["b", "c"]}],
        {"named": [[0, 2, 1]]},
    ),
    (
        "new entries are counted",
        {"table": {"a": 1}},
        [{"table": {"b": 1}}, {"table": {"c": 2}}],
        {"table": [[0, 2, 1]]},
    ),
    (
        "others are named",
        {"table": {"a": 1}},
        [{"table": {"a": 1}}, {"table": {"a": 2}}],
        {"table": [[0, ["a"]], [1, ["a"]]]},
    ),
    ("no part of a sum can be told", {"total": 1}, [{"total": 1}, {"total": 2}], {"total": [[0, 2]]}),
]


@pytest.mark.parametrize(("before", "updates", "by"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_note_of_a_step(before: dict[str, Any], updates: list[dict[str, Any]], by: dict[str, Any]) -> None:
    """What a row keeps of who wrote what: as little as tells it."""
    state = {**SCHEMA.start_values(), **before}
    writes = [(f"n{i}", update) for i, update in enumerate(updates)]
    assert writers_of(SCHEMA, state, merge_writes(SCHEMA, state, writes)) == by


async def test_only_steps_of_several_have_a_note(store: Any, lineage: str) -> None:
    """A row of a lone activation says who wrote by itself; nothing is added to it."""

    async def write(state: Kept) -> dict[str, Any]:
        return {"log": ["x"]}

    graph = StateGraph(Kept).add_node("a", write).add_node("b", write).add_node("c", write).set_entry_point("a")
    graph.add_edge("a", "b").add_edge("a", "c")
    executor = Executor(graph.compile(), store)
    await executor.run(lineage=lineage)
    rows = await store.changes(lineage, "", 0, 9)
    assert [row.note for row in rows] == [None, None, {"by": {"log": [[0, 2, 1]]}}, None]
    assert (await executor.replay(lineage)).ok
    assert [(write.activation, write.fields) for write in await writes_of(executor, moment_at(lineage, 3))] == [
        ("b/b#2", {"log": WrittenPart("items", ["x"])}),
        ("c/c#2", {"log": WrittenPart("items", ["x"])}),
    ]


async def test_writes_of_an_input_and_of_steps_saved_as_one(store: Any, lineage: str) -> None:
    """A row that no step led to has no writes; in one that stands for several steps all parts are unknown."""

    async def write(state: Kept) -> dict[str, Any]:
        return {"newest": "x"}

    graph = StateGraph(Kept).add_node("a", write).add_node("b", write).set_entry_point("a").add_edge("a", "b")
    executor = Executor(graph.compile(), store, durability="exit")
    await executor.run(lineage=lineage)
    headers = await executor.history(lineage)
    (step,) = [header.seq for header in headers if header.source == "step"]
    found = await writes_of(executor, moment_at(lineage, step))
    assert [write.node for write in found] == ["a", "b"]
    assert all(part == WrittenPart("unknown") for write in found for part in write.fields.values())
    other = Executor(graph.compile(), store)
    await other.run(lineage=f"{lineage}-2")
    assert await writes_of(other, moment_at(f"{lineage}-2", 0)) == []
