"""ONNX: a model that is ONNX already, a file or what a callable returns; held against itself."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from onnxbuild.core.draft import Draft
from onnxbuild.core.errors import StepError
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import FILE_DATA, Variant
from onnxbuild.core.source_error import SourceError, about
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts, key_needs_frontend
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.evaluation import baseline_score
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.model_source import ModelSource, SourceFacts, facts_of_renamed
from onnxbuild.expansion.reference_plan import SECTION as REFERENCE
from onnxbuild.expansion.reference_plan import ReferencePlan
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.frontend_steps.shared_steps import (
    add_reference,
    checked_source,
    onnx_as_given,
    raised,
)
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.model_files import is_name_below
from onnxbuild.onnxkit.ready_onnx.outline import outline_of
from onnxbuild.onnxkit.ready_onnx.probes import AS_WRITTEN
from onnxbuild.onnxkit.ready_onnx.wire import OutlineError
from onnxbuild.onnxkit.sources.outline import OPSET, SourceOutline
from onnxbuild.onnxkit.sources.parts import recipe_parts
from onnxbuild.onnxkit.sources.renaming import RENAME, RENAME_HELP, renamed_outline
from onnxbuild.steps import import_onnx, raise_opset, reference

NAME = "onnx"

_ORIGINAL = "original"
"""Name in Recipe.entrypoints of `reference.model`."""

_TRIED_MAX_BYTES = 1 << 30
"""Greater models are not copied and run for a first recipe."""

_ADVICE = ("the file itself differs from what `reference.model` gives: convert the model again",)


def _source(scope: Scope) -> Source:
    recipe, imported = scope.recipe, _imported(scope)
    model = OutputRef(imported, "model")
    if recipe.model.target == FILE_DATA and recipe.opset != recipe.model.args[OPSET]:
        model = raised(scope, model)
    return checked_source(scope, imported, opset=None, model=model)


def _imported(scope: Scope) -> str:
    """The step that gives the model as it was made, in its own opset."""
    recipe = scope.recipe
    is_file = recipe.model.target == FILE_DATA
    return scope.step(
        shared(recipe, "import"),
        import_onnx.KIND,
        import_onnx.ImportOnnxParams(
            model=replace(recipe.model, args={}) if is_file else recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=recipe.axes,
            rename=cast("Mapping[str, str]", recipe.model.args[RENAME]) if is_file else {},
        ),
        section="model",
    )


def _reference(scope: Scope, variant: Variant | None, fixed: Mapping[str, int]) -> OutputRef:
    """Add the reference step, which runs the model itself, or its original where `reference.model` gives that."""
    inputs, original = scope.recipe.inputs, scope.recipe.entrypoints.get(_ORIGINAL)
    imported = _imported(scope)
    given = {"model": OutputRef(imported, "model")}

    def params(plan: ReferencePlan) -> object:
        at = (inputs, plan.axes, plan.samples, plan.options)
        if original is None:
            return reference.OnnxReferenceParams(*at)
        return reference.OriginalReferenceParams(original, *at)

    if original is None:
        return add_reference(scope, (variant, fixed), reference.ONNX, params, given)
    given["config"] = OutputRef(imported, "config")
    return add_reference(scope, (variant, fixed), reference.ORIGINAL, params, given)


def _score(scope: Scope) -> OutputRef | None:
    """The score of what the model was made of where that is given; else its own, without optimizations."""
    original = scope.recipe.entrypoints.get(_ORIGINAL)
    if original is not None:
        config = OutputRef(_imported(scope), "config")
        return baseline_score(scope, original=original, config=config)
    return baseline_score(scope, OutputRef(_imported(scope), "model"), AS_WRITTEN)


def _faults(parts: Parts) -> Iterator[Fault]:
    yield from key_needs_frontend(parts, NAME, REFERENCE, "model")
    node, keys = parts.node("frontend"), parts.declared("model")
    is_callable = not keys or "entrypoint" in keys
    if node is not None and node.value == NAME and is_callable and parts.node("opset") is not None:
        what = "opset is written, and the model that a callable returns keeps its own"
        fix = "remove `opset`, or name the file: `model: {onnx: FILE}`"
        yield Fault(what, parts.key_at("opset"), fix)


@dataclass(frozen=True, slots=True)
class OnnxFileOptions:
    """Keys next to `onnx` in `model`."""

    rename: Mapping[str, str] = field(default_factory=dict, metadata={"help": RENAME_HELP})


def _look(path: Path) -> SourceOutline:
    """The outline of an .onnx file; its files are the names of those of weights.

    Raises:
        SourceError: It is no ONNX model.
        OSError: It can't be read.
    """
    try:
        return outline_of(path)
    except OutlineError as error:
        fix = "check that the file is complete; git-lfs pointers are a frequent cause"
        raise SourceError(f"{path.name} can't be read: {error}", fix) from error


def _read(
    path: Path, outline: SourceOutline, options: OnnxFileOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Read the facts of an .onnx file: inputs, axes, outputs, opset, files of weights.

    Raises:
        SourceError: No recipe can declare it, or it lacks a file.
    """
    for name in outline.files:
        if not is_name_below(name) or not (path.parent / name).is_file():
            raise SourceError(
                f"{path.name} has weights in {str(name)!a}, and there is no such file in its folder",
                "copy the file there, or save the model again with its weights next to it",
            )
    files = (path, *(path.parent / name for name in outline.files))
    return facts_of_renamed(path, replace(outline, files=files), options.rename, written)


def _tried(
    path: Path,
    outline: SourceOutline,
    options: OnnxFileOptions,
    written: Mapping[str, Any],
    folder: Path,
) -> Draft | None:
    """Return the sizes that an .onnx file really takes, found by running it; None where they are all that it says."""
    from onnxbuild.onnxkit.ready_onnx.probes import draft_of_sizes

    facts = _read(path, outline, options, written)
    if sum(each.stat().st_size for each in facts.files) > _TRIED_MAX_BYTES:
        return None
    return draft_of_sizes(path, options.rename, facts.recipe, folder)


def _draft(model: object) -> Draft | None:
    """Draft a recipe whose callable returns a path, or a ModelProto; None for any other object.

    Raises:
        StepError: It is no ONNX model, or no recipe can declare it.
    """
    if isinstance(model, onnx.ModelProto):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.onnx")
            path.write_bytes(model.SerializeToString())
            return _draft_of_file(path, ())
    if not isinstance(model, (str, os.PathLike)):
        return None
    path = Path(model)
    return _draft_of_file(path, (path,))


def _draft_of_file(path: Path, files: tuple[Path, ...]) -> Draft:
    try:
        outline = _look(path)
        with about(path):
            said = recipe_parts(renamed_outline(outline, {}, {}), {})
    except OSError as error:
        raise StepError(f"the callable returned {path}, which can't be read: {error}") from error
    except SourceError as error:
        raise StepError(error.what, fix=error.fix) from error
    del said["opset"]  # a callable's model keeps its own
    others = tuple(path.parent / name for name in outline.files) if files else ()
    comments = dict.fromkeys(said, "from the model that it returns")
    return Draft({"frontend": NAME, **said}, comments, files=(*files, *others))


FEATURE = Frontend(
    name=NAME,
    kinds=(import_onnx.KIND, raise_opset.KIND, reference.ONNX, reference.ORIGINAL),
    faults=_faults,
    source=_source,
    reference=_reference,
    score=_score,
    baseline=onnx_as_given(lambda scope: OutputRef(_imported(scope), "model")),
    draft=_draft,
    diagnosis=DiagnosisHints(advice={import_onnx.KIND.name: _ADVICE}),
    model_source=ModelSource(
        words="onnx_model onnx_file model_path",
        help="an .onnx file, relative to this file: it says its inputs, axes, outputs and opset, as far "
        "as the recipe does not",
        options=OnnxFileOptions,
        look=_look,
        read=_read,
        tried=_tried,
        suffixes=(".onnx",),
    ),
)
