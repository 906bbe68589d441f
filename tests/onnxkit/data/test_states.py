"""A state in feeds: empty at first, then what the last call gave; positions count up."""

import numpy as np
import pytest

from onnxbuild.core.axis import Axis
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.core.state import Growth
from onnxbuild.onnxkit.data.feeds import check_feeds, make_feeds
from onnxbuild.onnxkit.data.greedy import RolesError, roles_of
from onnxbuild.onnxkit.data.states import decoding_points, pieces
from onnxbuild.onnxkit.loaders.decoding import decode

IDS = DummyInput("ids", "int64", ("batch", "sequence"), high=9)
MASK = DummyInput("mask", "int64", ("batch", "past + sequence"), mask="left")
POSITIONS = DummyInput("positions", "int64", ("batch", "sequence"), arange="past")
GROWTH = Growth("past", "sequence")
PAST = DummyInput("past", "float32", ("batch", "past", 1), fed_by="present", growth=GROWTH)
INPUTS = (IDS, MASK, POSITIONS, PAST)
AXES = (Axis("batch", 1, 4, 2), Axis("sequence", 1, 8, 3), Axis("past", 0, 16, 5))


def model(feeds):
    """The next token is the sum of all tokens that the mask leaves, and of the position, modulo 9."""
    present = np.concatenate([feeds["past"], feeds["ids"][..., None].astype(np.float32)], axis=1)
    seen = (present[..., 0] * feeds["mask"]).cumsum(1)[:, -feeds["ids"].shape[1] :]
    wanted = (seen + feeds["positions"]).astype(int) % 9
    return {"logits": np.eye(9, dtype=np.float32)[wanted], "present": present}


def test_positions_count_up_from_the_size_of_an_axis():
    feeds = make_feeds(INPUTS, {"batch": 2, "sequence": 3, "past": 4}, 0)
    assert feeds["positions"].tolist() == [[4, 5, 6], [4, 5, 6]]
    assert feeds["positions"].flags.c_contiguous


def test_a_sample_without_the_state_is_a_first_call():
    whole = {
        "ids": np.ones((2, 3), int),
        "mask": np.ones((2, 3), int),
        "positions": np.ones((2, 3), int),
    }
    assert check_feeds(whole, INPUTS, "x", AXES)["past"].shape == (2, 0, 1)


def test_a_sample_with_a_part_of_the_state_names_what_is_missing():
    two = (*INPUTS, DummyInput("other", "float32", ("batch", "past", 1), fed_by="new"))
    given = make_feeds(INPUTS, {"batch": 1, "sequence": 1, "past": 2}, 0)
    with pytest.raises(StepError, match="other"):
        check_feeds(given, two, "x", AXES)


def test_a_prompt_in_pieces_gives_what_the_whole_prompt_gives():
    whole = make_feeds(INPUTS, {"batch": 2, "sequence": 6, "past": 0}, 0)
    parts = list(pieces(whole, INPUTS, (3, 4), model))
    assert [each["ids"].shape[1] for each in parts] == [3, 1, 2]
    assert [each["past"].shape[1] for each in parts] == [0, 3, 4]
    assert [each["positions"][0].tolist() for each in parts] == [[0, 1, 2], [3], [4, 5]]
    found = np.concatenate([model(each)["logits"] for each in parts], axis=1)
    assert np.array_equal(found, model(whole)["logits"])


def test_a_state_that_grows_is_tried_after_one_element_and_after_the_most():
    points = {each.name: each.sizes for each in decoding_points(INPUTS, AXES)}
    assert points["decode-first"] == {"batch": 2, "sequence": 1, "past": 1}
    assert points["decode-last"] == {"batch": 2, "sequence": 1, "past": 16}
    assert list(decoding_points((IDS,), AXES)) == []


def test_padded_prompts_of_a_batch_go_on_as_each_does_alone():
    prompts = [np.array([1, 2, 3]), np.array([4])]
    decoder = roles_of(INPUTS).decoder("logits")

    def tokens(batch):
        steps = [each.argmax(-1) for each in decode(model, decoder, batch, 6)]
        return np.stack(steps, 1).tolist()

    assert tokens(prompts) == [*tokens(prompts[:1]), *tokens(prompts[1:])]
    assert tokens(prompts)[1] == [4, 0, 1, 3, 7, 6]


def test_forced_tokens_are_gone_on_with():
    decoder = roles_of(INPUTS).decoder("logits")
    forced = np.array([[5, 5]])
    first, second = decode(model, decoder, [np.array([1])], 2, forced=forced)
    assert [int(each.argmax()) for each in (first, second)] == [1, 7]


@pytest.mark.parametrize("at_once", [2, 3, 5, 9])
def test_forced_tokens_in_chunks_give_what_they_give_one_by_one(at_once):
    decoder = roles_of(INPUTS).decoder("logits")
    prompts, forced = [np.array([1, 2, 3]), np.array([4])], np.arange(12).reshape(2, 6) % 8
    sizes = []

    def counting(feeds):
        sizes.append(feeds["ids"].shape[1])
        return model(feeds)

    one_by_one = list(decode(model, decoder, prompts, 6, forced=forced))
    in_chunks = list(decode(counting, decoder, prompts, 6, forced=forced, at_once=at_once))
    assert np.array_equal(in_chunks, one_by_one)
    assert (len(in_chunks), sum(sizes), max(sizes[1:])) == (6, 3 + 5, min(at_once, 5))


@pytest.mark.parametrize(
    ("inputs", "clause"),
    [
        ((IDS, MASK), "it has no `state`"),
        ((MASK, POSITIONS, PAST), "one input must be ids of tokens, and none may be"),
        (
            (*INPUTS, DummyInput("pixels", "float32", ("batch", 3))),
            "input 'pixels' is neither ids",
        ),
        (
            (*INPUTS, DummyInput("types", "int64", ("batch", "sequence"))),
            "'ids' and 'types' may be",
        ),
    ],
)
def test_inputs_that_decoding_cannot_feed_are_named(inputs, clause):
    with pytest.raises(RolesError, match=clause):
        roles_of(inputs)
