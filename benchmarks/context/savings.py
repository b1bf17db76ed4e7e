"""What a summary saves when one is asked about a long history, and what it costs to make it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.context.data import Corpus, Question
from benchmarks.context.figures import Figures, mean, saved
from benchmarks.context.quality import f1, rouge_l
from benchmarks.context.replay import FULL, SHORT, Rolled, asked, rolled
from benchmarks.context.standin import reader
from graphagent.agents.model import Model
from runner.recall.tools import SessionRecall
from runner.sessions import InMemorySessions

ARMS = ("full", "summary", "search", "load")
"""The whole history; summary and newest messages; the same with a search; with a search and a look around a hit."""
RECALLED = "recalled"
"""The arm of a real model that has the tools and decides itself."""
INSTRUCTION = "Answer the question about the conversation, in a few sentences, from what was said in it."
Told = Callable[[str], None]


class Case(NamedTuple):
    """What one question took in one arm: prompt tokens of all calls, calls, how near the answer is, and whether there
    is none since the run failed (a model that can't take the whole history, say)."""

    arm: str
    asked: int
    calls: int
    rouge_l: float
    f1: float
    failed: bool


async def savings(
    name: str, corpus: Corpus, size: int, told: Told, *, most: int | None = None, model: Model | None = None
) -> Figures:
    """The figures of a data set, with a summary of `size` tokens. `most`: questions of each conversation (None: all).

    `model`: sums up and answers in the place of the stand-ins, and searches and loads as it likes.
    """
    cases: dict[str, list[Case]] = defaultdict(list)
    costs: list[tuple[int, int]] = []
    for number, (id, said) in enumerate(corpus.conversations.items(), 1):
        told(f"{name}: conversation {number} of {len(corpus.conversations)}")
        questions = [one for one in corpus.questions if one.conversation == id][:most]
        if not questions:
            continue
        made = await rolled(InMemorySessions(), said, size, model=model)
        for question in questions:
            costs.append(made.costs)
            for case in await _answered(made, question, model):
                cases[case.arm].append(case)
    return {f"{name}.{key}": value for key, value in _figures(cases, costs).items()}


async def _answered(made: Rolled, question: Question, model: Model | None) -> list[Case]:
    found = []
    for arm in ARMS if model is None else ("full", "summary", RECALLED):
        answering = model or reader(question.text, search=arm in ("search", "load"), load=arm == "load")
        tools = (SessionRecall(),) if arm in ("search", "load", RECALLED) else ()
        projector = FULL if arm == "full" else SHORT
        told = INSTRUCTION if model is not None else ""
        given = (made.sessions, made.session, question.text, answering)
        metered, events = await asked(*given, projector=projector, tools=tools, instruction=told)
        failed = next((event.error for event in events if event.error is not None), None)
        if failed is not None and model is None:
            raise RuntimeError(f"the reader could not answer '{question.text}': {failed.message}")
        answer = "" if failed else next((event.text for event in reversed(events) if event.is_final), "")
        near = rouge_l(answer, question.answer), f1(answer, question.answer)
        found.append(Case(arm, metered.asked, len(metered.exchanges), *near, failed is not None))
    return found


def _figures(cases: dict[str, list[Case]], costs: Sequence[tuple[int, int]]) -> Figures:
    full = [case.asked for case in cases["full"]]
    figures: Figures = {"cases": len(full), "full.tokens": mean(full)}
    for arm, found in cases.items():
        figures |= {f"{arm}.rouge_l": mean(c.rouge_l for c in found), f"{arm}.f1": mean(c.f1 for c in found)}
        if any(case.failed for case in found):
            figures[f"{arm}.failed"] = mean(case.failed for case in found)
        if arm == "full":
            continue
        each = [saved(whole, case.asked) for whole, case in zip(full, found, strict=True)]
        part = "" if arm == "summary" else f".{arm}"
        figures |= {f"{arm}.tokens": mean(c.asked for c in found), f"{arm}.calls": mean(c.calls for c in found)}
        figures |= {f"saved{part}": saved(sum(full), sum(c.asked for c in found)), f"saved_a_case{part}": mean(each)}
        figures |= {f"saved_least{part}": min(each, default=0.0), f"negative{part}": mean(one < 0 for one in each)}
        own = mean(rolling for rolling, _ in costs)
        gain = mean(full) - figures[f"{arm}.tokens"]
        figures[f"break_even{part}"] = own / gain if gain > 0 else float("inf")
    rolling, anew = mean(r for r, _ in costs), mean(a for _, a in costs)
    figures["own.rolling"] = rolling
    return figures | ({"own.anew": anew, "rolling_share": rolling / anew} if anew else {})
