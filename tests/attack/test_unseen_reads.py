"""What steps read past Python's own files: listings, children, native code, links. It counts, each time.

Each program is built, is up to date, is edited, and runs again; what may not be read is refused by name.
"""

import contextlib
import os
import shutil
import sqlite3
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from onnxbuild.adapters.kernel.kernel_watch import reason_not
from tests.cli.conftest import Project

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(reason_not()), reason="system calls can't be observed here"),
]
ONLY = ("--only", "reference")
HEAD = """\
import os, pathlib, subprocess, sys
import torch
here = os.path.dirname(os.path.abspath(__file__))
"""
LOAD = """

def load(width=8):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))
    with torch.no_grad():
        model[0].weight *= float(value())
    return model
"""


@dataclass(frozen=True)
class Program:
    """A model's module that reads something, and an edit of that.

    Attributes:
        what: In words.
        code: Of the module; it defines `value`.
        edit: What is changed afterwards, in the project's folder.
        files: Beside it: name -> content.
        links: Beside it: name -> target.
        declared: As in `files:` of the recipe.
    """

    what: str
    code: str
    edit: Callable[[Path], object]
    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    declared: tuple[str, ...] = ()

    def lay(self, project: Project) -> None:
        for name, text in self.files.items():
            project.write(name, text)
        for name, target in self.links.items():
            (project.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (project.folder / name).symlink_to(target)
        project.write("models/tiny.py", f"{HEAD}{self.code}{LOAD}")
        entrypoint = f"models/tiny.py:load, files: [{', '.join(self.declared)}]"
        project.edit("tiny.yaml", "models/tiny.py:load", entrypoint)


def writes(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def relinks(name: str, target: str) -> Callable[[Path], object]:
    def relink(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return relink


LAYERS = {"models/layers/one.py": ""}
NEW_LAYER = writes("models/layers/two.py", "")


def listing(what: str, expression: str) -> Program:
    """A registry of plug-ins: what is in a folder when the module is imported."""
    code = (
        f"folder = f'{{here}}/layers'\nnames = {expression}\ndef value():\n    return len(names)\n"
    )
    return Program(f"listed at import by {what}", code, NEW_LAYER, LAYERS)


LISTINGS = [
    listing("os.listdir", "os.listdir(folder)"),
    listing("os.walk", "[name for _, _, found in os.walk(folder) for name in found]"),
    listing("os.fwalk", "[name for _, _, found, _ in os.fwalk(folder) for name in found]"),
    listing("Path.iterdir", "list(pathlib.Path(folder).iterdir())"),
    listing("a descriptor", "os.listdir(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))"),
    listing("ls", "subprocess.check_output(['ls', folder]).split()"),
    listing("glob", "list(pathlib.Path(folder).glob('*.py'))"),
]

PART = {"models/part.py": "SCALE = 2\ndef scale(*_):\n    return SCALE\n"}
PART_EDIT = writes("models/part.py", "SCALE = 3\ndef scale(*_):\n    return SCALE\n")
IN_WORKER = "def work(_):\n    import part\n    return part.scale()\n"
POOL = "    import multiprocessing as m\n    with m.get_context({method!r}).Pool(1) as pool:\n"


def child(what: str, code: str, files: dict[str, str] = PART) -> Program:
    return Program(f"imported by {what}", code, PART_EDIT, files)


CHILDREN = [
    child(
        "a forked worker",
        f"{IN_WORKER}def value():\n{POOL.format(method='fork')}        return pool.map(work, [0])[0]\n",
    ),
    child(
        "a spawned worker",  # whose function is where it need not import torch
        f"from worker import work\ndef value():\n{POOL.format(method='spawn')}"
        "        return pool.map(work, [0])[0]\n",
        {**PART, "models/worker.py": IN_WORKER},
    ),
    child(
        "a process of a pool",
        f"{IN_WORKER}def value():\n    from concurrent.futures import ProcessPoolExecutor\n"
        "    with ProcessPoolExecutor(1) as pool:\n        return pool.submit(work, 0).result()\n",
    ),
    child(
        "a worker of a DataLoader",
        f"{IN_WORKER}class Data(torch.utils.data.Dataset):\n    def __len__(self):\n        return 1\n"
        "    def __getitem__(self, at):\n        return work(at)\n"
        "def value():\n    return next(iter(torch.utils.data.DataLoader(Data(), num_workers=1)))\n",
    ),
    child(
        "a script",
        "def value():\n"
        "    return subprocess.check_output([sys.executable, f'{here}/script.py'])\n",
        {**PART, "models/script.py": "import part\nprint(part.scale())\n"},
    ),
    child(
        "a package that is run",
        "def value():\n"
        "    return subprocess.check_output([sys.executable, '-m', 'generator'], cwd=here)\n",
        {**PART, "models/generator/__main__.py": "import part\nprint(part.scale())\n"},
    ),
    Program(
        "a script, itself",
        "def value():\n"
        "    return subprocess.check_output([sys.executable, f'{here}/script.py'])\n",
        writes("models/script.py", "print(3)\n"),
        {"models/script.py": "print(2)\n"},
    ),
    Program(
        "a shell's script",
        "def value():\n    return subprocess.check_output(['sh', f'{here}/number.py'])\n",
        writes("models/number.py", "echo 3\n"),
        {"models/number.py": "echo 2\n"},
    ),
]

STEPS = {"checkpoints/step1/scale.txt": "2", "checkpoints/step2/scale.txt": "3"}
LATEST = {"checkpoints/latest": "step1"}
RETARGETED = relinks("checkpoints/latest", "step2")
ROOT = "root = pathlib.Path(here).parent / 'checkpoints'\n"


def linked(what: str, expression: str) -> Program:
    return Program(
        f"a link retargeted, read {what}",
        f"{ROOT}def value():\n    return {expression}\n",
        RETARGETED,
        STEPS,
        LATEST,
        ("checkpoints/step*/*",),
    )


LINKS = [
    linked("through it", "(root / 'latest/scale.txt').read_text()"),
    linked("where it resolves to", "((root / 'latest').resolve() / 'scale.txt').read_text()"),
    linked("by readlink", "(root / os.readlink(root / 'latest') / 'scale.txt').read_text()"),
    linked("by cat", "subprocess.check_output(['cat', root / 'latest/scale.txt'])"),
]

TEXTS = [
    Program(
        "lines of a source, by linecache",
        "import linecache\nimport part\ndef value():\n"
        "    return len(linecache.getline(part.__file__, 1))\n",
        writes("models/part.py", "SCALE = 2  # two\n"),
        {"models/part.py": "SCALE = 2\n"},
    ),
    Program(
        "a function's source, by inspect",
        "import inspect\nimport part\ndef value():\n    return len(inspect.getsource(part.scale))\n",
        writes("models/part.py", "def scale():\n    return 2  # two\n"),
        {"models/part.py": "def scale():\n    return 2\n"},
    ),
    Program(
        "a file that is made where there is none",
        "def value():\n    try:\n        open(f'{here}/part.py', 'x')\n"
        "    except FileExistsError:\n        return open(f'{here}/part.py').read()\n"
        "    except OSError:\n        return 1\n",
        writes("models/part.py", "3"),
        {"models/part.py": "2"},
    ),
    Program(
        "a module named like one of Python's own",
        "import own_tokenize\ndef value():\n    return own_tokenize.value()\n",
        writes("models/other.py", "3"),
        {
            "models/own_tokenize.py": "import os\ndef value():\n"
            "    return open(f'{os.path.dirname(__file__)}/other.py').read()\n",
            "models/other.py": "2",
        },
    ),
]

LOOKS = [
    Program(
        "whether a file is there",
        "def value():\n    return 2 + os.path.exists(f'{here}/flag')\n",
        writes("models/flag", ""),
    ),
    Program(
        "whether a file is there, for a child",
        "def value():\n    return 2 + subprocess.call(['test', '-e', f'{here}/flag'])\n",
        writes("models/flag", ""),
    ),
]
PROGRAMS = [*LISTINGS, *CHILDREN, *LINKS, *TEXTS, *LOOKS]


@pytest.mark.always
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.what)
def test_what_a_step_used_makes_it_run_again(project, program):
    program.lay(project)
    first = project.run(*ONLY)
    assert first.code == 0, first.out + first.err
    again = project.run(*ONLY)
    assert (again.code, again.ran) == (0, []), again.out
    program.edit(project.folder)
    edited = project.run(*ONLY)
    assert (edited.code, edited.ran) == (0, ["reference"]), edited.out


def test_a_comment_where_forks_ran_runs_nothing(project):
    program = next(each for each in CHILDREN if each.what == "imported by a forked worker")
    program.lay(project)
    assert project.run(*ONLY).code == 0
    path = project.folder / "models/tiny.py"
    path.write_text(f"{path.read_text()}# a comment\n")
    again = project.run(*ONLY)
    assert (again.code, again.ran) == (0, []), again.out


# --- what the fence grants as a whole ------------------------------------------------------------------

NATIVE = """\
from safetensors.torch import load_file
def value():
    return load_file({path!r})['scale']
"""


def save_scale(path: Path, value: float) -> None:
    import torch
    from safetensors.torch import save_file

    save_file({"scale": torch.tensor(value)}, path)


@pytest.fixture(params=["/dev/shm", "/opt"])
def granted(request):
    """A folder below one that steps may read as a whole."""
    if not os.access(request.param, os.W_OK):
        pytest.skip(f"{request.param} can't be written")
    folder = Path(request.param) / f"onnxbuild-test-{uuid.uuid4().hex}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.mark.smoke
def test_what_native_code_reads_of_granted_folders_counts(project, granted):
    weights = granted / "weights.safetensors"
    save_scale(weights, 2.0)
    Program("", NATIVE.format(path=str(weights)), writes("x", "")).lay(project)
    assert project.run(*ONLY).code == 0
    assert project.run(*ONLY).ran == []
    save_scale(weights, 3.0)
    edited = project.run(*ONLY)
    assert (edited.code, edited.ran) == (0, ["reference"]), edited.out


def save_in_database(path: Path, value: float) -> None:
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.executescript(
            f"create table if not exists t (x); delete from t; insert into t values ({value})"
        )


CAT = "def value():\n    return subprocess.check_output(['cat', {path!r}])\n"


def test_what_children_read_of_granted_folders_counts(project, granted):
    scale = granted / "scale.txt"
    scale.write_text("2")
    Program("", CAT.format(path=str(scale)), writes("x", "")).lay(project)
    assert project.run(*ONLY).code == 0
    assert project.run(*ONLY).ran == []
    scale.write_text("3")
    edited = project.run(*ONLY)
    assert (edited.code, edited.ran) == (0, ["reference"]), edited.out


@pytest.mark.parametrize("prefix", [sys.prefix, sys.base_prefix], ids=["environment", "Python"])
def test_what_is_put_next_to_an_environments_packages_counts(project, prefix):
    """As NLTK's data are, in `share` or a folder of their own."""
    if not os.access(prefix, os.W_OK):
        pytest.skip(f"{prefix} can't be written")
    folder = Path(prefix) / f"onnxbuild-test-{uuid.uuid4().hex}"
    folder.mkdir()
    try:
        scale = folder / "scale.txt"
        scale.write_text("2")
        Program("", CAT.format(path=str(scale)), writes("x", "")).lay(project)
        assert project.run(*ONLY).code == 0
        assert project.run(*ONLY).ran == []
        scale.write_text("3")
        edited = project.run(*ONLY)
        assert (edited.code, edited.ran) == (0, ["reference"]), edited.out
    finally:
        shutil.rmtree(folder)


def test_what_is_listed_of_granted_folders_counts(project, granted):
    (granted / "one.txt").touch()
    code = f"def value():\n    return 1 + len(subprocess.check_output(['ls', {str(granted)!r}]))\n"
    Program("", code, writes("x", "")).lay(project)
    assert project.run(*ONLY).code == 0
    assert project.run(*ONLY).ran == []
    (granted / "two.txt").touch()
    edited = project.run(*ONLY)
    assert (edited.code, edited.ran) == (0, ["reference"]), edited.out


def test_links_below_usr_that_are_only_resolved_do_not_count(project, granted):
    """As trust.md says; links elsewhere do, and what is read through any link does."""
    for number in (1, 2):
        (granted / f"step{number}").mkdir()
        (granted / f"step{number}/scale.txt").write_text(f"{number}")
    (granted / "latest").symlink_to("step1")
    resolved = f"os.path.realpath({str(granted / 'latest')!r})"
    code = f"def value():\n    return 1 + len(os.listdir({resolved}))\n"
    Program("", code, writes("x", "")).lay(project)
    assert project.run(*ONLY).code == 0
    relinks("latest", "step2")(granted)
    machine = str(granted).startswith(("/usr/", "/dev/"))
    assert project.run(*ONLY).ran == ([] if machine else ["reference"])


DATABASE = """
def value():
    import sqlite3
    return sqlite3.connect({path!r}).execute("select x from t").fetchone()[0]
"""


def test_a_file_that_is_opened_to_be_read_and_written_counts(project, granted):
    base = granted / "weights.db"
    save_in_database(base, 2.0)
    Program("", DATABASE.format(path=str(base)), writes("x", "")).lay(project)
    assert project.run(*ONLY).code == 0
    assert project.run(*ONLY).ran == []
    save_in_database(base, 3.0)
    edited = project.run(*ONLY)
    assert (edited.code, edited.ran) == (0, ["reference"]), edited.out


# --- what is refused is reported, even to code that goes on ----------------------------------------------

SWALLOWED = {
    "safetensors": (
        "from safetensors.torch import load_file\ndef value():\n    try:\n"
        "        return load_file(f'{here}/scale.bin')['scale']\n    except Exception:\n        return 1\n"
    ),
    "cat": (
        "def value():\n"
        "    done = subprocess.run(['cat', f'{here}/scale.bin'], stdout=subprocess.PIPE)\n"
        "    return float(done.stdout or 1)\n"
    ),
}


@pytest.mark.parametrize("how", SWALLOWED)
def test_a_refused_file_of_the_project_is_an_error_even_if_the_code_goes_on(project, how):
    save_scale(project.write("models/scale.bin", ""), 2.0)
    Program("", SWALLOWED[how], writes("x", "")).lay(project)
    seen = project.run(*ONLY)
    assert seen.code == 5, seen.out
    assert "'models/scale.bin' is read but not declared" in seen.out
    assert "files: [models/scale.bin]" in seen.out


WRITTEN = {
    "open": ("open(f'{here}/cache.txt', 'w').write('2')", "cache.txt"),
    "a child": ("subprocess.run(['touch', f'{here}/cache.txt'], check=True)", "cache.txt"),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_write_that_was_refused_is_reported_as_one(project, how):
    code, name = WRITTEN[how]
    Program("", f"def value():\n    {code}\n    return 2\n", writes("x", "")).lay(project)
    seen = project.run(*ONLY)
    assert seen.code != 0
    assert "read but not declared" not in seen.out
    assert f"models/{name}' is written" in seen.out, seen.out
    assert "tempfile.mkdtemp()" in seen.out


# --- what a step makes itself is no input of it ----------------------------------------------------------

MADE = {
    "a module in a temporary folder": (
        "import tempfile, importlib\ndef value():\n"
        "    folder = tempfile.mkdtemp()\n"
        "    open(f'{folder}/made.py', 'w').write('SCALE = 2')\n"
        "    sys.path.insert(0, folder)\n    return importlib.import_module('made').SCALE\n"
    ),
    "a module for a child": (
        "import tempfile\ndef value():\n"
        "    with tempfile.TemporaryDirectory() as folder:\n"
        "        open(f'{folder}/made.py', 'w').write('print(2)')\n"
        "        return subprocess.check_output([sys.executable, f'{folder}/made.py'])\n"
    ),
    "shared memory": (
        "from multiprocessing.shared_memory import SharedMemory\ndef value():\n"
        "    memory = SharedMemory(create=True, size=8)\n    memory.buf[0] = 2\n"
        "    other = SharedMemory(name=memory.name)\n    found = other.buf[0]\n"
        "    memory.unlink()\n    return found\n"
    ),
}


@pytest.mark.parametrize("what", MADE)
def test_what_a_step_made_is_no_input(project, what):
    Program("", MADE[what], writes("x", "")).lay(project)
    first = project.run(*ONLY)
    assert first.code == 0, first.out + first.err
    again = project.run(*ONLY)
    assert (again.code, again.ran) == (0, []), again.out


def test_a_source_that_is_loaded_by_its_path_and_comes_later_is_seen(project):
    code = (
        "import importlib.util\ndef value():\n"
        "    spec = importlib.util.spec_from_file_location('later', f'{here}/later.py')\n"
        "    module = importlib.util.module_from_spec(spec)\n"
        "    try:\n        spec.loader.exec_module(module)\n"
        "    except FileNotFoundError:\n        return 1\n"
        "    return module.SCALE\n"
    )
    Program("", code, writes("x", "")).lay(project)
    assert project.run(*ONLY).code == 0
    assert project.run(*ONLY).ran == []
    project.write("models/later.py", "SCALE = 2\n")
    assert project.run(*ONLY).ran == ["reference"]


def test_find_leans_on_the_folders_that_it_lists_and_not_on_the_one_it_starts_in(project):
    code = "def value():\n    return len(subprocess.check_output(['find', f'{here}/layers', '-type', 'f']))\n"
    program = Program(
        "", code, writes("models/layers/two.py", ""), files={"models/layers/one.py": ""}
    )
    program.lay(project)
    assert project.run(*ONLY).code == 0
    project.write("notes.txt", "next to the recipe, where `find` starts")
    assert project.run(*ONLY).ran == []
    program.edit(project.folder)
    assert project.run(*ONLY).ran == ["reference"]
