"""Write and read records: the result of an action, with a checksum; all of it is checked when it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from onnxbuild.adapters.disk.plain_files import parse_json
from onnxbuild.core.action import ActionResult
from onnxbuild.core.digest import canonical_json, tagged_sha256

_RECORD_FORMAT = 2  # increment when a record's form changes
_SEALED = b'{"checksum":"%b",' % (b"0" * 64)  # how a record starts, in canonical JSON


def seal(key: str, results: Iterable[ActionResult]) -> bytes:
    """A record's bytes.

    Args:
        key: Of all the results.
        results: The newest first.
    """
    body = {
        "format": _RECORD_FORMAT,
        "key": key,
        "traces": [result.to_json() for result in results],
    }
    body["checksum"] = tagged_sha256("record", body)
    return canonical_json(body)


def read_record(content: bytes, key: str) -> tuple[ActionResult, ...]:
    """The results in a record; none if another version of this program wrote it.

    Args:
        content: The file's bytes.
        key: What it must be the record of.

    Raises:
        ValueError, KeyError, TypeError: It is damaged, or forged in a way that no record can be.
    """
    start, checked = content[: len(_SEALED)], content[len(_SEALED) :]
    checksum = hashlib.sha256(b'["record",{' + checked + b"]").hexdigest()
    if start != _SEALED.replace(b"0" * 64, checksum.encode()):
        raise ValueError("the checksum does not match")
    body = parse_json(content)
    if body["key"] != key:
        raise ValueError("another key")
    if body["format"] != _RECORD_FORMAT:
        return ()  # sound, but of another version of this program
    results = tuple(ActionResult.from_json(each) for each in body["traces"])
    for result in results:
        if result.key != key:
            raise ValueError("another key")
        _check_texts(result)
    return results


def _check_texts(result: ActionResult) -> None:
    """Refuse what can be no path, no digest and no sentence.

    Raises:
        TypeError, ValueError: Some of it is not a text, or holds a NUL.
    """
    seen = result.observed
    texts: list[object] = [*result.outputs, *result.notes]
    for field in (seen.sources, seen.data, seen.distributions, seen.links, seen.existence):
        texts += [*field, *field.values()]
    for folder, listing in seen.listings.items():
        texts += [folder, *listing.names, *listing.found]
    for finding in (*result.findings, *([result.not_applicable] if result.not_applicable else ())):
        texts += [finding.what, finding.where, finding.fix]
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is not a text")
        if "\0" in text:
            raise ValueError(f"{text!r} holds a NUL")
    spent = result.expense
    if not all(
        isinstance(each, (int, float)) for each in (spent.wall_s, spent.cpu_s, spent.peak_bytes)
    ):
        raise TypeError("an expense is not a number")
