"""Session options of onnxruntime-node for a bundle's model, and settings that have no counterpart.

Source: ONNX Runtime 1.30, js/node/src/session_options_helper.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from onnxbuild.onnxkit.bundles.manifest import BundleTarget, Manifest, ManifestProvider
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import named

_LEVELS = {"disable": "disabled"}
_SPINNING = {
    "allow": {},
    "stop": {"session.force_spinning_stop": "1"},
    "never": {"session.intra_op.allow_spinning": "0", "session.inter_op.allow_spinning": "0"},
}


@dataclass(frozen=True, slots=True)
class NodeSessions:
    """Session options of a package for each target.

    Attributes:
        targets: Target -> `providers` and `session`, as onnxruntime-node takes them.
        chain: `target` and `provider` of each, in order of preference; empty if it has none of them.
        notes: What it has no place for, a sentence each without a full stop.
    """

    targets: dict[str, Any]
    chain: list[dict[str, Any]]
    notes: tuple[str, ...]


def node_sessions(manifest: Manifest) -> NodeSessions:
    """Return how onnxruntime-node opens a bundle's model.

    Args:
        manifest: The bundle's.
    """
    targets: dict[str, Any] = {}
    notes: dict[str, None] = {}
    for name, target in (manifest.targets or {}).items():
        providers = [_provider(each) for each in target.chain if _is_known(each)]
        notes |= dict.fromkeys(_lacks(name, target))
        if providers:
            targets[name] = {"providers": providers, "session": _session(target.session)}
    chain = [
        {"target": each.target, "provider": _provider(each)}
        for each in manifest.providers or ()
        if _is_known(each) and each.target in targets
    ]
    return NodeSessions(targets, chain, tuple(notes))


def _is_known(provider: ManifestProvider) -> bool:
    return bool(named(provider.name).node_name)


def _provider(provider: ManifestProvider) -> dict[str, Any]:
    known = named(provider.name).node_options
    options = {
        known[key]: _value(known[key], text)
        for key, text in provider.options.items()
        if key in known
    }
    return {"name": named(provider.name).node_name, **options}


def _value(key: str, text: str) -> str | int | bool:
    if key == "deviceId":
        return int(text)
    return text == "1" if key == "enableFp16Precision" else text


def _session(settings: SessionSettings) -> dict[str, Any]:
    """Options that differ from ONNX Runtime's own, and the level of optimization."""
    own: dict[str, Any] = {
        "graphOptimizationLevel": _LEVELS.get(
            settings.graph_optimization, settings.graph_optimization
        )
    }
    if settings.execution_mode == "parallel":
        own["executionMode"] = "parallel"
    if settings.intra_op_threads:
        own["intraOpNumThreads"] = settings.intra_op_threads
    if settings.inter_op_threads:
        own["interOpNumThreads"] = settings.inter_op_threads
    if not settings.cpu_arena:
        own["enableCpuMemArena"] = False
    if not settings.memory_pattern:
        own["enableMemPattern"] = False
    entries = {**_SPINNING[settings.spinning], **settings.config}
    if entries:
        own["extra"] = {key: str(value) for key, value in sorted(entries.items())}
    return own


def _lacks(name: str, target: BundleTarget) -> Iterator[str]:
    for provider in target.chain:
        if not _is_known(provider):
            yield f"onnxruntime-node has no {provider.name}, which target '{name}' names"
            continue
        dropped = sorted(provider.options.keys() - named(provider.name).node_options.keys())
        if dropped:
            yield f"onnxruntime-node takes no {', '.join(dropped)} of {provider.name}"
    if target.library is not None:
        yield f"onnxruntime-node loads no plug-in library, and target '{name}' has one"
    if target.session.deterministic_compute:
        yield "onnxruntime-node has no option for deterministic_compute"
    if target.session.free_dimensions:
        fixed = ", ".join(
            f"{axis} = {size}" for axis, size in sorted(target.session.free_dimensions.items())
        )
        yield (
            f"onnxruntime-node fixes no axes ({fixed}): inputs are still held to them, and the session may run slower"
        )
