"""Push and pull: the same bytes back, known blobs not sent again, and nothing half-there."""

import errno
import hashlib
import json
import os
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, NotReproducibleError, StoreError, UsageError
from onnxbuild.onnxkit.oci.manifests import FILE_PATH, INDEX, MANIFEST, SIGNATURE
from onnxbuild.registry.contents import Blob
from onnxbuild.registry.push import signature
from onnxbuild.registry.refusals import RegistryUnavailableError
from onnxbuild.registry.repository import BlobFile
from tests.registry.conftest import WEIGHTS, Place, contents, tree

LARGE = bytes(hashlib.sha256(b"weights").digest()) * 100_000
MODEL = hashlib.sha256(WEIGHTS).hexdigest()


def signed(keys):
    return replace(contents(), attached=signature(contents(), keys.private, None))


def folders(tmp_path):
    """Names of what is there, besides the layout and keys."""
    return sorted(p.name for p in tmp_path.iterdir() if p.name != "layout" and p.suffix == "")


# --- the ordinary way --------------------------------------------------------------------------------


def test_what_comes_back_is_what_was_pushed(any_place, tmp_path):
    pushed = any_place.push(contents())
    pulled = any_place.pull(tmp_path / "model")
    assert (pulled.sha256, pulled.files, pulled.signature) == (pushed.sha256, 4, "none")
    files = contents().files
    assert tree(tmp_path / "model") == {n: hashlib.sha256(c).hexdigest() for n, c in files.items()}
    assert folders(tmp_path) == ["model"]
    assert (tmp_path / "model/cpp/main.cpp").stat().st_mode & 0o777 == 0o644


def test_a_second_push_of_equal_contents_sends_nothing_and_has_the_same_digest(any_place):
    first, second = any_place.push(contents()), any_place.push(contents())
    assert (first.sent, first.known) == (5, 0)
    assert (second.sent, second.known, second.was) == (0, 5, "")
    assert first.sha256 == second.sha256


def test_the_digest_is_the_same_in_every_place(place, tmp_path):
    assert (
        place.push(contents()).sha256 == Place(f"oci:{tmp_path}/a").push(contents(), ":b").sha256
    )


def test_blobs_that_two_artifacts_share_are_sent_once(any_place):
    any_place.push(contents())
    other = contents({"model.onnx": WEIGHTS, "copy.onnx": WEIGHTS, "load.py": b"exit()\n"})
    assert any_place.push(other, ":2").sent == 3  # load.py, SHA256SUMS, the config


def test_one_blob_of_two_files_comes_back_as_two_files(any_place, tmp_path):
    any_place.push(contents({"a.onnx": WEIGHTS, "b.onnx": WEIGHTS}))
    any_place.pull(tmp_path / "model")
    with (tmp_path / "model/a.onnx").open("ab") as file:
        file.write(b"more")
    assert (tmp_path / "model/b.onnx").read_bytes() == WEIGHTS


def test_an_empty_file_is_a_blob_like_any_other(any_place, tmp_path):
    any_place.push(contents({"empty.txt": b"", "model.onnx": WEIGHTS}))
    any_place.pull(tmp_path / "model")
    assert (tmp_path / "model/empty.txt").read_bytes() == b""


def test_a_tag_that_moves_is_said_with_what_it_was(any_place, tmp_path):
    first = any_place.push(contents())
    second = any_place.push(contents({"model.onnx": b"another"}))
    assert second.was == f"sha256:{first.sha256}"
    assert any_place.pull(tmp_path / "new").sha256 == second.sha256
    assert any_place.pull(tmp_path / "old", f"@sha256:{first.sha256}").sha256 == first.sha256


def test_a_blob_of_another_repository_is_mounted(registry, place):
    place.push(contents())
    other = Place(f"{registry.host}/team/copy")
    reference = other.reference(":1")
    repository = other.opened(reference, make=True)
    repository._mount_from = "team/tiny"
    before = registry.count["blobs"]
    assert repository.put_blob(Digest(MODEL, len(WEIGHTS)), lambda: None, print) is False
    assert registry.count["blobs"] == before
    repository.close()


def test_what_is_not_there_is_said(any_place, tmp_path):
    any_place.push(contents())
    with pytest.raises(UsageError, match="no such artifact"):
        any_place.pull(tmp_path / "model", ":2")
    assert folders(tmp_path) == []


# --- the folder that is pulled into ------------------------------------------------------------------


def test_a_second_pull_into_the_same_folder_writes_nothing(any_place, tmp_path):
    any_place.push(contents())
    assert any_place.pull(tmp_path / "model").written
    paths = (tmp_path / "model/model.onnx", tmp_path / "model", tmp_path)
    before = [path.stat().st_mtime_ns for path in paths]
    again = any_place.pull(tmp_path / "model")
    assert not again.written
    assert [path.stat().st_mtime_ns for path in paths] == before, "it may be read-only"


@pytest.mark.parametrize("change", ["another byte", "one more", "one less", "a link", "a file"])
def test_a_folder_that_differs_is_left_as_it_is(place, tmp_path, change):
    place.push(contents())
    folder = tmp_path / "model"
    place.pull(folder)
    if change == "another byte":
        (folder / "load.py").write_bytes(b"Pass\n")
    elif change == "one more":
        (folder / "mine.txt").write_bytes(b"")
    elif change == "one less":
        (folder / "load.py").unlink()
    elif change == "a link":
        (folder / "load.py").unlink()
        (folder / "load.py").symlink_to("model.onnx")
    else:
        shutil.rmtree(folder)
        folder.write_bytes(b"mine")
    before = tree(tmp_path)
    with pytest.raises(UsageError, match="is there and differs"):
        place.pull(folder)
    assert tree(tmp_path) == before
    assert folders(tmp_path) == ["model"]


def test_an_unwritable_place_is_said(place, tmp_path):
    place.push(contents())
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="a file is in its way"):
        place.pull(tmp_path / "file/model")


@pytest.mark.parametrize(
    ("number", "sentence", "fix"),
    [
        (errno.ENOSPC, "no space left on the disk while writing", "free space"),
        (errno.EDQUOT, "your quota on the disk is used up while writing", "free space"),
        (errno.EFBIG, r"more than this process may write \(`ulimit -f`\)", "ulimit -f unlimited"),
    ],
)
def test_a_full_disk_is_no_fault_of_the_registry(number, sentence, fix, place, tmp_path):
    place.push(contents())

    def write(content):
        raise OSError(number, os.strerror(number))

    file = SimpleNamespace(write=write, name=str(tmp_path / "blob"))
    blob = BlobFile(file, Digest.of(WEIGHTS), "here")
    repository = place.opened(place.reference(":1"), make=False)
    with pytest.raises(StoreError, match=sentence) as caught:
        repository.save_blob(Digest.of(WEIGHTS), blob, lambda _: None)
    repository.close()
    assert fix in caught.value.fix
    assert place.pauses == []


# --- damage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (b"x" * len(WEIGHTS), "was altered or damaged"),
        (WEIGHTS[:-1], "is cut short: it has 10239 bytes, of 10240"),
        (WEIGHTS + b"x", "is longer than the 10240 bytes"),
    ],
)
def test_a_blob_that_the_registry_alters_is_refused(registry, place, tmp_path, other, sentence):
    place.push(contents())
    registry.behaviour.altered[MODEL] = other
    with pytest.raises(NotReproducibleError, match=sentence) as caught:
        place.pull(tmp_path / "model")
    assert caught.value.exit_code == 4
    assert caught.value.fix.startswith(
        "remove the artifact and its blobs from the registry, then push"
    )
    assert folders(tmp_path) == []


def test_a_blob_that_is_altered_in_a_layout_is_refused(tmp_path):
    place = Place(f"oci:{tmp_path}/layout")
    place.push(contents())
    (tmp_path / f"layout/blobs/sha256/{MODEL}").write_bytes(b"x" * len(WEIGHTS))
    with pytest.raises(NotReproducibleError, match="was altered or damaged") as caught:
        place.pull(tmp_path / "model")
    assert caught.value.fix.startswith("push it again from where it was made")
    mended = place.push(contents())
    assert (mended.sent, mended.known) == (1, 4)
    place.pull(tmp_path / "model")
    shutil.rmtree(tmp_path / "model")
    (tmp_path / f"layout/blobs/sha256/{MODEL}").unlink()
    with pytest.raises(NotReproducibleError, match="can't be read"):
        place.pull(tmp_path / "model")
    assert folders(tmp_path) == []


def test_a_manifest_other_than_the_digest_asked_for_is_refused(registry, place, tmp_path):
    pushed = place.push(contents())
    other = place.push(contents({"model.onnx": b"another"}), ":2")
    content = registry.manifests["team/tiny", f"sha256:{other.sha256}"][1]
    registry.behaviour.altered[pushed.sha256] = content
    with pytest.raises(NotReproducibleError, match="the manifest was altered"):
        place.pull(tmp_path / "model", f"@sha256:{pushed.sha256}")


def test_a_manifest_other_than_the_digest_that_the_registry_names_is_refused(
    registry, place, tmp_path
):
    registry.behaviour.digest_header = True
    pushed = place.push(contents())
    content = registry.manifests["team/tiny", f"sha256:{pushed.sha256}"][1]
    registry.behaviour.altered[pushed.sha256] = content.replace(b"SHA256SUMS", b"SHA256SUMZ")
    with pytest.raises(NotReproducibleError, match=f"{pushed.sha256} is missing, altered or dam"):
        place.pull(tmp_path / "model")
    assert folders(tmp_path) == []


def test_a_page_in_place_of_a_manifest_is_no_fault_of_who_pushed(registry, place, tmp_path):
    pushed = place.push(contents())
    registry.behaviour.altered[pushed.sha256] = b"<html>Log in</html>"
    with pytest.raises(NotReproducibleError, match="no OCI image manifest") as caught:
        place.pull(tmp_path / "model")
    assert caught.value.fix == "check the address: another server, or a proxy, may have answered"


@pytest.mark.parametrize(
    "path", ["../evil", "/etc/evil", "a/../../evil", "", "a\nb", "C:/evil", ".git/config"]
)
@pytest.mark.parametrize("key", ["org.cncf.model.filepath", "org.opencontainers.image.title"])
def test_a_path_that_leads_elsewhere_is_refused(registry, place, tmp_path, path, key):
    pushed = place.push(contents())
    value = json.loads(registry.manifests["team/tiny", "1"][1])
    value["layers"][0]["annotations"] = {key: path}
    registry.behaviour.altered[pushed.sha256] = json.dumps(value).encode()
    with pytest.raises(NotReproducibleError, match="path"):
        place.pull(tmp_path / "model")
    assert folders(tmp_path) == []


def test_a_file_of_the_store_that_was_altered_is_not_sent(any_place, tmp_path):
    digest = Digest.of(WEIGHTS)
    (tmp_path / "blob.bin").write_bytes(b"x" * len(WEIGHTS))
    what = replace(contents(), files={"model.onnx": Blob(tmp_path / "blob.bin", digest)})
    with pytest.raises(StoreError, match="damaged in the store"):
        any_place.push(what)
    (tmp_path / "blob.bin").write_bytes(WEIGHTS)
    assert any_place.push(what).sent == 2


# --- signatures --------------------------------------------------------------------------------------


def test_a_signed_artifact_is_checked_with_the_key(any_place, keys, other_keys, tmp_path):
    any_place.push(signed(keys))
    assert any_place.pull(tmp_path / "model", key=keys.public).signature == "checked"
    assert "SHA256SUMS.sig" in tree(tmp_path / "model")
    assert any_place.pull(tmp_path / "plain").signature == "not checked"
    with pytest.raises(NotReproducibleError, match="not this key's signature"):
        any_place.pull(tmp_path / "other", key=other_keys.public)
    assert folders(tmp_path) == ["model", "plain"]


def test_an_artifact_without_a_signature_is_refused_where_a_key_is_given(
    any_place, keys, tmp_path
):
    any_place.push(contents())
    with pytest.raises(NotReproducibleError, match="it is not signed"):
        any_place.pull(tmp_path / "model", key=keys.public)
    assert folders(tmp_path) == []


def test_a_signature_can_be_added_later_and_is_found_among_others(
    any_place, keys, other_keys, tmp_path
):
    plain = any_place.push(contents())
    for each in (other_keys, keys):
        again = any_place.push(signed(each))
        assert (again.sha256, again.was) == (plain.sha256, "")
    assert any_place.push(signed(keys)).sent == 0
    assert any_place.pull(tmp_path / "a", key=keys.public).signature == "checked"
    assert any_place.pull(tmp_path / "b", key=other_keys.public).signature == "checked"


@pytest.mark.parametrize("status", [400, 404, 405, 410, 501])
def test_a_registry_without_referrers_is_asked_for_the_fallback_tag(start, keys, tmp_path, status):
    place = Place(f"{start(no_referrers=status).host}/team/tiny")
    place.push(contents())
    assert place.pull(tmp_path / "plain").signature == "none"
    place.push(signed(keys))
    assert place.pull(tmp_path / "model", key=keys.public).signature == "checked"


def test_a_signature_on_a_later_page_of_referrers_is_found(start, keys, other_keys, tmp_path):
    registry = start(referrers_api=True, referrers_a_page=1)
    place = Place(f"{registry.host}/team/tiny")
    for each in (other_keys, keys):
        place.push(signed(each))
    for number, each in enumerate((other_keys, keys)):
        assert place.pull(tmp_path / f"{number}", key=each.public).signature == "checked"
    assert any("?start=1" in path for _, path, _ in registry.requests)


@pytest.mark.parametrize("other", ["MODEL.onnx", "Model.ONNX/config.json"])
def test_files_that_would_be_one_on_some_disks_are_refused(registry, place, tmp_path, other):
    place.push(contents({"model.onnx": WEIGHTS, "load.py": b""}))
    value = json.loads(registry.manifests["team/tiny", "1"][1])
    for layer in value["layers"]:
        if layer["annotations"][FILE_PATH] == "load.py":
            layer["annotations"][FILE_PATH] = other
    content = json.dumps(value).encode()
    registry.manifests["team/tiny", "1"] = (MANIFEST, content)
    with pytest.raises(NotReproducibleError, match="on some disks"):
        place.pull(tmp_path / "model")
    assert folders(tmp_path) == []


def test_the_signature_of_another_artifact_is_refused(any_place, keys, tmp_path):
    other = contents({"model.onnx": b"another"})
    forged = replace(contents(), attached=signature(other, keys.private, None))
    any_place.push(forged)
    with pytest.raises(NotReproducibleError, match="not this key's signature"):
        any_place.pull(tmp_path / "model", key=keys.public)


@pytest.mark.parametrize("change", ["swapped", "added", "removed"])
def test_files_that_are_not_those_that_were_signed_are_refused(any_place, keys, tmp_path, change):
    """With a sound manifest and sound blobs: only SHA256SUMS and its signature stand against it."""
    files = {"fp32.onnx": WEIGHTS, "int8.onnx": b"small", "load.py": b""}
    right = contents(files)
    attached = signature(right, keys.private, None)
    forged = {
        "swapped": {**right.files, "fp32.onnx": b"small", "int8.onnx": WEIGHTS},
        "added": {**right.files, "evil.json": b""},
        "removed": {n: c for n, c in right.files.items() if n != "load.py"},
    }[change]
    any_place.push(replace(right, files=forged, attached=attached))
    with pytest.raises(NotReproducibleError, match=r"has changed|was added|is missing"):
        any_place.pull(tmp_path / "model", key=keys.public)
    assert folders(tmp_path) == []


def test_a_file_that_neither_the_sums_nor_a_signature_covers_is_refused(any_place, keys, tmp_path):
    """SHA256SUMS lists no envelope; without a provenance to compare it with, nothing checks it."""
    what = signed(keys)
    any_place.push(replace(what, files={**what.files, "provenance.dsse.json": b"anything"}))
    for key in (keys.public, None):
        with pytest.raises(NotReproducibleError, match=r"no signature covers provenance\.dsse"):
            any_place.pull(tmp_path / "model", key=key)
    assert folders(tmp_path) == []


def test_no_large_blob_is_fetched_before_the_signature_is_checked(
    registry, place, keys, other_keys, tmp_path
):
    place.push(signed(keys))
    registry.requests.clear()
    with pytest.raises(NotReproducibleError):
        place.pull(tmp_path / "model", key=other_keys.public)
    assert not any(MODEL in path for _, path, _ in registry.requests)


def test_what_others_attach_that_is_none_does_not_matter(registry, place, keys, tmp_path):
    """Anybody who may write there can: a pull by digest must not fail by it."""
    pushed = place.push(signed(keys))
    subject = {"digest": f"sha256:{pushed.sha256}", "size": 1, "mediaType": MANIFEST}
    empty = {"digest": f"sha256:{'0' * 64}", "size": 64, "mediaType": SIGNATURE}
    junk = [b"{", b"[]"] + [
        json.dumps({"schemaVersion": 2, "artifactType": SIGNATURE, **each}).encode()
        for each in (
            {"config": empty, "layers": [empty], "subject": subject},  # its blob is missing
            {"config": empty, "layers": [], "subject": subject},
            {"config": empty, "layers": [empty, empty], "subject": subject},
            {"config": empty, "layers": [empty]},
        )
    ]
    tag = f"sha256-{pushed.sha256}"
    index = json.loads(registry.manifests["team/tiny", tag][1])
    for number, content in enumerate(junk):
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if number != 1:  # else it is missing
            registry.manifests["team/tiny", digest] = (MANIFEST, content)
        entry = {"mediaType": MANIFEST, "digest": digest, "size": 9, "artifactType": SIGNATURE}
        index["manifests"].insert(0, entry)
    registry.manifests["team/tiny", tag] = (INDEX, json.dumps(index).encode())
    assert place.pull(tmp_path / "a", key=keys.public).signature == "checked"


def test_a_signature_leaves_the_referrers_of_others_as_they_are(registry, place, keys):
    pushed = place.push(contents())
    tag = f"sha256-{pushed.sha256}"
    other = {
        "mediaType": MANIFEST, "digest": f"sha256:{'0' * 64}", "size": 9, "artifactType": "application/sbom",
        "annotations": {"created": "now"}, "platform": {"os": "linux"}, "data": "e30=",
    }  # fmt: skip
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "annotations": {"a": "b"},
        "manifests": [other],
    }
    registry.manifests["team/tiny", other["digest"]] = (MANIFEST, b"{}")
    registry.manifests["team/tiny", tag] = (INDEX, json.dumps(index).encode())
    place.push(signed(keys))
    found = json.loads(registry.manifests["team/tiny", tag][1])
    assert found["annotations"] == {"a": "b"}
    assert (other in found["manifests"], len(found["manifests"])) == (True, 2)


def test_a_signature_that_is_none_is_as_if_it_were_not_there(any_place, keys, tmp_path):
    any_place.push(replace(contents(), attached={"SHA256SUMS.sig": b"short"}))
    assert any_place.pull(tmp_path / "a").signature == "none"
    with pytest.raises(NotReproducibleError, match="has 5 bytes"):
        any_place.pull(tmp_path / "b", key=keys.public)


# --- a registry that fails ---------------------------------------------------------------------------


def test_what_passes_is_tried_again(registry, place, tmp_path):
    registry.behaviour.statuses = {("POST", "/uploads/"): [503, 429], ("GET", "/blobs/"): [502]}
    registry.behaviour.cut_uploads = registry.behaviour.cut_downloads = 1
    place.push(contents())
    place.pull(tmp_path / "model")
    assert place.pauses == [0.5, 1.0, 0.5, 0.5, 0.5]


def test_a_registry_may_take_its_time_to_keep_a_blob(registry, place):
    place.pace = {"silence_s": 0.5}
    registry.behaviour.keeping_s = 0.9
    place.push(contents({"model.onnx": LARGE}))
    assert place.pauses == []
    place.pace = {"upload_s": 0.3}
    with pytest.raises(RegistryUnavailableError, match="it did not answer for 0 s"):
        place.push(contents({"model.onnx": LARGE + b"other"}))


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_breaks_off_goes_on_where_it_was(registry, place, tmp_path, ranges):
    place.push(contents({"model.onnx": LARGE}))
    registry.behaviour.cut_downloads, registry.behaviour.ranges = 2, ranges
    registry.requests.clear()
    place.pull(tmp_path / "model")
    asked = [h["Range"] for _, _, h in registry.requests if "Range" in h]
    assert asked == [f"bytes={len(LARGE) // 2}-"] + (
        [f"bytes={len(LARGE) * 3 // 4}-"] if ranges else [f"bytes={len(LARGE) // 2}-"]
    )


@pytest.mark.parametrize("part", ["/manifests/1", "/manifests/sha256:", "/manifests/sha256-"])
def test_a_manifest_that_breaks_off_is_asked_for_again(registry, place, keys, tmp_path, part):
    """Half a list of signatures is no artifact without one, and half a manifest no altered one."""
    place.push(signed(keys))
    for key, state in ((None, "not checked"), (keys.public, "checked")):
        registry.behaviour.cut_answers = {part: 2}
        assert place.pull(tmp_path / state, key=key).signature == state
        assert registry.behaviour.cut_answers == {part: 0}
        assert (tmp_path / state / "SHA256SUMS.sig").is_file()


def test_uploads_that_always_break_off_leave_no_tag(registry, place):
    registry.behaviour.cut_uploads = 100
    with pytest.raises(RegistryUnavailableError, match="broke off") as caught:
        place.push(contents())
    assert caught.value.exit_code == 1
    assert registry.manifests == {}


def test_a_registry_that_dies_midway_leaves_no_tag_and_the_next_push_sends_the_rest(
    registry, place
):
    registry.behaviour.dies_after = 8
    with pytest.raises(RegistryUnavailableError):
        place.push(contents())
    assert registry.manifests == {}
    sent = registry.count["blobs"]
    assert 0 < sent < 5
    registry.behaviour.dies_after = 10**9
    assert place.push(contents()).sent == 5 - sent


def test_a_registry_that_dies_midway_leaves_no_folder_and_the_next_pull_fetches_the_rest(
    registry, place, tmp_path
):
    place.push(contents())
    registry.requests.clear()
    registry.behaviour.dies_after = 5
    with pytest.raises(RegistryUnavailableError):
        place.pull(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    kept = [path for path in tree(tmp_path) if path.startswith(".model.pull/blobs/")]
    assert kept
    registry.behaviour.dies_after = 10**9
    all_bytes = sum(map(len, contents().files.values()))
    pulled = place.pull(tmp_path / "model")
    assert pulled.fetched_bytes == all_bytes - sum(
        len(c)
        for c in contents().files.values()
        if any(hashlib.sha256(c).hexdigest() in k for k in kept)
    )
    assert folders(tmp_path) == ["model"]


def test_credentials_that_end_midway_cost_nothing_of_what_was_fetched(registry, place, tmp_path):
    place.push(contents({"a.bin": b"a", "model.onnx": WEIGHTS}))
    registry.behaviour.statuses = {("GET", f"/blobs/sha256:{MODEL}"): [403]}
    with pytest.raises(UsageError, match="asks for a user name"):
        place.pull(tmp_path / "model")
    pulled = place.pull(tmp_path / "model")
    assert pulled.fetched_bytes == len(WEIGHTS)
    assert folders(tmp_path) == ["model"]


def test_a_blob_that_was_kept_and_altered_is_fetched_again(registry, place, tmp_path):
    place.push(contents())
    kept = tmp_path / ".model.pull/blobs" / MODEL
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x" * len(WEIGHTS))
    place.pull(tmp_path / "model")
    assert (tmp_path / "model/model.onnx").read_bytes() == WEIGHTS


def test_a_registry_that_takes_blobs_and_has_them_not_is_found_out(registry, place):
    registry.behaviour.forgets = True
    with pytest.raises(BuildError, match=r"took the blob sha256:.* and has it not"):
        place.push(contents())
    assert registry.manifests == {}


@pytest.mark.parametrize(
    ("status", "sentence"), [(405, "read-only"), (403, "asks for a user"), (413, "larger than it takes"), (500, "HTTP status 500")]
)  # fmt: skip
def test_a_registry_that_can_not_be_written_is_said(registry, place, status, sentence):
    registry.behaviour.statuses = {("POST", "/uploads/"): [status] * 4}
    with pytest.raises(BuildError, match=sentence) as caught:
        place.push(contents())
    assert "not now" in caught.value.what
    assert registry.manifests == {}


@pytest.mark.parametrize(
    "location", ["http://[evil/", "ftp://x/y", "/v2/\xfc\xfc", "http://\u2100.example/", "/a b", "http://h:99999999/"]
)  # fmt: skip
def test_an_upload_to_a_place_that_is_none_is_refused(registry, place, location):
    registry.behaviour.uploads_to = location.encode("utf-8").decode("latin-1")
    with pytest.raises(BuildError):
        place.push(contents())
    assert registry.manifests == {}


def test_an_upload_to_another_host_carries_no_password(start):
    other, registry = start(), start(user="ann:secret")
    registry.behaviour.uploads_to = f"http://{other.host}/v2/team/tiny/blobs/uploads/1"
    with pytest.raises(BuildError, match="has it not"):  # the blob is there, not here
        Place(f"{registry.host}/team/tiny", user="ann:secret").push(contents())
    assert [headers.get("Authorization") for _, _, headers in other.requests] == [None]


def test_nobody_listening_is_said(place, registry, tmp_path, start):
    gone = start()
    place = Place(f"{gone.host}/team/tiny")
    gone._server.socket.close()
    with pytest.raises(RegistryUnavailableError, match=r"connection refused|broke off"):
        place.pull(tmp_path / "model")
    assert place.pauses == [0.5, 1.0, 2.0]


def test_an_error_never_shows_where_an_upload_goes(registry, place):
    registry.behaviour.statuses = {("PUT", "/uploads/"): [500] * 4}
    with pytest.raises(BuildError) as caught:
        place.push(contents())
    assert "secret-of-the-upload" not in str(caught.value)
