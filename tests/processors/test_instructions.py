"""The system message: placeholders, identity, plan, schema, time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.talks import short

from graphagent.errors import AgentError
from graphagent.messages import Message
from processors import Given, Instructions, Projection, Reader, Values, artifact_names, render

VALUES = Values(
    state={
        "name": "Ann",
        "n": 3,
        "list": ["ü", 1],
        "app:k": "A",
        "user:k": "U",
        "temp:k": "T",
        "empty": "",
        "none": None,
    },
    invocation={"k": "I"},
    runtime={"k": "R"},
    artifacts={"notes.txt": "N", "user:cv": "CV"},
)


@pytest.mark.parametrize(
    ("template", "expected", "unresolved"),
    [
        ("Hi {name}.", "Hi Ann.", ()),
        ("{n} {list}", '3 ["ü", 1]', ()),
        ("{app:k}{user:k}{temp:k}{invocation:k}{runtime:k}", "AUTIR", ()),
        ("{artifact.notes.txt} {artifact.user:cv}", "N CV", ()),
        ("[{gone?}{app:gone?}{artifact.gone?}{empty}]", "[]", ()),
        (
            "{gone} {app:gone} {artifact.gone}",
            "{gone} {app:gone} {artifact.gone}",
            ("{gone}", "{app:gone}", "{artifact.gone}"),
        ),
        ("{none} {none?}", "{none} ", ("{none}",)),
        ('{"a": 1} {} { name } {a b} {1}', '{"a": 1} {} { name } {a b} {1}', ()),
        ("{{name}}", "{{name}}", ()),
        ("{other:k}", "{other:k}", ()),
    ],
)
def test_placeholders(template: str, expected: str, unresolved: tuple[str, ...]) -> None:
    """Values by scope, JSON for what is no text, optional ones empty, unresolved ones as they are; JSON is none."""
    assert render(template, VALUES) == (expected, unresolved)


@settings(deadline=None)
@given(st.text(alphabet="{}?:.nameapprtifc ", max_size=40), st.text(max_size=10))
def test_any_text_can_be_rendered(template: str, value: str) -> None:
    """No text is an error; a value is never looked through for placeholders; without braces nothing changes."""
    rendered = render(template, Values(state={"name": value, "a": "{name}"}))
    assert isinstance(rendered.text, str)
    assert render("{a}", Values(state={"name": value, "a": "{name}"})).text == "{name}"
    if "{" not in template:
        assert rendered.text == template


def test_artifact_names() -> None:
    """The artifacts that a text asks for, each once, in order."""
    assert artifact_names("{artifact.b.txt} {artifact.a?} {artifact.b.txt} {name}") == ("b.txt", "a")


def system(policy: Instructions, *, given: Given | None = None, head: tuple[Message, ...] = ()) -> list[str]:
    """What stands before the history after this policy."""
    reader = Reader(agent="bot", description="Knows things.", now=86_400.0)
    start = Projection(reader=reader, state={"name": "Ann"}, given=given or Given(), head=head)
    return short(policy(start).head)


def test_the_order_of_the_system_message() -> None:
    """Identity, the global text, the agent's instruction, the schema, the time: one system message."""
    policy = Instructions(
        "Help {name}.", system="Be kind.", identity=True, output_schema={"type": "object"}, time_format="%Y-%m-%d"
    )
    (message,) = system(policy)
    assert message.split("\n\n") == [
        "system You are bot. Knows things.",
        "Be kind.",
        "Help Ann.",
        'Answer with one JSON value that satisfies this JSON schema, and nothing else:\n{\n  "type": "object"\n}',
        "The current time is: 1970-01-02 (UTC)",
    ]


def test_nothing_is_said_twice() -> None:
    """A second application changes nothing; a plan is known by its first 100 characters."""
    policy = Instructions("Help.", system="Be kind.", identity=True, planner=lambda p: "Plan. " * 40, time_format="%H")
    reader = Reader(agent="bot")
    once = policy(Projection(reader=reader))
    assert policy(once).head == once.head
    assert len(once.head) == 1
    other = Instructions(planner=lambda p: "Plan. " * 40 + "and more")
    assert other(once).head == once.head


def test_a_plan_is_a_system_message_of_its_own() -> None:
    """The planner's text comes behind system messages that are there; the instruction goes into the first."""
    policy = Instructions("Help.", planner=lambda p: f"Plan for {p.reader.agent}.")
    head = (Message.system("Old."), Message.user("example"))
    assert system(policy, head=head) == ["system Old.\n\nHelp.", "system Plan for bot.", "user example"]


def test_the_run_may_bring_its_own_instruction() -> None:
    """An instruction of the run takes the place of the agent's; a function may make the agent's."""
    policy = Instructions(lambda p: f"I am {p.reader.agent}.", system="Be kind.")
    assert system(policy) == ["system Be kind.\n\nI am bot."]
    assert system(policy, given=Given(instruction="Only {name}.")) == ["system Be kind.\n\nOnly Ann."]


def test_time_zones() -> None:
    """The time is told in the zone that is asked for; an unknown zone is an error."""
    assert system(Instructions(time_format="%H:%M", timezone="Asia/Shanghai")) == [
        "system The current time is: 08:00 (Asia/Shanghai)"
    ]
    with pytest.raises(AgentError, match="'Mars/Base', which is no zone"):
        Instructions(timezone="Mars/Base")


def test_unresolved_placeholders_are_noted() -> None:
    """A placeholder without a value leaves a note."""
    found = Instructions("{gone}")(Projection(reader=Reader())).notes
    assert [note.text for note in found] == ["placeholder '{gone}' has no value and stands as it is"]
