"""What the points that a run passed tell: which effects without a guard may, or must, have an unknown outcome, and
whether anything that was kept ran again."""

from __future__ import annotations

from collections.abc import Iterable

from graphagent.testing.kills import KILLED
from graphagent.testing.report import Trial

UNGUARDED = "bare-"
_AFTER = {"before claim_effect": "claiming", "after claim_effect": "claimed", "before commit_effect": "committing"}


def open_claims(trace: Iterable[str]) -> list[str]:
    """How far unguarded effects have got that were begun and are not known to be committed.

    `claimed`: the claim is stored and the commit was not sent. `claiming`, `committing`: that write was under way when
    the process was killed elsewhere, so it may be stored or not. A process killed before a write has not sent it.
    """
    found: dict[str, str] = {}
    before: tuple[str, str | None] | None = None
    for line in trace:
        if line == KILLED and before is not None:
            name, state = before
            if state is None:
                del found[name]
            else:
                found[name] = state
        before = None
        moment, _, rest = line.partition(" ")
        write, _, name = rest.partition(" ")
        if not name.rpartition(" ")[2].startswith(UNGUARDED) or not write.endswith("_effect"):
            continue
        state_after = _AFTER.get(f"{moment} {write}", "committed")
        if moment == "before":
            before = (name, found.get(name))
        found[name] = state_after
    return [state for state in found.values() if state != "committed"]


def run_again(trace: Iterable[str]) -> list[str]:
    """Activations that began although their result had been kept."""
    kept: set[str] = set()
    again = []
    for line in trace:
        moment, _, rest = line.partition(" ")
        what, _, place = rest.partition(" ")
        if (moment, what) == ("after", "put_activations"):
            base, _, positions = place.rpartition(".")
            kept.update(f"{base}.{position}" for position in positions.split(","))
        elif (moment, what) == ("node", "begins") and place.partition(" ")[0] in kept:
            again.append(place)
    return again


def misjudged(trial: Trial) -> str:
    """What the trace of a trial shows to be wrong beside its verdict, empty if nothing is."""
    again = run_again(trial.trace)
    if again:
        return f"{trial.fault}: {again} ran again although the result was kept"
    claims = open_claims(trial.trace)
    if trial.verdict == "unknown" and not claims:
        return f"{trial.fault}: EffectUnknown, and no unguarded effect was open"
    if trial.verdict == "held" and "claimed" in claims:
        return f"{trial.fault}: an unguarded effect was open, and the run went on without a word"
    return ""
