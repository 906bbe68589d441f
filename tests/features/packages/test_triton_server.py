"""Packages for Triton on a real Triton core, over HTTP and gRPC; what ONNX Runtime's own backend does, a stand-in does."""

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.framework_environments import onnxbuild
from tests.triton.server import install, serving

RECIPES = Path(__file__).parents[3] / "recipes"
PACKAGED = {
    "digits": "{variants: [fp32], wheel: {}, triton: {dynamic_batching: true, preferred_batch_sizes: [4], "
    "max_queue_delay_us: 500000, instances: 1}}",
    "bert": "{variants: [fp32], wheel: {}, triton: {max_batch_size: 8}}",
    "vad": "{variants: [fp32], wheel: {}, triton: {}}",
    "intents": "{variants: [int8-pipeline], wheel: {}, triton: {}}",
    "digits_pipeline": "{variants: [fp32-pipeline], wheel: {}, triton: {ensemble: true, version: 3}}",
}  # fmt: skip
"""Recipe -> `packages`; the wheel is for its golden inputs."""

BUILT = (
    "digits:fp32", "bert:fp32", "vad:fp32", "intents:int8-pipeline", "digits-pipeline:fp32-pipeline",
)  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def triton(tmp_path_factory):
    return install(tmp_path_factory.mktemp("triton"))


@pytest.fixture(scope="module")
def out(triton, tmp_path_factory, shared_results):
    """Where the recipes' packages are."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text("")
    shutil.copytree(RECIPES / "models", folder / "recipes/models")
    for name, packages in PACKAGED.items():
        text = (RECIPES / f"{name}.yaml").read_text().partition("\nevaluate:")[0]
        (folder / f"recipes/{name}.yaml").write_text(f"{text}\npackages: {packages}\n")
    only = [
        word
        for each in BUILT
        for form in ("triton", "wheel")
        for word in ("--only", f"{each}-{form}")
    ]
    shared_results.lend(folder / "artifacts")
    done = onnxbuild(folder, "run", *(f"recipes/{name}.yaml" for name in PACKAGED), *only)
    assert done.returncode == 0, done.stdout + done.stderr
    shared_results.keep(folder / "artifacts")
    return folder / "artifacts/out"


@pytest.fixture(scope="module")
def repository(out, tmp_path_factory):
    """All packages in one."""
    folder = tmp_path_factory.mktemp("repository")
    for each in BUILT:
        for model in (
            (out / each.replace(":", "/")).with_name(each.partition(":")[2] + "-triton").iterdir()
        ):
            if model.is_dir():
                shutil.copytree(model, folder / model.name)
    return folder


@pytest.fixture(scope="module")
def server(triton, repository, tmp_path_factory):
    with serving(triton, repository, tmp_path_factory.mktemp("server")) as started:
        assert started.is_ready, started.said()[-4000:]
        yield started


def golden(out, name):
    """(the bundle's session, point -> its inputs)."""
    recipe, _, bundle = name.partition(":")
    (wheel,) = (out / recipe / f"{bundle}-wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        place = wheel.parent / "unpacked"
        archive.extractall(place)
    (listed,) = place.glob("*/golden/points.json")
    session = onnxruntime.InferenceSession(next(place.glob("*/model.onnx")))
    points = {}
    for point in json.loads(listed.read_text()):
        with np.load(listed.parent / point["file"]) as arrays:
            points[point["name"]] = {
                key.removeprefix("input."): arrays[key]
                for key in arrays.files
                if key.startswith("input.")
            }
    shutil.rmtree(place)
    return session, points


def sent(feeds, most_rows):
    """The inputs as Triton takes them: a scalar, and one value of each row of a batch, have an axis of 1 more."""
    is_batched = most_rows > 0
    return {
        name: array.reshape(*array.shape, 1) if array.ndim == (1 if is_batched else 0) else array
        for name, array in feeds.items()
    }


@pytest.mark.parametrize(
    ("name", "most_rows"),
    [
        ("digits:fp32", 64), ("bert:fp32", 8), ("vad:fp32", 0), ("intents:int8-pipeline", 64),
        ("digits-pipeline:fp32-pipeline", 64),
    ],
)  # fmt: skip
def test_triton_gives_what_onnx_runtime_gives_at_every_golden_point(
    out, server, tmp_path, name, most_rows
):
    session, points = golden(out, name)
    tasks, expected = [], []
    for number, feeds in enumerate(points.values()):
        rows = len(next(iter(feeds.values())))
        if most_rows and rows > most_rows:
            continue
        files = {key: tmp_path / f"{number}-{key}.npz" for key in ("feeds", "http", "grpc")}
        np.savez(files["feeds"], **sent(feeds, most_rows))
        tasks.append({"model": name.replace(":", "-"), **files})
        taken = {each.name: each for each in session.get_inputs()}
        half = {
            n: a.astype("float16") if taken[n].type == "tensor(float16)" else a
            for n, a in feeds.items()
        }
        names = [each.name for each in session.get_outputs()]
        expected.append(dict(zip(names, session.run(None, half), strict=True)))
    assert len(tasks) >= 3
    assert server.ask(tasks, tmp_path) == [{}] * len(tasks)
    for task, wanted in zip(tasks, expected, strict=True):
        for protocol in ("http", "grpc"):
            with np.load(task[protocol]) as found:
                assert set(found.files) == set(wanted)
                for output, array in wanted.items():
                    given = found[output].reshape(array.shape)
                    if array.dtype.kind in "OU":
                        assert given.tolist() == array.tolist()
                    else:
                        assert given.dtype == array.dtype
                        np.testing.assert_allclose(given, array, rtol=1e-4, atol=1e-5)


def test_requests_that_come_together_run_as_one_batch(server, tmp_path):
    feeds = tmp_path / "one.npz"
    np.savez(feeds, image=np.ones((1, 1, 8, 8), np.float32))
    (before,) = server.ask([{"model": "digits-fp32", "burst": 1, "feeds": feeds}], tmp_path)
    (after,) = server.ask([{"model": "digits-fp32", "burst": 8, "feeds": feeds}], tmp_path)
    assert after["requests"] - before["requests"] == 8
    assert after["executions"] - before["executions"] < 8


def test_each_model_was_warmed_up_before_it_was_ready(server):
    said = server.said()
    for model, sample in (
        ("digits-fp32", "example-4"),
        ("intents-int8-pipeline", "sample-000-2"),
        ("vad-fp32", "example-1"),
        ("digits-pipeline-fp32-pipeline-preprocess", "sample-000-1"),
        ("digits-pipeline-fp32-pipeline-model", "example-1"),
    ):
        (first, *_) = (
            line
            for line in said.splitlines()
            if f"model '{model}' instance" in line and sample in line
        )
        assert "is running warmup sample" in first
    assert "digits-fp32 runs 4 requests at {'image': [4, 1, 8, 8]}" in said


def test_a_request_of_another_shape_or_above_the_cap_is_refused(server, tmp_path):
    wide, many = tmp_path / "wide.npz", tmp_path / "many.npz"
    np.savez(wide, image=np.ones((1, 1, 8, 9), np.float32))
    ids = np.ones((9, 4), np.int64)
    np.savez(many, input_ids=ids, attention_mask=ids)
    answers = server.ask(
        [{"model": "digits-fp32", "feeds": wide}, {"model": "bert-fp32", "feeds": many}], tmp_path
    )
    assert "unexpected shape for input 'image'" in answers[0]["error"]
    assert "batch-size must be <= 8" in answers[1]["error"]
