"""Code nodes and skill nodes: a program as one effect, without a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from support.dying import Died, Dying

from graphagent import END, START, Executor, GraphAgent, MemoryCheckpoints, StateGraph
from graphagent.agents import ProgramResult
from graphagent.errors import (
    EffectUnknown,
    ExecutorUnavailable,
    GraphDefinitionError,
    ProgramFailed,
    SkillNotFound,
)
from graphagent.execution import ExecutionLimits
from graphagent.ledger import SessionKey
from graphagent.validation import validate
from runner import Runner
from runner.artifacts import InMemoryArtifacts
from runner.execution import LocalExecutor, SandboxExecutor
from runner.skills import SkillDirectory

pytestmark = pytest.mark.anyio

SUM = "import json, sys\nfound = json.load(sys.stdin)\nprint(sum(found['numbers']))\n"


class State(BaseModel):
    numbers: list[int] = []
    done: ProgramResult | None = None
    total: int = 0


@pytest.fixture(params=[LocalExecutor, SandboxExecutor], ids=["local", "sandbox"])
async def runs(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Any]:
    """An executor of programs, of each kind."""
    made = request.param()
    try:
        await made.open("probe")
    except ExecutorUnavailable as error:
        pytest.skip(f"the sandbox can't be had here: {error}")
    try:
        yield made
    finally:
        await made.aclose()


def one(add: Any) -> Any:
    """A graph of one node."""
    builder = StateGraph(State)
    add(builder)
    return builder.add_edge(START, "done").add_edge("done", END).compile()


async def test_code_runs_on_the_state(runs: Any) -> None:
    """Input goes in as JSON, the result comes out as a typed value, and its mapper makes the update."""
    graph = one(
        lambda b: b.add_code_node(
            "done",
            SUM,
            executor=runs,
            input_mapper=lambda state: {"numbers": state.numbers},
            output_mapper=lambda result: {"total": int(result.stdout), "done": result},
        )
    )
    result = await Executor(graph).run({"numbers": [1, 2, 3]})
    assert result.unwrap().total == 6
    assert result.state.done == ProgramResult(exit_code=0, stdout="6\n")


async def test_files_in_and_out(runs: Any) -> None:
    """Files are put there, and those in `out` come back with their text and digest; the workspace is gone then."""
    graph = one(
        lambda b: b.add_code_node(
            "done",
            "tr a-z A-Z < work/in.txt > out/deep.txt; printf '\\0' > out/bin",
            language="bash",
            executor=runs,
            files=lambda state: {"work/in.txt": "words"},
        )
    )
    done = (await Executor(graph).run({})).unwrap().done
    assert [(file.path, file.text, file.size) for file in done.files] == [
        ("out/bin", None, 1),
        ("out/deep.txt", "WORDS", 5),
    ]
    assert done.file("out/deep.txt").sha256 == hashlib.sha256(b"WORDS").hexdigest()
    root = (await runs.open("probe")).root.parent
    assert [path.name for path in root.iterdir() if "probe" not in path.name] == []


@pytest.mark.parametrize(
    ("code", "limits", "says"),
    [("echo why >&2; exit 4", {}, "ended with 4; it said: why"), ("sleep 60", {"seconds": 0.2}, "limit of time")],
)
async def test_a_program_that_fails_fails_its_node(runs: Any, code: str, limits: dict[str, Any], says: str) -> None:
    """Never a success: the run is failed with what the program said, unless the node records failures."""

    def graph(on_failure: str) -> Any:
        return one(
            lambda b: b.add_code_node(
                "done", code, language="bash", executor=runs, limits=ExecutionLimits(**limits), on_failure=on_failure
            )
        )

    result = await Executor(graph("fail")).run({})
    assert result.status == "failed"
    with pytest.raises(Exception, match=says) as caught:
        result.unwrap()
    found: BaseException | None = caught.value
    while found is not None and not isinstance(found, ProgramFailed):
        found = found.__cause__
    assert isinstance(found, ProgramFailed)
    assert not found.result.ok
    recorded = (await Executor(graph("record")).run({})).unwrap().done
    assert not recorded.ok


async def test_a_script_of_a_skill_runs_without_a_model(runs: Any, tmp_path: Path) -> None:
    """In the skill's directory, under the digest that its result tells; a skill that isn't there fails the node."""
    folder = tmp_path / "skills/greet"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nSay hello.\n")
    (folder / "scripts/hello.py").write_text("import os\nprint('hello from', os.path.basename(os.getcwd()))\n")
    skills = SkillDirectory(tmp_path / "skills")

    def graph(name: str) -> Any:
        command = ["python3", "scripts/hello.py"]
        return one(lambda b: b.add_skill_node("done", name, command, skills=skills, executor=runs))

    done = (await Executor(graph("greet")).run({})).unwrap().done
    assert done.stdout == "hello from greet\n"
    assert done.digest == (await skills.get("greet")).digest != ""
    result = await Executor(graph("gret")).run({})
    assert result.status == "failed"
    assert SkillNotFound.__name__ in repr(result.error) or "gret" in str(result.error)


async def test_artifacts_under_a_runner(tmp_path: Path, runs: Any) -> None:
    """What is saved is versioned in the session: 0, then 1; services come from the Runner."""
    graph = one(lambda b: b.add_code_node("done", "echo same > out/a.txt", language="bash", save=True))
    artifacts = InMemoryArtifacts()
    agent = GraphAgent("saver", graph)
    async with Runner("app", agent, artifacts=artifacts, executor=runs) as runner:
        for _ in range(2):
            events = [event async for event in runner.run("ann", "s1", "go")]
            assert events[-1].extensions["outcome"] == "completed"
    assert await artifacts.versions(SessionKey("app", "ann", "s1"), "a.txt") == [0, 1]
    bare = await Executor(
        one(lambda b: b.add_code_node("done", "true", language="bash", save=True, executor=runs))
    ).run()
    assert bare.status == "failed"
    assert "an artifact service" in str(bare.error)


@pytest.mark.parametrize("repeat", [False, True], ids=["once", "idempotent"])
async def test_a_crash_never_repeats_a_program_silently(tmp_path: Path, repeat: bool) -> None:
    """At every write the process dies: the program ran once; where it may have run and repeating isn't declared
    harmless the run says EffectUnknown, and where it is, the artifact is saved once."""
    count, unknown = tmp_path / "count", 0
    executor = LocalExecutor()
    for at in range(1, 30):
        count.unlink(missing_ok=True)
        graph = one(
            lambda b: b.add_code_node(
                "done", f"echo x >> {count}", language="bash", executor=executor, idempotent=repeat
            )
        )
        store = MemoryCheckpoints()
        dying = Dying(store, at, "before")
        try:
            await Executor(graph, dying).run({}, lineage="l")
            break
        except Died:
            pass
        if not await store.history("l"):
            continue
        result = await Executor(graph, store).resume("l")
        ran = count.read_text().count("x")
        if result.status == "completed":
            assert ran == 1 or (repeat and ran == 2)
        else:
            unknown += 1
            assert ran == 1
            assert not repeat
            found: Any = result.error
            assert isinstance(found, EffectUnknown) or isinstance(found.__cause__, EffectUnknown)
    await executor.aclose()
    assert unknown == (0 if repeat else 1)


def test_what_can_not_be_meant_is_told_at_compile() -> None:
    """An unknown language, a command that is one text, a field that isn't declared: all together, by name."""
    builder = StateGraph(State).add_code_node("done", "x", language="perl")  # type: ignore[arg-type]
    builder.add_skill_node("total", "greet", "run me").add_code_node("nowhere", "x")
    builder.add_edge(START, "done").add_edge("done", "total").add_edge("total", "nowhere").add_edge("nowhere", END)
    with pytest.raises(GraphDefinitionError) as caught:
        builder.compile()
    told = str(caught.value)
    assert "language 'perl' of node 'done' is unknown: known are python, bash" in told
    assert "node 'total' needs a command as a list of words" in told
    assert "field 'nowhere', which the state doesn't declare" in told


async def test_without_an_executor_the_run_says_so() -> None:
    """Nothing runs, and the message says what to give."""
    result = await Executor(one(lambda b: b.add_code_node("done", "x"))).run({})
    assert result.status == "failed"
    assert "node 'done' has no executor" in str(result.error)


def test_the_nodes_are_drawn_judged_and_written_down() -> None:
    """Documents, drawings and the validator know them; a document needs its function, as that of a model node does."""
    graph = one(lambda b: b.add_code_node("done", "x", description="adds"))
    document = json.loads(json.dumps(graph.to_json()))
    assert document["nodes"]["done"]["kind"] == "code"
    assert "done" in graph.to_mermaid()
    assert not [f for f in validate(graph).findings if f.severity == "error"]
    again = StateGraph.from_json(document, {"done": graph.nodes["done"].fn}).compile()
    assert again.nodes["done"].kind == "code"
    with pytest.raises(GraphDefinitionError, match="'code' is bound to nothing"):
        StateGraph.from_json(document, {}).compile()
