import re

import pytest

from onnxbuild.core.errors import RecipeErrors
from onnxbuild.steps.quantize_weights import WeightOptions


def variant(base, options):
    return f"{base}quantization:\n  small: {{mode: weight_only, {options}}}\n"


@pytest.mark.parametrize(("bits", "precision"), [(4, "int4"), (8, "int8")])
def test_a_variant_of_few_bits_is_judged_by_its_bits(project, base, bits, precision):
    (found,) = project.recipe(variant(base, f"bits: {bits}")).variants
    assert found.options == WeightOptions(bits=bits)
    assert found.precision == precision


def test_the_mode_alone_names_a_variant_of_four_bits(project, base):
    (found,) = project.recipe(f"{base}quantization: weight_only\n").variants
    assert (found.name, found.precision) == ("int4", "int4")


@pytest.mark.parametrize("options", ["bits: 5", "bits: true"])
def test_values_that_no_kernel_takes_are_faults(project, base, options):
    with pytest.raises(RecipeErrors):
        project.recipe(variant(base, options))


def test_zero_points_are_either_found_or_not_kept(project, base):
    with pytest.raises(RecipeErrors, match="'hqq', which finds zero points") as caught:
        project.recipe(variant(base, "method: hqq, symmetric: true"))
    assert "write `method: rtn`" in str(caught.value)


def test_hqq_finds_scales_by_itself_but_for_nodes_that_are_rounded_to_the_nearest(project, base):
    text = "method: hqq, scales: search"
    with pytest.raises(RecipeErrors, match="'hqq', which finds scales by itself"):
        project.recipe(variant(base, text))
    project.recipe(variant(base, f"{text}, nodes_in_8_bits: ['*head*']"))
    project.recipe(variant(base, f"{text}, op_types: [MatMul, Gather]"))


def test_gptq_asks_for_data(project, base):
    with pytest.raises(RecipeErrors, match="'gptq', and no calibration\\.data is named"):
        project.recipe(variant(base, "method: gptq"))
    data = "calibration: {data: models/model.py:samples}\n"
    (found,) = project.recipe(variant(base, "method: gptq") + data).variants
    assert found.options.method == "gptq"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ("bits: 8, nodes_in_8_bits: [a]", "has `nodes_in_8_bits`, and `bits: 8` for all others"),
        ("sensitive_in_8_bits: 0.2", "has `sensitive_in_8_bits`, and nothing ranks its nodes"),
    ],
)
def test_mixed_bits_need_four_of_the_others_and_a_ranking(project, base, options, what):
    with pytest.raises(RecipeErrors, match=re.escape(what)):
        project.recipe(variant(base, options))


def test_nodes_are_ranked_on_the_data_of_fidelity_where_nothing_generates(project, base):
    data = "fidelity: {data: models/model.py:samples}\n"
    (found,) = project.recipe(variant(base, "sensitive_in_8_bits: 0.2") + data).variants
    assert found.options.sensitive_in_8_bits == 0.2
