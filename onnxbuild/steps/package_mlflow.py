"""Put a bundle into MLflow's model format: a folder with MLmodel, which its registry and servers take.

It is written here, as MLflow's own `log_model` gives weights another name each time.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import MODEL_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Manifest, read_manifest
from onnxbuild.onnxkit.bundles.write import described, names_below, write_sums
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
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, hand_on
from onnxbuild.onnxkit.packages.runtimes import RuntimeChoice
from onnxbuild.onnxkit.packages.signature import ModelSignature, signature_of
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    import numpy as np

_MODEL, _REQUIREMENTS, _README = "MLmodel", "requirements.txt", "README.md"
_EXAMPLE, _SERVING_EXAMPLE = "input_example.json", "serving_input_example.json"
_MOST_EXAMPLE_ELEMENTS = 1 << 16
"""An example of more would be megabytes of JSON."""


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


def run(context: StepContext) -> Outcome:
    """Write MLmodel, the bundle's model, its signature, an input example and environments; SHA256SUMS.

    Raises:
        StepError: MLflow has no type for an input or output.
    """
    params: PackageMlflowParams = context.params
    source, folder = context.input("bundle"), context.output("bundle")
    manifest = read_manifest(json.loads((source / MANIFEST_FILE).read_text("utf-8")))
    for name in (MODEL_FILE, WEIGHTS_FILE):
        if (source / name).exists():
            hand_on(source / name, folder / name)
    hand_on(source / MANIFEST_FILE, folder / MANIFEST_FILE)
    point = next(read_reference(context.input("reference")))
    signature = signature_of(manifest)
    try:
        model = mlmodel(manifest, signature, python=params.python, metadata=dict(params.metadata))
    except NoTypeError as error:
        fix = "take the variant out of `packages: {variants: [...]}`"
        raise StepError(str(error), where=context.where, fix=fix) from error
    taken = {port.name: point.feeds[port.name] for port in signature.inputs}
    if _has_json(taken.values()):
        signature = replace(signature, golden=(point.name,))
        example = {name: _listed(array) for name, array in taken.items()}
        _write(context, _EXAMPLE, _json(example))
        _write(context, _SERVING_EXAMPLE, _json({"inputs": example}))
        model["saved_input_example_info"] = {
            "artifact_path": _EXAMPLE, "serving_input_path": _SERVING_EXAMPLE, "type": "ndarray",
        }  # fmt: skip
    required = [*requirements_of(manifest, params.runtime), *params.requirements]
    dependencies = [f"python={params.python}", "pip", {"pip": required}]
    conda = {"channels": ["conda-forge"], "dependencies": dependencies, "name": "mlflow-env"}
    _write(context, CONDA, _yaml(conda))
    own = {
        "python": params.python,
        "build_dependencies": ["pip", "setuptools", "wheel"],
        "dependencies": [f"-r {_REQUIREMENTS}"],
    }
    _write(context, VIRTUALENV, _yaml(own))
    _write(context, _README, readme_of(signature))
    _write(context, _REQUIREMENTS, "".join(f"{each}\n" for each in required))
    files = {name: described(folder / name).sha256 for name in names_below(folder)}
    identity = json.dumps([files, model], sort_keys=True)
    model["model_uuid"] = uuid.uuid5(uuid.NAMESPACE_OID, identity).hex
    _write(context, _MODEL, mlmodel_text(model))
    metrics = {"model_bytes": manifest.size_bytes, "files": write_sums(folder)}
    return Outcome(metrics, notes=_notes(manifest, signature))


def opened_file(folder: Path) -> str:
    """Return the file that MLflow opens as the model.

    Args:
        folder: A package.

    Raises:
        ValueError: Its flavors name none, or two.
    """
    import yaml

    try:
        flavors = yaml.safe_load((folder / _MODEL).read_text(encoding="utf-8"))["flavors"]
        (opened,) = {flavors[name]["data"] for name in ("onnx", "python_function")}
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the flavors of {_MODEL} do not name one file: {error}") from error
    return str(opened)


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


def _write(context: StepContext, name: str, text: str) -> None:
    (context.output("bundle") / name).write_text(text, encoding="utf-8", newline="\n")


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False) + "\n"


def _yaml(value: Any) -> str:
    import yaml

    text: str = yaml.safe_dump(value, sort_keys=True, allow_unicode=True, width=1 << 20)
    return text


KIND = StepKind(
    name="package-mlflow",
    version=4,
    params=PackageMlflowParams,
    inputs=("bundle", "reference"),
    outputs={"bundle": "bundle"},
    toolchain=("numpy", "pyyaml", "jinja2"),
    run=run,
)
