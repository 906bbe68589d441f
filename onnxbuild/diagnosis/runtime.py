"""The ONNX Runtime that a variant is looked at with: the one that its gates ran on."""

from __future__ import annotations

from dataclasses import replace

from onnxbuild.adapters.toolchain.environment_gc import hold
from onnxbuild.building.api import BuildResult, Request
from onnxbuild.building.wiring import open_workspace
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.target import CPU_TARGET, Target
from onnxbuild.onnxkit.providers.open_on_target import TARGET_INPUT
from onnxbuild.onnxkit.sessions.rpc_client import host_of, runtime_facts


def openable(request: Request, result: BuildResult, judge: str, target: Target) -> Target:
    """The target as its gate ran on it: what of its chain loads, in its environment on this machine.

    An environment of a list is kept from being removed until this process ends.

    Args:
        request: What was built.
        result: Its result.
        judge: The step that judged the variant there.
        target: As the recipe has it.
    """
    target = _usable(result, judge, target)
    if target.environment is None:
        return target
    workspace = open_workspace(request.project, result.store, make=False)
    known = workspace.fingerprints.environments
    try:
        path = known.interpreter(target.environment)
        if not target.environment.python:
            hold(known.folder(target.environment))
    finally:
        workspace.close()
    return replace(target, environment=replace(target.environment, interpreter=path))


def _usable(result: BuildResult, judge: str, target: Target) -> Target:
    found = result.graph.steps[judge].inputs.get(TARGET_INPUT)
    made = None if found is None else result.report.results.get(found.step)
    if made is None or not made.metrics["loads"]:
        return target  # which says itself what does not load
    loads = made.metrics["loads"]
    return replace(target, chain=tuple(link for link in target.chain if link.provider in loads))


def nodes_on(target: Target) -> Target:
    """Return where nodes are compared one by one: on the CPU, or in the target's own environment.

    Args:
        target: As `openable` gives it.
    """
    return CPU_TARGET if target.environment is None else target


def shown_runtime(recipe: Recipe, target: Target) -> str:
    """Return target and ONNX Runtime in words; empty where all targets use the same ONNX Runtime.

    Args:
        recipe: The variant's.
        target: As `openable` gives it.

    Raises:
        StepError: The environment's interpreter can't be started.
    """
    if not any(each.environment for each in recipe.targets):
        return ""
    if target.environment is None:
        return (
            f"target '{target.name}', with {runtime_facts()['package']} of onnxbuild's environment"
        )
    facts = host_of(target.environment.interpreter, "").call(runtime_facts)
    return f"target '{target.name}', with {facts['package']} of {target.environment}"
