"""A small copy of the demo graph (examples/cert_triage) that can be changed in the ways in which graphs change.

load -> checks side by side -> verdict -> (critical: approve -> yes: remediate) -> report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from graphagent import StateGraph, append

CHECKS = ("validity", "chain", "trust")
PLACES = ("load", "trust", "verdict", "approve", "remediate", "report")
"""Where a run of the copy is stopped: before these nodes; at `approve` by its question."""


class State(BaseModel):
    """What a triage knows."""

    target: str = "example.org"
    chain: list[str] = []
    findings: Annotated[list[str], append] = []
    severity: str | None = None
    approve: Literal["yes", "no"] | None = None
    script: str | None = None
    report: str | None = None


@dataclass(frozen=True)
class Edit:
    """How a version of the copy differs; `extend` is called with the builder before it is returned."""

    state: type = State
    names: Mapping[str, str] = field(default_factory=dict)
    formerly: bool = False
    order: Sequence[str] = ()
    checks: Sequence[str] = CHECKS
    without: str = ""
    answers: Mapping[str, str] = field(default_factory=lambda: {"yes": "remediate", "no": "report"})
    graded: bool = False
    notify: bool = False
    loads: Mapping[str, Any] = field(default_factory=dict)
    reads: Sequence[str] = ()
    approval: str = "approve"
    description: str = ""
    check: Callable[[str], Any] | None = None
    extend: Callable[[StateGraph], Any] | None = None


def triage(edit: Edit = Edit()) -> StateGraph:
    """The copy with an edit."""

    def now(name: str) -> str:
        return edit.names.get(name, name)

    builder = StateGraph(edit.state, name="triage", inputs=("target",), outputs=("report",))
    nodes = _nodes(edit, now)
    for name in edit.order or nodes:
        if name != edit.without:
            nodes[name](builder, {"formerly": [name] if edit.formerly and name in edit.names else []})
    builder.set_entry_point(now("load"))
    for name in edit.checks:
        builder.add_edge(now("load"), now(name))
    builder.add_join_edge([now(name) for name in edit.checks], now("verdict"), id="verdict")
    routed = "verdict"
    if edit.graded:
        builder.add_edge(now("verdict"), "grade")
        routed = "grade"
    builder.add_conditional_edges(now(routed), by_severity, {"ok": now("report"), "critical": now("approve")})
    answers = {label: now("report" if to == edit.without else to) for label, to in edit.answers.items()}
    builder.add_conditional_edges(now("approve"), _by_answer(edit), answers)
    if edit.without != "remediate":
        builder.add_edge(now("remediate"), now("report"))
    last = "report"
    if edit.notify:
        builder.add_node("notify", says_nothing, inline=True, reads=(), writes=()).add_edge(now("report"), "notify")
        last = "notify"
    builder.set_finish_point(now(last))
    if edit.extend is not None:
        edit.extend(builder)
    return builder


def _nodes(edit: Edit, now: Callable[[str], str]) -> dict[str, Callable[[StateGraph, dict[str, Any]], Any]]:
    """What adds each node, in order of declaration."""

    def load(state: Any) -> dict[str, Any]:
        return {"chain": ["leaf"], **edit.loads}

    def plain(name: str, fn: Any, reads: Sequence[str], writes: Sequence[str]) -> Any:
        return lambda builder, options: builder.add_node(
            now(name), fn, inline=True, reads=reads, writes=writes, description=edit.description, **options
        )

    def ask(builder: StateGraph, options: dict[str, Any]) -> None:
        builder.add_interrupt_node(
            now("approve"), prompt="May a script be written?", answer_type=Literal["yes", "no"], key="approve",
            writes=edit.approval, **options,
        )  # fmt: skip

    made = {"load": plain("load", load, ("target",), ("chain", *edit.loads))}
    for name in edit.checks:
        made[name] = plain(name, (edit.check or finds)(name), ("chain",), ("findings",))
    made["verdict"] = plain("verdict", judge, ("findings",), ("severity",))
    if edit.graded:
        made["grade"] = plain("grade", says_nothing, ("severity",), ())
    made["approve"] = ask
    made["remediate"] = plain("remediate", _remediate(edit), ("findings",), ("script",))
    made["report"] = plain("report", _report(edit), ("findings", "severity", *edit.reads), ("report",))
    return made


def finds(name: str) -> Any:
    """A check that always finds something."""
    return lambda state: {"findings": [name]}


def judge(state: Any) -> dict[str, Any]:
    """The verdict: critical, since something was found."""
    return {"severity": "critical" if state.findings else "ok"}


def by_severity(state: Any) -> str:
    """Where a verdict leads; whatever its type is, anything found is critical."""
    return "critical" if state.findings else "ok"


def says_nothing(state: Any) -> None:
    """A node that changes nothing."""


def _by_answer(edit: Edit) -> Any:
    last = list(edit.answers)[-1]
    return lambda state: getattr(state, edit.approval) if getattr(state, edit.approval) in edit.answers else last


def _remediate(edit: Edit) -> Any:
    return lambda state: {"script": f"{getattr(state, edit.approval)}: {len(state.findings)}"}


def _report(edit: Edit) -> Any:
    def report(state: Any) -> dict[str, Any]:
        more = "".join(f" {getattr(state, name)}" for name in edit.reads)
        return {"report": f"{','.join(sorted(state.findings))} {state.script}{more}"}

    return report
