"""The order in which the steps of many recipes start."""

from onnxbuild.core.graph import Graph, StepAddress
from tests.fakes.world import FakeHost, World, step


def recipes(**chains):
    """A graph of recipes; each is a chain of steps, given as seconds."""
    steps = {}
    for recipe, seconds in chains.items():
        for number, _ in enumerate(seconds):
            needs = (f"{recipe}:s{number - 1}",) if number else ()
            made = step(f"{recipe}:s{number}", *needs, value=len(steps))
            steps[made.name] = made
    addresses = {name: StepAddress(*name.split(":")) for name in steps}
    return Graph(steps, addresses=addresses)


def world_of(**chains):
    world = World()
    world.history.seconds = {
        f"{recipe}:s{number}": float(each)
        for recipe, seconds in chains.items()
        for number, each in enumerate(seconds)
    }
    return world


def test_the_recipe_with_the_shortest_chain_is_finished_first():
    chains = {
        "long": [3, 3, 3],
        "short": [1, 1],
        "middle": [2, 2, 2],
        "other": [5],
        "more": [4, 1],
    }
    world = world_of(**chains)
    world.executor.machines = [FakeHost(jobs=1)]
    world.build(recipes(**chains), jobs=1)
    order = [name.partition(":")[0] for name in world.executor.started]
    assert list(dict.fromkeys(order)) == ["short", "other", "more", "middle", "long"]
    assert order == sorted(order, key=list(dict.fromkeys(order)).index)


def test_a_long_recipe_starts_before_it_is_what_the_run_waits_for():
    chains = {"long": [1] * 10} | {f"r{n}": [1] for n in range(20)}
    world = world_of(**chains)
    world.build(recipes(**chains), jobs=2)
    first = world.executor.started.index("long:s0")
    assert 8 <= first <= 12  # 20 of 30 seconds are left, on two slots: as long as its chain


def test_a_recipe_that_never_ran_is_taken_to_be_as_long_as_others_of_its_kind():
    chains = {"new": [9, 9], "old": [3], "short": [1]}
    world = world_of(**chains)
    world.history.seconds = {"old:s0": 3.0, "short:s0": 1.0, "more:s0": 3.0}
    world.build(recipes(**chains), jobs=1)
    assert world.executor.started == ["short:s0", "old:s0", "new:s0", "new:s1"]


def test_a_step_that_recipes_share_takes_the_turn_of_the_shortest():
    steps = [step("a:long"), step("a:more", "a:long", value=1), step("b:s", value=2)]
    graph = Graph(
        {each.name: each for each in steps},
        aliases={"c:s": "a:long"},
        addresses={
            name: StepAddress(*name.split(":")) for name in ("a:long", "a:more", "b:s", "c:s")
        },
    )
    world = World()
    world.history.seconds = {"a:long": 1.0, "a:more": 9.0, "b:s": 6.0}
    world.build(graph, jobs=1)
    assert world.executor.started[0] == "b:s"


def test_a_large_step_gets_its_room_before_small_ones_take_it_again():
    chains = {"large": [1] * 7} | {f"r{n}": [1] for n in range(5)}
    world = world_of(**chains)
    world.history.peaks = {f"r{n}:s0": 4 << 30 for n in range(5)} | {"large:s1": 8 << 30}
    world.build(recipes(**chains), jobs=2, memory=10 << 30)
    assert world.executor.started[:3] == ["large:s0", "r0:s0", "large:s1"]
    assert frozenset({"large:s1"}) in world.executor.together
