"""`operators`: libraries of custom operators, registered in every session and shipped with the model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.needs_frontend import MODULE_FRONTENDS, key_of
from onnxbuild.expansion.operators import LIBRARIES, SECTION, OperatorsOptions
from onnxbuild.steps import operators

_TORCH = re.compile(r"\w+::\w+(\.\w+)?")
_ONNX = re.compile(r"[\w.]+::\w+(@[1-9]\d*)?")
_OWN = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})


def _faults(parts: Parts) -> Iterator[Fault]:
    options = parts.sections.get(SECTION)
    if not isinstance(options, OperatorsOptions) or parts.node(SECTION) is None:
        return
    if not options.libraries:
        what = f"{SECTION} names no library"
        fix = (
            f"write `{LIBRARIES.partition('.')[0]}: {{libraries: [PATH]}}`, or remove `{SECTION}`"
        )
        yield Fault(what, parts.key_at(SECTION), fix)
    yield from key_of(parts, MODULE_FRONTENDS, SECTION, "nodes")
    for name, node in options.nodes.items():
        at = parts.at(SECTION, "nodes", name)
        if not _TORCH.fullmatch(name):
            what = f"{SECTION}.nodes has '{name}'; expected a PyTorch operator, NAMESPACE::NAME"
            yield Fault(what, at, 'write it as in `torch.library.custom_op("mylib::fancy")`')
        if not _ONNX.fullmatch(node) or node.partition("::")[0] in _OWN:
            what = f"{SECTION}.nodes.{name} is '{node}'; expected DOMAIN::NAME in a domain of the library's own"
            yield Fault(
                what, at, "write `mylib.example::Fancy`, or `mylib.example::Fancy@2` for version 2"
            )


FEATURE = Feature(
    name=SECTION,
    sections=(
        Section(
            name=SECTION,
            options=OperatorsOptions,
            below={"libraries": "files"},
            needs_onnx="ONNX Runtime loads them",
        ),
    ),
    kinds=(operators.KIND,),
    faults=_faults,
)
