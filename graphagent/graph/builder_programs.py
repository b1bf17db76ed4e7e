"""The part of the builder that adds nodes which run programs: code of the graph's own, and scripts of skills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from graphagent.graph.builder_nodes import NodeMethods


class ProgramMethods(NodeMethods):
    """What adds nodes that run programs in a workspace; no model is asked."""

    def add_code_node(
        self,
        id: str,
        code: str,
        *,
        language: Literal["python", "bash"] = "python",
        key: str | None = None,
        input_mapper: Callable[[Any], Any] | None = None,
        output_mapper: Callable[[Any], Mapping[str, Any] | None] | None = None,
        files: Callable[[Any], Mapping[str, str | bytes]] | None = None,
        collect: Iterable[str] = ("out/**",),
        save: bool = False,
        on_failure: Literal["fail", "record"] = "fail",
        executor: Any = None,
        limits: Any = None,
        **options: Any,
    ) -> Self:
        """Add a node that runs code in a workspace of its own, which is gone after it.

        `input_mapper(state)`: what the program reads from stdin: text and bytes as they are, anything else as JSON.
        `files(state)`: files that are there when it begins, by path. `collect`: globs of the files that are taken out;
        `save`: into the artifacts of the session. `output_mapper(result)`: the update, from a `ProgramResult`
        (default: the result itself, in the field `key`, which is the id if nothing else is said). A program that
        doesn't end with 0, or that a limit ended, fails the node with ProgramFailed; `on_failure="record"`: the result
        tells it. `executor`: a CodeExecutor (default: that of the run's services); `limits`: ExecutionLimits.

        The run is one effect in the ledger. After a crash in the middle it is repeated where that does no harm: where
        the executor is isolated, or with `idempotent=True`; else it is EffectUnknown. `options` are those of
        `add_node`.
        """
        given = {"code": code, "language": language, "cwd": "."}
        shared = {"input_mapper": input_mapper, "output_mapper": output_mapper, "files": files, "collect": collect}
        more = {"key": key or id, "save": save, "on_failure": on_failure, "executor": executor, "limits": limits}
        return self._program(id, "code", {**given, **shared, **more}, options)

    def add_skill_node(
        self,
        id: str,
        skill: str,
        command: Sequence[str],
        *,
        key: str | None = None,
        input_mapper: Callable[[Any], Any] | None = None,
        output_mapper: Callable[[Any], Mapping[str, Any] | None] | None = None,
        files: Callable[[Any], Mapping[str, str | bytes]] | None = None,
        collect: Iterable[str] = ("out/**",),
        save: bool = False,
        on_failure: Literal["fail", "record"] = "fail",
        skills: Any = None,
        executor: Any = None,
        limits: Any = None,
        **options: Any,
    ) -> Self:
        """Add a node that runs a script of a skill, without a model.

        `command`: the program and its arguments, given to no shell; it begins in the skill's directory, and
        `OUTPUT_DIR` in its environment is where files go that are taken out. `skills`: a SkillRepository (default: that
        of the run's services). The rest is as in `add_code_node`; the result tells the digest of the skill that ran.
        """
        given = {"skill": skill, "command": command if isinstance(command, str) else tuple(command), "skills": skills}
        shared = {"input_mapper": input_mapper, "output_mapper": output_mapper, "files": files, "collect": collect}
        more = {"key": key or id, "save": save, "on_failure": on_failure, "executor": executor, "limits": limits}
        return self._program(id, "skill", {**given, **shared, **more}, options)

    def _program(self, id: str, kind: Literal["code", "skill"], given: dict[str, Any], options: dict[str, Any]) -> Self:
        given = {**given, "collect": tuple(given["collect"]), "repeat": bool(options.get("idempotent", False))}
        options.setdefault("effects", (f"run {given.get('skill', kind)}",))
        if given["output_mapper"] is None:
            options.setdefault("writes", (given["key"],))
        return self._acting(id, kind, given, **options)
