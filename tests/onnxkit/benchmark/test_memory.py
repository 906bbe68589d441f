import threading
import time

import pytest

from onnxbuild.onnxkit.benchmark import candidate
from onnxbuild.onnxkit.benchmark.candidate import peak_growth_bytes

SIZE_BYTES = 64 << 20


def test_memory_that_is_kept_counts():
    held, grown = peak_growth_bytes(lambda: bytearray(b"x") * SIZE_BYTES)
    assert len(held) == SIZE_BYTES
    assert SIZE_BYTES * 0.9 < grown < SIZE_BYTES * 1.5


def test_memory_that_is_freed_before_the_end_counts_too():
    def passing():
        import numpy as np

        for _ in range(5):  # long enough for the sampler, numpy lets other threads run
            np.ones(SIZE_BYTES // 8).cumsum()

    _, grown = peak_growth_bytes(passing)
    assert grown > SIZE_BYTES * 0.9


def test_a_peak_that_could_not_be_sampled_is_an_error_and_no_number(monkeypatch):
    plain, here = candidate._resident, threading.current_thread()

    def resident() -> int:
        if threading.current_thread() is not here:
            raise OSError(38, "Function not implemented")
        return plain()

    monkeypatch.setattr(candidate, "_resident", resident)
    with pytest.raises(OSError, match="Function not implemented"):
        peak_growth_bytes(lambda: time.sleep(0.05))
