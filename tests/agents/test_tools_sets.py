"""Tools put together from functions, tools and sets: names, filters, prefixes."""

from __future__ import annotations

from typing import Any

import pytest
from support.tooling import call, texts

from graphagent.agents.function_tool import tool
from graphagent.agents.tool import Tool
from graphagent.agents.toolset import FilteredTools, ToolList, gather_tools, with_additional
from graphagent.errors import AgentError

pytestmark = pytest.mark.anyio


def read_file(path: str) -> str:
    """Read."""
    return f"read {path}"


def write_file(path: str) -> str:
    """Write."""
    return f"wrote {path}"


FILES = ToolList([read_file, tool(write_file, needs_approval=True)], name="disk")


async def names(*items: Any, **options: Any) -> list[str]:
    """What the gathered tools are called."""
    return [one.spec.name for one in await gather_tools(items, **options)]


async def test_sets_with_a_name_prefix_their_tools() -> None:
    """Tools of a named set are `<set>_<tool>`, and are what they were otherwise; those of an unnamed one stay."""
    tools = await gather_tools([read_file, FILES, ToolList([write_file])])
    assert [one.spec.name for one in tools] == ["read_file", "disk_read_file", "disk_write_file", "write_file"]
    assert all(isinstance(one, Tool) for one in tools)
    assert [one.needs_approval for one in tools] == [False, False, True, False]
    assert await texts([FILES], call("disk_read_file", path="a")) == ["read a"]
    assert "don't fit" in (await texts([FILES], call("disk_read_file", pat="a")))[0]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"include": ["read_*"]}, ["disk_read_file"]),
        ({"exclude": ["write_file"]}, ["disk_read_file"]),
        ({"include": ["*_file"], "exclude": ["read_file"]}, ["disk_write_file"]),
        ({"include": ["nothing"]}, []),
        ({}, ["disk_read_file", "disk_write_file"]),
    ],
    ids=["include", "exclude", "both", "none", "all"],
)
async def test_name_filters(options: dict[str, Any], left: list[str]) -> None:
    """A filter looks at the names that the tools have in their set."""
    assert await names(FilteredTools(FILES, **options)) == left


async def test_what_a_run_may_see() -> None:
    """`visible` takes tools away by the name that a model sees."""
    assert await names(FILES, read_file, visible=lambda name: not name.startswith("disk_")) == ["read_file"]


async def test_two_tools_of_one_name_are_refused() -> None:
    """A name that is there twice is an error that says what to do."""
    with pytest.raises(AgentError, match="two tools are called 'read_file'"):
        await gather_tools([read_file, ToolList([read_file])])


async def test_additional_tools_take_no_name_away() -> None:
    """Of an agent's tool and an additional one of the same name the agent's counts."""
    (own,) = await gather_tools([read_file])
    both = with_additional([own], [tool(write_file, name="read_file"), tool(write_file)])
    assert [one.spec.description for one in both] == ["Read.", "Write."]


async def test_what_is_no_tool_is_refused() -> None:
    """A text in the list of tools is named in the error."""
    with pytest.raises(AgentError, match="'look' is no tool"):
        await gather_tools(["look"])  # type: ignore[list-item]
