"""Draft of a recipe for a TorchScript archive: types and shapes of inputs guessed by its layers and tried."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.core.draft import Draft
from onnxbuild.onnxkit.drafts.torch_draft import draft_of_module
from onnxbuild.onnxkit.modules.program_modules import (
    FORM,
    MADE_BY,
    SUBMODULE,
    TORCHSCRIPT,
    load_program,
)


def draft_of_torchscript(path: Path, submodule: str) -> Draft | None:
    """The inputs that an archive's program runs with, or marks where none of the guesses did.

    Args:
        path: The archive. It holds code, which runs.
        submodule: The part of it; empty for the whole.

    Raises:
        StepError: PyTorch can't load it, or it takes something else than tensors.
    """
    facts = {FORM: TORCHSCRIPT, SUBMODULE: submodule, MADE_BY: ""}
    return draft_of_module(load_program(path, path.name, facts, path.name))
