"""The texts are those that ONNX Runtime 1.31.1 and CUDA's runtime wrote."""

import pytest

from onnxbuild.onnxkit.host.devices import Devices
from onnxbuild.onnxkit.providers.diagnose import explain, not_in_package

NONE = Devices(0, driver=False, nodes=())
ONE = Devices(1, driver=True, nodes=("/dev/nvidia0",))

CUDA_MISSING = """\
2026-11-20 16:45:12.373585669 [E:onnxruntime:Default, provider_bridge_ort.cc:2458 operator()] /onnxruntime_src/onnxruntime/core/session/provider_bridge_ort.cc:2043 onnxruntime::Provider& onnxruntime::ProviderLibrary::Get() [ONNXRuntimeError] : 1 : FAIL : Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.13: cannot open shared object file: No such file or directory

2026-11-20 16:45:12.373627100 [W:onnxruntime:Default, onnxruntime_pybind_state.cc:1295 CreateExecutionProviderFactoryInstance] Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 13.*. Please install all dependencies as mentioned in the GPU requirements page
"""
TENSORRT_MISSING = """\
2026-11-20 16:45:12.380937374 [E:onnxruntime:Default, provider_bridge_ort.cc:2430 operator()] FAIL : Failed to load library libonnxruntime_providers_tensorrt.so with error: libnvinfer.so.10: cannot open shared object file: No such file or directory
Please install TensorRT libraries as mentioned in the GPU requirements page, make sure they're in the PATH or LD_LIBRARY_PATH, and that your GPU is supported.
"""
NO_SUCH_DEVICE = (
    "CUDA failure 101: invalid device ordinal ; GPU=0 ; hostname=a ; "
    "file=cuda_execution_provider.cc ; line=282 ; expr=cudaSetDevice(info_.device_id);"
)
HIDDEN = "CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; hostname=a ;"


def causes(*args, **more):
    return [fault.cause for fault in explain(*args, **more)]


def test_without_a_gpu_that_comes_first_and_the_libraries_after_it():
    device, library = explain("cuda", CUDA_MISSING, devices=NONE)
    assert (device.cause, library.cause) == ("device", "library")
    assert "neither /dev nor the PCI bus shows one" in device.what
    assert library.what == "missing library libcublasLt.so.13"


def test_a_card_without_its_driver_and_a_container_without_its_card_are_distinguished():
    (driver,) = explain("cuda", "", devices=Devices(1, driver=False, nodes=()))
    assert driver.cause == "driver"
    assert "nvidia-smi" in driver.fix
    (container,) = explain("cuda", "", devices=Devices(0, driver=True, nodes=()))
    assert container.cause == "device"
    assert "docker run --gpus all" in container.fix
    (hidden,) = explain("cuda", HIDDEN, devices=ONE)
    assert "CUDA_VISIBLE_DEVICES" in hidden.fix


def test_every_missing_library_is_named_once_with_the_command_that_brings_it():
    missing = ("libcublasLt.so.13", "libcudart.so.13", "libcudnn.so.9")
    (fault,) = explain("cuda", CUDA_MISSING, devices=ONE, missing=missing)
    assert fault.what == "missing libraries libcublasLt.so.13, libcudart.so.13, libcudnn.so.9"
    assert fault.fix == "pip install 'onnxruntime-gpu[cuda,cudnn]'"
    (fault,) = explain("tensorrt", TENSORRT_MISSING, devices=ONE)
    assert (fault.cause, fault.fix) == ("library", "pip install 'tensorrt-cu13<11'")
    (fault,) = explain("qnn", "", devices=None, missing=("libQnnHtp.so",))
    assert "LD_LIBRARY_PATH" in fault.fix


def test_a_device_that_is_not_there_is_reported_with_how_many_there_are():
    (fault,) = explain("cuda", NO_SUCH_DEVICE, devices=ONE, device_id=7)
    assert fault.cause == "device_id"
    assert fault.what == "device_id 7 does not exist: there are 1, counted from 0"
    assert causes("cuda", "", devices=ONE, device_id=1) == ["device_id"]
    assert causes("cuda", "", devices=ONE, device_id=0) == ["other"]


@pytest.mark.parametrize("said", ["", "2026 [E:onnxruntime:, a.cc:1 f()] FAIL : something odd"])
def test_what_nobody_knows_is_reported_in_onnx_runtimes_words_or_as_its_silence(said):
    (fault,) = explain("webgpu", said, devices=None)
    assert fault.cause == "other"
    assert fault.what == ("something odd" if said else fault.what)
    assert fault.what


def test_a_provider_that_is_not_in_the_package_comes_with_the_one_that_has_it():
    fault = not_in_package("openvino", "1.31.1", ("CPUExecutionProvider",))
    assert fault.what == (
        "OpenVINOExecutionProvider is not in the installed ONNX Runtime 1.31.1, "
        "which has CPUExecutionProvider"
    )
    assert fault.fix.startswith(
        "it is in onnxruntime-openvino: give the target an environment that"
    )
    assert "migraphx" in not_in_package("rocm", "1.31.1", ()).fix
    assert "library:" in not_in_package("NewExecutionProvider", "1.31.1", ()).fix
