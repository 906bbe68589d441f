"""`triton`: a model repository for NVIDIA's Triton Inference Server, with its ONNX Runtime backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from onnxbuild.core.graph import OutputRef
from onnxbuild.document.faults import Fault, choices, hinted, nearest
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.feature import Subject
from onnxbuild.expansion.package_format import (
    PackageFormat,
    add_package,
    bundle_name,
    graph_at_top,
    package_reference,
)
from onnxbuild.expansion.requested import PACKAGES, PackagesOptions, bundles_of
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.triton.batching import why_not
from onnxbuild.onnxkit.triton.ensemble import holds_ensemble, version_folder
from onnxbuild.onnxkit.triton.options import VARIANT, TritonOptions, model_name
from onnxbuild.steps import package_triton

NAME = "triton"


def _package(
    scope: Scope, subject: Subject, bundle: OutputRef, options: TritonOptions
) -> OutputRef:
    recipe = scope.recipe
    inputs = {"bundle": bundle, "reference": package_reference(scope, subject)}
    if options.ensemble and subject.further is not None:
        inputs[package_triton.MODEL_INPUT] = subject.model
        own = package_reference(scope, replace(subject, further=None))
        inputs[package_triton.MODEL_REFERENCE_INPUT] = own
    return add_package(
        scope,
        subject,
        NAME,
        package_triton.KIND,
        params=package_triton.PackageTritonParams(
            options,
            model_name(recipe.name, bundle_name(subject), options),
            options.target or recipe.targets[0].name,
        ),
        inputs=inputs,
    )


def _faults(parts: Parts) -> Iterator[Fault]:
    section = parts.sections.get(PACKAGES)
    options = getattr(section, NAME, None)
    if not isinstance(section, PackagesOptions) or not isinstance(options, TritonOptions):
        return
    yield from _name_faults(parts, section, options)
    yield from _batch_faults(parts, section, options)
    if options.instance_groups and (options.instances or options.device != "auto"):
        what = (
            "packages.triton has instance_groups, and `instances` or `device`, which mean the same"
        )
        yield Fault(
            what, parts.at(PACKAGES, NAME, "instance_groups"), "keep `instance_groups` alone"
        )
    for number, group in enumerate(options.instance_groups):
        if group.gpus and group.device != "gpu":
            what = f"packages.triton.instance_groups names GPUs for `device: {group.device}`"
            at = parts.at(PACKAGES, NAME, "instance_groups", number)
            yield Fault(what, at, "write `device: gpu`, or remove `gpus`")
    is_known = parts.sound("quantization") and parts.sound("processing")
    if options.ensemble and is_known and set(_bundles(parts, section)) <= set(parts.variants):
        what = "packages.triton has `ensemble`, and no pipeline is packaged: a model without `processing` is one graph"
        at = parts.at(PACKAGES, NAME, "ensemble")
        yield Fault(
            what, at, "name one in packages.variants, as `int8-pipeline`, or remove `ensemble`"
        )
    if options.target and parts.sound("providers") and options.target not in parts.targets:
        near = nearest(options.target, parts.targets)
        what = hinted(f"packages.triton.target is '{options.target}', which is no target", near)
        at = parts.at(PACKAGES, NAME, "target")
        yield Fault(what, at, f"write {near or choices(parts.targets)}")


def _bundles(parts: Parts, section: PackagesOptions) -> list[str]:
    """The bundles that are packaged."""
    sections = parts.sections.values()
    bundles = (each for name in parts.variants for each in bundles_of(sections, name))
    return [name for name in bundles if section.includes(name)]


def _name_faults(
    parts: Parts, section: PackagesOptions, options: TritonOptions
) -> Iterator[Fault]:
    if "{" in options.name.replace(VARIANT, "") or "}" in options.name.replace(VARIANT, ""):
        what = f"packages.triton.name is '{options.name}'; `{VARIANT}` alone may stand in braces"
        yield Fault(what, parts.at(PACKAGES, NAME, "name"), f"write `{VARIANT}`, or no braces")
        return
    chosen = _bundles(parts, section)
    if options.name and VARIANT not in options.name and len(chosen) > 1:
        what = f"packages.triton.name is '{options.name}' for {len(chosen)} bundles, which Triton could not tell apart"
        yield Fault(
            what, parts.at(PACKAGES, NAME, "name"), f"write `name: {options.name}-{VARIANT}`"
        )


def _batch_faults(
    parts: Parts, section: PackagesOptions, options: TritonOptions
) -> Iterator[Fault]:
    """Batches that inputs can't carry; shapes of outputs are known once the model is there."""
    if (
        options.preferred_batch_sizes or options.max_queue_delay_us
    ) and not options.dynamic_batching:
        what = (
            "packages.triton says how requests wait for each other, and `dynamic_batching` is off"
        )
        yield Fault(what, parts.key_at(PACKAGES, NAME), "add `dynamic_batching: true`")
    asked = "dynamic_batching" if options.dynamic_batching else "max_batch_size"
    if not options.dynamic_batching and not options.max_batch_size:
        return
    if options.max_batch_size == 0:
        what = "packages.triton has `dynamic_batching` and `max_batch_size: 0`, without batches"
        yield Fault(what, parts.at(PACKAGES, NAME, "max_batch_size"), "remove one of them")
        return
    at = parts.at(PACKAGES, NAME, asked)
    shapes = [each.shape for each in parts.inputs.values()]
    is_known = parts.sound("dummy_inputs") and parts.sound("dynamic_axes") and shapes
    if not is_known or not set(_bundles(parts, section)) & set(parts.variants):
        return
    why = why_not(shapes, parts.axes)
    if why:
        what = f"packages.triton.{asked} asks for batches, and {why}"
        fix = f"remove `{asked}`, or give all inputs and outputs one first axis with `min: 1`"
        yield Fault(what, at, fix)
        return
    axis = parts.axes[str(shapes[0][0])]
    cap = options.max_batch_size or axis.max
    if cap > axis.max:
        what = f"packages.triton.max_batch_size is {cap}, and axis '{axis.name}' takes {axis.rule}"
        fix = f"write `max_batch_size: {axis.max}`, or a greater `max` of the axis"
        yield Fault(what, parts.at(PACKAGES, NAME, "max_batch_size"), fix)
        return
    for number, size in enumerate(options.preferred_batch_sizes):
        if size > cap:
            what = f"packages.triton.preferred_batch_sizes has {size}, and a batch has {cap} rows at most"
            place = parts.at(PACKAGES, NAME, "preferred_batch_sizes", number)
            yield Fault(what, place, f"write sizes up to {cap}")


def _held(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """The one version of the model that Triton serves holds the model's files, and no other.

    Raises:
        ValueError: There are more models or versions.
    """
    served = version_folder(folder)
    there = {path.name: f"{served}/{path.name}" for path in (folder / served).iterdir()}
    return {**there, **{name: there.get(name, "") for name in graph_at_top(folder, manifest)}}


FEATURE = PackageFormat(
    name=NAME,
    options=TritonOptions,
    title="a model repository for NVIDIA's Triton",
    kinds=(package_triton.KIND,),
    package=_package,
    faults=_faults,
    held=_held,
    is_cut=holds_ensemble,
)
