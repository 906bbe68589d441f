import pytest

from onnxbuild.core.target import CPU_TARGET, Link, Target, TargetGates
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.providers.placement import Placement, placement_findings, placement_of
from onnxbuild.onnxkit.sessions.open import open_session
from tests.onnxkit.models import linear

CUDA = Target("cuda", (Link("cuda"),))
MIXED = Placement(
    {"CPUExecutionProvider": 2, "CUDAExecutionProvider": 8}, {"Gather": 1, "NonZero": 1}
)


def test_a_session_says_which_nodes_went_where(tmp_path):
    save_model(linear(), tmp_path)
    found = placement_of(open_session(tmp_path))
    assert found is not None
    assert set(found.nodes) == {"CPUExecutionProvider"}
    assert found.total == found.on_cpu == sum(found.operators_on_cpu.values()) > 0
    assert found.coverage(CPU_TARGET) == 1.0
    assert found.coverage(CUDA) == 0.0
    assert found.to_json(CPU_TARGET) == {"nodes": dict(found.nodes), "coverage": 1.0}


def test_coverage_is_the_share_that_the_cpu_does_not_run():
    assert MIXED.coverage(CUDA) == 0.8
    assert MIXED.to_json(CUDA) == {
        "nodes": dict(MIXED.nodes),
        "coverage": 0.8,
        "operators_on_cpu": {"Gather": 1, "NonZero": 1},
    }
    assert Placement({}, {}).coverage(CUDA) == 1.0


def test_one_node_of_many_on_the_cpu_is_not_100_percent_on_the_target():
    placement = Placement(
        {"CPUExecutionProvider": 1, "CUDAExecutionProvider": 2999}, {"Gather": 1}
    )
    (found,) = placement_findings(placement, CUDA, TargetGates(min_coverage=1), "variant 'fp32'")
    assert found.what.startswith("99.97% of 3000 nodes run on the target")
    assert found.what.endswith("expected at least 100.0%")


@pytest.mark.parametrize(
    ("gates", "reported"),
    [
        (TargetGates(), ()),
        (TargetGates(max_cpu_nodes=2, min_coverage=0.8), ()),
        (
            TargetGates(max_cpu_nodes=1),
            ("2 of 10 nodes run on the CPU (1 Gather, 1 NonZero); expected at most 1",),
        ),
        (
            TargetGates(min_coverage=0.9),
            (
                (
                    "80.0% of 10 nodes run on the target, the rest on the CPU (1 Gather, 1 NonZero); "
                    "expected at least 90.0%"
                ),
            ),
        ),
    ],
)
def test_gates_bound_what_is_left_to_the_cpu(gates, reported):
    found = placement_findings(MIXED, CUDA, gates, "variant 'fp32'")
    assert tuple(finding.what for finding in found) == reported
    assert all(f.where == "variant 'fp32', target 'cuda'" and f.fix for f in found)
