"""GA4xx: fields that are read before they are written, written twice at once, lost, or never read.

What rests on the source of functions is one severity lower; what is not known leads to no finding. GA405 and GA407 of
declared names are found by `compile()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from graphagent.errors import alternatives
from graphagent.graph.names import END, START
from graphagent.graph.reducers import append
from graphagent.validation.access import Access, by_field
from graphagent.validation.data_rules import RULES
from graphagent.validation.flow import Flow
from graphagent.validation.lost import lost_writes, missing_outputs
from graphagent.validation.races import races
from graphagent.validation.registry import Family
from graphagent.validation.report import Diagnostic
from graphagent.validation.subject import Subject
from graphagent.validation.unset import unset_reads


class Data:
    """What the rules of the family share."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.graph = subject.graph
        self.fields = subject.graph.schema.fields
        self.access: dict[str, Access] = {access.node: access for access in subject.accesses}
        self.reached = [self.access[name] for name in self.graph.names if name in subject.reachable]

    @cached_property
    def flow(self) -> Flow:
        """Which fields are surely set where."""
        return Flow(self.graph, self.access.values())

    @cached_property
    def guessing(self) -> bool:
        """True if some node may lead anywhere, so that ways are not known."""
        return bool(self.subject.choices.open & {self.graph.index[name] for name in self.subject.reachable})

    @cached_property
    def _writers(self) -> dict[str, list[Access]]:
        return by_field(self.reached, lambda access: access.writes.fields)

    def writers(self, field: str) -> list[Access]:
        """The nodes that are known to write a field."""
        return self._writers.get(field, [])


def check(subject: Subject) -> Iterator[Diagnostic]:
    """All findings of the family."""
    if not subject.graph.schema.fields:
        return
    data = Data(subject)
    if subject.graph.definition.inputs is not None and not data.guessing:
        yield from unset_reads(subject, data.flow, data.reached)
    yield from races(subject, data.reached)
    yield from _never_read(data)
    yield from _undeclared(data)
    if not data.guessing:
        yield from missing_outputs(subject, data.flow, data.reached)
        yield from lost_writes(subject, data.reached)
    yield from _growing(data)


def _never_read(data: Data) -> Iterator[Diagnostic]:
    """GA404: written, read by nobody, and no output."""
    outputs = data.graph.definition.outputs
    readings = [reading for access in data.access.values() for reading in (access.reads, access.routing)]
    if outputs is None or any(reading.origin == "unknown" for reading in readings):
        return
    read = {field for reading in readings for field in reading.fields}.union(outputs)
    for field in data.fields:
        writers = data.writers(field)
        if field in read or not writers:
            continue
        names = [access.node for access in writers]
        shown = ", ".join(f"'{name}'" for name in names[:3])
        yield data.subject.finding(
            "GA404",
            f"{shown} {'writes' if len(names) == 1 else 'write'} '{field}', which no node or router reads and which is "
            f"no output: read it, name it in outputs=[...], or drop it",
            (*names, field),
            fix=f"read '{field}', name it in outputs=[...], or drop it",
            inferred=any(reading.origin == "inferred" for reading in readings)
            or any(access.writes.origin != "declared" for access in writers),
        )


def _undeclared(data: Data) -> Iterator[Diagnostic]:
    """GA405 of names that are only in the source; declared ones are found by `compile()`."""
    for access in data.access.values():
        for what, name in access.undeclared:
            schema = data.graph.schema
            yield data.subject.finding(
                "GA405",
                f"the source of node '{access.node}' {what} '{name}', which '{schema.name}' doesn't declare: "
                f"{alternatives(name, schema.names)}; declare the field or correct the name",
                (access.node, name),
                where=data.graph.nodes[access.node].place,
                inferred=True,
            )


def _growing(data: Data) -> Iterator[Diagnostic]:
    """GA410: appended to in a loop, with nothing that shortens it and no bound on the laps."""
    cycles = data.subject.cycles
    laps = {cycles.get(name) for name in data.graph.definition.limits.get("laps", {})}
    for field in data.graph.schema:
        if field.reducer is not append:
            continue
        names = [access.node for access in data.writers(field.name) if access.node in cycles]
        names = [name for name in names if cycles[name] not in laps and name not in (START, END)]
        if names:
            shown = ", ".join(f"'{name}'" for name in names[:3])
            yield data.subject.finding(
                "GA410",
                f"{shown} {'appends' if len(names) == 1 else 'append'} to '{field.name}' in every lap of a loop, and "
                f"nothing shortens it: bound the loop with limits(laps={{'{names[0]}': ...}}), or use a merge rule "
                f"that keeps only what is needed",
                (*names, field.name),
                inferred=any(data.access[name].writes.origin != "declared" for name in names),
            )


FAMILY = Family("data", RULES, check, cheap=False)
