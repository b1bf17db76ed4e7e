"""The findings of compatibility in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from graphagent.errors import alternatives
from graphagent.graph.definition import Place
from graphagent.graph.draw import lines
from graphagent.graph.names import END
from graphagent.graph.signature import wants_context
from graphagent.validation.compat_rules import RULES
from graphagent.validation.mapping import Mapper
from graphagent.validation.prospects import Fault, Prospects
from graphagent.validation.report import Diagnostic, Severity
from graphagent.validation.version import Version

_SEVERITIES: Mapping[str, Severity] = {
    **{rule.code: rule.severity for rule in RULES},
    **dict.fromkeys(("GA301", "GA303", "GA308"), "error"),
}


def listed(names: Iterable[str]) -> str:
    """Names in single quotes."""
    return ", ".join(f"'{name}'" for name in names)


def twin(old: Version, new: Version, name: str) -> str | None:
    """A node of the new version that looks like a node that is gone: added, with the same ways in and out, or with the
    same function; None if there is none, or more than one."""
    added = [node for node in new.graph.names if node not in old.graph.index]
    fn = old.graph.nodes[name].fn
    named = bool(fn) and getattr(fn, "__module__", "").partition(".")[0] != "graphagent"
    same = [node for node in added if named and new.graph.nodes[node].fn is fn]
    if len(same) != 1:
        ways = _ways(old, name, [node for node in old.graph.names if node not in new.graph.index])
        same = [node for node in added if _ways(new, node, added) == ways]
    return same[0] if len(same) == 1 else None


def _ways(version: Version, name: str, others: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Neighbours of a node; what is new or gone itself is left out."""
    drawn = list(lines(version.graph))
    before = {line.source for line in drawn if line.target == name}
    after = {line.target for line in drawn if line.source == name}
    return frozenset(before - set(others)), frozenset(after - set(others))


class Reasons:
    """Makes findings on the new version, each at the place where it declares what is concerned."""

    def __init__(self, new: Version) -> None:
        self.new = new

    def finding(
        self,
        code: str,
        message: str,
        at: Iterable[str] = (),
        *,
        severity: Severity | None = None,
        fix: str = "",
        related: Iterable[str] = (),
    ) -> Diagnostic:
        """A finding with the severity of its rule unless another is given."""
        names = tuple(at)
        return Diagnostic(
            code,
            severity or _SEVERITIES[code],
            message,
            self.new.name,
            names,
            self._place(names),
            fix=fix,
            related=tuple(related),
        )

    def _place(self, names: Sequence[str]) -> Place:
        graph = self.new.graph
        for join in graph.joins:
            if names and join.id == names[0]:
                return join.place
        return graph.nodes[names[0]].place if names and names[0] in graph.nodes else Place()

    def node_gone(self, old: Version | None, name: str, mapper: Mapper) -> Diagnostic:
        """GA701: a run stands at a node that the new version doesn't have."""
        found = twin(old, self.new, name) if old is not None and name in old.graph.index else None
        wrong = mapper.nodes.get(name)
        if found is not None:
            hint = f"'{found}' looks like it"
        elif wrong is not None:
            hint = f"it is mapped to '{wrong}', which isn't there: {alternatives(wrong, self.new.graph.names)}"
        else:
            hint = alternatives(name, self.new.graph.names)
        return self.finding(
            "GA701",
            f"node '{name}' is gone, and a run that stands there has nowhere to go on: {hint}",
            (name,),
            fix=f"declare formerly=('{name}',) on the node that takes its place, or keep it until such runs have ended",
        )

    def bad_end(self, fault: Fault, ahead: Prospects, state: int) -> Diagnostic:
        """GA301, GA303, GA308: a run that goes on would not end well."""
        trace = ahead.found.trace(ahead.found.path(state), "this is where it stays")
        if fault.code == "GA301":
            have = ahead.found.arrived(state).get(fault.join, ())
            message = (
                f"a run that goes on can wait for ever: join '{fault.join}' has {listed(have)} and waits for "
                f"{listed(fault.missing) or 'nothing'}, which nothing brings any more"
            )
            fix = "add the source under a join of its own, or keep the old join until such runs have ended"
            return replace(self.finding(fault.code, message, (fault.join, *fault.missing), fix=fix), trace=trace)
        live = ahead.found.live(state)
        if fault.code == "GA303":
            message = f"a run that goes on can get into a loop that nothing leaves, at {listed(live)}"
            return replace(self.finding(fault.code, message, live, fix="give the loop a way out"), trace=trace)
        message = f"a run that goes on can end without reaching '{END}'"
        fix = "keep a way from there to END"
        return replace(self.finding(fault.code, message, (), fix=fix), trace=trace)

    def label_gone(self, node: str, labels: Sequence[str], known: Iterable[str], *, taken: bool = False) -> Diagnostic:
        """GA710: what was decided, or is about to be, has no way any more."""
        which = "a run that stands there has decided so" if taken else "a run that stands there may still decide so"
        return self.finding(
            "GA710",
            f"the route of node '{node}' has no {listed(labels)} any more, and {which}: "
            f"{alternatives(labels[0], sorted(known))}",
            (node, *labels),
            fix="keep the label, or give the route a default",
        )

    def unreadable(self, problem: str) -> Diagnostic:
        """GA708: stored state that the new version can't read."""
        return self.finding("GA708", problem, (), fix="say migrates(...) on the builder")

    def limit(self, what: str, used: int, bound: int, at: tuple[str, ...]) -> Diagnostic:
        """GA714: more is used than the new limit allows."""
        return self.finding(
            "GA714",
            f"the limit of {what} is {bound} now, and a run has used {used}",
            at or ("steps",),
            fix=f"allow at least {used + 1}",
        )

    def effect_gone(self, node: str, names: Sequence[str]) -> Diagnostic:
        """GA717: what was done is recorded under a name that nobody asks for."""
        return self.finding(
            "GA717",
            f"node '{node}' has no effect {listed(names)} any more: a run that has done it under that name doesn't "
            f"find it in its ledger, and may do it again",
            (node, *names),
            fix="keep the name of the effect as long as runs in flight may repeat it",
        )

    def child(self, node: str, findings: Sequence[Diagnostic]) -> Diagnostic:
        """GA715: the child graph of a node can't go on."""
        errors = [finding for finding in findings if finding.severity == "error"]
        return self.finding(
            "GA715",
            f"the child graph of node '{node}' has changed so that a run inside it can't go on: {errors[0].message}",
            (node, *errors[0].at),
            fix=errors[0].fix,
            related=tuple(f"{finding.code} {finding.message}" for finding in errors[1:]),
        )

    def may_ask(self, node: str) -> bool:
        """True if the function of a node takes a context, through which it may ask anything."""
        fn = self.new.graph.nodes[node].fn
        return fn is not None and wants_context(fn)
