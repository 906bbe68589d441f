"""`pipeline`: one callable over all components of a file; judged as a whole, and delivered with its models and its code."""

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from onnxbuild.core.entrypoint import DUMMY_DATA, FILE_DATA, PIPELINE_DATA
from onnxbuild.core.errors import StepError
from onnxbuild.core.graph import PACKAGE, Deliverable, OutputRef
from onnxbuild.core.params import from_json, to_json
from onnxbuild.core.recipe import FRONTEND, DummyInput, Entrypoint, Recipe, Variant
from onnxbuild.core.step import REPORT_FILE, Finding, Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.document.faults import Fault, hinted, nearest
from onnxbuild.document.parts import Parts, key_needs_frontend
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.expansion import cells
from onnxbuild.expansion.addresses import further, of_variant, shared
from onnxbuild.expansion.benchmarks import SECTION as BENCHMARK
from onnxbuild.expansion.benchmarks import is_measured
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.feature import Column, Section, Whole, nothing
from onnxbuild.expansion.fused import fused
from onnxbuild.expansion.generation import batch_faults, token_faults
from onnxbuild.expansion.limits import EXACT, tolerances_of
from onnxbuild.expansion.limits import SECTION as RELEASE
from onnxbuild.expansion.model_source import NoOptions
from onnxbuild.expansion.package_format import PackageFormat, package_kind
from onnxbuild.expansion.pipelines import (
    METRIC,
    NAME,
    RUN,
    SAMPLES,
    components_of,
    modules_of,
    reference_of_whole,
)
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import settings_of, target_inputs
from onnxbuild.onnxkit.accuracy.point_reports import metrics_of_all
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.benchmark.options import BenchmarkOptions
from onnxbuild.onnxkit.benchmark.report import report_file
from onnxbuild.onnxkit.bundles.manifest import (
    MANIFEST_FILE,
    TOKENIZER_FOLDER,
    Manifest,
    graph_files,
    read_manifest,
)
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.data.array_files import read_arrays
from onnxbuild.onnxkit.data.greedy import RolesError
from onnxbuild.onnxkit.data.prompts import TOKENIZER_FILE
from onnxbuild.onnxkit.data.recorded_calls import CALLS, OPTIONAL_CALLS
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE
from onnxbuild.onnxkit.data.reference_files import POINTS_FILE, read_points, read_reference
from onnxbuild.onnxkit.loaders import sounds
from onnxbuild.onnxkit.model.model_files import hand_on
from onnxbuild.onnxkit.packages.contents import hand_files_on, write_rendered, write_text
from onnxbuild.onnxkit.packages.golden import GOLDEN
from onnxbuild.onnxkit.packages.package_run import (
    checked_package,
    run_program,
    skipped,
    verdict_on,
)
from onnxbuild.onnxkit.pipelines import parts as shipped
from onnxbuild.onnxkit.pipelines.built_in import (
    BUILT_IN,
    CTC,
    GREEDY,
    SAMPLED,
    SoundOptions,
    ctc_plan,
    greedy_plan,
)
from onnxbuild.onnxkit.pipelines.calls import EXACT as EXACT_MODELS
from onnxbuild.onnxkit.pipelines.calls import MODEL, RunPart, port_of
from onnxbuild.onnxkit.pipelines.layout import (
    CODE_FILE,
    PARTS_FILE,
    PIPELINE_FILE,
    RUN_FILE,
    SOUNDS_FILE,
    write_first_calls,
)
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.steps import pipeline, pipeline_latency, pipeline_reference

_TOKENIZER_KEY = "tokenizer"
_TOKENIZER = f"{NAME}.{_TOKENIZER_KEY}"
_OF_IMAGES = "image_token"
_KEYS_OF = {
    GREEDY: ("start", "tokens", "suppress_tokens", "begin_suppress_tokens", _OF_IMAGES),
    CTC: ("blank", "receptive_field", "stride"),
}
_KEYS_OF |= {SAMPLED: (*_KEYS_OF[GREEDY], "temperature", "top_p", "seed")}
"""Built-in callable -> options that are its arguments, or in its plan."""

_OF_ANY = (_TOKENIZER_KEY, "batches", "max_kl")
"""Options of all built-in callables that are no argument."""

_OF_THE_WHOLE = (NAME, RELEASE, BENCHMARK, "report", "target")
"""Sections that the whole shares with its components."""


@dataclass(frozen=True, slots=True)
class PackagedPart:
    """A component in a package.

    Attributes:
        name: Its name, and its folder.
        variant: Which of its variants it is.
        tolerances: Its outputs' on the inputs of PyTorch's calls.
        inputs: Its inputs, in order; those of its state have `fed_by`.
        connections: Input -> COMPONENT.OUTPUT that it is.
        most: Axis -> its greatest size.
    """

    name: str
    variant: str
    tolerances: VariantTolerances
    inputs: tuple[DummyInput, ...]
    connections: dict[str, str]
    most: dict[str, int]


@dataclass(frozen=True, slots=True)
class PackagePipelineParams:
    """Parameters of a package.

    Attributes:
        name: The recipe's, without its component.
        callable: Name of the user's callable.
        args: Its keyword arguments.
        tolerances: Of the pipeline's outputs; None where they need not be PyTorch's.
        tokenizer: Files by which run.py shows tokens as text.
        sound: How run.py takes .wav files.
    """

    name: str
    variant: str
    parts: tuple[PackagedPart, ...]
    callable: str
    args: dict[str, Any]
    tolerances: VariantTolerances | None
    tokenizer: Entrypoint | None = field(default=None, metadata={"sparse": True})
    sound: SoundOptions | None = field(default=None, metadata={"sparse": True})


@dataclass(frozen=True, slots=True)
class RunPipelineParams:
    """Parameters of a run of a package; `subject` is what is judged, for messages."""

    subject: str


def package(context: StepContext) -> Outcome:
    """Write the components' models, pipeline.json, run.py with the callable, golden samples and SHA256SUMS."""
    params: PackagePipelineParams = context.params
    folder, reference = context.output("bundle"), context.input("reference")
    components: dict[str, Any] = {}
    for each in params.parts:
        bundle = context.input(f"bundle/{each.name}")
        manifest = read_manifest(json.loads((bundle / MANIFEST_FILE).read_text("utf-8")))
        (folder / each.name).mkdir()
        hand_files_on(bundle, graph_files(manifest), folder / each.name)
        call = next(read_reference(reference / CALLS / each.name))
        components[each.name] = {
            "file": f"{each.name}/{manifest.file}",
            "variant": each.variant,
            "inputs": [port_of(port) for port in each.inputs],
            "most": each.most,
            "outputs": {name: array.dtype.name for name, array in call.outputs.items()},
            "state": {port.name: port.fed_by for port in each.inputs if port.fed_by},
            "connections": each.connections,
            "tolerances": to_json(each.tolerances),
        }
    code = (reference / CODE_FILE).read_text("utf-8")
    about = {
        "name": params.name,
        "variant": params.variant,
        "components": components,
        "run": {"callable": params.callable if code else None, "args": params.args},
        **({} if params.sound is None else {"sound": to_json(params.sound)}),
        "tolerances": to_json(params.tolerances),
        "validation": {
            name.partition("/")[2]: json.loads((context.input(name) / REPORT_FILE).read_text())
            for name in context.input_names
            if name.startswith("gate/")
        },
    }
    write_report(folder, about, PIPELINE_FILE)
    if code:
        write_text(folder / CODE_FILE, code)
    write_text(folder / PARTS_FILE, Path(shipped.__file__).read_text("utf-8"))
    if params.sound is not None:
        write_text(folder / SOUNDS_FILE, Path(sounds.__file__).read_text("utf-8"))
    write_rendered(
        folder,
        "onnxbuild.onnxkit.pipelines",
        {RUN_FILE: RUN_FILE},
        name=params.name,
        variant=params.variant,
        callable=params.callable if code else "",
        sample=SAMPLE,
        rows="plan" in params.args,
        decodes="tokens" in params.args,
        sounds=params.sound is not None,
    )
    if params.tokenizer is not None:
        (folder / TOKENIZER_FOLDER).mkdir()
        for _, path in context.files(params.tokenizer):
            hand_on(path, folder / TOKENIZER_FOLDER / path.name)
    points = [each.file for each in read_points(reference)]
    (folder / GOLDEN).mkdir()
    for name in (shipped.VALUES_FILE, shipped.ARRAYS_FILE, POINTS_FILE, *points):
        hand_on(reference / name, folder / GOLDEN / name)
    write_first_calls(reference, folder / GOLDEN / CALLS, [each.name for each in params.parts])
    models = [path for each in params.parts for path in (folder / each.name).iterdir()]
    size = sum(path.stat().st_size for path in models)
    return Outcome({"model_bytes": size, "files": write_sums(folder)})


def run(context: StepContext) -> Outcome:
    """Run the package's run.py on its golden samples, and judge what it gives.

    Raises:
        StepError: The package is damaged, or run.py fails.
    """
    params: RunPipelineParams = context.params
    package = checked_package(context)
    about = json.loads((package / PIPELINE_FILE).read_text("utf-8"))
    if about["run"]["callable"] is None:
        return skipped(context, "its callable needs more than NumPy, and is not in the package")
    folder, outputs = context.scratch / "package", context.scratch / "outputs"
    shutil.copytree(package, folder)
    command: list[Path | str] = [sys.executable, "-B", RUN_FILE, "--outputs", outputs]
    code, said = run_program(command, folder)
    if code:
        what = f"`python {RUN_FILE}` ends with {code}: {said.splitlines()[-1]}"
        raise StepError(what, where=context.where)
    golden, reports = package / GOLDEN, {}
    findings: tuple[Finding, ...] = ()
    for name, tolerances in _judged_folders(about):
        if tolerances is None or not (golden / name).is_dir():
            continue
        found = {path.stem: read_arrays(path) for path in sorted((outputs / name).glob("*.npz"))}
        if lacking := [p.name for p in read_points(golden / name) if p.name not in found]:
            what = f"`python {RUN_FILE}` gives nothing for {name}/{lacking[0]}"
            raise StepError(what, where=context.where)
        reports[name], own = verdict_on(
            found,
            golden / name,
            from_json(VariantTolerances, tolerances),
            subject=params.subject,
            fix=f"run `python {RUN_FILE}` in the package's folder",
            where=context.where,
        )
        findings += own
    metrics = metrics_of_all(each["metrics"] for each in reports.values())
    report = {"ran": f"python {RUN_FILE}", "passed": not findings, "metrics": metrics}
    write_report(context.output("report"), {**report, "judged": reports})
    return Outcome(metrics, findings)


def _judged_folders(about: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (folder of golden points, their tolerances) of a package: its outputs, and its components' calls."""
    yield ".", about["tolerances"]
    for name, each in about["components"].items():
        yield f"{CALLS}/{name}", each["tolerances"]


def _recipe(components: Sequence[Recipe]) -> Recipe | None:
    """Return the pipeline of a file's components; None where it asks for none."""
    first = components[0]
    if RUN not in first.entrypoints or SAMPLES not in first.entrypoints:
        return None
    options = first.section(NAME, pipeline.PipelineOptions)
    at, run = first.lines[NAME], first.entrypoints[RUN]
    if run.target in BUILT_IN:
        given = {name: to_json(getattr(options, name)) for name in _KEYS_OF[run.target]}
        args = {k: v for k, v in given.items() if v != [] and k != _OF_IMAGES}
        run = replace(run, args={"plan": _plan(components, run.target, options), **args})
    return replace(
        first,
        name=str(RecipeName.parse(first.name).sibling(NAME)),
        location=at,
        model=run,
        inputs=(),
        outputs=(),
        axes=(),
        variants=tuple(
            _variant(name, chosen, options, first)
            for name, chosen in _assigned(options, components).items()
        ),
        sections={
            name: each if name in _OF_THE_WHOLE else type(each)()
            for name, each in first.sections.items()
        },
        entrypoints={
            k: v for k, v in first.entrypoints.items() if k in (SAMPLES, METRIC, _TOKENIZER)
        },
        formats=(),
        frontend=FRONTEND,
        environment=None,
        component=NAME,
        connections=(),
        components=tuple(each.component for each in components),
    )


def _plan(
    components: Sequence[Recipe], target: str, options: pipeline.PipelineOptions
) -> dict[str, Any]:
    """Return how a built-in callable runs the components; raises RolesError."""
    inputs = {each.component: each.inputs for each in components}
    outputs = {each.component: each.outputs[0] for each in components if each.outputs}
    if target == CTC:
        return ctc_plan(inputs, outputs)
    connections = {each.component: each.connections for each in components}
    return greedy_plan(inputs, connections, outputs, options.image_token)


def _built_in_faults(
    components: Sequence[Recipe], options: pipeline.PipelineOptions
) -> Iterator[Fault]:
    """Yield what is wrong with a built-in `run`, or with what is only for one."""
    first = components[0]
    at = first.lines[NAME]
    run, samples = first.entrypoints.get(RUN), first.entrypoints.get(SAMPLES)
    if run is None or samples is None:
        return
    place = first.lines.get(RUN, at)
    if run.target not in BUILT_IN:
        if samples.target in (DUMMY_DATA, FILE_DATA):
            what = f"{SAMPLES} are {samples.target}, which are rows of `run: {GREEDY}`, `{SAMPLED}` and `{CTC}`"
            fix = "name a callable that yields what `run` takes as `sample`"
            yield Fault(what, first.lines.get(SAMPLES, at), fix)
        yield from _surplus_faults(first, run.target)
        return
    try:
        plan = _plan(components, run.target, options)
    except RolesError as error:
        what = f"{NAME} can't run these components by `{run.target}`: {error}"
        yield Fault(what, place, "declare it so, or write a callable `run(parts, sample)`")
        return
    yield from _surplus_faults(first, run.target)
    yield from _value_faults(first, options, run.target, plan)
    yield from _batch_faults(components, options, plan)
    past = plan["decoder"]["past"] if run.target != CTC else None
    place = first.lines.get(f"{NAME}.tokens", at)
    for axis in (axis for each in components for axis in each.axes if axis.name == past):
        yield from token_faults(NAME, options.tokens, axis, place, before=len(options.start))


def _surplus_faults(first: Recipe, target: str) -> Iterator[Fault]:
    """Yield options that `run` does not take; those that the model's source has written, for another one, are no mistake."""
    takes = (*_KEYS_OF[target], *_OF_ANY) if target in BUILT_IN else ()
    options, silent = first.section(NAME, pipeline.PipelineOptions), pipeline.PipelineOptions()
    for key in dict.fromkeys((*(key for keys in _KEYS_OF.values() for key in keys), *_OF_ANY)):
        place = first.lines.get(f"{NAME}.{key}")
        is_silent = getattr(options, key) == getattr(silent, key)  # `explain` writes them all
        if place is None or place == first.lines["model"] or key in takes or is_silent:
            continue
        of = next((name for name, keys in _KEYS_OF.items() if key in keys), GREEDY)
        what = f"{NAME} has `{key}`, which `run: {target}` does not take; `run: {of}` does"
        fix = f"remove `{key}`"
        if target not in BUILT_IN:
            what = f"{NAME} has `{key}`, which is for a `run` of onnxbuild's, such as `{of}`"
            fix += ", or give it to the callable: `run: {entrypoint: ..., args: {...}}`"
        yield Fault(what, place, fix)


def _value_faults(
    first: Recipe, options: pipeline.PipelineOptions, target: str, plan: Mapping[str, Any]
) -> Iterator[Fault]:
    """Yield values by which a built-in `run` can't be what its name says."""
    at = first.lines[NAME]
    if options.start and "embedder" in plan:
        what = f"{NAME} has a start, and the decoder goes on from each row's '{plan['decoder']['ids']}'"
        yield Fault(what, first.lines[f"{NAME}.start"], "remove `start`")
    if target != CTC and not options.start and "embedder" not in plan:
        what = f"{NAME} has no start; it is what the decoder begins with"
        yield Fault(what, at, "add `start: [0]` with the model's decoder_start_token_id")
    for key in ("temperature", "top_p") if target == SAMPLED else ():
        if not getattr(options, key):
            what = f"{NAME}.{key} is 0: the most likely token always follows, and none is drawn"
            fix = f"write a number above 0, or `run: {GREEDY}` without the keys of `{SAMPLED}`"
            yield Fault(what, first.lines[f"{NAME}.{key}"], fix)
    shown_by = (TOKENIZER_FILE, *(("vocab.json",) if target == CTC else ()))
    if options.tokenizer and not any(Path(each).name in shown_by for each in options.tokenizer):
        what = f"{NAME}.{_TOKENIZER_KEY} has no {' or '.join(shown_by)}, by which tokens are shown as text"
        yield Fault(
            what, first.lines[_TOKENIZER], f"add `FOLDER/{shown_by[-1]}` to it, or remove it"
        )


def _batch_faults(
    components: Sequence[Recipe], options: pipeline.PipelineOptions, plan: Mapping[str, Any]
) -> Iterator[Fault]:
    """Yield batches that can't be made of the samples, or that a component does not take."""
    first = components[0]
    at = first.lines.get(f"{NAME}.batches", first.lines[NAME])
    named = {each["shape"][0] for each in plan["inputs"]}
    axes = (axis for each in components for axis in each.axes if axis.name in named)
    yield from batch_faults(NAME, options.batches, options.count, dict.fromkeys(axes), at)


def _assigned(
    options: pipeline.PipelineOptions, components: Sequence[Recipe]
) -> dict[str, dict[str, Variant]]:
    """Variant of the pipeline -> component -> its variant; one that is not named is unquantized."""
    own = {each.component: {v.name: v for v in each.variants} for each in components}
    names = dict.fromkeys(name for variants in own.values() for name in variants)
    asked = options.variants or {
        name: {part: name for part, variants in own.items() if name in variants} for name in names
    }
    plain = {
        part: next(
            (each for each in variants.values() if each.precision == EXACT),
            next(iter(variants.values())),
        )
        for part, variants in own.items()
    }
    return {
        name: {part: own[part].get(chosen.get(part, ""), plain[part]) for part in own}
        for name, chosen in asked.items()
    }


def _bits(precision: str) -> int:
    return int("".join(re.findall(r"\d+", precision)) or 32)


def _variant(
    name: str, chosen: Mapping[str, Variant], options: pipeline.PipelineOptions, first: Recipe
) -> Variant:
    """Return a variant of the pipeline: its precision is that of the component with the fewest bits."""
    fewest = min(chosen.values(), key=lambda each: _bits(each.precision))
    own = options.tolerances.get(name)
    return replace(
        fewest,
        name=name,
        sections={} if own is None else {"validate": own},
        location=first.lines.get(f"{NAME}.variants.{name}", first.lines[NAME]),
        searches=False,
    )


def _faults_of(components: Sequence[Recipe]) -> Iterator[Fault]:
    """Yield what is wrong with the pipeline of a file's components."""
    first = components[0]
    if NAME not in first.lines:
        return
    at = first.lines[NAME]
    own = {each.component: [v.name for v in each.variants] for each in components}
    if not first.component:
        fix = "write `components: {NAME: {model: ...}}`, one or several, and move the model there"
        yield Fault(f"{NAME} runs components, and the recipe has none", at, fix)
        return
    if NAME in own:
        what = f"component '{NAME}' has the name of what `{NAME}` makes of all components"
        yield Fault(what, at, "rename the component")
    if none := [part for part, variants in own.items() if not variants]:
        what = f"{NAME} runs ONNX models, and component '{none[0]}' makes none"
        yield Fault(what, at, "add `onnx` to its `formats`")
        return
    options = first.section(NAME, pipeline.PipelineOptions)
    yield from _built_in_faults(components, options)
    for variant, chosen in options.variants.items():
        for part, name in chosen.items():
            place = first.lines.get(f"{NAME}.variants.{variant}.{part}", at)
            if part not in own:
                near = nearest(part, own)
                what = (
                    f"{NAME}: variant '{variant}' names the component '{part}', which is not there"
                )
                yield Fault(hinted(what, near), place, f"write {near or ', '.join(own)}")
            elif name not in own[part]:
                near = nearest(name, own[part])
                what = f"{NAME}: component '{part}' has no variant '{name}'; it has {', '.join(own[part])}"
                fix = f"write `{part}: {near or own[part][0]}`, or add it to its `quantization`"
                yield Fault(hinted(what, near), place, fix)
    for variant in options.tolerances:
        if variant not in _assigned(options, components):
            place = first.lines.get(f"{NAME}.tolerances.{variant}", at)
            known = ", ".join(_assigned(options, components))
            what = (
                f"{NAME}: tolerances are given for '{variant}', which is no variant of the {NAME}"
            )
            yield Fault(what, place, f"write one of {known}")


def _faults(parts: Parts) -> Iterator[Fault]:
    """Yield what is wrong with the section, and components that PyTorch can't run."""
    yield from _data_faults(parts)
    if parts.node(NAME) is None or not parts.sound(NAME):
        return
    for key, words in (("run", "it is what is run"), ("samples", "they are what it is run on")):
        if parts.lacks(NAME, key):
            fix = f"add `{key}: models/mine.py:CALLABLE`"
            yield Fault(f"{NAME} has no {key}; {words}", parts.key_at(NAME), fix)
    options = parts.sections.get(NAME)
    has_metric = parts.node(NAME, "metric") is not None
    if isinstance(options, pipeline.PipelineOptions) and has_metric != (options.min is not None):
        lacking = "min" if has_metric else "metric"
        what = f"{NAME} has no {lacking}: `metric` scores the variants of few bits, and `min` is their least score"
        yield Fault(what, parts.key_at(NAME), f"add `{lacking}`")
    if parts.node("operators") is not None:
        what = f"{NAME}: run.py opens no libraries of custom operators, and the recipe has some"
        yield Fault(what, parts.key_at("operators"), f"remove `{NAME}`, or the libraries")
    yield from key_needs_frontend(parts, parts.module_frontends, NAME)


def _data_faults(parts: Parts) -> Iterator[Fault]:
    """Yield data that are the pipeline's calls where there is no pipeline."""
    for path in (("calibration", "data"), ("reference", "samples")):
        node = parts.node(*path)
        if node is not None and node.value == PIPELINE_DATA and parts.node(NAME) is None:
            what = f"{'.'.join(path)} are those of the `{NAME}`, and the recipe has none"
            fix = f"add `{NAME}: {{run: ..., samples: ...}}` next to `components`, or name your own data"
            yield Fault(what, parts.at(*path), fix)


def _inputs(scope: Scope, kind: StepKind) -> Mapping[str, OutputRef]:
    """PyTorch's calls of the components, as an input of a step that takes them as data."""
    if OPTIONAL_CALLS not in kind.inputs:
        return {}
    is_of_samples = "samples" in {each.name for each in fields(kind.params)}
    data = scope.recipe.entrypoints.get("samples" if is_of_samples else "calibration")
    if data is None or data.target != PIPELINE_DATA:
        return {}
    return {CALLS: reference_of_whole(scope.connected(NAME))}


@dataclass(frozen=True, slots=True)
class _Assembly:
    """A variant of a pipeline with what it is made of.

    Attributes:
        scope: The pipeline's.
        variant: One of its.
        scopes: Component -> its scope.
        chosen: Component -> its variant.
        reference: PyTorch's run of the pipeline.
    """

    scope: Scope
    variant: Variant
    scopes: Mapping[str, Scope]
    chosen: Mapping[str, Variant]
    reference: OutputRef

    def models(self, target: Target) -> dict[str, OutputRef]:
        """Return the inputs of a step that runs it on a target."""
        models = {
            f"model/{part}": own.model(self.chosen[part]) for part, own in self.scopes.items()
        }
        return {**models, "reference": self.reference, **target_inputs(self.scope, target)}


def _deliver(scope: Scope, variants: Sequence[Variant]) -> Iterator[Deliverable]:
    """Yield the variants of a pipeline, each with the steps that judge and make it."""
    recipe = scope.recipe
    options = recipe.section(NAME, pipeline.PipelineOptions)
    scopes = components_of(scope)
    assigned = _assigned(options, [each.recipe for each in scopes.values()])
    assemblies: list[tuple[_Assembly, Mapping[str, Deliverable]]] = []
    for variant in variants:
        chosen = assigned[variant.name]
        found = {
            part: scope.graph.delivered(scopes[part].recipe.name, each.name)
            for part, each in chosen.items()
        }
        bundles = {part: each for part, each in found.items() if each is not None}
        if len(bundles) < len(chosen):
            continue  # another component's variant alone was asked for
        made = _Assembly(scope, variant, scopes, chosen, reference_of_whole(scope))
        assemblies.append((made, bundles))
    reports = _measured([made for made, _ in assemblies])
    for each, own in assemblies:
        yield _delivered(each, own, reports)


def _delivered(
    made: _Assembly, bundles: Mapping[str, Deliverable], reports: Sequence[OutputRef]
) -> Deliverable:
    scope, recipe, variant, chosen = made.scope, made.scope.recipe, made.variant, made.chosen
    judged_by = _judged_by(recipe, variant)
    gates = {
        f"gate/{target.name}": OutputRef(_judged(made, number), "report")
        for number, target in enumerate(recipe.targets)
    }
    packaged = scope.step(
        of_variant(recipe, variant, "package"),
        PACKAGE_KIND,
        PackagePipelineParams(
            name=recipe.name,
            variant=variant.name,
            parts=tuple(
                PackagedPart(
                    part,
                    chosen[part].name,
                    VariantTolerances()
                    if judged_by == "metric"
                    else tolerances_of(own.recipe, chosen[part]),
                    own.recipe.inputs,
                    {c.input: f"{c.component}.{c.output}" for c in own.recipe.connections},
                    {axis.name: axis.max for axis in own.recipe.axes},
                )
                for part, own in made.scopes.items()
            ),
            callable=_name_of(recipe.model.target),
            args=dict(recipe.model.args),
            tolerances=tolerances_of(recipe, variant) if judged_by == "outputs" else None,
            tokenizer=recipe.entrypoints.get(_TOKENIZER),
            sound=recipe.section(NAME, pipeline.PipelineOptions).sound,
        ),
        {
            **{f"bundle/{part}": each.bundle for part, each in bundles.items()},
            "reference": made.reference,
            **gates,
        },
        at=variant.location,
    )
    package = OutputRef(packaged, "bundle")
    ran = scope.step(
        of_variant(recipe, variant, "run"),
        RUN_KIND,
        RunPipelineParams(f"{NAME} '{variant.name}'"),
        {"package": package},
        at=variant.location,
    )
    targets = [each.name for each in recipe.targets]
    return Deliverable(
        recipe=recipe.name,
        name=variant.name,
        parts=(
            (package, ""),
            (OutputRef(ran, "report"), "run.json"),
            *(
                (report, report_file(targets[number] if number else ""))
                for number, report in enumerate(reports)
            ),
        ),
        family=PACKAGE,
        form=NAME,
        judged_by=(
            *(each.step for each in gates.values()),
            ran,
            *(step for each in bundles.values() for step in each.judged_by),
        ),
        measured_by={name: (report.step,) for name, report in zip(targets, reports, strict=False)},
        holds=tuple((each.recipe, each.name) for each in bundles.values()),
    )


def _name_of(target: str) -> str:
    """Return the name of the callable in its file."""
    return BUILT_IN[target].__name__ if target in BUILT_IN else target.rpartition(":")[2]


def _judged(made: _Assembly, number: int) -> str:
    """Add the gate on the target of a number."""
    recipe, variant, chosen = made.scope.recipe, made.variant, made.chosen
    target = recipe.targets[number]
    options = recipe.section(NAME, pipeline.PipelineOptions)
    judged_by = _judged_by(recipe, variant)
    exact = {f"{EXACT_MODELS}{part}": fused(own) for part, own in made.scopes.items()}
    return made.scope.step(
        of_variant(recipe, variant, "validate", further(recipe, number)),
        pipeline.KIND,
        pipeline.PipelineParams(
            variant=variant.name,
            precision=variant.precision,
            parts=tuple(
                pipeline.JudgedPart(
                    part,
                    own.recipe.inputs,
                    tolerances_of(own.recipe, chosen[part]),
                    settings_of(own.recipe, chosen[part]).judged_anywhere(),
                )
                for part, own in made.scopes.items()
            ),
            components=tuple(
                f"{own.recipe.name}:{chosen[part].name}" for part, own in made.scopes.items()
            ),
            judged_by=judged_by,
            run=recipe.model,
            metric=recipe.entrypoints.get(METRIC),
            min=options.min,
            distinct=options.distinct,
            tolerances=tolerances_of(recipe, variant),
            target=target,
            max_kl=options.max_kl,
        ),
        {**made.models(target), **(exact if judged_by == "tokens" else {})},
        at=variant.location,
    )


def _measured(made: Sequence[_Assembly]) -> list[OutputRef]:
    """Add the measurement of all variants, if the recipe has one: a report for each target."""
    if not made or not is_measured(made[0].scope):
        return []
    return [_measured_on(made, number) for number in range(len(made[0].scope.recipe.targets))]


def _measured_on(made: Sequence[_Assembly], number: int) -> OutputRef:
    scope = made[0].scope
    recipe = scope.recipe
    target = recipe.targets[number]
    step = scope.step(
        shared(recipe, BENCHMARK, further(recipe, number)),
        pipeline_latency.KIND,
        pipeline_latency.PipelineLatencyParams(
            variants={
                each.variant.name: tuple(
                    RunPart(part, own.recipe.inputs, settings_of(own.recipe, each.chosen[part]))
                    for part, own in each.scopes.items()
                )
                for each in made
            },
            modules=modules_of(made[0].scopes),
            run=recipe.model,
            target=target,
            options=replace(
                recipe.section(BENCHMARK, BenchmarkOptions),
                points=(),
                tokens=0,
                compile=False,
                clients=(),
                io_binding=False,
            ),
            occasion=scope.comparison.measurement_id if scope.comparison else "",
            against=tuple(each.shown for each in scope.comparison.models)
            if scope.comparison
            else (),
        ),
        {
            name.replace(MODEL, f"{MODEL}{each.variant.name}/", 1): ref
            for each in made
            for name, ref in each.models(target).items()
        },
        at=recipe.location,
    )
    return OutputRef(step, "report")


def _judged_by(recipe: Recipe, variant: Variant) -> pipeline.JudgedBy:
    if variant.precision in pipeline.EXACT or variant.sections:
        return "outputs"
    if recipe.model.target in BUILT_IN:
        return "tokens"
    return "metric" if METRIC in recipe.entrypoints else "calls"


def _most(metrics: Mapping[str, Any], variant: str) -> str:
    """A cell: the component that takes most of the time, and its share."""
    parts = metrics.get("variants", {}).get(variant, {}).get("parts")
    if not parts:
        return cells.NONE
    name = max(parts, key=lambda each: parts[each]["share"])
    return f"{parts[name]['share']:.0%} {name}"


def _contents(package: Path, manifest: Manifest) -> Mapping[str, str]:
    """Return where a package has the files of a component, and its model as pipeline.json has it; "" for none."""
    component = RecipeName.parse(manifest.name).member.partition(",")[0]
    about = json.loads((package / PIPELINE_FILE).read_text("utf-8"))
    opened = str(about["components"].get(component, {}).get("file", ""))
    files = {name: f"{component}/{name}" for name in graph_files(manifest)}
    return {**files, manifest.file: opened}


def _holds(package: Path) -> Mapping[str, str]:
    about = json.loads((package / PIPELINE_FILE).read_text("utf-8"))
    return {str(name): str(each["variant"]) for name, each in about["components"].items()}


PACKAGE_KIND = package_kind(
    NAME,
    6,
    PackagePipelineParams,
    package,
    toolchain=("numpy",),
    inputs=("bundle/*", "reference", "gate/*"),
    entrypoints=lambda params: (params.tokenizer,) if params.tokenizer else (),
)
RUN_KIND = StepKind(
    name=f"run-{NAME}",
    version=1,
    params=RunPipelineParams,
    inputs=("package", "reference?"),
    outputs={"report": "report"},
    toolchain=("numpy", "onnxruntime"),
    run=run,
    host_bound=True,
)


FEATURE: PackageFormat = PackageFormat(
    name=NAME,
    sections=(
        Section(
            name=NAME,
            options=pipeline.PipelineOptions,
            callables={
                "run": (
                    RUN,
                    (
                        "a callable `run(parts, sample) -> {name: array}`; `parts.NAME(...)` runs a component. Or `greedy`: an encoder runs "
                        "once, and a decoder with `state` for each token; `sample`, likewise with drawn tokens; `ctc`, the tokens of a "
                        "component's frames"
                    ),
                ),
                "samples": (
                    SAMPLES,
                    (
                        "a callable that yields what `run` takes as `sample`. Of a built-in `run`: one that yields what goes into the encoder "
                        "for one row, an array or a mapping of them; .npy or .wav files; or `dummy` for random ones"
                    ),
                ),
                "metric": (
                    METRIC,
                    "a callable (outputs, PyTorch's outputs) -> float, greater is better, of lists with an entry for each sample",
                ),
            },
            files=("samples",),
            below={"tokenizer": "files"},
            built_in={"run": tuple(BUILT_IN)},
            needs_onnx="it runs ONNX models",
            of_the_whole=True,
            words="end2end chain",
        ),
    ),
    kinds=(pipeline_reference.KIND, pipeline.KIND, pipeline_latency.KIND, PACKAGE_KIND, RUN_KIND),
    columns=(
        Column("most time", BENCHMARK, _most, place=32, of_all=True, if_any=True),
        Column("whole KL", "validate", cells.number("kl", 5), place=86, if_any=True),
        Column("whole score", "validate", cells.number("score", 4), place=71, if_any=True),
    ),
    shown={pipeline.KIND.name: "whole", pipeline_latency.KIND.name: "benchmark"},
    diagnosis=DiagnosisHints(judges=(pipeline.KIND.name,)),
    own_faults=_faults,
    inputs=_inputs,
    whole=Whole(NAME, _recipe, _faults_of, _deliver),
    options=NoOptions,
    is_asked=False,
    title="a pipeline: its models, and a program that runs it",
    kind=PACKAGE_KIND,
    params=nothing,
    run=RUN_KIND,
    run_params=lambda asked: RunPipelineParams(asked.subject),
    contents=_contents,
    holds=_holds,
)
