"""Measure hundreds of recipes in one run: first build, up to date, one edit; next to DVC and Snakemake on an equal graph.

Each recipe is a file with a source file and 8 steps of its own. What is compared is the build system's own work:
onnxbuild's steps are stand-ins that write small files in its own process (`fill_store.py`), those of the others
concatenate files, each in a shell. DVC gets a dvc.yaml for each recipe: with one for all, each step writes the whole lock file. Recipes, keys, records, views and up-to-date runs are the real ones.

    python benchmarks/many_recipes.py [--recipes 300] [--rounds 3] [--peers PYTHON_ENVIRONMENT/bin]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from many_steps import MODEL, RECIPE, TOOL, with_bytecode
from peers import PEERS, write_sources
from side_by_side import Sample, machine, median_cpu_s, median_s, run_once

NAMES = ("snakemake", "dvc")


def write_recipes(folder: Path, count: int) -> list[str]:
    """Write a project of `count` recipe files; return their paths."""
    (folder / "models").mkdir(parents=True)
    (folder / "recipes").mkdir()
    (folder / "pyproject.toml").write_text("")
    paths = []
    for number in range(count):
        (folder / "models" / f"linear{number}.py").write_text(MODEL.format(width=number + 1))
        text = RECIPE.format(numbers=number).replace("name: many", f"name: many{number}")
        text = text.replace(f"matrix: {{number: [{number}]}}\n", "")
        text = text.replace("models/linear{{ number }}", f"../models/linear{number}")
        path = folder / "recipes" / f"many{number}.yaml"
        path.write_text(text)
        paths.append(str(path))
    return paths


def edit(path: Path) -> None:
    """Change what a source file says."""
    path.write_text(f"{path.read_text()}\nEDIT = {os.urandom(4).hex()!r}\n")


def ours(folder: Path, count: int) -> tuple[Mapping[str, Callable[[], Sample]], Path]:
    """Return what to measure of onnxbuild, and the file with the graph, which the first build writes."""
    recipes, graph = write_recipes(folder, count), folder / "graph.json"
    fill = [
        sys.executable,
        str(Path(__file__).with_name("fill_store.py")),
        str(folder / "artifacts"),
    ]
    build = [*fill, os.pathsep.join(recipes), str(graph)]

    def one_edit() -> Sample:
        edit(folder / "models" / "linear0.py")
        return run_once([*build, "--once"])

    return {
        "first build": lambda: run_once([*build, "--once"]),
        "up to date": lambda: run_once([TOOL, "run", str(folder / "recipes")]),
        "one edit": one_edit,
    }, graph


def theirs(name: str, folder: Path, graph_file: Path) -> Mapping[str, Callable[[], Sample]] | None:
    """Return what to measure of another build system; None if it is not installed."""
    (peer,) = (each for each in PEERS if each.name == name)
    found = peer.executable()
    if found is None:
        return None
    graph = json.loads(graph_file.read_text())
    folder.mkdir()
    write_sources(folder, graph)
    peer.write(folder, graph)
    command = [found, *peer.command]

    def one_edit() -> Sample:
        edit(next(path for path in sorted(folder.rglob("linear0.py"))))
        return run_once(command, folder)

    return {
        "first build": lambda: run_once(command, folder),
        "up to date": lambda: run_once(command, folder),
        "one edit": one_edit,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", help="folder of the others' programs, where it is not on PATH")
    arguments = parser.parse_args()
    if arguments.peers:
        os.environ["PATH"] = f"{arguments.peers}:{os.environ['PATH']}"
    print(machine())
    with tempfile.TemporaryDirectory() as temp:
        with_bytecode(Path(temp) / "bytecode")
        subprocess.run([TOOL, "--version"], check=True, stdout=subprocess.DEVNULL)
        own, graph = ours(Path(temp) / "onnxbuild", arguments.recipes)
        samples: dict[str, dict[str, list[Sample]]] = {"onnxbuild": {}}
        samples["onnxbuild"]["first build"] = [own["first build"]()]
        own["up to date"]()  # leaves the note that makes the next one a glance
        all_tools = {"onnxbuild": own}
        for name in NAMES:
            measured = theirs(name, Path(temp) / name, graph)
            if measured is None:
                print(f"{name}: not installed")
                continue
            all_tools[name] = measured
            samples[name] = {"first build": [measured["first build"]()]}
            print(
                f"{name}: first build {samples[name]['first build'][0].wall_s:.1f} s", flush=True
            )
        for _ in range(arguments.rounds):
            for what in ("up to date", "one edit"):
                for name, tool in all_tools.items():
                    samples[name].setdefault(what, []).append(tool[what]())
        steps = len(json.loads(graph.read_text()))
    print(f"{arguments.recipes} recipes, {steps:,} steps")
    print("| | first build | up to date | one edit |\n|---|---:|---:|---:|")
    for name, found in samples.items():
        cells = []
        for what in ("first build", "up to date", "one edit"):
            ratio = median_cpu_s(found[what]) / median_cpu_s(samples["onnxbuild"][what])
            cells.append(
                f"{median_s(found[what]):.2f} s, {median_cpu_s(found[what]):.2f} s of CPU ({ratio:.1f} x)"
            )
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
