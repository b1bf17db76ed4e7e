"""RecordedModel: what is recorded is replayed, and what is not on file says what differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.openai_server import LITELLM_WARNS, openai_server, says

from graphagent.agents.assembler import assemble
from graphagent.agents.model import Delta, GenerationConfig, Model, ModelRequest, ToolCallDelta, ToolSpec
from graphagent.errors import ModelError
from graphagent.ids import fresh_id
from graphagent.ledger import TokenUsage
from graphagent.messages import Message
from graphagent.models import LiteLLMModel, RecordedModel, ScriptedModel
from graphagent.models.cassette import Cassette

pytestmark = [pytest.mark.anyio, *LITELLM_WARNS]
TOOL = ToolSpec("search", "Searches.", {"type": "object", "properties": {"q": {"type": "string"}}})


def asks(*texts: str, **fields: Any) -> ModelRequest:
    """A request of user messages, each with an id of its own."""
    return ModelRequest(tuple(Message.user(text, id=fresh_id()) for text in texts), **fields)


async def deltas_of(model: Model, request: ModelRequest) -> list[Delta]:
    """All deltas of an answer."""
    return [delta async for delta in model.stream(request)]


async def text_of(model: Model, *texts: str, **fields: Any) -> str:
    """The text of an answer."""
    return assemble(await deltas_of(model, asks(*texts, **fields))).message.text


def lines_of(path: Path) -> list[str]:
    """The lines of a cassette."""
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the cassette is."""
    return tmp_path / "tapes" / "talk.jsonl"


async def test_a_recorded_talk_is_replayed_offline(path: Path) -> None:
    """Every delta comes back as it was, in pieces, without a model; ids of messages make no difference."""
    script: list[Any] = [
        "Hello",
        {"content": "I look", "reasoning": "hm", "tool_calls": [{"name": "search", "arguments": {"q": "日本\u2028x"}}]},
        [Delta("a", usage=TokenUsage(input_tokens=3)), Delta(tool_calls=(ToolCallDelta(None, None, "f"),))],
    ]
    requests = [
        asks("one"),
        asks("one", "two", tools=(TOOL,), output_schema={"type": "object"}, tool_choice="search"),
        asks("one", "\ud800 three", config=GenerationConfig(temperature=0.0, stop=("x",), extra={"a": {"b": 1}})),
    ]
    recorder = RecordedModel(ScriptedModel(script, pieces=2), path, "record")
    heard = [await deltas_of(recorder, request) for request in requests]
    replayed = RecordedModel(None, path)
    again = [asks(*(m.text for m in r.messages), **{f: getattr(r, f) for f in FIELDS}) for r in requests]
    assert [await deltas_of(replayed, request) for request in again] == heard
    assert len(heard[0]) > 2


FIELDS = ("tools", "output_schema", "config", "tool_choice")


async def test_replay_never_asks_the_model(path: Path) -> None:
    """In replay the model is there for its name and window only."""
    await text_of(RecordedModel(ScriptedModel(["a"]), path, "record"), "one")
    model = ScriptedModel([], name="real", context_window=7)
    replay = RecordedModel(model, path, "replay")
    assert await text_of(replay, "one") == "a"
    assert (replay.name, replay.context_window, model.requests) == ("real", 7, [])


async def test_equal_requests_get_their_answers_in_order(path: Path) -> None:
    """The same request twice gets both answers, in recorded order; a third time is a divergence."""
    recorder = RecordedModel(ScriptedModel(["a", "b"]), path, "record")
    assert [await text_of(recorder, "one") for _ in range(2)] == ["a", "b"]
    replay = RecordedModel(None, path)
    assert [await text_of(replay, "one") for _ in range(2)] == ["a", "b"]
    with pytest.raises(ModelError, match=r"request 3 .* it 2 time.*and came once more"):
        await text_of(replay, "one")


DIVERGENCES: list[tuple[str, ModelRequest, str]] = [
    ("text", asks("one", "2"), 'nearest is call 2: message 1 was .*"two".* and is .*"2"'),
    ("more", asks("one", "two", "three"), 'nearest is call 2: message 2 is new: .*"three"'),
    ("less", asks(), "is missing"),
    ("tool", asks("one", tools=(TOOL,)), "nearest is call 1: tool 'search' is new"),
    ("config", asks("one", config=GenerationConfig(seed=1)), r'call 1: config was \{\} and is \{"seed": 1\}'),
    ("schema", asks("one", output_schema={}), "call 1: output schema is new"),
    ("choice", asks("one", tool_choice="none"), 'call 1: tool choice is new: "none"'),
]


@pytest.mark.parametrize(("request_", "told"), [row[1:] for row in DIVERGENCES], ids=[row[0] for row in DIVERGENCES])
async def test_a_divergence_says_what_differs(path: Path, request_: ModelRequest, told: str) -> None:
    """A request that is not on file is an error that names the nearest recorded one and the first difference."""
    recorder = RecordedModel(ScriptedModel(["a", "b"]), path, "record")
    await text_of(recorder, "one")
    await text_of(recorder, "one", "two")
    with pytest.raises(ModelError, match=told) as caught:
        await deltas_of(RecordedModel(None, path), request_)
    assert (caught.value.kind, str(path) in str(caught.value)) == ("invalid_request", True)


async def test_by_order_a_changed_prompt_replays(path: Path) -> None:
    """With `match="order"` the n-th request gets the n-th answer; one too many is a divergence."""
    recorder = RecordedModel(ScriptedModel(["a", "b"]), path, "record")
    await text_of(recorder, "one")
    await text_of(recorder, "two")
    replay = RecordedModel(None, path, match="order")
    assert [await text_of(replay, "ONE"), await text_of(replay, "TWO")] == ["a", "b"]
    with pytest.raises(ModelError, match=r"2 call.* are on it and this is request 3"):
        await text_of(replay, "three")


async def test_auto_records_what_is_not_on_file(path: Path) -> None:
    """`auto` asks the model for what is new only, and has it the next time."""
    await text_of(RecordedModel(ScriptedModel(["a"]), path, "auto"), "one")
    model = ScriptedModel(["b"])
    again = RecordedModel(model, path, "auto")
    assert [await text_of(again, "one"), await text_of(again, "two")] == ["a", "b"]
    assert len(model.requests) == 1
    last = RecordedModel(None, path)
    assert [await text_of(last, "two"), await text_of(last, "one")] == ["b", "a"]


async def test_record_begins_anew(path: Path) -> None:
    """`record` forgets what the file held."""
    for text in ("a", "b"):
        await text_of(RecordedModel(ScriptedModel([text]), path, "record"), "one")
    assert await text_of(RecordedModel(None, path), "one") == "b"
    assert len(lines_of(path)) == 3  # the message, the config, the call


async def test_a_failure_is_replayed(path: Path) -> None:
    """A recorded failure comes back with its kind, after what was said before it."""
    failure = ModelError("lost", kind="stream_error", retryable=True)
    recorder = RecordedModel(ScriptedModel([["Hel", failure]]), path, "record")
    with pytest.raises(ModelError, match="lost"):
        await text_of(recorder, "one")
    stream = RecordedModel(None, path).stream(asks("one"))
    assert (await anext(stream)).text == "Hel"
    with pytest.raises(ModelError, match="lost") as caught:
        await anext(stream)
    assert (caught.value.kind, caught.value.retryable) == ("stream_error", True)


async def test_an_answer_that_was_left_is_not_recorded(path: Path) -> None:
    """Half an answer, left by its reader, is not on file."""
    stream = RecordedModel(ScriptedModel([["a", "b"]]), path, "record").stream(asks("one"))
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="no call on cassette"):
        await text_of(RecordedModel(None, path), "one")


async def test_a_long_talk_is_written_once(path: Path) -> None:
    """The file grows by what is new: 50 turns that each send the whole history hold each message once."""
    recorder = RecordedModel(ScriptedModel(lambda _: "ok"), path, "record")
    texts = [f"message number {n} " * 20 for n in range(50)]
    for n in range(50):
        await text_of(recorder, *texts[: n + 1])
    written = "".join(lines_of(path))
    assert [written.count(f"message number {n} ") for n in range(50)] == [20] * 50


@pytest.mark.parametrize("line", ["{", "[]", '{"deltas": []}', '{"call": {}, "deltas": [{"colour": 1}]}'])
async def test_a_damaged_cassette(path: Path, line: str) -> None:
    """A line that can't be read is a typed error with its number."""
    await text_of(RecordedModel(ScriptedModel(["a"]), path, "record"), "one")
    with path.open("a") as file:
        file.write(line)
    with pytest.raises(ModelError, match="line 4 of cassette"):
        await text_of(RecordedModel(None, path), "one")


def test_what_can_be_asked_of_a_cassette(path: Path) -> None:
    """A mode that there isn't, and recording without a model, are refused at once."""
    with pytest.raises(ValueError, match="'record', 'replay' or 'auto', not 'play'"):
        RecordedModel(None, path, "play")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a model is needed"):
        RecordedModel(None, path, "auto")


async def test_a_real_stream_is_recorded(path: Path) -> None:
    """What came over a socket is replayed after the server is gone."""
    async with openai_server([says("Hel", "lo")]) as server:
        model = LiteLLMModel("openai/small", api_base=server.url, api_key="secret")
        assert await text_of(RecordedModel(model, path, "record"), "hi") == "Hello"
    assert await text_of(RecordedModel(model, path), "hi") == "Hello"
    assert "secret" not in "".join(lines_of(path))


PIECES = st.builds(
    ToolCallDelta, st.none() | st.integers(0, 9), st.none() | st.text(), st.none() | st.text(), st.text(max_size=9)
)
DELTAS = st.builds(
    Delta,
    st.text(max_size=9),
    st.text(max_size=9),
    st.lists(PIECES, max_size=2).map(tuple),
    st.none() | st.sampled_from(["stop", "length"]),
    st.none() | st.builds(TokenUsage, input_tokens=st.integers(0, 9), output_tokens=st.integers(0, 9)),
)


@given(st.lists(DELTAS, max_size=4), st.text(max_size=9))
def test_any_delta_comes_back_equal(tmp_path_factory: pytest.TempPathFactory, deltas: list[Delta], text: str) -> None:
    """Whatever a provider sends is the same after it was written and read."""
    path = tmp_path_factory.mktemp("tape") / "any.jsonl"
    Cassette(path).add(asks(text), tuple(deltas), None)
    read = Cassette(path)
    read.load()
    [call] = read.calls
    assert list(call.deltas) == deltas
    for line in path.read_text(encoding="utf-8", errors="surrogatepass").strip("\n").split("\n"):
        json.loads(line)
