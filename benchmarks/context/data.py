"""The four data sets as conversations of messages and questions with evidence, from files as they were published.

QMSum (Zhong et al. 2021), LoCoMo (Maharana et al. 2024), LongMemEval (Wu et al. 2025), MT-Bench-101 (Bai et al. 2024).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

DISTANCE = 80
"""Messages between a QMSum question's last evidence and the meeting's end, at least: as in the reference's report."""
CATEGORIES = (1, 2, 3, 4)
"""Of LoCoMo: multi-hop, temporal, open-domain, single-hop; 5 is adversarial."""
TASKS = ("CC", "CM", "GR", "IC", "PI", "SA", "SC", "SI", "TS")
"""Of MT-Bench-101, those of the reference's report: 917 dialogues."""
_PLACE = re.compile(r"D\s*:?\s*(\d+)\s*:\s*0*(\d+)")


class Said(NamedTuple):
    """A message of a conversation. `session`: the part of the conversation that it belongs to; `time`: as the data set
    says it, empty where it doesn't."""

    id: str
    session: str
    role: str
    speaker: str
    text: str
    time: str = ""


class Question(NamedTuple):
    """A question about a conversation. `evidence`: ids of the messages that answer it; `sessions`: of the parts that
    do; `kind`: the data set's own word for what sort of question it is."""

    id: str
    conversation: str
    text: str
    answer: str
    evidence: frozenset[str]
    sessions: frozenset[str] = frozenset()
    kind: str = ""


class Dialogue(NamedTuple):
    """A short dialogue: what the person says, and the answer that was recorded, turn by turn."""

    id: str
    task: str
    turns: tuple[tuple[str, str], ...]


class Corpus(NamedTuple):
    """Conversations by id, and the questions about them."""

    conversations: dict[str, tuple[Said, ...]]
    questions: tuple[Question, ...]

    def first(self, count: int | None) -> Corpus:
        """The same with so many conversations at most."""
        kept = dict(list(self.conversations.items())[:count])
        return Corpus(kept, tuple(one for one in self.questions if one.conversation in kept))


def qmsum(folder: Path, split: str = "test", distance: int = DISTANCE) -> Corpus:
    """Meetings with specific questions whose evidence ends at least `distance` messages before the meeting does."""
    conversations: dict[str, tuple[Said, ...]] = {}
    questions: list[Question] = []
    for meeting in _lines(folder / "qmsum" / f"{split}.jsonl"):
        name, turns = str(meeting["meeting_id"]), meeting["meeting_transcripts"]
        said = []
        for at, turn in enumerate(turns):
            speaker = turn["speaker"].strip()
            text = f"[Turn {at + 1:03d}] {speaker}: {turn['content'].strip()}"
            said.append(Said(f"{name}:{at}", name, "user", speaker, text))
        conversations[name] = tuple(said)
        for number, query in enumerate(meeting["specific_query_list"], 1):
            spans = [sorted(map(int, span)) for span in query["relevant_text_span"]]
            places = {at for first, last in spans for at in range(max(first, 0), min(last, len(turns) - 1) + 1)}
            if len(turns) - 1 - max(places) >= distance:
                evidence = frozenset(f"{name}:{at}" for at in places)
                id = f"{name}_specific_{number:02d}"
                question = Question(id, name, query["query"].strip(), query["answer"].strip(), evidence)
                questions.append(question._replace(kind=meeting["domain"]))
    return Corpus(conversations, tuple(questions))


def locomo(folder: Path, categories: Sequence[int] = CATEGORIES) -> Corpus:
    """Very long chats of two people, in sessions. Questions without usable evidence are left out."""
    conversations: dict[str, tuple[Said, ...]] = {}
    questions: list[Question] = []
    for sample in json.loads((folder / "locomo" / "locomo10.json").read_text(encoding="utf-8")):
        name = str(sample["sample_id"])
        said = tuple(_chat(name, sample["conversation"]))
        sessions = {one.id: one.session for one in said}
        conversations[name] = said
        for number, asked in enumerate(sample["qa"], 1):
            named = (found for text in asked.get("evidence") or () for found in _PLACE.findall(text))
            evidence = frozenset(f"{name}:D{part}:{turn}" for part, turn in named) & sessions.keys()
            if asked["category"] in categories and evidence:
                answer = str(asked.get("answer", asked.get("adversarial_answer")))
                parts = frozenset(sessions[id] for id in evidence)
                question = Question(f"{name}_q{number:03d}", name, asked["question"], answer, evidence, parts)
                questions.append(question._replace(kind=str(asked["category"])))
    return Corpus(conversations, tuple(questions))


def _chat(name: str, chat: dict[str, Any]) -> Iterator[Said]:
    number = 1
    while f"session_{number}" in chat or f"session_{number}_date_time" in chat:
        when = str(chat.get(f"session_{number}_date_time") or "")
        for turn in chat.get(f"session_{number}", ()):
            shared = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            text = f"{turn['speaker']}: {turn['text']}{shared}"
            yield Said(f"{name}:{turn['dia_id']}", f"{name}/s{number}", "user", turn["speaker"], text, when)
        number += 1


def longmemeval(folder: Path) -> Corpus:
    """Whole histories of an assistant's user, with the question of each and those that others asked about them."""
    conversations: dict[str, tuple[Said, ...]] = {}
    questions: list[Question] = []
    for one in json.loads((folder / "longmemeval" / "longmemeval_s_3.json").read_text(encoding="utf-8")):
        name, said, marked = str(one["question_id"]), [], set()
        parts = zip(one["haystack_dates"], one["haystack_session_ids"], one["haystack_sessions"], strict=True)
        for date, session, turns in sorted(parts, key=lambda part: part[0]):
            for at, turn in enumerate(turns):
                said.append(Said(f"{session}:{at}", session, turn["role"], turn["role"], turn["content"], date))
                if turn.get("has_answer"):
                    marked.add(said[-1].id)
        conversations[name] = tuple(said)
        sessions = frozenset(one["answer_session_ids"])
        question = Question(name, name, one["question"], str(one["answer"]), frozenset(marked), sessions)
        questions.append(question._replace(kind=one["question_type"]))
    for extra in _lines(folder / "longmemeval" / "extra_questions.jsonl"):
        sessions = frozenset(extra["answer_session_ids"])
        asked = (extra["question_id"], extra["haystack_of"], extra["question"], str(extra["answer"]))
        questions.append(Question(*asked, frozenset(), sessions, "third-party"))
    return Corpus(conversations, tuple(questions))


def mtbench101(folder: Path, tasks: Sequence[str] = TASKS) -> tuple[Dialogue, ...]:
    """Short dialogues of several turns, of these tasks."""
    found = []
    for one in _lines(folder / "mtbench101" / "mtbench101.jsonl"):
        if one["task"] in tasks:
            turns = tuple((turn["user"], turn["bot"]) for turn in one["history"])
            found.append(Dialogue(f"{one['task']}-{one['id']}", one["task"], turns))
    return tuple(found)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
