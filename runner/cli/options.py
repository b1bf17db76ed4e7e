"""What can be said on the command line: one frozen class per command, whose docstring is the command's help.

Nothing here imports the engine, so that `graphagent --help` is quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

DB_VARIABLE = "GRAPHAGENT_DB"


class Engine(StrEnum):
    """How a run is scheduled."""

    superstep = "superstep"
    eager = "eager"


class PictureFormat(StrEnum):
    """How a graph is drawn."""

    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"
    json = "json"


class CheckEngine(StrEnum):
    """Whose semantics a check judges by."""

    superstep = "superstep"
    eager = "eager"
    both = "both"


class ReportFormat(StrEnum):
    """How findings are reported."""

    text = "text"
    json = "json"
    sarif = "sarif"
    junit = "junit"
    github = "github"


class FailOn(StrEnum):
    """The least severity of a finding that makes a check fail."""

    error = "error"
    warning = "warning"
    info = "info"
    never = "never"


class RuleFormat(StrEnum):
    """How rules are shown."""

    text = "text"
    markdown = "markdown"


class Origin(StrEnum):
    """A framework whose graphs can be checked too."""

    langgraph = "langgraph"


Target = Annotated[
    str,
    Argument(
        metavar="MODULE:GRAPH",
        show_default=False,
        help="Where the graph is: 'package.module:name' or 'file.py:name'; the current directory is searched first.",
    ),
]
Lineage = Annotated[str, Argument(metavar="LINEAGE", show_default=False, help="The history that the run belongs to.")]
AnyLineage = Annotated[
    str | None, Argument(metavar="[LINEAGE]", show_default=False, help="The lineage; without it, all of them.")
]
Answers = Annotated[
    list[str] | None,
    Option(
        "--answer",
        "-a",
        metavar="KEY=VALUE",
        help="Answer to an interrupt, by its key or id. Repeat it for more answers; the same key again answers the "
        "next time it is asked. The value is JSON if it parses and fits, else text.",
    ),
]
Checkpoint = Annotated[
    str | None, Option("--checkpoint", "-c", metavar="ID", help="A checkpoint, by id or number; default: the newest.")
]
Namespace = Annotated[str, Option("--namespace", metavar="PATH", help="Path of a child graph; default: the root.")]


@dataclass(frozen=True, kw_only=True)
class Common:
    """What every command takes."""

    as_json: Annotated[bool, Option("--json", help="Print JSON on standard output, for programs.")] = False
    debug: Annotated[bool, Option("--debug", help="Show tracebacks of errors.")] = False


@dataclass(frozen=True, kw_only=True)
class Stored(Common):
    """What commands that work on stored runs take."""

    db: Annotated[
        str | None,
        Option(
            "--db",
            envvar=DB_VARIABLE,
            metavar="URL",
            help="The store: 'sqlite:///runs.db', a path, or 'postgresql://user@host:port/database'.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Typed(Stored):
    """What commands take that know the types of a state if they are given the graph."""

    graph: Annotated[
        str | None,
        Option("--graph", "-g", metavar="MODULE:GRAPH", help="The graph that wrote the run, for typed state."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Running(Stored):
    """What `run` and `resume` take."""

    answer: Answers = None
    engine: Annotated[Engine, Option("--engine", help="How nodes are scheduled.")] = Engine.superstep
    max_steps: Annotated[
        int, Option("--max-steps", min=1, metavar="N", help="Steps after which the run is stopped.")
    ] = 1000
    stream: Annotated[bool, Option("--stream", help="Print every event, one a line (with --json: as JSON).")] = False


@dataclass(frozen=True, kw_only=True)
class RunOptions(Running):
    """Run a graph until it ends.

    On a terminal it shows progress and asks what the run asks; elsewhere a run that waits for an answer ends with
    status 3 and the command that resumes it.
    """

    target: Target
    input: Annotated[
        str | None,
        Option("--input", "-i", metavar="JSON", help="A JSON file, '-' for standard input, or a JSON object."),
    ] = None
    lineage: Annotated[
        str | None, Option("--lineage", "-l", metavar="NAME", help="The history it belongs to; default: a new one.")
    ] = None
    abandon: Annotated[
        bool, Option("--abandon", help="Give up an unfinished run of the lineage and start a new turn.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(Running):
    """Go on with a stored run.

    It goes on from its newest checkpoint, or from the given one, which becomes the newest.
    """

    lineage: Lineage
    target: Target
    checkpoint: Checkpoint = None


@dataclass(frozen=True, kw_only=True)
class HistoryOptions(Stored):
    """List the checkpoints of a lineage.

    Newest first. Without a lineage, list the lineages of the store.
    """

    lineage: AnyLineage = None
    namespace: Namespace = ""
    limit: Annotated[int | None, Option("--limit", "-n", min=1, metavar="N", help="At most so many.")] = None


@dataclass(frozen=True, kw_only=True)
class StateOptions(Typed):
    """Show the state at a checkpoint.

    With --graph as the types that it declares, else as the plain data that is stored.
    """

    lineage: Lineage
    checkpoint: Checkpoint = None
    namespace: Namespace = ""


@dataclass(frozen=True, kw_only=True)
class DiffOptions(Typed):
    """Show how two checkpoints differ."""

    before: Annotated[str, Argument(metavar="ID", show_default=False, help="A checkpoint, such as 'order-7:3'.")]
    after: Annotated[str, Argument(metavar="ID", show_default=False, help="The checkpoint to compare it with.")]


@dataclass(frozen=True, kw_only=True)
class InterruptsOptions(Stored):
    """Show what a run waits for."""

    lineage: Lineage
    namespace: Namespace = ""


@dataclass(frozen=True, kw_only=True)
class ForkOptions(Typed):
    """Copy a point of a run, to go on from there.

    Open questions and finished activations come along. Needs --graph.
    """

    lineage: Lineage
    checkpoint: Checkpoint = None
    new_lineage: Annotated[
        str | None,
        Option("--new-lineage", metavar="NAME", help="The lineage to copy to; default: the same, as its newest row."),
    ] = None
    keep_effects: Annotated[
        bool, Option("--keep-effects", help="Do not repeat side effects that the open step has recorded.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class EditOptions(Typed):
    """Change the state of a stored run.

    The change is a new checkpoint; the old ones stay. Needs --graph.
    """

    lineage: Lineage
    assign: Annotated[
        list[str] | None,
        Option("--set", "-s", metavar="FIELD=VALUE", help="A field and its value: JSON if it parses and fits, else "
               "text. Repeatable."),
    ] = None  # fmt: skip
    as_node: Annotated[
        str | None,
        Option("--as-node", metavar="NODE", help="Take the values as the result of this node: its edges fire."),
    ] = None
    checkpoint: Checkpoint = None


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(Typed):
    """Say why a node ran.

    Shows the chain of triggers back to the input. Needs --graph.
    """

    lineage: Lineage
    activation: Annotated[
        str, Argument(metavar="ACTIVATION", show_default=False, help="A node and its step, such as 'check#4'.")
    ]
    namespace: Namespace = ""


@dataclass(frozen=True, kw_only=True)
class ReplayOptions(Typed):
    """Check that a graph still goes the way of a run.

    Goes through a stored run, or one that 'export' wrote to a file, with its recorded results: routers and transitions
    run again, nodes do not. The exit status is 1 if the graph goes another way. Needs --graph; a file names its own.
    """

    lineage: Annotated[
        str,
        Argument(
            metavar="LINEAGE|FILE", show_default=False, help="The history that the run belongs to, or its .json file."
        ),
    ]
    namespace: Namespace = ""


@dataclass(frozen=True, kw_only=True)
class GraphOptions(Common):
    """Draw a graph."""

    target: Target
    format: Annotated[PictureFormat, Option("--format", "-f", help="How to draw it.")] = PictureFormat.mermaid
    output: Annotated[
        str | None, Option("--output", "-o", metavar="FILE", help="The file to write; default: standard output.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Common):
    """Prove graphs sound, or show how they go wrong.

    A target is 'module:name', a .py file, a folder that is searched for graphs, or a graph as JSON; without one, those
    of [tool.graphagent.check] in pyproject.toml. Exit status: 0 clean, 1 findings at or above --fail-on, 2 misuse or a
    failed import, 3 unknown because a bound was hit.
    """

    targets: Annotated[
        list[str] | None,
        Argument(metavar="TARGET", show_default=False, help="What to check; default: what pyproject.toml says."),
    ] = None
    format: Annotated[
        ReportFormat | None, Option("--format", "-f", show_default="text", help="How findings are reported.")
    ] = None
    output: Annotated[
        str | None, Option("--output", "-o", metavar="FILE", help="The file to write; default: standard output.")
    ] = None
    fail_on: Annotated[
        FailOn | None, Option("--fail-on", show_default="error", help="The least severity that makes the check fail.")
    ] = None
    select: Annotated[
        list[str] | None,
        Option("--select", metavar="CODE", help="Report only these rules: codes or their beginnings, with commas."),
    ] = None
    ignore: Annotated[list[str] | None, Option("--ignore", metavar="CODE", help="Leave these rules out.")] = None
    engine: Annotated[
        CheckEngine | None,
        Option("--engine", show_default="the one of the Executor, else superstep", help="Whose semantics count."),
    ] = None
    max_states: Annotated[
        int | None, Option("--max-states", min=1, metavar="N", show_default="200000", help="States to visit a graph.")
    ] = None
    max_seconds: Annotated[
        float | None, Option("--max-seconds", min=0, metavar="S", show_default="10", help="Seconds to search a graph.")
    ] = None
    allow_unknown: Annotated[
        bool, Option("--allow-unknown", help="Status 0, not 3, where a bound was hit and nothing was found.")
    ] = False
    baseline: Annotated[
        str | None, Option("--baseline", metavar="FILE", help="Known findings, which are not reported again.")
    ] = None
    write_baseline: Annotated[
        bool, Option("--write-baseline", help="Write what is found now to the baseline and leave with status 0.")
    ] = False
    locked: Annotated[bool, Option("--locked", help="Fail where a graph is not as the lock file has it.")] = False
    lock_file: Annotated[
        str | None, Option("--lock-file", metavar="FILE", show_default="graphs.lock.json", help="The lock file.")
    ] = None
    origin: Annotated[
        Origin | None, Option("--from", help="The targets are graphs of this framework.", show_default=False)
    ] = None

    def __post_init__(self) -> None:
        """`--format json` and `--json` say the same."""
        if self.format is ReportFormat.json:
            object.__setattr__(self, "as_json", True)


@dataclass(frozen=True, kw_only=True)
class RuleOptions(Common):
    """Explain a rule of the check.

    With a smallest graph that breaks it, what is then reported, and a graph that just doesn't. Without a code, list
    all rules.
    """

    code: Annotated[
        str | None, Argument(metavar="[CODE]", show_default=False, help="A rule, such as GA301; default: all.")
    ] = None
    format: Annotated[
        RuleFormat, Option("--format", "-f", help="How to show it; markdown is that of docs/rules.md.")
    ] = RuleFormat.text
