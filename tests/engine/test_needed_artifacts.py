"""The content that a build opens: what it delivers, and what goes into steps that run."""

from onnxbuild.core.graph import Deliverable, OutputRef
from onnxbuild.engine.plan import needed_artifacts, plan
from tests.fakes.world import CATALOG, World, graph, step

CHAIN = graph(
    step("a"), step("b", "a"), step("c", "b", files=("f",)), step("d", "c", "a"), step("e", "b")
)


def _needed(world, chain=CHAIN, forced=()):
    planned = plan(
        chain, CATALOG, store=world.store, fingerprints=world.files, history=world.history,
        host=world.host,
    )  # fmt: skip
    made = {each.step: each.outputs["out"].sha256 for each in planned if each.outputs}
    found = {each.sha256 for each in needed_artifacts(chain, planned, forced)}
    return {name for name, sha256 in made.items() if sha256 in found}


def _built():
    world = World()
    world.files.files = {"f": "one"}
    assert world.build(CHAIN).exit_code == 0
    return world


def test_nothing_is_opened_where_nothing_runs_or_is_delivered():
    assert _needed(_built()) == set()


def test_the_inputs_of_what_runs_are_opened_and_those_of_what_may_follow():
    world = _built()
    world.files.files["f"] = "two"
    assert _needed(world) == {"a", "b"}


def test_the_inputs_of_what_is_forced_are_opened():
    assert _needed(_built(), forced={"d"}) == {"a", "c"}


def test_what_is_delivered_is_opened():
    view = Deliverable("r", "v", ((OutputRef("e", "out"), ""), (OutputRef("a", "out"), "a.json")))
    assert _needed(_built(), graph(*CHAIN.steps.values(), views=(view,))) == {"e", "a"}
