"""Which token follows: the most likely, a drawn one, never a suppressed one."""

from __future__ import annotations

import numpy as np

from onnxbuild.onnxkit.loaders.decoding import chosen
from onnxbuild.onnxkit.modules.pytorch_tokens import recomputed

SHARES = [0.5, 0.3, 0.15, 0.05]
LOGITS = np.log(np.array([SHARES], np.float32))


def drawn(count, **rules):
    return [int(chosen(LOGITS, step, **rules)[0]) for step in range(count)]


def test_the_most_likely_token_follows_or_one_is_drawn_by_its_share():
    assert set(drawn(9)) == {0}
    found = drawn(2000, temperature=1.0, seed=7)
    assert found == drawn(2000, temperature=1.0, seed=7)
    assert found != drawn(2000, temperature=1.0, seed=8)
    assert np.abs(np.bincount(found, minlength=4) / 2000 - SHARES).max() < 0.04
    assert np.mean(np.array(drawn(300, temperature=0.1)) == 0) > 0.97


def test_top_p_leaves_the_most_likely_tokens_that_have_this_share():
    assert set(drawn(300, temperature=1.0, top_p=0.6)) == {
        0,
        1,
    }  # the first has 0.5, less than 0.6
    assert set(drawn(300, temperature=1.0, top_p=0.5)) == {0}
    assert set(drawn(9, temperature=1.0, top_p=0.0)) == {0}


def test_a_suppressed_token_never_follows_and_one_at_the_beginning_not_first():
    rules = {"suppress_tokens": [0], "begin_suppress_tokens": [1]}
    assert drawn(3, **rules) == [2, 1, 1]
    assert 0 not in drawn(300, temperature=2.0, **rules)


def test_all_rows_of_a_batch_draw_as_each_alone_and_rounding_moves_no_token():
    random = np.random.default_rng(0)
    logits = random.normal(size=(200, 50)).astype(np.float32)
    rules = {"temperature": 0.9, "top_p": 0.95, "seed": 3}
    together = chosen(logits, 5, **rules)
    assert together.tolist() == [int(chosen(each[None], 5, **rules)[0]) for each in logits]
    noise = random.normal(size=logits.shape).astype(np.float32) * 1e-6
    assert together.tolist() == chosen(logits + noise, 5, **rules).tolist()


def test_a_text_that_is_computed_anew_for_each_token_goes_on_by_the_same_draws():
    rules = {"temperature": 1.0, "seed": 7}
    assert recomputed(lambda _: LOGITS, [1], 20, rules) == drawn(20, **rules)
