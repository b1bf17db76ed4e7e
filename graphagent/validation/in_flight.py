"""Whether a run that stands somewhere can go on in another version of its graph: conditions C1 to C7."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from graphagent.errors import alternatives
from graphagent.graph.marking import Marking
from graphagent.graph.names import END
from graphagent.unset import UNSET
from graphagent.validation.answers import accepts
from graphagent.validation.facts import Bounds
from graphagent.validation.kept_fields import field_findings
from graphagent.validation.mapping import NO_RENAMES, Landing, Mapper, Renames, land
from graphagent.validation.prospects import Fault, Outlook, Prospects
from graphagent.validation.reasons import Reasons, listed
from graphagent.validation.report import Diagnostic
from graphagent.validation.standing import Pending, Standing, Token
from graphagent.validation.version import Version


@dataclass(frozen=True)
class Verdict:
    """What becomes of one run: why it can't go on (errors) and what else there is to say. `renames`: the declarations
    without which it would not have found its place. `complete`: no bound was hit."""

    findings: tuple[Diagnostic, ...]
    renames: frozenset[str] = frozenset()
    complete: bool = True

    @property
    def blocked(self) -> bool:
        """True if the run can't go on."""
        return any(finding.severity == "error" for finding in self.findings)

    @property
    def migrated(self) -> bool:
        """True if it goes on, and only thanks to a declared rename or migration."""
        return bool(self.renames) and not self.blocked


class Judge:
    """Judges any number of runs of `old` for `new`; what is searched once is not searched again.

    `old` None: the graph that wrote the run isn't known, and its rows alone have to do.
    """

    def __init__(
        self, new: Version, old: Version | None = None, renames: Renames = NO_RENAMES, bounds: Bounds | None = None
    ) -> None:
        self.new = new
        self.old = old
        self.renames = renames
        self.bounds = bounds or Bounds()
        self.ahead = Outlook(new, self.bounds)
        self.behind = None if old is None else Outlook(old, self.bounds)
        self.reasons = Reasons(new)
        self.names = Mapper(old, new, renames)  # for comparing; that of a run notes which renames the run needs

    def judge(self, standing: Standing, marking: Marking | None = None) -> Verdict:
        """What becomes of a run. `marking`: the same place as a marking of the old graph, if it is at hand."""
        mapper = Mapper(self.old, self.new, self.renames)
        landing = land(mapper, standing)
        found = [*self._nodes(mapper, standing, landing), *self._joins(mapper, standing, landing)]
        found += [*self._routes(mapper, standing), *self._decided(mapper, standing), *self._asked(mapper, standing)]
        found += [*self._limits(mapper, standing), *self._effects(mapper, standing)]
        ahead = None if landing.marking is None else self.ahead.of(landing.marking)
        found += field_findings(self.reasons, mapper, standing, ahead)
        complete = True
        if ahead is not None:
            found += self._ends(ahead, marking or self._in_old(standing))
            complete = ahead.complete
        inside = [self._frame(mapper, node, frame) for node, frame in standing.frames]
        found += [finding for verdict in inside for finding in verdict.findings]
        used = frozenset(mapper.used).union(*(verdict.renames for verdict in inside))
        return Verdict(tuple(found), used, complete and all(verdict.complete for verdict in inside))

    # -- C1 --------------------------------------------------------------------------------------

    def _nodes(self, mapper: Mapper, standing: Standing, landing: Landing) -> Iterator[Diagnostic]:
        for name in landing.gone:
            yield self.reasons.node_gone(self.old, name, mapper)
        over = landing.marking is not None and not landing.marking.frontier
        if landing.given_up and over:
            text = f"{listed(landing.given_up)} is given up and nothing is left to run"
            yield self.reasons.finding(
                "GA701",
                f"{text}: a run that stands there would end without a result",
                landing.given_up,
                fix="map it to the node that takes its place",
            )
        if self.old is None:
            return
        for name in standing.nodes:
            now = mapper.node(name)
            if isinstance(now, str) and now in self.new.graph.index and name in self.old.graph.index:
                yield from self._kind(name, now)
        for token in standing.frontier:
            if token.group:
                yield from self._fan_out(mapper, token)

    def _kind(self, name: str, now: str) -> Iterator[Diagnostic]:
        assert self.old is not None
        was, is_now = self.old.kind(name), self.new.kind(now)
        if was not in ("plain", is_now):
            yield self.reasons.finding(
                "GA703",
                f"node '{now}' was a {was} node and is a {self._declared_kind(now)} node now: a run that stands there "
                f"has work of the {was} in flight, which the new node doesn't take up",
                (now,),
                severity="error",
                fix=f"give the new node an id of its own, and keep the {was} node until the runs in it have ended",
            )

    def _declared_kind(self, name: str) -> str:
        return str(self.new.node(name).get("kind", "function"))

    def _fan_out(self, mapper: Mapper, token: Token) -> Iterator[Diagnostic]:
        assert self.old is not None
        for name, shape in self.old.maps.items():
            if token.node not in shape.workers:
                continue
            now = self.new.maps.get(str(mapper.node(name)))
            workers = {str(mapper.node(worker)) for worker in shape.workers}
            collector = None if shape.collector is None else mapper.node(shape.collector)
            if now is None or (set(now.workers), now.collector) != (workers, collector):
                yield self.reasons.finding(
                    "GA716",
                    f"the fan-out of node '{name}' has another worker or collector now: items of it that are in flight "
                    f"were meant for '{token.node}' and then for '{shape.collector or 'nothing'}'",
                    (name,),
                    fix="give the changed fan-out a node of its own, and keep this one until its runs have ended",
                )

    # -- C2 --------------------------------------------------------------------------------------

    def _joins(self, mapper: Mapper, standing: Standing, landing: Landing) -> Iterator[Diagnostic]:
        for name, sources, table in landing.homeless:
            if table is None:
                known = [join.id for join in self.new.graph.join_tables]
                yield self.reasons.finding(
                    "GA704",
                    f"join '{name}' is gone: what has arrived there ({listed(sources)}) has no place: "
                    f"{alternatives(name, known)}",
                    (name,),
                    fix=f"keep the join, give the one that takes its place id='{name}', or map it",
                )
            else:
                now = [self.new.graph.names[source] for source in table.sources]
                yield self.reasons.finding(
                    "GA704",
                    f"join '{table.id}' doesn't wait for {listed(sources)} any more, and a run that has arrived from "
                    f"there has no place in it; it waits for {listed(now)}",
                    (table.id, *sources),
                    fix="keep the source, or declare formerly= on the node that took its place",
                )
        if self.old is not None:
            was = {join.id: str(join.mode) for join in self.old.graph.joins}
            for name, waiting in standing.joins.items():
                place = mapper.join(name)
                if place is not UNSET and name in was:
                    yield from self._mode(name, was[name], self.new.graph.joins[place].mode, waiting.fired)

    def _mode(self, name: str, was: str, now: str | int, fired: bool) -> Iterator[Diagnostic]:
        if was == str(now):
            return
        stuck = fired and str(now) in ("all", "active")
        harm = "it has fired already in this lap and would fire again" if stuck else "what has arrived is counted anew"
        yield self.reasons.finding(
            "GA705",
            f"join '{name}' had mode '{was}' and has mode '{now}' now: a run in which it is half full goes on by the "
            f"new rule, and {harm}",
            (name,),
            severity="error" if stuck else "warning",
            fix="give the new join an id of its own if runs in flight are to go on by the old rule",
        )

    # -- C3 --------------------------------------------------------------------------------------

    def _ends(self, ahead: Prospects, marking: Marking | None) -> Iterator[Diagnostic]:
        """Bad ends that are new: neither the old graph had them from there, nor (where that isn't known) has a new
        run them; all of them if no way ends well."""
        before = self._before(marking)
        had = set(before.faults) if before is not None else set()
        known = {self._renamed(self.names, fault) for fault in had} if self.old is not None else had
        hopeless = not ahead.good and (self.old is None or before is None or before.good)
        for fault, state in ahead.faults.items():
            if hopeless or fault not in known:
                yield self.reasons.bad_end(fault, ahead, state)

    def _in_old(self, standing: Standing) -> Marking | None:
        """The place as a marking of the old graph; None if that isn't known, or has no room for it."""
        return None if self.old is None else land(Mapper(None, self.old), standing).marking

    def _before(self, marking: Marking | None) -> Prospects | None:
        if self.behind is not None:
            return None if marking is None else self.behind.of(marking)
        return self.ahead.from_start()

    @staticmethod
    def _renamed(mapper: Mapper, fault: Fault) -> Fault:
        if not fault.join:
            return fault
        place = mapper.join(fault.join)
        join = mapper.new.graph.join_tables[place].id if place is not UNSET else fault.join
        return Fault(fault.code, join, tuple(sorted(str(mapper.node(name)) for name in fault.missing)))

    # -- C5 --------------------------------------------------------------------------------------

    def _asked(self, mapper: Mapper, standing: Standing) -> Iterator[Diagnostic]:
        for pending in standing.pending:
            node = mapper.node(pending.node)
            if node is None or node is UNSET or node == END:
                continue
            asks = self.new.asks(node)
            same = [asked for asked in asks or () if asked.key == pending.key]
            if asks is None or (not asks and not self._surely_gone(pending, node)):
                continue
            if not same:
                known = alternatives(pending.key, [asked.key for asked in asks])
                yield self.reasons.finding(
                    "GA712",
                    f"node '{node}' doesn't ask '{pending.key}' any more ({known}): a run that waits for this answer "
                    f"can't get it",
                    (node, pending.key),
                    fix=f"keep the key '{pending.key}', whatever the prompt says now",
                )
            elif UNSET not in (pending.schema, same[0].schema) and not accepts(same[0].schema, pending.schema):
                yield self.reasons.finding(
                    "GA712",
                    f"the answer to '{pending.key}' of node '{node}' was {pending.schema} and is {same[0].schema} now: "
                    f"a run that waits may get an answer that is refused",
                    (node, pending.key),
                    fix="take what was asked for before too (a union), or ask under another key in a node of its own",
                )

    def _surely_gone(self, pending: Pending, node: str) -> bool:
        """True if a node that is not seen to ask doesn't: it was, or nothing is left out of its description."""
        if "fingerprint" not in self.new.doc:
            return True
        if self.old is None:
            return not self.reasons.may_ask(node)
        before = self.old.asks(pending.node) if pending.node in self.old.graph.index else None
        return any(asked.key == pending.key for asked in before or ())

    # -- routes and decisions ----------------------------------------------------------------------

    def _routes(self, mapper: Mapper, standing: Standing) -> Iterator[Diagnostic]:
        if self.old is None:
            return
        for name in standing.nodes:
            now = mapper.node(name)
            if not isinstance(now, str) or not self.new.routes.get(now):
                continue
            after = self.new.routes[now]
            if any(route.labels is None or route.default is not None for route in after):
                continue
            known = {text for route in after for pair in (route.labels or {}).items() for text in pair}
            for route in self.old.routes.get(name, ()):
                lost = [
                    label
                    for label, target in (route.labels or {}).items()
                    if label not in known and not (label == target and self.names.node(target) in known)
                ]
                if lost:
                    yield self.reasons.label_gone(now, lost, known)

    def _decided(self, mapper: Mapper, standing: Standing) -> Iterator[Diagnostic]:
        for node, target in standing.decided:
            now = mapper.node(node)
            routes = self.new.routes.get(str(now), ())
            labels = {label for route in routes for label in route.labels or ()}
            place = mapper.node(target)
            ways = self._ways(str(now)) if isinstance(now, str) else set()
            free = isinstance(now, str) and now in self.new.graph.index and self._jumps_anywhere(now)
            if target in labels or (isinstance(place, str) and (free or place in ways)):
                continue
            yield self.reasons.label_gone(str(now), [target], labels | ways, taken=True)

    def _jumps_anywhere(self, name: str) -> bool:
        return self.new.graph.index[name] in self.new.choices.open

    def _ways(self, name: str) -> set[str]:
        graph = self.new.graph
        if name not in graph.index:
            return set()
        index = graph.index[name]
        ways = {graph.name_of(target) for outcome in self.new.choices.of[index] for target in outcome.targets()}
        ways |= {graph.name_of(target) for target in graph.plain[index]}
        return ways | {graph.name_of(graph.join_tables[join].target) for join, _ in graph.arrivals[index]}

    # -- C6, C7 ------------------------------------------------------------------------------------

    def _limits(self, mapper: Mapper, standing: Standing) -> Iterator[Diagnostic]:
        limits = self.new.graph.definition.limits
        bound = limits.get("steps")
        if bound is not None and standing.steps is not None and standing.steps >= bound:
            yield self.reasons.limit("steps", standing.steps, bound, ())
        for name, used in standing.laps.items():
            node = mapper.node(name)
            bound = (limits.get("laps") or {}).get(node)
            if bound is not None and used >= bound:
                yield self.reasons.limit(f"laps of '{node}'", used, bound, (str(node),))

    def _effects(self, mapper: Mapper, standing: Standing) -> Iterator[Diagnostic]:
        if self.old is None:
            return
        for name in standing.nodes:
            now = mapper.node(name)
            if not isinstance(now, str) or now not in self.new.graph.index or name not in self.old.graph.index:
                continue
            effects = self.new.graph.nodes[now].effects
            gone = [effect for effect in self.old.graph.nodes[name].effects if effect not in effects]
            if gone:
                yield self.reasons.effect_gone(now, gone)

    def _frame(self, mapper: Mapper, node: str, frame: Standing) -> Verdict:
        """A child graph in flight, judged like a run of its own."""
        now = mapper.node(node)
        child = self.new.child(now) if isinstance(now, str) else None
        before = self.old.child(node) if self.old is not None else None
        if child is None:
            return Verdict(())
        inside = Judge(child, before, NO_RENAMES, self.bounds).judge(frame)
        if not inside.blocked:
            return inside
        return replace(inside, findings=(self.reasons.child(str(now), inside.findings),))
