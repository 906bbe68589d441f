"""The package format `zip`: the bundle as one archive."""

import zipfile
from dataclasses import dataclass

from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.expansion.package_format import PackageFormat

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


FEATURE = PackageFormat(
    name="zip",
    options=ZipOptions,
    help="one archive",
    kind=KIND,
    params=lambda packaged: packaged.options,
    contents=lambda *_: {},  # no file of the bundle is one of the package
    has_sums=False,
)
