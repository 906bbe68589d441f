"""Read how a registry asks for authentication: WWW-Authenticate headers, and tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from onnxbuild.core.errors import BuildError
from onnxbuild.release_format.forms import read_json

_SCHEME = re.compile(r"\s*([A-Za-z]+)(?:\s+(.*))?", re.DOTALL)
_PARAMETER = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')


@dataclass(frozen=True, slots=True)
class Challenge:
    """One way to authenticate.

    Attributes:
        scheme: `basic` or `bearer`, lower-case.
        parameters: `realm`, `service`, `scope`.
    """

    scheme: str
    parameters: Mapping[str, str]

    def token_url(self) -> str:
        """Return where a token for what was asked is given.

        Raises:
            BuildError: The challenge names no place.
        """
        realm = self.parameters.get("realm", "")
        if urlsplit(realm).scheme not in ("http", "https"):
            raise BuildError("the registry names no token service")
        asked = [
            (key, self.parameters[key]) for key in ("service", "scope") if self.parameters.get(key)
        ]
        return f"{realm}{'&' if urlsplit(realm).query else '?'}{urlencode(asked)}"


def challenges_in(headers: Sequence[str]) -> tuple[Challenge, ...]:
    """Return the challenges of WWW-Authenticate headers, one a header, as registries send them."""
    found = []
    for header in headers:
        match = _SCHEME.match(header)
        if match:
            parameters = {
                name.lower(): re.sub(r"\\(.)", r"\1", quoted) or plain
                for name, quoted, plain in _PARAMETER.findall(match[2] or "")
            }
            found.append(Challenge(match[1].lower(), parameters))
    return tuple(found)


def read_token(content: bytes, registry: str) -> str:
    """Return the token that a token service gave.

    Raises:
        BuildError: It gave none.
    """
    try:
        value = read_json(content)
    except ValueError:
        value = None
    given = value if isinstance(value, dict) else {}
    token = given.get("token") or given.get("access_token")
    if not isinstance(token, str) or not (token.isascii() and token.isprintable()):
        raise BuildError("the registry's token service gave no token", where=registry)
    return token
