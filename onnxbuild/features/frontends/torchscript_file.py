"""TorchScript: `model: {torchscript: FILE.pt}`, converted to ONNX and held against itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.draft import Draft
from onnxbuild.core.params import option
from onnxbuild.expansion.evaluation import baseline_score
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.model_source import ModelSource, SourceFacts, source_facts
from onnxbuild.frontend_steps.shared_steps import module_reference, module_source
from onnxbuild.onnxkit.modules.program_modules import MADE_BY, SUBMODULE, TORCHSCRIPT
from onnxbuild.onnxkit.programs.torchscript_outline import TorchScriptOutline, check_arguments
from onnxbuild.onnxkit.sources.outline import FORM, SourceOutline
from onnxbuild.onnxkit.sources.parts import mapping_in


@dataclass(frozen=True, slots=True)
class TorchScriptFileOptions:
    """Keys next to `torchscript` in `model`."""

    submodule: str = option("", help="the part of it that is the model, by its path with dots")


def _read(
    path: Path,
    outline: TorchScriptOutline,
    options: TorchScriptFileOptions,
    written: Mapping[str, Any],
) -> SourceFacts:
    """Read the rest of a recipe that writes the inputs: TorchScript says names, and no shapes.

    Raises:
        SourceError: There is no such submodule, or inputs are not written as forward takes them.
    """
    arguments = outline.arguments(options.submodule)
    check_arguments(path.name, arguments, mapping_in(written, "dummy_inputs"))
    facts = {FORM: TORCHSCRIPT, SUBMODULE: options.submodule, MADE_BY: ""}
    return source_facts(path, SourceOutline(facts=facts), written)


def _tried(
    path: Path,
    _outline: TorchScriptOutline,
    options: TorchScriptFileOptions,
    _written: Mapping[str, Any],
    _folder: Path,
) -> Draft | None:
    """Inputs that the program runs with.

    Raises:
        StepError: PyTorch can't load it.
    """
    from onnxbuild.onnxkit.drafts.torch_draft import draft_of_torchscript  # `init` alone

    return draft_of_torchscript(path, options.submodule)


FEATURE = Frontend(
    name=TORCHSCRIPT,
    gives_module=True,
    source=module_source,
    reference=module_reference,
    score=baseline_score,
    model_source=ModelSource(
        words="jit script",
        help="an archive of torch.jit.save, relative to this file; `dummy_inputs` are written, by the names of "
        "forward's arguments. It holds code, which runs in fenced steps",
        options=TorchScriptFileOptions,
        look=TorchScriptOutline,
        read=_read,
        tried=_tried,
        suffixes=(".pt", ".pth", ".ts", ".jit"),
    ),
)
