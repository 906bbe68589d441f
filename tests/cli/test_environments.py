"""Targets with an environment of their own, through the command."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.distributions import Distributions
from tests.cli.conftest import Project, make_project
from tests.environments import INSTALLED, make_venv, write_wheel
from tests.fork_servers import COLD

pytestmark = pytest.mark.slow

TARGETS = (
    "providers:\n"
    "  cpu: {}\n"
    "  other: {provider: cpu, environment: {python: venv/bin/python}}\n"
    "  npu: {provider: qnn, environment: {python: venv/bin/python}}\n"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    project = make_project(tmp_path_factory.mktemp("environments") / "project")
    make_venv(project.folder / "venv", INSTALLED)
    project.edit("tiny.yaml", "quantization", f"{TARGETS}quantization")
    project.edit("tiny.yaml", "min_samples: 3}", "min_samples: 3, io_binding: true, clients: [2]}")
    first = project.run()
    assert first.code == 0, first.out + first.err
    assert "fp32/validate-other" in first.ran
    return project


@pytest.fixture
def project(built, tmp_path) -> Project:
    """A built project at a path of its own; what is in its environment is the project's."""
    made = Project(shutil.copytree(built.folder, tmp_path / "project", symlinks=True))
    shutil.rmtree(made.folder / "venv")
    make_venv(made.folder / "venv", INSTALLED)
    return made


def report(project, name):
    return json.loads((project.folder / "artifacts/out/tiny/fp32" / name).read_text())


def test_it_is_validated_and_measured_there(built):
    manifest = report(built, "manifest.json")
    other = manifest["targets"]["other"]
    assert other["placement"]["nodes"].keys() == {"CPUExecutionProvider"}
    assert other["environment"]["package"].startswith("onnxruntime")
    assert "environment" not in manifest["targets"]["cpu"]
    assert manifest["validation"].keys() == {"cpu", "other"}
    measured = report(built, "benchmark-other.json")
    assert measured["environment"] == other["environment"]
    assert {"fp32", "fp32+io-binding", "pytorch"} <= set(measured["models"])
    assert measured["concurrency"]["models"]["fp32"][0]["runs_per_s"] > 0
    assert "QNNExecutionProvider is not in the installed" in manifest["targets"]["npu"]["skipped"]


def test_the_next_run_does_nothing_and_a_moved_project_neither(built, project):
    again = built.run()
    assert (again.code, again.ran) == (0, [])
    assert again.out.endswith("nothing to do\n")
    seen = project.run()
    assert seen.ran == [], seen.out


def test_another_package_there_runs_what_runs_there_and_nothing_else(project):
    site = project.folder / "packages"
    site.mkdir()
    for entry in Path(INSTALLED).iterdir():
        if entry.name.startswith(("onnxruntime", "numpy")):
            (site / entry.name).symlink_to(entry)
    installed = Distributions(StatCache(Index(Path(":memory:"))))
    name = installed.real_name("onnxruntime")
    (info,) = site.glob(f"{name.replace('-', '_')}-*.dist-info")
    shutil.copytree(info, site / f"{name.replace('-', '_')}-0.1.dist-info")
    info.unlink()
    make_venv(project.folder / "venv", site, INSTALLED)
    planned = project("plan", "tiny.yaml").out
    assert "run     tiny:provider-other" in planned
    assert f"package {name} of interpreter venv/bin/python: {name} " in planned
    assert "cached  tiny:fp32/validate\n" in planned
    assert "cached  tiny:benchmark\n" in planned
    done = project.run()
    assert done.code == 0, done.out + done.err
    assert {"provider-other", "fp32/validate-other", "benchmark-other"} <= set(done.ran)
    assert not {"export", "fp32/validate", "benchmark"} & set(done.ran)


def test_a_lock_holds_the_environment_too(project):
    locked = project("lock", "tiny.yaml")
    assert locked.code == 0, locked.out + locked.err
    assert "numpy of interpreter venv/bin/python: numpy " in (
        project.folder / "tiny.lock"
    ).read_text().replace('"', "").replace("'", "")
    assert project.run("--locked").code == 0
    (site,) = (project.folder / "venv").glob("lib/python3*/site-packages")
    shutil.copytree(next(Path(INSTALLED).glob("numpy-*.dist-info")), site / "numpy-0.1.dist-info")
    refused = project.run("--locked")
    assert refused.code == 4
    assert "numpy of interpreter venv/bin/python" in refused.err


def test_a_list_becomes_an_environment_and_a_lost_one_is_made_again(project, tmp_path):
    write_wheel(project.folder / "wheels", "shared", content=INSTALLED)
    project.write("list.txt", "--no-index\n--find-links wheels\nshared==1.0\n")
    project.edit(
        "tiny.yaml", "python: venv/bin/python}}\n  npu", "requirements: list.txt}}\n  npu"
    )
    cache = tmp_path / "cache"
    env = {"ONNXBUILD_CACHE": str(cache), COLD: "1"}
    reported = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    try:
        planned = project("plan", "tiny.yaml")
        assert "onnxruntime of list list.txt: (none) -> not made yet" in planned.out
        assert not cache.exists()
        done = project.run("--only", "fp32/validate-other")
        assert done.code == 0, done.out + done.err
        assert "making the environment of " in done.out
        assert {"provider-other", "fp32/validate-other"} <= set(done.ran)
        assert project.run("--only", "fp32/validate-other").ran == []
        shutil.rmtree(cache)
        again = project.run("--only", "fp32/validate-other")
        assert "making the environment of " in again.out
        assert again.ran == []
        listed = project("doctor").out
        assert f"environment  {cache}" in listed
        assert "environments 1, " in project("cache", "stats").out
        assert "removed the environment" not in project("cache", "gc").out
        then_s = time.time() - 31 * 86400
        for path in (cache / "environments").iterdir():
            os.utime(path, (then_s, then_s))
        collected = project("cache", "gc").out
        assert f"removed the environment of {project.folder}/list.txt (" in collected
        assert list((cache / "environments").iterdir()) == []
    finally:
        for name, value in reported.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
