"""Public fault reports on code that changes between a checkpoint and its resume (C109, C110, C115)."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.graphs import Trail, flow, says

from graphagent import Executor, StateGraph, append
from graphagent.errors import IncompatibleCheckpoint, NodeError

pytestmark = pytest.mark.anyio


class User(BaseModel):
    """A user as an object."""

    name: str
    mail: str


class First(BaseModel):
    """State of version 1."""

    user: str = ""
    notes: Annotated[list[str], append] = []


class Second(BaseModel):
    """State of version 2: the user is an object, notes are numbered, and there is a tenant."""

    user: User
    notes: Annotated[list[tuple[int, str]], append] = []
    tenant: str


class TestC109:
    """A stored thread points at a node that no longer exists after a deploy."""

    @staticmethod
    def graph(name: str, version: str, **options: Any) -> StateGraph:
        """start -> review -> END, where the review may be called otherwise."""
        builder = flow("START -> start").with_version(version)
        builder.add_node(name, says("reviewed"), reads=("log",), writes=("log",), **options)
        return builder.add_edge("start", name).set_finish_point(name)

    async def test_c109_a_gone_node_is_refused_by_name(self, store: Any, engine: Any, lineage: str) -> None:
        """Refused before anything runs: the missing node, the version that wrote the run and the mend are named."""
        old = self.graph("review", "2026.1").interrupt_before_nodes("review").compile()
        await Executor(old, store, engine).run(lineage=lineage)
        before = await store.history(lineage)
        ran: list[str] = []
        new = self.graph("human_review", "2026.2")
        new.with_node_callbacks(type("Spy", (), {"before": lambda *_: ran.append("a node")})())
        with pytest.raises(IncompatibleCheckpoint) as refused:
            await Executor(new.compile(), store, engine).resume(lineage)
        text = str(refused.value)
        for part in (
            "node 'review' is gone",
            "'human_review' looks like it",
            "version '2026.1'",
            "formerly=('review',)",
        ):
            assert part in text
        assert (ran, await store.history(lineage)) == ([], before)
        assert refused.value.changes[0].startswith("GA701")

    async def test_c109_a_rename_map_resumes_it(self, store: Any, engine: Any, lineage: str) -> None:
        """`formerly` is the rename map: the run goes on at the node that took the place of the old one."""
        old = self.graph("review", "1").interrupt_before_nodes("review").compile()
        await Executor(old, store, engine).run(lineage=lineage)
        new = self.graph("human_review", "2", formerly=["review"]).compile()
        result = await Executor(new, store, engine).resume(lineage)
        assert result.unwrap().log == ["start", "reviewed"]
        assert (await store.history(lineage))[0].fingerprint == new.fingerprint


class TestC110:
    """No way to detect or migrate incompatible changes in stored state."""

    @staticmethod
    def first() -> StateGraph:
        """Version 1: a node that notes the user, then a question."""

        async def note(state: First) -> dict[str, Any]:
            return {"notes": [f"seen {state.user}"]}

        builder = StateGraph(First, name="users").add_node("note", note).add_node("end", says_user)
        builder.add_interrupt_node("ask", prompt="go on?")
        return builder.add_edge("note", "ask").add_edge("ask", "end").set_entry_point("note").set_finish_point("end")

    @staticmethod
    def second() -> StateGraph:
        """Version 2, whose end needs the tenant."""

        async def note(state: Second) -> dict[str, Any]:
            return {"notes": [(len(state.notes), f"seen {state.user.name}")]}

        builder = StateGraph(Second, name="users").add_node("note", note)
        builder.add_node("end", says_user, reads=("user", "notes", "tenant"), writes=("notes",))
        builder.add_interrupt_node("ask", prompt="go on?")
        return builder.add_edge("note", "ask").add_edge("ask", "end").set_entry_point("note").set_finish_point("end")

    async def threads(self, store: Any, engine: Any, lineage: str) -> list[str]:
        """Three threads of version 1, waiting."""
        names = [f"{lineage}-{user}" for user in ("ada", "bob", "cy")]
        for name in names:
            result = await Executor(self.first().compile(), store, engine).run(
                {"user": name.rpartition("-")[2]}, lineage=name
            )
            assert result.status == "interrupted"
        return names

    async def test_c110_every_mismatch_is_listed(self, store: Any, engine: Any, lineage: str) -> None:
        """Without a migration a resume is refused, naming each field that doesn't fit; nothing is written."""
        executor = Executor(self.second().compile(), store, engine)
        for name in await self.threads(store, engine, lineage):
            before = await store.history(name)
            with pytest.raises(IncompatibleCheckpoint) as refused:
                await executor.resume(name, answer="yes")
            assert len(refused.value.changes) == 2
            assert "state.user" in refused.value.changes[0]
            assert "state.notes[0]" in refused.value.changes[1]
            assert await store.history(name) == before

    async def test_c110_a_missing_key_is_refused_too(self, store: Any, engine: Any, lineage: str) -> None:
        """With the values migrated, the new required field is what is left: it is named with the node that reads it."""
        builder = self.second().migrates(values={"user": as_user, "notes": numbered})
        name = (await self.threads(store, engine, lineage))[0]
        with pytest.raises(
            IncompatibleCheckpoint, match="field 'tenant' is new and has no default, and 'end' reads it"
        ):
            await Executor(builder.compile(), store, engine).resume(name, answer="yes")

    async def test_c110_migrated_once_recorded_original_kept(self, store: Any, engine: Any, lineage: str) -> None:
        """With migrations each thread goes on; each value is migrated once, a row says so, the old row is as it was."""
        calls: list[Any] = []

        def counted(plain: Any) -> Any:
            calls.append(plain)
            return as_user(plain)

        builder = self.second().migrates(values={"user": counted, "notes": numbered}, new={"tenant": tenant_of})
        for name in await self.threads(store, engine, lineage):
            user = name.rpartition("-")[2]
            calls.clear()
            [old] = await store.history(name, limit=1)
            original = (await store.load(name, "", old.seq)).values
            stopping = builder_with_stop(builder)
            assert (await Executor(stopping, store, engine).resume(name, answer="yes")).status == "interrupted"
            # eager: the question is asked again on the state it was asked on, which is read from an older row
            assert calls == ([user, user] if engine == "eager" else [user])
            calls.clear()
            result = await Executor(builder.compile(), store, engine).resume(name)
            assert result.unwrap().user == User(name=user, mail=f"{user}@example.org")
            assert (result.state.tenant, result.state.notes) == (f"of {user}", [(0, f"seen {user}"), (1, "end")])
            assert calls == []
            notes = [(await store.load(name, "", h.seq)).row.note for h in await store.history(name)]
            recorded = [note["migrated"] for note in notes if note and "migrated" in note]
            assert [sorted(one) for one in recorded] == [
                ["field 'notes' was migrated", "field 'tenant' was filled", "field 'user' was migrated"]
            ]
            assert (await store.load(name, "", old.seq)).values == original

    async def test_c110_a_new_turn_migrates_too(self, store: Any, engine: Any, lineage: str) -> None:
        """A finished thread of version 1 takes its next turn in version 2, on migrated state."""
        name = (await self.threads(store, engine, lineage))[0]
        assert (await Executor(self.first().compile(), store, engine).resume(name, answer="yes")).status == "completed"
        second = Executor(self.second().compile(), store, engine)
        with pytest.raises(IncompatibleCheckpoint, match=r"state\.user"):
            await second.run({}, lineage=name)
        builder = self.second().migrates(values={"user": as_user, "notes": numbered}, new={"tenant": tenant_of})
        result = await Executor(builder.compile(), store, engine).run({}, lineage=name)
        assert result.state.user.name == "ada"
        assert [note for _, note in result.state.notes] == ["seen ada", "end", "seen ada"]


def as_user(plain: Any) -> Any:
    """A user of version 1 as one of version 2."""
    return {"name": plain, "mail": f"{plain}@example.org"}


def numbered(plain: list[str]) -> Any:
    """Notes with their places."""
    return [[number, text] for number, text in enumerate(plain)]


def tenant_of(stored: Any) -> str:
    """The tenant of a stored state."""
    return f"of {stored['user']}"


async def says_user(state: Any) -> dict[str, Any]:
    """The last node: a note, in the form that the state's version has."""
    return {"notes": ["end"] if isinstance(state, First) else [(len(state.notes), "end")]}


def builder_with_stop(builder: StateGraph) -> Any:
    """The same graph, with a breakpoint before its last node."""
    stopping = TestC110.second()
    stopping.definition.migrations += builder.definition.migrations
    return stopping.interrupt_before_nodes("end").compile()


class TestC115:
    """After a change of topology a restored graph runs no node and reports completed."""

    async def test_c115_a_removed_frontier_is_an_error(self, store: Any, engine: Any, lineage: str) -> None:
        """(a) The node that was to run is gone: an error that names it, never a run that does nothing."""
        old = flow("START -> a -> b -> END").interrupt_before_nodes("b").compile()
        await Executor(old, store, engine).run(lineage=lineage)
        with pytest.raises(IncompatibleCheckpoint, match="node 'b' is gone"):
            await Executor(flow("START -> a -> END").compile(), store, engine).resume(lineage)

    async def test_c115_nothing_is_left_of_an_untaken_branch(self, store: Any, engine: Any, lineage: str) -> None:
        """(b) A finished run whose other branch was not taken: nothing to resume, and a new turn starts anew."""

        def graph(other: str) -> Any:
            builder = flow("START -> a", f"{other} -> END", "b -> END")
            return builder.add_conditional_edges("a", lambda state: "b", ["b", other]).compile()

        assert (await Executor(graph("c"), store, engine).run(lineage=lineage)).state.log == ["a", "b"]
        executor = Executor(graph("d"), store, engine)
        resumed = await executor.resume(lineage)
        assert (resumed.status, resumed.steps, resumed.warnings) == ("completed", 0, ("nothing was left to run",))
        assert (await executor.run(lineage=lineage)).state.log == ["a", "b", "a", "b"]

    async def test_c115_a_node_that_recovers_has_not_failed(self, store: Any, engine: Any, lineage: str) -> None:
        """(c) Failed, resumed after a deploy, succeeded: the status is that of the run that ended well."""

        async def fails(state: Trail) -> None:
            raise ValueError("not yet")

        first = await Executor(flow("START -> a -> b -> END", b=fails).compile(), store, engine).run(lineage=lineage)
        assert first.status == "failed"
        assert isinstance(first.error, NodeError)
        result = await Executor(flow("START -> a -> b -> c -> END").compile(), store, engine).resume(lineage)
        assert (result.status, result.error, result.state.log) == ("completed", None, ["a", "b", "c"])
