"""What differs between two versions of a graph, whoever is in flight: the notes of a compatibility report."""

from __future__ import annotations

from collections.abc import Iterator

from graphagent.graph.draw import Line, lines
from graphagent.unset import UNSET
from graphagent.validation.mapping import Mapper
from graphagent.validation.reasons import Reasons, listed, twin
from graphagent.validation.report import Diagnostic
from graphagent.validation.version import Version


def changes(reasons: Reasons, mapper: Mapper, old: Version, new: Version) -> Iterator[Diagnostic]:
    """GA702, GA703, GA705, GA709, GA711, GA713, GA717, GA718: warnings and notes, no errors."""
    yield from _renamed(reasons, mapper, old, new)
    yield from _nodes(reasons, mapper, old, new)
    yield from _fields(reasons, mapper, old, new)
    yield from _ways(reasons, mapper, old, new)
    yield from _order(reasons, mapper, old, new)


def _renamed(reasons: Reasons, mapper: Mapper, old: Version, new: Version) -> Iterator[Diagnostic]:
    for name in old.graph.names:
        if mapper.node(name) is UNSET and (found := twin(old, new, name)) is not None:
            yield reasons.finding(
                "GA702",
                f"node '{name}' is gone and '{found}' looks like it: was it renamed?",
                (found, name),
                fix=f"declare formerly=('{name}',) on '{found}'",
            )


def _nodes(reasons: Reasons, mapper: Mapper, old: Version, new: Version) -> Iterator[Diagnostic]:
    for name in old.graph.names:
        now = mapper.node(name)
        if not isinstance(now, str) or now not in new.graph.index:
            continue
        was, kind = (str(version.node(node).get("kind", "function")) for version, node in ((old, name), (new, now)))
        if was != kind:
            yield reasons.finding("GA703", f"node '{now}' was of kind '{was}' and is of kind '{kind}' now", (now,))
        gone = [effect for effect in old.graph.nodes[name].effects if effect not in new.graph.nodes[now].effects]
        if gone:
            yield reasons.effect_gone(now, gone)
    for join in old.graph.joins:
        place = mapper.join(join.id)
        if place is not UNSET and new.graph.joins[place].mode != join.mode:
            text = f"join '{join.id}' had mode '{join.mode}' and has mode '{new.graph.joins[place].mode}' now"
            yield reasons.finding("GA705", text, (new.graph.joins[place].id,))


def _fields(reasons: Reasons, mapper: Mapper, old: Version, new: Version) -> Iterator[Diagnostic]:
    for name, was in old.fields.items():
        now = mapper.field(name)
        if now in (None, UNSET):
            continue
        field = new.fields[now]
        if was.reducer != field.reducer:
            text = f"field '{now}' was merged by '{was.reducer}' and is merged by '{field.reducer}' now"
        elif (was.default, was.required) != (field.default, field.required):
            text = f"the default of field '{now}' has changed"
        else:
            continue
        yield reasons.finding("GA709", f"{text}: runs in flight keep what they have, later writes differ", (now,))


def _ways(reasons: Reasons, mapper: Mapper, old: Version, new: Version) -> Iterator[Diagnostic]:
    before = {str(mapper.node(name)) for name in old.graph.entry_points}
    if before != set(new.graph.entry_points):
        text = f"a run starts at {listed(new.graph.entry_points)} now, not at {listed(old.graph.entry_points)}"
        yield reasons.finding("GA711", f"{text}: new runs only", new.graph.entry_points)
    was = {_way(line, mapper) for line in lines(old.graph)}
    now = {_way(line, None) for line in lines(new.graph)}
    for title, ways in (("gone", was - now), ("new", now - was)):
        if ways:
            shown = sorted(ways)
            more = f" and {len(shown) - 12} more" if len(shown) > 12 else ""
            text = ", ".join(
                f"{source} -> {target}" + (f" ({note})" if note else "") for source, target, note in shown[:12]
            )
            at = tuple(dict.fromkeys(source for source, _, _ in shown))
            yield reasons.finding("GA713", f"{title}: {text}{more}; runs in flight take the new ways", at)


def _way(line: Line, mapper: Mapper | None) -> tuple[str, str, str]:
    note = line.label if line.kind == "route" else "" if line.kind == "edge" else line.kind
    names = [line.source, line.target]
    if mapper is not None:
        found = [mapper.node(name) for name in names]
        names = [name if now in (None, UNSET) else now for name, now in zip(names, found, strict=True)]
        note = note if note != line.target else names[1]
    return names[0], names[1], note


def _order(reasons: Reasons, mapper: Mapper, old: Version, new: Version) -> Iterator[Diagnostic]:
    was = [mapper.node(name) for name in old.doc.get("order") or old.graph.names]
    kept = list(dict.fromkeys(name for name in was if name in new.graph.index))  # several may have become one
    now = [name for name in new.doc.get("order") or new.graph.names if name in set(kept)]
    if kept != now:
        first = next(name for name, before in zip(now, kept, strict=True) if name != before)
        text = f"nodes are declared in another order, first '{first}': results of one step are merged in that order"
        yield reasons.finding("GA718", text, (first,))
