"""Export a PyTorch module to canonical ONNX."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from onnxbuild.core.axis import sums_of
from onnxbuild.core.digest import canonical_json
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.recorded_calls import OPTIONAL_CALLS
from onnxbuild.onnxkit.data.reference_feeds import sample_feeds
from onnxbuild.onnxkit.export.baked_lines import as_declared_error, at_frozen_line, unsound_error
from onnxbuild.onnxkit.export.errors import (
    NoExporterError,
    SizeChoiceError,
    WrongOperatorError,
    explain_failed_run,
)
from onnxbuild.onnxkit.export.exporters import EXPORTERS, ExportRequest, export_graph
from onnxbuild.onnxkit.export.state_check import check_new_state, check_state
from onnxbuild.onnxkit.export.torch_module import (
    call_forward,
    check_signature,
    load_module,
    load_module_noted,
    make_torch_deterministic,
)
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import opset_of
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.interface import interface_faults, unused_inputs
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, save_model
from onnxbuild.onnxkit.model.opsets import OpsetError, checker_faults, needed_opset, newest_form
from onnxbuild.onnxkit.model.shapes import drop_false_shapes, name_output_axes
from onnxbuild.onnxkit.modules.module_facts import changed_names, describe_module, state_sums
from onnxbuild.onnxkit.modules.module_outputs import check_output_names
from onnxbuild.onnxkit.modules.program_modules import is_scripted
from onnxbuild.onnxkit.operators.custom_operators import (
    CustomOperatorError,
    asked_nodes,
    read_translations,
    symbolic_functions,
)

if TYPE_CHECKING:
    import torch

    from onnxbuild.onnxkit.data.feeds import Feeds
    from onnxbuild.onnxkit.export.export_check import Probes
    from onnxbuild.onnxkit.export.value_probes import UnusualProbe


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of the export to ONNX."""

    exporter: Literal["auto", "dynamo", "torchscript"] = option(
        "auto",
        help="auto tries dynamo, then torchscript (the other way round where a function has a "
        "`symbolic`), and keeps the first that checks and matches PyTorch",
    )
    constant_folding: bool = option(True, help="compute what depends on weights alone")
    external_data: Literal["auto", "always"] = option(
        "auto",
        help="auto keeps weights inside model.onnx up to 1 GiB; always puts them in a file next to it",
    )


@dataclass(frozen=True, slots=True)
class ExportParams:
    """Parameters of an export.

    Attributes:
        samples: The user's real samples, on which the graph must match as well; None for none.
        max_samples: Number of them to use at most.
    """

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    opset: int
    translations: Entrypoint | None
    options: ExportOptions
    samples: Entrypoint | None = None
    max_samples: int = 0


def run(context: StepContext) -> Outcome:
    """Export, canonicalize, and compare with PyTorch before anything is kept.

    Raises:
        StepError: The module, its inputs or its outputs are not as declared, or no exporter gives
            a graph that checks and matches; names the axis or the operator.
    """
    from onnxbuild.onnxkit.export.export_check import refuse_first_call, run_probes
    from onnxbuild.onnxkit.export.value_probes import value_probes

    params: ExportParams = context.params
    make_torch_deterministic()
    phase("loading the model")
    module, mode_notes = load_module_noted(context, params.model)
    check_signature(module, params.inputs, context.where)
    check_output_names(params.outputs, [each.name for each in params.inputs], context.where)
    check_state(module, params.inputs, params.axes, context.where)
    loaded = state_sums(module)
    probes = run_probes(module, params.inputs, params.axes, params.outputs, context.where)
    first = probes.runs[0]
    given = dict(zip(probes.names, first.outputs, strict=True))
    check_new_state(params.inputs, first.feeds, given, context.where)
    if changed_names(loaded, state_sums(module)):
        refuse_first_call(
            lambda: load_module(context, params.model), loaded, probes, context.where
        )
    values = value_probes(probes, _samples(context), context.where)
    request = _request(context, module, probes)
    symbolic = symbolic_functions(
        lambda: call_forward(module, probes.runs[0].feeds, params.inputs, context.where)
    )
    order = _order(params, symbolic, scripted=is_scripted(module))
    exported = _first_that_matches(context, request, probes, values, order)
    folder = context.output("model")
    for file in sorted((context.scratch / exported.exporter).iterdir()):
        shutil.move(file, folder / file.name)
    (context.output("config") / REPORT_FILE).write_bytes(canonical_json(describe_module(module)))
    metrics = {
        "exporter": exported.exporter,
        "opset": params.opset,
        "nodes": exported.nodes,
        "parameters": exported.parameters,
        "size_bytes": file_bytes(folder),
    }
    notes = _extension_notes(params, symbolic, exported.exporter)
    return Outcome(metrics, notes=(*mode_notes, *notes, *exported.remarks))


@dataclass(frozen=True, slots=True)
class _Exported:
    """Facts to report of a graph whose files are in scratch/EXPORTER."""

    exporter: str
    nodes: int
    parameters: int
    remarks: tuple[str, ...]


def _order(params: ExportParams, symbolic: Sequence[str], *, scripted: bool) -> tuple[str, ...]:
    """The exporters to try: first the one that takes what the author wrote for ONNX, or TorchScript."""
    if params.options.exporter != "auto":
        return (params.options.exporter,)
    if scripted or (symbolic and params.translations is None):
        return ("torchscript", "dynamo")
    return EXPORTERS


def _first_that_matches(
    context: StepContext,
    request: ExportRequest,
    probes: Probes,
    values: Sequence[UnusualProbe],
    order: Sequence[str],
) -> _Exported:
    """The first exporter in `order` whose graph passes.

    Raises:
        StepError: None does; says why each was refused.
    """
    from onnxbuild.onnxkit.export.export_check import value_probes
    from onnxbuild.onnxkit.export.python_values import values_error

    wanted = context.params.options.exporter
    refused: list[tuple[str, StepError]] = []
    for exporter in order:
        try:
            exported = _attempt(exporter, context, request, probes, values)
        except SizeChoiceError:
            raise
        except StepError as error:
            refused.append((exporter, error.with_traceback(None)))
            shutil.rmtree(context.scratch / exporter, ignore_errors=True)
            continue
        explained = tuple(f"auto kept {exporter}; {each}: {error.what}" for each, error in refused)
        return replace(exported, remarks=(*explained, *exported.remarks))
    by_opset = [error for _, error in refused if isinstance(error, OpsetError)]
    if wanted != "auto" and by_opset:
        raise StepError(by_opset[0].what, where=by_opset[0].where, fix=by_opset[0].fix)
    alone = refused[0][1]
    if all(isinstance(error, (CustomOperatorError, NoExporterError)) for _, error in refused):
        raise StepError(alone.what, where=alone.where, fix=alone.fix) from alone
    alike = [each.feeds for each in value_probes(probes, context.where)]
    if taken := values_error(request.module, request.inputs, alike, context.where):
        raise taken from alone
    if wanted != "auto":
        other = next(each for each in EXPORTERS if each != wanted)
        untried = not isinstance(alone, WrongOperatorError)
        fix = f"{alone.fix}; or try `export: {{exporter: {other}}}`" if untried else alone.fix
        raise StepError(alone.what, where=alone.where, fix=fix) from alone
    raise StepError(
        "no exporter gives a graph that checks and matches PyTorch: "
        + "; ".join(
            f"{exporter}: {error.what.removeprefix(f'the {exporter} exporter failed: ')}"
            for exporter, error in refused
        ),
        where=refused[0][1].where,
        fix=min(by_opset, key=lambda error: error.least).fix if by_opset else refused[0][1].fix,
    )


def _attempt(
    exporter: str,
    context: StepContext,
    request: ExportRequest,
    probes: Probes,
    values: Sequence[UnusualProbe],
) -> _Exported:
    """Export with one exporter into scratch/EXPORTER, and hold the result against PyTorch.

    Raises:
        StepError: The exporter gave up, or its graph is not what was asked for.
    """
    from onnxbuild.onnxkit.export.baked_lines import exported_nodes
    from onnxbuild.onnxkit.export.export_check import DifferenceError, at_largest, check_parity
    from onnxbuild.onnxkit.export.operator_replay import wrong_operator, wrong_operator_error
    from onnxbuild.onnxkit.export.value_probes import check_beyond, check_values

    params: ExportParams = context.params
    restricted: dict[str, int] = {}
    model, remarks = export_graph(exporter, request, restricted)
    phase(f"{exporter}: checking the graph")
    nodes = exported_nodes(model)
    canonicalize(model)
    if opset_of(model) > params.opset:
        operator, least = newest_form(model)
        raise OpsetError(
            f"the {exporter} exporter needs opset {least} for the operator '{operator}'; the recipe "
            f"asks for opset {params.opset}",
            where=context.where,
            least=least,
        )
    drop_false_shapes(model)
    observed = [(run.point.sizes, [out.shape for out in run.outputs]) for run in probes.runs]
    sums = sums_of([each.shape for each in params.inputs])
    symbols = [*(axis.name for axis in params.axes), *sums]
    name_output_axes(
        model, observed, symbols, lambda axis: at_largest(probes, axis, context.where)
    )
    faults = interface_faults(model, params.inputs, probes.names, params.opset)
    if faults:
        raise at_frozen_line(
            as_declared_error(faults[0], exporter, request), exporter, request, probes, nodes
        )
    folder = context.scratch / exporter
    summary = summarize(model)
    unread = [f"input '{name}' is not used by the graph" for name in unused_inputs(model)]
    save_model(model, folder, external=params.options.external_data)
    del model  # its weights would be in memory together with the session's
    faults = checker_faults(folder, context.scratch)
    if faults:
        needed = needed_opset(load_model(folder, weights="left"))
        if needed is not None:
            what = f"the {exporter} exporter's graph does not check: {needed[0]}"
            raise OpsetError(what, where=context.where, least=needed[1])
        raise unsound_error(faults[0], exporter, context.where)
    phase(f"{exporter}: comparing with PyTorch")

    def explain(feeds: Feeds, reason: str) -> StepError | None:
        wrong = wrong_operator(exporter, request, feeds)
        if wrong is None:
            return None
        alone = params.options.exporter != "auto"
        return wrong_operator_error(wrong, exporter, reason, context.where, alone=alone)

    try:
        check_parity(folder, probes, context.where, frozen=bool(remarks))
    except DifferenceError as error:
        found = None if error.feeds is None else explain(error.feeds, error.what)
        if found is not None:
            raise found from error
        explained = explain_failed_run(error, exporter, params.opset)
        raise at_frozen_line(explained, exporter, request, probes, nodes) from error
    check_beyond(folder, probes, restricted, context.where)
    check_values(folder, probes, values, context.where, explain)
    return _Exported(exporter, summary["nodes"], summary["parameters"], (*remarks, *unread))


def _samples(context: StepContext) -> list[tuple[str, Feeds]]:
    params: ExportParams = context.params
    if params.samples is None:
        return []
    found = sample_feeds(context, params.inputs, params.axes, params.samples, params.max_samples)
    return [(f"{name} of {params.samples.target}", feeds) for name, _, feeds in found]


def _request(context: StepContext, module: torch.nn.Module, probes: Probes) -> ExportRequest:
    params: ExportParams = context.params
    return ExportRequest(
        module=module,
        inputs=params.inputs,
        axes=params.axes,
        feeds=probes.runs[0].feeds,
        output_names=probes.names,
        opset=params.opset,
        constant_folding=params.options.constant_folding,
        translations=read_translations(context, params.translations),
        scratch=context.scratch,
        where=context.where,
        opaque=asked_nodes(context),
    )


def _extension_notes(
    params: ExportParams, symbolic: Sequence[str], exporter: str
) -> tuple[str, ...]:
    """Return notes on what the kept exporter made of `translations` and of `symbolic` methods."""
    names = f"`symbolic` of {', '.join(symbolic)}"
    if exporter == "dynamo":
        ignored = f"{names} is not used: dynamo exports what `forward` does; `translations` or "
        return (f"{ignored}`export: {{exporter: torchscript}}` would",) if symbolic else ()
    notes = [] if params.translations is None else ["translations are for dynamo alone"]
    if symbolic and params.options.exporter == "auto":
        notes.append(f"auto tried torchscript first, for {names}; dynamo does not use it")
    return tuple(notes)


def _entrypoints(params: ExportParams) -> tuple[Entrypoint, ...]:
    named = (params.model, params.translations, params.samples)
    return tuple(each for each in named if each is not None)


KIND = StepKind(
    name="export",
    version=12,
    params=ExportParams,
    inputs=("operators?", "operators/nodes?", OPTIONAL_CALLS),
    outputs={"model": "onnx-model", "config": "report"},
    toolchain=("torch", "onnx", "onnxscript", "onnx-ir", "onnxruntime", "numpy"),
    run=run,
    user_code=True,
    entrypoints=_entrypoints,
)
