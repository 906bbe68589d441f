"""Garbage collection of a shared store: old records go, then the blobs that no record needs that stays."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from onnxbuild.adapters.remote.client import Client, StoredObject
from onnxbuild.adapters.remote.signed_records import RECORD_BYTES_MAX, RECORDS, blobs_of_signed
from onnxbuild.adapters.store.garbage import KeptRecord, longest_unused
from onnxbuild.core.errors import StoreError

BLOBS = "cas"


@dataclass(frozen=True, slots=True)
class RemoteContents:
    """The objects of a shared store: its records and its blobs."""

    records: tuple[StoredObject, ...]
    blobs: tuple[StoredObject, ...]


@dataclass(frozen=True, slots=True)
class CollectedObjects:
    """Counts and sizes of what was removed from a shared store, and of what is left.

    Attributes:
        bytes: Of the records and blobs that were removed.
        left_bytes: Of the blobs that stay.
        held_bytes: Of those, what is in use or younger than the grace: no limit drops it.
    """

    records: int
    blobs: int
    bytes: int
    left_records: int
    left_bytes: int
    held_bytes: int


def contents(client: Client) -> RemoteContents:
    """List a shared store; blobs first, since a record is uploaded after its blobs.

    Raises:
        RemoteError: The server does not list them.
    """
    blobs = client.objects(BLOBS)
    return RemoteContents(tuple(client.objects(RECORDS)), tuple(blobs))


def collect_objects(
    client: Client,
    in_use: Collection[str],
    *,
    now_s: float,
    keep_s: float,
    grace_s: float,
    max_bytes: int | None,
    dry_run: bool,
) -> CollectedObjects:
    """Remove old records, and the blobs that no record needs any more.

    Builds may go on meanwhile. One that uploads a record just before its blob is removed loses that blob: whoever
    wants it builds it again, and uploads it again.

    Args:
        in_use: Names of records that stay at any age.
        now_s: The time; seconds since 1970.
        keep_s: How long other records stay after their upload.
        grace_s: Nothing younger is removed.
        max_bytes: Then drop the oldest records until all blobs fit in this size; None for no limit.
        dry_run: Count what would be removed, and remove nothing.

    Raises:
        RemoteError: The server does not list, send or remove something.
        StoreError: What a record needs can't be read; nothing is removed.
    """
    held = contents(client)
    old_s, kept_since_s = now_s - grace_s, now_s - max(keep_s, grace_s)
    needs = _needs(client, held.records)
    staying = [
        KeptRecord(
            each.name,
            each.changed_s,
            each.name in in_use or each.changed_s >= old_s,
            needs[each.name],
        )
        for each in held.records
        if each.name in needs and (each.name in in_use or each.changed_s >= kept_since_s)
    ]
    sizes = {_sha256(each): each.size_bytes for each in held.blobs}
    young = {_sha256(each) for each in held.blobs if each.changed_s >= old_s}
    if max_bytes is not None:
        over = longest_unused(staying, sizes, young, max_bytes)
        staying = [record for record in staying if record not in over]
    names = {record.name for record in staying}
    dropped = [each for each in held.records if each.name in needs and each.name not in names]
    live = young.union(*(record.blobs for record in staying)) & sizes.keys()
    fixed = young.union(*(record.blobs for record in staying if record.is_held)) & sizes.keys()
    unused = [each for each in held.blobs if _sha256(each) not in live]
    if not dry_run:
        client.remove(each.name for each in dropped)
        new = [each for each in client.objects(RECORDS) if each not in held.records]
        wanted = frozenset[str]().union(*_needs(client, new).values())
        unused = [each for each in unused if _sha256(each) not in wanted]
        client.remove(each.name for each in unused)
    return CollectedObjects(
        records=len(dropped),
        blobs=len(unused),
        bytes=sum(each.size_bytes for each in (*dropped, *unused)),
        left_records=len(staying),
        left_bytes=sum(sizes[sha256] for sha256 in live),
        held_bytes=sum(sizes[sha256] for sha256 in fixed),
    )


def _sha256(blob: StoredObject) -> str:
    return blob.name.rpartition("/")[2]


def _needs(client: Client, records: Iterable[StoredObject]) -> dict[str, frozenset[str]]:
    """Return record -> SHA-256 of the blobs that it needs; records that are gone meanwhile are left out.

    Raises:
        RemoteError: One can't be read.
        StoreError: One is none of onnxbuild's, or of another version: what it needs is not known.
    """
    found = client.read_all((each.name for each in records), RECORD_BYTES_MAX)
    needs = {}
    for name, content in found.items():
        try:
            needs[name] = blobs_of_signed(name, content)
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"nothing was removed: {name} may need any blob, for it can't be read: {error}",
                where=name,
                fix="remove it if nothing needs it; if another program stores there, give onnxbuild a folder of its own",
            ) from error
    return needs
