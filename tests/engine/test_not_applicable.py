"""Steps that are not applicable to a model: steps for which they are optional go on, those that need them fail."""

import dataclasses

from onnxbuild.core.action import ActionResult
from onnxbuild.core.errors import StepError
from onnxbuild.core.event import StepBlocked, StepFailed, StepLeftOut
from onnxbuild.engine.plan import plan
from tests.fakes.world import CATALOG, World, graph, step


def search(*more, not_applicable=("b",)):
    """a -> b -> b2, a -> c; `choose` takes b2 and c, both optional."""
    choose = step("choose", "b2", "c")
    choose = dataclasses.replace(choose, optional_inputs=frozenset(choose.inputs))
    return graph(
        step("a"),
        step("b", "a", value=1, not_applicable="b" in not_applicable),
        step("b2", "b"),
        step("c", "a", not_applicable="c" in not_applicable),
        choose,
        *more,
    )


def test_what_can_spare_a_step_that_is_not_applicable_goes_on_without_it():
    world = World()
    report = world.build(search())
    assert report.exit_code == 0
    assert world.executor.started == ["a", "b", "c", "choose"]
    assert list(report.actions["choose"].inputs) == ["in1"]
    (left,) = world.sink.of(StepLeftOut)
    assert (left.step, left.what, left.followers) == ("b", "nothing to do", ("b2",))
    assert world.sink.of(StepBlocked) == []


def test_that_it_is_not_applicable_is_kept_like_a_result_and_said_again():
    world = World()
    world.build(search())
    again = world.build(search())
    assert world.executor.started == []
    assert again.exit_code == 0
    assert len(world.sink.of(StepLeftOut)) == 1
    (kept,) = (each for each in again.results.values() if each.not_applicable is not None)
    assert ActionResult.from_json(kept.to_json()) == kept


def test_a_step_that_was_not_applicable_and_is_no_longer_comes_back():
    world = World()
    world.build(search())
    report = world.build(search(not_applicable=()))
    assert world.executor.started == ["b", "b2", "choose"]
    assert set(report.actions["choose"].inputs) == {"in0", "in1"}


def test_with_all_of_its_inputs_not_applicable_it_still_runs():
    world = World()
    report = world.build(search(not_applicable=("b", "c")))
    assert report.actions["choose"].inputs == {}
    assert report.exit_code == 0


def test_a_step_that_is_not_applicable_that_someone_needs_is_a_failure():
    world = World()
    report = world.build(search(step("wanted", "b2")))
    assert report.exit_code == 1
    (failed,) = world.sink.of(StepFailed)
    assert (failed.step, failed.what, failed.fix) == ("b", "nothing to do", "leave it out")
    assert report.blocked == {"b2": "b", "wanted": "b"}
    assert world.sink.of(StepLeftOut) == []


def test_with_keep_going_what_can_spare_it_is_built_next_to_that_failure():
    world = World()
    report = world.build(search(step("wanted", "b2")), keep_going=True)
    assert report.exit_code == 1
    assert "choose" in report.results


def test_any_other_failure_is_spared_by_nobody():
    world = World()
    world.executor.fail["c"] = StepError("broken data")
    report = world.build(search(), keep_going=True)
    assert report.exit_code == 1
    assert report.blocked == {"choose": "c"}


def test_the_plan_says_what_is_left_out():
    world = World()
    chain = search()
    world.build(chain)
    ports = world.store, world.files, world.history, world.host
    named = dict(zip(("store", "fingerprints", "history", "host"), ports, strict=True))
    planned = {each.step: each for each in plan(chain, CATALOG, **named)}
    assert {name for name, each in planned.items() if each.left_out} == {"b", "b2"}
    assert planned["choose"].hit
    wanted = search(step("wanted", "b2"))
    planned = {each.step: each for each in plan(wanted, CATALOG, **named)}
    assert planned["b"].error is not None
    assert planned["b2"].blocked == ("b",)
    assert planned["wanted"].blocked == ("b2",)
    assert planned["choose"].hit
