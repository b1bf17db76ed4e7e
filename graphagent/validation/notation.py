"""Small graphs as text: one statement a line, for rule pages, tests and bug reports. `GRAMMAR` is the reference."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, get_args

from graphagent.errors import UsageError, alternatives
from graphagent.graph.names import END, START
from graphagent.graph.reducers import BUILTIN
from graphagent.validation.facts import EngineName

GRAMMAR = """\
entry a, b                    entry points; without the line the first node named, with `entry` alone none
a -> b, c                     plain edges; `a -> b -> c` is two of them
r ? b | c                     route: one of them; `yes: b | no: c` with labels; `r ? ?` without declared targets
r ? b | c else d              default target; for `*` the one that is taken when none is chosen
r ? yes: b of yes, no         labels that the router may return
r ? b | c with edges          plain edges beside the route are meant; `as q`: decides like q; `id x`: its id
r * b | c                     route: one or more of them
r * {b} | {b, c}              route: exactly one of these sets
m @ w then c                  w runs once an item, c when all have ended or there is none (`then` may be left out)
a & b => j                    join of all; `=active=>`, `=any=>`, `=2=>`; `id x` behind it
a !> h                        h runs when a fails
node a kind llm               also `unbound`, `idempotent`, `retry`, `effects x, y`, `asks key`, `formerly x`,
                              `allow GA302: reason` (last on its line)
without a                     a is no node, though a statement is about it
a reads x, y                  also `a writes x`; `?` for not known
state x: list[str] append = []    type, merge rule and default (JSON), each of which may be left out
inputs x, y                   also `outputs x`
interrupt before a            also `interrupt after a`
must a through b, c           no way to a but through b or c
never r = x, q = y            these outcomes don't occur together
limit steps 3                 also `limit laps a 3`, `limit fanout m 9`
store no                      runs are not saved; `store yes`
engine both                   whose semantics count: `superstep`, `eager` or `both`
region A: a1, a2 from a1 to a2
"""
"""A line ends a statement, so does `;`; a `#` at the beginning of a line or behind a space starts a comment. START and
END are what they are in Python. A node is there if a statement is about it (it is the source of something, an entry,
or named by `node`, `reads` or `writes`); as a mere target it is not."""

_MARKS = {"->", "?", "*", "@", "&", "!>", "reads", "writes"}
_ARROW = re.compile(r"=(?:(\w+)=)?>")
_RULES = {*BUILTIN, "replace", "sum"}


def parse_notation(text: str, name: str = "graph") -> dict[str, Any]:
    """The canonical document of the graph that the text describes; `load_document` makes a builder of it.

    Raises UsageError naming the line, and what can stand there.
    """
    parser = _Parser(name)
    for number, line in enumerate(text.splitlines(), 1):
        for statement in re.sub(r"(^|\s)#.*", "", line).split(";"):
            if statement.strip():
                parser.read(number, statement.strip())
    return parser.document()


class _Parser:
    """Collects the document, a statement at a time."""

    def __init__(self, name: str) -> None:
        self.doc: dict[str, Any] = {"name": name, "nodes": {}, "edges": [], "routes": [], "joins": [], "errors": []}
        self.entry: list[str] | None = None
        self.absent: set[str] = set()
        self.line = 0
        self.statement = ""

    def document(self) -> dict[str, Any]:
        """What has been read."""
        nodes = {name: spec for name, spec in self.doc["nodes"].items() if name not in self.absent}
        return {"entry": list(nodes)[:1] if self.entry is None else self.entry, **self.doc, "nodes": nodes}

    def read(self, number: int, statement: str) -> None:
        """Read one statement."""
        self.line, self.statement = number, statement
        words = statement.split()
        mark = next((word for word in words if word in _MARKS or _ARROW.fullmatch(word)), "")
        keyword = words[0] if words[0] in _KEYWORDS and words[1:2] != [mark] else ""
        if keyword:
            _KEYWORDS[keyword](self, statement[len(keyword) :].strip())
        elif (_ARROW.search(statement) and mark in ("&", "")) or _ARROW.fullmatch(mark):
            self.join()
        elif mark in _STATEMENTS:
            left, right = re.split(rf"(?:^|\s){re.escape(mark)}(?:\s|$)", statement, maxsplit=1)
            _STATEMENTS[mark](self, left.strip(), right.strip())
        else:
            known = [*_KEYWORDS, *_STATEMENTS, "=>"]
            raise self.wrong(f"a statement: {alternatives(words[0], known)}")

    def wrong(self, expected: str) -> UsageError:
        """The error for the statement at hand."""
        return UsageError(f"line {self.line} of the notation, '{self.statement}': expected {expected}")

    def names(self, text: str, what: str = "node ids") -> list[str]:
        """Names between commas, at least one."""
        return [self.name(part, what) for part in text.split(",")]

    def name(self, text: str, what: str = "a node id") -> str:
        """One name; START and END are those of the graph."""
        text = text.strip()
        if not text or re.search(r"[\s,:|&{}<>=?*@]", text):
            raise self.wrong(f"{what}, not '{text}'" if text else what)
        return {"START": START, "END": END}.get(text, text)

    def node(self, name: str) -> dict[str, Any]:
        """The node of this name, which is there from now on."""
        found: dict[str, Any] = self.doc["nodes"].setdefault(name, {})
        return found

    def sources(self, text: str) -> list[str]:
        """Names between commas that are nodes from now on; START is not."""
        found = self.names(text)
        for name in found:
            if name != START:
                self.node(name)
        return found

    # -- statements with a mark in the middle ------------------------------------------------------

    def edge(self, left: str, right: str) -> None:
        """`a -> b, c`"""
        chain = [left, *re.split(r"\s->\s", right)]
        for sources, targets in itertools.pairwise(chain):
            for source in self.sources(sources):
                for target in self.names(targets):
                    if source == START:
                        self.entry = [*(self.entry or ()), target]
                        self.node(target)
                    else:
                        self.doc["edges"].append([source, target])

    def failure(self, left: str, right: str) -> None:
        """`a !> h`"""
        self.doc["errors"] += [[source, self.name(right), ["Exception"]] for source in self.sources(left)]

    def fan_out(self, left: str, right: str) -> None:
        """`m @ w then c`"""
        worker, *collector = re.split(r"\sthen\s", right)
        route: dict[str, Any] = {"from": self.source(left), "select": "map", "targets": [self.name(worker)]}
        if collector:
            route["collector"] = self.name(collector[0])
        self.doc["routes"].append(route)

    def source(self, text: str) -> str:
        """One name that is a node from now on."""
        name = self.name(text)
        self.node(name)
        return name

    def one_of(self, left: str, right: str) -> None:
        """`r ? b | c`"""
        self.route(left, "one", right)

    def some_of(self, left: str, right: str) -> None:
        """`r * b | c`"""
        self.route(left, "many", right)

    def route(self, left: str, select: str, right: str) -> None:
        """A route, with the clauses behind its targets."""
        targets, *clauses = re.split(r"\s(?=(?:else|with|as|of|id)\s)", right)
        made: dict[str, Any] = {"from": self.source(left), "select": select}
        parts = [part.strip() for part in targets.split("|")]
        if parts == ["?"]:
            made["targets"] = None
        elif all(part.startswith("{") and part.endswith("}") for part in parts):
            made |= {"select": "sets", "targets": [self.names(part[1:-1]) for part in parts]}
        else:
            made["targets"] = self.labelled(parts)
        for clause in clauses:
            word, rest = clause.split(None, 1)
            made |= self.clause(word, rest.strip())
        self.doc["routes"].append(made)

    def labelled(self, parts: list[str]) -> dict[str, str]:
        """Targets by label; a target without one is its own."""
        found: dict[str, str] = {}
        for part in parts:
            label, colon, target = part.rpartition(":")
            target = self.name(target)
            found[label.strip() if colon else target] = target
        return found

    def clause(self, word: str, rest: str) -> dict[str, Any]:
        """What a route says behind its targets."""
        if word == "with" and rest != "edges":
            raise self.wrong(f"'with edges', not 'with {rest}'")
        if word == "of":
            return {"labels": self.names(rest, "labels")}
        keys = {"else": "default", "as": "same_as", "id": "id"}
        return {"with_edges": True} if word == "with" else {keys[word]: self.name(rest)}

    def join(self) -> None:
        """`a & b =active=> j id x`"""
        found = _ARROW.search(self.statement)
        assert found is not None
        left, right = self.statement[: found.start()].strip(), self.statement[found.end() :]
        target, *own = re.split(r"\sid\s", right)
        mode: str | int = found[1] or "all"
        if found[1] and found[1].isdigit():
            mode = int(found[1])
        sources = [source for part in left.split("&") for source in self.sources(part)] if left else []
        join: dict[str, Any] = {"from": sources, "to": self.name(target), "mode": mode}
        if own:
            join["id"] = self.name(own[0], "the id of the join")
        self.doc["joins"].append(join)

    def reads(self, left: str, right: str) -> None:
        """`a reads x, y`"""
        self.fields(left, "reads", right)

    def writes(self, left: str, right: str) -> None:
        """`a writes x`"""
        self.fields(left, "writes", right)

    def fields(self, left: str, role: str, right: str) -> None:
        """Fields that nodes read or write; `?`: not known."""
        for source in self.sources(left):
            spec = self.node(source)
            spec[role] = None if right == "?" else [*(spec.get(role) or ()), *self.names(right, "fields")]

    # -- statements that begin with a word ----------------------------------------------------------

    def entries(self, rest: str) -> None:
        """`entry a, b`"""
        self.entry = [*(self.entry or ()), *(self.names(rest) if rest else ())]

    def without(self, rest: str) -> None:
        """`without a`"""
        self.absent.update(self.names(rest))

    def declare(self, rest: str) -> None:
        """`node a kind llm retry effects pay`"""
        said, _, reason = rest.partition(" allow ")
        name, *words = re.sub(r"\s*,\s*", ",", said).split() or [""]
        spec = self.node(self.name(name))
        if reason:
            spec["allow"] = [*spec.get("allow", ()), reason.strip()]
        left = iter(words)
        for word in left:
            self.trait(spec, word, left)

    def trait(self, spec: dict[str, Any], word: str, rest: Iterator[str]) -> None:
        """One thing that is said of a node."""
        if word in ("unbound", "idempotent", "retry"):
            spec[word] = True
        elif word in ("kind", "effects", "asks", "formerly"):
            value = next(rest, "")
            found = self.names(value, f"a name behind '{word}'")
            if word == "kind":
                spec["kind"] = found[0]
            elif word == "asks":
                spec["interrupts"] = [*spec.get("interrupts", ()), *({"key": key} for key in found)]
            else:
                spec[word] = [*spec.get(word, ()), *found]
        else:
            known = ("kind", "unbound", "idempotent", "retry", "effects", "asks", "formerly", "allow")
            raise self.wrong(f"something about the node, not '{word}': {alternatives(word, known)}")

    def field(self, rest: str) -> None:
        """`state x: list[str] append = []`"""
        name, _, declared = rest.partition(":")
        declared, given, default = declared.partition("=")
        words = declared.split()
        spec: dict[str, Any] = {"reducer": words.pop() if words and words[-1] in _RULES else "last"}
        spec["type"] = " ".join(words) or {"append": "list", "merge": "dict"}.get(spec["reducer"], "Any")
        if given:
            try:
                spec["default"] = json.loads(default)
            except ValueError as error:
                raise self.wrong(f"JSON as the default, not '{default.strip()}'") from error
        self.doc.setdefault("state", {})[self.name(name, "a field")] = spec

    def interface(self, key: str) -> Callable[[str], None]:
        """`inputs x, y`"""

        def read(rest: str) -> None:
            self.doc[key] = [*self.doc.get(key, ()), *(self.names(rest, "fields") if rest else ())]

        return read

    def breakpoint(self, rest: str) -> None:
        """`interrupt before a`"""
        when, _, names = rest.partition(" ")
        if when not in ("before", "after"):
            raise self.wrong("'before' or 'after'")
        key = f"interrupt_{when}"
        self.doc[key] = [*self.doc.get(key, ()), *self.names(names)]

    def policy(self, rest: str) -> None:
        """`must a through b, c`"""
        node, through, guards = rest.partition(" through ")
        if not through:
            raise self.wrong("'must NODE through NODE'")
        self.doc.setdefault("must_pass", []).append({"node": self.name(node), "through": self.names(guards)})

    def never(self, rest: str) -> None:
        """`never r = x, q = y`"""
        pairs = [part.partition("=") for part in rest.split(",")]
        if not all(equals for _, equals, _ in pairs):
            raise self.wrong("'NODE = OUTCOME' between commas")
        found = {self.name(node): self.name(label, "an outcome") for node, _, label in pairs}
        self.doc.setdefault("assume", []).append(found)

    def limit(self, rest: str) -> None:
        """`limit laps a 3`"""
        words = rest.split()
        if not words or not words[-1].isdigit() or [words[0], len(words)] not in (
            ["steps", 2],
            ["laps", 3],
            ["fanout", 3],
        ):  # fmt: skip
            raise self.wrong("'steps NUMBER', 'laps NODE NUMBER' or 'fanout NODE NUMBER'")
        limits = self.doc.setdefault("limits", {})
        if words[0] == "steps":
            limits["steps"] = int(words[1])
        else:
            limits.setdefault(words[0], {})[self.name(words[1])] = int(words[2])

    def store(self, rest: str) -> None:
        """`store no`"""
        if rest not in ("yes", "no"):
            raise self.wrong("'yes' or 'no'")
        self.doc["checkpointer"] = rest == "yes"

    def engine(self, rest: str) -> None:
        """`engine both`"""
        known = get_args(EngineName)
        if rest not in known:
            raise self.wrong(f"an engine, not '{rest}': {alternatives(rest, known)}")
        self.doc["engine"] = rest

    def region(self, rest: str) -> None:
        """`region A: a1, a2 from a1 to a2`"""
        found = re.fullmatch(r"(\S+)\s*:\s*(.+?)\s+from\s+(\S+)\s+to\s+(\S+)", rest)
        if found is None:
            raise self.wrong("'region NAME: NODES from NODE to NODE'")
        region = {"id": found[1], "nodes": self.names(found[2]), "entry": found[3], "exit": found[4]}
        self.doc.setdefault("regions", []).append({"kind": "parallel", **region})


_STATEMENTS: dict[str, Callable[[_Parser, str, str], None]] = {
    "->": _Parser.edge,
    "?": _Parser.one_of,
    "*": _Parser.some_of,
    "@": _Parser.fan_out,
    "!>": _Parser.failure,
    "reads": _Parser.reads,
    "writes": _Parser.writes,
}
_KEYWORDS: dict[str, Callable[[_Parser, str], None]] = {
    "entry": _Parser.entries,
    "node": _Parser.declare,
    "without": _Parser.without,
    "state": _Parser.field,
    "inputs": lambda parser, rest: parser.interface("inputs")(rest),
    "outputs": lambda parser, rest: parser.interface("outputs")(rest),
    "interrupt": _Parser.breakpoint,
    "must": _Parser.policy,
    "never": _Parser.never,
    "limit": _Parser.limit,
    "store": _Parser.store,
    "engine": _Parser.engine,
    "region": _Parser.region,
}
