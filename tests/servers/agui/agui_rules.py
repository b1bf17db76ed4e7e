"""What the protocol's own client demands of a stream, and what it makes of one: written from its description, apart
from the code of the server."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any

from ag_ui.core import Event
from pydantic import BaseModel, TypeAdapter

_EVENT: TypeAdapter[Any] = TypeAdapter(Event)
_PAIRS = {
    "TEXT_MESSAGE": ("START", "CONTENT", "END", "messageId"),
    "TOOL_CALL": ("START", "ARGS", "END", "toolCallId"),
    "REASONING_MESSAGE": ("START", "CONTENT", "END", "messageId"),
}
TERMINAL = ("RUN_FINISHED", "RUN_ERROR")


class Broken(AssertionError):
    """A rule is broken."""


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a stream of server-sent ones."""
    blocks = [block for block in text.split("\n\n") if block.strip()]
    lines = [line for block in blocks for line in block.split("\n") if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines]


def numbers_of(text: str) -> list[int]:
    """The numbers of the events that have one."""
    return [int(line[4:]) for line in text.split("\n") if line.startswith("id: ")]


def verified(events: Iterable[dict[str, Any]], *, whole: bool = True) -> list[dict[str, Any]]:
    """The events, if a client takes them in this order. `whole`: the last one ends the run. Raises Broken."""
    checked = list(events)
    open_now: set[tuple[str, str]] = set()
    state = "before"
    for place, event in enumerate(checked):
        _shape(event)
        kind = event["type"]
        if state == "failed" or (state == "finished" and kind not in ("RUN_ERROR", "RUN_STARTED")):
            raise Broken(f"{place}: {kind} after the end")
        if state == "before" and kind not in ("RUN_STARTED", "RUN_ERROR"):
            raise Broken(f"{place}: {kind} is first")
        if kind == "RUN_STARTED":
            if state == "running":
                raise Broken(f"{place}: a run within a run")
            state = "running"
        elif kind == "RUN_ERROR":
            state = "failed"
        elif kind == "RUN_FINISHED":
            if open_now:
                raise Broken(f"{place}: {open_now} is open at the end")
            state = "finished"
        else:
            _pairs(place, event, open_now)
    ends = [event["type"] for event in checked if event["type"] in TERMINAL]
    if whole and (len(ends) != 1 or checked[-1]["type"] not in TERMINAL):
        raise Broken(f"the ends are {ends}, the last event is {checked[-1:]}")
    return checked


def _pairs(place: int, event: dict[str, Any], open_now: set[tuple[str, str]]) -> None:
    kind = event["type"]
    for family, (first, middle, last, field) in _PAIRS.items():
        key = (family, str(event.get(field)))
        if kind == f"{family}_{first}":
            _enter(place, key, open_now)
        elif kind in (f"{family}_{middle}", f"{family}_{last}") and key not in open_now:
            raise Broken(f"{place}: {kind} of {key}, which is not open")
        elif kind == f"{family}_{last}":
            open_now.remove(key)
    if kind in ("REASONING_START", "STEP_STARTED"):
        _enter(place, (kind, str(event.get("messageId", event.get("stepName")))), open_now)
    if kind in ("REASONING_END", "STEP_FINISHED"):
        opener = "REASONING_START" if kind == "REASONING_END" else "STEP_STARTED"
        key = (opener, str(event.get("messageId", event.get("stepName"))))
        if key not in open_now:
            raise Broken(f"{place}: {kind} of {key}, which is not open")
        open_now.remove(key)


def _enter(place: int, key: tuple[str, str], open_now: set[tuple[str, str]]) -> None:
    if key in open_now:
        raise Broken(f"{place}: {key} is opened twice")
    open_now.add(key)


def _shape(event: dict[str, Any]) -> None:
    """Raises Broken for a type, a field or a null that the protocol doesn't have: its client drops those, or ends."""
    _known(_EVENT.validate_python(event), event["type"])
    for name, value in event.items():
        if value is None and name != "value":
            raise Broken(f"{event['type']}.{name} is null")


def _known(model: BaseModel, path: str) -> None:
    if model.model_extra:
        raise Broken(f"{path} has {sorted(model.model_extra)}, which the protocol doesn't know")
    for name in type(model).model_fields:
        value = getattr(model, name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, BaseModel):
                _known(one, f"{path}.{name}")


class Client:
    """What a client has after a stream: `messages` by their ids, in order; `calls`: results by their calls; `state`;
    `activities`."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self.calls: dict[str, str | None] = {}
        self.announced: set[str] = set()
        self.state: Any = None
        self.activities: dict[str, Any] = {}

    def read(self, events: Iterable[dict[str, Any]]) -> Client:
        """Take a stream in."""
        for event in events:
            take = getattr(self, f"_{event['type'].lower()}", None)
            if take is not None:
                take(event)
        return self

    @property
    def texts(self) -> list[str]:
        """What assistants have said, message by message."""
        return [one["text"] for one in self.messages.values() if one["role"] == "assistant" and one["text"]]

    def _text_message_start(self, event: dict[str, Any]) -> None:
        self.messages[event["messageId"]] = {"role": event.get("role", "assistant"), "text": ""}

    def _text_message_content(self, event: dict[str, Any]) -> None:
        self.messages[event["messageId"]]["text"] += event["delta"]

    def _tool_call_start(self, event: dict[str, Any]) -> None:
        assert event["toolCallId"] not in self.announced
        self.announced.add(event["toolCallId"])
        self.calls.setdefault(event["toolCallId"], None)

    def _tool_call_result(self, event: dict[str, Any]) -> None:
        self.calls[event["toolCallId"]] = event["content"]

    def _messages_snapshot(self, event: dict[str, Any]) -> None:
        said = [one for one in event["messages"] if one["role"] in ("user", "assistant")]
        self.messages = {one["id"]: {"role": one["role"], "text": one.get("content") or ""} for one in said}
        self.calls = {
            call["id"]: None for one in said if one["role"] == "assistant" for call in one.get("toolCalls") or ()
        }
        for one in event["messages"]:
            if one["role"] == "tool":
                assert one["toolCallId"] in self.calls
                self.calls[one["toolCallId"]] = one["content"]

    def _state_snapshot(self, event: dict[str, Any]) -> None:
        self.state = event["snapshot"]

    def _state_delta(self, event: dict[str, Any]) -> None:
        self.state = patched(self.state, event["delta"])

    def _activity_snapshot(self, event: dict[str, Any]) -> None:
        self.activities[event["messageId"]] = event["content"]

    def _activity_delta(self, event: dict[str, Any]) -> None:
        self.activities[event["messageId"]] = patched(self.activities[event["messageId"]], event["patch"])


def patched(value: Any, patch: list[dict[str, Any]]) -> Any:
    """A value after a JSON patch of adds, replaces and removes. Raises Broken for one that can't be applied."""
    whole = copy.deepcopy(value)
    for one in patch:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in one["path"].split("/")[1:]]
        at = whole
        for part in way:
            at = at[part] if isinstance(at, dict) else at[int(part)]
        if isinstance(at, list):
            assert one["op"] == "add"
            assert last == "-"
            at.append(one["value"])
        elif one["op"] != "add" and last not in at:
            raise Broken(f"{one['op']} of {one['path']}, which is not there")
        elif one["op"] == "remove":
            del at[last]
        else:
            at[last] = one["value"]
    return whole
