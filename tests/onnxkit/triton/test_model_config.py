"""Triton's configuration: the batch axis, accelerators."""

import pytest

from onnxbuild.core.axis import Axis
from onnxbuild.onnxkit.bundles.manifest import ManifestProvider
from onnxbuild.onnxkit.triton.model_config import Accelerator, accelerators_of
from onnxbuild.onnxkit.triton.repository import batch_axis
from onnxbuild.providers.tensorrt import PROVIDER as TENSORRT

AXES = {"batch": Axis("batch", 1, 8, 2), "batches": Axis("batches", 1, 8, 2)}


def test_the_first_axis_of_all_shapes_is_batched_along():
    assert batch_axis([("batch", 4), ("batch", "batches")], AXES) == AXES["batch"]


@pytest.mark.parametrize("size", ["batch", "2*batch"])
def test_an_axis_that_is_in_another_place_too_is_not(size):
    assert batch_axis([("batch", 4), ("batch", size)], AXES) is None


def test_tensorrts_options_have_the_backends_names():
    chain = [
        ManifestProvider(
            "TensorrtExecutionProvider",
            {
                "trt_max_workspace_size": "1024", "trt_int8_enable": "1", "trt_fp16_enable": "1",
                "trt_engine_cache_enable": "1", "trt_op_types_to_exclude": "Loop", "trt_bf16_enable": "0",
            },
        )
    ]  # fmt: skip
    found = accelerators_of(chain)
    (accelerator,) = found.gpu
    assert accelerator.parameters == {
        "precision_mode": "INT8", "max_workspace_size_bytes": "1024", "trt_engine_cache_enable": "1",
    }  # fmt: skip
    assert found.dropped == ("trt_fp16_enable", "trt_op_types_to_exclude")
    assert (found.device, found.gpus) == ("gpu", ())


def test_every_option_of_tensorrt_is_a_parameter_or_reported():
    options = {name: "1" for name in TENSORRT.options if name != "device_id"}
    found = accelerators_of([ManifestProvider("TensorrtExecutionProvider", options)])
    given = found.gpu[0].parameters
    assert len(given) + len(found.dropped) == len(options)
    assert set(found.dropped) <= set(options)


def test_the_first_gpu_is_picked_where_the_recipe_names_it_and_no_gpu_where_it_names_none():
    def gpus(*chain):
        return accelerators_of([ManifestProvider(*each) for each in chain]).gpus

    cuda, tensorrt = "CUDAExecutionProvider", "TensorrtExecutionProvider"
    assert gpus((cuda, {"device_id": "0"})) == (0,)
    assert gpus((cuda, {})) == ()
    assert gpus((tensorrt, {"device_id": "0"}), (cuda, {"device_id": "0"})) == (0,)
    assert gpus((tensorrt, {"device_id": "0"}), (cuda, {})) == (0,)


def test_openvino_runs_on_the_cpu_and_takes_no_options():
    chain = [
        ManifestProvider("OpenVINOExecutionProvider", {"device_type": "CPU", "cache_dir": "x"})
    ]
    found = accelerators_of(chain)
    assert found.cpu == (Accelerator("openvino", {}),)
    assert (found.gpu, found.device, found.dropped) == ((), "cpu", ("cache_dir",))
    gpu = [ManifestProvider("OpenVINOExecutionProvider", {"device_type": "GPU"})]
    assert accelerators_of(gpu).dropped == ("device_type",)


def test_the_cpu_alone_says_nothing_and_an_unknown_provider_is_reported():
    chain = [
        ManifestProvider("QNNExecutionProvider", {}),
        ManifestProvider("CPUExecutionProvider", {}),
    ]
    found = accelerators_of(chain)
    assert (found.gpu, found.cpu, found.device) == ((), (), "auto")
    assert found.dropped == ("the provider qnn",)
