"""Another output is explained only by what its step used."""

from dataclasses import replace

from onnxbuild.core.action import Action, ActionResult, Listing, Observed
from onnxbuild.core.digest import Digest
from onnxbuild.lock.compare import differences
from onnxbuild.lock.model import Lock, LockedStep
from onnxbuild.lock.places import LockPlaces
from onnxbuild.lock.uses import unexplained, used_items
from tests.lock.test_compare import LOCK, A, B


def reported(now: Lock) -> list[str]:
    found = differences(LOCK, now)
    uses = {"net:export": frozenset({"torch", "net.py"}), "net:benchmark": frozenset[str]()}
    return [str(each) for each in unexplained(LOCK, now, found, uses)]


def other_output(**facts: object) -> Lock:
    step = LockedStep("export", 1, A, {"model": Digest(B, 5)})
    return replace(LOCK, steps={**LOCK.steps, "net:export": step}, **facts)


def test_an_output_that_nothing_explains_is_reported():
    assert len(reported(other_output())) == 1
    assert len(reported(other_output(resolved={"net": {"opset": 17}}, host={"cpu": "y"}))) == 1
    assert len(reported(other_output(files={"weights.npz": B, "notes.txt": A}))) == 1


def test_an_output_whose_step_used_what_changed_is_explained():
    assert reported(other_output(sources={"net.py": B})) == []
    assert reported(other_output(packages={"torch": f"torch 2.14.0 {B}"})) == []


def test_another_key_explains_another_output():
    step = LockedStep("export", 1, B, {"model": Digest(B, 5)})
    assert reported(replace(LOCK, steps={**LOCK.steps, "net:export": step})) == []


def test_all_that_a_step_used_counts():
    action = Action("export", 1, {}, {}, {"w.npz": A}, {"torch": "t", "python": "p"}, None)
    observed = Observed({"net.py": A}, {"d.txt": A}, {"models": Listing((), ())}, {"numpy": "n"})
    items = used_items("net", action, ActionResult("k", observed, {}), LockPlaces(()))
    assert items == {"w.npz", "torch", "python", "net.py", "d.txt", "models", "numpy"}
