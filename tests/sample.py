"""Which slow tests CI runs, and how: `python -m tests.sample`, which `make test-sample` calls.

A commit's sample is all guarantees (marked `always`), a quarter of all other tests (another one for each of four commits
in a row), and for at most one minute those nearest to what the last 60 commits changed. A test that fails is run
once more, alone, at the end: if it passes then, the summary names it as flaky. docs/decisions/0040-tests-in-tiers.md has the reasons.

    python -m tests.sample          the sample
    python -m tests.sample --left   the slow tests that the last sample left out
    python -m tests.sample --all    all slow tests; writes what each file's tests take to tests/slow_seconds.json
"""

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SECONDS = ROOT / "tests/slow_seconds.json"
"""Seconds that a file's tests take, but for guarantees: they make four quarters that take equally long."""

STATE = ROOT / "build/sample"
SLOW = "(slow and not smoke) or sampled"
QUARTERS, COMMITS, WORKERS = 4, 60, 2
NEAR_S = 60 * WORKERS
"""Seconds of tests near to what changed: a minute of each worker."""

FARTHEST = 2
"""Imports between a test and a change that still counts as near."""

UNKNOWN_S = 20.0


@dataclass(frozen=True, slots=True)
class Change:
    """What decides a commit's sample."""

    commits: int
    paths: frozenset[str] = frozenset()


@dataclass(slots=True)
class Choice:
    """Node ids of slow tests, by the reason why they run; `left` ones don't."""

    always: list[str] = field(default_factory=list)
    quarter: list[str] = field(default_factory=list)
    near: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def chosen(self) -> set[str]:
        return {*self.always, *self.quarter, *self.near}


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def file_of(test: str) -> str:
    return test.partition("::")[0]


def quarters(seconds: Mapping[str, float]) -> dict[str, int]:
    """Deal files out, those that take longest first, each to the quarter that takes least so far."""
    spent, dealt = [0.0] * QUARTERS, dict[str, int]()
    for file, takes in sorted(seconds.items(), key=lambda each: (-each[1], each[0])):
        dealt[file] = spent.index(min(spent))
        spent[dealt[file]] += takes
    return dealt


def choose(
    tests: Iterable[str],
    always: set[str],
    change: Change,
    distance: Callable[[str], int | None],
    seconds: Mapping[str, float],
) -> Choice:
    """Sort the tests of a commit into those that run and those that are left to other commits.

    A file's tests, but for guarantees, go together: they share fixtures that build for minutes.

    Args:
        distance: Imports between a test's file and the nearest changed one; None beyond FARTHEST.
        seconds: As in SECONDS.
    """
    choice, files, quarter_of = Choice(), dict[str, list[str]](), quarters(seconds)
    for test in tests:
        if test in always:
            choice.always.append(test)
        else:
            files.setdefault(file_of(test), []).append(test)
    near, spent = [], 0.0
    for file, those in files.items():
        if quarter_of.get(file, _number(file) % QUARTERS) == change.commits % QUARTERS:
            choice.quarter += those
        elif (far := distance(file)) is not None:
            near.append((far, _number(f"{change.commits} {file}"), file))
        else:
            choice.left += those
    for _, _, file in sorted(near):
        takes = seconds.get(file, UNKNOWN_S)
        fits = spent + takes <= NEAR_S
        spent += takes if fits else 0
        (choice.near if fits else choice.left).extend(files[file])
    return choice


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else ""


def last_change() -> Change:
    """The number of commits, and what the last ones changed; a folder without git counts as commit 0."""
    named = _git("log", f"-{COMMITS}", "--format=", "--name-only", "-z")
    return Change(
        int(_git("rev-list", "--count", "HEAD") or 0), frozenset(filter(None, named.split("\0")))
    )


class Distances:
    """How far each test's file is from the changed ones, by imports; helpers below tests/ are part of their tests."""

    def __init__(self, paths: Iterable[str]) -> None:
        import grimp

        self._graph = grimp.build_graph("onnxbuild", "tests")
        self._paths = frozenset(paths)
        self._changed = set(self._modules())
        self._rooms = {name.rpartition(".")[0] for name in self._changed}

    def _modules(self) -> Iterator[str]:
        for path in map(PurePosixPath, self._paths):
            if path.parts[0] not in ("onnxbuild", "tests"):
                continue
            name = ".".join(path.with_suffix("").parts)
            if path.suffix == ".py" and name in self._graph.modules:
                yield name
            elif path.parts[0] == "onnxbuild":  # a template, a list: of its package
                yield from (
                    name
                    for name in self._graph.modules
                    if name.rpartition(".")[0] == ".".join(path.parts[:-1])
                )

    def __call__(self, file: str) -> int | None:
        """None beyond FARTHEST."""
        test = ".".join(PurePosixPath(file).with_suffix("").parts)
        if file in self._paths:
            return 0
        mirrored = "onnxbuild" + test.rpartition(".")[0].removeprefix("tests")
        if mirrored in self._rooms:
            return 1
        seen, here = {test}, [test] if test in self._graph.modules else []
        for far in range(FARTHEST + 1):
            nearer = list(here)
            while nearer:  # helpers of tests
                found = self._imported_by(nearer.pop()) - seen
                helpers = {name for name in found if name.startswith("tests.")}
                seen |= helpers
                here += helpers
                nearer += helpers
            if self._changed & set(here):
                return far
            following = {name for module in here for name in self._imported_by(module)} - seen
            seen |= following
            here = list(following)
        return None

    def _imported_by(self, module: str) -> set[str]:
        return self._graph.find_modules_directly_imported_by(module)


# The plug-in: `pytest -p tests.sample --slow-tests sample`.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow-tests", choices=("sample", "left", "all"), default="all")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Results(), "results of the sample")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what the option says; every worker comes to the same choice."""
    which = config.getoption("--slow-tests")
    if which == "left":
        ran = set((STATE / "ran.txt").read_text().splitlines())
        kept = {item.nodeid for item in items} - ran
    elif which == "sample":
        always = {item.nodeid for item in items if item.get_closest_marker("always")}
        change = last_change()
        distances = Distances(change.paths)
        seconds = json.loads(SECONDS.read_text())
        choice = choose([item.nodeid for item in items], always, change, distances, seconds)
        kept = choice.chosen
        if "workerinput" not in vars(config) or config.workerinput["workerid"] == "gw0":
            _write(
                "choice.json",
                json.dumps({name: getattr(choice, name) for name in Choice.__slots__}),
            )
    else:
        return
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def _write(name: str, text: str) -> None:
    STATE.mkdir(parents=True, exist_ok=True)
    (STATE / name).write_text(text)


class _Results:
    """What ran, what failed and what each test took, left in STATE for the summary."""

    def __init__(self) -> None:
        self.tests: dict[str, None] = {}
        self.files: dict[str, float] = {}
        self.failed: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests[report.nodeid] = None
        if "always" not in report.keywords:
            file = file_of(report.nodeid)
            self.files[file] = self.files.get(file, 0.0) + report.duration
        if report.failed:
            self.failed[report.nodeid] = None

    def pytest_sessionfinish(self) -> None:
        files = {file: round(took, 1) for file, took in sorted(self.files.items())}
        results = {"tests": list(self.tests), "failed": list(self.failed), "files": files}
        _write("results.json", json.dumps(results))


def _pytest(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code, and what _Results left."""
    (STATE / "results.json").unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.sample", *arguments]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if not (STATE / "results.json").exists():
        return code or 3, {"tests": [], "failed": [], "files": {}}
    return code, json.loads((STATE / "results.json").read_text())


def _summary(which: str, ran: int, flaky: list[str], failed: list[str]) -> Iterator[str]:
    yield f"slow tests: {ran:,} ran"
    if which == "sample" and (STATE / "choice.json").exists():
        choice = json.loads((STATE / "choice.json").read_text())
        quarter = last_change().commits % QUARTERS + 1
        yield (
            f"  {len(choice['always']):,} guarantees, {len(choice['quarter']):,} of quarter {quarter} of {QUARTERS}, "
            f"{len(choice['near']):,} near to what the last {COMMITS} commits changed"
        )
        files = sorted({file_of(test) for test in choice["left"]})
        yield f"  {len(choice['left']):,} left to other commits, in {len(files):,} files: {' '.join(files)}"
        yield "  to run those: make test-left"
    yield from (f"flaky: {test} failed, and passed when it was run again alone" for test in flaky)
    yield from (f"failed twice: {test}" for test in failed)


def main() -> int:
    """Exit code 0 if each test passed, at the latest when it was run again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--left", dest="which", action="store_const", const="left", default="sample"
    )
    parser.add_argument("--all", dest="which", action="store_const", const="all")
    which = parser.parse_args().which
    if which == "left" and not (STATE / "ran.txt").exists():
        parser.error("no sample ran here: run `make test-sample` first")
    spread = ("-n", str(WORKERS), "--dist", "loadfile", "--no-loadscope-reorder")
    code, results = _pytest(*spread, "-m", SLOW, "--slow-tests", which)
    ran, failed = results["tests"], results["failed"]
    before = (STATE / "ran.txt").read_text().splitlines() if which == "left" else []
    _write("ran.txt", "\n".join([*before, *ran]))
    _write("seconds.json", json.dumps(results["files"], indent=0))
    flaky: list[str] = []
    if code == pytest.ExitCode.TESTS_FAILED and failed:
        print(f"{len(failed)} failed; each runs once more, alone", flush=True)
        again = [test for test in failed if _pytest(test)[0] != 0]
        flaky = [test for test in failed if test not in again]
        code, failed = (1 if again else 0), again
    print("\n".join(_summary(which, len(ran), flaky, failed)), flush=True)
    if which == "all" and code == 0:
        SECONDS.write_text(json.dumps(results["files"], indent=0) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
