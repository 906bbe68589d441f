"""A real registry with TLS and passwords, and other tools that read what was pushed.

docker-registry, skopeo and oras come from tests/install_servers.sh; without one, tests are skipped by name, or fail; see tests/servers.py.
"""

import base64
import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from onnxbuild.core.errors import BuildError
from onnxbuild.registry.progress import Progress
from onnxbuild.registry.pull import pull
from onnxbuild.registry.push import push
from onnxbuild.registry.refusals import RegistryUnavailableError
from tests.cli.conftest import Project, make_project
from tests.registry.conftest import WEIGHTS, Keys, Place, contents, tree
from tests.registry.real_server import PASSWORD, USER, Server, tool

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, certificate):
    """With TLS, and a password."""
    server = Server(tmp_path_factory.mktemp("guarded") / "registry", certificate).start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return Keys(tmp_path_factory.mktemp("keys"), "own")


class Shop(Project):
    """A project, and how its commands reach the registry."""

    server: Server
    certificate: Path
    keys: Keys

    def there(self, rest: str) -> str:
        return f"{self.server.host}/team/{rest}"

    def oci(self, *arguments: str, password: str = PASSWORD):
        pair = base64.b64encode(f"{USER}:{password}".encode()).decode()
        config = self.write(
            "docker/config.json", json.dumps({"auths": {self.server.host: {"auth": pair}}})
        )
        return self(
            *arguments,
            "--ca-file",
            str(self.certificate),
            env={"DOCKER_CONFIG": str(config.parent)},
        )

    def other(self, name: str, *arguments: str) -> str:
        done = subprocess.run(
            [tool(name), *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def shop(tmp_path_factory, guarded, certificate, keys):
    """Pushed: a variant that was really built, signed, and a release."""
    made = make_project(tmp_path_factory.mktemp("shop") / "project")
    shop = Shop(made.folder)
    shop.server, shop.certificate, shop.keys = guarded, certificate, keys
    assert shop("lock", "tiny.yaml").code == 0
    assert shop("release", "tiny.yaml", "--version", "1.0", "--allow-dirty").code == 0
    signed = shop.oci("push", "tiny:fp32", shop.there("tiny:fp32"), "--sign", str(keys.private))
    assert signed.code == 0, signed.err
    released = shop.oci("push", "dist/tiny-1.0.tar", shop.there("tiny:1.0"))
    assert released.code == 0, released.err
    return shop


def test_equal_bytes_have_the_same_digest_and_are_sent_once(shop):
    done = shop.oci(
        "push", "tiny:fp32", shop.there("tiny:fp32"), "--sign", str(shop.keys.private), "--json"
    )
    again = json.loads(done.out)
    assert (again["blobs_sent"], again["tag_was"]) == (0, "")
    on_disk = json.loads(shop("push", "tiny:fp32", "oci:same:1", "--json").out)
    assert on_disk["digest"] == again["digest"]


def test_a_pulled_variant_is_checked_with_the_key_and_runs(shop, tmp_path):
    done = shop.oci(
        "pull", shop.there("tiny:fp32"), "--key", str(shop.keys.public), "-o", str(tmp_path / "v")
    )
    assert done.code == 0, done.err
    assert "signed with the key" in done.out
    built = tree(shop.folder / "artifacts/out/tiny/fp32")
    pulled = tree(tmp_path / "v")
    assert {n for n in pulled if pulled[n] != built.get(n)} == {"SHA256SUMS.sig"}
    ran = subprocess.run(
        [sys.executable, "load.py"],
        cwd=tmp_path / "v",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_a_pulled_release_verifies(shop, tmp_path):
    assert shop.oci("pull", shop.there("tiny:1.0"), "-o", str(tmp_path / "r")).code == 0
    done = shop("verify", str(tmp_path / "r"))
    assert done.code == 0
    assert done.out.splitlines()[-1].startswith("consistent: tiny 1.0; ")


def test_wrong_passwords_and_unknown_certificates_are_said(shop):
    done = shop.oci("pull", shop.there("tiny:fp32"), "-o", "x", password="a-wrong-one")
    assert (done.code, "it refuses the user 'ann'" in done.err) == (2, True), done.err
    done = shop.oci("push", "tiny:fp32", shop.there("new:1"), password="a-wrong-one")
    assert (done.code, "a-wrong-one" in done.err) == (2, False), done.err
    done = shop("pull", shop.there("tiny:fp32"), "-o", "x", "--https")
    assert (done.code, "its certificate is not trusted" in done.err) == (1, True), done.err
    done = shop("pull", shop.there("tiny:fp32"), "-o", "x", "--plain-http")
    assert (done.code, "it expects TLS" in done.err) == (2, True), done.err
    assert not (shop.folder / "x").exists()


def test_skopeo_reads_and_copies_it(shop):
    login = ("--src-cert-dir=certs", f"--src-creds={USER}:{PASSWORD}")
    shop.write("certs/ca.crt", shop.certificate.read_text().partition("-----BEGIN PRIVATE")[0])
    shop.other("skopeo", "copy", *login, f"docker://{shop.there('tiny:fp32')}", "oci:copied:1")
    raw = shop.other("skopeo", "inspect", "--raw", "oci:copied:1")
    assert json.loads(raw)["artifactType"] == "application/vnd.cncf.model.manifest.v1+json"
    config = shop.other("skopeo", "inspect", "--config", "--raw", "oci:copied:1")
    assert json.loads(config)["config"]["format"] == "onnx"
    assert shop("pull", "oci:copied:1").code == 0
    assert (
        tree(shop.folder / "copied-1").items()
        <= tree(shop.folder / "artifacts/out/tiny/fp32").items()
    )
    assert shop("push", "tiny:fp32", "oci:ours:1").code == 0
    login = ("--dest-cert-dir=certs", f"--dest-creds={USER}:{PASSWORD}")
    shop.other("skopeo", "copy", *login, "oci:ours:1", f"docker://{shop.there('by-skopeo:1')}")
    assert shop.oci("pull", shop.there("by-skopeo:1")).code == 0


def test_oras_reads_it_with_its_signature(shop):
    login = ("--ca-file", str(shop.certificate), "-u", USER, "-p", PASSWORD)
    found = json.loads(
        shop.other("oras", "discover", *login, "-o", "json", shop.there("tiny:fp32"))
    )
    assert [e["artifactType"] for e in found["manifests"]] == [
        "application/vnd.onnxbuild.signature.v1"
    ]
    found = json.loads(
        shop.other("oras", "discover", *login, "-o", "json", shop.there("tiny:1.0"))
    )
    assert [e["artifactType"] for e in found["manifests"]] == ["application/vnd.in-toto+json"]
    shop.other("oras", "pull", *login, shop.there("tiny:fp32"), "-o", "by-oras")
    assert (
        tree(shop.folder / "by-oras").items()
        <= tree(shop.folder / "artifacts/out/tiny/fp32").items()
    )
    copy = [f"--from-{each[2:]}" if each.startswith("--") else each for each in login]
    copy = [{"-u": "--from-username", "-p": "--from-password"}.get(each, each) for each in copy]
    shop.other(
        "oras", "cp", "-r", *copy, shop.there("tiny:fp32"), "--to-oci-layout", "oras-layout:1"
    )
    done = shop("pull", "oci:oras-layout:1", "--key", str(shop.keys.public))
    assert done.code == 0, done.err


def test_a_blob_altered_on_the_registrys_disk_is_refused(shop, guarded):
    assert shop.oci("pull", shop.there("tiny:fp32"), "-o", "sound").code == 0
    blob = guarded.blob(tree(shop.folder / "sound")["model.onnx"])
    content = blob.read_bytes()
    try:
        for altered, sentence in (
            (content[:-1] + b"!", "was altered"),
            (content[:-9], "cut short"),
        ):
            blob.write_bytes(altered)
            done = shop.oci("pull", shop.there("tiny:fp32"), "-o", "bad")
            assert (done.code, sentence in done.err) == (4, True), done.err
    finally:
        blob.write_bytes(content)
    assert [p.name for p in shop.folder.iterdir() if "bad" in p.name] == []


def test_a_registry_that_is_killed_midway_leaves_no_tag_and_the_next_push_goes_on(tmp_path):
    server = Server(tmp_path / "registry").start()

    class Killing(Progress):
        def blob(self, verb, name, size_bytes):
            if name == "model.onnx":
                server.kill()
            return super().blob(verb, name, size_bytes)

    place = Place(f"{server.host}/team/tiny")
    reference = place.reference(":1")
    repository = place.opened(reference, make=True)
    with pytest.raises(RegistryUnavailableError, match="connection refused"):
        push(contents(), reference, repository, Killing(None, lambda: 0.0))
    repository.close()
    assert not list(server.data.rglob("_manifests/tags/*"))
    server.start()
    try:
        assert place.push(contents()).known == 3  # SHA256SUMS, cpp/main.cpp, load.py
        assert place.pull(tmp_path / "model").files == 4
    finally:
        server.kill()


def test_a_registry_that_is_stopped_midway_is_given_up_and_the_next_try_goes_on(tmp_path):
    """By SIGSTOP: it keeps its connections, and says nothing more."""
    server = Server(tmp_path / "registry").start()
    place = Place(f"{server.host}/team/tiny")
    place.push(contents())
    place.pace = {"silence_s": 1.0, "upload_s": 1.0}

    class Stopping(Progress):
        def blob(self, verb, name, size_bytes):
            if name == "model.onnx":
                server.send(signal.SIGSTOP)
            return super().blob(verb, name, size_bytes)

    def stopped(act, *arguments, **more):
        repository = place.opened(place.reference(":1"), make=False)
        with pytest.raises(RegistryUnavailableError, match="did not answer for 1 s"):
            act(*arguments, repository, **more)
        repository.close()
        server.send(signal.SIGCONT)

    quiet = Stopping(None, lambda: 0.0)
    try:
        stopped(
            partial(pull, place.reference(":1")),
            folder=tmp_path / "model",
            key=None,
            progress=quiet,
        )
        assert place.pull(tmp_path / "model").fetched_bytes == len(WEIGHTS)
        other = contents({"load.py": b"pass\n", "model.onnx": WEIGHTS + b"x"})
        stopped(partial(push, other, place.reference(":2")), progress=quiet)
        assert place.push(other, ":2").sent > 0
        assert place.pull(tmp_path / "other", ":2").files == 3
    finally:
        server.kill()


def test_a_registry_that_can_only_be_read_says_so(tmp_path):
    server = Server(tmp_path / "registry").start(readonly=True)
    try:
        with pytest.raises(BuildError, match="it takes no uploads: it may be read-only"):
            Place(f"{server.host}/team/tiny").push(contents())
    finally:
        server.kill()
