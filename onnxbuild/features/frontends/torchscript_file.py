"""TorchScript: `model: {torchscript: FILE.pt}`, converted to ONNX and held against itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.params import option
from onnxbuild.expansion.evaluation import baseline_score
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.model_source import ModelSource, SourceError, SourceFacts
from onnxbuild.expansion.module_source import module_reference, module_source
from onnxbuild.onnxkit.modules.program_modules import FORM, MADE_BY, SUBMODULE, TORCHSCRIPT
from onnxbuild.onnxkit.ready_onnx.declared import completed_axes

if TYPE_CHECKING:
    from onnxbuild.onnxkit.programs.torchscript_outline import Argument, TorchScriptOutline


@dataclass(frozen=True, slots=True)
class TorchScriptFileOptions:
    """Keys next to `torchscript` in `model`."""

    submodule: str = option("", help="the part of it that is the model, by its path with dots")


def _look(path: Path) -> TorchScriptOutline:
    """The code of a TorchScript archive.

    Raises:
        SourceError: It is none.
        OSError: It can't be read.
    """
    from onnxbuild.onnxkit.programs.exported_outline import ProgramError
    from onnxbuild.onnxkit.programs.torchscript_outline import TorchScriptOutline

    try:
        return TorchScriptOutline(path)
    except ProgramError as error:
        raise SourceError(str(error), error.fix) from error


def _read(
    path: Path,
    outline: TorchScriptOutline,
    options: TorchScriptFileOptions,
    written: Mapping[str, Any],
) -> SourceFacts:
    """What is left of a recipe where the inputs are written: TorchScript says names, and no shapes.

    Raises:
        SourceError: There is no such submodule, or inputs are not written as forward takes them.
    """
    from onnxbuild.onnxkit.programs.exported_outline import ProgramError

    try:
        arguments = outline.arguments(options.submodule)
    except ProgramError as error:
        raise SourceError(str(error), error.fix, ("model", "submodule")) from error
    inputs = written.get("dummy_inputs")
    inputs = inputs if isinstance(inputs, Mapping) else {}
    _check(path.name, arguments, inputs)
    axes = written.get("dynamic_axes")
    completed = completed_axes(_shapes(inputs.values()), axes if isinstance(axes, Mapping) else {})
    return SourceFacts(
        files=(path,),
        read=(path,),
        recipe={"dynamic_axes": completed} if completed else {},
        facts={FORM: TORCHSCRIPT, SUBMODULE: options.submodule, MADE_BY: ""},
    )


def _check(name: str, arguments: Iterable[Argument], inputs: Mapping[str, Any]) -> None:
    tensors = [each for each in arguments if each.is_tensor]
    fixed = [each for each in arguments if not each.is_tensor and not each.has_default]
    if fixed:
        raise SourceError(
            f"forward of {name} takes `{fixed[0].name}: {fixed[0].type}`; a recipe feeds tensors",
            "name a part that takes tensors alone (`submodule: NAME` next to `torchscript`), or write a callable "
            f"that returns a module which loads it and passes `{fixed[0].name}` on",
        )
    known = [each.name for each in tensors]
    missing = [each.name for each in tensors if each.name not in inputs and not each.has_default]
    if missing:
        given = ", ".join(f"`{each}`" for each in missing)
        lines = ", ".join(f"{each}: {{dtype: float32, shape: [batch, ...]}}" for each in missing)
        raise SourceError(
            f"forward of {name} takes {given}, and TorchScript says no types and shapes",
            f"write `dummy_inputs: {{{lines}}}`",
            ("dummy_inputs",) if inputs else (),
        )
    for each in inputs if known else ():
        if each not in known:
            near = did_you_mean(str(each), known)
            raise SourceError(
                f"forward of {name} takes no tensor '{each}'",
                f"{near} it takes {', '.join(known)}".strip(),
                ("dummy_inputs", str(each)),
            )


def _shapes(inputs: Iterable[object]) -> Iterable[list[int | str]]:
    for each in inputs:
        shape = each.get("shape") if isinstance(each, Mapping) else None
        if isinstance(shape, list):
            yield [size for size in shape if isinstance(size, int | str)]


FEATURE = Frontend(
    name=TORCHSCRIPT,
    source=module_source,
    reference=module_reference,
    score=baseline_score,
    model_source=ModelSource(
        help="an archive of torch.jit.save, relative to this file; `dummy_inputs` are written, by the names of "
        "forward's arguments. It holds code, which runs in fenced steps",
        options=TorchScriptFileOptions,
        look=_look,
        read=_read,
        suffixes=(".pt", ".pth", ".ts", ".jit"),
    ),
)
