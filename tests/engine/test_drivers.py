"""What only decides whether a provider loads is in no key but that of the step that looks."""

from dataclasses import replace

from onnxbuild.adapters.machine import driver_facts
from onnxbuild.catalog import CATALOG
from onnxbuild.core.graph import Step
from onnxbuild.engine.decide import make_action
from tests.fakes.world import ALONE, FAKE, HERE, FakeFiles, FakeHost, FakeParams

LOOKS = replace(ALONE, name="looks", driver_bound=True)


def key(kind, host):
    step = Step("recipe:step", kind.name, {}, FakeParams(), HERE)
    return make_action(step, kind, {}, FakeFiles(), host).key


def test_a_driver_that_appears_changes_the_key_of_what_looks_for_it_alone():
    before, after = FakeHost(), FakeHost(drivers_here={"devices": "nvidia0"})
    assert key(LOOKS, before) != key(LOOKS, after)
    for kind in (ALONE, FAKE):
        assert key(kind, before) == key(kind, after)


def test_one_kind_looks():
    assert [name for name, kind in CATALOG.items() if kind.driver_bound] == ["provider"]
    assert CATALOG["provider"].host_bound


def test_the_facts_are_text_and_the_same_twice():
    facts = driver_facts()
    assert facts.keys() == {"devices", "libraries"}
    assert facts == driver_facts()
    assert facts["devices"].split() == sorted(facts["devices"].split())
