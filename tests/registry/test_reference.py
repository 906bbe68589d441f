"""References as a person types them."""

import pytest

from onnxbuild.core.errors import UsageError
from onnxbuild.registry.reference import Reference, parse_reference

SHA = "0" * 63 + "a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ghcr.io/team/digits:1.0.0", Reference("ghcr.io", "team/digits", "1.0.0")),
        ("localhost/digits:int8", Reference("localhost", "digits", "int8")),
        ("127.0.0.1:5000/a/b/c:x_y", Reference("127.0.0.1:5000", "a/b/c", "x_y")),
        ("[::1]:5000/a:b", Reference("[::1]:5000", "a", "b")),
        ("GHCR.io/a:B", Reference("ghcr.io", "a", "B")),
        (f"h:1/a@sha256:{SHA}", Reference("h:1", "a", "", SHA)),
        (f"h:1/a:b@sha256:{SHA}", Reference("h:1", "a", "b", SHA)),
        ("oci:images/digits:int8", Reference("", "images/digits", "int8")),
        ("oci:/tmp/x:1", Reference("", "/tmp/x", "1")),
        (f"oci:x@sha256:{SHA}", Reference("", "x", "", SHA)),
    ],
)
def test_what_is_typed_is_understood(text, expected):
    assert parse_reference(text) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("digits:int8", "names no registry"),
        ("team/digits:int8", "write docker.io/team/digits:int8"),
        ("h:1/digits", "has no tag"),
        ("oci:images", "no OCI layout"),
        ("h:1/Digits:int8", "lower-case"),
        ("h:1/../x:1", "lower-case"),
        ("h:1//x:1", "lower-case"),
        ("h:1/a:.b", "which is none"),
        ("h:1/a:b:c", "which is none"),
        ("h:99999/a:b", "is no registry"),
        ("h.x@evil/a:b", "other than sha256"),
        ("h:1/a@md5:1", "other than sha256"),
        ("h:1/a@sha256:12", "64 lower-case hex digits"),
        ("h:1/a:\x1b[2J", r"\x1b"),
        ("", "names no registry"),
        ("oci:", "no OCI layout"),
        ("oci::tag", "no OCI layout"),
        ("http://h:1/a:b", "names no registry|is no registry"),
    ],
)
def test_what_is_none_is_refused_with_what_to_write(text, sentence):
    with pytest.raises(UsageError) as caught:
        parse_reference(text)
    assert any(each in str(caught.value) for each in sentence.split("|"))
    assert str(caught.value).isprintable() or "\n" in str(caught.value)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ghcr.io/team/digits:1.0.0", "digits-1.0.0"),
        (f"ghcr.io/digits@sha256:{'ab' * 32}", "digits-abababababab"),
        ("oci:images/digits/:int8", "digits-int8"),
    ],
)
def test_the_folder_is_named_by_what_was_asked_for_and_never_by_the_registry(text, name):
    assert parse_reference(text).folder_name == name


@pytest.mark.parametrize(
    ("registry", "is_loopback"),
    [("localhost:5000", True), ("127.0.0.1", True), ("127.9.9.9:1", True), ("[::1]:5000", True), ("a.localhost:5", True),
     ("ghcr.io", False), ("10.0.0.1:5000", False), ("localhost.example.org", False), ("127.0.0.1.example.org", False)],
)  # fmt: skip
def test_only_this_machine_is_spoken_to_without_tls(registry, is_loopback):
    assert parse_reference(f"{registry}/a:b").is_loopback == is_loopback
