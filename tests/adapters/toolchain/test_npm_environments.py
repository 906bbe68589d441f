"""Folders with node_modules made by the real npm, from a registry of this test's own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxbuild.adapters.toolchain.environment_gc import collect_environments
from onnxbuild.adapters.toolchain.npm import asked_of, manifest_of, packages_listed, this_platform
from onnxbuild.adapters.toolchain.npm_environments import make_npm_environment
from onnxbuild.adapters.toolchain.virtual_environments import made_environments
from onnxbuild.core.errors import StepError
from onnxbuild.own_folder import OWN_FOLDER
from tests.npm_registry import package, serving, write_list

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm"),
]

SYSTEM, ARCHITECTURE = this_platform()
BUILT = [f"bin/napi-v6/{each}" for each in (f"{SYSTEM}/{ARCHITECTURE}", f"{SYSTEM}/other", "other/x64")]  # fmt: skip
ARCHIVES = {
    "runtime": package(
        "runtime",
        "1.0.0",
        {"index.js": "module.exports = 1", **{f"{each}/it.node": "" for each in BUILT}},
        scripts={"postinstall": "exit 1"},
    )
}


@pytest.fixture(scope="module")
def registry():
    with serving(ARCHIVES) as address:
        yield address


@pytest.fixture
def listed(tmp_path, registry, monkeypatch):
    monkeypatch.setenv("ONNXBUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_registry", registry)
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    return write_list(tmp_path / "package-lock.json", ARCHIVES)


def node_modules(tmp_path):
    return tmp_path / "cache" / "environments" / "any" / "node_modules"


def left(tmp_path):
    return [path.name for path in (tmp_path / "cache" / "environments").iterdir() if path.is_dir()]


def make(tmp_path, listed, said=None):
    make_npm_environment(
        str(listed), str(node_modules(tmp_path)), [].append if said is None else said.append
    )


def test_it_is_made_once_without_scripts_or_what_is_for_other_platforms_and_listed(
    tmp_path, listed
):
    said: list[str] = []
    make(tmp_path, listed, said)
    make(tmp_path, listed, said)
    assert said[0] == f"making the environment of {listed}: 1 packages, with npm"
    assert len(said) == 2
    there = node_modules(tmp_path) / "runtime"
    files = sorted(str(p.relative_to(there)) for p in there.rglob("*") if p.is_file())
    assert files == [f"{BUILT[0]}/it.node", "index.js", "package.json"]
    (made,) = made_environments()
    assert (made.requirements, made.runtime) == (str(listed), "runtime 1.0.0")
    past_s = time.time() - 40 * 86400
    for path in (made.folder, f"{made.folder}.lock"):
        os.utime(path, (past_s, past_s))
    assert [each.made.folder for each in collect_environments(keep_s=30 * 86400)] == [made.folder]
    assert left(tmp_path) == []


def test_other_content_than_the_list_has_is_refused(tmp_path, listed):
    forged = package("runtime", "1.0.0", {"index.js": "module.exports = 2"})
    listed = write_list(listed, {"runtime": forged})
    with pytest.raises(StepError) as caught:
        make(tmp_path, listed)
    assert caught.value.what.startswith(f"npm can't install {listed}: Integrity checksum failed")
    assert left(tmp_path) == []


def test_a_kill_leaves_nothing_that_is_half_made(tmp_path, listed):
    code = (
        "import sys; from onnxbuild.adapters.toolchain.npm_environments import make_npm_environment\n"
        "make_npm_environment(sys.argv[1], sys.argv[2], print)"
    )
    place = node_modules(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(listed), str(place)], start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not list(Path(place).parents[1].glob("any.*.tmp/package-lock.json")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not place.exists()
    make(tmp_path, listed)
    assert left(tmp_path) == ["any"]


COMMITTED = sorted(Path(OWN_FOLDER).rglob("package-lock.json"))
TEXT = json.dumps(
    {
        "lockfileVersion": 3,
        "packages": {
            "": {"dependencies": {"a": "1.0.0"}},
            "node_modules/a": {"version": "1.0.0", "integrity": "sha512-A"},
            "node_modules/a/node_modules/@s/b": {"version": "2.0.0", "integrity": "sha512-B"},
        },
    }
)


def test_a_package_counts_by_its_integrity():
    assert packages_listed(TEXT) == {
        "a": "a 1.0.0 sha512-A",
        "a/node_modules/@s/b": "@s/b 2.0.0 sha512-B",
    }
    assert asked_of(TEXT) == ["a 1.0.0"]
    assert json.loads(manifest_of(TEXT))["dependencies"] == {"a": "1.0.0"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{}", "it has no `packages`"),
        ('{"packages": {"node_modules/a": {"version": "1"}}}', "it gives 'a' no integrity"),
        ('{"packages": {"elsewhere": {}}}', "it has 'elsewhere', which is in no node_modules"),
    ],
)
def test_a_list_that_leaves_something_open_is_none(text, what):
    with pytest.raises(ValueError, match=what):
        packages_listed(text)


def test_a_list_of_pips_asks_npm_for_nothing():
    assert asked_of("tensorflow==2.19.0\n") == []


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_a_list_that_comes_with_onnxbuild_names_hashes_and_no_hosts(path):
    text = path.read_text()
    assert "://" not in text
    assert all(each.split(" ")[2].startswith("sha512-") for each in packages_listed(text).values())
    assert asked_of(text)
