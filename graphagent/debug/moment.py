"""A point between two steps of a run: where a debugger stands, whether the run is stored or goes on right now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphagent.checkpoint.record import Question, Row, Source
from graphagent.engine.frame import Frame, Origin, activation_text
from graphagent.engine.marking_codec import decode_marking
from graphagent.engine.result import Interrupt, public
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Activation, text_of
from graphagent.ids import checkpoint_id

Readiness = Literal["ready", "held", "waiting"]


@dataclass(frozen=True, slots=True)
class Coming:
    """An activation of the frontier. `activation`: its id (`<branch>/<node>#<step>`). `trigger`: ids of those that
    triggered it, empty where the input did, None where that is all that ran in the step before.

    `state`: it is `ready` to run, `held` (it has finished, and waits for the others of its step) or `waiting` for an
    answer.
    """

    activation: str
    node: str
    branch: str
    position: int
    state: Readiness = "ready"
    trigger: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """What is between two steps of one frame: the row that the step before it wrote, and what comes next.

    `ran`: the nodes of that step. `changed`: names of the fields that it changed. `coming`: the frontier. `waits`: open
    questions. `error`: text of the failure or limit that the row tells of. `base`: the row that the coming activations
    start from.
    """

    lineage: str
    namespace: str
    seq: int
    source: Source
    step: int
    base: int
    parent: int | None
    ran: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    coming: tuple[Coming, ...] = ()
    waits: tuple[Interrupt, ...] = ()
    error: str | None = None
    note: Any = None
    created_at: float = 0.0
    run_id: str = ""
    fingerprint: str = ""

    @property
    def id(self) -> str:
        """Id of the checkpoint."""
        return checkpoint_id(self.lineage, self.namespace, self.seq)

    @property
    def over(self) -> bool:
        """True at the end of a turn: nothing is left to run."""
        return not self.coming


def moment_of(
    graph: CompiledGraph,
    lineage: str,
    namespace: str,
    row: Row,
    *,
    changed: tuple[str, ...] | None = None,
    held: Collection[tuple[int, int]] = (),
) -> Moment:
    """The moment of a stored row.

    `changed`: what its step changed, if the caller knows better than the row: one that is a snapshot has every field.
    `held`: base and position of the finished activations of its open step. Raises IncompatibleCheckpoint for a marking
    that the graph can't have.
    """
    plain, places = row.marking, None
    if isinstance(plain, dict) and "m" in plain:
        plain, places = plain["m"], plain["o"]
    frontier = decode_marking(graph, plain, row.overlays).frontier
    origins = [
        Origin(row.base, i, row.step + 1, "")
        if places is None
        else Origin(places[i][0], places[i][1], places[i][2], "")
        for i in range(len(frontier))
    ]
    finished = {i for i, origin in enumerate(origins) if (origin.base, origin.position) in held}
    coming = coming_of(graph, frontier, origins, finished, row.questions)
    return moment_told(lineage, namespace, row, coming, changed=changed)


def moment_told(
    lineage: str,
    namespace: str,
    row: Row,
    coming: tuple[Coming, ...] = (),
    *,
    ran: tuple[str, ...] | None = None,
    changed: tuple[str, ...] | None = None,
) -> Moment:
    """The moment of a row, with what comes next as the caller knows it. `ran`, `changed`: of the step that the row came
    with, if the caller knows better than the row."""
    note = row.note if isinstance(row.note, dict) else {}
    return Moment(
        lineage,
        namespace,
        row.seq,
        row.source,
        row.step,
        row.base,
        row.parent,
        row.nodes if ran is None else ran,
        tuple(dict.fromkeys((*row.values, *row.patches, *row.lists))) if changed is None else changed,
        coming,
        tuple(public(question) for question in row.questions if not question.answered),
        note.get("error") or note.get("limit"),
        row.note,
        row.created_at,
        row.run_id,
        row.fingerprint,
    )


def moment_now(frame: Frame, source: Source, ran: tuple[str, ...] = (), changed: tuple[str, ...] = ()) -> Moment:
    """The moment at which a frame that is held stands. `source`: that of its newest row, `ran` and `changed`: what its
    last step was."""
    frontier = frame.marking.frontier
    origins = [frame.origin(position) for position in range(len(frontier))]
    return Moment(
        frame.lineage,
        frame.namespace,
        frame.seq,
        source,
        frame.step,
        frame.base,
        frame.head,
        ran,
        changed,
        coming_of(frame.graph, frontier, origins, frame.held, frame.questions),
        tuple(public(question) for question in frame.questions if not question.answered),
        run_id=frame.tree.run_id,
        fingerprint=frame.graph.fingerprint,
    )


def coming_of(
    graph: CompiledGraph,
    frontier: Sequence[Activation],
    origins: Sequence[Origin],
    finished: Collection[int],
    questions: Iterable[Question],
) -> tuple[Coming, ...]:
    """The activations of a frontier. `finished`: positions of those that have ended; `questions`: those of its step."""
    asking = {question.position for question in questions if not question.answered and question.kind == "ask"}
    seen: dict[str, int] = {}
    found = []
    for position, (activation, origin) in enumerate(zip(frontier, origins, strict=True)):
        text = activation_text(graph, activation, origin.visit)
        again = seen[text] = seen.get(text, -1) + 1
        state: Readiness = "held" if position in finished else "waiting" if position in asking else "ready"
        name = f"{text}~{again}" if again else text
        node, branch = graph.names[activation.node], text_of(activation.branch)
        found.append(Coming(name, node, branch, position, state, activation.trigger))
    return tuple(found)
