"""The data family: unset reads, write conflicts, lost and unread writes, outputs, growth; through `validate`."""

from __future__ import annotations

import functools
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel
from support.random_documents import random_document

from graphagent import END, START, Executor, Send, StateGraph, append
from graphagent.graph.transitions import starving
from graphagent.validation import Bounds, Facts, load_document, read_document, validate
from graphagent.validation.explore import explore
from graphagent.validation.notation import parse_notation
from graphagent.validation.outcomes import choices

SHARED = Path(__file__).parents[2].parent / "shared"
pytestmark = pytest.mark.anyio
CASES = sorted((SHARED / "validator_cases").glob("GA40*.json"))


def found(text, engine="eager"):
    """The data findings on a graph in the notation."""
    source = load_document(parse_notation(text))
    report = validate(source.builder, facts=replace(source.facts, engine=engine))
    return [finding for finding in report.findings if finding.code.startswith("GA4")]


def brief(findings):
    """Code, severity and places of findings, as text."""
    return sorted(f"{finding.code} {finding.severity} {' '.join(finding.at)}" for finding in findings)


def built(builder, engine="eager"):
    """The data findings on a builder."""
    return [f for f in validate(builder, facts=Facts(engine=engine)).findings if f.code.startswith("GA4")]


@pytest.mark.skipif(not CASES, reason="the shared cases are not here")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_shared_cases(path):
    """The small graphs with known verdicts: what must be found is, at its place, and nothing that must not."""
    expected = json.loads(path.read_text("utf-8"))["expected"]
    source = load_document(read_document(path))
    report = validate(source.builder, facts=replace(source.facts, engine="eager"))
    for must in expected["must"]:
        assert any(f.code == must["code"] and set(must["at"]) <= set(f.at) for f in report.findings)
    assert not {f.code for f in report.findings} & set(expected["must_not"])
    assert (report.worst or "clean") == expected["verdict"]


DIAMOND = "s -> a, b; a & b => m; m -> END; outputs x; "
CHOICE = "r ? a | b; a -> m; b -> m; m -> END; m reads x; "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a -> END; a reads x; a writes x", ["GA401 error a x"]),
        ("a -> b; b -> END; a reads x; b reads x", ["GA401 error a x"]),
        ("a -> b; b ? a | END; a reads x; b writes x", ["GA402 warning a x"]),
        ("a -> b; b -> END; a reads ?; a writes ?; b reads x", []),
        ("a -> b; b -> END; a writes ?; b reads x", []),
        ("a -> END; a reads x; state x: int = 3", []),
        ("a -> END; a reads x; inputs x", []),
        (CHOICE + "a writes x; b writes x", []),
        (CHOICE + "a writes x; b writes ?", []),
        (CHOICE + "a writes x; inputs x", []),
        ("s -> a, b; a & b =active=> m; m -> END; a writes x; m reads x", ["GA402 warning m x"]),
        ("s -> a, b; a & b =any=> m; m -> END; a writes x; m reads x", ["GA402 warning m x"]),
        ("s -> a, b, c; a & b & c =2=> m; m -> END; a writes x; m reads x", ["GA402 warning m x"]),
        ("s -> a, b, c; a & b & c =2=> m; m -> END; a, b, c writes x; m reads x; state x: list append", []),
        ("a -> m; a !> m; m -> END; a writes x; m reads x", ["GA402 warning m x"]),
        ("r ? a | j; a & r => j; j -> END; a writes x; j reads x", []),
        ("p @ w then r; node w; w -> r; r -> END; w writes x; r reads x", ["GA402 warning r x"]),
    ],
    ids=[
        *("own-write-is-late", "root-only", "loop", "unknown-before", "unknown-writes", "default", "input"),
        *("both-ways", "maybe-other-way", "choice-input", "active", "any", "two-of-three", "two-of-three-ok"),
        *("error-edge", "arrival-by-route", "no-items"),
    ],
)
def test_unset(text, expected):
    """GA401 and GA402: what is surely set where a node reads; what is not known is not guessed at."""
    if "a, b, c writes" in text:
        text = text.replace("a, b, c writes x", "a writes x; b writes x; c writes x")
    assert brief(f for f in found(text) if f.code in ("GA401", "GA402")) == expected


def test_the_way_without_a_writer_is_shown():
    """The message says on which way nothing writes."""
    (finding,) = found(CHOICE + "a writes x")
    assert "'r' -> 'b' -> 'm'" in finding.message
    assert finding.at == ("m", "x")
    assert finding.fix


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DIAMOND + "a writes x; b writes x", ["GA403 error a b x"]),
        (DIAMOND + "a writes x; b writes x; state x: list append", []),
        (DIAMOND + "a writes x; b writes x; state x: any_of", []),
        (DIAMOND + "s writes x; a writes x; m reads x; m writes x", []),
        ("r ? a | b; a -> END; b -> END; a writes x; b writes x; outputs x", []),
        ("r * a | b; a -> END; b -> END; a writes x; b writes x; outputs x", ["GA403 error a b x"]),
        (
            "s -> a, b, c; a & b & c => m; m -> END; a writes x; b writes x; c writes x; outputs x",
            ["GA403 error a b c x"],
        ),
        ("p @ w then r; node w; w -> r; r -> END; w writes x; outputs x; state x: int = 0", ["GA403 error w x"]),
        ("p @ w then r; w -> r; r -> END; w writes x; outputs x; state x: list append = []", []),
        ("r ? a | b of a, b; q ? c | d as r; entry r, q; a -> END; d -> END; b -> END; c -> END", []),
    ],
    ids=[
        *("fork", "append", "any_of", "in-turn", "choice", "some", "three-in-one", "map", "map-append", "tied"),
    ],
)
def test_conflicts(text, expected):
    """GA403: two writers at one time of a field with room for one; those that meet are one finding."""
    assert brief(f for f in found(text) if f.code == "GA403") == expected


UNEVEN = "s -> a, b; a -> c; b & c => m; m -> END; b writes x; c writes x; outputs x"


@pytest.mark.parametrize(("engine", "severity"), [("eager", "error"), ("both", "error"), ("superstep", "warning")])
def test_conflicts_by_timing(engine, severity):
    """Writers that never share a superstep are a warning with that engine: right only by timing."""
    (finding,) = [f for f in found(UNEVEN, engine) if f.code == "GA403"]
    assert (finding.severity, finding.at) == (severity, ("b", "c", "x"))
    assert ("right only by timing" in finding.message) == (engine == "superstep")
    assert finding.script.startswith("s")


def test_the_trace_ends_where_both_are_live():
    """The counterexample of GA403 is a run to where the writers are live."""
    (finding,) = [f for f in found(DIAMOND + "a writes x; b writes x") if f.code == "GA403"]
    assert finding.script == "s"
    assert finding.trace[-1].live == ("a", "b")


class Score(BaseModel):
    """A field with room for one writer."""

    x: int = 0
    log: Annotated[list[str], append] = []


async def test_a_conflict_found_is_one_that_happens():
    """The run of a graph with GA403 fails on that field, in supersteps as with the eager engine."""
    builder = StateGraph(Score).add_node("s", lambda state: None, inline=True)
    for name, value in (("a", 1), ("b", 2)):
        builder.add_node(name, lambda state, value=value: {"x": value}, writes=["x"])
    builder.add_node("m", lambda state: {"log": [str(state.x)]})
    builder.add_edge(START, "s").add_edge("s", "a").add_edge("s", "b").add_join_edge(["a", "b"], "m").add_edge("m", END)
    for engine in ("superstep", "eager"):
        assert [f.severity for f in built(builder, engine) if f.code == "GA403"] == ["error"]
    result = await Executor(builder.compile()).run({})
    assert result.status == "failed"
    assert "'x'" in str(result.error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a -> b; b -> END; a writes x", ["GA404 info a x"]),
        ("a -> b; b -> END; a writes x; b writes x; b reads x", []),
        ("a -> b; b -> END; a writes x; b reads ?", []),
        ("a -> END; a writes x; outputs x", []),
        ("a -> END; a writes x; outputs y; state y: int = 0; state x", ["GA404 info a x"]),
    ],
    ids=["nobody", "read", "unknown", "output", "other-output"],
)
def test_never_read(text, expected):
    """GA404: what nobody reads; quiet where somebody's reads are not known."""
    assert brief(f for f in found(text) if f.code == "GA404") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("r ? a | b; a -> END; b -> END; a writes x; outputs x", ["GA406 error x a"]),
        ("s -> a, b; a -> END; b -> END; b writes x; outputs x", []),
        ("s -> a, b; a -> END; b ? c | END; c writes x; c -> END; outputs x", ["GA406 error x c"]),
        ("r * a | b; a -> END; b -> END; a writes x; outputs x", ["GA406 error x a"]),
        ("r ? a | b; a -> END; b -> END; a writes x; outputs x; inputs x", []),
        ("r ? a | b; a -> END; b -> END; a writes x; b writes ?; outputs x", []),
        ("a -> END; a !> h; h -> END; a writes x; outputs x", ["GA406 error x a"]),
        ("a -> END; outputs x", ["GA406 error x"]),
        ("r ? a | b; a -> j; b & a => j; j -> END; a writes x; outputs x", []),
    ],
    ids=[
        "one-way",
        "ends-apart",
        "ends-apart-unsure",
        "some",
        "input",
        "unknown",
        "failed",
        "nobody",
        "stalls-instead",
    ],
)
def test_outputs(text, expected):
    """GA406: a good end without an output; branches may end apart, and a run that stalls is no good end."""
    findings = [f for f in found(text) if f.code == "GA406"]
    assert brief(findings) == expected
    assert all(finding.trace[-1].note for finding in findings)


def test_outputs_without_declared_inputs():
    """Where any field may be given as input, a missing output is a warning."""

    class Answer(BaseModel):
        """No default."""

        question: str
        answer: str

    def route(state) -> Literal["a", "b"]:
        return "a" if state.question else "b"

    builder = StateGraph(Answer, outputs=["answer"]).add_node("r", lambda state: None, reads=[], writes=[])
    builder.add_node("a", print, reads=[], writes=["answer"]).add_node("b", print, reads=[], writes=[])
    builder.add_edge(START, "r").add_conditional_edges("r", route).set_finish_point("a", "b")
    (finding,) = [f for f in built(builder) if f.code == "GA406"]
    assert (finding.severity, finding.script) == ("warning", "r=b; b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a -> b -> c -> END; a writes x; c writes x; outputs x", ["GA408 warning a c x"]),
        ("a -> b; b ? c | END; c -> END; a writes x; c writes x; outputs x", []),
        ("a -> b; b ? c | d; c -> END; d -> END; a, c, d writes x; outputs x", ["GA408 warning a c d x"]),
        ("a -> b; b ? c | d; c -> END; d -> END; a, c, d writes x; d reads x; outputs x", []),
        ("a -> b, r; b & r => m; m -> END; a writes x; b writes x; r reads x; outputs x; state x: int = 0", []),
        ("a -> b; b -> END; a writes x; b writes x; outputs x; state x: list append", []),
        ("a -> b; b -> END; a writes x; b writes x; b reads ?; outputs x", []),
        ("a ? a | END; a writes x; outputs x", []),
        ("a -> b; b -> END; b !> h; h -> END; a writes x; b writes x; h reads x; outputs x", []),
        ("p @ w then r; node w; w -> r; r -> END; w reads x; w writes x; r writes x; outputs x; state x: int = 0", []),
    ],
    ids=[
        "later",
        "end-reads",
        "every-way",
        "one-way-reads",
        "sibling-reads",
        "append",
        "unknown",
        "own-loop",
        "failure-reads",
        "next-item-reads",
    ],
)
def test_lost(text, expected):
    """GA408: written again on every way before it is read, by a follower, a sibling or whoever takes the result."""
    text = text.replace("a, c, d writes x", "a writes x; c writes x; d writes x")
    assert brief(f for f in found(text) if f.code == "GA408") == expected


@pytest.mark.parametrize(
    ("engine", "expected"),
    [("eager", ["GA409 warning b a x"]), ("both", ["GA409 warning b a x"]), ("superstep", ["GA409 info b a x"])],
)
def test_sibling_reads(engine, expected):
    """GA409: the value that a reader gets beside a writer; in supersteps it is always the old one, so a note."""
    text = DIAMOND + "s writes x; a writes x; a reads x; b reads x"
    assert brief(f for f in found(text, engine) if f.code == "GA409") == expected


def test_sibling_reads_in_other_steps_are_fine_in_supersteps():
    """A reader that never shares a step with the writer sees one value, with supersteps; with the eager engine two."""
    text = "s -> a, b; a -> c; b & c => m; m -> END; s writes x; c writes x; b reads x; m reads x"
    assert brief(f for f in found(text, "superstep") if f.code == "GA409") == []
    assert brief(f for f in found(text, "eager") if f.code == "GA409") == ["GA409 warning b c x"]


def test_growth():
    """GA410: an append field in a loop; not outside of one, not with bounded laps, not with another merge rule."""
    loop = "a -> b; b ? a | END; a writes x; b reads x; "
    assert brief(found(loop + "state x: list append = []")) == ["GA410 info a x"]
    assert found(loop + "state x: list append = []; limit laps b 3") == []
    assert found(loop + "state x: list union = []") == []
    assert found("a -> b; b -> END; a writes x; b reads x; state x: list append = []") == []


class Draft(BaseModel):
    """A state whose fields are required."""

    topic: str
    plan: str
    text: str
    items: list[str] = []
    item: str


def writes_plan(state):
    """From the topic a plan."""
    return {"plan": state.topic}


def writes_text(state):
    """From the plan the text."""
    return {"text": state.plan}


def misspelt(state):
    """The right key, and one that nobody declared (C163)."""
    return {"text": state.topic, "plann": "x"}


def line_of(*nodes, inputs=("topic",), outputs=("text",), **options: Any):
    """A chain of nodes over Draft."""
    builder = StateGraph(Draft, inputs=inputs, outputs=outputs)
    names = [fn.__name__ for fn in nodes]
    for name, fn in zip(names, nodes, strict=True):
        builder.add_node(name, fn, **options)
    for source, target in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(source, target)
    return builder


def test_a_fine_graph_has_no_findings():
    """Inference alone, and nothing to say."""
    assert built(line_of(writes_plan, writes_text)) == []


def test_inferred_findings_are_one_lower():
    """What rests on source is a warning where it would be an error, and says so."""
    (finding,) = built(line_of(writes_text))
    assert (finding.code, finding.severity, finding.inferred) == ("GA401", "warning", True)
    (finding,) = built(line_of(writes_text, reads=["plan"], writes=["text"]))
    assert (finding.code, finding.severity, finding.inferred) == ("GA401", "error", False)


def test_any_input_may_be_given():
    """Without declared inputs nothing can be said to be unset."""
    assert built(line_of(writes_text, inputs=None)) == []


async def test_names_that_nobody_declared():
    """A misspelt key is found in the source at the node that writes it, with the nearest name; the run fails there."""
    builder = line_of(misspelt)
    (finding,) = built(builder)
    assert (finding.code, finding.severity, finding.at) == ("GA405", "warning", ("misspelt", "plann"))
    assert "did you mean 'plan'?" in finding.message
    assert finding.where.file == __file__
    result = await Executor(builder.compile()).run({"topic": "t"})
    assert result.status == "failed"
    assert "'plann'" in str(result.error)


def test_map_workers_read_their_item():
    """The item that is laid over the state is there for the worker; for the collector it is not."""

    def worker(state):
        """Reads the item."""
        return {"items": [state.item]}

    def collector(state):
        """So does this one."""
        return {"text": state.item}

    class Wide(Draft):
        """Collects."""

        items: Annotated[list[str], append] = []

    builder = StateGraph(Wide, inputs=["topic"], outputs=["text"]).add_node("c", collector)
    builder.add_map_node("m", worker, over="items", item_key="item", collect="c").add_edge(START, "m").add_edge(
        "c", END
    )
    assert brief(f for f in built(builder) if f.code in ("GA401", "GA402")) == ["GA401 warning c item"]


def test_sent_items_bring_their_fields():
    """An overlay counts for the node that it is sent to; on another way there the field is missing."""

    def spread(state):
        """Sends each item."""
        return [Send("work", {"item": item}) for item in state.items]

    def work(state):
        """Reads the item."""
        return {"text": state.item}

    builder = StateGraph(Draft, inputs=["topic"], outputs=["text"]).add_node("spread", spread, destinations=["work"])
    builder.add_node("work", work).add_edge(START, "spread").add_edge("work", END)
    assert [f for f in built(builder) if f.code in ("GA401", "GA402")] == []
    builder.add_node("other", writes_plan).add_edge(START, "other").add_edge("other", "work")
    (finding,) = [f for f in built(builder) if f.code in ("GA401", "GA402")]
    assert (finding.code, finding.at, finding.severity) == ("GA402", ("work", "item"), "info")


def test_routers_see_what_their_node_wrote():
    """A router runs after the writes of its node; what nobody wrote is missing for it too."""

    def route(state) -> Literal["b", "__end__"]:
        return "b" if state.plan else END

    builder = StateGraph(Draft, inputs=["topic"], outputs=[]).add_node("a", writes_plan).add_node("b", writes_text)
    builder.add_edge(START, "a").add_conditional_edges("a", route).add_edge("b", END)
    assert [f for f in built(builder) if f.code == "GA401"] == []
    builder = StateGraph(Draft, inputs=["topic"], outputs=[]).add_node("a", lambda state: None)
    builder.add_node("b", writes_text).add_edge(START, "a").add_conditional_edges("a", route).add_edge("b", END)
    (finding,) = [f for f in built(builder) if f.code == "GA401"]
    assert finding.at == ("a", "plan")
    assert "the router of node 'a'" in finding.message


def test_children_are_known_from_inside():
    """What a child surely writes is set behind it, and what it doesn't isn't; two children that only share an input
    don't conflict."""

    class Inner(BaseModel):
        """Shares two fields."""

        topic: str
        plan: str

    def child(name):
        """One that writes the plan."""
        builder = StateGraph(Inner, inputs=["topic"], name=name).add_node("p", writes_plan)
        return builder.add_edge(START, "p").add_edge("p", END).compile()

    builder = StateGraph(Draft, inputs=["topic"], outputs=["text"]).add_subgraph_node("c", child("one"))
    builder.add_node("t", writes_text).add_edge(START, "c").add_edge("c", "t").add_edge("t", END)
    assert built(builder) == []
    both = StateGraph(Draft, inputs=["topic"], outputs=["plan"])
    both.add_subgraph_node("c", child("one")).add_subgraph_node("d", child("two")).add_edge(START, "c")
    both.add_edge(START, "d").add_join_edge(["c", "d"], END)
    assert brief(f for f in built(both) if f.code == "GA403") == ["GA403 warning c d plan"]


def test_a_document_of_a_graph_knows_no_more_than_the_graph():
    """Reads and writes that a graph doesn't declare are not known from its JSON, rather than empty."""
    graph = line_of(writes_text).compile()
    source = load_document(graph.to_json())
    assert [f.code for f in validate(source.builder, facts=Facts(engine="eager")).findings if f.code[:3] == "GA4"] == []


@pytest.mark.parametrize("rule", ["append", "merge", "add"])
def test_a_field_of_any_type_takes_any_rule(rule):
    """GA407 says nothing where the type is not known."""
    assert found(f"a -> END; a writes x; outputs x; state x: {rule}") == []


def test_undeclared_targets_silence_what_rests_on_ways():
    """Where a node may lead anywhere, ways are not known, and nothing is concluded from them."""
    builder = StateGraph(Draft, inputs=["topic"], outputs=["text"]).add_node("a", lambda state: None)
    builder.add_node("b", writes_text).add_edge(START, "a").add_edge("b", END)
    builder.add_conditional_edges("a", lambda state: "b")
    report = validate(builder.compile(strict=False), facts=Facts(engine="eager"))
    assert not {f.code for f in report.findings} & {"GA401", "GA402", "GA406", "GA408"}


FIELDS = ("x", "y")
MANY = 60
SMALL = Bounds(600, 60.0)


@functools.cache
def furnished(seed, code=""):
    """A random graph whose nodes read and write two fields: the document, the report and all interleavings; None where
    it doesn't compile, they are too many, or a finding with `code` is wanted and there is none."""
    rnd = random.Random(seed)
    document = random_document(rnd)
    for spec in document["nodes"].values():
        spec["reads"] = [field for field in FIELDS if rnd.random() < 0.25]
        spec["writes"] = [field for field in FIELDS if rnd.random() < 0.25]
    document["outputs"] = ["x"]
    report = validate(load_document(document).builder, rules=["GA0", "GA4"], facts=Facts(engine="eager"), bounds=SMALL)
    codes = {finding.code for finding in report.findings}
    broken = any(finding.severity == "error" and finding.code.startswith("GA0") for finding in report.findings)
    if broken or (code and code not in codes):
        return None
    graph = load_document(document).builder.compile()
    explored = explore(graph, choices(graph), SMALL, reduced=False)
    return (document, report, explored) if explored.complete and not explored.growing else None


def succeeds(explored, pick):
    """Whether the node of a pick ended well: one that failed has written nothing."""
    return explored.choices.of[pick.node][pick.outcome].error is None


def after(explored, begin, stops):
    """The states that runs reach from these on ways on which no node of `stops` succeeds, and the moves out of them, as
    states and picks."""
    reached, todo, moves = set(begin), list(begin), []
    while todo:
        state = todo.pop()
        for move in explored.moves[state] or ():
            moves.append((state, move.picks))
            stopped = any(pick.node in stops and succeeds(explored, pick) for pick in move.picks)
            if not stopped and move.target not in reached:
                reached.add(move.target)
                todo.append(move.target)
    return reached, moves


def test_no_unset_read_is_missed():
    """Random graphs: where a run leads to a reader with nothing written before (and nobody who failed of it before),
    it is reported."""
    seen = reported = 0
    for case in filter(None, map(furnished, range(MANY))):
        document, report, explored = case
        names = explored.graph.names
        seen += 1
        for field in FIELDS:
            touches = [i for i, n in enumerate(names) if field in {*spec_of(document, n, "reads", "writes")}]
            _, moves = after(explored, {0}, touches)
            first = {names[pick.node] for _, picks in moves for pick in picks}
            for name in first & {n for n in names if field in spec_of(document, n, "reads")} - sent_to(document):
                assert any(f.code in ("GA401", "GA402") and f.at == (name, field) for f in report.findings), document
                reported += 1
    assert seen > MANY // 2
    assert reported > 15


def sent_to(document):
    """The nodes whose items may bring along anything."""
    return {target for route in document["routes"] if route["select"] == "map" for target in route["targets"]}


def spec_of(document, name, *roles):
    """The fields that a node of a document reads or writes."""
    return [field for role in roles for field in document["nodes"][name][role]]


def test_no_missing_output_is_missed_and_none_is_made_up():
    """Random graphs: GA406 is reported if and only if a good end can be reached with the output not written, and nobody
    on the way failing of that."""
    outcomes = []
    for case in filter(None, map(furnished, range(MANY))):
        document, report, explored = case
        graph = explored.graph
        touches = [
            i
            for i, name in enumerate(graph.names)
            if "x" in spec_of(document, name, "writes")
            or ("x" in spec_of(document, name, "reads") and name not in sent_to(document))
        ]
        reached, _ = after(explored, {0}, touches)
        ends = [explored.markings[state] for state in reached if not explored.markings[state].frontier]
        expected = any((end.ended or not graph.names_end) and not starving(graph, end) for end in ends)
        assert any(f.code == "GA406" for f in report.findings) == expected, document
        outcomes.append(expected)
    assert {True, False} <= set(outcomes)


def test_what_is_called_lost_is_lost():
    """Random graphs: after a write that GA408 calls lost, no run reads the field, or ends, before it is written
    again."""
    seen = 0
    for case in filter(None, (furnished(seed, "GA408") for seed in range(MANY, 2 * MANY))):
        document, report, explored = case
        names = explored.graph.names
        for finding in (f for f in report.findings if f.code == "GA408"):
            writer, field = finding.at[0], finding.at[-1]
            writers = {i for i, name in enumerate(names) if field in spec_of(document, name, "writes")}
            moves = [move for moves in explored.moves for move in moves or ()]
            begin = {
                move.target
                for move in moves
                if any(names[pick.node] == writer and succeeds(explored, pick) for pick in move.picks)
            }
            reached, moves = after(explored, begin, writers)
            read = {names[pick.node] for _, picks in moves for pick in picks}
            assert not any(field in spec_of(document, name, "reads") for name in read), document
            ends = [explored.markings[state] for state in reached if not explored.markings[state].frontier]
            assert not any(end.ended and not starving(explored.graph, end) for end in ends), document
            seen += 1
    assert seen > 10
