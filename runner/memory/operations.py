"""Changes to what is remembered, and how they are made: one by one, so that one that fails stops none of the others.

Source: spec/context, 17.5.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from graphagent.errors import AlreadyExists, LimitExceeded, NotFound, ServiceError
from graphagent.services import About, Memory, MemoryService
from runner.memory.entries import new_memory

_log = logging.getLogger(__name__)

OperationKind = Literal["add", "update", "delete", "clear"]
ALL: frozenset[str] = frozenset(get_args(OperationKind))
Result = Literal["added", "updated", "deleted", "cleared", "disabled", "unknown", "refused", "failed"]


class Operation(NamedTuple):
    """A change. `kind`: an OperationKind, or what a model made of it; `id`: the memory to update or delete; `text` and
    `about`: what is remembered."""

    kind: str
    id: str = ""
    text: str = ""
    about: About = {}

    def to_data(self) -> dict[str, Any]:
        """It as JSON has it."""
        about = {key: list(value) if isinstance(value, tuple) else value for key, value in self.about.items()}
        return {"kind": self.kind, "id": self.id, "text": self.text, "about": about}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Operation:
        """What `to_data` was given."""
        return cls(data["kind"], data["id"], data["text"], data["about"])


class Done(NamedTuple):
    """What became of an operation: `disabled`, its kind isn't allowed; `unknown`, there is no such kind; `refused`, it
    can't be made, such as one memory too many; `failed`, the service couldn't now. `reason`: why."""

    operation: Operation
    result: Result
    reason: str = ""


async def apply(
    memory: MemoryService, app: str, user: str, operations: Iterable[Operation], allowed: Collection[str]
) -> list[Done]:
    """Make changes in order, and say what became of each. Making them once more changes nothing if their updates say
    all of `about` (see `settled`)."""
    done = []
    for operation in operations:
        done.append(await _made(memory, app, user, operation, allowed))
        if done[-1].reason:
            _log.warning("memory of user '%s': %s is %s: %s", user, operation.kind, done[-1].result, done[-1].reason)
    return done


async def _made(memory: MemoryService, app: str, user: str, operation: Operation, allowed: Collection[str]) -> Done:
    if operation.kind not in ALL:
        return Done(operation, "unknown", f"there is no operation '{operation.kind}'")
    if operation.kind not in allowed:
        return Done(operation, "disabled")
    try:
        if operation.kind in ("add", "update"):
            new_memory(app, user, operation.text, operation.about, 0.0)
    except (ServiceError, TypeError, ValueError) as error:  # it is no memory, and never will be one
        return Done(operation, "refused", str(error))
    for last in (False, True):
        try:
            return Done(operation, await _make(memory, app, user, operation, allowed))
        except (AlreadyExists, LimitExceeded) as error:
            return Done(operation, "refused", str(error))
        except Exception as error:  # a failure of a database is often over at once
            if last:
                return Done(operation, "failed", f"{type(error).__name__}: {error}")
    raise AssertionError("not reached")


async def _make(memory: MemoryService, app: str, user: str, operation: Operation, allowed: Collection[str]) -> Result:
    if operation.kind == "clear":
        await memory.clear(app, user)
        return "cleared"
    if operation.kind == "delete":
        await memory.delete(app, user, operation.id)
        return "deleted"
    if operation.kind == "update":
        try:
            await memory.update(app, user, operation.id, operation.text, **operation.about)
            return "updated"
        except NotFound:  # it is gone, or the model made the id up: what it says is still to be remembered
            if "add" not in allowed:
                return "disabled"
    await memory.add(app, user, operation.text, **operation.about)
    return "added"


def settled(operation: Operation, known: Mapping[str, Memory]) -> Operation:
    """An update that says all of `about`, what it leaves out as the memory has it: so it makes the same memory when it
    is made again and the old one is gone."""
    old = known.get(operation.id)
    if operation.kind != "update" or old is None:
        return operation
    about: About = {
        "topics": old.topics,
        "kind": old.kind,
        "event_time": old.event_time,
        "participants": old.participants,
        "location": old.location,
    }
    return operation._replace(about={**about, **operation.about})
