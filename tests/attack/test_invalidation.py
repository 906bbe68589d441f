"""The invalidation matrix: what was changed, and exactly which steps then run.

Every row starts from the same built project, makes one change and runs the real command.
"""

import os
import py_compile
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.attack import small
from tests.attack.command import Command, Seen

NOTHING: frozenset[str] = frozenset()
# Run again, and gave what they gave before: what follows is cut off.
CODE = frozenset({"export", "reference"})
BUNDLE = frozenset({"fp32/package", "int8/package"})  # names the recipe that it was made from
INT8 = frozenset({"int8/quantize", "int8/check", "int8/validate", "int8/package"})
FP32 = frozenset({"optimize", "fp32/check", "fp32/validate", "fp32/package"})
ALL = CODE | {"check"} | FP32 | INT8
DELIVERED = ("--only", "fp32/package", "--only", "int8/package")


class Place:
    """A built project, an interpreter with packages of its own, and code that is installed in place.

    Args:
        root: Their folder; all three know their absolute place in it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.models = self.project / "models"
        self.recipe = self.project / "small.yaml"
        self.environment = {"SMALL_NUMBER": "1"}

    def make(self) -> None:
        small.make(self.project)
        interpreter = self.interpreter
        interpreter.install("small_installed", "1.0", {"small_installed.py": "NUMBER = 1\n"})
        for name in ("linked", "hooked"):
            (self.root / name).mkdir()
            (self.root / name / f"small_{name}.py").write_text("NUMBER = 1\n")
        interpreter.link("small_linked", self.root / "linked")
        interpreter.hook("small_hooked", self.root / "hooked")

    @property
    def interpreter(self) -> small.Interpreter:
        return small.Interpreter(self.root / "venv")

    def run(self, *arguments: str) -> Seen:
        return self.command("small.yaml").run(*arguments, env=self.environment)

    def command(self, recipe: str) -> Command:
        return Command(self.project, recipe, self.interpreter.python)

    def replace(self, path: Path | str, old: str, new: str) -> None:
        path = self.project / path
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
        path.write_text(text.replace(old, new))

    def number(self, name: str, number: int) -> None:
        small.write_number(self.project, name, number)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the project was built, all of it set aside."""
    place = Place(tmp_path_factory.mktemp("matrix") / "place")
    place.make()
    made = place.run()
    assert made.code == 0, made
    assert made.ran == ALL | {"benchmark"}
    shutil.copytree(place.root, place.root.with_name("built"), symlinks=True)
    return place.root


@pytest.fixture
def place(built: Path) -> Iterator[Place]:
    """The built project, as new, where it was built."""
    shutil.rmtree(built)
    shutil.copytree(built.with_name("built"), built, symlinks=True)
    return Place(built)


Edit = Callable[[Place], object]


def _comment(place: Place) -> None:
    place.replace("models/small.py", "import torch\n", "import torch  # PyTorch\n\n\n# Numbers:\n")
    place.replace("models/lazy.py", "    return 1", "    # One\n    return (1)")


def _refactor(place: Place) -> None:
    place.replace("models/small.py", "    return Small(width, sum(", "    bias = (sum(")
    place.replace("models/small.py", "numbers(layer)))\n\n\ndef", "numbers(layer)))\n    return Small(width, bias)\n\n\ndef")  # fmt: skip


def _same_size_within_a_second(place: Place) -> None:
    """As an editor does it that keeps times, with bytecode of the old text lying there."""
    path = place.models / "left.py"
    py_compile.compile(str(path), doraise=True)
    before = path.stat()
    place.replace("models/left.py", "3", "4")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _package_instead_of_a_module(place: Place) -> None:
    (place.models / "lazy").mkdir()
    (place.models / "lazy/__init__.py").write_text("def number():\n    return 2\n")


def _rename_source(place: Place) -> None:
    (place.models / "lazy.py").rename(place.models / "idle.py")
    place.replace("models/small.py", "from lazy import", "from idle import")


def _swap(folder: Path, one: str, other: str) -> None:
    (folder / one).rename(folder / "third")
    (folder / other).rename(folder / one)
    (folder / "third").rename(folder / other)


def _callable_of_the_same_name(place: Place) -> None:
    (place.models / "other.py").write_text("from small import load_twice as load\n")
    place.replace("small.yaml", "models/small.py:load", "models/other.py:load")


def _other_layer(place: Place) -> None:
    (place.models / "layer_other.py").write_text("NUMBER = 2\n")
    place.replace("small.yaml", "layer: plain", "layer: other")


def _move_data(place: Place) -> None:
    (place.models / "elsewhere").mkdir()
    (place.models / "data/plain.txt").rename(place.models / "elsewhere/plain.txt")
    place.replace("models/small.py", '(DATA / "plain.txt")', '(HERE / "elsewhere/plain.txt")')
    place.replace("small.yaml", "models/data/plain.txt", "models/elsewhere/plain.txt")


def _move_project(place: Place) -> None:
    place.project = place.project.rename(place.root / "moved")


def _touch(place: Place) -> None:
    for path in place.root.rglob("*"):
        if "venv" not in path.parts and "artifacts" not in path.parts:
            path.touch()


def _reformat(place: Place) -> None:
    text = yaml.safe_dump(yaml.safe_load(place.recipe.read_text()), sort_keys=True, indent=4)
    place.recipe.write_text("# A comment\n" + text.replace("\n", "\n\n# Another\n", 1))


def _set_variable(name: str) -> Edit:
    return lambda place: place.environment.update({name: "2"})


def _other_shell(place: Place) -> None:
    (place.root / "home").mkdir()
    place.environment |= {"HOME": str(place.root / "home"), "USER": "another", "PATH": "/bin"}


@dataclass(frozen=True)
class Row:
    """One change.

    Attributes:
        what: A sentence.
        edit: Makes it.
        runs: The steps that then run.
        only: What is asked for.
    """

    what: str
    edit: Edit
    runs: frozenset[str]
    only: tuple[str, ...] = field(default=DELIVERED)


def _replaces(path: str, old: str, new: str) -> Edit:
    return lambda place: place.replace(path, old, new)


def _writes(path: str, text: str) -> Edit:
    return lambda place: (place.root / path).write_text(text)


def _installs(name: str, version: str, number: int) -> Edit:
    files = {f"{name}.py": f"NUMBER = {number}\n"}
    return lambda place: place.interpreter.install(name, version, files)


ROWS = [
    Row("nothing is changed", lambda place: None, NOTHING),
    # --- the user's code
    Row("comments and layout", _comment, NOTHING),
    Row("a doc string", _replaces("models/small.py", "A small net", "A tiny net"), CODE),
    Row("code that computes the same", _refactor, CODE),
    Row("code that computes another thing", _replaces("models/small.py", "relu", "tanh"), ALL),
    Row("a helper imported at the top", _replaces("models/left.py", "3", "44"), ALL),
    Row("a helper imported when needed", _replaces("models/lazy.py", "return 1", "return 2"), ALL),
    Row("a helper of a computed name", _replaces("models/layer_plain.py", "1", "2"), ALL),
    Row("a same-size edit within a second", _same_size_within_a_second, ALL),
    Row("a package before a module", _package_instead_of_a_module, ALL),
    Row("a file before a standard one", _writes("project/models/sched.py", "NUMBER = 2"), ALL),
    Row(
        "a file before an installed one",
        _writes("project/models/small_installed.py", "NUMBER = 2"),
        ALL,
    ),
    Row("a file that nobody imports", _writes("project/models/new.py", "NUMBER = 2"), NOTHING),
    Row("a source is renamed", _rename_source, CODE),
    Row("two sources swap names", lambda p: _swap(p.models, "left.py", "right.py"), ALL),
    Row("all files are touched", _touch, NOTHING),
    # --- what the recipe says of the model
    Row("another callable", _replaces("small.yaml", "small.py:load", "small.py:load_twice"), ALL),
    Row("another callable of the same name", _callable_of_the_same_name, ALL),
    Row("an argument", _other_layer, ALL),
    Row(
        "an argument without effect",
        _replaces("small.yaml", "unused: 0", "unused: 1"),
        CODE | BUNDLE,
    ),
    Row("a variable passed on", _set_variable("SMALL_NUMBER"), ALL),
    Row("a variable not passed on", _set_variable("SMALL_OTHER"), NOTHING),
    Row("whose shell it is", _other_shell, NOTHING),
    Row(
        "a variable that all steps see",
        _set_variable("CUDA_VISIBLE_DEVICES"),
        CODE | {"optimize", "fp32/validate", "int8/validate"},
    ),
    # --- data
    *(
        Row(
            f"declared {name}",
            lambda place, name=name: place.number(name.replace("*", "one"), 20),
            ALL,
        )
        for name in small.FILES
    ),
    Row("a file more in a glob", lambda place: place.number("parts/two.txt", 1), ALL),
    Row("a file more in a listing", _writes("project/models/data/parts/note.md", ""), CODE),
    Row("two data files swap", lambda p: _swap(p.models / "data", "plain.txt", "piped.txt"), ALL),
    Row("a data file is moved", _move_data, CODE | BUNDLE),
    Row("the project is moved", _move_project, NOTHING),
    # --- packages
    Row("a package is upgraded", _installs("small_installed", "1.1", 2), ALL),
    Row("an upgrade without effect", _installs("small_installed", "1.1", 1), CODE),
    Row("another package is installed", _installs("small_unused", "1.0", 1), NOTHING),
    Row("a package looked for in vain is installed", _installs("small_optional", "1.0", 2), ALL),
    Row("a linked package", _writes("linked/small_linked.py", "NUMBER = 2\n"), ALL),
    Row("a hooked package", _writes("hooked/small_hooked.py", "NUMBER = 2\n"), ALL),
    Row("a comment in a linked package", _writes("linked/small_linked.py", "NUMBER=1 #"), NOTHING),
    Row("a comment in a hooked package", _writes("hooked/small_hooked.py", "NUMBER=1 #"), NOTHING),
    # --- the rest of the recipe
    Row("the recipe is reformatted and commented", _reformat, NOTHING),
    Row("the description", _replaces("small.yaml", "for attacks", "for defence"), NOTHING),
    Row(
        "a key of no step asked for", _replaces("small.yaml", "samples: 3", "samples: 4"), NOTHING
    ),
    Row(
        "a benchmark's option",
        _replaces("small.yaml", "samples: 3", "samples: 4"),
        frozenset({"benchmark"}),
        only=(),
    ),
    Row(
        "a quantizer's option",
        _replaces("small.yaml", "mode: dynamic", "mode: dynamic, per_channel: false"),
        INT8,
    ),
    Row(
        "a tolerance",
        _replaces("small.yaml", "cosine_min: 0.9", "cosine_min: 0.8"),
        frozenset({"int8/validate", "int8/package"}),
    ),
]


@pytest.mark.always
@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
def test_after_a_change_exactly_what_depends_on_it_runs(place, row):
    row.edit(place)
    seen = place.run(*row.only)
    assert seen.ran == row.runs, seen.texts
    assert seen.code == 0, seen.texts
    again = place.run(*row.only)
    assert (again.code, again.ran) == (0, NOTHING), again.texts


@pytest.mark.always
@pytest.mark.slow
def test_each_file_that_is_not_declared_is_refused_by_name(place):
    """However it is read; one recipe for each, that declares all the others."""
    text = place.recipe.read_text()
    recipes = {}
    for number, name in enumerate(small.FILES):
        line = f"    - models/data/{name}\n"
        assert line in text
        other = text.replace("name: small", f"name: without-{number}").replace(line, "")
        (place.project / f"without-{number}.yaml").write_text(other)
        recipes[f"without-{number}:export"] = f"models/data/{name.replace('*', 'one')}"
    first, *others = [f"{step.partition(':')[0]}.yaml" for step in recipes]
    arguments = (*others, "--only", "export", "--keep-going")
    seen = place.command(first).run(*arguments, env=place.environment)
    assert seen.code == 5
    reported = {event["step"]: event for event in seen.of("step_failed")}
    assert reported.keys() == recipes.keys()
    for step, path in recipes.items():
        assert reported[step]["exit_code"] == 5
        assert reported[step]["what"].startswith(
            f"'{path}' is read but not declared (read at models/"
        )
        assert f"`files: [{path}]`" in reported[step]["fix"]
    assert seen.of("step_finished") == []
