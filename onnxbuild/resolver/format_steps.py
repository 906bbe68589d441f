"""The steps of formats other than ONNX: convert, compare with PyTorch, package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnxbuild import __version__
from onnxbuild.catalog import KIND_OF_FORMAT
from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef, View
from onnxbuild.core.recipe import Format, Recipe
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.reference_step import add_reference
from onnxbuild.resolver.sections import typed
from onnxbuild.resolver.tolerances import tolerances_of_format
from onnxbuild.steps import (
    aotinductor,
    package_program,
    torch_export,
    torchscript,
    validate_program,
)


class FormatSteps:
    """Adds the steps of formats to an assembly.

    Args:
        assembly: Where they go.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def programs(self, recipe: Recipe, formats: Sequence[Format]) -> dict[str, OutputRef]:
        """Add what makes some of a recipe's formats; format -> its program."""
        return {each.name: self._program(recipe, each) for each in formats}

    def deliver(
        self, recipe: Recipe, each: Format, program: OutputRef, measured: OutputRef
    ) -> None:
        """Add a program's gate, its package, and its folder.

        Args:
            recipe: The format's.
            each: One of its formats.
            program: What `programs` gave.
            measured: The report of the benchmark that it takes part in.
        """
        validated = self._assembly.step(
            StepAddress(recipe.name, "validate", each.name),
            validate_program.KIND.name,
            validate_program.ValidateProgramParams(each.name, tolerances_of_format(recipe, each)),
            each.location,
            {"program": program, "reference": add_reference(self._assembly, recipe)},
        )
        inputs = {"program": program, "validation": OutputRef(validated, "report")}
        packaged = self._assembly.step(
            StepAddress(recipe.name, "package", each.name),
            package_program.KIND.name,
            package_program.PackageProgramParams(
                onnxbuild=__version__,
                recipe=recipe.name,
                recipe_sha256=self._assembly.package_sha256(inputs),
                axes=recipe.axes,
            ),
            each.location,
            inputs,
        )
        parts = ((OutputRef(packaged, "bundle"), ""), (measured, "benchmark.json"))
        self._assembly.view(View(recipe.name, each.name, parts))

    def _program(self, recipe: Recipe, each: Format) -> OutputRef:
        if each.name == "torchscript":
            params: Any = torchscript.TorchScriptParams(
                recipe.model, recipe.inputs, recipe.outputs, recipe.axes, typed(each.options)
            )
            return self._converted(recipe, each, params)
        if each.name == "torch-export":
            return self._exported(recipe, each, "convert")
        params = aotinductor.AotInductorParams(typed(each.options))
        exported = self._exported(recipe, each, "export")
        return self._converted(recipe, each, params, {"program": exported})

    def _exported(self, recipe: Recipe, each: Format, step: str) -> OutputRef:
        """The exported program; `torch-export` and `aotinductor` share one."""
        asked = {f.name: f.options for f in recipe.formats}
        options: Any = asked.get("torch-export", torch_export.TorchExportOptions())
        params = torch_export.TorchExportParams(
            recipe.model, recipe.inputs, recipe.outputs, recipe.axes, options
        )
        address = StepAddress(recipe.name, step, each.name)
        made = self._assembly.step(address, torch_export.KIND.name, params, each.location)
        return OutputRef(made, "program")

    def _converted(
        self,
        recipe: Recipe,
        each: Format,
        params: object,
        inputs: dict[str, OutputRef] | None = None,
    ) -> OutputRef:
        step = self._assembly.step(
            StepAddress(recipe.name, "convert", each.name),
            KIND_OF_FORMAT[each.name].name,
            params,
            each.location,
            inputs,
        )
        return OutputRef(step, "program")
