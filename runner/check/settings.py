"""What a check is to do: the command line first, then `[tool.graphagent.check]` of the nearest pyproject.toml."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from graphagent.errors import UsageError, alternatives
from graphagent.validation import Bounds
from graphagent.validation.facts import EngineName
from graphagent.validation.lock import LOCK_FILE
from graphagent.validation.report import ORDER, Severity
from runner.cli.options import CheckEngine, CheckOptions, FailOn
from runner.cli.target import split_target

_TABLE = "tool.graphagent.check"
_DEFAULT = Bounds()
_KINDS: Mapping[str, str] = {
    "targets": "a list of texts",
    "select": "a list of texts",
    "ignore": "a list of texts",
    "fail_on": "a text",
    "engine": "a text",
    "max_states": "a whole number above 0",
    "max_seconds": "a number, 0 or more",
    "baseline": "a text",
    "lock_file": "a text",
    "allow_unknown": "true or false",
    "severity": "a table of codes and severities",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a check is to do.

    `select` None: all rules. `fail_on` None: findings never fail. `engine` None: that of each graph's executor.
    `bounds`: for each graph. `lock_file` None: graphs are not compared with one. `severities`: by code, instead of what
    the rule says.
    """

    targets: tuple[str, ...]
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    fail_on: Severity | None = "error"
    engine: EngineName | None = None
    bounds: Bounds = _DEFAULT
    allow_unknown: bool = False
    baseline: Path | None = None
    lock_file: Path | None = None
    severities: Mapping[str, Severity] = field(default_factory=dict)


def read_settings(options: CheckOptions) -> Settings:
    """The settings for what was said on the command line. Raises UsageError, also for a table that can't be meant."""
    root, table = find_table(Path.cwd())
    said = options.targets or [placed(target, root) for target in table.get("targets", ())]
    fail_on = options.fail_on.value if options.fail_on else table.get("fail_on", "error")
    engine = options.engine.value if options.engine else table.get("engine")
    select = _codes(options.select) if options.select else _codes(table["select"]) if "select" in table else None
    return Settings(
        targets=tuple(said),
        select=select,
        ignore=_codes(options.ignore if options.ignore else table.get("ignore", ())),
        fail_on=None if fail_on == "never" else cast(Severity, fail_on),
        engine=cast("EngineName | None", engine),
        bounds=Bounds(
            options.max_states or table.get("max_states", _DEFAULT.max_states),
            options.max_seconds if options.max_seconds is not None else table.get("max_seconds", _DEFAULT.max_seconds),
        ),
        allow_unknown=options.allow_unknown or table.get("allow_unknown", False),
        baseline=_file(options.baseline, table.get("baseline"), root),
        lock_file=_file(options.lock_file, table.get("lock_file", LOCK_FILE), root) if options.locked else None,
        severities=table.get("severity", {}),
    )


def find_table(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """The folder of the nearest pyproject.toml with the table, upwards from `folder`, and the table.

    Without one: `folder` and an empty table. Raises UsageError for a file or a table that can't be read.
    """
    for parent in (folder, *folder.parents):
        path = parent / "pyproject.toml"
        if not path.is_file():
            continue
        try:
            tools = tomllib.loads(path.read_text("utf-8")).get("tool", {})
        except (OSError, ValueError) as error:
            raise UsageError(f"'{path}' can't be read: {error}") from error
        table = tools.get("graphagent", {}).get("check")
        if table is not None:
            return parent, _checked(table, path)
    return folder, {}


def placed(target: str, root: Path) -> str:
    """A target of the table as it is called from the current directory; its folder is searched for modules then."""
    place, name = split_target(target)
    if place.endswith((".py", ".json")) or (root / place).is_dir():
        place = os.path.relpath(root / place)
        return f"{place}:{name}" if name else place
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return target


def _checked(table: Any, path: Path) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise UsageError(f"'{_TABLE}' in '{path}' is {table!r:.40}, not a table")
    for key, value in table.items():
        if key not in _KINDS:
            raise UsageError(f"'{_TABLE}' in '{path}' has the unknown key '{key}': {alternatives(key, _KINDS)}")
        if not _fits(_KINDS[key], value):
            raise UsageError(f"'{_TABLE}.{key}' in '{path}' is {value!r:.40}; it must be {_KINDS[key]}")
    for key, known in (("fail_on", list(FailOn)), ("engine", list(CheckEngine))):
        if key in table and table[key] not in known:
            raise UsageError(
                f"'{_TABLE}.{key}' in '{path}' is '{table[key]}', which is unknown: {alternatives(table[key], known)}"
            )
    return table


def _fits(kind: str, value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "a list of texts":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "a text":
            return isinstance(value, str)
        case "true or false":
            return isinstance(value, bool)
        case "a table of codes and severities":
            return isinstance(value, dict) and all(severity in ORDER for severity in value.values())
        case "a whole number above 0":
            return number and isinstance(value, int) and value > 0
        case _:
            return number and value >= 0


def _codes(said: Iterable[str]) -> tuple[str, ...]:
    return tuple(code.strip() for item in said for code in item.split(",") if code.strip())


def _file(said: str | None, written: str | None, root: Path) -> Path | None:
    if said is not None:
        return Path(said)
    return None if written is None else Path(os.path.relpath(root / written))
