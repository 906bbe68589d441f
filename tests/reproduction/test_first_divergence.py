"""Where two builds part: the first step, its peers, and what follows."""

from onnxbuild.catalog import CATALOG
from onnxbuild.core.action import ActionResult, Observed
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import StepError
from onnxbuild.core.graph import Deliverable, Graph, OutputRef, Step
from onnxbuild.engine.report import Failure, Report
from onnxbuild.reproduction.first_divergence import Divergence, comparable, first_divergence
from tests.fakes.world import HERE

NEEDS = {"export": (), "reference": (), "optimize": ("export",), "check": ("optimize",)}


def graph_of(needs, kinds=None):
    steps = {
        name: Step(
            name,
            (kinds or {}).get(name, name),
            {each: OutputRef(each, "model") for each in inputs},
            None,
            HERE,
        )
        for name, inputs in needs.items()
    }
    return Graph(steps, deliverables=(Deliverable("r", "v", ()),))


def report_of(**contents):
    """A result for each step; None if it was not built, a text if it failed."""
    report = Report()
    for name, content in contents.items():
        if isinstance(content, bytes):
            model = Artifact("onnx-model", (("model.onnx", Digest.of(content)),))
            other = Artifact("report", (("report.json", Digest.of(b"")),))
            outputs = {"config": other, "model": model}
            report.results[name] = ActionResult("key", Observed(), outputs)
        elif content is not None:
            report.failures.append(Failure(name, StepError(content, where=name), 1))
    return report


STORED = report_of(export=b"e", reference=b"r", optimize=b"o", check=b"c")


def divergence(**contents):
    fresh = report_of(
        **{"export": b"e", "reference": b"r", "optimize": b"o", "check": b"c"} | contents
    )
    return first_divergence(graph_of(NEEDS), STORED, fresh)


def test_the_first_step_its_output_and_its_followers():
    found = divergence(export=b"E", optimize=b"O", check=b"C")
    assert found == Divergence("export", "model", "", others=(), followers=2)


def test_a_step_that_makes_the_same_of_other_inputs_is_no_follower():
    assert divergence(export=b"E", check=b"C") == Divergence("export", "model", "", ("check",), 0)


def test_steps_that_differ_on_their_own_are_named():
    found = divergence(reference=b"R", export=b"E")
    assert found == Divergence("export", "model", "", others=("reference",), followers=0)


def test_a_step_that_fails_only_there_is_a_difference():
    found = divergence(optimize="out of paper", check=None)
    assert found == Divergence("optimize", "", "out of paper", others=(), followers=1)


def test_a_gate_that_fails_in_both_is_none():
    stored, fresh = (report_of(export=b"e", reference=b"r") for _ in range(2))
    for report in (stored, fresh):
        report.failures.append(Failure("reference", StepError("too far"), 3))
    steps = {"export": (), "reference": ()}
    assert first_divergence(graph_of(steps), stored, fresh) is None
    stored.failures.clear()
    found = first_divergence(graph_of(steps), stored, fresh)
    assert found == Divergence("reference", "", "too far", others=(), followers=0)


def test_what_measures_times_is_not_compared_nor_what_needs_it():
    needs = {"export": (), "benchmark": ("export",), "check": ("benchmark",)}
    left = comparable(graph_of(needs), CATALOG)
    assert list(left.steps) == ["export"]
    assert left.deliverables == ()
