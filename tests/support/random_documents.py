"""Random graphs as documents, for comparing one way to judge them with another."""

from __future__ import annotations

import random
from typing import Any

END = "__end__"
MODES = ("all", "all", "all", "all", "active", "any", 2)


def random_document(rnd: random.Random, size: int | None = None) -> dict[str, Any]:
    """A graph of up to nine nodes with joins, routes of either kind, loops, fan-outs and error edges.

    Half of them grow from blocks (sequence, choice, fork and join, loop) and are damaged now and then; the others are
    drawn at random. Most are unsound in some way.
    """
    count = size or rnd.randint(2, 9)
    return _grown(rnd, count) if rnd.random() < 0.5 else _drawn(rnd, count)


def _empty(names: list[str], entry: list[str]) -> dict[str, Any]:
    return {
        "name": "random",
        "entry": entry,
        "nodes": {name: {"kind": "function"} for name in names},
        "edges": [],
        "routes": [],
        "joins": [],
        "errors": [],
    }


def _drawn(rnd: random.Random, count: int) -> dict[str, Any]:
    names = [f"n{i}" for i in range(count)]
    doc = _empty(names, names[: rnd.choice((1, 1, 1, 2))])
    for i, name in enumerate(names):
        ahead = [*names[i + 1 :], END]
        somewhere = names if rnd.random() < 0.25 else ahead
        kind = rnd.random()
        picks = list(dict.fromkeys(rnd.choice(somewhere) for _ in range(rnd.randint(1, 3))))
        if kind < 0.45:
            doc["edges"] += [[name, target] for target in picks]
        elif kind < 0.75:
            doc["routes"].append({"from": name, "select": "one", "targets": [*picks, rnd.choice(ahead)]})
        elif kind < 0.9:
            doc["routes"].append({"from": name, "select": "many", "targets": picks})
        elif kind < 0.95:
            members = [target for target in picks if target != END][:1]
            if members:
                route = {"from": name, "select": "map", "targets": members, "collector": rnd.choice(ahead)}
                doc["routes"].append(route)
                doc["edges"].append([members[0], route["collector"]])
        if rnd.random() < 0.08:
            doc["errors"].append([name, rnd.choice(names), ["ValueError"]])
    for _ in range(rnd.choice((0, 1, 1, 2))):
        sources = rnd.sample(names, min(count, rnd.randint(2, 3)))
        _join(rnd, doc, sources, rnd.choice([*names, END]))
    return doc


def _join(rnd: random.Random, doc: dict[str, Any], sources: list[str], target: str) -> None:
    if len(sources) < 2 or any(join["to"] == target for join in doc["joins"]):
        return
    doc["joins"].append({"id": target, "to": target, "from": sources, "mode": rnd.choice(MODES)})


def _grown(rnd: random.Random, count: int) -> dict[str, Any]:
    """Blocks inside blocks between an entry and END, then perhaps one cut or one edge too many."""
    names = [f"n{i}" for i in range(count)]
    left = iter(names[1:])
    doc = _empty(names, [names[0]])
    last = _block(rnd, doc, names[0], left, 3)
    doc["edges"].append([last, END])
    for name in left:  # those that no block took
        doc["nodes"].pop(name)
    kept = list(doc["nodes"])
    if rnd.random() < 0.3 and doc["edges"]:
        edge = rnd.choice(doc["edges"])
        if rnd.random() < 0.5:
            edge[1] = rnd.choice([*kept, END])
        else:
            doc["edges"].append([rnd.choice(kept), rnd.choice([*kept, END])])
    return doc


def _block(rnd: random.Random, doc: dict[str, Any], begin: str, left: Any, depth: int) -> str:
    """Grow a block behind `begin`; returns the node at which it ends."""
    last = begin
    for _ in range(rnd.randint(1, 3)):
        kind = rnd.choice(("next", "choice", "fork", "loop", "map")) if depth else "next"
        taken = [name for name, _ in zip(left, range(1 if kind == "next" else 3), strict=False)]
        if len(taken) < (1 if kind == "next" else 3):
            for name in taken:
                doc["edges"].append([last, name])
                last = name
            return last
        if kind == "next":
            doc["edges"].append([last, taken[0]])
            last = taken[0]
            continue
        one, other, end = taken
        if kind == "map":
            doc["routes"].append({"from": last, "select": "map", "targets": [one], "collector": other})
            doc["edges"] += [[one, other], [other, end]]
        elif kind == "loop":
            doc["edges"] += [[last, one]]
            inner = _block(rnd, doc, one, left, depth - 1)
            doc["edges"].append([inner, other])
            doc["routes"].append({"from": other, "select": "one", "targets": [one, end]})
        else:
            _split(rnd, doc, last, taken, left, depth, kind)
        last = end
    return last


def _split(
    rnd: random.Random, doc: dict[str, Any], last: str, taken: list[str], left: Any, depth: int, kind: str
) -> None:
    one, other, end = taken
    first, second = _block(rnd, doc, one, left, depth - 1), _block(rnd, doc, other, left, depth - 1)
    if kind == "choice":
        doc["routes"].append({"from": last, "select": rnd.choice(("one", "one", "many")), "targets": [one, other]})
        if rnd.random() < 0.8:
            doc["edges"] += [[first, end], [second, end]]
            return
    else:
        doc["edges"] += [[last, one], [last, other]]
        if rnd.random() < 0.1:
            doc["edges"] += [[first, end], [second, end]]
            return
    doc["joins"].append({"id": end, "to": end, "from": [first, second], "mode": rnd.choice(MODES)})
