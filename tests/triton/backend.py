"""Stands in for Triton's ONNX Runtime backend, under its name, on Triton's Python backend.

It takes config.pbtxt as the real one does, and refuses what that refuses. Source:
triton-inference-server/onnxruntime_backend, src/onnxruntime.cc and src/onnxruntime_utils.cc.
"""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb

LEVELS = {-1: "ORT_ENABLE_BASIC", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}
TYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16",
    "float": "FP32", "double": "FP64", "string": "STRING", "bfloat16": "BF16",
}  # fmt: skip
KNOWN = {
    "intra_op_thread_count", "inter_op_thread_count", "execution_mode", "enable_mem_arena",
    "enable_mem_pattern", "session.use_device_allocator_for_initializers",
}  # fmt: skip


class TritonPythonModel:
    def initialize(self, args):
        self.config = json.loads(args["model_config"])
        self.name, self.is_batched = self.config["name"], self.config["max_batch_size"] > 0
        folder = Path(args["model_repository"]) / args["model_version"]
        options = self.options()
        self.session = onnxruntime.InferenceSession(
            str(folder / self.config["default_model_filename"]),
            options,
            providers=["CPUExecutionProvider"],
        )
        self.inputs = self.checked("input", self.session.get_inputs(), is_exact=False)
        self.outputs = self.checked("output", self.session.get_outputs(), is_exact=True)

    def options(self):
        options = onnxruntime.SessionOptions()
        given = {key: each["string_value"] for key, each in self.config["parameters"].items()}
        if unknown := given.keys() - KNOWN:
            raise pb.TritonModelException(f"the backend ignores {sorted(unknown)}")
        options.intra_op_num_threads = int(given.get("intra_op_thread_count", 1))
        options.inter_op_num_threads = int(given.get("inter_op_thread_count", 1))
        options.enable_cpu_mem_arena = given.get("enable_mem_arena", "1") == "1"
        options.enable_mem_pattern = given.get("enable_mem_pattern", "1") == "1"
        asked = self.config.get("optimization", {})
        if level := LEVELS.get(asked.get("graph", {}).get("level", 0)):
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        accelerators = asked.get("execution_accelerators", {})
        for each in accelerators.get("cpu_execution_accelerator", ()):
            if each["name"] != "openvino":
                name = each["name"]
                raise pb.TritonModelException(f"unknown Execution Accelerator '{name}'")
        for library in self.config.get("model_operations", {}).get("op_library_filename", ()):
            options.register_custom_ops_library(library)
        return options

    def checked(self, side, values, *, is_exact):
        """The backend's own checks of a model against config.pbtxt; name -> (numpy type, is a scalar)."""
        there = {each.name: each for each in values}
        found = {}
        for each in self.config[side]:
            name = each["name"]
            if name not in there:
                raise pb.TritonModelException(f"unexpected inference {side} '{name}'")
            value = there.pop(name)
            wanted = f"TYPE_{TYPES[value.type[7:-1]]}"
            if each["data_type"] != wanted:
                what = f"configuration expects datatype {each['data_type']} for {side} '{name}', model provides {wanted}"
                raise pb.TritonModelException(what)
            shape = [size if isinstance(size, int) else -1 for size in value.shape]
            dims = [int(size) for size in each.get("reshape", {}).get("shape", each["dims"])]
            self.check_dims(name, shape, dims, is_exact=is_exact)
            found[name] = pb.triton_string_to_numpy(each["data_type"]), not shape
        if there and side == "input":
            raise pb.TritonModelException(f"the configuration lacks {side} {sorted(there)}")
        return found

    def check_dims(self, name, shape, dims, *, is_exact):
        if not shape and not self.is_batched:
            fits = all(size == 1 for size in dims)
        else:
            full = [-1, *dims] if self.is_batched else dims
            fits = len(full) == len(shape) and (not self.is_batched or shape[0] == -1)
            pairs = zip(shape, full, strict=False)
            fits = fits and all(a == b or (a == -1 and not is_exact) for a, b in pairs)
        if not fits:
            what = f"model '{self.name}', tensor '{name}': the model expects shape {shape} but the model configuration specifies {dims}"
            raise pb.TritonModelException(what)

    def execute(self, requests):
        groups = [requests] if self.is_batched else [[each] for each in requests]
        return [answer for group in groups for answer in self.answers(group)]

    def answers(self, requests):
        given = [self.feeds(each) for each in requests]
        joined = (
            {name: np.concatenate([each[name] for each in given]) for name in given[0]}
            if self.is_batched
            else given[0]
        )
        shapes = {name: list(each.shape) for name, each in joined.items()}
        pb.Logger.log_info(f"{self.name} runs {len(requests)} requests at {shapes}")
        results = self.session.run(list(self.outputs), joined)
        ends = (
            np.cumsum([len(next(iter(each.values()))) for each in given])[:-1]
            if self.is_batched
            else []
        )
        parts = [np.split(each, ends) if len(requests) > 1 else [each] for each in results]
        return [
            pb.InferenceResponse(self.tensors([each[n] for each in parts]))
            for n in range(len(requests))
        ]

    def feeds(self, request):
        found = {}
        for name, (kind, is_scalar) in self.inputs.items():
            array = pb.get_input_tensor_by_name(request, name).as_numpy()
            if kind == np.object_:
                array = np.array([each.decode() for each in array.ravel()], object).reshape(
                    array.shape
                )
            found[name] = array.reshape(()) if is_scalar else array
        return found

    def tensors(self, results):
        """A scalar has shape [1]: the sizes that config.pbtxt says."""
        return [
            pb.Tensor(
                name, np.asarray(each).astype(kind).reshape([1] if is_scalar else each.shape)
            )
            for (name, (kind, is_scalar)), each in zip(self.outputs.items(), results, strict=True)
        ]
