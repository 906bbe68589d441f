from onnxbuild.onnxkit.timing.rounds import warmup_rounds


def rounds(*ms):
    return [[round(each * 1e6)] * 3 for each in ms]


def wave(count):
    return [10 + 0.1 * (n % 3) for n in range(count)]


def test_a_slow_start_is_left_out():
    slow = [20, 18, 16, 14, 13, 12, 11.5, 11, 10.5, 10.2]
    assert warmup_rounds({"a": rounds(*slow, *wave(50))}) == 10


def test_what_is_steady_is_kept():
    assert warmup_rounds({"a": rounds(*wave(60))}) <= 5


def test_half_of_it_at_most_is_left_out_however_it_goes_on():
    falling = [100 - n for n in range(60)]
    assert warmup_rounds({"a": rounds(*falling)}) <= 30
