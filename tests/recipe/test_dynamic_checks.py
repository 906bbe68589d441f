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


def test_the_defaults_ask_for_nothing(project, base):
    (found,) = project.recipe(variant(base, "balance: false, rounding: nearest")).variants
    assert found.options.balance is False
