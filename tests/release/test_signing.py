import json
import shutil
import subprocess

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from onnxbuild.adapters.signing_keys import PASSPHRASE_VARIABLE, key_id, read_private_key
from onnxbuild.core.errors import UsageError
from onnxbuild.release.signing import envelope, signatures
from onnxbuild.release_format.checksums import check_sums
from onnxbuild.release_format.layout import (
    ENVELOPE_FILE,
    PROVENANCE_FILE,
    SIGNATURE_FILE,
    SUMS_FILE,
)
from onnxbuild.verification.signature import check_signatures


def pem(key, passphrase=None):
    encryption = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def public_pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def nobody(question):
    raise AssertionError(f"asked: {question}")


@pytest.fixture
def key():
    return Ed25519PrivateKey.generate()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "key.pem"


def test_a_key_signs_what_verify_accepts(key, tmp_path, file):
    file.write_bytes(pem(key))
    read = read_private_key(file, nobody)
    tree = {SUMS_FILE: b"aa  README.md\n", PROVENANCE_FILE: b'{"_type": "x"}\n'}
    for name, content in {**tree, **signatures(read, tree)}.items():
        (tmp_path / name).write_bytes(content)
    assert check_signatures(check_sums(tmp_path), key.public_key()) == []
    assert len((tmp_path / SIGNATURE_FILE).read_bytes()) == 64
    for name in (SUMS_FILE, PROVENANCE_FILE):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(b"x" + whole)
        assert len(check_signatures(check_sums(tmp_path), key.public_key())) == 1
        (tmp_path / name).write_bytes(whole)
    other = Ed25519PrivateKey.generate().public_key()
    assert len(check_signatures(check_sums(tmp_path), other)) == 2


def test_openssl_reads_the_signature(key, tmp_path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl")
    (tmp_path / "public.pem").write_bytes(public_pem(key))
    (tmp_path / SUMS_FILE).write_bytes(b"aa  README.md\n")
    (tmp_path / SIGNATURE_FILE).write_bytes(key.sign(b"aa  README.md\n"))
    command = [openssl, "pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin"]
    command += ["-in", SUMS_FILE, "-sigfile", SIGNATURE_FILE]
    assert subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode == 0
    (tmp_path / SUMS_FILE).write_bytes(b"ab  README.md\n")
    assert subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode != 0


def test_equal_statements_give_equal_envelopes(key):
    one, two = envelope(key, b"statement"), envelope(key, b"statement")
    assert one == two
    assert json.loads(one)["signatures"][0]["keyid"] == key_id(key.public_key())
    assert ENVELOPE_FILE.endswith(".dsse.json")


def test_a_passphrase_is_asked_for_or_taken_from_the_environment(key, file, monkeypatch):
    file.write_bytes(pem(key, b"secret"))
    monkeypatch.delenv(PASSPHRASE_VARIABLE, raising=False)
    asked = []
    read = read_private_key(file, lambda question: asked.append(question) or "secret")
    assert key_id(read.public_key()) == key_id(key.public_key())
    assert asked == [f"Passphrase of {file}"]
    with pytest.raises(UsageError, match="nobody is there to ask"):
        read_private_key(file, None)
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "secret")
    assert key_id(read_private_key(file, nobody).public_key()) == key_id(key.public_key())
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "wrong")
    with pytest.raises(UsageError, match="wrong passphrase"):
        read_private_key(file, nobody)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "No such file"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "is no private key"),
        (pem(generate_private_key(SECP256R1())), "expected Ed25519"),
    ],
    ids=["missing", "damaged", "of-another-kind"],
)
def test_what_is_no_key_to_sign_with_is_reported(file, content, what):
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=what):
        read_private_key(file, nobody)
