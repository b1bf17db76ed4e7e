"""Large graphs: how they are decided, how many states that takes, and that no work grows faster than the graph.

The graphs are those of the benchmark (`python -m benchmarks.validation`), which also takes the times.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.validation_graphs import loops, mixed, parallel, structured
from graphagent import StateGraph
from graphagent.graph.draw import lines
from graphagent.validation import Bounds, Facts, load_document, structure, validate
from graphagent.validation.catalogue import catalogue
from graphagent.validation.explore import explore
from graphagent.validation.outcomes import choices
from graphagent.validation.subject import Subject

EAGER = Facts(engine="eager")
ROOT = Path(__file__).parents[2]
COLLECTED = ("nodes", "edges", "joins", "routes", "error_edges")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: structured(250), id="250-structured"),
        pytest.param(lambda: structured(1000), id="1000-structured"),
        pytest.param(parallel, id="12-branches-with-routers"),
        pytest.param(loops, id="loops-in-branches"),
    ],
)
def test_what_is_well_structured_is_decided_without_a_search(make: Callable[[], StateGraph]) -> None:
    """Proved clean by reduction: not one state is explored."""
    found = validate(make(), facts=EAGER)
    assert (found.result, found.findings) == ("clean", ())
    assert (found.stats.decided_by, found.stats.states) == ("reduction", 0)


@pytest.mark.parametrize(
    ("make", "reduced", "full"),
    [
        pytest.param(lambda: parallel(4), 23, 1298, id="4-branches-with-routers"),
        pytest.param(parallel, 63, None, id="12-branches-with-routers"),
        pytest.param(lambda: loops(3, 2), 15, 127, id="3-small-loops"),
        pytest.param(loops, 58, None, id="loops-in-branches"),
        pytest.param(lambda: structured(1000), 1212, None, id="1000-structured"),
    ],
)
def test_one_schedule_stands_for_all(make: Callable[[], StateGraph], reduced: int, full: int | None) -> None:
    """Where a search is made, its states are the sum over branches; all interleavings are the product (None: more than
    5,000)."""
    graph = make().compile()
    bounds = Bounds(max_states=5000, max_seconds=60)
    assert len(explore(graph, choices(graph), bounds).markings) == reduced
    every = explore(graph, choices(graph), bounds, reduced=False)
    assert every.complete == (full is not None)
    assert full is None or len(every.markings) == full


def test_the_shape_of_a_large_graph() -> None:
    """10,000 nodes and 30,000 transitions: no error; only loops that are entered at several nodes."""
    graph = mixed().compile()
    assert (len(graph.names), sum(1 for _ in lines(graph))) == (10_000, 30_000)
    found = validate(graph, rules=["GA0", "GA1"], facts=EAGER)
    assert found.complete
    assert found.stats.decided_by == "definition"
    assert {finding.code for finding in found.findings} == {"GA109"}


def test_rules_of_shape_hit_no_bound() -> None:
    """Asked for shape only, nothing is searched, so that no bound makes the answer unknown."""
    graph = loops(3, 2).compile()
    found = validate(graph, rules=["GA1"], bounds=Bounds(max_states=1, max_seconds=0.0), facts=EAGER)
    assert (found.result, found.stats.decided_by, found.stats.states) == ("clean", "definition", 0)


class Looks:
    """Counts how often collections are gone through."""

    count = 0


class CountedList(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        Looks.count += 1
        return super().__iter__()


class CountedTuple(tuple[Any, ...]):
    def __iter__(self) -> Iterator[Any]:
        Looks.count += 1
        return super().__iter__()


def counted(work: Callable[[], object]) -> int:
    """How often collections are gone through in a piece of work."""
    Looks.count = 0
    work()
    return Looks.count


def looks(size: int) -> tuple[int, int, int, int]:
    """How often the collections of a graph are gone through when it is compiled, drawn, checked for shape, and when
    findings are placed."""
    builder = mixed(size, 3 * size)
    for name in COLLECTED:
        setattr(builder.definition, name, CountedList(getattr(builder.definition, name)))
    ends = [(edge.source, edge.target) for edge in builder.definition.edges]
    compiling = counted(builder.compile)
    compiled = builder.compile()
    tables: Any = {name: CountedTuple(getattr(compiled, name)) for name in COLLECTED[1:]}
    graph = replace(compiled, **tables)
    subject = Subject(graph, EAGER, Bounds(), {code: rule.severity for code, rule in catalogue().items()})
    drawing = counted(lambda: [*lines(graph)])
    checking = counted(lambda: [*structure.check(subject)])
    return compiling, drawing, checking, counted(lambda: [subject.place(*names) for names in ends])


def test_nothing_is_gone_through_for_each_node() -> None:
    """A graph of twice the size is gone through no more often: compiling, drawing and checking it is linear."""
    assert looks(200) == looks(400)


def test_adding_a_node_looks_at_no_other() -> None:
    """The builder finds a second node with an id without going through the nodes there are."""
    builder = mixed(100, 300)
    builder.definition.nodes = CountedList(builder.definition.nodes)
    Looks.count = 0
    builder.add_node("another", lambda state: None)
    builder.add_node("n7", lambda state: None)
    assert Looks.count == 0
    assert "node 'n7' is added twice, first at" in str(builder.definition.problems[0])


def test_a_large_document_is_read_back() -> None:
    """The canonical JSON of 1,000 nodes gives the same shape: the same transitions and findings."""
    graph = mixed(1000, 3000).compile()
    source = load_document(json.loads(json.dumps(graph.to_json())))
    again = source.builder.compile()
    assert {*lines(again)} == {*lines(graph)}
    rules = ["GA1"]
    places = [finding.at for finding in validate(graph, rules=rules, facts=EAGER).findings]
    assert [finding.at for finding in validate(again, rules=rules, facts=EAGER).findings] == places


def test_the_benchmark_prints_what_decided() -> None:
    """A line per workload with its states and the stage that decided; JSON on request."""
    command = [sys.executable, "-m", "benchmarks.validation", "--only", "parallel", "--rounds", "1"]
    table = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout.splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    row = dict(zip(cells[0], cells[2], strict=True))
    assert (row["decided by"], row["states"], row["nodes"], row["result"]) == ("reduction", "0", "62", "clean")
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, cwd=ROOT, check=True)
    (found,) = json.loads(done.stdout)["rows"]
    assert {"workload": "parallel", "decided_by": "reduction", "states": 0}.items() <= found.items()
