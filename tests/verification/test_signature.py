"""Signatures: none, damaged, or made with another key."""

import json

import pytest

from onnxbuild.release_format.layout import SIGNATURES
from tests.verification.conftest import key_of, look_at, release_of

pytestmark = pytest.mark.slow


def test_an_unsigned_look_still_refuses_signatures_that_are_none(released):
    folder = release_of(released)
    whole = {name: (folder / name).read_bytes() for name in SIGNATURES}
    for name, content, named in (
        ("SHA256SUMS.sig", b"x" * 5, "SHA256SUMS.sig has 5 bytes; a signature has 64"),
        ("SHA256SUMS.sig", None, "SHA256SUMS.sig is missing"),
        ("provenance.dsse.json", b"garbage", "provenance.dsse.json is no DSSE envelope"),
        ("provenance.dsse.json", b"[" * 100_000, "provenance.dsse.json is no DSSE envelope"),
        ("provenance.dsse.json", None, "provenance.dsse.json is missing"),
        (
            "provenance.dsse.json",
            whole["provenance.dsse.json"].replace(b"{", b'{"payload": "aaaa",', 1),
            "provenance.dsse.json is no DSSE envelope",
        ),
        (
            "provenance.dsse.json",
            whole["provenance.dsse.json"].replace(b"{", b'{"more": 1,', 1),
            "provenance.dsse.json is not written as a release has it",
        ),
    ):
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)
        for key in ((), key_of(released)):
            done = look_at(folder, *key)
            assert (done.code, f"FAILED  signature: {named}" in done.out) == (4, True), done.out
        (folder / name).write_bytes(whole[name])
    other = edit_keyid(whole["provenance.dsse.json"])
    (folder / "provenance.dsse.json").write_bytes(other)
    assert look_at(release_of(released), *key_of(released)).code == 4
    (folder / "provenance.dsse.json").write_bytes(whole["provenance.dsse.json"])
    (folder / "empty").mkdir()
    done = look_at(release_of(released), *key_of(released))
    assert (done.code, "FAILED  checksums: empty is an empty folder" in done.out) == (4, True)


def edit_keyid(envelope: bytes) -> bytes:
    value = json.loads(envelope)
    value["signatures"][0]["keyid"] = "0" * 64
    return json.dumps(value, sort_keys=True, indent=2).encode() + b"\n"


def test_keys_that_are_none_or_another_are_refused(released):
    wrong = released("verify", "dist/tiny-1.0", "--key", "other.pub.pem")
    assert wrong.code == 4
    assert "SHA256SUMS.sig is not this key's signature of SHA256SUMS" in wrong.out
    for key, named in (
        ("nothing.pem", "can't read the key nothing.pem"),
        ("tiny.yaml", "tiny.yaml is no public key"),
        ("team.pem", "team.pem is a private key"),
        ("curve.pub.pem", "releases are signed with Ed25519"),
    ):
        done = released("verify", "dist/tiny-1.0", "--key", key)
        assert done.code == 2
        assert named in done.err
    (release_of(released) / "SHA256SUMS.sig").unlink()
    unsigned = released("verify", "dist/tiny-1.0", "--key", "team.pub.pem")
    assert unsigned.code == 4
    assert "SHA256SUMS.sig is missing: the release is not signed" in unsigned.out
