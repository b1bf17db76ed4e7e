"""GA6xx: what a step limit leaves room for, as the executor counts."""

from __future__ import annotations

from typing import Any

import pytest

from graphagent import Executor, Limits
from graphagent.graph.compiled import CompiledGraph
from graphagent.testing.scripted import play
from graphagent.validation import Diagnostic, Facts, load_document, validate
from graphagent.validation.notation import parse_notation


def judged(text: str, limit: int | None = None, engine: Any = "superstep") -> list[Diagnostic]:
    """The findings of the family; `limit` is that of the executor."""
    source = load_document(parse_notation(text))
    facts = Facts(engine=engine, max_steps=limit)
    return list(validate(source.builder, rules=["GA6"], facts=facts).findings)


def compiled(text: str) -> CompiledGraph:
    """The graph of a text."""
    return load_document(parse_notation(text)).builder.compile()


# text, the steps of the shortest run in supersteps and in completions
SHORTEST = {
    "one node": ("a -> END", 1, 1),
    "a line": ("a -> b -> c -> END", 3, 3),
    "the shorter of two": ("a ? b | END\nb -> c -> END", 1, 1),
    "a join of all": ("s -> a, b\nb -> c\na & c => j\nj -> END", 4, 5),
    "a join of any, and the rest": ("s -> a, b\nb -> c\na & c =any=> j\nj -> END", 3, 5),
    "an arrival that is no trigger": ("s -> a, b\na ? j | x\nx -> END\nb -> c\na & c => j\nj -> END", 4, 5),
    "a branch that goes on behind END": ("s -> a, b\na -> END\nb -> c -> d -> END", 4, 5),
    "by an error edge": ("a -> b -> c -> END\na !> END", 1, 1),
    "an empty fan-out": ("m @ w then c\nw -> c -> END", 2, 2),
}


@pytest.mark.parametrize(("text", "supersteps", "completions"), SHORTEST.values(), ids=SHORTEST)
@pytest.mark.parametrize("engine", ["superstep", "eager"])
def test_a_limit_that_no_run_can_keep(text: str, supersteps: int, completions: int, engine: Any) -> None:
    """GA601 for any limit below the shortest run, none from there on, whoever sets the limit."""
    least = completions if engine == "eager" else supersteps
    for limit in range(1, least + 2):
        wrong = "GA601" in {one.code for one in judged(text, limit, engine)}
        assert wrong is (limit < least), (limit, least)
        assert ("GA601" in {one.code for one in judged(f"{text}\nlimit steps {limit}", None, engine)}) is wrong


@pytest.mark.anyio
@pytest.mark.parametrize("engine", ["superstep", "eager"])
@pytest.mark.parametrize(
    ("text", "least"),
    [("a -> b -> c -> END", 3), ("s -> a, b\nb -> c\na & c => j\nj -> END", {"superstep": 4, "eager": 5})],
)
async def test_the_executor_counts_alike(text: str, least: Any, engine: Any) -> None:
    """With the limit that GA601 asks for the run completes, with one less it is cut off."""
    steps = least if isinstance(least, int) else least[engine]
    for limit, status in ((steps, "completed"), (steps - 1, "limit_reached")):
        result = await Executor(compiled(text), engine=engine, limits=Limits(max_steps=limit)).run({})
        assert result.status == status


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["a line", "the shorter of two", "a join of all", "by an error edge"])
async def test_the_trace_is_the_way_to_the_end(name: str) -> None:
    """The trace of GA601, driven through the real executor, reaches END."""
    text, _, completions = SHORTEST[name]
    if completions == 1:
        return
    (one,) = [one for one in judged(text, completions - 1, "eager") if one.code == "GA601"]
    assert (await play(compiled(text), one.script)).result.status == "completed"


def test_the_smaller_limit_counts_and_is_named() -> None:
    """Of the graph's and the executor's limit the smaller one is meant."""
    (one,) = judged("a -> b -> c -> END\nlimit steps 5", 2)
    assert "the executor stops after 2 steps" in one.message
    (one,) = judged("a -> b -> c -> END\nlimit steps 1", 2)
    assert "limits(steps=1)" in one.message


@pytest.mark.parametrize(
    "text",
    [
        "a -> b\nb -> a",
        "a -> b",
        "a ? ?\nb -> c -> d -> END",
        "a ? x | y\nx -> j\ny -> j\nx & y => k\nj -> END\nk -> END",
    ],
)
def test_where_the_end_can_t_be_told_nothing_is_claimed(text: str) -> None:
    """No GA601 without END, without a way there, or where targets aren't declared."""
    source = load_document({**parse_notation(text), "unchecked": True})
    facts = Facts(max_steps=1, unchecked=True)
    codes = {one.code for one in validate(source.builder, rules=["GA601"], facts=facts).findings}
    assert codes == ({"GA601"} if "k" in text else set())


LONGEST = {
    "a detour": ("a ? b | END\nb -> c -> END", 3),
    "a loop counts once": ("a ? a | b\nb -> END", 2),
    "through a loop": ("a -> b -> c\nc ? a | d\nd -> END", 4),
    "the longer branch": ("s ? a | b\na -> END\nb -> c -> d -> END", 4),
    "not by an error edge": ("a -> END\na !> h\nh -> i -> END", 1),
    "not to where no END is": ("s ? a | END\na -> b -> c", 1),
}


@pytest.mark.parametrize(("text", "steps"), LONGEST.values(), ids=LONGEST)
def test_a_limit_that_some_run_exceeds(text: str, steps: int) -> None:
    """GA602 below the longest way without a lap, none from there on, and not beside GA601."""
    for limit in range(1, steps + 2):
        codes = {one.code for one in judged(text, limit)}
        assert len(codes) <= 1
        assert bool(codes) is (limit < steps), limit


def test_a_long_way_is_told_in_short() -> None:
    """The way is in the related texts, its middle left out."""
    line = " -> ".join(f"n{i}" for i in range(12))
    (one,) = judged(f"s ? n0 | END\n{line} -> END", 5)
    assert one.related == ("the way: s -> n0 -> n1 -> ... -> n10 -> n11",)


def test_without_a_limit_there_is_nothing_to_say() -> None:
    """No limit known: nothing is worked out."""
    assert judged("a -> b -> END") == []
