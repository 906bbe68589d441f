"""Bundle a variant that passed its gates: model, manifest, checksums, a loader."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from onnxbuild.core.axis import axes_for_callers
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import Axis, Precision
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.bundles.cpp_examples import write_onnx_example
from onnxbuild.onnxkit.loaders import onnx_bundle
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.model_files import hand_on, load_model
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.saturation.products import sums_may_saturate
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.sessions.settings_file import read_settings
from onnxbuild.providers import full_name

FORMAT = 1
"""Raised whenever manifest.json changes in a way that its readers notice."""

SUMS_FILE = "SHA256SUMS"
_CHUNK_BYTES = 1 << 20
_SCORES = (
    "metric", "score", "score_interval", "baseline_score", "drop", "drop_interval", "confidence",
    "samples", "passed",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PackageParams:
    """Content of the manifest that is not in the step's inputs.

    Attributes:
        onnxbuild: Version of this program.
        recipe_sha256: Digest of the part of the recipe that this variant is made from.
        axes: As the variant takes them: of one size where its session fixes that.
        targets: Where it is meant to run, in order of preference.
        session: How the variant's session runs it, where no input `session/TARGET` says so.
    """

    onnxbuild: str
    recipe: str
    recipe_sha256: str
    variant: str
    precision: Precision
    axes: tuple[Axis, ...]
    targets: tuple[Target, ...]
    session: SessionSettings = field(default_factory=SessionSettings)


def run(context: StepContext) -> Outcome:
    """Write the bundle: the model, what was found out about it, checksums, and a loader.

    The same inputs give the same bytes: no time, path or host goes into any file.
    """
    params: PackageParams = context.params
    bundle = context.output("bundle")
    source = context.input("model")
    model_files = _names(source)
    for name in model_files:
        target = bundle / name
        target.parent.mkdir(parents=True, exist_ok=True)
        hand_on(source / name, target)
    validations = _reports(context, "validation")
    evaluations = _reports(context, "evaluation")
    fidelities = _reports(context, "fidelity")
    _check_validated(context, validations)
    write_report(bundle, validations, "validation.json")
    if evaluations:
        write_report(bundle, evaluations, "evaluation.json")
    gates = _reports(context, "gate")
    if gates:
        write_report(bundle, gates, "gates.json")
    shutil.copyfile(Path(onnx_bundle.__file__), bundle / "load.py")
    model = load_model(bundle, weights="mapped")
    summary = summarize(model)
    write_onnx_example(bundle / "cpp", params.axes, [each["shape"] for each in summary["inputs"]])
    digests = {name: _sha256(bundle / name) for name in _names(bundle)}
    write_report(
        bundle,
        _manifest(
            params,
            bundle,
            {**summary, "sums_may_saturate": sums_may_saturate(model)},
            digests=digests,
            validations=validations,
            evaluations=evaluations,
            fidelities=fidelities,
            sessions=_sessions(context),
        ),
        "manifest.json",
    )
    names = _names(bundle)
    digests |= {name: _sha256(bundle / name) for name in names if name not in digests}
    sums = "".join(f"{digests[name]}  {name}\n" for name in names)
    (bundle / SUMS_FILE).write_text(sums, encoding="utf-8", newline="\n")
    size = sum((bundle / name).stat().st_size for name in model_files)
    return Outcome(metrics={"model_bytes": size, "files": [*names, SUMS_FILE]})


def _manifest(
    params: PackageParams,
    bundle: Path,
    summary: dict[str, Any],
    *,
    digests: dict[str, str],
    validations: dict[str, Any],
    evaluations: dict[str, Any],
    fidelities: dict[str, Any],
    sessions: dict[str, SessionSettings],
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": params.recipe,
        "variant": params.variant,
        "precision": params.precision,
        "recipe_sha256": params.recipe_sha256,
        "files": {
            name: {"sha256": sha256, "size_bytes": (bundle / name).stat().st_size}
            for name, sha256 in digests.items()
        },
        "inputs": summary["inputs"],
        "outputs": summary["outputs"],
        "dynamic_axes": axes_for_callers(params.axes),
        "opsets": summary["opsets"],
        "ir_version": summary["ir_version"],
        "nodes": summary["nodes"],
        "parameters": summary["parameters"],
        "sums_may_saturate": summary["sums_may_saturate"],
        "providers": _chain(params.targets),
        "targets": {
            target.name: _target(target, validations[target.name], sessions[target.name])
            for target in params.targets
        },
        "session": to_json(sessions[params.targets[0].name]),
        "validation": {
            target: {key: report.get(key) for key in ("passed", "tolerances", "metrics")}
            for target, report in _ran(validations).items()
        },
        "evaluation": {
            target: {key: report.get(key) for key in _SCORES}
            for target, report in _ran(evaluations).items()
        },
        "fidelity": _ran(fidelities),
        "versions": {
            "onnxbuild": params.onnxbuild,
            "onnx": _onnx_version(),
            "onnxruntime": _runtime_version(),
        },
    }


def _check_validated(context: StepContext, validations: dict[str, Any]) -> None:
    """Refuse a model that nothing was run on: no target was there."""
    if not _ran(validations):
        reasons = "; ".join(f"{name}: {each['skipped']}" for name, each in validations.items())
        raise StepError(
            f"the model ran on none of its targets, so nothing vouches for it ({reasons})",
            where=context.where,
            fix="add `cpu` to `providers`, or run where one of them is",
        )


def _ran(reports: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in reports.items() if "skipped" not in each}


def _chain(targets: tuple[Target, ...]) -> list[dict[str, Any]]:
    """All providers that are built in, in order of preference, for whoever takes what is there.

    Each names the target whose session settings it takes: the first that begins with it, else the
    first that has it.
    """
    links: dict[str, dict[str, str]] = {}
    owners: dict[str, str] = {}
    begins: dict[str, str] = {}
    for target in targets:
        for link in target.chain if target.library is None else ():
            provider = full_name(link.provider)
            links.setdefault(provider, dict(link.options))
            owners.setdefault(provider, target.name)
            if link is target.chain[0]:
                begins.setdefault(provider, target.name)
    return [
        {"name": name, "options": options, "target": {**owners, **begins}[name]}
        for name, options in links.items()
    ]


def _target(
    target: Target, validation: dict[str, Any], session: SessionSettings
) -> dict[str, Any]:
    """One target, how sessions run there, and whether the model was run on it."""
    entry: dict[str, Any] = {
        "chain": [
            {"name": full_name(link.provider), "options": dict(link.options)}
            for link in target.chain
        ],
        "session": to_json(session),
    }
    if target.library is not None:
        entry["library"] = PurePosixPath(target.library.files[0]).name
    if "environment" in validation:
        entry["environment"] = validation["environment"]
    if "skipped" in validation:
        return {**entry, "skipped": validation["skipped"]}
    return {**entry, "placement": validation["placement"]}


def _sessions(context: StepContext) -> dict[str, SessionSettings]:
    """Target -> how the variant is run there."""
    params: PackageParams = context.params
    return {
        target.name: read_settings(context.input(f"session/{target.name}"))
        if f"session/{target.name}" in context.input_names
        else params.session
        for target in params.targets
    }


def _reports(context: StepContext, group: str) -> dict[str, Any]:
    """Target -> its report, of the inputs `group`/*."""
    return {
        name.partition("/")[2]: json.loads((context.input(name) / REPORT_FILE).read_text("utf-8"))
        for name in context.input_names
        if name.startswith(f"{group}/")
    }


def _names(folder: Path) -> list[str]:
    """All files below a folder, POSIX paths relative to it, sorted."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _onnx_version() -> str:
    from importlib import metadata

    return metadata.version("onnx")


def _runtime_version() -> str:
    import onnxruntime

    return str(onnxruntime.__version__)


KIND = StepKind(
    name="package",
    version=10,
    params=PackageParams,
    inputs=(
        "model",
        "check",
        "export-check",
        "validation/*",
        "evaluation/*",
        "fidelity/*",
        "gate/*",
        "session/*",
    ),
    outputs={"bundle": "bundle"},
    toolchain=("onnx", "onnxruntime"),
    run=run,
)
