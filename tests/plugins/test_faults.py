"""A faulty plug-in is one clear error that names the distribution and the file; the others work."""

from pathlib import Path

import pytest

from onnxbuild import catalog
from onnxbuild.building.request import Request, graph_of, load
from onnxbuild.core.errors import PluginError
from onnxbuild.expansion.scope import GraphBuilder
from onnxbuild.plugins.bring import bring_plugins, refuse_faulty
from onnxbuild.plugins.check import RECIPE_KEYS
from onnxbuild.recipe.schema.recipe_schema import rendered_schema
from tests.plugins.fake_distributions import KIND, install, project

OPTIONS = '''
@dataclass(frozen=True)
class Options:
    """How much of it."""

    amount: int = 3
'''
MODE = (
    'Mode(name="{name}", precision="int8", tolerances={{}}, precision_of=lambda o: "int8", '
    "model=lambda scope, variant: None)"
)
BAD = {
    "raises": ("raise RuntimeError('no toast today')", "the plug-in raises RuntimeError when it is imported: no toast today"),
    "exits": ("import sys; sys.exit(3)", "the plug-in raises SystemExit when it is imported: 3"),
    "does not parse": ("def (", "the plug-in raises SyntaxError when it is imported: invalid syntax"),
    "lacks a module": ("import no_such_module_at_all", "the plug-in raises ModuleNotFoundError when it is imported: No module named 'no_such_module_at_all'"),
    "lacks the name": (KIND, "its entry point names 'my_toast:FEATURES', which is not there"),
    "brings nothing": ("FEATURES = ()", "the plug-in brings nothing: no Feature, no Provider, no StepKind"),
    "brings something else": ("FEATURES = (3,)", "it names 3; expected a Feature, a Provider, a StepKind, or a tuple of them"),
    "a mode that is taken": (f"{KIND}\nFEATURES = {MODE.format(name='fp16')}", "the mode 'fp16' is taken: onnxbuild itself has one of that name"),
    "a kind that is taken": (f"{KIND}\nFEATURES = Feature(name='x', kinds=(KIND,))".replace("fake-step", "export"), "the step kind 'export' is taken: onnxbuild itself has one of that name"),
    "a provider that is taken": (f"{KIND}\nFEATURES = Provider('cuda', 'MyExecutionProvider')", "the provider 'cuda' is taken: onnxbuild itself has one of that name"),
    "a key that is taken": (f"{KIND}{OPTIONS}\nFEATURES = Feature(name='x', sections=(Section(name='opset', options=Params),))", "the key of recipes 'opset' is taken: onnxbuild itself has one of that name"),
    "a column that is taken": (f"{KIND}\nfrom onnxbuild.expansion.feature import Column\nFEATURES = Feature(name='x', columns=(Column('cosine', 'toast', str),))", "the column 'cosine' is taken: onnxbuild itself has one of that name"),
    "a column named as the table's own": (f"{KIND}\nfrom onnxbuild.expansion.feature import Column, Feature\nFEATURES = Feature(name='x', columns=(Column('variant', 'toast', str),))", "the column 'variant' is taken: onnxbuild itself has one of that name"),
    "a column that is none": (f"{KIND}\nfrom onnxbuild.expansion.feature import Column, Feature\nFEATURES = Feature(name='x', columns=('hello',))", "the feature 'x' has columns of ('hello',); expected a tuple of Column"),
    "a column without a title": (f"{KIND}\nfrom onnxbuild.expansion.feature import Column, Feature\nFEATURES = Feature(name='x', columns=(Column(3, 'toast', str),))", "the feature 'x' has a column with the title 3; expected text"),
    "a column without a place": (f"{KIND}\nfrom onnxbuild.expansion.feature import Column, Feature\nFEATURES = Feature(name='x', columns=(Column('a', 'toast', str, place=None),))", "the column 'a' has the place None; expected an int"),
    "a column without a cell": (f"{KIND}\nfrom onnxbuild.expansion.feature import Column, Feature\nFEATURES = Feature(name='x', columns=(Column('a', 'toast', None),))", "the column 'a' has a cell that is no function"),
    "a column with a heading that is text": (f"{KIND}\nfrom onnxbuild.expansion.feature import Column, Feature\nFEATURES = Feature(name='x', columns=(Column('a', 'toast', str, heading='b'),))", "the column 'a' has a heading that is no function"),
    "kinds that are none": (f"{KIND}\nfrom onnxbuild.expansion.feature import Column, Feature\nFEATURES = Feature(name='x', kinds=3)", "the feature 'x' has kinds of 3; expected a tuple of StepKind"),
    "a released kind of another": (f"{KIND}\nfrom onnxbuild.expansion.feature import Column, Feature\nFEATURES = Feature(name='x', released=('check',))", "the feature 'x' names 'check' in released, which is none of its step kinds"),
    "released kinds as text": (f"{KIND}\nfrom onnxbuild.expansion.feature import Column, Feature\nFEATURES = Feature(name='x', released='check')", "the feature 'x' has released of 'check'; expected a tuple of step kinds' names"),
    "raises an error of ours": ("from onnxbuild.core.errors import UsageError\nraise UsageError('no toast')", "the plug-in raises UsageError when it is imported: no toast"),
    "raises an empty SyntaxError": ("raise SyntaxError()", "the plug-in raises SyntaxError when it is imported"),
    "runs out of memory": ("raise MemoryError('no toast')", "the plug-in raises MemoryError when it is imported: no toast"),
    "one name twice": (f"{KIND}\nFEATURES = (Feature(name='x', kinds=(KIND,)), Feature(name='y', kinds=(KIND,)))", "the step kind 'fake-step' is taken: the plug-in itself has one of that name"),
    "nodes kept by no option": (f"{KIND}\nfrom onnxbuild.expansion.diagnosis_hints import KeptNodes\nFEATURES = {MODE.format(name='x')[:-1]}, kept_nodes=KeptNodes('fake-step'))", "the mode 'x' leaves nodes in fp32 by 'nodes_to_exclude', which is no option of it"),
    "no help": (f"{KIND}{OPTIONS}\nFEATURES = Feature(name='x', sections=(Section(name='x', options=Options),))", "the option 'amount' of the options of the key 'x' has no help; write option(..., help=...)"),
    "no version": (f"{KIND}\nFEATURES = StepKind(name='x', params=Params, inputs=(), outputs={{'made': 'report'}}, toolchain=(), run=run)", "the plug-in raises TypeError when it is imported: StepKind.__init__() missing 1 required positional argument: 'version'"),
    "a version that is none": (f"{KIND}\nFEATURES = StepKind('x', '1.0', Params, (), {{'made': 'report'}}, (), run)", "the step kind 'x' has the version '1.0'; expected an integer from 1 up, raised whenever run() makes another output of equal inputs"),
    "no outputs": (f"{KIND}\nFEATURES = StepKind('x', 1, Params, (), {{}}, (), run)", "the step kind 'x' declares no outputs; expected name -> artifact kind"),
    "a toolchain that is a text": (f"{KIND}\nFEATURES = StepKind('x', 1, Params, (), {{'made': 'report'}}, 'onnx', run)", "the step kind 'x' has toolchain of 'onnx'; expected a tuple of names"),
    "params that change": (f"{KIND}\nFEATURES = StepKind('x', 1, Params, (), {{'made': 'report'}}, (), run)".replace("frozen=True", "frozen=False"), "the params of the step kind 'x' can be changed; expected a dataclass with frozen=True"),
    "other tolerances": (f"{KIND}\nfrom onnxbuild.onnxkit.accuracy.tolerances import Tolerance\nFEATURES = Mode(name='x', precision='int8', tolerances={{'int8': Tolerance(atol=9.0)}}, model=run)", "the mode 'x' has other tolerances for the precision 'int8' than another mode has"),
}  # fmt: skip


def fault_of(name: str = "my-toast", root: Path | None = None) -> PluginError:
    (plugin,) = [each for each in bring_plugins(root) if each.name == name]
    assert plugin.fault is not None
    assert not plugin.features
    assert not plugin.providers
    return plugin.fault


@pytest.mark.parametrize("name", BAD)
def test_a_faulty_distribution_is_named_with_its_file_and_what_is_wrong(name, site):
    source, what = BAD[name]
    module = install(site, "my-toast", source)
    fault = fault_of()
    assert fault.what == what
    assert fault.where.startswith("my-toast 1.0 (")
    assert str(module) in fault.where or "lacks a module" in name
    assert fault.fix == "mend it, or remove it: pip uninstall my-toast"
    assert fault.exit_code == 2


def test_of_two_distributions_of_one_name_the_later_is_faulty_and_both_are_named(site):
    text = f"{KIND}\nFEATURES = KIND"
    install(site, "my-first", text)
    install(site, "my-second", text)
    what = "the step kind 'fake-step' is taken: my-first 1.0 has one of that name"
    assert fault_of("my-second").what == what
    assert "fake-step" in catalog.CATALOG


def test_a_cell_of_the_table_that_raises_is_named_with_its_line(site):
    text = "from onnxbuild.expansion.feature import Column, Feature\nFEATURES = Feature(name='x', columns=(Column('toast', 'check', lambda found, name: 1 / 0),))"
    module = install(site, "my-toast", text)
    bring_plugins()
    (column,) = catalog.all_features()[-1].columns
    with pytest.raises(PluginError) as caught:
        column.cell({}, "int8")
    assert caught.value.what == (
        "the column 'toast' of the plug-in raises ZeroDivisionError: division by zero"
    )
    assert f"{module}:2" in caught.value.where


def test_a_heading_that_raises_or_is_no_text_is_named(site):
    heading = "1 / 0"
    said = "raises ZeroDivisionError"
    text = f"from onnxbuild.expansion.feature import Column, Feature\nFEATURES = Feature(name='x', columns=(Column('toast', 'check', str, heading=lambda found: {heading}),))"
    install(site, "my-toast", text)
    bring_plugins()
    (column,) = catalog.all_features()[-1].columns
    with pytest.raises(
        PluginError, match=f"the heading of the column 'toast' of the plug-in {said}"
    ):
        column.headed([{"p50": 1}])


def test_the_rest_works_without_a_faulty_plugin_but_recipes_are_refused(site, tmp_path):
    install(site, "my-good", f"{KIND}\nFEATURES = KIND")
    install(site, "my-toast", "raise RuntimeError('no toast today')")
    plugins = bring_plugins()
    assert "fake-step" in catalog.CATALOG
    assert rendered_schema()["properties"]["opset"]
    with pytest.raises(PluginError, match="no toast today"):
        refuse_faulty(plugins)
    (tmp_path / "pyproject.toml").write_text("")
    with pytest.raises(PluginError, match="no toast today"):
        load(Request((tmp_path / "demo.yaml",)))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[tool.onnxbuild]\nplugins = 3", "`plugins` is 3; expected a list of Python files"),
        ("[tool.onnxbuild]\nplugins = ['gone.py']",
         "`plugins` names 'gone.py', and there is no such file"),
        ("[tool.onnxbuild]\nplugins = ['a.txt']",
         "`plugins` names 'a.txt', which is no Python file with a path relative to the project's root"),
        ("[tool.onnxbuild\nplugins = []", "it is no TOML: "),
    ],
)  # fmt: skip
def test_a_list_of_files_that_cant_be_taken_is_a_fault(tmp_path, text, what):
    (tmp_path / "a.py").write_text("")
    (tmp_path / "pyproject.toml").write_text(text)
    fault = fault_of("pyproject.toml", tmp_path)
    assert fault.what.startswith(what)
    assert fault.where == str(tmp_path / "pyproject.toml")


def test_a_faulty_file_of_the_project_is_named_with_its_line(tmp_path):
    file = project(tmp_path, "\nraise RuntimeError('no toast today')\n")
    fault = fault_of("tools/own.py", tmp_path)
    assert fault.where == f"{file}:2"
    assert fault.fix == "mend tools/own.py, or take it out of `plugins` in pyproject.toml"


RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs:
  x: {dtype: float32, shape: [1]}
"""


def recipe(root: Path) -> Request:
    (root / "model.py").write_text("def load(): ...\n")
    (root / "demo.yaml").write_text(RECIPE)
    return Request((root / "demo.yaml",))


def test_a_feature_that_raises_is_the_plugins_fault_and_no_bug_of_this_program(tmp_path):
    source = f"{KIND}\n\ndef faults(parts):\n    yield from parts.no_such_thing\n\n"
    file = project(tmp_path, f"{source}FEATURE = Feature(name='own', faults=faults)")
    with pytest.raises(PluginError) as caught:
        load(recipe(tmp_path))
    line = source.splitlines().index("    yield from parts.no_such_thing") + 1
    assert caught.value.where == f"{file}:{line}"
    assert caught.value.what.startswith("`faults` of the plug-in raises AttributeError: ")


@pytest.mark.parametrize(
    ("hook", "returned", "expected"),
    [
        (
            "reports",
            "None",
            "returns None; expected a mapping of names to OutputRef; `{}` for none",
        ),
        ("laid", "None", "returns None; expected a mapping; `{}` for none"),
        (
            "reports",
            "{3: OutputRef('a', 'b')}",
            "returns {3: OutputRef(step='a', output='b')}; ex",
        ),
        (
            "reports",
            "{'x': OutputRef('demo:none', 'model')}",
            (
                "returns {'x': OutputRef(step='demo:none', output='model')}; expected outputs of "
                "steps: there is no step 'demo:none'"
            ),
        ),
    ],
)
def test_a_feature_that_returns_something_else_is_the_plugins_fault(
    tmp_path, hook, returned, expected
):
    source = f"{KIND}\nfrom onnxbuild.core.graph import OutputRef\n\ndef own(*args):\n    return {returned}\n\n"
    file = project(tmp_path, f"{source}FEATURE = Feature(name='own', {hook}=own)")
    request = recipe(tmp_path)
    with pytest.raises(PluginError) as caught:
        graph_of(request)
    assert caught.value.what.startswith(f"`{hook}` of the plug-in {expected}")
    assert caught.value.where == f"{file}:{source.splitlines().index('def own(*args):') + 1}"


def test_a_step_of_a_kind_that_no_feature_lists_is_the_plugins_fault(tmp_path):
    source = f"""{KIND}
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.core.graph import OutputRef

def reports(scope, subject):
    step = scope.step(of_variant(scope.recipe, subject.variant, "own"), KIND, Params())
    return {{"gate/own": OutputRef(step, "made")}}

FEATURE = Feature(name="own", reports=reports)
"""
    project(tmp_path, source)
    request = recipe(tmp_path)
    with pytest.raises(PluginError) as caught:
        graph_of(request)
    what = "a feature adds a step of the kind 'fake-step', which no feature lists in `kinds`"
    assert caught.value.what == what
    assert caught.value.where == "demo:fp32/own, by tools/own.py"


def test_an_input_that_is_no_output_of_its_step_is_the_plugins_fault(tmp_path):
    source = f"""{KIND}
from dataclasses import replace
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.core.graph import OutputRef

KIND = replace(KIND, inputs=("model",))

def reports(scope, subject):
    taken = {{"model": OutputRef(subject.model.step, "modell")}}
    step = scope.step(of_variant(scope.recipe, subject.variant, "own"), KIND, Params(), taken)
    return {{"gate/own": OutputRef(step, "made")}}

FEATURE = Feature(name="own", kinds=(KIND,), reports=reports)
"""
    project(tmp_path, source)
    request = recipe(tmp_path)
    with pytest.raises(PluginError) as caught:
        graph_of(request)
    assert caught.value.what == (
        "a feature gives a step the input 'model': 'demo:optimize' has no output 'modell'; it has model"
    )
    assert caught.value.where == "demo:fp32/own, by tools/own.py"


def test_a_providers_code_is_in_the_key_of_each_step_that_names_it(site, tmp_path):
    install(site, "my-toast", f"{KIND}\nFEATURES = Provider('oven', 'OvenExecutionProvider')")
    (tmp_path / "pyproject.toml").write_text("")
    request = recipe(tmp_path)
    (tmp_path / "demo.yaml").write_text(f"{RECIPE}providers: [cpu, oven]\n")
    steps = graph_of(request).steps
    code = ("my-toast", "<plug-in my-toast>")
    assert steps["demo:fp32/validate-oven"].code == code
    assert steps["demo:fp32/validate"].code == ()
    assert steps["demo:export"].code == ()


def test_the_keys_that_a_plugin_may_not_take_are_those_of_recipes():
    sections = set(catalog.SECTIONS)
    assert set(rendered_schema()["properties"]) - sections == RECIPE_KEYS
    assert GraphBuilder().graph().steps == {}
