"""Read how a registry asks for authentication: WWW-Authenticate headers, and tokens."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from urllib3.util import parse_url

from onnxbuild.core.errors import BuildError
from onnxbuild.release_format.forms import read_json

_SCHEME = re.compile(r"\s*([A-Za-z]+)(?:\s+(.*))?", re.DOTALL)
_PARAMETER = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')


def challenges_in(headers: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """Return scheme (`basic`, `bearer`) -> parameters, from headers with one challenge each, as registries send them."""
    found: dict[str, Mapping[str, str]] = {}
    for match in filter(None, map(_SCHEME.match, headers)):
        parameters = {
            name.lower(): re.sub(r"\\(.)", r"\1", quoted) or plain
            for name, quoted, plain in _PARAMETER.findall(match[2] or "")
        }
        found.setdefault(match[1].lower(), parameters)
    return found


def token_url(parameters: Mapping[str, str]) -> str:
    """Return where a token for what was asked is given.

    Raises:
        BuildError: A Bearer challenge with these parameters names no place.
        HTTPError: The place is no URL.
    """
    realm = parameters.get("realm", "")
    place = parse_url(realm)
    if place.scheme not in ("http", "https"):
        raise BuildError("the registry names no token service")
    asked = [(key, parameters[key]) for key in ("service", "scope") if parameters.get(key)]
    return f"{realm}{'&' if place.query else '?'}{urlencode(asked)}"


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
