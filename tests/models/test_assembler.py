"""The stream assembler: one table of provider quirks, and any cut of an answer into pieces gives the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphagent.agents.assembler import Assembler, assemble
from graphagent.agents.model import Delta, ToolCallDelta
from graphagent.ledger import TokenUsage


def piece(place: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = "") -> Delta:
    """A delta with one piece of a call."""
    return Delta(tool_calls=(ToolCallDelta(place, id, name, arguments),))


def end(reason: str = "tool_calls") -> Delta:
    """The last delta."""
    return Delta(finish_reason=reason)


THREE = tuple(ToolCallDelta(n, f"c{n}", f"f{n}", f'{{"n": {n}}}') for n in range(3))
ONE = [("c1", "f", {"x": 1})]
TWO = [("c1", "f", {"x": 1}), ("c2", "g", {"x": 2})]
SAME = [("c1", "f", {"x": 1}), ("c2", "f", {"x": 2})]

QUIRKS: list[tuple[str, list[Delta], list[tuple[str, str, dict[str, Any]]]]] = [
    ("plain", [piece(0, "c1", "f"), piece(0, None, None, '{"x"'), piece(0, None, None, ": 1}"), end()], ONE),
    (
        "C195: three calls and the finish reason in one chunk",
        [Delta(tool_calls=THREE, finish_reason="tool_calls")],
        [("c0", "f0", {"n": 0}), ("c1", "f1", {"n": 1}), ("c2", "f2", {"n": 2})],
    ),
    ("C197: number 0 for each", [piece(0, "c1", "f", '{"x": 1}'), piece(0, "c2", "g", '{"x": 2}'), end()], TWO),
    (
        "C197: number 0 for each, one function",
        [piece(0, "c1", "f", '{"x": 1}'), piece(0, "c2", "f", '{"x": 2}'), end()],
        SAME,
    ),
    (
        "C197: number 0 for each, arguments in pieces without id",
        [piece(0, "c1", "f"), piece(0, None, None, '{"x": 1}'), piece(0, "c2", "f"), piece(0, None, None, '{"x": 2}')],
        SAME,
    ),
    (
        "C197: number 0 for each, pieces by turns",
        [
            piece(0, "c1", "f"),
            piece(0, "c2", "g"),
            piece(0, "c1", None, '{"x"'),
            piece(0, "c2", None, '{"x": 2}'),
            piece(0, "c1", None, ": 1}"),
        ],
        TWO,
    ),
    ("C199: numbers from 1", [piece(1, "c1", "f", '{"x": 1}'), end()], ONE),
    (
        "C199: an empty entry below the first number",
        [Delta(tool_calls=(ToolCallDelta(0), ToolCallDelta(1, "c1", "f", '{"x": 1}'))), end()],
        ONE,
    ),
    (
        "no ids",
        [piece(0, None, "f", '{"x": 1}'), piece(1, None, "f", '{"x": 2}'), end()],
        [("auto_call_0", "f", {"x": 1}), ("auto_call_1", "f", {"x": 2})],
    ),
    (
        "no ids, number 0 for each",
        [piece(0, None, "f", '{"x": 1}'), piece(0, None, "f", '{"x": 2}'), piece(0, None, "g", "{}")],
        [("auto_call_0", "f", {"x": 1}), ("auto_call_1", "f", {"x": 2}), ("auto_call_2", "g", {})],
    ),
    (
        "neither ids nor numbers",
        [piece(None, None, "f", '{"x"'), piece(None, None, None, ": 1}"), piece(None, None, "g", '{"x": 2}')],
        [("auto_call_0", "f", {"x": 1}), ("auto_call_1", "g", {"x": 2})],
    ),
    ("empty texts for ids", [piece(0, "", "f", '{"x"'), piece(0, "", "", ": 1}")], [("auto_call_0", "f", {"x": 1})]),
    ("the id comes late", [piece(0, None, "f"), piece(0, "c1", None, '{"x": 1}')], ONE),
    (
        "one id for all",
        [piece(0, "c1", "f", '{"x": 1}'), piece(1, "c1", "f", '{"x"'), piece(1, "c1", None, ": 2}")],
        [("c1", "f", {"x": 1}), ("auto_call_1", "f", {"x": 2})],
    ),
    (
        "the id changes on the way",
        [piece(0, "c1", "f", '{"x"'), piece(0, "z", None, ": "), piece(0, "y", None, "1}"), piece(0, "w", None, "")],
        ONE,
    ),
    (
        "the id changes on the way and the name is repeated",
        [piece(0, "c1", "f", '{"x"'), piece(0, "z", "f", ": 1}"), piece(0, "y", "f", "")],
        ONE,
    ),
    (
        "a name in each piece",
        [piece(0, "c1", "f", ""), piece(0, "c1", "f", '{"x"'), piece(0, "c1", "f", ": 1}"), piece(0, "c1", "f")],
        ONE,
    ),
    (
        "a name in each piece, no ids",
        [piece(0, None, "f", '{"x"'), piece(0, None, "f", ": 1}"), piece(0, None, "f", '{"x": 2}')],
        [("auto_call_0", "f", {"x": 1}), ("auto_call_1", "f", {"x": 2})],
    ),
    (
        "the name in pieces",
        [piece(0, "c1", "get_"), piece(0, None, "x"), piece(0, None, None, "{}")],
        [("c1", "get_x", {})],
    ),
    ("the number changes on the way", [piece(0, "c1", "f", '{"x"'), piece(1, None, None, ": 1}")], ONE),
    ("an object", [piece(0, "c1", "f", {"x": 1})], ONE),
    ("null", [piece(0, "c1", "f", None)], [("c1", "f", {})]),
    ("null as text", [piece(0, "c1", "f", "null")], [("c1", "f", {})]),
    ("no arguments", [piece(0, "c1", "f"), end()], [("c1", "f", {})]),
    ("blank arguments", [piece(0, "c1", "f", " \n"), end()], [("c1", "f", {})]),
    ("encoded twice", [piece(0, "c1", "f", json.dumps('{"x": 1}'))], ONE),
    ("a line break in a string", [piece(0, "c1", "f", '{"x": "a\nb"}')], [("c1", "f", {"x": "a\nb"})]),
    ("braces in strings", [piece(0, "c1", "f", '{"x": "}'), piece(0, None, "f", '{"}')], [("c1", "f", {"x": "}{"})]),
]


@pytest.mark.parametrize(("deltas", "expected"), [q[1:] for q in QUIRKS], ids=[q[0] for q in QUIRKS])
def test_quirks_of_providers(deltas: list[Delta], expected: list[tuple[str, str, dict[str, Any]]]) -> None:
    """Every quirk of the table gives the calls that were meant, each once and in order (C195, C197, C199)."""
    reply = assemble([*deltas, end()])
    assert [(call.id, call.name, call.arguments) for call in reply.message.tool_calls] == expected
    assert reply.invalid == ()
    assert reply.finish_reason == "tool_calls"


def test_whole_replies_made_of_scripts() -> None:
    """An id that the conversation has used is replaced, and so is the number that it would get."""
    deltas = [piece(0, "c1", "f", "{}"), piece(1, None, "g", "{}"), end()]
    calls = assemble(deltas, taken=["c1", "auto_call_0"]).message.tool_calls
    assert [call.id for call in calls] == ["auto_call_1", "auto_call_2"]


@pytest.mark.parametrize(
    ("deltas", "reason", "told"),
    [
        (
            [piece(0, "c1", "f", '{"x": '), end("length")],
            "length",
            "call of 'f' was not run: the answer was cut at its",
        ),
        (
            [piece(0, "c1", "f"), end("length")],
            "length",
            "call of 'f' was not run: the answer was cut at its token limit",
        ),
        ([piece(0, "c1", "f", '{"x": ')], "incomplete", "call of 'f' was not run: the stream ended before"),
        ([piece(0, "c1", "f", '{"x": '), end()], "tool_calls", "its arguments are no JSON object (Expecting value"),
        ([piece(0, "c1", "f", "[1]"), end()], "tool_calls", "its arguments must be a JSON object, not '[1]'"),
        ([piece(0, "c1", "f", '{"x": 1}{"x": 2}'), end()], "tool_calls", "Extra data"),
        ([piece(0, "c1", None, '{"x": 1}'), end()], "tool_calls", "a call without a name"),
        ([piece(0, "c1", "f", "[" * 100_000), end()], "tool_calls", "its arguments are no JSON object"),
    ],
)
def test_calls_that_cannot_be_read_are_told(deltas: list[Delta], reason: str, told: str) -> None:
    """A call that was cut or garbled is kept for pairing, marked, and says why; it is never taken as one to run."""
    reply = assemble(deltas)
    assert reply.finish_reason == reason
    [(call, why)] = reply.invalid
    assert told in why
    assert reply.message.tool_calls == (call,)
    assert call.arguments == {}


def test_only_the_last_call_is_cut() -> None:
    """With a cut by length the calls before the last one stand; an empty one before it has no arguments."""
    reply = assemble([piece(0, "c1", "f"), piece(1, "c2", "g", '{"x'), end("length")])
    assert [call.name for call, _ in reply.invalid] == ["g"]


@pytest.mark.parametrize(
    ("deltas", "reason"),
    [
        ([Delta("a"), end("stop")], "stop"),
        ([Delta("a"), end("end_turn")], "stop"),
        ([Delta("a"), end("tool_calls")], "stop"),
        ([Delta("a"), end("content_filter")], "content_filter"),
        ([Delta("a"), Delta(finish_reason="")], "incomplete"),
        ([Delta("a")], "incomplete"),
        ([], "incomplete"),
        ([piece(0, "c", "f", "{}"), end("stop")], "tool_calls"),
        ([piece(0, "c", "f", "{}"), end("function_call")], "tool_calls"),
        ([piece(0, "c", "f", "{}"), end("length")], "length"),
        ([end("tool_calls"), piece(0, "c", "f", "{}")], "tool_calls"),
    ],
)
def test_finish_reasons(deltas: list[Delta], reason: str) -> None:
    """The calls decide between `stop` and `tool_calls`; an end that nobody announced is `incomplete` (C204)."""
    assert assemble(deltas).finish_reason == reason


@pytest.mark.parametrize(
    "usages",
    [[(9, 5, 2)], [(9, 1, 2), (9, 3, 2), (9, 5, 2)], [(9, 0, 2), (0, 5, 0)]],
    ids=["at the end", "growing", "in parts"],
)
def test_usage(usages: list[tuple[int, int, int]]) -> None:
    """Usage counts once, whether it comes at the end, grows with each chunk or comes in parts."""
    deltas = [Delta("a", usage=TokenUsage(input_tokens=i, output_tokens=o, cached_tokens=c)) for i, o, c in usages]
    assert assemble(deltas).usage == TokenUsage(input_tokens=9, output_tokens=5, cached_tokens=2)


def test_c202_what_came_before_a_failure_can_be_asked_for() -> None:
    """After a failure in the middle the text so far is there, marked as incomplete, and nothing is there twice."""
    assembler = Assembler()
    for text in ("Hello", " wor"):
        assembler.add(Delta(text, reasoning="hm"))
    assert (assembler.reply().message.text, assembler.reply().message.reasoning) == ("Hello wor", "hmhm")
    assert assembler.reply() == assembler.reply()
    assert assembler.reply().finish_reason == "incomplete"


# -- any cut into pieces gives the same answer ----------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
CALLS = st.lists(
    st.tuples(st.sampled_from(["f", "get_weather", "g"]), st.dictionaries(st.text(max_size=5), VALUES, max_size=3)),
    max_size=4,
)
STYLES = ("plain", "every id", "same number", "no id", "from one", "name again", "id changes", "no number", "by turns")


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """A text in pieces, empty ones among them."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=5)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@st.composite
def streamed_calls(draw: st.DrawFn, calls: list[tuple[str, dict[str, Any]]], style: str) -> list[ToolCallDelta]:
    """The pieces of calls as a provider of that style sends them."""
    rows: list[list[ToolCallDelta]] = []
    for n, (name, arguments) in enumerate(calls):
        place: int | None = {"same number": 0, "from one": n + 1, "no number": None}.get(style, n)
        row = []
        for i, text in enumerate(draw(cut(json.dumps(arguments, ensure_ascii=draw(st.booleans()))))):
            id: str | None = f"c{n}" if i == 0 or style in ("every id", "name again") else None
            if style == "id changes":
                id = f"c{n}" if i == 0 else f"c{n}-{i}"
            shown = name if i == 0 or style == "name again" else None
            row.append(ToolCallDelta(place, None if style == "no id" else id, shown, text))
        rows.append(row)
    if style != "by turns":
        return [part for row in rows for part in row]
    order = draw(st.permutations([n for n, row in enumerate(rows) for _ in row]))
    return [rows[n].pop(0) for n in order]


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, str, list[tuple[str, dict[str, Any]]], list[Delta]]:
    """Text, reasoning, calls, and deltas that bring them: cut anywhere, joined anywhere."""
    text, reasoning, calls = draw(st.text(max_size=20)), draw(st.text(max_size=10)), draw(CALLS)
    deltas = [Delta(text=part) for part in draw(cut(text))] + [Delta(reasoning=part) for part in draw(cut(reasoning))]
    pieces = draw(streamed_calls(calls, draw(st.sampled_from(STYLES))))
    while pieces:
        size = draw(st.integers(1, len(pieces)))
        deltas.append(Delta(tool_calls=tuple(pieces[:size])))
        pieces = pieces[size:]
    if draw(st.booleans()) and deltas[-1].tool_calls:
        deltas[-1] = deltas[-1]._replace(finish_reason="tool_calls")
    else:
        deltas.append(end("stop"))
    return text, reasoning, calls, deltas


@given(streams())
def test_any_cut_gives_the_same_answer(made: tuple[str, str, list[tuple[str, dict[str, Any]]], list[Delta]]) -> None:
    """Text, reasoning and calls come out as they went in, for every style of provider and every cut into pieces."""
    text, reasoning, calls, deltas = made
    reply = assemble(deltas)
    assert reply.invalid == ()
    assert reply.message.text == text
    assert (reply.message.reasoning or "") == reasoning
    found = [(call.name, call.arguments) for call in reply.message.tool_calls]
    assert sorted(found, key=repr) == sorted(calls, key=repr)  # by turns, they come in the order in which they began
    assert len({call.id for call in reply.message.tool_calls}) == len(calls)
    assert reply.finish_reason == ("tool_calls" if calls else "stop")
