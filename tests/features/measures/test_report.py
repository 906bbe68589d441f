"""The section `report`: a step and a folder of their own, which are no bundle."""

from pathlib import Path

import pytest

from onnxbuild.core.errors import RecipeErrors, UsageError
from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve
from onnxbuild.resolver.typed_name import TypedName
from onnxbuild.typed.names import FoundName, find_deliverable

HOST = HostFacts("x86_64", frozenset({"avx2", "avx512_vnni"}))


def graph_of(project, text, only=()):
    return resolve((project.recipe(text),), HOST, only)


def pages(graph):
    return [each for each in graph.deliverables if each.family.is_page]


def test_a_recipe_that_does_not_ask_has_no_page(project, base):
    assert pages(graph_of(project, base)) == []


def test_the_page_takes_the_reports_of_all_gates_measurements_and_bundles(project, base):
    graph = graph_of(project, base + "report: html\n")
    (page,) = pages(graph)
    assert (page.name, page.parts[0][1]) == ("report", "")
    step = graph.steps[page.bundle.step]
    shown = {(each.form, each.bundle, each.step) for each in step.params.reports}
    assert {("validation", "fp32", "validate"), ("benchmark", "", "benchmark")} <= shown
    assert ("bundle", "fp32", "bundle") in shown
    assert {each.input for each in step.params.reports} == set(step.inputs)


def test_it_is_built_with_the_whole_and_left_out_of_a_part(project, base):
    text = base + "quantization: {fp32: none, int8: dynamic}\nreport: html\n"
    assert pages(graph_of(project, text, ["int8"])) == []
    assert len(pages(graph_of(project, text, ["report"]))) == 1


def test_it_is_no_variant_that_a_person_can_name(project, base):
    graph = graph_of(project, base + "report: html\n")
    name = graph.deliverables[0].recipe
    with pytest.raises(UsageError, match="has no variant 'report'; it has fp32"):
        find_deliverable(graph, FoundName(TypedName(name, "report"), Path("recipe.yaml")))


def test_a_variant_can_not_have_the_folder_of_the_page(project, base):
    text = base + "quantization: {report: none}\nreport: html\n"
    with pytest.raises(RecipeErrors, match="variant 'report' has the name of the folder"):
        project.recipe(text)
    assert project.recipe(base + "quantization: {report: none}\n").variants[0].name == "report"


def test_an_empty_section_is_a_fault(project, base):
    with pytest.raises(RecipeErrors, match="an empty section asks for no page") as caught:
        project.recipe(base + "report: {}\n")
    assert caught.value.faults[0].fix == "write `report: html`"


@pytest.mark.parametrize("said", ["none", "{page: none}"])
def test_it_can_be_taken_back(project, base, said):
    text = base + f"report: {said}\n"
    assert pages(graph_of(project, text)) == []
