"""Give the casts that ONNX Runtime inserts around fp16 nodes names that it does not give again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.scopes import all_names, name_maker, rename_reads, scopes

if TYPE_CHECKING:
    import onnx

_INSERTED = "InsertedPrecisionFreeCast_"


def rename_inserted_casts(model: onnx.ModelProto) -> None:
    """Rename the values of these casts, in place.

    ONNX Runtime's CPU provider has no kernels of fp16 for most nodes: it inserts casts to float32 and back, and saves
    them in an optimized model. Where such a value becomes fp16 later, by `mode: fp16`, it inserts a cast of the
    same name as it loads that, and refuses the model for its two types.
    """
    make = name_maker(all_names(model))
    for scope in scopes(model):
        graph = scope.graph
        outputs = {value.name for value in graph.output}
        renamed = {
            name: make(f"cast_{name.removeprefix(_INSERTED)}")
            for node in graph.node
            for name in node.output
            if name.startswith(_INSERTED) and name not in outputs
        }
        for node in graph.node if renamed else ():
            rename_reads(node, renamed)
            node.output[:] = [renamed.get(name, name) for name in node.output]
        for value in graph.value_info:
            value.name = renamed.get(value.name, value.name)
