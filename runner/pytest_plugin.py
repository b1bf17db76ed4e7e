"""The pytest plugin: graphs and recorded runs that the configuration of pytest names become tests.

Loaded by every pytest that has graphagent installed, so that it imports pytest and nothing else until there is a graph.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

NAME = "graphagent"
_PREFIX = f"{NAME}::"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the ini file."""
    group = "graphs to check, one a line: module:name, file.py:name, a file, a folder, or a graph as .json"
    parser.addini("graphagent_graphs", group, type="linelist", default=[])
    parser.addini("graphagent_fail_on", "the least severity of a finding that fails a graph: error, warning or info")
    runs = "runs that 'graphagent export' wrote, one file or pattern a line, which are replayed without a store"
    parser.addini("graphagent_runs", runs, type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Take ids such as `graphagent::app.flows:order` out of the arguments, which pytest would look for as files."""
    words = [word for word in config.args if word.startswith(_PREFIX)]
    config.stash[_CHOSEN] = chosen = []
    if words:
        config.args[:] = [word for word in config.args if word not in words]
        # as printed by --verbose: there pytest writes each dot of a name as '::'
        known = {spelled: name for name in _names(config) for spelled in (name.replace(".", "::"), name)}
        for word in words:
            name = known.get(word.removeprefix(_PREFIX))
            if name is None:
                there = ", ".join(f"'{name}'" for name in _names(config)) or "none"
                raise pytest.UsageError(f"'{word}' is none of graphagent_graphs and graphagent_runs; known: {there}")
            chosen.append(name)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Add the graphs to what the session collects."""
    report = yield
    if isinstance(collector, pytest.Session) and (collector.config.stash[_CHOSEN] or _wants_all(collector.config)):
        report.result.append(GraphTests.from_parent(collector, name=NAME, nodeid=NAME))
    return report


class GraphTests(pytest.Collector):
    """All graphs and recorded runs that the ini file names, or those of them that were asked for."""

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each."""
        chosen = self.config.stash[_CHOSEN]
        for name in _graphs(self.config):
            if not chosen or name in chosen:
                yield GraphItem.from_parent(self, name=name)
        for name in _runs(self.config):
            if not chosen or name in chosen:
                yield RunItem.from_parent(self, name=name)


class GraphItem(pytest.Item):
    """A test that a graph has no findings that count."""

    def runtest(self) -> None:
        """Check the graph as `graphagent check` does, with the settings of pyproject.toml."""
        from runner.check.as_test import check_target

        failed, text = check_target(self.name, self.config.rootpath, self.config.getini("graphagent_fail_on"))
        _tell(self, failed, text)

    def reportinfo(self) -> tuple[Path, None, str]:
        """The file that names the graph."""
        return _named_in(self.config), None, self.name


class RunItem(pytest.Item):
    """A test that a graph still goes the way of a recorded run."""

    def runtest(self) -> None:
        """Replay the run without a store."""
        from runner.check.as_test import replay_file

        failed, text = replay_file(self.name, self.config.rootpath)
        _tell(self, failed, text)

    def reportinfo(self) -> tuple[Path, None, str]:
        """The file that names the run."""
        return _named_in(self.config), None, self.name


_CHOSEN = pytest.StashKey[list[str]]()


def _tell(item: pytest.Item, failed: bool, text: str) -> None:
    if failed:
        pytest.fail(text, pytrace=False)
    item.add_report_section("call", NAME, text)


def _named_in(config: pytest.Config) -> Path:
    return config.inipath or config.rootpath


def _wants_all(config: pytest.Config) -> bool:
    """False where only some files or tests were asked for."""
    places = [Path(config.invocation_params.dir, word) for word in config.args]
    return not any("::" in word or place.is_file() for word, place in zip(config.args, places, strict=True))


def _names(config: pytest.Config) -> list[str]:
    return [*_graphs(config), *_runs(config)]


def _graphs(config: pytest.Config) -> list[str]:
    return list(dict.fromkeys(config.getini("graphagent_graphs")))


def _runs(config: pytest.Config) -> list[str]:
    """Files of the patterns, named from the root; a pattern that finds none stands for itself, and fails."""
    root = config.rootpath
    found: dict[str, None] = {}
    for pattern in config.getini("graphagent_runs"):
        files = sorted(path.relative_to(root).as_posix() for path in root.glob(pattern))
        found |= dict.fromkeys(files or [pattern])
    return list(found)
