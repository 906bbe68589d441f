"""What decides where an interpreter looks for modules, before any code runs."""

import os
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.import_path import ImportPath
from onnxbuild.adapters.toolchain.import_variables import python_path, shell_python_path
from onnxbuild.adapters.toolchain.installed_state import devices_digest
from tests.adapters.site_folder import SiteFolder


@pytest.fixture
def site(tmp_path):
    return SiteFolder(tmp_path / "site-packages")


def distributions(site):
    return Distributions(StatCache(Index(Path(":memory:"))), (str(site.folder),))


def test_python_path_is_read_as_python_reads_it(tmp_path):
    value = os.pathsep.join(["lib", "/opt/x/", "", "lib"])
    place = str(tmp_path)
    assert python_path(value, place) == (f"{place}/lib", "/opt/x", place)
    assert python_path("", place) == ()
    assert shell_python_path({}) == ()


def test_folders_of_pth_files_have_names_that_tell_no_place(tmp_path, site):
    (tmp_path / "gone").mkdir()
    (site.folder / "mine.pth").write_text(f"# mine\n{tmp_path / 'one'}\n\n{tmp_path / 'two'}\n")
    (site.folder / "__editable__.tool-1.2.pth").write_text(f"{tmp_path / 'tool'}\n")
    path = ImportPath((str(site.folder),), ("/opt/x",))
    assert path.places() == {
        "<pythonpath 1>": "/opt/x",
        "<__editable__.tool.pth>": str(tmp_path / "tool"),
        "<mine.pth>": str(tmp_path / "one"),
        "<mine.pth 2>": str(tmp_path / "two"),
    }


def test_modules_of_an_editable_installation_by_hook_are_known_by_name(site):
    name = "__editable___tool_1_2_finder"
    (site.folder / "__editable__.tool-1.2.pth").write_text(f"import {name}; {name}.install()\n")
    (site.folder / f"{name}.py").write_text(
        "MAPPING: dict[str, str] = {'tool': '/x/tool', 'more.part': '/x/p'}\nNAMESPACES = {}\n"
    )
    path = ImportPath((str(site.folder),), ())
    assert [each.modules for each in path.folders()] == [("more", "tool")]
    assert path.start_up({}).startswith("start-up 0 ")


def test_start_up_code_counts_wherever_its_folders_lie(site):
    def digest(text, places):
        (site.folder / "start.pth").write_text(text)
        return ImportPath((str(site.folder),), ()).start_up(places)

    one = digest("import sys; sys.path.append('/a/one')\n", {"<home>": "/a"})
    assert digest("import sys; sys.path.append('/b/one')\n", {"<home>": "/b"}) == one
    assert digest("import sys; sys.path.append('/b/two')\n", {"<home>": "/b"}) != one


@pytest.mark.parametrize("upgraded", ["onnxruntime", "onnxruntime-gpu"])
def test_all_that_stand_for_one_package_count(site, upgraded):
    for name in ("onnxruntime", "onnxruntime-gpu"):
        site.install(name, "1", {"onnxruntime/__init__.py": f"{name!r}\n"})
    before = distributions(site).digest("onnxruntime")
    site.install(upgraded, "2", {"onnxruntime/__init__.py": f"{upgraded!r}\nnew = 1\n"})
    assert distributions(site).digest("onnxruntime") != before


def test_a_file_is_owned_by_all_that_list_it_and_metadata_by_its_own(site):
    files = {"cv2/__init__.py": "", "cv2/data.xml": "1"}
    site.install("opencv-python", "4", files)
    site.install("opencv-contrib", "4", {**files, "cv2/more.py": ""})
    found = distributions(site)
    place = f"{site.folder}/cv2"
    assert found.owners_of(f"{place}/__init__.py") == ("opencv-contrib", "opencv-python")
    assert found.owners_of(f"{place}/more.py") == ("opencv-contrib",)
    assert found.owners_of(f"{site.folder}/opencv_python-4.dist-info/METADATA") == (
        "opencv-python",
    )
    assert found.owners_of(f"{site.folder}/other.py") == ()
    assert found.owners_of("/usr/lib/x.py") == ()


def test_devices_are_those_that_a_program_finds():
    none = devices_digest({"devices": ""}, {})
    assert len(none.split()) == 3
    two = devices_digest({"devices": "nvidia0 nvidia1"}, {})
    hidden = devices_digest({"devices": "nvidia0 nvidia1"}, {"CUDA_VISIBLE_DEVICES": "1"})
    assert two.startswith("nvidia0,nvidia1 all ")
    assert hidden.startswith("nvidia0,nvidia1 CUDA_VISIBLE_DEVICES=1 ")
    assert len({none, two, hidden}) == 3
