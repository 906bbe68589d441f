import numpy as np

from onnxbuild.onnxkit.benchmark.runners import bind_io, copy_times_ms
from onnxbuild.onnxkit.sessions.open import open_session
from tests.steps.graphs import digits


def test_a_bound_run_gives_what_a_plain_one_does(tmp_path):
    session = open_session(digits(tmp_path))
    feeds = {"image": np.random.default_rng(0).random((3, 1, 8, 8), np.float32)}
    call = bind_io(session, feeds)
    (plain,) = session.run(None, feeds)
    for _ in range(2):
        np.testing.assert_array_equal(call().copy_outputs_to_cpu()[0], plain)


def test_copies_take_time_but_not_much(tmp_path):
    session = open_session(digits(tmp_path))
    feeds = {"image": np.ones((3, 1, 8, 8), np.float32)}
    inward, outward = copy_times_ms(session, feeds)
    assert 0 < inward < 100
    assert 0 < outward < 100
