"""Blocks of code in texts: which are run, and what becomes of those that fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphagent import LLMAgent
from graphagent.agents.invocation import RunOptions
from graphagent.agents.model_options import CallLimits
from graphagent.execution import ExecutionLimits
from graphagent.models import ScriptedModel
from runner import Runner
from runner.execution import CodeBlock, FencedReplies, LocalExecutor, code_blocks, only_block, run_blocks
from runner.sessions import InMemorySessions

pytestmark = pytest.mark.anyio
FENCE = "```python\nprint(6 * 7)\n```"
LIMITS = ExecutionLimits(seconds=20)


async def test_case_38_a_block_that_fails_does_not_keep_the_next_from_running(executor: Any) -> None:
    """The output has the line of the error, and what the second block said; the numbers count from 0."""
    room = await executor.open("blocks")
    blocks = code_blocks(
        f"First\n```py\nprint('a')\n1 / 0\n```\nthen\n```bash\necho $OUTPUT_DIR > out/f; echo b\n```\n{FENCE}"
    )
    done = await run_blocks(room, blocks, LIMITS)
    assert done.failed == (0,)
    assert "Error executing code block 0: it ended with 1\nb\n42\n" in done.output
    assert "ZeroDivisionError" in done.output
    assert done.output.startswith("a\n")
    assert [one.path for one in done.files.files] == ["out/f"]
    assert [one.exit_code for one in done.ran] == [1, 0, 0]


async def test_a_block_that_takes_too_long_is_ended(executor: Any) -> None:
    """With the limits that a block has by itself, and the next one runs."""
    room = await executor.open("long")
    done = await run_blocks(room, [CodeBlock("bash", "sleep 1000"), CodeBlock("bash", "echo next")])
    assert done.output == "Error executing code block 0: it reached its limit of time\nnext\n"


TEXT_LABELS = [
    "",
    "css",
    "csv",
    "html",
    "json",
    "markdown",
    "md",
    "mermaid",
    "plain",
    "text",
    "txt",
    "xml",
    "yaml",
    "ruby",
]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (FENCE, "print(6 * 7)\n"),
        (f"\n  {FENCE}\n\n", "print(6 * 7)\n"),
        (FENCE.replace("\n", "\r\n"), "print(6 * 7)\n"),
        ("````Python3 title\n```\n````", "```\n"),
        ("```sh\necho '```'\n```", "echo '```'\n"),
        (f"Here it is:\n{FENCE}", None),
        (f"{FENCE}\nThere.", None),
        (f"{FENCE}\n{FENCE}", None),
        ("```python\nprint(1)", None),
        ("```python\n\n```", None),
        ("```python print(1)```", None),
        ("print(1)", None),
        *((f"```{label}\nx\n```", None) for label in TEXT_LABELS),
    ],
)
def test_which_texts_are_one_block(text: str, code: str | None) -> None:
    """Only those that are a fence with code in it, and nothing else."""
    found = only_block(text)
    assert (None if found is None else found.code) == code


@given(st.lists(st.sampled_from(["```", "````", "python", "bash", "\n", "\r\n", " ", "x", "`", "~~~"])).map("".join))
def test_one_block_is_one_of_the_blocks(text: str) -> None:
    """Whatever the text: what is the only block is the one that is found in it, and no line outside of it is lost."""
    only = only_block(text)
    assert only is None or code_blocks(text.strip()) == [only]


class Bench:
    """An agent whose replies are run if they are code."""

    def __init__(self, executor: LocalExecutor | None, **options: Any) -> None:
        self.fenced = FencedReplies(executor, limits=LIMITS, **options)
        self.sessions = InMemorySessions()
        self.model = ScriptedModel([])

    async def say(self, *replies: Any, options: RunOptions | None = None, **agent: Any) -> str:
        """What the person reads at last when the model replies so, one after the other."""
        self.model = ScriptedModel(list(replies))
        made = LLMAgent("bot", self.model, tools=[self.fenced], callbacks=[self.fenced.callbacks], **agent)
        async with Runner("app", made, sessions=self.sessions) as runner:
            return await runner.run_text("ann", "s1", "go", options or RunOptions())

    @property
    def told(self) -> list[str]:
        """What the model has been told by the tool."""
        return [one.text for one in self.model.requests[-1].messages if one.role == "tool"]


@pytest.fixture
async def local() -> AsyncIterator[LocalExecutor]:
    """An executor that is gone after the test."""
    made = LocalExecutor()
    yield made
    await made.aclose()


async def test_case_39_a_reply_is_run_only_if_it_is_nothing_but_a_block(local: LocalExecutor) -> None:
    """Prose with a block is the answer; a block alone is run, and the model goes on with what it said."""
    bench = Bench(local)
    prose = f"Try this:\n{FENCE}"
    assert await bench.say(prose) == prose
    assert bench.told == []
    assert await bench.say(f"{FENCE}\n", "It is 42.") == "It is 42."
    assert bench.told == ["Code execution result:\n42\n"]
    asked = bench.model.requests[-1].messages[-2]
    assert (asked.text, [call.name for call in asked.tool_calls]) == ("", ["run_code"])


async def test_code_of_a_reply_that_fails(local: LocalExecutor) -> None:
    """The model reads that it failed, and tries again; its files are named."""
    bench = Bench(local)
    await bench.say("```python\nboom\n```", "```bash\necho x > out/x.txt\n```", "done")
    assert bench.told[0].startswith("Code execution failed:\n")
    assert "NameError" in bench.told[0]
    assert bench.told[1] == "Code execution result:\n\nFiles in out/: out/x.txt"


async def test_replies_that_stay_as_they_are(local: LocalExecutor) -> None:
    """Where the tool isn't visible, and where there is nothing to run code with."""
    assert await Bench(local).say(FENCE, options=RunOptions(tool_filter=lambda name: name != "run_code")) == FENCE
    assert await Bench(None).say(FENCE) == FENCE


async def test_a_model_that_only_writes_code_comes_to_an_end(local: LocalExecutor) -> None:
    """The limit on rounds of tools counts such replies too."""
    bench = Bench(local)
    limits = CallLimits(tool_rounds=2, final="Answer now.")
    assert await bench.say(FENCE, FENCE, "42", limits=limits) == "42"
    assert len(bench.told) == 2
