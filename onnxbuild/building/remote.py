"""The remote store that a project's settings name, behind a workspace's own."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from onnxbuild.adapters import locate
from onnxbuild.adapters.signing_keys import key_id, read_private_key, read_public_key
from onnxbuild.adapters.store.disk_views import DiskViews
from onnxbuild.building.request import Request, graph_of, load
from onnxbuild.building.wiring import Workspace, open_workspace
from onnxbuild.core.errors import UsageError
from onnxbuild.core.graph import Graph
from onnxbuild.core.sizes import counted, size_text
from onnxbuild.core.step import StepKind
from onnxbuild.engine.plan import Planned
from onnxbuild.project_folder import PYPROJECT
from onnxbuild.settings import Settings, read_settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from obstore.store import ObjectStore

    from onnxbuild.adapters.remote.client import Client
    from onnxbuild.adapters.remote.signed_records import Signer
    from onnxbuild.adapters.remote.tiered_store import TieredStore
    from onnxbuild.adapters.remote.uploads import Uploads

OFF = "off"
LAZY_BYTES, EVERYTHING = 1 << 20, math.inf
"""Sizes up to which results are fetched ahead: small ones, which reports and other verbs read; or all."""

_REFUSED = re.compile(
    r"\b40[13]\b|[Uu]nauthori[sz]ed|[Ff]orbidden|AccessDenied|InvalidAccessKeyId|Signature"
)
_KEY_VARIABLE = "ONNXBUILD_REMOTE_SIGN_KEY"
_PUSH_FIX = (
    f"openssl genpkey -algorithm ed25519 -out PRIVATE.pem; then {_KEY_VARIABLE}=PRIVATE.pem"
)


@dataclass(frozen=True, slots=True)
class Remote:
    """A workspace's remote store, connected.

    Attributes:
        url: Its URL, as the settings have it.
        client: Its bytes.
        store: The workspace's store, with the remote behind it.
        uploads: What goes up; None if this machine pushes nothing.
        unsigned: A machine of CI that should upload, and has no key for it.
        credentials: Which credentials are sent, for messages.
    """

    url: str
    client: Client
    store: TieredStore
    uploads: Uploads | None
    unsigned: bool = False
    credentials: str = ""

    def fetch_ahead(
        self,
        workspace: Workspace,
        graph: Graph,
        catalog: Mapping[str, StepKind],
        forced: Collection[str],
        small_bytes: float,
    ) -> tuple[Planned, ...]:
        """Fetch what a build of a graph will open, all at once; what can't be had is built here.

        Args:
            workspace: With the remote behind its store.
            graph: What will be built.
            catalog: Step kinds by name.
            forced: Names of steps that run although they are up to date.
            small_bytes: Results of at most that size are fetched, too: LAZY_BYTES or EVERYTHING.

        Returns: Each step's prospect, with what came.
        """
        from onnxbuild.engine.plan import needed_artifacts

        while True:
            planned = workspace.plan(graph, catalog)
            results = [each.result for each in planned if each.result is not None]
            made = [artifact for each in results for artifact in each.outputs.values()]
            small = [artifact for artifact in made if artifact.size_bytes <= small_bytes]
            if self.store.bring([*needed_artifacts(graph, planned, forced), *small]):
                self.store.leave(made)
                return planned

    def remarks(self, *, wait: bool = False) -> Iterator[str]:
        """Yield what a run should say of it at its end.

        Args:
            wait: Wait until all is uploaded.
        """
        if wait and self.uploads is not None:
            self.uploads.wait()
        if self.store.hits:
            read = size_text(self.client.read_bytes)
            yield f"{counted(self.store.hits, 'result')} came from {self.url} ({read})"
        yield from self.store.ignored[:3]
        if self.unsigned:
            yield f"nothing is uploaded to {self.url}: this CI has no key that signs it ({_KEY_VARIABLE}=PRIVATE.pem)"
        if self.client.lost:
            sent = f"; it was sent {self.credentials}" if _REFUSED.search(self.client.lost) else ""
            yield f"{self.url} is not used further in this run: {self.client.lost}{sent}"
        if self.uploads is not None:
            count, size = self.uploads.left()
            why = f": {self.uploads.failed}" if self.uploads.failed else ""
            if count:
                yield (
                    f"{counted(count, 'result')} (at most {size_text(size)}) are still to be uploaded{why}; "
                    "the next run goes on with them, or: onnxbuild cache push"
                )

    def close(self) -> None:
        """Stop all requests."""
        if self.uploads is not None:
            self.uploads.close()
        self.client.close()


@dataclass(frozen=True, slots=True)
class RemoteAccess:
    """Access to a project's remote store: checked settings.

    Attributes:
        url: Its URL.
        objects: Where requests go; nothing is sent yet.
        trusted: Key id -> public key of each builder whose records are taken.
        agree: How many of them must have signed the same result.
        signer: The key of a machine that uploads; None on others.
        unsigned: A machine of CI that should upload, and has no key for it.
        credentials: Which credentials are sent, for messages.
    """

    url: str
    objects: ObjectStore
    trusted: Mapping[str, Ed25519PublicKey]
    agree: int
    signer: Signer | None
    unsigned: bool
    credentials: str

    def record_names(self, keys: Iterable[str]) -> frozenset[str]:
        """Return the names that records of some actions have, by each builder that is trusted and by this machine."""
        from onnxbuild.adapters.remote.signed_records import record_name

        own = () if self.signer is None else (self.signer.id,)
        return frozenset(
            record_name(key, signer) for key in keys for signer in (*self.trusted, *own)
        )

    def attach(self, workspace: Workspace, *, look_only: bool = False) -> tuple[Workspace, Remote]:
        """Return the workspace with the remote behind its store.

        Args:
            look_only: Fetch and upload no blobs.
        """
        from onnxbuild.adapters.remote.client import Client
        from onnxbuild.adapters.remote.tiered_store import TieredStore
        from onnxbuild.adapters.remote.uploads import Uploads

        client = Client(self.objects)
        uploads = None
        if self.signer is not None and not look_only:
            uploads = Uploads(workspace.disk, client, self.signer)
            uploads.resume()
        store = TieredStore(
            workspace.disk, client, self.trusted, agree=self.agree, uploads=uploads,
            look_only=look_only,
        )  # fmt: skip
        views = DiskViews(workspace.root, store, workspace.stats)
        return replace(workspace, store=store, views=views), Remote(
            self.url, client, store, uploads, self.unsigned, self.credentials
        )


def remote_of(request: Request) -> RemoteAccess | None:
    """Return how to reach the remote store that a project's settings name; None if they name none.

    Raises:
        UsageError: The settings of the remote can't be used.
    """
    environment = locate.environment()
    settings = read_settings(request.project, environment)
    url = settings.text("remote.url")
    if not url or url == OFF:
        return None
    from onnxbuild.adapters.remote.opening import credentials_sent, open_remote

    where = settings.sources["remote.url"]
    allow_http = bool(settings.values.get("remote.allow_http", False))
    objects = open_remote(url, environment, allow_http=allow_http, where=where)
    trusted = _trusted(settings)
    agree = int(settings.values.get("remote.agree", 1))
    pushes = _pushes(settings, environment)
    signer = _signer(settings) if pushes else None
    if not trusted and signer is None:
        raise UsageError(
            f"the remote {url} is of no use: no key is trusted, and nothing is uploaded",
            where=where,
            fix='trusted_keys = ["keys/ci.pem"], with the public key of the machine that uploads',
        )
    if trusted and not 1 <= agree <= len(trusted):
        raise UsageError(
            f"`remote.agree` is {agree}; expected 1 to {len(trusted)}, the number of trusted keys",
            where=settings.sources["remote.agree"],
        )
    return RemoteAccess(
        url, objects, trusted, agree, signer,
        unsigned=pushes and signer is None, credentials=credentials_sent(url, environment),
    )  # fmt: skip


def push_results(
    request: Request, catalog: Mapping[str, StepKind], progress: Callable[[str], None]
) -> tuple[int, int, int, str]:
    """Upload what earlier runs left, and the results of a request that are up to date.

    Args:
        catalog: Step kinds by name.
        progress: Takes a line now and then.

    Returns: (results uploaded, bytes of their blobs, results left, why these are left).

    Raises:
        UsageError: No remote is named, or no key signs what is uploaded.
    """
    access = needed_remote(request)
    if access.signer is None:
        raise _no_signer("ONNXBUILD_REMOTE_PUSH=always ", "cache push")
    opened = open_workspace(request.project, request.store_root)
    workspace, remote = access.attach(opened)
    uploads = remote.uploads
    assert uploads is not None
    try:
        graph = graph_of(request, load(request, opened.recipes()))
        for planned in opened.plan(graph, catalog):
            if planned.result is not None:
                uploads.add(planned.result)

        def report(count: int, size: int) -> None:
            progress(f"uploading: {counted(count, 'result')} left, at most {size_text(size)}")

        uploads.wait(report, every_s=5.0)
        return uploads.sent, uploads.sent_bytes, uploads.left()[0], uploads.failed
    finally:
        remote.close()
        workspace.close()


def pull_results(
    request: Request, catalog: Mapping[str, StepKind]
) -> tuple[tuple[Planned, ...], list[str]]:
    """Fetch what the remote has of a request; return its steps as they are now, and what there is to say.

    Args:
        catalog: Step kinds by name.

    Raises:
        UsageError: No remote is named.
    """
    workspace, remote = needed_remote(request).attach(
        open_workspace(request.project, request.store_root)
    )
    try:
        graph = graph_of(request, load(request, workspace.recipes()))
        planned = remote.fetch_ahead(workspace, graph, catalog, (), EVERYTHING)
        return planned, list(remote.remarks())
    finally:
        remote.close()
        workspace.close()


def needed_remote(request: Request) -> RemoteAccess:
    """Return how to reach the remote store.

    Raises:
        UsageError: No remote is named, or its settings can't be used.
    """
    access = remote_of(request)
    if access is None:
        raise UsageError(
            "no remote store is named",
            where=str(request.project / PYPROJECT),
            fix='[tool.onnxbuild.remote] url = "https://cache.example/team": see docs/remote.md',
        )
    return access


def _trusted(settings: Settings) -> dict[str, Ed25519PublicKey]:
    paths = settings.values.get("remote.trusted_keys", ())
    keys = [read_public_key(settings.path("remote.trusted_keys", each)) for each in paths]
    return {key_id(key): key for key in keys}


def check_uploads(access: RemoteAccess | None) -> None:
    """Check that a run which waits for its uploads has some.

    Raises:
        UsageError: This CI should upload, and has no key for it.
    """
    if access is not None and access.unsigned:
        raise _no_signer("", "run --wait-uploads")


def _no_signer(before: str, verb: str) -> UsageError:
    return UsageError(
        "nothing signs what is uploaded",
        fix=f"{before}{_KEY_VARIABLE}=PRIVATE.pem onnxbuild {verb}",
    )


def _pushes(settings: Settings, environment: Mapping[str, str]) -> bool:
    """Whether this machine uploads."""
    push = settings.text("remote.push")
    in_ci = environment.get("CI", "").lower() not in ("", "0", "false")
    return push == "always" or (push == "ci-only" and in_ci)


def _signer(settings: Settings) -> Signer | None:
    """The key of a machine that uploads.

    CI without one reads: a pull request from a fork is given no secrets.
    """
    from onnxbuild.adapters.remote.signed_records import Signer

    if text := settings.text("remote.sign_key"):
        return Signer(read_private_key(settings.path("remote.sign_key", text), None))
    if settings.text("remote.push") == "ci-only":
        return None
    raise UsageError(
        "`remote.push` is always, and no key signs what is uploaded",
        where=settings.sources["remote.push"],
        fix=_PUSH_FIX,
    )
