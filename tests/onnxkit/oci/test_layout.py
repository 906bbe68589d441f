"""An OCI layout with one artifact."""

import json
from pathlib import Path

import pytest

from onnxbuild.onnxkit.oci.layout import ArtifactText, LayoutError, unpack_layout, write_layout

TEXT = ArtifactText("demo:int8", {"name": "demo"}, {"format": "onnx"}, "int8")
CONTENT = {"model.onnx": b"model", "sub/data.bin": b"data", "copy.bin": b"data", "load.py": b"#"}


@pytest.fixture
def layout(tmp_path) -> Path:
    source = tmp_path / "source"
    for name, content in CONTENT.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content)
    folder = tmp_path / "layout"
    folder.mkdir()
    write_layout(folder, {name: source / name for name in CONTENT}, TEXT)
    return folder


def blob_of(layout: Path, content: bytes) -> Path:
    (found,) = (p for p in (layout / "blobs/sha256").iterdir() if p.read_bytes() == content)
    return found


def test_files_come_back_and_equal_ones_are_one_blob(tmp_path, layout):
    assert len(list((layout / "blobs/sha256").iterdir())) == len(set(CONTENT.values())) + 2
    unpack_layout(layout, tmp_path / "again")
    found = {
        path.relative_to(tmp_path / "again").as_posix(): path.read_bytes()
        for path in (tmp_path / "again").rglob("*")
        if path.is_file()
    }
    assert found == CONTENT
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}


def test_the_same_files_give_the_same_bytes(tmp_path, layout):
    other = tmp_path / "other"
    other.mkdir()
    files = {name: tmp_path / "source" / name for name in reversed(CONTENT)}
    write_layout(other, files, TEXT)
    assert (other / "index.json").read_bytes() == (layout / "index.json").read_bytes()
    names = {path.name for path in (layout / "blobs/sha256").iterdir()}
    assert {path.name for path in (other / "blobs/sha256").iterdir()} == names


@pytest.mark.parametrize("content", [b"model", b"data"])
def test_a_blob_with_other_bytes_or_none_is_refused(tmp_path, layout, content):
    blob = blob_of(layout, content)
    blob.write_bytes(b"x" * len(content))
    with pytest.raises(LayoutError, match=f"blob {blob.name} has other bytes than its name says"):
        unpack_layout(layout, tmp_path / "again")
    blob.write_bytes(content[:-1])
    with pytest.raises(LayoutError, match="other bytes"):
        unpack_layout(layout, tmp_path / "again")
    blob.unlink()
    with pytest.raises(LayoutError, match="No such file"):
        unpack_layout(layout, tmp_path / "again")


@pytest.mark.parametrize("index", ["", '{"manifests": [{"digest": "sha256:../../x", "size": 1}]}'])
def test_what_is_no_layout_is_refused(tmp_path, layout, index):
    (layout / "index.json").write_text(index)
    with pytest.raises(LayoutError, match="the layout is not as onnxbuild writes one"):
        unpack_layout(layout, tmp_path / "again")


def test_a_path_that_leads_elsewhere_is_refused(tmp_path, layout):
    source = tmp_path / "source/load.py"
    folder = tmp_path / "bad"
    folder.mkdir()
    write_layout(folder, {"../load.py": source}, TEXT)
    with pytest.raises(LayoutError, match=r"\.\."):
        unpack_layout(folder, tmp_path / "again")
    assert not (tmp_path / "load.py").exists()


@pytest.mark.parametrize("name", [".git/config", "sitecustomize.py", "a/" * 1500 + "b"])
def test_a_name_that_nobody_should_be_given_is_refused(tmp_path, layout, name):
    folder = tmp_path / "bad"
    folder.mkdir()
    write_layout(folder, {name: tmp_path / "source/load.py"}, TEXT)
    with pytest.raises(LayoutError, match=r"is hidden|is Python|has at most 32"):
        unpack_layout(folder, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_an_index_that_no_registry_takes_is_not_read(tmp_path, layout):
    with (layout / "index.json").open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(LayoutError, match="expected at most 4,194,304"):
        unpack_layout(layout, tmp_path / "again")
