"""CoreML: Apple's CPUs, GPUs and Neural Engine."""

from onnxbuild.core.provider import Provider, flag, path, word

_OPTIONS = {
    "ModelFormat": word("form of the compiled model", "NeuralNetwork", "MLProgram"),
    "MLComputeUnits": word(
        "what it may run on", "ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine"
    ),
    "RequireStaticInputShapes": flag("leave nodes with dynamic shapes to the CPU"),
    "EnableOnSubgraphs": flag("take the bodies of Loop, Scan and If, too"),
    "SpecializationStrategy": word("what compiling is for", "Default", "FastPrediction"),
    "ProfileComputePlan": flag("log what each operator runs on"),
    "AllowLowPrecisionAccumulationOnGPU": flag("sums in fp16 on the GPU"),
    "ModelCacheDirectory": path("folder of compiled models"),
}

PROVIDER = Provider(
    name="coreml",
    full_name="CoreMLExecutionProvider",
    api_name="CoreML",
    aliases=("apple", "mps", "ane", "metal", "ios", "macos", "core_ml", "core-ml"),
    options=_OPTIONS,
    distribution="onnxruntime",
    distribution_note="on macOS",
    remarks={
        "dynamic": "dynamic INT8 falls to the CPU; use fp16",
        "weight_only": "CoreML has no MatMulNBits: these nodes fall to the CPU",
    },
    no_ep_context="it keeps compiled models in a folder of its own (its option ModelCacheDirectory)",
    node_name="coreml",
)
