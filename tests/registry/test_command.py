"""`onnxbuild push` and `pull`, as a person types them."""

import json
import re
import shutil

import pytest

from tests.cli.conftest import CheapProject, make_cheap_project
from tests.registry.conftest import tree


@pytest.fixture(scope="module")
def once_built(tmp_path_factory):
    project = make_cheap_project(tmp_path_factory.mktemp("pushed") / "project")
    assert project.run().code == 0
    return project


@pytest.fixture
def built(once_built, tmp_path):
    return CheapProject(shutil.copytree(once_built.folder, tmp_path / "project", symlinks=True))


@pytest.fixture
def to(registry):
    return f"{registry.host}/team/tiny:fp32"


def test_a_variant_goes_out_and_comes_back(built, to):
    pushed = built("push", "tiny:fp32", to)
    assert pushed.code == 0, pushed.err
    name, blobs, last = pushed.out.splitlines()
    assert name.startswith("tiny:fp32  2 files, ")
    assert re.fullmatch(r"3 blobs sent \([0-9.]+ (bytes|KiB)\), 0 known", blobs)
    assert last.startswith(f"pushed {to.removesuffix(':fp32')}@sha256:")
    digest = last.rpartition("@")[2]
    pulled = built("pull", to)
    assert pulled.out.splitlines()[1] == f"pulled {to.removesuffix(':fp32')}@{digest}"
    assert pulled.out.startswith("tiny-fp32/  2 files, ")
    built_files = tree(built.folder / "artifacts/out/tiny/fp32")
    assert "model.onnx" in tree(built.folder / "tiny-fp32")
    assert tree(built.folder / "tiny-fp32").items() <= built_files.items()
    again = built("pull", f"{to.removesuffix(':fp32')}@{digest}", "-o", "tiny-fp32", "--json")
    assert json.loads(again.out)["written"] is False
    assert pushed.err == pulled.err == ""


def test_what_is_pushed_is_the_build_and_not_what_somebody_made_of_out(built):
    (built.folder / "artifacts/out/tiny/fp32/model.onnx").chmod(0o644)
    (built.folder / "artifacts/out/tiny/fp32/model.onnx").write_bytes(b"edited")
    assert built("push", "tiny:fp32", "oci:layout:1").code == 0
    assert built("pull", "oci:layout:1", "-o", "back").code == 0
    assert (built.folder / "back/model.onnx").read_bytes() != b"edited"


def test_what_was_never_built_is_refused_and_nothing_is_built(tmp_path, to, registry):
    cheap = make_cheap_project(tmp_path / "project")
    done = cheap("push", "tiny:fp32", to)
    assert done.code == 2
    assert "error: tiny:fp32 is not built from the present recipe: tiny:" in done.err
    assert "fix: onnxbuild run tiny.yaml --only tiny:fp32\n" in done.err
    assert not (cheap.folder / "artifacts").exists()
    (cheap.folder / "tiny.yaml").rename(cheap.folder / "my tiny.yaml")
    done = cheap("push", "tiny:fp32", to, "--store", "a store")
    command = "onnxbuild run 'my tiny.yaml' --only tiny:fp32 --store 'a store'"
    assert f"fix: {command}\n" in done.err
    assert registry.requests == []


def test_what_is_not_up_to_date_is_refused_with_what_changed(built, to, registry):
    built.edit("models/tiny.py", "width=8", "width=9")
    done = built("push", "tiny:fp32", to)
    assert done.code == 2
    assert "would run (source models/tiny.py: " in done.err, done.err
    assert registry.requests == []


def test_a_variant_whose_gate_fails_is_refused(built, to):
    built.edit(
        "tiny.yaml",
        "quantization: {fp32: none}",
        "quantization: {fp32: {mode: none, validate: {sqnr_db_min: 950}}}",
    )
    assert built.run().code == 3
    done = built("push", "tiny:fp32", to)
    assert done.code == 3
    assert "error: tiny:fp32/validate: 60 dB is under the bound" in done.err


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("tiny:fp23", "did you mean 'fp32'?"),
        ("tiny", "there is no release 'tiny', and it is not RECIPE:VARIANT"),
        ("tiny:", "is not RECIPE:VARIANT"),
        ("tiny.yaml", "fix: onnxbuild push tiny:VARIANT"),
        ("tony:fp32", "there is no recipe 'tony'"),
        ("artifacts/out/tiny/fp32", "is no release"),
        ("models/tiny.py", "is no archive of a release"),
    ],
)
def test_what_is_no_source_is_refused_with_what_to_type(built, source, sentence):
    done = built("push", source, "oci:x:1")
    assert done.code == 2
    assert sentence in done.err
    assert not (built.folder / "x").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("push", "tiny:fp32", "tiny:fp32"), "names no registry"),
        (
            ("push", "tiny:fp32", f"h:1/a@sha256:{'0' * 64}"),
            "the digest follows from the contents",
        ),
        (("push", "tiny:fp32", "oci:models:1"), "is no OCI layout, and not empty"),
        (("push", "tiny:fp32", "oci:x:1", "--sign", "none.pem"), "can't read the key none.pem"),
        (("pull", "oci:x:1"), "there is no OCI layout in x"),
        (("pull", "oci:x:1", "--key", "none.pem"), "can't read the key none.pem"),
        (("pull", "localhost:1/a:b", "--username", "ann"), "--username needs --password-stdin"),
    ],
)
def test_what_can_not_be_is_refused_with_what_to_type(built, arguments, sentence):
    done = built(*arguments)
    assert (done.code, sentence in done.err) == (2, True), done.err
    assert done.out == ""


def test_a_password_comes_in_by_standard_input_and_is_never_shown(built, start, monkeypatch):
    import io

    registry = start(user="ann:secret")
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    where = f"{registry.host}/team/tiny:fp32"
    done = built("push", "tiny:fp32", where, "--username", "ann", "--password-stdin")
    assert done.code == 0, done.err
    monkeypatch.setattr("sys.stdin", io.StringIO("a-wrong-one\n"))
    done = built("pull", where, "--username", "ann", "--password-stdin")
    assert done.code == 2
    assert "refuses the user 'ann' (from --username and --password-stdin)" in done.err
    assert "wrong-one" not in done.err + done.out


def test_large_blobs_are_shown_as_they_go(built, to):
    from io import StringIO

    from onnxbuild.registry.progress import Progress

    clock = iter(range(0, 1000, 20))
    stream = StringIO()
    report = Progress(stream, lambda: next(clock)).blob("sending", "model.onnx", 8 << 20)
    for done in range(1, 9):
        report(done << 20)
    assert stream.getvalue().splitlines() == [
        "sending  model.onnx  2.0 MiB of 8.0 MiB, 51.2 KiB/s, 2 min 0 s left",
        "sending  model.onnx  4.0 MiB of 8.0 MiB, 51.2 KiB/s, 1 min 20 s left",
        "sending  model.onnx  6.0 MiB of 8.0 MiB, 51.2 KiB/s, 40 s left",
        "sending  model.onnx  8.0 MiB",
    ]
