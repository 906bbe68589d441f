"""The gates and packages of what is no portable variant, and the steps that make a bundle."""

from dataclasses import dataclass

from onnxbuild import __version__
from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Format, Recipe
from onnxbuild.core.target import TargetGates
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.artifacts import artifact_address
from onnxbuild.expansion.feature import AheadOfTimeModel, Subject
from onnxbuild.expansion.generation import made_tokenizer, named_tokenizer
from onnxbuild.expansion.limits import tolerances_of, tolerances_of_format
from onnxbuild.expansion.reference_plan import taken_axes
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.bundles.manifest import Decoder
from onnxbuild.onnxkit.data.greedy import RolesError, roles_of
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import package, validate, validate_program

KINDS = (package.KIND, package.AHEAD_OF_TIME, validate_program.KIND, package.PROGRAM)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A checked bundle.

    Attributes:
        files: The bundle.
        judged_by: Names of the steps that judge it.
    """

    files: OutputRef
    judged_by: tuple[str, ...]


def variant_bundle(scope: Scope, subject: Subject, reports: dict[str, OutputRef]) -> OutputRef:
    """Add the package of a portable variant.

    Args:
        reports: What its gates say of it.
    """
    recipe, variant, session = scope.recipe, subject.variant, subject.session
    made = made_tokenizer(scope)
    inputs = {"model": subject.model, **reports, **made}
    packaged = scope.step(
        of_variant(recipe, variant, "package"),
        package.KIND,
        package.PackageParams(
            onnxbuild=__version__,
            recipe=recipe.name,
            recipe_sha256=scope.graph.package_sha256(inputs),
            variant=variant.name,
            precision=variant.precision,
            axes=taken_axes(recipe.axes, session.settings.free_dimensions),
            targets=recipe.targets,
            session=SessionSettings() if session.steps else session.settings,
            labels=scope.labels,
            state={each.name: each.fed_by for each in recipe.inputs if each.fed_by} or None,
            decoder=_decoder(recipe),
            tokenizer=None if made else named_tokenizer(recipe),
        ),
        inputs,
        at=variant.location,
    )
    return OutputRef(packaged, "bundle")


def _decoder(recipe: Recipe) -> Decoder | None:
    """Return the inputs by their purpose; None for a model that can't continue prompts."""
    try:
        roles = roles_of(recipe.inputs)
    except RolesError:
        return None
    return Decoder(**roles.names(recipe.outputs[0]))


def artifact_bundle(scope: Scope, subject: Subject, artifact: AheadOfTimeModel) -> Bundle:
    """Add the gate and the package of what is made ahead of time of a variant."""
    recipe, variant = scope.recipe, subject.variant
    validated = scope.step(
        artifact_address(recipe, variant, artifact.name, "validate"),
        validate.KIND,
        validate.ValidateParams(
            variant=f"{variant.name}-{artifact.name}",
            precision=variant.precision,
            tolerances=tolerances_of(recipe, variant),
            target=artifact.target,
            gates=TargetGates(require="all"),
            session=artifact.session.judged(),
            options=variant.option_names,
            owner=variant.owner_of("validate"),
        ),
        {"model": artifact.made, "reference": scope.reference(variant, artifact.fixed)},
        at=variant.location,
    )
    inputs = {
        "model": subject.model,
        "artifact": artifact.made,
        "validation": OutputRef(validated, "report"),
    }
    packaged = scope.step(
        artifact_address(recipe, variant, artifact.name, "package"),
        package.AHEAD_OF_TIME,
        package.PackageAheadParams(
            onnxbuild=__version__,
            recipe=recipe.name,
            recipe_sha256=scope.graph.package_sha256(inputs),
            variant=variant.name,
            precision=variant.precision,
            axes=taken_axes(recipe.axes, artifact.fixed),
            labels=scope.labels,
        ),
        inputs,
        at=variant.location,
    )
    return Bundle(OutputRef(packaged, "bundle"), (validated,))


def program_bundle(scope: Scope, each: Format, program: OutputRef) -> Bundle:
    """Add the gate and the package of a program of the user's framework."""
    recipe = scope.recipe
    validated = scope.step(
        StepAddress(recipe.name, "validate", each.name),
        validate_program.KIND,
        validate_program.ValidateProgramParams(each.name, tolerances_of_format(recipe, each)),
        {"program": program, "reference": scope.reference(None, {})},
        at=each.location,
    )
    inputs = {"program": program, "validation": OutputRef(validated, "report")}
    packaged = scope.step(
        StepAddress(recipe.name, "package", each.name),
        package.PROGRAM,
        package.PackageProgramParams(
            onnxbuild=__version__,
            recipe=recipe.name,
            recipe_sha256=scope.graph.package_sha256(inputs),
            axes=recipe.axes,
        ),
        inputs,
        at=each.location,
    )
    return Bundle(OutputRef(packaged, "bundle"), (validated,))
