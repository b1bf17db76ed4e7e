"""Golden runs: what a release before this one wrote, and how each of its runs went on there.

A folder `tests/golden/v<release>/` has `graph.py` (the graphs), `lineages.py` (how they were run), `runs.sqlite` and
`runs.postgresql.sql` (the same runs), `expectations.json` (what these hold and how they go on). `make_golden.py` in
`tests/tools` makes one for a new release; no folder is ever changed afterwards.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import sys
from collections.abc import Mapping, Set
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
from pydantic import BaseModel

from graphagent import Executor, SqlCheckpoints
from graphagent.graph.view import values_of

GOLDEN = Path(__file__).parents[1] / "golden"
SQLITE, POSTGRES, EXPECTATIONS = "runs.sqlite", "runs.postgresql.sql", "expectations.json"


def load_module(folder: Path, name: str) -> ModuleType:
    """A module of a release's folder, such as `graph`."""
    full = f"golden_{folder.name}_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[full]


def load_dump(url: str, folder: Path) -> None:
    """Put the PostgreSQL dump of a release into a fresh schema."""
    with psycopg.connect(url) as server:
        server.execute((folder / POSTGRES).read_text().encode())


async def stored(store: SqlCheckpoints, executor: Executor, lineage: str) -> dict[str, Any]:
    """What is stored of a run: rows of each frame, oldest first; the state in its types; open questions."""
    frames = {}
    for namespace in await store.namespaces(lineage):
        headers = await store.history(lineage, namespace)
        frames[namespace] = [f"{h.seq} {h.source} {h.step} {' '.join(h.nodes)}".strip() for h in reversed(headers)]
    return {
        "frames": frames,
        "state": plain(await executor.state(lineage)),
        "questions": [[q.key, q.id] for q in await executor.interrupts(lineage)],
    }


async def go_on(executor: Executor, lineage: str, then: Mapping[str, Any], world: Any) -> dict[str, Any]:
    """Take a run up as `then` says (see `lineages.Golden`); returns how it ended and what was done."""
    if "input" in then:
        result = await executor.run(then["input"], lineage=lineage, context=world)
    else:
        asked = await executor.interrupts(lineage)
        answers = {
            asked[int(key[1:])].id if key.startswith("$") else key: answer
            for key, answer in then.get("answers", {}).items()
        }
        result = await executor.resume(lineage, answers, context=world)
    return {
        "status": result.status,
        "error": None if result.error is None else type(result.error).__name__,
        "state": plain(result.state),
        "questions": [q.key for q in result.interrupts],
        "ran": sorted(world.ran),
    }


def plain(value: Any) -> Any:
    """A value as JSON data that shows classes, so that nothing is equal by chance."""
    if isinstance(value, Enum):
        return repr(value)
    if isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        fields = {**values_of(value), **(getattr(value, "__pydantic_extra__", None) or {})}
        return {type(value).__name__: {name: plain(item) for name, item in sorted(fields.items())}}
    if isinstance(value, Mapping):
        if all(type(key) is str for key in value):
            return {key: plain(item) for key, item in value.items()}
        return {type(value).__name__: sorted([repr(key), plain(item)] for key, item in value.items())}
    if isinstance(value, Set):
        return {type(value).__name__: sorted(map(repr, value))}
    if type(value) is list:
        return [plain(item) for item in value]
    if type(value) is tuple:
        return {"tuple": [plain(item) for item in value]}
    simple = value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value))
    return value if simple else repr(value)
