"""`environment` of a target: what is read of it, and what is wrong with it."""

from pathlib import Path

import pytest

from onnxbuild.core.environment import Environment
from onnxbuild.core.params import to_json

PINNED = "onnxruntime-openvino==1.24.1\nnumpy==2.2.6\n"


def providers(environment):
    return (
        f"providers: {{cpu: {{}}, openvino: {{environment: {environment}, device_type: CPU}}}}\n"
    )


def environment_in(project, base, written):
    found = project.recipe(base + providers(written)).targets[1]
    assert found.chain[0].options == {"device_type": "CPU"}
    return found.environment


def test_a_list_is_named_by_its_path_in_the_project(project, base):
    project.write("recipes/openvino.txt", PINNED)
    found = environment_in(project, base, "{requirements: openvino.txt}")
    assert found == Environment(requirements="recipes/openvino.txt")


def test_a_list_is_one_of_the_files_that_decide_a_recipe(project, base):
    file = project.write("lists/openvino.txt", PINNED)
    loaded = project.load(base + providers("{requirements: ../lists/openvino.txt}"))
    assert file in loaded.files


def test_an_interpreter_need_not_be_on_this_machine_for_its_recipe_to_be_read(project, base):
    found = environment_in(project, base, "{python: ../../venvs/ov/bin/python}")
    outside = (project.folder.parent / "venvs/ov/bin/python").as_posix()
    assert found == Environment(python=outside)
    found = environment_in(project, base, "{python: ../venv/bin/python}")
    assert found == Environment(python="venv/bin/python")
    home = Path.home()
    if not project.folder.is_relative_to(home):
        found = environment_in(project, base, "{python: ~/ov/bin/python}")
        assert found == Environment(python="<home>/ov/bin/python")


def test_a_chain_and_the_cpu_may_have_one(project, base):
    project.write("recipes/old.txt", "onnxruntime==1.23.0\n")
    written = """\
providers:
  old: {provider: cpu, environment: {requirements: old.txt}}
  gpu: {chain: [openvino, cpu], environment: {python: /opt/ov/bin/python}}
"""
    recipe = project.recipe(base + written)
    assert [target.environment for target in recipe.targets] == [
        Environment(requirements="recipes/old.txt"),
        Environment(python="/opt/ov/bin/python"),
    ]
    assert recipe.gates["old"].require == "one"


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        (
            "{requirements: openvino.txt, python: /opt/python}",
            "recipes/demo.yaml:6:46: environment has both requirements and python; expected one",
        ),
        ("{requirement: openvino.txt}", "did you mean 'requirements'?"),
    ],
)
def test_a_fault_is_reported_where_it_stands(project, base, written, fault):
    project.write("recipes/openvino.txt", PINNED)
    (found,) = project.faults(base + providers(written))
    assert fault in found


def test_a_line_that_is_not_pinned_is_reported_with_its_own_file_and_line(project, base):
    project.write("recipes/openvino.txt", "numpy==2.2.6\nonnxruntime-openvino\nsympy>=1\n")
    found = project.faults(base + providers("{requirements: openvino.txt}"))
    assert found == [
        "recipes/openvino.txt:2:1: 'onnxruntime-openvino' is not pinned; expected NAME==VERSION",
        "recipes/openvino.txt:3:1: 'sympy>=1' is not pinned; expected NAME==VERSION",
    ]


def test_where_an_interpreter_lies_on_this_machine_is_in_no_key():
    assert to_json(Environment(python="v/python", interpreter="/home/me/v/python")) == {
        "requirements": "",
        "python": "v/python",
    }
