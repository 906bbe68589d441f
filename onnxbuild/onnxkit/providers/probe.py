"""Find the execution providers that really load on this machine, and why the others do not."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.provider import ProviderFault
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.core.target import CPU, Link, Target
from onnxbuild.onnxkit.frameworks import np, onnx, onnxruntime
from onnxbuild.onnxkit.host.capture_stderr import captured_stderr
from onnxbuild.onnxkit.host.devices import devices_of
from onnxbuild.onnxkit.host.shared_libraries import missing_of, needed_by
from onnxbuild.onnxkit.providers.diagnose import explain, not_in_package
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.rpc_client import host_of
from onnxbuild.providers import device_options, full_name, named, provider_names


@dataclass(frozen=True, slots=True)
class ProviderProbe:
    """One provider.

    Attributes:
        provider: Short name, or the full one where there is none.
        faults: Why it does not load, the first to mend first; empty if it does.
    """

    provider: str
    faults: tuple[ProviderFault, ...] = ()

    @property
    def loads(self) -> bool:
        """Whether a session really ran on it."""
        return not self.faults

    @property
    def in_package(self) -> bool:
        """Whether the installed ONNX Runtime was built with it."""
        return all(fault.cause != "package" for fault in self.faults)

    @property
    def reason(self) -> str:
        """Faults in one line; empty if it loads."""
        return "; ".join(fault.what for fault in self.faults)

    @property
    def fix(self) -> str:
        """Fix of the first fault; empty if there is none."""
        return self.faults[0].fix if self.faults else ""


def probe_all() -> tuple[ProviderProbe, ...]:
    """Probe every provider that has a short name."""
    with tempfile.TemporaryDirectory() as folder:
        _write_model(Path(folder) / MODEL_FILE)
        return tuple(
            _probe(Target(name, (Link(name),)), None, Path(folder)) for name in provider_names()
        )


def probe_target(target: Target, library: Path | None, scratch: Path) -> tuple[ProviderProbe, ...]:
    """Probe each provider of a target by itself, on the device that it names.

    Args:
        target: Whose options that say where are kept; caches and profiles are of no use here.
        scratch: An empty folder.
    """
    _write_model(scratch / MODEL_FILE)
    if target.environment is not None:
        host = host_of(target.environment.interpreter, "")
        own = replace(target, environment=None)
        path = None if library is None else str(library)
        elsewhere: tuple[ProviderProbe, ...] = host.call(_probe_links, own, path, str(scratch))
        return elsewhere
    return _probe_links(target, library, scratch)


def _probe_links(
    target: Target, library: Path | str | None, scratch: Path | str
) -> tuple[ProviderProbe, ...]:
    probes = []
    kept = device_options()
    for link in target.chain:
        where = {key: each for key, each in link.options.items() if key in kept}
        alone = replace(target, chain=(replace(link, options=where),))
        probes.append(_probe(alone, None if library is None else Path(library), Path(scratch)))
    return tuple(probes)


def _probe(target: Target, library: Path | None, scratch: Path) -> ProviderProbe:
    (link,) = target.chain
    available = tuple(onnxruntime.get_available_providers())
    if library is None and full_name(link.provider) not in available:
        fault = not_in_package(link.provider, onnxruntime.__version__, available)
        return ProviderProbe(link.provider, (fault,))
    with captured_stderr(passed_on=False) as said:
        raised = _raised(target, library, scratch)
    if not raised:
        return ProviderProbe(link.provider)
    if library is not None:
        return ProviderProbe(
            link.provider, (ProviderFault("other", raised[0].what, raised[0].fix),)
        )
    vendor = named(link.provider).vendor
    number = link.options.get("device_id", "")
    faults = explain(
        link.provider,
        f"{said.text.strip()}\n{raised[0].__cause__ or ''}".strip(),
        devices=None if vendor is None else devices_of(vendor),
        missing=_missing(link),
        device_id=int(number) if number.isdigit() else None,
    )
    return ProviderProbe(link.provider, faults)


def _raised(target: Target, library: Path | None, scratch: Path) -> tuple[StepError, ...]:
    from onnxbuild.onnxkit.sessions.open import session_errors

    try:
        session = open_session(scratch, target=target, library=library)
        session.run(None, {"x": np.ones((2, 2), np.float32)})
    except StepError as error:
        return (error,)
    except session_errors() as error:
        failure = StepError(str(error))
        failure.__cause__ = error
        return (failure,)
    return ()


def _missing(link: Link) -> tuple[str, ...]:
    """Libraries that the provider was linked with and that are not there."""
    if link.provider == CPU:
        return ()
    folder = Path(onnxruntime.__file__).parent / "capi"
    library = folder / f"libonnxruntime_providers_{link.provider}.so"
    return missing_of(needed_by(library)) if library.exists() else ()


def _write_model(path: Path) -> None:
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
