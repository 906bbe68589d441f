"""The wheel and the sdist of this project: the same bytes twice, all files in them, installed by pip, uv and pipx.

The three installers take the packages that pip is set up to take: its `find-links` are uv's, too, so that torch is
the build without CUDA where one is to be had.
"""

import importlib.metadata
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from onnxbuild import __version__
from tools.make_dist import build_sdist, build_wheel, export, normalize, unpack

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
RECIPE = """\
version: 1
name: tiny
model: {entrypoint: tiny.py:load}
dummy_inputs:
  input: {dtype: float32, shape: [batch, 4]}
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
export: {exporter: torchscript}
quantization: {fp32: none}
"""
MODEL = """\
import torch


def load():
    torch.manual_seed(0)
    return torch.nn.Linear(4, 2)
"""

in_a_checkout = pytest.mark.skipif(
    subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=False
    ).returncode
    != 0,
    reason="not a git checkout",
)


def archive(members, *, mtime, uid=0):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        for name, mode, content in members:
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.uid, info.mode = len(content), mtime, uid, mode
            info.uname = f"user{uid}"
            files.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def test_normalized_archives_differ_in_nothing_but_their_files():
    one = archive([("a/b", 0o664, b"1"), ("a/c", 0o775, b"2")], mtime=1000, uid=7)
    other = archive([("a/c", 0o700, b"2"), ("a/b", 0o600, b"1")], mtime=2000)
    assert one != other
    assert normalize(one, 5) == normalize(other, 5)
    assert normalize(one, 5) != normalize(one, 6)
    assert normalize(one, 5) != normalize(
        archive([("a/b", 0o664, b"1"), ("a/c", 0o775, b"3")], mtime=1), 5
    )


def test_a_normalized_archive_holds_the_same_files():
    made = normalize(archive([("a/run", 0o775, b"#!"), ("a/b", 0o600, b"1")], mtime=1000), 5)
    with tarfile.open(fileobj=io.BytesIO(made)) as files:
        found = [(each.name, each.mode, each.mtime, each.uid, each.uname) for each in files]
        assert files.extractfile("a/run").read() == b"#!"
    assert found == [("a/b", 0o644, 5, 0, ""), ("a/run", 0o755, 5, 0, "")]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folders of two builds of HEAD, far from each other: (sdist, wheel) each."""
    made = []
    for name in ("one", "another folder"):
        folder = tmp_path_factory.mktemp(name)
        epoch = export("HEAD", folder / "tree")
        output = folder / "dist"
        output.mkdir()
        made.append((build_sdist(folder / "tree", output, epoch), folder, epoch))
    (one, folder, epoch), (other, other_folder, _) = made
    from_sdist = build_wheel(unpack(one, folder / "unpacked"), folder / "dist", epoch)
    os.utime(other_folder / "tree/onnxbuild/__init__.py")
    from_tree = build_wheel(other_folder / "tree", other_folder / "dist", epoch)
    return (one, from_sdist), (other, from_tree)


@in_a_checkout
@pytest.mark.slow
def test_two_builds_have_the_same_bytes_and_the_sdist_builds_the_wheel(built):
    (one, from_sdist), (other, from_tree) = built
    assert one.read_bytes() == other.read_bytes()
    assert from_sdist.read_bytes() == from_tree.read_bytes()
    assert from_sdist.name == f"onnxbuild-{__version__}-py3-none-any.whl"


def committed(*under):
    done = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "--name-only", "HEAD", *under],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return set(done.stdout.decode().split("\0")[:-1])


@in_a_checkout
@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[0][1]) as files:
        found = {name for name in files.namelist() if ".dist-info/" not in name}
    assert found == committed("onnxbuild"), "a file that is no .py: [tool.setuptools.package-data]"


@in_a_checkout
@pytest.mark.slow
def test_the_sdist_holds_every_file_of_the_commit(built):
    with tarfile.open(built[0][0]) as files:
        found = {each.name.partition("/")[2] for each in files if each.isfile()}
    assert committed() - found == {".ci/run"}, "a file that is missing: MANIFEST.in"
    added = {name for name in found - committed() if ".egg-info/" not in name}
    assert added == {"PKG-INFO", "setup.cfg"}


def ran(command, cwd, environment=None):
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"$ {' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


def works(program, folder):
    """What somebody does first, outside of any checkout."""
    project = folder / "project"
    project.mkdir()
    (project / "tiny.yaml").write_text(RECIPE)
    (project / "tiny.py").write_text(MODEL)
    environment = {
        name: each
        for name, each in os.environ.items()
        if not name.startswith(("ONNXBUILD", "PYTHON"))
    }
    assert ran([program, "--version"], project, environment) == f"onnxbuild {__version__}\n"
    assert ran([program, "lint", "tiny.yaml"], project, environment).startswith("ok: tiny (")
    said = ran([program, "run", "tiny.yaml", "--only", "fp32/validate"], project, environment)
    assert "ok: " in said
    assert "up to date" in ran(
        [program, "run", "tiny.yaml", "--only", "fp32/validate"], project, environment
    )
    assert str(ROOT) not in said


@pytest.fixture(scope="module")
def installers(tmp_path_factory):
    """Variables under which uv and pipx install into folders of ours, from where pip does."""
    home = tmp_path_factory.mktemp("installers")
    links = subprocess.run(
        [BIN / "pip", "config", "get", "global.find-links"],
        capture_output=True,
        text=True,
        check=False,
    )
    places = (os.environ.get("PIP_FIND_LINKS") or links.stdout).split()
    yield {
        **os.environ,
        "UV_FIND_LINKS": ",".join(places),
        "UV_CACHE_DIR": str(home / "cache"),
        "UV_TOOL_DIR": str(home / "uv"),
        "UV_TOOL_BIN_DIR": str(home / "uv-bin"),
        "UV_PYTHON_DOWNLOADS": "never",
        "PIPX_HOME": str(home / "pipx"),
        "PIPX_BIN_DIR": str(home / "pipx-bin"),
        "PIPX_MAN_DIR": str(home / "pipx-man"),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }
    shutil.rmtree(home)


@in_a_checkout
@pytest.mark.slow
def test_the_wheel_works_where_uv_tool_installs_it(built, installers, tmp_path):
    command = [
        BIN / "uv",
        "tool",
        "install",
        "--python",
        sys.executable,
        "--constraints",
        ROOT / "constraints.txt",
    ]
    ran([*command, built[0][1]], tmp_path, installers)
    works(Path(installers["UV_TOOL_BIN_DIR"], "onnxbuild"), tmp_path)


@in_a_checkout
@pytest.mark.slow
def test_the_wheel_works_in_an_environment_of_pip(built, tmp_path):
    """Its packages are this environment's, by a .pth: pip takes a minute and a half to copy them."""
    place = tmp_path / "environment"
    venv.create(place, with_pip=True)
    (site,) = place.glob("lib/python*/site-packages")
    installed = sysconfig.get_path("purelib")
    (site / "packages.pth").write_text(f"{installed}\n")
    python = place / "bin/python"
    ran(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", built[0][1]],
        tmp_path,
    )
    works(place / "bin/onnxbuild", tmp_path)
    where = "import onnxbuild; print(onnxbuild.__file__)"
    assert str(place) in ran([python, "-c", where], tmp_path)


def test_the_version_is_the_one_that_is_installed():
    assert importlib.metadata.version("onnxbuild") == __version__
