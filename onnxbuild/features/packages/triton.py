"""`triton`: a model repository for NVIDIA's Triton Inference Server, with its ONNX Runtime backend."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.step import Outcome, StepContext
from onnxbuild.document.faults import Fault, choices, hinted, nearest
from onnxbuild.expansion.package_format import (
    Packaged,
    PackageFormat,
    PackageRequest,
    graph_at_top,
    package_kind,
)
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, read_reference
from onnxbuild.onnxkit.model.model_files import file_bytes
from onnxbuild.onnxkit.packages.contents import packed, read_bundle
from onnxbuild.onnxkit.packages.signature import signature_of
from onnxbuild.onnxkit.triton.ensemble import (
    EnsembleSources,
    holds_ensemble,
    model_in_ensemble,
    version_folder,
    write_ensemble,
)
from onnxbuild.onnxkit.triton.model_config import NoFormError, accelerators_of, unplaced
from onnxbuild.onnxkit.triton.options import VARIANT, TritonOptions, model_name
from onnxbuild.onnxkit.triton.repository import (
    Served,
    can_warm_up,
    hand_libraries_on,
    why_not,
    write_model,
    write_readme,
)

_MODEL, _MODEL_REFERENCE = "model", "model-reference"


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


def package(context: StepContext) -> Outcome:
    """Write NAME/config.pbtxt, NAME/VERSION/ with the bundle's model, byte for byte, NAME/warmup/ and SHA256SUMS.

    With the input `model`, an ensemble of the models that the bundle's is made of.

    Raises:
        StepError: Triton has no form for the model, or for what is asked for.
    """
    params: PackageTritonParams = context.params
    repository = context.output("bundle")
    source, manifest = read_bundle(context)
    signature, target = signature_of(manifest), (manifest.targets or {})[params.target]
    accelerators = accelerators_of(target.chain)
    served = Served(params.name, params.options, target.session, accelerators)
    is_ensemble = _MODEL in context.input_names
    point = _first_point(context, "reference")
    holds_operators = model_in_ensemble(params.name) if is_ensemble else params.name
    libraries = hand_libraries_on(source, repository, holds_operators, manifest)
    try:
        if is_ensemble:
            own = _first_point(context, _MODEL_REFERENCE)
            size = write_ensemble(
                repository,
                served,
                signature,
                EnsembleSources(source, context.input(_MODEL), point, own),
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
    model_bytes = sum(map(file_bytes, repository.glob(f"*/{params.options.version}")))
    metrics = {"model_bytes": model_bytes, "max_batch_size": size}
    return packed(context, manifest, metrics, notes)


def _first_point(context: StepContext, reference: str) -> ReferencePoint | None:
    """Return the point that a model is warmed up with; None where the recipe wants no warm-up."""
    params: PackageTritonParams = context.params
    return next(read_reference(context.input(reference))) if params.options.warmup else None


def _params(packaged: Packaged) -> PackageTritonParams:
    options: TritonOptions = packaged.options
    recipe = packaged.recipe
    name = model_name(recipe.name, packaged.bundle, options)
    return PackageTritonParams(options, name, options.target or recipe.targets[0].name)


def _inputs_of(packaged: Packaged) -> Mapping[str, OutputRef]:
    """The models that an ensemble is made of."""
    subject = packaged.subject
    if not packaged.options.ensemble or subject.further is None:
        return {}
    own = replace(packaged, subject=replace(subject, further=None))
    return {_MODEL: subject.model, _MODEL_REFERENCE: own.reference}


def _faults(request: PackageRequest) -> Iterator[Fault]:
    options: TritonOptions = request.options
    parts = request.parts
    yield from _name_faults(request)
    yield from _batch_faults(request)
    if options.instance_groups and (options.instances or options.device != "auto"):
        what = (
            "packages.triton has instance_groups, and `instances` or `device`, which mean the same"
        )
        yield request.fault(what, "keep `instance_groups` alone", "instance_groups")
    for number, group in enumerate(options.instance_groups):
        if group.gpus and group.device != "gpu":
            what = f"packages.triton.instance_groups names GPUs for `device: {group.device}`"
            fix = "write `device: gpu`, or remove `gpus`"
            yield request.fault(what, fix, "instance_groups", number)
    is_known = parts.sound("quantization") and parts.sound("processing")
    if options.ensemble and is_known and set(request.bundles) <= set(parts.variants):
        what = "packages.triton has `ensemble`, and no pipeline is packaged: a model without `processing` is one graph"
        fix = "name one in packages.variants, as `int8-pipeline`, or remove `ensemble`"
        yield request.fault(what, fix, "ensemble")
    if options.target and parts.sound("providers") and options.target not in parts.targets:
        near = nearest(options.target, parts.targets)
        what = hinted(f"packages.triton.target is '{options.target}', which is no target", near)
        yield request.fault(what, f"write {near or choices(parts.targets)}", "target")


def _name_faults(request: PackageRequest) -> Iterator[Fault]:
    options: TritonOptions = request.options
    if "{" in options.name.replace(VARIANT, "") or "}" in options.name.replace(VARIANT, ""):
        what = f"packages.triton.name is '{options.name}'; `{VARIANT}` alone may stand in braces"
        yield request.fault(what, f"write `{VARIANT}`, or no braces", "name")
        return
    chosen = request.bundles
    if options.name and VARIANT not in options.name and len(chosen) > 1:
        what = f"packages.triton.name is '{options.name}' for {len(chosen)} bundles, which Triton could not tell apart"
        yield request.fault(what, f"write `name: {options.name}-{VARIANT}`", "name")


def _batch_faults(request: PackageRequest) -> Iterator[Fault]:
    """Batches that inputs can't carry; shapes of outputs are known once the model is there."""
    options: TritonOptions = request.options
    parts = request.parts
    if (
        options.preferred_batch_sizes or options.max_queue_delay_us
    ) and not options.dynamic_batching:
        what = (
            "packages.triton says how requests wait for each other, and `dynamic_batching` is off"
        )
        yield request.fault(what, "add `dynamic_batching: true`")
    asked = "dynamic_batching" if options.dynamic_batching else "max_batch_size"
    if not options.dynamic_batching and not options.max_batch_size:
        return
    if options.max_batch_size == 0:
        what = "packages.triton has `dynamic_batching` and `max_batch_size: 0`, without batches"
        yield request.fault(what, "remove one of them", "max_batch_size")
        return
    shapes = [each.shape for each in parts.inputs.values()]
    is_known = parts.sound("dummy_inputs") and parts.sound("dynamic_axes") and shapes
    if not is_known or not set(request.bundles) & set(parts.variants):
        return
    why = why_not(shapes, parts.axes)
    if why:
        what = f"packages.triton.{asked} asks for batches, and {why}"
        fix = f"remove `{asked}`, or give all inputs and outputs one first axis with `min: 1`"
        yield request.fault(what, fix, asked)
        return
    axis = parts.axes[str(shapes[0][0])]
    cap = options.max_batch_size or axis.max
    if cap > axis.max:
        what = f"packages.triton.max_batch_size is {cap}, and axis '{axis.name}' takes {axis.rule}"
        fix = f"write `max_batch_size: {axis.max}`, or a greater `max` of the axis"
        yield request.fault(what, fix, "max_batch_size")
        return
    for number, size in enumerate(options.preferred_batch_sizes):
        if size > cap:
            what = f"packages.triton.preferred_batch_sizes has {size}, and a batch has {cap} rows at most"
            fix = f"write sizes up to {cap}"
            yield request.fault(what, fix, "preferred_batch_sizes", number)


def _contents(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """The one version of the model that Triton serves holds the model's files, and no other.

    Raises:
        ValueError: There are more models or versions.
    """
    served = version_folder(folder)
    there = {path.name: f"{served}/{path.name}" for path in (folder / served).iterdir()}
    return {**there, **{name: there.get(name, "") for name in graph_at_top(folder, manifest)}}


FEATURE: PackageFormat = PackageFormat(
    name="triton",
    options=TritonOptions,
    title="a model repository for NVIDIA's Triton",
    request_faults=_faults,
    kind=package_kind(
        "triton",
        4,
        PackageTritonParams,
        package,
        toolchain=("onnx", "numpy", "jinja2"),
        inputs=("bundle", "reference", f"{_MODEL}?", f"{_MODEL_REFERENCE}?"),
    ),
    params=_params,
    inputs_of=_inputs_of,
    contents=_contents,
    is_cut=holds_ensemble,
)
