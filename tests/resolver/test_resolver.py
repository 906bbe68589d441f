"""Recipes become one graph that shares every prefix that is equal."""

import pytest

from onnxbuild.catalog import CATALOG
from onnxbuild.core.errors import UsageError
from onnxbuild.core.target import Link, Target
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.resolver import resolve
from onnxbuild.resolver.expand import trials_of
from tests.written_recipes import loader

VNNI = HostFacts("x86_64", frozenset({"avx2", "avx512_vnni"}))
OLD = HostFacts("x86_64", frozenset({"avx2"}))
ARM = HostFacts("aarch64", frozenset({"asimddp"}))

RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
outputs: [logits]
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
"""
VARIANTS = "quantization: {fp32: none, fp16: fp16, int8: dynamic}\n"
STATIC = "quantization: {int8: static}\ncalibration: {data: model.py:samples}\n"


@pytest.fixture
def load(tmp_path):
    from_text = loader(tmp_path, model="def load(size=1): ...\ndef samples(): ...\n")
    return lambda text, name="", **settings: from_text(text, name, **settings).recipes


def local(graph):
    return [name.partition(":")[2] for name in graph.steps]


def test_a_recipe_of_one_variant_has_one_step_of_each_kind(load):
    assert local(resolve(load(RECIPE), VNNI)) == [
        "export", "check", "reference", "optimize", "fp32/check", "fp32/validate",
        "fp32/package", "benchmark",
    ]  # fmt: skip


def test_variants_share_all_that_comes_before_them(load):
    graph = resolve(load(RECIPE + VARIANTS), VNNI)
    for shared in ("export", "check", "reference", "optimize", "benchmark"):
        assert local(graph).count(shared) == 1
    assert [name for name in local(graph) if name.startswith("int8/")] == [
        "int8/quantize", "int8/check", "int8/validate", "int8/package",
    ]  # fmt: skip
    assert set(graph.steps["demo:benchmark"].inputs) == {"model/fp32", "model/fp16", "model/int8"}
    assert [view.name for view in graph.deliverables] == ["fp32", "fp16", "int8"]


def test_every_step_comes_after_its_inputs_and_is_of_a_known_kind(load):
    graph = resolve((*load(RECIPE + VARIANTS), *load(RECIPE + STATIC, "other")), VNNI)
    seen = set()
    for name, step in graph.steps.items():
        assert {ref.step for ref in step.inputs.values()} <= seen
        for ref in step.inputs.values():
            assert ref.output in CATALOG[graph.steps[ref.step].kind].outputs
        assert isinstance(step.params, CATALOG[step.kind].params)
        seen.add(name)


def test_a_variant_with_its_own_optimization_has_its_own_step(load):
    text = "quantization: {fp32: none, int8: {mode: dynamic, optimize: {level: none}}}\n"
    graph = resolve(load(RECIPE + text), VNNI)
    assert "demo:int8/optimize" in graph.steps
    assert graph.steps["demo:int8/quantize"].inputs["model"].step == "demo:int8/optimize"
    same = "quantization: {fp32: none, int8: {mode: dynamic, optimize: {level: extended}}}\n"
    graph = resolve(load(RECIPE + same), VNNI)
    assert graph.resolve("demo:int8/optimize") == "demo:optimize"


def test_equal_steps_of_two_recipes_are_one(load):
    graph = resolve((*load(RECIPE), *load(RECIPE + VARIANTS, "other")), VNNI)
    assert graph.resolve("other:export") == "demo:export"
    assert graph.resolve("other:optimize") == "demo:optimize"
    assert graph.resolve("other:fp32/validate") == "demo:fp32/validate"
    assert "other:fp32/package" in graph.steps, "a package holds its recipe's name"
    assert [(view.recipe, view.name) for view in graph.deliverables][:2] == [
        ("demo", "fp32"),
        ("other", "fp32"),
    ]


def test_a_matrix_shares_what_its_variable_does_not_touch(load):
    text = RECIPE + "matrix: {level: [basic, extended]}\noptimize: '{{ level }}'\n"
    graph = resolve(load(text), VNNI)
    assert [name for name in graph.steps if name.endswith(":export")] == [
        "demo@level=basic:export"
    ]
    assert len([name for name in graph.steps if name.endswith(":optimize")]) == 2
    assert len(graph.deliverables) == 2


# --- only -----------------------------------------------------------------------------------------


def test_only_a_variant_prunes_the_others(load):
    graph = resolve(load(RECIPE + VARIANTS), VNNI, ["int8"])
    assert not [name for name in local(graph) if name.startswith(("fp32/", "fp16/"))]
    assert set(graph.steps["demo:benchmark"].inputs) == {"model/int8"}
    assert [view.name for view in graph.deliverables] == ["int8"]


def test_only_a_step_keeps_what_it_needs(load):
    graph = resolve(load(RECIPE + VARIANTS), VNNI, ["int8/validate"])
    assert local(graph) == ["export", "reference", "optimize", "int8/quantize", "int8/validate"]
    assert graph.deliverables == ()


def test_a_variant_and_a_step_of_another_may_be_asked_for_together(load):
    graph = resolve(load(RECIPE + VARIANTS), VNNI, ["int8", "fp16/check"])
    assert "demo:fp16/check" in graph.steps
    assert "demo:fp16/package" not in graph.steps
    assert "demo:int8/package" in graph.steps


@pytest.mark.parametrize(
    ("more", "typed", "fix"),
    [
        ("", "int8-wheel", "add to the recipe: packages: {wheel: {}}"),
        ("", "fp32-ort", "add to the recipe: ahead_of_time: {ort: {}}"),
    ],
)
def test_only_what_could_be_made_says_how_to_ask_for_it(load, more, typed, fix):
    with pytest.raises(UsageError) as caught:
        resolve(load(RECIPE + VARIANTS + more), VNNI, [typed])
    assert caught.value.what.startswith(f"--only {typed}: ")
    assert caught.value.what.endswith(" does not ask for it")
    assert caught.value.fix == fix


# --- options --------------------------------------------------------------------------------------


def tolerances(graph, variant):
    return graph.steps[f"demo:{variant}/validate"].params.tolerances


def test_tolerances_are_the_variants_then_the_recipes_then_the_default(load):
    text = (
        "quantization: {fp32: none, fp16: fp16, int8: {mode: dynamic, validate: {cosine_min: 0.9, "
        "outputs: {logits: {atol: 1}}}}}\n"
        "validate: {fp16: {atol: 0.5}, int8: {sqnr_db_min: 20}}\n"
    )
    graph = resolve(load(RECIPE + text), VNNI)
    assert (tolerances(graph, "fp32").atol, tolerances(graph, "fp32").rtol) == (1e-5, 1e-4)
    assert (tolerances(graph, "fp16").atol, tolerances(graph, "fp16").rtol) == (0.5, 1e-3)
    int8 = tolerances(graph, "int8")
    assert (int8.cosine_min, int8.sqnr_db_min, int8.atol) == (0.9, 20, None)
    assert int8.outputs == {"logits": Tolerance(atol=1.0)}


def test_a_wrong_scale_is_caught_unless_a_worse_cosine_is_allowed(load):
    text = (
        "quantization: {a: dynamic, b: {mode: dynamic, validate: {cosine_min: 0.9}}, "
        "c: {mode: weight_only, bits: 4}}\n"
    )
    graph = resolve(load(RECIPE + text), VNNI)
    found = {name: tolerances(graph, name) for name in "abc"}
    assert (found["a"].cosine_min, found["a"].sqnr_db_min) == (0.98, 8.0)
    assert (found["b"].cosine_min, found["b"].sqnr_db_min) == (0.9, None)
    assert (found["c"].cosine_min, found["c"].sqnr_db_min) == (0.95, 6.0)


@pytest.mark.parametrize(
    ("host", "reduced", "type_of_activations"),
    [(VNNI, False, "uint8"), (ARM, False, "int8")],
    ids=["VNNI", "ARM"],
)
def test_what_is_left_at_auto_is_what_the_cpu_needs(load, host, reduced, type_of_activations):
    options = resolve(load(RECIPE + VARIANTS), host).steps["demo:int8/quantize"].params.options
    assert options.reduce_range == reduced
    static = resolve(load(RECIPE + STATIC), host).steps["demo:int8/quantize"].params.options
    assert static.reduce_range == reduced
    assert static.activation_type == type_of_activations


def packages(graph):
    return {
        name: step.params.recipe_sha256
        for name, step in graph.steps.items()
        if step.kind == "package"
    }


def test_an_option_of_one_variant_is_in_the_recipe_digest_of_that_variant_alone(load):
    before = packages(resolve(load(RECIPE + VARIANTS), VNNI))
    text = VARIANTS.replace("int8: dynamic", "int8: {mode: dynamic, per_channel: false}")
    after = packages(resolve(load(RECIPE + text), VNNI))
    assert before["demo:fp32/package"] == after["demo:fp32/package"]
    assert before["demo:fp16/package"] == after["demo:fp16/package"]
    assert before["demo:int8/package"] != after["demo:int8/package"]


def test_only_does_not_change_what_a_step_is(load):
    """Else `run --only int8` would build again what `run` has built."""
    whole = resolve(load(RECIPE + VARIANTS), VNNI)
    part = resolve(load(RECIPE + VARIANTS), VNNI, ["int8"])
    for name, step in part.steps.items():
        if step.kind != "benchmark":
            assert step == whole.steps[name]


def test_each_provider_is_validated_and_measured(load):
    graph = resolve(load(RECIPE + "providers: [cpu, {openvino: {device_type: CPU}}]\n"), VNNI)
    second = graph.steps["demo:fp32/validate-openvino"].params
    assert second.target == Target("openvino", (Link("openvino", {"device_type": "CPU"}),))
    assert "demo:benchmark-openvino" in graph.steps
    assert set(graph.steps["demo:fp32/package"].inputs) >= {
        "validation/cpu",
        "validation/openvino",
    }
    assert [file for _, file in graph.deliverables[0].parts] == [
        "",
        "benchmark.json",
        "benchmark-openvino.json",
    ]


def test_steps_whose_files_lie_in_different_places_are_two(load, tmp_path_factory):
    """Their keys are the same if the files are, and only then."""
    recipes = []
    for name in ("one", "two"):
        folder = tmp_path_factory.mktemp(name)
        (folder / "w.bin").write_text(name)
        model = f"model: {{entrypoint: model.py:load, files: ['{folder}/w.bin']}}"
        recipes += load(RECIPE.replace("model: model.py:load", model), name)
    graph = resolve(recipes, VNNI)
    exports = [step for name, step in graph.steps.items() if name.endswith(":export")]
    assert [each.name for each in exports] == ["one:export", "two:export"]
    assert exports[0].params_json == exports[1].params_json
    assert "two:fp32/validate" in graph.steps  # what follows is not one step, either
    packaged = [graph.steps[f"{name}:fp32/package"].params_json for name in ("one", "two")]
    assert packaged[0]["recipe_sha256"] == packaged[1]["recipe_sha256"]


def test_fp16_runs_the_references_inputs_only_where_it_keeps_what_is_large(load):
    graph = resolve(load(RECIPE + "quantization: {half: {mode: fp16, keep_fp32: auto}}\n"), VNNI)
    convert = graph.steps["demo:half/convert"]
    assert (
        convert.inputs["reference"].step
        == graph.steps["demo:half/validate"].inputs["reference"].step
    )
    graph = resolve(load(RECIPE + VARIANTS), VNNI)
    assert set(graph.steps["demo:fp16/convert"].inputs) == {"model"}


@pytest.mark.parametrize(
    ("cpu", "reduced", "activations"), [("avx2", "pairs", "uint8"), ("arm64", False, "int8")]
)
@pytest.mark.parametrize("here", [VNNI, OLD, ARM], ids=["VNNI", "no VNNI", "ARM"])
def test_the_target_decides_auto_options_and_not_this_machine(
    load, here, cpu, reduced, activations
):
    text = RECIPE + STATIC + f"target: {{cpu: {cpu}}}\n"
    params = resolve(load(text), here).steps["demo:int8/quantize"].params
    assert params.options.reduce_range == reduced
    assert params.options.activation_type == activations
    assert params.sums_saturate is (reduced == "pairs")


def test_variants_share_a_calibration_unless_its_method_goes_by_their_types(load):
    variants = (
        "quantization: {a: static, b: {mode: static, activation_type: int16}}\n"
        "calibration: {data: model.py:samples, method: METHOD}\n"
    )
    for method, steps in (("minmax", 1), ("moving_average", 1), ("mse", 2), ("entropy", 2)):
        graph = resolve(load(RECIPE + variants.replace("METHOD", method)), VNNI)
        assert sum(name.endswith("/calibrate") for name in graph.steps) == steps


REAL = "calibration: {data: model.py:samples}\nfidelity: {data: model.py:samples}\n"
BALANCED = """\
quantization:
  plain: {mode: dynamic, keep_most_sensitive: 0.1}
  even: {mode: dynamic, balance: true}
  kept: {mode: dynamic, balance: true, rounding: gptq, keep_most_sensitive: 0.1}
  more: {mode: dynamic, balance: true, rounding: gptq, keep_most_sensitive: 0.2}
"""


def test_variants_share_a_balanced_model_its_sensitivity_and_its_rounding(load):
    graph = resolve(load(RECIPE + REAL + BALANCED), VNNI)

    def origins(variant):
        inputs = graph.steps[f"demo:{variant}/quantize"].inputs
        return {name: ref.step for name, ref in inputs.items()}

    assert graph.steps["demo:balance"].inputs["model"].step == "demo:optimize"
    assert graph.steps["demo:kept/round"].inputs["model"].step == "demo:balance"
    assert origins("plain") == {"model": "demo:optimize", "sensitivity": "demo:sensitivity"}
    assert origins("even") == {"model": "demo:balance"}
    assert origins("kept") == origins("more") == {
        "model": "demo:balance",
        "sensitivity": "demo:balance-sensitivity",
        "rounded": "demo:kept/round",
    }  # fmt: skip


def test_a_static_variant_may_be_balanced_and_calibrated_by_a_method_of_its_own(load):
    text = "quantization:\n  a: static\n  b: {mode: static, balance: true}\n"
    text += "  c: {mode: static, calibration_method: mse}\n"
    graph = resolve(load(RECIPE + REAL + text), VNNI)
    assert graph.steps["demo:a/preprocess"].inputs["model"].step == "demo:export"
    assert graph.steps["demo:b/preprocess"].inputs["model"].step == "demo:balance"
    methods = [graph.steps[f"demo:{each}/calibrate"].params.options.method for each in "abc"]
    assert methods == ["minmax", "minmax", "mse"]


def test_auto_tries_other_ways_to_calibrate_than_the_recipes(load):
    goal = "{mode: auto, include: [static], trials: 5, goal: {cosine_min: 0.99}}"
    graph = resolve(load(f"{RECIPE}{REAL}quantization: {{small: {goal}}}\n"), VNNI)
    trials = {each.name: each.written for each in graph.steps["demo:small/choose"].params.trials}
    assert list(trials) == [
        "int8-static", "int8-products", "int8-static-balanced", "int8-static-mse",
        "int8-static-percentile",
    ]  # fmt: skip
    assert trials["int8-products"] == "{mode: static, only_products: true}"
    assert trials["int8-static-mse"] == "{mode: static, calibration_method: mse}"


def test_each_trial_that_is_written_out_is_that_trial_once_it_is_pasted(load):
    include = "include: [dynamic, static, weight_only, fp16], trials: 64"
    goal = f"{{mode: auto, {include}, goal: {{cosine_min: 0.99}}}}"
    (recipe,) = load(f"{RECIPE}{REAL}quantization: {{small: {goal}}}\n")
    tried = trials_of(recipe, recipe.variants[0])
    params = resolve([recipe], VNNI).steps["demo:small/choose"].params
    pasted = {each.name: each.written for each in params.trials}
    assert pasted["int8-dynamic-per-tensor"] == "{mode: dynamic, per_channel: false}"
    lines = "".join(f"  {name}: {text}\n" for name, text in pasted.items())
    (again,) = load(f"{RECIPE}{REAL}quantization:\n{lines}")
    assert {each.name: (each.mode, each.options) for each in again.variants} == {
        name: (each.mode, each.options) for name, each in tried.items()
    }


def test_a_trial_that_is_written_out_has_the_sections_of_its_variant(load):
    own = "optimize: {level: basic, transformer: false}, session: {graph_optimization: basic}"
    own += ", validate: {atol: 0.00001}"
    goal = f"{{mode: auto, include: [dynamic], goal: {{cosine_min: 0.99}}, {own}}}"
    (recipe,) = load(f"{RECIPE}{REAL}quantization: {{small: {goal}}}\n")
    params = resolve([recipe], VNNI).steps["demo:small/choose"].params
    pasted = {each.name: each.written for each in params.trials}
    lines = "".join(f"  {name}: {text}\n" for name, text in pasted.items())
    (again,) = load(f"{RECIPE}{REAL}quantization:\n{lines}")
    assert again.variants
    assert all(each.sections == recipe.variants[0].sections for each in again.variants)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (REAL, ["int8-dynamic", "int8-balanced", "int8-balanced-keep-5", "int8-balanced-keep-10"]),
        (
            REAL.replace("{data: model.py:samples}", "{data: dummy}", 1),
            ["int8-dynamic", "int8-keep-5", "int8-keep-10", "int8-keep-20"],
        ),
    ],
)
def test_auto_tries_balanced_models_where_there_is_data_to_balance_by(load, data, expected):
    goal = "{mode: auto, include: [dynamic], trials: 4, goal: {cosine_min: 0.99}}"
    graph = resolve(load(f"{RECIPE}{data}quantization: {{small: {goal}}}\n"), VNNI)
    trials = graph.steps["demo:small/choose"].params.trials
    assert [each.name for each in trials] == expected
    if data is REAL:
        assert trials[1].written == "{mode: dynamic, balance: true, rounding: gptq}"


@pytest.mark.parametrize(
    ("cpu", "asked", "expected"),
    [
        ("avx2", "", ("pairs", 127, True)),
        ("avx512_vnni", ", reduce_range: pairs", ("pairs", 127, True)),
    ],
)
def test_weights_are_rounded_for_the_scales_that_the_quantizer_will_take(
    load, cpu, asked, expected
):
    text = (
        f"quantization: {{a: {{mode: dynamic, rounding: gptq{asked}}}}}\ntarget: {{cpu: {cpu}}}\n"
    )
    steps = resolve(load(RECIPE + REAL + text), VNNI).steps
    rounded = steps["demo:a/round"].params
    asked_of = steps["demo:a/quantize"].params.options.reduce_range
    assert (asked_of, rounded.levels, rounded.pairs) == expected


# --- session --------------------------------------------------------------------------------------

TUNED = "session: {tune: true, graph_optimization: basic}\n"


def test_a_search_for_settings_feeds_gates_package_and_benchmark(load):
    graph = resolve(load(RECIPE + VARIANTS + TUNED), VNNI)
    assert graph.steps["demo:int8/session"].inputs["tune"].step == "demo:int8/tune"
    judged = graph.steps["demo:int8/validate"].inputs["session"]
    assert (judged.step, judged.output) == ("demo:int8/session", "judged")
    for step, name in (("int8/package", "session/cpu"), ("benchmark", "session/int8")):
        ref = graph.steps[f"demo:{step}"].inputs[name]
        assert (ref.step, ref.output) == ("demo:int8/session", "settings")
    parts = {file: ref.step for ref, file in graph.deliverables[2].parts}
    assert parts["tune.json"] == "demo:int8/tune"


def test_each_target_has_a_search_and_settings_of_its_own(load):
    graph = resolve(load(RECIPE + TUNED + "providers: [cpu, cuda]\n"), VNNI)
    for suffix, target in (("", "cpu"), ("-cuda", "cuda")):
        settled = f"demo:fp32/session{suffix}"
        search = graph.steps[settled].inputs["tune"].step
        assert search == f"demo:fp32/tune{suffix}"
        assert graph.steps[search].params.target.name == target
        assert ("target" in graph.steps[search].inputs) == (target == "cuda")
        assert graph.steps[f"demo:fp32/validate{suffix}"].inputs["session"].step == settled
        assert graph.steps["demo:fp32/package"].inputs[f"session/{target}"].step == settled
        measured = graph.steps[f"demo:benchmark{suffix}"].inputs["session/fp32"]
        assert (measured.step, measured.output) == (settled, "settings")
        assert f"tune{suffix}.json" in {file for _, file in graph.deliverables[0].parts}
    assert graph.steps["demo:provider-cuda"].params.require == "none"
    choices = {"demo:fp32/session-cuda": SessionSettings(spinning="never").tuned_text()}
    graph = resolve(load(RECIPE + TUNED + "providers: [cpu, cuda]\n"), VNNI, choices=choices)
    assert "demo:fp32/tune" in graph.steps
    assert "demo:fp32/tune-cuda" not in graph.steps


def test_a_choice_leaves_the_search_out_and_one_that_is_none_is_refused(load):
    settings = SessionSettings(intra_op_threads=3)
    choices = {"demo:fp32/session": settings.tuned_text()}
    graph = resolve(load(RECIPE + TUNED), VNNI, choices=choices)
    assert "demo:fp32/tune" not in graph.steps
    assert graph.steps["demo:fp32/session"].params.choice == settings.tuned_text()
    assert graph.steps["demo:fp32/session"].inputs == {}
    with pytest.raises(UsageError, match="the lock's choice for demo:fp32/session is no session"):
        resolve(load(RECIPE + TUNED), VNNI, choices={"demo:fp32/session": "fast"})


def test_gates_and_scores_run_with_what_can_change_numbers_alone(load):
    slow = "session: {graph_optimization: basic, intra_op_threads: 2, spinning: never}\n"
    more = "fidelity: {data: model.py:samples}\nevaluate: {data: model.py:samples, metric: model.py:load}\n"
    graph = resolve(load(RECIPE + VARIANTS + more + slow), VNNI)
    for step in ("validate", "fidelity", "evaluate"):
        found = graph.steps[f"demo:int8/{step}"].params.session
        assert (found.graph_optimization, found.intra_op_threads) == ("basic", 1)
        assert (found.spinning, found.deterministic_compute) == ("allow", True)
    delivered = graph.steps["demo:int8/package"].params.session
    assert (delivered.intra_op_threads, delivered.spinning) == (2, "never")
    assert graph.steps["demo:benchmark"].params.sessions["int8"] == delivered


def test_a_variant_of_one_size_is_judged_and_delivered_at_that_size(load):
    text = "quantization:\n  fp32: none\n  one: {mode: none, session: {free_dimensions: {batch: 1}}}\n"
    graph = resolve(load(RECIPE + text), VNNI)
    assert graph.steps["demo:fp32/validate"].inputs["reference"].step == "demo:reference"
    assert graph.steps["demo:one/validate"].inputs["reference"].step == "demo:one/reference"
    (axis,) = graph.steps["demo:one/reference"].params.axes
    assert (axis.min, axis.max, axis.example) == (1, 1, 1)
    assert graph.steps["demo:one/package"].params.axes == (axis,)
    assert graph.steps["demo:one/validate"].params.session.free_dimensions == {"batch": 1}
