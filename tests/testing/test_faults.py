"""The fault-injection harness: it finds what is wrong with a graph, and nothing where nothing is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from graphagent import END, Executor, MemoryCheckpoints, NodeContext, SqlCheckpoints, StateGraph, append
from graphagent.errors import LineageBusy, SaveError, UsageError
from graphagent.testing import checkpoint_store_suite
from graphagent.testing.faults import KINDS, Crash, FaultyStore, Kind, count_writes, every_write

pytestmark = pytest.mark.anyio


class Order(BaseModel):
    log: Annotated[list[str], append] = []
    approved: str = ""


class Shop:
    """A shop with an outside: `sent` is the mail that went out. `send(state, ctx)` is the node under test."""

    def __init__(self, send: Callable[[Shop, NodeContext], Any]) -> None:
        self.sent: list[str] = []
        self.keys: set[str] = set()
        self._send = send

    def mail(self, text: str = "parcel") -> str:
        self.sent.append(text)
        return text

    def once(self, key: str) -> str:
        """Mail by a service that knows a key it has seen."""
        if key not in self.keys:
            self.keys.add(key)
            self.mail()
        return key

    def executor(self, store: Any) -> Executor:
        async def pack(state: Order) -> dict[str, Any]:
            return {"log": ["packed"]}

        async def send(state: Order, ctx: NodeContext) -> dict[str, Any]:
            await self._send(self, ctx)
            return {"log": ["sent"]}

        builder = StateGraph(Order).add_node("pack", pack).add_node("label", pack).add_node("send", send)
        builder.add_node("start", lambda s: None, inline=True).set_entry_point("start")
        builder.add_edge("start", "pack").add_edge("start", "label").add_join_edge(["pack", "label"], "ask")
        builder.add_interrupt_node("ask", prompt="send it?", answer_type=str, key="approved")
        return Executor(builder.add_edge("ask", "send").add_edge("send", END).compile(), store)


async def without_a_ledger(shop: Shop, ctx: NodeContext) -> None:
    """Acts without recording it."""
    shop.mail()


async def unguarded(shop: Shop, ctx: NodeContext) -> None:
    """Records what it does, with no way to find out later."""
    await ctx.step("mail", shop.mail)


async def idempotent(shop: Shop, ctx: NodeContext) -> None:
    """Hands on a key, by which a repeat does no harm."""
    await ctx.step("mail", shop.once, ctx.idempotency_key("mail"), idempotent=True)


async def wrong_key(shop: Shop, ctx: NodeContext) -> None:
    """Hands on a key that is another one in every run."""
    await ctx.step("mail", shop.once, ctx.run_id, idempotent=True)


async def reconciled(shop: Shop, ctx: NodeContext) -> None:
    """Can find out whether it was done."""
    key = ctx.idempotency_key("mail")
    await ctx.step("mail", shop.once, key, reconcile=lambda: shop.once(key))


async def trials(send: Any, kinds: Any = KINDS, **options: Any) -> Any:
    """The report on a shop."""
    shop = Shop(send)
    return await every_write(
        shop.executor, {}, answers={"approved": "yes"}, kinds=kinds, effects=lambda: shop.sent, **options
    )


@pytest.mark.parametrize("send", [idempotent, reconciled])
async def test_a_graph_that_keeps_its_promises_holds_at_every_write(send: Any) -> None:
    """No fault of any kind loses or repeats an effect that has a key or a reconcile function."""
    report = await trials(send)
    report.check()
    assert len(report.trials) > 50
    assert str(report) == f"{len(report.trials)} faults: {len(report.trials)} held, 0 with an effect of unknown " + (
        "outcome, 0 broken"
    )


@pytest.mark.parametrize("send", [without_a_ledger, wrong_key])
async def test_a_seeded_double_effect_is_found(send: Any) -> None:
    """An effect outside the ledger, and one whose key changes from run to run, are reported with fault and count."""
    report = await trials(send, ("crash_before", "crash_after"))
    assert report.by("broken")
    with pytest.raises(AssertionError, match=r"effect 'parcel' happened 2 times instead of 1"):
        report.check(unknown=True)
    assert "append root" in " ".join(trial.fault for trial in report.by("broken")) or send is wrong_key


async def test_an_unguarded_effect_is_unknown_between_claim_and_commit() -> None:
    """EffectUnknown for exactly the crashes after the claim is stored and before the commit is."""
    report = await trials(unguarded, ("crash_before", "crash_after"))
    claim, commit = "claim_effect root/5.0 mail.0", "commit_effect root/5.0 mail.0"
    found = [trial.fault.partition(" at ")[0] + trial.fault.partition("(")[2] for trial in report.by("unknown")]
    assert found == [f"crash_after{claim})", f"crash_before{commit})"]
    assert report.by("broken") == []
    report.check(unknown=True)
    with pytest.raises(AssertionError, match="outcome was never recorded"):
        report.check()


async def test_a_final_state_that_differs_is_found() -> None:
    """State that a process keeps for itself is lost with it, and the fields that differ are named."""

    def make_executor(store: Any) -> Executor:
        private: list[str] = []

        async def first(state: Order) -> None:
            private.append("noted")

        async def second(state: Order) -> dict[str, Any]:
            return {"log": list(private)}

        builder = StateGraph(Order).add_node("first", first).add_node("second", second).set_entry_point("first")
        return Executor(builder.add_edge("first", "second").add_edge("second", END).compile(), store)

    report = await every_write(make_executor)
    with pytest.raises(AssertionError, match=r"the final state differs: 'log' is \[\] instead of \['noted'\]"):
        report.check()


@pytest.mark.parametrize("url", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_the_store_may_be_a_database(url: str, tmp_path: Any, request: pytest.FixtureRequest) -> None:
    """Every trial opens the user's own kind of store."""
    where = f"{tmp_path}/f.db" if url == "sqlite" else request.getfixturevalue("shared_postgres_url")
    report = await trials(reconciled, ("crash_after",), open_store=lambda: SqlCheckpoints(where))
    report.check()


@pytest.mark.parametrize(
    ("kind", "written", "error"),
    [("crash_before", 0, Crash), ("crash_after", 1, Crash), ("fail", 0, SaveError), ("lost", 1, SaveError)],
)
async def test_each_kind_of_fault(kind: Kind, written: int, error: type[BaseException]) -> None:
    """What is stored, and what the caller gets, at each kind of fault."""
    inner = MemoryCheckpoints()
    store = FaultyStore(inner, at=1, kind=kind)
    with pytest.raises(error, match=r"fault at write 1 \(acquire\)"):
        await store.acquire("x", "run")
    if not written:
        await inner.acquire("x", "other")
    else:
        with pytest.raises(LineageBusy):
            await inner.acquire("x", "other")


async def test_a_delay_only_takes_time() -> None:
    """A delayed write is made."""
    store = FaultyStore(MemoryCheckpoints(), at=1, kind="delay", seconds=0.001)
    lease = await store.acquire("x", "run")
    assert lease.lineage == "x"


async def test_a_crashed_process_makes_no_calls() -> None:
    """After the crash reads and writes raise Crash; burying it frees its lineages for others."""
    inner = MemoryCheckpoints()
    store = FaultyStore(inner, at=2, kind="crash_before")
    lease = await store.acquire("x", "run")
    for call in (store.release(lease), store.release(lease), store.history("x"), store.delete("x")):
        with pytest.raises(Crash):
            await call
    with pytest.raises(LineageBusy):
        await inner.acquire("x", "other")
    await store.bury()
    await inner.acquire("x", "other")


async def test_writes_are_counted() -> None:
    """`count_writes` counts what `FaultyStore.writes` lists."""
    shop = Shop(unguarded)
    store = FaultyStore(MemoryCheckpoints())
    await shop.executor(store).run({}, lineage="a")
    first, kept, second = store.writes[:3]
    assert (first, kept.split()[0], second) == ("acquire", "save_graph", "append root/0 input")
    assert "put_activations root/1.0,1" in store.writes
    assert await count_writes(lambda s: shop.executor(s).run({}, lineage="a")) == len(store.writes)


async def test_misuse_is_told() -> None:
    """An unknown kind, a missing answer, a run that doesn't complete and a store that isn't used are errors."""
    with pytest.raises(UsageError, match=r"no kind of fault 'crash_bevore': did you mean 'crash_before'"):
        FaultyStore(MemoryCheckpoints(), kind="crash_bevore")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"no answer is given for 'approved': did you mean 'aproved'"):
        await every_write(Shop(unguarded).executor, {}, answers={"aproved": "yes"})

    async def breaks(shop: Shop, ctx: NodeContext) -> None:
        raise ValueError("no stamps")

    with pytest.raises(UsageError, match=r"must complete, and ended 'failed'.*no stamps"):
        await every_write(Shop(breaks).executor, {}, answers={"approved": "yes"})
    unused = MemoryCheckpoints()
    report = await every_write(lambda store: Shop(reconciled).executor(unused), {}, answers={"approved": "yes"})
    with pytest.raises(AssertionError, match="no write was made"):
        report.check()


TestFaultyStoreIsAStore = checkpoint_store_suite(lambda: FaultyStore(MemoryCheckpoints()))
