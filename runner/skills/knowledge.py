"""The tools with which a model reads skills: `skill_load`, `skill_list_docs`, `skill_select_docs`.

Source: spec/services, 2.6. They read, and what they change is state that goes with their results, so a call that was
cut off may be made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, TypeVar

from pydantic import Field

from graphagent.agents.function_tool import FunctionTool, tool
from graphagent.agents.tool import ToolContext, ToolResult
from graphagent.errors import ServiceError, ToolError, alternatives
from graphagent.skills import Skill, SkillRepository
from runner.skills.interactive import ExecTool
from runner.skills.loaded import Docs, loading, selecting
from runner.skills.run import RunTool
from runner.skills.shelf import Call, Shelf

One = TypeVar("One", bound=FunctionTool | RunTool | ExecTool)
SkillName = Annotated[str, Field(description="The name of the skill, as it is listed.")]
DocPaths = Annotated[Sequence[str], Field(description="Documents of the skill, as skill_list_docs has them.")]
AllDocs = Annotated[bool, Field(description="All documents of the skill.")]
_MODES = {"enum": ["add", "replace", "clear"]}


def load_tool(shelf: Shelf) -> FunctionTool:
    """`skill_load`."""

    async def skill_load(
        skill: SkillName, ctx: ToolContext, *, docs: DocPaths = (), include_all_docs: AllDocs = False
    ) -> ToolResult:
        """Load a skill: its text, and documents of it if you name some, are then in your instructions."""
        call = await shelf.call(ctx)
        found = await found_skill(call.repository, skill)
        delta = loading(call.session, call.invocation, found.name, ctx.call_id, shelf.mode)
        if include_all_docs:
            delta |= selecting(call.invocation, found.name, "*")
        elif docs:
            delta |= selecting(call.invocation, found.name, _known(found, docs))
        return ToolResult(f"loaded: {found.name}", state_delta=delta)

    return tool(skill_load, reentrant=True)


def list_docs_tool(shelf: Shelf) -> FunctionTool:
    """`skill_list_docs`."""

    async def skill_list_docs(skill: SkillName, ctx: ToolContext) -> list[str]:
        """The documents that a skill has beside its text, by their paths."""
        call = await shelf.call(ctx)
        return [doc.path for doc in (await found_skill(call.repository, skill)).docs]

    return tool(skill_list_docs, reentrant=True)


def select_docs_tool(shelf: Shelf) -> FunctionTool:
    """`skill_select_docs`."""

    async def skill_select_docs(
        skill: SkillName,
        ctx: ToolContext,
        *,
        docs: DocPaths = (),
        include_all_docs: AllDocs = False,
        mode: Annotated[str, Field(json_schema_extra=_MODES)] = "replace",
    ) -> ToolResult:
        """Say which documents of a loaded skill are to be in your instructions."""
        call = await shelf.call(ctx)
        found = await found_skill(call.repository, skill)
        chosen = await _chosen(shelf, call, found, _known(found, docs), mode)
        if include_all_docs and mode != "clear":
            chosen = "*"
        content = {
            "skill": found.name,
            "selected_docs": [doc.path for doc in found.docs] if chosen == "*" else list(chosen),
            "include_all_docs": chosen == "*",
            "mode": mode if mode in _MODES["enum"] else "replace",
        }
        return ToolResult(content, state_delta=selecting(call.invocation, found.name, chosen))

    return tool(skill_select_docs, reentrant=True)


async def found_skill(repository: SkillRepository, name: str) -> Skill:
    """The skill that a model means. Raises ToolError."""
    name = name.strip()
    if not name:
        raise ToolError("skill is required")
    try:
        return await repository.get(name)
    except ServiceError as error:
        raise ToolError(str(error)) from error


async def _chosen(shelf: Shelf, call: Call, skill: Skill, docs: tuple[str, ...], mode: str) -> Docs:
    """The selection as it is from now on. Once it is all, only `clear` makes it less."""
    if mode == "clear":
        return ()
    before = shelf.docs(call.session, call.invocation, skill.name)
    if before == "*":
        return "*"
    return tuple(dict.fromkeys((*before, *docs))) if mode == "add" else docs


def _known(skill: Skill, docs: Iterable[str]) -> tuple[str, ...]:
    """Paths of documents, each once. Raises ToolError for one that isn't there."""
    known = [doc.path for doc in skill.docs]
    wanted = tuple(dict.fromkeys(doc.strip() for doc in docs))
    for doc in wanted:
        if doc not in known:
            raise ToolError(f"skill '{skill.name}' has no document '{doc}'; {alternatives(doc, known)}")
    return wanted


def with_names(one: One, names: Sequence[str]) -> One:
    """The tool with the skills that there are as the values of its parameter `skill`."""
    properties = dict(one.spec.parameters["properties"])
    properties["skill"] = {**properties["skill"], "enum": list(names)}
    return replace(one, spec=replace(one.spec, parameters={**one.spec.parameters, "properties": properties}))
