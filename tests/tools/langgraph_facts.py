"""Makes tests/validation/langgraph_graphs: the shapes of graphs that other people's packages build.

Run it where the packages are installed (no two of them need to be), with this repository on the path:

    python tests/tools/langgraph_facts.py FOLDER

Every package that can be imported is asked for its graphs, with a chat model that says nothing; what is kept are ids of
nodes and edges. A graph that can't be built is said so and left out.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from runner.convert.langgraph import documents

Made = Iterator[tuple[str, Any]]


def model() -> Any:
    """A chat model that has nothing to say."""
    chat = importlib.import_module("langchain_core.language_models.fake_chat_models").GenericFakeChatModel

    class Silent(chat):  # type: ignore[misc]
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

        def with_structured_output(self, schema: Any, **options: Any) -> Any:
            return self

    return Silent(messages=iter(()))


def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


def agent(name: str, *tools: Any, **options: Any) -> Any:
    """LangGraph's prebuilt agent."""
    return importlib.import_module("langgraph.prebuilt").create_react_agent(
        model(), list(tools or (add,)), name=name, **options
    )


def prebuilt() -> Made:
    """Both versions, with and without hooks and a response format."""
    fields = importlib.import_module("pydantic").create_model("Answer", x=(int, ...))
    for version in ("v1", "v2"):
        yield f"react_{version}", agent("agent", version=version)
        hooks = {"pre_model_hook": lambda state: {}, "post_model_hook": lambda state: {}}
        yield f"react_{version}_hooks", agent("agent", version=version, response_format=fields, **hooks)


def langchain() -> Made:
    """The agent with a pile of middleware."""
    made = importlib.import_module("langchain.agents").create_agent
    middle = importlib.import_module("langchain.agents.middleware")
    yield "create_agent", made(model(), [add])
    pile = [
        middle.HumanInTheLoopMiddleware(interrupt_on={"add": True}),
        middle.SummarizationMiddleware(model=model()),
        middle.TodoListMiddleware(),
        middle.ModelCallLimitMiddleware(run_limit=3),
        middle.PIIMiddleware("email"),
        middle.ToolCallLimitMiddleware(run_limit=3),
    ]
    yield "create_agent_middleware", made(model(), [add], middleware=pile)


def supervisor() -> Made:
    """One team, and a team of teams."""
    made = importlib.import_module("langgraph_supervisor").create_supervisor
    yield "supervisor", made([agent("adder"), agent("writer")], model=model()).compile()
    team = made([agent("adder"), agent("writer")], model=model(), supervisor_name="lead").compile(name="team")
    yield "hierarchy", made([team, agent("editor")], model=model(), supervisor_name="top").compile()


def swarm() -> Made:
    """Two agents that hand over to each other."""
    package = importlib.import_module("langgraph_swarm")
    alice = agent("Alice", add, package.create_handoff_tool(agent_name="Bob"))
    bob = agent("Bob", package.create_handoff_tool(agent_name="Alice"))
    yield "swarm", package.create_swarm([alice, bob], default_active_agent="Alice").compile()


def deepagents() -> Made:
    """With a sub-agent and a question to a person."""
    made = importlib.import_module("deepagents").create_deep_agent
    critic = {"name": "critic", "description": "d", "system_prompt": "p", "tools": [add]}
    yield "deep_agent", made(model=model(), tools=[add])
    yield "deep_agent_sub", made(model=model(), tools=[add], subagents=[critic], interrupt_on={"add": True})


def extractors() -> Made:
    """The graph inside the extractor of trustcall, on which langmem builds."""
    steps = importlib.import_module("trustcall").create_extractor(model(), tools=[add], tool_choice="add").steps
    yield "extractor", next(step for step in steps if hasattr(step, "builder"))


def bigtool() -> Made:
    """An agent that looks its tools up."""
    tools = {"1": importlib.import_module("langchain_core.tools").tool(add)}
    yield "bigtool", importlib.import_module("langgraph_bigtool").create_agent(model(), tools).compile()


def codeact() -> Made:
    """An agent that writes code."""
    made = importlib.import_module("langgraph_codeact").create_codeact
    yield "codeact", made(model(), [add], lambda code, values: ("", {})).compile()


def cua() -> Made:
    """An agent that uses a computer."""
    yield "cua", importlib.import_module("langgraph_cua").create_cua()


PACKAGES: dict[str, Callable[[], Made]] = {
    "langgraph-prebuilt": prebuilt,
    "langchain": langchain,
    "langgraph-supervisor": supervisor,
    "langgraph-swarm": swarm,
    "deepagents": deepagents,
    "trustcall": extractors,
    "langgraph-bigtool": bigtool,
    "langgraph-codeact": codeact,
    "langgraph-cua": cua,
}


def slim(drawing: dict[str, Any]) -> dict[str, Any]:
    """A drawing without anything but ids, edges, breakpoints and deferral."""
    nodes = []
    for node in drawing["nodes"]:
        kept = {k: v for k, v in (node.get("metadata") or {}).items() if k in ("__interrupt", "defer")}
        nodes.append({"id": node["id"], **({"metadata": kept} if kept else {})})
    return {"nodes": nodes, "edges": drawing["edges"]}


def facts(package: str, made: Made) -> dict[str, Any]:
    """What is kept of the graphs of a package."""
    version = importlib.metadata.version(package)
    kept: dict[str, Any] = {"package": package, "version": version, "objects": {}, "drawings": {}}
    for name, graph in made:
        for path, document in documents(graph, name=name).items():
            kept["objects"][path] = {
                key: value for key, value in document.items() if key == "inputs" or value not in ([], None)
            }
            kept["objects"][path].pop("state", None)
        kept["drawings"][name] = slim(graph.get_graph().to_json())
        kept["drawings"][f"{name} xray"] = slim(graph.get_graph(xray=True).to_json())
    return kept


def main(folder: str) -> None:
    """Write a file for every package that is here."""
    for package, make in PACKAGES.items():
        try:
            kept = facts(package, make())
        except Exception as error:
            print(f"{package}: left out, {type(error).__name__}: {error}")
            continue
        path = Path(folder) / f"{package}-{kept['version']}.json"
        path.write_text(json.dumps(kept, separators=(",", ":")) + "\n", encoding="utf-8")
        print(f"{path.name}: {len(kept['objects'])} graphs")


if __name__ == "__main__":
    main(sys.argv[1])
