"""The commands of the debugger, one after another, on small graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphagent.errors import UsageError
from runner.debugger import shell  # noqa: F401 -- it fills the table
from runner.debugger.breaking import parsed
from runner.debugger.table import TABLE, find

HERE = Path(__file__).parent
ORDER = f"{HERE / 'debug_graphs.py'}:order"
Debug = Callable[..., list[dict[str, Any]]]
LONG = {"input": '{"text": "parcel"}'}
SHORT = {"input": '{"text": "box"}'}


def results(replies: list[dict[str, Any]]) -> list[Any]:
    """What each command replied; fails where one was refused."""
    assert [reply for reply in replies if "error" in reply] == []
    return [reply["result"] for reply in replies]


def test_stepping_goes_into_a_child_graph_and_out_again(debugged: Debug) -> None:
    """`step` enters the child, `out` comes back to the parent behind the step that ran it."""
    found = results(debugged(ORDER, "step", "step", "out", **SHORT))
    assert [one["why"] for one in found] == ["started", "step", "step", "step"]
    assert found[1]["namespace"].startswith("prepare@") or found[1]["namespace"] == "prepare/prepare@0.0"
    assert found[3]["namespace"] == ""
    assert found[3]["ran"] == ["prepare", "check"]


def test_next_runs_child_graphs_through(debugged: Debug) -> None:
    """`next` stays in the graph it is in."""
    found = results(debugged(ORDER, "next", "next", **SHORT))
    assert [(one["namespace"], one["ran"]) for one in found] == [("", []), ("", ["prepare", "check"]), ("", ["judge"])]


def test_a_question_is_answered_and_the_run_goes_on(debugged: Debug) -> None:
    """`continue` stops at the question; an answer that doesn't fit is refused with what would fit; the next goes on."""
    replies = debugged(ORDER, "continue", "answer approve perhaps", **LONG)
    assert replies[-2]["result"]["why"] == "interrupted"
    assert replies[-2]["result"]["waits"][0]["key"] == "approve"
    assert "approve" in replies[-1]["error"]["message"]
    found = results(debugged(ORDER, "continue", "answer approve yes", "continue", **LONG))
    assert found[-1]["why"] == "completed"


@pytest.mark.parametrize(
    ("set_", "where"),
    [
        ("break judge", ["prepare", "check"]),
        ("break before judge if state.severity == 'low'", ["prepare", "check"]),
        ("break after judge", ["judge"]),
        ("break write severity", ["judge"]),
        ("break when len(state.done) > 2", ["prepare", "check"]),
        ("tbreak ship", ["judge"]),
    ],
)
def test_breakpoints_stop_where_they_say(debugged: Debug, set_: str, where: list[str]) -> None:
    """Each kind of breakpoint stops at its moment, in the root graph."""
    given = LONG if "write" in set_ else SHORT
    found = results(debugged(ORDER, set_, "continue", **given))
    assert found[-1]["why"] == "breakpoint"
    assert found[-1]["breakpoints"] == [1]
    assert found[-1]["ran"] == where


def test_going_back_and_forward_executes_nothing(debugged: Debug) -> None:
    """Back and forward along what is stored: the same checkpoints, and no row more."""
    found = results(debugged(ORDER, "continue", "back", "back", "step", "history", **SHORT))
    assert found[1]["why"] == "completed"
    assert found[2]["checkpoint"] != found[3]["checkpoint"]
    assert found[4]["checkpoint"] == found[2]["checkpoint"]
    assert len(found[5]) == int(found[1]["checkpoint"].rpartition(":")[2]) + 1


def test_an_edit_in_the_past_takes_another_way(debugged: Debug) -> None:
    """After an edit the router decides on the new state, and the run asks."""
    commands = ("continue", "goto 1", "edit text=parcel", "continue")
    found = results(debugged(ORDER, *commands, **SHORT))
    assert found[1]["why"] == "completed"
    assert found[3]["why"] == "edited"
    assert found[4]["why"] == "interrupted"


def test_a_fork_goes_on_in_a_lineage_of_its_own(debugged: Debug) -> None:
    """After `fork NAME` the session is on the new lineage, and `compare` tells where the two part."""
    commands = ("continue", "goto 1", "fork other", "edit text=parcel", "continue", "compare first")
    found = results(debugged(ORDER, *commands, lineage="first", **SHORT))
    assert found[3]["checkpoint"].startswith("other:")
    assert found[-1]["parting"] is not None


def test_looking_tells_state_joins_writes_effects_and_who_wrote(debugged: Debug) -> None:
    """Values by expression, both writers of a step apart, the join's progress, the effect in the child, the parts of a
    list by writer."""
    commands = ("next", "p state.done", "p len(done)", "writes", "joins", "who done", "why", "list judge", "effects")
    found = results(debugged(ORDER, *commands, **SHORT))
    assert found[2] == ["pack box", "weigh box", "check"]
    assert found[3] == 3
    assert {one["node"]: one["fields"]["done"]["value"] for one in found[4]} == {
        "prepare": ["pack box", "weigh box"],
        "check": ["check"],
    }
    assert found[5][0]["target"] == "judge"
    assert [one["by"].rpartition("/")[2] for one in found[6]] == ["prepare#1", "check#1"]
    assert found[7][0]["activation"] == "judge#2"
    assert {line["target"] for line in found[8][0]["to"]} == {"ask", "ship"}


def test_the_effects_of_a_child_are_shown_in_its_frame(debugged: Debug) -> None:
    """Inside the child the ledger's entry of `weigh` is there once it has run."""
    found = results(debugged(ORDER, "tbreak after weigh", "continue", "effects", **SHORT))
    assert [(one["name"], one["committed"], one["result"]) for one in found[-1]] == [("scale", True, "weigh box")]


def test_a_failure_is_shown_and_its_node_is_tried_alone(debugged: Debug) -> None:
    """At the failure the node's state is there; alone with other input it fails with that; nothing is stored."""
    target = f"{HERE / 'debug_graphs.py'}:broken"
    found = results(debugged(target, "continue", "alone fail", "alone fail text=stone", "history", **SHORT))
    assert (found[1]["why"], found[1]["error"]) == ("failed", "node 'fail' failed: ValueError: no way for box")
    assert "no way for box" in found[2]["error"]
    assert "no way for stone" in found[3]["error"]
    assert len(found[4]) == 3


def test_a_secret_is_never_shown(shown: Callable[..., str]) -> None:
    """State, expressions and provenance of a secret field have its mask; a default is secret as well."""
    text = shown(ORDER, "state", "p state.key", "p key", "who key", "step", **SHORT)
    assert "hunter2" not in text
    assert text.count("**********") >= 3


def test_what_keeps_a_run_from_beginning_is_said(debugged: Debug) -> None:
    """An input that can't be stored is the error that is told, not the lineage that then isn't there."""
    replies = debugged(ORDER, input='{"text": "box", "key": "hunter2"}')
    assert "key" in replies[0]["error"]["message"]
    assert "cipher" in replies[0]["error"]["message"]


def test_what_is_refused_says_what_would_do(debugged: Debug) -> None:
    """Unknown commands, nodes, fields, breakpoints and checkpoints are refused with the known ones."""
    for line, known in {
        "stepp": "'step'",
        "break jugde": "judge",
        "who sverity": "severity",
        "clear 9": "9",
        "goto 99": "99",
        "until nowhere": "ship",
        "p state.sverity": "severity",
        "p __import__('os')": "_",
    }.items():
        replies = debugged(ORDER, line, **SHORT)
        assert known in replies[-1]["error"]["message"], line


def test_read_only_looks_and_runs_nothing(debugged: Debug) -> None:
    """With --read-only moving in what is stored works; going on, editing and forking are refused."""
    debugged(ORDER, "next", lineage="l", **SHORT)
    replies = debugged(ORDER, "back", "step", "edit text=x", lineage="l", read_only=True)
    assert [("error" in reply) for reply in replies] == [False, False, False, True]
    assert "read-only" in replies[-1]["error"]["message"]


def test_a_run_that_is_left_is_gone_on_with_later(debugged: Debug) -> None:
    """`quit` leaves the run resumable: another debugger goes on where it stood."""
    first = results(debugged(ORDER, "next", "quit", lineage="l", **SHORT))
    assert first[-1]["held"]
    second = results(debugged(ORDER, "continue", lineage="l"))
    assert second[0]["checkpoint"].startswith("l:")
    assert second[1]["why"] == "completed"


def test_an_agents_turn_is_stepped_through(debugged: Debug) -> None:
    """A turn of an agent through the Runner: model, tools, model; the request of the second call is shown with where
    its messages come from."""
    target = f"{HERE / 'debug_graphs.py'}:helper"
    replies = debugged(target, "next", "next", "next", "back", "requests model", message="What colour?", session="s")
    found = results(replies)
    assert [one["ran"] for one in found[:3]] == [[], ["model"], ["tools"]]
    assert found[3]["why"] == "completed"
    roles = [one["role"] for one in found[5]["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]


def test_an_expression_keeps_its_quotes_and_visit_its_number() -> None:
    """How `break` reads its arguments."""
    assert parsed(["judge", "if", "state.a", "==", "'x'", "visit", "2"]) == (
        "before",
        {"node": "judge", "condition": "state.a == 'x'", "visit": 2},
    )
    assert parsed(["error"]) == ("error", {})
    assert parsed(["write", "done"]) == ("write", {"field": "done"})


def test_every_command_has_help_and_short_names_are_unique() -> None:
    """`help NAME` has words for all; a beginning that fits one command is enough."""
    assert all(one.help for one in TABLE.values())
    assert find("comp").name == "compare"
    assert find("s").name == "step"


def test_a_run_that_only_waits_is_not_run_again(debugged: Debug) -> None:
    """Going on without an answer is refused, naming the question, and writes no row."""
    replies = debugged(ORDER, "continue", "continue", lineage="l", **LONG)
    assert replies[-1]["error"]["message"].startswith("the run waits for 'approve'")
    again = results(debugged(ORDER, "where", lineage="l"))
    assert again[0]["checkpoint"] == replies[1]["result"]["checkpoint"]


def test_an_agents_run_is_found_by_its_lineage(debugged: Debug) -> None:
    """The lineage that `runs` lists is enough, for the agent and for its graph alone; another lineage is refused."""
    target = f"{HERE / 'debug_graphs.py'}:helper"
    debugged(target, "continue", message="What colour?", session="s 1")
    found = results(debugged(target, "history", lineage="helper/user/s%201"))
    assert found[0]["why"] == "completed"
    assert found[0]["checkpoint"].startswith("helper/user/s%201:helper:")
    with pytest.raises(UsageError, match="app/user/session"):
        debugged(target, "where", lineage="s 1")
