"""ONNX's own checker and shape inference, and the opset that an operator of its domain needs."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.graphs import all_graphs, all_nodes, opset_of, subgraphs
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, load_model, model_path

DEFAULT_DOMAINS = ("", "ai.onnx")

_KNOWN_DOMAINS = frozenset(
    {
        *DEFAULT_DOMAINS, "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft",
        "com.microsoft.experimental", "com.microsoft.nchwc", "com.ms.internal.nhwc", "com.microsoft.dml",
    }
)  # fmt: skip
"""Domains of ONNX and of ONNX Runtime (core/graph/constants.h)."""

_REFUSED_TYPE = re.compile(r"op_type:(\w+).*unsupported type")
"""InferenceError of onnx (onnx/defs/schema.cc, checkInputOutput)."""


def custom_nodes(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the names of the nodes whose operator is neither ONNX's nor ONNX Runtime's, in order."""
    return tuple(each.name for each in all_nodes(model) if each.domain not in _KNOWN_DOMAINS)


class OpsetError(StepError):
    """Error of an operator or type that the model's opset lacks and a later one has.

    Args:
        what: Names the operator and the least opset.
        where: `recipe:step`.
        fix: Empty: write the least opset.
        least: The least opset that has it.
    """

    def __init__(self, what: str, *, where: str = "", fix: str = "", least: int = 0) -> None:
        super().__init__(what, where=where, fix=fix or f"write `opset: {least}`")
        self.least = least


def has_operator(operator: str, opset: int) -> bool:
    """Return whether an opset has an operator; a deprecated one is not there."""
    if not onnx.defs.has(operator, opset, ""):
        return False
    return not onnx.defs.get_schema(operator, opset, "").deprecated


@dataclass(frozen=True, slots=True)
class MissingForm:
    """An operator that a model uses in a form which its declared opset lacks.

    Attributes:
        operator: Its type.
        least: The least opset that has that form; None where no later one has.
    """

    operator: str
    least: int | None


def missing_forms(model: onnx.ModelProto) -> tuple[MissingForm, ...]:
    """Operators of ONNX's own domain that don't fit the declared opset, by name.

    By ONNX's checker: there is no such operator, or it takes other inputs or attributes. Of an operator
    that holds graphs only the name is looked at; types are not.
    """
    opset = opset_of(model)
    own = {function.name for function in model.functions if function.domain in DEFAULT_DOMAINS}
    found: dict[str, int | None] = {}
    for node in all_nodes(model):
        if node.domain not in DEFAULT_DOMAINS or node.op_type in own or _fits(node, opset, model):
            continue
        later = range(opset + 1, newest_opset() + 1)
        least = next((each for each in later if _fits(node, each, model)), None)
        known = found.get(node.op_type, 0)
        found[node.op_type] = None if known is None or least is None else max(known, least)
    return tuple(MissingForm(name, least) for name, least in sorted(found.items()))


def newest_opset() -> int:
    """The newest opset that the installed onnx knows."""
    return int(onnx.defs.onnx_opset_version())


def _fits(node: onnx.NodeProto, opset: int, model: onnx.ModelProto) -> bool:
    if not has_operator(node.op_type, opset):
        return False
    if any(True for _ in subgraphs(node)):
        return True
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {"": opset}
    try:
        onnx.checker.check_node(node, context)
    except onnx.checker.ValidationError:
        return False
    return True


def since_version(operator: str, opset: int) -> int | None:
    """The opset that brought the form that an operator has at `opset`; None where it is not there."""
    if not onnx.defs.has(operator, opset, ""):
        return None
    return int(onnx.defs.get_schema(operator, opset, "").since_version)


def has_half_form(operator: str, opset: int) -> bool:
    """Return whether an operator of ONNX's own domain takes or gives fp16 at an opset, or no floats at all."""
    if not onnx.defs.has(operator, opset, ""):
        return True
    schema = onnx.defs.get_schema(operator, opset, "")
    slots = [each.types for each in (*schema.inputs, *schema.outputs)]
    floats = [types for types in slots if "tensor(float)" in types]
    return not floats or any("tensor(float16)" in types for types in floats)


def without_half_form(model: onnx.ModelProto) -> dict[str, str]:
    """Return the nodes of graphs whose operator takes fp32 and no fp16 at the model's opset: name -> operator.

    QuantizeLinear and DequantizeLinear take fp16 from opset 19 on, Celu in none.
    """
    opset = opset_of(model)
    return {
        node.name: node.op_type
        for graph in all_graphs(model)
        for node in graph.node
        if node.domain in DEFAULT_DOMAINS and not has_half_form(node.op_type, opset)
    }


def newest_form(model: onnx.ModelProto) -> tuple[str, int]:
    """The operator whose form came last, and the opset that brought it: the least that has them all.

    Args:
        model: Of a form that the checker takes; has a node of ONNX's own domain.
    """
    opset = opset_of(model)
    used = {node.op_type for node in all_nodes(model) if node.domain in DEFAULT_DOMAINS}
    forms = {name: since_version(name, opset) or 0 for name in sorted(used)}
    newest = max(forms, key=lambda name: forms[name])
    return newest, forms[newest]


def needed_opset(model: onnx.ModelProto) -> tuple[str, int] | None:
    """Return what a model that ONNX refuses needs a later opset for, one sentence, and the least that takes it.

    Args:
        model: Its weights need not be loaded.

    Returns: None where no later opset is known to take it.
    """
    opset = opset_of(model)
    found = [(each.operator, each.least) for each in missing_forms(model)] or _types(model)
    known = [(operator, least) for operator, least in found if least is not None]
    if not known or len(known) < len(found):
        return None
    needs = " and ".join(f"'{operator}' needs opset {least}" for operator, least in known)
    return (
        f"{needs} in the form in which the graph has it; it declares opset {opset}",
        max(least for _, least in known),
    )


def _types(model: onnx.ModelProto) -> list[tuple[str, int | None]]:
    """The operator whose types don't fit, and the opset from which on they do."""
    opset = opset_of(model)
    operator = _REFUSED_TYPE.search(_inference_error(model, opset))
    if operator is None:
        return []
    later = range(opset + 1, newest_opset() + 1)
    return [(operator[1], next((n for n in later if not _inference_error(model, n)), None))]


def _inference_error(model: onnx.ModelProto, opset: int) -> str:
    """Return the error of onnx's strict shape inference at an opset; empty if there is none."""
    imports = [onnx.helper.make_opsetid("", opset)]
    imports += [each for each in model.opset_import if each.domain not in DEFAULT_DOMAINS]
    other = onnx.ModelProto(
        ir_version=model.ir_version,
        graph=model.graph,
        functions=model.functions,
        opset_import=imports,
    )
    try:
        onnx.shape_inference.infer_shapes(other, check_type=True, strict_mode=True)
    except (onnx.shape_inference.InferenceError, RuntimeError) as error:
        return str(error)
    return ""


_WRITE_OPSET = "write `opset: {opset}`"
_UNREGISTERED = re.compile(r"No Op registered for (?P<name>\S+) with domain_version")


def checker_faults(
    folder_or_file: Path, scratch: Path, *, later_opset: str = _WRITE_OPSET
) -> list[Finding]:
    """Check a model with onnx's checker and strict shape inference; return their faults.

    Operators of unknown domains (com.microsoft) are left unchecked, as onnx does.

    Args:
        scratch: Where the inferred model may be written.
        later_opset: Fix for an operator that needs a later opset, with a place for `{opset}`.

    Raises:
        StepError: The model can't be read, or its weights are not where it says.
    """
    phase("checking the model")

    path = str(_checkable(model_path(folder_or_file), scratch))
    try:
        onnx.checker.check_model(path)
    except onnx.checker.ValidationError as error:
        return [
            _later_opset(path, "checker", later_opset)
            or _unknown_operator(str(error))
            or Finding(
                f"the ONNX checker refuses the model: {_essence(error)}",
                where="checker",
                fix="correct that node where the graph is made: its operator is not as ONNX has it "
                "(https://onnx.ai/onnx/operators)",
            )
        ]
    try:
        onnx.shape_inference.infer_shapes_path(
            path, str(scratch / "inferred.onnx"), check_type=True, strict_mode=True
        )
    except (onnx.shape_inference.InferenceError, RuntimeError) as error:
        return [
            _later_opset(path, "shape inference", later_opset)
            or Finding(
                f"shape inference fails: {_essence(error)}",
                where="shape inference",
                fix="correct that node where the graph is made: its shapes or types contradict what it reads",
            )
        ]
    return []


def _later_opset(path: str, where: str, fix: str) -> Finding | None:
    """The finding that names what needs a later opset; None where that is not the cause."""
    needed = needed_opset(load_model(Path(path), weights="left"))
    return needed and Finding(needed[0], where=where, fix=fix.format(opset=needed[1]))


def _unknown_operator(said: str) -> Finding | None:
    """The finding that names an operator that ONNX has in no version; None where that is not the cause."""
    found = _UNREGISTERED.search(said)
    if found is None or onnx.defs.has(found["name"], ""):
        return None
    return Finding(
        f"no version of ONNX has the operator '{found['name']}'",
        where="checker",
        fix="if it is your own, give its nodes a domain of yours and compile it into a library "
        "(`operators: {libraries: [PATH]}`), or make it a model-local function (docs/operators.md)",
    )


def _checkable(path: Path, scratch: Path) -> Path:
    """The model, or its graph next to a sparse file of the weights' size."""
    weights = path.parent / WEIGHTS_FILE
    if not weights.is_symlink():
        return path
    load_model(path, weights="mapped")  # holds offsets and lengths against the real file
    folder = scratch / "checked"
    folder.mkdir(exist_ok=True)
    shutil.copyfile(path, folder / path.name)
    with (folder / WEIGHTS_FILE).open("wb") as file:
        file.truncate(weights.stat().st_size)
    return folder / path.name


def _essence(error: Exception) -> str:
    """A message's lines that say something, in one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(line for line in lines if not line.startswith("==>"))[:400]
