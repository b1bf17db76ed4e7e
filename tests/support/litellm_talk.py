"""litellm as a client, in a process of its own: it leaves sockets and an event loop open. Reads JSON, prints JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from graphagent.models.litellm_import import load_litellm


def told(litellm: Any, base: str, fields: dict[str, Any]) -> dict[str, Any]:
    """One request: what came, or the name of the error. `result`: of the call that is asked for, for a second one."""
    result = fields.pop("result", None)
    try:
        answer = litellm.completion("openai/bob", api_base=base, api_key="any", num_retries=0, **fields)
        if fields.get("stream"):
            chunks = list(answer)
            text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
            return {"text": text, "tokens": litellm.stream_chunk_builder(chunks).usage.total_tokens}
        message = answer.choices[0].message.model_dump(exclude_none=True)
        if result is not None:
            [call] = message["tool_calls"]
            back = {"role": "tool", "tool_call_id": call["id"], "content": result}
            return told(litellm, base, {**fields, "messages": [*fields["messages"], message, back]})
        return {"text": message.get("content"), "tokens": answer.usage.total_tokens}
    except litellm.exceptions.BadRequestError as error:
        return {"error": type(error).__name__}


if __name__ == "__main__":
    base, requests = json.load(sys.stdin)
    litellm = load_litellm()
    print(json.dumps([told(litellm, base, one) for one in requests]), flush=True)
    os._exit(0)  # nor does it end its threads
