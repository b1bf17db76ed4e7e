"""Each rule of compatibility: two graphs and a run that break it, a near miss that doesn't, and the message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.graphs import flow

from graphagent.errors import UsageError
from graphagent.validation.answers import accepts
from graphagent.validation.compat import CompatReport, compat, compat_runs
from graphagent.validation.compat_rules import RULES
from graphagent.validation.declared_types import holds, readable_as
from graphagent.validation.mapping import read_renames
from graphagent.validation.notation import parse_notation
from graphagent.validation.report import Diagnostic
from graphagent.validation.standing import read_standing
from graphagent.validation.version import Version

FORK = "s -> a, b; a -> a2; a2 & b => j; j -> END"
HALF = {"frontier": ["a2"], "joins": {"j": ["b"]}}


@dataclass(frozen=True)
class Pair:
    """An old graph, a new one that breaks the rule, one that doesn't; where the run stands (None: any place)."""

    old: str
    fails: str
    passes: str
    severity: str
    message: str
    stands: Mapping[str, Any] | None = None
    map: Mapping[str, Any] = field(default_factory=dict)


def version(text: str) -> Version:
    """The version that a text in the notation describes."""
    return Version.read(parse_notation(text))


def judged(old: str, new: str, stands: Mapping[str, Any] | None, renames: Mapping[str, Any]) -> CompatReport:
    """The report on one run, or on all places."""
    before, after = version(old), version(new)
    known = read_renames(renames, before)
    if stands is None:
        return compat(before, after, renames=known)
    return compat_runs(before, after, {"run": read_standing(stands)}, renames=known)


PAIRS: Mapping[str, Pair] = {
    "GA701": Pair(
        "a -> b -> END",
        "a -> c -> END",
        "a -> c -> END; node c formerly b",
        "error",
        "node 'b' is gone, and a run that stands there has nowhere to go on: 'c' looks like it",
        {"frontier": ["b"]},
    ),
    "GA702": Pair(
        "a -> b -> END",
        "a -> c -> END",
        "a -> END",
        "info",
        "node 'b' is gone and 'c' looks like it: was it renamed?",
    ),
    "GA703": Pair(
        "a -> b -> END; node b kind subgraph",
        "a -> b -> END",
        "a -> b -> END; node b kind subgraph",
        "error",
        "node 'b' was a subgraph node and is a function node now: a run that stands there has work of the subgraph in "
        "flight, which the new node doesn't take up",
        {"frontier": ["b"]},
    ),
    "GA704": Pair(
        FORK,
        "s -> a, b; a -> a2; a2 -> j; b -> j; j -> END",
        "s -> a, b; a -> a2; a2 & b => j; j -> k -> END",
        "error",
        "join 'j' is gone: what has arrived there ('b') has no place: none is declared",
        HALF,
    ),
    "GA705": Pair(
        FORK,
        FORK.replace("=>", "=any=>"),
        FORK,
        "warning",
        "join 'j' had mode 'all' and has mode 'any' now: a run in which it is half full goes on by the new rule, and "
        "what has arrived is counted anew",
        HALF,
    ),
    "GA706": Pair(
        "a -> b -> END; state x: int = 1; state y: int = 1",
        "a -> b -> END; state x: int = 1",
        "a -> b -> END; state y: int = 1; state x: int = 1",
        "error",
        "field 'y' is gone, and runs in flight have a value in it: known: 'x'",
        {"frontier": ["b"], "state": {"x": 1, "y": 2}},
    ),
    "GA707": Pair(
        "a -> b -> END; state x: int = 1",
        "a -> b -> END; b reads y; state x: int = 1; state y: int",
        "a -> b -> END; b reads y; state x: int = 1; state y: int = 0",
        "error",
        "field 'y' is new and has no default, and 'b' reads it before a run in flight has written it",
        {"frontier": ["b"], "state": {"x": 1}},
    ),
    "GA708": Pair(
        "a -> b -> END; state x: str",
        "a -> b -> END; state x: int",
        "a -> b -> END; state x: str | int",
        "error",
        "field 'x' was 'str' and is 'int' now: values that runs in flight have stored may not be readable",
        {"frontier": ["b"], "state": {"x": "one"}},
    ),
    "GA709": Pair(
        "a -> b -> END; state x: list append = []",
        "a -> b -> END; state x: list union = []",
        "a -> b -> END; state x: list append = []",
        "warning",
        "field 'x' was merged by 'append' and is merged by 'union' now: runs in flight keep what they have, later "
        "writes differ",
    ),
    "GA710": Pair(
        "r ? yes: b | no: END; b -> END",
        "r ? yes: b | never: END; b -> END",
        "r ? yes: b | never: END else b; b -> END",
        "error",
        "the route of node 'r' has no 'no' any more, and a run that stands there may still decide so: known: "
        "'__end__', 'b', 'never', 'yes'",
        {"frontier": ["r"]},
    ),
    "GA711": Pair(
        "entry a; a -> b -> END",
        "entry b; a -> b -> END",
        "entry a; a -> b -> END",
        "info",
        "a run starts at 'b' now, not at 'a': new runs only",
    ),
    "GA712": Pair(
        "a -> q -> END; node q asks ok",
        "a -> q -> END; node q asks sure",
        "a -> q -> p -> END; node q asks ok",
        "error",
        "node 'q' doesn't ask 'ok' any more (known: 'sure'): a run that waits for this answer can't get it",
        {"frontier": ["q"], "interrupts": [{"node": "q", "key": "ok"}]},
    ),
    "GA713": Pair(
        "a -> b -> END",
        "a -> b -> c -> END",
        "a -> b -> END; node b idempotent",
        "info",
        "gone: b -> __end__; runs in flight take the new ways",
    ),
    "GA714": Pair(
        "a -> b -> END; limit steps 9",
        "a -> b -> END; limit steps 3",
        "a -> b -> END; limit steps 4",
        "error",
        "the limit of steps is 3 now, and a run has used 3",
        {"frontier": ["b"], "steps": 3},
    ),
    "GA716": Pair(
        "m @ w then c; w -> c -> END",
        "m @ w then d; w -> d -> END; node c",
        "m @ w then c; w -> c -> d -> END",
        "error",
        "the fan-out of node 'm' has another worker or collector now: items of it that are in flight were meant for "
        "'w' and then for 'c'",
        {"frontier": [{"node": "w", "group": 1}, {"node": "w", "group": 1}]},
    ),
    "GA717": Pair(
        "a -> b -> END; node b effects pay",
        "a -> b -> END; node b effects charge",
        "a -> b -> END; node b effects pay, mail",
        "warning",
        "node 'b' has no effect 'pay' any more: a run that has done it under that name doesn't find it in its ledger, "
        "and may do it again",
        {"frontier": ["b"]},
    ),
    "GA718": Pair(
        "a -> b, c; b & c => d; d -> END",
        "entry a; node c; a -> b, c; b & c => d; d -> END",
        "a -> b, c; b & c => d; d -> END; node e",
        "info",
        "nodes are declared in another order, first 'c': results of one step are merged in that order",
    ),
    "GA301": Pair(
        FORK,
        "s -> a, b, c; a -> a2; a2 & b & c => j; j -> END",
        "s -> a, b, c; a -> a2; a2 & b => j; j -> END; c -> END",
        "error",
        "a run that goes on can wait for ever: join 'j' has 'a2', 'b' and waits for 'c', which nothing brings any more",
        HALF,
    ),
    "GA303": Pair(
        "a -> r; r ? a | END",
        "a -> r -> a; entry x; x -> END",
        "a -> r; r ? a | END; a -> c -> END",
        "error",
        "a run that goes on can get into a loop that nothing leaves, at 'r'",
        {"frontier": ["r"]},
    ),
    "GA308": Pair(
        "a -> b -> END",
        "entry x; x -> END; node b; a -> b",
        "a -> b -> c -> END",
        "error",
        "a run that goes on can end without reaching '__end__'",
        {"frontier": ["b"]},
    ),
}


def found(report: CompatReport, code: str) -> Diagnostic | None:
    """The first finding with a code."""
    return next((finding for finding in report.findings if finding.code == code), None)


@pytest.mark.parametrize("code", PAIRS)
def test_the_change_breaks_the_rule(code: str) -> None:
    """The finding is there, with its severity and message; an error makes the change blocking, nothing else does."""
    pair = PAIRS[code]
    report = judged(pair.old, pair.fails, pair.stands, pair.map)
    finding = found(report, code)
    assert finding is not None, report.findings
    assert (finding.severity, finding.message) == (pair.severity, pair.message)
    assert (report.verdict == "blocking") == (pair.severity == "error") or code == "GA702"


@pytest.mark.parametrize("code", PAIRS)
def test_the_near_miss_does_not(code: str) -> None:
    """Without a finding of the code, and nothing that blocks."""
    pair = PAIRS[code]
    report = judged(pair.old, pair.passes, pair.stands, pair.map)
    assert found(report, code) is None
    assert report.verdict != "blocking" or code == "GA702", report.findings


def test_every_rule_has_its_case() -> None:
    """GA715 and GA719 have theirs below, the others are in the table."""
    assert {rule.code for rule in RULES} == {code for code in PAIRS if code > "GA7"} | {"GA715", "GA719"}


@pytest.mark.parametrize(
    ("old", "new", "stands", "renames", "verdict", "codes"),
    [
        pytest.param(
            "a -> b -> END", "a -> c -> END", {"frontier": ["a"]}, {}, "compatible", set(), id="gone-but-not-there"
        ),
        pytest.param(
            "a -> b -> END", "a -> c -> END", {"frontier": ["b"]}, {"b": "c"}, "migratable", set(), id="flat-map"
        ),
        pytest.param(
            "a -> b -> END",
            "a -> c -> END",
            {"frontier": ["b"]},
            {"nodes": {"b": "cc"}},
            "blocking",
            {"GA701"},
            id="map-to-nothing",
        ),
        pytest.param(
            FORK,
            "s -> a, b; a -> a2; a2 & b => j; j -> END",
            {"frontier": {"a2": 1}, "joins": [{"id": "j", "arrived": ["b"]}]},
            {},
            "compatible",
            set(),
            id="other-forms",
        ),
        pytest.param(
            FORK, "s -> a, b; b & b2 => j; a -> b2; j -> END", HALF, {}, "blocking", {"GA701"}, id="gone-source"
        ),
        pytest.param(
            FORK, "s -> a, b; a -> a2; a2 & c => j; b -> c; j -> END", HALF, {}, "blocking", {"GA704"}, id="homeless"
        ),
        pytest.param(
            FORK, "s -> a, b; a -> a2 -> END; b & a => j; j -> END", HALF, {}, "blocking", {"GA301"}, id="passed-by"
        ),
        pytest.param(
            FORK,
            FORK.replace("a2 & b", "a2 & n").replace("a, b", "a, n"),
            HALF,
            {"b": "n"},
            "migratable",
            set(),
            id="renamed-source",
        ),
        pytest.param(FORK, FORK.replace("j", "k"), HALF, {"j": "k"}, "migratable", set(), id="renamed-target"),
        pytest.param(
            FORK,
            FORK.replace("a2 & b", "a2 & a3").replace("a, b", "a, a3"),
            {"frontier": ["a2", "b"]},
            {"b": None},
            "blocking",
            {"GA301"},
            id="dropped",
        ),
        pytest.param(
            "a -> b -> END",
            "a -> END",
            {"frontier": ["b"]},
            {"nodes": {"b": None}},
            "blocking",
            {"GA701", "GA308"},
            id="nothing-left",
        ),
        pytest.param(
            "a -> b; b -> b2; node b2",
            "node a",
            {"frontier": ["b2"]},
            {"nodes": {"b2": None}},
            "blocking",
            {"GA701"},
            id="nothing-left-and-no-end",
        ),
        pytest.param(
            FORK.replace("=>", "=any=>"),
            FORK,
            {"frontier": ["a2"], "joins": {"j": {"arrived": ["b"], "fired": True}}},
            {},
            "blocking",
            {"GA705"},
            id="fired-lap",
        ),
        pytest.param(
            "r ? j1 | b; j1 & b => j; j -> END",
            "r ? j1 | b; j1 & b => j; j -> k -> END",
            {"frontier": ["r"]},
            {},
            "compatible",
            set(),
            id="stalls-as-before",
        ),
        pytest.param(
            "n0 -> n3; n1 -> n2; n0 & n2 & n1 => n3; n3 -> END",
            "n0 -> n3; n1 -> n2; n0 & n1 & n2 => n3; n3 -> END",
            {"frontier": ["n0"]},
            {},
            "compatible",
            set(),
            id="stalls-as-before-with-sources-in-another-order",
        ),
        pytest.param(
            "a -> b -> END; state x: str; state y: int",
            "a -> b -> END; state z: str; state y: int",
            {"frontier": ["b"], "state": {"x": "t", "y": 1}},
            {"fields": {"x": "z"}},
            "migratable",
            set(),
            id="field-map",
        ),
        pytest.param(
            "a -> b -> END; state x: str",
            "a -> b -> END; state x: int",
            {"frontier": ["b"], "state": ["x"]},
            {"migrations": ["x"]},
            "migratable",
            set(),
            id="migrated",
        ),
        pytest.param(
            "a -> b -> END; state x: str",
            "a -> b -> END; state x: int",
            {"frontier": ["b"], "state": {}},
            {},
            "compatible",
            set(),
            id="not-held",
        ),
        pytest.param(
            "a -> b -> END; state x: str",
            "a -> b -> END; state x: int",
            {"frontier": ["b"], "state": {"x": 3}},
            {},
            "compatible",
            set(),
            id="fits-all-the-same",
        ),
        pytest.param(
            "a -> b -> END; state x: int = 1",
            "a -> w -> b -> END; b reads y; w writes y; state x: int = 1; state y: int",
            {"frontier": ["a"]},
            {},
            "compatible",
            set(),
            id="written-in-time",
        ),
        pytest.param(
            "a -> b -> END",
            "a -> b -> END; b reads ?; state y: int",
            {"frontier": ["b"]},
            {},
            "compatible",
            {"GA707"},
            id="may-be-read",
        ),
        pytest.param(
            "r ? b | c; b -> END; c -> END",
            "r ? d | c; d -> END; c -> END",
            {"frontier": ["r"]},
            {"b": "d"},
            "compatible",
            set(),
            id="label-of-a-renamed-target",
        ),
        pytest.param(
            "r ? b | c; b -> END; c -> END",
            "r ? c | d; b -> END; c -> END; d -> END",
            {"frontier": ["b"], "decisions": [{"node": "r", "target": "b"}]},
            {},
            "blocking",
            {"GA710"},
            id="decided",
        ),
        pytest.param(
            "a -> b -> a2; a2 ? b | END; limit laps b 9",
            "a -> b -> a2; a2 ? b | END; limit laps b 2",
            {"frontier": ["b"], "laps": {"b": 2}},
            {},
            "blocking",
            {"GA714"},
            id="laps",
        ),
    ],
)
def test_one_run(
    old: str, new: str, stands: Mapping[str, Any], renames: Mapping[str, Any], verdict: str, codes: set[str]
) -> None:
    """Where a run stands decides: the class, and the codes of warnings and errors."""
    report = judged(old, new, stands, renames)
    assert report.verdict == verdict, report.findings
    assert {finding.code for finding in report.findings if finding.severity != "info"} >= codes
    assert codes or not [finding for finding in report.findings if finding.severity == "error"]


@pytest.mark.parametrize(
    ("now", "blocked"),
    [
        (["yes", "no", "later"], False),
        (["yes", "no"], False),
        (["yes"], True),
        (None, False),
    ],
    ids=["wider", "same", "narrower", "anything"],
)
def test_an_answer_that_was_fine_must_stay_fine(now: list[str] | None, blocked: bool) -> None:
    """The schema of the pending question against that of the new node."""

    def with_schema(values: Any) -> Version:
        doc = parse_notation("a -> q -> END; node q asks ok")
        doc["nodes"]["q"]["interrupts"] = [{"key": "ok", "schema": values and {"enum": values, "type": "string"}}]
        return Version.read(doc)

    report = compat(with_schema(["yes", "no"]), with_schema(now))
    assert (report.verdict == "blocking") == blocked
    assert [f.code for f in report.findings if f.severity == "error"] == ["GA712"] * blocked


def nested(*chains: str) -> Any:
    """A graph with a child of these chains."""
    builder = flow("START -> a").add_subgraph_node("sub", flow(*chains).compile(), reads=(), writes=())
    return builder.add_edge("a", "sub").set_finish_point("sub").compile()


def test_a_child_that_has_lost_a_node_breaks_runs_inside_it() -> None:
    """GA715: with the reason inside, at the node of the parent; a child that has gained one doesn't."""
    old = nested("START -> b -> c -> END")
    report = compat(old, nested("START -> b -> d -> END"))
    finding = found(report, "GA715")
    assert finding is not None
    assert (finding.severity, finding.at[0], report.verdict) == ("error", "sub", "blocking")
    assert finding.message == (
        "the child graph of node 'sub' has changed so that a run inside it can't go on: node 'c' is gone, and a run "
        "that stands there has nowhere to go on: 'd' looks like it"
    )
    assert compat(old, nested("START -> b -> c -> d -> END")).verdict == "compatible"


@pytest.mark.parametrize(
    "doc",
    [{}, {"frontier": [{"nod": "a"}]}, {"frontier": 3}, {"frontier": ["a"], "joins": {"j": 3}}],
    ids=["empty", "no-node", "no-list", "no-sources"],
)
def test_a_malformed_checkpoint_is_refused(doc: Mapping[str, Any]) -> None:
    """With what a checkpoint looks like."""
    with pytest.raises(UsageError, match=r"the checkpoint is malformed.*'frontier'"):
        read_standing(doc)


@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        ("str", "str", True),
        ("str", "str | None", True),
        ("str | None", "None | str", True),
        ("str | None", "str", False),
        ("int", "float", True),
        ("float", "int", False),
        ("Literal['a', 'b']", "Literal['b', 'a', 'c']", True),
        ("Literal['a', 'b']", "Literal['a']", False),
        ("Literal['a']", "str", True),
        ("str", "Literal['a']", False),
        ("list[int]", "list[float]", True),
        ("list[int]", "list", True),
        ("list", "list[int]", False),
        ("list[app.old.Item]", "list[app.new.Item]", True),
        ("dict[str, int]", "dict[str, int | None]", True),
        ("dict[str, int]", "list[int]", False),
        ("User", "Account", False),
        ("User", "Any", True),
        ("Any", "User", False),
        ("Optional[int]", "Union[int, None, str]", True),
        ("tuple[int, ...]", "tuple[float, ...]", True),
        ("what is this?", "what is this?", True),
        ("string", "str", True),
    ],
)
def test_what_can_be_read_as_what(old: str, new: str, fits: bool) -> None:
    """Types as text: wider ones read what narrower ones wrote."""
    assert readable_as(old, new) == fits


@pytest.mark.parametrize(
    ("text", "plain", "fits"),
    [
        ("str | None", None, True),
        ("str", 1, False),
        ("float", 1, True),
        ("int", True, False),
        ("list[int]", [1, 2], True),
        ("list[int]", [1, "2"], False),
        ("dict[str, int]", {"a": 1}, True),
        ("Literal[1]", True, False),
        ("User", {"name": "a"}, False),
    ],
)
def test_what_value_can_be_read_as_what(text: str, plain: Any, fits: bool) -> None:
    """Stored values against a type as text; of a class that isn't known nothing is taken to fit."""
    assert holds(text, plain) == fits


@pytest.mark.parametrize(
    ("new", "old", "fine"),
    [
        (None, {"type": "string"}, True),
        ({"type": "string"}, None, False),
        ({"type": "number"}, {"type": "integer"}, True),
        ({"type": "integer"}, {"type": "number"}, False),
        ({"type": "string", "title": "A"}, {"type": "string", "title": "B"}, True),
        ({"type": "string", "minLength": 2}, {"type": "string"}, False),
        ({"type": "string", "minLength": 2}, {"type": "string", "minLength": 3}, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string"}, True),
        ({"type": "string"}, {"anyOf": [{"type": "string"}, {"type": "null"}]}, False),
        ({"type": "string"}, {"const": "a", "type": "string"}, True),
        ({"const": "a"}, {"type": "string"}, False),
        ({"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"enum": ["a"]}}, True),
        ({"type": "object", "required": ["a"]}, {"type": "object"}, False),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {"type": "object", "properties": {"a": {"type": "integer"}}},
            False,
        ),
        ({"type": "string", "pattern": "x"}, {"type": "string"}, False),
        ({"type": "object", "additionalProperties": False}, {"type": "object"}, False),
    ],
)
def test_which_answers_are_taken(new: Any, old: Any, fine: bool) -> None:
    """JSON schemas: the new one must take what the old one took; where that can't be told it doesn't."""
    assert accepts(new, old) == fine
