"""Reduce an exporter's pages of error to an operator, an axis, a line of the model."""

import re
from collections.abc import Callable, Iterator

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.model.opsets import OpsetError, since_version
from onnxbuild.onnxkit.operators.custom_operators import custom_operator_error, is_custom

DYNAMO_LEAST = 18
"""The opset that dynamo translates to; it converts from there where another is asked for."""

_OPERATOR = (
    re.compile(r"No ONNX function found for <OpOverload\(op='([\w.:]+)'"),
    re.compile(r"Exporting the operator '([\w.:]+)' to ONNX"),
    re.compile(r"ONNX export failed on an operator with unrecognized namespace:? ([\w.:]+\w)"),
)
_UNSUPPORTED = re.compile(r"Unsupported: ONNX export of operator (\w+), (.+?)\. ")
_LEAST_OPSET = (
    re.compile(
        r"Exporting the operator '(?P<operator>[\w.:]+)' to ONNX.* was added in version (?P<opset>\d+)"
    ),
    re.compile(
        r"ONNX export of (?P<operator>[\w.:]+) in opset.*Please try opset version (?P<opset>\d+)",
        re.DOTALL,
    ),
)
"""UnsupportedOperatorError and `_onnx_opset_unsupported` of PyTorch's TorchScript exporter."""
_CONSTRAINT = re.compile(r"^\s*- (.+)$", re.MULTILINE)
_FAILED_IN = re.compile(r"ONNX Runtime fails: running (?P<operator>\w+) node")
_PROJECTION = "build the LSTM with `proj_size=0`, as ONNX's has no projection, put a Linear behind it, and train it again"
_CALLER = re.compile(r'File "([^"]+)", line (\d+), in forward')


class SizeChoiceError(StepError):
    """Forward does something else at sizes that the recipe declares: no exporter's trace has both."""


class WrongOperatorError(StepError):
    """Error of a graph that differs from PyTorch in an operator that its exporter translates wrongly."""


class NoExporterError(StepError):
    """Error of a model that no exporter can translate."""


def explain_export(
    error: Exception,
    exporter: str,
    opset: int,
    where: str,
    line_of_operator: Callable[[str], str] = lambda _: "",
) -> StepError:
    """The essential line of what an exporter raised, and what to try.

    Args:
        error: Error that was raised.
        exporter: Exporter that raised it.
        opset: Opset that was asked for.
        where: `recipe:step`, for messages.
        line_of_operator: The user's line that calls an operator; empty where it is not known.
    """
    messages = [str(each) for each in _chain(error)]
    for message in messages:
        for pattern in _LEAST_OPSET:
            found = pattern.search(message)
            if found and int(found["opset"]) > opset:
                least = int(found["opset"])
                return OpsetError(
                    f"the {exporter} exporter needs opset {least} for the operator "
                    f"'{found['operator']}'; the recipe asks for opset {opset}",
                    where=where,
                    least=least,
                )
    for message in messages:
        for pattern in _OPERATOR:
            found = pattern.search(message)
            if found:
                line = line_of_operator(found.group(1))
                return _operator_error(found.group(1), exporter, opset, line or where)
        unsupported = _UNSUPPORTED.search(message)
        if unsupported:
            operator, reason = unsupported.groups()
            line = line_of_operator(operator)
            return _form_error(operator, reason, exporter, line or where)
    for message in messages:
        if "Constraints violated" in message:
            said = _CONSTRAINT.search(message)
            line = said.group(1) if said else message.splitlines()[0]
            return StepError(
                f"the {exporter} exporter can't keep the declared axes dynamic: {line}",
                where=where,
                fix="read sizes from the tensors in forward (x.shape[0]), or narrow the axis in "
                "`dynamic_axes`",
            )
    if line := line_of_operator("aten::_pack_padded_sequence"):
        return NoExporterError(
            f"the {exporter} exporter can't translate sequences that are packed",
            where=line,
            fix="run the LSTM or GRU on the padded batch, and take each row's last step: `y.gather(1, "
            "(lengths - 1)[:, None, None].expand(-1, 1, y.shape[2])).squeeze(1)` with batch_first; "
            "a bidirectional one also reads the padding",
        )
    root = list(_chain(error))[-1]
    text = str(root).strip()
    line = text.splitlines()[0] if text else "no message"
    caller = next((m for m in map(_CALLER.search, reversed(messages)) if m), None)
    place = f" ({caller.group(1)}:{caller.group(2)})" if caller else ""
    return StepError(
        f"the {exporter} exporter failed: {type(root).__name__}: {line}",
        where=f"{where}{place}",
        fix="change that line of forward: exporters follow tensors, not Python values "
        "(torch.where instead of `if`, sizes from x.shape)",
    )


def explain_failed_run(error: StepError, exporter: str, opset: int) -> StepError:
    """An error of a graph's first runs, with a fix where ONNX Runtime fails in what is new in its opset, or in a projection.

    Dynamo writes what came after DYNAMO_LEAST only where the opset has it, and does without below.

    Args:
        error: Error from `check_parity`.
        exporter: Exporter that made the graph.
        opset: Opset of the graph.
    """
    failed = _FAILED_IN.search(error.what)
    if failed and failed["operator"] == "LSTM" and "initial_c must have shape" in error.what:
        return NoExporterError(error.what, where=error.where, fix=_PROJECTION)
    since = since_version(failed["operator"], opset) if failed else None
    if exporter != "dynamo" or since is None or since <= DYNAMO_LEAST:
        return error
    return StepError(error.what, where=error.where, fix=f"write `opset: {since - 1}`")


def _operator_error(operator: str, exporter: str, opset: int, where: str) -> StepError:
    if is_custom(operator):
        return custom_operator_error(operator, exporter, where)
    return StepError(
        f"the {exporter} exporter can't translate the operator '{operator}' to opset {opset}",
        where=where,
        fix="write the operator in terms of others, or give it a translation "
        "(`export: {translations: FILE.py:CALLABLE}` for dynamo, "
        "torch.autograd.Function.symbolic for torchscript)",
    )


def _form_error(operator: str, reason: str, exporter: str, where: str) -> StepError:
    fix = "write that line in terms of other operators, or of sizes that are numbers"
    if operator.startswith("adaptive_"):
        fix = (
            "pool to a size of 1, or declare the pooled sizes as numbers in `dummy_inputs`: to other "
            "sizes the kernel depends on the input's, which a graph can't hold"
        )
    what = f"the {exporter} exporter can't translate this use of '{operator}': {reason}"
    if operator == "LSTM" and "projection" in reason:
        return NoExporterError(what, where=where, fix=_PROJECTION)
    return StepError(what, where=where, fix=fix)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, then its causes, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__
