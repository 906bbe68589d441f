import dataclasses
from collections import OrderedDict, namedtuple

import pytest
import torch

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.modules.module_outputs import named_outputs

PARTS = [torch.tensor(n) for n in range(9)]
pair = namedtuple("pair", "z a")  # noqa: PYI024


@dataclasses.dataclass
class Out:
    z: object
    a: object


def numbers(value, declared=(), **options):
    return {name: int(each) for name, each in named_outputs(value, declared, **options).items()}


def refused(value, *declared):
    with pytest.raises(StepError) as caught:
        named_outputs(value, declared, "m:export")
    return caught.value


NESTED = {
    "z": PARTS[0],
    "a": (PARTS[1], None, [PARTS[2]]),
    "m": pair(PARTS[3], PARTS[4]),
    "d": Out(PARTS[5], {"y": PARTS[6]}),
    "o": OrderedDict(b=PARTS[7], a=PARTS[8]),
}


def test_outputs_have_their_keys_as_names_joined_by_dots():
    assert numbers(NESTED) == {
        "z": 0, "a.0": 1, "a.2.0": 2, "m.z": 3, "m.a": 4, "d.z": 5, "d.a.y": 6, "o.b": 7, "o.a": 8,
    }  # fmt: skip


def test_any_of_them_are_taken_by_key_in_the_order_declared():
    found = numbers(NESTED, ("o.a", "z", "m.z"))
    assert list(found.items()) == [("o.a", 8), ("z", 0), ("m.z", 3)]


@pytest.mark.parametrize(
    "value", [{"z": PARTS[0], "a": PARTS[1]}, pair(*PARTS[:2]), Out(*PARTS[:2])]
)
def test_mappings_named_tuples_and_dataclasses_go_by_key(value):
    assert list(numbers(value, ("a", "z")).items()) == [("a", 1), ("z", 0)]


def test_huggingfaces_outputs_go_by_key():
    transformers = pytest.importorskip("transformers")
    output = transformers.modeling_outputs.BaseModelOutputWithPooling(
        last_hidden_state=PARTS[0], pooler_output=PARTS[1], attentions=None
    )
    assert numbers(output) == {"last_hidden_state": 0, "pooler_output": 1}
    names = ("pooler_output", "last_hidden_state")
    assert list(numbers(output, names)) == list(names)
    assert refused(output, "attentions").what == (
        "`outputs` names 'attentions', which is no key of what forward returns; its keys are "
        "last_hidden_state, pooler_output"
    )


def test_tuples_and_lists_go_by_position():
    value = (PARTS[0], [None, PARTS[1]])
    assert numbers(value) == {"output_0": 0, "output_1": 1}
    assert numbers(value, ("b", "a")) == {"b": 0, "a": 1}
    assert numbers(PARTS[2], ("only",)) == {"only": 2}
    error = refused(value, "a")
    assert error.what == (
        "`outputs` names 1 (a) but forward returns 2 tensors when flattened, which have no keys "
        "and go by position"
    )
    assert error.fix.startswith(
        "name 2, or some by their places (`outputs: [output_0]`), or return"
    )


def test_a_wrong_name_is_reported_with_the_keys_and_the_nearest():
    value = {"last_hidden_state": PARTS[0], "pooler_output": PARTS[1], "none": None}
    error = refused(value, "pooled_output")
    assert error.what == (
        "`outputs` names 'pooled_output', which is no key of what forward returns; its keys are "
        "last_hidden_state, pooler_output"
    )
    assert error.fix == "did you mean 'pooler_output'?"
    assert refused(value, "logits").fix.startswith(
        "write `outputs: [last_hidden_state, pooler_output]` or some of them, in any order"
    )
    assert "'none', which forward returns as None; its keys are " in refused(value, "none").what


def test_what_nobody_asked_for_need_not_be_a_tensor():
    value = {"logits": PARTS[0], "cache": object()}
    assert numbers(value, ("logits",)) == {"logits": 0}
    error = refused(value)
    assert error.what.startswith("forward's 'cache' is an object; expected a tensor")
    assert error.fix == "leave it out: `outputs: [logits]`"
    assert refused(value, "cash").what.endswith("; its keys are logits")
    with pytest.raises(StepError) as caught:
        named_outputs(value, inputs=("logits",))
    assert caught.value.fix == "leave it out: `outputs: [logits_out]`"


def test_an_output_that_is_no_tensor_is_named_by_its_path():
    assert refused((PARTS[0], [PARTS[1], "hi"])).what.startswith("forward's output[1][1] is a str")
    assert refused((None,)).what == "forward returned no tensor"
    assert refused({}).what == "forward returned no tensor"


def test_a_key_that_is_an_inputs_name_gives_way():
    value = {"y": PARTS[0], "state": PARTS[1]}
    assert numbers(value, inputs=("x", "state")) == {"y": 0, "state_out": 1}
    assert numbers(value, ("state_out",), inputs=("x", "state")) == {"state_out": 1}
