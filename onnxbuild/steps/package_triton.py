"""Put a bundle into a model repository of NVIDIA's Triton Inference Server, with its ONNX Runtime backend."""

from __future__ import annotations

import json
from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, read_manifest
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, read_reference
from onnxbuild.onnxkit.model.model_files import file_bytes
from onnxbuild.onnxkit.packages.signature import signature_of
from onnxbuild.onnxkit.triton.accelerators import accelerators_of
from onnxbuild.onnxkit.triton.ensemble import EnsembleSources, model_in_ensemble, write_ensemble
from onnxbuild.onnxkit.triton.model_config import unplaced
from onnxbuild.onnxkit.triton.options import TritonOptions
from onnxbuild.onnxkit.triton.repository import (
    Served,
    can_warm_up,
    hand_libraries_on,
    write_model,
    write_readme,
)
from onnxbuild.onnxkit.triton.types import NoFormError

MODEL_INPUT, MODEL_REFERENCE_INPUT = "model", "model-reference"


@dataclass(frozen=True, slots=True)
class PackageTritonParams:
    """Parameters of a package.

    Attributes:
        options: As the recipe has them.
        name: What clients ask for, and the model's folder.
        target: The target whose providers and session Triton is given.
    """

    options: TritonOptions
    name: str
    target: str


def run(context: StepContext) -> Outcome:
    """Write NAME/config.pbtxt, NAME/VERSION/ with the bundle's model, byte for byte, NAME/warmup/ and SHA256SUMS.

    With the input `model`, an ensemble of the models that the bundle's is made of.

    Raises:
        StepError: Triton has no form for the model, or for what is asked for.
    """
    params: PackageTritonParams = context.params
    source, repository = context.input("bundle"), context.output("bundle")
    manifest = read_manifest(json.loads((source / MANIFEST_FILE).read_text("utf-8")))
    signature, target = signature_of(manifest), (manifest.targets or {})[params.target]
    accelerators = accelerators_of(target.chain)
    served = Served(params.name, params.options, target.session, accelerators)
    is_ensemble = MODEL_INPUT in context.input_names
    point = _first_point(context, "reference")
    holds_operators = model_in_ensemble(params.name) if is_ensemble else params.name
    libraries = hand_libraries_on(source, repository, holds_operators, manifest)
    try:
        if is_ensemble:
            own = _first_point(context, MODEL_REFERENCE_INPUT)
            size = write_ensemble(
                repository,
                served,
                signature,
                EnsembleSources(source, context.input(MODEL_INPUT), point, own),
                libraries=libraries,
                scratch=context.scratch,
            )
        else:
            size = write_model(
                repository, served, signature, source, point=point, libraries=libraries
            )
        write_readme(repository, params.name, signature, size)
    except NoFormError as error:
        raise StepError(str(error), where=context.where, fix=error.fix) from error
    notes = []
    if dropped := unplaced(target.session):
        notes.append(f"Triton has no place for the session settings {', '.join(dropped)}")
    if accelerators.dropped:
        notes.append(
            f"Triton's ONNX Runtime backend has no place for {', '.join(accelerators.dropped)} of target "
            f"'{params.target}'"
        )
    if point is not None and not can_warm_up(signature, point.feeds):
        notes.append(
            "no warm-up is written: NumPy lacks a type of an input, or the inputs are over 64 MiB"
        )
    if libraries:
        notes.append(
            "Triton looks for the custom operators below its working folder: start tritonserver in the "
            "repository's folder, or write absolute paths in config.pbtxt"
        )
    metrics = {
        "model_bytes": sum(map(file_bytes, repository.glob(f"*/{params.options.version}"))),
        "max_batch_size": size,
        "files": write_sums(repository),
    }
    return Outcome(metrics, notes=tuple(notes))


def _first_point(context: StepContext, reference: str) -> ReferencePoint | None:
    """Return the point that a model is warmed up with; None where the recipe wants no warm-up."""
    params: PackageTritonParams = context.params
    return next(read_reference(context.input(reference))) if params.options.warmup else None


KIND = StepKind(
    name="package-triton",
    version=4,
    params=PackageTritonParams,
    inputs=("bundle", "reference", f"{MODEL_INPUT}?", f"{MODEL_REFERENCE_INPUT}?"),
    outputs={"bundle": "bundle"},
    toolchain=("onnx", "numpy", "jinja2"),
    run=run,
)
