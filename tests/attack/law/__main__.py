"""Check random programs: `python -m tests.attack.law --seed 1 --programs 200`.

It runs itself in a virtual environment of its own, in which packages come and go.
"""

import argparse
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from tests.attack.law.builds import Builds
from tests.attack.law.draw import GROUPS, draw, matrix
from tests.attack.law.laws import Checker
from tests.attack.law.program import Part, Program
from tests.attack.law.violations import describe, replay, shown, write
from tests.attack.small import Interpreter

_INSIDE = "ONNXBUILD_LAW_INSIDE"


def main() -> int:
    options = _options()
    if options.seed is None:
        options.seed = random.randrange(10**6)
    if options.jobs > 1:
        return _in_parallel(options.jobs, options.seed)
    if _INSIDE not in os.environ:
        _go_inside(options.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # clean up
    folder = Path(os.environ[_INSIDE])
    builds = Builds(folder / "template")
    checker = Checker(folder, builds)
    started_s = time.monotonic()
    number, failed = 0, 0
    try:
        for program in _programs(options, checker):
            number += 1
            if options.into:
                write(program, Path(options.into))
            found = checker.check(program)
            if options.verbose:
                click.echo(f"{program.seed}: {checker.course}")
            failed += bool(found)
            for violation in found:
                lines = [f"seed {program.seed}: {violation.kind} after {shown(violation.edit)}"]
                lines += [f"    {each}" for each in violation.labels] or [violation.report]
                click.echo("\n".join(lines))
            for violation in found:
                small = violation if options.no_shrink else checker.shrink(violation)
                brief = f"    {replay(small.program)}\n{small.report}"
                click.echo(brief if options.brief else f"{describe(small)}\n")
    finally:
        checker.close()
        builds.close()
        shutil.rmtree(folder, ignore_errors=True)
    tally = checker.tally
    click.echo(
        f"{number} programs from seed {options.seed} in {time.monotonic() - started_s:.0f} s"
    )
    click.echo(
        f"first builds by exit code: {dict(tally.first)}; clean builds: {dict(tally.builds)}"
    )
    click.echo(f"edits: {dict(tally.edits)}")
    for text, count in tally.errors.most_common(40):
        click.echo(f"  {count} x {text}")
    click.echo(f"{failed} programs violate the law")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.attack.law", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, help="the first program's; drawn if it is not given")
    add("--programs", type=int, default=200, help="how many, at least")
    add("--seconds", type=float, default=0.0, help="go on with more programs for so long")
    add("--jobs", type=int, default=1, help="processes")
    add("--share", default="0/1", help="I/N: only programs I, I+N, ...")
    add("--groups", default=",".join(sorted(GROUPS)), help="of pieces")
    add("--parts", default="", help="of one program: numbers of the parts that it keeps")
    add("--edits", default="", help="of one program: numbers of the edits that it keeps, or none")
    add(
        "--length",
        type=int,
        default=3,
        help="how many edits of each program, at most 5 and reverts between them",
    )
    add("--matrix", action="store_true", help="each piece and each carrier once, not at random")
    add("--match", default="", help="with --matrix: only parts whose label has this text")
    add("--without", default="", help="texts: leave out parts whose label has one of them")
    add("--no-shrink", action="store_true", help="print the programs as they were drawn")
    add("--brief", action="store_true", help="print the replay commands, not the projects")
    add("--into", default="", help="a folder: write the program there as a project")
    add("--verbose", action="store_true", help="print the exit codes of each program")
    return parser.parse_args()


def _programs(options: argparse.Namespace, checker: Checker) -> Iterator[Program]:
    """The programs that the options ask for, each with the parts and edits that they keep."""
    groups = frozenset(options.groups.split(","))
    drawn = _rows(options, groups) if options.matrix else _draws(options, groups)
    for each in drawn:
        program = checker.edited(each)
        kept = [part for part in program.parts if _is_kept(part, options)]
        edits = program.edits[: options.length]
        if options.edits:
            numbers = options.edits.split(",")
            edits = tuple(edit for edit in edits if str(edit.number) in numbers)
        if kept:
            yield replace(program, parts=tuple(kept), edits=edits)


def _is_kept(part: Part, options: argparse.Namespace) -> bool:
    if options.parts and str(part.number) not in options.parts.split(","):
        return False
    return not any(text in part.label for text in options.without.split(",") if text)


def _rows(options: argparse.Namespace, groups: frozenset[str]) -> Iterator[Program]:
    for number, part in enumerate(matrix(groups)):
        if options.match in part.label:
            by = f" --matrix --groups {options.groups} --match {shlex.quote(part.label)}"
            yield Program(number, (part,), drawn_by=by)


def _draws(options: argparse.Namespace, groups: frozenset[str]) -> Iterator[Program]:
    started_s = time.monotonic()
    first, _, step = options.share.partition("/")
    seed = options.seed + int(first)
    last = options.seed + (1 if options.parts or options.edits else options.programs)
    while seed < last or time.monotonic() - started_s < options.seconds:
        yield draw(seed, groups)
        seed += int(step)


def _in_parallel(jobs: int, seed: int) -> int:
    command = [sys.executable, "-m", "tests.attack.law", *sys.argv[1:]]
    workers = [
        subprocess.Popen([*command, "--jobs", "1", "--seed", f"{seed}", "--share", f"{n}/{jobs}"])
        for n in range(jobs)
    ]
    return max(worker.wait() for worker in workers)


def _go_inside(seed: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="law-"))
    python = Interpreter(folder / "venv").python
    environment = {**os.environ, _INSIDE: str(folder)}
    command = [python, "-m", "tests.attack.law", *sys.argv[1:], "--seed", str(seed)]
    os.execve(python, command, environment)


if __name__ == "__main__":
    sys.exit(main())
