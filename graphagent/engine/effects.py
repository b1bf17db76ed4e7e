"""The effect ledger behind `ctx.step`: claimed before, committed after with the result, replayed on a re-run."""

from __future__ import annotations

import asyncio
import copy
import functools
import sys
import typing
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from graphagent.checkpoint.plans import plan_for
from graphagent.checkpoint.record import EffectRow, Unencoded
from graphagent.checkpoint.store import is_instant
from graphagent.errors import EffectUnknown, EncodeError, UsageError

if TYPE_CHECKING:
    from graphagent.engine.frame import Frame, Origin


_INSIDE: ContextVar[str | None] = ContextVar("graphagent_step", default=None)


class inside_step:  # a generator would cost three times as much
    """A block in which the function of step `name` runs."""

    __slots__ = ("_name", "_token")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._token = _INSIDE.set(self._name)

    def __exit__(self, *exc: object) -> None:
        _INSIDE.reset(self._token)


def refuse_inside_step(key: str) -> None:
    """Raise UsageError if the function of a step asks: unwinding it would leave the effect with an unknown outcome."""
    name = _INSIDE.get()
    if name is not None:
        raise UsageError(
            f"the question '{key}' is asked inside the function of ctx.step('{name}'); "
            f"ask before the step and pass the answer to it"
        )


@dataclass(slots=True)
class Claim:
    """One effect in the ledger. `open`: it has to be carried out; `unknown`: it was begun before, outcome unknown.

    `fn`: its return annotation says as what the result is kept. `result`: what it came back with, once it is not open
    any more.
    """

    name: str
    ordinal: int
    fn: Callable[..., Any]
    open: bool = True
    unknown: bool = False
    result: Any = None


class Ledger:
    """The effects of one activation. Ordinals count the calls under one name, so loops inside a node are told apart.

    Effects of one activation may go on side by side: what one of them writes, the others don't forget.
    """

    __slots__ = ("_before", "_counts", "_frame", "_instant", "_known", "_origin", "_written")

    def __init__(self, frame: Frame, origin: Origin) -> None:
        self._frame = frame
        self._origin = origin
        self._instant = frame.tree.instant or is_instant(frame.store)
        self._counts: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self._known: dict[tuple[str, int], EffectRow] | None = {} if frame.unmet else None
        self._written: dict[tuple[str, int], EffectRow] = {}  # by this ledger, whatever else is read anew

    def restart(self, *, first: bool) -> None:
        """A new attempt begins: its calls meet the effects of the attempts before it. Those that callbacks made before
        the first one keep their ordinals."""
        if first:
            self._before = dict(self._counts)
        self._counts = dict(self._before)

    async def claim(self, name: str, key: Callable[[], str], fn: Callable[..., Any], *, may_repeat: bool) -> Claim:
        """The next effect called `name`: its committed result, or the claim to carry it out.

        `key()` is the idempotency key, for the message. `fn`: see Claim. An effect that was begun and never committed,
        whether the process died or the call raised, may have happened: it is given out again only if the caller can
        deal with that (`may_repeat`). Raises EffectUnknown otherwise.
        """
        ordinal = self._counts.get(name, 0)
        self._counts[name] = ordinal + 1
        known = await self._load() if self._known is None else self._known
        row = known.get((name, ordinal))
        if row is not None and row.committed:
            return Claim(name, ordinal, fn, open=False, result=_replayed(row, fn))
        if row is not None and not may_repeat:
            raise EffectUnknown(
                f"the effect '{name}' of node '{self._origin.node}' was begun and its outcome was never recorded "
                f"(idempotency key {key()}); look at the other system, then pass reconcile=... to ctx.step, say "
                f"idempotent=True if repeating it does no harm, or edit the state past this node",
                name=name,
                key=key(),
            )
        if row is None:
            if not self._instant or self._frame.tree.cancelled or _was_cancelled():
                await anyio.lowlevel.checkpoint_if_cancelled()  # what is cancelled already is not begun
            begun = EffectRow(self._origin.base, self._origin.position, name, ordinal, committed=False)
            await (self._write(begun) if self._instant else self._whole(begun))
        return Claim(name, ordinal, fn, unknown=row is not None)

    async def commit(self, claim: Claim, result: Any, *, final: bool = False) -> None:
        """Record that the effect happened, and its result. Raises EncodeError for a result that can't be stored.

        `final`: nobody changes the result any more, so a store in memory may keep it as it is.
        """
        kept, problem = self._kept(claim, result, final)
        origin = self._origin
        row = EffectRow(origin.base, origin.position, claim.name, claim.ordinal, committed=True, result=kept)
        await (self._write(row) if self._instant else self._whole(row))
        if problem is not None:
            raise problem
        claim.open, claim.result = False, result

    async def _load(self) -> dict[tuple[str, int], EffectRow]:
        if self._known is None:
            frame, origin = self._frame, self._origin
            rows = [] if frame.store is None else await frame.store.effects(frame.lineage, frame.namespace, origin.base)
            if self._known is None:  # another effect may have read them meanwhile
                found = {(row.name, row.ordinal): row for row in rows if row.position == origin.position}
                newer = {key: row for key, row in self._written.items() if row.committed or key not in found}
                self._known = {**found, **newer}
        return self._known

    def _kept(self, claim: Claim, result: Any, final: bool) -> tuple[Any, EncodeError | None]:
        """The result as it is stored. One that can't be stored still commits the effect, which did happen."""
        store, plain = self._frame.store, functools.partial(_plain, claim, result)
        as_it_is = final and store is not None and not store.persistent
        if as_it_is and not self._frame.setup.debug:
            return Unencoded(result, plain), None
        try:
            encoded = plain()  # a test on a store in memory finds what a database would refuse
        except EncodeError as error:
            return {"lost": str(error)}, error
        if as_it_is:
            return Unencoded(result, plain), None
        # plain data may share objects with the result, which the node may change
        return encoded if store is None or store.persistent else copy.deepcopy(encoded), None

    async def _whole(self, row: EffectRow) -> None:
        """Write a row to a store that may wait, also when the run is being cancelled: what was done is recorded, and no
        claim is left behind of which nobody knows whether it was written."""
        with anyio.CancelScope(shield=True):
            await self._write(row)

    async def _write(self, row: EffectRow) -> None:
        frame, known = self._frame, await self._load() if self._known is None else self._known
        if frame.store is not None:
            write = frame.store.commit_effect if row.committed else frame.store.claim_effect
            try:
                await write(frame.tree.lease or await frame.tree.writer(), frame.namespace, row)
            except BaseException:
                self._known = None  # the store knows how far it got
                raise
        known[row.name, row.ordinal] = self._written[row.name, row.ordinal] = row


def return_type(fn: Callable[..., Any]) -> Any:
    """What `fn` says that it returns; Any if it doesn't say, or names a type that its module doesn't know."""
    fn = getattr(fn, "__func__", fn)
    declared = getattr(fn, "__annotations__", {}).get("return", Any)
    try:
        return declared if isinstance(declared, type) else _named(fn.__module__, declared)
    except TypeError:  # not hashable
        return Any


@functools.lru_cache(maxsize=512)
def _named(module: str, declared: Any) -> Any:
    """Kept by annotation, not by function: a cache of functions would keep what they close over."""
    names = vars(sys.modules[module]) if module in sys.modules else {}
    try:
        return typing.get_type_hints(SimpleNamespace(__annotations__={"return": declared}), names)["return"]
    except Exception:
        return Any


def _was_cancelled() -> bool:
    """True if the current task has been cancelled, whatever became of that; also if there is no telling.

    Looking through the scopes costs ten times as much, and where nothing waits only a task's own code can cancel
    them unseen.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:  # not under asyncio
        return True
    return task is None or task.cancelling() > 0


def _plain(claim: Claim, result: Any) -> dict[str, Any]:
    return {"value": plan_for(return_type(claim.fn)).encode(result, f"the result of step '{claim.name}'")}


def _replayed(row: EffectRow, fn: Callable[..., Any]) -> Any:
    if isinstance(row.result, Unencoded):
        return row.result.value
    if "lost" in row.result:
        raise EncodeError(
            f"step '{row.name}' was done, but its result was not kept: {row.result['lost']}", path=row.name
        )
    return plan_for(return_type(fn)).decode(copy.deepcopy(row.result["value"]), f"the result of step '{row.name}'")
