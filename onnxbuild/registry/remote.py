"""A repository of a registry: the distribution protocol.

Source: https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md.
"""

import re
from collections.abc import Callable, Sequence
from urllib.parse import quote, urlencode, urljoin, urlsplit

from urllib3 import BaseHTTPResponse
from urllib3.util import parse_url

from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, NotReproducibleError
from onnxbuild.onnxkit.oci.manifests import INDEX, MANIFEST, SHA256, Descriptor
from onnxbuild.registry.connection import Connection, HttpRequest
from onnxbuild.registry.manifest import MANIFEST_MAX_BYTES, add_to_index, read_index
from onnxbuild.registry.refusals import RegistryUnavailableError
from onnxbuild.registry.repository import BlobFile, BlobSource, Report, altered_manifest
from onnxbuild.registry.transport import BLOCK_BYTES, read_body
from onnxbuild.release_format.forms import printable

_BYTES = "application/octet-stream"
_ACCEPT = {"Accept": f"{MANIFEST}, {INDEX}"}
_OK, _CREATED, _ACCEPTED, _PARTIAL = 200, 201, 202, 206
_NOT_FOUND = (404, 410)
_FOUND_OR_NOT = (_OK, *_NOT_FOUND)
_NO_API = (400, 405, 501)
"""Further statuses of registries without a referrers API: they take its address for something else."""
_PAGES_MAX, _LIST_MAX_BYTES = 100, 2 * MANIFEST_MAX_BYTES
"""Most pages and bytes of a list of referrers that are read; the last page may exceed the latter."""
_NEXT = re.compile(r"<([^>]*)>\s*;[^,]*\brel=\"?next\"?", re.IGNORECASE)
_UPDATES_MAX = 4


class RemoteRepository:
    """One repository.

    Args:
        mount_from: Another repository of it, whose blobs need not be sent again; empty for none.
    """

    def __init__(self, connection: Connection, name: str, mount_from: str = "") -> None:
        self._connection, self._mount_from = connection, mount_from
        self._root = f"/v2/{name}"

    def close(self) -> None:
        """Close its connections."""
        self._connection.close()

    # --- blobs ---------------------------------------------------------------------------------------

    def has_blob(self, digest: Digest) -> bool:
        """Return whether it has a blob, with the right size."""

        def look() -> bool:
            request = HttpRequest("HEAD", self._blob(digest), _FOUND_OR_NOT)
            with self._connection.exchange(request) as answer:
                if answer.status in _NOT_FOUND:
                    return False
                return answer.headers.get("Content-Length", "") in ("", str(digest.size_bytes))

        return self._connection.retried(look)

    def put_blob(self, digest: Digest, opened: Callable[[], BlobSource], report: Report) -> bool:
        """Store a blob in one request, from its start again after a break; return whether it was sent.

        Raises:
            BuildError: The registry refuses it, can't be reached, or has it not although it said so.
        """
        is_sent = self._connection.retried(lambda: self._put_blob(digest, opened, report))
        if not self.has_blob(digest):
            raise BuildError(f"the registry took the blob sha256:{digest.sha256} and has it not")
        return is_sent

    def _put_blob(self, digest: Digest, opened: Callable[[], BlobSource], report: Report) -> bool:
        name = f"{SHA256}{digest.sha256}"
        start = f"{self._root}/blobs/uploads/"
        if self._mount_from:
            start += f"?{urlencode({'mount': name, 'from': self._mount_from})}"
        request = HttpRequest("POST", start, (_CREATED, _ACCEPTED), body=b"")
        with self._connection.exchange(request) as answer:
            if answer.status == _CREATED:
                return False
            place = self._connection.location(answer)
        url = f"{place}{'&' if urlsplit(place).query else '?'}{urlencode({'digest': name})}"
        headers = {"Content-Type": _BYTES, "Content-Length": str(digest.size_bytes)}
        with self._connection.exchange(
            HttpRequest("PUT", url, (_CREATED,), headers, opened, report)
        ):
            return True

    def save_blob(self, digest: Digest, file: BlobFile, report: Report) -> None:
        """Write a blob to a file; a break is followed by a request for the rest."""
        self._connection.retried(lambda: self._save_blob(digest, file, report))

    def _save_blob(self, digest: Digest, file: BlobFile, report: Report) -> None:
        headers = {"Range": f"bytes={file.size_bytes}-"} if file.size_bytes else {}
        expected, limit_bytes = (_PARTIAL, *_FOUND_OR_NOT), digest.size_bytes
        request = HttpRequest(
            "GET", self._blob(digest), expected, headers, limit_bytes=limit_bytes
        )
        with self._connection.exchange(request) as answer:
            if answer.status in _NOT_FOUND:
                raise NotReproducibleError(f"the registry has no blob sha256:{digest.sha256}")
            part = answer.headers.get("Content-Range", "")
            goes_on = answer.status == _PARTIAL and part.startswith(f"bytes {file.size_bytes}-")
            if not goes_on:
                file.restart()
            if answer.status == _PARTIAL and not goes_on:
                raise RegistryUnavailableError("the registry sent another part of a blob")
            while block := answer.read1(BLOCK_BYTES):
                file.write(block)
                report(file.size_bytes)

    def _blob(self, digest: Digest) -> str:
        return f"{self._root}/blobs/{SHA256}{digest.sha256}"

    # --- manifests -----------------------------------------------------------------------------------

    def manifest(self, target: str) -> bytes | None:
        """Return the manifest of a tag, or of `sha256:...`; None if there is none.

        Raises:
            NotReproducibleError: It does not have the digest that the registry names with it.
        """
        url = f"{self._root}/manifests/{quote(target, safe=':')}"
        request = HttpRequest("GET", url, _FOUND_OR_NOT, _ACCEPT, limit_bytes=MANIFEST_MAX_BYTES)

        def fetch() -> bytes | None:
            with self._connection.exchange(request) as answer:
                if answer.status in _NOT_FOUND:
                    return None
                content = read_body(answer, MANIFEST_MAX_BYTES)
                named = answer.headers.get("Docker-Content-Digest", "")
                found = f"{SHA256}{Digest.of(content).sha256}"
                if named.startswith(SHA256) and named != found:
                    raise altered_manifest(printable(named.removeprefix(SHA256)), target)
                return content

        return self._connection.retried(fetch)

    def put_manifest(self, content: bytes, tag: str = "") -> None:
        """Store a manifest, and let a tag name it, if one is given."""
        self._put_manifest(content, tag, MANIFEST)

    def _put_manifest(self, content: bytes, tag: str, media_type: str) -> str:
        """Store a manifest or an index; return the subject that the registry says it has noted."""
        url = f"{self._root}/manifests/{tag or SHA256 + Digest.of(content).sha256}"
        request = HttpRequest("PUT", url, (_CREATED,), {"Content-Type": media_type}, content)

        def put() -> str:
            with self._connection.exchange(request) as answer:
                return answer.headers.get("OCI-Subject", "")

        return self._connection.retried(put)

    # --- referrers -----------------------------------------------------------------------------------

    def attach(self, content: bytes, descriptor: Descriptor, subject: str) -> None:
        """Store a manifest that refers to another.

        Where the registry has no referrers API, the tag `sha256-HEX` names an index of them. Somebody else may
        write that at the same time, so that it is read again afterwards.
        """
        if self._put_manifest(content, "", MANIFEST):
            return
        tag = f"sha256-{subject}"
        for _ in range(_UPDATES_MAX):
            listed = self.manifest(tag)
            known = () if listed is None else read_index(listed, f"the tag {tag}")
            if any(each.digest == descriptor.digest for each in known):
                return
            index = add_to_index(listed, descriptor, f"the tag {tag}")
            self._put_manifest(index, tag, INDEX)
        raise BuildError(
            f"others write the tag {tag} at the same time", fix="type the same command again"
        )

    def referrers(self, subject: str) -> Sequence[Descriptor]:
        """Return the manifests that refer to one: by the API, else by the fallback tag."""
        url, found = f"{self._root}/referrers/{SHA256}{subject}", list[Descriptor]()
        pages = size_bytes = 0
        while url and pages < _PAGES_MAX and size_bytes < _LIST_MAX_BYTES:
            page = self._page_of_referrers(url)
            if page is None:
                return self._listed(f"sha256-{subject}")
            content, url = page
            found += read_index(content, "the registry's list of referrers")
            pages, size_bytes = pages + 1, size_bytes + len(content)
        return found

    def _page_of_referrers(self, url: str) -> tuple[bytes, str] | None:
        """Return (content, URL of the next page or nothing); None where there is no such API."""
        expected, limit_bytes = (*_FOUND_OR_NOT, *_NO_API), MANIFEST_MAX_BYTES
        request = HttpRequest("GET", url, expected, {"Accept": INDEX}, limit_bytes=limit_bytes)

        def fetch() -> tuple[bytes, str] | None:
            with self._connection.exchange(request) as answer:
                if answer.status != _OK:
                    return None
                return read_body(answer, MANIFEST_MAX_BYTES), _next_page(answer)

        return self._connection.retried(fetch)

    def _listed(self, tag: str) -> Sequence[Descriptor]:
        content = self.manifest(tag)
        return () if content is None else read_index(content, f"the tag {tag}")


def _next_page(answer: BaseHTTPResponse) -> str:
    """The next page of a list, of the same registry whatever the host that is named; empty for none (RFC 8288)."""
    link = _NEXT.search(answer.headers.get("Link", ""))
    try:
        return parse_url(urljoin(answer.url or "", link[1])).request_uri if link else ""
    except ValueError:
        return ""
