"""`onnxbuild release`: what it writes, the same twice, and what it refuses."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from onnxbuild.adapters.store.pins import pins
from onnxbuild.release_format.bom import bom_fault
from tests.cli.conftest import Project, make_project

pytestmark = pytest.mark.slow

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


class Repository(Project):
    """A project under git."""

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *IDENTITY, *arguments],
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a commit")
        return self.git("rev-parse", "HEAD")

    def release(self, *arguments: str, version="1.0.0", env=None):
        return self("release", "tiny.yaml", "--version", version, *arguments, env=env)

    @property
    def dist(self):
        return self.folder / "dist"

    def released(self):
        """Names of what is in dist/."""
        return sorted(path.name for path in self.dist.iterdir()) if self.dist.exists() else []


@pytest.fixture(scope="module")
def once_locked(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("released") / "project")
    project.write(".gitignore", "/artifacts/\n/dist/\n__pycache__/\n")
    assert project("lock", "tiny.yaml").code == 0
    repository = Repository(project.folder)
    repository.git("init", "-q")
    repository.commit()
    return repository


@pytest.fixture
def project(once_locked, tmp_path):
    """A built, locked and committed project, at a path of its own."""
    return Repository(shutil.copytree(once_locked.folder, tmp_path / "project", symlinks=True))


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_release_is_whole_and_says_what_it_is(project):
    done = project.release()
    assert done.code == 0, done.out + done.err
    archive, folder = project.dist / "tiny-1.0.0.tar", project.dist / "tiny-1.0.0"
    assert f"dist/tiny-1.0.0.tar  0.1 MiB, sha256 {sha256(archive)}" in done.out
    assert "dist/tiny-1.0.0/  1 variant (fp32), 23 files, not signed" in done.out
    assert project.released() == ["tiny-1.0.0", "tiny-1.0.0.tar"]

    checked = subprocess.run(
        ["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=folder, check=False, capture_output=True
    )
    assert checked.returncode == 0, checked.stdout
    there = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    listed = [line.split("  ")[1] for line in (folder / "SHA256SUMS").read_text().splitlines()]
    assert listed == sorted(there.keys() - {"SHA256SUMS"})

    about = json.loads((folder / "release.json").read_text())
    assert about["source"] == {
        "commit": project.git("rev-parse", "HEAD"),
        "dirty": False,
        "changed": [],
        "outside": [],
    }
    assert about["epoch_s"] == int(project.git("show", "-s", "--format=%ct"))
    for name in ("tiny.yaml", "tiny.lock"):
        assert (folder / "recipe" / name).read_bytes() == (project.folder / name).read_bytes()
    bundle = project.folder / "artifacts/out/tiny/fp32"
    released = folder / about["variants"]["fp32"]["bundle"]
    for path in filter(Path.is_file, released.rglob("*")):
        assert path.read_bytes() == (bundle / path.relative_to(released)).read_bytes()

    statement = json.loads((folder / "provenance.intoto.json").read_text())
    assert {each["name"]: each["digest"]["sha256"] for each in statement["subject"]} == {
        name: sha256(path)
        for name, path in there.items()
        if name not in ("SHA256SUMS", "provenance.intoto.json")
    }
    used = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert used[0]["digest"] == {"gitCommit": about["source"]["commit"]}
    assert {"models/tiny.py", "models/helper.py", "torch"} <= {each["name"] for each in used}

    bill = (folder / "bom.cdx.json").read_text()
    assert bom_fault(bill) == ""
    assert bom_fault(bill.replace('"machine-learning-model"', '"a model"')) != ""
    (model,) = [c for c in json.loads(bill)["components"] if c["bom-ref"] == "variant:fp32"]
    assert model["hashes"][0]["content"] == sha256(folder / "variants/fp32/model.onnx")
    assert {"max_abs_error", "latency_p50_ms"} <= {
        each["type"] for each in model["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]
    }

    loaded = subprocess.run(
        [sys.executable, "variants/fp32/load.py"], cwd=folder, check=False, capture_output=True
    )
    assert b"output logits float32 [2, 2]" in loaded.stdout
    (pinned,) = pins(project.folder / "artifacts")
    assert pinned.startswith("tiny-1.0.0@")
    assert project("verify", "dist/tiny-1.0.0.tar", "--run").code == 0


@pytest.mark.always
def test_two_releases_of_one_commit_are_identical_wherever_and_whenever_they_are_made(
    project, tmp_path
):
    assert project.release().code == 0
    there = Repository(tmp_path / "else where" / "ü")
    project.git("clone", "-q", str(project.folder), str(there.folder))
    done = there.release(
        env={"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    )  # with a benchmark of its own
    assert done.code == 0, done.out + done.err
    assert len(done.ran) == 8
    one, two = project.dist / "tiny-1.0.0.tar", there.dist / "tiny-1.0.0.tar"
    assert one.read_bytes() == two.read_bytes()
    text = b"".join(path.read_bytes() for path in there.dist.rglob("*") if path.is_file())
    assert str(there.folder).encode() not in text

    stamp = one.stat().st_mtime_ns
    again = project.release()
    assert (again.code, one.stat().st_mtime_ns) == (0, stamp)
    assert "tiny-1.0.0 is already there, identical" in again.out


def test_what_no_commit_has_is_released_only_on_request_and_then_said(project):
    project.edit("models/helper.py", "import torch\n", "import torch  # edited\n")
    refused = project.release()
    assert refused.code == 4
    assert "models/helper.py" in refused.err
    assert "--allow-dirty" in refused.err
    assert project.released() == []

    done = project.release("--allow-dirty")
    assert done.code == 0, done.err
    assert "nobody else can make this release again: 1 file differs from the commit" in done.out
    about = json.loads((project.dist / "tiny-1.0.0/release.json").read_text())
    assert (about["source"]["dirty"], about["source"]["changed"]) == (True, ["models/helper.py"])
    statement = json.loads((project.dist / "tiny-1.0.0/provenance.intoto.json").read_text())
    used = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert used[0]["annotations"] == {"dirty": True, "changed": ["models/helper.py"]}
    assert "models/helper.py" in (project.dist / "tiny-1.0.0/README.md").read_text()

    project.git("checkout", "-q", "models/helper.py")
    other = project.release()
    assert other.code == 4
    assert "there is another tiny-1.0.0: README.md has other bytes" in other.err
    assert project.release("--force").code == 0


def test_a_checkout_that_git_converted_is_no_clean_one(project, tmp_path):
    there = Repository(tmp_path / "clone")
    project.git("clone", "-q", "-c", "core.autocrlf=true", str(project.folder), str(there.folder))
    assert b"\r\n" in (there.folder / "tiny.yaml").read_bytes()
    refused = there.release()
    assert refused.code == 4, refused.err
    assert "tiny.yaml" in refused.err
    assert "tiny.lock" in refused.err
    assert "fix: git converts them on the way out (core.autocrlf" in refused.err
    assert there.released() == []


def test_files_outside_the_repository_are_reported_and_names_that_no_text_holds_are_escaped(
    project, tmp_path
):
    outside = tmp_path / "outside.txt"
    outside.write_text("1")
    model = "model: {entrypoint: models/tiny.py:load"
    project.edit("tiny.yaml", model, f"{model}, files: [{outside}]")
    odd = project.folder / os.fsdecode(b"n\xff.txt")
    odd.write_text("one")
    assert project("lock", "tiny.yaml").code == 0
    project.commit()
    odd.write_text("two")
    done = project.release("--allow-dirty")
    assert done.code == 0, done.err
    assert "no commit has what is outside of the repository: <tiny model 1>/outside.txt" in (
        done.out
    )
    about = json.loads((project.dist / "tiny-1.0.0/release.json").read_text())
    assert about["source"]["outside"] == ["<tiny model 1>/outside.txt"]
    assert about["source"]["changed"] == ["n\\xff.txt"]
    assert project("verify", "dist/tiny-1.0.0.tar").code == 0


def test_a_release_of_a_models_file_has_what_was_built_of_it_and_not_the_file(project):
    shutil.copy(
        project.folder / "artifacts/out/tiny/fp32/model.onnx", project.folder / "ready.onnx"
    )
    project.write("tiny.yaml", "version: 1\nname: tiny\nmodel: {onnx: ready.onnx}\n")
    assert project("lock", "tiny.yaml").code == 0
    project.commit()
    done = project.release()
    assert done.code == 0, done.err
    shipped = {path.name for path in (project.dist / "tiny-1.0.0" / "recipe").rglob("*")}
    assert shipped == {"tiny.yaml", "tiny.lock", "resolved.yaml"}
    assert project("verify", "dist/tiny-1.0.0", "--run").code == 0


def test_a_project_without_git_is_like_a_dirty_one(project):
    shutil.rmtree(project.folder / ".git")
    refused = project.release()
    assert refused.code == 4
    assert "the project is in no git repository" in refused.err
    done = project.release("--allow-dirty")
    assert done.code == 0, done.err
    assert "all files are of 1980-01-01" in done.out
    about = json.loads((project.dist / "tiny-1.0.0/release.json").read_text())
    assert (about["source"]["commit"], about["epoch_s"]) == (None, 315532800)

    dated = project.release("--allow-dirty", version="2", env={"SOURCE_DATE_EPOCH": "1600000000"})
    assert dated.code == 0, dated.err
    listed = subprocess.run(
        ["tar", "tvf", str(project.dist / "tiny-2.tar")],
        check=True,
        capture_output=True,
        text=True,
        env={"TZ": "UTC", "PATH": "/usr/bin:/bin"},
    ).stdout.splitlines()
    assert all("0/0" in line and "2020-09-13 12:26" in line for line in listed)
    wrong = project.release("--allow-dirty", version="3", env={"SOURCE_DATE_EPOCH": "today"})
    assert (wrong.code, "SOURCE_DATE_EPOCH is 'today'" in wrong.err) == (2, True)


def test_what_is_not_as_locked_is_not_released(project):
    project.edit("models/helper.py", "ReLU", "GELU")
    project.commit()
    done = project.release()
    assert done.code == 4
    assert "source models/helper.py" in done.err
    (project.folder / "tiny.lock").unlink()
    missing = project.release("--allow-dirty")
    assert missing.code == 2
    assert "there is no lock for tiny.yaml" in missing.err
    assert "onnxbuild lock tiny.yaml" in missing.err
    assert project.released() == []


def test_a_signed_release_differs_in_its_signatures_alone(project):
    key = Ed25519PrivateKey.generate()
    private = project.folder.parent / "private.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    plain, signed = project.release("--out", "plain"), project.release("--sign", str(private))
    assert (plain.code, signed.code) == (0, 0), signed.err
    assert "25 files, signed" in signed.out
    one, two = project.folder / "plain/tiny-1.0.0", project.dist / "tiny-1.0.0"
    names = {p.relative_to(two).as_posix() for p in two.rglob("*") if p.is_file()}
    more = {n for n in names if not (one / n).exists()}
    assert more == {"SHA256SUMS.sig", "provenance.dsse.json"}
    assert all((one / n).read_bytes() == (two / n).read_bytes() for n in names - more)
    key.public_key().verify(
        (two / "SHA256SUMS.sig").read_bytes(), (two / "SHA256SUMS").read_bytes()
    )
    missing = project.release("--sign", "nowhere.pem", version="2")
    assert (missing.code, "can't read the key nowhere.pem" in missing.err) == (2, True)


def test_a_release_is_held_to_the_budgets_of_its_recipe(project):
    assert project.release().code == 0
    budgets = "release: {budgets: {size_increase: 0.05}}\n"
    project.edit("tiny.yaml", "benchmark:", f"{budgets}benchmark:")
    assert project("lock", "tiny.yaml").code == 0  # no step runs: budgets are in no key
    project.commit()
    assert project.release("--previous", "dist/tiny-1.0.0.tar", version="2").code == 0
    unchecked = project.release(version="3")
    assert unchecked.code == 0, unchecked.err
    assert "budgets are not checked: --previous names the release" in unchecked.out

    smaller = project.dist / "tiny-1.0.0"
    manifest = json.loads((smaller / "variants/fp32/manifest.json").read_text())
    manifest["files"]["model.onnx"]["size_bytes"] //= 2
    manifest["size_bytes"] //= 2  # which is their sum
    (smaller / "variants/fp32/manifest.json").write_text(json.dumps(manifest))
    edited = project.release("--previous", "dist/tiny-1.0.0", version="4")
    assert edited.code == 4
    assert "the previous release is damaged: variants/fp32/manifest.json" in edited.err

    names = [line[66:] for line in (smaller / "SHA256SUMS").read_text().splitlines()]
    sums = "".join(f"{sha256(smaller / name)}  {name}\n" for name in names)
    (smaller / "SHA256SUMS").write_text(sums)
    refused = project.release("--previous", "dist/tiny-1.0.0", version="4")
    assert refused.code == 3
    assert "worse than tiny-1.0.0 by more than allowed" in refused.err
    assert "variant 'fp32': size" in refused.err
    assert "is 100 % more; the budget is 5 % (size_increase)" in refused.err
    assert not [name for name in project.released() if name.startswith("tiny-4")]


@pytest.mark.always
def test_a_killed_release_leaves_nothing_half_written(project):
    command = [sys.executable, "-m", "onnxbuild", "release", "tiny.yaml", "--version", "1"]
    for delay_s in (0.1, 0.25, 0.35, 0.45):
        process = subprocess.Popen(
            command, cwd=project.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(delay_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for name in project.released():
            assert name in ("tiny-1", "tiny-1.tar") or name.startswith(".onnxbuild-")
        if (project.dist / "tiny-1").exists():
            subprocess.run(
                ["sha256sum", "--quiet", "-c", "SHA256SUMS"],
                cwd=project.dist / "tiny-1",
                check=True,
            )
    assert project.release(version="1").code == 0
    assert project.released() == ["tiny-1", "tiny-1.tar"]


def test_a_digest_to_push_to_is_refused_before_anything_is_built(cheap):
    to = f"localhost:1/team/tiny@sha256:{'0' * 64}"
    refused = cheap("release", "tiny.yaml", "--version", "1", "--allow-dirty", "--push", to)
    assert (refused.code, "the digest follows from the contents" in refused.err) == (2, True)
    assert not (cheap.folder / "artifacts").exists()
    assert not (cheap.folder / "dist").exists()
