"""What another environment is, found without starting its ONNX Runtime."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.environments import Environments
from onnxbuild.adapters.toolchain.fingerprints import DiskFingerprints
from onnxbuild.core.environment import Environment, split_package
from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.converters.frameworks import SAVED_MODEL
from tests.environments import make_venv, write_distribution

OPENED: list[Index] = []


@pytest.fixture(autouse=True)
def _closed():
    yield
    while OPENED:
        OPENED.pop().close()


def stats_of(tmp_path):
    OPENED.append(Index(tmp_path / "index.db"))
    return StatCache(OPENED[-1])


def environments(tmp_path):
    return Environments(stats_of(tmp_path), lambda path: str(tmp_path / path))


@pytest.fixture
def there(tmp_path):
    """An environment with a runtime, what it needs, and what it does not."""
    site = tmp_path / "packages"
    write_distribution(
        site, "onnxruntime-openvino", "1.24.1", ("numpy>=1.21", "sympy; extra == 'x'")
    )
    write_distribution(site, "numpy", "2.2.6")
    write_distribution(site, "sympy", "1.14.0")
    write_distribution(site, "openvino", "2025.3")
    make_venv(tmp_path / "venv", site)
    return Environment(python="venv/bin/python")


def names(found):
    return sorted(name.partition(" of ")[0] for name in found.packages)


def test_the_runtime_and_what_it_needs_count_and_nothing_else(tmp_path, there):
    found = environments(tmp_path).look(there, "")
    assert found.path == str(tmp_path / "venv/bin/python")
    assert names(found) == ["numpy", "onnxruntime-openvino", "openvino", "python"]
    runtime = found.packages["onnxruntime-openvino of interpreter venv/bin/python"]
    assert runtime.startswith("onnxruntime-openvino 1.24.1 ")
    assert found.packages["python of interpreter venv/bin/python"].endswith(sys.version)
    assert {str(tmp_path / "venv"), str(tmp_path / "packages"), sys.base_prefix} <= set(
        found.folders
    )


def test_another_version_counts_and_a_package_that_is_not_needed_does_not(tmp_path, there):
    known = environments(tmp_path)
    before = known.look(there, "").packages
    write_distribution(tmp_path / "packages", "pytest", "9.0")
    assert environments(tmp_path).look(there, "").packages == before
    old = tmp_path / "packages" / "onnxruntime_openvino-1.24.1.dist-info"
    old.rename(old.with_name("onnxruntime_openvino-1.23.0.dist-info"))
    assert known.look(there, "").packages == before  # within a run it is looked at once
    known.forget()
    after = known.look(there, "").packages
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"onnxruntime-openvino of interpreter venv/bin/python"}


def test_a_package_of_an_environment_is_found_by_its_name_alone(tmp_path, there):
    stats = stats_of(tmp_path)
    prints = DiskFingerprints(tmp_path, stats, Distributions(stats))
    found = prints.environment(there, "").packages
    assert {name: prints.distribution(name) for name in found} == dict(found)
    assert prints.distribution("numpy of interpreter gone/bin/python") is None


def test_an_up_to_date_run_need_not_start_the_interpreter(tmp_path, there):
    first = environments(tmp_path)
    found = first.look(there, "")
    first._stats.save()
    settings = tmp_path / "venv" / "pyvenv.cfg"
    assert str(settings) in first._stats.seen
    assert str(tmp_path / "packages") in first._stats.seen
    python = tmp_path / "venv/bin/python"
    real = os.path.realpath(python)
    assert environments(tmp_path).look(there, "") == found
    assert os.path.realpath(python) == real


def refused(tmp_path, python):
    with pytest.raises(StepError) as caught:
        environments(tmp_path).look(Environment(python=python), "tiny.yaml:9")
    assert caught.value.where == "tiny.yaml:9"
    assert caught.value.fix
    return caught.value.what


def test_an_interpreter_that_is_missing_is_reported(tmp_path):
    assert (
        refused(tmp_path, "gone/bin/python")
        == f"there is no interpreter {tmp_path}/gone/bin/python"
    )


def test_another_program_is_no_interpreter(tmp_path):
    (tmp_path / "python").write_text("#!/bin/sh\necho no such option >&2\nexit 2\n")
    (tmp_path / "python").chmod(stat.S_IRWXU)
    assert refused(tmp_path, "python").endswith(
        "is no Python interpreter that works: no such option"
    )


def test_an_environment_without_onnx_runtime_is_reported(tmp_path):
    make_venv(tmp_path / "venv")
    assert refused(tmp_path, "venv/bin/python").endswith("has no ONNX Runtime")


@pytest.fixture
def framework(tmp_path):
    """An environment with a framework, and no ONNX Runtime."""
    site = tmp_path / "packages"
    for name in ("tensorflow-cpu", "tf2onnx", "numpy", "pip"):
        write_distribution(site, name, "1.0")
    make_venv(tmp_path / "venv", site)
    return Environment(python="venv/bin/python", needs=("tensorflow", "tf2onnx"))


def test_of_a_frameworks_environment_all_that_is_installed_counts(tmp_path, framework):
    found = environments(tmp_path).look(framework, "")
    assert names(found) == ["numpy", "python", "tensorflow-cpu", "tf2onnx"]
    assert found.replaces == "tensorflow"
    stats = stats_of(tmp_path)
    prints = DiskFingerprints(tmp_path, stats, Distributions(stats))
    assert {name: prints.distribution(name) for name in found.packages} == dict(found.packages)
    write_distribution(tmp_path / "packages", "h5py", "3.0")
    assert "h5py" in names(environments(tmp_path).look(framework, ""))


def test_a_framework_that_is_not_installed_is_reported_with_the_command(tmp_path, framework):
    lacking = Environment(python="venv/bin/python", needs=("jax", "jax2onnx"))
    with pytest.raises(StepError) as caught:
        environments(tmp_path).look(lacking, "demo.yaml:3")
    assert caught.value.what.endswith("has no jax and no jax2onnx")
    assert caught.value.fix.endswith("venv/bin/python -m pip install jax jax2onnx`")
    assert environments(tmp_path).look(framework, "").packages


def test_a_list_that_comes_along_lies_in_this_package(tmp_path, monkeypatch):
    monkeypatch.setenv("ONNXBUILD_CACHE", str(tmp_path / "cache"))
    stats = stats_of(tmp_path)
    prints = DiskFingerprints(tmp_path, stats, Distributions(stats))
    listed = SAVED_MODEL.environment
    text = Path(prints.environments.requirements(listed)).read_text()
    assert "tensorflow_cpu==" in text
    found = prints.environment(listed, "")
    name = "tensorflow of list <onnxbuild>/onnxkit/converters/tensorflow.txt"
    assert found.packages == {name: "not made yet"}
    assert prints.distribution(name) == "not made yet"


def test_what_is_not_made_yet_has_a_key_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("ONNXBUILD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "list.txt").write_text("onnxruntime==1.23.0\n")
    known, listed = environments(tmp_path), Environment(requirements="list.txt")
    assert known.is_missing(listed)
    found = known.look(listed, "")
    assert found.path.startswith(str(tmp_path / "cache/environments"))
    assert found.packages == {"onnxruntime of list list.txt": "not made yet"}
    (tmp_path / "list.txt").write_text("onnxruntime==1.23.1\n")
    assert environments(tmp_path).interpreter(listed) != found.path


NPM_LIST = {
    "lockfileVersion": 3,
    "packages": {
        "": {"dependencies": {"runtime": "1.0.0"}},
        "node_modules/runtime": {"version": "1.0.0", "integrity": "sha512-A"},
    },
}


@pytest.fixture
def npm_list(tmp_path, monkeypatch):
    """A list, and a Node that says its version; both in `tmp_path`."""
    monkeypatch.setenv("ONNXBUILD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "package-lock.json").write_text(json.dumps(NPM_LIST))
    node = tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text('#!/bin/sh\nprintf \'["v20.1.0","x64",{}]\'\n')
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(node.parent))
    return node


def test_npms_packages_count_by_their_list_and_node_where_it_runs_them(tmp_path, npm_list):
    files = Environment(npm="package-lock.json")
    found = environments(tmp_path).look(files, "")
    assert found.packages == {"runtime of npm list package-lock.json": "runtime 1.0.0 sha512-A"}
    assert (found.path, found.folder, found.folders, found.replaces) == ("", "", (), "npm")
    runs = Environment(npm="package-lock.json", needs=("node",))
    known = environments(tmp_path)
    assert known.is_missing(runs)
    node = "node of npm list package-lock.json"
    assert known.look(runs, "").packages[node] == "not made yet"
    Path(known.interpreter(runs)).mkdir(parents=True)
    known.forget()
    made = known.look(runs, "")
    assert made.packages[node].startswith("node v20.1.0 ")
    assert made.path == str(npm_list)
    assert made.folders == (made.folder, str(npm_list))
    assert {n: known.digest(*split_package(n)) for n in made.packages} == made.packages
