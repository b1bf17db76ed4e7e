"""What `compile()` refuses and warns of: the definition rules GA0xx, GA405 and GA407, with culprit, mend and place."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from support.graphs import Trail, flow, says

from graphagent import (
    END,
    START,
    CachePolicy,
    Command,
    Message,
    NodeCallbacks,
    Send,
    StateGraph,
    Transient,
    add,
    append,
    merge,
    messages,
    reducer,
    union,
)
from graphagent.errors import GraphDefinitionError
from graphagent.graph.definition import Problem

Build = Callable[[], StateGraph]


def base() -> StateGraph:
    """plan -> work -> END: nothing is wrong with it."""
    return flow("START -> plan -> work -> END")


def router(state: Trail) -> str:
    """A router that says nothing about its labels."""
    return "work"


def yes_no(state: Trail) -> Literal["yes", "no", "maybe"]:
    """A router that declares three labels."""
    return "yes"


class Answer(enum.Enum):
    YES = "work"
    NO = "wrok"


def by_enum(state: Trail) -> Answer:
    """A router whose labels are the node ids of an enum, one of them misspelt."""
    return Answer.YES


async def jumps_unseen(state: Trail) -> Command:
    """Jumps to a node that can't be read off the function."""
    return Command(goto=state.item)


async def sends_unseen(state: Trail) -> Send:
    """Sends to a node that can't be read off the function."""
    return Send(state.item)


def problems(builder: StateGraph, *, strict: bool = True) -> list[Problem]:
    """All findings of a compile, errors or not."""
    try:
        return list(builder.compile(strict=strict).warnings)
    except GraphDefinitionError as error:
        return [problem for problem in error.problems if isinstance(problem, Problem)]


ERRORS: list[tuple[str, str, Build, tuple[str, ...]]] = [
    ("GA001", "no entry", lambda: flow("a -> END"), ("no entry point", "set_entry_point")),
    ("GA002", "entry unknown", lambda: base().set_entry_point("plam"), ("'plam'", "did you mean 'plan'?")),
    ("GA002", "START edge unknown", lambda: base().add_edge(START, "plam"), ("'plam'", "did you mean 'plan'?")),
    ("GA003", "node twice", lambda: base().add_node("plan", says("x")), ("'plan'", "added twice", "graphs.py")),
    ("GA004", "reserved END", lambda: base().add_node("__end__", says("x")), ("'__end__'", "reserved")),
    ("GA004", "reserved START", lambda: base().add_node("__start__", says("x")), ("'__start__'", "reserved")),
    ("GA004", "empty id", lambda: base().add_node("", says("x")), ("''", "name")),
    ("GA004", "blank id", lambda: base().add_node("  ", says("x")), ("'  '",)),
    ("GA004", "edge into START", lambda: base().add_edge("work", START), ("'work'", "START")),
    ("GA005", "edge from nowhere", lambda: base().add_edge("wrok", "plan"), ("'wrok'", "did you mean 'work'?")),
    (
        "GA005",
        "route from nowhere",
        lambda: base().add_conditional_edges("wrok", router, ["plan"]),
        ("'wrok'", "'work'"),
    ),
    ("GA005", "error edge from nowhere", lambda: base().add_error_edge("wrok", "plan"), ("'wrok'", "'work'")),
    ("GA006", "edge to nowhere", lambda: base().add_edge("plan", "wrok"), ("'plan'", "'wrok'", "did you mean 'work'?")),
    ("GA006", "far from any name", lambda: base().add_edge("plan", "zzz"), ("'zzz'", "known: 'plan', 'work'")),
    ("GA006", "error edge to nowhere", lambda: base().add_error_edge("plan", "wrok"), ("'wrok'", "'work'")),
    ("GA006", "must_pass", lambda: base().must_pass("work", through="plna"), ("must_pass", "'plna'", "'plan'")),
    ("GA006", "callbacks", lambda: base().with_node_callbacks(NodeCallbacks(), node="wrok"), ("'wrok'", "'work'")),
    (
        "GA007",
        "route to nowhere",
        lambda: base().add_conditional_edges("plan", router, {"go": "wrok"}),
        ("'plan'", "'go'", "'wrok'", "did you mean 'work'?"),
    ),
    (
        "GA007",
        "default is no node",
        lambda: base().add_conditional_edges("plan", router, ["work"], default="wrok"),
        ("default of 'plan'", "'wrok'", "'work'"),
    ),
    (
        "GA007",
        "destination is no node",
        lambda: base().add_node("x", says("x"), destinations={"ok": "wrok"}),
        ("destination of 'x'", "'wrok'", "'work'"),
    ),
    (
        "GA007",
        "same_as without a route",
        lambda: base().add_conditional_edges("plan", router, ["work"], same_as="work"),
        ("'plan'", "same_as 'work'"),
    ),
    (
        "GA008",
        "undeclared labels",
        lambda: base().add_conditional_edges("plan", router),
        ("router of 'plan'", "path_map", "Literal", "Enum"),
    ),
    (
        "GA009",
        "label without target",
        lambda: base().add_conditional_edges("plan", yes_no, {"yes": "work", "no": END}),
        ("router of 'plan'", "'maybe'", "path_map", "default"),
    ),
    (
        "GA009",
        "enum member without node",
        lambda: base().add_conditional_edges("plan", by_enum),
        ("'plan'", "'wrok'", "did you mean 'work'?"),
    ),
    ("GA009", "unseen goto", lambda: base().add_node("x", jumps_unseen), ("'x'", "destinations=[")),
    ("GA009", "unseen Send", lambda: base().add_node("x", sends_unseen), ("'x'", "destinations=[")),
    ("GA010", "join without sources", lambda: base().add_join_edge([], "work"), ("'work'", "no sources")),
    (
        "GA010",
        "join source unknown",
        lambda: base().add_join_edge(["plan", "ghost"], "work"),
        ("join into 'work'", "'ghost'", "known: 'plan', 'work'"),
    ),
    ("GA010", "join target unknown", lambda: base().add_join_edge(["plan", "work"], "wrk"), ("'wrk'", "'work'")),
    (
        "GA010",
        "join mode unknown",
        lambda: base().add_join_edge(["plan", "work"], END, mode="most"),  # type: ignore[arg-type]
        ("'most'", "'all', 'active', 'any'"),
    ),
    ("GA010", "join wants too many", lambda: base().add_join_edge(["plan", "work"], END, mode=3), ("3 of 2",)),
    ("GA010", "join wants none", lambda: base().add_join_edge(["plan", "work"], END, mode=0), ("0 of 2",)),
    (
        "GA010",
        "join ids clash",
        lambda: flow("START -> a, b, c", "j -> END").add_join_edge(["a", "b"], "j").add_join_edge(["b", "c"], "j"),
        ("2 joins", "'j'", "id="),
    ),
    ("GA014", "breakpoint before", lambda: base().interrupt_before_nodes("wrok"), ("'wrok'", "did you mean 'work'?")),
    ("GA014", "breakpoint after", lambda: base().interrupt_after_nodes("wrok"), ("'wrok'", "did you mean 'work'?")),
    ("GA015", "no function", lambda: base().add_node("x"), ("'x'", "None", "fn(state)")),
    ("GA015", "not a function", lambda: base().add_node("x", "work"), ("'x'", "'work'")),  # type: ignore[arg-type]
    ("GA015", "three parameters", lambda: base().add_node("x", lambda a, b, c: None), ("'x'", "fn(state, ctx)")),
    ("GA015", "no parameter", lambda: base().add_node("x", lambda: None), ("'x'", "fn(state)")),
    (
        "GA015",
        "router is no function",
        lambda: base().add_conditional_edges("plan", "work", ["work"]),  # type: ignore[arg-type]
        ("router of 'plan'", "'work'"),
    ),
    (
        "GA015",
        "router of two arguments",
        lambda: base().add_conditional_edges("plan", lambda a, b: "work", ["work"]),
        ("router of 'plan'", "one argument"),
    ),
    (
        "GA015",
        "child isn't compiled",
        lambda: base().add_subgraph_node("sub", base()),  # type: ignore[arg-type]
        ("'sub'", "compile()"),
    ),
    ("GA405", "reads", lambda: base().add_node("x", says("x"), reads=["lgo"]), ("reads of 'x'", "'lgo'", "'log'")),
    ("GA405", "writes", lambda: base().add_node("x", says("x"), writes=["lgo"]), ("writes of 'x'", "'lgo'", "'log'")),
    (
        "GA405",
        "cache fields",
        lambda: base().add_node("x", says("x"), cache=CachePolicy(fields=("itm",))),
        ("cache fields of 'x'", "'itm'", "'item'"),
    ),
    (
        "GA405",
        "map over",
        lambda: base().add_map_node("fan", "work", over="lgo", item_key="item", collect=END),
        ("over of 'fan'", "'lgo'", "'log'"),
    ),
    (
        "GA405",
        "answer field",
        lambda: base().add_interrupt_node("ask", prompt="?", writes="itm"),
        ("writes of 'ask'", "'itm'", "'item'"),
    ),
    ("GA405", "inputs", lambda: state_graph(Trail, inputs=["itm"]), ("inputs", "'itm'", "'item'")),
    ("GA405", "outputs", lambda: state_graph(Trail, outputs=["itm"]), ("outputs", "'itm'", "'item'")),
]


def state_graph(state: type, **options: Any) -> StateGraph:
    """The smallest graph over a state class."""

    async def node(_: Any) -> None:
        return None

    return StateGraph(state, **options).add_node("a", node).set_entry_point("a").set_finish_point("a")


@pytest.mark.parametrize(("code", "title", "build", "words"), ERRORS, ids=[f"{e[0]}-{e[1]}" for e in ERRORS])
def test_errors_name_culprit_and_mend(code: str, title: str, build: Build, words: tuple[str, ...]) -> None:
    """Each wrong definition is refused with its code alone, and the message has the names and the way out."""
    with pytest.raises(GraphDefinitionError) as caught:
        build().compile()
    found = [problem for problem in caught.value.problems if isinstance(problem, Problem)]
    assert {problem.code for problem in found} == {code}
    text = "\n".join(problem.message for problem in found)
    for word in words:
        assert word in text
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("worker", "collect", "text"),
    [
        ("wrok", "work", "worker of 'fan' is 'wrok', which is not a node: did you mean 'work'?"),
        ("work", "plna", "collect of 'fan' is 'plna', which is not a node: did you mean 'plan'?"),
    ],
)
def test_ga007_a_map_node_that_leads_nowhere(worker: str, collect: str, text: str) -> None:
    """The role of the missing node is named; the edge that the map node makes is reported beside it."""
    found = problems(base().add_map_node("fan", worker, over="log", item_key="item", collect=collect))
    assert text in [problem.message for problem in found if problem.code == "GA007"]
    assert {problem.code for problem in found} <= {"GA005", "GA006", "GA007"}


WARNINGS: list[tuple[str, str, Build, tuple[str, ...]]] = [
    ("GA003", "alike by case", lambda: flow("START -> plan -> Plan -> END"), ("'Plan'", "'plan'")),
    ("GA003", "alike by form", lambda: flow("START -> caf\u00e9 -> cafe\u0301 -> END"), ("looks like",)),
    ("GA011", "edge twice", lambda: base().add_edge("plan", "work"), ("'plan' -> 'work'", "twice", "graphs.py")),
    (
        "GA012",
        "second route",
        lambda: (
            flow("START -> plan", "work -> END")
            .add_conditional_edges("plan", router, ["work"])
            .add_conditional_edges("plan", router, [END])
        ),
        ("'plan'", "another route", "test_builder_checks.py", "both fire"),
    ),
    ("GA013", "edge beside route", lambda: base().add_conditional_edges("plan", router, [END, "work"]), ("both fire",)),
    ("GA019", "join of one", lambda: base().add_join_edge(["plan"], "work"), ("'work'", "one source", "plain edge")),
]


@pytest.mark.parametrize(("code", "title", "build", "words"), WARNINGS, ids=[f"{w[0]}-{w[1]}" for w in WARNINGS])
def test_warnings_do_not_stop_a_compile(code: str, title: str, build: Build, words: tuple[str, ...]) -> None:
    """What is odd but not wrong compiles and is kept in `warnings`."""
    found = build().compile().warnings
    assert [problem.code for problem in found] == [code]
    assert found[0].severity in ("warning", "info")
    for word in words:
        assert word in found[0].message


def test_what_is_meant_is_no_finding() -> None:
    """Default routes, END as a label, `with_edges`, visible jumps and an unlabelled compile that isn't strict."""

    async def jump(state: Trail) -> Command:
        return Command(goto="work" if state.n else END)

    builder = base().add_conditional_edges("plan", yes_no, {"yes": "work"}, default=END, with_edges=True)
    assert problems(builder.add_node("jumper", jump)) == []
    loose = base().add_conditional_edges("plan", router, with_edges=True).add_node("x", jumps_unseen)
    assert [(p.code, p.severity) for p in problems(loose, strict=False)] == [("GA008", "warning"), ("GA009", "warning")]


def rivals() -> StateGraph:
    """Two active joins, each of which can bring a source of the other."""
    builder = flow("START -> s -> a, b", "left -> c", "right -> d", "c, d -> END")
    builder.add_conditional_edges("c", router, ["b", END], with_edges=True)
    builder.add_conditional_edges("d", router, ["a", END], with_edges=True)
    return builder.add_join_edge(["a", "c"], "right", mode="active").add_join_edge(["b", "d"], "left", mode="active")


def test_ga020_active_joins_that_wait_for_each_other() -> None:
    """Neither could ever be judged: an error naming both and the way out; with mode `all` there is none."""
    found = problems(rivals())
    assert [problem.code for problem in found] == ["GA020"]
    for word in ("'right'", "'left'", "mode 'all'"):
        assert word in found[0].message
    assert set(found[0].at) == {"left", "right"}


def test_problems_come_together_with_their_places() -> None:
    """One compile reports everything; each finding carries file and line of the call that declared it."""
    line = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    builder = StateGraph(Trail, name="shop").add_node("a", says("a"))
    builder.add_node("a", says("b"))
    builder.add_edge("a", "nowhere")
    builder.add_join_edge(["ghost", "a"], "a")
    builder.interrupt_before_nodes("nobody")
    builder.add_conditional_edges("a", router)
    with pytest.raises(GraphDefinitionError) as caught:
        builder.compile()
    found = {p.code: p for p in caught.value.problems if isinstance(p, Problem)}
    expected = {"GA003": 2, "GA006": 3, "GA010": 4, "GA014": 5, "GA008": 6}
    assert {code: found[code].place.line - line for code in expected} == expected
    assert {found[code].place.file for code in expected} == {__file__}
    assert "GA001" in found
    message = str(caught.value)
    assert message.startswith("graph 'shop' has 6 problem(s):")
    assert f"{__file__}:{line + 3}: GA006 error: " in message


def test_a_finding_says_which_nodes_it_is_about() -> None:
    """`at` has the ids, for tools that mark them."""
    (problem,) = problems(base().add_edge("plan", "wrok"))
    assert problem.at == ("plan", "wrok")


# -- GA407: state fields ---------------------------------------------------------------------------

FIELDS: list[tuple[str, Any, Any, tuple[str, ...]]] = [
    ("append on a dict", Annotated[dict[str, int], append], {}, ("'x'", "'append' needs a list or a tuple")),
    ("append on a set", Annotated[set[str], append], set(), ("'append' needs a list",)),
    ("append on a str", Annotated[str, append], "", ("'append' needs a list",)),
    ("union on an int", Annotated[int, union], 0, ("'union' needs a list",)),
    ("merge on a list", Annotated[list[str], merge], [], ("'merge' needs a mapping", "list[str]")),
    ("messages on text", Annotated[list[str], messages], [], ("'messages' needs list[Message]",)),
    ("add on a dict", Annotated[dict[str, int], add], {}, ("'add' needs a type with '+'",)),
    ("two rules", Annotated[list[str], append, union], [], ("2 merge rules",)),
    ("reducer of one", Annotated[int, reducer(lambda old: old)], 0, ("old value and the update",)),
    ("default of another type", int, "many", ("'x'", "'int'", "'many'")),
    ("default None", str, None, ("'x'", "'str'", "None")),
    ("default against a bound", Annotated[int, Field(ge=1)], 0, ("'x'", "greater than or equal to 1")),
    ("default of a list", Annotated[list[int], append], ["a"], ("'x'", "list[int]")),
]


@pytest.mark.parametrize(("title", "declared", "default", "words"), FIELDS, ids=[f[0] for f in FIELDS])
def test_ga407_fields_that_do_not_fit(title: str, declared: Any, default: Any, words: tuple[str, ...]) -> None:
    """Merge rule, type and default of a field must fit each other; the error names the field."""
    state = type("Odd", (BaseModel,), {"__annotations__": {"x": declared}, "x": default})
    found = problems(state_graph(state))
    assert [problem.code for problem in found] == ["GA407"]
    for word in words:
        assert word in found[0].message


def test_ga407_fields_that_fit() -> None:
    """Every merge rule on a type that it is made for, with and without default, is no finding."""

    class Fine(BaseModel):
        items: Annotated[list[int], append] = []
        pair: Annotated[tuple[int, ...], append] = ()
        seen: Annotated[set[str], union] = set()
        facts: Annotated[dict[str, Any], merge] = {}
        total: Annotated[float, add] = 0
        text: Annotated[str, add] = ""
        history: Annotated[list[Message], messages] = []
        top: Annotated[int, reducer(lambda old, new: max(old or 0, new))] = 0
        needed: int
        maybe: str | None = None
        client: Transient[Any] = None

    assert problems(state_graph(Fine)) == []
