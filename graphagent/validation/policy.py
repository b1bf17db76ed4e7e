"""GA5xx: policies, questions to people, side effects, secrets: what must not happen whatever the graph's shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement
from typing import NamedTuple

from graphagent.graph.builder import StateGraph
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef
from graphagent.validation.bodies import Body, read_body
from graphagent.validation.concurrency import together
from graphagent.validation.passing import avoid
from graphagent.validation.policy_rules import RULES
from graphagent.validation.reaching import ways
from graphagent.validation.registry import Family
from graphagent.validation.report import Diagnostic, Severity
from graphagent.validation.subject import Subject

_SECRET = re.compile(
    r"(^|_)(password|passwd|passphrase|secret|api_?key|private_?key|credentials?|(access|auth|bearer|refresh)_?token)$",
    re.IGNORECASE,
)
_CLEAR = (str, bytes)


class Asking(NamedTuple):
    """A node that asks: `kind` says how; `keys` as far as they are known."""

    kind: str
    keys: tuple[str, ...] = ()


def check(subject: Subject) -> Iterator[Diagnostic]:
    """All findings of the family."""
    bodies = {node.id: read_body(node.fn) for node in subject.graph.defs}
    asking = {node.id: found for node in subject.graph.defs if (found := _asking(node, bodies[node.id])) is not None}
    yield from _must_pass(subject)
    yield from _without_store(subject, asking)
    yield from _asked_behind_effects(subject, bodies)
    yield from _pending_together(subject, asking)
    yield from _repeated_effects(subject, bodies)
    yield from _secrets(subject)


# -- GA501 -------------------------------------------------------------------------------------------


def _must_pass(subject: Subject) -> Iterator[Diagnostic]:
    """GA501, by a least fixed point and a replay; a search only where choices contradict each other."""
    graph = subject.graph
    found = ways(graph, subject.choices) if graph.definition.must_pass else None
    for name, guards in graph.definition.must_pass:
        assert found is not None
        avoided = avoid(subject, found, graph.index[name], {graph.index[guard] for guard in guards})
        if avoided.verdict == "no":
            continue
        among = f"'{guards[0]}'" if len(guards) == 1 else f"any of {', '.join(map(repr, guards))}"
        if avoided.verdict == "yes":
            text = f"'{name}' can run without {among}, which must come before it"
        else:
            text = f"whether '{name}' can run without {among} was not decided within the bounds; it looks possible"
        last = next((step.node for step in avoided.trace[-2:-1] if step.node in graph.nodes), "")
        fix = f"lead '{last}' to {among} first" if last else f"lead the way into '{name}' through {among}"
        severity: Severity | None = None if avoided.verdict == "yes" else "warning"
        where = graph.nodes[name].place
        yield subject.finding("GA501", text, (name,), where=where, severity=severity, trace=avoided.trace, fix=fix)


# -- GA502, GA503, GA504 -----------------------------------------------------------------------------


def _asking(node: NodeDef, body: Body) -> Asking | None:
    """How a node asks, if it does; for a child graph with the keys of its nodes."""
    if node.kind == "interrupt":
        return Asking("is an interrupt node", (node.config["key"],))
    child = node.metadata.get("child", node.child)
    if isinstance(child, CompiledGraph | StateGraph):
        nodes = child.defs if isinstance(child, CompiledGraph) else child.definition.nodes
        keys = [key for inner in nodes for key in _keys(inner)]
        asks = any(_asking(inner, read_body(inner.fn)) is not None for inner in nodes)
        return Asking("runs a graph that asks", tuple(dict.fromkeys(keys))) if asks else None
    declared: tuple[str, ...] = node.metadata.get("interrupts", ())
    if declared or body.asks:
        keys = [*declared, *(key for key in body.asks if key is not None)]
        return Asking("asks in its body", tuple(dict.fromkeys(keys)))
    return None


def _keys(node: NodeDef) -> tuple[str, ...]:
    asking = _asking(node, read_body(node.fn))
    return () if asking is None else asking.keys


def _without_store(subject: Subject, asking: Mapping[str, Asking]) -> Iterator[Diagnostic]:
    """GA502: nodes that ask, and breakpoints, in a graph that is run without a store."""
    if subject.facts.store is not False:
        return
    graph = subject.graph
    stops = {name: found.kind for name, found in asking.items()}
    for index, when in [*((i, "before") for i in graph.before), *((i, "after") for i in graph.after)]:
        stops.setdefault(graph.names[index], f"has a breakpoint {when} it")
    fix = "give the executor a store: Executor(graph, checkpoints=SqlCheckpoints(...))"
    for name, how in stops.items():
        if name in subject.reachable:
            text = f"'{name}' {how}, but runs are not saved: once the process ends nobody can answer or go on"
            yield subject.finding("GA502", text, (name,), where=graph.nodes[name].place, fix=fix)


def _asked_behind_effects(subject: Subject, bodies: Mapping[str, Body]) -> Iterator[Diagnostic]:
    """GA503: a body that is run again from its first line when the answer comes, effects and all."""
    for node in subject.graph.defs:
        body = bodies[node.id]
        declared: tuple[str, ...] = node.metadata.get("interrupts", ())
        open_effects = _unrecorded(node, body)
        if not open_effects or not (declared or body.acts_first):
            continue
        key = next((key for key in (*declared, *body.asks) if key), "")
        asks = f"asks '{key}'" if key else "asks"
        text = (
            f"'{node.id}' has the effect {', '.join(map(repr, open_effects))} and {asks} in one body, which runs again "
            f"from its first line when the answer comes"
        )
        fix = f"put the effect through ctx.step('{open_effects[0]}', ...), or ask in a node of its own before it"
        yield subject.finding("GA503", text, (node.id,), where=node.place, fix=fix)


def _unrecorded(node: NodeDef, body: Body) -> tuple[str, ...]:
    """Declared effects that a re-run would repeat: not idempotent, without a key, and not put through the ledger."""
    if node.idempotent or body.keyed:
        return ()
    if None in body.steps:  # a name that is made at run time may be any of them
        return ()
    return tuple(effect for effect in node.effects if effect not in body.steps)


def _pending_together(subject: Subject, asking: Mapping[str, Asking]) -> Iterator[Diagnostic]:
    """GA504: two questions with one key, so that an answer by key finds two of them."""
    askers = [name for name in asking if asking[name].keys and name in subject.reachable]
    relation = None
    for one, other in combinations_with_replacement(askers, 2):
        shared = [key for key in asking[one].keys if key in asking[other].keys]
        if not shared:
            continue

        relation = together(subject) if relation is None else relation
        evidence = relation.pair(one, other)
        if evidence is None:
            continue
        key = shared[0]
        timed = subject.facts.engine == "superstep" and evidence.in_step is False
        if one == other:
            text = f"several activations of '{one}' can ask '{key}' at the same time; only the id tells them apart"
            fix = f"answer by id (see Executor.interrupts), or make the key of each item its own: f'{key}-{{item}}'"
        else:
            text = f"'{one}' and '{other}' can both wait for an answer to '{key}' at the same time"
            fix = f"give one of the two questions another key than '{key}'"
        yield subject.finding(
            "GA504",
            text,
            tuple(dict.fromkeys((one, other))),
            where=subject.graph.nodes[one].place,
            severity="warning" if one == other or timed or not evidence.certain else None,
            trace=evidence.trace,
            fix=fix,
        )


# -- GA505 -------------------------------------------------------------------------------------------


def _repeated_effects(subject: Subject, bodies: Mapping[str, Body]) -> Iterator[Diagnostic]:
    """GA505: an effect that a retry or a further lap repeats."""
    for node in subject.graph.defs:
        if not node.effects or node.idempotent or node.id not in subject.reachable:
            continue
        open_effects = _unrecorded(node, bodies[node.id])
        retried = subject.facts.retried or any(policy.max_attempts > 1 for policy in node.retry)
        if retried and open_effects:
            names = ", ".join(map(repr, open_effects))
            text = f"'{node.id}' has the effect {names} and is retried: an attempt that fails behind it repeats it"
            fix = f"put it through ctx.step('{open_effects[0]}', ...), or say idempotent=True if repeating does no harm"
        elif node.id in subject.cycles:
            names = ", ".join(map(repr, node.effects))
            text = f"'{node.id}' has the effect {names} and lies on a loop: every lap does it again"
            fix = "say idempotent=True if that does no harm, or lead the loop past it"
        else:
            continue
        yield subject.finding("GA505", text, (node.id,), where=node.place, fix=fix)


# -- GA506, GA507 ------------------------------------------------------------------------------------


def _secrets(subject: Subject) -> Iterator[Diagnostic]:
    """GA506: secrets that only a store with a cipher takes; GA507: fields that look like secrets, kept in clear."""
    if subject.facts.store is False:
        return
    for field in subject.graph.schema:
        if field.transient:
            continue
        if field.secret:
            text = f"field '{field.name}' holds a secret and is saved, which a store without a cipher refuses"
            fix = "declare it Transient[...], or open the store with a cipher: SqlCheckpoints(..., cipher=...)"
            yield subject.finding("GA506", text, (field.name,), fix=fix)
        elif _SECRET.search(field.name) and field.declared in _CLEAR:
            text = f"field '{field.name}' looks like a secret and is saved in clear text"
            fix = "declare it Transient[...] so that it is never saved, or SecretStr so that it is only saved encrypted"
            yield subject.finding("GA507", text, (field.name,), fix=fix)


FAMILY = Family("policy", RULES, check, cheap=False)
