import pytest

from onnxbuild.core.target import CPU_TARGET, Link, Target, TargetGates
from onnxbuild.features.settings import ahead_of_time
from onnxbuild.providers import full_name
from onnxbuild.recipe.checks.remarks import doubts_of


def targets(project, base, providers):
    recipe = project.recipe(f"{base}providers: {providers}\n")
    return recipe.targets, recipe.gates


def test_a_list_names_targets_in_order_and_only_the_cpu_must_be_there(project, base):
    found, gates = targets(project, base, "[cuda, cpu, tensorrt]")
    assert [target.name for target in found] == ["cuda", "cpu", "tensorrt"]
    assert found[1] == CPU_TARGET
    assert [gates[name].require for name in ("cuda", "cpu", "tensorrt")] == ["none", "one", "none"]


def test_gates_are_no_options_of_the_provider(project, base):
    written = "{cpu: {}, cuda: {device_id: 1, require: true, max_cpu_nodes: 3, min_coverage: 0.5}}"
    found, gates = targets(project, base, written)
    assert found[1] == Target("cuda", (Link("cuda", {"device_id": "1"}),))
    assert gates["cuda"] == TargetGates("all", 3, 0.5)


def test_options_are_spelled_as_onnx_runtime_reads_them(project, base):
    written = "[{cuda: {use_tf32: false, gpu_mem_limit: 1024}}, {openvino: {enable_qdq_optimizer: true}}]"
    (cuda, openvino), _ = targets(project, base, written)
    assert cuda.chain[0].options == {"use_tf32": "0", "gpu_mem_limit": "1024"}
    assert openvino.chain[0].options == {"enable_qdq_optimizer": "True"}


def test_a_list_in_the_list_is_a_chain_and_a_mapping_gives_it_a_name(project, base):
    written = (
        "[[tensorrt, {cuda: {device_id: 1}}, cpu], {gpu: {chain: [cuda, cpu], min_coverage: 1}}]"
    )
    (short, named), gates = targets(project, base, written)
    links = (Link("tensorrt"), Link("cuda", {"device_id": "1"}), Link("cpu"))
    assert short == Target("tensorrt-cuda-cpu", links)
    assert named == Target("gpu", (Link("cuda"), Link("cpu")))
    assert (gates["gpu"].min_coverage, gates["gpu"].require) == (1, "one")
    assert short.falls_back
    assert not named.is_cpu


def test_onnx_runtimes_own_names_are_taken_known_or_not(project, base):
    (cuda, new), _ = targets(project, base, "[CUDAExecutionProvider, NewExecutionProvider]")
    assert (cuda.name, cuda.chain[0].provider) == ("cuda", "cuda")
    assert (new.name, new.chain[0].provider) == ("NewExecutionProvider",) * 2
    assert full_name("NewExecutionProvider") == "NewExecutionProvider"


def test_a_plug_ins_library_is_a_declared_file(project, base):
    project.write("vendor/libnpu.so", "bytes")
    written = "{cpu: {}, npu: {library: ../vendor/libnpu.so, provider: Npu, power: low, cores: 2}}"
    (_, npu), _ = targets(project, base, written)
    assert npu.chain == (Link("Npu", {"power": "low", "cores": "2"}),)
    assert npu.library is not None
    assert npu.library.files == ("vendor/libnpu.so",)
    assert npu.entrypoints == (npu.library,)


def test_tensorrts_profiles_come_from_the_axes_where_they_are_asked_for(project, base):
    more = base.replace("[batch]", "[batch, 3]")
    (target,), _ = targets(project, more, "[{tensorrt: {profiles_from_axes: true}}]")
    assert target.chain[0].options == {
        "trt_profile_min_shapes": "ids:1x3",
        "trt_profile_opt_shapes": "ids:2x3",
        "trt_profile_max_shapes": "ids:8x3",
    }
    (plain,), _ = targets(project, more, "[{tensorrt: {profiles_from_axes: false}}]")
    assert plain.chain[0].options == {}


@pytest.mark.parametrize(
    ("variant", "target", "reported"),
    [
        ("fp16", "cpu", "gains no speed there"),
        ("dynamic", "cuda", "DynamicQuantizeLinear has no kernel on a GPU"),
        ("none", "cuda", ""),
    ],
)
def test_a_variant_that_gains_nothing_on_a_target_is_reported_with_the_reason(
    project, base, variant, target, reported
):
    recipe = project.recipe(f"{base}quantization: {{v: {variant}}}\nproviders: [{target}]\n")
    found = list(doubts_of(recipe))
    assert len(found) == bool(reported)
    assert all(
        f"variant 'v' on target '{target}': " in each.text and reported in each.text
        for each in found
    )
    line = f"{base}quantization:".count("\n") + 1
    assert all((each.location.line, each.location.column) == (line, 16) for each in found)


@pytest.mark.parametrize(
    ("options", "reported"), [("activation_type: int8", False), ("activation_type: uint8", True)]
)
def test_tensorrt_wants_signed_symmetric_int8(project, base, options, reported):
    recipe = project.recipe(
        f"{base}quantization: {{v: {{mode: static, {options}}}}}\nproviders: [tensorrt]\n"
        "calibration: {data: dummy}\n"
    )
    assert bool(list(doubts_of(recipe))) is reported


@pytest.mark.parametrize(
    ("providers", "reported"),
    [
        ("{other: {provider: cpu, environment: {python: p}}}", True),
        ("{cpu: {}, other: {provider: cpu, environment: {python: p}}}", False),
    ],
)
def test_what_is_made_ahead_of_time_is_made_at_home(project, base, providers, reported):
    recipe = project.recipe(f"{base}ahead_of_time: {{ort: {{}}}}\nproviders: {providers}\n")
    found = list(ahead_of_time.FEATURE.remarks(recipe, 1))
    assert len(found) == reported
    assert all("ort of ahead_of_time: made, validated" in each.text for each in found)
    line = f"{base}ahead_of_time:".count("\n") + 1
    assert all((each.location.line, each.location.column) == (line, 1) for each in found)
