"""What templates write of values and signatures: literals of each language, tables, whole files as a library would write them."""

from types import SimpleNamespace

import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from onnxbuild.onnxkit.bundles.manifest import Value
from onnxbuild.onnxkit.mlflow.content import mlmodel_text
from onnxbuild.onnxkit.packages.contents import signature_table, yaml_value
from onnxbuild.onnxkit.packages.signature import signature_of, with_labels
from tests.examples import examples

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["yes", "null", "3.11", "1e3", "a: b", "- a", "#", "é\n", " a ", "''", "{x}", "0x1"]
)
SCALARS = st.none() | st.booleans() | st.integers() | TEXTS
PLAIN = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)


def dumped(value):
    return yaml.safe_dump(value, sort_keys=True, allow_unicode=True, width=1 << 20)


@pytest.mark.sampled
@settings(max_examples=examples(50), phases=[Phase.generate])
@given(PLAIN)
def test_a_value_of_yaml_stands_after_its_key_as_the_library_writes_it(value):
    assert f"key:{yaml_value(value)}\n" == dumped({"key": value})
    assert f"outer:\n  key:{yaml_value(value, 2)}\n" == dumped({"outer": {"key": value}})


@pytest.mark.sampled
@settings(max_examples=examples(50), phases=[Phase.generate])
@given(
    providers=st.lists(TEXTS | st.tuples(TEXTS, st.dictionaries(TEXTS, TEXTS)).map(list)),
    session=st.dictionaries(TEXTS, SCALARS, min_size=1),
    metadata=st.dictionaries(TEXTS, PLAIN),
    words=st.tuples(TEXTS, TEXTS, TEXTS),
    has_example=st.booleans(),
)
def test_mlmodel_is_what_the_library_writes_of_its_content(
    providers, session, metadata, words, has_example
):
    example = {"artifact_path": "a.json", "serving_input_path": "b.json", "type": "ndarray"}
    content = {
        "flavors": {
            "onnx": {
                "code": None,
                "data": "model.onnx",
                "onnx_session_options": session,
                "onnx_version": words[0],
                "providers": providers,
            },
            "python_function": {
                "data": "model.onnx",
                "env": {"conda": "conda.yaml", "virtualenv": "python_env.yaml"},
                "loader_module": "mlflow.onnx",
                "python_version": words[1],
            },
        },
        "metadata": metadata,
        "mlflow_version": "3.17.2",
        "model_size_bytes": 3,
        "model_uuid": words[2],
        "signature": {"inputs": "[]", "outputs": '[{"name": "é"}]', "params": None},
        "utc_time_created": "1980-01-01 00:00:00.000000",
        **({"saved_input_example_info": example} if has_example else {}),
    }
    assert mlmodel_text(content) == dumped(content)


def signature(*outputs, golden=(), axes=None):
    return signature_of(
        SimpleNamespace(
            name="demo",
            variant="int8",
            file="model.onnx",
            inputs=(Value("a|b", "float32", ("batch", 4)),),
            outputs=outputs,
            dynamic_axes=axes or {},
        ),
        golden,
    )


def test_without_labels_axes_and_golden_inputs_there_is_one_table():
    assert signature_table(signature(Value("y", "float32", None))) == (
        "| | name | type | shape |\n"
        "|---|---|---|---|\n"
        "| input | `a\\|b` | float32 | `[batch, 4]` |\n"
        "| output | `y` | float32 | `[...]` |\n"
    )


def test_long_lists_of_labels_are_shown_in_part():
    labels = tuple(f"class {n}" for n in range(1000))
    axes = {"batch": {"min": 1, "max": 8, "example": 2, "multiple_of": 1}}
    text = signature_table(
        signature(Value("y", "float32", ("batch", 1000), labels), golden=("min",), axes=axes)
    )
    assert "| 1000: class 0, class 1, " in text
    assert "class 10, ..., class 999 |" in text
    assert "class 11" not in text
    assert text.endswith("| `batch` | 1 to 8 |\n\nGolden inputs: `min`.\n")


def test_labels_belong_to_the_floats_that_have_as_many_places():
    found = with_labels(
        signature(
            Value("scores", "float16", ("batch", 2)), Value("ids", "int64", ("batch", 2)),
            Value("other", "float32", ("batch", 3)), Value("text", "string", (2,)),
        ),
        ("no", "yes"),
    )  # fmt: skip
    assert found.labels == {"scores": ("no", "yes")}
