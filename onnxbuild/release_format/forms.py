"""The forms in which a release writes what it says, and signs it: equal values give equal bytes."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import NotReproducibleError
from onnxbuild.lock.model import Lock
from onnxbuild.release_format.layout import NOT_SUMMED, PAYLOAD_TYPE

if TYPE_CHECKING:
    pass


def envelope_bytes(keyid: str, statement: bytes, signature: bytes) -> bytes:
    """A DSSE envelope around an in-toto statement.

    Source: https://github.com/secure-systems-lab/dsse/blob/master/envelope.md.
    """
    envelope = {
        "payload": base64.b64encode(statement).decode("ascii"),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": keyid, "sig": base64.b64encode(signature).decode("ascii")}],
    }
    return json.dumps(envelope, sort_keys=True, indent=2).encode("ascii") + b"\n"


def pre_authentication(kind: str, payload: bytes) -> bytes:
    """Return the bytes that a DSSE signature is made over (PAE).

    Source: DSSE protocol v1, PAE: "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body.
    """
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


_ODD = (
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    RecursionError,
    ArithmeticError,
    FileNotFoundError,
    StopIteration,
)
"""Exceptions that reading a value of another form than expected may raise."""


def sums(files: Mapping[str, Digest]) -> bytes:
    """SHA256SUMS, as `sha256sum -c` reads it."""
    names = sorted(path for path in files if path not in NOT_SUMMED)
    return "".join(f"{files[path].sha256}  {path}\n" for path in names).encode()


def json_bytes(value: object) -> bytes:
    """Sorted, indented JSON.

    Raises:
        ValueError: A number in it is none.
    """
    text = json.dumps(value, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False)
    return f"{text}\n".encode(
        errors="backslashreplace"
    )  # a lone surrogate is \\udcff in JSON, too


def read_json(content: bytes) -> Any:
    """Parse JSON that says everything once.

    Raises:
        ValueError: It is no JSON, is nested deeper than anybody can follow, has a key twice, or a number that is
            infinite or none: any error is within a tolerance of 1e999.
    """
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_once,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it has a key twice")
    return found


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"it has the number {text}")
    return number


def resolved_bytes(lock: Lock) -> bytes:
    """Return what a recipe comes to, as sorted YAML."""
    import yaml

    text: str = yaml.safe_dump(
        dict(lock.resolved), sort_keys=True, allow_unicode=True, width=1 << 20
    )
    return text.encode()


def printable(text: str) -> str:
    """Without anything that would make a terminal do more than show it."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


@contextmanager
def following(what: str) -> Iterator[None]:
    """Read what somebody else wrote: where it can't be followed, it is no release.

    Args:
        what: Where it stands, for the message.

    Raises:
        NotReproducibleError: A value in it is not what a release has there.
    """
    try:
        yield
    except _ODD as error:
        raise NotReproducibleError(
            f"what it says can't be followed: {type(error).__name__}: {printable(str(error))}",
            where=what,
        ) from error
