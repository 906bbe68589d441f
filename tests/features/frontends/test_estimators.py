"""`frontend: sklearn`, `xgboost`, `lightgbm`: what is converted, what it is held against, what is refused."""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest

import onnxbuild
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import FILE_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.onnxkit.accuracy.judged_outputs import excused_rows
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.data.feeds import make_feeds
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.estimators.boosters import with_categories
from onnxbuild.onnxkit.estimators.thresholds import rows_on_threshold
from onnxbuild.steps import convert_model, reference, validate
from tests.fakes.step_context import run_step
from tests.late_imports import Late, late
from tests.steps.graphs import RECIPES, run_model
from tests.written_recipes import faults, loader

joblib, skops_io = Late("joblib"), Late("skops.io")
lightgbm, skl2onnx, xgboost = Late("lightgbm"), Late("skl2onnx"), Late("xgboost")
ColumnTransformer = Late("sklearn.compose", "ColumnTransformer")
load_breast_cancer, load_diabetes, load_iris = late(
    "sklearn.datasets", "load_breast_cancer", "load_diabetes", "load_iris"
)
HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier = late(
    "sklearn.ensemble",
    "HistGradientBoostingClassifier", "HistGradientBoostingRegressor", "RandomForestClassifier",
)  # fmt: skip
GridSearchCV = Late("sklearn.model_selection", "GridSearchCV")
TfidfVectorizer = Late("sklearn.feature_extraction.text", "TfidfVectorizer")
LinearRegression, LogisticRegression = late(
    "sklearn.linear_model", "LinearRegression", "LogisticRegression"
)
make_pipeline = Late("sklearn.pipeline", "make_pipeline")
ClassifierChain = Late("sklearn.multioutput", "ClassifierChain")
FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler = late(
    "sklearn.preprocessing",
    "FunctionTransformer", "OneHotEncoder", "OrdinalEncoder", "StandardScaler",
)  # fmt: skip
SVC, LinearSVC = late("sklearn.svm", "SVC", "LinearSVC")

AXES = (Axis("batch", 1, 64, 4),)
TEXT = (DummyInput("text", "string", ("batch",)),)
FP32 = VariantTolerances(atol=1e-5, rtol=1e-4, equal_min=1.0)
TREES = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"


def features(columns, dtype="float32"):
    return (DummyInput("features", dtype, ("batch", columns), low=0, high=8),)


FOUR = features(4)


def cancer():
    data = load_breast_cancer()
    return data.data, data.target_names[data.target]


def saved(estimator, folder):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "estimator.joblib"
    joblib.dump(estimator, path)
    return Entrypoint(FILE_DATA, files=(str(path),))


def converted(model, folder, *, frontend="sklearn", inputs=FOUR, outputs=(), opset=18):
    params = convert_model.ConvertEstimatorParams(frontend, model, inputs, outputs, AXES, opset)
    _, context = run_step(convert_model.ESTIMATORS[frontend], params, folder / "convert")
    return context.output("model")


def referenced(model, folder, samples, *, frontend="sklearn", inputs=FOUR, outputs=()):
    """The reference, on batches of real rows."""
    file = folder / "samples.py"
    np.savez(folder / "samples.npz", **{str(n): each for n, each in enumerate(samples)})
    file.write_text(
        "import numpy as np\ndef samples():\n"
        f"    for each in np.load({str(folder / 'samples.npz')!r}).values():\n"
        f"        yield {{{inputs[0].name!r}: each}}\n"
    )
    params = reference.EstimatorReferenceParams(
        frontend, model, inputs, outputs, AXES, Entrypoint(f"{file}:samples"), (), 0, 16
    )
    outcome, context = run_step(reference.ESTIMATORS[frontend], params, folder / "reference")
    return outcome, context.output("reference")


def judged(model, reference, folder):
    params = validate.ValidateParams("fp32", "fp32", FP32, CPU_TARGET, TargetGates())
    outcome, context = run_step(
        validate.KIND, params, folder, {"model": model, "reference": reference}
    )
    return outcome, json.loads((context.output("report") / "report.json").read_text())


def built(estimator, folder, rows, *, inputs=FOUR, outputs=(), batches=4):
    """(outcome, report) of `validate`, and the folders of model and reference."""
    model = saved(estimator, folder)
    folder_of_model = converted(model, folder, inputs=inputs, outputs=outputs)
    samples = np.array_split(rows, batches)
    _, reference = referenced(model, folder, samples, inputs=inputs, outputs=outputs)
    return *judged(folder_of_model, reference, folder / "gate"), folder_of_model, reference


def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize(
    ("make", "outputs"),
    [
        (
            lambda: make_pipeline(StandardScaler(), LogisticRegression()),
            ["label", "probabilities"],
        ),
        (lambda: RandomForestClassifier(10, random_state=0, n_jobs=2), ["label", "probabilities"]),
        (lambda: make_pipeline(StandardScaler(), SVC()), ["label", "scores"]),
        (LinearRegression, ["prediction"]),
        (StandardScaler, ["transformed"]),
    ],
)
def test_each_kind_of_estimator_gives_what_it_computes_itself(tmp_path, make, outputs):
    rows, labels = iris()
    estimator = make().fit(rows, labels)
    outcome, report, model, _ = built(estimator, tmp_path, rows[::2].astype(np.float32))
    assert [value.name for value in onnx.load(model / "model.onnx").graph.output] == outputs
    assert not outcome.findings, report
    assert report["metrics"]["max_abs"] < 1e-4


def test_names_of_the_recipes_own_go_by_position_and_fewer_are_chosen_by_name(tmp_path):
    rows, labels = iris()
    model = saved(LogisticRegression(max_iter=500).fit(rows, labels), tmp_path)
    feeds = {"features": rows[:3].astype(np.float32)}
    own = run_model(converted(model, tmp_path / "own", outputs=("kind", "p")), feeds)
    assert own["kind"].dtype == np.int64
    assert own["p"].shape == (3, 3)
    alone = run_model(converted(model, tmp_path / "alone", outputs=("probabilities",)), feeds)
    assert list(alone) == ["probabilities"]
    turned = converted(model, tmp_path / "turned", outputs=("probabilities", "label"))
    assert list(run_model(turned, feeds)) == ["probabilities", "label"]
    with pytest.raises(
        StepError, match="has no output 'probability'; it has label, prob"
    ) as caught:
        converted(model, tmp_path / "wrong", outputs=("label", "probability"))
    assert "probabilities" in caught.value.fix


def test_words_are_split_as_scikit_learn_does(tmp_path):
    texts = ["the cat sat on a mat", "École à Paris", "a dog, 2 cats", "ÉCOLE a b school", ""] * 2
    estimator = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression())
    estimator.fit(texts, ["cat", "school", "dog", "school", "none"] * 2)
    rows = np.array([*texts, "cat a mat", "école", "unknown"])
    outcome, report, _, _ = built(estimator, tmp_path, rows, inputs=TEXT)
    assert not outcome.findings, report
    assert report["shares"]["label"]["equal"] == 1.0


def test_a_conversion_that_is_wrong_is_found(tmp_path):
    """skl2onnx takes the logarithm of 1 + count for the 1 + logarithm of `sublinear_tf`."""
    texts = ["the cat and the mat", "a dog and a dog and a cat"] * 3
    estimator = TfidfVectorizer(sublinear_tf=True).fit(texts)
    outcome, _, _, _ = built(estimator, tmp_path, np.array(texts), inputs=TEXT)
    assert "output 'transformed'" in outcome.findings[0].where


def planted(model, folder, change):
    """The model with a fault in it."""
    made = onnx.load(model / "model.onnx")
    change({node.op_type: node for node in made.graph.node}, made)
    folder.mkdir()
    onnx.save(made, folder / "model.onnx")
    return folder


def attribute(node, name):
    return next(each for each in node.attribute if each.name == name)


def wrong_weight(nodes, _):
    attribute(nodes["LinearClassifier"], "coefficients").floats[0] += 0.01


def swapped_outputs(_, made):
    first, second = made.graph.output
    other = {first.name: second.name, second.name: first.name}
    for node in made.graph.node:
        node.output[:] = [other.get(name, name) for name in node.output]
        node.input[:] = [other.get(name, name) for name in node.input]
    first.name, second.name = second.name, first.name


def shifted_labels(nodes, made):
    for node in made.graph.node:
        for each in node.attribute:
            if each.name == "classlabels_ints":
                each.ints[:] = [label + 1 for label in each.ints]
    for each in made.graph.initializer:
        if each.data_type == onnx.TensorProto.INT32 and list(each.dims) == [3]:
            each.CopyFrom(onnx.numpy_helper.from_array(np.array([1, 2, 3], np.int32), each.name))


@pytest.mark.parametrize("fault", [wrong_weight, swapped_outputs, shifted_labels])
def test_a_planted_fault_is_caught(tmp_path, fault):
    rows, labels = iris()
    estimator = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, labels)
    outcome, _, model, reference = built(estimator, tmp_path, rows.astype(np.float32))
    assert not outcome.findings
    found, _ = judged(planted(model, tmp_path / "bad", fault), reference, tmp_path / "again")
    assert found.findings


def test_a_wrong_threshold_of_a_tree_is_caught_off_the_thresholds(tmp_path):
    rows, labels = cancer()
    estimator = make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=20))
    estimator.fit(rows[::2], labels[::2])
    outcome, report, model, reference = built(
        estimator, tmp_path, rows[1::2].astype(np.float32), inputs=features(30), batches=5
    )
    assert not outcome.findings, report

    def move(nodes, _):
        values = attribute(nodes["TreeEnsembleClassifier"], "nodes_values").floats
        values[:] = [value + 0.05 for value in values]

    found, _ = judged(planted(model, tmp_path / "bad", move), reference, tmp_path / "again")
    assert any("probabilities" in each.where for each in found.findings)


def test_rows_on_a_threshold_are_listed_and_only_those_that_differ_left_out(tmp_path):
    """Trees split between values of the rows they were trained on: the scaler's last bit decides there."""
    rows, labels = cancer()
    estimator = make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=40))
    estimator.fit(rows[:426], labels[:426])
    outcome, report, _, reference = built(
        estimator, tmp_path, rows[:200].astype(np.float32), inputs=features(30)
    )
    assert not outcome.findings, report
    found = report["thresholds"]
    assert 0 < found["excused"] < found["on_threshold"] < found["rows"]
    points = {point.name: point for point in read_reference(reference)}
    for name, each in found["points"].items():
        assert set(each["excused"]) <= set(each["on_threshold"])
        assert each["on_threshold"] == np.nonzero(points[name].on_threshold)[0].tolist()
    assert f"{found['excused']} of {found['rows']} rows lie on a threshold" in outcome.notes[0]


def files(folder):
    rows, labels = iris()
    classifier = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(rows, labels)
    classifier.save_model(folder / "x.json")
    classifier.save_model(folder / "x.ubj")
    data, target = load_diabetes(return_X_y=True)
    xgboost.XGBRegressor(n_estimators=5, n_jobs=1).fit(data, target).save_model(folder / "r.json")
    trees = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(rows, labels)
    trees.booster_.save_model(folder / "l.txt")
    binary = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)
    binary.fit(rows[:100], labels[:100]).booster_.save_model(folder / "b.txt")
    return rows.astype(np.float32), data.astype(np.float32)


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        ("x.json", ["label", "probabilities"]),
        ("x.ubj", ["label", "probabilities"]),
        ("r.json", ["prediction"]),
        ("l.txt", ["label", "probabilities"]),
        ("b.txt", ["label", "probabilities"]),
    ],
)
def test_files_of_xgboost_and_lightgbm_are_a_recipe_of_three_lines(tmp_path, name, outputs):
    iris_rows, diabetes_rows = files(tmp_path)
    frontend = "lightgbm" if name.endswith(".txt") else "xgboost"
    load = loader(tmp_path)
    (recipe,) = load(f"version: 1\nname: demo\nmodel: {{{frontend}: {name}}}\n").recipes
    rows = diabetes_rows if name == "r.json" else iris_rows
    assert recipe.frontend == frontend
    assert recipe.inputs == (DummyInput("features", "float32", ("batch", rows.shape[1])),)
    model = Entrypoint(FILE_DATA, files=(str(tmp_path / name),))
    made = converted(model, tmp_path, frontend=frontend, inputs=recipe.inputs)
    assert [value.name for value in onnx.load(made / "model.onnx").graph.output] == outputs
    samples = np.array_split(rows, 10)
    _, reference = referenced(model, tmp_path, samples, frontend=frontend, inputs=recipe.inputs)
    outcome, report = judged(made, reference, tmp_path / "gate")
    assert not outcome.findings, report


def test_a_skops_file_says_how_wide_its_rows_are_and_loads_what_is_trusted(tmp_path):
    rows, labels = iris()
    estimator = make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=3))
    skops_io.dump(estimator.fit(rows, labels), tmp_path / "p.skops")
    load = loader(tmp_path)
    text = "version: 1\nname: demo\nmodel: {sklearn: p.skops}\n"
    (recipe,) = load(text).recipes
    assert recipe.inputs == (DummyInput("features", "float32", ("batch", 4)),)
    model = Entrypoint(FILE_DATA, files=(str(tmp_path / "p.skops"),))
    with pytest.raises(StepError, match="types that skops does not trust") as caught:
        converted(model, tmp_path)
    assert f"write `trusted: [{TREES}]`" in caught.value.fix
    (recipe,) = load(text.replace("p.skops", f"p.skops, trusted: [{TREES}]")).recipes
    made = converted(
        Entrypoint(FILE_DATA, recipe.model.args, files=model.files), tmp_path / "again"
    )
    assert run_model(made, {"features": rows[:2].astype(np.float32)})["label"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("{sklearn: p.joblib}", "p.joblib is a pickle, which is a program", "allow_pickle: true"),
        ("{sklearn: cut.onnx}", "its name ends in '.onnx'; expected .skops or .joblib", "complete"),
        ("{xgboost: cut.ubj}", "no whole model of XGBoost, as JSON or UBJSON", "complete"),
        ("{xgboost: x.json, allow_pickle: true}", "model has `xgboost` and `allow_pickle`",
         "remove"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_whole_or_not_allowed_is_refused_when_the_recipe_is_read(
    tmp_path, text, what, fix
):
    files(tmp_path)
    joblib.dump(LogisticRegression(), tmp_path / "p.joblib")
    skops_io.dump(LinearRegression(), tmp_path / "cut.skops")
    for source, cut in (
        ("cut.skops", "cut.skops"), ("x.json", "cut.json"), ("x.ubj", "cut.ubj"), ("l.txt", "cut.txt"),
        ("x.json", "cut.onnx"),
    ):  # fmt: skip
        content = (tmp_path / source).read_bytes()
        (tmp_path / cut).write_bytes(content[: len(content) // 2])
    found = faults(loader(tmp_path), f"version: 1\nname: demo\nmodel: {text}\n")
    assert any(what in each for each, _, _ in found), found
    assert any(fix in each for _, _, each in found), found
    assert all(where.startswith("demo.yaml:3") for _, where, _ in found)


CODE = """\
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
import xgboost

class Twice(TransformerMixin, BaseEstimator):
    def fit(self, rows, labels=None):
        self.fitted_ = True
        return self
    def transform(self, rows):
        return rows * 2

rows = np.random.default_rng(0).normal(size=(40, 4))
labels = np.arange(40) % 2

def unfitted(): return LogisticRegression()
def other(): return xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(rows, labels)
def own(): return make_pipeline(Twice(), LogisticRegression()).fit(rows, labels)
def seeded():
    from sklearn.ensemble import RandomForestClassifier
    return RandomForestClassifier(5).fit(rows, labels)
def two(): return DecisionTreeClassifier().fit(rows, np.stack([labels, labels], 1))
def boosted():
    return xgboost.train({"objective": "rank:ndcg"}, xgboost.DMatrix(rows, labels), 2)
"""


@pytest.mark.parametrize(
    ("name", "frontend", "what", "fix"),
    [
        ("unfitted", "sklearn", "LogisticRegression is not fitted", "call `.fit(...)`"),
        ("other", "sklearn", "returned a XGBClassifier", "write `frontend: xgboost`"),
        ("own", "xgboost", "returned a Pipeline; expected an XGBClassifier",
         "write `frontend: sklearn`"),
        ("two", "sklearn", "gives a list of 2 arrays", "one estimator of each"),
        ("boosted", "xgboost", "objective 'rank:ndcg', which can't be converted", "binary:"),
    ],
)  # fmt: skip
def test_what_a_callable_may_not_return(tmp_path, name, frontend, what, fix):
    (tmp_path / "made.py").write_text(CODE)
    model = Entrypoint(f"{tmp_path / 'made.py'}:{name}")
    with pytest.raises(StepError) as caught:
        converted(model, tmp_path, frontend=frontend)
    assert what in caught.value.what
    assert fix in caught.value.fix


def test_columns_of_a_table_are_inputs_of_their_own(tmp_path):
    inputs = (
        DummyInput("age", "float32", ("batch", 1)),
        DummyInput("city", "string", ("batch", 1)),
    )
    feeds = {
        "age": np.arange(4, dtype=np.float32)[:, None],
        "city": np.array([["a"], ["b"], ["a"], ["c"]]),
    }
    columns = ColumnTransformer([("n", StandardScaler(), [0]), ("t", OneHotEncoder(), [1])])
    labels = ["x", "y", "x", "y"]
    if importlib.util.find_spec("pandas") is None:
        array = np.concatenate([feeds["age"].astype(object), feeds["city"].astype(object)], 1)
        model = saved(make_pipeline(columns, LogisticRegression()).fit(array, labels), tmp_path)
        with pytest.raises(
            StepError, match="takes 2 columns by name, which needs pandas"
        ) as caught:
            converted(model, tmp_path, inputs=inputs)
        assert caught.value.fix == "pip install pandas"
        return
    import pandas as pd

    columns = ColumnTransformer(
        [("n", StandardScaler(), ["age"]), ("t", OneHotEncoder(handle_unknown="ignore"), ["city"])]
    )
    table = pd.DataFrame({name: array[:, 0] for name, array in feeds.items()})
    estimator = make_pipeline(columns, LogisticRegression()).fit(table, labels)
    found = run_model(converted(saved(estimator, tmp_path), tmp_path, inputs=inputs), feeds)
    assert found["label"].tolist() == estimator.predict(table).tolist()


@pytest.mark.parametrize(
    ("frontend", "make"),
    [
        ("sklearn", lambda: HistGradientBoostingClassifier(max_iter=10, random_state=0)),
        ("lightgbm", lambda: lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)),
    ],
    ids=["sklearn", "lightgbm"],
)
def test_missing_values_go_through_the_conversion_and_the_gate(tmp_path, frontend, make):
    rows, labels = cancer()
    rows, labels = rows[:, :4].astype(np.float32), (labels == "benign").astype(int)
    rows[np.random.default_rng(0).random(rows.shape) < 0.2] = np.nan
    inputs = (replace(FOUR[0], missing=0.2),)
    model = saved(make().fit(rows[::2], labels[::2]), tmp_path)
    (tmp_path / "made.py").write_text(
        f"import joblib\ndef load(): return joblib.load({str(tmp_path / 'estimator.joblib')!r})\n"
    )
    model = Entrypoint(f"{tmp_path / 'made.py'}:load")
    made = converted(model, tmp_path, frontend=frontend, inputs=inputs)
    samples = np.array_split(rows[1::2], 5)
    _, reference = referenced(model, tmp_path, samples, frontend=frontend, inputs=inputs)
    points = list(read_reference(reference))
    assert all(
        np.isnan(each.feeds["features"]).any()
        for each in points
        if len(each.feeds["features"]) > 8
    )
    outcome, report = judged(made, reference, tmp_path / "gate")
    assert not outcome.findings, report
    bad = planted(made, tmp_path / "bad", other_side)
    found, _ = judged(bad, reference, tmp_path / "again")
    assert found.findings


@pytest.mark.parametrize(
    ("make", "what", "fix"),
    [
        (lambda: xgboost.XGBClassifier(n_estimators=2, n_jobs=1, missing=0), "not nan but 0",
         "take options"),
        (lambda: ClassifierChain(LogisticRegression()), "predict gives 2 labels a row",
         "several targets"),
    ],
    ids=["missing", "chain"],
)  # fmt: skip
def test_what_a_converter_lacks_is_not_blamed_on_the_inputs(tmp_path, make, what, fix):
    rows, labels = iris()
    estimator = make()
    is_chain = type(estimator).__name__ == "ClassifierChain"
    estimator.fit(rows[:100], np.c_[labels, 1 - labels][:100] if is_chain else labels[:100])
    (tmp_path / "made.py").write_text(
        f"import joblib\ndef load(): return joblib.load({str(tmp_path / 'estimator.joblib')!r})\n"
    )
    saved(estimator, tmp_path)
    kind = "xgboost" if type(estimator).__module__.startswith("xgboost") else "sklearn"
    with pytest.raises(StepError, match=what) as caught:
        converted(Entrypoint(f"{tmp_path / 'made.py'}:load"), tmp_path, frontend=kind)
    assert fix in caught.value.fix


def other_side(nodes, _):
    """Rows without a value go to the other branch."""
    (trees,) = (node for name, node in nodes.items() if name.startswith("TreeEnsemble"))
    ways = attribute(trees, "nodes_missing_value_tracks_true").ints
    ways[:] = [1 - each for each in ways]


def test_a_pickle_of_another_version_is_refused_with_the_version_to_install(tmp_path):
    from sklearn.linear_model import LogisticRegression

    rows, labels = iris()
    estimator = LogisticRegression(max_iter=500).fit(rows, labels)
    state = estimator.__getstate__()
    state["_sklearn_version"] = "1.2.0"

    class Older(LogisticRegression):
        def __reduce__(self):
            return LogisticRegression, (), state

    estimator.__class__ = Older
    with pytest.raises(StepError, match=r"was written by scikit-learn 1\.2\.0") as caught:
        converted(saved(estimator, tmp_path), tmp_path)
    assert "`pip install scikit-learn==1.2.0`, or fit" in caught.value.fix


@pytest.mark.slow
def test_the_same_bytes_come_out_in_other_processes_whatever_the_hash_seed(tmp_path):
    (tmp_path / "made.py").write_text(CODE)
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.features.frontends.test_estimators import converted\n"
        "from onnxbuild.core.recipe import Entrypoint\n"
        "folder = Path(sys.argv[1])\n"
        "converted(Entrypoint(f'{folder / \"made.py\"}:seeded'), folder / sys.argv[2])\n"
    )
    made = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), seed], env=environment, check=True
        )
        made.append((tmp_path / seed / "convert/out/model/model.onnx").read_bytes())
    assert made[0] == made[1]
    model = onnx.load_from_string(made[0])
    domains = [each.domain for each in model.opset_import]
    assert domains == sorted(set(domains))
    assert model.graph.name == "main_graph"


RECIPE = """\
version: 1
name: demo
model: {model}
benchmark: {{max_time_s: 0.1, min_samples: 3}}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("warm_steps")
def test_estimators_are_built_by_the_real_thing_and_up_to_date_then(tmp_path):
    files(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    recipes = []
    for name in ("x.ubj", "l.txt"):
        frontend = "lightgbm" if name == "l.txt" else "xgboost"
        recipes.append(tmp_path / f"{frontend}.yaml")
        text = RECIPE.format(model=f"{{{frontend}: {name}}}")
        recipes[-1].write_text(text.replace("name: demo", f"name: {frontend}"))
    (tmp_path / "topics.py").write_text((RECIPES / "models" / "topics.py").read_text())
    recipes.append(tmp_path / "topics.yaml")
    topics = (RECIPES / "topics.yaml").read_text().replace("models/topics.py", "topics.py")
    recipes[-1].write_text(topics)
    request = onnxbuild.Request(tuple(recipes))
    result = onnxbuild.build(request)
    assert result.exit_code == 0, result.report.failures
    for name in ("xgboost", "lightgbm", "topics"):
        manifest = json.loads((tmp_path / f"artifacts/out/{name}/fp32/manifest.json").read_text())
        assert manifest["validation"]["cpu"]["passed"]
        assert [each["name"] for each in manifest["outputs"]] == ["label", "probabilities"]
        report = json.loads((tmp_path / f"artifacts/out/{name}/fp32/benchmark.json").read_text())
        baseline = "scikit-learn" if name == "topics" else name
        assert baseline in report["points"][0]["results"]
        assert report["baseline"]["name"] == baseline
    assert onnxbuild.build(request).report.built == []


RARE = np.minimum(np.random.default_rng(0).geometric(0.2, (300, 4)), 20).astype(np.float32)
TARGET = RARE[:, 0] % 3
GAPS = np.where(np.arange(300)[:, None] % 7, RARE, np.nan)


@pytest.mark.parametrize(
    ("make", "option"),
    [
        (lambda: OrdinalEncoder(min_frequency=20).fit(RARE), "min_frequency"),
        (lambda: OrdinalEncoder(max_categories=4).fit(RARE), "max_categories"),
        (lambda: OrdinalEncoder(encoded_missing_value=-2).fit(GAPS), "encoded_missing_value"),
        (
            lambda: make_pipeline(OneHotEncoder(min_frequency=20), LinearRegression()).fit(
                RARE, TARGET
            ),
            "min_frequency",
        ),
        (
            lambda: HistGradientBoostingRegressor(max_iter=3, categorical_features=[0]).fit(
                RARE, TARGET
            ),
            "categorical_features",
        ),
    ],
)
def test_an_option_that_the_converter_ignores_is_named(make, option, tmp_path):
    with pytest.raises(StepError) as caught:
        converted(saved(make(), tmp_path), tmp_path)
    assert option in caught.value.what


def test_wrong_codes_of_whole_numbers_are_not_excused_as_rows_on_a_threshold(tmp_path):
    """No rounding moves a count or a category."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(RARE)
    model = converted(saved(encoder, tmp_path), tmp_path)
    _, reference = referenced(saved(encoder, tmp_path), tmp_path, np.array_split(RARE[:64], 4))

    def shift(nodes, _):
        given = nodes["LabelEncoder"].attribute
        (values,) = (each for each in given if each.name.startswith("values_"))
        field = values.floats or values.ints
        field[3] += 1

    wrong = planted(model, tmp_path / "bad", shift)
    outcome, _ = judged(wrong, reference, tmp_path / "gate")
    assert outcome.findings


def test_a_row_is_excused_only_as_what_the_estimator_gives_for_a_moved_copy():
    def compute(feeds):
        rows = feeds["x"]
        return {"y": (rows[:, 0] > 0.3).astype(np.float32) + 2 * (rows[:, 1] > 0.7)}

    rows = np.array([[0.3, 0.7], [0.3, 0.2], [0.1, 0.2]], np.float32)
    moved = rows_on_threshold(compute, {"x": rows})
    expected = compute({"x": rows})
    every = {row: {float(y) for r, y in zip(moved.rows, moved.outputs["y"], strict=True) if r == row}
             for row in range(3)}  # fmt: skip
    assert {0.0, 1.0, 2.0, 3.0} - {float(expected["y"][0])} <= every[0]
    assert every[2] == set()
    flipped = {"y": np.array([1 - expected["y"][0] % 2, 9, 0], np.float32)}
    assert excused_rows(expected, flipped, moved).tolist() == [True, False, False]


COUNTS = np.random.default_rng(0).integers(0, 30, (300, 4))
SUM = COUNTS[:, 0] * 0.1 + (COUNTS[:, 1] > COUNTS[:, 2])
QUIET = {"n_estimators": 5, "n_jobs": 1}
LIGHT = {**QUIET, "num_leaves": 8, "verbose": -1, "min_child_samples": 5}


@pytest.mark.parametrize(
    ("frontend", "make"),
    [
        ("lightgbm", lambda: lightgbm.LGBMRegressor(**LIGHT).fit(COUNTS, SUM)),
        ("lightgbm", lambda: lightgbm.LGBMClassifier(**LIGHT).fit(COUNTS, SUM > 1)),
        ("xgboost", lambda: xgboost.XGBRegressor(**QUIET).fit(COUNTS, SUM)),
        ("sklearn", lambda: LinearRegression().fit(COUNTS, SUM)),
    ],
)
@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
def test_a_table_of_integers_is_taken_as_it_is(frontend, make, dtype, tmp_path):
    same_as_the_estimator(make(), [COUNTS.astype(dtype)], tmp_path, frontend, dtype)


TABLE = np.concatenate([COUNTS[:, :2] % 12, np.random.default_rng(1).normal(size=(300, 2))], 1)
TABLE = TABLE.astype(np.float32)
KINDS = TABLE[:, 0] % 3 + TABLE[:, 2]
FOREST = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7, **LIGHT}


def categories_xgboost():
    options = {"tree_method": "hist", "enable_categorical": True, **QUIET}
    return xgboost.XGBRegressor(feature_types=["c", "q", "q", "q"], **options).fit(TABLE, KINDS)


@pytest.mark.parametrize(
    ("frontend", "make"),
    [
        (
            "lightgbm",
            lambda: lightgbm.LGBMRegressor(**LIGHT).fit(TABLE, KINDS, categorical_feature=[0, 1]),
        ),
        (
            "lightgbm",
            lambda: lightgbm.LGBMClassifier(**LIGHT).fit(
                TABLE, np.digitize(KINDS, [0.5, 1.5]), categorical_feature=[0]
            ),
        ),
        ("xgboost", categories_xgboost),
    ],
)
def test_fractions_of_categories_are_cut_off_and_dummies_hold_categories(frontend, make, tmp_path):
    below = TABLE * np.float32([0, 1, 1, 1]) - np.float32([0.5, 0, 0, 0])
    rows = [TABLE, TABLE + np.float32([0.3, 0, 0, 0]), TABLE + np.float32([50, 0, 0, 0]), below]
    found = same_as_the_estimator(make(), rows, tmp_path, frontend)
    for point in found:
        if not point.name.startswith("sample"):
            column = point.feeds["features"][:, 0]
            assert set(column) <= set(range(12))
            assert len(set(column)) > 1 or len(column) == 1


def encoded(unknown="ignore"):
    encoder = OneHotEncoder(handle_unknown=unknown)
    return make_pipeline(
        ColumnTransformer([("c", encoder, [0, 1])], remainder=StandardScaler()),
        LogisticRegression(),
    ).fit(TABLE, KINDS > 1)


def test_a_fraction_is_no_category_of_an_encoder_and_dummies_hold_categories(tmp_path):
    rows = [TABLE, TABLE + np.float32([0.3, 0, 0, 0]), TABLE - np.float32([50, 0.5, 0, 0])]
    found = same_as_the_estimator(encoded(), rows, tmp_path, "sklearn")
    dummies = [p.feeds["features"] for p in found if not p.name.startswith("sample")]
    assert all(set(each[:, 0]) <= set(range(12)) for each in dummies)
    assert len({*dummies[-1][:, 0]}) > 1


def test_an_encoder_that_refuses_unknown_categories_has_a_fix_that_works(tmp_path):
    with pytest.raises(StepError, match="Unknown Category") as caught:
        same_as_the_estimator(encoded("error"), [TABLE], tmp_path, "sklearn")
    assert "OneHotEncoder(handle_unknown='ignore')" in caught.value.fix


def test_dummy_texts_and_integers_are_known_categories_too():
    table = np.array([[2, "Bern"], [4, "Rome"], [9, "Oslo"]], object)
    columns = ColumnTransformer([("o", OrdinalEncoder(), [1]), ("h", OneHotEncoder(), [0])])
    columns.fit(table).feature_names_in_ = np.array(["size", "town"], object)
    inputs = (  # in another order than the table's
        DummyInput("town", "string", ("batch", 1)),
        DummyInput("size", "int64", ("batch", 1)),
    )
    feeds = make_feeds(inputs, {"batch": 8}, 0)
    found = with_categories(feeds, inputs, columns)
    assert set(found["town"].ravel()) == {"Bern", "Rome", "Oslo"}
    assert set(found["size"].ravel()) <= {2, 4, 9}
    declared = (replace(inputs[0], fill="Kyiv"), inputs[1])
    feeds = make_feeds(declared, {"batch": 8}, 0)
    assert set(with_categories(feeds, declared, columns)["town"].ravel()) == {"Kyiv"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: lightgbm.LGBMClassifier(**FOREST).fit(TABLE, KINDS > 1),
        lambda: lightgbm.LGBMClassifier(**FOREST).fit(TABLE, np.digitize(KINDS, [0.5, 1.5])),
        lambda: lightgbm.LGBMRegressor(**FOREST).fit(TABLE, KINDS),
    ],
)
def test_a_random_forest_of_lightgbm_is_the_mean_of_its_own_trees(make, tmp_path):
    same_as_the_estimator(make(), [TABLE], tmp_path, "lightgbm")


def same_as_the_estimator(estimator, samples, folder, frontend, dtype="float32"):
    """The points at which the gate compared both."""
    inputs = (DummyInput("features", dtype, ("batch", 4)),)
    folder.mkdir(exist_ok=True)
    joblib.dump(estimator, folder / "estimator.joblib")
    (folder / "model.py").write_text(
        "import joblib\ndef load():\n"
        f"    return joblib.load({str(folder / 'estimator.joblib')!r})\n"
    )
    model = Entrypoint(f"{folder / 'model.py'}:load")
    made = converted(model, folder, frontend=frontend, inputs=inputs)
    some = [each[:48] for each in samples]
    _, reference = referenced(model, folder, some, frontend=frontend, inputs=inputs)
    outcome, report = judged(made, reference, folder / "gate")
    assert not outcome.findings, report
    return list(read_reference(reference))
