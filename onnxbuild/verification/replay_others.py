"""Replay the golden inputs through a release's PyTorch programs and ahead-of-time models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

from onnxbuild.core.params import from_json
from onnxbuild.core.providers import CPU, short_name
from onnxbuild.core.target import Link, Target, TargetGates
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.host.made_for import MadeFor, other_machine
from onnxbuild.onnxkit.programs.artifact_file import described, write_description
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.release_format.bundles import model_file
from onnxbuild.release_format.forms import following, read_json
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.steps import validate, validate_program
from onnxbuild.verification.allowed import (
    COMPILED_KINDS,
    holds_compiled_nodes,
    refused_options,
    refused_settings,
)
from onnxbuild.verification.fenced_replay import UNTRUSTED, Replay, attempt
from onnxbuild.verification.replay_context import Asked, Replayed


def replay_program(asked: Asked) -> Iterator[Replayed]:
    """Run a PyTorch program.

    Raises:
        NotReproducibleError: The manifest can't be followed.
    """
    with following(f"{asked.bundle.name}/{MANIFEST}"):
        manifest = _manifest(asked)
        description = described(manifest)
        reason = _absence(manifest, CPU, asked.providers)
        params = validate_program.ValidateProgramParams(description.format, _tolerances(manifest))
        program = asked.bundle / model_file(manifest)
        where = f"{manifest['name']}:{description.format}"
        if not reason:
            reason = "" if asked.trusted else UNTRUSTED
        if not reason:
            reason = _other_torch(manifest)
        if reason:
            yield Replayed(description.format, CPU, {}, skipped=reason)
            return
    artifact = asked.scratch / "program"
    artifact.mkdir()
    write_description(artifact, description)
    (artifact / description.file).symlink_to(program.absolute())
    run = Replay(
        "validate-program",
        params,
        where,
        {"program": artifact, "reference": asked.golden},
        (artifact, asked.bundle, asked.golden),
        asked.scratch / "own",
        asked.timeout_s,
    )
    yield attempt(run, description.format, CPU, asked_for=False, on_cpu=True)


def replay_made_ahead(asked: Asked) -> Iterator[Replayed]:
    """Run what is made ahead of time, on the provider and the kind of machine that it is made for.

    Raises:
        NotReproducibleError: The manifest can't be followed.
        StepError: ONNX Runtime refuses it, on a provider that was asked for.
    """
    with following(f"{asked.bundle.name}/{MANIFEST}"):
        manifest = _manifest(asked)
        name = f"{manifest['variant']}-{manifest['kind']}"
        provider = short_name(manifest["provider"])
        model = asked.bundle / model_file(manifest)
        folders = dict.fromkeys(manifest["folder_options"], str(asked.bundle.absolute()))
        recorded = {
            "graph_optimization": manifest["graph_optimization"],
            "config": manifest["config"],
        }
        settings = from_json(SessionSettings, recorded)
        options = dict(manifest["provider_options"])
        reason = (
            _absence(manifest, provider, asked.providers)
            or _refused(manifest, asked)
            or refused_settings(settings.config)
            or refused_options(provider, options)
        )
        params = validate.ValidateParams(
            variant=name,
            precision=manifest["precision"],
            tolerances=_tolerances(manifest),
            target=Target(provider, (Link(provider, {**options, **folders}),)),
            gates=TargetGates(),
            session=settings,
        )
        run = Replay(
            "validate",
            params,
            f"{manifest['name']}:{name}",
            {"model": model, "reference": asked.golden},
            (asked.bundle, asked.golden),
            asked.scratch / "own",
            asked.timeout_s,
        )
    if reason:
        yield Replayed(name, provider, {}, skipped=reason)
        return
    yield attempt(
        run, name, provider, asked_for=provider in asked.providers, on_cpu=params.target.is_cpu
    )


def _refused(manifest: Mapping[str, Any], asked: Asked) -> str:
    """Why an engine or a compiled model is not run; empty if it may be, or is none."""
    is_program = manifest["kind"] in COMPILED_KINDS or holds_compiled_nodes(
        asked.bundle / model_file(manifest)
    )
    return UNTRUSTED if is_program and not asked.trusted else ""


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


def _manifest(asked: Asked) -> dict[str, Any]:
    recorded: dict[str, Any] = read_json((asked.bundle / MANIFEST).read_bytes())
    return recorded


def _tolerances(manifest: Mapping[str, Any]) -> VariantTolerances:
    return from_json(VariantTolerances, manifest["validation"]["tolerances"])


def _absence(manifest: Mapping[str, Any], provider: str, providers: Sequence[str]) -> str:
    """Why a bundle is not run here; empty if it can be."""
    if providers and provider not in providers:
        return f"it runs on {provider} alone"
    recorded = manifest["made_for"]
    return "" if recorded is None else other_machine(from_json(MadeFor, recorded))
