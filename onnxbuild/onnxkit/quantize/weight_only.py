"""Nodes with constant weights, and the com.microsoft operators that read them in few bits.

MatMulNBits and GatherBlockQuantized (onnxruntime, docs/ContribOperators.md) hold their weights as
uint8, so neither asks for a newer opset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.model.graphs import keep, names_read_in, opset_of
from onnxbuild.onnxkit.model.inspect import ranks
from onnxbuild.onnxkit.model.model_files import weight_array
from onnxbuild.onnxkit.model.scopes import GraphScope, all_names, name_maker, scopes
from onnxbuild.onnxkit.quantize.blockwise import Blocks, pack

DOMAIN = "com.microsoft"

_MATRIX = 2
_AXES_AS_INPUT = 13


@dataclass(frozen=True, slots=True)
class Weighted:
    """A node whose weight can be kept in few bits.

    Attributes:
        scope: Of the graph that the node is in.
        weight: Name of the initializer in that scope, a float32 matrix.
        transposed: The initializer is (rows, columns) as blockwise wants it: one row an output.
    """

    scope: GraphScope
    node: onnx.NodeProto
    weight: str
    transposed: bool

    @property
    def reads_main_graph(self) -> bool:
        """Whether the activation is a value of the main graph, which can be observed."""
        home = self.scope.home(self.node.input[0])
        return home is not None and home.outer is None

    @property
    def home(self) -> GraphScope:
        """Scope of the graph that holds the weight."""
        home = self.scope.home(self.weight)
        assert home is not None
        return home

    @property
    def dims(self) -> tuple[int, int]:
        """The initializer's shape."""
        tensor = self.scope.initializer(self.weight)
        assert tensor is not None
        rows, columns = tensor.dims
        return rows, columns


_NOTHING_TIED: Mapping[str, Weighted] = {}


def weighted_nodes(model: onnx.ModelProto) -> Iterator[Weighted]:
    """MatMul, Gemm and Gather nodes with a constant float32 matrix, nested graphs' included.

    A MatMul may read its matrix through a Transpose, as the head does that is tied to the table of embeddings.
    """
    for scope in scopes(model):
        turned = _turned(scope)
        for node in scope.graph.node:
            attributes = {each.name: each for each in node.attribute}
            place = 0 if node.op_type == "Gather" else 1
            if node.domain not in ("", "ai.onnx") or len(node.input) <= place:
                continue
            weight = node.input[place]
            if node.op_type == "MatMul" and weight in turned:
                yield Weighted(scope, node, turned[weight], transposed=True)
                continue
            if not _is_matrix(scope.initializer(weight)):
                continue
            if node.op_type == "MatMul":
                yield Weighted(scope, node, weight, transposed=False)
            elif node.op_type == "Gemm" and _is_plain(attributes):
                transposed = "transB" in attributes and bool(attributes["transB"].i)
                yield Weighted(scope, node, weight, transposed=transposed)
            elif node.op_type == "Gather" and _axis(attributes) in (0, -_MATRIX):
                yield Weighted(scope, node, weight, transposed=True)


def tied_tables(nodes: Sequence[Weighted], block_size: int) -> dict[str, Weighted]:
    """Name of a Gather -> the product whose matrix is the Gather's table, stored once or twice, and can be stored once.

    Both operators keep a row's codes in equal bytes where its blocks are whole.
    """
    products = [each for each in nodes if each.node.op_type != "Gather"]
    found = {}
    for table in nodes:
        shape = table.dims
        if table.node.op_type != "Gather" or shape[1] % block_size:
            continue
        for each in products:
            other = each.dims if each.transposed else each.dims[::-1]
            in_reach = table.scope.home(each.weight) is each.home
            if in_reach and other == shape and np.array_equal(_rows_of(each), _rows_of(table)):
                found[table.node.name] = each
                break
    return found


def replace_weights(
    model: onnx.ModelProto,
    nodes: Sequence[Weighted],
    quantize: Callable[[Weighted, np.ndarray], Blocks],
    accuracy_level: int,
    tied: Mapping[str, Weighted] = _NOTHING_TIED,
) -> None:
    """Let each node read its weight in blocks, in place; a weight is quantized once a layout.

    Args:
        model: Its weights loaded or mapped; fp32 ones that nobody reads any more stay, for `canonicalize`.
        nodes: Of `weighted_nodes`.
        quantize: (node, its weight as float32 (rows, columns)) -> blocks.
        accuracy_level: MatMulNBits' attribute; 0 leaves it out.
        tied: Of `tied_tables`: these Gathers read what the product reads.
    """
    make = name_maker(all_names(model))
    sums = _BlockSums(opset_of(model), make)
    done: dict[tuple[GraphScope, str, bool, bool], _Stored] = {}
    for each in counted(nodes, "weights"):
        holder = tied.get(each.node.name, each)
        as_rows = holder.node.op_type == "Gather"
        key = (holder.home, holder.weight, holder.transposed, as_rows)
        if key not in done:
            rows = _rows_of(holder)
            stem = holder.weight + ("_rows" if as_rows else "")
            done[key] = _Stored.of(stem, quantize(holder, rows), rows.shape, make, as_rows=as_rows)
            done[key].keep_in(holder.home.graph)
        if each.node.op_type != "Gather":
            _multiply(each, done[key], accuracy_level, make, sums)
        elif as_rows:
            _gather(each, done[key].names, done[key].attributes)
        else:
            _gather(each, _flattened(each, done[key], make), done[key].attributes)
    for scope in {each.scope for each in nodes}:
        _drop_unread(scope)
    if DOMAIN not in {imported.domain for imported in model.opset_import}:
        model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))


@dataclass(frozen=True, slots=True)
class _Stored:
    """A weight as initializers: codes, scales and, unless symmetric, zero points.

    Attributes:
        names: What a node reads: the initializers, or float32 of scales that are stored in float16.
        shape: (rows, columns) of the weight.
        has_offsets: The blocks' offsets are more columns, which are multiplied by the sums of the input's blocks:
            offsets are few and small, so few bits do for them, too.
    """

    tensors: tuple[onnx.TensorProto, ...]
    names: tuple[str, ...]
    shape: tuple[int, int]
    attributes: Mapping[str, int]
    has_offsets: bool

    @classmethod
    def of(
        cls,
        stem: str,
        blocks: Blocks,
        shape: tuple[int, ...],
        make: Callable[[str], str],
        *,
        as_rows: bool,
    ) -> _Stored:
        """Store blocks under names that begin with the weight's.

        Args:
            make: Makes a name that nothing has.
            as_rows: Store codes as the matrix they were, which is what Gather picks rows from.
        """
        bits = blocks.grid.bits
        rows, columns = shape
        parts = [blocks] if blocks.offsets is None else [blocks, blocks.offsets]
        codes = np.concatenate([part.codes for part in parts], axis=1)
        if as_rows:
            codes = codes.reshape(rows, -1)[:, :columns]
        scales = np.concatenate([part.scales for part in parts], axis=1)
        if blocks.grid.half_scales:
            scales = scales.astype(np.float16)
        arrays = {f"{stem}_Q{bits}": pack(codes, bits), f"{stem}_scales": scales}
        zeros = [part.zero_points for part in parts if part.zero_points is not None]
        if zeros:
            arrays[f"{stem}_zero_points"] = pack(np.concatenate(zeros, axis=1), bits)
        tensors = tuple(onnx.numpy_helper.from_array(a, make(name)) for name, a in arrays.items())
        names = tuple(
            make(f"{tensor.name}_float32") if tensor.data_type == tensor.FLOAT16 else tensor.name
            for tensor in tensors
        )
        attributes = {"bits": bits, "block_size": blocks.grid.block_size}
        return cls(tensors, names, (rows, columns), attributes, blocks.offsets is not None)

    def keep_in(self, graph: onnx.GraphProto) -> None:
        """Add the initializers, and a Cast of scales in float16, which a session folds as it loads."""
        graph.initializer.extend(self.tensors)
        for tensor, name in zip(self.tensors, self.names, strict=True):
            if tensor.name != name:
                cast = onnx.helper.make_node(
                    "Cast", [tensor.name], [name], name=name, to=tensor.FLOAT
                )
                graph.node.append(cast)


class _BlockSums:
    """Values that are followed by the sums of their blocks: what a weight with offsets is multiplied by.

    Args:
        opset: Of the model; ReduceSum has its axes as an input since 13.
        make: Makes a name that nothing has.
    """

    def __init__(self, opset: int, make: Callable[[str], str]) -> None:
        self._opset, self._make = opset, make
        self._made: dict[tuple[GraphScope, str, int], str] = {}

    def after(
        self, scope: GraphScope, value: str, columns: int, block_size: int
    ) -> tuple[str, int]:
        """Name of `value`, filled up to whole blocks, and its sums; and its number of columns.

        Args:
            scope: Of the graph that gets the nodes.
            value: float32 of shape (*, columns).
        """
        blocks = -(-columns // block_size)
        key = (scope, value, block_size)
        if key not in self._made:
            self._made[key] = self._make(f"{value}_and_sums")
            rank = ranks(scope).get(value)
            if rank is None or columns % block_size:
                sums = self._multiplied(scope, value, columns, block_size)
            else:
                sums = self._reduced(scope, value, [*[0] * (rank - 1), blocks, block_size])
            self._add(scope, "Concat", [value, sums], self._made[key], axis=-1)
        return self._made[key], blocks * block_size + blocks

    def _reduced(self, scope: GraphScope, value: str, shape: Sequence[int]) -> str:
        cut, sums = self._make(f"{value}_blocks"), self._make(f"{value}_sums")
        axis = np.array([len(shape) - 1], np.int64)
        sizes = self._constant(scope, f"{value}_blocks_shape", np.array(shape, np.int64))
        self._add(scope, "Reshape", [value, sizes], cut)
        if self._opset < _AXES_AS_INPUT:
            self._add(scope, "ReduceSum", [cut], sums, axes=axis.tolist(), keepdims=0)
        else:
            axes = self._constant(scope, f"{value}_sums_axis", axis)
            self._add(scope, "ReduceSum", [cut, axes], sums, keepdims=0)
        return sums

    def _multiplied(self, scope: GraphScope, value: str, columns: int, block_size: int) -> str:
        """Add a product that does without a rank, and gives zeros for what the last block lacks."""
        missing = -columns % block_size
        block_of: np.ndarray = np.arange(columns) // block_size
        ones = np.equal.outer(block_of, np.arange(-missing, block_of[-1] + 1))
        matrix = self._constant(scope, f"{value}_members", ones.astype(np.float32))
        sums = self._make(f"{value}_sums")
        self._add(scope, "MatMul", [value, matrix], sums)
        return sums

    def _constant(self, scope: GraphScope, stem: str, array: np.ndarray) -> str:
        name = self._make(stem)
        scope.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return name

    @staticmethod
    def _add(
        scope: GraphScope, op_type: str, inputs: Sequence[str], output: str, **attributes: Any
    ) -> None:
        node = onnx.helper.make_node(op_type, inputs, [output], name=output, **attributes)
        scope.graph.node.append(node)


def _multiply(
    each: Weighted,
    stored: _Stored,
    accuracy_level: int,
    make: Callable[[str], str],
    sums: _BlockSums,
) -> None:
    """MatMul, or Gemm without its addend, which an Add behind it takes over."""
    node, (rows, columns) = each.node, stored.shape
    value = node.input[0]
    if stored.has_offsets:
        value, columns = sums.after(each.scope, value, columns, stored.attributes["block_size"])
    addend = node.input[2] if node.op_type == "Gemm" and len(node.input) > _MATRIX else ""
    attributes = {**stored.attributes, "K": columns, "N": rows}
    if accuracy_level:
        attributes["accuracy_level"] = accuracy_level
    output = node.output[0]
    if addend:
        product = make(f"{output}_product")
        added = each.scope.graph.node.add(op_type="Add", name=f"{node.name}_add")
        added.input.extend([product, addend])
        added.output.append(output)
        output = product
    _become(node, "MatMulNBits", [value, *stored.names], output, attributes)


def _gather(each: Weighted, names: Sequence[str], stored: Mapping[str, int]) -> None:
    codes, *rest = names
    inputs = [codes, each.node.input[1], *rest]
    attributes = {**stored, "gather_axis": 0, "quantize_axis": 1}
    _become(each.node, "GatherBlockQuantized", inputs, each.node.output[0], attributes)


def _flattened(each: Weighted, stored: _Stored, make: Callable[[str], str]) -> list[str]:
    """The names of a product's codes with a row in one piece, scales and zero points: what a Gather picks rows from.

    The session flattens them as it loads; the file has them once.
    """
    codes, *rest = stored.names
    flat, shape = make(f"{codes}_rows"), make(f"{codes}_shape")
    sizes = np.array([stored.shape[0], -1], np.int64)
    each.scope.graph.initializer.append(onnx.numpy_helper.from_array(sizes, shape))
    node = each.scope.graph.node.add(op_type="Reshape", name=flat)
    node.input.extend([codes, shape])
    node.output.append(flat)
    return [flat, *rest]


def _become(
    node: onnx.NodeProto,
    op_type: str,
    inputs: list[str],
    output: str,
    attributes: Mapping[str, int],
) -> None:
    """Replace a node by another operator of its name, so that tables and options still find it."""
    made = onnx.helper.make_node(
        op_type, inputs, [output], name=node.name, domain=DOMAIN, **attributes
    )
    node.CopyFrom(made)


def _rows_of(each: Weighted) -> np.ndarray:
    """The weight as blockwise wants it: one row an output, or an entry of the table."""
    weight = weight_array(each.home.initializers[each.weight])
    rows: np.ndarray = np.ascontiguousarray(weight if each.transposed else weight.T)
    return rows


def _turned(scope: GraphScope) -> dict[str, str]:
    """Value -> the matrix that a Transpose makes it of."""
    return {
        node.output[0]: node.input[0]
        for node in scope.graph.node
        if node.op_type == "Transpose"
        and _is_matrix(scope.initializer(node.input[0]))
        and all(list(each.ints) == [1, 0] for each in node.attribute)
    }


def _drop_unread(scope: GraphScope) -> None:
    """Drop the Transposes of matrices that no node reads any more."""
    unread = _turned(scope).keys() - names_read_in(scope.graph)
    keep(scope.graph.node, lambda node: unread.isdisjoint(node.output))


def _is_matrix(tensor: onnx.TensorProto | None) -> bool:
    """Return whether a tensor is float32, two-dimensional and not empty."""
    return (
        tensor is not None
        and tensor.data_type == onnx.TensorProto.FLOAT
        and len(tensor.dims) == _MATRIX
        and all(tensor.dims)
    )


def _is_plain(attributes: Mapping[str, Any]) -> bool:
    """A Gemm that multiplies and adds, without factors and with its input as it is."""
    factors = [attributes[name].f for name in ("alpha", "beta") if name in attributes]
    flipped = "transA" in attributes and attributes["transA"].i
    return not flipped and all(factor == 1 for factor in factors)


def _axis(attributes: Mapping[str, Any]) -> int:
    return int(attributes["axis"].i) if "axis" in attributes else 0
