"""Twelve edits of the demo graph, each with runs that are stopped on disk at every place: what compatibility says of
them, and what the real engine does with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel
from support.triage import CHECKS, PLACES, Edit, State, triage

from graphagent import Executor, SqlCheckpoints, StateGraph, append, union
from graphagent.errors import IncompatibleCheckpoint
from graphagent.validation.compat import compat

pytestmark = pytest.mark.anyio
AFTER_VERDICT = ("approve", "remediate", "report")
AFTER_LOAD = PLACES[1:]


class Unioned(State):
    """Another merge rule."""

    findings: Annotated[list[str], union] = []


class Numbered(State):
    """Another type of a field that is written by `verdict`."""

    severity: int | None = None  # type: ignore[assignment]


class Ticketed(State):
    """A new field without a default."""

    ticket: str


class Renamed(BaseModel):
    """`approve` is called `approval`."""

    target: str = "example.org"
    chain: list[str] = []
    findings: Annotated[list[str], append] = []
    severity: str | None = None
    approval: Literal["yes", "no"] | None = None
    script: str | None = None
    report: str | None = None


def grades(builder: StateGraph) -> None:
    """The verdict becomes a number, with a migration of the stored text."""
    builder.migrates(values={"severity": {"critical": 2, "ok": 0, None: None}.get})


def renames(builder: StateGraph) -> None:
    """The rename of the field, declared."""
    builder.migrates(fields={"approve": "approval"})


def tickets(builder: StateGraph) -> None:
    """What runs in flight get in the new field."""
    builder.migrates(new={"ticket": lambda stored: f"T-{stored['target']}"})


def numbered(builder: StateGraph) -> StateGraph:
    """`verdict` writes numbers."""
    fixed = [replace(n, fn=lambda state: {"severity": 2}) if n.id == "verdict" else n for n in builder.definition.nodes]
    builder.definition.nodes[:] = fixed
    return builder


def other_source(name: str) -> Any:
    """A check with another body that does the same."""

    def check(state: Any) -> dict[str, Any]:
        found = [name]
        return {"findings": found}

    return check


EDITS: Mapping[str, tuple[Edit, str, tuple[str, ...], set[str]]] = {
    # the edit, the class of the change, the places whose runs are stranded, codes that are said
    "description": (Edit(description="takes all evidence"), "compatible", (), set()),
    "source": (Edit(check=other_source), "compatible", (), set()),
    "add-node": (Edit(notify=True), "compatible", (), {"GA713"}),
    "rename": (Edit(names={"approve": "consent"}), "blocking", ("approve",), {"GA701", "GA702", "GA713"}),
    "rename-declared": (Edit(names={"approve": "consent"}, formerly=True), "migratable", (), set()),
    "rename-all-declared": (
        Edit(names={name: f"{name}2" for name in PLACES}, formerly=True), "migratable", (), set(),
    ),
    "remove-node": (Edit(without="remediate"), "blocking", ("remediate",), {"GA701", "GA713"}),
    "join-source": (Edit(checks=(*CHECKS, "links")), "blocking", ("trust",), {"GA301", "GA713"}),
    "reducer": (Edit(state=Unioned), "compatible", (), {"GA709"}),
    "field-type": (
        Edit(state=Numbered, extend=numbered), "blocking", AFTER_VERDICT, {"GA708"},
    ),
    "field-type-migrated": (
        Edit(state=Numbered, extend=lambda b: grades(numbered(b))), "migratable", (), set(),
    ),
    "required-field": (
        Edit(state=Ticketed, loads={"ticket": "T-1"}, reads=("ticket",)), "blocking", AFTER_LOAD, {"GA707"},
    ),
    "required-field-filled": (
        Edit(state=Ticketed, loads={"ticket": "T-1"}, reads=("ticket",), extend=tickets), "migratable", (), set(),
    ),
    "field-rename": (Edit(state=Renamed, approval="approval"), "blocking", PLACES, {"GA706"}),
    "field-rename-declared": (Edit(state=Renamed, approval="approval", extend=renames), "migratable", (), set()),
    "reorder": (
        Edit(order=("report", "remediate", "approve", "verdict", *reversed(CHECKS), "load")),
        "compatible", (), {"GA718"},
    ),
    "split-node": (Edit(graded=True), "compatible", (), {"GA713"}),
    "label": (
        Edit(answers={"yes": "remediate", "refuse": "report"}), "blocking", ("approve",), {"GA710", "GA713"},
    ),
}  # fmt: skip
CASES = [pytest.param(name, id=name) for name in EDITS]


@pytest.mark.parametrize("name", CASES)
async def test_the_class_of_an_edit(name: str) -> None:
    """Static: the class, and what is said; nothing else than that is said."""
    edit, verdict, _, codes = EDITS[name]
    report = compat(triage().compile(), triage(edit).compile())
    assert report.verdict == verdict
    assert {finding.code for finding in report.findings} - {"GA713"} == codes - {"GA713"}
    assert report.complete


async def stopped(database: str, engine: Any, place: str, lineage: str) -> None:
    """A run of the old graph that is stopped at a place, and stored."""
    builder = triage()
    if place != "approve":
        builder.interrupt_before_nodes(place)
    async with SqlCheckpoints(database) as store:
        executor = Executor(builder.compile(), store, engine)
        result = await executor.run({"target": "example.com"}, lineage=lineage)
        if place == "remediate" or (place == "report" and result.interrupts[0].key == "approve"):
            result = await executor.resume(lineage, {"approve": "yes"})
        assert result.status == "interrupted"
        assert place in result.interrupts[0].key


async def gone_on(executor: Executor, lineage: str) -> Any:
    """The run, resumed until it ends, with every question answered by `yes`."""
    result = await executor.resume(lineage)
    for _ in range(3):
        asked = {one.id: "yes" for one in result.interrupts if one.kind == "ask"}
        if result.status != "interrupted":
            break
        result = await executor.resume(lineage, asked)
    return result


@pytest.mark.parametrize("engine", ["superstep", "eager"])
@pytest.mark.parametrize("name", CASES)
async def test_resume_does_what_the_verdict_says(name: str, engine: Any, tmp_path: Path) -> None:
    """Runs on disk at every place: those of the list are refused before anything runs, with the code in the error and
    nothing written; all others end well in the new graph."""
    edit, _, stranded, codes = EDITS[name]
    database = f"sqlite:///{tmp_path}/runs.db"
    new = triage(edit).compile()
    for place in PLACES:
        await stopped(database, engine, place, place)
        async with SqlCheckpoints(database) as store:
            executor = Executor(new, store, engine)
            before = await store.history(place)
            if place in stranded:
                with pytest.raises(IncompatibleCheckpoint) as refused:
                    await executor.resume(place)
                assert await store.history(place) == before
                assert any(code in str(refused.value) for code in codes) or "doesn't fit" in str(refused.value)
                continue
            result = await gone_on(executor, place)
            assert result.status == "completed", (place, result.reason)
            assert set(CHECKS) <= set(result.state.report.split(" ")[0].split(",")), (place, result.state.report)


@pytest.mark.parametrize("engine", ["superstep", "eager"])
async def test_places_are_judged_one_by_one(engine: Any) -> None:
    """The static report counts the places that break, and shows the way to the first."""
    report = compat(triage().compile(), triage(Edit(names={"approve": "consent"})).compile(), engine=engine)
    [gone] = [finding for finding in report.findings if finding.code == "GA701"]
    assert gone.at == ("approve",)
    assert gone.trace[-2].outcome == "critical"
    assert report.situations.blocked == 1
    assert gone.related[0] == f"1 of {report.situations.total} places where a run can be stored"
    assert "formerly=('approve',)" in gone.fix


async def test_only_where_a_run_can_wait() -> None:
    """`at='interrupts'` looks only at places where the old graph can wait for an answer."""
    old, new = triage().compile(), triage(Edit(without="remediate")).compile()
    assert compat(old, new, at="all").verdict == "blocking"
    assert compat(old, new, at="interrupts").verdict == "compatible"
