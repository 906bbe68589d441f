"""A team's cache through the command: another machine finds what CI built, and no server makes a build wrong."""

import hashlib
import os
import time
from pathlib import Path

import keyring
import keyring.backend
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tests.adapters.remote.http_store import serving
from tests.adapters.remote.servers import SERVERS
from tests.cli.conftest import make_cheap_project, make_project

SETTINGS = """
[tool.onnxbuild.remote]
url = "{url}"
trusted_keys = ["ci.pub"]
push = "ci-only"
"""


def key(folder: Path, seed: int) -> Path:
    """Write a pair of keys; return the private one's file."""
    private = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
    file = folder / f"{seed}.pem"
    file.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    file.with_suffix(".pub").write_bytes(public)
    return file


def clone(folder: Path, url: str, private: Path, *, make=make_cheap_project):
    """Another machine: another path, HOME and store."""
    made = make(folder)
    made.write("pyproject.toml", SETTINGS.format(url=url))
    made.write("ci.pub", private.with_suffix(".pub").read_text())
    return made


def on_ci(private: Path, **more: str) -> dict[str, str]:
    return {"CI": "true", "ONNXBUILD_REMOTE_SIGN_KEY": str(private), **more}


def delivered(project) -> dict[str, str]:
    """File below out/ -> sha256."""
    out = project.folder / "artifacts/out"
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*"))
        if path.is_file() and ".laid" not in path.parts
    }


@pytest.mark.slow
@pytest.mark.always
@pytest.mark.parametrize("server", SERVERS)
def test_a_clone_on_another_machine_builds_nothing(tmp_path, server):
    private = key(tmp_path, 1)
    with SERVERS[server](tmp_path / "server") as (url, variables):
        ci = clone(tmp_path / "ci", url, private, make=make_project)
        done = ci.run("--wait-uploads", env=on_ci(private, **variables))
        assert done.code == 0, done.out + done.err
        assert "to be uploaded" not in done.out
        laptop = clone(tmp_path / "elsewhere/laptop", url, private, make=make_project)
        home = tmp_path / "home"
        home.mkdir()
        got = laptop.run(env={"HOME": str(home), **variables})
    assert (got.code, got.ran) == (0, []), got.out + got.err
    assert f"results came from {url}" in got.out
    assert delivered(laptop) == delivered(ci)
    assert "up to date" in laptop.run(env={"HOME": str(home), "ONNXBUILD_REMOTE": "off"}).out


WIDE = "args: {width: 100000}"  # weights of 2.8 MB


def wide(folder: Path, url: str, private: Path):
    project = clone(folder, url, private, make=make_project)
    project.edit("tiny.yaml", "models/tiny.py:load", f"models/tiny.py:load, {WIDE}")
    project.edit("tiny.yaml", "{fp32: none}", "{int8: dynamic}")
    return project


@pytest.mark.slow
def test_large_results_stay_on_the_server_until_a_step_needs_them(tmp_path):
    private = key(tmp_path, 1)
    with serving() as server:
        ci = wide(tmp_path / "ci", server.url, private)
        assert ci.run("--wait-uploads", env=on_ci(private)).code == 0
        laptop = wide(tmp_path / "laptop", server.url, private)
        got = laptop.run()
        assert (got.code, got.ran) == (0, []), got.out + got.err
        assert delivered(laptop) == delivered(ci)
        assert blob_bytes(laptop) < blob_bytes(ci) / 2
        server.fault = "500"
        for each in (ci, laptop):
            each.edit("tiny.yaml", "int8: dynamic", "int8: {mode: dynamic, per_channel: false}")
        ran = [each.run() for each in (ci, laptop)]
    assert [each.code for each in ran] == [0, 0], ran[1].out + ran[1].err
    assert {*ran[0].ran} < {*ran[1].ran}, "what could not be fetched was built again"
    model = "tiny/int8/model.onnx"
    assert delivered(laptop)[model] == delivered(ci)[model]


@pytest.mark.slow
def test_a_large_result_that_can_not_be_fetched_is_built_here(tmp_path):
    private = key(tmp_path, 1)
    with serving() as server:
        ci = wide(tmp_path / "ci", server.url, private)
        assert ci.run("--wait-uploads", env=on_ci(private)).code == 0
        laptop = wide(tmp_path / "laptop", server.url, private)
        assert laptop.run().ran == []
    again = laptop.run("--force", "int8/quantize")
    assert again.code == 0, again.out + again.err
    assert "export" in again.ran, "its output is needed, and nowhere to be had"
    assert delivered(laptop)["tiny/int8/model.onnx"] == delivered(ci)["tiny/int8/model.onnx"]


def blob_bytes(project) -> int:
    blobs = project.folder / "artifacts/cas"
    return sum(path.stat().st_size for path in blobs.rglob("*") if path.is_file())


@pytest.fixture
def private(tmp_path):
    return key(tmp_path, 1)


@pytest.fixture
def filled(tmp_path, private):
    """A server that holds what CI built, and CI's own project."""
    with serving() as server:
        ci = clone(tmp_path / "ci", server.url, private)
        assert ci.run("--wait-uploads", env=on_ci(private)).code == 0
        yield server, ci


def test_what_ci_built_is_found_and_equal(tmp_path, private, filled):
    server, ci = filled
    laptop = clone(tmp_path / "laptop", server.url, private)
    planned = laptop("plan", "tiny.yaml")
    assert "0 to look at" in planned.out
    got = laptop.run()
    assert (got.code, got.ran) == (0, []), got.out
    assert delivered(laptop) == delivered(ci)
    assert not [path for method, path in server.requests if method == "PUT" and "laptop" in path]


def test_ci_of_a_fork_has_no_key_and_reads(tmp_path, private, filled):
    server, ci = filled
    fork = clone(tmp_path / "fork", server.url, private)
    got = fork.run(env={"CI": "true"})
    assert (got.code, got.ran) == (0, []), got.out + got.err
    assert "no key that signs it (ONNXBUILD_REMOTE_SIGN_KEY=PRIVATE.pem)" in got.out
    assert delivered(fork) == delivered(ci)
    refused = fork.run("--wait-uploads", env={"CI": "true"})
    assert refused.code == 2
    assert "nothing signs what is uploaded" in refused.err


@pytest.fixture
def fewer_cores():
    """Another machine, as far as keys of host-bound steps go: one with a core less."""
    cores = os.sched_getaffinity(0)
    if len(cores) == 1:
        pytest.skip("this machine has one core")
    os.sched_setaffinity(0, sorted(cores)[1:])
    yield
    os.sched_setaffinity(0, cores)


@pytest.mark.parametrize(("said", "is_taken"), [("", False), ("from: any, ", True)])
def test_another_machine_s_measurement_is_taken_where_the_recipe_says_so(
    tmp_path, private, request, said, is_taken
):
    with serving() as server:
        machines = [clone(tmp_path / name, server.url, private) for name in ("ci", "laptop")]
        for each in machines:
            each.edit("tiny.yaml", "benchmark: {", f"benchmark: {{{said}")
        assert machines[0].run("--wait-uploads", env=on_ci(private)).code == 0
        request.getfixturevalue("fewer_cores")
        got = machines[1].run()
    assert got.code == 0, got.out
    assert ("benchmark" not in got.ran) == is_taken


def test_an_edit_here_is_built_here(tmp_path, private, filled):
    server, ci = filled
    laptop = clone(tmp_path / "laptop", server.url, private)
    laptop.edit("models/helper.py", "ReLU", "GELU")
    got = laptop.run()
    assert got.code == 0
    assert "export" in got.ran
    model = "tiny/fp32/model.onnx"
    assert delivered(laptop)[model] != delivered(ci)[model]


@pytest.mark.parametrize("fault", ["500", "hang", "slow", "cut", "flip", "longer"])
def test_a_faulty_server_makes_no_build_fail_or_wrong(tmp_path, private, filled, fault):
    server, ci = filled
    server.fault = fault
    laptop = clone(tmp_path / "laptop", server.url, private)
    got = laptop.run()
    assert got.code == 0, got.out + got.err
    assert delivered(laptop).keys() == delivered(ci).keys()
    model = "tiny/fp32/model.onnx"
    assert delivered(laptop)[model] == delivered(ci)[model]


def test_another_builder_s_records_are_not_taken(tmp_path, filled):
    server, _ = filled
    stranger = key(tmp_path, 2)
    laptop = clone(tmp_path / "laptop", server.url, stranger)
    assert "export" in laptop.run().ran


def test_an_edited_result_on_the_server_is_not_taken(tmp_path, private, filled):
    server, ci = filled
    for path, content in server.objects.items():
        if "/ac/" in path:
            server.objects[path] = content[:-20] + b"0" + content[-19:]
    laptop = clone(tmp_path / "laptop", server.url, private)
    got = laptop.run()
    assert "export" in got.ran
    assert delivered(laptop)["tiny/fp32/model.onnx"] == delivered(ci)["tiny/fp32/model.onnx"]


def test_a_server_that_is_down_is_one_line_and_what_is_not_uploaded_is_uploaded_later(
    tmp_path, private
):
    with serving() as server:
        ci = clone(tmp_path / "ci", server.url, private)
        server.refuse_puts = True
        done = ci.run("--wait-uploads", env=on_ci(private))
        assert done.code == 0
        assert "still to be uploaded" in done.out
        server.refuse_puts = False
        again = ci.run("--force", "export", "--wait-uploads", env=on_ci(private))
        assert again.code == 0
        laptop = clone(tmp_path / "laptop", server.url, private)
        assert laptop.run().ran == []
    lost = clone(tmp_path / "lost", "http://127.0.0.1:9/cache", private)
    began = time.monotonic()
    got = lost.run()
    assert got.code == 0
    assert got.out.count("is not used further in this run: Connection refused") == 1
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("settings", "env", "said"),
    [
        ('url = "ftp://cache/x"', {}, "no URL that can be used"),
        ('url = "http://cache.example/x"', {}, "is not encrypted"),
        ('url = "https://me:secret@cache.example/x"', {}, "holds a password"),
        ('url = "https://cache.example/x"', {}, "no key is trusted"),
        ('url = "https://c.example/x"\ntrusted_keys = ["none.pub"]', {}, "none.pub: No such file"),
        (
            'url = "https://c.example/x"\ntrusted_keys = ["tiny.yaml"]',
            {},
            "tiny.yaml is no public key",
        ),
        ('url = "https://c.example/x"\npush = "always"', {}, "no key signs what is uploaded"),
        (
            'url = "https://c.example/x"\npush = "allways"',
            {},
            "expected one of never, ci-only, always",
        ),
        (
            'url = "https://c.example/x"\nagree = 2\ntrusted_keys = ["ci.pub"]',
            {},
            "expected 1 to 1",
        ),
        ('ulr = "https://c.example/x"', {}, "did you mean 'remote.url'?"),
        (
            "",
            {"ONNXBUILD_REMOTE_AGREE": "two"},
            "`ONNXBUILD_REMOTE_AGREE` is 'two'; expected a number",
        ),
    ],
)
def test_a_faulty_setting_is_one_error(tmp_path, private, settings, env, said):
    project = clone(tmp_path / "project", "", private)
    project.write("pyproject.toml", f"[tool.onnxbuild.remote]\n{settings}\n")
    got = project.run(env=env)
    assert got.code == 2
    assert said in got.err
    assert "secret" not in got.err.replace("holds a password", "") or "secret" not in said


@pytest.mark.parametrize(
    ("env", "sent"),
    [
        (
            {},
            "it was sent no credentials: ONNXBUILD_REMOTE_TOKEN is not set, and neither ~/.netrc nor a keyring has some for",
        ),
        (
            {"ONNXBUILD_REMOTE_TOKEN": "s3cr3t"},
            "it was sent the credentials in ONNXBUILD_REMOTE_TOK",
        ),
    ],
)
def test_refused_credentials_are_named_with_where_they_are_from(
    tmp_path, private, filled, env, sent
):
    server, _ = filled
    server.fault = "401"
    laptop = clone(tmp_path / "laptop", server.url, private)
    got = laptop.run(env={"HOME": str(tmp_path), **env})
    assert got.code == 0
    said = " ".join(got.out.split())
    assert sent in said
    assert "s3cr3t" not in said


class Keyring(keyring.backend.KeyringBackend):
    """A keyring of one token, for loopback."""

    priority = 1  # type: ignore[assignment]
    viable = False  # nobody else finds it: each class of a keyring is a candidate

    def get_password(self, service: str, username: str) -> str | None:
        return "s3cr3t" if (service, username) == ("onnxbuild", "127.0.0.1") else None

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError


def test_a_token_of_the_keyring_is_sent_and_the_doctor_says_so(tmp_path, private, filled):
    server, _ = filled
    laptop = clone(tmp_path / "laptop", server.url, private)
    before = keyring.get_keyring()
    keyring.set_keyring(Keyring())
    try:
        server.fault = "401"
        got = laptop.run(env={"HOME": str(tmp_path)})
        asked = laptop("doctor", env={"HOME": str(tmp_path)})
    finally:
        keyring.set_keyring(before)
    assert got.code == 0
    assert "it was sent the token for 127.0.0.1 in the keyring" in " ".join(got.out.split())
    assert server.authorizations[-1] == "Bearer s3cr3t"
    assert f"remote       {server.url}: the token for 127.0.0.1 in the keyring" in asked.out
    assert "s3cr3t" not in got.out + asked.out


def test_the_token_is_shown_nowhere(tmp_path, private, filled):
    server, _ = filled
    laptop = clone(tmp_path / "laptop", server.url, private)
    got = laptop.run("--verbose", env={"ONNXBUILD_REMOTE_TOKEN": "s3cr3t-token"})
    kept = [path for path in laptop.folder.rglob("*") if path.is_file()]
    assert "s3cr3t-token" not in got.out + got.err
    assert not [path for path in kept if b"s3cr3t-token" in path.read_bytes()]
    assert os.environ.get("ONNXBUILD_REMOTE_TOKEN") is None


def test_results_are_pushed_and_pulled_by_hand(tmp_path, private):
    with serving() as server:
        ci = clone(tmp_path / "ci", server.url, private)
        assert ci.run().code == 0
        refused = ci("cache", "push", "tiny.yaml")
        assert (refused.code, "ONNXBUILD_REMOTE_SIGN_KEY" in refused.err) == (2, True)
        pushed = ci("cache", "push", "tiny.yaml", env=on_ci(private))
        assert pushed.code == 0, pushed.err
        assert "uploaded 8 results" in pushed.out
        laptop = clone(tmp_path / "laptop", server.url, private)
        assert "8 of 8 steps are up to date" in laptop("cache", "pull", "tiny.yaml").out
        assert laptop.run(env={"ONNXBUILD_REMOTE": "off"}).ran == []
        second = on_ci(key(tmp_path, 2))
        again = laptop("cache", "push", "tiny.yaml", env=second)
        assert again.code == 0, again.err
        assert "not uploaded: 8 results that other machines built" in again.err
        assert "uploaded 0 results" in again.out
        assert laptop.run("--force", "check", env={"ONNXBUILD_REMOTE": "off"}).code == 0
        assert "uploaded 1 result " in laptop("cache", "push", "tiny.yaml", env=second).out
    alone = clone(tmp_path / "alone", "", private)
    alone.write("pyproject.toml", "")
    assert "no remote store is named" in alone("cache", "pull", "tiny.yaml").err
