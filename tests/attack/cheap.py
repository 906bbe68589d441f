"""A cheap world on a real disk: real engine, store, index, memo and views; steps that take no time.

As a program it builds what lines of JSON ask for, each in a process of its own, which can be asked
to kill itself before its n-th file operation: every moment of a build can be tried, and tried again.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from onnxbuild.adapters import memo
from onnxbuild.adapters.disk.atomic_files import store_error
from onnxbuild.adapters.disk.statcache import hash_file
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.fingerprints import DiskFingerprints
from onnxbuild.adapters.toolchain.importable import Importable, entries_of
from onnxbuild.adapters.toolchain.source_digest import source_digest
from onnxbuild.building.wiring import RunOptions, Workspace, open_workspace, start_run
from onnxbuild.core.action import Expense, Listing, Observed
from onnxbuild.core.digest import canonical_json
from onnxbuild.core.errors import BuildError, StepError
from onnxbuild.core.graph import Deliverable, Graph, OutputRef
from onnxbuild.core.params import to_json
from onnxbuild.core.ports import Done, Host, Job
from onnxbuild.core.step import Finding, Outcome
from tests.attack.damages import damage
from tests.fakes.world import CATALOG, FakeParams, RecordingSink, graph, outputs, sha, step

FILE_OPERATIONS = frozenset(
    {"open", "os.rename", "os.mkdir", "os.chmod", "os.remove", "os.rmdir", "fcntl.flock"}
)
OF_A_GLANCE = 2
"""Of a build that is up to date at a glance: it opens its memo, by path and by descriptor."""


@dataclass(frozen=True)
class Place:
    """Where a cheap world is.

    Attributes:
        project: Sources NAME.py, whose lines `import NAME` name others, and data.
        site: Installed packages.
        store: The store.
    """

    project: Path
    site: Path
    store: Path


@dataclass(frozen=True)
class Ended:
    """How a build ended.

    Attributes:
        killed: It killed itself.
        code: Its exit code.
        outputs: Step -> digest of its output.
        ran: Steps that ran.
        error: What it ended with, if not with a report.
        operations: How many file operations it made.
    """

    killed: bool = False
    code: int = 0
    outputs: Mapping[str, str] | None = None
    ran: Sequence[str] = ()
    error: str = ""
    operations: int = 0


def make(root: Path) -> Place:
    """An empty project, with the one package that all steps use."""
    place = Place(root / "project", root / "site", root / "store")
    place.project.mkdir(parents=True)
    place.site.mkdir()
    install(place, "1.0")
    return place


def install(place: Place, version: str) -> None:
    """Put that version of the package in the place of another."""
    for info in place.site.glob("*.dist-info"):
        shutil.rmtree(info)
    info = place.site / f"tool-{version}.dist-info"
    info.mkdir()
    (info / "RECORD").write_text(f"tool.py,sha256={version},1\n")


def step_of(name: str, *needs: str, **params: Any) -> dict[str, Any]:
    """A step, as `build` takes it."""
    nothing = {"kind": "fake", "value": 0, "files": [], "sources": [], "lossy": False}
    return {"name": name, "needs": list(needs), **nothing, **params}


def copy(source: Path, target: Path) -> None:
    """Make `target` what `source` is; gone, if that is not there."""
    shutil.rmtree(target, ignore_errors=True)
    if source.is_dir():
        shutil.copytree(source, target)


class Server:
    """Builds in child processes of one interpreter."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.cheap"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def build(
        self,
        place: Place,
        steps: Sequence[Mapping[str, Any]],
        kill_at: int = 0,
        edit: tuple[int, str, str] = (0, "", ""),
        rot: tuple[int, str] = (0, ""),
    ) -> Ended:
        """Build.

        Args:
            place: Where.
            steps: As `step_of` makes them.
            kill_at: The file operation, from 1, before which it is killed; 0 for none.
            edit: The file operation before which somebody saves a file, its name, its new text.
            rot: The file operation before which a bit of a file flips, and that file.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        paths = {name: str(path) for name, path in vars(place).items()}
        self._process.stdin.write(json.dumps([paths, list(steps), kill_at, edit, rot]) + "\n")
        self._process.stdin.flush()
        reported = json.loads(self._process.stdout.readline())
        assert "bug" not in reported, reported["bug"]
        return Ended(**reported)

    def kill(self) -> None:
        """End it, and the build that it waits for; its caller fails."""
        for each in psutil.Process(self._process.pid).children():
            each.kill()

    def close(self) -> None:
        self._process.communicate(timeout=300)


# --- a build ------------------------------------------------------------------------------------


def _build(place: Place, steps: Sequence[Mapping[str, Any]]) -> Ended:
    """As api.build and the command do it, but for recipes and children."""
    plan = _graph(steps)
    request = sha(json.dumps([str(place.project), str(place.store), list(steps)]))
    known = memo.recall(place.store, request, {})
    if known is not None:
        return Ended(outputs=known["outputs"])
    started_ns = time.time_ns()
    workspace = _open(place)
    sink = RecordingSink()
    run = f"{time.time_ns()}"
    started = start_run(
        workspace,
        run,
        RunOptions(jobs=2, keep_going=True),
        sink,
        catalog=CATALOG,
        executor=_CheapExecutor(workspace, place.store / "tmp" / run),
    )
    try:
        report = started.builder.build(plan, run)
        if report.exit_code == 0:
            memo.remember(
                workspace.root,
                request,
                {"environment": {}, "outputs": outputs(report)},
                workspace.stats,
                started_ns=started_ns,
            )
    finally:
        started.close()
        workspace.close()
    return Ended(code=report.exit_code, outputs=outputs(report), ran=sorted(report.built))


def _graph(steps: Sequence[Mapping[str, Any]]) -> Graph:
    made = [
        step(
            each["name"],
            *each["needs"],
            kind=each["kind"],
            value=each["value"],
            files=tuple(each["files"]),
            sources=tuple(each["sources"]),
            lossy=each["lossy"],
        )
        for each in steps
    ]
    views = [
        Deliverable("cheap", each.name, ((OutputRef(each.name, "out"), ""),)) for each in made
    ]
    return graph(*made, views=tuple(views))


def _open(place: Place) -> Workspace:
    workspace = open_workspace(place.project, place.store)
    distributions = Distributions(workspace.stats, (str(place.site),))
    fingerprints = DiskFingerprints(place.project, workspace.stats, distributions)
    return replace(workspace, distributions=distributions, fingerprints=fingerprints)


class _CheapExecutor:
    """Steps that read what they lean on anew, as a child would, and write a digest of it."""

    def __init__(self, workspace: Workspace, temp: Path) -> None:
        self._project = workspace.project
        self._store = workspace.store
        self._hosts = (workspace.host(),)
        self._temp = temp
        self._queue: deque[Job] = deque()

    def hosts(self) -> Sequence[Host]:
        return self._hosts

    def expect(self) -> None:
        """Always ready."""

    def start(self, job: Job) -> None:
        self._queue.append(job)

    def wait(self, timeout_s: float) -> list[Done]:
        return [self._run(self._queue.popleft())] if self._queue else []

    def close(self) -> None:
        shutil.rmtree(self._temp, ignore_errors=True)

    def _run(self, job: Job) -> Done:
        params = job.step.params
        assert isinstance(params, FakeParams)
        seen: dict[str, str] = {}
        looked: set[str] = set()
        stack = list(params.sources)
        while stack:
            name = stack.pop()
            looked.add(name)
            path = self._project / f"{name}.py"
            digest = source_digest(str(path))
            if digest is None or path.name in seen:
                continue
            seen[path.name] = digest
            lines = path.read_text().splitlines()
            if "raise" in lines:
                error = StepError("the code raised", where=job.step.name)
                return Done(job, None, {}, Observed(), Expense(), error)
            stack += [line.split()[1] for line in lines if line.startswith("import ")]
        inputs = {name: self._store.paths(each) for name, each in job.inputs.items()}
        files = {path: hash_file(str(self._project / path)) for path in job.action.files}
        used = [
            to_json(params),
            {
                name: {file: hash_file(str(blob)) for file, blob in blobs.items()}
                for name, blobs in inputs.items()
            },
            files,
            dict(sorted(seen.items())),
            dict(job.action.toolchain),
        ]
        body = canonical_json(used)
        if params.lossy:
            body = b"%d" % (int(sha(body.decode())[:8], 16) % 2)
        folder = self._temp / job.step.name
        folder.mkdir(parents=True)
        (folder / "part").mkdir()
        (folder / "part" / "more.txt").write_text(job.step.kind)
        (folder / "report.json").write_bytes(body)
        names = tuple(sorted(looked))
        found = Importable(entries_of(str(self._project))).of(names)
        return Done(
            job,
            Outcome(metrics={"n": 1}, findings=() if params.verdict else (Finding("low"),)),
            {"out": self._store.ingest(folder, job.outputs["out"])},
            Observed(
                sources=dict(sorted(seen.items())),
                listings={".": Listing(names, found)} if looked else {},
            ),
            Expense(1.0, 1.0, 1 << 20),
            None,
        )


# --- the program --------------------------------------------------------------------------------


def _answer_of(
    place: Place,
    steps: Sequence[Mapping[str, Any]],
    kill_at: int,
    edit: tuple[int, str, str],
    rot: tuple[int, str],
) -> dict[str, Any]:
    count, edited = 0, False  # the file operations that an edit makes itself are none

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count, edited
        if event in FILE_OPERATIONS:
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            if count == edit[0] and not edited:
                edited = True
                (place.project / edit[1]).write_text(edit[2])
            if count == rot[0] and not edited and Path(rot[1]).exists():
                edited = True
                damage(Path(rot[1]), "flipped")

    sys.addaudithook(hook)
    try:
        ended = _build(place, steps)
    except BuildError as error:
        ended = Ended(code=error.exit_code, error=str(error))
    except OSError as error:
        ended = Ended(code=1, error=str(store_error(error, error.filename or "the output")))
    except Exception:  # noqa: BLE001 - the child's edge
        return {"bug": traceback.format_exc()}
    return asdict(replace(ended, operations=count))


def main() -> None:
    """Build what is asked for, line by line."""
    for line in sys.stdin:
        paths, steps, kill_at, edit, rot = json.loads(line)
        place = Place(**{name: Path(path) for name, path in paths.items()})
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            with os.fdopen(write, "w") as answer:
                json.dump(_answer_of(place, steps, kill_at, edit, rot), answer)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            text = answer.read()
        os.waitpid(pid, 0)
        sys.stdout.write((text or json.dumps(asdict(Ended(killed=True)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
