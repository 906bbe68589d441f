"""`mlflow`: a model in MLflow's format, for its registry and its servers.

It is written here, as MLflow's own `log_model` gives weights another name each time.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext
from onnxbuild.expansion.package_format import (
    Packaged,
    PackageFormat,
    described_at_top,
    package_kind,
)
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.bundles.write import described, names_below
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.mlflow.content import (
    CONDA,
    VIRTUALENV,
    NoTypeError,
    left_out,
    mlmodel,
    mlmodel_text,
    readme_of,
    requirements_of,
    unplaced,
)
from onnxbuild.onnxkit.packages.contents import (
    LEAVE_OUT,
    hand_model_on,
    packed,
    read_bundle,
    write_text,
)
from onnxbuild.onnxkit.packages.python_packages import RuntimeChoice
from onnxbuild.onnxkit.packages.signature import ModelSignature, signature_of
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    import numpy as np

_MODEL, _REQUIREMENTS, _README = "MLmodel", "requirements.txt", "README.md"
_EXAMPLE, _SERVING_EXAMPLE = "input_example.json", "serving_input_example.json"
_MOST_EXAMPLE_ELEMENTS = 1 << 16
"""An example of more would be megabytes of JSON."""


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


@dataclass(frozen=True, slots=True)
class PackageMlflowParams:
    """Parameters of a package.

    Attributes:
        python: Version of Python that its environments ask for.
        runtime: Which distribution of ONNX Runtime requirements.txt names.
        requirements: More lines of requirements.txt.
        metadata: What MLflow shows of the model besides.
    """

    python: str
    runtime: RuntimeChoice
    requirements: tuple[str, ...]
    metadata: tuple[tuple[str, str], ...]


def package(context: StepContext) -> Outcome:
    """Write MLmodel, the bundle's model, its signature, an input example and environments; SHA256SUMS.

    Raises:
        StepError: MLflow has no type for an input or output.
    """
    params: PackageMlflowParams = context.params
    folder = context.output("bundle")
    source, manifest = read_bundle(context)
    hand_model_on(source, manifest, folder)
    point = next(read_reference(context.input("reference")))
    signature = signature_of(manifest)
    try:
        model = mlmodel(manifest, signature, python=params.python, metadata=dict(params.metadata))
    except NoTypeError as error:
        raise StepError(str(error), where=context.where, fix=LEAVE_OUT) from error
    taken = {port.name: point.feeds[port.name] for port in signature.inputs}
    if _has_json(taken.values()):
        signature = replace(signature, golden=(point.name,))
        example = {name: _listed(array) for name, array in taken.items()}
        write_text(folder / _EXAMPLE, _json(example))
        write_text(folder / _SERVING_EXAMPLE, _json({"inputs": example}))
        model["saved_input_example_info"] = {
            "artifact_path": _EXAMPLE, "serving_input_path": _SERVING_EXAMPLE, "type": "ndarray",
        }  # fmt: skip
    required = [*requirements_of(manifest, params.runtime), *params.requirements]
    dependencies = [f"python={params.python}", "pip", {"pip": required}]
    conda = {"channels": ["conda-forge"], "dependencies": dependencies, "name": "mlflow-env"}
    write_text(folder / CONDA, _yaml(conda))
    own = {
        "python": params.python,
        "build_dependencies": ["pip", "setuptools", "wheel"],
        "dependencies": [f"-r {_REQUIREMENTS}"],
    }
    write_text(folder / VIRTUALENV, _yaml(own))
    write_text(folder / _README, readme_of(signature))
    write_text(folder / _REQUIREMENTS, "".join(f"{each}\n" for each in required))
    files = {name: described(folder / name).sha256 for name in names_below(folder)}
    identity = json.dumps([files, model], sort_keys=True)
    model["model_uuid"] = uuid.uuid5(uuid.NAMESPACE_OID, identity).hex
    write_text(folder / _MODEL, mlmodel_text(model))
    return packed(context, manifest, notes=_notes(manifest, signature))


def _notes(manifest: Manifest, signature: ModelSignature) -> tuple[str, ...]:
    notes = []
    if dropped := unplaced(manifest.session or SessionSettings()):
        notes.append(f"MLflow has no place for the session settings {', '.join(dropped)}")
    if left := left_out(manifest):
        notes.append(
            f"{', '.join(left)} is left out behind another provider: where it does not load, ONNX Runtime drops the "
            "options of all"
        )
    narrow = [port.name for port in signature.inputs if port.dtype.startswith(("int", "uint"))]
    if narrow:
        notes.append(
            f"MLflow's server takes floats for the integers of {', '.join(narrow)}, and cuts them off: send whole numbers"
        )
    return tuple(notes)


def _listed(array: np.ndarray) -> Any:
    """An array as JSON: NaN is null, which MLflow makes a NaN of again."""
    if array.dtype.kind in "OU":
        return array.astype(str).tolist()
    return _without_nan(array.tolist())


def _has_json(arrays: Collection[np.ndarray]) -> bool:
    """Return whether arrays have few elements, and none is infinite, which JSON has no word for."""
    if sum(each.size for each in arrays) > _MOST_EXAMPLE_ELEMENTS:
        return False
    return not any(
        math.isinf(e) for a in arrays if a.dtype.kind == "f" for e in a.ravel().tolist()
    )


def _without_nan(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False) + "\n"


def _yaml(value: Any) -> str:
    import yaml

    text: str = yaml.safe_dump(value, sort_keys=True, allow_unicode=True, width=1 << 20)
    return text


def _contents(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """The file that MLmodel names is the one that MLflow opens.

    Raises:
        ValueError: MLmodel's flavors name none, or two.
    """
    import yaml

    try:
        flavors = yaml.safe_load((folder / _MODEL).read_text(encoding="utf-8"))["flavors"]
        (opened,) = {flavors[name]["data"] for name in ("onnx", "python_function")}
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the flavors of {_MODEL} do not name one file: {error}") from error
    return {**described_at_top(folder, manifest), manifest.file: str(opened)}


def _params(packaged: Packaged) -> PackageMlflowParams:
    options: MlflowOptions = packaged.options
    about = (
        ("recipe", packaged.recipe.name),
        ("variant", packaged.bundle),
        ("precision", packaged.subject.variant.precision),
    )
    return PackageMlflowParams(options.python, options.runtime, options.requirements, about)


FEATURE: PackageFormat = PackageFormat(
    name="mlflow",
    options=MlflowOptions,
    title="a model in MLflow's format",
    no_dtypes=frozenset({"bfloat16"}),
    no_operators="MLflow's loader registers no custom operators",
    kind=package_kind(
        "mlflow", 4, PackageMlflowParams, package, toolchain=("numpy", "pyyaml", "jinja2")
    ),
    params=_params,
    contents=_contents,
)
