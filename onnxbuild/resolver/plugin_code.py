"""Plug-ins in a graph: every step kind is known, and their code is in the keys of steps that use it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from onnxbuild.catalog import CATALOG, plugins
from onnxbuild.core.errors import PluginError
from onnxbuild.core.graph import Graph, OutputRef, Step
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.plugin import Plugin, code_names


def with_plugins(graph: Graph) -> Graph:
    """Return the graph, each step with the plug-ins of the providers that it names.

    Raises:
        PluginError: A step is of a kind that no feature lists, or takes an output that no step has.
    """
    there = plugins()
    if not there:
        return graph
    for step in graph.steps.values():
        if step.kind not in CATALOG:
            what = f"a feature adds a step of the kind '{step.kind}', which no feature lists in `kinds`"
            raise _fault_at(step, there, what, "list it in the `kinds` of the feature, or ")
    for step in graph.steps.values():
        for name, ref in step.inputs.items():
            if fault := output_fault(ref, graph.steps):
                raise _fault_at(step, there, f"a feature gives a step the input '{name}': {fault}")
    owners = {
        name: code_names(plugin)
        for plugin in there
        for each in plugin.providers
        for name in (each.name, each.full_name)
    }
    if not owners:
        return graph
    return replace(
        graph, steps={name: _with_code(step, owners) for name, step in graph.steps.items()}
    )


def _with_code(step: Step, owners: Mapping[str, tuple[str, ...]]) -> Step:
    used = [name for text in _texts(step.params_json) for name in owners.get(text, ())]
    return replace(step, code=tuple(dict.fromkeys((*step.code, *used)))) if used else step


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)


def _fault_at(step: Step, there: tuple[Plugin, ...], what: str, fix: str = "") -> PluginError:
    module = type(step.params).__module__
    owner = next((each for each in there if _has_module(each, module)), there[0])
    return PluginError(what, where=f"{step.name}, by {owner.label}", fix=f"{fix}{owner.mend}")


def output_fault(ref: OutputRef, steps: Mapping[str, Step]) -> str:
    """Return why a reference names no output; empty if it names one.

    Args:
        ref: Given by a plug-in; the features of this package name only what is there.
        steps: Name -> step, of all that were added.
    """
    if ref.step not in steps:
        return f"there is no step '{ref.step}'"
    kind = CATALOG.get(steps[ref.step].kind)
    if kind is None or ref.output in kind.outputs:  # a kind that no feature lists is another fault
        return ""
    there = ", ".join(kind.outputs) or "none"
    return f"'{ref.step}' has no output '{ref.output}'; it has {there}"


def _has_module(plugin: Plugin, module: str) -> bool:
    path = f"{module.replace('.', '/')}.py"
    return any(file.endswith(path) for file in plugin.files)


def code_of_frontend(frontend: Frontend) -> tuple[str, ...]:
    """Return what stands for the code of a plug-in's frontend in a toolchain; nothing for this package's own."""
    owner = next((each for each in plugins() if frontend in each.features), None)
    return () if owner is None else code_names(owner)
