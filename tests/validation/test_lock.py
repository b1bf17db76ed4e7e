"""The lock file: what is in it, what a change of a graph does to it, and what never does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.graphs import Trail, flow, says
from support.triage import Edit, State, triage

from graphagent import StateGraph
from graphagent.errors import UsageError
from graphagent.validation.compat import compat
from graphagent.validation.lock import compare, lock_entry, lock_text, locked_version, read_lock


def entries(*graphs: Any) -> Any:
    """The entries of a lock file of these graphs, as they are read back."""
    return json.loads(lock_text(graphs))["graphs"]


class Wider(State):
    """A state with one more field."""

    note: str = ""


@pytest.mark.parametrize(
    ("edit", "parts"),
    [
        (Edit(description="other words"), ()),
        (Edit(check=lambda name: lambda state: {"findings": [name]}), ()),
        (Edit(extend=lambda b: b.with_version("2")), ()),
        (Edit(extend=lambda b: b.migrates(drop=["gone"])), ()),
        (Edit(notify=True), ("topology",)),
        (Edit(state=Wider), ("state",)),
        (Edit(extend=lambda b: b.limits(steps=9)), ("policy",)),
        (Edit(extend=lambda b: b.interrupt_before_nodes("report")), ("policy",)),
        (Edit(extend=lambda b: b.must_pass("remediate", through="approve")), ("policy",)),
        (Edit(answers={"yes": "remediate", "never": "report"}), ("topology",)),
    ],
    ids=["description", "source", "version", "migration", "node", "field", "limit", "breakpoint", "must", "label"],
)
def test_which_hash_an_edit_changes(edit: Edit, parts: tuple[str, ...]) -> None:
    """Each hash stands for its part; descriptions, source, versions and migrations are in none."""
    before, after = lock_entry(triage().compile()), lock_entry(triage(edit).compile())
    changed = tuple(part for part in ("topology", "state", "policy") if before[part] != after[part])
    assert changed == parts
    findings = compare({"triage": before}, [triage(edit).compile()])
    assert [finding.code for finding in findings] == ["GA719"] * bool(parts)


def test_a_changed_answer_is_locked() -> None:
    """What a question takes is part of the topology: runs wait for it."""

    def graph(answer: Any) -> Any:
        builder = StateGraph(Trail).add_interrupt_node("q", prompt="?", answer_type=answer)
        return builder.set_entry_point("q").set_finish_point("q").compile()

    assert lock_entry(graph(int))["topology"] != lock_entry(graph(str))["topology"]


def test_the_file_is_made_for_diffs() -> None:
    """Sorted keys, a value a line, the same text each time and whatever the order of the graphs; no source text."""
    first, second = triage().compile(), flow("START -> a -> END").compile()
    text = lock_text([first, second])
    assert text == lock_text([second, first]) == lock_text([triage().compile(), second])
    assert text.endswith("}\n")
    assert max(map(len, text.splitlines())) < 120
    assert "description" not in text
    assert __file__ not in text


def test_a_change_is_told() -> None:
    """GA719 says which part has changed, and how."""
    [finding] = compare(entries(triage().compile()), [triage(Edit(notify=True)).compile()])
    assert finding.message == "graph 'triage' has another topology than the lock file says"
    assert any("report -> notify" in text for text in finding.related)
    assert "graphagent lock" in finding.fix


def test_a_graph_that_is_not_locked_is_told() -> None:
    """GA719 with the nearest name."""
    [finding] = compare(entries(triage().compile()), [flow("START -> a -> END").compile()])
    assert finding.message == "graph 'graph' is not in the lock file: known: 'triage'"


def test_another_order_is_only_noted() -> None:
    """GA718, information: no hash has changed."""
    order = ("report", "remediate", "approve", "verdict", "trust", "chain", "validity", "load")
    [finding] = compare(entries(triage().compile()), [triage(Edit(order=order)).compile()])
    assert (finding.code, finding.severity) == ("GA718", "info")


def test_two_graphs_of_one_name_are_refused() -> None:
    """A lock file goes by name; the same graph twice is fine."""
    one, other = flow("START -> a -> END").compile(), flow("START -> b -> END").compile()
    assert set(entries(one, one)) == {"graph"}
    with pytest.raises(UsageError, match="two graphs are called 'graph'"):
        lock_text([one, other])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no lock file"),
        ("{", "can't be read as a lock file"),
        ("[]", "can't be read as a lock file"),
        ('{"schema": 2, "graphs": {}}', "its schema is 2, known is 1"),
    ],
    ids=["missing", "no-json", "no-object", "newer"],
)
def test_what_is_no_lock_file_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    """With the file, the reason and the mend."""
    path = tmp_path / "graphs.lock.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=message):
        read_lock(path)


def test_a_locked_graph_is_an_old_version(tmp_path: Path) -> None:
    """What the file has of a graph is enough to judge a change of it: types, answers, child graphs, and `formerly`."""
    path = tmp_path / "graphs.lock.json"
    path.write_text(lock_text([triage().compile()]))
    old = locked_version(path, "triage")
    assert compat(old, triage().compile()).findings == ()
    for edit in (Edit(without="remediate"), Edit(names={"approve": "ok"}, formerly=True), Edit(graded=True)):
        new = triage(edit).compile()
        direct = compat(triage().compile(), new)
        assert (compat(old, new).verdict, compat(old, new).situations) == (direct.verdict, direct.situations)
        path.write_text(lock_text([new]))
        assert compat(old, locked_version(path, "triage")).verdict == direct.verdict
    with pytest.raises(UsageError, match="has no graph 'triag': did you mean 'triage'"):
        locked_version(path, "triag")


def test_child_graphs_are_in_it(tmp_path: Path) -> None:
    """A run inside a child graph can be judged from the file alone."""

    def parent(*chains: str) -> Any:
        child = flow(*chains, b=says("b")).compile()
        return flow("START -> a").add_subgraph_node("sub", child).add_edge("a", "sub").set_finish_point("sub").compile()

    path = tmp_path / "graphs.lock.json"
    path.write_text(lock_text([parent("START -> b -> c -> END")]))
    report = compat(locked_version(path, "graph"), parent("START -> b -> END"))
    assert [finding.code for finding in report.findings if finding.severity == "error"] == ["GA715"]
