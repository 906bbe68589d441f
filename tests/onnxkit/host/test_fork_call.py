import os
import signal

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.host.fork_call import call_forked


def forked(call):
    return call_forked(call, "variant 'x'", "net:benchmark")


def test_the_call_runs_elsewhere_and_its_value_comes_back():
    assert forked(lambda: ("value", os.getpid())) != ("value", os.getpid())
    assert forked(lambda: [1, {"a": 2.5}]) == [1, {"a": 2.5}]


def test_a_step_error_comes_back_whole():
    def fail():
        raise StepError("no such model", where="net:x", fix="write it")

    with pytest.raises(StepError) as caught:
        forked(fail)
    assert (caught.value.what, caught.value.where, caught.value.fix) == (
        "no such model",
        "net:x",
        "write it",
    )


def test_a_process_that_dies_is_reported_with_what_killed_it(capfd):
    with pytest.raises(StepError, match="variant 'x', alone in a process, was killed by SIGKILL"):
        forked(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(StepError, match="ended with 1"):
        forked(lambda: 1 / 0)
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_what_the_call_writes_stays_its_own():
    values = []
    forked(lambda: values.append(1))
    assert values == []
