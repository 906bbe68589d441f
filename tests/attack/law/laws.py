"""The law, checked by real builds: an incremental build equals a clean one, the next does nothing."""

import json
import random
import shutil
import sysconfig
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnxbuild.core.errors import EXIT_BUG
from tests.attack.law.builds import Builds, Built
from tests.attack.law.contents import Disk, Tree
from tests.attack.law.edits import apply, draw_edits, is_irrelevant, perform
from tests.attack.law.program import Edit, Program
from tests.attack.law.violations import Violation, smaller

EDITS = 5
"""How many a program has; of these the first three are done unless others are asked for."""


@dataclass
class Tally:
    """Counts of what programs did.

    Attributes:
        first: First builds by exit code.
        builds: Clean builds by exit code.
        edits: Edits by name.
        errors: Sentences of first builds that failed.
    """

    first: Counter[int] = field(default_factory=Counter)
    builds: Counter[int] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


class Checker:
    """Checks that programs keep the law.

    Args:
        folder: For projects and stores.
        builds: Builds them.
    """

    def __init__(self, folder: Path, builds: Builds) -> None:
        self._folder = folder
        self._builds = builds
        self._shared = Path(tempfile.mkdtemp(prefix="law-", dir="/dev/shm"))
        self._site = Path(sysconfig.get_paths()["purelib"])
        self._count = 0
        self.tally = Tally()
        self.course: list[str] = []
        """Of the last program: each edit and the exit code of the clean build after it."""

    def close(self) -> None:
        shutil.rmtree(self._shared, ignore_errors=True)

    def edited(self, program: Program) -> Program:
        """The program with the edits that its seed draws."""
        dice = random.Random(f"edits {program.seed}")
        edits = draw_edits(dice, program, self._tree(program), EDITS)
        return replace(program, edits=tuple(edits))

    def _tree(self, program: Program) -> Tree:
        return program.tree(str(self._shared))

    def check(self, program: Program) -> list[Violation]:
        """Build a program, edit by edit; return its violations."""
        self._count += 1
        self.course = []
        root = self._folder / f"{self._count}"
        disk = Disk(root / "project", self._site, self._shared)
        trial = _Trial(program, root, disk, self._builds, self.tally, self.course)
        try:
            return trial.run(self._tree(program))
        finally:
            disk.lay({})
            shutil.rmtree(root, ignore_errors=True)

    def shrink(self, violation: Violation) -> Violation:
        """The same kind of violation by the smallest program that is found."""
        again = True
        while again:
            again = False
            for program in smaller(violation):
                found = [each for each in self.check(program) if each.kind == violation.kind]
                if found:
                    violation, again = found[0], True
                    break
        return violation


@dataclass
class _Trial:
    """One program on the disk, its store, and the clean builds of each state of it."""

    program: Program
    root: Path
    disk: Disk
    builds: Builds
    tally: Tally
    course: list[str]
    found: list[Violation] = field(default_factory=list)
    known: dict[str, Built] = field(default_factory=dict)
    values: dict[str, dict[str, object]] = field(default_factory=dict)
    cleans: int = 0
    last: Built = field(default_factory=lambda: Built(0))

    def run(self, tree: Tree) -> list[Violation]:
        first = tree
        self.disk.lay(tree)
        clean = self._check(None)
        self.tally.first[clean.code] += 1
        if clean.code:
            self.tally.errors[clean.error[:160]] += 1
        for edit in self.program.edits:
            if any(each.kind != "restless" for each in self.found):
                break  # a store that is stale stays so
            after = first if edit.op == "revert" else apply(tree, edit)
            if after is None:
                continue
            self.tally.edits[edit.op] += 1
            before = tree
            perform(self.disk, edit, after)
            tree = dict(self.disk.tree)
            clean = self._check(edit)
            if clean.code != 0 and edit.op != "revert" and not self.found:
                self.disk.lay(before)
                tree = before
                self._check(Edit("revert", edit.path, edit.op, number=edit.number))
        return self.found

    def _check(self, edit: Edit | None) -> Built:
        why = None if edit is None else self.builds.why(self._recipe, self.root / "store")
        made = self._build(self.root / "store")
        if edit is None:  # the store was empty
            self.known[self._state()] = made
        counts = edit is None or not is_irrelevant(edit, self.program)
        if not counts and not made.ran:  # as the clean build before
            self.known.setdefault(self._state(), self.last)
        clean = self.last = self._clean()
        for each in (made, clean):
            if each.log:
                self.values[repr(each.outputs)] = _values(each.log)
        self.tally.builds[clean.code] += 1
        self.course.append(f"{edit.op if edit else 'first'} {clean.code}")
        if EXIT_BUG in {made.code, clean.code} or (why is not None and why.code == EXIT_BUG):
            self._report("bug", edit, made, clean, why)
        elif made.code != clean.code:
            self._report("other exit code", edit, made, clean)
        elif edit is None and made.code and not self.program.is_refused:
            self._report("fails at first", edit, made, clean)
        elif made.outputs != clean.outputs:
            steady = self._clean(anew=True).outputs == clean.outputs
            self._report("stale" if steady else "unsteady program", edit, made, clean)
        elif clean.code == 0:
            if made.ran and not counts and not self.found:  # a restless program always runs
                self._report("overdone", edit, made, clean)
            if why is not None and made.ran == why.up_to_date:
                self._report("wrong why", edit, made, clean, why)
            again = self._build(self.root / "store")
            if (again.ran or again.code) and not self.found:
                self._report("restless", edit, again, clean)
        return clean

    def _clean(self, *, anew: bool = False) -> Built:
        state = self._state()
        if anew or state not in self.known:
            self.cleans += 1
            store = self.root / f"clean{self.cleans}"
            self.known[state] = self._build(store)
            shutil.rmtree(store, ignore_errors=True)
        return self.known[state]

    def _state(self) -> str:
        return repr(sorted(self.disk.tree.items()))

    @property
    def _recipe(self) -> Path:
        return self.disk.project / "law.yaml"

    def _build(self, store: Path) -> Built:
        return self.builds.build(self._recipe, store)

    def _report(
        self, kind: str, edit: Edit | None, made: Built, clean: Built, why: object = None
    ) -> None:
        mine = self.values.get(repr(made.outputs), {})
        theirs = self.values.get(repr(clean.outputs), {})
        labels = tuple(
            name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name)
        )
        lines = [
            *(f"  {n}: {mine.get(n)!r}, clean {theirs.get(n)!r}" for n in labels),
            f"  incremental: exit {made.code}, ran {made.ran} {made.reasons} {made.error}",
            f"  clean: exit {clean.code} {clean.error}",
        ]
        if why is not None:
            lines.append(f"  why: {why}")
        self.found.append(Violation(kind, self.program, edit, labels, "\n".join(lines)))


def _values(log: str) -> dict[str, object]:
    lines = [line for line in log.splitlines() if line.startswith("VALUES ")]
    found: dict[str, object] = json.loads(lines[-1].removeprefix("VALUES ")) if lines else {}
    return found
