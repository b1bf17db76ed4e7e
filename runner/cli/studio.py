"""The command that opens the studio."""

from __future__ import annotations

import os
import webbrowser

import anyio

from graphagent import SqlCheckpoints
from graphagent.agents.graph_agent import GraphAgent
from graphagent.checkpoint.sql.urls import postgres_url, redacted, sqlite_path
from graphagent.errors import UsageError
from runner.cli.debug import loaded
from runner.cli.exits import Exit
from runner.cli.opening import existing_store
from runner.cli.output import Output
from runner.cli.studio_options import StudioOptions
from runner.loopback import is_loopback
from runner.studio.access import checked_binding
from runner.studio.serving import Ready, Serving
from runner.studio.targets import Target, Targets


def studio(options: StudioOptions, output: Output) -> int:
    """Serve the studio until it is told to stop."""
    url = existing_store(options.db)
    checked_binding(options.host, options.token)
    targets = Targets([target_of(place) for place in options.targets or ()], options.engine.value)

    async def refused(store: SqlCheckpoints) -> str | None:
        if options.read_only is not None:
            return "it was started with --read-only" if options.read_only else None
        return await reason_to_refuse(store, url)

    def ready(address: str, why: str | None) -> None:
        document = {"url": address, "db": redacted(url), "read_only": why, "graphs": [t.place for t in targets.named]}
        output.line(document, f"studio: {address}\nCtrl-C ends it" + (f"\nread-only: {why}" if why else ""))
        if options.browser and not options.as_json:
            webbrowser.open(address)

    _serve(Serving(url, options.host, options.port, options.token, targets, refused), ready)
    return Exit.COMPLETED


async def reason_to_refuse(store: SqlCheckpoints, url: str) -> str | None:
    """Why a store is looked at only, unless the user says otherwise; None if there is no reason."""
    host = other_host(url)
    if host is not None:
        return f"the database is on host '{host}', others may run on it: start with --write to change runs"
    other = await store.written_elsewhere()
    if other is not None:
        return f"it was last written on host '{other}', so this seems to be a copy: start with --write to change it"
    return None


def target_of(place: str) -> Target:
    """The graph or the agent that was named. Raises UsageError."""
    found = loaded(place)
    return Target(place, found.graph, found) if isinstance(found, GraphAgent) else Target(place, found)


def other_host(url: str) -> str | None:
    """The host of a PostgreSQL url if that is another machine, as the client library understands it."""
    if sqlite_path(url) is not None:
        return None
    from psycopg.conninfo import conninfo_to_dict

    hosts = str(conninfo_to_dict(postgres_url(url)).get("host") or os.environ.get("PGHOST") or "").split(",")
    return next((host for host in hosts if host and not host.startswith(("/", "@")) and not is_loopback(host)), None)


def _serve(serving: Serving, ready: Ready) -> None:
    """NiceGUI takes its time to be imported, and it need not be installed."""
    try:
        from runner.studio.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("nicegui", "fastapi", "uvicorn"):
            raise
        raise UsageError("the studio needs NiceGUI: install graphagent[studio]") from error
    anyio.run(serve, serving, ready)
