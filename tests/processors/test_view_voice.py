"""How the history speaks: other agents are retold, thinking is left out, files are named."""

from __future__ import annotations

from typing import Any

import pytest
from support.talks import Talk, faults, short

from graphagent.errors import AgentError
from graphagent.messages import Message
from processors import Projection, Voice, assemble, default_pipeline


def told(talk: Talk, text: str = "go", **options: Any) -> list[str]:
    """What a voice makes of a talk."""
    return talk.seen(text, default_pipeline(voice=Voice(**options)))


def test_c065_another_agent_is_retold() -> None:
    """With prefix one message of the user; two in a row are merged, ordinary messages of the user are not."""
    talk = Talk().user("go").user("and on").bot("hi", author="b")
    assert told(talk) == ["user go", "user and on", "user For context: [b] said: hi"]
    talk.bot("there", author="c")
    assert told(talk)[2:] == ["user For context: [b] said: hi\n\nFor context: [c] said: there"]


def test_the_users_own_words_are_never_joined() -> None:
    """A message of the user that begins like a retold one is not: it stands alone."""
    talk = Talk().user("go").user("For context: I am new").bot("hi", author="b")
    assert told(talk)[1:] == ["user For context: I am new", "user For context: [b] said: hi"]


def test_c065_without_prefix() -> None:
    """Prefix off: the raw words in the user's role, not merged."""
    talk = Talk().user("go").bot("hi", author="b").bot("", "c1", author="b").results("c1", author="b")
    assert told(talk, prefix=False)[1:] == [
        "user hi",
        'user Tool `tool_c1` called with parameters: {"x": "c1"}',
        "user ok",
    ]


@pytest.mark.parametrize(
    ("preserve", "branch", "role"),
    [("all", "x", "assistant"), ("same_branch", "bot/b", "assistant"), ("same_branch", "x", "user")],
)
def test_c065_own_words_can_be_kept(preserve: str, branch: str, role: str) -> None:
    """Other agents, or those above and below on the same branch, keep their role if the policy says so."""
    talk = Talk().user("go").bot("hi", author="b", branch=branch)
    assert told(talk, preserve=preserve)[1].split()[0] == role


def test_c066_calls_and_results_of_others() -> None:
    """A result with content is told as said; text with calls keeps the text; bare calls and empty results in words."""
    talk = Talk().user("go").bot("I look", "c1", author="b").results("c1", author="b", text="found")
    talk.bot("", "c2", author="b").results("c2", author="b", text="")
    assert told(talk)[1].split("\n\n") == [
        "user For context: [b] said: I look",
        "For context: [b] said: found",
        'For context: [b] called tool `tool_c2` with parameters: {"x": "c2"}',
        "For context: [b] `c2` tool returned nothing",
    ]


def test_parts_of_others_are_carried_over() -> None:
    """Content parts stay parts, with a text part before them that says whose they are; merging joins parts."""
    image = {"type": "image_url", "image_url": {"url": "x"}}
    talk = Talk().user("go").bot("look", author="b").event(Message.user([image]), author="b", invocation_id="i9")
    found = assemble(talk.run(talk.reader("go")))
    assert found[1].content == [
        {"type": "text", "text": "For context: [b] said: look"},
        {"type": "text", "text": "For context:"},
        {"type": "text", "text": "[b] said:"},
        image,
    ]
    raw = assemble(talk.run(talk.reader("go"), default_pipeline(voice=Voice(prefix=False))))
    assert raw[2].content == [image]


def test_a_result_from_outside_stays_with_its_call() -> None:
    """The call of another agent is retold, so is the result that the user brought for it: no half of a pair is left."""
    talk = Talk(request_id="r0", invocation_id="i0").user("go")
    talk.bot("", "c1", author="b", long_running_tool_ids=frozenset({"c1"}))
    talk.turn(request_id="r1", invocation_id="i1").results("c1", author="user", text="42").user("and?")
    found = assemble(talk.run(talk.reader("and?")))
    assert faults(found) == []
    assert short(found)[1].endswith("For context: [user] said: 42")


def test_what_the_agent_was_asked_is_never_retold() -> None:
    """A task that another agent gave is the message of this one: it stays as it is."""
    talk = Talk().event(Message.user("do it"), author="boss")
    assert told(talk, "do it") == ["user do it"]


@pytest.mark.parametrize(
    ("mode", "kept"),
    [
        ("discard_previous_turns", ["", "with tools", "now"]),
        ("keep_all", ["old", "with tools", "now"]),
        ("discard_all", ["", "", ""]),
    ],
)
def test_c071_thinking(mode: Any, kept: list[str]) -> None:
    """Thinking of an earlier request goes unless that request used tools; or all stays; or all goes."""
    talk = Talk(request_id="r0").user("a").bot("b", reasoning="old")
    talk.turn(request_id="r1").user("c").bot("", "c1", reasoning="with tools").results("c1")
    talk.turn(request_id="r2").user("go").bot("d", reasoning="now")
    found = assemble(talk.run(talk.reader("go"), default_pipeline(voice=Voice(reasoning=mode))))
    assert [message.reasoning or "" for message in found if message.role == "assistant"] == kept


def test_c071_nothing_but_thinking() -> None:
    """An assistant message with only thinking is dropped, its own and another agent's."""
    talk = Talk().user("go").bot("", reasoning="hm").bot("", reasoning="hm", author="b")
    projection = talk.run(talk.reader("go"))
    assert short(assemble(projection)) == ["user go"]
    assert [(note.action, note.event) for note in projection.notes if note.step == "voice"] == [
        ("dropped", "e2"),
        ("dropped", "e3"),
    ]


def test_rewrite() -> None:
    """A hook may change the message of each line; the stored event stays."""
    talk = Talk().user("my number is 123")
    voice = Voice(
        rewrite=lambda line: line.message.model_copy(update={"content": line.message.text.replace("123", "*")})
    )
    assert talk.seen("my number is 123", default_pipeline(voice=voice)) == ["user my number is *"]
    assert talk.session.events[0].text == "my number is 123"


def test_files_are_named_once() -> None:
    """A message with files says which: at most 20 names; not again if it says so already."""
    parts: list[dict[str, Any]] = [{"type": "file", "file": {"filename": f"f{n}.txt"}} for n in range(22)]
    message = Message.user([{"type": "text", "text": "see"}, *parts, {"type": "file", "file_id": "x"}])
    talk = Talk().event(message, author="user")
    found = assemble(talk.run(talk.reader(message=message)))[0]
    names = ", ".join(f"f{n}.txt" for n in range(20))
    assert isinstance(found.content, list)
    assert found.content[0] == {"type": "text", "text": f"Attached files (23): {names} (+3 more)"}
    again = Talk().event(found, author="user")
    assert assemble(again.run(again.reader(message=found))) == (found,)


def test_policies_say_what_they_take() -> None:
    """An unknown mode is a typed error with the known ones."""
    with pytest.raises(AgentError, match="'discard_previous_turns', 'keep_all', 'discard_all'"):
        Voice(reasoning="some")  # type: ignore[arg-type]


def test_a_step_is_any_pure_function() -> None:
    """A chain is made of functions: one of the user's stands beside the others."""
    talk = Talk().user("go")

    def shout(projection: Projection) -> Projection:
        lines = [line._replace(message=Message.user(line.message.text.upper())) for line in projection.lines]
        return projection.noted([], lines=tuple(lines))

    pipeline = default_pipeline()
    assert talk.seen("go", type(pipeline)((*pipeline, shout))) == ["user GO"]
