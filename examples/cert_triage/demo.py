"""The demo: makes faulty certificates, checks each, and takes one from the question to the script and a later question.

Run it with `python -m examples.cert_triage.demo` (or `make demo`); everything it writes goes to `demo-out/`. Its model
is a script, unless `--model` names a real one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console
from rich.markdown import Markdown
from rich.prompt import Confirm
from rich.table import Table

from examples.cert_triage.by_skill import DIAGNOSIS, diagnose
from examples.cert_triage.desk import FOLLOW_UP, USER, Told, key_of, opened_desk
from examples.cert_triage.samples import Sample, make_samples
from examples.cert_triage.talk import APP, REPORT_NAME, graph, make_agent
from examples.cert_triage.words import script
from examples.models import HELP, chosen_model
from graphagent import GraphAgent
from graphagent.agents import session_lineage

FOLDER = Path("demo-out")
DATABASE = f"sqlite:///{(FOLDER / 'demo.db').as_posix()}"
COLOURS = {"ok": "green", "warning": "yellow", "critical": "red"}
NEXT = {
    "Step through it (then: back, why approve, who severity, help)": "graphagent debug examples.cert_triage.talk:agent "
    f"--lineage {{lineage}} --db {DATABASE}",
    "Look at it in the browser (pip install 'graphagent[studio]')": "graphagent studio examples.cert_triage.talk:agent "
    f"--db {DATABASE}",
    "Check that the graph still goes the way the run went": f"graphagent replay {{lineage}} --namespace {APP} "
    f"--graph examples.cert_triage.talk:graph --db {DATABASE}",
    "Go on talking": "graphagent chat examples.cert_triage.talk:agent "
    f"--session {{session}} --user {USER} --db {DATABASE}",
    "Break it (edit the host in the file first)": "graphagent run examples.cert_triage.graph:graph "
    f"--input {FOLDER.as_posix()}/healthy.json",
}


@dataclass(frozen=True)
class Options:
    """What the command line says; `answer` is None when it gives none."""

    sample: str
    answer: str | None
    as_json: bool
    model: str | None
    skill: bool = False


@dataclass(frozen=True)
class Outcome:
    """All checks as they stopped first, the chosen one as it ended, and the later answer (None while it is open)."""

    first: dict[str, Told]
    chosen: Told
    later: Told | None
    diagnoses: list[tuple[int, str]] = field(default_factory=list)
    executor: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit status of the process."""
    parser = argparse.ArgumentParser(prog="python -m examples.cert_triage.demo", description=__doc__)
    parser.add_argument("--sample", default="leaf-last", help="the critical sample to take to its end (leaf-last)")
    parser.add_argument("--answer", choices=["approve=yes", "approve=no"], help="answer instead of being asked")
    parser.add_argument("--model", metavar="NAME", help=HELP)
    parser.add_argument("--skill", action="store_true", help="have a skill's script write a diagnosis as well")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    given = parser.parse_args(arguments)
    answer = given.answer.partition("=")[2] if given.answer else None
    options = Options(given.sample, answer, given.json, given.model, given.skill)
    samples = {one.name: one for one in make_samples(FOLDER, datetime.now(UTC).replace(microsecond=0))}
    critical = [name for name, one in samples.items() if one.verdict == "critical"]
    if options.sample not in critical:
        parser.error(f"sample '{options.sample}' is not one of the critical ones: {', '.join(critical)}")
    console = Console(highlight=False)
    with chosen_model(options.model, script) as model:
        outcome = anyio.run(check_all, make_agent(model), samples, options, console)
    if options.skill:
        states = [outcome.first[options.sample].state, *([outcome.chosen.state] if outcome.later else [])]
        executor, made = anyio.run(diagnose, DATABASE, samples[options.sample], states)
        outcome = replace(outcome, diagnoses=made, executor=executor)
    if options.as_json:
        print(json.dumps(as_data(outcome, samples, options), indent=2))
    else:
        show_end(console, outcome, samples, options)
    return 0 if outcome.chosen.outcome in ("completed", "interrupted") else 1


async def check_all(agent: GraphAgent, samples: dict[str, Sample], options: Options, console: Console) -> Outcome:
    """Check every sample in a session of its own, answer the question of the chosen one, and come back to it later."""
    sample = samples[options.sample]
    async with opened_desk(agent, DATABASE) as desk:
        first = {name: await desk.check(one, str(FOLDER)) for name, one in samples.items()}
        if not options.as_json:
            show_table(console, first)
        chosen = first[sample.name]
        answer = options.answer or (None if options.as_json else ask(console, chosen))
        if answer is not None:
            chosen = await desk.answer(sample, answer)
    if chosen.outcome != "completed":
        return Outcome(first, chosen, None)
    async with opened_desk(agent, DATABASE) as desk:  # another day, as far as the desk can tell
        return Outcome(first, chosen, await desk.ask(sample, FOLLOW_UP))


def ask(console: Console, waiting: Told) -> str | None:
    """The person's answer to the pending question; None where there is no terminal to ask at."""
    prompt: Any = waiting.interrupts[0]["prompt"]
    console.print(f"\n[bold]{prompt['question']}[/]")
    for reason in prompt["critical"]:
        console.print(f"  - {reason}", style=COLOURS["critical"], markup=False)
    if not sys.stdin.isatty():
        return None
    return "yes" if Confirm.ask("Approve?", console=console) else "no"


def show_table(console: Console, results: dict[str, Told]) -> None:
    """One line a sample: verdict, reasons, and where the run stands."""
    table = Table(title="Nine certificates, one graph", title_justify="left")
    for heading in ("sample", "verdict", "finding", "run"):
        table.add_column(heading)
    for name, result in results.items():
        verdict = result.state.severity or "critical"
        reasons = [one.code for one in result.state.findings if one.severity != "info"]
        run = "waits for 'approve'" if result.interrupts else f"{result.outcome} {result.error}".strip()
        table.add_row(name, f"[{COLOURS[verdict]}]{verdict}[/]", ", ".join(reasons) or "-", run)
    console.print(table)


def show_end(console: Console, outcome: Outcome, samples: dict[str, Sample], options: Options) -> None:
    """Report and explanation of the chosen sample, the later talk, the picture of the graph, and what to try next."""
    chosen = outcome.chosen
    if chosen.interrupts:
        console.print("\nNobody to ask here: the run waits. Answer with --answer approve=yes or approve=no.")
    elif chosen.state.report is None or chosen.outcome != "completed":
        console.print(f"\nThe run is {chosen.outcome}: {chosen.error}", markup=False)
    else:
        text = Path(chosen.state.report).read_text(encoding="utf-8")
        console.print()
        console.print(Markdown(text) if console.is_terminal else text, markup=False, soft_wrap=not console.is_terminal)
        show_talk(console, outcome)
    if outcome.diagnoses:
        show_diagnosis(console, outcome)
    console.rule("The graph (Mermaid)")
    console.print(graph.to_mermaid(), markup=False, soft_wrap=True)
    console.rule("Try next")
    for what, command in next_steps(samples[options.sample]).items():
        console.print(f"{what}:\n    {command}", markup=False, soft_wrap=True)


def show_talk(console: Console, outcome: Outcome) -> None:
    """What the model said, then and later."""
    console.rule("In plain words")
    console.print(outcome.chosen.text, markup=False, soft_wrap=True)
    console.print(f"Saved as artifact '{REPORT_NAME}', version {outcome.chosen.state.report_version}.", markup=False)
    if outcome.later is not None:
        console.rule("Later, in the same session")
        console.print(f"> {FOLLOW_UP}\n{outcome.later.text or outcome.later.error}", markup=False, soft_wrap=True)


def show_diagnosis(console: Console, outcome: Outcome) -> None:
    """What the skill's script made of the facts, before the answer and after it."""
    console.rule("By the skill 'diagnose-tls'")
    console.print(outcome.diagnoses[-1][1], markup=False, soft_wrap=True)
    for version, _ in outcome.diagnoses:
        console.print(f"Saved as artifact '{DIAGNOSIS}', version {version}.", markup=False)
    console.print(f"The script ran in executor '{outcome.executor}'; no model was asked.", markup=False)


def next_steps(sample: Sample) -> dict[str, str]:
    """Commands that go on from here, by what they are for."""
    names = {"lineage": session_lineage(key_of(sample)), "session": sample.name}
    return {what: command.format(**names) for what, command in NEXT.items()}


def as_data(outcome: Outcome, samples: dict[str, Sample], options: Options) -> dict[str, Any]:
    """The same as data."""
    chosen, later = outcome.chosen, outcome.later
    return {
        "samples": {
            name: {
                "verdict": result.state.severity,
                "findings": [one.code for one in result.state.findings],
                "status": result.outcome,
            }
            for name, result in outcome.first.items()
        },
        "chosen": {
            "sample": options.sample,
            "status": chosen.outcome,
            "script": chosen.state.script,
            "report": chosen.state.report,
            "explanation": chosen.text,
            "artifact": {"name": REPORT_NAME, "version": chosen.state.report_version},
        },
        "diagnoses": [{"name": DIAGNOSIS, "version": version} for version, _ in outcome.diagnoses],
        "later": None if later is None else {"question": FOLLOW_UP, "answer": later.text},
        "graph": graph.to_mermaid(),
        "next": next_steps(samples[options.sample]),
    }


if __name__ == "__main__":
    raise SystemExit(main())
