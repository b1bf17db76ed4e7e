"""Random graphs with one edit: a run that compatibility lets go on does go on, wherever it stood."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from graphagent import END, Executor, MemoryCheckpoints, StateGraph
from graphagent.engine.marking_codec import decode_marking, encode_marking, overlays_of
from graphagent.errors import GraphDefinitionError, IncompatibleCheckpoint
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Marking
from graphagent.graph.transitions import finished, fire, settle, start, starving
from graphagent.validation.explore import explore
from graphagent.validation.facts import Bounds
from graphagent.validation.in_flight import Judge
from graphagent.validation.mapping import Mapper, land
from graphagent.validation.standing import standing_of
from graphagent.validation.version import Version

BOUNDS = Bounds(3000, 5.0)


class Empty(BaseModel):
    """No state: only where control goes matters."""


class Plan:
    """A graph as data that can be edited: edges, routes, joins over numbered nodes."""

    def __init__(self, size: int) -> None:
        self.names = [f"n{i}" for i in range(size)]
        self.former: dict[str, str] = {}
        self.edges: list[tuple[str, str]] = []
        self.routes: dict[str, list[str]] = {}
        self.joins: dict[str, tuple[list[str], str, Any]] = {}

    def __repr__(self) -> str:
        return f"<{self.names} {self.edges} {self.routes} {self.joins} formerly {self.former}>"

    def copy(self) -> Plan:
        """A copy that can be changed."""
        other = Plan(0)
        other.names = list(self.names)
        other.edges = list(self.edges)
        other.routes = {name: list(targets) for name, targets in self.routes.items()}
        other.joins = {name: (list(sources), target, mode) for name, (sources, target, mode) in self.joins.items()}
        return other

    def renamed(self, old: str, new: str) -> None:
        """Call a node otherwise, everywhere, and declare it."""

        def now(name: str) -> str:
            return new if name == old else name

        self.names = [now(name) for name in self.names]
        self.edges = [(now(a), now(b)) for a, b in self.edges]
        self.routes = {now(a): [now(b) for b in targets] for a, targets in self.routes.items()}
        self.joins = {name: ([now(s) for s in ss], now(t), m) for name, (ss, t, m) in self.joins.items()}
        self.former[new] = old

    def removed(self, name: str) -> None:
        """Take a node out, with what is tied to it."""
        self.names.remove(name)
        self.edges = [edge for edge in self.edges if name not in edge]
        self.routes = {a: [b for b in ts if b != name] or [END] for a, ts in self.routes.items() if a != name}
        kept = {k: ([s for s in ss if s != name], t, m) for k, (ss, t, m) in self.joins.items() if t != name}
        self.joins = {k: join for k, join in kept.items() if join[0]}

    def compiled(self, choose: random.Random) -> CompiledGraph:
        """The graph; its routers choose at random. Raises GraphDefinitionError for one that can't be."""
        builder = StateGraph(Empty)
        for name in self.names:
            builder.add_node(
                name, lambda state: None, inline=True, reads=(), writes=(),
                formerly=[self.former[name]] if name in self.former else [],
            )  # fmt: skip
        for source, target in dict.fromkeys(self.edges):
            builder.add_edge(source, target)
        for source, targets in self.routes.items():
            builder.add_conditional_edges(
                source, lambda state, targets=tuple(targets): choose.choice(targets), list(dict.fromkeys(targets)),
                with_edges=True,
            )  # fmt: skip
        for name, (sources, target, mode) in self.joins.items():
            builder.add_join_edge(sources, target, id=name, mode=mode)
        return builder.set_entry_point(self.names[0]).compile()


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan of up to seven nodes: mostly forward, with forks, routes, joins and now and then a way back."""
    plan = Plan(draw(st.integers(3, 7)))
    last = len(plan.names) - 1
    for i, name in enumerate(plan.names):
        later = st.sampled_from([*plan.names[i + 1 :], END]) if i < last else st.just(END)
        kind = draw(st.sampled_from(["edge", "edge", "fork", "route", "join"]))
        if kind == "route":
            anywhere = st.one_of(later, later, st.sampled_from([*plan.names, END]))
            plan.routes[name] = draw(st.lists(anywhere, min_size=1, max_size=3))
        elif kind == "join" and 0 < i < last:
            sources = draw(st.lists(st.sampled_from(plan.names[: i + 1]), min_size=1, max_size=3, unique=True))
            target = draw(st.sampled_from(plan.names[i + 1 :]))
            plan.joins[f"j{i}"] = (sources, target, draw(st.sampled_from(["all", "all", "any", "active"])))
        else:
            for _ in range(2 if kind == "fork" else 1):
                plan.edges.append((name, draw(later)))
    return plan


@st.composite
def edited(draw: st.DrawFn) -> tuple[Plan, Plan]:
    """A plan and the same with one edit."""
    old = draw(plans())
    new = old.copy()
    name = draw(st.sampled_from(old.names))
    edit = draw(
        st.sampled_from(["rename", "remove", "edge", "no-edge", "source", "no-source", "mode", "route", "order"])
    )
    if edit == "rename":
        new.renamed(name, "new")
    elif edit == "remove" and name != old.names[0]:
        new.removed(name)
    elif edit == "edge":
        new.edges.append((name, draw(st.sampled_from([*old.names, END]))))
    elif edit == "no-edge" and new.edges:
        new.edges.remove(draw(st.sampled_from(new.edges)))
    elif edit == "route":
        new.routes[name] = draw(st.lists(st.sampled_from([*old.names, END]), min_size=1, max_size=2))
    elif edit == "order":
        new.names[1:] = draw(st.permutations(new.names[1:]))
    elif new.joins:
        key = draw(st.sampled_from(sorted(new.joins)))
        sources, target, mode = new.joins[key]
        if edit == "source" and name not in sources:
            new.joins[key] = ([*sources, name], target, mode)
        elif edit == "no-source" and len(sources) > 1:
            new.joins[key] = (sources[1:], target, mode)
        elif edit == "mode":
            new.joins[key] = (sources, target, draw(st.sampled_from(["all", "any", "active"])))
    return old, new


def both(pair: tuple[Plan, Plan], choose: random.Random) -> tuple[CompiledGraph, CompiledGraph] | None:
    """Both compiled, or None where one of them can't be."""
    try:
        return pair[0].compiled(choose), pair[1].compiled(choose)
    except GraphDefinitionError:
        return None


def good(graph: CompiledGraph, marking: Marking) -> bool:
    """True if a run may end there."""
    return not starving(graph, marking) and (marking.ended or not graph.names_end)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(edited())
def test_what_may_go_on_ends_as_well_as_before(pair: tuple[Plan, Plan]) -> None:
    """Every marking of the old graph: what the judge puts into the new one is what the engine restores from the row,
    and a run that may go on ends badly in the new graph only in a way in which it could have in the old one."""
    graphs = both(pair, random.Random(0))
    if graphs is None:
        return
    old, new = Version.of(graphs[0]), Version.of(graphs[1])
    judge = Judge(new, old, bounds=BOUNDS)
    for marking in explore(old.graph, old.choices, BOUNDS).markings:
        if not marking.frontier:
            continue
        standing = standing_of(old.graph, marking)
        verdict = judge.judge(standing, marking)
        try:
            plain = encode_marking(old.graph, marking)
            restored = settle(new.graph, decode_marking(new.graph, plain, overlays_of(marking)))
        except IncompatibleCheckpoint:
            assert verdict.blocked
            continue
        landed = land(Mapper(old, new), standing).marking
        assert landed is not None
        assert landed.key() == restored.key()
        if verdict.blocked or not verdict.complete:
            continue
        could_fail = not all(good(old.graph, m) for m in ends(old, marking))
        assert could_fail or all(good(new.graph, m) for m in ends(new, restored))


def ends(version: Version, marking: Marking) -> list[Marking]:
    """The ends that random walks come to, with their own choice of who runs next."""
    choose = random.Random(1)
    found = []
    for _ in range(10):
        now = marking
        for _ in range(60):
            if finished(now):
                found.append(now)
                break
            position = choose.randrange(len(now.frontier))
            outcome = choose.choice(version.choices.of[now.frontier[position].node])
            now = fire(version.graph, now, [outcome.completion(position)])
    return found


@pytest.mark.anyio
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(pair=edited(), seed=st.integers(0, 999), engine=st.sampled_from(["superstep", "eager"]))
async def test_the_engine_ends_what_may_go_on(pair: tuple[Plan, Plan], seed: int, engine: Any) -> None:
    """A stopped run, resumed by the real engine with the new graph: refused, or ended as well as the old one could."""
    choose = random.Random(seed)
    graphs = both(pair, choose)
    if graphs is None:
        return
    old, new = graphs
    judge = Judge(Version.of(new), Version.of(old), bounds=BOUNDS)
    async with MemoryCheckpoints() as store:
        executor = Executor(old, store, engine)
        await executor.run(lineage="l", budget=None)
        rows = [header.seq for header in await store.history("l") if header.source in ("input", "step")]
        for seq in rows[:6]:
            loaded = await store.load("l", "", seq)
            assert loaded is not None
            plain = loaded.row.marking
            plain = plain["m"] if isinstance(plain, dict) and "m" in plain else plain
            marking = decode_marking(old, plain, {})
            if not marking.frontier:
                continue
            blocked = judge.judge(standing_of(old, marking), marking).blocked
            try:
                result = await Executor(new, store, engine).resume("l", checkpoint=seq)
            except IncompatibleCheckpoint:
                assert blocked
                continue
            could_fail = not all(good(old, m) for m in ends(Version.of(old), marking))
            assert result.status in ("completed", "limit_reached") or could_fail, (result.status, result.reason)


def test_the_walk_sees_a_stall() -> None:
    """The oracle of these tests: a join whose source was not taken is an end that is not good."""
    plan = Plan(4)
    plan.edges = [("n0", "n1"), ("n3", END)]
    plan.routes = {"n1": ["n2", END]}
    plan.joins = {"j": (["n1", "n2"], "n3", "all")}
    graph = Version.of(plan.compiled(random.Random(0)))
    assert {good(graph.graph, marking) for marking in ends(graph, start(graph.graph))} == {True, False}
