"""How the debugger shows where a run stands: as text, and as data."""

from __future__ import annotations

from typing import Any

from graphagent.debug.breakpoints import Breakpoint
from graphagent.debug.moment import Coming, Moment
from graphagent.debug.session import Stopped
from runner.cli.output import compact
from runner.cli.stored import interrupt_data, interrupt_text
from runner.debugger.desk import Desk
from runner.debugger.table import Reply

FIELDS, WIDTH = 8, 100
"""Fields that are shown of a step, and characters of each."""
_WORDS = {
    "started": "held before the first step",
    "step": "",
    "breakpoint": "breakpoint",
    "interrupted": "the run waits",
    "failed": "the run failed",
    "limit_reached": "the run has reached its limit",
    "stalled": "the run has stalled",
    "completed": "the run has completed",
    "cancelled": "the run was cancelled",
    "paused": "the run is paused",
    "moved": "",
    "edited": "edited: the run goes on from here",
    "forked": "forked: the run goes on from here",
}
_NEXT = {
    "failed": "'state', 'why', 'alone NODE' look into it; 'edit FIELD=VALUE' mends the state and goes on",
    "stalled": "'joins' shows what is missing; 'back' goes to where it parted",
    "interrupted": "'answer KEY VALUE', then 'continue'",
    "limit_reached": "'history' shows where it went round",
    "completed": "'back', 'goto ID', 'who FIELD', 'why NODE' look into it",
}


async def stopped(desk: Desk, found: Stopped) -> Reply:
    """Where the run stands now, and why it stopped there."""
    desk.last = found
    moment = found.moment
    values = await desk.values() if moment.changed and moment.source != "end" else {}
    document = {
        "why": found.why,
        "reason": found.reason,
        "breakpoints": [one.id for one in found.hit],
        **place(moment),
        "changed": {name: values.get(name) for name in moment.changed},
        "live": desk.session.live,
    }
    changed = [name for name in moment.changed if name in values]
    if moment.source == "input":  # what isn't set has its default, which tells nothing
        changed = [name for name in changed if values[name] not in (None, "", [], {})]
    lines = [*_why(found), *_place(moment)]
    lines += [f"  {name} = {_brief(values[name])}" for name in changed[:FIELDS]]
    lines += [f"  and {len(changed) - FIELDS} more fields: 'state' shows them"] if len(changed) > FIELDS else []
    lines += [interrupt_text(one) for one in moment.waits if one.kind == "ask"]
    if (hint := _NEXT.get(found.why)) is not None:
        lines.append(f"  ({hint})")
    return Reply(document, "\n".join(lines))


def place(moment: Moment) -> dict[str, Any]:
    """A point of a run as data."""
    return {
        "checkpoint": moment.id,
        "namespace": moment.namespace,
        "source": moment.source,
        "step": moment.step,
        "ran": list(moment.ran),
        "next": [
            {"activation": one.activation, "node": one.node, "branch": one.branch, "state": one.state}
            for one in moment.coming
        ],
        "waits": [interrupt_data(one) for one in moment.waits],
        "error": moment.error,
    }


def point(one: Breakpoint) -> str:
    """A breakpoint in words."""
    words = [one.kind, one.node or one.field or ""]
    if one.kind == "when":
        words = ["when", one.condition or ""]
    elif one.condition:
        words += ["if", one.condition]
    if one.visit is not None:
        words += ["visit", str(one.visit)]
    words += ["once"] if one.once else []
    words += [] if one.enabled else ["(off)"]
    return " ".join(word for word in words if word)


def _why(found: Stopped) -> list[str]:
    words = _WORDS[found.why]
    if found.hit:
        words = "; ".join(f"breakpoint {one.id}: {point(one)}" for one in found.hit)
    reason = found.reason if found.reason and found.reason not in (found.why, "interrupt") else ""
    told = f"{words}: {reason}" if words and reason else words or reason
    return [f"* {told}"] if told else []


def _place(moment: Moment) -> list[str]:
    after = f"after {named(moment.ran)}" if moment.ran else f"after the {moment.source}" if moment.source else ""
    if moment.source in ("interrupt", "error", "end"):
        after = {"interrupt": "waiting", "error": "stopped", "end": "at the end"}[moment.source]
    return [f"{moment.id}  step {moment.step}  {after}", f"  next: {_coming(moment.coming)}"]


def _coming(coming: tuple[Coming, ...]) -> str:
    if not coming:
        return "nothing is left to run"
    mark = {"ready": "", "held": " (has finished)", "waiting": " (waits for an answer)"}
    told = [f"{one.activation}{mark[one.state]}" for one in coming[:8]]
    return ", ".join(told) + (f" and {len(coming) - 8} more" if len(coming) > 8 else "")


def _brief(value: Any) -> str:
    text = compact(value)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}... ({len(text)} characters; 'state FIELD' shows all)"


def named(nodes: tuple[str, ...]) -> str:
    """Nodes in words, at most eight of them."""
    return ", ".join(nodes[:8]) + (f" and {len(nodes) - 8} more" if len(nodes) > 8 else "")
