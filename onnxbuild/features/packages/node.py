"""`node`: an npm package with the model, typed `load()` and `run()`, and a test by golden inputs."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.environment import BUILT_IN, NODE, NPM, Environment
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext
from onnxbuild.document.faults import Fault
from onnxbuild.expansion.package_format import (
    Packaged,
    PackageFormat,
    PackageRequest,
    described_at_top,
    package_kind,
    run_kind,
)
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Manifest
from onnxbuild.onnxkit.node.content import (
    TEST_FILE,
    VARIANT,
    NodeNames,
    is_name,
    is_version,
    mapped,
    node_sessions,
    opened_file,
    package_name,
    write_node_package,
)
from onnxbuild.onnxkit.packages.contents import LEAVE_OUT, packed, read_bundle, refuse_type
from onnxbuild.onnxkit.packages.package_run import (
    NOT_HERE,
    OwnTest,
    RunParams,
    checked_package,
    judged,
    run_own_test,
    run_program,
)
from onnxbuild.onnxkit.packages.signature import signature_of
from onnxbuild.onnxkit.packages.typescript import NO_ARRAY, refused_port
from onnxbuild.providers import all_providers

ONNXRUNTIME_NODE = "1.30.0"
"""The version that packages require; the list has it, too."""

_RUNTIME = Environment(npm=f"{BUILT_IN}/onnxkit/node/package-lock.json", needs=(NODE,))
_MODULES = "node_modules"


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Name of the npm package."""

    name: str = option(
        "",
        help="the npm package's name, `{variant}` in it stands for the variant's; empty: RECIPE-VARIANT, in lower case",
    )
    version: str = option("0.0.0", help="the package's version, as in `1.2.0`")


@dataclass(frozen=True, slots=True)
class PackageNodeParams:
    """Parameters of a package."""

    names: NodeNames
    tolerances: VariantTolerances


def package(context: StepContext) -> Outcome:
    """Write the package and SHA256SUMS; the same inputs give the same bytes.

    Raises:
        StepError: JavaScript has no array for an input or output, or onnxruntime-node none of the providers.
    """
    params: PackageNodeParams = context.params
    bundle, manifest = read_bundle(context)
    signature, sessions = signature_of(manifest), node_sessions(manifest)
    if refused := refused_port(signature):
        refuse_type(context, refused, f"is {refused.dtype}, {NO_ARRAY}")
    if not sessions.chain:
        asked = ", ".join(each.name for each in manifest.providers or ())
        able = ", ".join(each.name for each in all_providers() if each.node_name)
        raise StepError(
            f"onnxruntime-node has none of the variant's providers ({asked or 'none'})",
            where=context.where,
            fix=f"add a target with one of {able}, or {LEAVE_OUT}",
        )
    points = write_node_package(
        context.output("bundle"),
        bundle,
        context.input("reference"),
        params.names,
        params.tolerances,
        manifest=manifest,
        signature=signature,
        sessions=sessions,
    )
    providers = [each["provider"]["name"] for each in sessions.chain]
    return packed(
        context, manifest, {"golden_points": points, "providers": providers}, sessions.notes
    )


@dataclass(frozen=True, slots=True)
class RunNodeParams(RunParams):
    """Parameters of a package's run; Node and onnxruntime-node are in `environment`."""

    environment: Environment


def run(context: StepContext) -> Outcome:
    """Run the package's own test as npm would; one that can't run here is skipped.

    Raises:
        StepError: The package is damaged, or its test dies.
    """
    params: RunNodeParams = context.params
    folder, there = checked_package(context), params.environment
    manifest = None
    if not there.interpreter:
        test = OwnTest(NOT_HERE, "there is no Node here: `apt-get install nodejs npm`", {})
    elif not there.folder:
        test = OwnTest(NOT_HERE, "npm has not installed onnxruntime-node here", {})
    else:
        own, outputs = context.scratch / "package", context.scratch / "outputs"
        # A copy: Node and ONNX Runtime look for other files next to where links lead.
        shutil.copytree(folder, own)
        (own / _MODULES).symlink_to(Path(there.folder, _MODULES))
        test = run_own_test([there.interpreter, TEST_FILE, "--outputs", outputs], own, outputs)
        if test.code != NOT_HERE or _runtime_loads(there):
            manifest = folder / MANIFEST_FILE
    return judged(
        test,
        context,
        command="node test.js",
        fix="run `npm install && npm test` in a copy of the package's folder",
        manifest=manifest,
    )


def _runtime_loads(environment: Environment) -> bool:
    """Return whether Node loads onnxruntime-node itself, which has no library for some platforms."""
    command = (environment.interpreter, "-e", "require('onnxruntime-node')")
    code, _ = run_program(command, Path(environment.folder))
    return code == 0


def _params(packaged: Packaged) -> PackageNodeParams:
    options: NodeOptions = packaged.options
    recipe, name = packaged.recipe.name, packaged.bundle
    names = NodeNames(
        package_name(recipe, name, options.name),
        options.version,
        f"{recipe}, variant {name}",
        ONNXRUNTIME_NODE,
    )
    return PackageNodeParams(names, packaged.tolerances)


def _contents(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    return {**described_at_top(folder, manifest), manifest.file: opened_file(folder)}


def _faults(request: PackageRequest) -> Iterator[Fault]:
    options: NodeOptions = request.options
    if not is_version(options.version):
        what = (
            f"packages.node.version is '{options.version}', which is no version of an npm package"
        )
        yield request.fault(what, "write it as in `version: 1.2.0`", "version")
    if options.name and not is_name(options.name.replace(VARIANT, "x")):
        what = f"packages.node.name is '{options.name}', which no npm package can be named"
        fix = "write lower-case letters, digits, `-`, `_` and `.`, such as `my-model-{variant}` or `@me/my-model-{variant}`"
        yield request.fault(what, fix, "name")
    else:
        yield from _name_faults(request)


def _name_faults(request: PackageRequest) -> Iterator[Fault]:
    """Two packages of one name would replace each other where both are installed."""
    options: NodeOptions = request.options
    owners: dict[str, str] = {}
    for bundle in request.bundles:
        name = options.name.replace(VARIANT, mapped(bundle)) if options.name else mapped(bundle)
        if name in owners:
            what = f"the npm packages of '{owners[name]}' and '{bundle}' would have one name"
            same = mapped(owners[name]) == mapped(bundle)
            fix = "rename one of them" if same else f"write `name: {options.name}-{VARIANT}`"
            yield request.fault(what, fix, *(("name",) if options.name else ()))
            return
        owners[name] = bundle


FEATURE: PackageFormat = PackageFormat(
    name="node",
    options=NodeOptions,
    title="an npm package with the model, typed `load()` and `run()`",
    called="the Node package of variant",
    request_faults=_faults,
    no_dtypes=frozenset({"bfloat16"}),
    no_operators="onnxruntime-node registers no custom operators",
    kind=package_kind("node", 3, PackageNodeParams, package, toolchain=("numpy", "jinja2")),
    params=_params,
    run=run_kind("node", 5, RunNodeParams, run, toolchain=("numpy", NPM)),
    run_params=lambda asked: RunNodeParams(asked.subject, asked.tolerances, _RUNTIME),
    contents=_contents,
)
