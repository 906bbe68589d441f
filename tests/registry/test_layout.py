"""OCI layouts: what others expect in the folder, several at a time, and what is no layout."""

import hashlib
import json
from concurrent.futures import ProcessPoolExecutor

import pytest

from onnxbuild.core.errors import BuildError, NotReproducibleError, UsageError
from tests.registry.conftest import WEIGHTS, Place, contents


@pytest.fixture
def layout(tmp_path):
    return tmp_path / "layout"


@pytest.fixture
def place(layout):
    return Place(f"oci:{layout}")


def index(layout):
    return json.loads((layout / "index.json").read_text())["manifests"]


def test_it_has_what_the_specification_asks_for(layout, place):
    pushed = place.push(contents(), ":a")
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = index(layout)
    assert entry["digest"] == f"sha256:{pushed.sha256}"
    assert entry["annotations"] == {"org.opencontainers.image.ref.name": "a"}
    assert entry["size"] == (layout / f"blobs/sha256/{pushed.sha256}").stat().st_size
    assert sorted(p.name for p in layout.iterdir()) == ["blobs", "index.json", "oci-layout"]
    assert all(path.name[0] != "." for path in layout.rglob("*"))


def test_tags_of_one_manifest_and_of_several_stand_side_by_side(layout, place):
    place.push(contents(), ":b")
    place.push(contents(), ":a")
    place.push(contents({"model.onnx": b"another"}), ":c")
    tags = [each["annotations"]["org.opencontainers.image.ref.name"] for each in index(layout)]
    assert tags == ["a", "b", "c"]
    before = (layout / "index.json").read_bytes()
    place.push(contents(), ":a")
    assert (layout / "index.json").read_bytes() == before


def _push(root, number):
    Place(root).push(contents({"model.onnx": WEIGHTS, "number": b"%d" % number}), f":{number}")


def test_pushes_at_the_same_time_all_arrive(layout):
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(_push, [f"oci:{layout}"] * 8, range(8)))
    assert len(index(layout)) == 8
    assert all(path.name[0] != "." for path in layout.rglob("*"))


@pytest.mark.parametrize("content", [b"{broken", b"[]", b'{"manifests": 3}'])
def test_a_push_to_a_broken_index_is_refused_with_what_to_do_and_sends_nothing(
    layout, place, content
):
    place.push(contents(), ":a")
    before = sorted(layout.rglob("*"))
    (layout / "index.json").write_bytes(content)
    with pytest.raises(NotReproducibleError, match="is no OCI index") as raised:
        place.push(contents({"model.onnx": b"another"}), ":b")
    assert raised.value.where == str(layout / "index.json")
    assert "remove this file" in raised.value.fix
    assert sorted(layout.rglob("*")) == before
    (layout / "index.json").unlink()
    place.push(contents(), ":a")


def test_what_is_no_layout_is_refused(tmp_path, layout, place):
    with pytest.raises(UsageError, match="there is no OCI layout"):
        place.pull(tmp_path / "model")
    layout.mkdir()
    (layout / "mine").write_bytes(b"")
    with pytest.raises(UsageError, match="is no OCI layout, and not empty"):
        place.push(contents())
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="is no OCI layout"):
        Place(f"oci:{tmp_path}/file").push(contents())
    with pytest.raises(BuildError, match=r"can't make .*: a file is in its way"):
        Place(f"oci:{tmp_path}/file/below").push(contents())


@pytest.mark.parametrize("content", ["{", "[]", '{"manifests": 1}'])
def test_an_index_that_is_damaged_is_said(tmp_path, layout, place, content):
    place.push(contents())
    (layout / "index.json").write_text(content)
    with pytest.raises(NotReproducibleError, match="no OCI index"):
        place.pull(tmp_path / "model")
    with pytest.raises(NotReproducibleError, match="no OCI index"):
        place.push(contents({"model.onnx": b"another"}))


def test_a_manifest_that_is_huge_is_not_read(tmp_path, layout, place):
    pushed = place.push(contents())
    (layout / f"blobs/sha256/{pushed.sha256}").write_bytes(b" " * (5 << 20))
    with pytest.raises(NotReproducibleError, match="more than"):
        place.pull(tmp_path / "model")


def test_a_push_keeps_what_other_tools_have_in_the_layout(layout, place):
    place.push(contents(), ":a")
    (layout / "blobs/sha256" / hashlib.sha256(b"image").hexdigest()).write_bytes(b"image")
    image = {
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": f"sha256:{hashlib.sha256(b'image').hexdigest()}",
        "size": 5,
        "platform": {"os": "linux", "architecture": "arm64"},
        "annotations": {"org.opencontainers.image.ref.name": "app"},
    }
    whole = json.loads((layout / "index.json").read_text())
    whole |= {"annotations": {"mine": "1"}, "manifests": [*whole["manifests"], image]}
    (layout / "index.json").write_text(json.dumps(whole))
    place.push(contents({"model.onnx": b"another"}, **{"SHA256SUMS.sig": b"s" * 64}), ":b")
    assert json.loads((layout / "index.json").read_text())["annotations"] == {"mine": "1"}
    assert image in index(layout)
    assert len(index(layout)) == 4


def test_a_manifest_of_another_tool_that_can_not_be_read_is_in_no_way_of_a_pull(
    layout, place, tmp_path
):
    place.push(contents(), ":a")
    entries = index(layout)
    for content in (b"image", b" " * (5 << 20), b'{"schemaVersion": 1}'):
        sha256 = hashlib.sha256(content).hexdigest()
        (layout / "blobs/sha256" / sha256).write_bytes(content)
        entries.append(
            {**entries[0], "digest": f"sha256:{sha256}", "size": len(content), "annotations": {}}
        )
    whole = json.loads((layout / "index.json").read_text())
    (layout / "index.json").write_text(json.dumps({**whole, "manifests": entries}))
    assert place.pull(tmp_path / "model", ":a").files == 4


@pytest.mark.parametrize("change", ["altered", "gone"])
def test_a_manifest_other_than_its_tag_names_is_refused_and_mended_by_a_push(
    layout, place, tmp_path, change
):
    what = contents()
    pushed = place.push(what)
    manifest = layout / "blobs/sha256" / pushed.sha256
    altered = manifest.read_bytes().replace(b"SHA256SUMS", b"SHA256SUMZ")
    manifest.unlink()
    if change == "altered":
        manifest.write_bytes(altered)
    with pytest.raises(NotReproducibleError, match="missing, altered or damaged") as caught:
        place.pull(tmp_path / "model")
    assert caught.value.where == str(manifest)
    assert not (tmp_path / "model").exists()
    place.push(what)
    place.pull(tmp_path / "model")


def test_a_blob_whose_disk_fails_is_named(layout, place, tmp_path):
    place.push(contents())
    blob = layout / "blobs/sha256" / hashlib.sha256(WEIGHTS).hexdigest()
    blob.unlink()
    blob.symlink_to("/proc/self/mem")  # a regular file, whose first bytes give EIO
    with pytest.raises(NotReproducibleError, match=rf"the blob sha256:{blob.name} can't be read"):
        place.pull(tmp_path / "model")
