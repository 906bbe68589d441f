"""`wheel`: a Python wheel with the bundle, `load()` and a test by golden inputs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext
from onnxbuild.document.faults import Fault
from onnxbuild.expansion.package_format import (
    Packaged,
    PackageFormat,
    PackageRequest,
    RunPackage,
    package_kind,
    run_kind,
    whole_bundle,
)
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Manifest
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.packages.contents import packed, read_bundle, refuse_type
from onnxbuild.onnxkit.packages.golden import golden_points, no_golden_port
from onnxbuild.onnxkit.packages.package_run import RunParams, checked_package, judged, refused
from onnxbuild.onnxkit.packages.python_packages import RuntimeChoice, run_python_test
from onnxbuild.onnxkit.packages.signature import signature_of
from onnxbuild.onnxkit.wheels.archive import (
    WheelError,
    digests_in,
    only_wheel,
    top_package,
    unpack_wheel,
    write_wheel,
)
from onnxbuild.onnxkit.wheels.content import (
    VARIANT,
    WheelNames,
    distribution_name,
    import_name,
    info_folder,
    is_name,
    requirements_of,
    taken_by,
    wheel_file,
    wheel_files,
)


@dataclass(frozen=True, slots=True)
class WheelOptions:
    """Name of the wheel, and its requirements."""

    name: str = option(
        "",
        help="the distribution's name, `{variant}` in it stands for the variant's; empty: RECIPE-VARIANT",
    )
    version: str = option(
        "0.0.0", help="the distribution's version, as Python's packaging has them"
    )
    runtime: RuntimeChoice = option(
        "auto",
        help="the distribution of ONNX Runtime that it requires, in the version that built it or a later one; "
        "`auto`: that of the first provider, `none`: whichever is there",
    )


@dataclass(frozen=True, slots=True)
class PackageWheelParams:
    """Parameters of a package.

    Attributes:
        names: The wheel's.
        runtime: The distribution of ONNX Runtime that it requires; `auto` or `none`, too.
        tolerances: The variant's.
    """

    names: WheelNames
    runtime: str
    tolerances: VariantTolerances


def package(context: StepContext) -> Outcome:
    """Write the wheel and SHA256SUMS; the same inputs give the same bytes.

    Raises:
        StepError: An input or output is of a type that no golden file holds.
    """
    params: PackageWheelParams = context.params
    names, reference = params.names, context.input("reference")
    bundle, manifest = read_bundle(context)
    points = golden_points(reference)
    signature = signature_of(manifest, [each.name for each in points])
    why = "is of a type that NumPy lacks, so a wheel can't hold golden inputs"
    refuse_type(context, no_golden_port(signature), why)
    requirements = requirements_of(manifest, params.runtime)
    files = wheel_files(
        names, bundle, reference, params.tolerances, signature=signature, requirements=requirements
    )
    path = context.output("bundle") / wheel_file(names.distribution, names.version)
    write_wheel(path, info_folder(names.distribution, names.version), files)
    metrics = {
        "wheel_bytes": path.stat().st_size,
        "golden_points": len(points),
        "requires": list(requirements),
    }
    return packed(context, manifest, metrics)


@dataclass(frozen=True, slots=True)
class RunWheelParams(RunParams):
    """Parameters of a wheel's run; `package` is what Python imports."""

    package: str


def run(context: StepContext) -> Outcome:
    """Install the wheel into a folder and run its own test; one that can't run here is skipped.

    Raises:
        StepError: The wheel is damaged, or its test dies.
    """
    params: RunWheelParams = context.params
    folder, site = checked_package(context), context.scratch / "site"
    try:
        phase("unpacking the wheel")
        unpack_wheel(only_wheel(folder), site)
    except WheelError as error:
        raise refused(error, context) from error
    command = f"python -m {params.package}"
    return judged(
        run_python_test(site, params.package, context.scratch),
        context,
        command=command,
        fix=f"keep the wheel's folder and run `{command}` in an environment that has it installed",
        manifest=site / params.package / MANIFEST_FILE,
    )


def _names(packaged: Packaged) -> WheelNames:
    from packaging.version import Version

    options: WheelOptions = packaged.options
    recipe, variant = packaged.recipe.name, packaged.bundle
    distribution = distribution_name(recipe, variant, options.name)
    summary = f"{recipe}: variant {variant}, an ONNX model"
    return WheelNames(
        distribution, import_name(distribution), str(Version(options.version)), summary
    )


def _run_params(asked: RunPackage) -> RunWheelParams:
    if asked.folder is not None:
        name = top_package(only_wheel(asked.folder))
    else:
        assert asked.packaged is not None
        name = _names(asked.packaged).package
    return RunWheelParams(asked.subject, asked.tolerances, name)


def _contents(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    top = top_package(only_wheel(folder))
    return {name: f"{top}/{name}" for name in whole_bundle(manifest)}


def _faults(request: PackageRequest) -> Iterator[Fault]:
    from packaging.version import InvalidVersion, Version

    options: WheelOptions = request.options
    try:
        Version(options.version)
    except InvalidVersion:
        what = (
            f"packages.wheel.version is '{options.version}', which is no version of a distribution"
        )
        yield request.fault(what, "write it as in `version: 1.2.0`", "version")
    if options.name and not is_name(options.name.replace(VARIANT, "x")):
        what = f"packages.wheel.name is '{options.name}', which no distribution can be named"
        fix = "write letters, digits, `-`, `_` and `.`, such as `my-model-{variant}`"
        yield request.fault(what, fix, "name")
    else:
        yield from _name_faults(request)


def _name_faults(request: PackageRequest) -> Iterator[Fault]:
    """The first name that an installed module or another bundle's wheel has."""
    options: WheelOptions = request.options
    at = ("name",) if options.name else ()
    node, owners = request.parts.node("name"), dict[str, str]()
    recipe = "recipe" if node is None else str(node.value)
    for bundle in request.bundles:
        distribution = distribution_name(recipe, bundle, options.name)
        if not distribution:
            what = (
                f"packages.wheel.name leaves no letter or digit to name the wheel of '{bundle}' by"
            )
            yield request.fault(what, f"write `name: {recipe}-{VARIANT}`", *at)
            return
        if taken := taken_by(distribution):
            what = f"the wheel of '{bundle}' would be named '{distribution}' and replace {taken}"
            yield request.fault(what, f"write `name: my-model-{VARIANT}`", *at)
            return
        name = import_name(distribution)
        if name in owners:
            what = f"the wheels of '{owners[name]}' and '{bundle}' would replace each other: both are imported as '{name}'"
            one_name = options.name and VARIANT not in options.name
            fix = f"write `name: {options.name}-{VARIANT}`" if one_name else "rename one of them"
            yield request.fault(what, fix, *at)
            return
        owners[name] = bundle


FEATURE: PackageFormat = PackageFormat(
    name="wheel",
    options=WheelOptions,
    title="a Python wheel with the model, `load()` and its own test",
    called="the wheel of variant",
    request_faults=_faults,
    no_dtypes=frozenset({"bfloat16"}),
    kind=package_kind("wheel", 4, PackageWheelParams, package, toolchain=("numpy", "jinja2")),
    params=lambda packaged: PackageWheelParams(
        _names(packaged), packaged.options.runtime, packaged.tolerances
    ),
    run=run_kind("wheel", 6, RunWheelParams, run, toolchain=("numpy", "onnxruntime")),
    run_params=_run_params,
    contents=_contents,
    archived=lambda folder: dict(digests_in(only_wheel(folder))),
)
