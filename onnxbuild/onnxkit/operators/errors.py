"""An operator of the user's that an exporter does not know, and what to write for it."""

from __future__ import annotations

from onnxbuild.core.errors import StepError

_PYTORCH = frozenset(
    {
        "aten", "prim", "prims", "onnx", "quantized", "torchvision", "higher_order", "_operator", "math",
    }
)  # fmt: skip
"""Namespaces of operators that are PyTorch's own."""


class CustomOperatorError(StepError):
    """An exporter does not know an operator that the user defined."""


def is_custom(operator: str) -> bool:
    """Return whether an operator is of none of PyTorch's namespaces.

    Args:
        operator: `aten::mul` of the torchscript exporter, `aten.mul` of dynamo.
    """
    return operator.partition("::")[0].partition(".")[0] not in _PYTORCH


def custom_operator_error(operator: str, exporter: str, where: str) -> CustomOperatorError:
    """Return the error of an operator that the user defined.

    Args:
        operator: As the exporter names it, with its overload or without.
        exporter: Whose error it is.
        where: The user's line, or `recipe:step`.
    """
    spelled = operator if "::" in operator else operator.replace(".", "::", 1)
    name, _, overload = spelled.partition(".")
    function = f"torch.ops.{name.replace('::', '.')}.{overload or 'default'}"
    return CustomOperatorError(
        f"the {exporter} exporter can't translate your operator '{name}' to ONNX",
        where=where,
        fix=f"write it in ONNX's own operators: `export: {{translations: FILE.py:CALLABLE}}`, which returns "
        f"{{{function}: FUNCTION}}; or keep it as a node of a library of yours: `operators: {{libraries: "
        f'[PATH], nodes: {{"{name}": "DOMAIN::NAME"}}}}` (docs/operators.md)',
    )
