"""Fill a store with an up-to-date build of many steps; `uptodate.py` starts it in a process of its own.

python benchmarks/fill_store.py FOLDER RECIPE [--only STEP]
"""

from __future__ import annotations

import sys
from pathlib import Path

from onnxbuild.api import Request, build
from onnxbuild.catalog import CATALOG
from onnxbuild.core.action import Expense, Listing, Observed
from onnxbuild.core.ports import Done, Executor, Job
from onnxbuild.core.step import Outcome
from onnxbuild.wiring import Workspace


class SmallOutputs:
    """An executor that writes one small file an output; each job's content is its own."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._folder = workspace.root / "tmp" / "benchmark"
        self._done: list[Done] = []
        self._count = 0

    def start(self, job: Job) -> None:
        """Write the outputs at once."""
        self._count += 1
        kind = CATALOG[job.step.kind]
        outputs = {}
        for name in kind.outputs:
            folder = self._folder / str(self._count) / name
            folder.mkdir(parents=True)
            (folder / "report.json").write_text(f"{job.action.key} {name}")
            outputs[name] = folder
        observed = Observed()
        if kind.user_code:
            prints = self._workspace.fingerprints
            source = "models/linear.py"
            observed = Observed(
                sources={source: prints.source(source) or ""},
                listings={"models": Listing(("linear",), ("linear.py",))},
                distributions={"torch": prints.distribution("torch") or ""},
            )
        self._done.append(Done(job, Outcome(), outputs, observed, Expense(), None))

    def wait(self, timeout_s: float) -> list[Done]:
        """All jobs started since the last call."""
        del timeout_s
        done, self._done = self._done, []
        return done

    def release(self, done: Done) -> None:
        """The outputs were moved into the store."""

    def close(self) -> None:
        """Nothing runs."""


def main() -> None:
    """Build twice: the second run leaves the note that makes the next one a glance."""
    folder, recipe, *only = sys.argv[1:]
    request = Request((Path(recipe),), tuple(only), store=folder)

    def executor(workspace: Workspace) -> Executor:
        return SmallOutputs(workspace)

    for _ in range(2):
        result = build(request, make_executor=executor)
        assert result.exit_code == 0, result.report.failures
    print(len(result.graph.steps))


if __name__ == "__main__":
    main()
