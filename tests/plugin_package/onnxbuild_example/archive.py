"""The package format `zip`: the bundle as one archive."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.feature import Subject
from onnxbuild.expansion.package_format import PackageFormat
from onnxbuild.expansion.scope import Scope

_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class ZipOptions:
    """How the archive is written."""

    compress: bool = option(True, help="compress the files")


def run(context: StepContext) -> Outcome:
    """Write bundle.zip: sorted names, one fixed time."""
    bundle = context.input("bundle")
    method = zipfile.ZIP_DEFLATED if context.params.compress else zipfile.ZIP_STORED
    target = context.output("archive") / "bundle.zip"
    with zipfile.ZipFile(target, "w", method) as archive:
        for path in sorted(each for each in bundle.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(bundle).as_posix(), _EPOCH)
            archive.writestr(entry, path.read_bytes(), method)
    return Outcome(metrics={"size_bytes": target.stat().st_size})


KIND = StepKind(
    name="example-zip",
    version=1,
    params=ZipOptions,
    inputs=("bundle",),
    outputs={"archive": "bundle"},
    toolchain=(),
    run=run,
)


def _package(scope: Scope, subject: Subject, bundle: OutputRef, options: ZipOptions) -> OutputRef:
    address = of_variant(scope.recipe, subject.variant, "zip")
    at = subject.variant.location
    return OutputRef(scope.step(address, KIND, options, {"bundle": bundle}, at=at), "archive")


FEATURE = PackageFormat(
    name="zip",
    kinds=(KIND,),
    options=ZipOptions,
    help="one archive",
    package=_package,
    has_model=lambda _: False,  # not as a file of its own
    has_sums=False,
)
