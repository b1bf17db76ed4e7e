"""Graphs, completions and markings as short texts, for tests of the transition function.

Graph: `a b c d: a>b a>c b,c=all>d` declares nodes in order, then plain edges `source>target` and joins
`sources=mode>target` (`#id` names one). The first node is the entry unless `^x` words name others. `a?x,y` says where
`a` may jump; with no such word every node may jump anywhere.

Call: a word per completion. `a` leaves by its edges, `a?x,y` has chosen routes, `a=x` jumps, `a*w,w` sends; `a.1` is
the second activation of `a` in the frontier.

Marking: `node@branch` per activation, then `END` once it was reached, then the joins that wait, `d<b` for one that
has `b`.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import BaseModel

from graphagent import END, StateGraph
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Completion, Marking, text_of
from graphagent.graph.transitions import fire, start, starving

Steps = list[tuple[str, str]]
"""Calls, each with the marking expected after it."""
_JOIN = re.compile(r"([\w,]+)=(\w+)>(\w+)(?:#(\w+))?")
_COMPLETION = re.compile(r"(\w+)(?:\.(\d+))?(?:([?=*])([\w,]*))?")


class Nothing(BaseModel):
    """A state without fields: transitions never look at it."""


def graph_of(text: str) -> CompiledGraph:
    """The compiled graph of a text."""
    names, _, rest = text.partition(":")
    ids = names.split()
    words = rest.split()
    jumps = {word.partition("?")[0]: word.partition("?")[2].split(",") for word in words if "?" in word}
    builder = StateGraph(Nothing)
    for name in ids:
        builder.add_node(name, _nothing, inline=True, destinations=jumps.get(name, []) if jumps else ids)
    builder.set_entry_point(*([word[1:] for word in words if word[0] == "^"] or ids[:1]))
    for word in words:
        join = _JOIN.fullmatch(word)
        if join is not None:
            sources, mode, target, own = join.groups()
            counted: Any = int(mode) if mode.isdigit() else mode
            builder.add_join_edge(sources.split(","), _id(target), mode=counted, id=own)
        elif ">" in word:
            source, target = word.split(">")
            builder.add_edge(source, _id(target))
    return builder.compile()


def _nothing(state: Any) -> None:
    """Never called: transitions know nodes by index only."""


def _id(name: str) -> str:
    return END if name == "END" else name


def completions(graph: CompiledGraph, marking: Marking, call: str) -> list[Completion]:
    """The completions of one call of `fire`. Each has the origin `<node>!`; Sends lay `item` over, by index."""
    done: list[Completion] = []
    for word in call.split():
        match = _COMPLETION.fullmatch(word)
        assert match is not None, word
        node, nth, kind, named = match.groups()
        taken = {completion.position for completion in done}
        places = [i for i, a in enumerate(marking.frontier) if graph.names[a.node] == node and (nth or i not in taken)]
        targets = tuple(graph.index.get(name, -1) for name in (named or "").split(",") if name)
        position, origin = places[int(nth or 0)], f"{node}!"
        if kind == "*":
            sends = tuple((target, {"item": i}) for i, target in enumerate(targets))
            done.append(Completion(position, sends=sends, origin=origin))
        elif kind == "=":
            done.append(Completion(position, goto=targets, origin=origin))
        else:
            done.append(Completion(position, chosen=targets, origin=origin))
    return done


def play(graph: CompiledGraph, *calls: str) -> Marking:
    """The marking after some calls of `fire`, from the start."""
    marking = start(graph)
    for call in calls:
        marking = fire(graph, marking, completions(graph, marking, call))
    return marking


def shown(graph: CompiledGraph, marking: Marking) -> str:
    """A marking as text."""
    words = [graph.names[a.node] + (f"@{text_of(a.branch)}" if a.branch else "") for a in marking.frontier]
    words += ["END"] if marking.ended else []
    words += [f"{found.join}<{','.join(found.have)}" for found in starving(graph, marking)]
    return " ".join(words)


def follow(text: str, begins: str, steps: Steps) -> None:
    """Play a case and compare every marking on the way."""
    graph = graph_of(text)
    marking = start(graph)
    assert shown(graph, marking) == begins
    for call, expected in steps:
        marking = fire(graph, marking, completions(graph, marking, call))
        assert shown(graph, marking) == expected, f"after '{call}'"


def table(**cases: tuple[str, str, Steps]) -> pytest.MarkDecorator:
    """A parametrisation over named cases."""
    return pytest.mark.parametrize(
        ("text", "begins", "steps"), [pytest.param(*case, id=name.replace("_", "-")) for name, case in cases.items()]
    )
