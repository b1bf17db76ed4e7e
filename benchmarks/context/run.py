"""The benchmark of context: what summaries save and lose, what search and load bring back. See README.md here.

python benchmarks/context/run.py --data DIR [--only qmsum,growth] [--json FILE] [--plot PREFIX] [--model NAME]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.context import data, recall
from benchmarks.context.dialogues import dialogues
from benchmarks.context.figures import BARS, Figures, mean, missed
from benchmarks.context.growth import TURNS, growth
from benchmarks.context.live import live
from benchmarks.context.plot import plot
from benchmarks.context.savings import savings
from benchmarks.context.shown import shown
from graphagent.agents.model import Model
from graphagent.models import LiteLLMModel
from runner.sessions import InMemorySessions, SqlSessions

Told = Callable[[str], None]
HIDDEN = 20
"""The newest messages of a QMSum meeting, which are in view and so not searched."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be run. `size`: tokens of a summary; `limit`: conversations of each set, or dialogues (None: all);
    `most`: LoCoMo's questions of each conversation that are answered; `turns`: sizes of `growth`."""

    folder: Path
    size: int = 400
    limit: int | None = None
    most: int = 20
    model: Model | None = None
    postgres: str = ""
    turns: tuple[int, ...] = TURNS


async def _qmsum(asked: Asked, told: Told) -> Figures:
    corpus = data.qmsum(asked.folder).first(asked.limit)
    figures = await savings("qmsum", corpus, asked.size, told, model=asked.model)
    return figures | await shown("qmsum", corpus, told, hide=HIDDEN)


async def _locomo(asked: Asked, told: Told) -> Figures:
    corpus = data.locomo(asked.folder).first(asked.limit)
    figures = await savings("locomo", corpus, asked.size, told, most=asked.most, model=asked.model)
    return figures | await shown("locomo", corpus, told)


async def _recall(asked: Asked, told: Told) -> Figures:
    figures: Figures = {}
    for name, corpus in recall.corpora(asked.folder, "report").items():
        told(f"{name}: recall")
        ours, porter = await recall.measure(name, corpus.first(asked.limit), InMemorySessions())
        for key in (key for key in ours if key.startswith(("hit@", "rec@"))):
            low, high = recall.interval(ours[key])
            figures |= {f"{name}.{key}": mean(ours[key]), f"{name}.{key}.low": low, f"{name}.{key}.high": high}
            figures[f"{name}.{key}.porter"] = mean(porter[key])
    return figures


async def _longmemeval(asked: Asked, told: Told) -> Figures:
    corpus = data.longmemeval(asked.folder).first(asked.limit)
    return await savings("longmemeval", corpus, asked.size, told, model=asked.model)


async def _live(asked: Asked, told: Told) -> Figures:
    return await live(data.longmemeval(asked.folder).first(asked.limit).conversations, asked.size, told)


async def _mtbench101(asked: Asked, told: Told) -> Figures:
    return await dialogues(data.mtbench101(asked.folder)[: asked.limit], told)


async def _growth(asked: Asked, told: Told) -> Figures:
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        urls = {"sqlite": f"sqlite:///{folder}/sessions.db", "postgresql": asked.postgres}
        for name, url in urls.items():
            if url:
                async with SqlSessions(url) as sessions:
                    figures |= await growth(name, sessions, told, asked.turns)
    return figures


PARTS: dict[str, Callable[[Asked, Told], Awaitable[Figures]]] = {
    "qmsum": _qmsum,
    "locomo": _locomo,
    "recall": _recall,
    "longmemeval": _longmemeval,
    "live": _live,
    "mtbench101": _mtbench101,
    "growth": _growth,
}


async def measured(asked: Asked, parts: Sequence[str], told: Told) -> Figures:
    """The figures of these parts."""
    figures: Figures = {}
    for part in parts:
        figures |= await PARTS[part](asked, told)
    return figures


def table(figures: Figures, model: str = "") -> str:
    """The figures as lines, those with a bar with it."""
    by = f"answers by {model}" if model else "answers by a stand-in that copies a sentence: rouge_l and f1 are a proxy"
    lines = [f"tokens: o200k_base; {by}", f"{'figure':44} {'value':>12}  bar"]
    for name, value in figures.items():
        bar = f"{BARS[name]}  {'ok' if BARS[name].holds(value) else 'MISSED'}" if name in BARS else ""
        lines.append(f"{name:44} {_shown(value):>12}  {bar}".rstrip())
    return "\n".join(lines)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.4f}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What summaries save and lose, and what recall brings back.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder with qmsum/, locomo/, ...")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--plot", type=Path, metavar="PREFIX", help="write PREFIX.png and PREFIX.svg")
    parser.add_argument("--model", default="", help="a model of litellm that answers; its key as litellm wants it")
    parser.add_argument("--api-base", default="", help="url of an OpenAI-compatible server, for --model openai/NAME")
    parser.add_argument("--size", type=int, default=400, help="tokens of a summary")
    parser.add_argument("--limit", type=int, help="conversations of each set")
    parser.add_argument("--turns", default=",".join(map(str, TURNS)), help="sizes of sessions, for growth")
    parser.add_argument("--postgres", default="", metavar="URL", help="for growth; the tables are made there")
    found = parser.parse_args(arguments)
    unknown = sorted(set(found.only.split(",")) - PARTS.keys())
    if unknown:
        parser.error(f"--only has '{unknown[0]}'; the parts are {', '.join(PARTS)}")
    if not found.data.is_dir():
        parser.error(f"--data: there is no folder '{found.data}'")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 if a bar is missed."""
    options = _options(arguments)
    more: dict[str, Any] = {"api_base": options.api_base} if options.api_base else {}
    model = LiteLLMModel(options.model, **more) if options.model else None
    turns = tuple(map(int, options.turns.split(",")))
    asked = Asked(options.data, options.size, options.limit, model=model, postgres=options.postgres, turns=turns)
    width = 100

    def told(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{text:{width}.{width}}", end="", file=sys.stderr, flush=True)

    figures = asyncio.run(measured(asked, options.only.split(","), told))
    told("")
    print("\n" + table(figures, options.model))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        print("plots:", *plot(figures, options.plot))
    return 1 if missed(figures) else 0


if __name__ == "__main__":
    sys.exit(main())
