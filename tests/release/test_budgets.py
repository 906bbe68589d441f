from dataclasses import replace

import pytest

from onnxbuild.core.errors import EXIT_GATE, BudgetError
from onnxbuild.expansion.limits import Budgets
from onnxbuild.release.budgets import check_budgets
from onnxbuild.release.previous import Previous
from onnxbuild.release_format.figures import Figures, Latency

HOST = {"cpu": "one", "cores": "2"}
OLD = Figures(
    precision="int8",
    model_bytes=1000,
    errors={"cpu": 0.5},
    cosines={"cpu": 0.99},
    equals={"cpu": 0.96},
    scores={"cpu": 0.98},
    latencies=(
        Latency("cpu", "batch=1", p50_ms=1.0, low_ms=0.9, high_ms=1.1, ratio=0.5),
        Latency("cpu", "batch=8", p50_ms=4.0, low_ms=3.9, high_ms=4.1, ratio=0.5),
    ),
)
ALL = Budgets(
    size_increase=0.05, latency_ratio_increase=0.10, accuracy_drop=0.005, error_increase=0.2
)


def check(new, budgets=ALL, *, host=HOST, old=OLD):
    previous = Previous("x-1.0", HOST, {"int8": old})
    return check_budgets({"int8": budgets}, {"int8": new}, previous, host)


def slower(ratio):
    return replace(OLD, latencies=(OLD.latencies[0], replace(OLD.latencies[1], ratio=ratio)))


BREACHES = {
    "size": (
        replace(OLD, model_bytes=1100),
        "variant 'int8': size 1,000 -> 1,100 bytes is 10 % more; the budget is 5 % (size_increase)",
    ),
    "latency": (
        slower(0.6),
        "variant 'int8': latency on cpu at batch=8 0.5 -> 0.6 of PyTorch's is 20 % more; the budget is 10 % (latency_ratio_increase)",
    ),
    "accuracy": (
        replace(OLD, scores={"cpu": 0.97}),
        "variant 'int8': score on cpu 0.98 -> 0.97 is 0.01 less; the budget is 0.005 (accuracy_drop)",
    ),
    "error": (
        replace(OLD, errors={"cpu": 0.75}),
        "variant 'int8': max abs error on cpu 0.5 -> 0.75 is 50 % more; the budget is 20 % (error_increase)",
    ),
    "ids": (
        replace(OLD, equals={"cpu": 0.94}),
        "variant 'int8': share of elements that differ on cpu 0.04 -> 0.06 is 50 % more; the budget is 20 % (error_increase)",
    ),
}


@pytest.mark.parametrize("case", BREACHES)
def test_a_breach_is_named_with_its_value_and_its_bound(case):
    new, sentence = BREACHES[case]
    with pytest.raises(BudgetError) as caught:
        check(new)
    assert caught.value.exit_code == EXIT_GATE
    assert str(caught.value).splitlines()[:2] == [
        "worse than x-1.0 by more than allowed",
        f"  {sentence}",
    ]
    assert check(new, Budgets()) == ()


def test_all_breaches_are_reported_at_once():
    new = replace(slower(2.0), model_bytes=2000, errors={"cpu": 5.0}, scores={"cpu": 0.1})
    with pytest.raises(BudgetError) as caught:
        check(new)
    assert str(caught.value).count("variant 'int8'") == 4


def test_latencies_of_two_kinds_of_machine_are_not_compared_and_that_is_said():
    (notice,) = check(slower(9.0), host={"cpu": "another"})
    assert "another kind of machine" in notice
    assert check(slower(9.0), Budgets(size_increase=0.0), host={"cpu": "another"}) == ()


def test_what_has_no_counterpart_is_not_judged_and_that_is_said():
    no_pytorch = replace(OLD, latencies=(replace(OLD.latencies[0], ratio=None),))
    alone = "latency of int8 is not compared with x-1.0: it is measured next to one baseline at no point of both"
    assert check(no_pytorch) == check(OLD, old=no_pytorch) == (alone,)
    assert check(replace(OLD, scores={}, errors={"cuda": 9.0})) == (
        "score of int8 is not compared with x-1.0: no target has one in both",
    )
    assert check(replace(OLD, equals={}, errors={"cuda": 9.0})) == (
        "error of int8 is not compared with x-1.0: no target has one in both",
    )
    assert check(replace(no_pytorch, scores={}, equals={}, errors={}), Budgets()) == ()
    (notice,) = check(replace(OLD, latencies=()))
    assert notice == "latency of int8 is not compared: no benchmark measures it"
    assert check(replace(OLD, latencies=()), Budgets(size_increase=0.0)) == ()


def test_new_and_lost_variants_are_reported():
    previous = Previous("x-1.0", HOST, {"int8": OLD})
    notices = check_budgets({"fp16": ALL}, {"fp16": OLD}, previous, HOST)
    assert notices == (
        "variant 'fp16' is not in x-1.0: nothing to compare",
        "variant 'int8' of x-1.0 is no longer there",
    )
