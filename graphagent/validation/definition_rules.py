"""What the rules on definitions mean, each with a graph that breaks it and one that just doesn't."""

from __future__ import annotations

from graphagent.validation.registry import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "GA001",
        "no entry point",
        "error",
        "A run has nowhere to start. Named are the nodes that nothing leads to, and a ring that none of them leads to: "
        "one of these has to be the entry.",
        "entry\na -> b\nb ? a | END",
        "entry a\na -> b\nb ? a | END",
    ),
    Rule(
        "GA002",
        "the entry point is no node",
        "error",
        "An entry names a node that was never added, often a misspelt one.",
        "entry plann\nplan -> END",
        "entry plan\nplan -> END",
    ),
    Rule(
        "GA003",
        "two nodes with one id",
        "error",
        "The second would replace the first, so it is refused. Ids that differ only in case or in their Unicode form "
        "are two nodes, but a warning: people and file names take one for the other.",
        "node Plan\nplan -> Plan\nPlan -> END",
        "node planner\nplan -> planner\nplanner -> END",
    ),
    Rule(
        "GA004",
        "an id that no node can have",
        "error",
        "Ids that are empty or blank can't be named, those of START and END are taken, and nothing may lead into "
        "START: a run starts once.",
        "a -> START",
        "a -> END",
    ),
    Rule(
        "GA005",
        "an edge or route starts at no node",
        "error",
        "The source was never added, so the edge can never be followed.",
        "work -> END\nwrok -> END\nwithout wrok",
        "work -> END",
    ),
    Rule(
        "GA006",
        "an edge leads to no node",
        "error",
        "The target was never added, often a misspelt one. Also for names in `must_pass` and callbacks.",
        "plan -> wrok\nwork -> END",
        "plan -> work\nwork -> END",
    ),
    Rule(
        "GA007",
        "a route leads to no node",
        "error",
        "A label, the default or a destination names a node that was never added: the run would fail when the router "
        "first chooses it.",
        "plan ? work | skpi\nwork, skip -> END",
        "plan ? work | skip\nwork, skip -> END",
    ),
    Rule(
        "GA008",
        "a router doesn't say where it leads",
        "error",
        "Without declared targets nothing can be proved about the graph, and no picture of it is complete. Pass "
        "`path_map`, or annotate the router's return type with `Literal[...]` or an Enum. With "
        "`compile(strict=False)` it is a warning, and behind such a node findings on behaviour are notes.",
        "a ? ?\nb -> END",
        "a ? b | END\nb -> END",
    ),
    Rule(
        "GA009",
        "a label without a target",
        "error",
        "The router may return a label that `path_map` lacks, and there is no default: the run would fail then. Also "
        "for nodes that jump (`Command.goto`, Send) to what can't be seen in their function: declare `destinations`.",
        "a ? yes: b | no: END of yes, no, maybe\nb -> END",
        "a ? yes: b | no: END else b of yes, no, maybe\nb -> END",
    ),
    Rule(
        "GA010",
        "a join that can't be",
        "error",
        "It has no sources, waits for or leads to what is no node, has an impossible mode, or the id of another join.",
        "s -> a, b\na & b => joined",
        "s -> a, b\na & b => joined\njoined -> END",
    ),
    Rule(
        "GA011",
        "an edge declared twice",
        "warning",
        "Two equal edges count as one. If the target should run twice, that needs a fan-out; if not, remove one.",
        "a -> b\na -> b\nb -> END",
        "a -> b\nb -> END",
    ),
    Rule(
        "GA012",
        "a second route on one node",
        "warning",
        "Both routes are followed on every run of the node, which is seldom meant: put both choices into one router. "
        "An error where both have one id, since the second would replace the first.",
        "a ? b | END\na ? c | END\nb, c -> END",
        "a ? b | c | END\nb, c -> END",
    ),
    Rule(
        "GA013",
        "a plain edge beside a route",
        "warning",
        "Both fire: the edge is followed whatever the router chooses. If that is meant, say `with_edges=True`.",
        "a -> b\na ? c | END\nb, c -> END",
        "a -> b\na ? c | END with edges\nb, c -> END",
    ),
    Rule(
        "GA014",
        "a breakpoint on no node",
        "error",
        "`interrupt_before_nodes` or `interrupt_after_nodes` names a node that was never added: the run would never "
        "stop there.",
        "pay -> END\ninterrupt before pya",
        "pay -> END\ninterrupt before pay",
    ),
    Rule(
        "GA015",
        "a node bound to nothing",
        "error",
        "There is nothing to run: no function, one that can't be called with the state, a child that isn't compiled, "
        "or a router that isn't a function.",
        "a -> b\nnode b unbound\nb -> END",
        "a -> b\nb -> END",
    ),
    Rule(
        "GA016",
        "a graph that runs itself",
        "error",
        "A node's function uses the graph it belongs to, or one that leads back to it, so that runs nest without "
        "end. Graphs are frozen, so subgraph nodes alone can't form a ring; what is looked at is the graphs, builders "
        "and executors that functions of the same module name. That they are run, and how deep, isn't known: the "
        "finding is a warning. If the depth is bounded, say so with `allow`.",
    ),
    Rule(
        "GA017",
        "a child graph and its parent don't fit",
        "error",
        "Without mappers the fields that both states declare are passed by name, so their types have to fit in both "
        "directions, and the parent's merge rule has to be able to take what the child changed. With mappers, what "
        "their return annotation names has to be there. A warning where only some values fit, or where nothing that "
        "the child declares as input or output has a counterpart.",
    ),
    Rule(
        "GA018",
        "a fan-out without a collector",
        "info",
        "For an empty list nothing is sent, and nothing behind the fan-out runs (GA308 shows where that harms). Name "
        "a collector, or jump elsewhere when the list is empty.",
        "p @ w\nw -> r\nr -> END",
        "p @ w then r\nw -> r\nr -> END",
    ),
    Rule(
        "GA019",
        "a join with one source",
        "info",
        "There is nothing to wait for: a plain edge does the same.",
        "s -> a\na => b\nb -> END",
        "s -> a, c\na & c => b\nb -> END",
    ),
    Rule(
        "GA020",
        "joins that wait for each other",
        "error",
        "Two joins of mode 'active' can each still bring a source of the other, so that neither could ever be judged. "
        "Make one of them mode 'all', or let only one lead to the other.",
        "s -> a, b\na & right =active=> left\nb & left =active=> right\nleft, right -> END",
        "s -> a, b\na & right =active=> left\nb & left => right\nleft, right -> END",
    ),
)
