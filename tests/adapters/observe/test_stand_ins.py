"""What stands in for Python's functions in a step can be used as they can."""

import subprocess
import sys
from pathlib import Path

import pytest

from onnxbuild.adapters.observe.installed_paths import is_data_of_prefix, prefixes_of
from onnxbuild.adapters.toolchain.software import software_folders

INSTALLED = """\
import importlib, io, multiprocessing, os, pickle, shutil, sys
from pathlib import Path
from onnxbuild.adapters.observe.observer import Observer
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.toolchain.preloaded import Preloaded
from onnxbuild.adapters.disk.statcache import StatCache

index = Index(Path("index.sqlite"))
observer = Observer(Path.cwd(), (), Preloaded(Distributions(StatCache(index)), ()))
observer.leave_files_to_the_kernel("adopted")
observer.install()
"""


def after_installing(folder: Path, code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INSTALLED + code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_they_can_be_sent_to_workers(tmp_path):
    code = """
for call in (os.stat, os.lstat, os.listdir, os.open, io.open, open, importlib.import_module):
    assert pickle.loads(pickle.dumps(call)) is call, call
with multiprocessing.get_context("fork").Pool(1) as pool:
    assert pool.map(os.listdir, ["."]) == [os.listdir()]
"""
    after_installing(tmp_path, code)


def test_installed_files_are_opened_in_all_ways(tmp_path):
    code = """
import numpy
assert open(numpy.__file__).read() == open(Path(numpy.__file__), "rb").read().decode()
assert open(file=numpy.__file__, mode="r", encoding="utf-8").name == numpy.__file__
assert open(numpy.__file__, "r", -1, "utf-8", None, None, True, os.open).encoding == "utf-8"
assert Path(numpy.__file__).read_text(encoding="utf-8")
try:
    open(numpy.__file__ + "x")
except FileNotFoundError as error:
    assert error.filename == numpy.__file__ + "x"
"""
    after_installing(tmp_path, code)


def test_an_environment_that_holds_the_project_is_no_software():
    assert sys.prefix in software_folders("/home/me/project")
    inside = software_folders(f"{sys.prefix}/src/project")
    assert sys.prefix not in inside
    assert inside


@pytest.mark.parametrize(
    ("path", "is_data"),
    [
        ("env/share/nltk_data/words.txt", True),
        ("env/lib/python3/site-packages/one/data.json", False),
        ("env/share/zoneinfo/UTC", False),
        ("elsewhere/models/weights.safetensors", False),
    ],
)
def test_a_file_next_to_an_environments_packages_is_data(tmp_path, path, is_data):
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/bin/python").touch()
    (tmp_path / "program").mkdir()
    prefixes = prefixes_of([f"{tmp_path}/env", f"{tmp_path}/program"])
    assert is_data_of_prefix(f"{tmp_path}/{path}", prefixes) == is_data
