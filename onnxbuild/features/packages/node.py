"""`node`: an npm package with the model, typed `load()` and `run()`, and a test by golden inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.environment import BUILT_IN, NODE, Environment
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
    described_at_top,
    package_reference,
    package_tolerances,
)
from onnxbuild.expansion.requested import PACKAGES, PackagesOptions, packaged_bundles
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.node.content import NodeNames, opened_file
from onnxbuild.onnxkit.node.names import VARIANT, is_name, is_version, mapped, package_name
from onnxbuild.steps import package_node, run_node

NAME = "node"
ONNXRUNTIME_NODE = "1.30.0"
"""The version that packages require; the list has it, too."""

_RUNTIME = Environment(npm=f"{BUILT_IN}/onnxkit/node/package-lock.json", needs=(NODE,))
_OPERATORS = "operators"


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Name of the npm package."""

    name: str = option(
        "",
        help="the npm package's name, `{variant}` in it stands for the variant's; empty: RECIPE-VARIANT, in lower case",
    )
    version: str = option("0.0.0", help="the package's version, as in `1.2.0`")


def _package(scope: Scope, subject: Subject, bundle: OutputRef, options: NodeOptions) -> OutputRef:
    recipe, name = scope.recipe.name, bundle_name(subject)
    names = NodeNames(
        package_name(recipe, name, options.name),
        options.version,
        f"{recipe}, variant {name}",
        ONNXRUNTIME_NODE,
    )
    return add_package(
        scope,
        subject,
        NAME,
        package_node.KIND,
        params=package_node.PackageNodeParams(names, package_tolerances(scope, subject)),
        inputs={"bundle": bundle, "reference": package_reference(scope, subject)},
    )


def _runs(
    scope: Scope,
    subject: Subject,
    package: OutputRef,
    options: NodeOptions,  # noqa: ARG001 - as all formats
) -> Sequence[Laid]:
    return add_run(
        scope,
        subject,
        NAME,
        run_node.KIND,
        params=run_node.RunNodeParams(
            subject=f"the Node package of variant '{bundle_name(subject)}'",
            tolerances=package_tolerances(scope, subject),
            environment=_RUNTIME,
        ),
        package=package,
    )


def _replays(
    folder: Path, subject: str, tolerances: VariantTolerances
) -> tuple[StepKind, run_node.RunNodeParams]:
    del folder
    return run_node.KIND, run_node.RunNodeParams(subject, tolerances, _RUNTIME)


def _faults(parts: Parts) -> Iterator[Fault]:
    section = parts.sections.get(PACKAGES)
    options = getattr(section, NAME, None)
    if not isinstance(section, PackagesOptions) or not isinstance(options, NodeOptions):
        return
    if parts.node(_OPERATORS) is not None:
        what = (
            "onnxruntime-node registers no custom operators, and the recipe has libraries of them"
        )
        yield Fault(what, parts.key_at(PACKAGES, NAME), f"remove `{NAME}`, or take `wheel: {{}}`")
    if not is_version(options.version):
        what = (
            f"packages.node.version is '{options.version}', which is no version of an npm package"
        )
        yield Fault(what, parts.at(PACKAGES, NAME, "version"), "write it as in `version: 1.2.0`")
    if options.name and not is_name(options.name.replace(VARIANT, "x")):
        what = f"packages.node.name is '{options.name}', which no npm package can be named"
        fix = "write lower-case letters, digits, `-`, `_` and `.`, such as `my-model-{variant}` or `@me/my-model-{variant}`"
        yield Fault(what, parts.at(PACKAGES, NAME, "name"), fix)
        return
    yield from _name_faults(parts, options, packaged_bundles(parts, section))


def _name_faults(parts: Parts, options: NodeOptions, bundles: Sequence[str]) -> Iterator[Fault]:
    """Two packages of one name would replace each other where both are installed."""
    owners: dict[str, str] = {}
    for bundle in bundles:
        name = options.name.replace(VARIANT, mapped(bundle)) if options.name else mapped(bundle)
        if name in owners:
            what = f"the npm packages of '{owners[name]}' and '{bundle}' would have one name"
            at = parts.at(PACKAGES, NAME, "name") if options.name else parts.key_at(PACKAGES, NAME)
            same = mapped(owners[name]) == mapped(bundle)
            fix = "rename one of them" if same else f"write `name: {options.name}-{VARIANT}`"
            yield Fault(what, at, fix)
            return
        owners[name] = bundle


def _held(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    return {**described_at_top(folder, manifest), manifest.file: opened_file(folder)}


FEATURE = PackageFormat(
    name=NAME,
    options=NodeOptions,
    title="an npm package with the model, typed `load()` and `run()`",
    kinds=(package_node.KIND, run_node.KIND),
    faults=_faults,
    no_dtypes=frozenset({"bfloat16"}),
    package=_package,
    runs=_runs,
    held=_held,
    replays=_replays,
)
