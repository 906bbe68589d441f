"""TensorRT's engines: the options that decide them, and an honest refusal where there is no TensorRT."""

from pathlib import Path

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.ahead_of_time.prepared import FOLDER_OPTIONS, build_engines, engine_options
from tests.steps.graphs import digits

IDS = DummyInput("ids", "int64", ("batch", "sequence"), high=9)
FIXED = DummyInput("scale", "float32", (1, 3))
AXES = (Axis("batch", 1, 64, 2), Axis("sequence", 1, 512, 16))


def test_one_profile_spans_the_dynamic_axes():
    options = engine_options((IDS, FIXED), AXES, fp16=False)
    assert options["trt_profile_min_shapes"] == "ids:1x1,scale:1x3"
    assert options["trt_profile_opt_shapes"] == "ids:2x16,scale:1x3"
    assert options["trt_profile_max_shapes"] == "ids:64x512,scale:1x3"


@pytest.mark.parametrize("fp16", [False, True])
def test_engines_and_timings_are_cached_and_the_place_is_no_option_of_a_key(fp16):
    options = engine_options((IDS,), AXES, fp16=fp16)
    assert options["trt_engine_cache_enable"] == options["trt_timing_cache_enable"] == "1"
    assert options["trt_fp16_enable"] == str(int(fp16))
    assert not set(FOLDER_OPTIONS) & set(options)


@pytest.mark.skipif(
    Path("/proc/driver/nvidia/version").exists(), reason="TensorRT may load on this machine"
)
def test_without_tensorrt_nothing_is_built_and_the_error_says_so(tmp_path):
    (tmp_path / "caches").mkdir()
    with pytest.raises(StepError, match=r"(?i)tensorrt") as caught:
        build_engines(digits(tmp_path / "model"), tmp_path / "caches", {}, (), "test:step")
    assert caught.value.where == "test:step"
    assert list((tmp_path / "caches").iterdir()) == []
