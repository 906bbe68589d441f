"""User names and passwords of registries: from the command line, else from docker's config.json."""

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.adapters import locate
from onnxbuild.core.errors import UsageError

CONFIG_VARIABLE = "DOCKER_CONFIG"
_DOCKER_HUB = ("docker.io", "index.docker.io", "registry-1.docker.io")
_NOT_SUPPORTED = ("identitytoken", "registrytoken")


@dataclass(frozen=True, slots=True)
class Credentials:
    """User name and password for a registry.

    Attributes:
        username: Empty if nothing is known: requests are anonymous.
        password: Never shown.
        source: Where both are from, for messages.
        elsewhere: Why what config.json says of this registry is of no use; empty if it says nothing, or is used.
    """

    username: str = ""
    password: str = field(default="", repr=False)
    source: str = ""
    elsewhere: str = ""

    @property
    def basic(self) -> str:
        """The value of an Authorization header."""
        pair = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode('ascii')}"


ANONYMOUS = Credentials()


def find_credentials(registry: str, username: str | None, password: str | None) -> Credentials:
    """Return the credentials for a registry.

    Args:
        username: `--username`.
        password: What came in by `--password-stdin`.

    Raises:
        UsageError: Only one of both is given, or config.json can't be read.
    """
    if username and password:
        return Credentials(username, password, "--username and --password-stdin")
    if username or password is not None:
        what = "the password that came in on standard input is empty"
        if password is None or not username:
            given, other = ("--username", "--password-stdin")[:: 1 if username else -1]
            what = f"{given} needs {other}"
        raise UsageError(
            what, fix='printf %s "$PASSWORD" | onnxbuild ... --username NAME --password-stdin'
        )
    return _configured(registry)


def config_file() -> Path:
    """Return the path of docker's config.json: in $DOCKER_CONFIG, else in ~/.docker."""
    variables = locate.environment()
    folder = variables.get(CONFIG_VARIABLE) or os.path.expanduser("~/.docker")  # noqa: PTH111 - no home is no error
    return Path(folder) / "config.json"


def _configured(registry: str) -> Credentials:
    path = config_file()
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return ANONYMOUS
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no JSON"
        raise UsageError(
            f"can't read docker's configuration: {why}",
            where=str(path),
            fix="repair it, or set DOCKER_CONFIG to another folder",
        ) from error
    if not isinstance(content, dict):
        raise UsageError("docker's configuration is no mapping", where=str(path))
    names = _DOCKER_HUB if registry in _DOCKER_HUB else (registry,)
    entry = next((e for key, e in _section(content, "auths") if _host(key) in names and e), None)
    if isinstance(entry, dict):
        if any(entry.get(key) for key in _NOT_SUPPORTED):  # its `auth` has no password then
            return Credentials(
                elsewhere=f"{path} has a token for it, which onnxbuild does not use"
            )
        pair = _pair(entry, path)
        if pair is not None:
            return Credentials(*pair, source=str(path))
    helpers = [each for key, each in _section(content, "credHelpers") if _host(key) in names]
    helper = next(iter(helpers), content.get("credsStore"))
    if helper:
        why = f"{path} keeps passwords in the helper '{helper}', which onnxbuild does not run"
        return Credentials(elsewhere=why)
    return ANONYMOUS


def _section(content: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    found = content.get(key)
    return list(found.items()) if isinstance(found, dict) else []


def _host(key: str) -> str:
    """`https://index.docker.io/v1/` -> `index.docker.io`."""
    return key.rpartition("://")[2].partition("/")[0].lower()


def _pair(entry: Mapping[str, Any], path: Path) -> tuple[str, str] | None:
    """(user name, password) of an entry of `auths`; None if it has none."""
    username, password = entry.get("username"), entry.get("password")
    if isinstance(username, str) and isinstance(password, str) and username:
        return username, password
    if not entry.get("auth"):
        return None
    try:
        text = base64.b64decode(str(entry["auth"]), validate=True).decode("utf-8")
    except ValueError:
        text = ""
    username, colon, password = text.partition(":")
    if not colon:
        raise UsageError(
            "an 'auth' in docker's configuration is no user name and password in base64",
            where=str(path),
            fix="docker login REGISTRY",
        )
    return username, password
