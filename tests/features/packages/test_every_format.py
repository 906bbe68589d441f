"""Every package format in recipes: which steps it adds, who judges it, and which options are refused."""

import pytest

from onnxbuild.catalog import PACKAGE_FORMATS
from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve
from tests.features.packages.test_genai import DECODER
from tests.written_recipes import faults, loader

RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
quantization: {fp32: none, int8: dynamic}
"""

RECIPES = {"genai": DECODER + "quantization: {fp32: none, int8: dynamic}\n"}
"""Of formats for some models alone."""


@pytest.mark.parametrize("form", PACKAGE_FORMATS)
def test_each_bundle_that_is_named_gets_a_package_judged_by_its_gates_and_its_run(tmp_path, form):
    load = loader(tmp_path, before=RECIPES.get(form, RECIPE))
    recipes = load(f"packages: {{variants: [int8], {form}: {{}}}}\n").recipes
    graph = resolve(recipes, HostFacts("x86_64", frozenset({"avx2"})))
    *bundles, package = graph.deliverables
    assert [each.name for each in (*bundles, package)] == ["fp32", "int8", f"int8-{form}"]
    made = PACKAGE_FORMATS[form]
    ran = [f"demo:int8-{form}/run"] if made.run else []
    own = [f"demo:int8-{form}/validate"] if f"demo:int8-{form}/validate" in graph.steps else []
    assert list(package.judged_by) == [*bundles[-1].judged_by, *own, *ran]
    assert [file for _, file in package.parts] == [
        "", *(["validation.json"] if own else []), *(["run.json"] if ran else []),
    ]  # fmt: skip
    step = graph.steps[f"demo:int8-{form}/{made.step}"]
    assert step.kind == made.kind.name
    converted = f"demo:int8-{form}/package" if own else "demo:int8/package"
    assert step.inputs["bundle"].step == converted


NAMES = {
    "wheel": lambda params: params.names.distribution,
    "node": lambda params: params.names.package,
    "oci": lambda params: params.tag,
    "triton": lambda params: params.name,
    "http-server": lambda params: params.name,
}


@pytest.mark.parametrize(
    ("form", "options", "name"),
    [
        ("wheel", "", "demo-int8"),
        ("node", "name: '@me/{variant}'", "@me/int8"),
        ("oci", "", "int8"),
        ("oci", "tag: 1.2.0", "1.2.0"),
        ("triton", "name: 'net_{variant}'", "net_int8"),
        ("http-server", "", "demo-int8"),
        ("http-server", "name: 'ours-{variant}'", "ours-int8"),
    ],
)
def test_a_package_is_named_after_the_variant_or_as_the_recipe_says(tmp_path, form, options, name):
    load = loader(tmp_path, before=RECIPE)
    recipes = load(f"packages: {{variants: [int8], {form}: {{{options}}}}}\n").recipes
    graph = resolve(recipes, HostFacts("x86_64", frozenset({"avx2"})))
    assert NAMES[form](graph.steps[f"demo:int8-{form}/package"].params) == name


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("wheel: {version: one}", "'one', which is no version", "version: 1.2.0"),
        ("wheel: {name: ours}", "'fp32' and 'int8' would replace each other", "name: ours-{variant}"),
        ("wheel: {name: json}", "replace Python's own module json", "name: my-model-{variant}"),
        ("wheel: {runtime: tensorrt}", "expected one of auto, onnxruntime, onnxruntime-gpu, none", ""),
        ("node: {version: '1.2'}", "'1.2', which is no version", "version: 1.2.0"),
        ("node: {name: ours}", "'fp32' and 'int8' would have one name", "ours-{variant}"),
        ("oci: {tag: our model}", "'our model', which no tag can be", "tag: 1.2.0"),
        ("http-server: {name: a/b}", "'a/b', which is no name of a model in a URL", "write letters"),
        ("triton: {name: net}", "for 2 bundles, which Triton could not tell apart", "`name: net-{variant}`"),
        ("triton: {max_queue_delay_us: 5}", "`dynamic_batching` is off", "add `dynamic_batching: true`"),
        ("triton: {max_batch_size: 9}", "axis 'batch' takes 1 to 8", "write `max_batch_size: 8`"),
        ("triton: {instance_groups: [{device: cpu, gpus: [0]}]}", "names GPUs for `device: cpu`", "`device: gpu`"),
        ("triton: {ensemble: true}", "a model without `processing` is one graph", "remove `ensemble`"),
    ],
)  # fmt: skip
def test_options_that_can_not_be_are_refused_at_their_line(tmp_path, text, what, fix):
    ((said, where, mend),) = faults(loader(tmp_path, before=RECIPE), f"packages: {{{text}}}\n")
    assert what in said
    assert fix in mend
    assert where.startswith("demo.yaml:7:")


@pytest.mark.parametrize("form", [n for n, each in PACKAGE_FORMATS.items() if each.no_operators])
def test_libraries_of_operators_are_refused_where_a_format_holds_none(tmp_path, form):
    load = loader(tmp_path, before=RECIPE)
    found = faults(load, f"packages: {{{form}: {{}}}}\noperators: {{own: model.py}}\n")
    what = f"{PACKAGE_FORMATS[form].no_operators}, and the recipe has libraries of them"
    assert any(said == what and "wheel" in fix for said, _, fix in found), found
