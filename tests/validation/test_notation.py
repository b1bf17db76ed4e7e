"""Small graphs as text: what each statement becomes, and what is said of one that can't be read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from graphagent.errors import UsageError
from graphagent.validation import load_document, validate
from graphagent.validation.notation import GRAMMAR, parse_notation

LINES = [re.split(r"\s{2,}", row)[0] for row in GRAMMAR.splitlines() if not row.startswith(" ")]


@pytest.mark.parametrize("text", LINES)
def test_every_line_of_the_grammar_can_be_read(text: str) -> None:
    """The examples of the grammar are statements."""
    assert parse_notation(text)


PARTS: list[tuple[str, str, Any]] = [
    ("a -> b, END", "edges", [["a", "b"], ["a", "__end__"]]),
    ("a, b -> c", "edges", [["a", "c"], ["b", "c"]]),
    ("a -> b -> c", "edges", [["a", "b"], ["b", "c"]]),
    ("a -> START", "edges", [["a", "__start__"]]),
    ("state -> b", "edges", [["state", "b"]]),
    ("a ? b | END", "routes", [{"from": "a", "select": "one", "targets": {"b": "b", "__end__": "__end__"}}]),
    ("a ? yes: b | no: c else d", "routes", [
        {"from": "a", "select": "one", "targets": {"yes": "b", "no": "c"}, "default": "d"}
    ]),
    ("a ? ?", "routes", [{"from": "a", "select": "one", "targets": None}]),
    ("a ? b with edges as q id first", "routes", [
        {"from": "a", "select": "one", "targets": {"b": "b"}, "with_edges": True, "same_as": "q", "id": "first"}
    ]),
    ("a ? yes: b of yes, no", "routes", [
        {"from": "a", "select": "one", "targets": {"yes": "b"}, "labels": ["yes", "no"]}
    ]),
    ("a * b | c else d", "routes", [
        {"from": "a", "select": "many", "targets": {"b": "b", "c": "c"}, "default": "d"}
    ]),
    ("a * {b} | {b, c}", "routes", [{"from": "a", "select": "sets", "targets": [["b"], ["b", "c"]]}]),
    ("a @ w then c", "routes", [{"from": "a", "select": "map", "targets": ["w"], "collector": "c"}]),
    ("a @ w", "routes", [{"from": "a", "select": "map", "targets": ["w"]}]),
    ("a & b => j", "joins", [{"from": ["a", "b"], "to": "j", "mode": "all"}]),
    ("a & b =active=> END id x", "joins", [{"from": ["a", "b"], "to": "__end__", "mode": "active", "id": "x"}]),
    ("a & b =2=> j", "joins", [{"from": ["a", "b"], "to": "j", "mode": 2}]),
    ("a => j", "joins", [{"from": ["a"], "to": "j", "mode": "all"}]),
    ("=> j", "joins", [{"from": [], "to": "j", "mode": "all"}]),
    ("a !> h", "errors", [["a", "h", ["Exception"]]]),
    ("entry a, b", "entry", ["a", "b"]),
    ("a -> b", "entry", ["a"]),
    ("entry\na -> b", "entry", []),
    ("START -> a\na -> b", "entry", ["a"]),
    ("node a kind llm retry idempotent unbound", "nodes", {
        "a": {"kind": "llm", "retry": True, "idempotent": True, "unbound": True}
    }),
    ("node a effects pay, mail asks ok formerly b", "nodes", {
        "a": {"effects": ["pay", "mail"], "interrupts": [{"key": "ok"}], "formerly": ["b"]}
    }),
    ("node a allow GA302: two lines, wanted", "nodes", {"a": {"allow": ["GA302: two lines, wanted"]}}),
    ("a reads x, y\na writes z\nb reads ?", "nodes", {
        "a": {"reads": ["x", "y"], "writes": ["z"]}, "b": {"reads": None}
    }),
    ("a -> b\nwithout a", "nodes", {}),
    ("a -> b # b is no node\n# nothing", "nodes", {"a": {}}),
    ("state x: list[str] append = [1]", "state", {"x": {"type": "list[str]", "reducer": "append", "default": [1]}}),
    ("state x: dict[str, int]", "state", {"x": {"type": "dict[str, int]", "reducer": "last"}}),
    ("state x: append", "state", {"x": {"type": "list", "reducer": "append"}}),
    ("state x", "state", {"x": {"type": "Any", "reducer": "last"}}),
    ("inputs x; outputs y, z", "outputs", ["y", "z"]),
    ("inputs", "inputs", []),
    ("interrupt before a, b", "interrupt_before", ["a", "b"]),
    ("must a through b, c", "must_pass", [{"node": "a", "through": ["b", "c"]}]),
    ("never r = x, q = y", "assume", [{"r": "x", "q": "y"}]),
    ("limit steps 3; limit laps a 2; limit laps b 4", "limits", {"steps": 3, "laps": {"a": 2, "b": 4}}),
    ("store no", "checkpointer", False),
    ("engine both", "engine", "both"),
    ("region A: a, b from a to b", "regions", [
        {"kind": "parallel", "id": "A", "nodes": ["a", "b"], "entry": "a", "exit": "b"}
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key", "expected"), PARTS)
def test_a_statement_becomes_its_part_of_the_document(text: str, key: str, expected: Any) -> None:
    """Each kind of statement, with its clauses."""
    assert parse_notation(text)[key] == expected


WRONG = [
    ("a -> b\nc => => d", "line 2", "a node id"),
    ("a->b -> c", "'a->b'", "node ids"),
    ("a goes b", "line 1", "known: 'entry', "),
    ("a -> b c", "'b c'", "node ids"),
    ("a ->", "line 1", "node ids"),
    ("a ? b with care", "'with care'", "'with edges'"),
    ("a ? | b", "line 1", "a node id"),
    ("node a knid llm", "'knid'", "did you mean 'kind'?"),
    ("node a kind", "line 1", "a name behind 'kind'"),
    ("state x: int = ten", "'ten'", "JSON"),
    ("interrupt a", "line 1", "'before' or 'after'"),
    ("must a", "line 1", "through"),
    ("never a", "line 1", "'NODE = OUTCOME'"),
    ("limit steps many", "line 1", "'steps NUMBER'"),
    ("limit lasp a 3", "line 1", "'laps NODE NUMBER'"),
    ("store maybe", "line 1", "'yes' or 'no'"),
    ("engine egar", "'egar'", "did you mean 'eager'?"),
    ("region A: a", "line 1", "from NODE to NODE"),
]


@pytest.mark.parametrize(("text", "where", "expected"), WRONG)
def test_what_cannot_be_read_is_named_with_what_can_stand_there(text: str, where: str, expected: str) -> None:
    """The error has the line, the statement and what was expected."""
    with pytest.raises(UsageError) as caught:
        parse_notation(text)
    assert where in str(caught.value)
    assert expected in str(caught.value)


def test_what_a_text_says_reaches_the_graph() -> None:
    """Retry, allow, effects, questions, limits, policies and facts arrive at the builder by way of the document."""
    text = """
    entry a
    node a kind tool retry effects pay asks ok allow GA505: it is only a test
    a -> b; a !> h; h -> END
    b ? yes: c | no: END of yes, no
    c & a =active=> d; d -> END
    must d through a
    never b = no, a = x
    limit steps 9
    store no
    """
    source = load_document(parse_notation(text, "small"))
    definition = source.builder.definition
    node = definition.nodes[0]
    assert (node.id, len(node.retry), node.effects, node.allow) == ("a", 1, ("pay",), ("GA505: it is only a test",))
    assert node.metadata["interrupts"] == ("ok",)
    assert [(e.source, e.target, e.errors) for e in definition.error_edges] == [("a", "h", (Exception,))]
    assert definition.must_pass == [("d", ("a",))]
    assert definition.assumptions == [{"b": "no", "a": "x"}]
    assert definition.limits == {"steps": 9}
    assert source.facts.store is False
    assert definition.name == "small"
    assert source.builder.compile().names == ("a", "h", "b", "c", "d")


def test_a_label_that_has_no_target_is_found() -> None:
    """What `of` declares beside the targets is a label without one, unless there is a default."""
    for text, expected in (("a ? yes: b of yes, no", ["GA009"]), ("a ? yes: b of yes, no else b", [])):
        builder = load_document(parse_notation(f"{text}\nb -> END")).builder
        assert [finding.code for finding in validate(builder, rules=["GA0"]).findings] == expected
