"""GA501: a way past a guard is found with a trace that the executor follows, and a kept policy is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphagent import START
from graphagent.testing.scripted import play
from graphagent.validation import load_document, read_document, validate
from graphagent.validation.example import finding
from graphagent.validation.notation import parse_notation

SHARED = Path(__file__).parents[2].parent / "shared" / "validator_cases"

BROKEN = {
    "a route past it": ("plan ? ok | pay\nok -> pay\npay -> END\nmust pay through ok", "plan=pay; pay"),
    "an edge past it": (
        "plan -> ok, other\nother -> pay\nok -> pay\npay -> END\nmust pay through ok",
        "plan; other; pay",
    ),
    "a join of any": ("s -> ok, x\nok & x =any=> pay\npay -> END\nmust pay through ok", "s; x; pay"),
    "an active join after a choice": (
        "s * ok | x\nok & x =active=> pay\npay -> END\nmust pay through ok",
        "s=x; x; pay",
    ),
    "an error edge": ("s -> ok -> pay -> END\ns !> pay\nmust pay through ok", "s=error:pay; pay"),
    "a fan-out": ("s ? m | ok\nm @ pay then ok\npay -> ok -> END\nmust pay through ok", "s=m; m=send:pay; pay"),
    "an empty fan-out": ("m @ ok then pay\nok -> pay -> END\nmust pay through ok", "m=none; pay"),
    "one of two guards left out": ("s ? a | b | c\na -> p\nb -> p\nc -> p\np -> END\nmust p through a, b", "s=c; c; p"),
    "a join of others": ("s -> a, b, ok\na & b => pay\npay -> END\nok -> END\nmust pay through ok", "s; a; b; pay"),
    "a Send to where a join waits": (
        "m @ pay\nm & ok => pay\npay -> END\nok -> END\nmust pay through ok",
        "m=send:pay; pay",
    ),
    "the entry itself": ("pay -> END\nok -> pay\nmust pay through ok", "pay"),
    "two laps": (
        "r ? a | b | x\na -> r\nb -> r\nx -> END\na & b => p\np -> END\nmust p through x",
        "r=a; a; r=b; b; p",
    ),
}
KEPT = {
    "the only way": "s -> ok -> pay -> END\nmust pay through ok",
    "a join of all": "s -> ok, x\nok & x => pay\npay -> END\nmust pay through ok",
    "an active join of both": "s -> ok, x\nok & x =active=> pay\npay -> END\nmust pay through ok",
    "a join of two, and two sources": "s -> ok, x\nok & x =2=> pay\npay -> END\nmust pay through ok",
    "either of two guards": "s ? a | b\na -> p\nb -> p\np -> END\nmust p through a, b",
    "a loop behind the guard": "s -> ok -> pay\npay ? pay | END\nmust pay through ok",
    "two sources of one choice": "s ? a | b\na & b => pay\npay -> END\nok -> END\nmust pay through ok",
    "a guard that fails over": "s -> ok -> END\nok !> pay\npay -> END\nmust pay through ok",
    "an arrival that is no trigger": "s -> ok, r\nr ? pay | END\nok & r => pay\npay -> END\nmust pay through ok",
}


@pytest.mark.parametrize(("text", "script"), BROKEN.values(), ids=BROKEN)
def test_a_way_past_a_guard_is_found_with_its_trace(text: str, script: str) -> None:
    """GA501 names the node, and its trace begins at START, leaves the guards out and ends at the node."""
    found = finding(text, "GA501")
    assert found is not None
    assert (found.severity, found.script) == ("error", script)
    assert found.trace[0].node == START
    assert found.trace[-1].node == found.at[0]


@pytest.mark.anyio
@pytest.mark.parametrize(("text", "script"), BROKEN.values(), ids=BROKEN)
async def test_the_executor_follows_the_trace_past_the_guard(text: str, script: str) -> None:
    """The trace of GA501, driven through the real executor, runs the node and none of its guards."""
    doc = parse_notation(text)
    graph = load_document(doc).builder.compile(strict=False)
    (node, guards), *_ = graph.definition.must_pass
    played = await play(graph, script)
    names = [graph.names[pick.node] for pick in played.picks]
    assert names[-1] == node
    assert not {*names} & {*guards}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_a_kept_policy_is_left_alone(text: str) -> None:
    """No GA501 where every run passes a guard, joins counted as they are."""
    assert finding(text, "GA501") is None


def test_what_the_bounds_leave_open_is_said() -> None:
    """Where choices contradict each other and the search is cut off, a warning says that it was not decided."""
    branches = "\n".join(f"x{i} -> y{i} -> z{i} -> END" for i in range(12))
    fork = ", ".join(f"x{i}" for i in range(12))
    text = f"s -> r, {fork}\n{branches}\nr ? a | b\na & b => pay\npay -> END\nok -> END\nmust pay through ok"
    found = finding(text, "GA501")
    assert found is not None
    assert (found.severity, "not decided" in found.message) == ("warning", True)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared cases are not here")
def test_the_shared_case_has_the_expected_trace() -> None:
    """The trace of the public case: START, plan, pay."""
    (found,) = validate(load_document(read_document(SHARED / "GA501.json")).builder, rules=["GA501"]).findings
    assert [step.node for step in found.trace] == ["__start__", "plan", "pay"]
