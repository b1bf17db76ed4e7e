"""Import gate: what `import graphagent` may load."""

import json
import subprocess
import sys

PROBE = """
import json, sys
before = set(sys.modules)
import graphagent
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded():
    """The modules that importing graphagent loads, in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_slow_packages_stay_out():
    """`import graphagent` loads neither litellm nor SQLAlchemy, sqlmodel, networkx, psycopg, typer or rich."""
    roots = {name.split(".")[0] for name in loaded()}
    assert not roots & {"litellm", "sqlalchemy", "sqlmodel", "networkx", "psycopg", "alembic", "typer", "rich"}


def test_core_imports_neither_processors_nor_runner():
    """The arrows point one way: the core loads neither processors nor runner."""
    assert not {name.split(".")[0] for name in loaded()} & {"processors", "runner"}
