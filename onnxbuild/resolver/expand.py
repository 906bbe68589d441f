"""Expand a recipe into steps and deliverables, by asking each feature."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from onnxbuild.catalog import (
    ARTIFACT_FORMATS,
    CATALOG,
    FRONTENDS,
    MODES,
    PACKAGE_FORMATS,
    PROGRAM_FORMATS,
    all_features,
    forms_of_kinds,
)
from onnxbuild.core.errors import PluginError
from onnxbuild.core.graph import (
    ARTIFACT,
    PACKAGE,
    PROGRAM,
    VARIANT,
    Deliverable,
    DeliverableFamily,
    OutputRef,
)
from onnxbuild.core.recipe import Format, Recipe, Variant
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.artifacts import SECTION as AHEAD_OF_TIME
from onnxbuild.expansion.delivery import Bundle, artifact_bundle, program_bundle, variant_bundle
from onnxbuild.expansion.feature import ExtraReport, Feature, Subject
from onnxbuild.expansion.package_format import bundle_name, named_bundle
from onnxbuild.expansion.reported import Reported, reported_in
from onnxbuild.expansion.requested import PACKAGES, AheadOfTimeOptions, PackagesOptions
from onnxbuild.expansion.scope import Comparison, GraphBuilder, Scope, Source
from onnxbuild.expansion.sessions import add_session
from onnxbuild.expansion.variants import variant_of
from onnxbuild.frontend_steps.shared_steps import given_by
from onnxbuild.host.host import HostFacts
from onnxbuild.resolver.plugin_code import code_of_frontend


def trials_of(recipe: Recipe, variant: Variant) -> dict[str, Variant]:
    """Trial name -> the variant that it is, in the order in which a smaller budget cuts them off.

    Args:
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
            trial=each.name,
        )
    return found


def scope_of(
    recipe: Recipe,
    graph: GraphBuilder,
    host: HostFacts,
    choices: Mapping[str, str],
    comparison: Comparison | None,
    *,
    connected: Callable[[str], Scope],
) -> Scope:
    """Return the scope that features expand a recipe in.

    Args:
        graph: Where its steps go.
        host: Decides options left at `auto`.
        choices: `RECIPE:VARIANT` -> the trial of `mode: auto` that a lock names;
            `RECIPE:VARIANT/session` -> the settings of `session: {tune: true}`.
        comparison: Which models to compare; None to measure the variants once.
        connected: Another component of the recipe -> its scope.
    """
    frontend = FRONTENDS[recipe.frontend]

    giving = [each.inputs for each in all_features() if each.inputs is not None]

    def inputs(kind: StepKind) -> dict[str, OutputRef]:
        return {name: ref for give in giving for name, ref in give(scope, kind).items()}

    @cache
    def source() -> Source:
        return frontend.source(scope)

    scope = Scope(
        graph=graph,
        recipe=recipe,
        host=host,
        choices=choices,
        comparison=comparison,
        connected=connected,
        source=source,
        reference=lambda variant, fixed: frontend.reference(scope, variant, fixed),
        score=lambda: frontend.score(scope),
        baseline=lambda: given_by(frontend, scope, code_of_frontend(frontend)),
        model=lambda variant: MODES[variant.mode].model(scope, variant),
        trials=lambda variant: trials_of(recipe, variant),
        inputs=inputs,
        labels=tuple(file for each in all_features() for file in each.class_names(recipe)),
    )
    return scope


def expand(scope: Scope, variants: Sequence[Variant], formats: Sequence[Format]) -> None:
    """Add the steps of some of a recipe's variants, and of some of its formats other than ONNX."""
    programs = {each.name: PROGRAM_FORMATS[each.name].program(scope, each) for each in formats}
    if variants:
        scope.source()
        scope.reference(None, {})
        scope.score()
    made = [_made(scope, each) for each in variants]
    subjects = [each.subject for each in made]
    laid = _laid(scope, subjects, programs)
    for each in made:
        name = each.subject.variant.name
        _deliver(scope, name, each.bundle, laid.get(name, ()), variant=name)
        _add_packages(scope, each.subject, each.bundle)
        _add_further(scope, each.subject, laid)
    for subject in subjects:
        _add_artifacts(scope, subject)
    for program in formats:
        bundle = program_bundle(scope, program, programs[program.name])
        _deliver(scope, program.name, bundle, laid.get(program.name, ()), family=PROGRAM)
    _conclude(scope)


def expand_whole(scope: Scope, variants: Sequence[Variant]) -> None:
    """Add the steps of some variants of what a feature makes of all components, which are there."""
    for feature in all_features():
        if feature.whole is not None and feature.whole.component == scope.recipe.component:
            for deliverable in feature.whole.deliver(scope, variants):
                scope.graph.deliver(deliverable)
    _conclude(scope)


def _conclude(scope: Scope) -> None:
    for feature in all_features():
        for deliverable in feature.concludes(scope, lambda: _reported(scope)):
            scope.graph.deliver(deliverable)


def _reported(scope: Scope) -> Sequence[Reported]:
    """Return the reports of the recipe's steps and bundles, as far as the graph goes now."""
    return reported_in(scope.graph.graph(), scope.recipe.name, CATALOG, forms_of_kinds())


@dataclass(frozen=True, slots=True)
class _Made:
    """A variant with its bundle."""

    subject: Subject
    bundle: Bundle


def _made(scope: Scope, variant: Variant) -> _Made:
    """Add a variant's model, what judges it, and its package."""
    model = scope.model(variant)
    session = add_session(scope, variant, model)
    subject = Subject(variant, MODES[variant.mode], model, session)
    reports: dict[str, OutputRef] = {}
    for feature in all_features():
        _add_reports(reports, feature.reports(scope, subject), feature)
    for number in range(len(scope.recipe.targets)):
        for feature in all_features():
            _add_reports(reports, feature.reports_on(scope, subject, number), feature)
    files = variant_bundle(scope, subject, reports)
    subject = replace(subject, reports=reports)
    return _Made(subject, Bundle(files, tuple(each.step for each in reports.values())))


def _add_reports(
    reports: dict[str, OutputRef], found: Mapping[str, OutputRef], feature: Feature
) -> None:
    for name, report in found.items():
        if reports.setdefault(name, report) != report:
            raise PluginError(
                f"the feature '{feature.name}' gives the package another report '{name}'",
                where=report.step,
                fix=f"name it `gate/{feature.name}`",
            )


def _laid(
    scope: Scope, subjects: Sequence[Subject], programs: Mapping[str, OutputRef]
) -> dict[str, list[ExtraReport]]:
    """Deliverable -> what all features lay next to it."""
    found: dict[str, list[ExtraReport]] = {}
    for feature in all_features():
        for name, laid in feature.laid(scope, subjects, programs).items():
            found.setdefault(name, []).extend(laid)
    return found


def _add_artifacts(scope: Scope, subject: Subject) -> None:
    """Add what is made ahead of time of a variant, each with a bundle of its own."""
    options = scope.recipe.section(AHEAD_OF_TIME, AheadOfTimeOptions)
    variant = subject.variant
    if not options.includes(variant.name):
        return
    artifacts = [
        ARTIFACT_FORMATS[name].artifact(scope, variant, subject.model, options.options_of(name))
        for name in options.requested
    ]
    bundles = [artifact_bundle(scope, subject, each) for each in artifacts]
    laid = [
        report
        for feature in all_features()
        for report in feature.laid_ahead(scope, subject, artifacts)
    ]
    for each, bundle in zip(artifacts, bundles, strict=True):
        folder = f"{variant.name}-{each.name}"
        _deliver(scope, folder, bundle, laid, family=ARTIFACT, variant=variant.name)


def _add_packages(scope: Scope, subject: Subject, made: Bundle) -> None:
    """Add other forms of a bundle."""
    options, packed = scope.recipe.sections.get(PACKAGES), bundle_name(subject)
    if not isinstance(options, PackagesOptions) or not options.includes(packed):
        return
    for name in options.requested:
        form, own = PACKAGE_FORMATS[name], options.options_of(name)
        if form.refuses(named_bundle(subject)):  # recipe.checks.packages names it
            continue
        files, laid = form.add(scope, subject, made.files, own)
        judged_by = (*made.judged_by, *(each.report.step for each in laid))
        _deliver(
            scope,
            f"{packed}-{name}",
            Bundle(files, judged_by),
            laid,
            family=PACKAGE,
            variant=subject.variant.name,
            of=packed,
            form=name,
        )


def _add_further(
    scope: Scope, subject: Subject, laid: Mapping[str, Sequence[ExtraReport]]
) -> None:
    """Add what features make of a variant besides."""
    variant = subject.variant.name
    for feature in all_features():
        for each in feature.delivers(scope, subject):
            bundle = Bundle(each.files, each.judged_by)
            name = f"{variant}-{each.name}"
            _deliver(scope, name, bundle, laid.get(name, ()), variant=variant)
            _add_packages(scope, replace(subject, further=each), bundle)


def _deliver(
    scope: Scope,
    name: str,
    bundle: Bundle,
    laid: Sequence[ExtraReport],
    *,
    family: DeliverableFamily = VARIANT,
    variant: str = "",
    of: str = "",
    form: str = "",
) -> None:
    scope.graph.deliver(
        Deliverable(
            recipe=scope.recipe.name,
            name=name,
            parts=((bundle.files, ""), *((each.report, each.file) for each in laid)),
            family=family,
            variant=variant,
            of=of,
            form=form,
            judged_by=bundle.judged_by,
            measured_by={
                target: tuple(each.report.step for each in laid if each.target == target)
                for target in dict.fromkeys(each.target for each in laid if each.target)
            },
        )
    )
