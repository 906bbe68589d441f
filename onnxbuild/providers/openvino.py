"""OpenVINO: Intel's CPUs, GPUs and NPUs; its CPU device runs on any x86."""

from onnxbuild.core.provider import (
    CAPITALIZED,
    Provider,
    Symptom,
    TritonAccelerator,
    flag,
    number,
    path,
    word,
)

_OPTIONS = {
    "device_type": word(
        "`CPU`, `GPU`, `GPU.1`, `NPU`, or several: `AUTO:GPU,CPU`, `HETERO:NPU,CPU`",
        picks_device=True,
    ),
    "precision": word("what the device computes in", "FP32", "FP16", "ACCURACY"),
    "device_id": word("which device of its type; better said in device_type", picks_device=True),
    "num_of_threads": number("threads on the CPU", 1),
    "num_streams": number("requests that run in parallel", 1),
    "cache_dir": path("folder of compiled models"),
    "load_config": path("JSON file with OpenVINO's own properties, by device"),
    "model_priority": word("of several models on a device", "LOW", "MEDIUM", "HIGH", "DEFAULT"),
    "layout": word("layouts of inputs and outputs: `input[NCHW],output[NC]`"),
    "reshape_input": word("bounds of shapes: `input[1..8,3,224,224]`"),
    "enable_opencl_throttling": flag("spare the CPU while a GPU computes", spelling=CAPITALIZED),
    "disable_dynamic_shapes": flag("compile anew for each shape", spelling=CAPITALIZED),
    "enable_qdq_optimizer": flag("drop QDQ pairs that an NPU does not need", spelling=CAPITALIZED),
    "enable_causallm": flag("the model is a language model with a cache", spelling=CAPITALIZED),
}

PROVIDER = Provider(
    name="openvino",
    full_name="OpenVINOExecutionProvider",
    api_name="OpenVINO",
    aliases=("intel", "ov", "openvino-gpu"),
    options=_OPTIONS,
    distribution="onnxruntime-openvino",
    library_distributions=("openvino",),
    symptoms=(
        Symptom(
            "device_id",
            r"Device \S+ is not available|Device with name \S+ is not registered|Cannot find device",
        ),
    ),
    triton=TritonAccelerator("cpu", {}, implied={"device_type": "CPU"}),
)
