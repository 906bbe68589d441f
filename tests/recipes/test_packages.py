"""A model of pictures, one of ids, a ready ONNX and one of texts, in every form of package, each run by what would run it."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from onnxbuild.onnxkit.packages.golden import read_plain_inputs
from tests.cli.conftest import Project
from tests.features.packages import mlflow_server, web_visits
from tests.native import include_folder
from tests.registry.conftest import tree
from tests.registry.real_server import Server

RECIPES = Path(__file__).parents[2] / "recipes"
WHICH = {"digits": "int8", "bert": "int8", "vad": "fp32", "intents": "int8-pipeline", "intents-ids": "int8"}  # fmt: skip
"""Recipe -> the bundle that is packaged."""

FORMS = {
    "triton": "{}", "mlflow": "{}", "oci": "{}", "web": "{}", "wheel": "{}", "node": "{}", "cpp": "{}",
}  # fmt: skip
OF = {name: tuple(FORMS) for name in WHICH} | {
    "intents": tuple(each for each in FORMS if each != "cpp"),  # C++ packages have no strings
    "intents-ids": ("cpp",),  # so the model of texts is packaged for C++ as it takes ids
}
OPTIONS = {("digits", "web"): "{labels: models/digits_labels.txt}"}
NEEDS = {"web": "node", "node": "node", "cpp": "c++"}
"""Form -> the program without which its run step is skipped."""

SERVED = ("triton", "mlflow")
"""Forms without a run step: tests/features/packages/test_triton_server.py and the tests below run them."""

QUICK = "benchmark.max_time_s=0.1"
MODELS = ("digits", "bert", "vad", "intents")
PACKAGED = [(recipe, form) for recipe, forms in OF.items() for form in forms]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory, shared_results):
    """All packages of all models, made by one command."""
    made = Project(tmp_path_factory.mktemp("packages") / "project", patience_s=1200)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(RECIPES, made.folder / "recipes", ignore=ignored)
    made.write("pyproject.toml", "")
    text = (RECIPES / "intents.yaml").read_text()
    made.write("recipes/intents-ids.yaml", text.replace("name: intents\n", "name: intents-ids\n"))
    only = []
    for recipe, bundle in WHICH.items():
        path = made.folder / f"recipes/{recipe}.yaml"
        options = [
            f"  {form}: {OPTIONS.get((recipe, form), FORMS[form])}\n" for form in OF[recipe]
        ]
        packages = f"\npackages:\n  variants: [{bundle}]\n{''.join(options)}"
        path.write_text(path.read_text() + packages)
        only += [each for form in OF[recipe] for each in ("--only", f"{recipe}:{bundle}-{form}")]
    files = [f"recipes/{name}.yaml" for name in WHICH]
    headers = include_folder()
    env = {"ORT_INCLUDE_DIR": str(headers)} if headers else {}
    shared_results.lend(made.folder / "artifacts")
    done = made("run", *files, *only, "--set", QUICK, env=env)
    assert done.code == 0, done.out + done.err
    shared_results.keep(made.folder / "artifacts")
    return made


@pytest.fixture(scope="module")
def out(project):
    return project.folder / "artifacts/out"


@pytest.mark.always
@pytest.mark.parametrize(("recipe", "form"), PACKAGED)
def test_every_model_is_packaged_in_every_form_and_run(out, recipe, form):
    bundle = WHICH[recipe]
    folder = out / recipe / f"{bundle}-{form}"
    model = (out / recipe / bundle / "model.onnx").read_bytes()
    assert (folder / "SHA256SUMS").is_file()
    if form == "wheel":
        assert len(list(folder.glob("*.whl"))) == 1
    else:
        assert any(
            path.stat().st_size == len(model) and path.read_bytes() == model
            for path in folder.rglob("*")
            if path.is_file()
        )
    if form in SERVED:
        return
    report = json.loads((folder / "run.json").read_text())
    if "skipped" in report:
        is_here = form not in NEEDS or shutil.which(NEEDS[form]) is not None
        assert not is_here or (form == "cpp" and include_folder() is None), report
        pytest.skip(f"{folder.name} was packaged and not run: {report['skipped']}")
    assert report["passed"] is True


def test_for_cpp_the_model_of_texts_is_packaged_as_it_takes_ids(out):
    header = (out / "intents-ids/int8-cpp/include/intents_ids_int8/model.h").read_text()
    assert "Tensor<std::int64_t> input_ids" in header


def points(out, recipe):
    """Golden point -> input -> array, of the Node package."""
    return read_plain_inputs(out / recipe / f"{WHICH[recipe]}-node/golden")


@pytest.fixture(scope="module")
def answers(out, tmp_path_factory):
    """Recipe -> what MLflow gives for its first golden point."""
    folder = tmp_path_factory.mktemp("mlflow")
    python = mlflow_server.install(folder / "venv")
    models = [
        (out / each / f"{WHICH[each]}-mlflow", next(iter(points(out, each).values())))
        for each in MODELS
    ]
    return dict(zip(MODELS, mlflow_server.ask(python, models, folder), strict=True))


@pytest.mark.parametrize("recipe", MODELS)
def test_mlflow_loads_registers_and_serves_it_as_onnx_runtime_runs_it(out, answers, recipe):
    folder = out / recipe / f"{WHICH[recipe]}-mlflow"
    feeds = next(iter(points(out, recipe).values()))
    answer = answers[recipe]
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])  # fmt: skip
    names = [each.name for each in session.get_outputs()]
    expected = dict(zip(names, session.run(None, feeds), strict=True))
    for how in ("loaded", "registered", "served"):
        assert list(answer[how]) == names
        for name, array in expected.items():
            found = np.array(answer[how][name])
            if array.dtype.kind in "OU":
                assert found.tolist() == array.tolist(), how
            else:
                np.testing.assert_allclose(found, array, rtol=1e-3, atol=1e-3, err_msg=how)
    assert "Failed to enforce schema" in answer["refused"]
    assert answer["example"].keys() == feeds.keys()


def test_the_page_of_each_model_computes_the_golden_outputs_in_chromium(out, tmp_path):
    chromium = web_visits.chromium()
    pages = {name: out / name / f"{WHICH[name]}-web" for name in MODELS}
    servers = {name: web_visits.serve(folder / "serve.py") for name, folder in pages.items()}
    visits = [
        {"name": name, "url": url, "scheme": scheme, "width": width}
        for (name, (_, url)), (scheme, width) in zip(
            servers.items(), (("dark", 1280), ("light", 390), ("dark", 390), ("light", 1280)), strict=True
        )
    ]  # fmt: skip
    digits = next(each for each in visits if each["name"] == "digits")
    drawn = {**digits, "name": "drawn", "draw": web_visits.SEVEN}
    try:
        seen = web_visits.visit(tmp_path, chromium, [*visits, drawn])
    finally:
        web_visits.end(*servers.values())
    for name, each in seen.items():
        assert each["state"] == "ready", (name, each)
        assert (each["console"], each["outside"], each["failed"]) == ([], [], []), name
        assert each["axe"] == [], name
        assert each["wide"] is False, name
        done, of = each["#checked"].split(" inputs")[0].split(" of ")
        assert done == of, (name, each["#checked"])
        assert "inputs are within the tolerance" in each["#checked"], name
    assert seen["drawn"][".headline"] == "seven"


def test_a_recipes_bundle_goes_through_a_real_registry(project, out, tmp_path):
    server = Server(tmp_path / "registry").start()
    try:
        there = f"{server.host}/team/intents:int8"
        done = project("push", "recipes/intents.yaml:int8-pipeline", there, "--plain-http")
        assert done.code == 0, done.out + done.err
        done = project("pull", there, "--plain-http", "-o", str(tmp_path / "pulled"))
        assert done.code == 0, done.out + done.err
    finally:
        server.kill()
    built, pulled = tree(out / "intents/int8-pipeline"), tree(tmp_path / "pulled")
    assert pulled == built
