"""Condition C4: what of a run's stored state the new version can read, and what it would miss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphagent.errors import alternatives
from graphagent.unset import UNSET
from graphagent.validation.declared_types import holds, readable_as
from graphagent.validation.mapping import Mapper
from graphagent.validation.prospects import Prospects
from graphagent.validation.reasons import Reasons, listed
from graphagent.validation.report import Diagnostic
from graphagent.validation.standing import Standing
from graphagent.validation.version import Version


def held_fields(mapper: Mapper, standing: Standing) -> Mapping[str, Any]:
    """The stored fields of a run, by their old name; UNSET for a value that isn't known."""
    if standing.fields is not None:
        return standing.fields
    if mapper.old is None:
        return {}
    return {name: UNSET for name, field in mapper.old.fields.items() if field.persistent}


def field_findings(
    reasons: Reasons, mapper: Mapper, standing: Standing, ahead: Prospects | None
) -> Iterator[Diagnostic]:
    """GA706, GA707, GA708."""
    held = held_fields(mapper, standing)
    for name, value in () if standing.decoded else held.items():
        yield from _kept(reasons, mapper, name, value)
    if ahead is not None:
        yield from _missing(reasons, mapper, held, ahead)


def _kept(reasons: Reasons, mapper: Mapper, name: str, value: Any) -> Iterator[Diagnostic]:
    now = mapper.field(name)
    if now is None:
        return
    if now is UNSET:
        known = alternatives(name, mapper.new.fields)
        yield reasons.finding(
            "GA706",
            f"field '{name}' is gone, and runs in flight have a value in it: {known}",
            (name,),
            fix=f"say migrates(drop=['{name}']) if it may be lost, migrates(fields={{'{name}': ...}}) if it is renamed",
        )
        return
    before = mapper.old.fields.get(name) if mapper.old is not None else None
    after = mapper.new.fields[now]
    if before is None or readable_as(before.type, after.type) or (value is not UNSET and holds(after.type, value)):
        return
    if now in mapper.values:
        mapper.used.add(f"field '{name}'")
        return
    yield reasons.finding(
        "GA708",
        f"field '{now}' was '{before.type}' and is '{after.type}' now: values that runs in flight have stored may not "
        f"be readable",
        (now,),
        fix=f"say migrates(values={{'{now}': function of the stored value}}), or take both types",
    )


def _missing(reasons: Reasons, mapper: Mapper, held: Mapping[str, Any], ahead: Prospects) -> Iterator[Diagnostic]:
    """Fields without a default that are not stored, and may be read before they are written."""
    old = mapper.old
    there = {mapper.field(name) for name in [*held, *(old.fields if old is not None else ())]}
    for name, field in mapper.new.fields.items():
        if name in there or not field.required:
            continue
        if name in mapper.filled:
            mapper.used.add(f"field '{name}'")
            continue
        readers, unknown, writers = _uses(mapper.new, name)
        sure = ahead.unset_readers(readers, writers)
        perhaps = set() if sure else ahead.unset_readers(unknown, writers)
        if not sure and not perhaps:
            continue
        names = [mapper.new.graph.names[node] for node in sorted(sure or perhaps)]
        verb = "reads" if sure else "may read"
        yield reasons.finding(
            "GA707",
            f"field '{name}' is new and has no default, and {listed(names[:1])} {verb} it before a run in flight has "
            f"written it",
            (name, *names),
            severity="error" if sure and old is not None else "warning",
            fix=f"give '{name}' a default, or say migrates(new={{'{name}': value}})",
        )


def _uses(version: Version, field: str) -> tuple[list[int], list[int], list[int]]:
    """Indices of the nodes that need a field, of those of which that isn't known, and of those that surely write it."""
    reads, unknown, writes = [], [], []
    for index, access in enumerate(version.accesses):
        own = field in access.writes.surely
        if field in access.reads.needs or (field in access.routing.needs and not own):
            reads.append(index)
        elif "unknown" in (access.reads.origin, access.routing.origin):
            unknown.append(index)
        if own:
            writes.append(index)
    return reads, unknown, writes
