"""The rules of the policy family: what each means, and the smallest graphs that break and keep it."""

from __future__ import annotations

from graphagent.validation.registry import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "GA501",
        "a node can run without the one that must come before it",
        "error",
        "`must_pass(node, through=...)` promises that no way leads to the node except through one of the others. Some "
        "way does. A join of all sources counts as passing each of them.",
        "plan ? approve | pay\napprove -> pay\npay -> END\nmust pay through approve",
        "plan -> approve, audit\napprove & audit => pay\npay -> END\nmust pay through approve",
    ),
    Rule(
        "GA502",
        "a question, and no store to keep it in",
        "error",
        "A node asks a person, or has a breakpoint, and the graph is run without checkpoints: the run waits in memory "
        "only, and is lost with the process. Give the executor a store.",
        "a -> END\nnode a kind interrupt asks ok\nstore no",
        "a -> END\nnode a kind interrupt asks ok\nstore yes",
    ),
    Rule(
        "GA503",
        "an effect in a body that also asks",
        "warning",
        "When the answer comes, a node that asked in its body runs again from its first line. What it did before it "
        "asked is done a second time, unless it went through `ctx.step` or carries an idempotency key.",
        "a -> END\nnode a effects pay asks ok",
        "ask -> a -> END\nnode ask kind interrupt asks ok\nnode a effects pay",
    ),
    Rule(
        "GA504",
        "two open questions with one key",
        "error",
        "Two nodes can wait for an answer at the same time under one key, so that an answer by that key is refused as "
        "ambiguous. Give each its own key. A warning where it is one node that runs several times at once (answer by "
        "id then), or where the bound on the search left it open.",
        "s -> a, b\na & b => j\nj -> END\nnode a kind interrupt asks ok\nnode b kind interrupt asks ok",
        "s ? a | b\na -> END\nb -> END\nnode a kind interrupt asks ok\nnode b kind interrupt asks ok",
    ),
    Rule(
        "GA505",
        "an effect that is repeated",
        "warning",
        "A node with an effect that is not idempotent is retried, or lies on a loop: a failing attempt, or the next "
        "lap, does it again. An effect through `ctx.step` is safe from retries, not from laps.",
        "a -> END\nnode a effects pay retry",
        "a -> END\nnode a effects pay retry idempotent",
    ),
    Rule(
        "GA506",
        "a secret that is saved",
        "warning",
        "A field holds a secret (`SecretStr`, `SecretBytes`) and is persistent. A store without a cipher refuses it "
        "when it is written, in the middle of a run. Declare it `Transient`, or give the store a cipher.",
        "a -> END\nstate key: SecretStr",
        "a -> END\nstate key: SecretStr\nstore no",
    ),
    Rule(
        "GA507",
        "what looks like a secret is saved in clear",
        "warning",
        "A text field is called like a secret (`password`, `api_key`, `access_token`, ...) and is persistent: nothing "
        "refuses it, and every checkpoint, export and debugger shows it. Declare it `Transient` or `SecretStr`.",
        "a -> END\nstate api_key: str",
        "a -> END\nstate api_key_id: str",
    ),
)
"""GA507 is not in the first specification: GA506 finds itself at the first write, a secret in clear text never does."""
