"""What phones' execution providers may take of a model."""

from onnxbuild.onnxkit.ort_mobile.coverage import coverage_of
from tests.onnxkit.models import contrib
from tests.steps.graphs import digits, save


def found(folder, made):
    rows = coverage_of(save(made, folder / "model"), folder / "scratch", "test")
    return {each.provider: each for each in rows}


def test_a_convolutional_network_is_taken_in_parts(tmp_path):
    rows = {e.provider: e for e in coverage_of(digits(tmp_path / "m"), tmp_path / "s", "test")}
    nnapi, xnnpack = rows["NNAPI"], rows["XNNPACK"]
    assert nnapi.nodes == xnnpack.nodes > 0
    assert 0 < xnnpack.supported_if_fixed < nnapi.supported_if_fixed == nnapi.nodes
    assert nnapi.partitions_if_fixed == 1
    assert nnapi.supported < nnapi.supported_if_fixed  # the batch is dynamic
    assert "ai.onnx:Conv" not in xnnpack.missing
    assert any("two dimensions" in each for each in xnnpack.caveats)


def test_operators_of_onnx_runtime_s_own_are_on_no_list(tmp_path):
    for each in found(tmp_path, contrib()).values():
        assert (each.supported, each.supported_if_fixed) == (0, 0)
        assert each.missing == ("com.microsoft:Gelu",)
