"""Random lives of a store: edits, damage, kills, moves and runs; each run is held to a clean build.

ONNXBUILD_LIVES=1500 tries more of them than the suite has time for.
"""

import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.attack import cheap, damages, tiny
from tests.attack.command import Command, kill
from tests.attack.warm import Warm

Delivered = dict[str, bytes]

EXAMPLES = int(os.environ.get("ONNXBUILD_LIVES", "60"))
DATA = ("d0", "d1")
SOURCES = ("m0", "m1", "m2")
DAMAGES = sorted(set(damages.DAMAGES) - {"a folder", "unreadable"})  # those a run mends by itself


@st.composite
def _steps(draw: st.DrawFn) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 4))):
        needs = sorted(draw(st.sets(st.integers(0, number - 1), max_size=2))) if number else []
        steps.append(
            cheap.step_of(
                f"s{number}",
                *(f"s{need}" for need in needs),
                kind=draw(st.sampled_from(["fake", "alone"])) if not needs else "fake",
                value=draw(st.integers(0, 1)),
                files=sorted(draw(st.sets(st.sampled_from(DATA), max_size=2))),
                sources=sorted(draw(st.sets(st.sampled_from(SOURCES), max_size=2))),
                lossy=draw(st.booleans()),
            )
        )
    return steps


_texts = st.one_of(
    st.sampled_from(["x = 1", "x = 2", "x = 2  # why", "raise"]),
    st.sampled_from(SOURCES).map("import {}".format),
)


def _own_files(store: Path) -> list[Path]:
    """What can be damaged; a link that a killed step left leads to the user's own file."""
    found = sorted(store.glob("**/*"))
    return [p for p in found if p.is_file() and not p.is_symlink() and p.name != "FORMAT"]


class Life(RuleBasedStateMachine):
    """One store, from its first run on."""

    server: cheap.Server
    memory: Path

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(dir=self.memory))
        self.place = cheap.make(self.root)
        self.steps: list[dict[str, Any]] = []
        self.moves = 0

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @initialize(steps=_steps())
    def begin(self, steps: list[dict[str, Any]]) -> None:
        for name in DATA:
            (self.place.project / name).write_text("a")
        for name in SOURCES:
            (self.place.project / f"{name}.py").write_text("x = 1\n")
        self.steps = steps

    # --- what a person does -------------------------------------------------------------------

    @rule(steps=_steps())
    def writes_another_recipe(self, steps: list[dict[str, Any]]) -> None:
        self.steps = steps

    @rule(name=st.sampled_from(DATA), text=st.sampled_from("abc"))
    def edits_data(self, name: str, text: str) -> None:
        (self.place.project / name).write_text(text)

    @rule(name=st.sampled_from(SOURCES), text=_texts, in_silence=st.booleans())
    def edits_source(self, name: str, text: str, in_silence: bool) -> None:
        path = self.place.project / f"{name}.py"
        before = path.stat() if path.exists() else None
        path.write_text(f"{text}\n")
        if in_silence and before is not None:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(name=st.sampled_from(SOURCES))
    def removes_source(self, name: str) -> None:
        (self.place.project / f"{name}.py").unlink(missing_ok=True)

    @rule(one=st.sampled_from(DATA + SOURCES), other=st.sampled_from(DATA + SOURCES))
    def swaps_files(self, one: str, other: str) -> None:
        paths = [self.place.project / (f"{n}.py" if n in SOURCES else n) for n in (one, other)]
        if one != other and all(path.exists() for path in paths):
            third = self.place.project / "third"
            paths[0].rename(third)
            paths[1].rename(paths[0])
            third.rename(paths[1])

    @rule(version=st.sampled_from(["1.0", "1.1"]))
    def upgrades_the_package(self, version: str) -> None:
        cheap.install(self.place, version)

    @rule()
    def touches_everything(self) -> None:
        for path in self.place.project.iterdir():
            path.touch()

    # --- what happens to the store --------------------------------------------------------------

    @rule(which=st.integers(0, 200), damage=st.sampled_from(DAMAGES))
    def is_damaged(self, which: int, damage: str) -> None:
        store = self.place.store
        files = _own_files(store)
        if files:
            damages.damage(files[which % len(files)], damage)

    @rule()
    def loses_its_index(self) -> None:
        (self.place.store / "index.db").unlink(missing_ok=True)
        shutil.rmtree(self.place.store / "memo", ignore_errors=True)

    @rule(copied=st.booleans())
    def is_moved(self, copied: bool) -> None:
        self.moves += 1
        new = self.root / f"store{self.moves}"
        if self.place.store.is_dir():
            shutil.copytree(self.place.store, new) if copied else self.place.store.rename(new)
        self.place = cheap.Place(self.place.project, self.place.site, new)

    @rule(at=st.integers(1, 250))
    def is_killed(self, at: int) -> None:
        self.server.build(self.place, self.steps, kill_at=at)

    @rule(at=st.integers(1, 250), name=st.sampled_from(SOURCES), text=_texts)
    def is_edited_while_it_runs(self, at: int, name: str, text: str) -> None:
        self.server.build(self.place, self.steps, edit=(at, f"{name}.py", f"{text}\n"))

    @rule(at=st.integers(1, 250), name=st.sampled_from(DATA), text=st.sampled_from("abc"))
    def is_given_other_data_while_it_runs(self, at: int, name: str, text: str) -> None:
        self.server.build(self.place, self.steps, edit=(at, name, text))

    @rule()
    def runs(self) -> None:
        ended = self.server.build(self.place, self.steps)
        clean_place = cheap.Place(self.place.project, self.place.site, self.root / "clean")
        clean = self.server.build(clean_place, self.steps)
        assert (ended.code, ended.outputs, ended.error) == (clean.code, clean.outputs, "")
        if clean.code == 0:
            laid = tiny.delivered(clean_place.store)
            found = tiny.delivered(self.place.store)
            assert {name: found.get(name) for name in laid} == laid
            again = self.server.build(self.place, self.steps)
            assert (again.code, again.outputs, again.ran) == (0, clean.outputs, [])
        shutil.rmtree(clean_place.store)


@pytest.mark.slow
def test_after_whatever_happened_a_run_gives_what_a_clean_build_gives(server, scratch):
    class Here(Life):
        memory = scratch

    Here.server = server
    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# --- the same with the real command and a real model ----------------------------------------------

ACTIVATIONS = ("ReLU", "GELU", "Tanh")
WIDTHS = (4, 8)
KILLED = 0.5  # as likely as not, a run before the one that counts is killed


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, int], Delivered]]:
    """What a clean build of the small recipe delivers, by activation and width."""
    warm, known = Warm(), {}

    def build(activation: str, width: int) -> Delivered:
        if (activation, width) not in known:
            folder = tiny.make(tmp_path_factory.mktemp("clean") / "project")
            _edit(folder, activation, width)
            assert warm.run(folder / "tiny.yaml").code == 0
            known[activation, width] = tiny.delivered(folder / "artifacts")
        return known[activation, width]

    yield build
    warm.close()


def _edit(folder: Path, activation: str, width: int) -> None:
    helper, model = folder / "models/helper.py", folder / "models/tiny.py"
    helper.write_text(re.sub(r"nn\.\w+\(\)", f"nn.{activation}()", helper.read_text()))
    model.write_text(re.sub(r"width=\d+", f"width={width}", model.read_text()))


@pytest.mark.slow
def test_so_does_the_real_command_with_a_real_model(clean, tmp_path):
    dice = random.Random(0)
    command = Command(tiny.make(tmp_path / "project"), "tiny.yaml")
    store = command.folder / "artifacts"
    for _ in range(3):
        activation, width = dice.choice(ACTIVATIONS), dice.choice(WIDTHS)
        _edit(command.folder, activation, width)
        if dice.random() < KILLED:
            process = command.start()
            time.sleep(dice.uniform(0.3, 3.0))
            kill(process)
        files = _own_files(store)
        for path in dice.sample(files, min(len(files), 3)):
            damages.damage(path, dice.choice(DAMAGES))
        assert command.run().code == 0
        assert tiny.delivered(store) == clean(activation, width)
