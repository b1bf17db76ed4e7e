"""Commands about breakpoints."""

from __future__ import annotations

from typing import Any, Literal

from graphagent.debug.breakpoints import Breakpoint
from graphagent.errors import UsageError
from runner.debugger.desk import Desk
from runner.debugger.show import point
from runner.debugger.table import Reply, command, one_of

USAGE = "[before|after] NODE [if EXPR] [visit N] | write FIELD [if EXPR] | error [NODE] | when EXPR"
Kind = Literal["before", "after", "write", "error", "when"]


@command("break", "b", usage=USAGE, takes="node")
async def break_(desk: Desk, arguments: list[str]) -> Reply:
    """Stop before (or after) a node runs, when a field is written, at an error, or when an expression holds. `if EXPR`
    is judged on the state (as in `if state.severity == "critical"`), `visit N` counts the visits of the node. Without
    arguments it lists the breakpoints."""
    if not arguments:
        return await breakpoints(desk, arguments)
    return _set(desk, arguments, once=False)


@command("tbreak", "tb", usage=USAGE, takes="node")
async def tbreak(desk: Desk, arguments: list[str]) -> Reply:
    """Set a breakpoint that is removed when it is hit."""
    return _set(desk, arguments, once=True)


@command("breakpoints", "bl")
async def breakpoints(desk: Desk, arguments: list[str]) -> Reply:
    """List the breakpoints."""
    found = list(desk.session.breakpoints)
    text = "\n".join(f"  {one.id}  {point(one)}" for one in found) or "there are no breakpoints: 'break NODE' sets one"
    return Reply([_data(one) for one in found], text)


@command("clear", "cl", usage="[ID]", takes="breakpoint")
async def clear(desk: Desk, arguments: list[str]) -> Reply:
    """Remove a breakpoint, or all of them."""
    ids = [_number(one) for one in arguments] or [one.id for one in desk.session.breakpoints]
    for one in ids:
        desk.session.breakpoints.remove(one)
    return Reply({"removed": ids}, f"removed: {', '.join(map(str, ids)) or 'none'}")


@command("enable", "on", usage="ID", takes="breakpoint")
async def enable(desk: Desk, arguments: list[str]) -> Reply:
    """Let a breakpoint stop the run again."""
    return _switch(desk, arguments, on=True)


@command("disable", "off", usage="ID", takes="breakpoint")
async def disable(desk: Desk, arguments: list[str]) -> Reply:
    """Keep a breakpoint, but run past it."""
    return _switch(desk, arguments, on=False)


def _set(desk: Desk, arguments: list[str], *, once: bool) -> Reply:
    if not arguments:
        raise UsageError(f"say where: {USAGE}")
    kind, given = parsed(arguments)
    made = desk.session.breakpoints.add(kind, once=once, **given)
    return Reply(_data(made), f"breakpoint {made.id}: {point(made)}")


def parsed(arguments: list[str]) -> tuple[Kind, dict[str, Any]]:
    """What `break` is told: the kind of the breakpoint, and its other parts. Raises UsageError."""
    words = list(arguments)
    kind: Kind = "before"
    if words[0] in ("before", "after", "write", "error", "when"):
        kind = words.pop(0)  # type: ignore[assignment]
    if kind == "when":
        return kind, {"condition": _rest(words, "when EXPR")}
    given: dict[str, Any] = {}
    if words and words[0] not in ("if", "visit"):
        given["field" if kind == "write" else "node"] = words.pop(0)
    elif kind != "error":
        raise UsageError(f"'{kind}' needs {'a field' if kind == 'write' else 'a node'}: {USAGE}")
    if words[:1] == ["visit"] or words[-2:-1] == ["visit"]:
        place = 0 if words[0] == "visit" else len(words) - 2
        given["visit"] = _number(words[place + 1]) if len(words) > place + 1 else _number("")
        del words[place : place + 2]
    if words and words.pop(0) != "if":
        raise UsageError(f"'{' '.join(arguments)}' is not understood: {USAGE}")
    if words:
        given["condition"] = _rest(words, "if EXPR")
    return kind, given


def _rest(words: list[str], usage: str) -> str:
    if not words:
        raise UsageError(f"an expression is missing: {usage}")
    return " ".join(words)


def _number(text: str) -> int:
    if not text.isdigit():
        raise UsageError(f"'{text}' is not a number")
    return int(text)


def _switch(desk: Desk, arguments: list[str], *, on: bool) -> Reply:
    number = _number(one_of(arguments, "the number of a breakpoint"))
    desk.session.breakpoints.enable(number, on)
    return Reply({"id": number, "enabled": on}, f"breakpoint {number} is {'on' if on else 'off'}")


def _data(one: Breakpoint) -> dict[str, Any]:
    names = ("id", "kind", "node", "field", "condition", "visit", "namespace", "enabled", "once")
    return {name: getattr(one, name) for name in names}
