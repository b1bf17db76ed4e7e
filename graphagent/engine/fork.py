"""Copying a point of a run: the state, the frontier, open questions, finished activations, child frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from graphagent.checkpoint.record import EffectRow, Loaded, Question, Source
from graphagent.engine.frame import Frame, Origin, Setup, Tree, child_namespace
from graphagent.engine.merge import Merged, delta_between
from graphagent.engine.persist import keep, save_state
from graphagent.engine.restore import load_frame, load_row
from graphagent.errors import CheckpointNotFound
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef
from graphagent.ids import checkpoint_id

SetupOf = Callable[[CompiledGraph], Setup]


async def branch_off(
    setup: Setup,
    setup_of: SetupOf,
    source: Tree,
    target: Tree,
    namespace: str,
    loaded: Loaded,
    *,
    kind: Source = "fork",
    to: str | None = None,
    patch: Mapping[str, Any] | None = None,
    drop_finished: bool = False,
    keep_effects: bool = False,
    note: Mapping[str, Any] | None = None,
) -> Frame:
    """A new row that goes on from a stored one, in the same lineage or in another; returns the frame at that row.

    `to`: namespace of the new row, if it differs. `patch`: values that replace stored ones (validated already).
    `drop_finished`: activations of the open step run again. Activations start from the new row, so their effects
    and child frames are new ones, unless copied here.
    """
    frame = await load_frame(setup, source, namespace, loaded)
    questions = loaded.row.questions
    same = source.lineage == target.lineage and to is None
    spaces = {i: child_namespace(frame, i) for i in range(len(frame.marking.frontier))}
    old_bases = {i: frame.origin(i) for i in spaces}
    frame.tree = target
    frame.namespace = namespace if to is None else to
    frame.seq = await _newest(target, frame.namespace)
    frame.head = loaded.row.seq if same else None
    frame.fresh, frame.base = True, frame.seq + 1
    if frame.origins is not None:
        frame.origins = [Origin(frame.base, i, origin.visit, origin.node) for i, origin in enumerate(frame.origins)]
    if drop_finished:
        frame.held = {}
    frame.kept = set()
    questions = await _with_children(setup_of, source, frame, spaces, questions)
    frame.questions = tuple(q for q in questions if q.kind == "ask")
    before, frame.values = frame.values, {**frame.values, **(patch or {})}
    changed = Merged(frame.values)
    if same:
        changed = delta_between(setup.graph.schema, before, frame.values)
    facts = {"from": checkpoint_id(source.lineage, namespace, loaded.row.seq), **(note or {})}
    await save_state(frame, kind, changed, note=facts, questions=questions, pointer=loaded.row.seq if same else None)
    await keep(frame, list(frame.held))
    if keep_effects:
        await _copy_effects(source, frame, namespace, old_bases)
    return frame


async def _newest(tree: Tree, namespace: str) -> int:
    assert tree.store is not None
    headers = await tree.store.history(tree.lineage, namespace, limit=1)
    return headers[0].seq if headers else -1


async def _with_children(
    setup_of: SetupOf, source: Tree, frame: Frame, spaces: Mapping[int, str], questions: tuple[Question, ...]
) -> tuple[Question, ...]:
    """The questions, those of child frames pointing to copies of these frames as they were at that moment."""
    moved: dict[tuple[str, int], tuple[str, int]] = {}
    for question in questions:
        if question.frame is None or question.frame in moved:
            continue
        space, seq = question.frame
        node: NodeDef = frame.graph.defs[frame.marking.frontier[question.position].node]
        setup = setup_of(node.child)
        assert source.store is not None
        loaded = await load_row(source.store, setup, source.lineage, space, seq)
        if loaded is None:
            raise CheckpointNotFound(f"checkpoint {seq} of child '{space}' of lineage '{source.lineage}' is gone")
        to = child_namespace(frame, question.position)
        first = await load_row(source.store, setup, source.lineage, space, 0)
        if first is not None and first.row.source == "input" and seq > 0:  # what it began with, to tell what it changed
            await branch_off(setup, setup_of, source, frame.tree, space, first, kind="input", to=to, drop_finished=True)
        child = await branch_off(setup, setup_of, source, frame.tree, space, loaded, to=to)
        assert child.head is not None
        moved[question.frame] = (to, child.head)
    return tuple(q if q.frame is None else replace(q, frame=moved[q.frame]) for q in questions)


async def _copy_effects(source: Tree, frame: Frame, namespace: str, origins: Mapping[int, Origin]) -> None:
    store = frame.store
    assert store is not None
    lease = await frame.tree.writer()
    places = {(origin.base, origin.position): i for i, origin in origins.items()}
    for base in dict.fromkeys(origin.base for origin in origins.values()):
        for effect in await store.effects(source.lineage, namespace, base):
            place = places.get((effect.base, effect.position))
            if place is None:
                continue
            copied = EffectRow(frame.base, place, effect.name, effect.ordinal, False)
            await store.claim_effect(lease, frame.namespace, copied)
            if effect.committed:
                await store.commit_effect(lease, frame.namespace, replace(copied, committed=True, result=effect.result))
