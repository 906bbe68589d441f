"""Packages count by what they are: all owners, what was asked about, what was loaded before.

Each test runs code that uses a package in a process of its own, then installs something.
"""

import pytest

from onnxbuild.core.step import COPIED
from tests.adapters.observe.test_observer import Project, model
from tests.adapters.site_folder import SiteFolder


@pytest.fixture
def site(tmp_path):
    return SiteFolder(tmp_path / "site-packages")


@pytest.fixture
def project(tmp_path, site):
    return Project(tmp_path / "project", sites=(site.folder,))


# --- owners -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("upgraded", ["plug-a", "plug-b"])
def test_each_distribution_of_a_namespace_counts(project, site, upgraded):
    files = {"plug-a": {"ns/a.py": "x = 1\n"}, "plug-b": {"ns/b.py": "x = 2\n"}}
    for name, each in files.items():
        site.install(name, "1", each)
    project.write("models/m.py", model("from ns import a, b\nreturn a.x + b.x"))
    observed = project.observe()
    assert project.holds(observed)
    site.install(upgraded, "2", dict.fromkeys(files[upgraded], "x = 3\n"))
    assert not project.holds(observed)


@pytest.mark.parametrize(
    "body",
    [
        "import ns.a\ntry:\n    import ns.b\nexcept ImportError:\n    return 0\nreturn 1",
        "import ns, os\nreturn sorted(os.listdir(list(ns.__path__)[0]))",
    ],
    ids=["looked for", "listdir"],
)
def test_a_new_part_of_a_namespace_counts_where_it_was_looked_for(project, site, body):
    site.install("plug-a", "1", {"ns/a.py": "x = 1\n"})
    project.write("models/m.py", model(body))
    observed = project.observe()
    assert project.holds(observed)
    site.install("plug-b", "1", {"ns/b.py": "x = 2\n"})
    assert not project.holds(observed)


@pytest.mark.parametrize("upgraded", ["first", "second"])
def test_distributions_that_own_one_folder_count_all(project, site, upgraded):
    files = {
        "first": {"runtime/__init__.py": "x = 1\n", "runtime/one.py": ""},
        "second": {"runtime/__init__.py": "x = 2\n", "runtime/two.py": ""},
    }
    for name, each in files.items():
        site.install(name, "1", each)
    project.write("models/m.py", model("import runtime\nreturn runtime.x"))
    observed = project.observe()
    assert project.holds(observed)
    site.install(upgraded, "2", {path: f"{text}y = 3\n" for path, text in files[upgraded].items()})
    assert not project.holds(observed)


def test_without_a_record_the_files_count(project, site):
    site.install("old", "1", {"old.py": "x = 1\n"}, record=False)
    project.write("models/m.py", model("import old\nreturn old.x"))
    observed = project.observe()
    assert observed.distributions["old"].startswith("old 1 ")
    assert project.holds(observed)
    (site.folder / "old.py").write_text("x = 2\n")
    assert not project.holds(observed)


def test_a_module_that_no_package_lists_counts_by_its_content(project, site):
    copied = site.folder / "copied" / "__init__.py"
    copied.parent.mkdir()
    copied.write_text("x = 1\n")
    project.write("models/m.py", model("import copied\nreturn copied.x"))
    observed = project.observe()
    assert f"{COPIED}copied>" in observed.distributions
    assert project.holds(observed)
    copied.write_text("x = 2\n")
    assert not project.holds(observed)


# --- questions --------------------------------------------------------------------------------------

VERSION = "from importlib import metadata\nreturn metadata.version('Some.Tool')"
MAYBE = """from importlib import metadata
try:
    return metadata.version('some-tool')
except metadata.PackageNotFoundError:
    return None"""


@pytest.mark.parametrize(
    "body",
    [
        VERSION,
        "from importlib.metadata import distribution\nreturn len(distribution('some_tool').files)",
        "import importlib.metadata as m\nreturn sorted(d.name for d in m.distributions())",
    ],
    ids=["version", "distribution", "all"],
)
def test_a_package_that_is_asked_about_counts(project, site, body):
    site.install("some_tool", "1", {"some_tool.py": "x = 1\n"})
    project.write("models/m.py", model(body))
    observed = project.observe()
    assert project.holds(observed)
    site.install("some_tool", "2", {"some_tool.py": "x = 2\n"})
    assert not project.holds(observed)


@pytest.mark.parametrize(
    "body",
    [
        MAYBE,
        "import importlib.metadata as m\nreturn 'some_tool' in m.packages_distributions()",
        "import importlib.metadata as m\nreturn len(m.entry_points().select(group='plugs'))",
    ],
    ids=["version", "packages_distributions", "select"],
)
def test_a_package_that_was_absent_counts_when_it_is_installed(project, site, body):
    project.write("models/m.py", model(body))
    observed = project.observe()
    assert project.holds(observed)
    entry = "[plugs]\nmine = some_tool:x\n"
    site.install("some_tool", "1", {"some_tool.py": "x = 1\n"}, entry_points=entry)
    assert not project.holds(observed)


def test_what_a_library_enumerates_does_not_count(project, site):
    library = "import importlib.metadata as m\nfound = sorted(m.packages_distributions())\n"
    site.install("library", "1", {"library.py": library})
    project.write("models/m.py", model("import library\nreturn len(library.found)"))
    observed = project.observe()
    site.install("unrelated", "1", {"unrelated.py": ""})
    assert project.holds(observed)


# --- loaded before ----------------------------------------------------------------------------------


def test_what_was_loaded_by_itself_counts(project, site):
    site.install("base", "1", {"base.py": "import plug\n"})
    site.install("plug", "1", {"plug.py": "x = 1\n"})
    project.write("models/m.py", model("return 1"))
    observed = project.observe("base")
    assert "plug" in observed.distributions
    assert "base" not in observed.distributions
    site.install("plug", "2", {"plug.py": "x = 2\n"})
    assert not project.holds(observed)


def test_what_a_loaded_package_needs_counts_with_it(project, site):
    site.install("base", "1", {"base.py": "import dep\n"}, needs="dep>=1")
    site.install("dep", "1", {"dep.py": "x = 1\n"})
    project.write("models/m.py", model("return 1"))
    assert "dep" not in project.observe("base").distributions
    project.write("models/m.py", model("import base\nreturn 1"))
    observed = project.observe("base")
    site.install("dep", "2", {"dep.py": "x = 2\n"})
    assert not project.holds(observed)


def test_a_backend_that_torch_would_load_counts(project, site):
    project.write("models/m.py", model("return 1"))
    observed = project.observe()
    entry = "[torch.backends]\nmine = backend:load\n"
    site.install("backend", "1", {"backend.py": ""}, entry_points=entry)
    assert not project.holds(observed)


def test_code_that_runs_when_python_starts_counts(project, site):
    start = site.folder / "start.pth"
    start.write_text("import sys; sys.mine = 1\n")
    project.write("models/m.py", model("import sys\nreturn sys.mine"))
    observed = project.observe()
    assert project.holds(observed)
    start.write_text("import sys; sys.mine = 2\n")
    assert not project.holds(observed)


# --- the import path --------------------------------------------------------------------------------


@pytest.fixture
def checkouts(tmp_path, site):
    for name, text in (("one", "x = 1\n"), ("two", "x = 2\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.py").write_text(text)
    (site.folder / "mine.pth").write_text(f"{tmp_path / 'one'}\n")
    return tmp_path


def test_a_pth_file_that_names_another_checkout_is_a_change(project, site, checkouts):
    project.write("models/m.py", model("import helper\nreturn helper.x"))
    observed = project.observe()
    assert project.holds(observed)
    (site.folder / "mine.pth").write_text(f"{checkouts / 'two'}\n")
    assert not project.holds(observed)


def test_a_pth_file_that_is_new_counts_if_it_shadows_a_module(project, site, tmp_path):
    project.write("models/m.py", model("import later\nreturn later.x"))
    site.install("later", "1", {"later.py": "x = 1\n"})
    observed = project.observe()
    (tmp_path / "front").mkdir()
    (site.folder / "front.pth").write_text(f"{tmp_path / 'front'}\n")
    assert project.holds(observed)
    (tmp_path / "front" / "later.py").write_text("x = 2\n")
    assert not project.holds(observed)


def test_a_folder_of_sys_path_that_is_made_later_counts(project, tmp_path):
    place = tmp_path / "lib"
    body = f"import sys\nsys.path.insert(0, {str(place)!r})\nimport helper\nreturn helper.x"
    project.write("models/m.py", model(body))
    project.write("models/helper.py", "x = 1\n")
    observed = project.observe()
    assert project.holds(observed)
    place.mkdir()
    assert project.holds(observed)
    (place / "helper.py").write_text("x = 2\n")
    assert not project.holds(observed)


# --- copies of what is loaded -----------------------------------------------------------------------


FIRST = "import sys\nsys.path.insert(0, '{vendor}')\n"


def vendored(project, site, order):
    """Two packages, of which one imports the other; a copy of that in the project; code in an order."""
    site.install("base", "1", {"base.py": "import dep\n"}, needs="dep")
    site.install("dep", "1", {"dep.py": "x = 'installed'\n"})
    project.write("vendor/dep/__init__.py", "x = 'vendored'\n")
    project.write("models/m.py", model(order.format(vendor=str(project.folder / "vendor"))))


def test_a_copy_put_first_of_what_is_loaded_is_refused(project, site):
    order = FIRST + "import dep\nreturn dep.x"
    vendored(project, site, order)
    error = project.reported("base")["error"]
    assert "plain Python would import 'dep' from vendor/dep/__init__.py" in error
    assert "sys.path.append" in error


def test_a_copy_that_plain_python_would_not_take_is_none(project, site):
    order = "import sys\nsys.path.append('{vendor}')\nimport dep\nreturn dep.x"
    vendored(project, site, order)
    project.observe("base")
    assert project.value == "installed"
