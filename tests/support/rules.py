"""Every rule with a graph that breaks it and one that just doesn't, those too that need Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from graphagent import END, START, CompiledGraph, StateGraph
from graphagent.validation import Bounds, Diagnostic, Facts, Report, load_document, validate
from graphagent.validation.catalogue import catalogue
from graphagent.validation.compat_rules import RULES as COMPAT_RULES
from graphagent.validation.example import report
from graphagent.validation.notation import parse_notation

GOLDEN = Path(__file__).parents[1] / "validation" / "golden" / "messages.txt"
EAGER = Facts(engine="eager")
OF_PAIRS = frozenset(rule.code for rule in COMPAT_RULES)
"""Rules that are broken by two graphs, an old and a new one: tests/validation/test_compat.py has their cases."""


class Text(BaseModel):
    """`x` is text."""

    x: str = ""


class Number(BaseModel):
    """`x` is a number."""

    x: int = 0


def nothing(state: Any) -> None:
    """A node that changes nothing."""


def with_child(state: type, child_state: type) -> StateGraph:
    """A graph with one subgraph node."""
    child = StateGraph(child_state, name="child").add_node("a", nothing, writes=()).add_edge(START, "a")
    child.add_edge("a", END)
    outer = StateGraph(state, name="parent").add_subgraph_node("inner", child.compile())
    return outer.add_edge(START, "inner").add_edge("inner", END)


def running_itself() -> CompiledGraph:
    """A graph whose node asks for the graph itself."""

    def again(state: Any) -> Any:
        return graph

    graph = StateGraph(Text, name="tree").add_node("a", again).add_edge(START, "a").add_edge("a", END).compile()
    return graph


def running_another() -> CompiledGraph:
    """A graph whose node asks for another graph."""
    other = with_child(Text, Text).compile()

    def leaf(state: Any) -> Any:
        return other

    return StateGraph(Text, name="tree").add_node("a", leaf).add_edge(START, "a").add_edge("a", END).compile()


def searched(states: int) -> Report:
    """A graph that is only decided by the search, with that bound."""
    text = "s -> a, b, c\na ? a | a2\nb ? b | b2\nc ? c | c2\na2 & b2 & c2 =2=> j\nj -> END"
    builder = load_document(parse_notation(text, "example")).builder
    return validate(builder, facts=EAGER, bounds=Bounds(max_states=states))


IN_PYTHON: dict[str, tuple[Callable[[], Report], Callable[[], Report]]] = {
    "GA016": (lambda: validate(running_itself(), facts=EAGER), lambda: validate(running_another(), facts=EAGER)),
    "GA017": (
        lambda: validate(with_child(Text, Number), facts=EAGER),
        lambda: validate(with_child(Text, Text), facts=EAGER),
    ),
    "GA309": (lambda: searched(3), lambda: searched(10_000)),
}
"""Rules that the notation has no example of: GA016 and GA017 are about functions and types, GA309 about a bound."""


def fails(code: str) -> Report:
    """The report on the graph that breaks a rule."""
    return IN_PYTHON[code][0]() if code in IN_PYTHON else report(catalogue()[code].fails)


def passes(code: str) -> Report:
    """The report on the near miss of a rule."""
    return IN_PYTHON[code][1]() if code in IN_PYTHON else report(catalogue()[code].passes)


def shown(code: str) -> Diagnostic | None:
    """The finding of a rule on the graph that breaks it."""
    return next((finding for finding in fails(code).findings if finding.code == code), None)


def codes() -> list[str]:
    """The rules that one graph breaks."""
    return [code for code in catalogue() if code not in OF_PAIRS]


def line(code: str) -> str:
    """The line of a rule in the golden file."""
    finding = shown(code)
    return f"{code} nothing" if finding is None else f"{code} {finding.severity}: {finding.message}"
