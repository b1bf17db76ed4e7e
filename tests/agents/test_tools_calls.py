"""Rounds of tool calls: what the model reads of each, in which order, and what of it ends the turn.

The numbers are those of spec/services section 17.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest
from pydantic import BaseModel
from support.nodes import SteppedClock
from support.tooling import Rounds, asking, call, ran, texts

from graphagent import Executor, RetryPolicy, RunEvent, ToolCall
from graphagent.agents.external import external_tool
from graphagent.agents.function_tool import tool
from graphagent.agents.tool import Decision, ToolContext, ToolResult
from graphagent.agents.tool_options import TRANSIENT, ToolCallbacks, ToolGroup, ToolOptions
from graphagent.agents.tool_outcome import Parts
from graphagent.agents.transfer import TRANSFER, TransferTool
from graphagent.errors import AgentError, StopAgent, ToolError

pytestmark = pytest.mark.anyio

PARALLEL = ToolOptions(parallel=True)
BOTH = pytest.mark.parametrize("options", [ToolOptions(), PARALLEL], ids=["in turn", "parallel"])


def echo(text: str) -> str:
    """Say it again."""
    return text


async def broken() -> str:
    """Fail."""
    raise ValueError("no such row")


class Named:
    """An agent, as far as a handover looks at it."""

    def __init__(self, name: str, description: str = "") -> None:
        self.name = name
        self.description = description
        self.sub_agents: tuple[Any, ...] = ()

    async def run(self, invocation: Any) -> AsyncIterator[Any]:
        return
        yield


# -- what the model reads ------------------------------------------------------------------------


@BOTH
async def test_s020_an_unknown_tool_is_a_result_with_suggestions(options: ToolOptions) -> None:
    """A tool that isn't there is told to the model, with up to three that are alike; the other calls are untouched."""
    tools = [tool(echo, name=name) for name in ("read_file", "read_files", "read_fill", "reap_file", "write")]
    calls = [call("red_file"), call("write", text="x"), call("x" * 200)]
    unknown, written, far = await texts(tools, *calls, options=options)
    assert unknown.startswith("Error: tool not found: 'red_file'; did you mean 'read_file', 'rea")
    assert unknown.count("', '") == 2
    assert written == "x"
    assert "'" + "x" * 160 + "'" in far
    assert "the tools are 'read_file', 'read_files'" in far


async def test_s020_no_tools_at_all() -> None:
    """Without any tool the model is told so."""
    assert await texts([], call("x")) == ["Error: tool not found: 'x'; there are no tools"]


async def test_s021_results_stand_in_call_order() -> None:
    """The first of two parallel calls ends last, and stands first all the same; both ran at the same time."""
    second = anyio.Event()

    async def slow() -> str:
        await second.wait()
        return "slow"

    async def quick() -> str:
        second.set()
        return "quick"

    done = await ran([slow, quick], call("slow"), call("quick"), options=PARALLEL)
    assert [(m.text, m.tool_call_id, m.name) for m in done.messages] == [
        ("slow", "c-slow", "slow"),
        ("quick", "c-quick", "quick"),
    ]


@BOTH
async def test_s022_one_that_raises_leaves_the_others_alone(options: ToolOptions) -> None:
    """A call that raises is a result with the error's text; the results beside it are intact."""
    told = await texts([broken, echo], call("broken"), call("echo", text="a"), options=options)
    assert told == ["Error: tool 'broken' failed: ValueError: no such row", "a"]


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ("text", "text"),
        ("", ""),
        (None, "null"),
        ({"ä": [1, 2.5, None]}, '{"ä": [1, 2.5, null]}'),
        (ToolResult([1]), "[1]"),
        (ToolResult("bad", error=True), "bad"),
        (ToolResult(Parts([{"type": "text", "text": "part"}])), [{"type": "text", "text": "part"}]),
        ([{"type": "text", "text": "part"}], '[{"type": "text", "text": "part"}]'),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_how_a_result_is_written(result: Any, told: Any) -> None:
    """Text stands as it is, message parts go out as parts, anything else is JSON that keeps its letters."""
    done = await ran([tool(lambda: result, name="f")], call("f"))
    assert [message.content for message in done.messages] == [told]


class Row(BaseModel):
    id: int


async def test_models_are_written_as_json_and_what_json_cannot_hold_is_an_error() -> None:
    """A pydantic model is its JSON; an open file or the like is told to the model as an error."""
    tools = [tool(lambda: [Row(id=1)], name="rows"), tool(lambda: object(), name="thing")]
    rows, thing = await texts(tools, call("rows"), call("thing"))
    assert rows == '[{"id": 1}]'
    assert thing.startswith("Error: tool 'thing' failed: its result is no JSON value (")


# -- permission and callbacks ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ("allow", "hi"),
        ("deny", '{"status": "denied", "tool": "echo", "reason": "the permission policy denies this call"}'),
        ("ask", '{"status": "approval_required", "tool": "echo", "reason": "a person has to approve this call first"}'),
    ],
)
async def test_s023_permission(decision: Decision, told: str) -> None:
    """Denied, or waiting for approval: the model is told the status, and the tool is never called."""
    ran_with: list[str] = []

    def say(text: str) -> str:
        ran_with.append(text)
        return text

    options = ToolOptions(permission=lambda asked, of: decision, ask="result")
    assert await texts([tool(say, name="echo")], call("echo", text="hi"), options=options) == [told]
    assert ran_with == (["hi"] if decision == "allow" else [])


async def test_a_permission_that_is_none_fails_the_run() -> None:
    """A policy that says neither allow, deny nor ask is an error of whoever wrote it, not of the model."""

    async def policy(asked: ToolCall, of: Any) -> Any:
        return "perhaps"

    result = await Rounds([echo], ToolOptions(permission=policy)).run(call("echo", text="x"))
    assert result.status == "failed"
    assert "permission for tool 'echo' is 'perhaps'" in str(result.error)


async def test_s024_a_callback_stands_for_the_tool() -> None:
    """A result of `before` keeps the tool from running; `after` still sees and changes it."""

    def before(asked: ToolCall, context: ToolContext) -> Any:
        return {"from": context.name} if asked.arguments["text"] == "x" else None

    async def after(asked: ToolCall, context: ToolContext, result: ToolResult) -> Any:
        return ToolResult([result.content, asked.id], state_delta={"seen": True})

    options = ToolOptions(callbacks=(ToolCallbacks(before=before, after=after),))
    done = await ran([echo], call("echo", text="x"), call("echo", "c2", text="y"), options=options)
    assert [m.text for m in done.messages] == ['[{"from": "echo"}, "c-echo"]', '["y", "c2"]']
    assert done.state_delta == {"seen": True}


async def test_the_first_callback_that_decides_is_the_last_that_is_called() -> None:
    """Changed arguments go on to the next callback; a result ends the chain, before and after alike."""
    order: list[str] = []

    def changes(asked: ToolCall, context: ToolContext) -> Any:
        order.append("changes")
        return asked.model_copy(update={"arguments": {"text": asked.arguments["text"] + "!"}})

    def decides(asked: ToolCall, context: ToolContext) -> Any:
        order.append(asked.arguments["text"])
        return "decided"

    def late(*_: Any) -> Any:
        order.append("late")

    def replaces(asked: ToolCall, context: ToolContext, result: ToolResult) -> Any:
        return f"{result.content} and replaced"

    pairs = [(changes, None), (decides, replaces), (late, late)]
    options = ToolOptions(callbacks=tuple(ToolCallbacks(before, after) for before, after in pairs))
    assert await texts([echo], call("echo", text="x"), options=options) == ["decided and replaced"]
    assert order == ["changes", "x!"]


async def test_arguments_that_a_callback_changed_are_checked() -> None:
    """What the tool gets is what was checked, also if a callback wrote it."""

    def spoils(asked: ToolCall, context: ToolContext) -> Any:
        return asked.model_copy(update={"arguments": {"txt": 1}})

    options = ToolOptions(callbacks=(ToolCallbacks(before=spoils),))
    (text,) = await texts([echo], call("echo", text="x"), options=options)
    assert "'txt' is no parameter of this tool" in text


def raises(*_: Any) -> Any:
    """A callback that fails."""
    raise LookupError("gone")


async def test_after_recovers_a_failure_and_failing_callbacks_are_told() -> None:
    """`after` may replace an error; what callbacks raise is a result like any other error."""
    saves = ToolOptions(callbacks=(ToolCallbacks(after=lambda asked, context, result: f"saved: {result.error}"),))
    assert await texts([broken], call("broken"), options=saves) == ["saved: True"]
    for callback, when in [
        (ToolCallbacks(before=raises), "before tool 'echo'"),
        (ToolCallbacks(after=raises), "after"),
    ]:
        (text,) = await texts([echo], call("echo", text="x"), options=ToolOptions(callbacks=(callback,)))
        assert f"a callback {when}" in text
        assert text.endswith("failed: LookupError: gone")


# -- retries and limits ---------------------------------------------------------------------------


class Shaky:
    """Fails a number of times."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.calls = 0
        self.failures = failures
        self.error = error

    async def __call__(self, ctx) -> str:
        self.calls += 1
        ctx.state_delta[f"try {self.calls}"] = True
        if self.calls <= self.failures:
            raise self.error
        return f"after {self.calls}"


@pytest.mark.parametrize(
    ("failures", "error", "told", "calls"),
    [
        (2, ConnectionResetError("reset"), "after 3", 3),
        (
            3,
            ConnectionResetError("reset"),
            "Error: tool 'shaky' failed after 3 attempts: ConnectionResetError: reset",
            3,
        ),
        (1, ValueError("no"), "Error: tool 'shaky' failed: ValueError: no", 1),
        (1, TimeoutError("slow"), "after 2", 2),
    ],
    ids=["mended", "too often", "not transient", "timeout"],
)
async def test_s025_retries(failures: int, error: Exception, told: str, calls: int) -> None:
    """A policy of three attempts mends two connection resets; other errors are told at once. Only the state delta of
    the attempt that succeeded counts."""
    shaky, clock = Shaky(failures, error), SteppedClock()
    policy = RetryPolicy(3, initial=1.0, jitter=False, retry_on=TRANSIENT)
    rounds = Rounds([tool(shaky, name="shaky", retry=policy)])
    (await Executor(rounds.graph, clock=clock).run(asking([call("shaky")]))).unwrap()
    assert [m.text for m in rounds.rounds[0].messages] == [told]
    assert shaky.calls == calls
    assert clock.slept == [1.0, 2.0][: calls - 1]
    assert rounds.rounds[0].state_delta == ({f"try {calls}": True} if told.startswith("after") else {})


async def test_s025_a_cancelled_call_is_not_retried() -> None:
    """The policy says to retry everything; a cancelled tool is left alone nevertheless."""
    shaky = 0

    async def hangs() -> None:
        nonlocal shaky
        shaky += 1
        await anyio.sleep_forever()

    rounds = Rounds([tool(hangs, retry=RetryPolicy(5, initial=0, retry_on=(BaseException,)))])
    with anyio.move_on_after(0.05):
        await rounds.run(call("hangs"))
    assert shaky == 1


async def test_the_time_of_retries_is_bounded() -> None:
    """No attempt starts later than `max_elapsed` after the first; the policy of the round stands for a missing one."""
    shaky, clock = Shaky(9, ConnectionError("x")), SteppedClock()
    rounds = Rounds([tool(shaky, name="shaky")], ToolOptions(retry=RetryPolicy(9, 1.0, jitter=False, max_elapsed=4.0)))
    (await Executor(rounds.graph, clock=clock).run(asking([call("shaky")]))).unwrap()
    assert shaky.calls == 3


async def test_a_timeout_bounds_one_attempt() -> None:
    """A tool that takes longer than its `timeout` is an error the model sees; its own TimeoutError stays as it is."""

    async def hangs() -> None:
        await anyio.sleep_forever()

    async def raises_one() -> None:
        raise TimeoutError("upstream")

    tools = [tool(hangs, timeout=0.01), tool(raises_one, timeout=5)]
    assert await texts(tools, call("hangs"), call("raises_one")) == [
        "Error: tool 'hangs' failed: TimeoutError: it took longer than its 0.01 s",
        "Error: tool 'raises_one' failed: TimeoutError: upstream",
    ]


@pytest.mark.parametrize(
    ("options", "most"),
    [
        (ToolOptions(parallel=True), 6),
        (ToolOptions(parallel=True, max_concurrency=2), 2),
        (ToolOptions(parallel=True, groups=(ToolGroup(("a",), 1), ToolGroup(("b",), 2))), 3),
        (ToolOptions(parallel=True, max_concurrency=1, groups=(ToolGroup(("a", "b"), 2),)), 1),
        (ToolOptions(), 1),
    ],
    ids=["all", "two", "groups", "group and one", "in turn"],
)
async def test_how_many_run_at_once(options: ToolOptions, most: int) -> None:
    """`max_concurrency` bounds the round, a group bounds its tools; in turn means one."""
    now, peak = 0, 0

    async def work() -> None:
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        now -= 1

    calls = [call(name, f"{name}{i}") for i in range(3) for name in "ab"]
    done = await ran([tool(work, name="a"), tool(work, name="b")], *calls, options=options)
    assert [message.tool_call_id for message in done.messages] == [one.id for one in calls]
    assert peak == most


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"max_concurrency": 0}, "max_concurrency is 0"),
        ({"groups": (ToolGroup(("a",), 0),)}, "has limit 0"),
        ({"groups": (ToolGroup(("a", "b")), ToolGroup(("b",)))}, "tool 'b' is in two groups"),
    ],
    ids=["concurrency", "limit", "twice"],
)
def test_limits_that_make_no_sense_are_refused(fields: dict[str, Any], told: str) -> None:
    """A limit below one, and a tool in two groups, are errors where they are declared."""
    with pytest.raises(AgentError, match=told):
        ToolOptions(**fields)


# -- who ends the turn -----------------------------------------------------------------------------


async def test_s026_an_external_call_is_deferred() -> None:
    """A call of an external tool is not run and has no result here; the round says whose answer it waits for."""
    done = await ran([external_tool("browse", "Open a page.")], call("browse", url="x"))
    assert done.messages == ()
    assert [one.id for one in done.deferred] == ["c-browse"]


async def test_s027_a_mixed_round_runs_what_it_can() -> None:
    """Beside an external call the normal one runs; the round says that the run ends."""
    tools = [external_tool("browse", "Open a page."), echo, tool(lambda: 1, name="later")]
    options = ToolOptions(deferred=lambda asked: asked.name == "later")
    done = await ran(tools, call("browse"), call("echo", text="a"), call("later"), options=options)
    assert [m.text for m in done.messages] == ["a"]
    assert [one.name for one in done.deferred] == ["browse", "later"]


async def test_s029_pieces_go_out_and_add_up() -> None:
    """A streaming tool sends its pieces as progress, with the call they belong to; the result is their sum."""

    async def spell(word: str) -> AsyncIterator[str]:
        for letter in word:
            yield letter

    def count(to: int) -> Iterator[int]:
        yield from range(to)

    rounds = Rounds([spell, count])
    async with Executor(rounds.graph).stream(
        asking([call("spell", word="ab"), call("count", to=4)]), modes=("custom",)
    ) as stream:
        events: list[RunEvent] = [event async for event in stream]
    assert [m.text for m in rounds.rounds[0].messages] == ["ab", "6"]
    assert [(e.kind, e.data["call_id"], e.data["delta"]) for e in events] == [
        *(("tool_delta", "c-spell", letter) for letter in "ab"),
        *(("tool_delta", "c-count", number) for number in range(4)),
    ]


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        (["a", ToolResult({"n": 1}), "b"], '{"n": 1}'),
        ([[1], [2, 3]], "[1, 2, 3]"),
        ([{"a": 1, "b": 1}, {"b": 2}], '{"a": 1, "b": 2}'),
        ([1, 2.5], "3.5"),
        ([True, False], "false"),
        (["a", 1], "1"),
        ([], "null"),
    ],
    ids=["final", "lists", "maps", "numbers", "booleans", "mixed", "none"],
)
async def test_s029_how_pieces_add_up(pieces: list[Any], told: str) -> None:
    """A final result wins over the pieces; else each kind adds up in its own way."""

    async def stream() -> AsyncIterator[Any]:
        for piece in pieces:
            yield piece

    assert await texts([stream], call("stream")) == [told]


async def test_a_stream_that_breaks_off_is_an_error_and_is_closed() -> None:
    """A generator that raises in the middle is a failed call; one that is left early is closed at once."""
    closed: list[str] = []

    async def breaks() -> AsyncIterator[str]:
        try:
            yield "a"
            raise ConnectionError("cut")
        finally:
            closed.append("breaks")

    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
                await anyio.sleep(0.001)
        finally:
            closed.append("endless")

    tools = [breaks, tool(endless, timeout=0.02)]
    first, second = await texts(tools, call("breaks"), call("endless"))
    assert first == "Error: tool 'breaks' failed: ConnectionError: cut"
    assert "longer than its 0.02 s" in second
    assert closed == ["breaks", "endless"]


@pytest.mark.parametrize(
    ("name", "arguments", "target", "told"),
    [
        (TRANSFER, {"agent_name": "billing", "message": "pay"}, "billing", '"success": true, "message": "pay"'),
        (TRANSFER, {"agent_name": "biling"}, None, '"success": false, "message": "there is no agent \'biling\': did'),
        (TRANSFER, {"agent_name": "me"}, None, "'me' is the agent that speaks already"),
        ("billing", {"request": "pay it"}, "billing", '"message": "pay it"'),
        ("billing", {}, "billing", '"message": "Take over from here."'),
    ],
    ids=["known", "unknown", "self", "by name", "by name, without words"],
)
async def test_s030_transfer(name: str, arguments: dict[str, Any], target: str | None, told: str) -> None:
    """A handover names the agent that takes over; one that can't be is an unsuccessful result, and nobody takes over.
    A call of an agent by its name is meant as a handover."""
    handover = TransferTool([Named("billing", "Money."), Named("me")], caller="me")
    assert "- billing: Money." in handover.spec.description
    done = await ran([handover], call(name, **arguments))
    assert (done.handed and done.handed.agent) == target
    assert told in done.messages[0].text
    assert done.messages[0].name == name


async def test_only_the_first_handover_of_a_round_counts() -> None:
    """Two handovers in one answer: the first in call order is done, the model is told so for the other."""
    handover = TransferTool([Named("a"), Named("b")])
    done = await ran([handover], call("b"), call("a"), options=PARALLEL)
    assert done.handed == ("b", "")
    assert done.messages[1].text == "Error: the conversation goes to 'b' already"


@pytest.mark.parametrize(
    ("result", "traits", "ends"),
    [
        ("ok", {"ends_turn": True}, True),
        (ToolError("bad"), {"ends_turn": True}, False),
        (ToolResult("bad", error=True), {"ends_turn": True}, False),
        (ToolResult("ok", skip_summarization=True), {}, True),
        ("ok", {}, False),
    ],
    ids=["ends", "raised", "error", "no summary", "plain"],
)
async def test_what_ends_the_turn(result: Any, traits: Any, ends: bool) -> None:
    """A tool that ends the turn does so unless it failed; a result may ask for it too."""

    def fn() -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    assert (await ran([tool(fn, **traits)], call("fn"))).ends_turn is ends


async def test_state_deltas_are_collected_in_call_order() -> None:
    """Later calls win; a failed call adds nothing; what a context and a result say both count."""

    def sets(key: str, value: int, ctx) -> ToolResult:
        ctx.state_delta["last"] = key
        return ToolResult(value, state_delta={key: value})

    def fails(ctx) -> None:
        ctx.state_delta["last"] = "failed"
        raise ValueError

    calls = [call("sets", "1", key="a", value=1), call("sets", "2", key="b", value=2), call("fails")]
    done = await ran([sets, fails], *calls, options=PARALLEL)
    assert done.state_delta == {"last": "b", "a": 1, "b": 2}


@BOTH
async def test_a_tool_can_end_the_run(options: ToolOptions) -> None:
    """StopAgent is told to nobody: the run fails with it, when the calls beside it have ended."""
    ended: list[str] = []

    async def stops() -> None:
        raise StopAgent("that is enough")

    async def other() -> None:
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        ended.append("other")

    result = await Rounds([other, stops], options).run(call("other"), call("stops"))
    assert result.status == "failed"
    assert isinstance(result.error, StopAgent)
    assert ended == ["other"]


async def test_a_stray_cancellation_inside_a_tool_is_an_error_of_the_tool() -> None:
    """A tool awaits something that was cancelled elsewhere: it has failed, and the run goes on."""

    async def stray() -> None:
        task = asyncio.ensure_future(asyncio.sleep(10))
        task.cancel()
        await task

    (text,) = await texts([stray], call("stray"))
    assert "it awaited a task or future that was cancelled elsewhere" in text


async def test_sync_tools_run_side_by_side_in_threads() -> None:
    """Two blocking tools of one round wait for each other; in one thread they never would."""
    meeting = threading.Barrier(2, timeout=5)

    def meets(n: int) -> int:
        meeting.wait()
        return n

    calls = [call("meets", str(n), n=n) for n in (1, 2)]
    assert await texts([meets], *calls, options=PARALLEL) == ["1", "2"]
