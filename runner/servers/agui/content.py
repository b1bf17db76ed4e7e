"""What a user's message of the protocol holds, as a message of a run: text, pictures, sounds, documents."""

from __future__ import annotations

from typing import Any

from ag_ui.core import (
    AudioPart,
    ContentPart,
    DataSource,
    DocumentPart,
    FileSource,
    ImagePart,
    TextPart,
    ToolMessage,
    UserMessage,
    VideoPart,
)

from graphagent.messages import Message
from runner.servers.agui.errors import Refused

_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
"""Media type of a sound -> the name that models know it by."""


def user_message(said: UserMessage, param: str) -> Message:
    """What a user says. Raises Refused for nothing, and for a part that no message carries, with its place."""
    if isinstance(said.content, str):
        if not said.content:
            raise Refused("the message of the user is empty", param=f"{param}.content")
        return Message.user(said.content)
    if not said.content:
        raise Refused("the message of the user has no parts", param=f"{param}.content")
    parts = [_part(part, f"{param}.content.{place}") for place, part in enumerate(said.content)]
    if all(part["type"] == "text" for part in parts):
        text = "\n".join(part["text"] for part in parts)
        if not text:
            raise Refused("the message of the user is empty", param=f"{param}.content")
        return Message.user(text)
    return Message.user(parts)


def tool_message(said: ToolMessage, param: str) -> Message:
    """The result of a client's tool; what went wrong with it is its text. Raises Refused for parts other than text."""
    text = said.content if isinstance(said.content, str) else ""
    if not isinstance(said.content, str):
        for place, part in enumerate(said.content):
            if not isinstance(part, TextPart):
                raise Refused(f"a result of a tool takes text only, not '{part.type}'", param=f"{param}.{place}")
        text = "\n".join(part.text for part in said.content if isinstance(part, TextPart))
    if said.error:
        text = f"Error: {said.error}" + (f"\n{text}" if text else "")
    return Message.tool(text, said.tool_call_id)


def parts_shown(content: str | list[dict[str, Any]]) -> str | list[ContentPart]:
    """The content of a stored message of a user, as the protocol has it; what it can't say is told as text."""
    if isinstance(content, str):
        return content
    return [_shown(part) for part in content]


def _part(part: ContentPart, param: str) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    source = part.source
    if isinstance(part, VideoPart) or isinstance(source, FileSource):
        what = "a video" if isinstance(part, VideoPart) else "a file of a provider's"
        raise Refused(f"{what} can't be given to the agent; send text, an image, audio or a document", param=param)
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": _url(source)}}
    if isinstance(part, AudioPart):
        kind = _SOUNDS.get((source.mime_type or "").lower())
        if not isinstance(source, DataSource) or kind is None:
            raise Refused(f"audio comes as data of one of {', '.join(sorted(_SOUNDS))}", param=f"{param}.source")
        return {"type": "input_audio", "input_audio": {"data": source.value, "format": kind}}
    if not isinstance(source, DataSource):
        raise Refused("a document comes as data, not as an address", param=f"{param}.source")
    return {"type": "file", "file": {"file_data": _url(source)}}


def _url(source: Any) -> str:
    return f"data:{source.mime_type};base64,{source.value}" if isinstance(source, DataSource) else str(source.value)


def _shown(part: dict[str, Any]) -> ContentPart:
    kind = part.get("type")
    payload = part.get(str(kind))
    if kind == "text":
        return TextPart(text=str(part.get("text", "")))
    if kind == "image_url" and isinstance(payload, dict):
        return ImagePart(source=_source(str(payload.get("url", ""))))
    if kind == "input_audio" and isinstance(payload, dict):
        mime = "audio/mpeg" if payload.get("format") == "mp3" else "audio/wav"
        return AudioPart(source=DataSource(value=str(payload.get("data", "")), mime_type=mime))
    if kind == "file" and isinstance(payload, dict) and "file_data" in payload:
        return DocumentPart(source=_source(str(payload["file_data"])))
    return TextPart(text=f"({kind})")


def _source(url: str) -> Any:
    from_data = url.startswith("data:") and ";base64," in url
    if not from_data:
        return {"type": "url", "value": url}
    mime, _, value = url.removeprefix("data:").partition(";base64,")
    return DataSource(value=value, mime_type=mime)
