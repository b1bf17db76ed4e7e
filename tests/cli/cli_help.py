"""What the tests of the command line share: how a command is named, and what it came back with."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).with_name("graphagent"))
GRAPHS = Path(__file__).with_name("graphs.py")


@dataclass(frozen=True)
class Done:
    """What a command came back with."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.out)


Call = Callable[..., Done]


def environment() -> dict[str, str]:
    """The environment of a command: warnings are errors, no store and no terminal that the tests happen to have."""
    kept = {name: value for name, value in os.environ.items() if name not in ("GRAPHAGENT_DB", "NO_COLOR", "COLUMNS")}
    return {**kept, "PYTHONWARNINGS": "error"}


def graph(name: str) -> str:
    """The target of a graph of graphs.py."""
    return f"{GRAPHS}:{name}"
