"""The Python API: what the command line does, callable."""

import subprocess
import sys

import pytest

import onnxbuild
from onnxbuild.core.errors import RecipeErrors, UsageError
from tests.cli.conftest import cheap, project  # noqa: F401 - fixtures
from tests.fakes.cheap_kinds import KINDS
from tests.fakes.world import RecordingSink


def test_importing_the_package_loads_nothing():
    code = "import onnxbuild, sys; print(sorted({'click', 'yaml', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = onnxbuild.nothing


def test_a_recipe_can_be_loaded_and_planned_without_leaving_a_trace(project):  # noqa: F811
    path = project.folder / "tiny.yaml"
    (recipe,) = onnxbuild.load_recipe(path, opset="17")
    assert (recipe.name, recipe.opset) == ("tiny", 17)
    planned = onnxbuild.plan(onnxbuild.Request((path,)))
    assert planned[0].step == "tiny:export"
    assert not (project.folder / "artifacts").exists()


def test_faults_are_raised_with_their_places(project):  # noqa: F811
    project.edit("tiny.yaml", "outputs:", "output:")
    with pytest.raises(RecipeErrors, match="did you mean 'outputs'"):
        onnxbuild.load_recipe(project.folder / "tiny.yaml")
    with pytest.raises(UsageError, match="no recipe is given"):
        onnxbuild.plan(onnxbuild.Request(()))


def test_a_build_that_is_up_to_date_loads_nothing_until_it_is_asked_what_is_there(cheap):  # noqa: F811
    request = onnxbuild.Request((cheap.folder / "tiny.yaml",))
    kinds = {"catalog": KINDS.catalog, "make_executor": KINDS.make_executor}
    first = onnxbuild.build(request, **kinds)
    assert (first.exit_code, first.recalled) == (0, None)
    assert len(first.report.built) == 8

    sink = RecordingSink()
    again = onnxbuild.build(request, None, [sink], **kinds)
    assert (again.exit_code, again.run, again.store) == (0, "", first.store)
    assert [each.to_json()["cached"] for each in sink.events] == [8]
    assert again.recalled["steps"] == 8
    assert again.report.results == first.report.results
    assert sorted(again.report.cached) == sorted(first.report.built)

    assert onnxbuild.plan(request)[0].reasons  # other kinds: nothing of this is theirs
    assert onnxbuild.build(request, lay=False, **kinds).recalled is None
    cheap.edit("models/helper.py", "ReLU", "GELU")
    edited = onnxbuild.build(request, **kinds)
    assert edited.recalled is None
    assert "tiny:export" in edited.report.built


@pytest.mark.slow
@pytest.mark.usefixtures("warm_steps")
def test_a_build_says_what_it_did(project):  # noqa: F811
    request = onnxbuild.Request((project.folder / "tiny.yaml",), ("export",))
    result = onnxbuild.build(request)
    assert result.exit_code == 0
    assert result.report.built == ["tiny:export"]
    assert onnxbuild.build(request).report.cached == ["tiny:export"]


def test_a_decision_imports_nothing_that_only_a_step_that_runs_needs():
    only_to_run = (
        "importlib.metadata",
        "multiprocessing.connection",
        "onnxbuild.processes.executor",
        "onnxbuild.lock.bind",
        "onnxbuild.onnxkit.accuracy.isolated_node_error",
        "onnxbuild.onnxkit.export.export_check",
        "onnxbuild.onnxkit.optimize.fusing",
        "onnxbuild.onnxkit.search.tune_session",
        "onnxbuild.onnxkit.sensitivity.losses",
    )
    code = f"import sys, onnxbuild.building.api; print([each for each in {only_to_run} if each in sys.modules])"
    shown = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
    )
    assert shown.stdout == "[]\n"
