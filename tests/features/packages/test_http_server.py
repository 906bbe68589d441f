"""`packages: {http-server: {}}`: the server is started, asked by TCP and in a sandbox, and refuses what it should."""

import http.client
import json
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from onnxbuild.features.packages.http_server import FEATURE, PackageHttpServerParams
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.loaders.script import load_script
from onnxbuild.onnxkit.packages.package_run import RunParams
from onnxbuild.verification.fenced_replay import Replay
from tests.fakes.step_context import run_step
from tests.native.packages import arrays, write_bundle, write_reference

TYPES = ("float32", "float16", "int64", "uint8", "bool", "string")
BOUNDS = VariantTolerances(atol=1e-6, rtol=1e-6, equal_min=1.0)
INFER = "/v2/models/all-types/infer"


def packaged(folder, scale=1.0):
    """(package, reference) of a model with an input of each type."""
    bundle = write_bundle(folder / "bundle", TYPES, scale)
    (bundle / "load.py").write_text(load_script("onnxruntime"))
    reference = write_reference(folder / "reference", TYPES, {"float16": "float32"})
    params = PackageHttpServerParams("all-types", 1, 2, BOUNDS)
    inputs = {"bundle": bundle, "reference": reference}
    _, context = run_step(FEATURE.kind, params, folder / "step", inputs)
    return context.output("bundle"), reference


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return packaged(tmp_path_factory.mktemp("http"))


def test_the_step_runs_the_server_and_judges_its_answers(made, tmp_path):
    package, reference = made
    inputs = {"package": package, "reference": reference}
    outcome, _ = run_step(FEATURE.run, RunParams("it", BOUNDS), tmp_path / "good", inputs)
    assert (outcome.findings, outcome.metrics["points_passed"]) == ((), 2)
    other, _ = packaged(tmp_path / "other", scale=1.5)
    inputs = {"package": other, "reference": reference}
    outcome, _ = run_step(FEATURE.run, RunParams("it", BOUNDS), tmp_path / "bad", inputs)
    assert outcome.findings[0].where.startswith("it, output 'class-float32'")


def test_verify_runs_it_where_sockets_are_refused(made, tmp_path):
    package, reference = made
    inputs = {"package": package, "reference": reference}
    params, scratch = RunParams("it", BOUNDS), tmp_path / "step"
    replay = Replay("run-http-server", params, "demo", inputs, (package, reference), scratch)
    found = replay.run()
    assert (found.metrics["points"], found.findings, found.skipped) == (2, (), "")


@pytest.fixture(scope="module")
def port(made):
    command = [sys.executable, "-B", "serve.py", "--port", "0"]
    with subprocess.Popen(command, cwd=made[0], stdout=subprocess.PIPE, text=True) as process:
        url = process.stdout.readline().split()[-1]
        yield int(url.split(":")[2].partition("/")[0])
        process.kill()


def ask(port, method, path, body=None, headers=()):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def request(**changes):
    """A request of two rows, with other `data`, `shape` or `datatype` of the int64."""
    values = arrays(TYPES, 2)
    datatypes = dict(zip(TYPES, ("FP32", "FP16", "INT64", "UINT8", "BOOL", "BYTES"), strict=True))
    inputs = [
        {"name": f"in.{e}", "datatype": datatypes[e], "shape": [2, 3], "data": values[e].tolist()}
        for e in TYPES
    ]
    inputs[2].update(changes)
    return {"id": "7", "inputs": inputs}


@pytest.mark.slow
def test_a_client_learns_the_model_and_gets_its_outputs(port):
    assert ask(port, "GET", "/v2/health/ready") == (200, {"ready": True})
    status, about = ask(port, "GET", "/v2/models/all-types")
    assert (status, about["inputs"][2]) == (200, {"name": "in.int64", "datatype": "INT64", "shape": [-1, 3]})  # fmt: skip
    status, said = ask(port, "POST", INFER, json.dumps(request()))
    assert (status, said["id"], len(said["outputs"])) == (200, "7", len(TYPES))
    for each, (dtype, array) in zip(said["outputs"], arrays(TYPES, 2).items(), strict=True):
        assert each["name"] == f"class-{dtype}"
        np.testing.assert_array_equal(np.array(each["data"]).reshape(each["shape"]), array)
    one = {**request(), "outputs": [{"name": "class-bool"}]}
    assert [e["name"] for e in ask(port, "POST", INFER, json.dumps(one))[1]["outputs"]] == ["class-bool"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ("{", 400, "the body is no JSON"),
        ("[]", 400, "the body has no list `inputs`"),
        (json.dumps({"inputs": []}), 400, "input 'in.bool' is missing"),
        (json.dumps(request(name="x")), 400, "there is no input 'x'"),
        (json.dumps(request(datatype="FP32")), 400, "input 'in.int64' is 'FP32', not INT64"),
        (json.dumps(request(data=[0.5] * 6)), 400, "it holds float64, not int64"),
        (json.dumps(request(shape=[7])), 400, "cannot reshape"),
        (json.dumps(request(shape=[6, 1])), 400, "Got invalid dimensions"),
        (json.dumps({**request(), "outputs": [{"name": "y"}]}), 400, "there is no output 'y'"),
        (" " * (1 << 20) + "{}", 413, "at most 1 MiB are taken"),
    ],
    ids=lambda each: str(each)[-30:],
)
def test_a_request_that_the_model_does_not_take_is_refused_with_the_reason(
    port, body, status, why
):
    found, said = ask(port, "POST", INFER, body)
    assert (found, why in said["error"]) == (status, True), said


@pytest.mark.slow
def test_other_paths_and_bodies_of_unknown_length_are_refused(port):
    assert ask(port, "GET", "/v2/models/other")[0] == 404
    assert ask(port, "POST", INFER, iter([b"{}"]), {"Transfer-Encoding": "chunked"}.items())[0] == 411  # fmt: skip
