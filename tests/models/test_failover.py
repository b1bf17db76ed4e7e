"""FailoverModel and HedgeModel: who answers, whose failure is told, and what is left of those who don't."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from support.openai_server import LITELLM_WARNS, Answer, fails, openai_server, says

from graphagent.agents.assembler import Assembler, assemble
from graphagent.agents.model import Delta, Model, ModelRequest
from graphagent.errors import ModelError
from graphagent.messages import Message
from graphagent.models import FailoverModel, HedgeModel, LiteLLMModel, ScriptedModel

pytestmark = [pytest.mark.anyio, *LITELLM_WARNS]
HI = ModelRequest((Message.user("hi"),))
BUSY = ModelError("busy", kind="rate_limit", retryable=True)
DENIED = ModelError("denied", kind="auth")


class Stuck:
    """A model that says what it is given and then nothing more; it knows whether its stream was closed."""

    name = "stuck"
    context_window: int | None = 50

    def __init__(self, *said: Delta) -> None:
        self.said = said
        self.asked = False
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self.asked = True
        try:
            for delta in self.said:
                yield delta
            await anyio.sleep_forever()
        finally:
            self.closed = True


async def text_of(model: Model) -> str:
    """The text of the answer."""
    return assemble([delta async for delta in model.stream(HI)]).message.text


def named(name: str, *items: Any) -> ScriptedModel:
    """A scripted model with a name."""
    return ScriptedModel(items, name=name)


# -- failover -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [BUSY, DENIED, RuntimeError("a fault of an adapter")])
async def test_s079_the_next_model_takes_over_before_the_first_piece(failure: Exception) -> None:
    """spec/services 79: a model that fails before it says anything is followed by the next one."""
    assert await text_of(FailoverModel([named("a", failure), named("b", BUSY), named("c", "Hello")])) == "Hello"


async def test_s079_after_the_first_piece_a_failure_is_passed_on() -> None:
    """spec/services 79: a failure after the first piece is raised as it is, and nobody else is asked."""
    lost = ModelError("lost", kind="stream_error")
    other = named("b", "Hello")
    assembler = Assembler()
    with pytest.raises(ModelError) as caught:  # noqa: PT012
        async for delta in FailoverModel([named("a", ["Hel", lost]), other]).stream(HI):
            assembler.add(delta)
    assert caught.value is lost
    assert (assembler.reply().message.text, other.requests) == ("Hel", [])


@pytest.mark.parametrize(
    ("failures", "kind", "retryable"),
    [((BUSY, BUSY), "rate_limit", True), ((DENIED, BUSY), "api_error", True), ((DENIED, DENIED), "auth", False)],
)
async def test_all_models_fail(failures: tuple[ModelError, ModelError], kind: str, retryable: bool) -> None:
    """If all fail, one error names each model with its failure and has them as its cause."""
    model = FailoverModel([named("a", failures[0]), named("b", failures[1])])
    with pytest.raises(ModelError, match=rf"none of 2 model.*'a': {failures[0]}; 'b': {failures[1]}") as caught:
        await text_of(model)
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert caught.value.__cause__.exceptions == failures


@pytest.mark.parametrize("kind", [FailoverModel, HedgeModel])
def test_a_group_of_models(kind: Any) -> None:
    """A group has the smallest known window and the first one's name; an empty one is refused."""
    group = kind(
        [ScriptedModel([], name="a"), ScriptedModel([], context_window=9), ScriptedModel([], context_window=5)]
    )
    assert (group.name, group.context_window) == ("a", 5)
    assert kind([ScriptedModel([])], name="mine").name == "mine"
    assert kind([ScriptedModel([])]).context_window is None
    with pytest.raises(ValueError, match="at least one model is needed"):
        kind([])
    with pytest.raises(ValueError, match="none may be None"):
        kind([ScriptedModel([]), None])


async def test_failover_over_real_sockets() -> None:
    """A provider that refuses is followed by one that answers."""
    async with openai_server([fails(401, "bad key")]) as one, openai_server([says("Hel", "lo")]) as other:
        models = [LiteLLMModel("openai/small", api_base=server.url, api_key="k") for server in (one, other)]
        assert await text_of(FailoverModel(models)) == "Hello"


async def test_a_reader_that_stops_closes_the_model_that_answers() -> None:
    """Closing the stream of a group closes that of the model that was answering."""
    stuck = Stuck(Delta("Hel"))
    for group in (FailoverModel([named("a", BUSY), stuck]), HedgeModel([stuck])):
        stuck.closed = False
        stream = group.stream(HI)
        assert (await anext(stream)).text == "Hel"
        await stream.aclose()  # type: ignore[attr-defined]
        assert stuck.closed


# -- hedge ----------------------------------------------------------------------------------------------------


async def test_s080_a_quick_second_model_wins_and_the_first_is_cancelled() -> None:
    """spec/services 80: the first model says nothing, the second answers; the first is cancelled and closed."""
    stuck = Stuck()
    assert await text_of(HedgeModel([stuck, named("b", ["Hel", "lo"])], delay=0.001)) == "Hello"
    assert (stuck.asked, stuck.closed) == (True, True)


async def test_s080_over_real_sockets_the_slow_provider_is_left() -> None:
    """spec/services 80: the connection to the provider that is too slow is closed."""
    async with openai_server([Answer(then="hold")]) as slow, openai_server([says("Hel", "lo")]) as quick:
        models = [LiteLLMModel("openai/small", api_base=server.url, api_key="k") for server in (slow, quick)]
        assert await text_of(HedgeModel(models, delay=0.5)) == "Hello"
        with anyio.fail_after(5):
            await slow.left.wait()


async def test_a_quick_first_model_is_alone() -> None:
    """A model that answers before the delay is over keeps the others from being asked."""
    other = named("b", "no")
    assert await text_of(HedgeModel([named("a", "Hello"), other], delay=60)) == "Hello"
    assert other.requests == []


async def test_a_failure_starts_the_next_model_early() -> None:
    """With nobody left in the race the next model starts at once, whatever the delay."""
    with anyio.fail_after(5):
        assert (
            await text_of(HedgeModel([named("a", BUSY), named("b", DENIED), named("c", "Hello")], delay=60)) == "Hello"
        )


async def test_usage_alone_wins_no_race() -> None:
    """A piece without content does not win; it is kept if its model does."""
    empty = named("a", "")
    assert await text_of(HedgeModel([empty, named("b", "Hello")], delay=60)) == "Hello"


async def test_all_of_a_race_fail() -> None:
    """If all fail, one error names each, in the order of the models."""
    with pytest.raises(ModelError, match=r"none of 3 model.*'a': busy; 'b': it answered nothing; 'c': denied"):
        await text_of(HedgeModel([named("a", BUSY), named("b", ""), named("c", DENIED)], delay=0))


async def test_the_rest_of_the_winner_is_passed_on() -> None:
    """After the race the winner goes on as it would alone, its failure included."""
    with pytest.raises(ModelError, match="busy"):
        await text_of(HedgeModel([named("a", ["Hel", BUSY])]))


async def test_a_cancelled_race_leaves_nothing_open() -> None:
    """Cancelling during the race closes all streams."""
    models = [Stuck(), Stuck()]
    with anyio.move_on_after(0.05):
        await text_of(HedgeModel(models, delay=0))
    assert [(model.asked, model.closed) for model in models] == [(True, True)] * 2


@pytest.mark.parametrize("delay", [-1, [0.1], [0.2, 0.1], [-0.1, 0.1]])
def test_delays_must_fit(delay: Any) -> None:
    """Delays are one for each model but the first, and never descend."""
    with pytest.raises(ValueError, match="delay"):
        HedgeModel([ScriptedModel([])] * 3, delay=delay)
