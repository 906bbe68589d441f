"""User names and passwords: docker's config.json, and the command line."""

import base64
import json

import pytest

from onnxbuild.core.errors import UsageError
from onnxbuild.registry.credentials import find_credentials

AUTH = base64.b64encode(b"ann:pass:word").decode()


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))

    def write(content):
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / "config.json").write_text(text)

    return write


@pytest.mark.parametrize(
    ("key", "registry"),
    [
        ("localhost:5000", "localhost:5000"),
        ("https://ghcr.io", "ghcr.io"),
        ("http://ghcr.io/v2/", "ghcr.io"),
        ("https://index.docker.io/v1/", "docker.io"),
    ],
)
def test_docker_logins_are_used(config, key, registry):
    config({"auths": {"another": {}, key: {"auth": AUTH}}, "credsStore": "desktop"})
    found = find_credentials(registry, None, None)
    assert (found.username, found.password) == ("ann", "pass:word")
    assert found.basic == f"Basic {AUTH}"
    assert "pass" not in repr(found)


def test_nothing_is_taken_from_another_registry(config):
    config({"auths": {"ghcr.io": {"auth": AUTH}, "localhost": {"auth": AUTH}}})
    assert find_credentials("localhost:5000", None, None).username == ""
    assert find_credentials("evil-ghcr.io", None, None).username == ""


def test_the_command_line_comes_first(config):
    config({"auths": {"ghcr.io": {"auth": AUTH}}})
    found = find_credentials("ghcr.io", "bob", "secret")
    assert (found.username, found.password) == ("bob", "secret")


@pytest.mark.parametrize(
    "content",
    [{"credsStore": "desktop"}, {"credHelpers": {"ghcr.io": "desktop"}}, {"auths": {"ghcr.io": {}}, "credsStore": "desktop"}],
)  # fmt: skip
def test_helpers_are_not_run_and_that_is_said(config, content):
    config(content)
    found = find_credentials("ghcr.io", None, None)
    assert (found.username, "'desktop', which onnxbuild does not run" in found.elsewhere) == (
        "",
        True,
    )


def test_a_token_of_docker_is_not_used_and_that_is_said(config):
    user = base64.b64encode(b"00000000-0000-0000-0000-000000000000:").decode()
    for entry in ({"identitytoken": "t"}, {"auth": user, "identitytoken": "t"}):
        config({"auths": {"ghcr.io": entry}})  # the second as `az acr login` writes it
        found = find_credentials("ghcr.io", None, None)
        assert (found.username, "a token for it" in found.elsewhere) == ("", True)


@pytest.mark.parametrize(
    "content",
    ["{", "[]", json.dumps({"auths": {"ghcr.io": {"auth": "?"}}}), json.dumps({"auths": {"ghcr.io": {"auth": "YQ=="}}})],
)  # fmt: skip
def test_a_config_that_is_none_is_named(config, content):
    config(content)
    with pytest.raises(UsageError) as caught:
        find_credentials("ghcr.io", None, None)
    assert caught.value.where.endswith("config.json")


@pytest.mark.parametrize(
    "content", [{}, {"auths": None}, {"auths": []}, {"auths": {"ghcr.io": "x"}}]
)
def test_a_config_that_says_nothing_is_as_none(config, content):
    config(content)
    assert find_credentials("ghcr.io", None, None).username == ""


def test_half_of_both_is_refused():
    with pytest.raises(UsageError, match="is empty"):
        find_credentials("ghcr.io", "bob", "")
    with pytest.raises(UsageError, match="needs --username"):
        find_credentials("ghcr.io", None, "secret")
    with pytest.raises(UsageError, match="--username needs --password-stdin"):
        find_credentials("ghcr.io", "bob", None)
