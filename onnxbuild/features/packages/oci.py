"""`oci`: an OCI layout, the form of models that registries for containers hold."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext
from onnxbuild.document.faults import Fault
from onnxbuild.expansion.package_format import (
    PackageFormat,
    PackageRequest,
    package_kind,
    run_kind,
    whole_bundle,
)
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Manifest
from onnxbuild.onnxkit.bundles.write import names_below
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.oci.layout import (
    ArtifactText,
    LayoutError,
    blobs_of,
    unpack_layout,
    write_layout,
)
from onnxbuild.onnxkit.oci.manifests import described, technical_facts
from onnxbuild.onnxkit.packages.contents import packed, read_bundle
from onnxbuild.onnxkit.packages.package_run import RunParams, checked_package, judged, refused
from onnxbuild.onnxkit.packages.python_packages import python_test_files, run_python_test

_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_PULLED = "pulled"


@dataclass(frozen=True, slots=True)
class OciOptions:
    """Name of the artifact in the layout."""

    tag: str = option("", help="the artifact's tag in the layout; empty: the variant's name")


@dataclass(frozen=True, slots=True)
class PackageOciParams:
    """Parameters of a package; `tag` is the artifact's name in the layout's index."""

    tag: str


def package(context: StepContext) -> Outcome:
    """Write the layout and SHA256SUMS; the artifact's digest is that of `onnxbuild push`."""
    params: PackageOciParams = context.params
    bundle, manifest = read_bundle(context)
    title = f"{manifest.name}:{manifest.bundle}"
    about = described(manifest.name, title)
    text = ArtifactText(title, about, technical_facts(manifest), params.tag)
    files = {name: bundle / name for name in names_below(bundle)}
    sha256 = write_layout(context.output("bundle"), files, text)
    return packed(context, manifest, {"digest": f"sha256:{sha256}"})


def run(context: StepContext) -> Outcome:
    """Check each blob's digest, unpack the layout as `pull` does, and run the model by its own load.py.

    Raises:
        StepError: The layout is damaged, or the model's process dies.
    """
    params: RunParams = context.params
    site = context.scratch / "site"
    folder = site / _PULLED
    layout = checked_package(context)
    try:
        phase("unpacking the layout")
        unpack_layout(layout, folder)
    except LayoutError as error:
        raise refused(error, context) from error
    for name, content in python_test_files(context.input("reference"), params.tolerances).items():
        (folder / name).parent.mkdir(exist_ok=True)
        if isinstance(content, Path):
            (folder / name).symlink_to(content.resolve())
        else:
            (folder / name).write_bytes(content)
    return judged(
        run_python_test(site, _PULLED, context.scratch),
        context,
        command="pull, then load.py",
        fix="pull the artifact and compare what its load.py gives with the variant's",
        manifest=folder / MANIFEST_FILE,
    )


def _contents(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """The blobs that the one artifact of the layout's index names.

    Raises:
        LayoutError: The layout is damaged, or names more artifacts or files.
    """
    blobs, expected = blobs_of(folder), set(whole_bundle(manifest))
    if more := sorted(blobs.keys() - expected):
        raise ValueError(f"its artifact has {more[0]}, which is no file of the bundle")
    return {name: blobs.get(name, "") for name in expected}


def _faults(request: PackageRequest) -> Iterator[Fault]:
    tag = request.options.tag
    if tag and not _TAG.fullmatch(tag):
        what = f"packages.oci.tag is '{tag}', which no tag can be"
        fix = "write at most 128 letters, digits, `_`, `.` and `-`, as in `tag: 1.2.0`"
        yield request.fault(what, fix, "tag")


FEATURE: PackageFormat = PackageFormat(
    name="oci",
    options=OciOptions,
    title="an OCI layout with the model as an artifact of registries",
    called="the OCI artifact of",
    request_faults=_faults,
    no_dtypes=frozenset({"bfloat16"}),  # its test is fed from NumPy's files
    kind=package_kind("oci", 1, PackageOciParams, package, toolchain=(), inputs=("bundle",)),
    params=lambda packaged: PackageOciParams(packaged.options.tag or packaged.bundle),
    run=run_kind("oci", 5, RunParams, run, toolchain=("numpy", "onnxruntime")),
    run_params=lambda asked: RunParams(asked.subject, asked.tolerances),
    contents=_contents,
)
