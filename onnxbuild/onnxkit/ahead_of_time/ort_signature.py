"""Models in ORT format that were made elsewhere: their inputs, as ONNX Runtime reports them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import from_json
from onnxbuild.onnxkit.host.made_for import MadeFor, check_made_for
from onnxbuild.onnxkit.model.inspect import dtype_name
from onnxbuild.onnxkit.sessions.element_types import runtime_types
from onnxbuild.onnxkit.sessions.open import open_session

Shape = Sequence[int | str | None]


def ort_inputs(path: Path, name: str) -> dict[str, tuple[str, Shape | None]]:
    """Input -> dtype and shape of a model in ORT format.

    Args:
        path: The file.
        name: Name that the user gave, for messages.

    Raises:
        StepError: This ONNX Runtime can't open it: it is damaged, newer, or has operators that are
            not there.
    """
    try:
        session = open_session(path, where=name)
    except StepError as error:
        raise StepError(
            error.what,
            where=name,
            fix="make it again with the installed ONNX Runtime (`ahead_of_time: {ort: {}}`), or name "
            "the .onnx file that it was made of",
        ) from error
    known = {text: dtype_name(code) for text, code in runtime_types().items()}
    return {
        each.name: (known.get(each.type, each.type), list(each.shape))
        for each in session.get_inputs()
    }


def check_machine(manifest: Path, name: str) -> None:
    """Refuse what a bundle says is for another machine.

    Args:
        manifest: The bundle's.
        name: Name that the user gave, for messages.

    Raises:
        StepError: It is, or the manifest can't be followed.
    """
    try:
        content: Mapping[str, object] = json.loads(manifest.read_text("utf-8"))
        found = content["made_for"]
        made_for = None if found is None else from_json(MadeFor, found)
    except (ValueError, LookupError, TypeError) as error:
        raise StepError(
            f"the manifest of {name} says nothing that can be followed: {error}",
            where=name,
            fix="name the .ort file itself in that folder",
        ) from error
    check_made_for(made_for, name)
