"""Names of recipes, variants and targets may look like anything: they are never read as steps."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from onnxbuild.adapters.store.runs import log_name
from onnxbuild.building.api import BuildResult
from onnxbuild.building.choices import choices_of, chooser_of
from onnxbuild.building.outcome import summarize
from onnxbuild.building.request import Loaded
from onnxbuild.core.action import ActionResult, Observed
from onnxbuild.core.errors import UsageError
from onnxbuild.core.graph import StepAddress
from onnxbuild.core.step import Finding
from onnxbuild.diagnosis.chain import chain_of, find_variant
from onnxbuild.document.recipe_names import TypedName
from onnxbuild.engine.report import Failure, Report, gate_error
from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve
from onnxbuild.resolver.select import parts_of, targets_of
from onnxbuild.terminal.next_commands import next_commands
from onnxbuild.typed.typed_names import FoundName
from tests.written_recipes import loader

HOST = HostFacts("x86_64", frozenset({"avx2", "avx512_vnni"}))
NASTY = (
    "session-demo", "check-fast", "provider-cpu", "validate", "a-b-c", "tune-x", "reference",
    "benchmark", "benchmark-slow", "session", "choose", "evaluate-2", "trials", "balance", "against",
    "load-times", "export", "int8-dynamic", "a", "a-b", "0", "x.log", "a-ort", "package",
)  # fmt: skip
ODD = ("session-demo", ["check-fast", "session", "benchmark-slow"], ["cpu", "slow"])
NAMES = st.sampled_from(NASTY) | st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
providers: {first: {provider: cpu}, second: {provider: cuda}}
fidelity: {data: model.py:samples}
calibration: {data: model.py:samples}
sensitivity: {table: true}
ahead_of_time: {variants: [plain], ort: {}}
quantization:
  plain: none
  tuned: {mode: dynamic, balance: true, session: {tune: true}}
  search: {mode: auto, optimize: {level: none}, goal: {cosine_min: 0.9}, trials: 2}
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A recipe with a variant that is also made ahead of time, a tuned one, a search; two targets."""
    folder = tmp_path_factory.mktemp("recipes")
    load = loader(folder, model="def load(): ...\ndef samples(): ...\n")
    (recipe,) = load(RECIPE).recipes
    return recipe


def typed(recipe: str, part: str) -> FoundName:
    return FoundName(TypedName(recipe, part), Path("recipe.yaml"))


def renamed(recipe, name, variants, targets):
    ahead = dataclasses.replace(recipe.sections["ahead_of_time"], variants=(variants[0],))
    gates = [recipe.gates[each.name] for each in recipe.targets]
    return dataclasses.replace(
        recipe,
        name=name,
        variants=tuple(
            dataclasses.replace(each, name=new)
            for each, new in zip(recipe.variants, variants, strict=True)
        ),
        targets=tuple(
            dataclasses.replace(each, name=new)
            for each, new in zip(recipe.targets, targets, strict=True)
        ),
        gates=dict(zip(targets, gates, strict=True)),
        sections={**recipe.sections, "ahead_of_time": ahead},
    )


@st.composite
def named(draw):
    """(recipe's name, names of its three variants, names of its two targets)."""
    variants = draw(st.lists(NAMES, min_size=3, max_size=3, unique=True))
    folder = f"{variants[0]}-ort"  # which `lint` refuses as a variant's name
    variants = [f"{each}x" if each == folder else each for each in variants]
    targets = draw(st.lists(NAMES, min_size=2, max_size=2, unique=True))
    return draw(NAMES), variants, targets


def resolved(recipe):
    try:
        return resolve([recipe], HOST)
    except UsageError as error:  # see test_two_steps_that_would_have_one_name_are_refused
        assume("two different steps would both be named" not in error.what)
        raise


@settings(max_examples=12)
@example(names=ODD)
@given(names=named())
def test_only_means_a_variant_or_a_step_whatever_they_are_called(demo, names):
    recipe = renamed(demo, *names)
    whole = resolved(recipe)
    assert all(str(address) == name for name, address in whole.addresses.items())
    assert set(whole.addresses) == set(whole.names())
    for variant in recipe.variants:
        own = [name for name, at in whole.addresses.items() if at.bundle == variant.name]
        assert {whole.addresses[name].step for name in own} >= {"check", "validate", "package"}
        part = resolve([recipe], HOST, only=[f"{recipe.name}:{variant.name}"])
        kinds = {at.step for at in part.addresses.values() if not at.variant}
        assert kinds >= {"export", "check", "reference", "benchmark"}
        assert {at.bundle for at in part.addresses.values()} == {"", variant.name}
    taken = {each.name for each in recipe.variants}
    for name, at in whole.addresses.items():
        if at.local not in taken:
            for text in (name, at.local):
                files = {recipe.name: "recipe.yaml"}
                asked = parts_of([text], files)
                assert targets_of(whole, [recipe], asked, files=files) == [name]


@settings(max_examples=12)
@example(names=ODD)
@given(names=named())
def test_choices_rows_and_chains_are_those_of_their_variant(demo, names):
    recipe = renamed(demo, *names)
    graph = resolved(recipe)
    plain, tuned, search = (each.name for each in recipe.variants)
    report = Report()
    for number, (name, step) in enumerate(graph.steps.items()):
        at = graph.addresses[name]
        metrics = {"cosine_min": number, "max_abs": number, "chosen": f"choice {number}"}
        if at.step not in {"choose", "session"} or not at.variant:
            del metrics["chosen"]
        if step.kind == "validate" and at.target == "":
            metrics = {"skipped": "it does not load"}
        if step.kind == "benchmark":
            metrics = {"variants": {}}
        report.results[name] = ActionResult(str(number), Observed(), {}, metrics)
    loaded = Loaded({Path("demo.yaml"): (recipe,)}, {})
    result = BuildResult(0, "run", Path("store"), lambda: (loaded, graph, report))

    second = recipe.targets[1].name
    prefix = f"{recipe.name}:{tuned}"
    sessions = {f"{prefix}/session", f"{prefix}/session-{second}"}
    assert set(choices_of(result)) == {*sessions, f"{recipe.name}:{search}"}
    assert chooser_of(graph, recipe.name, search) == f"{recipe.name}:{search}/choose"
    assert choices_of(result, {recipe.name}) == choices_of(result)
    assert choices_of(result, {f"{recipe.name}x"}) == {}

    rows = {row["variant"]: row for row in summarize(graph, report)}
    assert set(rows) == {plain, tuned, search, f"{plain}-ort"}
    for variant in (plain, tuned, search):  # the first target was skipped
        validated = report.results[graph.resolve(f"{recipe.name}:{variant}/validate-{second}")]
        assert rows[variant]["max abs error"] == f"{validated.metrics['max_abs']:.1e}"

    for variant in (plain, tuned):
        assert find_variant(graph, typed(recipe.name, variant)) == (recipe.name, variant)
        chain = chain_of(graph, recipe.name, variant)
        assert {graph.addresses[gate.name].bundle for gate in chain.gates} == {variant}
        assert sorted(gate.kind for gate in chain.gates) == ["fidelity"] * 2 + ["validate"] * 2
    with pytest.raises(UsageError, match="is made of") as caught:
        find_variant(graph, typed(recipe.name, f"{plain}-ort"))
    assert caught.value.fix == f"onnxbuild diagnose {recipe.name}:{plain}"

    finding = Finding("it differs", "", "")
    gates = [name for name, at in graph.addresses.items() if at.step == "validate"]
    report.failures = [Failure(name, gate_error(name, (finding,)), 3) for name in gates]
    *commands, page = [command for _, command in next_commands(result, {}, None)]
    assert commands == [f"onnxbuild diagnose demo.yaml:{each}" for each in (plain, tuned, search)]
    assert page == "onnxbuild report demo.yaml"


@settings(max_examples=12)
@example(names=ODD)
@given(names=named())
def test_no_two_steps_share_a_log(demo, names):
    graph = resolved(renamed(demo, *names))
    files = {log_name(at.recipe, at.local) for at in graph.addresses.values()}
    assert len(files) == len(graph.names())
    assert all(len(file.encode()) <= 255 for file in files)
    assert not any("/" in file for file in files)


def test_a_step_that_looks_like_another_has_a_log_of_its_own():
    alike = [
        ("r", "a/b"),
        ("r", "a-b"),
        ("r", "a+b"),
        ("r-a", "b"),
        ("r--a", "b"),
        ("r", "a%2Fb"),
        ("r", "against=a/b"),
        ("r", "against=a:b"),
    ]
    long = "x" * 300
    alike += [("r", f"{long}/a"), ("r", f"{long}/b"), ("r", long)]
    assert len({log_name(*each) for each in alike}) == len(alike)
    assert log_name("bert", "int8/validate-cuda") == "bert+int8+validate-cuda.log"


def test_two_steps_that_would_have_one_name_are_refused(demo):
    """Else one would silently be built in the other's place."""
    recipe = renamed(demo, "demo", ["benchmark", "b", "c"], ["cpu", "load-times"])
    with pytest.raises(UsageError, match="both be named 'demo:benchmark-load-times'") as caught:
        resolve([recipe], HOST)
    assert caught.value.fix.startswith("rename the variant or the target")


def test_a_searched_variant_with_its_own_optimization_has_its_own_baseline(demo):
    """It was compared with that of the other variants, or they with its."""
    graph = resolve([demo], HOST)
    own, shared = graph.steps["demo:search/baseline"], graph.steps["demo:baseline"]
    assert own.inputs["model"].step == "demo:search/optimize"
    assert shared.inputs["model"].step == "demo:optimize"
    assert graph.steps["demo:plain/fidelity"].inputs["baseline"].step == "demo:baseline"


def test_a_step_that_measures_a_variant_without_being_in_its_folder_says_whose_it_is(demo):
    graph = resolve([demo], HOST)
    at = graph.addresses["demo:plain-load-times"]
    assert at == StepAddress("demo", "load-times", about="plain")
    assert at.bundle == "", "it is no part of the variant's folder"
    part = resolve([demo], HOST, only=["tuned", "plain-load-times"])
    assert "demo:plain-load-times" in part.steps
    assert "demo:plain/package" not in part.steps
