"""Targets and inputs that can't be used: one message, the mend, exit status 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_help import GRAPHS, Call, graph

from runner.cli.values import fitting, seconds, size


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (graph("plian"), "has no 'plian': did you mean 'plain'?"),
        (graph("number"), "is 3, not a graph ('StateGraph' or its compile())"),
        (graph("needs_argument"), "missing 1 required positional argument: 'one'; it must make a graph by itself"),
        (graph("Order"), "not a graph"),
        (str(GRAPHS), "graphs ('plain', 'approval', "),
        ("nosuch:graph", "no module 'nosuch'"),
        ("nosuch.py:graph", "no file 'nosuch.py'"),
        ("flaw:graph", "no module 'flaw' in "),
        ("flow:graph", "importing 'flow' failed at "),
        ("flow.py:graph", "flow.py:3: ZeroDivisionError: division by zero; mend that"),
        ("syntax.py:graph", "SyntaxError: "),
        ("leaves.py:graph", "SystemExit: 3"),
        ("needs.py:graph", "ModuleNotFoundError: No module named 'nosuchpackage'"),
        ("uncompiled.py:graph", "graph 'u' has 1 problem(s):"),
    ],
)
def test_a_target_that_is_no_graph(call: Call, folder: Path, target: str, message: str) -> None:
    """Whatever is wrong with a target is said in one message, without a traceback."""
    (folder / "flow.py").write_text("import os\n\nnumber = 1 / 0\n", "utf-8")
    (folder / "syntax.py").write_text("def\n", "utf-8")
    (folder / "leaves.py").write_text("raise SystemExit(3)\n", "utf-8")
    (folder / "needs.py").write_text("import nosuchpackage\n", "utf-8")
    (folder / "uncompiled.py").write_text(
        "from graphagent import MessagesState, StateGraph\n"
        "graph = StateGraph(MessagesState, name='u').add_node('a', lambda s: {}).set_entry_point('b')\n",
        "utf-8",
    )
    done = call("graph", target)

    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_debug_shows_the_traceback(call: Call, folder: Path) -> None:
    """With --debug the whole way to the error is there, the user's line included."""
    (folder / "flawed.py").write_text("number = 1 / 0\n", "utf-8")

    assert "number = 1 / 0" in call("graph", "flawed.py:graph", "--debug").err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nosuch.json", "file 'nosuch.json' can't be read: No such file or directory"),
        (".", "file '.' can't be read"),
        ("{'a': 1}", "--input is not JSON: "),
        ("[1]", "--input is '[1]', not a JSON object"),
        ('{"txt": "a"}', "the input writes 'txt', which 'Order' doesn't declare: did you mean 'text'?"),
        ('{"amount": "many"}', "the input writes 'amount' wrongly"),
    ],
)
def test_an_input_that_does_not_fit(call: Call, given: str, message: str) -> None:
    """Unreadable, malformed and type-wrong inputs are told apart, and nothing is stored."""
    done = call("run", graph("plain"), "--input", given, "--db", "runs.db")

    assert done.code == 2
    assert message in done.err
    assert not Path("runs.db").exists() or call("history", "--db", "runs.db").out == "nothing is stored here\n"


def test_a_module_of_the_current_directory(call: Call, folder: Path) -> None:
    """A module, a module inside a package, and a module with one graph and no name given, are found from here."""
    text = (
        "from graphagent import MessagesState, StateGraph\n"
        "one = StateGraph(MessagesState, name='here').add_node('a', lambda s: {}).set_entry_point('a')\n"
    )
    (folder / "herepackage").mkdir()
    (folder / "herepackage" / "flows.py").write_text(text, "utf-8")
    (folder / "heremodule.py").write_text(text, "utf-8")

    for target in (
        "heremodule:one",
        "heremodule",
        "heremodule.py",
        "herepackage.flows:one",
        "herepackage/flows.py:one",
    ):
        assert call("run", target).code == 0, target


@pytest.mark.parametrize(
    ("text", "accepts", "value"),
    [("42", int, 42), ("[1]", list, [1]), ("yes", str, "yes"), ("{bad", str, "{bad"), ("042", int, "042")],
)
def test_values_are_json_where_they_parse(text: str, accepts: type, value: object) -> None:
    """A value of the command line is JSON if it is JSON, else text."""
    assert fitting(text, accepts) == value


def test_values_that_only_fit_as_text() -> None:
    """What parses as JSON but is wanted as text stays text; what fits neither way is handed on as JSON."""

    def only_text(value: object) -> None:
        if not isinstance(value, str):
            raise ValueError(value)

    def nothing(value: object) -> None:
        raise ValueError(value)

    assert fitting("42", only_text) == "42"
    assert fitting("42", nothing) == 42


def test_units_of_ages_and_sizes() -> None:
    """Seconds and bytes by default, or in the units that people write."""
    assert [seconds(text) for text in ("90", "30m", "12h", "7d", "1.5w")] == [90, 1800, 43200, 604800, 907200]
    assert [size(text) for text in ("500", "500kB", "20MB", "1GiB", "1.5 kb")] == [500, 500000, 20000000, 2**30, 1500]
