"""What the stores say, in the same words, about names and leases."""

from __future__ import annotations

from datetime import UTC, datetime

from graphagent.errors import CheckpointError, CheckpointNotFound, LeaseLost, LineageBusy, SaveError


def check_name(kind: str, name: str) -> None:
    """Raise CheckpointError unless `name` can be stored by every store: text without NUL or lone surrogates."""
    if name.isprintable():
        return
    if "\0" in name or any("\ud800" <= char <= "\udfff" for char in name):
        raise CheckpointError(f"{kind} {name!r} has a NUL or a lone surrogate, which databases refuse; choose another")


def lineage_busy(lineage: str, run_id: str, since: float, holder: str) -> LineageBusy:
    """The error for a lineage that another live owner holds; `since` is in seconds since the epoch."""
    started = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return LineageBusy(
        f"lineage '{lineage}' is held by run '{run_id}' since {started} ({holder}); wait until it ends, or choose what "
        "happens to the newcomer: on_conflict='reject' (now), 'queue', 'cancel_previous' or 'fork'"
    )


def lease_lost(lineage: str, run_id: str) -> LeaseLost:
    """The error for a write with a lease that is not the current one."""
    return LeaseLost(
        f"run '{run_id}' no longer holds lineage '{lineage}': another run took it over, or it was released or deleted; "
        "nothing was written. Load the newest checkpoint and start a new run"
    )


def row_exists(lineage: str, namespace: str, seq: int) -> SaveError:
    """The error for a row whose number is taken."""
    frame = f"frame '{namespace}' of lineage '{lineage}'" if namespace else f"lineage '{lineage}'"
    return SaveError(f"{frame} has a row {seq} already; rows are numbered on from the newest one, so load that first")


def no_such_row(lineage: str, namespace: str, seq: int) -> CheckpointNotFound:
    """The error for a row that isn't there."""
    frame = f"frame '{namespace}' of lineage '{lineage}'" if namespace else f"lineage '{lineage}'"
    return CheckpointNotFound(f"{frame} has no checkpoint {seq}; history() lists those it has")
