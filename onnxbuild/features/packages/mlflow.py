"""`mlflow`: a model in MLflow's format, for its registry and its servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.feature import Subject
from onnxbuild.expansion.package_format import (
    PackageFormat,
    add_package,
    bundle_name,
    described_at_top,
    package_reference,
)
from onnxbuild.expansion.requested import PACKAGES
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.packages.runtimes import RuntimeChoice
from onnxbuild.steps import package_mlflow

NAME = "mlflow"
_OPERATORS = "operators"


@dataclass(frozen=True, slots=True)
class MlflowOptions:
    """Contents of the environments that MLflow makes."""

    python: str = option("3.11", help="version of Python in conda.yaml and python_env.yaml")
    runtime: RuntimeChoice = option(
        "auto",
        help="the distribution of ONNX Runtime in requirements.txt, in the version that built the model; "
        "`auto`: that of the first provider, `none`: none",
    )
    requirements: tuple[str, ...] = option((), help="more lines of requirements.txt")


def _package(
    scope: Scope, subject: Subject, bundle: OutputRef, options: MlflowOptions
) -> OutputRef:
    recipe, variant = scope.recipe, subject.variant
    name = bundle_name(subject)
    about = (("recipe", recipe.name), ("variant", name), ("precision", variant.precision))
    return add_package(
        scope,
        subject,
        NAME,
        package_mlflow.KIND,
        params=package_mlflow.PackageMlflowParams(
            options.python, options.runtime, options.requirements, about
        ),
        inputs={"bundle": bundle, "reference": package_reference(scope, subject)},
    )


def _faults(parts: Parts) -> Iterator[Fault]:
    if parts.node(PACKAGES, NAME) is not None and parts.node(_OPERATORS) is not None:
        what = (
            "MLflow's loader registers no custom operators, and the recipe has libraries of them"
        )
        yield Fault(what, parts.key_at(PACKAGES, NAME), f"remove `{NAME}`, or take `wheel: {{}}`")


def _held(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """The file that MLmodel names is the one that is opened.

    Raises:
        ValueError: MLmodel's flavors name none, or two.
    """
    opened = package_mlflow.opened_file(folder)
    return {**described_at_top(folder, manifest), manifest.file: opened}


FEATURE = PackageFormat(
    name=NAME,
    options=MlflowOptions,
    title="a model in MLflow's format",
    kinds=(package_mlflow.KIND,),
    no_dtypes=frozenset({"bfloat16"}),
    package=_package,
    faults=_faults,
    held=_held,
)
