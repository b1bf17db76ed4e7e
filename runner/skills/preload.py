"""Skills that a run begins with: an option of the run. Source: spec/services, 2.4."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from graphagent.agents.invocation import Invocation
from graphagent.errors import SkillNotFound, UsageError, alternatives
from graphagent.skills import Skill, SkillRepository
from runner.skills.loaded import Docs
from runner.skills.names import MAIN

PRELOAD = "preload_skills"
"""The option of a run (in `extra`) that names skills to begin with: see `preload_skills`."""
_KEPT = 512


@dataclass(frozen=True, slots=True)
class SkillLoad:
    """A skill to begin with. `docs`: documents of it to be in view, or `all_docs`. `agent`: only for the agent of that
    name; empty: for every agent of the run that has skills."""

    name: str
    docs: tuple[str, ...] = ()
    all_docs: bool = False
    agent: str = ""


class Preloaded(NamedTuple):
    """A skill as it was when the agent began; edits since don't change it."""

    skill: Skill
    docs: Docs = ()


def preload_skills(*loads: SkillLoad) -> dict[str, Any]:
    """What goes into `RunOptions(extra=...)` so that agents begin with skills loaded, for the whole run: plain data."""
    return {PRELOAD: [{"name": o.name, "docs": list(o.docs), "all_docs": o.all_docs, "agent": o.agent} for o in loads]}


def wanted_loads(invocation: Invocation, most: int) -> list[SkillLoad]:
    """The skills that the run's options name for this agent; two that say the same are one.

    Raises UsageError for what can't be meant: a blank name or document, `SKILL.md` as a document, a document twice,
    documents besides all of them, two different requests for one skill, more than `most`, other data.
    """
    asked = invocation.options.extra.get(PRELOAD, ())
    if not isinstance(asked, Sequence) or isinstance(asked, str):
        raise UsageError(f"option '{PRELOAD}' of the run is {asked!r:.60}; make it with preload_skills(SkillLoad(...))")
    found: dict[str, SkillLoad] = {}
    for item in asked:
        load = _load(item)
        if load.agent not in ("", invocation.agent.name):
            continue
        if found.setdefault(load.name, load) != load:
            raise UsageError(f"skill '{load.name}' is to be preloaded twice, with different documents: ask for it once")
    if len(found) > most:
        raise UsageError(f"{len(found)} skills are to be preloaded; the agent has at most {most} loaded")
    return list(found.values())


class Snapshots:
    """The preloaded skills of invocations that go on, as they were when they were first looked at."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Preloaded, ...]] = OrderedDict()

    async def of(self, invocation: Invocation, repository: SkillRepository, most: int) -> tuple[Preloaded, ...]:
        """Those of an invocation. Raises what `wanted_loads` raises, and SkillNotFound for a skill or a document that
        isn't there."""
        if PRELOAD not in invocation.options.extra:
            return ()
        known = self._kept.get(invocation.id)
        if known is None:
            loads = wanted_loads(invocation, most)
            known = tuple([await _preloaded(load, repository) for load in loads])
            self._kept[invocation.id] = known
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return known


def _load(item: Any) -> SkillLoad:
    if isinstance(item, SkillLoad):
        item = preload_skills(item)[PRELOAD][0]
    if not isinstance(item, Mapping) or not isinstance(item.get("docs", []), Sequence):
        raise UsageError(f"a skill to preload is {item!r:.60}; make it with preload_skills(SkillLoad(...))")
    name = str(item.get("name", "")).strip()
    docs = tuple(str(doc).strip() for doc in item.get("docs", ()))
    load = SkillLoad(name, docs, bool(item.get("all_docs", False)), str(item.get("agent", "")))
    if not name:
        raise UsageError("a skill to preload has no name")
    if not all(docs):
        raise UsageError(f"a document of skill '{name}' to preload has no name")
    if any(doc.lower() == MAIN.lower() for doc in docs):
        raise UsageError(f"'{MAIN}' is no document of skill '{name}': it is what is loaded in any case")
    if len(set(docs)) < len(docs):
        raise UsageError(f"a document of skill '{name}' is to be preloaded twice: name it once")
    if docs and load.all_docs:
        raise UsageError(f"of skill '{name}' some documents and all are to be preloaded: say one of both")
    return load


async def _preloaded(load: SkillLoad, repository: SkillRepository) -> Preloaded:
    skill = await repository.get(load.name)
    known = [doc.path for doc in skill.docs]
    for doc in load.docs:
        if doc not in known:
            raise SkillNotFound(f"skill '{load.name}' has no document '{doc}'; {alternatives(doc, known)}")
    return Preloaded(skill, "*" if load.all_docs else load.docs)
