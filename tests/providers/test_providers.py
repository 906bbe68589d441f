import pytest

from onnxbuild.core.provider import Provider, flag, number
from onnxbuild.onnxkit.host.devices import Devices
from onnxbuild.onnxkit.providers.diagnose import explain
from onnxbuild.providers import (
    device_options,
    file_options,
    full_name,
    is_known,
    named,
    provider_names,
    short_name,
)


def test_the_cpu_comes_first():
    assert provider_names()[0] == "cpu"


def test_a_name_is_given_by_either_and_one_that_nobody_knows_stands_for_itself():
    assert full_name("cuda") == full_name("CUDAExecutionProvider") == "CUDAExecutionProvider"
    assert short_name("cuda") == short_name("CUDAExecutionProvider") == "cuda"
    new = named("NewExecutionProvider")
    assert (new.name, new.full_name) == ("NewExecutionProvider",) * 2
    assert (new.options, new.vendor, new.memory, new.no_ep_context) == (None, None, "cpu", "")
    assert is_known("cuda")
    assert not is_known("CUDAExecutionProvider")
    assert not is_known("NewExecutionProvider")


def test_options_are_written_as_the_provider_spells_them():
    known = Provider("a", "A", options={"on": flag(""), "big": flag("", spelling=("no", "yes"))})
    assert known.written({"on": True, "big": False, "other": 3}) == {
        "on": "1",
        "big": "no",
        "other": "3",
    }
    assert Provider("b", "B").written({"on": True}) == {"on": "1"}
    assert number("").written(7) == "7"


def test_a_remark_may_look_at_the_variants_options():
    provider = Provider("a", "A", remarks={"fp16": "never", "static": lambda bits: f"{bits} bits"})
    assert provider.remark("fp16", None) == "never"
    assert provider.remark("static", 8) == "8 bits"
    assert provider.remark("dynamic", 8) == ""


def test_options_that_say_where_and_those_that_name_files_are_those_of_all_providers():
    assert {"device_id", "deviceId", "device_type"} <= device_options()
    assert {"backend_path", "trt_engine_cache_path", "cache_dir"} <= file_options()
    assert "use_tf32" not in device_options() | file_options()


@pytest.mark.parametrize("provider", ["rocm", "migraphx"])
def test_amds_devices_are_listed_by_amds_own_tools(provider):
    there = Devices(1, driver=True, nodes=("/dev/kfd",))
    (hidden,) = explain(provider, "hipErrorNoDevice", devices=there)
    assert hidden.fix == ("unset CUDA_VISIBLE_DEVICES, or give it a number that `rocm-smi` lists")
    (container,) = explain(provider, "", devices=Devices(0, driver=True, nodes=()))
    assert "--device /dev/kfd" in container.fix
    (number_of,) = explain(provider, "", devices=there, device_id=3)
    assert "rocm-smi" in number_of.fix
