"""Somebody who knows how releases are made, and has no key: all but the signature is forged to fit."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.onnxkit.bundles.manifest import model_bytes
from onnxbuild.release_format.bom import bill_of_materials
from onnxbuild.release_format.bundles import artifact_below, bundles_of, manifest_in
from onnxbuild.release_format.checksums import check_sums
from onnxbuild.release_format.forms import json_bytes
from onnxbuild.release_format.provenance import provenance
from onnxbuild.release_format.readme import readme
from onnxbuild.release_format.released import read_release
from onnxbuild.release_format.tree import all_figures
from tests.verification.conftest import edit_json, sum_again


class Forged:
    """A release in the hands of somebody who can derive all of it again but the signature."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("SHA256SUMS.sig", "provenance.dsse.json"):
            (folder / name).unlink(missing_ok=True)

    def edit_lock(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the lock's value."""
        about = json.loads((self.folder / "release.json").read_text())
        lock_file = self.folder / about["lock"]
        lock = yaml.load(lock_file.read_text(), Loader=yaml.CSafeLoader)
        change(lock)
        lock_file.write_text(yaml.dump(lock, Dumper=yaml.CSafeDumper))

    def again(self, *bundles: str, honest: bool = True) -> None:
        """Sums, lock, README, bill and provenance that fit the files.

        Args:
            bundles: Those that were changed: their sums and manifests, too, if `honest`.
            honest: Whether each bundle's own manifest names what is in it.
        """
        about = json.loads((self.folder / "release.json").read_text())
        records = {
            each["bundle"]: each
            for key in ("variants", "formats", "ahead_of_time")
            for each in about[key].values()
        }
        if honest:
            for bundle in bundles:
                self._describe(self.folder / bundle)
        files = check_sums(self.folder).digests

        def relock(lock: dict[str, Any]) -> None:
            for bundle in bundles:
                self._relock(lock, records[bundle]["step"], "bundle", bundle, files)
            for each in records.values():
                self._relock(lock, each["reference"], "reference", each["golden"], files)

        self.edit_lock(relock)
        sum_again(self.folder)
        self._derive()

    def again_with_packages(self, *names: str, honest: bool = True) -> None:
        """The same, for packages; their own sums, too, if `honest`."""
        about = json.loads((self.folder / "release.json").read_text())
        if honest:
            for name in names:
                sum_again(self.folder / about["packages"][name]["folder"])
        files = check_sums(self.folder).digests

        def relock(lock: dict[str, Any]) -> None:
            for name in names:
                entry = about["packages"][name]
                self._relock(lock, entry["step"], "bundle", entry["folder"], files)

        self.edit_lock(relock)
        sum_again(self.folder)
        self._derive()

    def sum(self) -> None:
        """Sums that fit the files, and nothing else."""
        sum_again(self.folder)

    def _relock(
        self, lock: dict[str, Any], step: str, output: str, place: str, files: Mapping[str, Digest]
    ) -> None:
        """Have the lock say of a step's output what is in a folder of the release."""
        artifact: Artifact = artifact_below(output, place, files)
        reported = {"sha256": artifact.sha256, "size_bytes": artifact.size_bytes}
        lock["steps"][step]["outputs"][output] = reported

    def _describe(self, bundle: Path) -> None:
        names = [
            path.relative_to(bundle).as_posix()
            for path in sorted(bundle.rglob("*"))
            if path.is_file() and path.name not in ("manifest.json", "SHA256SUMS")
        ]
        found = {n: Digest.of((bundle / n).read_bytes()) for n in names}
        files = {n: {"sha256": d.sha256, "size_bytes": d.size_bytes} for n, d in found.items()}
        size = model_bytes(found)
        edit_json(bundle / "manifest.json", lambda m: m.update(files=files, size_bytes=size))
        sum_again(bundle)

    def _derive(self) -> None:
        release = read_release(check_sums(self.folder))
        about, lock = release.about, release.lock
        manifests = {
            name: manifest_in(each, lambda path: (self.folder / path).read_bytes())
            for name, each in bundles_of(about).items()
        }
        figures = all_figures(about, lock, manifests)
        (self.folder / "README.md").write_text(readme(about, lock, manifests, figures))
        files = check_sums(self.folder).digests
        (self.folder / "bom.cdx.json").write_text(bill_of_materials(about, lock, files, manifests))
        files = check_sums(self.folder).digests
        (self.folder / "provenance.intoto.json").write_bytes(
            json_bytes(provenance(about, lock, files))
        )
        sum_again(self.folder)
