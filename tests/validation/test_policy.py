"""GA502 to GA507: each finding is right about what the executor does, and what comes near is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, SecretStr

from graphagent import (
    END,
    START,
    Executor,
    MemoryCheckpoints,
    RetryPolicy,
    SqlCheckpoints,
    StateGraph,
    Transient,
    append,
)
from graphagent.errors import AnswerError
from graphagent.validation import Facts, load_document, validate
from graphagent.validation.example import finding, report
from graphagent.validation.notation import parse_notation


class State(BaseModel):
    """A trail of what happened."""

    log: Annotated[list[str], append] = []


def graph_of(**nodes: Any) -> StateGraph:
    """The nodes one behind the other; a tuple gives options beside the function."""
    builder = StateGraph(State)
    names = list(nodes)
    for name, made in nodes.items():
        fn, options = made if isinstance(made, tuple) else (made, {})
        builder.add_node(name, fn, **options)
    for source, target in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(source, target)
    return builder


def codes(builder: StateGraph, facts: Facts | None = None) -> set[str]:
    """The codes of the family that are found."""
    return {found.code for found in validate(builder, rules=["GA5"], facts=facts).findings}


# -- GA502 -------------------------------------------------------------------------------------------


async def asks(state: State, ctx: Any) -> dict[str, Any]:
    """Asks one question."""
    return {"log": [await ctx.interrupt("ok", "go on?")]}


NO_STORE = Facts(store=False)
QUESTIONS = {
    "an interrupt node": StateGraph(State).add_interrupt_node("a", prompt="?").add_edge(START, "a").add_edge("a", END),
    "a question in a body": graph_of(a=asks),
    "a breakpoint before": graph_of(a=(lambda state: None, {"interrupt_before": True})),
    "a breakpoint after": graph_of(a=lambda state: None).interrupt_after_nodes("a"),
    "a condition": graph_of(a=(lambda state: None, {"interrupt_before": lambda state: True})),
    "a question in a child": StateGraph(State)
    .add_subgraph_node("a", graph_of(b=asks).compile())
    .add_edge(START, "a")
    .add_edge("a", END),
}


@pytest.mark.parametrize("builder", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_needs_a_store(builder: StateGraph) -> None:
    """GA502 for whatever stops a run to wait, if runs are not saved; not if they are, or if nobody knows."""
    found = [one for one in validate(builder, facts=NO_STORE).findings if one.code == "GA502"]
    assert [one.at[0] for one in found][:1] == ["a"]
    assert "GA502" not in codes(builder)
    assert "GA502" not in codes(builder, Facts(store=True))


def test_a_graph_without_questions_needs_no_store() -> None:
    """No GA502 where nothing waits."""
    assert codes(graph_of(a=lambda state: None), NO_STORE) == set()


# -- GA503 -------------------------------------------------------------------------------------------

DONE: list[str] = []


def pay() -> None:
    """Something that should happen once."""
    DONE.append("paid")


async def pays_then_asks(state: State, ctx: Any) -> None:
    """Pays, then asks."""
    pay()
    await ctx.interrupt("ok")


async def asks_then_pays(state: State, ctx: Any) -> None:
    """Asks, then pays."""
    await ctx.interrupt("ok")
    pay()


async def pays_by_step(state: State, ctx: Any) -> None:
    """Pays through the ledger, then asks."""
    await ctx.step("pay", pay)
    await ctx.interrupt("ok")


async def pays_by_another_step(state: State, ctx: Any) -> None:
    """Another effect goes through the ledger."""
    await ctx.step("mail", pay)
    pay()
    await ctx.interrupt("ok")


async def pays_with_a_key(state: State, ctx: Any) -> None:
    """Pays under an idempotency key, then asks."""
    print(ctx.idempotency_key("pay"))
    pay()
    await ctx.interrupt("ok")


async def asks_in_turns(state: State, ctx: Any) -> None:
    """Asks and pays, round and round."""
    for item in range(2):
        await ctx.interrupt(f"ok {item}")
        pay()


async def named_steps(state: State, ctx: Any) -> None:
    """Steps under names that are made at run time."""
    for name in ("pay", "mail"):
        await ctx.step(name, pay)
    await ctx.interrupt("ok")


IN_ONE_BODY = [
    (pays_then_asks, True),
    (asks_in_turns, True),
    (pays_by_another_step, True),
    (asks_then_pays, False),
    (pays_by_step, False),
    (pays_with_a_key, False),
    (named_steps, False),
    (lambda state: None, False),
]


@pytest.mark.parametrize(("fn", "found"), IN_ONE_BODY, ids=lambda item: getattr(item, "__name__", str(item)))
def test_an_effect_before_a_question(fn: Any, found: bool) -> None:
    """GA503 for what would be done again when the answer comes, and for nothing else."""
    assert ("GA503" in codes(graph_of(a=(fn, {"effects": ["pay"]})))) is found
    assert "GA503" not in codes(graph_of(a=(fn, {"effects": ["pay"], "idempotent": True})))
    assert "GA503" not in codes(graph_of(a=fn))


@pytest.mark.anyio
@pytest.mark.parametrize(("fn", "times"), [(pays_then_asks, 2), (asks_then_pays, 1), (pays_by_step, 1)])
async def test_the_executor_repeats_just_those(fn: Any, times: int) -> None:
    """What GA503 warns of happens: the effect is done a second time when the run is resumed."""
    DONE.clear()
    executor = Executor(graph_of(a=fn).compile(), MemoryCheckpoints())
    stopped = await executor.run(lineage="x")
    assert stopped.status == "interrupted"
    await executor.resume("x", answer="yes")
    assert len(DONE) == times


# -- GA504 -------------------------------------------------------------------------------------------


def both(one: str, other: str) -> StateGraph:
    """Two interrupt nodes side by side."""
    builder = StateGraph(State).add_node("s", lambda state: None).add_edge(START, "s")
    for name, key in (("a", one), ("b", other)):
        builder.add_interrupt_node(name, prompt="?", key=key).add_edge("s", name)
    return builder.add_join_edge(["a", "b"], END)


def test_two_open_questions_with_one_key() -> None:
    """GA504 for two that can be open together, with a trace; none for two keys, or one after the other."""
    (found,) = [one for one in validate(both("ok", "ok")).findings if one.code == "GA504"]
    assert (found.severity, found.at, found.script) == ("error", ("a", "b"), "s")
    assert "GA504" not in codes(both("ok", "fine"))
    assert "GA504" not in codes(graph_of(a=asks, b=asks))


@pytest.mark.anyio
async def test_the_executor_refuses_that_key() -> None:
    """What GA504 says happens: an answer by the key is refused as ambiguous."""
    executor = Executor(both("ok", "ok").compile(), MemoryCheckpoints())
    stopped = await executor.run(lineage="x")
    assert len(stopped.interrupts) == 2
    with pytest.raises(AnswerError):
        await executor.resume("x", {"ok": "yes"})


def test_one_question_for_every_item_is_a_warning() -> None:
    """Items of a fan-out ask under one key: they can be told apart by id, so that it is a warning."""

    class Items(State):
        items: list[str] = []
        item: str = ""

    builder = StateGraph(Items).add_map_node("m", asks, over="items", item_key="item", collect="end")
    builder.add_node("end", lambda state: None).add_edge(START, "m").add_edge("end", END)
    found = [one for one in validate(builder).findings if one.code == "GA504"]
    assert [(one.severity, one.at) for one in found] == [("warning", ("m.item",))]


def test_questions_of_children_count() -> None:
    """A child's question and one of its parent beside it share a key: GA504."""
    child = graph_of(b=asks).compile()
    builder = StateGraph(State).add_node("s", lambda state: None).add_subgraph_node("c", child)
    builder.add_node("d", asks).add_edge(START, "s").add_edge("s", "c").add_edge("s", "d")
    builder.add_join_edge(["c", "d"], END)
    assert "GA504" in codes(builder)


@pytest.mark.parametrize(("engine", "severity"), [("superstep", "warning"), ("eager", "error"), ("both", "error")])
def test_questions_of_different_steps(engine: Any, severity: str) -> None:
    """Two that never meet in one superstep are only right by timing."""
    text = "s -> a, x\nx -> b\na & b => j\nj -> END\nnode a asks ok\nnode b asks ok"
    source = load_document(parse_notation(text))
    found = [one for one in validate(source.builder, facts=Facts(engine=engine)).findings if one.code == "GA504"]
    assert [one.severity for one in found] == [severity]


# -- GA505 -------------------------------------------------------------------------------------------

TWICE = RetryPolicy(max_attempts=2, initial=0)
AGAIN = {
    "retried": (pays_then_asks, {"retry": TWICE}, True),
    "tried once": (pays_then_asks, {"retry": RetryPolicy(max_attempts=1)}, False),
    "idempotent": (pays_then_asks, {"retry": TWICE, "idempotent": True}, False),
    "through the ledger": (pays_by_step, {"retry": TWICE}, False),
    "not retried": (pays_then_asks, {}, False),
}


@pytest.mark.parametrize(("fn", "options", "found"), AGAIN.values(), ids=AGAIN)
def test_an_effect_that_is_retried(fn: Any, options: dict[str, Any], found: bool) -> None:
    """GA505 where a failing attempt would repeat the effect."""
    assert ("GA505" in codes(graph_of(a=(fn, {"effects": ["pay"], **options})))) is found


def test_a_default_retry_counts() -> None:
    """The executor retries all nodes: so it does this one."""
    builder = graph_of(a=(lambda state: None, {"effects": ["pay"]}))
    assert "GA505" in codes(builder, Facts(retried=True))


def test_an_effect_on_a_loop() -> None:
    """Every lap does it again, through the ledger or not."""
    loop = "a ? a | END\nnode a effects pay"
    assert finding(loop, "GA505") is not None
    assert finding(loop + " idempotent", "GA505") is None
    assert finding("a ? a | b\nb -> END\nnode b effects pay", "GA505") is None


@pytest.mark.anyio
async def test_the_executor_retries_the_effect() -> None:
    """What GA505 warns of happens: the second attempt does it again."""
    DONE.clear()

    def fails_once(state: State) -> None:
        pay()
        if len(DONE) == 1:
            raise ValueError("not yet")

    result = await Executor(graph_of(a=(fails_once, {"effects": ["pay"], "retry": TWICE})).compile()).run()
    assert (result.status, len(DONE)) == ("completed", 2)


# -- GA506, GA507 ------------------------------------------------------------------------------------


class Secrets(BaseModel):
    """Secrets in all forms."""

    key: SecretStr = SecretStr("")
    keys: list[SecretStr] = []
    passing: Transient[SecretStr] = SecretStr("")
    api_key: str = ""
    db_password: bytes = b""
    access_token: Transient[str] = ""
    max_tokens: int = 0
    secret_count: int = 0
    secretary: str = ""
    token: str = ""


def test_secrets_that_are_saved() -> None:
    """GA506 for secret types, GA507 for text that is called like a secret; not for transient fields or numbers."""
    builder = StateGraph(Secrets).add_node("a", lambda state: None).add_edge(START, "a").add_edge("a", END)
    found = [(one.code, one.at[0]) for one in validate(builder, rules=["GA506", "GA507"]).findings]
    assert found == [("GA506", "key"), ("GA506", "keys"), ("GA507", "api_key"), ("GA507", "db_password")]
    assert codes(builder, NO_STORE) == set()


def test_a_secret_field_survives_the_document() -> None:
    """The canonical JSON of a graph with a secret is validated like the graph itself."""
    graph = StateGraph(Secrets).add_node("a", lambda state: None).add_edge(START, "a").add_edge("a", END).compile()
    found = [
        (one.code, one.at[0]) for one in validate(load_document(graph.to_json()).builder, rules=["GA506"]).findings
    ]
    assert ("GA506", "key") in found


@pytest.mark.anyio
async def test_a_store_refuses_the_secret(tmp_path: Path) -> None:
    """What GA506 warns of happens, in the middle of a run; GA507's field is written in clear text."""

    def writes(state: Secrets) -> dict[str, Any]:
        return {"key": SecretStr("s3cret"), "api_key": "in clear"}

    graph = StateGraph(Secrets).add_node("a", writes).add_edge(START, "a").add_edge("a", END).compile()
    async with SqlCheckpoints(f"sqlite:///{tmp_path / 'x.db'}") as store:
        result = await Executor(graph, store).run(lineage="x")
    assert result.status == "failed"
    assert "cipher" in str(result.error)


def test_the_family_is_quiet_on_a_plain_graph() -> None:
    """Nothing to say about a graph without policies, questions, effects and secrets."""
    assert [one for one in report("a ? b | END\nb -> a").findings if one.code.startswith("GA5")] == []
