"""What the rules on behaviour mean, each with a graph that breaks it and one that just doesn't."""

from __future__ import annotations

from graphagent.validation.registry import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "GA201",
        "right only by timing",
        "warning",
        "Supersteps merge triggers that come in one step, so a node that two branches lead to runs once as long as "
        "both have the same length. One more node in a branch, or the eager engine, and it runs twice. Join the "
        "branches. (Judged with the superstep engine; with the eager engine it is GA302.)",
        "engine both\ns -> a, b\na -> m\nb -> m\nm -> END",
        "engine both\ns -> a, b\na & b => m\nm -> END",
    ),
    Rule(
        "GA202",
        "where the sources of a starved join part",
        "info",
        "Goes with GA301: the choice that may leave out some of the sources that the join waits for.",
        "r ? a | b\na & b => j\nj -> END",
        "r * a | b\na & b =active=> j\nj -> END",
    ),
    Rule(
        "GA301",
        "a join can wait for ever",
        "error",
        "Nothing is left to run, and a join still waits for a source that was not taken: the run stalls, and what "
        "lies behind the join never runs. Mode 'active' waits only for what can still come; or lead every choice to "
        "the join.",
        "r ? a | b\na & b => j\nj -> END",
        "r ? a | b\na -> j\nb -> j\nj -> END",
    ),
    Rule(
        "GA302",
        "a node runs more than once",
        "error",
        "Several plain edges into a node mean: on any of them. Where two branches that both run lead to one node, "
        "it runs twice, and so does all behind it, with its effects. Join the branches. With the superstep engine "
        "it is a warning (and GA201) where both triggers always come in one step.",
        "s -> a, b\na -> c\nc -> m\nb -> m\nm -> END",
        "s ? a | b\na -> c\nc -> m\nb -> m\nm -> END",
    ),
    Rule(
        "GA303",
        "a run that can't end",
        "error",
        "A marking can be reached from which no choice whatever leads to an end: the run goes round until its step "
        "limit.",
        "a -> b\nb -> a, END",
        "a -> b\nb ? a | END",
    ),
    Rule(
        "GA304",
        "a source arrives twice before its join fires",
        "error",
        "A join takes one arrival of each source a lap. A source that runs again before the join has fired leaves "
        "an arrival behind, and the laps of the sources drift apart.",
        "s -> a, b\na ? a | END with edges\na & b => j\nj -> END",
        "s -> a, b\na ? a | c\nc & b => j\nj -> END",
    ),
    Rule(
        "GA305",
        "a node that never runs",
        "error",
        "The drawing leads to the node, but no behaviour does. Nodes behind a join that starves (GA301) are not "
        "reported again.",
        "a ? b | c\nb ? d | e\nc, d, e -> END\nnever a = b, b = d",
        "a ? b | c\nb ? d | e\nc, d, e -> END\nnever a = c, b = d",
    ),
    Rule(
        "GA306",
        "laps overlap",
        "warning",
        "A node of a loop can be due twice at once: the next lap begins before the last one has ended, and their "
        "writes mingle. With every lap there may be more of them.",
        "s -> a, b\na -> c\nb -> c\nc ? c | END",
        "s -> a, b\na & b => c\nc ? c | END",
    ),
    Rule(
        "GA307",
        "an answer before all is done",
        "info",
        "END is reached while a node that writes one of the declared outputs is still due. The run goes on until "
        "nothing is left, but a reader of the stream may take the first END for the answer.",
        "entry s\ns -> a, b\na -> END\nb writes y\nb -> END\noutputs y",
        "s -> a, b\nb writes y\na & b => END\noutputs y",
    ),
    Rule(
        "GA308",
        "an end without END",
        "warning",
        "Nothing is left to run, no join waits, and END, which the graph names, was not reached: the run stalls with "
        "'end_not_reached'. Often a fan-out over an empty list. An error if the graph declares outputs.",
        "p @ w\nw -> r\nr -> END",
        "p @ w then r\nw -> r\nr -> END",
    ),
    Rule(
        "GA309",
        "not decided",
        "info",
        "The search was stopped by its bound. What was found counts, but that there is no more is not known: the "
        "result is 'unknown', never 'clean'.",
    ),
)
