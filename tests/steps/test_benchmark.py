import json
import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.target import CPU_TARGET
from onnxbuild.onnxkit.benchmark.baseline import NO_BASELINE, Baseline
from onnxbuild.onnxkit.benchmark.candidate import resident_bytes
from onnxbuild.onnxkit.benchmark.options import BenchmarkOptions
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.timing.rounds import read_groups
from onnxbuild.steps import torch_export, torchscript
from onnxbuild.steps.benchmark import KIND, BenchmarkParams
from tests.fakes.step_context import run_step
from tests.steps.graphs import DIGITS, digits
from tests.steps.test_cached_attention import in_place, optimized
from tests.steps.test_convert_fp16 import converted
from tests.steps.test_state import AXES, built

IMAGE = DummyInput("image", "float32", ("batch", 1, 8, 8))
QUICK = {"min_samples": 5, "max_time_s": 0.1, "warmup": 1}


def in_this_process(folder, models, options, programs):
    """(outcome, report) or, of what went wrong, (what, where, fix)."""
    settings, comparison_models = options.pop("settings", {}), options.pop("comparison_models", ())
    more_bytes = options.pop("more_bytes", 1 << 40)
    options.setdefault("baseline", True)
    baseline = Baseline("pytorch") if options["baseline"] else NO_BASELINE
    params = BenchmarkParams(
        model=options.pop("model", Entrypoint(f"{DIGITS}:load")),
        inputs=options.pop("inputs", (IMAGE,)),
        axes=options.pop("axes", (Axis("batch", 1, 64, 2),)),
        target=CPU_TARGET,
        options=BenchmarkOptions(**{**QUICK, **options}),
        ranking=False,
        sessions=settings,
        comparison_models=comparison_models,
        baseline=baseline,
        logits="logits",
    )
    inputs = {f"model/{name}": path for name, path in models.items()}
    inputs |= {f"program/{name}": path for name, path in programs.items()}
    try:
        limit = resident_bytes() + more_bytes
        outcome, context = run_step(KIND, params, folder / "step", inputs, limit)
    except StepError as error:
        return error.what, error.where, error.fix
    return outcome, json.loads((context.output("report") / "report.json").read_text())


@pytest.fixture(scope="module")
def benchmarked():
    """The step forks itself, so it wants a process in which nothing has run yet, as it has one in builds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "onnx", "onnxruntime", "tests.steps.test_benchmark"])

    def benchmarked(folder, models, programs={}, **options):  # noqa: B006 - never changed
        with ProcessPoolExecutor(1, mp_context=context) as pool:  # a new one each time
            asked = pool.submit(in_this_process, folder, models, options, programs)
            return asked.result(timeout=300)

    return benchmarked


@pytest.fixture(scope="module")
def measured(tmp_path_factory, benchmarked):
    folder = tmp_path_factory.mktemp("benchmark")
    fp32 = digits(folder / "fp32")
    _, fp16 = converted(fp32, folder / "fp16", keep_io_types=False)
    points = ({"batch": (1, 4)},)
    return benchmarked(
        folder, {"fp32": fp32, "fp16": fp16}, points=points, threads=1, max_time_s=1.0
    )


def test_each_model_is_measured_at_each_point_next_to_pytorch(measured):
    _, report = measured
    assert [point["point"] for point in report["points"]] == ["batch=1", "batch=4"]
    for point in report["points"]:
        assert set(point["results"]) == {"pytorch", "fp32", "fp16"}
        assert point["results"]["pytorch"]["speedup"] == 1.0
        for found in point["results"].values():
            assert found["samples"] >= 5
            assert 0 < found["p50_ms"] <= found["p90_ms"] <= found["p95_ms"] <= found["p99_ms"]
            assert found["throughput_items_per_s"] == pytest.approx(
                point["items"] / found["p50_ms"] * 1000, rel=1e-3
            )


def test_what_each_costs_alone_is_reported(measured):
    _, report = measured
    for model in report["models"].values():
        assert model["load_s"] > 0
        assert model["first_inference_ms"] > 0
        assert model["peak_rss_growth_bytes"] >= model["steady_rss_growth_bytes"] >= 0
    assert report["models"]["fp32"]["size_bytes"] > report["models"]["fp16"]["size_bytes"]
    assert "size_bytes" not in report["models"]["pytorch"]
    assert any("load_s" in each for each in report["method"])


def test_every_speedup_has_its_interval_and_every_run_is_kept(measured):
    _, report = measured
    for point in report["points"]:
        found = point["results"]["fp32"]
        assert found["speedup_low"] <= found["speedup"] <= found["speedup_high"]
        for percent in (90, 95, 99):
            ratio, low, high = found[f"speedup_p{percent}"]
            assert low <= ratio <= high
        assert point["warmup_rounds"] >= 0


def test_the_host_and_the_threads_are_on_record(measured):
    _, report = measured
    assert report["host"]["threads"] == 1
    assert report["host"]["cpu"]
    assert report["host"]["cores"] >= 1
    assert len(report["host"]["affinity"]) >= 1
    assert 0 <= report["host"]["steal_percent"] <= 100
    assert report["host"]["others_busy_percent"] >= 0


def test_the_table_gets_the_first_point(measured):
    outcome, report = measured
    first = report["points"][0]["results"]
    assert outcome.metrics["point"] == "batch=1"
    assert outcome.metrics["noisy"] == bool(report["host"]["noisy"])
    assert outcome.metrics["baseline"] == {"name": "pytorch", "title": "PyTorch"}
    assert report["baseline"]["how"].startswith("eager")
    assert outcome.metrics["variants"]["fp32"] == {
        "p50_ms": first["fp32"]["p50_ms"],
        **{key: first["fp32"][key] for key in ("speedup", "speedup_low", "speedup_high")},
        "stable": first["fp32"]["stable"],
        "size_bytes": report["models"]["fp32"]["size_bytes"],
    }


def test_without_points_the_example_is_measured_and_without_baseline_no_ratio_is(
    tmp_path, benchmarked
):
    outcome, report = benchmarked(tmp_path, {"fp32": digits(tmp_path / "fp32")}, baseline=False)
    (point,) = report["points"]
    assert point["sizes"] == {"batch": 2}
    assert set(point["results"]) == {"fp32"}
    assert outcome.metrics["variants"]["fp32"]["speedup"] is None
    assert report["baseline"] == outcome.metrics["baseline"] == {"absent": "not asked for"}


@pytest.mark.slow
def test_io_binding_and_clients_are_measured_where_they_are_asked_for(tmp_path, benchmarked):
    _, report = benchmarked(
        tmp_path,
        {"fp32": digits(tmp_path / "fp32")},
        io_binding=True,
        clients=(1, 2),
        sessions="each",
        threads=2,
    )
    assert set(report["points"][0]["results"]) == {"pytorch", "fp32", "fp32+io-binding"}
    rows = report["concurrency"]["models"]["fp32"]
    assert [row["clients"] for row in rows] == [1, 2]
    assert all(row["low"] <= row["runs_per_s"] <= row["high"] for row in rows)
    assert report["copies"]["models"]["fp32"]["to_device_ms"] >= 0


def program(folder, kind, most=64):
    """The digits CNN other than ONNX."""
    model = Entrypoint(f"{DIGITS}:load")
    params = (model, (IMAGE,), ("logits",), (Axis("batch", 1, most, 2),))
    if kind is torchscript:
        made = torchscript.TorchScriptParams(*params, torchscript.TorchScriptOptions())
    else:
        made = torch_export.TorchExportParams(*params, torch_export.TorchExportOptions())
    return run_step(kind.KIND, made, folder)[1].output("program")


def test_programs_next_to_onnx_are_measured_next_to_it_and_alone(tmp_path, benchmarked):
    programs = {"torchscript": program(tmp_path / "torchscript", torchscript)}
    models = {"fp32": digits(tmp_path / "fp32")}
    outcome, report = benchmarked(tmp_path, models, programs, threads=1, points=({"batch": 3},))
    (point,) = report["points"]
    assert set(point["results"]) == {"pytorch", "fp32", *programs}
    for name, folder in programs.items():
        assert point["results"][name]["speedup"] > 0
        reported = report["models"][name]
        assert reported["load_s"] > 0
        assert reported["first_inference_ms"] > 0
        assert reported["size_bytes"] == next(folder.glob("model.*")).stat().st_size
        assert "session" not in reported
        assert outcome.metrics["variants"][name]["p50_ms"] == point["results"][name]["p50_ms"]


def test_a_point_that_can_not_be_measured_is_an_error(tmp_path, benchmarked):
    model = digits(tmp_path / "fp32")
    what, _, fix = benchmarked(tmp_path / "a", {"fp32": model}, points=({"batsh": 1},))
    assert "names the axis 'batsh'; expected batch" in what
    assert fix == "did you mean 'batch'?"
    what, _, fix = benchmarked(tmp_path / "b", {"fp32": model}, points=({"batch": (1, 65)},))
    assert what == "`benchmark.points` has batch=65; `dynamic_axes` allows 1 to 64"


def test_each_variant_runs_as_it_is_delivered_and_at_the_sizes_that_it_takes(
    tmp_path, benchmarked
):
    model = digits(tmp_path / "fp32")
    sessions = {
        "one": SessionSettings(free_dimensions={"batch": 1}, spinning="stop", intra_op_threads=1)
    }
    models = {"any": model, "one": model}
    _, report = benchmarked(tmp_path, models, settings=sessions, baseline=False)
    assert [(each["point"], set(each["results"])) for each in report["points"]] == [
        ("batch=2", {"any"}),
        ("batch=1", {"any", "one"}),
    ]
    assert report["models"]["one"]["session"] == (
        "{intra_op_threads: 1, spinning: stop, free_dimensions: {batch: 1}}"
    )


def wide(folder, seed, columns=1 << 17):
    """A model of 32 MiB that takes the digits' images."""
    weight = np.random.default_rng(seed).standard_normal((64, columns), dtype=np.float32)
    shape = onnx.numpy_helper.from_array(np.int64([-1, 64]), "shape")
    graph = helper.make_graph(
        [
            helper.make_node("Reshape", ["image", "shape"], ["flat"]),
            helper.make_node("MatMul", ["flat", "weight"], ["wide"]),
            helper.make_node("ReduceMax", ["wide", "axes"], ["logits"], keepdims=1),
        ],
        "wide",
        [helper.make_tensor_value_info("image", 1, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", 1, ["batch", 1])],
        [
            shape,
            onnx.numpy_helper.from_array(np.int64([1]), "axes"),
            onnx.numpy_helper.from_array(weight, "weight"),
        ],
    )
    opset = helper.make_opsetid("", 18)
    save_model(helper.make_model(graph, opset_imports=[opset], ir_version=9), folder)
    return folder


@pytest.mark.slow
def test_where_memory_is_short_groups_are_measured_next_to_pytorch(tmp_path, benchmarked):
    models = {name: wide(tmp_path / name, seed) for seed, name in enumerate("abcde")}
    outcome, report = benchmarked(
        tmp_path, models, more_bytes=200 << 20, threads=1, clients=(2,), sessions="one"
    )
    groups = report["groups"]
    assert len(groups) >= 2
    assert all(group[0] == "pytorch" for group in groups)
    assert sorted(name for group in groups for name in group[1:]) == [*"abcde"]
    results = report["points"][0]["results"]
    assert set(results) == {"pytorch", *"abcde"}
    assert results["pytorch"]["speedup"] == 1.0
    for name in "abcde":
        assert results[name]["speedup"] > 0
        assert report["concurrency"]["models"][name][0]["runs_per_s"] > 0
    assert "groups" in report["method"]
    assert outcome.notes[0].startswith(
        f"memory does not hold all models at once: measured in {len(groups)} groups, each with "
        "pytorch: "
    )
    turns = read_groups(tmp_path / "step/out/report", "batch=2", "pytorch")
    assert len(turns) == len(groups)
    assert all(turns)


@pytest.mark.slow
def test_equal_models_are_measured_once_and_share_what_was_found(tmp_path, benchmarked):
    first = digits(tmp_path / "first")
    again = tmp_path / "again"
    shutil.copytree(first, again)
    models = {"first": first, "other": first, "again": again}
    settings = {"other": SessionSettings(spinning="stop")}
    outcome, report = benchmarked(
        tmp_path, models, threads=1, clients=(1,), io_binding=True, settings=settings
    )
    (note,) = (each for each in outcome.notes if "measured once" in each)
    assert note == "'again' is the same model as 'first': measured once"
    reported = {name: each.get("same_as") for name, each in report["models"].items()}
    assert {name: of for name, of in reported.items() if of} == {
        "again": "first",
        "again+io-binding": "first+io-binding",
    }
    results = report["points"][0]["results"]
    assert set(results) == set(reported)
    assert results["again"] == results["first"] != results["other"]
    assert results["again+io-binding"] == results["first+io-binding"]
    for part in ("concurrency", "copies"):
        found = report[part]["models"]
        assert set(found) == set(models)
        assert found["again"] == found["first"] != found["other"]
    folder = tmp_path / "step" / "out" / "report"
    point = report["points"][0]["point"]
    assert read_groups(folder, point, "again") == read_groups(folder, point, "first")


@pytest.mark.parametrize(("table", "batch", "items"), [(8, "batch", 16), ("rows", "batch", 16)])
def test_items_are_rows_of_the_batch_behind_inputs_without_one(
    tmp_path, benchmarked, table, batch, items
):
    shapes = {"scale": [], "table": [table, 8], "image": [batch, 1, 8, 8]}
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["image", "scale"], ["scaled"]),
            helper.make_node("Add", ["scaled", "table"], ["out"]),
        ],
        "scaled",
        [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("out", 1, shapes["image"])],
    )
    opset = helper.make_opsetid("", 18)
    save_model(helper.make_model(graph, opset_imports=[opset], ir_version=9), tmp_path / "model")
    inputs = tuple(DummyInput(name, "float32", tuple(each)) for name, each in shapes.items())
    _, report = benchmarked(
        tmp_path,
        {"fp32": tmp_path / "model"},
        inputs=inputs,
        axes=(Axis("batch", 1, 64, 2), Axis("rows", 1, 8, 8)),
        baseline=False,
        points=({"batch": 16},),
    )
    assert report["points"][0]["items"] == items


@pytest.mark.slow
def test_prompts_texts_and_single_tokens_are_measured_in_place_next_to_pytorchs_cache(
    tmp_path, benchmarked
):
    made = built(tmp_path, "llama")
    _, exported = made.export()
    inputs = in_place(made.inputs)
    _, model = optimized(tmp_path, exported, inputs)
    first, later = {"batch": 2, "sequence": 4, "past": 0}, {"batch": 1, "sequence": 1, "past": 8}
    _, report = benchmarked(
        tmp_path,
        {"fp32": model},
        model=made.model,
        inputs=inputs,
        axes=AXES,
        points=(first, later),
        tokens=6,
    )
    found = report["points"]
    assert [each["kind"] for each in found] == ["prefill", "tokens", "decode"]
    assert [each["items"] for each in found] == [2, 2 * 6, 1]
    a_token = 2 * 2 * 2 * 8 * 4  # layers, keys and values, heads, size of a head, bytes
    assert [each["state_bytes"] for each in found] == [n * a_token for n in (8, 18, 9)]
    assert all(set(each["results"]) == {"pytorch", "fp32"} for each in found)
