import pytest

from onnxbuild.core.errors import RecipeErrors


def variant(base, options):
    return f"{base}quantization:\n  int8: {{mode: dynamic, {options}}}\n"


@pytest.mark.parametrize("option", ["balance: true", "rounding: gptq"])
def test_what_goes_by_data_asks_for_it(project, base, option):
    with pytest.raises(RecipeErrors, match=f"has `{option}`, and no calibration\\.data is named"):
        project.recipe(variant(base, option))
    data = "calibration: {data: models/model.py:samples}\n"
    (found,) = project.recipe(variant(base, option) + data).variants
    assert found.options.balance == (option == "balance: true")


def test_gptq_rounds_to_int8_alone(project, base):
    text = variant(base, "rounding: gptq, weight_type: uint8")
    with pytest.raises(RecipeErrors, match="which rounds to int8, and weight_type 'uint8'"):
        project.recipe(text + "calibration: {data: models/model.py:samples}\n")


@pytest.mark.parametrize("mode", ["dynamic", "static"])
def test_pairs_are_for_signed_weights(project, base, mode):
    data = "calibration: {data: models/model.py:samples}\n"
    text = variant(base, "reduce_range: pairs, weight_type: uint8").replace(
        "mode: dynamic", f"mode: {mode}"
    )
    with pytest.raises(RecipeErrors, match="which is for signed weights, and weight_type 'uint8'"):
        project.recipe(text + data)
    (found,) = project.recipe(text.replace("uint8", "int8") + data).variants
    assert found.options.reduce_range == "pairs"


def test_the_defaults_ask_for_nothing(project, base):
    (found,) = project.recipe(variant(base, "balance: false, rounding: nearest")).variants
    assert found.options.balance is False
