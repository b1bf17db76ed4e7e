"""Tables and the JSON that is kept, with a verdict on each target."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.matrix import ALLOWANCE, FLAT, OURS, REFERENCE, STORED, TARGETS, Cell, Target
from benchmarks.rounds import Row


def machine() -> dict[str, Any]:
    """What the figures depend on, without a name or path of this machine."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": machine(), **content}, indent=1) + "\n")


def as_json(rows: list[Row]) -> dict[str, Any]:
    return {
        "rows": [{name: rounded(value) for name, value in asdict(row).items() if value is not None} for row in rows],
        "verdicts": verdicts(rows),
    }


def rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def verdicts(rows: list[Row]) -> dict[str, str]:
    """'aim', 'must' or 'MISS' (and why) for each of our variants at each cell that has a target."""
    by_key = {(row.peer, row.cell): row for row in rows}
    found = {
        f"{row.peer} {row.workload} {row.size}": verdict(row, TARGETS[row.cell].times(ALLOWANCE[row.peer]), rows)
        for row in rows
        if row.peer in ALLOWANCE and row.cell in TARGETS and row.cpu_times_limit is not None
    }
    for base, cell, allowed in (FLAT, STORED):
        pair = by_key.get((OURS, base)), by_key.get((OURS, cell))
        if pair[0] and pair[1] and pair[0].cpu_seconds and pair[1].cpu_seconds:
            commits = extra(by_key, base, cell) if (base, cell, allowed) == STORED else 0.0
            ratio = (pair[1].cpu_seconds - commits) / pair[0].cpu_seconds
            mark = "must" if ratio <= allowed else "MISS"
            against = " ".join(map(str, base)) if base[0] != cell[0] else str(base[1])
            found[f"{OURS} {cell[0]} {cell[1]} against {against}"] = f"{mark} ({ratio:.2f}x, at most {allowed}x)"
    return found


def extra(rows: Mapping[tuple[str, Cell], Row], base: Cell, cell: Cell) -> float:
    """Computing time that the limit needs more for a cell than for another: its commits; 0.0 if it was not measured."""
    first, second = rows.get((REFERENCE, base)), rows.get((REFERENCE, cell))
    if first is None or second is None or first.cpu_seconds is None or second.cpu_seconds is None:
        return 0.0
    return second.cpu_seconds - first.cpu_seconds


def verdict(row: Row, target: Target, rows: list[Row]) -> str:
    """Judged by computing time: a busy machine stretches long runs more than short ones, and so distorts the rest."""
    ratio = row.cpu_times_limit
    assert ratio is not None, "only rows with a ratio are judged"
    misses = []
    if ratio > target.must:
        misses.append(f"{ratio:.2f}x > {target.must:g}x")
    if target.database_bytes and row.database_times_limit and row.database_times_limit > target.database_bytes:
        misses.append(f"bytes {row.database_times_limit:.2f}x > {target.database_bytes:g}x")
    for other in rows:
        is_peer = other.peer not in ALLOWANCE and other.peer != REFERENCE
        if is_peer and other.cell == row.cell and other.cpu_times_limit and other.cpu_times_limit < ratio:
            misses.append(f"slower than {other.peer}")
    if misses:
        return f"MISS ({', '.join(misses)})"
    return "aim" if ratio <= target.aim else "must"


def table(rows: list[Row]) -> str:
    """One line a cell: the limit's time, then times of the limit for each other peer, targets, verdicts.

    In brackets: the ratio of computing time, which a busy machine disturbs less.
    """
    peers = [peer for peer in dict.fromkeys(row.peer for row in rows) if peer != REFERENCE]
    by_key = {(row.peer, row.cell): row for row in rows}
    judged = verdicts(rows)
    lines = [["workload", REFERENCE, *peers, "must / aim", "verdict"]]
    for cell in dict.fromkeys(row.cell for row in rows):
        target = TARGETS.get(cell)
        lines.append(
            [
                f"{cell[0]} {cell[1]}",
                limit_text(by_key.get((REFERENCE, cell))),
                *(peer_text(by_key.get((peer, cell))) for peer in peers),
                f"{target.must:g}x / {target.aim:g}x" if target else "",
                verdict_text(judged, cell),
            ]
        )
    extra = [f"{name}: {text}" for name, text in judged.items() if "against" in name]
    return "\n".join([*aligned(lines), "", *extra])


def verdict_text(judged: dict[str, str], cell: Cell) -> str:
    texts = {peer: judged.get(f"{peer} {cell[0]} {cell[1]}") for peer in ALLOWANCE}
    return "; ".join(text if peer == OURS else f"{peer}: {text}" for peer, text in texts.items() if text)


def limit_text(row: Row | None) -> str:
    if row is None or row.cost is None:
        return "" if row is None else row.note
    return f"{duration(row.cost)}{size_text(row.database_bytes)}"


def peer_text(row: Row | None) -> str:
    if row is None or row.cost is None:
        return "" if row is None else row.note
    written = size_text(row.database_bytes)
    if row.times_limit is None:
        return f"{duration(row.cost)}{written}"
    cpu = f" ({ratio_text(row.cpu_times_limit)})" if row.cpu_times_limit and row.peer in ALLOWANCE else ""
    return f"{ratio_text(row.times_limit)}{cpu}{written}"


def ratio_text(ratio: float) -> str:
    return f"{ratio:.{0 if ratio >= 20 else 1}f}x"


def duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def size_text(count: int | None) -> str:
    if not count:
        return ""
    return f", {count / 1e3:.0f} kB" if count < 1e6 else f", {count / 1e6:.1f} MB"


def aligned(lines: list[list[str]]) -> list[str]:
    """A Markdown table whose columns line up as plain text too."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    ruled = [lines[0], ["-" * width for width in widths], *lines[1:]]
    padded = [[text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in ruled]
    return [f"| {' | '.join(line)} |" for line in padded]
