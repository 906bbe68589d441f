"""What user code uses is seen: each test runs some in a process of its own, then changes a thing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.distributions import Distributions, site_folders
from onnxbuild.adapters.toolchain.fingerprints import DiskFingerprints
from onnxbuild.adapters.toolchain.step_environment import clean_environment
from onnxbuild.core.action import NO_FILE, Action, Observed
from onnxbuild.core.errors import StepError
from onnxbuild.core.graph import Step, StepAddress
from onnxbuild.core.ports import Job
from onnxbuild.engine.decide import current_state
from onnxbuild.processes.job_results import take_observed
from tests.adapters.observe.forked_script import run_forked
from tests.fakes.world import HERE, FakeParams

IMPORTS = """\
import importlib, json, site, sys
from pathlib import Path
from onnxbuild.processes.child_context import ChildContext
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.observe.observer import Observer
from onnxbuild.adapters.toolchain.preloaded import Preloaded
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.core.errors import BuildError
from onnxbuild.core.recipe import Entrypoint
"""
SCRIPT = """\
reported = json.loads(sys.argv[1])
for folder in reported["sites"]:
    site.addsitedir(folder)
for name in reported["preload"]:
    importlib.import_module(name)
preloaded = Preloaded(Distributions(StatCache(Index(Path(":memory:")))), reported["preload"])
project, store = Path(reported["project"]), Path(reported["store"])
ignored = (Path(reported["folder"]), store / "cas", store / "tmp")
observer = Observer(project, ignored, preloaded, None, reported["places"])
job = {"step": "r:s", "project": reported["project"], "inputs": {}, "memory_bytes": 0}
job["places"] = reported["places"]
context = ChildContext(job, Path(reported["folder"]), None)
entrypoint = Entrypoint("models/m.py:load", roots=("models", "."))
observer.install()
try:
    for root in entrypoint.roots:
        observer.refuse_shadows(str(project / root))
    value = context.load(entrypoint)()
    print(json.dumps({"value": value, "seen": observer.report()}))
except BuildError as error:
    print(json.dumps({"error": str(error)}))
"""


class Project:
    """A project whose models/m.py:load is run and observed."""

    def __init__(
        self, folder: Path, store: Path | None = None, sites: tuple[Path, ...] = ()
    ) -> None:
        self.sites = sites  # folders of packages other than the interpreter's
        self.folder = folder
        self.store = store or folder / "artifacts"
        self.store.mkdir(parents=True, exist_ok=True)
        self.scratch = self.store / "tmp/run/1"
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.value = None

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def reported(self, *preload: str, at: Path | None = None) -> dict:
        request = {
            "project": str(at or self.folder),
            "store": str(self.store),
            "folder": str(self.scratch),
            "preload": list(preload),
            "places": dict(self.prints().places()) if self.sites else {},
            "sites": [str(site) for site in self.sites],
        }
        printed = run_forked(
            IMPORTS, SCRIPT, json.dumps(request),
            folder=self.scratch, environment=clean_environment(os.environ), output=self.scratch,
        )  # fmt: skip
        return json.loads(printed.splitlines()[-1])

    def observe(self, *preload: str, at: Path | None = None) -> Observed:
        reported = self.reported(*preload, at=at)
        self.value = reported["value"]
        return self.taken(reported["seen"])

    def taken(self, seen: dict, files: dict[str, str] | None = None) -> Observed:
        """As the parent takes what a child says."""
        prints = self.prints()
        action = Action("fake", 1, {}, {}, files or {}, {}, None)
        step = Step("r:s", "fake", {}, FakeParams(), HERE)
        job = Job(step, StepAddress("r", "s"), action, {}, {}, Path("log"), "")
        places = prints.places() if self.sites else {}
        observed = take_observed(
            seen, job, project=self.folder, places=places, fingerprints=prints
        )
        if not prints.still(action, observed):
            raise StepError("an input changed while the step ran")
        return observed

    def prints(self) -> DiskFingerprints:
        stats = StatCache(Index(Path(":memory:")))
        folders = (*site_folders(), *map(str, self.sites))
        return DiskFingerprints(self.folder, stats, Distributions(stats, folders))

    def holds(self, observed: Observed) -> bool:
        return current_state(observed, {}, self.prints()) == observed


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "pro ject ü")


def model(body: str, head: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"{head}\ndef load():\n{lines}\n"


def test_a_question_of_the_backport_of_importlib_metadata_is_seen(project):
    """Version 10 imports itself before it is whole."""
    project.write(
        "models/m.py",
        model("import importlib_metadata\nreturn importlib_metadata.version('iniconfig')"),
    )
    assert "iniconfig" in project.observe().distributions


# --- sources --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "import helper\nreturn helper.x",
        "import importlib\nreturn importlib.import_module('hel' + 'per').x",
        "return __import__('helper').x",
        "from helper import x\nreturn x",
    ],
    ids=["lazy", "computed name", "dunder import", "from"],
)
def test_a_helper_is_seen_however_it_is_imported(project, body):
    project.write("models/m.py", model(body))
    project.write("models/helper.py", "x = 1\n")
    observed = project.observe()
    assert project.value == 1
    assert set(observed.sources) == {"models/m.py", "models/helper.py"}
    assert project.holds(observed)
    project.write("models/helper.py", "x = 1  # a comment\n")
    assert project.holds(observed)
    project.write("models/helper.py", "x = 2\n")
    assert not project.holds(observed)


@pytest.mark.parametrize("regular", [True, False], ids=["package", "namespace package"])
def test_a_package_its_submodules_and_relative_imports_are_seen(project, regular):
    project.write("models/m.py", model("from pack.sub import leaf\nreturn leaf.x"))
    if regular:
        project.write("models/pack/__init__.py", "y = 1\n")
    project.write("models/pack/sub/leaf.py", "from . import twig\nfrom ..root import z\nx = z\n")
    project.write("models/pack/sub/twig.py", "")
    project.write("models/pack/root.py", "z = 5\n")
    observed = project.observe()
    assert project.value == 5
    own = {"models/pack/__init__.py"} if regular else set()
    assert set(observed.sources) == own | {
        "models/m.py", "models/pack/sub/leaf.py", "models/pack/sub/twig.py", "models/pack/root.py",
    }  # fmt: skip
    assert project.holds(observed)
    project.write("models/pack/unrelated.py", "")
    assert project.holds(observed)
    init = project.write("models/pack/sub/__init__.py", "raise ValueError\n")
    assert not project.holds(observed), "a namespace package that becomes a regular one"
    init.unlink()
    assert project.holds(observed)
    project.write("models/pack/root.py", "z = 6\n")
    assert not project.holds(observed)


def test_a_module_that_is_not_there_is_noticed_when_it_comes(project):
    body = "try:\n    import optional\nexcept ImportError:\n    return 0\nreturn optional.x"
    project.write("models/m.py", model(body))
    observed = project.observe()
    assert project.value == 0
    assert project.holds(observed)
    project.write("models/unrelated.py", "x = 1")
    assert project.holds(observed)
    for name in ("models/optional.py", "optional.py", "models/optional/__init__.py"):
        path = project.write(name, "x = 1")
        assert not project.holds(observed), name
        path.unlink()
        if path.name == "__init__.py":
            path.parent.rmdir()
    assert project.holds(observed)


def test_a_new_file_that_shadows_an_old_one_is_noticed(project):
    project.write("models/m.py", model("import helper\nreturn helper.x"))
    project.write("helper.py", "x = 1")
    observed = project.observe()
    assert set(observed.sources) == {"models/m.py", "helper.py"}
    project.write("models/helper.py", "x = 2")
    assert not project.holds(observed)


def test_a_same_size_edit_never_runs_stale_bytecode(project):
    project.write("models/m.py", model("import helper\nreturn helper.x"))
    helper = project.write("models/helper.py", "x = 1\n")
    subprocess.run(
        [sys.executable, "-c", "import helper"],
        cwd=helper.parent,
        check=True,
        env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
    )
    assert (helper.parent / "__pycache__").is_dir()
    before = helper.stat()
    for value in (2, 3, 4):
        helper.write_text(f"x = {value}\n")
        os.utime(helper, ns=(before.st_atime_ns, before.st_mtime_ns))
        project.observe()
        assert project.value == value


def test_a_file_with_the_name_of_a_loaded_module_is_refused(project):
    name = "json.py"
    project.write("models/m.py", model("return 1"))
    project.write(f"models/{name}", "")
    top = name.partition("/")[0].removesuffix(".py")
    assert project.reported("numpy")["error"] == (
        f"models/{name} has the name of an installed module, '{top}'\n"
        "  fix: give the file another name"
    )


def test_a_helper_that_is_edited_while_the_step_runs_is_noticed(project):
    body = "import helper\nopen(helper.__file__, 'w').write('x = 2')\nreturn helper.x"
    project.write("models/m.py", model(body))
    project.write("models/helper.py", "x = 1")
    with pytest.raises(StepError, match="an input changed while the step ran"):
        project.observe()


def test_a_module_that_comes_while_the_step_runs_is_noticed(project):
    body = (
        "from pathlib import Path\n"
        "try:\n    import optional\nexcept ImportError:\n    pass\n"
        "Path(__file__).with_name('optional.py').write_text('')\nreturn 1"
    )
    project.write("models/m.py", model(body))
    with pytest.raises(StepError, match="an input changed while the step ran"):
        project.observe()


# --- data -----------------------------------------------------------------------------------------

READ = "from pathlib import Path\nhere = Path(__file__).parent\n"


def test_a_data_file_that_is_opened_is_seen(project):
    project.write("models/m.py", model(f"{READ}return (here / 'w.txt').read_text()"))
    project.write("models/w.txt", "one")
    observed = project.observe()
    assert set(observed.data) == {"models/w.txt"}
    assert project.holds(observed)
    project.write("models/w.txt", "two")
    assert not project.holds(observed)


def test_a_data_file_that_is_not_there_is_noticed_when_it_comes(project):
    body = (
        f"{READ}try:\n    return (here / 'w.txt').read_text()\n"
        "except FileNotFoundError:\n    return 'random'"
    )
    project.write("models/m.py", model(body))
    observed = project.observe()
    assert (project.value, observed.data) == ("random", {"models/w.txt": NO_FILE})
    assert project.holds(observed)
    project.write("models/w.txt", "trained")
    assert not project.holds(observed)


def test_a_link_that_points_elsewhere_is_a_change(project):
    project.write("models/m.py", model(f"{READ}return (here / 'w.txt').read_text()"))
    project.write("models/v1.txt", "one")
    project.write("models/v2.txt", "two")
    link = project.folder / "models/w.txt"
    link.symlink_to("v1.txt")
    observed = project.observe()
    assert set(observed.data) == {"models/w.txt"}
    link.unlink()
    link.symlink_to("v2.txt")
    assert not project.holds(observed)


def test_a_source_that_is_also_read_as_data_counts_as_bytes(project):
    body = f"import helper\n{READ}return (here / 'helper.py').read_text()"
    project.write("models/m.py", model(body))
    project.write("models/helper.py", "x = 1")
    observed = project.observe()
    assert "models/helper.py" in observed.sources
    project.write("models/helper.py", "x = 1  # a comment")
    assert not project.holds(observed)


@pytest.mark.parametrize(
    "asked", ["inspect.getsource(helper.f)", "linecache.getline(helper.__file__, 1)"]
)
def test_lines_of_a_source_that_user_code_asks_for_count_as_text(project, asked):
    project.write("models/m.py", model(f"import inspect, helper, linecache\nreturn {asked}"))
    project.write("models/helper.py", "def f(): ...\n")
    observed = project.observe()
    assert set(observed.data) == {"models/helper.py"}
    project.write("models/helper.py", "def f(): ...  # another\n")
    assert not project.holds(observed)


def test_what_the_step_writes_itself_is_no_input(project):
    body = (
        f"{READ}import tempfile\n"
        "(here / 'cache.txt').write_text('made')\n"
        "with tempfile.TemporaryFile('w+') as file:\n    file.write('x')\n"
        "open('scratch.txt', 'w').close()\nopen('scratch.txt').close()\n"
        "return (here / 'cache.txt').read_text()"
    )
    project.write("models/m.py", model(body))
    observed = project.observe()
    assert (project.value, observed.data) == ("made", {})


def test_a_file_that_is_changed_after_it_was_read_is_an_error_that_names_it(project):
    body = (
        f"{READ}import os\nx = (here / 'w.txt').read_text()\n"
        "os.system(f'echo more >> \"{here}/w.txt\"')\nreturn x"
    )
    project.write("models/m.py", model(body))
    project.write("models/w.txt", "one")
    with pytest.raises(StepError) as caught:
        project.observe()
    assert str(caught.value) == (
        "r:s: models/w.txt changed while the step ran; nothing was recorded\n"
        "  fix: run again when the file is saved; a step must not change what it reads"
    )


def test_a_library_that_is_loaded_is_seen(project):
    body = (
        f"{READ}import ctypes\n"
        "try:\n    ctypes.CDLL(str(here / 'ops.so'))\nexcept OSError as error:\n    return 1"
    )
    project.write("models/m.py", model(body))
    project.write("models/ops.so", "no library")
    assert set(project.observe().data) == {"models/ops.so"}


@pytest.mark.parametrize("folder", ["/usr/src", "/run", "/etc"])
def test_a_project_is_seen_wherever_it_lies(folder, tmp_path):
    """/usr is the prefix of many interpreters, and where containers keep their code."""
    root = Path(folder) / f"onnxbuild-test-{os.getpid()}"
    if not os.access(folder, os.W_OK):
        pytest.skip(f"{folder} can't be written to here")
    project = Project(root, tmp_path / "store")
    try:
        project.write(
            "models/m.py", model(f"import helper\n{READ}return (here / 'w').read_text()")
        )
        helper = project.write("models/helper.py", "")
        data = project.write("models/w", "one")
        observed = project.observe()
        assert set(observed.sources) == {"models/m.py", "models/helper.py"}
        assert set(observed.data) == {"models/w"}
    finally:
        for path in (helper, data, root / "models/m.py"):
            path.unlink()
        (root / "models").rmdir()
        root.rmdir()


def test_a_project_around_its_virtual_environment_and_its_store_is_seen(project):
    """A store that is the project itself hides nothing of the project."""
    project.store = project.folder
    project.write("models/m.py", model(f"import helper\n{READ}return (here / 'w').read_text()"))
    project.write("models/helper.py", "")
    project.write("models/w", "one")
    observed = project.observe()
    assert set(observed.sources) == {"models/m.py", "models/helper.py"}
    assert set(observed.data) == {"models/w"}


# --- distributions --------------------------------------------------------------------------------


@pytest.mark.parametrize("preload", [(), ("networkx", "sympy")], ids=["fresh", "preloaded"])
def test_packages_that_user_code_asks_for_are_seen_preloaded_or_not(project, preload):
    project.write("models/m.py", model("import networkx\nfrom sympy import Symbol\nreturn 1"))
    observed = project.observe(*preload)
    assert {"networkx", "sympy"} <= set(observed.distributions)
    assert observed.sources.keys() == {"models/m.py"}
    assert observed.data == {}
