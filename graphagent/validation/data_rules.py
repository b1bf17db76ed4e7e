"""What the rules on data mean, each with a graph that breaks it and one that just doesn't."""

from __future__ import annotations

from graphagent.validation.registry import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "GA401",
        "read before anything can have written it",
        "error",
        "The node reads a field that has no default, is no input, and that no node before it writes: it raises "
        "UnsetField at its first run. Give the field a default, declare it in inputs=[...], or write it before.",
        "a -> b\nb -> END\na reads x\nb writes x\noutputs x",
        "a -> b\nb -> END\na reads x\nb writes x\noutputs x\ninputs x",
    ),
    Rule(
        "GA402",
        "not written on every way here",
        "warning",
        "Some way leads to the node on which nothing writes the field that it reads: a run that takes it raises "
        "UnsetField. Where branches are joined by mode 'all', it is enough that one of them writes. Give the field a "
        "default, or write it on every way.",
        "r ? a | b\na -> m\nb -> m\nm -> END\na writes x\nm reads x",
        "s -> a, b\na & b => m\nm -> END\na writes x\nm reads x",
    ),
    Rule(
        "GA403",
        "two writers at the same time",
        "error",
        "Two nodes that can run at the same time write a field that has room for one writer: the run stops with "
        "WriteConflict. Give the field a merge rule, such as Annotated[list[str], append], or let one node follow the "
        "other. With the superstep engine it is a warning where they never share a step: right only by timing.",
        "s -> a, b\na & b => m\nm -> END\na writes x\nb writes x\nm reads x",
        "r ? a | b\na -> m\nb -> m\nm -> END\na writes x\nb writes x\nm reads x",
    ),
    Rule(
        "GA404",
        "written and never read",
        "info",
        "No node, router or condition reads the field, and it is no output: the work is lost, or the name is wrong. "
        "Nothing is said while some node's reads are not known, or the graph declares no outputs.",
        "a -> b\nb -> END\na writes x, y\nb reads x",
        "a -> b\nb -> END\na writes x, y\nb reads x\noutputs y",
    ),
    Rule(
        "GA405",
        "a field that the state doesn't declare",
        "error",
        "A node reads or writes a name that is no field of the state; the write is refused when it happens. Where the "
        "name was found in the source of a function, not declared, it is a warning.",
        "a -> b\nb -> END\na writes msgs\nb reads messages\nstate messages: append = []",
        "a -> b\nb -> END\na writes messages\nb reads messages\nstate messages: append = []",
    ),
    Rule(
        "GA406",
        "an output that may be missing",
        "error",
        "A run can end well without having written a field that is declared as an output and has no default. It is a "
        "warning where the graph doesn't say what its inputs are, since the field might be given.",
        "r ? a | b\na -> END\nb -> END\na writes x\noutputs x",
        "r ? a | b\na -> END\nb -> END\na writes x\nb writes x\noutputs x",
    ),
    Rule(
        "GA407",
        "type, merge rule and default don't fit",
        "error",
        "The merge rule can't work on the field's type (append on a mapping, merge on a list), takes the wrong number "
        "of arguments, or the default is not of the type. Nothing could ever be written.",
        "a -> END\na writes x\noutputs x\nstate x: dict append",
        "a -> END\na writes x\noutputs x\nstate x: list append",
    ),
    Rule(
        "GA408",
        "overwritten before anyone reads it",
        "warning",
        "On every way from here the field is written again before it is read: what this node writes is lost. Read it, "
        "drop the write, or give the field a merge rule that keeps both.",
        "a -> b\nb -> END\na writes x\nb writes x\noutputs x",
        "a -> b\nb -> END\na writes x\nb reads x\nb writes x\noutputs x",
    ),
    Rule(
        "GA409",
        "reads what a sibling writes",
        "warning",
        "A node reads a field while another that can run at the same time writes it. In supersteps it sees the value "
        "from before the step, whatever finishes first (so it is a note there); with the eager engine it sees either. "
        "Let the reader follow the writer, or join first.",
        "s -> a, b\na & b => m\nm -> END\ns writes x\na writes x\nb reads x\nm reads x",
        "s -> a\na -> b\nb -> m\nm -> END\ns writes x\na reads x\na writes x\nb reads x\nm reads x",
    ),
    Rule(
        "GA410",
        "grows with every lap",
        "info",
        "A node in a loop appends to a list that nothing ever shortens: state and prompts grow with every lap. Bound "
        "the loop with limits(laps=...), or keep only what is needed with a merge rule of your own.",
        "a -> b\nb ? a | END\na writes log\nb reads log\nstate log: append = []",
        "a -> b\nb ? a | END\na writes log\nb reads log\nstate log: append = []\nlimit laps a 3",
    ),
)
