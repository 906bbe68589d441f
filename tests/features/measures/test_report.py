"""The section `report`: a step and a folder of their own, which are no bundle."""

import pytest

from onnxbuild.core.errors import RecipeErrors
from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve

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


def test_a_variant_can_not_have_the_folder_of_the_page(project, base):
    text = base + "quantization: {report: none}\nreport: html\n"
    with pytest.raises(RecipeErrors, match="variant 'report' has the name of the folder"):
        project.recipe(text)
    assert project.recipe(base + "quantization: {report: none}\n").variants[0].name == "report"
