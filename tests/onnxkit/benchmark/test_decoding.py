"""Points of a model with a state: what kind of call each is, texts after prompts, and calls with the state in place."""

import pickle

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxbuild.core.axis import Axis, Point
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.core.state import Growth
from onnxbuild.onnxkit.benchmark.decoding import (
    StatefulFeeds,
    is_text,
    point_facts,
    stateful_call,
    stateful_feeds,
    with_texts,
)
from onnxbuild.onnxkit.data.feeds import make_feeds
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.sessions.open import open_session
from tests.onnxkit.models import model, value, weight

GROWTH = Growth("past", "sequence")
INPUTS = (
    DummyInput("ids", "int64", ("batch", "sequence"), high=9),
    DummyInput("mask", "int64", ("batch", "past + sequence"), mask="left"),
    DummyInput("past", "float32", ("batch", "past", 4), fed_by="present", growth=GROWTH),
)
AXES = (Axis("batch", 1, 4, 2), Axis("sequence", 1, 8, 3), Axis("past", 0, 16, 5))


def point(batch, sequence, past):
    sizes = {"batch": batch, "sequence": sequence, "past": past}
    return Point(",".join(f"{name}={size}" for name, size in sizes.items()), sizes)


PROMPT, LATER = point(2, 3, 0), point(2, 1, 5)


def test_a_text_is_measured_after_each_point_without_a_past():
    found = with_texts([PROMPT, LATER], INPUTS, AXES, 4, "x")
    assert [each.name for each in found] == [PROMPT.name, f"{PROMPT.name},tokens=4", LATER.name]
    assert [is_text(each) for each in found] == [False, True, False]
    assert with_texts([PROMPT], INPUTS, AXES, 0, "x") == (PROMPT,)


def test_a_text_that_no_point_begins_or_that_the_state_has_no_room_for_is_an_error():
    with pytest.raises(StepError, match="begins a text") as caught:
        with_texts([LATER], INPUTS, AXES, 4, "x")
    assert "`{sequence: 16, past: 0}`" in caught.value.fix
    with pytest.raises(StepError, match="the state reaches 17; axis 'past' ends at 16") as caught:
        with_texts([PROMPT], INPUTS, AXES, 15, "x")
    assert "`past: {max: 17}`" in caught.value.fix


def test_a_point_says_what_call_it_is_and_what_its_state_takes():
    facts = [point_facts(each, INPUTS) for each in (PROMPT, LATER, point(1, 2, 5))]
    assert [each["kind"] for each in facts] == ["prefill", "decode", "call"]
    assert [each["state_bytes"] for each in facts] == [2 * 3 * 16, 2 * 6 * 16, 7 * 16]
    (_, text) = with_texts([PROMPT], INPUTS, AXES, 4, "x")
    assert point_facts(text, INPUTS) == {"kind": "tokens", "state_bytes": 2 * 6 * 16}
    assert point_facts(PROMPT, INPUTS[:2]) == {}


def decoder(folder):
    """After token n comes 3 n + 1, modulo 9; its state is the tokens so far, four times each."""
    table = np.eye(9, dtype=np.float32)[[(3 * n + 1) % 9 for n in range(9)]]
    nodes = [
        helper.make_node("Cast", ["ids"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["floats", "last"], ["columns"]),
        helper.make_node("Concat", ["columns"] * 4, ["new"], axis=2),
        helper.make_node("Concat", ["past", "new"], ["present"], axis=1),
        helper.make_node("Gather", ["table", "ids"], ["logits"]),
    ]
    inputs = [value("ids", ["batch", "sequence"], TensorProto.INT64)]
    inputs += [
        value("mask", ["batch", "all"], TensorProto.INT64),
        value("past", ["batch", "past", 4]),
    ]
    outputs = [value("logits", ["batch", "sequence", 9]), value("present", ["batch", "all", 4])]
    save_model(
        model(nodes, inputs, outputs, [weight("table", table), weight("last", np.array([2]))]),
        folder,
    )
    return open_session(folder)


class Recorded:
    """A session that keeps how long the state was that went into each call."""

    def __init__(self, session):
        self._session = session
        self.lengths = []

    def __getattr__(self, name):
        return getattr(self._session, name)

    def run_with_iobinding(self, binding):
        self._session.run_with_iobinding(binding)
        self.lengths.append(binding.get_outputs()[1].shape()[1])


def test_a_call_of_a_text_feeds_each_state_into_the_next_call(tmp_path):
    session = Recorded(decoder(tmp_path))
    (_, text) = with_texts([PROMPT], INPUTS, AXES, 4, "x")
    feeds = stateful_feeds(make_feeds(INPUTS, PROMPT.sizes, 0), INPUTS, AXES, text, "logits")
    assert isinstance(feeds, StatefulFeeds)
    call = stateful_call(session, feeds, feeds.decoding)
    call()
    assert session.lengths == [3, 4, 5, 6]
    call()
    assert session.lengths[4:] == [3, 4, 5, 6]


def test_feeds_of_one_call_of_a_state_that_grows_are_plain():
    feeds = make_feeds(INPUTS, LATER.sizes, 0)
    assert stateful_feeds(feeds, INPUTS, AXES, LATER, "logits") is feeds


def test_feeds_with_a_state_go_over_the_wire_whole():
    (_, text) = with_texts([PROMPT], INPUTS, AXES, 4, "x")
    feeds = stateful_feeds(make_feeds(INPUTS, PROMPT.sizes, 0), INPUTS, AXES, text, "logits")
    again = pickle.loads(pickle.dumps(feeds))
    assert again.decoding == feeds.decoding
    assert again.keys() == feeds.keys()
