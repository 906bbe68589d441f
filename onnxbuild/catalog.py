"""All features: what a recipe may ask for. A new one is a file, and a line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from onnxbuild.core.recipe import Location, Recipe, Variant
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.artifacts import SECTION as AHEAD_OF_TIME
from onnxbuild.expansion.composed import composed
from onnxbuild.expansion.feature import (
    ArtifactFormat,
    Feature,
    Frontend,
    Mode,
    PackageFormat,
    ProgramFormat,
    Section,
)
from onnxbuild.expansion.tolerances import described
from onnxbuild.features.artifacts import compiled, offline, optimized, ort, tensorrt
from onnxbuild.features.formats import aotinductor, torch_export, torchscript
from onnxbuild.features.frontends import pytorch
from onnxbuild.features.gates import check, evaluate, fidelity, validate
from onnxbuild.features.measures import benchmark, sensitivity
from onnxbuild.features.modes import auto, bf16, dynamic, fp16, fp32, static, weight_only
from onnxbuild.features.packages import bundle, triton
from onnxbuild.features.settings import (
    ahead_of_time,
    calibration,
    optimize,
    packages,
    release,
    session,
    target,
)
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances

FEATURES: tuple[Feature, ...] = (
    pytorch.FEATURE,
    optimize.FEATURE,
    calibration.FEATURE,
    fp32.FEATURE,
    fp16.FEATURE,
    bf16.FEATURE,
    dynamic.FEATURE,
    static.FEATURE,
    weight_only.FEATURE,
    auto.FEATURE,
    check.FEATURE,
    fidelity.FEATURE,
    validate.FEATURE,
    session.FEATURE,
    evaluate.FEATURE,
    sensitivity.FEATURE,
    benchmark.FEATURE,
    torchscript.FEATURE,
    torch_export.FEATURE,
    aotinductor.FEATURE,
    ahead_of_time.FEATURE,
    ort.FEATURE,
    offline.FEATURE,
    optimized.FEATURE,
    compiled.FEATURE,
    tensorrt.FEATURE,
    bundle.FEATURE,
    triton.FEATURE,
    packages.FEATURE,
    target.FEATURE,
    release.FEATURE,
)
"""In the order in which gates judge, reports are laid, and the reference page lists them."""

Family = TypeVar("Family", bound=Feature)


def _of(family: type[Family]) -> dict[str, Family]:
    return {each.name: each for each in FEATURES if isinstance(each, family)}


FRONTENDS: Mapping[str, Frontend] = _of(Frontend)
MODES: Mapping[str, Mode] = _of(Mode)
PROGRAM_FORMATS: Mapping[str, ProgramFormat] = _of(ProgramFormat)
ARTIFACT_FORMATS: Mapping[str, ArtifactFormat] = _of(ArtifactFormat)
PACKAGE_FORMATS: Mapping[str, PackageFormat] = _of(PackageFormat)

CATALOG: Mapping[str, StepKind] = {kind.name: kind for each in FEATURES for kind in each.kinds}
"""Step kinds by name."""


def _sections() -> Iterable[Section]:
    """The sections of all features; some have a key for each feature of a family."""
    precisions = {name: each for mode in MODES.values() for name, each in mode.tolerances.items()}
    added: dict[str, dict[str, tuple[type, str]]] = {
        AHEAD_OF_TIME: {
            each.name: (each.options, each.help) for each in ARTIFACT_FORMATS.values()
        },
        packages.SECTION: {
            each.name: (each.options, each.help) for each in PACKAGE_FORMATS.values()
        },
        validate.NAME: {
            name: (VariantTolerances, f"default: {described(each)}")
            for name, each in precisions.items()
        },
    }
    for feature in FEATURES:
        for section in feature.sections:
            keys = added.get(section.name)
            if keys is None:
                yield section
            elif keys:
                yield composed(section, keys, __name__)


SECTIONS: Mapping[str, Section] = {each.name: each for each in _sections()}
AheadOfTimeOptions: type = SECTIONS[AHEAD_OF_TIME].options
PackagesOptions: type = SECTIONS[packages.SECTION].options
ValidateOptions: type = SECTIONS[validate.NAME].options
"""Under the names by which what is stored of a recipe finds them."""


def variant_of(
    name: str,
    mode: Mode,
    options: object,
    *,
    sections: Mapping[str, object],
    location: Location,
    search: str = "",
) -> Variant:
    """A variant, with what its mode says of it.

    Args:
        name: Its name.
        mode: Its mode.
        options: The mode's.
        sections: Its own, over the recipe's.
        location: Where the recipe declares it.
        search: Of a trial, the variant that is searched for.
    """
    precision = mode.precision_of(options) if mode.precision_of else mode.precision
    return Variant(
        name=name,
        mode=mode.name,
        options=options,
        sections=sections,
        location=location,
        precision=precision,
        tolerances=mode.tolerances[precision],
        searches=mode.trials is not None,
        search=search,
    )


def trials_of(recipe: Recipe, variant: Variant) -> dict[str, Variant]:
    """Trial name -> the variant that it is, in the order in which a smaller budget cuts them off.

    Args:
        recipe: The variant's.
        variant: One that is searched for; others have none.
    """
    trials = MODES[variant.mode].trials
    found: dict[str, Variant] = {}
    for each in () if trials is None else trials(recipe, variant):
        mode = MODES[each.mode]
        options = None if mode.options is None else mode.options(**each.changes)
        found[each.name] = variant_of(
            f"{variant.name}/{each.name}",
            mode,
            options,
            sections=variant.sections,
            location=variant.location,
            search=variant.name,
        )
    return found
