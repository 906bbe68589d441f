"""A signed release, and the ways to look at it and to alter it."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from onnxbuild.cli.verify import command
from onnxbuild.core.errors import BuildError
from onnxbuild.release_format.forms import json_bytes
from tests.cli.conftest import Project, Result, make_project

MODEL = "variants/fp32/model.onnx"
PROVENANCE = "provenance.intoto.json"


def write_keys(folder: Path, name: str, key) -> None:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key()
    (folder / f"{name}.pem").write_bytes(private)
    for suffix, encoding, form in (
        ("pub.pem", serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        ("pub", serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH),
    ):
        (folder / f"{name}.{suffix}").write_bytes(public.public_bytes(encoding, form))


def give_keys(project: Project) -> None:
    """The team's, another's, and one of another kind."""
    for name, key in (
        ("team", Ed25519PrivateKey.generate()),
        ("other", Ed25519PrivateKey.generate()),
        ("curve", ec.generate_private_key(ec.SECP256R1())),
    ):
        write_keys(project.folder, name, key)


@pytest.fixture(scope="session")
def once_released(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("released") / "project")
    give_keys(project)
    assert project("lock", "tiny.yaml").code == 0
    release(project)
    return project


def release(project: Project) -> None:
    """Sign one of what is locked, of no commit."""
    done = project(
        "release", "tiny.yaml", "--version", "1.0", "--allow-dirty", "--sign", "team.pem"
    )
    assert done.code == 0, done.out + done.err


@pytest.fixture
def released(once_released, tmp_path):
    """A project with a signed release in dist/, at a path of its own."""
    return Project(shutil.copytree(once_released.folder, tmp_path / "project"))


def release_of(project) -> Path:
    return project.folder / "dist/tiny-1.0"


def look_at(path: Path, *arguments: str) -> Result:
    """`verify`, in this process: there is much to try."""
    done = CliRunner().invoke(command, [str(path), *arguments])
    if isinstance(done.exception, BuildError):
        return Result(done.exception.exit_code, done.stdout, str(done.exception))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Result(done.exit_code, done.stdout, done.stderr)


def key_of(project) -> tuple[str, str]:
    return "--key", str(project.folder / "team.pub.pem")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def sum_again(folder: Path) -> None:
    """As somebody would who knows what SHA256SUMS is for."""
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    kept = [n for n in names if n not in ("SHA256SUMS", "SHA256SUMS.sig", "provenance.dsse.json")]
    lines = [f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in kept]
    (folder / "SHA256SUMS").write_text("".join(lines))


def edit_json(path: Path, change) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=2, sort_keys=True))


def edit_as_written(path: Path, change) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_bytes(json_bytes(value))


def replace_text(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
