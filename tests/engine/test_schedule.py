from onnxbuild.engine.schedule import guess_bytes


def test_a_step_that_never_ran_here_is_taken_to_need_more_the_larger_its_inputs():
    assert guess_bytes(0) == guess_bytes(1 << 20) == 1 << 30
    assert guess_bytes(3 << 30) == 5 * (3 << 30) // 2
