"""Fill a store with an up-to-date build of many steps; `many_steps.py` starts it in a process of its own.

python benchmarks/fill_store.py FOLDER RECIPE[:RECIPE...] GRAPH.json [STEP] [--once]

GRAPH.json then holds the graph for other build systems: output -> the files it is made of.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from onnxbuild.building.api import Request, build
from onnxbuild.building.wiring import Workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.core.action import Expense, Listing, Observed
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import Done, Executor, Host, Job
from onnxbuild.core.step import Outcome


class SmallOutputs:
    """An executor that writes one small file an output; each job's content is its own."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._hosts = (workspace.host(),)
        self._folder = workspace.root / "tmp" / "benchmark"
        self._done: list[Done] = []
        self._count = 0

    def hosts(self) -> tuple[Host, ...]:
        """Return this machine."""
        return self._hosts

    def expect(self) -> None:
        """Always ready."""

    def start(self, job: Job) -> None:
        """Write the outputs at once."""
        self._count += 1
        kind = CATALOG[job.step.kind]
        outputs = {}
        for name in kind.outputs:
            folder = self._folder / str(self._count) / name
            folder.mkdir(parents=True)
            (folder / "report.json").write_text(f"{job.action.key} {name}")
            outputs[name] = self._workspace.store.ingest(folder, job.outputs[name])
        observed = Observed()
        if kind.user_code:
            prints = self._workspace.fingerprints
            source = Path(kind.entrypoints(job.step.params)[0].target.partition(":")[0])
            observed = Observed(
                sources={str(source): prints.source(str(source)) or ""},
                listings={str(source.parent): Listing((source.stem,), (source.name,))},
                distributions={"torch": prints.distribution("torch") or ""},
            )
        self._done.append(Done(job, Outcome(), outputs, observed, Expense(), None))

    def wait(self, timeout_s: float) -> list[Done]:
        """Return the jobs that were started since the last call."""
        del timeout_s
        done, self._done = self._done, []
        return done

    def close(self) -> None:
        """Nothing runs."""


def main() -> None:
    """Build twice: the second run leaves the note that makes the next one a glance."""
    folder, recipes, graph_file, *only = sys.argv[1:]
    once = "--once" in only
    asked = tuple(each for each in only if each != "--once")
    request = Request(tuple(map(Path, recipes.split(os.pathsep))), asked, store=folder)

    def executor(workspace: Workspace) -> Executor:
        return SmallOutputs(workspace)

    for _ in range(1 if once else 2):
        result = build(request, make_executor=executor)
        assert result.exit_code == 0, result.report.failures
    Path(graph_file).write_text(json.dumps(files_of(result.graph)))
    print(len(result.graph.steps))


def files_of(graph: Graph) -> dict[str, list[str]]:
    """Output -> outputs of other steps and source files that it is made of."""

    def output(name: str) -> str:
        return "out/" + "".join(c if c.isalnum() else "_" for c in name)

    found = {}
    for name, step in graph.steps.items():
        entrypoints = CATALOG[step.kind].entrypoints(step.params)
        needs = sorted({output(ref.step) for ref in step.inputs.values()})
        found[output(name)] = [*needs, *sorted(e.target.partition(":")[0] for e in entrypoints)]
    return found


if __name__ == "__main__":
    main()
