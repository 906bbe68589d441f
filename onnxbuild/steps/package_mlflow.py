"""Put a bundle into MLflow's model format: a folder with MLmodel, which its registry and servers take.

Source: MLflow 3.17, mlflow/onnx/__init__.py, mlflow/models/model.py, mlflow/types/schema.py. It is written here,
as MLflow's own `log_model` gives weights another name each time.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import MODEL_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.data.array_files import NUMPY_DTYPES
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, hand_on

if TYPE_CHECKING:
    import numpy as np

_MODEL, _CONDA, _VIRTUALENV, _REQUIREMENTS = (
    "MLmodel", "conda.yaml", "python_env.yaml", "requirements.txt",
)  # fmt: skip
_EXAMPLE, _SERVING_EXAMPLE = "input_example.json", "serving_input_example.json"
_MOST_EXAMPLE_ELEMENTS = 1 << 16
"""An example of more would be megabytes of JSON."""

_WRITTEN_FOR = "3.17.2"
_FIRST_TIME = "1980-01-01 00:00:00.000000"
_LEVELS = {"disable": 0, "basic": 1, "extended": 2, "all": 99}
"""Session's graph_optimization -> onnxruntime.GraphOptimizationLevel."""

_NO_PLACE = {
    "memory_pattern": True, "cpu_arena": True, "deterministic_compute": False, "free_dimensions": {},
    "spinning": "allow",
}  # fmt: skip
"""Settings that MLflow's loader takes none of, with ONNX Runtime's own values."""


@dataclass(frozen=True, slots=True)
class PackageMlflowParams:
    """All that steers it.

    Attributes:
        python: Version of Python that its environments ask for.
        requirements: More lines of requirements.txt.
        metadata: What MLflow shows of the model besides.
    """

    python: str
    requirements: tuple[str, ...]
    metadata: tuple[tuple[str, str], ...]


def run(context: StepContext) -> Outcome:
    """Write MLmodel, the bundle's model, its signature, an input example and environments; SHA256SUMS.

    Raises:
        StepError: MLflow has no type for an input or output.
    """
    params: PackageMlflowParams = context.params
    source, folder = context.input("bundle"), context.output("bundle")
    manifest = json.loads((source / MANIFEST_FILE).read_text("utf-8"))
    for name in (MODEL_FILE, WEIGHTS_FILE):
        if (source / name).exists():
            hand_on(source / name, folder / name)
    hand_on(source / MANIFEST_FILE, folder / MANIFEST_FILE)
    model = mlmodel(manifest, params, context.where)
    point = next(read_reference(context.input("reference")))
    taken = {each["name"]: point.feeds[each["name"]] for each in manifest["inputs"]}
    if sum(each.size for each in taken.values()) <= _MOST_EXAMPLE_ELEMENTS:
        example = {name: _listed(array) for name, array in taken.items()}
        _write(context, _EXAMPLE, _json(example))
        _write(context, _SERVING_EXAMPLE, _json({"inputs": example}))
        model["saved_input_example_info"] = {
            "artifact_path": _EXAMPLE, "serving_input_path": _SERVING_EXAMPLE, "type": "ndarray",
        }  # fmt: skip
    versions = manifest["versions"]
    required = [
        "mlflow>=3",
        f"onnx>={versions['onnx']}",
        f"onnxruntime>={versions['onnxruntime']}",
        *params.requirements,
    ]
    dependencies = [f"python={params.python}", "pip", {"pip": required}]
    _write(
        context,
        _CONDA,
        _yaml({"channels": ["conda-forge"], "dependencies": dependencies, "name": "mlflow-env"}),
    )
    own = {
        "python": params.python,
        "build_dependencies": ["pip", "setuptools", "wheel"],
        "dependencies": [f"-r {_REQUIREMENTS}"],
    }
    _write(context, _VIRTUALENV, _yaml(own))
    _write(context, _REQUIREMENTS, "".join(f"{each}\n" for each in required))
    _write(context, _MODEL, _yaml(model))
    metrics = {"model_bytes": manifest["size_bytes"], "files": write_sums(folder)}
    return Outcome(metrics, notes=_notes(manifest))


def mlmodel(
    manifest: Mapping[str, Any], params: PackageMlflowParams, where: str
) -> dict[str, Any]:
    """Return the content of MLmodel, without an input example.

    Args:
        manifest: A bundle's.
        params: The package's.
        where: `recipe:step`, for messages.

    Raises:
        StepError: MLflow has no type for an input or output.
    """
    digest = manifest["files"][MODEL_FILE]["sha256"]
    return {
        "flavors": {
            "onnx": {
                "code": None,
                "data": MODEL_FILE,
                "onnx_session_options": _session(manifest["session"]),
                "onnx_version": manifest["versions"]["onnx"],
                "providers": [
                    [each["name"], each["options"]] if each["options"] else each["name"]
                    for each in manifest["providers"]
                ],
            },
            "python_function": {
                "data": MODEL_FILE,
                "env": {"conda": _CONDA, "virtualenv": _VIRTUALENV},
                "loader_module": "mlflow.onnx",
                "python_version": params.python,
            },
        },
        "metadata": dict(params.metadata),
        "mlflow_version": _WRITTEN_FOR,
        "model_size_bytes": manifest["size_bytes"],
        "model_uuid": uuid.uuid5(uuid.NAMESPACE_OID, digest).hex,
        "signature": {
            side: json.dumps([_tensor(each, where) for each in manifest[side]])
            for side in ("inputs", "outputs")
        }
        | {"params": None},
        "utc_time_created": _FIRST_TIME,
    }


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


def _tensor(value: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A tensor of a signature: sizes that vary are -1."""
    dtype = "str" if value["dtype"] == "string" else value["dtype"]
    if value["dtype"] not in NUMPY_DTYPES or value["shape"] is None:
        what = "of no known shape" if value["shape"] is None else value["dtype"]
        raise StepError(
            f"'{value['name']}' is {what}, which MLflow's signatures can't say",
            where=where,
            fix="take the variant out of `packages: {variants: [...]}`",
        )
    shape = [size if isinstance(size, int) else -1 for size in value["shape"]]
    return {
        "name": value["name"],
        "type": "tensor",
        "tensor-spec": {"dtype": dtype, "shape": shape},
    }


def _session(session: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that MLflow's loader hands on to ONNX Runtime."""
    options = {
        "inter_op_num_threads": session["inter_op_threads"],
        "intra_op_num_threads": session["intra_op_threads"],
        "execution_mode": session["execution_mode"],
        "graph_optimization_level": _LEVELS[session["graph_optimization"]],
    }
    config = {key: str(value) for key, value in sorted(session["config"].items())}
    return options | ({"extra_session_config": config} if config else {})


def _notes(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    notes = []
    dropped = [name for name, usual in _NO_PLACE.items() if manifest["session"][name] != usual]
    if dropped:
        notes.append(f"MLflow has no place for the session settings {', '.join(dropped)}")
    narrow = [each["name"] for each in manifest["inputs"] if each["dtype"].startswith("int")]
    if narrow:
        notes.append(
            f"MLflow's server takes floats for the integers of {', '.join(narrow)}, and cuts them off: send whole numbers"
        )
    return tuple(notes)


def _listed(array: np.ndarray) -> Any:
    return array.astype(str).tolist() if array.dtype.kind in "OU" else array.tolist()


def _write(context: StepContext, name: str, text: str) -> None:
    (context.output("bundle") / name).write_text(text, encoding="utf-8", newline="\n")


def _json(value: Any) -> str:
    return json.dumps(value) + "\n"


def _yaml(value: Any) -> str:
    import yaml

    text: str = yaml.safe_dump(value, sort_keys=True, allow_unicode=True, width=1 << 20)
    return text


KIND = StepKind(
    name="package-mlflow",
    version=1,
    params=PackageMlflowParams,
    inputs=("bundle", "reference"),
    outputs={"bundle": "bundle"},
    toolchain=("numpy", "pyyaml"),
    run=run,
)
