"""Artifacts to push, places to push to, and keys."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

from onnxbuild.core.digest import Digest
from onnxbuild.registry.access import RegistryAccess
from onnxbuild.registry.connection import Connection
from onnxbuild.registry.contents import Contents
from onnxbuild.registry.credentials import Credentials
from onnxbuild.registry.layout import LayoutRepository
from onnxbuild.registry.progress import Progress
from onnxbuild.registry.pull import Pulled, pull
from onnxbuild.registry.push import Pushed, push
from onnxbuild.registry.reference import Reference, parse_reference
from onnxbuild.registry.remote import RemoteRepository
from onnxbuild.registry.repository import Repository
from onnxbuild.registry.transport import Pace
from onnxbuild.release_format.forms import sums
from tests.registry.fake_registry import FakeRegistry

QUIET = Progress(None, lambda: 0.0)
WEIGHTS = bytes(range(256)) * 40


def contents(files: dict[str, bytes] | None = None, **attached: bytes) -> Contents:
    """A small variant with its SHA256SUMS."""
    files = files or {"model.onnx": WEIGHTS, "load.py": b"pass\n", "cpp/main.cpp": b"int main;\n"}
    listed = sums({path: Digest.of(content) for path, content in files.items()})
    return Contents("tiny:fp32", {**files, "SHA256SUMS": listed}, attached, {"name": "tiny"})


class Place:
    """A registry or a layout, which each call opens anew.

    Attributes:
        root: What a reference to it starts with.
        pace: What its requests keep to.
    """

    def __init__(self, root: str, *, user: str = "") -> None:
        self.root, self.pauses, self.pace = root, list[float](), dict[str, float]()
        name, _, password = user.partition(":")
        self.credentials = Credentials(name, password, "--username") if user else Credentials()

    def reference(self, rest: str) -> Reference:
        return parse_reference(f"{self.root}{rest}")

    def opened(self, reference: Reference, *, make: bool) -> Repository:
        if reference.is_layout:
            return LayoutRepository(Path(reference.repository), make=make)
        access = RegistryAccess(plain_http=True, credentials=self.credentials)
        connection = Connection(reference.registry, access, self.pauses.append, Pace(**self.pace))
        return RemoteRepository(connection, reference.repository)

    def push(self, what: Contents, rest: str = ":1") -> Pushed:
        reference = self.reference(rest)
        repository = self.opened(reference, make=True)
        try:
            return push(what, reference, repository, QUIET)
        finally:
            repository.close()

    def pull(self, folder: Path, rest: str = ":1", key: Path | None = None) -> Pulled:
        reference = self.reference(rest)
        repository = self.opened(reference, make=False)
        try:
            return pull(reference, repository, folder, key=key, progress=QUIET)
        finally:
            repository.close()


@pytest.fixture
def start() -> Iterator[Callable[..., FakeRegistry]]:
    started: list[FakeRegistry] = []

    def begin(*, certificate: Path | None = None, **behaviour: object) -> FakeRegistry:
        started.append(FakeRegistry(certificate))
        for name, value in behaviour.items():
            setattr(started[-1].behaviour, name, value)
        return started[-1]

    yield begin
    for each in started:
        each.stop()


@pytest.fixture
def registry(start: Callable[..., FakeRegistry]) -> FakeRegistry:
    return start()


@pytest.fixture
def place(registry: FakeRegistry) -> Place:
    return Place(f"{registry.host}/team/tiny")


@pytest.fixture(params=["registry", "referrers API", "layout"])
def any_place(
    request: pytest.FixtureRequest, start: Callable[..., FakeRegistry], tmp_path: Path
) -> Place:
    if request.param == "layout":
        return Place(f"oci:{tmp_path}/layout")
    return Place(f"{start(referrers_api=request.param != 'registry').host}/team/tiny")


class Keys:
    """An Ed25519 pair in two files."""

    def __init__(self, folder: Path, name: str) -> None:
        key = Ed25519PrivateKey.generate()
        self.private, self.public = folder / f"{name}.pem", folder / f"{name}.pub"
        self.private.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        )
        self.public.write_bytes(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path, "own")


@pytest.fixture
def other_keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path, "other")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for 127.0.0.1 and localhost that no authority signed, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(tz=UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("certificate") / "cert.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(made.public_bytes(Encoding.PEM) + secret)
    return path


def tree(folder: Path) -> dict[str, str]:
    """Path -> sha256 of every file below a folder, hidden ones as well."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
