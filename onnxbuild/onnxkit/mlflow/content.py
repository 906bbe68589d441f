"""Descriptions of a model in MLflow's format: MLmodel, requirements.txt, README.md.

Source: MLflow 3.17, mlflow/onnx/__init__.py, mlflow/models/model.py, mlflow/types/schema.py.
"""

import json
from collections.abc import Mapping
from typing import Any

from onnxbuild.core.step import MODEL_FILE
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.bundles.manifest import Manifest, ManifestProvider
from onnxbuild.onnxkit.data.array_files import NUMPY_DTYPES
from onnxbuild.onnxkit.packages.contents import rendered, signature_table
from onnxbuild.onnxkit.packages.python_packages import RuntimeChoice, runtime_distribution
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import named, short_name

CONDA, VIRTUALENV = "conda.yaml", "python_env.yaml"
_WRITTEN_FOR = "3.17.2"
_FIRST_TIME = "1980-01-01 00:00:00.000000"
_LEVELS = {"disable": 0, "basic": 1, "extended": 2, "all": 99}
"""Session's graph_optimization -> onnxruntime.GraphOptimizationLevel."""

_NO_PLACE = (
    "memory_pattern", "cpu_arena", "deterministic_compute", "free_dimensions", "spinning",
)  # fmt: skip
"""Settings that MLflow's loader takes none of."""


class NoTypeError(ValueError):
    """MLflow has no type for an input or output."""


def mlmodel(
    manifest: Manifest, signature: ModelSignature, *, python: str, metadata: Mapping[str, str]
) -> dict[str, Any]:
    """Return the content of MLmodel, without an input example and without an id.

    Raises:
        NoTypeError: MLflow has no type for an input or output.
    """
    sides = {"inputs": signature.inputs, "outputs": signature.outputs}
    return {
        "flavors": {
            "onnx": {
                "code": None,
                "data": MODEL_FILE,
                "onnx_session_options": _session(manifest.session or SessionSettings()),
                "onnx_version": manifest.versions["onnx"],
                "providers": [
                    [each.name, each.options] if each.options else each.name
                    for each in _providers(manifest)
                ],
            },
            "python_function": {
                "data": MODEL_FILE,
                "env": {"conda": CONDA, "virtualenv": VIRTUALENV},
                "loader_module": "mlflow.onnx",
                "python_version": python,
            },
        },
        "metadata": {**dict(metadata), **_labels(signature)},
        "mlflow_version": _WRITTEN_FOR,
        "model_size_bytes": manifest.size_bytes,
        "signature": {
            side: json.dumps([_tensor(each) for each in ports]) for side, ports in sides.items()
        }
        | {"params": None},
        "utc_time_created": _FIRST_TIME,
    }


def mlmodel_text(content: Mapping[str, Any]) -> str:
    """Return the text of MLmodel, of `mlmodel` with `model_uuid` and perhaps `saved_input_example_info`."""
    return rendered(__package__ or "", "MLmodel.j2", model=content)


def requirements_of(manifest: Manifest, choice: RuntimeChoice) -> list[str]:
    """Return the lines of requirements.txt, each pinned."""
    providers = (each.name for each in _providers(manifest))
    runtime = runtime_distribution(providers, choice)
    versions = manifest.versions
    pinned = {"mlflow": _WRITTEN_FOR, "onnx": versions["onnx"], runtime: versions["onnxruntime"]}
    return [f"{name}=={version}" for name, version in pinned.items() if name]


def left_out(manifest: Manifest) -> list[str]:
    """Return the providers that are left out, as they are behind another, whose options they would drop.

    Where TensorRT does not load, ONNX Runtime opens the session again on CUDA, without its `device_id`. MLflow has
    one list of providers, so it can't try without TensorRT.
    """
    behind = (named(each.name) for each in _up_to_cpu(manifest)[1:])
    return [each.name for each in behind if each.drops_options]


def _providers(manifest: Manifest) -> list[ManifestProvider]:
    """Return the providers that MLflow opens a session with."""
    chain, dropped = _up_to_cpu(manifest), left_out(manifest)
    return chain[:1] + [each for each in chain[1:] if short_name(each.name) not in dropped]


def _up_to_cpu(manifest: Manifest) -> list[ManifestProvider]:
    """Return the providers up to the CPU, which leaves no nodes to those behind it."""
    chain = list(manifest.providers or ())
    cpu = [at for at, each in enumerate(chain) if short_name(each.name) == CPU]
    return chain[: cpu[0] + 1] if cpu else chain


def readme_of(signature: ModelSignature) -> str:
    """Return the text of README.md."""
    table = signature_table(signature)
    return rendered(__package__ or "", "README.md.j2", signature=signature, table=table)


def unplaced(session: SessionSettings) -> list[str]:
    """Return the session's settings that differ from ONNX Runtime's own and that MLflow does not take."""
    usual = SessionSettings()
    lost = [name for name in _NO_PLACE if getattr(session, name) != getattr(usual, name)]
    if not _LEVELS[session.graph_optimization]:
        lost.append("graph_optimization: disable")  # MLflow takes a 0 for no level at all
    return lost


def _tensor(port: Port) -> dict[str, Any]:
    """A tensor of a signature: sizes that vary are -1."""
    if port.dtype not in NUMPY_DTYPES or port.shape is None:
        what = "of no known shape" if port.shape is None else port.dtype
        raise NoTypeError(f"'{port.name}' is {what}, which MLflow's signatures can't say")
    dtype = "str" if port.dtype == "string" else port.dtype
    shape = [size if isinstance(size, int) else -1 for size in port.shape]
    return {"name": port.name, "type": "tensor", "tensor-spec": {"dtype": dtype, "shape": shape}}


def _labels(signature: ModelSignature) -> dict[str, Any]:
    """Names of classes, which MLflow's signatures have no place for."""
    labels = {name: list(each) for name, each in signature.labels.items()}
    return {"labels": labels} if labels else {}


def _session(session: SessionSettings) -> dict[str, Any]:
    """The settings that MLflow's loader hands on to ONNX Runtime."""
    options = {
        "inter_op_num_threads": session.inter_op_threads,
        "intra_op_num_threads": session.intra_op_threads,
        "execution_mode": session.execution_mode,
        "graph_optimization_level": _LEVELS[session.graph_optimization],
    }
    config = {key: str(value) for key, value in sorted(session.config.items())}
    return options | ({"extra_session_config": config} if config else {})
