"""The packages of a release, run by what their users would run them with, each in a fenced process."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.catalog import RELEASED_FORMATS
from onnxbuild.core.params import from_json
from onnxbuild.expansion.package_format import RunPackage
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.release_format.bundles import bundles_of, manifest_in
from onnxbuild.release_format.forms import following
from onnxbuild.release_format.package_records import package_records
from onnxbuild.release_format.released import Released
from onnxbuild.verification.fenced_replay import Replay, attempt
from onnxbuild.verification.replay_context import Replayed

_UNTRUSTED = (
    "a package is a program: with --trust-programs it is run, if you trust who made the release (its "
    "signature: --key)"
)


def replay_packages(
    release: Released, scratch: Path, timeout_s: float, *, trusted: bool
) -> Iterator[tuple[str, Replayed]]:
    """Yield (name, what became of it) of every package.

    Args:
        release: Its files are what its checksums say.
        scratch: An empty folder.
        timeout_s: Wall time that each may take.
        trusted: Whether programs may be run.

    Raises:
        NotReproducibleError: A manifest can't be followed.
    """
    bundles = bundles_of(release.about)
    for number, (name, entry) in enumerate(package_records(release.about)):
        of = bundles[entry["of"]]
        with following(of["bundle"]):
            manifest = manifest_in(of, release.read)
        with following(entry["folder"]):
            own = scratch / str(number)
            yield name, _replayed(release, entry, manifest, own, timeout_s, trusted=trusted)


def _replayed(
    release: Released,
    entry: Mapping[str, Any],
    manifest: Manifest,
    scratch: Path,
    timeout_s: float,
    *,
    trusted: bool,
) -> Replayed:
    name = entry["format"]
    form = RELEASED_FORMATS.get(name)
    reason = "" if trusted else _UNTRUSTED
    if form is None:
        reason = f"unknown package format '{name}': a plug-in that is not installed brings it"
    elif form.run is None:
        reason = f"its own server or program runs it: see docs/packages.md, `{name}`"
    if reason or form is None or form.run is None:
        return Replayed(name, "", {}, skipped=reason)
    package = (release.folder / entry["folder"]).absolute()
    golden = (release.folder / bundles_of(release.about)[entry["of"]]["golden"]).absolute()
    verdict = next(iter(manifest.validation.values()))
    tolerances = from_json(VariantTolerances, verdict.tolerances)
    asked = RunPackage(
        f"the {name} of '{entry['of']}'",
        tolerances,
        manifest.name,
        manifest.variant or "",
        folder=package,
    )
    run = Replay(
        form.run.name,
        form.run_params(asked),
        f"{manifest.name}:{package.name}",
        {"package": package, "reference": golden},
        (package, golden),
        scratch,
        timeout_s,
    )
    return attempt(run, name, "", asked_for=False, on_cpu=True)
