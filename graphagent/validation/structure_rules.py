"""The rules of the structure family: what each means, and the smallest graphs that break and keep it."""

from __future__ import annotations

from graphagent.validation.registry import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "GA101",
        "a node that nothing leads to",
        "error",
        "No edge, route, join or jump leads from START to the node, so that it never runs. Mostly an edge was "
        "forgotten, or leads to another node than was meant. Nodes behind it are named with it and not reported again.",
        "a -> END\nb -> END",
        "a ? b | END\nb -> END",
    ),
    Rule(
        "GA102",
        "a node from which END can't be reached any more",
        "warning",
        "The node has ways out, but each ends at a node without one (GA103). It is where a run takes the wrong turn.",
        "a ? b | END\nb -> c\nnode c",
        "a ? b | END\nb -> c -> END",
    ),
    Rule(
        "GA103",
        "a node without a way out",
        "warning",
        "The graph names END, and a run that gets to this node ends without reaching it: its result is `stalled`, not "
        "`completed`, unless another branch reaches END. Lead an edge on, or make the node a finish point. An error "
        "edge is no way out for a node that succeeds.",
        "a ? b | c\nc -> END\nnode b",
        "a ? b | c\nb -> END\nc -> END",
    ),
    Rule(
        "GA104",
        "a loop that nothing leaves",
        "error",
        "No edge, route or jump leads out of the loop. A run that gets into it goes round until a limit stops it. An "
        "error edge doesn't count as a way out.",
        "a ? b | END\nb -> c -> b",
        "a ? b | END\nb -> c\nc ? b | END",
    ),
    Rule(
        "GA105",
        "a loop that always goes round again",
        "error",
        "Something leads out of the loop, but whatever is chosen, a node of the loop is triggered as well: plain edges "
        "all fire. Where it was meant as a choice, make it a route.",
        "a -> b\nb -> a, END",
        "a -> b\nb ? a | END",
    ),
    Rule(
        "GA106",
        "a loop without a bound",
        "info",
        "What decides whether to go round again reads no field that the loop counts up, and `limits(laps=...)` names "
        "no node of the loop. Only the step limit of the executor ends it if the decision never comes. Said only where "
        "each deciding node declares what it reads.",
        "state done: bool = false\na -> b\nb ? a | END\nb reads done\na writes done",
        "state n: int add = 0\na -> b\nb ? a | END\nb reads n\na writes n",
    ),
    Rule(
        "GA107",
        "END can't be reached",
        "error",
        "The graph names END, but no way leads there from START: no run can complete.",
        "a -> b -> a\nc -> END",
        "a -> b\nb ? a | c\nc -> END",
    ),
    Rule(
        "GA108",
        "a join that waits for what comes after it",
        "error",
        "The join waits for all its sources, and one of them runs only after the join has fired: it never does.",
        "a & b => j\nj -> b -> END",
        "a -> b\na & b => j\nj -> END",
    ),
    Rule(
        "GA109",
        "a loop that is entered at several nodes",
        "warning",
        "No node of the loop comes first in every lap, so that laps can't be counted, and a join in it can't tell one "
        "lap from the next. Lead all ways in through one node. A loop in which nothing joins and whose laps aren't "
        "limited is left alone.",
        "s ? a | b\na -> b\nb ? a | END\nlimit laps a 3",
        "s ? a | b\na -> b\nb ? a | END",
    ),
    Rule(
        "GA110",
        "a way into a region past its entry, or out of it past its exit",
        "error",
        "A region is declared to be entered at one node and left at one. Something leads into its middle or out of it, "
        "which leaves behind a join that waits for the exit, or runs a branch that was not begun.",
        "s -> a1 -> a2 -> END\ns ? a2 with edges\nregion A: a1, a2 from a1 to a2",
        "s -> a1 -> a2 -> END\nregion A: a1, a2 from a1 to a2",
    ),
)
