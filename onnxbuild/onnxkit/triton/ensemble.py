"""A pipeline as an ensemble: preprocessing, model and postprocessing as models of their own.

Source: triton-inference-server/server, docs/user_guide/ensemble_models.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.data.reference_files import ReferencePoint
from onnxbuild.onnxkit.model.inspect import describe_value
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.packages.contents import write_text
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port
from onnxbuild.onnxkit.processing.merge import CutError, split
from onnxbuild.onnxkit.triton.model_config import (
    CONFIG_FILE,
    Accelerators,
    EnsemblePart,
    ModelConfig,
    NoFormError,
    inputs_of,
    outputs_of,
    text_of,
)
from onnxbuild.onnxkit.triton.repository import Served, batch_of, write_model

if TYPE_CHECKING:
    import onnx

VERSION_FILE = "ensemble.txt"
_NOTE = "The ensemble is in config.pbtxt; Triton wants a folder for its version.\n"
_PART_ENDS = ("-preprocess", "-model", "-postprocess")
_ON_CPU = Accelerators((), (), "cpu", (), ())


@dataclass(frozen=True, slots=True)
class EnsembleSources:
    """Sources of an ensemble: its two models, and the points that warm them up.

    Attributes:
        pipeline: Folder of the merged model.
        model: Folder of the variant's model.
        pipeline_point: What preprocessing is warmed up with; None for nothing.
        model_point: What the model is warmed up with: its inputs may have the names of the pipeline's.
    """

    pipeline: Path
    model: Path
    pipeline_point: ReferencePoint | None
    model_point: ReferencePoint | None


@dataclass(frozen=True, slots=True)
class _Part:
    """A model of the ensemble.

    Attributes:
        served: How it is served.
        signature: Its inputs and outputs.
        folder: Holds its files.
        inputs: Its input -> tensor of the ensemble.
        outputs: Its output -> tensor of the ensemble.
        point: What it is warmed up with; None for nothing; an ensemble can't be.
    """

    served: Served
    signature: ModelSignature
    folder: Path
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    point: ReferencePoint | None = None


def write_ensemble(
    folder: Path,
    served: Served,
    whole: ModelSignature,
    sources: EnsembleSources,
    *,
    libraries: Sequence[str],
    scratch: Path,
) -> int:
    """Write an ensemble NAME and the models NAME-preprocess, NAME-model and NAME-postprocess; return `max_batch_size`.

    The one in the middle is the variant's own, byte for byte.

    Args:
        served: How the pipeline is served; pre- and postprocessing run on the CPU.
        sources: What it is made of.
        libraries: Of the model's custom operators, relative to the repository.
        scratch: A folder for files on their way.

    Raises:
        NoFormError: Triton has no form for the pipeline, or for what is asked for.
    """
    parts = _parts(served, whole, sources, scratch)
    size = min(batch_of(each.signature, served.options)[1] for each in parts)
    size = min(size, batch_of(whole, served.options)[1])
    for each in parts:
        options = replace(each.served.options, max_batch_size=size)
        write_model(
            folder,
            replace(each.served, options=options),
            each.signature,
            each.folder,
            point=each.point,
            libraries=libraries if each.folder == sources.model else (),
        )
    own = folder / served.name
    version = own / str(served.options.version)
    version.mkdir(parents=True)
    write_text(version / VERSION_FILE, _NOTE)
    config = ModelConfig(
        name=served.name,
        max_batch_size=size,
        inputs=inputs_of(whole, batched=size > 0, ensemble=True),
        outputs=outputs_of(whole, batched=size > 0, ensemble=True),
        options=served.options,
        parts=tuple(EnsemblePart(each.served.name, each.inputs, each.outputs) for each in parts),
    )
    write_text(own / CONFIG_FILE, text_of(config))
    return size


def holds_ensemble(folder: Path) -> bool:
    """Return whether a repository has an ensemble."""
    return any(folder.glob(f"*/*/{VERSION_FILE}"))


def version_folder(folder: Path) -> str:
    """Return the folder of the variant's own model in a repository: `NAME/VERSION`.

    Args:
        folder: The repository, with one model, or one ensemble and its parts.

    Raises:
        ValueError: It holds more models or versions than this version writes, or none.
    """
    models = {path.parent.name for path in folder.glob(f"*/{CONFIG_FILE}")}
    ensembles = {path.parent.parent.name for path in folder.glob(f"*/*/{VERSION_FILE}")}
    if not ensembles:
        (name,) = _only(models, "models", folder)
    else:
        (ensemble,) = _only(ensembles, "ensembles", folder)
        name = model_in_ensemble(ensemble)
        if odd := sorted(models - {f"{ensemble}{end}" for end in ("", *_PART_ENDS)}):
            raise ValueError(f"the model '{odd[0]}' is no part of '{ensemble}'")
    versions = {path.name for path in (folder / name).iterdir() if path.name.isdecimal()}
    (version,) = _only(versions, "versions", folder / name)
    return f"{name}/{version}"


def _only(found: set[str], what: str, folder: Path) -> set[str]:
    if len(found) != 1:
        names = ", ".join(sorted(found)) or "none"
        raise ValueError(f"{folder.name} holds {len(found)} {what} ({names}), not one")
    return found


def model_in_ensemble(name: str) -> str:
    """Return the name of the variant's own model in an ensemble of that name."""
    return f"{name}-model"


def _parts(
    served: Served, whole: ModelSignature, sources: EnsembleSources, scratch: Path
) -> list[_Part]:
    """The models, in the order in which they run."""
    plain = load_model(sources.model, weights="left")
    try:
        cut = split(load_model(sources.pipeline, weights="mapped"), plain)
    except CutError as error:
        raise NoFormError(
            f"the pipeline can't be an ensemble: {error}", "remove `ensemble`"
        ) from error
    own = _signature(plain, whole)
    named = replace(served, name=model_in_ensemble(served.name))
    parts = [_Part(named, own, sources.model, cut.inputs, cut.outputs, sources.model_point)]
    if cut.before is not None:
        before = _around(cut.before, "preprocess", served, whole, scratch)
        parts.insert(0, replace(before, point=sources.pipeline_point))
    if cut.behind is not None:
        parts.append(_around(cut.behind, "postprocess", served, whole, scratch))
    return parts


def _around(
    graph: onnx.ModelProto, word: str, served: Served, whole: ModelSignature, scratch: Path
) -> _Part:
    """Return the part before or behind the model, its tensors named as in the merged graph."""
    place = scratch / word
    place.mkdir()
    signature = _signature(graph, whole)
    save_model(graph, place)
    inputs, outputs = (
        {port.name: port.name for port in ports} for ports in (signature.inputs, signature.outputs)
    )
    options = replace(
        served.options, device="cpu", instances=0, instance_groups=(), dynamic_batching=False
    )
    named = Served(f"{served.name}-{word}", options, served.session, _ON_CPU)
    return _Part(named, signature, place, inputs, outputs)


def _signature(model: onnx.ModelProto, whole: ModelSignature) -> ModelSignature:
    inputs, outputs = (tuple(_ports(values)) for values in (model.graph.input, model.graph.output))
    return ModelSignature(whole.recipe, whole.variant, MODEL_FILE, inputs, outputs, whole.axes)


def _ports(values: Iterable[onnx.ValueInfoProto]) -> Iterable[Port]:
    for each in values:
        found = describe_value(each)
        shape = None if found["shape"] is None else tuple(found["shape"])
        yield Port(found["name"], found["dtype"], shape, None)
