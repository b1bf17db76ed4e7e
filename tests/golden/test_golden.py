"""Runs of every release before this one load and go on as they did there, on both databases."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.databases import postgres_schema
from support.golden import EXPECTATIONS, GOLDEN, SQLITE, go_on, load_dump, load_module, plain, stored

from graphagent import Executor, SqlCheckpoints
from graphagent.checkpoint.sql.migrate import status
from graphagent.checkpoint.sql.schema import VERSION

pytestmark = pytest.mark.anyio
RELEASES = sorted(path.parent for path in GOLDEN.glob(f"*/{EXPECTATIONS}"))
KEPT = {folder: json.loads((folder / EXPECTATIONS).read_text()) for folder in RELEASES}
LINEAGES = [
    pytest.param(folder, name, id=f"{folder.name} {name}") for folder in RELEASES for name in KEPT[folder]["lineages"]
]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def copies(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, str]]:
    """The urls of copies of the golden databases, by release, for tests to write to: each on lineages of its own."""
    place = tmp_path_factory.mktemp("golden")
    with ExitStack() as servers:
        urls = {}
        for folder in RELEASES:
            if request.param == "sqlite":
                urls[folder] = f"sqlite:///{shutil.copy(folder / SQLITE, place / f'{folder.name}.sqlite')}"
            else:
                urls[folder] = servers.enter_context(postgres_schema())
                load_dump(urls[folder], folder)
        yield urls


def test_every_release_is_there() -> None:
    """There is golden data, of the release that began it too."""
    assert "v0_1_0" in [folder.name for folder in RELEASES]


@pytest.mark.parametrize(("folder", "lineage"), LINEAGES)
async def test_a_run_of_an_older_release_loads_and_goes_on(copies: dict[Path, str], folder: Path, lineage: str) -> None:
    """Rows, state in its types and open questions are those that were written; the run ends as it did there, and does
    nothing again that was done."""
    kept = KEPT[folder]["lineages"][lineage]
    graph = load_module(folder, "graph")
    async with SqlCheckpoints(copies[folder]) as store:
        executor = Executor(graph.GRAPHS[kept["graph"]], store, kept["engine"])
        found = await stored(store, executor, lineage)
        assert found == {name: kept[name] for name in ("frames", "state", "questions")}
        for namespace, rows in kept["frames"].items():
            for row in rows:
                assert await store.load(lineage, namespace, int(row.split()[0])) is not None
        for header in await executor.history(lineage):
            await executor.state(lineage, header.id)
        if kept["then"] is not None:
            assert await go_on(executor, lineage, kept["then"], graph.World()) == kept["ends"]
            assert await store.graph(executor.graph.fingerprint) == executor.graph.to_json()


@pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: str(folder.name))
async def test_values_of_many_types_come_back_equal(copies: dict[Path, str], folder: Path) -> None:
    """Every value that the release's node wrote is equal to what loads today, and of the same class."""
    graph = load_module(folder, "graph")
    async with SqlCheckpoints(copies[folder]) as store:
        history = await store.history("values")
        written = next(header.id for header in history if header.nodes == ("fill",))
        state = await Executor(graph.GRAPHS["values"], store).state("values", written)
    found = {name: getattr(state, name) for name in graph.VALUES}
    assert found == dict(graph.VALUES)
    assert plain(found) == plain(graph.VALUES)


@pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: str(folder.name))
def test_a_graph_has_the_fingerprint_it_had(folder: Path) -> None:
    """An unchanged graph is unchanged to this release too, so none of its runs counts as written by another one."""
    found = {name: graph.fingerprint for name, graph in load_module(folder, "graph").GRAPHS.items()}
    assert found == KEPT[folder]["fingerprints"]


@pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: str(folder.name))
async def test_the_tables_are_migrated_by_opening_them(folder: Path, tmp_path: Path) -> None:
    """What a release left is brought to this version when a store is opened on it, without a command."""
    url = f"sqlite:///{shutil.copy(folder / SQLITE, tmp_path)}"
    before = status(url)
    async with SqlCheckpoints(url):
        pass
    after = status(url)
    assert (after.current, after.steps, after.lineages, after.rows) == (VERSION, (), before.lineages, before.rows)
    assert len(before.steps) == VERSION - (before.current or 0)
