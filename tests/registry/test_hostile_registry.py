"""A registry that means harm: a pull ends in time, takes bounded memory and disk, and gives no password away."""

import hashlib
import json
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from contextlib import contextmanager
from itertools import chain, repeat

import pytest

from onnxbuild.core.errors import BuildError, NotReproducibleError, StoreError, UsageError
from onnxbuild.onnxkit.oci.manifests import MANIFEST
from onnxbuild.registry.access import RegistryAccess
from onnxbuild.registry.connection import Connection, HttpRequest
from onnxbuild.registry.manifest import MANIFEST_MAX_BYTES
from onnxbuild.registry.refusals import RegistryUnavailableError
from onnxbuild.registry.transport import Pace
from tests.registry.conftest import WEIGHTS, Place, contents, tree

MODEL = hashlib.sha256(WEIGHTS).hexdigest()
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LINES = (b"X-A: " + b"b" * 1000 + b"\r\n") * 10
PACE = {"silence_s": 0.1, "upload_s": 0.1, "least_bytes_s": 1e5}
USER = "ann:secret"


@pytest.fixture
def pushed(registry, place):
    place.push(contents())
    place.pace = PACE
    return registry


def slowly(*parts):
    """Each part a moment after the one before."""
    for part in parts:
        yield part
        time.sleep(0.02)


def half_of_the_model():
    yield OK + b"Content-Length: %d\r\n\r\n" % len(WEIGHTS) + WEIGHTS[:5000]
    time.sleep(1)


# --- answers without an end --------------------------------------------------------------------------

ENDLESS = {
    "headers": lambda: chain([OK], repeat(LINES)),
    "one header": lambda: chain([OK, b"X-A: "], repeat(b"a" * 10_000)),
    "interim answers": lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 50),
    "headers of an interim answer": lambda: chain([b"HTTP/1.1 100 Continue\r\n"], repeat(LINES)),
    "body": lambda: chain([OK, b"\r\n"], repeat(b"x" * 65_536)),
    "chunks": lambda: chain([CHUNKED], repeat(b"8000\r\n" + b"x" * 32_768 + b"\r\n")),
    "chunk of length -1": lambda: chain([CHUNKED, b"-1\r\n"], repeat(b"x" * 65_536)),
    "chunk extensions": lambda: chain([CHUNKED], repeat(b"1;" + b"x" * 60_000 + b"\r\na\r\n")),
    "a chunk's length": lambda: chain([CHUNKED], repeat(b"0" * 65_536)),
    "trailers": lambda: chain([CHUNKED, b"0\r\n"], repeat(LINES)),
    "an error": lambda: chain([b"HTTP/1.1 418 X\r\n\r\n"], repeat(b"x" * 65_536)),
    "an error to try again": lambda: chain([b"HTTP/1.1 503 X\r\n\r\n"], repeat(b"x" * 65_536)),
}


@pytest.mark.parametrize("part", ["/manifests/1", "/referrers/", "/blobs/"])
@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_without_an_end_is_refused_and_takes_no_memory(
    pushed, place, tmp_path, what, part
):
    pushed.behaviour.raw_answers = {part: ENDLESS[what]}
    tracemalloc.start()
    try:
        with pytest.raises(BuildError):
            place.pull(tmp_path / "model")
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("what", ["a byte at a time", "interim answers", "half", "nothing"])
@pytest.mark.parametrize("part", ["/manifests/1", f"/blobs/sha256:{MODEL}"])
def test_an_answer_that_takes_its_time_is_given_up(pushed, place, tmp_path, what, part):
    whole = OK + b"Content-Length: 9000\r\n\r\n"
    pushed.behaviour.raw_answers = {
        part: {
            "a byte at a time": lambda: slowly(*(bytes([each]) for each in whole)),
            "interim answers": lambda: slowly(*[b"HTTP/1.1 100 Continue\r\n\r\n"] * 50),
            "half": lambda: slowly(whole + b"x" * 4000, *[b"x"] * 50),
            "nothing": lambda: slowly(*[b""] * 50),
        }[what]
    }
    start = time.monotonic()
    with pytest.raises(
        RegistryUnavailableError, match=r"did not answer for 0 s|too slow: fewer than"
    ):
        place.pull(tmp_path / "model")
    assert time.monotonic() - start < 3
    assert len(place.pauses) == 3


def test_a_server_that_is_stopped_midway_leaves_what_was_fetched_for_the_next_pull(
    pushed, place, tmp_path
):
    pushed.behaviour.raw_answers = {f"/blobs/sha256:{MODEL}": half_of_the_model}
    with pytest.raises(RegistryUnavailableError, match="too slow"):
        place.pull(tmp_path / "model")
    pushed.behaviour.raw_answers = {}
    assert place.pull(tmp_path / "model").fetched_bytes < sum(map(len, contents().files.values()))


def test_an_upload_that_nobody_takes_is_given_up(registry, place, tmp_path):
    place.pace = PACE
    registry.behaviour.stops_reading = True
    start = time.monotonic()
    with pytest.raises(RegistryUnavailableError):
        place.push(contents({"model.onnx": bytes(16 << 20)}))
    assert time.monotonic() - start < 5


def test_a_server_that_drips_forever_is_given_up_at_the_least_speed(pushed, place, tmp_path):
    """Each byte earns time, but no more than it took at that speed."""
    place.pace = {**PACE, "least_bytes_s": 20_000.0}
    head = OK + b"Content-Length: %d\r\n\r\n" % len(WEIGHTS)
    parts = [WEIGHTS[at : at + 100] for at in range(0, len(WEIGHTS), 100)]  # 5,000 bytes/s
    pushed.behaviour.raw_answers = {f"/blobs/sha256:{MODEL}": lambda: slowly(head, *parts)}
    with pytest.raises(RegistryUnavailableError, match="fewer than 20000 bytes/s"):
        place.pull(tmp_path / "model")


AT_A_LIMIT = {
    "10,000 paths of 32 parts": lambda _: [f"{'a/' * 31}{number}" for number in range(10_000)],
    "lists": lambda room: ["[]"] * (room // 3),
    "mappings in lists": lambda room: ['{"":{}}'] * (room // 8),
    "keys": lambda room: [f'"{number:x}":{{}}' for number in range(room // 11)],
}


@pytest.mark.slow
@pytest.mark.parametrize("what", AT_A_LIMIT)
def test_a_manifest_at_a_limit_takes_less_than_200_mb(pushed, tmp_path, what):
    """Of all memory of the process that pulls it, Python included."""
    empty = hashlib.sha256(b"").hexdigest()
    pushed.blobs["team/tiny", f"sha256:{empty}"] = b""
    parts = AT_A_LIMIT[what](MANIFEST_MAX_BYTES - 2000)
    manifest_of(pushed, dict.fromkeys(parts if "paths" in what else ["f"], (empty, 0)))
    content = pushed.manifests["team/tiny", "1"][1]
    if "paths" not in what:
        more = ",".join(parts)
        content = (
            content[:-1] + f',"x":{{{more}}}}}'.encode()
            if what == "keys"
            else content[:-1] + f',"x":[{more}]}}'.encode()
        )
        assert MANIFEST_MAX_BYTES * 0.9 < len(content) <= MANIFEST_MAX_BYTES
    pushed.manifests["team/tiny", "1"] = (MANIFEST, content)
    code = (
        "import sys\nfrom onnxbuild.cli.main import run_command\n"
        "code = run_command(['pull', *sys.argv[1:]])\n"
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0], file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, f"{pushed.host}/team/tiny:1", "-o", tmp_path / "out"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split()[-1]) < 200e6 / 1024


# --- interrupts --------------------------------------------------------------------------------------


@contextmanager
def interrupted(after_s):
    """Ctrl-C after a while; it has to end what runs within a second."""
    was = signal.signal(signal.SIGALRM, signal.default_int_handler)
    start = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
        assert time.monotonic() - start < after_s + 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, was)


@pytest.mark.parametrize("part", ["/manifests/1", "/referrers/", f"/blobs/sha256:{MODEL}"])
@pytest.mark.parametrize("state", ["no answer", "drips", "half"])
def test_an_interrupt_ends_a_pull_at_once_and_leaves_nothing(pushed, place, tmp_path, part, state):
    place.pace = {}
    pushed.behaviour.raw_answers = {
        part: {
            "no answer": lambda: slowly(*[b""] * 100),
            "drips": lambda: slowly(OK + b"Content-Length: 99\r\n\r\n", *[b"x"] * 99),
            "half": half_of_the_model,
        }[state]
    }
    with interrupted(0.2):
        place.pull(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_ends_an_upload_at_once(registry, place):
    registry.behaviour.stops_reading = True
    with interrupted(0.3):
        place.push(contents({"model.onnx": bytes(16 << 20)}))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_server_that_never_says_hello_is_given_up_and_an_interrupt_ends_the_wait():
    """An interrupted handshake leaves its socket to the garbage collector, which warns: Python's own way."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = f"127.0.0.1:{server.getsockname()[1]}"
        quick, patient = (
            Connection(host, RegistryAccess(), pace=pace) for pace in (Pace(silence_s=0.1), Pace())
        )
        with pytest.raises(RegistryUnavailableError, match="did not answer in time"):
            quick.exchange(HttpRequest("GET", "/", ())).__enter__()
        with interrupted(0.2):
            patient.exchange(HttpRequest("GET", "/", ())).__enter__()


def test_an_interrupt_ends_the_look_up_of_a_name_at_once(tmp_path, monkeypatch):
    """The C library's look-up does not return on a signal: neither does this one."""

    def look_up(*_, **__):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(2)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        raise OSError

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    with interrupted(0.2):
        Place("localhost:1/team/tiny").pull(tmp_path / "model")
    place = Place("localhost:1/team/tiny")
    place.pace = PACE
    with pytest.raises(RegistryUnavailableError, match="did not answer in time"):
        place.pull(tmp_path / "model")


# --- disks -------------------------------------------------------------------------------------------


def manifest_of(registry, files):
    """The manifest of a pushed artifact, with other layers: path -> (sha256, size)."""
    value = json.loads(registry.manifests["team/tiny", "1"][1])
    first = value["layers"][0]
    value["layers"] = [
        {
            **first,
            "digest": f"sha256:{sha256}",
            "size": size,
            "annotations": {"org.cncf.model.filepath": path},
        }
        for path, (sha256, size) in files.items()
    ]
    registry.manifests["team/tiny", "1"] = (MANIFEST, json.dumps(value).encode())


def test_disk_space_is_counted_by_copies_before_anything_is_fetched(pushed, place, tmp_path):
    manifest_of(pushed, {f"{number}.bin": (MODEL, 1 << 34) for number in range(9000)})
    with pytest.raises(BuildError, match=r"it needs 1\d{5}\.0 GiB") as caught:
        place.pull(tmp_path / "model")
    assert caught.value.fix == "free some space, or choose another -o FOLDER"
    assert not any("/blobs/" in path for method, path, _ in pushed.requests if method == "GET")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_left_as_it_was(registry, place, tmp_path):
    registry.behaviour.referrers_api = True
    place.push(contents({"a.bin": b"small", "model.onnx": bytes(9 << 20)}))
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, was[1]))
    try:
        with pytest.raises(StoreError, match="can't write"):
            place.pull(tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_pull_has_left_is_used_or_removed(pushed, place, tmp_path):
    left = tmp_path / ".model.pull"
    (left / "blobs").mkdir(parents=True)
    (left / "tree/cpp").mkdir(parents=True)
    (left / "tree/cpp/half").write_bytes(b"x")
    (left / "lock").write_bytes(b"")
    (left / "blob").write_bytes(WEIGHTS[:100])
    (left / "blobs" / MODEL).write_bytes(WEIGHTS)
    place.pace = {}
    all_bytes = sum(map(len, contents().files.values()))
    assert place.pull(tmp_path / "model").fetched_bytes == all_bytes - len(WEIGHTS)
    assert [each.name for each in tmp_path.iterdir()] == ["model"]
    assert len(tree(tmp_path / "model")) == 4


def test_a_hidden_folder_that_is_a_link_is_not_followed(pushed, place, tmp_path):
    """A repository that was cloned may have one."""
    for name in ("blobs", "tree"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / "file").write_bytes(b"")
    before = tree(tmp_path / "mine")
    (tmp_path / ".a.pull").symlink_to("mine")
    with pytest.raises(UsageError, match="is a link"):
        place.pull(tmp_path / "a")
    (tmp_path / ".b.pull").mkdir()
    for name in ("blobs", "tree"):
        (tmp_path / ".b.pull" / name).symlink_to(f"../mine/{name}")
    place.pace = {}
    place.pull(tmp_path / "b")
    assert tree(tmp_path / "mine") == before
    assert len(tree(tmp_path / "b")) == 4


def test_two_pulls_into_one_folder_do_not_mix(pushed, place, tmp_path):
    first, ended = threading.Event(), threading.Event()

    def answer():
        first.set()
        ended.wait(10)
        yield OK + b"Content-Length: %d\r\n\r\n" % len(WEIGHTS) + WEIGHTS

    place.pace = {}
    pushed.behaviour.raw_answers = {f"/blobs/sha256:{MODEL}": answer}
    pulls = threading.Thread(target=place.pull, args=(tmp_path / "model",))
    pulls.start()
    assert first.wait(10)
    with pytest.raises(UsageError, match="another pull writes"):
        place.pull(tmp_path / "model")
    ended.set()
    pulls.join()
    assert len(tree(tmp_path / "model")) == 4
    assert not place.pull(tmp_path / "model").written
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


# --- what is where, and who is given a password -------------------------------------------------------


def test_a_tag_that_moves_between_requests_gives_one_of_both_artifacts(registry, place, tmp_path):
    old = place.push(contents())
    new = place.push(contents({"model.onnx": b"another"}), ":2")
    both = [registry.manifests["team/tiny", tag][1] for tag in "12"]

    def first_old_then_new(cut):
        answers = iter([both[0][: cut or None], both[1]])
        lengths = map(len, both)
        return lambda: [OK + b"Content-Length: %d\r\n\r\n" % next(lengths) + next(answers)]

    for cut, expected in ((0, old), (200, new)):  # the first answer is whole, or breaks off
        for target in ("1", f"sha256:{expected.sha256}"):
            registry.behaviour.raw_answers = {f"/manifests/{target}": first_old_then_new(cut)}
            rest = f":{target}" if target == "1" else f"@{target}"
            folder = tmp_path / f"{cut}{target[:4]}"
            assert place.pull(folder, rest).sha256 == expected.sha256
            assert len(tree(folder)) == (4 if expected is old else 2)
    target = f"sha256:{new.sha256}"
    registry.behaviour.raw_answers = {f"/manifests/{target}": first_old_then_new(0)}
    with pytest.raises(NotReproducibleError, match="the manifest was altered"):
        place.pull(tmp_path / "wrong", f"@{target}")


def secrets_of(registry):
    """What a server was sent that is secret."""
    return [
        headers["Authorization"]
        for _, _, headers in registry.requests
        if "Authorization" in headers
    ]


@pytest.mark.parametrize(
    ("realm", "words"),
    [
        ("http://localhost:{port}/token", "token service has no TLS"),
        ("http://[::1/token", "is no URL"),
        ("file:///etc/passwd", "names no token service"),
    ],
)
def test_a_token_service_of_another_host_without_tls_is_not_asked(start, tmp_path, realm, words):
    other, registry = start(user=USER), start()
    named = realm.format(port=other.host.partition(":")[2]).encode()
    asks = b'HTTP/1.1 401 X\r\nContent-Length: 0\r\nWWW-Authenticate: Bearer realm="%s",service="fake"\r\n\r\n'
    registry.behaviour.raw_answers = {"/v2/": lambda: [asks % named]}
    with pytest.raises(BuildError, match=words):
        Place(f"{registry.host}/team/tiny", user=USER).pull(tmp_path / "model")
    assert other.requests == []


@pytest.mark.parametrize("scheme", ["Basic", "Bearer"])
def test_a_place_that_the_registry_redirects_to_gets_no_password_even_if_it_asks(
    start, tmp_path, scheme
):
    other, registry = start(), start(user=USER)
    place = Place(f"{registry.host}/team/tiny", user=USER)
    place.push(contents())
    registry.behaviour.blobs_at = f"http://{other.host}"
    asks = f'HTTP/1.1 401 X\r\nContent-Length: 0\r\nWWW-Authenticate: {scheme} realm="http://{other.host}/token"\r\n\r\n'
    other.behaviour.raw_answers = {"/": lambda: [asks.encode()]}
    with pytest.raises(UsageError, match="refuses the user"):
        place.pull(tmp_path / "model")
    assert secrets_of(other) == []


@pytest.mark.parametrize(
    "place_named",
    ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1:1/_x", "unix:///run/docker.sock", "http://127.0.0.1:99999/", "http://[::1/", "data:,x", ""],
)  # fmt: skip
def test_a_redirect_to_what_is_no_server_is_refused(pushed, place, tmp_path, place_named):
    answer = f"HTTP/1.1 307 X\r\nContent-Length: 0\r\nLocation: {place_named}\r\n\r\n".encode()
    pushed.behaviour.raw_answers = {"/blobs/": lambda: [answer]}
    with pytest.raises(BuildError, match=r"without TLS|is no URL|does not say where"):
        place.pull(tmp_path / "model")
    assert place.pauses == []
