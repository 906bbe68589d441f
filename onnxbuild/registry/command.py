"""The commands `push` and `pull`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onnxbuild.adapters.console.wrap import fitted
from onnxbuild.registry.progress import Progress, as_size
from onnxbuild.registry.reference import Reference, parse_destination, parse_reference

if TYPE_CHECKING:
    from onnxbuild.core.step import StepKind
    from onnxbuild.output.models import PulledRecord, PushedRecord
    from onnxbuild.registry.pull import Pulled
    from onnxbuild.registry.push import Pushed
    from onnxbuild.registry.repository import Repository

Command = Callable[..., Any]


def _registry_options(command: Command) -> Command:
    """Add the options for reaching a registry."""
    for option in reversed(
        (
            click.option("--username", metavar="NAME", help="User of the registry."),
            click.option(
                "--password-stdin", is_flag=True, help="Read the password from standard input."
            ),
            click.option(
                "--plain-http/--https",
                default=None,
                help="Without TLS, or with it [default: with it; without on localhost, unless "
                "--ca-file is given].",
            ),
            click.option(
                "--ca-file",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="CA.pem",
                help="Also trust this authority's certificates.",
            ),
            click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
        )
    ):
        command = option(command)
    return command


@click.command("push")
@click.argument("source", metavar="RECIPE:VARIANT|RELEASE")
@click.argument("destination", metavar="REGISTRY/REPOSITORY:TAG|oci:FOLDER:TAG")
@click.option(
    "--sign",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PRIVATE.pem",
    help="Sign a variant with this Ed25519 key; a release brings its own signature.",
)
@click.option(
    "--mount-from",
    metavar="REPOSITORY",
    default="",
    help="Another repository of the same registry: its blobs need not be sent again.",
)
@click.option(
    "--store",
    metavar="FOLDER",
    help="Artifacts are here instead of in artifacts/ at the project's root "
    "(or set ONNXBUILD_STORE).",
)
@_registry_options
@click.pass_context
def push(
    ctx: click.Context,
    /,
    *,
    source: str,
    destination: str,
    sign: Path | None,
    mount_from: str,
    store: str | None,
    as_json: bool,
    **access: Any,
) -> PushedRecord:
    """Push a variant, or a release, to an OCI registry or into an OCI layout on disk.

    \b
    onnxbuild push bert:int8 registry.example.org/team/bert:int8
    onnxbuild push dist/bert-1.0.0 registry.example.org/team/bert:1.0.0
    onnxbuild push bert:int8 oci:images/bert:int8

    Each file is one blob, and blobs that are there are not sent again. The tag is set last. Equal contents have equal
    digests. A variant must be built as its recipe says now. User and password are those of
    `docker login`, in docker's config.json, or --username and --password-stdin.

    Exit codes: 0 pushed, or already there; 1 the registry can't be reached or refuses; 2 not built, no such reference,
    wrong credentials; 3 a gate fails; 4 the release is damaged.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from dataclasses import replace

    from onnxbuild.registry.contents import contents_of
    from onnxbuild.registry.push import push as push_contents
    from onnxbuild.registry.push import signature

    reference = parse_destination(destination)
    ask = _ask if sys.stdin.isatty() and not access["password_stdin"] else None
    with contents_of(source, store, _catalog(ctx)) as found:
        attached = found.attached if sign is None else signature(found, sign, ask)
        contents = replace(found, attached=attached)
        with closing(_repository(reference, access, mount_from, make=True)) as repository:
            pushed = push_contents(contents, reference, repository, _progress())
    record = _pushed_json(reference, pushed)
    if as_json:
        click.echo(json.dumps(record))
        return record
    more = f", with {' and '.join(pushed.attached)}" if pushed.attached else ""
    _say(f"{contents.name}  {_files(pushed.files, pushed.size_bytes)}{more}")
    _say(f"{_blobs(pushed.sent)} sent ({as_size(pushed.sent_bytes)}), {pushed.known} known")
    if pushed.was:
        _say(f"the tag was at {pushed.was}")
    click.echo(f"pushed {reference.place}@sha256:{pushed.sha256}")
    return record


@click.command("pull")
@click.argument("source", metavar="REGISTRY/REPOSITORY:TAG|oci:FOLDER:TAG")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write it here [default: NAME-TAG in this folder].",
)
@click.option(
    "--key",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PUBLIC.pem",
    help="It must be signed with this Ed25519 key.",
)
@_registry_options
def pull(*, source: str, out: Path | None, key: Path | None, as_json: bool, **access: Any) -> None:
    """Pull a variant, or a release, into a new folder; every blob is checked.

    \b
    onnxbuild pull registry.example.org/team/bert:1.0.0 --key team.pem
    onnxbuild pull registry.example.org/team/bert@sha256:0f3a... -o model
    onnxbuild pull oci:images/bert:int8

    The folder appears when all of it is there and right, and nothing is overwritten. After a break, the same
    command goes on: blobs that were fetched are kept.

    Exit codes: 0 pulled, or already there and identical; 1 the registry can't be reached; 2 no such artifact,
    wrong credentials, another folder is there; 4 damaged, altered, or not signed with the key.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.adapters.signing_keys import read_public_key
    from onnxbuild.registry.pull import pull as pull_artifact

    reference = parse_reference(source)
    if key is not None:
        read_public_key(key)
    folder = Path.cwd() / (out or reference.folder_name)
    with closing(_repository(reference, access)) as repository:
        pulled = pull_artifact(reference, repository, folder, key=key, progress=_progress())
    if as_json:
        click.echo(json.dumps(_pulled_json(reference, pulled)))
        return
    signed = {
        "checked": f"signed with the key {key}",
        "not checked": "signed, not checked; to check it: --key PUBLIC.pem",
        "none": "not signed",
    }[pulled.signature]
    state = "" if pulled.written else "already there, identical: "
    shown = os.path.relpath(folder)
    _say(f"{shown}/  {state}{_files(pulled.files, pulled.size_bytes)}, {signed}")
    click.echo(f"pulled {reference.place}@sha256:{pulled.sha256}")


def _repository(
    reference: Reference, access: Mapping[str, Any], mount_from: str = "", *, make: bool = False
) -> Repository:
    """Open the place that a reference names."""
    if reference.is_layout:
        from onnxbuild.registry.layout import LayoutRepository

        return LayoutRepository(Path(reference.repository), make=make)
    from onnxbuild.registry.access import RegistryAccess
    from onnxbuild.registry.connection import Connection
    from onnxbuild.registry.credentials import find_credentials
    from onnxbuild.registry.remote import RemoteRepository

    password = sys.stdin.readline().rstrip("\r\n") if access["password_stdin"] else None
    plain_http, ca_file = access["plain_http"], access["ca_file"]
    if plain_http is None:
        plain_http = reference.is_loopback and ca_file is None
    credentials = find_credentials(reference.registry, access["username"], password)
    if plain_http and credentials.username and not reference.is_loopback:
        _say("note    the password goes over the network as it is: --plain-http", err=True)
    connection = Connection(reference.registry, RegistryAccess(plain_http, ca_file, credentials))
    return RemoteRepository(connection, reference.repository, mount_from)


def _progress() -> Progress:
    from onnxbuild.adapters.clock import SystemClock

    return Progress(sys.stderr, SystemClock().monotonic_s)


def _catalog(ctx: click.Context) -> Mapping[str, StepKind]:
    """Step kinds that the command was started with."""
    from onnxbuild.catalog import CATALOG

    found: Mapping[str, StepKind] | None = getattr(ctx.obj, "catalog", None)
    return CATALOG if found is None else found


def _say(text: str, *, err: bool = False) -> None:
    """Print a sentence; not a reference, which is to be copied whole."""
    click.echo(fitted(text, err=err), err=err)


def _ask(question: str) -> str:
    answer: str = click.prompt(question, hide_input=True, err=True)
    return answer


def _files(count: int, size_bytes: int) -> str:
    return f"{count} file{'s' if count != 1 else ''}, {as_size(size_bytes)}"


def _blobs(count: int) -> str:
    return f"{count} blob{'s' if count != 1 else ''}"


def _pushed_json(reference: Reference, pushed: Pushed) -> PushedRecord:
    return {
        "type": "pushed",
        "reference": str(reference),
        "digest": f"sha256:{pushed.sha256}",
        "files": pushed.files,
        "bytes": pushed.size_bytes,
        "blobs_sent": pushed.sent,
        "bytes_sent": pushed.sent_bytes,
        "blobs_known": pushed.known,
        "attached": list(pushed.attached),
        "tag_was": pushed.was,
    }


def _pulled_json(reference: Reference, pulled: Pulled) -> PulledRecord:
    return {
        "type": "pulled",
        "reference": str(reference),
        "digest": f"sha256:{pulled.sha256}",
        "folder": str(pulled.folder),
        "files": pulled.files,
        "bytes": pulled.size_bytes,
        "bytes_fetched": pulled.fetched_bytes,
        "signature": pulled.signature,
        "written": pulled.written,
    }
