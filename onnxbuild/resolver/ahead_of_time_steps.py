"""The steps of what is made ahead of time: made, held against PyTorch, packaged, loads measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from onnxbuild import __version__
from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef, View
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.core.target import CPU_TARGET, Link, Target, TargetGates
from onnxbuild.onnxkit.ahead_of_time.options import (
    AheadOfTimeOptions,
    CompiledOptions,
    EngineOptions,
)
from onnxbuild.onnxkit.ahead_of_time.ort_format import REPLAY
from onnxbuild.onnxkit.ahead_of_time.tensorrt import TENSORRT, engine_options
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import named, short_name
from onnxbuild.resolver.addresses import load_times_step, of_variant, shared
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.reference_step import add_reference, taken_axes
from onnxbuild.resolver.sections import typed
from onnxbuild.resolver.session_steps import settings_of
from onnxbuild.resolver.tolerances import tolerances_of
from onnxbuild.steps import (
    compile_model,
    load_times,
    optimize_for_host,
    ort_format,
    package_ahead_of_time,
    tensorrt_engines,
    validate,
)

SECTION = "ahead_of_time"


@dataclass(frozen=True, slots=True)
class _Made:
    """One artifact.

    Attributes:
        what: Its kind, the end of its folder's name.
        artifact: What the step gives.
        target: Where it runs.
        session: What it is validated in.
        fixed: Axes that it takes in one size.
    """

    what: str
    artifact: OutputRef
    target: Target
    session: SessionSettings
    fixed: Mapping[str, int] = field(default_factory=dict)


class AheadOfTimeSteps:
    """Adds them to an assembly.

    Args:
        assembly: Where they go.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def add(self, recipe: Recipe, variant: Variant, model: OutputRef) -> None:
        """Add all that the recipe asks for of one variant."""
        options: AheadOfTimeOptions = typed(recipe.sections[SECTION])
        if options.variants and variant.name not in options.variants:
            return
        made = list(self._made(recipe, variant, model, options))
        packaged = [self._packaged(recipe, variant, model, each) for each in made]
        measured = self._measured(recipe, variant, model, made) if options.load_times else ()
        for each, bundle in zip(made, packaged, strict=True):
            parts = ((bundle, ""), *((ref, "load-times.json") for ref in measured))
            self._assembly.view(View(recipe.name, f"{variant.name}-{each.what}", parts))

    def _made(
        self, recipe: Recipe, variant: Variant, model: OutputRef, options: AheadOfTimeOptions
    ) -> Iterator[_Made]:
        if options.ort is not None:
            params: Any = ort_format.OrtFormatParams(options.ort)
            artifact = self._artifact(
                recipe, variant, "ort", kind=ort_format.KIND.name, params=params, model=model
            )
            replayed = SessionSettings(config={**REPLAY} if options.ort.style == "runtime" else {})
            yield _Made("ort", artifact, CPU_TARGET, replayed)
        if options.optimized is not None:
            kind = optimize_for_host.KIND.name
            settings = settings_of(recipe, variant).judged()
            params = optimize_for_host.HostGraphParams(settings)
            artifact = self._artifact(
                recipe, variant, "optimized", kind=kind, params=params, model=model
            )
            done = replace(settings, graph_optimization="disable", free_dimensions={})
            yield _Made("optimized", artifact, CPU_TARGET, done, settings.free_dimensions)
        if options.compiled is not None:
            yield self._compiled(recipe, variant, model, options.compiled)
        if options.tensorrt is not None:
            yield self._engines(recipe, variant, model, options.tensorrt)

    def _compiled(
        self, recipe: Recipe, variant: Variant, model: OutputRef, options: CompiledOptions
    ) -> _Made:
        provider = short_name(options.provider)
        target = _target(recipe, provider)
        kind = compile_model.KIND
        if named(provider).compiles_for_gpu:
            kind = compile_model.KIND_FOR_GPU
        own = dict(target.chain[0].options)
        params = compile_model.CompileParams(provider, own, options.embed)
        artifact = self._artifact(
            recipe, variant, "compiled", kind=kind.name, params=params, model=model
        )
        return _Made("compiled", artifact, target, SessionSettings())

    def _engines(
        self, recipe: Recipe, variant: Variant, model: OutputRef, options: EngineOptions
    ) -> _Made:
        target = _target(recipe, TENSORRT)
        own = dict(target.chain[0].options)
        params = tensorrt_engines.EngineParams(recipe.inputs, recipe.axes, own, options)
        step = self._assembly.step(
            _address(recipe, variant, "tensorrt", "make"),
            tensorrt_engines.KIND.name,
            params,
            recipe.lines.get(SECTION, variant.location),
            {"model": model, "reference": add_reference(self._assembly, recipe)},
        )
        built = {**own, **engine_options(recipe.inputs, recipe.axes, fp16=options.fp16)}
        judged = Target(TENSORRT, (Link(TENSORRT, built),))
        return _Made("tensorrt", OutputRef(step, "artifact"), judged, SessionSettings())

    def _artifact(
        self,
        recipe: Recipe,
        variant: Variant,
        what: str,
        *,
        kind: str,
        params: object,
        model: OutputRef,
    ) -> OutputRef:
        step = self._assembly.step(
            _address(recipe, variant, what, "make"),
            kind,
            params,
            recipe.lines.get(SECTION, variant.location),
            {"model": model},
        )
        return OutputRef(step, "artifact")

    def _packaged(
        self, recipe: Recipe, variant: Variant, model: OutputRef, made: _Made
    ) -> OutputRef:
        at = variant.location
        reference = add_reference(self._assembly, recipe, variant, made.fixed)
        validated = self._assembly.step(
            _address(recipe, variant, made.what, "validate"),
            validate.KIND.name,
            validate.ValidateParams(
                variant=f"{variant.name}-{made.what}",
                precision=variant.precision,
                tolerances=tolerances_of(recipe, variant),
                target=made.target,
                gates=TargetGates(require="all"),
                session=made.session.judged(),
            ),
            at,
            {"model": made.artifact, "reference": reference},
        )
        inputs = {
            "model": model,
            "artifact": made.artifact,
            "validation": OutputRef(validated, "report"),
        }
        packaged = self._assembly.step(
            _address(recipe, variant, made.what, "package"),
            package_ahead_of_time.KIND.name,
            package_ahead_of_time.PackageAheadParams(
                onnxbuild=__version__,
                recipe=recipe.name,
                recipe_sha256=self._assembly.package_sha256(inputs),
                variant=variant.name,
                precision=variant.precision,
                axes=taken_axes(recipe.axes, made.fixed),
            ),
            at,
            inputs,
        )
        return OutputRef(packaged, "bundle")

    def _measured(
        self, recipe: Recipe, variant: Variant, model: OutputRef, made: list[_Made]
    ) -> tuple[OutputRef, ...]:
        if not made:
            return ()
        settings = settings_of(recipe, variant)
        fixed = settings.free_dimensions
        step = self._assembly.step(
            shared(recipe, load_times_step(variant.name)),
            load_times.KIND.name,
            load_times.LoadTimesParams(settings),
            recipe.lines.get(SECTION, variant.location),
            {
                "model": model,
                "reference": add_reference(self._assembly, recipe, variant, fixed),
                **{f"artifact/{each.what}": each.artifact for each in made},
            },
        )
        return (OutputRef(step, "report"),)


def _address(recipe: Recipe, variant: Variant, what: str, step: str) -> StepAddress:
    return replace(of_variant(recipe, variant, step), artifact=what)


def _target(recipe: Recipe, provider: str) -> Target:
    """The provider alone, with the options that the first target at home gives it."""
    links = (link for each in recipe.targets if not each.environment for link in each.chain)
    found = next((link for link in links if link.provider == provider), Link(provider))
    return Target(provider, (found,))
