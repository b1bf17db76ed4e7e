"""What one call of the search tool shows of the evidence, and what a look around another hit adds. No model is asked.

Of a QMSum meeting the newest messages, which a reader has in view, are not searched; a LoCoMo chat is in as many
sessions as it was, none of them the reader's. A message counts as shown if a piece of it stands in the tool's answer.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, cast

from benchmarks.context.data import Corpus, Question, Said
from benchmarks.context.figures import Figures, mean
from benchmarks.context.meter import tokens
from benchmarks.context.replay import APP, READER, stored
from benchmarks.context.standin import place_of
from graphagent import LLMAgent
from graphagent.agents.invocation import Invocation, Services
from graphagent.agents.tool import Tool, ToolContext
from graphagent.ledger import SessionKey
from graphagent.models import ScriptedModel
from runner.recall.tools import recall_tools
from runner.sessions import SqlSessions

_NEAR = 4
"""Messages beside a hit among which the pieces of its snippet are looked for."""
_GAP = re.compile(r"\.\.\.|…")


async def shown(name: str, corpus: Corpus, told: Callable[[str], None], *, hide: int = 0) -> Figures:
    """The figures of a data set with evidence by message. `hide`: so many of the newest messages are not there."""
    found: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        async with SqlSessions(f"sqlite:///{folder}/sessions.db") as sessions:
            for number, (id, said) in enumerate(corpus.conversations.items(), 1):
                told(f"{name}: search in conversation {number} of {len(corpus.conversations)}")
                there = said[: len(said) - hide]
                searching = await _Searching.begun(sessions, id, there)
                for question in corpus.questions:
                    evidence = question.evidence & {one.id for one in there}
                    if question.conversation == id and evidence:
                        for key, value in (await searching.of(question, evidence)).items():
                            found[key].append(value)
    return {f"{name}.{key}": mean(values) for key, values in found.items()}


class _Searching(NamedTuple):
    """The tools in a run of a reader, which is in the conversation's session, or where it has several in one of its
    own; `scope`: then of the others."""

    run: Invocation
    scope: str
    there: Sequence[Said]

    @classmethod
    async def begun(cls, sessions: SqlSessions, id: str, there: Sequence[Said]) -> _Searching:
        parts = {session: list(said) for session, said in groupby(there, lambda one: one.session)}
        for name, said in parts.items():
            await stored(sessions, said, SessionKey(APP, id, name))
        own = next(iter(parts)) if len(parts) == 1 else ""
        session = await (sessions.get(SessionKey(APP, id, own), last=0) if own else sessions.create(APP, id))
        services = Services(sessions=sessions)
        run = Invocation(LLMAgent(READER, ScriptedModel([])), None, session, filter_key=APP, services=services)
        return cls(run, "current_session" if own else "other_sessions", there)

    async def of(self, question: Question, evidence: frozenset[str]) -> dict[str, float]:
        """The figures of one question."""
        searching, loading = recall_tools()
        answer = await _called(searching, self.run, {"query": question.text, "scope": self.scope})
        seen = shown_by(answer, self.there)
        figures = {"shown.hit": float(bool(seen & evidence)), "shown.recall": len(seen & evidence) / len(evidence)}
        figures |= {"shown.tokens": tokens("\n".join(_texts(answer))), "shown.answer_tokens": tokens(_written(answer))}
        loaded: dict[str, Any] = {"messages": []}
        if answer["results"]:
            loaded = await _called(loading, self.run, place_of(answer["results"]))
        seen |= {message["event_id"] for message in loaded["messages"]}
        figures |= {"loaded.hit": float(bool(seen & evidence)), "loaded.recall": len(seen & evidence) / len(evidence)}
        return figures | {"loaded.answer_tokens": figures["shown.answer_tokens"] + tokens(_written(loaded))}


async def _called(tool: Tool, run: Invocation, arguments: Mapping[str, Any]) -> dict[str, Any]:
    context = ToolContext("call", tool.spec.name, cast(Any, None), run)  # the tools ask nothing of the node
    return cast(dict[str, Any], await tool.call(arguments, context))


def shown_by(answer: Mapping[str, Any], there: Sequence[Said]) -> frozenset[str]:
    """Ids of the messages of which the answer of a search shows a piece."""
    places = {one.id: at for at, one in enumerate(there)}
    texts = [" ".join(one.text.split()) for one in there]
    found: set[str] = set()
    entries = [(entry["event_id"], entry["snippet"]) for entry in answer["results"]]
    entries += [(id, text) for id, _, text in (line.partition(" ") for line in answer.get("more", ()))]
    for id, snippet in entries:
        at = places[id]
        found.add(id)
        near = range(max(at - _NEAR, 0), min(at + _NEAR + 1, len(there)))
        for line in snippet.split("\n"):
            said = line.removeprefix("[match] ").removeprefix("user: ").removeprefix("assistant: ")
            piece = max((part.strip() for part in _GAP.split(said)), key=len)
            found |= {there[place].id for place in near if piece and piece in texts[place] and len(piece) > 8}
    return frozenset(found)


def _texts(answer: Mapping[str, Any]) -> list[str]:
    further = (line.partition(" ")[2] for line in answer.get("more", ()))
    return [*(entry["snippet"] for entry in answer["results"]), *further]


def _written(answer: Mapping[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False)
