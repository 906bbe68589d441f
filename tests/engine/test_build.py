"""The loop, on a world in memory."""

from collections import Counter

import pytest

from onnxbuild.core.action import NO_FILE, Observed
from onnxbuild.core.decision import changed_observed
from onnxbuild.core.errors import StepError, StoreError
from onnxbuild.core.event import StepBlocked, StepCached, StepFailed, StepStarted, StepWaiting
from onnxbuild.core.graph import Deliverable, OutputRef
from onnxbuild.engine.decide import current_state
from onnxbuild.engine.schedule import Schedule, guess_bytes
from tests.fakes.world import FakeFiles, FakeHost, World, graph, outputs, sha, step


def test_a_first_build_runs_every_step_in_order():
    world = World()
    report = world.build(graph(step("a"), step("b", "a"), step("c", "b")))
    assert world.executor.started == ["a", "b", "c"]
    assert report.exit_code == 0
    assert world.sink.of(StepStarted)[0].reasons == ("never built here",)


def test_a_second_build_runs_nothing():
    world = World()
    chain = graph(step("a"), step("b", "a"))
    first = world.build(chain)
    second = world.build(chain)
    assert world.executor.started == []
    assert outputs(first) == outputs(second)
    assert [e.step for e in world.sink.of(StepCached)] == ["a", "b"]


def test_a_step_that_runs_again_says_how_long_it_took_last_time():
    world = World()
    world.build(graph(step("a")))
    assert world.sink.of(StepStarted)[0].last_s == 0.0
    world.build(graph(step("a", value=1)))
    assert world.sink.of(StepStarted)[0].last_s == 1.0


def test_a_changed_param_reruns_only_what_follows():
    world = World()
    world.build(graph(step("a"), step("b"), step("c", "a"), step("d", "b")))
    world.build(graph(step("a", value=1), step("b"), step("c", "a"), step("d", "b")))
    assert world.executor.started == ["a", "c"]
    assert world.sink.of(StepStarted)[0].reasons == ("param value: 0 -> 1",)


def test_a_declared_file_counts_by_its_content():
    world = World()
    world.files.files["data.bin"] = "one"
    chain = graph(step("a", files=("data.bin",)))
    world.build(chain)
    world.files.files["data.bin"] = "two"
    world.build(chain)
    (started,) = world.sink.of(StepStarted)
    assert started.reasons[0].startswith("file data.bin: ")
    world.files.files["data.bin"] = "one"
    world.build(chain)
    assert world.executor.started == []


def test_a_missing_declared_file_is_an_error_that_names_it():
    world = World()
    report = world.build(graph(step("a", files=("gone.bin",))))
    assert report.failures[0].error.what == "declared file 'gone.bin' can't be read"
    assert report.exit_code == 2


def test_a_source_found_while_running_is_noticed_when_it_changes():
    world = World()
    world.files.files = {"m": "import helper", "helper": "x = 1"}
    chain = graph(step("a", sources=("m",)), step("b", "a"))
    world.build(chain)
    world.files.files["helper"] = "x = 2"
    world.build(chain)
    assert world.executor.started == ["a", "b"]
    assert world.sink.of(StepStarted)[0].reasons[0].startswith("source helper: ")


def test_a_comment_runs_nothing():
    world = World()
    world.files.files = {"m": "x = 1"}
    chain = graph(step("a", sources=("m",)))
    world.build(chain)
    world.files.files["m"] = "x = 1# why"
    world.build(chain)
    assert world.executor.started == []


def test_a_new_file_that_an_import_would_find_is_noticed():
    world = World()
    world.files.files = {"m": "import maybe"}
    chain = graph(step("a", sources=("m",)))
    world.build(chain)
    world.files.files["maybe"] = "x = 1"
    world.build(chain)
    (started,) = world.sink.of(StepStarted)
    assert started.reasons == ("file ./maybe: (none) -> new",)


def test_going_back_to_an_earlier_source_is_a_hit():
    world = World()
    world.files.files = {"m": "x = 1"}
    chain = graph(step("a", sources=("m",)))
    world.build(chain)
    world.files.files["m"] = "x = 2"
    world.build(chain)
    world.files.files["m"] = "x = 1"
    world.build(chain)
    assert world.executor.started == []


def test_an_edit_that_was_taken_back_is_no_reason():
    world = World()
    world.files.files = {"m": "import helper", "helper": "x = 1"}
    chain = graph(step("a", sources=("m",)))
    for name, text in (("m", "import helper"), ("helper", "x = 2"), ("helper", "x = 1")):
        world.files.files[name] = text
        world.build(chain)
    assert world.executor.started == []
    world.files.files["m"] = "import helper; y = 1"
    world.build(chain)
    (started,) = world.sink.of(StepStarted)
    assert [each.partition(":")[0] for each in started.reasons] == ["source m"]


def test_an_upgraded_package_reruns_and_is_named():
    world = World()
    chain = graph(step("a"))
    world.build(chain)
    world.files.packages["tool"] = "tool 1.1"
    world.build(chain)
    assert world.sink.of(StepStarted)[0].reasons == ("package tool: tool 1.0 -> tool 1.1",)


def test_another_machine_reruns_only_what_is_bound_to_it():
    world = World()
    chain = graph(step("a"), step("m", "a", kind="alone"))
    world.build(chain)
    world.host.machine = {"cpu": "other"}
    world.build(chain)
    assert world.executor.started == ["m"]


def test_equal_output_cuts_off_what_follows():
    world = World()
    world.files.files = {"m": "x = 0"}
    chain = graph(step("a", sources=("m",), lossy=True), step("b", "a"))
    known = {outputs(world.build(chain))["a"]}
    for text in ("x = 1", "x = 2", "x = 3", "x = 4", "x = 5"):
        world.files.files["m"] = text
        output = outputs(world.build(chain))["a"]
        assert world.executor.started == (["a"] if output in known else ["a", "b"])
        known.add(output)
    assert len(known) == 2  # so one edit changed the output, and four changed nothing after it


def test_a_failure_stops_the_run_and_names_what_is_blocked():
    world = World()
    world.executor.fail["a"] = StepError("no such operator", where="a", fix="use another")
    report = world.build(graph(step("a"), step("b", "a"), step("c", "b"), step("z")), jobs=1)
    assert report.exit_code == 1
    assert world.executor.started == ["a"]
    assert [e.step for e in world.sink.of(StepBlocked)] == ["b", "c"]
    (failed,) = world.sink.of(StepFailed)
    assert (failed.what, failed.fix) == ("no such operator", "use another")


def test_keep_going_builds_what_does_not_depend_on_the_failure():
    world = World()
    world.executor.fail["a"] = StepError("broken")
    report = world.build(graph(step("a"), step("b", "a"), step("z")), keep_going=True)
    assert "z" in report.results
    assert "b" not in report.results
    assert report.exit_code == 1


def test_a_failure_is_not_cached():
    world = World()
    chain = graph(step("a"))
    world.executor.fail["a"] = StepError("flaky")
    world.build(chain)
    world.executor.fail.clear()
    report = world.build(chain)
    assert world.executor.started == ["a"]
    assert report.exit_code == 0


def test_a_failed_gate_exits_3_every_time_and_blocks_what_follows():
    world = World()
    chain = graph(step("a"), step("v", "a", verdict=False), step("p", "v"))
    for started in (["a", "v"], []):
        report = world.build(chain)
        assert world.executor.started == started
        assert report.exit_code == 3
        assert report.blocked == {"p": "v"}


def test_a_failed_step_outranks_a_failed_gate():
    world = World()
    world.executor.fail["x"] = StepError("broken")
    report = world.build(graph(step("v", verdict=False), step("x")), keep_going=True)
    assert report.exit_code == 1


def test_an_exclusive_step_runs_alone():
    world = World()
    world.build(graph(step("a"), step("m", kind="alone"), step("b"), step("c")), jobs=4)
    assert all(together == {"m"} for together in world.executor.together if "m" in together)


def test_callables_that_no_step_has_called_yet_come_first():
    world = World()
    data = [step(f"c{n}", value=n, calls="data") for n in range(3)]
    after = step("after", "c0", calls="data")
    world.build(graph(*data, after, step("m", calls="metric")), jobs=1)
    assert world.executor.started == ["c0", "m", "c1", "c2", "after"]


def test_callables_of_cached_steps_were_called():
    world = World()
    first = [step("c0", calls="data"), step("m", calls="metric")]
    world.build(graph(*first), jobs=1)
    later = [
        step("c1", value=1, calls="data"),
        step("r", value=2, calls="data"),
        step("b", "c1", calls="data"),
    ]
    world.build(graph(*first, *later), jobs=1)
    assert world.executor.started == ["c1", "r", "b"]


def test_no_more_jobs_run_than_allowed():
    world = World()
    world.build(graph(*(step(f"s{n}", value=n) for n in range(9))), jobs=3)
    assert max(len(together) for together in world.executor.together) == 3


def test_steps_wait_for_memory():
    world = World()
    world.history.peaks = {f"s{n}": 6 << 30 for n in range(4)}
    world.build(graph(*(step(f"s{n}", value=n) for n in range(4))), jobs=4, memory=10 << 30)
    assert max(len(together) for together in world.executor.together) == 1


def test_an_input_that_changes_while_a_step_runs_is_not_recorded():
    world = World()
    chain = graph(step("a"))
    world.files.racing = True
    report = world.build(chain)
    assert report.failures[0].error.what == (
        "an input changed while the step ran; nothing was recorded"
    )
    assert world.store.records == {}


def test_a_damaged_output_is_rebuilt_and_the_reason_says_so():
    world = World()
    chain = graph(step("a"), step("b", "a"))
    first = world.build(chain)
    ((_, digest),) = first.results["a"].outputs["out"].files
    world.store.blobs[digest.sha256] = b"flipped"
    second = world.build(chain)
    assert world.executor.started == ["a"]
    assert outputs(first) == outputs(second)
    assert world.sink.of(StepStarted)[0].reasons == (
        "output out: report.json is damaged in the store -> rebuilt",
    )


def test_a_key_that_another_run_builds_is_waited_for_and_then_hits():
    world = World()
    chain = graph(step("a"))
    world.build(chain)
    key = next(iter(world.store.records))
    record = world.store.records.pop(key)
    world.store.locked_elsewhere = {key}

    def other_run_ends() -> None:
        world.store.records[key] = record
        world.store.locked_elsewhere = set()

    world.executor.on_wait = other_run_ends
    report = world.build(chain)
    assert world.executor.started == []
    assert report.cached == ["a"]


def test_a_step_whose_input_is_damaged_while_it_runs_is_not_recorded():
    world = World()
    clean = outputs(world.build(graph(step("a"), step("b", "a", value=1))))
    world = World()
    world.build(graph(step("a")))

    def damage():
        world.store.blobs = dict.fromkeys(world.store.blobs, b"damaged")

    world.executor.on_wait = damage
    report = world.build(graph(step("a"), step("b", "a", value=1)))
    (failure,) = report.failures
    assert failure.error.what == "input in0: report.json is damaged in the store"
    assert failure.error.fix == "run again: it is rebuilt"
    world.executor.on_wait = lambda: None
    again = world.build(graph(step("a"), step("b", "a", value=1)))
    assert (again.exit_code, outputs(again)) == (0, clean)
    assert world.executor.started == ["a", "b"]


def test_a_build_that_is_broken_off_holds_no_lock_afterwards():
    world = World()

    def break_off():
        assert len(world.store.held) == 2
        raise StoreError("the disk is gone")

    world.executor.on_wait = break_off
    with pytest.raises(StoreError):
        world.build(graph(step("a"), step("b", value=1)))
    assert world.store.held == set()


def test_a_view_is_laid_only_when_its_bundle_passed():
    world = World()
    view = Deliverable(
        "r", "fp32", ((OutputRef("p", "out"), ""), (OutputRef("m", "out"), "m.json"))
    )
    world.build(graph(step("p", verdict=False), step("m"), views=(view,)), keep_going=True)
    assert world.views.laid == {}
    world.build(graph(step("p"), step("m"), views=(view,)))
    assert set(world.views.laid["r/fp32"]) == {"bundle", "m.json"}


def test_equal_steps_that_run_alone_are_built_once_and_let_what_follows_go_on():
    world = World()
    twins = graph(step("a", kind="alone"), step("b", kind="alone"), step("c", "a", "b"))
    report = world.build(twins)
    assert world.executor.started == ["a", "c"]
    assert report.cached == ["b"]
    assert set(report.results) == {"a", "b", "c"}


def test_a_step_waits_for_its_equal_by_name():
    world = World()
    world.build(graph(step("a"), step("b")), jobs=2)
    (waiting,) = world.sink.of(StepWaiting)
    assert (waiting.step, waiting.equal) == ("b", "a")


def test_a_step_runs_where_the_fewest_run_and_alone_on_its_host():
    world = World()
    world.executor.machines = [FakeHost("one", jobs=2), FakeHost("two", jobs=2)]
    steps = [step(f"s{n}", value=n) for n in range(3)]
    world.build(graph(*steps, step("m", kind="alone")))
    assert [world.executor.places[name] for name in ("s0", "s1", "s2")] == ["one", "two", "one"]
    assert frozenset({"s2", "m"}) in world.executor.together
    assert world.executor.places["m"] == "two"


def test_a_step_that_is_bound_to_a_machine_runs_on_one_that_is_as_its_key_says():
    world = World()
    amd, arm = FakeHost("amd", jobs=1), FakeHost("arm", jobs=1, machine={"cpu": "arm"})
    amd.refused = frozenset({"m"})
    world.executor.machines = [amd, arm]
    report = world.build(graph(step("a"), step("m", kind="alone")))
    assert world.executor.places == {"a": "amd", "m": "arm"}
    assert report.actions["m"].host == {"cpu": "arm"}


def test_a_step_that_no_machine_can_run_is_an_error_at_once():
    world = World()
    world.host.refused = frozenset({"m"})
    report = world.build(graph(step("before"), step("m", "before"), step("after", "m")))
    (failure,) = report.failures
    assert failure.error.what == "no machine that takes steps can run it: it needs a device"
    assert failure.error.fix == "buy one"
    assert world.executor.started == []


def test_what_no_machine_can_run_leaves_the_rest_alone_if_it_is_to_go_on():
    world = World()
    world.host.refused = frozenset({"m"})
    report = world.build(
        graph(step("before"), step("m", "before"), step("other", "before")), keep_going=True
    )
    assert [each.step for each in report.failures] == ["m"]
    assert report.built == ["before", "other"]


def test_a_file_that_was_looked_for_in_vain_is_a_change_when_it_comes():
    files = FakeFiles({"there": "x"})
    observed = Observed(data={"there": sha("x"), "gone": NO_FILE})
    assert current_state(observed, {}, files) == observed
    files.files["gone"] = "come"
    (reason,) = changed_observed(observed, current_state(observed, {}, files))
    assert str(reason).startswith("file gone: no file -> ")


@pytest.mark.slow
def test_ten_thousand_ready_steps_are_ranked_once_each(monkeypatch):
    """A look at all that wait, at each end of one of them, would take minutes."""
    looks = Counter()
    for name in ("rank", "place"):
        plain = getattr(Schedule, name)

        def counted(schedule, *arguments, name=name, plain=plain):
            looks[name] += 1
            return plain(schedule, *arguments)

        monkeypatch.setattr(Schedule, name, counted)
    world = World()
    wide = graph(*(step(f"s{n}", value=n) for n in range(10_000)))
    assert len(world.build(wide).built) == 10_000
    assert looks["rank"] <= 30_000 + 100  # once more for all when a callable was called first
    assert looks["place"] == 10_000
    assert len(world.build(wide).cached) == 10_000


def test_a_step_that_never_ran_here_is_taken_to_need_more_the_larger_its_inputs():
    assert guess_bytes(0) == guess_bytes(1 << 20) == 1 << 30
    assert guess_bytes(3 << 30) == 5 * (3 << 30) // 2
