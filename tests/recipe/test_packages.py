"""`packages` that can't be made of a bundle are refused where it is named, and noted where it is not."""

import pytest

from onnxbuild.catalog import PACKAGE_FORMATS
from onnxbuild.host.host import HostFacts
from onnxbuild.recipe.checks.remarks import left_out_packages
from onnxbuild.resolver import resolve
from tests.written_recipes import faults, loader

RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {image: {dtype: DTYPE, shape: [batch, 3, 8, 8]}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
outputs: [scores]
quantization: {int8: dynamic}
"""
LABELS = """\
processing:
  postprocess:
    - argmax: {of: scores}
    - labels: {file: labels.txt, of: class_id}
"""


def load_of(folder, dtype="float32"):
    (folder / "labels.txt").write_text("cat\ndog\n")
    return loader(folder, before=RECIPE.replace("DTYPE", dtype))


def folders(loaded):
    graph = resolve(loaded.recipes, HostFacts("x86_64", frozenset({"avx2"})))
    return {each.name for each in graph.deliverables}


@pytest.mark.parametrize(
    ("processing", "form", "why"),
    [
        (LABELS, "cpp", "it can't hold strings, which the pipeline takes or gives"),
        (LABELS, "ort-mobile", "it is made of a variant's own model"),
    ],
)
def test_a_bundle_that_is_named_and_not_taken_is_refused_at_its_line(
    tmp_path, processing, form, why
):
    text = f"{processing}packages:\n  variants: [int8, int8-pipeline]\n  {form}: {{}}\n"
    ((what, where, fix),) = faults(load_of(tmp_path), text)
    assert what == f"packages.variants names 'int8-pipeline', of which no `{form}` is made: {why}"
    line = (RECIPE + text).splitlines().index("  variants: [int8, int8-pipeline]") + 1
    assert where == f"demo.yaml:{line}:20"
    assert fix.startswith(
        f"remove 'int8-pipeline' from packages.variants, or `{form}` from packages;"
    )


@pytest.mark.parametrize("mended", ["variants: [int8], cpp: {}, ", "variants: [int8-pipeline], "])
def test_either_of_the_two_that_the_fix_says_mends_it(tmp_path, mended):
    loaded = load_of(tmp_path)(f"{LABELS}packages: {{{mended}oci: {{}}}}\n")
    made = folders(loaded)
    assert {each for each in made if each.endswith(("-cpp", "-oci"))} == (
        {"int8-cpp", "int8-oci"} if "cpp" in mended else {"int8-pipeline-oci"}
    )


def test_a_bundle_that_is_not_named_and_not_taken_is_in_a_note(tmp_path):
    loaded = load_of(tmp_path)(f"{LABELS}packages: {{cpp: {{}}, oci: {{}}, ort-mobile: {{}}}}\n")
    assert folders(loaded) >= {"int8-cpp", "int8-oci", "int8-pipeline-oci", "int8-ort-mobile"}
    assert list(map(str, left_out_packages(loaded.recipes[0]))) == [
        "demo: no `cpp` package is made of int8-pipeline: it can't hold strings, which the pipeline takes or gives",
        "demo: no `ort-mobile` package is made of int8-pipeline: it is made of a variant's own model",
    ]


@pytest.mark.parametrize(("dtype", "form"), [("bfloat16", "cpp"), ("string", "cpp")])
def test_a_type_of_an_input_that_a_format_can_not_hold_is_refused_at_its_line(
    tmp_path, dtype, form
):
    ((what, where, fix),) = faults(load_of(tmp_path, dtype), f"packages: {{{form}: {{}}}}\n")
    assert what == f"input 'image' is {dtype}, which `{form}` packages don't support"
    assert where == "demo.yaml:8:12"
    able = ", ".join(n for n, each in PACKAGE_FORMATS.items() if dtype not in each.no_dtypes)
    assert "triton" in able
    assert fix == f"remove `{form}` from `packages`; of {dtype} take {able}"


def test_inputs_that_a_pipeline_computes_may_be_of_any_type(tmp_path):
    steps = "[{image: {name: picture}}, {model: {callable: model.py:load}}]"
    loaded = load_of(tmp_path, "bfloat16")(
        f"processing: {{expected: model.py:load, preprocess: {steps}}}\npackages: {{variants: [int8-pipeline], oci: {{}}}}\n"
    )
    assert "int8-pipeline-oci" in folders(loaded)
