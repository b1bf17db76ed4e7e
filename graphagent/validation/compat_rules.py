"""GA7xx: what a change of a graph does to runs that are not finished. The checks are in `compat.py`."""

from __future__ import annotations

from graphagent.validation.registry import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "GA701",
        "node removed",
        "error",
        "A run that stands at a node which the new graph doesn't have can't go on, and is refused before anything "
        "runs. Where no run can stand at the node it is harmless. Say formerly=('old',) on the node that takes its "
        "place, or keep the old node until its runs have ended.",
    ),
    Rule(
        "GA702",
        "node looks renamed",
        "info",
        "A node is gone and another was added with the same function, or the same ways in and out. If it was renamed, "
        "declare formerly=('old',) on it: runs that stand there then go on.",
    ),
    Rule(
        "GA703",
        "kind of a node changed",
        "warning",
        "An error for a run that has a child graph or items of a fan-out in flight at the node: the new node doesn't "
        "take them up. Give the new node an id of its own.",
    ),
    Rule(
        "GA704",
        "join gone, or an arrival without a place",
        "error",
        "A run has arrived at a join that is gone, or from a source that the join doesn't have any more. Join progress "
        "is kept by the join's id (that of its target unless id= names it) and by source.",
    ),
    Rule(
        "GA705",
        "mode of a join changed",
        "warning",
        "A run in which the join is half full goes on by the new rule. An error where the join has fired already in "
        "this lap (any, or a number) and would wait for all now: it would fire twice.",
    ),
    Rule(
        "GA706",
        "field removed",
        "error",
        "Runs in flight have a value in a field that the new state doesn't declare. Say migrates(drop=[...]) if it may "
        "be lost, migrates(fields={'old': 'new'}) if it was renamed.",
    ),
    Rule(
        "GA707",
        "new field is read before it is written",
        "error",
        "A field without a default was added, and from where a run stands a node reads it before any node has written "
        "it. A warning where it isn't known what the node reads. Give it a default, or say migrates(new={...}).",
    ),
    Rule(
        "GA708",
        "type of a field changed",
        "error",
        "What is stored under the old type can't be read as the new one. Wider types are fine (another arm of a union, "
        "another value of a Literal, float for int). Say migrates(values={'field': function}).",
    ),
    Rule(
        "GA709",
        "merge rule or default changed",
        "warning",
        "Runs in flight go on with what they have stored; later writes are merged by the new rule.",
    ),
    Rule(
        "GA710",
        "label or target of a decision gone",
        "error",
        "A run stands at a node whose route could answer with a label that is gone, or has decided so already. Keep "
        "the label, or give the route a default.",
    ),
    Rule("GA711", "entry points changed", "info", "Only new runs start there; runs in flight go on where they stand."),
    Rule(
        "GA712",
        "question removed or changed",
        "error",
        "A run waits for an answer that the new graph doesn't ask for by that key, or that it would not take. Keep the "
        "key; a wider type of the answer is fine.",
    ),
    Rule(
        "GA713",
        "way changed",
        "info",
        "Edges, routes or joins differ. Runs in flight take the new ways from where they stand.",
    ),
    Rule(
        "GA714",
        "limit below what is used",
        "error",
        "A run has used as many steps or laps as the new limit allows, or more, and would be stopped at once.",
    ),
    Rule(
        "GA715",
        "child graph incompatible",
        "error",
        "A run is inside a child graph whose new version can't take it up, for the reason given.",
    ),
    Rule(
        "GA716",
        "worker or collector of a fan-out changed",
        "error",
        "Items of a fan-out are in flight, and the new graph would run them, or gather them, elsewhere.",
    ),
    Rule(
        "GA717",
        "name of an effect changed",
        "warning",
        "A side effect is found in the ledger by its name. A run that has done it under the old name may do it again.",
    ),
    Rule(
        "GA718",
        "order of declaration changed",
        "info",
        "Results of one step are merged in the order in which nodes are declared, so lists may fill in another order. "
        "Runs in flight keep the order of the step they stand in.",
    ),
    Rule(
        "GA719",
        "graph differs from its lock",
        "error",
        "What the graph is now is not what the lock file says, or it isn't in there. See with 'graphagent compat' what "
        "the change does to runs in flight, then run 'graphagent lock'.",
    ),
)
