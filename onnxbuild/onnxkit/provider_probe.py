"""Which execution providers really load on this machine."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import PROVIDERS
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.sessions import open_session


@dataclass(frozen=True, slots=True)
class Probe:
    """One provider.

    Attributes:
        name: Short name, a key of PROVIDERS.
        in_package: Whether the installed ONNX Runtime was built with it.
        loads: Whether a session really ran on it.
        reason: Why it did not; empty if it did.
    """

    name: str
    in_package: bool
    loads: bool
    reason: str = ""


def probe_providers() -> tuple[Probe, ...]:
    """Open and run a model of one node on every provider that the package names."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    available = set(onnxruntime.get_available_providers())
    probes = []
    with tempfile.TemporaryDirectory() as folder:
        _write_model(Path(folder) / MODEL_FILE)
        for name, full in PROVIDERS.items():
            if full not in available:
                probes.append(
                    Probe(name, in_package=False, loads=False, reason="not in the package")
                )
                continue
            try:
                _run(Path(folder), name)
            except StepError as error:
                probes.append(Probe(name, in_package=True, loads=False, reason=error.what))
            else:
                probes.append(Probe(name, in_package=True, loads=True))
    return tuple(probes)


def _run(folder: Path, provider: str) -> None:
    import numpy as np

    session = open_session(folder, provider=provider, where="doctor")
    session.run(None, {"x": np.ones((2, 2), np.float32)})


def _write_model(path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "x"], ["y"])],
        "probe",
        [value("x", TensorProto.FLOAT, [2, 2])],
        [value("y", TensorProto.FLOAT, [2, 2])],
    )
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), str(path))
