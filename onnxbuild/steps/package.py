"""Bundle what passed its gates: files, manifest, checksums, a loader, examples. Of a variant, of a model made of one ahead of time, of a PyTorch program."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from onnxbuild.core.axis import axes_for_callers
from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import Axis, Precision
from onnxbuild.core.step import MODEL_FILE, Outcome, StepContext, StepKind
from onnxbuild.core.target import CPU, Target
from onnxbuild.onnxkit.ahead_of_time.artifact_file import DESCRIPTION_FILE, SOURCE
from onnxbuild.onnxkit.ahead_of_time.artifact_file import read_description as read_artifact
from onnxbuild.onnxkit.bundles.manifest import (
    EVALUATION_FILE,
    GATES_FILE,
    ONNX,
    VALIDATION_FILE,
    BundleTarget,
    Decoder,
    Manifest,
    ManifestProvider,
    Value,
)
from onnxbuild.onnxkit.bundles.write import (
    described,
    libraries_of,
    names_below,
    read_report,
    reports_of,
    values,
    verdict_of,
    versions_of,
    write_bundle,
)
from onnxbuild.onnxkit.data.prompts import TOKENIZER_INPUT
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model
from onnxbuild.onnxkit.processing.labels import LabelsFile, labelled
from onnxbuild.onnxkit.programs.artifact_file import read_description as read_program
from onnxbuild.onnxkit.sessions.settings import SessionSettings, read_settings
from onnxbuild.providers import full_name, short_name

_SCORES = (
    "metric", "score", "score_interval", "baseline_score", "drop", "drop_interval", "confidence",
    "samples", "passed",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PackageParams:
    """Content of the manifest that is not in the step's inputs.

    Attributes:
        onnxbuild: Version of this program.
        recipe_sha256: Digest of the part of the recipe that this variant is made from.
        axes: As the variant takes them: of one size where its session fixes that.
        targets: Where it is meant to run, in order of preference.
        session: How the variant's session runs it, where no input `session/TARGET` says so.
        labels: Names of classes.
        state: Input -> the output that is this input of the next call; None for a model without state.
        decoder: Which input of a model that writes text is what; None for any other.
        tokenizer: Files of its tokenizer.
    """

    onnxbuild: str
    recipe: str
    recipe_sha256: str
    variant: str
    precision: Precision
    axes: tuple[Axis, ...]
    targets: tuple[Target, ...]
    session: SessionSettings = field(default_factory=SessionSettings)
    labels: tuple[LabelsFile, ...] = field(default=(), metadata={"sparse": True})
    state: dict[str, str] | None = field(default=None, metadata={"sparse": True})
    decoder: Decoder | None = field(default=None, metadata={"sparse": True})
    tokenizer: Entrypoint | None = field(default=None, metadata={"sparse": True})


def run(context: StepContext) -> Outcome:
    """Write the bundle: the model, what the gates found out about it, checksums, and a loader.

    Raises:
        StepError: The model ran on none of its targets, or a file of labels can't be read.
    """
    from onnxbuild.onnxkit.saturation.saturation import sums_may_saturate

    params: PackageParams = context.params
    source = context.input("model")
    validations = reports_of(context, "validation")
    evaluations = reports_of(context, "evaluation")
    _check_validated(context, validations)
    sessions = _sessions(context)
    model = load_model(source, weights="mapped")
    summary = summarize(model)
    draft = Manifest(
        name=params.recipe,
        variant=params.variant,
        kind=ONNX,
        file=MODEL_FILE,
        precision=params.precision,
        recipe_sha256=params.recipe_sha256,
        inputs=values(summary["inputs"]),
        outputs=labelled(values(summary["outputs"]), params.labels, context),
        dynamic_axes=axes_for_callers(params.axes),
        opsets=summary["opsets"],
        ir_version=summary["ir_version"],
        nodes=summary["nodes"],
        parameters=summary["parameters"],
        sums_may_saturate=sums_may_saturate(model),
        providers=_chain(params.targets),
        targets={
            target.name: _target(target, validations[target.name], sessions[target.name])
            for target in params.targets
        },
        session=sessions[params.targets[0].name],
        validation={name: verdict_of(each) for name, each in _ran(validations).items()},
        evaluation={
            target: {key: report.get(key) for key in _SCORES}
            for target, report in _ran(evaluations).items()
        },
        fidelity=_ran(reports_of(context, "fidelity")),
        versions=versions_of(params.onnxbuild, "onnx", "onnxruntime"),
        state=params.state,
        decoder=params.decoder,
    )
    reports = {
        VALIDATION_FILE: validations,
        EVALUATION_FILE: evaluations,
        GATES_FILE: reports_of(context, "gate"),
    }
    return write_bundle(
        context.output("bundle"),
        source,
        names_below(source),
        draft,
        reports,
        libraries=libraries_of(context),
        tokenizer=_tokenizer(context),
    )


def _tokenizer(context: StepContext) -> Sequence[Path]:
    """The files of a tokenizer: those that the recipe names, or those that were made of a GGUF file."""
    params: PackageParams = context.params
    if TOKENIZER_INPUT in context.input_names:
        return sorted(context.input(TOKENIZER_INPUT).iterdir())
    return [path for _, path in context.files(params.tokenizer)] if params.tokenizer else []


def _check_validated(context: StepContext, validations: dict[str, Any]) -> None:
    """Refuse a model that nothing was run on: no target was there."""
    if not _ran(validations):
        reasons = "; ".join(f"{name}: {each['skipped']}" for name, each in validations.items())
        raise StepError(
            f"the model ran on none of its targets, so nothing vouches for it ({reasons})",
            where=context.where,
            fix="add `cpu` to `providers`, or run where one of them is",
        )


def _ran(reports: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in reports.items() if "skipped" not in each}


def _chain(targets: tuple[Target, ...]) -> tuple[ManifestProvider, ...]:
    """Return all built-in providers, in order of preference, for `load()` without a target.

    Each names the target whose session settings it takes: the first that begins with it, else the
    first that has it.
    """
    links: dict[str, dict[str, str]] = {}
    owners: dict[str, str] = {}
    begins: dict[str, str] = {}
    for target in targets:
        for link in target.chain if target.library is None else ():
            provider = full_name(link.provider)
            links.setdefault(provider, dict(link.options))
            owners.setdefault(provider, target.name)
            if link is target.chain[0]:
                begins.setdefault(provider, target.name)
    return tuple(
        ManifestProvider(name, options, {**owners, **begins}[name])
        for name, options in links.items()
    )


def _target(target: Target, validation: dict[str, Any], session: SessionSettings) -> BundleTarget:
    """Return one target, how sessions run there, and whether the model was run on it."""
    library = None if target.library is None else PurePosixPath(target.library.files[0]).name
    skipped = validation.get("skipped")
    return BundleTarget(
        tuple(
            ManifestProvider(full_name(link.provider), dict(link.options)) for link in target.chain
        ),
        session,
        placement=validation["placement"] if skipped is None else None,
        skipped=skipped,
        library=library,
        environment=validation.get("environment"),
    )


def _sessions(context: StepContext) -> dict[str, SessionSettings]:
    """Target -> how the variant is run there."""
    params: PackageParams = context.params
    return {
        target.name: read_settings(context.input(f"session/{target.name}"))
        if f"session/{target.name}" in context.input_names
        else params.session
        for target in params.targets
    }


KIND = StepKind(
    name="package",
    version=14,
    params=PackageParams,
    inputs=(
        "model",
        "check",
        "export-check",
        "validation/*",
        "evaluation/*",
        "fidelity/*",
        "gate/*",
        "session/*",
        "waits/*",
        f"{TOKENIZER_INPUT}?",
    ),
    outputs={"bundle": "bundle"},
    toolchain=("onnx", "onnxruntime"),
    run=run,
    entrypoints=lambda params: (
        *(each.file for each in params.labels),
        *((params.tokenizer,) if params.tokenizer else ()),
    ),
)


@dataclass(frozen=True, slots=True)
class PackageAheadParams:
    """Content of the manifest that is not in the step's inputs.

    Attributes:
        onnxbuild: Version of this program.
        recipe_sha256: Digest of the part of the recipe that this is made from.
        variant: That it is made of.
        labels: Names of classes.
    """

    onnxbuild: str
    recipe: str
    recipe_sha256: str
    variant: str
    precision: Precision
    axes: tuple[Axis, ...]
    labels: tuple[LabelsFile, ...] = field(default=(), metadata={"sparse": True})


def run_ahead_of_time(context: StepContext) -> Outcome:
    """Write the bundle; inputs and outputs are those of the portable model.

    Raises:
        StepError: A file of labels can't be read.
    """
    params: PackageAheadParams = context.params
    source, portable = context.input("artifact"), context.input("model")
    found = read_artifact(source)
    summary = summarize(load_model(portable, weights="left"))
    target = short_name(found.provider)
    validation = read_report(context.input("validation"))
    settings = {"graph_optimization": found.graph_optimization, "config": found.config}
    session = from_json(SessionSettings, settings)
    draft = Manifest(
        name=params.recipe,
        variant=params.variant,
        kind=found.kind,
        file=found.file,
        precision=params.precision,
        recipe_sha256=params.recipe_sha256,
        inputs=values(summary["inputs"]),
        outputs=labelled(values(summary["outputs"]), params.labels, context),
        dynamic_axes=axes_for_callers(params.axes),
        made_for=found.made_for,
        targets={
            target: BundleTarget(
                (ManifestProvider(found.provider, found.provider_options),), session
            )
        },
        folder_options=found.folder_options,
        validation={target: verdict_of(validation)},
        versions=versions_of(params.onnxbuild, "onnxruntime"),
        portable_size_bytes=file_bytes(portable),
        facts={**found.facts, SOURCE: _digests(portable)},
    )
    names = [name for name in names_below(source) if name != DESCRIPTION_FILE]
    reports = {VALIDATION_FILE: {target: validation}}
    libraries = libraries_of(context)
    bundle = context.output("bundle")
    return write_bundle(bundle, source, names, draft, reports, libraries=libraries)


def _digests(model: Path) -> dict[str, str]:
    return {name: described(model / name).sha256 for name in names_below(model)}


AHEAD_OF_TIME = StepKind(
    name="package-ahead-of-time",
    version=6,
    params=PackageAheadParams,
    inputs=("model", "artifact", "validation"),
    outputs={"bundle": "bundle"},
    toolchain=("onnx", "onnxruntime"),
    run=run_ahead_of_time,
    entrypoints=lambda params: tuple(each.file for each in params.labels),
)


@dataclass(frozen=True, slots=True)
class PackageProgramParams:
    """Content of the manifest that is not in the step's inputs.

    Attributes:
        onnxbuild: Version of this program.
        recipe_sha256: Digest of the part of the recipe that this format is made from.
    """

    onnxbuild: str
    recipe: str
    recipe_sha256: str
    axes: tuple[Axis, ...]


def run_program(context: StepContext) -> Outcome:
    """Write the bundle."""
    params: PackageProgramParams = context.params
    source = context.input("program")
    found = read_program(source)
    validation = read_report(context.input("validation"))
    draft = Manifest(
        name=params.recipe,
        kind=found.format,
        file=found.file,
        precision="fp32",
        recipe_sha256=params.recipe_sha256,
        inputs=tuple(Value(each.name, each.dtype, each.shape) for each in found.inputs),
        outputs=tuple(map(Value, found.outputs)),
        dynamic_axes=axes_for_callers(params.axes),
        made_for=found.made_for,
        by_keyword=found.by_keyword,
        validation={CPU: verdict_of(validation)},
        versions=versions_of(params.onnxbuild, "torch"),
    )
    reports = {VALIDATION_FILE: {CPU: validation}}
    return write_bundle(context.output("bundle"), source, (found.file,), draft, reports)


PROGRAM = StepKind(
    name="package-program",
    version=7,
    params=PackageProgramParams,
    inputs=("program", "validation"),
    outputs={"bundle": "bundle"},
    toolchain=("torch",),
    run=run_program,
)
