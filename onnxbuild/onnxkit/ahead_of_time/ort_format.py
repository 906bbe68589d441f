"""ONNX Runtime's own format: conversion, with the list of operators that a reduced build takes; inputs of a model that is in it."""

import json
import re
import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import from_json
from onnxbuild.core.step import MODEL_FILE, ORT_FILE
from onnxbuild.onnxkit.ahead_of_time.artifact_file import OPERATORS_FILE
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.ahead_of_time.ort_canonical import write_sorted
from onnxbuild.onnxkit.host.made_for import MadeFor, check_made_for
from onnxbuild.onnxkit.model.inspect import dtype_name
from onnxbuild.onnxkit.sessions.custom_operators import adopted_libraries
from onnxbuild.onnxkit.sessions.element_types import runtime_types
from onnxbuild.onnxkit.sessions.open import first_line, open_session, session_errors

REPLAY = {"session.enable_saved_runtime_optimizations": "1"}
"""Session config entry without which the optimizations that style `runtime` saves stay unused."""

_LARGEST_BYTES = 2**31 - 1
_HEADER = (
    "# Operators that model.ort needs, for a reduced build of ONNX Runtime:\n"
    "#   build.sh --minimal_build --include_ops_by_config required_operators.config{more}\n"
)


def convert_to_ort(
    source: Path, target: Path, scratch: Path, options: OrtFormatOptions, where: str
) -> None:
    """Write ORT_FILE and OPERATORS_FILE; equal models give equal bytes.

    Args:
        source: Holds the ONNX model.
        scratch: Empty; the converter writes next to the model that it reads.
        options: Options of the conversion.

    Raises:
        StepError: The model is too large for the format, or ONNX Runtime can't convert it.
    """
    from onnxruntime.tools.convert_onnx_models_to_ort import (
        OptimizationStyle,
        convert_onnx_models_to_ort,
    )

    size = sum(each.stat().st_size for each in source.rglob("*") if each.is_file())
    if size > _LARGEST_BYTES:
        raise StepError(
            f"the model has {size:,} bytes; the ORT format holds 2 GiB at most",
            where=where,
            fix="quantize it, or take the variant out of `variants` in `ahead_of_time` or `packages`",
        )
    libraries = adopted_libraries()
    if len(libraries) > 1:
        names = ", ".join(Path(each).name for each in libraries)
        raise StepError(
            f"ONNX Runtime's converter to the ORT format takes one library of custom operators; the recipe "
            f"has {names}",
            where=where,
            fix="link them into one library, or remove `ahead_of_time.ort`",
        )
    shutil.copytree(source, scratch / "model")  # weights next to it must be no links out of it
    made = scratch / "made"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # the converter leaves a file open
            convert_onnx_models_to_ort(
                scratch / "model" / MODEL_FILE,
                output_dir=made,
                optimization_styles=[OptimizationStyle[options.style.capitalize()]],
                target_platform=options.platform,
                enable_type_reduction=options.type_reduction,
                custom_op_library_path=Path(libraries[0]) if libraries else None,
            )
    except session_errors() as error:
        raise StepError(
            f"ONNX Runtime can't write the model in ORT format: {first_line(error)}",
            where=where,
            fix="take the variant out of `ahead_of_time: {variants: [...]}`",
        ) from error
    (written,) = made.glob("*.ort")
    (operators,) = made.glob("*.config")
    write_sorted(written)
    shutil.move(written, target / ORT_FILE)
    lines = operators.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("#")]  # the converter names its paths
    more = " --enable_reduced_operator_type_support" if options.type_reduction else ""
    text = _HEADER.format(more=more) + "".join(kept)
    (target / OPERATORS_FILE).write_text(text, encoding="utf-8", newline="\n")


def required_operators(config: str) -> list[str]:
    """The operators that a list names, as `domain:type`, sorted.

    Args:
        config: Text that `convert_to_ort` wrote, with or without types.
    """
    found = set()
    for line in config.splitlines():
        if not line.startswith("#") and line.strip():
            domain, _, entries = line.split(";", 2)
            names = re.sub(r"\{[^{}]*(\{[^{}]*\}[^{}]*)*\}", "", entries)
            found |= {f"{domain}:{name}" for name in names.split(",") if name}
    return sorted(found)


Shape = Sequence[int | str | None]


def ort_inputs(path: Path, name: str) -> dict[str, tuple[str, Shape | None]]:
    """Input -> dtype and shape of a model in ORT format.

    Args:
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
