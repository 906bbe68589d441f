"""Step kinds by name."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbuild.core.step import StepKind
from onnxbuild.steps import (
    aotinductor,
    balance,
    baseline,
    benchmark,
    calibrate,
    check,
    choose,
    compile_model,
    convert_fp16,
    evaluate,
    export,
    fidelity,
    hessians,
    import_model,
    import_program,
    load_times,
    optimize,
    optimize_for_host,
    ort_format,
    package,
    package_ahead_of_time,
    package_program,
    preprocess,
    profile,
    provider,
    quantize_dynamic,
    quantize_static,
    quantize_weights,
    reference,
    round_weights,
    saturation,
    sensitivity,
    session,
    tensorrt_engines,
    torch_export,
    torchscript,
    tune,
    validate,
    validate_program,
)

CATALOG: Mapping[str, StepKind] = {
    kind.name: kind
    for kind in (
        export.KIND,
        reference.KIND,
        check.KIND,
        optimize.KIND,
        convert_fp16.KIND,
        preprocess.KIND,
        calibrate.KIND,
        balance.KIND,
        round_weights.KIND,
        quantize_dynamic.KIND,
        quantize_static.KIND,
        saturation.KIND,
        hessians.KIND,
        quantize_weights.KIND,
        provider.KIND,
        validate.KIND,
        evaluate.KIND,
        baseline.KIND,
        fidelity.KIND,
        sensitivity.KIND,
        choose.KIND,
        import_model.KIND,
        import_program.KIND,
        session.KIND,
        tune.KIND,
        benchmark.KIND,
        profile.KIND,
        package.KIND,
        torchscript.KIND,
        torch_export.KIND,
        aotinductor.KIND,
        ort_format.KIND,
        optimize_for_host.KIND,
        compile_model.KIND,
        compile_model.KIND_FOR_GPU,
        tensorrt_engines.KIND,
        load_times.KIND,
        package_ahead_of_time.KIND,
        validate_program.KIND,
        package_program.KIND,
    )
}

KIND_OF_MODE: Mapping[str, StepKind] = {
    "fp16": convert_fp16.KIND,
    "dynamic": quantize_dynamic.KIND,
    "static": quantize_static.KIND,
    "weight_only": quantize_weights.KIND,
    "auto": choose.KIND,
}

KIND_OF_FORMAT: Mapping[str, StepKind] = {
    "torchscript": torchscript.KIND,
    "torch-export": torch_export.KIND,
    "aotinductor": aotinductor.KIND,
}
"""Step kind of each format other than ONNX."""
