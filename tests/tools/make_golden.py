"""Write the golden runs of this release: `python -m tests.tools.make_golden tests/golden/v<release>`.

The folder has `graph.py` and `lineages.py`, copied from the release before and extended with what is new. Every lineage
is written by a process of its own into a fresh SQLite file and a fresh PostgreSQL schema; what these hold and how it
goes on must be the same for both, and becomes `expectations.json`: read it before you commit it. A folder that has
runs is refused, since a release is made once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests/, as pytest has it

import anyio
import psycopg
from psycopg import sql
from support.databases import postgres_schema
from support.golden import EXPECTATIONS, POSTGRES, SQLITE, go_on, load_dump, load_module, stored

from graphagent import Executor, SqlCheckpoints
from graphagent.checkpoint.sql.schema import TABLES, VERSION_TABLE

DIED = 9
NOBODY = '["a machine that is gone", "", "", 1, ""]'
"""The owner of lineages whose process died; the real one names this machine."""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.make_golden", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", nargs=2, metavar=("LINEAGE", "URL"), help="only write that lineage (for itself)")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    if arguments.write:
        anyio.run(_write, folder, *arguments.write)
    elif (folder / EXPECTATIONS).exists():
        sys.exit(f"'{arguments.folder}' has its runs; a release is made once, and never made again")
    else:
        make(folder)


def make(folder: Path) -> None:
    """Write runs and expectations into the folder."""
    names = list(load_module(folder, "lineages").LINEAGES)
    with tempfile.TemporaryDirectory() as place, postgres_schema() as server, postgres_schema() as copy:
        path = Path(place) / SQLITE
        for url in (f"sqlite:///{path}", server):
            for name in names:
                done = subprocess.run([sys.executable, "-m", __spec__.name, str(folder), "--write", name, url])
                assert done.returncode in (0, DIED), f"'{name}' ended with {done.returncode}"
        _close(path)
        (folder / POSTGRES).write_text(_dump(server))
        shutil.copy(path, folder / SQLITE)
        load_dump(copy, folder)
        found, again = (anyio.run(_expectations, folder, url) for url in (f"sqlite:///{path}", copy))
        assert found == again, "SQLite and PostgreSQL differ"
    (folder / EXPECTATIONS).write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(names)} lineages, {(folder / SQLITE).stat().st_size} bytes; read {EXPECTATIONS} before you commit it")


async def _write(folder: Path, name: str, url: str) -> None:
    async with SqlCheckpoints(url) as store:
        await load_module(folder, "lineages").write(name, store, load_module(folder, "graph"))


def _close(path: Path) -> None:
    """Make one small file of the database, without the write-ahead log."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE ga_lineages SET owner = ?, expires = since WHERE owner IS NOT NULL", (NOBODY,))
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("VACUUM")
    connection.close()


def _dump(url: str) -> str:
    """All tables as SQL that psql and psycopg load into any schema."""
    lines = [f"{statement};" for statement in TABLES.creation("postgresql")]
    with psycopg.connect(url) as server:
        server.execute("UPDATE ga_lineages SET owner = %s, expires = since WHERE owner IS NOT NULL", (NOBODY,))
        tables = server.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1")
        for table in sorted({name for (name,) in tables.fetchall()} - {VERSION_TABLE}):
            cursor = server.execute(sql.SQL("SELECT * FROM {} ORDER BY 1").format(sql.Identifier(table)))
            names = [column.name for column in cursor.description or ()]
            for row in cursor.fetchall():
                values = ", ".join(sql.Literal(value).as_string(server) for value in row)
                lines.append(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values});")
            if names[0] == "id" and table not in ("ga_rows", "ga_pins"):
                lines.append(f"SELECT setval('{table}_id_seq', (SELECT coalesce(max(id), 1) FROM {table}));")
    return "\n".join(lines) + "\n"


async def _expectations(folder: Path, url: str) -> dict[str, Any]:
    """What the runs hold and how they go on, by this release."""
    graph, lineages = load_module(folder, "graph"), load_module(folder, "lineages")
    found = {}
    async with SqlCheckpoints(url) as store:
        for name, golden in lineages.LINEAGES.items():
            executor = Executor(graph.GRAPHS[golden.graph], store, golden.engine)
            before = await stored(store, executor, name)
            then = None if golden.then is None else dict(golden.then)
            after = None if then is None else await go_on(executor, name, then, graph.World())
            found[name] = {"graph": golden.graph, "engine": golden.engine, **before, "then": then, "ends": after}
    prints = {name: made.fingerprint for name, made in graph.GRAPHS.items()}
    return {"release": version("graphagent"), "fingerprints": prints, "lineages": found}


if __name__ == "__main__":
    main()
