"""Documents that are no graph: refused with the place and what belongs there, never read as something else."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from graphagent.errors import UsageError
from graphagent.validation import Bounds, Facts, load_document, read_document, validate
from graphagent.validation.mapping import read_renames
from graphagent.validation.notation import parse_notation
from graphagent.validation.standing import read_standing
from graphagent.validation.version import Version

FULL = """
a ? yes: b | no: c of yes, no; b -> END; c -> END; state x: append = []; inputs x; outputs x; a reads x; b writes x
must b through a; limit laps a 3; limit steps 9; store yes; region A: a, b from a to b; interrupt before a; a !> c
node a asks k; d & e => b; c -> d; c -> e
"""
PIECES: list[Any] = [
    None,
    True,
    0,
    2.5,
    "",
    "x",
    "__end__",
    [],
    {},
    ["a"],
    [["a"]],
    {"a": 1},
    {"a": None},
    [None],
    [{}],
]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"entry": "a"}, "'entry' is 'a', not a list of names"),
        ({"edges": [["a", "b"], ["a"]]}, r"'edges\[1\]' is \['a'\], not a pair of ids"),
        ({"nodes": {"a": 5}}, "'nodes.a' is 5, not an object or null"),
        ({"nodes": {"a": {"reads": "x"}}}, "'nodes.a.reads' is 'x', not a list of names or null"),
        ({"routes": [{"from": "a", "targets": ["b"]}]}, r"'routes\[0\].select' is missing: 'one', 'many'"),
        ({"routes": [{"from": "a", "select": "some"}]}, r"'routes\[0\].select' is 'some', not 'one', 'many'"),
        ({"routes": [{"from": "a", "select": "map"}]}, r"'routes\[0\].targets' of a fan-out is None"),
        ({"joins": [{"to": "b"}]}, r"'joins\[0\].from' is missing: a list of names"),
        ({"limits": {"steps": "many"}}, "'limits.steps' is 'many', not a number or null"),
        ({"errors": [["a"]]}, r"'errors\[0\]' is \['a'\], not two ids"),
        ({"engine": "fast"}, "'engine' is 'fast', not one of 'superstep'"),
        ({"nodes": {"a": {"kind": "subgraph", "graph": {"$ref": "#"}}}}, "graph 'a' is malformed: 'nodes' is missing"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_malformed_document_is_refused(change: dict[str, Any], said: str) -> None:
    """The message names the place, what is there and what belongs there."""
    doc = {"nodes": {"a": {}, "b": {}}, "entry": ["a"], "edges": [["a", "b"], ["b", "__end__"]], **change}
    with pytest.raises(UsageError, match=said):
        load_document(doc)


def test_nothing_but_a_usage_error_comes_of_a_damaged_document() -> None:
    """A thousand documents with one or two members left out or replaced: judged, or refused by a typed error."""
    rnd = random.Random(7)
    whole = parse_notation(FULL)
    judged = 0
    for _ in range(1000):
        doc = damaged(whole, rnd)
        try:
            source = load_document(doc)
        except UsageError:
            continue
        validate(source.builder, facts=source.facts, bounds=Bounds(2000, 5))
        judged += 1
    assert 100 < judged < 900


def damaged(doc: Any, rnd: random.Random) -> Any:
    """A copy in which one or two members are gone or something else."""
    doc = copy.deepcopy(doc)
    for _ in range(rnd.randint(1, 2)):
        places = list(members(doc))
        holder, key = rnd.choice(places)
        if rnd.random() < 0.3:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(rnd.choice(PIECES))
    return doc


def members(value: Any) -> Any:
    """Every member of every object and list, as holder and key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from members(inner)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "can't be read"),
        (b"null", "has no 'nodes'"),
        (b"\xff\xfe{", "can't be read"),
        (b"[" * 100_000, "can't be read"),
        (b'{"nodes": {"a": {}, "a": {}}}', "the member 'a' is there twice"),
    ],
    ids=["empty", "null", "bytes", "deep", "twice"],
)
def test_a_file_that_is_no_document(content: bytes, said: str, tmp_path: Path) -> None:
    """A typed error that names the file; a member that is there twice isn't lost in silence."""
    path = tmp_path / "graph.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        read_document(path)


def test_a_mark_at_the_beginning_of_a_file_is_skipped(tmp_path: Path) -> None:
    """A byte order mark, as some editors write it, does no harm."""
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(parse_notation("a -> END")), encoding="utf-8-sig")
    assert read_document(path)["entry"] == ["a"]


@pytest.mark.parametrize("name", ["_x", "model_config", "copy", "class", "a-b", ""])
def test_a_field_may_have_any_name(name: str) -> None:
    """What a TypedDict may have as a key is a field of a document too."""
    doc = parse_notation("a -> b -> END")
    doc["nodes"] = {"a": {"writes": [name]}, "b": {"reads": [name]}}
    doc["state"] = {name: {"type": "list[int]", "reducer": "append", "default": []}}
    assert not validate(load_document(doc).builder).findings


@pytest.mark.parametrize("member", ["graph", "child"])
@pytest.mark.parametrize(
    ("inside", "code"),
    [("x ? p | q; p & q => j; j -> END", "GA301"), ("x -> y", "GA006"), ("x -> END", None)],
    ids=["stalls", "unknown-node", "sound"],
)
def test_a_child_in_a_document_is_validated(member: str, inside: str, code: str | None) -> None:
    """The graph of a subgraph node that is in the document is judged with it, two levels deep as well."""
    child = {
        **parse_notation("n -> END", "middle"),
        "nodes": {"n": {"kind": "subgraph", member: parse_notation(inside)}},
    }
    doc = {**parse_notation("n -> END"), "nodes": {"n": {"kind": "subgraph", member: child}}}
    found = {f.code for f in validate(load_document(doc).builder, facts=Facts(engine="eager")).findings}
    assert (code in found) if code else not found


@pytest.mark.parametrize("given", [True, "h", ["h"]], ids=["true", "name", "list"])
def test_on_error_is_a_way_out(given: Any) -> None:
    """`on_error` of a route: where a failure leads, or that the whole route is taken on failure only."""
    doc = parse_notation("s -> a, b; a & b => j; h -> END; j -> END")
    targets = ["h"] if given is True else ["j"]
    doc["routes"] = [{"from": "a", "select": "one", "targets": targets, "on_error": given}]
    found = validate(load_document(doc).builder, facts=Facts(engine="eager")).findings
    (stalled,) = (finding for finding in found if finding.code == "GA301")
    assert "error:h" in [step.outcome for step in stalled.trace]


@pytest.mark.parametrize(
    "doc",
    [{"state": "x"}, {"state": 3}, {"interrupts": [{"node": "a", "key": ["k"]}]}, {"steps": "many"}, {"decisions": 4}],
    ids=str,
)
def test_a_malformed_checkpoint_is_refused(doc: dict[str, Any]) -> None:
    """A member of the wrong kind is a typed error."""
    with pytest.raises(UsageError, match="the checkpoint is malformed"):
        read_standing({"frontier": ["a"], **doc})


@pytest.mark.parametrize("doc", [{"fields": 4}, {"nodes": {"a": 1}}, {"drop": 5}, {"new": [1]}], ids=str)
def test_a_malformed_map_is_refused(doc: dict[str, Any]) -> None:
    """A part of the wrong kind is a typed error."""
    with pytest.raises(UsageError, match="of a map of renames"):
        read_renames(doc, Version.read(parse_notation("a -> END")))
