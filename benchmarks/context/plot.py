"""The figures of a run as a picture, in PNG and SVG. Needs matplotlib (extra `bench`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.context.figures import Figures

_SETS = ("qmsum", "locomo", "longmemeval")
_ARMS = (
    ("full.tokens", "whole history"),
    ("load.tokens", "summary, search, load"),
    ("search.tokens", "summary, search"),
)
_ARMS = (
    *_ARMS,
    ("recalled.tokens", "summary, tools"),
    ("summary.tokens", "summary"),
    ("own.rolling", "making it, once"),
)
_RANKS = ("hit@1", "hit@5", "hit@10", "shown.hit", "loaded.hit")


def plot(figures: Figures, prefix: Path) -> list[Path]:
    """Write `prefix`.png and .svg with a picture for each question that was asked; nothing if there is none."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pictures = [draw for draw in (_tokens, _saved, _found, _growth) if draw(figures, None)]
    if not pictures:
        return []
    drawing, places = pyplot.subplots(1, len(pictures), figsize=(5.2 * len(pictures), 4.2), squeeze=False)
    for draw, place in zip(pictures, places[0], strict=True):
        draw(figures, place)
    drawing.tight_layout()
    written = [prefix.with_name(f"{prefix.name}.{kind}") for kind in ("png", "svg")]
    for path in written:
        drawing.savefig(path, dpi=120)
    pyplot.close(drawing)
    return written


def _tokens(figures: Figures, place: Any) -> bool:
    """Tokens of one question, by arm."""
    sets = [name for name in _SETS if f"{name}.full.tokens" in figures]
    arms = [(key, label) for key, label in _ARMS if any(f"{name}.{key}" in figures for name in sets)]
    if place is not None:
        rows = [(label, [figures.get(f"{name}.{key}", 0.0) for name in sets]) for key, label in arms]
        _bars(place, sets, rows)
        place.set_yscale("log")
        place.set_title("tokens of one question")
    return bool(sets)


def _saved(figures: Figures, place: Any) -> bool:
    """Shares saved in conversations that are held again, all calls counted."""
    names = [name for name in figures if name.split(".")[0] in ("live", "mtbench101") and name.endswith(".saved")]
    if place is not None:
        values = [max(100 * figures[name], -100) for name in names]
        labels = [name.removesuffix(".saved") for name in names]
        place.barh(labels, values)
        place.axvline(0, color="black", linewidth=0.8)
        place.set_title("% of tokens saved, own calls counted")
    return bool(names)


def _found(figures: Figures, place: Any) -> bool:
    """Questions whose evidence is found."""
    sets = [name for name in _SETS if f"{name}.hit@1" in figures or f"{name}.shown.hit" in figures]
    if place is not None:
        _bars(place, list(_RANKS), [(name, [figures.get(f"{name}.{rank}", 0.0) for rank in _RANKS]) for name in sets])
        place.set_ylim(0, 1)
        place.set_title("evidence found")
    return bool(sets)


def _growth(figures: Figures, place: Any) -> bool:
    """Python calls of a projection by turns of the session."""
    parts = [name.split(".") for name in figures if name.startswith("growth.") and name.endswith(".calls")]
    lines = sorted({(database, kind) for _, database, kind, _, _ in parts})
    if place is not None:
        for database, kind in lines:
            sizes = sorted({int(turns) for _, d, k, turns, _ in parts if (d, k) == (database, kind)})
            counts = [figures[f"growth.{database}.{kind}.{turns}.calls"] for turns in sizes]
            place.plot(sizes, counts, marker="o", label=f"{database}, {kind}")
        place.set_ylim(bottom=0)
        place.set_title("Python calls of a projection, by turns")
        place.legend(fontsize=8)
    return bool(lines)


def _bars(place: Any, groups: list[str], rows: list[tuple[str, list[float]]]) -> None:
    width = 0.8 / max(len(rows), 1)
    for number, (label, values) in enumerate(rows):
        place.bar([at + number * width for at in range(len(groups))], values, width, label=label)
    place.set_xticks([at + 0.4 - width / 2 for at in range(len(groups))], groups, rotation=20)
    place.legend(fontsize=8)
