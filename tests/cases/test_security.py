"""Public fault reports about secrets (C241, C242): they are in no table, no event and no error.

A tool that received a secret is a node that has it in its state; skills and code execution are tested with the runner.
"""

from __future__ import annotations

import base64
import logging
from typing import Any

import pytest
from pydantic import BaseModel, SecretBytes, SecretStr
from support.tables import as_text

from graphagent import END, Executor, NodeContext, Send, SqlCheckpoints, StateGraph, Transient

pytestmark = pytest.mark.anyio
SECRET = "hunter2-tr0ub4dor"
FORMS = (SECRET, base64.b64encode(SECRET.encode()).decode(), SECRET.encode().hex())
EVERY_MODE = ("updates", "messages", "tasks", "checkpoints", "custom", "debug")


class Login(BaseModel):
    user: str = ""
    password: SecretStr | None = None


class Vault(BaseModel):
    key: SecretStr | None = None
    raw: SecretBytes | None = None
    login: Login = Login()
    loose: Any = None
    item: str = ""


class Xor:
    """A cipher for tests: hides the text, and nothing more."""

    def encrypt(self, data: bytes) -> bytes:
        return bytes(byte ^ 0x5A for byte in data)

    decrypt = encrypt


def hidden(text: str) -> bool:
    """True if the secret is in the text in none of its forms."""
    return not any(form in text for form in FORMS)


async def everything(executor: Executor, lineage: str, given: Any = None, **more: Any) -> tuple[Any, str]:
    """A run's result, and all that it says to anybody as one text."""
    told = []
    async with executor.stream(given or {}, lineage=lineage, modes=EVERY_MODE, **more) as events:
        async for event in events:
            told.append(repr(event))
    result = events.result
    assert result is not None
    errors = []
    error: BaseException | None = result.error
    while error is not None:
        errors.append(f"{error} {error!r}")
        error = error.__cause__
    return result, "\n".join([*told, *errors, result.reason, repr(result), repr(result.state)])


def writing(update: Any) -> StateGraph:
    """`write` returns the update, `use` fails and shows its state in the message."""

    async def write(state: Vault) -> Any:
        return update

    async def use(state: Vault) -> None:
        raise ValueError(f"the tool was given {state!r} and {state.key} and {state.login}")

    graph = StateGraph(Vault).add_node("write", write).add_node("use", use)
    return graph.set_entry_point("write").add_edge("write", "use").add_edge("use", END)


PLACES = {
    "field": {"key": SecretStr(SECRET)},
    "bytes": {"raw": SecretBytes(SECRET.encode())},
    "nested": {"login": Login(user="u", password=SecretStr(SECRET))},
    "undeclared": {"loose": {"inner": [SecretStr(SECRET)]}},
    "in a Send": Send("use", {"key": SecretStr(SECRET)}),
}


@pytest.mark.parametrize("place", list(PLACES))
async def test_c241_without_a_cipher_a_secret_is_refused(
    database: str, engine: Any, lineage: str, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A secret in the state fails the node that wrote it, and is neither stored, nor told, nor in an error or a log."""
    caplog.set_level(logging.DEBUG)
    async with SqlCheckpoints(database) as store:
        executor = Executor(writing(PLACES[place]).compile(strict=False), store, engine)
        result, told = await everything(executor, lineage)
    assert result.status == "failed"
    assert "Secret" in str(result.error)
    assert hidden(told)
    assert hidden(as_text(database))
    assert hidden(caplog.text)


@pytest.mark.parametrize("place", ["field", "bytes", "nested"])
async def test_c241_with_a_cipher_a_secret_is_encrypted(database: str, engine: Any, lineage: str, place: str) -> None:
    """With a cipher the run goes on; a tool that fails echoes only asterisks, and the tables hold cipher text."""
    async with SqlCheckpoints(database, cipher=Xor()) as store:
        executor = Executor(writing(PLACES[place]).compile(), store, engine)
        result, told = await everything(executor, lineage)
        assert "the tool was given" in str(result.error)
        assert hidden(told)
        assert hidden(as_text(database))
        state = await executor.state(lineage)
        found = state.key or state.raw or state.login.password
        assert found.get_secret_value() in (SECRET, SECRET.encode())
    async with SqlCheckpoints(database) as store:
        with pytest.raises(Exception, match="cipher") as raised:
            await Executor(writing({}).compile(), store, engine).state(lineage)
        assert hidden(str(raised.value))


async def test_c241_a_transient_secret_is_used_and_gone(database: str, engine: Any, lineage: str) -> None:
    """A secret in a `Transient` field can be used within the run and is written nowhere."""

    class State(BaseModel):
        key: Transient[SecretStr | None] = None
        n: int = 0

    used = []

    async def use(state: State, ctx: NodeContext) -> dict[str, Any]:
        used.append(state.key.get_secret_value() if state.key else None)
        return {"n": await ctx.step("use", lambda: 1)}

    graph = StateGraph(State).add_node("use", use).set_entry_point("use").set_finish_point("use").compile()
    async with SqlCheckpoints(database) as store:
        result, told = await everything(Executor(graph, store, engine), lineage, {"key": SecretStr(SECRET)})
    assert (result.status, used) == ("completed", [SECRET])
    assert hidden(told)
    assert hidden(as_text(database))


@pytest.mark.parametrize("where", ["update", "input", "edit", "two writers"])
async def test_c241_errors_about_a_secret_field_hide_it(store: Any, engine: Any, lineage: str, where: str) -> None:
    """A value that doesn't fit a secret field, or two writers of it, are named without being shown."""

    async def write(state: Vault) -> dict[str, Any]:
        return {} if where in ("edit", "input") else {"key": SecretStr(SECRET) if where == "two writers" else [SECRET]}

    graph = StateGraph(Vault).add_node("a", write).add_node("b", write).set_entry_point("a", "b")
    executor = Executor(graph.set_finish_point("a").set_finish_point("b").compile(), store, engine)
    if where == "input":
        with pytest.raises(Exception, match="'key'") as raised:
            await executor.run({"key": [SECRET]}, lineage=lineage)
        assert hidden(str(raised.value))
        return
    result = await executor.run({}, lineage=lineage)
    if where == "edit":
        with pytest.raises(Exception, match="'key'") as raised:
            await executor.edit(lineage, None, {"key": [SECRET]})
        assert hidden(str(raised.value))
        return
    assert result.status == "failed"
    texts = [str(error) for error in getattr(result.error, "exceptions", [result.error])]
    assert all("'key'" in text or "state.key" in text for text in texts)
    assert hidden(f"{texts} {result!r} {result.error!r}")


@pytest.mark.parametrize("answer_type", [SecretStr, SecretStr | None, Login], ids=["plain", "optional", "nested"])
async def test_c241_a_secret_is_no_answer(database: str, engine: Any, lineage: str, answer_type: Any) -> None:
    """Answers are stored with the checkpoint in clear, so asking for a secret is refused before anybody types one."""

    async def ask(state: Vault, ctx: NodeContext) -> None:
        await ctx.interrupt("password", "your password?", answer_type)

    graph = StateGraph(Vault).add_node("ask", ask).set_entry_point("ask").set_finish_point("ask").compile()
    async with SqlCheckpoints(database) as store:
        result = await Executor(graph, store, engine).run({}, lineage=lineage)
        assert result.status == "failed"
        assert "secret" in str(result.error).lower()
        assert "'password'" in str(result.error)


async def test_c241_the_result_of_an_effect(database: str, engine: Any, lineage: str) -> None:
    """An effect that returns a secret is recorded as done, without its result."""
    done = []

    def fetch() -> SecretStr:
        done.append(1)
        return SecretStr(SECRET)

    async def use(state: Vault, ctx: NodeContext) -> None:
        await ctx.step("fetch", fetch)

    graph = StateGraph(Vault).add_node("use", use).set_entry_point("use").set_finish_point("use").compile()
    async with SqlCheckpoints(database) as store:
        executor = Executor(graph, store, engine)
        result, told = await everything(executor, lineage)
        assert result.status == "failed"
        again = await executor.resume(lineage)
        assert (again.status, done) == ("failed", [1])
        assert hidden(f"{told}{again.error}")
    assert hidden(as_text(database))


# -- C242 --------------------------------------------------------------------------------------------


class Config:
    """What a caller hands to a run: a credential, and services made with it."""

    def __init__(self) -> None:
        self.api_key = SECRET
        self.services = {"client": object()}


@pytest.mark.parametrize("end", ["completed", "failed", "interrupted", "cancelled"])
async def test_c242_run_configuration_is_not_stored(database: str, engine: Any, lineage: str, end: str) -> None:
    """A credential given as `context` is there for nodes, in child graphs too, and in no table and no event.

    However the run ends; a resume has to be given it anew.
    """
    seen = []

    async def use(state: Vault, ctx: NodeContext) -> dict[str, Any]:
        seen.append(ctx.context and ctx.context.api_key)
        await ctx.step("call", lambda: "ok")
        if end == "failed":
            raise ValueError("the call failed")
        if end == "interrupted":
            await ctx.interrupt("go on", "?")
        if end == "cancelled":
            await executor.ask_to_cancel(lineage)
        return {"item": "used"}

    child = StateGraph(Vault).add_node("use", use).set_entry_point("use").set_finish_point("use").compile()
    graph = StateGraph(Vault).add_node("first", use if end == "none" else quiet).add_subgraph_node("child", child)
    graph.set_entry_point("first").add_edge("first", "child").add_node("last", quiet).add_edge("child", "last")
    async with SqlCheckpoints(database) as store:
        executor = Executor(graph.set_finish_point("last").compile(), store, engine)
        result, told = await everything(executor, lineage, context=Config())
        assert (result.status, seen) == (end, [SECRET])
        if end == "interrupted":
            await executor.resume(lineage, answer=True)
            assert seen == [SECRET, None]
    assert hidden(told)
    assert hidden(as_text(database))


async def quiet(state: Vault) -> None:
    """A node that writes nothing."""


async def test_c242_a_password_in_the_url_is_not_shown(lineage: str) -> None:
    """The password of the database is in no message about it."""
    store = SqlCheckpoints(f"postgresql://user:{SECRET}@127.0.0.1:1/nowhere")
    with pytest.raises(Exception, match="could not be") as raised:
        await store.acquire(lineage, "run")
    assert hidden(f"{raised.value} {raised.value!r} {store!r}")
    await store.aclose()
