"""How many tokens texts, messages and requests take: by estimate at once, or by a tokenizer where one is asked for.

The estimate weighs words, characters of each script, numbers and signs. Its weights are fitted to the two public
encodings of tiktoken; on Chinese, Japanese and Korean prose it is within 15 % of them, on anything else in
`tests/models/test_tokens.py` within 30 %.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graphagent.agents.model import ModelRequest
from graphagent.messages import Message
from graphagent.models.litellm_import import load_litellm

_WORD = re.compile(r"[A-Za-z]+")
_HAN = re.compile(
    r"[\u2e80-\u2fdf\u3005\u3007\u31c0-\u31ef\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_KANA = re.compile(r"[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_HANGUL = re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")
_CYRILLIC = re.compile(r"[\u0400-\u052f]")
_OTHER = re.compile(r"[\u00c0-\u024f\u0370-\u03ff\u0530-\u10ff\u1200-\u1fff]")
_PICTURE = re.compile(r"[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]")
_NUMBER = re.compile(r"\d{1,3}")
_SIGNS = re.compile(r"[!-/:-@\[-`{-~]+")
_BREAK = re.compile(r"\s*[\r\n]+| {2,}|\t+")
LONG_WORD = 6
"""Letters of a word that is one token; each further one adds `Weights.letter`."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Tokens of each kind of text. `common` and `rare`: Chinese characters in and outside of GB 2312, which is about
    simplified and traditional."""

    word: float
    letter: float
    common: float
    rare: float
    kana: float
    hangul: float
    cyrillic: float
    other: float
    picture: float
    number: float
    signs: float
    line: float


NEWER = Weights(1.13, 0.29, 0.76, 1.62, 0.67, 0.76, 0.35, 0.38, 1.7, 1.57, 0.31, 1.5)
"""Fitted to `o200k_base`; models from 2024 on are near it."""
OLDER = Weights(1.13, 0.45, 1.17, 2.32, 0.95, 1.22, 0.59, 0.95, 2.7, 1.63, 0.2, 1.44)
"""Fitted to `cl100k_base`; older vocabularies know less of other languages than English."""


def estimate(text: str, weights: Weights = NEWER) -> float:
    """About how many tokens a text takes."""
    words = _WORD.findall(text)
    found = weights.word * len(words) + weights.letter * sum(
        len(word) - LONG_WORD for word in words if len(word) > LONG_WORD
    )
    found += weights.number * len(_NUMBER.findall(text)) + weights.signs * len(_SIGNS.findall(text))
    found += weights.line * len(_BREAK.findall(text))
    if text.isascii():
        return found
    han = "".join(_HAN.findall(text))
    common = len(han.encode("gb2312", "ignore")) // 2
    found += weights.common * common + weights.rare * (len(han) - common)
    found += weights.kana * len(_KANA.findall(text)) + weights.hangul * len(_HANGUL.findall(text))
    found += weights.cyrillic * len(_CYRILLIC.findall(text)) + weights.other * len(_OTHER.findall(text))
    return found + weights.picture * len(_PICTURE.findall(text))


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts by a function that weighs a text.

    `overhead`: tokens that a message takes beside its content. `picture`: tokens of an image. A message or text that
    is not empty counts at least 1.
    """

    weigh: Callable[[str], float]
    overhead: int = 4
    picture: int = 765

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return max(int(self.weigh(text)), 1) if text else 0

    def message(self, message: Message) -> int:
        """Tokens of a message: content, reasoning, calls, images."""
        found = math.fsum(self.weigh(text) for text in _texts(message))
        if not isinstance(message.content, str):
            found += self.picture * sum(map(_is_picture, message.content))
        return self.overhead + (max(int(found), 1) if found else 0)

    def messages(self, messages: Iterable[Message]) -> int:
        """Tokens of a history."""
        return sum(self.message(message) for message in messages)

    def request(self, request: ModelRequest) -> int:
        """Tokens of a request: messages, tools, schema."""
        tools = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in request.tools]
        extras = [*tools, *([request.output_schema] if request.output_schema is not None else [])]
        return self.messages(request.messages) + sum(self.text(json.dumps(extra, default=dict)) for extra in extras)


SIMPLE = TokenCounter(lambda text: len(text) / 4, overhead=0, picture=0)
"""A quarter of the characters. Right for English only."""


def counter_for(model: str, *, exact: bool = False) -> TokenCounter:
    """The counter of a model by its name.

    By default an estimate that loads nothing. `exact`: by the model's tokenizer, for OpenAI's models through tiktoken,
    else through litellm, whose import takes seconds; models whose tokenizer isn't at hand are counted with another one.
    """
    encoding = _encoding_name(model)
    older = encoding == "cl100k_base" or "claude" in model.lower()
    if exact and encoding is not None:
        return TokenCounter(partial(_encoded, _tiktoken(encoding)))
    if exact:
        return TokenCounter(partial(_counted, load_litellm(), model))
    return TokenCounter(partial(estimate, weights=OLDER if older else NEWER))


def _texts(message: Message) -> list[str]:
    """The texts of a message that a model reads."""
    found = (
        [message.content]
        if isinstance(message.content, str)
        else [str(part.get("text", "")) for part in message.content if part.get("type") == "text"]
    )
    found.append(message.reasoning or "")
    for call in message.tool_calls:
        found += ["function", call.id, call.name, json.dumps(call.arguments, ensure_ascii=False)]
    return found


def _is_picture(part: dict[str, Any]) -> bool:
    return str(part.get("type", "")).startswith("image")


def _encoding_name(model: str) -> str | None:
    """The encoding of a model of OpenAI's; None for others."""
    name = model.lower().rpartition("/")[2]
    if name.startswith(("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-6", "chatgpt-4o", "o1", "o3", "o4")):
        return "o200k_base"
    return "cl100k_base" if name.startswith(("gpt-4", "gpt-3.5")) else None


def _tiktoken(name: str) -> Any:
    """An encoding; its file comes with litellm, so that nothing is fetched."""
    spec = find_spec("litellm")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    import tiktoken

    return tiktoken.get_encoding(name)


def _encoded(encoding: Any, text: str) -> float:
    return float(len(encoding.encode_ordinary(text)))


def _counted(litellm: Any, model: str, text: str) -> float:
    return float(litellm.token_counter(model=model, text=text))
