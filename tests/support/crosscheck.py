"""Judges one graph in several ways and says where they differ: brute force, reduced search, proof, the executor."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from graphagent.errors import GraphDefinitionError
from graphagent.graph.compiled import CompiledGraph
from graphagent.testing.scripted import Played, play, play_at_random
from graphagent.validation import Bounds, Diagnostic, Facts, Subject, load_document, stops, validate
from graphagent.validation.explore import Exploration, explore
from graphagent.validation.prove import prove

BRUTE = Bounds(max_states=2_500, max_seconds=60)
WRONG = frozenset({"GA301", "GA302", "GA303", "GA304", "GA306"})
DRIVEN = ("GA301", "GA302", "GA303", "GA304", "GA306", "GA308")


def compiled(doc: Mapping[str, Any]) -> CompiledGraph | None:
    """The graph of a document; None if its definition is refused."""
    try:
        return load_document(doc).builder.compile(strict=False)
    except GraphDefinitionError:
        return None


def verdict(found: Exploration, loops: Mapping[int, int]) -> frozenset[str]:
    """The codes of what is wrong in an exploration."""
    seen = {
        "GA301": any(True for _ in stops.stalls(found)),
        "GA302": bool(stops.twice(found, stops.runs(found, loops))),
        "GA303": stops.endless(found) is not None,
        "GA304": any(True for _ in stops.crowded(found)),
        "GA306": bool(found.growing or stops.twice(found, stops.entries(found, loops)))
        or any(True for _ in stops.overlaps(found, loops)),
        "GA308": any(True for _ in stops.silent_ends(found)),
    }
    return frozenset(code for code, wrong in seen.items() if wrong)


def differences(graph: CompiledGraph, counts: Counter[str]) -> Iterator[str]:
    """Where the reduced search or a proof says otherwise than brute force; what was compared is counted."""
    subject = Subject(graph, Facts(engine="eager"), BRUTE, {})
    loops = {graph.index[name]: number for name, number in subject.cycles.items() if name in graph.index}
    whole = explore(graph, subject.choices, BRUTE, reduced=False)
    if not whole.complete:
        counts["too big for brute force"] += 1
        return
    reduced = explore(graph, subject.choices, BRUTE)
    expected, said = verdict(whole, loops), verdict(reduced, loops)
    counts["compared"] += 1
    counts["states of brute force"] += len(whole.markings)
    counts["states reduced"] += len(reduced.markings)
    counts["sound"] += not expected
    if bool(expected & WRONG) != bool(said & WRONG):
        yield f"brute force finds {sorted(expected)}, the reduced search {sorted(said)}"
    if not expected & WRONG and expected != said:
        yield f"brute force finds {sorted(expected)}, the reduced search {sorted(said)}"
    proof = prove(graph, subject.choices)
    if proof is not None:
        counts[f"proved by {proof.stage}"] += 1
        if expected:
            yield f"proved sound by {proof.stage}, but brute force finds {sorted(expected)}"


def untrue_traces(doc: Mapping[str, Any], counts: Counter[str]) -> Iterator[str]:
    """Traces of findings that the real executor does not follow to the predicted end."""
    source = load_document(doc)
    graph = source.builder.compile(strict=False)
    report = validate(source.builder, facts=Facts(engine="eager"), bounds=BRUTE)
    for finding in report.findings:
        if finding.code in DRIVEN and finding.trace:
            played = asyncio.run(play(graph, finding.script))
            counts[f"traces of {finding.code}"] += 1
            problem = _untrue(graph, finding, played)
            if problem:
                yield f"{finding.code} {finding.script!r}: {problem}"


def _untrue(graph: CompiledGraph, finding: Diagnostic, played: Played) -> str | None:
    reason, status = played.result.reason, played.result.status
    names = [graph.names[pick.node] for pick in played.picks]
    ends = {
        "GA301": status == "stalled" and f"join '{finding.at[0]}'" in reason,
        "GA308": status == "stalled" and "end_not_reached" in reason,
        "GA302": names.count(finding.at[0]) > 1,
    }
    if not ends.get(finding.code, True):
        return f"the run is {status}: {reason}"
    return None


def stalls_at_random(graph: CompiledGraph, runs: int, seed: int, counts: Counter[str]) -> Iterator[str]:
    """Random runs of a graph that was judged sound which do not end well, on both engines."""
    rnd = random.Random(seed)
    for _ in range(runs):
        engine: Any = rnd.choice(("superstep", "eager"))
        chosen = rnd.randrange(1 << 30)
        played = asyncio.run(play_at_random(graph, chosen, engine=engine, max_steps=60))
        counts[f"random runs {played.result.status}"] += 1
        if played.result.status not in ("completed", "limit_reached"):
            yield f"random run {chosen} with {engine}: {played.result.status}: {played.result.reason}"
