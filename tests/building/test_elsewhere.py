"""A whole graph with a store behind a store and steps that run on another machine."""

import shutil
from pathlib import Path

import pytest

from onnxbuild.building.api import Request, graph_of
from onnxbuild.building.wiring import RunOptions, Workspace, open_workspace, start_run
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import Executor
from onnxbuild.engine.report import Report
from tests.cli.conftest import cheap  # noqa: F401 - a fixture
from tests.fakes.cheap_kinds import CHEAP, KINDS
from tests.fakes.elsewhere import Elsewhere, open_behind
from tests.fakes.world import MemoryStore, RecordingSink


class Killed(BaseException):
    """In place of a SIGKILL."""


class Machines:
    """Two machines and what they share; the first one builds, the second one runs steps.

    Args:
        project: The project.
        folder: Where the stores and the other machine's copy of the project are.
    """

    def __init__(self, project: Path, folder: Path) -> None:
        self.project, self.folder = project, folder
        self.far = MemoryStore()
        self.copy = folder / "copy"
        shutil.copytree(project, self.copy)
        self.calls = 0
        self.kill_at = -1
        self.sent: list[str] = []

    def build(self, store: str = "here", kill_at: int = -1) -> Report:
        self.calls, self.kill_at = 0, kill_at
        here = open_behind(self.project, self.folder / store, self.far, self._call)
        there = open_behind(self.copy, self.folder / "there", self.far)
        executor = Elsewhere(there, KINDS.make_executor(there), CHEAP, self._call)
        try:
            return built(here, self.graph, executor)
        finally:
            self.sent += executor.sent
            there.close()

    @property
    def graph(self) -> Graph:
        return graph_of(Request((self.project / "tiny.yaml",)))

    def _call(self) -> None:
        self.calls += 1
        if self.calls == self.kill_at:
            raise Killed


def built(workspace: Workspace, graph: Graph, executor: Executor) -> Report:
    """Build; of a build that is killed nothing is saved, and its locks are free."""
    options, sink = RunOptions(), RecordingSink()
    run = start_run(workspace, "run-1", options, sink, catalog=CHEAP, executor=executor)
    try:
        report = run.builder.build(graph, "run-1")
        workspace.close()
    finally:
        run.close()
        workspace.index.close()
    return report


@pytest.fixture
def machines(cheap, tmp_path):  # noqa: F811
    return Machines(cheap.folder, tmp_path)


@pytest.fixture
def local(cheap, tmp_path):  # noqa: F811
    """The same build on one machine."""
    workspace = open_workspace(cheap.folder, tmp_path / "alone")
    graph = graph_of(Request((cheap.folder / "tiny.yaml",)))
    return built(workspace, graph, KINDS.make_executor(workspace))


def results(report: Report, graph: Graph) -> dict[str, object]:
    """What a build gives, but for what is measured."""
    assert report.exit_code == 0, report.failures
    assert set(report.results) == set(graph.steps)
    return {
        name: (result.key, result.outputs, result.observed)
        for name, result in report.results.items()
        if not CHEAP[graph.steps[name].kind].measures
    }


def test_steps_that_run_elsewhere_give_what_they_give_here(machines, local):
    graph = machines.graph
    report = machines.build()
    assert results(report, graph) == results(local, graph)
    assert len(report.built) == len(graph.steps)
    assert (machines.folder / "here/out/tiny/fp32/model.onnx").is_file()
    assert all(str(machines.folder) not in message for message in machines.sent)
    assert machines.build().built == []
    assert machines.build("another machine").built == []
    assert (machines.folder / "another machine/out/tiny/fp32/model.onnx").is_file()


def test_a_step_that_fails_elsewhere_fails_here(machines):
    (machines.copy / "models/helper.py").write_text("raise ValueError('no')\n")
    report = machines.build()
    assert report.failures[0].step == "tiny:export"
    assert "ValueError: no" in report.failures[0].error.what


def test_a_build_that_is_killed_at_any_moment_goes_on_where_it_was(machines, local):
    graph, expected = machines.graph, results(local, machines.graph)
    machines.build("counted")
    for moment in range(1, machines.calls, 4):
        machines.far = MemoryStore()
        store = f"killed at {moment}"
        shutil.rmtree(machines.folder / "there", ignore_errors=True)
        with pytest.raises(Killed):
            machines.build(store, kill_at=moment)
        finished = len(machines.far.records)
        report = machines.build(store)
        assert results(report, graph) == expected, moment
        assert len(report.built) <= len(graph.steps) - finished, moment
