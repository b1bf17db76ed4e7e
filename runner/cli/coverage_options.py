"""What can be said to the commands on what a graph does or has done: simulate, export, cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Argument, Option

from runner.cli.options import Common, Engine, Lineage, Stored, Target, Typed


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(Common):
    """Walk a graph at random, or the way that a script says.

    No function of the graph is called: nodes choose among their declared outcomes. With --script the real executor is
    driven, so that the trace of a finding can be seen to happen. Exit status: 0 completed, 4 something stalled, did not
    reach END, or the script was over first.
    """

    target: Annotated[
        str,
        Argument(metavar="TARGET", show_default=False, help="'module:name', 'file.py:name', or a graph as .json."),
    ]
    runs: Annotated[int, Option("--runs", "-n", min=1, metavar="N", help="How many walks.")] = 100
    seed: Annotated[int, Option("--seed", metavar="S", help="The same seed walks the same ways.")] = 0
    engine: Annotated[
        Engine | None,
        Option("--engine", show_default="that of the Executor, else superstep; eager for a script", help="The engine."),
    ] = None
    max_activations: Annotated[
        int, Option("--max-activations", min=1, metavar="N", help="Activations after which a walk is cut off.")
    ] = 1000
    script: Annotated[
        str | None,
        Option(
            "--script",
            metavar="PICKS",
            help="What runs, in order, and what it chooses: 'plan; fork; b=END; a'. A ';' in a name has a backslash.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Typed):
    """Write a stored run to a file.

    The file has all rows, results and answers, and the state with whatever is secret in it. 'graphagent replay FILE'
    and the pytest plugin go through it without a store. Needs --graph.
    """

    lineage: Lineage
    output: Annotated[
        str | None, Option("--output", "-o", metavar="FILE", help="The file to write; default: standard output.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class CoverOptions(Stored):
    """Show what recorded runs never took.

    Counts nodes, edges, labels of routes and joins of a graph and its child graphs, over the lineages of a store,
    exported runs and earlier coverage. Routers are run again on the stored state, nodes are not. Exit status: 1 below
    --fail-under.
    """

    target: Target
    lineage: Annotated[
        list[str] | None,
        Option("--lineage", "-l", metavar="NAME", help="A lineage, repeatable; default: all of this graph."),
    ] = None
    run: Annotated[
        list[str] | None, Option("--run", "-r", metavar="FILE", help="A run that 'export' wrote. Repeatable.")
    ] = None
    merge: Annotated[
        list[str] | None, Option("--merge", metavar="FILE", help="What 'cover --json' printed before. Repeatable.")
    ] = None
    fail_under: Annotated[
        float | None, Option("--fail-under", min=0, max=100, metavar="PERCENT", help="The least that is enough.")
    ] = None
