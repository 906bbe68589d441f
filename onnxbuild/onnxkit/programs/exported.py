"""An exported program's signature, read from its .pt2 without PyTorch: inputs, ranges of sizes, outputs.

The names of keys are those of torch/_export/serde/schema.py.
"""

import ast
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.modules.program_modules import EXPORTED, MADE_BY
from onnxbuild.onnxkit.sources.outline import FORM, SizeRange, SourceOutline, SourceValue
from onnxbuild.onnxkit.sources.parts import UNSEEN

_MODEL = "models/model.json"
_FIRST_FORM = "serialized_exported_program.json"
"""The record's name in archives of earlier versions of PyTorch."""

_LARGEST = 1 << 31
"""Least size that means no upper bound: PyTorch writes int64's greatest value, or null."""

_DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16", 34: "uint32",
    35: "uint64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Size:
    """A dynamic size: a sum of multiples of symbols, and a number.

    Attributes:
        symbols: Symbol -> how often it counts.
        number: What is added.
    """

    symbols: Mapping[str, int]
    number: int = 0

    @property
    def name(self) -> str:
        """Size as PyTorch shows it: `s1`, `2*s1`, `s1 + s2 + 1`."""
        parts = [name if by == 1 else f"{by}*{name}" for name, by in self.symbols.items()]
        return " + ".join([*parts, *([str(self.number)] if self.number else [])])

    @property
    def is_multiple(self) -> bool:
        """Whether it is one symbol, or that several times."""
        return len(self.symbols) == 1 and not self.number

    def spelled(self) -> str:
        """Its name.

        Raises:
            SourceError: No recipe can say it.
        """
        has_multiples = any(by != 1 for by in self.symbols.values())
        if not self.is_multiple and (has_multiples or self.number < 0):
            raise SourceError(
                f"the program has an input of the size {self.name}: a recipe has sums of axes alone",
                "export the program with a fixed size there",
            )
        return self.name


def exported_outline(path: Path) -> SourceOutline:
    """Read the signature of a .pt2 file: inputs, ranges of their sizes, outputs where these are not nested.

    Raises:
        SourceError: It holds no exported program, or one of another form.
        OSError: It can't be read.
    """
    content = _content(path)
    try:
        return _outline(content)
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        SyntaxError,
        RecursionError,
    ) as error:
        if isinstance(error, SourceError):
            raise
        made = content.get("torch_version") if isinstance(content, dict) else None
        raise SourceError(
            f"{path.name} describes its graph in another way than PyTorch 2.13 does"
            + (f"; it was made by {made}" if made else ""),
            "save it again by `torch.export.save` of the PyTorch that is installed here",
        ) from error


def _content(path: Path) -> Any:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            found = [n for n in names if n.endswith(_MODEL) or n == _FIRST_FORM]
            if found:
                return json.loads(archive.read(found[0]))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
        with path.open("rb") as file:
            is_cut = file.read(2) == b"PK"
        what = "it was cut short, or is damaged" if is_cut else "it is no archive of PyTorch"
        raise SourceError(
            f"{path.name} can't be read: {what}",
            "copy it again; git-lfs pointers are a frequent cause",
        ) from error
    raise SourceError(f"{path.name} holds no exported program: {_other(names)}", _other_fix(names))


def _other(names: Sequence[str]) -> str:
    if any("/code/" in name for name in names):
        return "it is TorchScript"
    if any(name.endswith(".so") for name in names):
        return "it is compiled for one machine (AOTInductor), and its graph is gone"
    if any(name.endswith("data.pkl") for name in names):
        return "it is of torch.save, weights or a pickled module"
    return "it is another kind of archive"


def _other_fix(names: Sequence[str]) -> str:
    if any("/code/" in name for name in names):
        return "write `torchscript:` in place of `exported:`"
    if any(name.endswith("data.pkl") and "/models/" not in name for name in names):
        return "write a callable that builds the module and loads them: `model: FILE.py:CALLABLE`"
    return "name the file that `torch.export.save` wrote"


def _outline(content: Any) -> SourceOutline:
    module = content["graph_module"]
    graph, specs = module["graph"], module["signature"]["input_specs"]
    values = graph["tensor_values"]
    users = [each["user_input"]["arg"] for each in specs if "user_input" in each]
    names = [each["as_tensor"]["name"] for each in users if "as_tensor" in each]
    called = module["module_call_graph"][0]["signature"]
    if not all(each["type"] is None for part in _children(called["in_spec"]) for each in part):
        raise SourceError(
            "the program takes tensors in a list, tuple or dict; a recipe feeds tensors by name",
            "export a wrapper again whose forward takes each tensor as an argument of its own",
        )
    if not names:
        raise SourceError("the program takes no tensors", "export one that does")
    tables = _tables(graph)
    sizes = {name: [_size(each) for each in values[name]["sizes"]] for name in names}
    inputs = tuple(
        SourceValue(
            name,
            _DTYPES.get(values[name]["dtype"], f"type {values[name]['dtype']}"),
            tuple(each if isinstance(each, int) else each.spelled() for each in sizes[name]),
            tables.get(name, 0),
        )
        for name in names
    )
    outputs = [
        each["user_output"]["arg"]
        for each in module["signature"]["output_specs"]
        if "user_output" in each
    ]
    named = _output_names(json.loads(called["out_spec"])[1], outputs, names)
    return SourceOutline(
        inputs=inputs,
        outputs=tuple(map(SourceValue, named)),
        ranges=_ranges(sizes, content["range_constraints"]),
        is_strict=True,
        facts={FORM: EXPORTED, MADE_BY: str(content.get("torch_version") or "")},
        again="export the program again with another `torch.export.Dim`",
    )


def _ranges(
    sizes: Mapping[str, Sequence[int | _Size]], constraints: Mapping[str, Any]
) -> dict[str, SizeRange]:
    """The sizes that are one symbol, or a multiple of it.

    Raises:
        SourceError: A size is another one twice.
    """
    factors: dict[str, _Size] = {}
    found: dict[str, SizeRange] = {}
    for name, shape in sizes.items():
        for n, size in enumerate(shape):
            if isinstance(size, int) or not size.is_multiple:
                continue
            ((symbol, factor),) = size.symbols.items()
            if (other := factors.setdefault(symbol, size)).symbols[symbol] != factor:
                raise SourceError(
                    f"input '{name}' has the size {size.name} along axis {n}, and another input "
                    f"{other.name}: no recipe can say that",
                    "export the program with fixed sizes there",
                )
            each = constraints.get(symbol, {"min_val": UNSEEN, "max_val": None})
            low, high = int(each["min_val"] or 0), each["max_val"]
            most = None if high is None or high >= _LARGEST else factor * high
            found[size.name] = SizeRange(factor * low, most, factor)
    return found


def _tables(graph: Mapping[str, Any]) -> dict[str, int]:
    """Inputs that are indices of a table -> its rows."""
    rows: dict[str, int] = {}
    for node in graph["nodes"]:
        if node["target"] == "torch.ops.aten.embedding.default":
            given = {each["name"]: each["arg"].get("as_tensor") for each in node["inputs"]}
            weight, indices = given["weight"]["name"], given["indices"]["name"]
            count = graph["tensor_values"][weight]["sizes"][0].get("as_int", 0)
            rows[indices] = min(count, rows.get(indices, count))
    return rows


def _children(spec: str) -> list[list[Mapping[str, Any]]]:
    """Return the specs of the positional arguments, and of those by keyword."""
    return [each["children_spec"] for each in json.loads(spec)[1]["children_spec"]]


def _output_names(
    spec: Mapping[str, Any], outputs: Sequence[Mapping[str, Any]], inputs: Sequence[str]
) -> tuple[str, ...]:
    children = spec["children_spec"]
    if spec["type"] is None:
        return ("output_0",)
    if any(each["type"] is not None for each in children) or len(children) != len(outputs):
        return ()
    tensors = ["as_tensor" in each for each in outputs]
    if spec["type"] == "builtins.dict":
        keys = [f"{key}_out" if key in inputs else str(key) for key in json.loads(spec["context"])]
        return tuple(key for key, is_tensor in zip(keys, tensors, strict=True) if is_tensor)
    if spec["type"] in ("builtins.tuple", "builtins.list"):
        return tuple(f"output_{n}" for n in range(sum(tensors)))
    return ()


def _size(written: Mapping[str, Any]) -> int | _Size:
    if "as_int" in written:
        return int(written["as_int"])
    symbols, number = _linear(ast.parse(written["as_expr"]["expr_str"], mode="eval").body)
    return _Size(symbols, number) if symbols else number


def _linear(node: ast.expr) -> tuple[dict[str, int], int]:
    """A sympy expression, as `srepr` or `str` writes it, as (symbol -> factor, number).

    Raises:
        ValueError: It is not linear.
    """
    if isinstance(node, ast.Name):
        return {node.id: 1}, 0
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return {}, node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        kind = "Add" if isinstance(node.op, ast.Add) else "Mul"
        return _combined(kind, [_linear(node.left), _linear(node.right)])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        first = node.args[0] if node.args else None
        if node.func.id == "Symbol" and isinstance(first, ast.Constant):
            return {str(first.value): 1}, 0
        if node.func.id == "Integer" and first is not None:
            return _linear(first)
        return _combined(node.func.id, [_linear(each) for each in node.args])
    raise ValueError(ast.dump(node))


def _combined(
    kind: str, parts: Sequence[tuple[dict[str, int], int]]
) -> tuple[dict[str, int], int]:
    symbols, number = dict(parts[0][0]), parts[0][1]
    for others, other in parts[1:]:
        if kind == "Add":
            for name, by in others.items():
                symbols[name] = symbols.get(name, 0) + by
            number += other
        elif kind == "Mul" and not (symbols and others):
            factor, scaled = (number, others) if others else (other, symbols)
            symbols = {name: by * factor for name, by in scaled.items()}
            number *= other
        else:
            raise ValueError(kind)
    return symbols, number
