"""The same graph for other build systems: each step concatenates what it needs into one file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Graph = Mapping[str, Sequence[str]]
"""Output file -> files it is made of, in topological order; all relative to one folder."""


@dataclass(frozen=True)
class Peer:
    """Another build system.

    Attributes:
        name: Its command.
        steps_max: It is not asked for more: building them once takes too long.
        write: Writes the files that describe a graph into a folder.
        command: What brings the folder up to date.
        adopt: What takes outputs that are there already for its own; empty to let it make them.
    """

    name: str
    steps_max: int
    write: Callable[[Path, Graph], None]
    command: Sequence[str]
    adopt: Sequence[str] = ()

    def executable(self) -> str | None:
        """Return the program's path: next to this interpreter, or on PATH; None if it is not installed."""
        return shutil.which(self.name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")

    def build(self, folder: Path, graph_file: Path) -> list[str] | None:
        """Build a graph in a new folder, in a process of its own.

        Returns: What brings it up to date again; None if the peer is not installed.
        """
        found = self.executable()
        if found is None:
            return None
        subprocess.run(
            [sys.executable, __file__, self.name, str(folder), str(graph_file)], check=True
        )
        shell = ["/bin/sh", "-c", 'cd "$0" && exec "$@" >/dev/null']
        return [*shell, str(folder), found, *self.command]

    def version(self) -> str:
        """Return the version that the program prints."""
        asked = [str(self.executable()), "--version"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        return " ".join((done.stdout or done.stderr).split()[:1])


def write_sources(folder: Path, graph: Graph) -> None:
    """Write every file that no step makes."""
    (folder / "out").mkdir(parents=True)
    for path in {need for needs in graph.values() for need in needs} - graph.keys():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"# {path}\n")


def parts(graph: Graph) -> list[list[str]]:
    """Return the output files in parts that have no file in common, such as the steps of one recipe."""
    parents: dict[str, str] = {}

    def root(path: str) -> str:
        while parents.setdefault(path, path) != path:
            path = parents[path]
        return path

    for made, needs in graph.items():
        for need in needs:
            parents[root(need)] = root(made)
    found: dict[str, list[str]] = {}
    for made in graph:
        found.setdefault(root(made), []).append(made)
    return list(found.values())


def _ninja(folder: Path, graph: Graph) -> None:
    rules = [f"build {made}: join {' '.join(needs)}" for made, needs in graph.items()]
    head = ["rule join", "  command = cat $in > $out"]
    (folder / "build.ninja").write_text("\n".join([*head, *rules, ""]))


def _doit(folder: Path, graph: Graph) -> None:
    (folder / "graph.json").write_text(json.dumps(graph))
    (folder / "dodo.py").write_text(
        "import json\n\n"
        "with open('graph.json') as file:\n    GRAPH = json.load(file)\n\n\n"
        "def join(made, needs):\n"
        "    with open(made, 'w') as file:\n"
        "        file.writelines(open(need).read() for need in needs)\n\n\n"
        "def task_join():\n"
        "    for made, needs in GRAPH.items():\n"
        "        yield {'name': made, 'file_dep': needs, 'targets': [made],\n"
        "               'actions': [(join, [made, needs])]}\n"
    )


def _snakemake(folder: Path, graph: Graph) -> None:
    lines = [f"rule all:\n    input: {json.dumps(list(graph))}"]
    for number, (made, needs) in enumerate(graph.items()):
        lines.append(
            f"rule join{number}:\n    input: {json.dumps(needs)}\n    output: {json.dumps(made)}\n"
            '    shell: "cat {input} > {output}"'
        )
    (folder / "Snakefile").write_text("\n".join(lines) + "\n")


def _dvc(folder: Path, graph: Graph) -> None:
    tool = PEERS[-1].executable()
    subprocess.run([str(tool), "init", "--no-scm", "-q"], cwd=folder, check=True)
    (folder / ".dvc" / "config").write_text(
        "[core]\n    analytics = false\n    check_update = false\n    no_scm = true\n"
    )
    for number, part in enumerate(
        parts(graph)
    ):  # each step writes the whole lock file next to its dvc.yaml
        stages = {
            f"join{number}": {
                "wdir": "..",
                "cmd": f"cat {' '.join(graph[made])} > {made}",
                "deps": list(graph[made]),
                "outs": [made],
            }
            for number, made in enumerate(part)
        }
        (folder / f"part{number}").mkdir()
        (folder / f"part{number}" / "dvc.yaml").write_text(json.dumps({"stages": stages}))


PEERS = (
    Peer("ninja", 100_000, _ninja, ["--quiet"]),
    Peer("doit", 10_000, _doit, ["-v0", "--reporter", "zero"]),
    Peer(
        "snakemake", 1_000, _snakemake, ["--cores", "1", "--quiet", "all", "--scheduler", "greedy"]
    ),
    Peer(
        "dvc",
        1_000,
        _dvc,
        ["repro", "--quiet", "--all-pipelines"],
        adopt=["commit", "--force", "--quiet"],
    ),
)


def main() -> None:
    """Build one peer's graph: NAME FOLDER GRAPH.json."""
    name, folder, graph_file = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    (peer,) = (each for each in PEERS if each.name == name)
    graph = json.loads(graph_file.read_text())
    write_sources(folder, graph)
    peer.write(folder, graph)
    if peer.adopt:
        for made, needs in graph.items():
            (folder / made).write_text("".join((folder / need).read_text() for need in needs))
    for arguments in (peer.adopt or peer.command, peer.command):
        command = [str(peer.executable()), *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode or not all((folder / made).exists() for made in graph):
            sys.exit(f"{name} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


if __name__ == "__main__":
    main()
