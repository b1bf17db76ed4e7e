"""Many conversations at once, in figures: `python -m tests.tools.session_load [--postgres 500] [--sqlite 50]`.

Each is `--turns` turns long; all of one database go on at the same time, `--waves` times over, with the limits and the
pools that everybody has. PostgreSQL if the server of GRAPHAGENT_TEST_POSTGRES is there. Ends with code 1 if an event is
lost or doubled, or memory grew from wave to wave.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests/, as pytest has it

from _pytest.outcomes import Skipped
from support.databases import postgres_schema
from support.session_load import Load, load


def report(name: str, found: Load) -> bool:
    """Print the figures; whether all is well."""
    print(f"{name}: {found}", *found.faults[:5], sep="\n    ", flush=True)
    return not found.faults and found.growth < 0.02


def main() -> int:
    """Print the figures of each database."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", type=int, default=500, help="sessions at a time (0: none)")
    parser.add_argument("--sqlite", type=int, default=50, help="sessions at a time (0: none)")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--waves", type=int, default=3)
    told = parser.parse_args()
    os.environ.setdefault("GRAPHAGENT_DEBUG", "0")  # pytest is loaded, but this is no test
    size = {"turns": told.turns, "waves": told.waves, "tell": partial(print, file=sys.stderr, flush=True)}
    well = True
    if told.sqlite:
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/load.db"
            well &= report("sqlite", anyio.run(partial(load, url, sessions=told.sqlite, **size)))
    if told.postgres:
        try:
            with postgres_schema() as url:
                well &= report("postgres", anyio.run(partial(load, url, sessions=told.postgres, **size)))
        except Skipped as reason:
            print(reason, file=sys.stderr)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
