"""`wheel`: a Python wheel with the bundle, `load()` and a test by golden inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.step import StepKind
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.feature import Laid, Subject
from onnxbuild.expansion.package_format import (
    PackageFormat,
    add_package,
    add_run,
    bundle_name,
    package_reference,
    package_tolerances,
    whole_bundle,
)
from onnxbuild.expansion.requested import PACKAGES, PackagesOptions, packaged_bundles
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.packages.runtimes import RuntimeChoice
from onnxbuild.onnxkit.wheels.archive import digests_in, only_wheel, top_package
from onnxbuild.onnxkit.wheels.content import WheelNames
from onnxbuild.onnxkit.wheels.names import (
    VARIANT,
    distribution_name,
    import_name,
    is_name,
    taken_by,
)
from onnxbuild.steps import package_wheel, run_wheel

NAME = "wheel"


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


def _package(
    scope: Scope, subject: Subject, bundle: OutputRef, options: WheelOptions
) -> OutputRef:
    params = package_wheel.PackageWheelParams(
        _names(scope, subject, options), options.runtime, package_tolerances(scope, subject)
    )
    return add_package(
        scope,
        subject,
        NAME,
        package_wheel.KIND,
        params=params,
        inputs={"bundle": bundle, "reference": package_reference(scope, subject)},
    )


def _runs(
    scope: Scope, subject: Subject, package: OutputRef, options: WheelOptions
) -> Sequence[Laid]:
    return add_run(
        scope,
        subject,
        NAME,
        run_wheel.KIND,
        params=run_wheel.RunWheelParams(
            subject=f"the wheel of variant '{bundle_name(subject)}'",
            package=_names(scope, subject, options).package,
            tolerances=package_tolerances(scope, subject),
        ),
        package=package,
    )


def _held(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    package = top_package(only_wheel(folder))
    return {name: f"{package}/{name}" for name in whole_bundle(manifest)}


def _archived(folder: Path) -> Mapping[str, str]:
    return dict(digests_in(only_wheel(folder)))


def _replays(
    folder: Path, subject: str, tolerances: VariantTolerances
) -> tuple[StepKind, run_wheel.RunWheelParams]:
    package = top_package(only_wheel(folder))
    return run_wheel.KIND, run_wheel.RunWheelParams(subject, package, tolerances)


def _names(scope: Scope, subject: Subject, options: WheelOptions) -> WheelNames:
    from packaging.version import Version

    recipe, variant = scope.recipe.name, bundle_name(subject)
    distribution = distribution_name(recipe, variant, options.name)
    summary = f"{recipe}: variant {variant}, an ONNX model"
    return WheelNames(
        distribution, import_name(distribution), str(Version(options.version)), summary
    )


def _faults(parts: Parts) -> Iterator[Fault]:
    section = parts.sections.get(PACKAGES)
    options = getattr(section, NAME, None)
    if not isinstance(section, PackagesOptions) or not isinstance(options, WheelOptions):
        return
    yield from _version_faults(parts, options)
    if options.name and not is_name(options.name.replace(VARIANT, "x")):
        what = f"packages.wheel.name is '{options.name}', which no distribution can be named"
        fix = "write letters, digits, `-`, `_` and `.`, such as `my-model-{variant}`"
        yield Fault(what, parts.at(PACKAGES, NAME, "name"), fix)
        return
    yield from _name_faults(parts, options, packaged_bundles(parts, section))


def _name_faults(parts: Parts, options: WheelOptions, bundles: Sequence[str]) -> Iterator[Fault]:
    """The first name that an installed module or another bundle's wheel has."""
    at = parts.at(PACKAGES, NAME, "name") if options.name else parts.key_at(PACKAGES, NAME)
    node, owners = parts.node("name"), dict[str, str]()
    recipe = "recipe" if node is None else str(node.value)
    for bundle in bundles:
        distribution = distribution_name(recipe, bundle, options.name)
        if not distribution:
            what = (
                f"packages.wheel.name leaves no letter or digit to name the wheel of '{bundle}' by"
            )
            yield Fault(what, at, f"write `name: {recipe}-{VARIANT}`")
            return
        if taken := taken_by(distribution):
            what = f"the wheel of '{bundle}' would be named '{distribution}' and replace {taken}"
            yield Fault(what, at, f"write `name: my-model-{VARIANT}`")
            return
        package = import_name(distribution)
        if package in owners:
            what = f"the wheels of '{owners[package]}' and '{bundle}' would replace each other: both are imported as '{package}'"
            one_name = options.name and VARIANT not in options.name
            fix = f"write `name: {options.name}-{VARIANT}`" if one_name else "rename one of them"
            yield Fault(what, at, fix)
            return
        owners[package] = bundle


def _version_faults(parts: Parts, options: WheelOptions) -> Iterator[Fault]:
    from packaging.version import InvalidVersion, Version

    try:
        Version(options.version)
    except InvalidVersion:
        what = (
            f"packages.wheel.version is '{options.version}', which is no version of a distribution"
        )
        yield Fault(what, parts.at(PACKAGES, NAME, "version"), "write it as in `version: 1.2.0`")


FEATURE = PackageFormat(
    name=NAME,
    options=WheelOptions,
    title="a Python wheel with the model, `load()` and its own test",
    kinds=(package_wheel.KIND, run_wheel.KIND),
    faults=_faults,
    no_dtypes=frozenset({"bfloat16"}),
    package=_package,
    runs=_runs,
    held=_held,
    archived=_archived,
    replays=_replays,
)
