"""The golden inputs through a release's programs beside ONNX, and through what is made ahead of time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import from_json
from onnxbuild.core.providers import CPU, short_name
from onnxbuild.core.target import Link, Target, TargetGates
from onnxbuild.onnxkit.ahead_of_time_files import MadeFor, other_machine
from onnxbuild.onnxkit.program_files import described, write_description
from onnxbuild.onnxkit.session_settings import SessionSettings
from onnxbuild.onnxkit.tolerances import VariantTolerances
from onnxbuild.release_format.forms import following
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.steps import validate, validate_program
from onnxbuild.verification.replay_context import ReplayContext, Replayed

_UNTRUSTED = (
    "a program of PyTorch may do what any program may: with --trust-programs it is run, if you "
    "trust who made the release (its signature: --key)"
)


def replay_program(
    bundle: Path, golden: Path, scratch: Path, *, providers: Sequence[str], trusted: bool
) -> Iterator[Replayed]:
    """Run a program beside ONNX.

    Args:
        bundle: Its folder.
        golden: The reference's folder: inputs and PyTorch's outputs.
        scratch: An empty folder.
        providers: Short names that were asked for; programs run on the CPU alone.
        trusted: Whether it may be run at all.

    Raises:
        NotReproducibleError: The manifest can't be followed.
        StepError: PyTorch can't load it, though it should.
    """
    with following(f"{bundle.name}/{MANIFEST}"):
        manifest = _manifest(bundle)
        description = described(manifest)
        reason = _absence(manifest, CPU, providers)
        params = validate_program.ValidateProgramParams(description.format, _tolerances(manifest))
    if not reason and not trusted:
        reason = _UNTRUSTED
    if not reason:
        reason = _other_torch(manifest)
    if reason:
        yield Replayed(description.format, CPU, {}, skipped=reason)
        return
    write_description(scratch, description)
    (scratch / description.file).symlink_to((bundle / description.file).absolute())
    where = f"{manifest['name']}:{description.format}"
    context = ReplayContext(params, where, scratch, {"program": scratch, "reference": golden})
    outcome = validate_program.run(context)
    yield Replayed(description.format, CPU, dict(outcome.metrics), outcome.findings)


def replay_made_ahead(
    bundle: Path, golden: Path, scratch: Path, *, providers: Sequence[str]
) -> Iterator[Replayed]:
    """Run what is made ahead of time, on the provider and the kind of machine that it is made for.

    Args:
        bundle: Its folder.
        golden: The reference's folder.
        scratch: An empty folder.
        providers: Short names that were asked for; empty for its own.

    Raises:
        NotReproducibleError: The manifest can't be followed.
        StepError: ONNX Runtime refuses it, on a provider that was asked for.
    """
    with following(f"{bundle.name}/{MANIFEST}"):
        manifest = _manifest(bundle)
        name = f"{manifest['variant']}-{manifest['kind']}"
        provider = short_name(manifest["provider"])
        reason = _absence(manifest, provider, providers)
        folders = dict.fromkeys(manifest["folder_options"], str(bundle))
        options = {**manifest["provider_options"], **folders}
        params = validate.ValidateParams(
            variant=name,
            precision=manifest["precision"],
            tolerances=_tolerances(manifest),
            target=Target(provider, (Link(provider, options),)),
            gates=TargetGates(),
            session=SessionSettings(
                graph_optimization=manifest["graph_optimization"], config=manifest["config"]
            ),
        )
    if reason:
        yield Replayed(name, provider, {}, skipped=reason)
        return
    where = f"{manifest['name']}:{name}"
    context = ReplayContext(params, where, scratch, {"model": bundle, "reference": golden})
    try:
        outcome = validate.run(context)
    except StepError as error:
        if provider in providers or provider == CPU:
            raise
        yield Replayed(name, provider, {}, skipped=error.what)
        return
    metrics = dict(outcome.metrics)
    skipped = str(metrics.pop("skipped", ""))
    yield Replayed(name, provider, metrics, outcome.findings, skipped)


def _other_torch(manifest: Mapping[str, Any]) -> str:
    """Why the PyTorch that is here can't run a program; empty if it can."""
    try:
        here = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "PyTorch is not installed: pip install torch"
    made_by = manifest["versions"]["torch"]
    if manifest["made_for"] is not None and here != made_by:
        return f"its machine code needs torch {made_by}; this is {here}"
    return ""


def _manifest(bundle: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    return told


def _tolerances(manifest: Mapping[str, Any]) -> VariantTolerances:
    return from_json(VariantTolerances, manifest["validation"]["tolerances"])


def _absence(manifest: Mapping[str, Any], provider: str, providers: Sequence[str]) -> str:
    """Why a bundle is not run here; empty if it can be."""
    if providers and provider not in providers:
        return f"it runs on {provider} alone"
    told = manifest["made_for"]
    return "" if told is None else other_machine(from_json(MadeFor, told))
