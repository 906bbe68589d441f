"""Measure a remote store, and remove from it what is old."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from onnxbuild.adapters.clock import wall_ns
from onnxbuild.adapters.store.pins import pins
from onnxbuild.building.api import plan
from onnxbuild.building.remote import RemoteAccess, needed_remote
from onnxbuild.building.request import Request
from onnxbuild.core.errors import StoreError, UsageError
from onnxbuild.core.step import StepKind

if TYPE_CHECKING:
    from onnxbuild.adapters.remote.client import Client
    from onnxbuild.adapters.remote.garbage import CollectedObjects, RemoteContents

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RemoteStats:
    """Counts of what a remote store holds.

    Attributes:
        url: Its URL.
        steps: Steps of the project's recipes whose results are known.
        there: Of those, how many the remote store holds, signed by a builder that is trusted.
        contents: All that it holds, of any project; None where the server lists nothing.
    """

    url: str
    steps: int
    there: int
    contents: RemoteContents | None


def remote_stats(request: Request, catalog: Mapping[str, StepKind]) -> RemoteStats:
    """Look at what the remote store holds of a request, and of all projects that use it.

    Args:
        catalog: Step kinds by name.

    Raises:
        UsageError: No remote is named.
        StoreError: The server gives no answer.
    """
    from onnxbuild.adapters.remote.garbage import contents

    access = needed_remote(request)
    keys = _keys(request, catalog)

    def look(client: Client) -> RemoteStats:
        there = client.held(access.record_names(keys))
        held = sum(not there.isdisjoint(access.record_names([key])) for key in keys)
        listed = contents(client) if _can_list(access) else None
        return RemoteStats(access.url, len(keys), held, listed)

    return _asked(access, look)


def collect_remote(
    request: Request,
    catalog: Mapping[str, StepKind],
    *,
    keep_s: float,
    grace_s: float,
    max_bytes: int | None,
    dry_run: bool,
) -> tuple[str, CollectedObjects]:
    """Remove from the remote store what is old; the results of a request stay, and those that are pinned here.

    Args:
        catalog: Step kinds by name.
        keep_s: How long others stay after their upload.
        grace_s: Nothing younger is removed.
        max_bytes: Then drop the oldest records until all blobs fit in this size; None for no limit.
        dry_run: Count what would be removed, and remove nothing.

    Returns: (the remote's URL, what went).

    Raises:
        UsageError: No remote is named, or its server lists nothing.
        StoreError: The server refuses something, or what a record needs can't be read.
    """
    from onnxbuild.adapters.remote.garbage import collect_objects

    access = needed_remote(request)
    if not _can_list(access):
        raise UsageError(
            f"{access.url} is a plain HTTP server, which lists nothing: what may go is not known",
            fix="remove old objects on the server: find FOLDER -type f -atime +60 -delete (docs/remote.md)",
        )
    keys = {*_keys(request, catalog)}.union(*pins(request.store_root).values())

    def collect(client: Client) -> CollectedObjects:
        return collect_objects(
            client, access.record_names(keys), now_s=wall_ns() / 1e9, keep_s=keep_s,
            grace_s=grace_s, max_bytes=max_bytes, dry_run=dry_run,
        )  # fmt: skip

    return access.url, _asked(access, collect)


def _keys(request: Request, catalog: Mapping[str, StepKind]) -> list[str]:
    """Return the keys of all results of a request that are here or on the remote."""
    planned = plan(request, catalog=catalog)
    return list(dict.fromkeys(each.result.key for each in planned if each.result is not None))


def _can_list(access: RemoteAccess) -> bool:
    return urlsplit(access.url).scheme not in ("http", "https")


def _asked(access: RemoteAccess, ask: Callable[[Client], T]) -> T:
    """Return what a remote store answers.

    Raises:
        StoreError: It does not.
    """
    from onnxbuild.adapters.remote.client import Client, RemoteError

    with closing(Client(access.objects)) as client:
        try:
            return ask(client)
        except RemoteError as error:
            raise StoreError(
                f"{access.url}: {error}",
                fix="see that the server is up, and that this machine's credentials may list and remove there",
            ) from error
