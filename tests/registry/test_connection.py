"""Authentication, redirects and TLS: who is sent a password, and what is said where it fails."""

from functools import partial

import pytest

from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.registry.access import RegistryAccess
from onnxbuild.registry.connection import Connection, HttpRequest
from onnxbuild.registry.credentials import Credentials
from onnxbuild.registry.refusals import RegistryUnavailableError
from tests.registry.conftest import Place, contents

USER = "ann:pass:word"


@pytest.fixture(params=[False, True], ids=["basic", "token"])
def guarded(request, start):
    return start(user=USER, tokens=request.param)


def sent_to(registry):
    """The Authorization headers that a registry has got."""
    return [headers.get("Authorization") for _, _, headers in registry.requests]


def test_a_registry_that_asks_for_a_password_gets_it(guarded, tmp_path):
    place = Place(f"{guarded.host}/team/tiny", user=USER)
    place.push(contents())
    assert place.pull(tmp_path / "model").files == 4


def test_a_password_is_sent_only_once_it_is_asked_for(guarded, start, tmp_path):
    Place(f"{guarded.host}/team/tiny", user=USER).push(contents())
    assert sent_to(guarded)[0] is None
    open_registry = start()
    Place(f"{open_registry.host}/team/tiny", user=USER).push(contents())
    assert set(sent_to(open_registry)) == {None}


@pytest.mark.parametrize("user", ["ann:wrong", "", "bob:pass:word"])
def test_wrong_credentials_are_said_and_leave_nothing(guarded, user):
    with pytest.raises(UsageError) as caught:
        Place(f"{guarded.host}/team/tiny", user=user).push(contents())
    text = str(caught.value)
    assert caught.value.exit_code == 2
    assert ("refuses the user" if user else "none is known") in text
    assert "wrong:" not in text
    assert "pass:word" not in text
    assert guarded.blobs == {}
    assert guarded.manifests == {}


def test_a_token_that_runs_out_is_asked_for_again(start):
    registry = start(user=USER, tokens=True)
    access = RegistryAccess(plain_http=True, credentials=Credentials("ann", "pass:word"))
    connection = Connection(registry.host, access)
    connection._authorization = "Bearer an-old-one"
    with connection.exchange(HttpRequest("GET", "/v2/a/manifests/b", (404,))) as answer:
        assert answer.status == 404
    connection.close()


def test_a_redirect_to_another_host_carries_no_password(start, tmp_path):
    other = start()
    registry = start(user=USER)
    place = Place(f"{registry.host}/team/tiny", user=USER)
    place.push(contents())
    other.blobs.update(registry.blobs)
    registry.behaviour.blobs_at = f"http://{other.host}"
    place.pull(tmp_path / "model")
    assert len(other.requests) == 4
    assert set(sent_to(other)) == {None}


def test_a_redirect_in_circles_ends(start, tmp_path):
    registry = start()
    place = Place(f"{registry.host}/team/tiny")
    place.push(contents())
    registry.behaviour.blobs_at = f"http://{registry.host}"
    with pytest.raises(BuildError, match="in circles"):
        place.pull(tmp_path / "model")


def test_a_redirect_to_what_is_no_host_is_said(registry):
    registry.behaviour.blobs_at = "http://a b"
    place = Place(f"{registry.host}/team/tiny")
    place.push(contents())
    connection = Connection(registry.host, RegistryAccess(plain_http=True))
    path = f"/v2/team/tiny/blobs/{next(digest for _, digest in registry.blobs)}"
    with (
        pytest.raises(BuildError, match="is no URL"),
        connection.exchange(HttpRequest("GET", path, (404,))),
    ):
        pass
    connection.close()


def test_a_chunk_of_negative_length_is_an_answer_that_broke_off(registry, tmp_path):
    place = Place(f"{registry.host}/team/tiny")
    place.push(contents())
    answer = b"HTTP/1.1 %d X\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nxxxxx"
    for part in ("/manifests/", "/blobs/"):
        registry.behaviour.raw_answers = {part: partial(iter, [answer % 200])}
        with pytest.raises(RegistryUnavailableError, match="broke off"):
            place.pull(tmp_path / "model")
    registry.behaviour.raw_answers = {"/manifests/": partial(iter, [answer % 400])}
    with pytest.raises(BuildError, match="HTTP status 400"):
        place.pull(tmp_path / "model")


def test_a_token_service_that_is_busy_is_asked_again(start):
    registry = start(user=USER, tokens=True)
    registry.behaviour.statuses = {("GET", "/token"): [503, 429, 500]}
    place = Place(f"{registry.host}/team/tiny", user=USER)
    place.push(contents())
    assert len(place.pauses) == 3
    registry.behaviour.statuses = {("GET", "/token"): [503] * 9}
    with pytest.raises(RegistryUnavailableError, match="503") as caught:
        place.push(contents())
    assert "later" in caught.value.fix


def test_a_registry_that_refuses_to_be_read_is_not_called_read_only(registry, tmp_path):
    registry.behaviour.statuses = {("GET", "/manifests/"): [405]}
    with pytest.raises(BuildError, match="HTTP status 405"):
        Place(f"{registry.host}/team/tiny").pull(tmp_path / "model")


def test_a_redirect_out_of_tls_is_refused(start, certificate):
    registry = start(certificate=certificate, blobs_at="http://127.0.0.1:1")
    registry.blobs["a", "sha256:b"] = b"content"
    connection = Connection(registry.host, RegistryAccess(ca_file=certificate))
    with (
        pytest.raises(BuildError, match="without TLS"),
        connection.exchange(HttpRequest("GET", "/v2/a/blobs/sha256:b", (404,))),
    ):
        pass
    connection.close()


def test_a_token_service_without_tls_gets_no_password(start, certificate):
    registry = start(certificate=certificate, user=USER, tokens=True)  # its realm is http://
    access = RegistryAccess(ca_file=certificate, credentials=Credentials("ann", "pass:word"))
    connection = Connection(registry.host, access)
    with (
        pytest.raises(BuildError, match="no TLS"),
        connection.exchange(HttpRequest("GET", "/v2/a/manifests/b", (404,))),
    ):
        pass
    connection.close()
    assert set(sent_to(registry)) == {None}


def test_tls_is_checked(start, certificate):
    registry = start(certificate=certificate)
    pauses = []
    known, unknown = (
        Connection(registry.host, RegistryAccess(ca_file=each), pauses.append)
        for each in (certificate, None)
    )
    with known.exchange(HttpRequest("GET", "/v2/a/manifests/b", (404,))) as answer:
        assert answer.status == 404
    with pytest.raises(BuildError, match="certificate is not trusted") as caught:
        unknown.retried(lambda: unknown.exchange(HttpRequest("GET", "/v2/", (404,))).__enter__())
    assert "--ca-file" in caught.value.fix
    assert pauses == []  # it does not pass
    known.close()


def test_a_registry_without_tls_gets_another_error_than_one_that_fails(registry):
    connection = Connection(registry.host, RegistryAccess())
    with (
        pytest.raises(BuildError, match="no TLS connection") as caught,
        connection.exchange(HttpRequest("GET", "/v2/", (404,))),
    ):
        pass
    assert "--plain-http" in caught.value.fix


def test_a_ca_file_that_holds_none_is_named(tmp_path):
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(UsageError, match="holds no certificate"):
        Connection("localhost:1", RegistryAccess(ca_file=tmp_path / "ca.pem"))


def test_a_host_that_is_none_is_said():
    connection = Connection(
        "no-such-host.invalid", RegistryAccess(plain_http=True), pause=lambda _: None
    )
    with (
        pytest.raises(BuildError, match=r"no such host|can't be reached"),
        connection.exchange(HttpRequest("GET", "/", (404,))),
    ):
        pass


def test_a_wait_that_the_registry_asks_for_is_kept_to_unless_it_is_long(registry, place, tmp_path):
    place.push(contents())
    registry.behaviour.statuses = {("GET", "/manifests/"): [503, 429]}
    registry.behaviour.retry_after = "3"
    place.pull(tmp_path / "a")
    assert place.pauses == [3.0, 3.0]
    for asked, words in (("99999", "it asks to wait 99999 s"), ("9" * 5000, "HTTP status 503")):
        place.pauses.clear()
        registry.behaviour.statuses = {("GET", "/manifests/"): [503] * 9}
        registry.behaviour.retry_after = asked
        with pytest.raises(RegistryUnavailableError, match=words) as caught:
            place.pull(tmp_path / "b")
        assert "later" in caught.value.fix
        assert sum(place.pauses) < 4


def test_a_registry_that_always_asks_to_wait_a_little_is_given_up(registry, place, tmp_path):
    place.push(contents({f"{number}.bin": bytes([number]) for number in range(9)}))
    registry.behaviour.retry_after = "60"
    registry.behaviour.statuses = {
        ("GET", f"/blobs/{digest}"): [503, 503, 503] for _, digest in registry.blobs
    }
    with pytest.raises(RegistryUnavailableError, match="it asks to wait 60 s"):
        place.pull(tmp_path / "model")
    assert sum(place.pauses) == 600


def test_what_a_registry_says_is_printed_as_text():
    from onnxbuild.registry.refusals import refusal

    found = refusal("h", 400, b'{"errors":[{"code":"X","message":"\\u001b[2Jhello"}]}')
    assert "\x1b" not in str(found)
    assert "hello" in str(found)
    assert len(str(refusal("h", 400, b"x" * 10_000))) < 400
    assert str(refusal("h", 400, b"<html>...")) == "h: it answered with HTTP status 400"
