"""Make a step's error from the refusals that the kernel reported by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxbuild.adapters.sandbox.refusal import refused_write, speaks_of_refusal
from onnxbuild.adapters.sandbox.undeclared import RefusedStep, undeclared_files
from onnxbuild.core.errors import BuildError

_SYSTEM_STATE = "/var/"  # name services, fonts, machine ids


def certain_refusal(
    seen: Mapping[str, Any],
    error: BuildError | None,
    guess: Mapping[str, str] | None,
    asked_by: Mapping[str, str],
    reader: RefusedStep,
) -> BuildError | None:
    """Return the error for what the kernel reported as refused, by path.

    A refused file is an error even if the code went on without it. Refused files below /var are one
    only if the step failed for it: name services and font libraries try to read them.

    Args:
        seen: From `Sightings.to_json`.
        error: What the step failed with; None if it did not fail.
        guess: `who` of the step's own guess; None if it has none.
        asked_by: File -> `file:line` of the user's code that asked for it.
        reader: The step.

    Returns: None if no refusal matters.
    """
    refused: Mapping[str, str] = {**seen["unlisted"], **seen["refused"]}
    found = [path for path in seen["refused"] if _is_data(path, reader)]
    speaks = error is not None and speaks_of_refusal(error.what)
    if not found and (speaks or guess is not None):
        found = list(refused)[-1:]
    if found:
        guessed = (guess or {}).get("who", "")
        readers = {path: asked_by.get(path) or guessed for path in found}
        return undeclared_files(readers, reader, programs=refused)
    written = list(seen["written"])
    if written and (speaks or guess is not None):
        path = written[-1]
        who = asked_by.get(path) or (guess or {}).get("who") or seen["written"][path]
        return refused_write(path, who, reader)
    return None


def _is_data(path: str, reader: RefusedStep) -> bool:
    return path.startswith(f"{reader.project}/") or not path.startswith(_SYSTEM_STATE)
