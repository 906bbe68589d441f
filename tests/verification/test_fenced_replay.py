"""In depth: a model, its settings and its golden files do no harm even where nobody has looked at them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxbuild.adapters.kernel import landlock
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import BundleTarget, Manifest, Verdict, to_manifest
from onnxbuild.onnxkit.bundles.manifest import ManifestProvider as Link
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import validate
from onnxbuild.verification.fenced_replay import UNTRUSTED, Replay, _judged, attempt
from onnxbuild.verification.replay import replay
from onnxbuild.verification.replay_context import ReplayContext, Replayed, ReplayRequest
from tests.onnxkit.models import linear, model, save, value
from tests.verification.hostile import FILE_KEY

fenced = pytest.mark.skipif(landlock.abi() == 0, reason="this kernel has no Landlock")

PARAMS = validate.ValidateParams(
    variant="fp32",
    precision="fp32",
    tolerances=VariantTolerances(atol=1e-4),
    target=CPU_TARGET,
    gates=TargetGates(),
)


def subject(folder: Path, made=None):
    """A bundle with a model, and golden files of it."""
    bundle, golden = folder / "bundle", folder / "golden"
    bundle.mkdir()
    golden.mkdir()
    save(made or linear(), bundle / "model.onnx")
    x = np.ones((2, 4), np.float32)
    weights = {each.name: onnx.numpy_helper.to_array(each) for each in linear().graph.initializer}
    y = np.maximum(x @ weights["w"] + weights["b"], 0)
    writer = ReferenceWriter(golden)
    writer.add(ReferencePoint("example", {"batch": 2}, {"x": x}, {"y": y}))
    writer.finish()
    return bundle, golden


def replay_of(
    folder: Path, bundle: Path, golden: Path, *, params=PARAMS, timeout_s=60.0
) -> Replay:
    inputs = {"model": bundle / "model.onnx", "reference": golden}
    return Replay(
        "validate", params, "x:fp32", inputs, (bundle, golden), folder / "scratch", timeout_s
    )


def test_a_sound_model_is_judged_in_a_process_of_its_own(tmp_path):
    judged = replay_of(tmp_path, *subject(tmp_path)).run()
    assert judged.metrics["points"] == 1
    assert judged.metrics["max_abs"] < 1e-6
    assert not judged.findings


def described_as(bundle: Path, **more) -> None:
    """Give a bundle a manifest, whose target is the CPU unless `more` says otherwise."""
    cpu = BundleTarget((Link("CPUExecutionProvider", {}),), SessionSettings())
    digest = Digest.of((bundle / "model.onnx").read_bytes())
    known = {
        "name": "x",
        "kind": "onnx",
        "file": "model.onnx",
        "variant": "fp32",
        "precision": "fp32",
        "recipe_sha256": "0" * 64,
        "inputs": (),
        "outputs": (),
        "dynamic_axes": {},
        "validation": {"cpu": Verdict(True, to_json(VariantTolerances(atol=1e-4)), {})},
        "versions": {"torch": "2.13.0"},
        "targets": {"cpu": cpu},
        "providers": (),
        "files": {"model.onnx": digest},
    }
    content = to_manifest(Manifest(**{**known, **more}))
    (bundle / "manifest.json").write_text(json.dumps(content))


def replayed(folder: Path, bundle: Path, golden: Path) -> Replayed:
    (folder / "runs").mkdir()
    asked = ReplayRequest(bundle, golden, folder / "runs", (), trusted=False, timeout_s=60.0)
    (found,) = replay(asked)
    return found


WITH_LIBRARY = {
    "cpu": BundleTarget((Link("CPUExecutionProvider", {}),), SessionSettings(), library="x.so")
}


@pytest.mark.parametrize(
    ("more", "skipped"),
    [
        ({"kind": "new"}, ""),
        ({"kind": "new", "targets": WITH_LIBRARY}, "'cpu' is a plug-in, and its library x.so"),
        ({"kind": "torch-export", "by_keyword": False}, UNTRUSTED),
    ],
)  # fmt: skip
def test_a_kind_that_nobody_knows_is_run_where_it_can_do_no_harm(tmp_path, more, skipped):
    bundle, golden = subject(tmp_path)
    described_as(bundle, **more)
    found = replayed(tmp_path, bundle, golden)
    assert found.skipped.startswith(skipped)
    assert bool(found.metrics) is not bool(skipped)


def test_a_compiled_model_of_a_kind_that_nobody_knows_is_not_run_untrusted(tmp_path):
    made = linear()
    made.doc_string = "EPContext"
    bundle, golden = subject(tmp_path, made)
    described_as(bundle, kind="new")
    assert replayed(tmp_path, bundle, golden).skipped == UNTRUSTED


@fenced
def test_a_setting_that_writes_a_file_writes_none_in_the_fence(tmp_path):
    bundle, golden = subject(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    params = replace(PARAMS, session=SessionSettings(config={FILE_KEY: str(victim)}))
    replay = replay_of(tmp_path, bundle, golden, params=params)
    found = attempt(replay, "fp32", "cpu", asked_for=False, on_cpu=True)
    assert found.failed or found.metrics["points"] == 1
    assert victim.read_text() == "precious"

    (tmp_path / "open").mkdir()
    inputs = {"model": bundle / "model.onnx", "reference": golden}
    validate.run(ReplayContext(params, "x:fp32", tmp_path / "open", inputs))
    assert victim.read_text() != "precious", "it writes nothing anyway: the test shows nothing"


@fenced
@pytest.mark.parametrize("place", ["../secret", "{folder}/secret", "/etc/hostname"])
def test_weights_outside_of_the_bundle_are_not_read(tmp_path, place):
    made = linear()
    weight = made.graph.initializer[0]
    (tmp_path / "secret").write_bytes(weight.raw_data)
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=place.format(folder=tmp_path))
    replay = replay_of(tmp_path, *subject(tmp_path, made))
    found = attempt(replay, "fp32", "cpu", asked_for=False, on_cpu=True)
    assert found.failed, "ONNX Runtime read it"


def endless():
    """y = x, after a loop of 2^62 turns."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Sin", ["each"], ["next"]),
        ],
        "body",
        [
            value("turn", [], TensorProto.INT64),
            value("go", [], TensorProto.BOOL),
            value("each", None),
        ],
        [value("on", [], TensorProto.BOOL), value("next", None)],
    )
    return model(
        [helper.make_node("Loop", ["most", "", "x"], ["y"], body=body)],
        [value("x", ["batch", 4])],
        [value("y", None)],
        [onnx.numpy_helper.from_array(np.int64(1 << 62), "most")],
    )


def test_a_model_that_never_ends_is_stopped(tmp_path):
    replay = replay_of(tmp_path, *subject(tmp_path, endless()), timeout_s=3)
    with pytest.raises(StepError, match="stopped: it ran longer than 3 s"):
        replay.run()


def damage(golden: Path, change) -> None:
    points = json.loads((golden / "points.json").read_text())
    change(points)
    (golden / "points.json").write_text(json.dumps(points))


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (lambda golden: damage(golden, lambda p: p[0].update(file="../x")), "[0].file is '../x'"),
        (
            lambda golden: np.savez(golden / "example.npz", **{"input.x": np.ones(1)}),
            "it has no outputs to compare with",
        ),
    ],
)
def test_golden_files_that_nobody_can_follow_fail_the_replay_by_name(tmp_path, harm, named):
    bundle, golden = subject(tmp_path)
    harm(golden)
    found = attempt(
        replay_of(tmp_path, bundle, golden), "fp32", "cpu", asked_for=False, on_cpu=True
    )
    assert named in found.failed


def test_a_model_that_the_cpu_refuses_fails_and_one_of_an_absent_provider_is_skipped(tmp_path):
    bundle, golden = subject(tmp_path)
    (bundle / "model.onnx").write_bytes(b"no model")
    for asked_for, on_cpu, which in ((False, True, "failed"), (False, False, "skipped")):
        replay = replace(replay_of(tmp_path, bundle, golden), scratch=tmp_path / which)
        found = attempt(replay, "fp32", "p", asked_for=asked_for, on_cpu=on_cpu)
        assert "ONNX Runtime refuses the model" in getattr(found, which)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"metrics": {}, "findings": []},
        {"metrics": {"points": 4, "max_abs": None, "cosine_min": 1.0}, "findings": []},
        {"metrics": 7, "findings": [["x", "y"]]},
    ],
)
def test_an_answer_that_is_no_verdict_is_none(answer):
    with pytest.raises(StepError, match="no verdict that can be read"):
        _judged(answer)
