"""`onnxbuild bench --against` programs of PyTorch: bundles, files of others, and what can't be compared."""

import json
import shutil

import pytest
import torch

from onnxbuild.onnxkit.bundles.manifest import Manifest, Value, to_manifest
from onnxbuild.onnxkit.export.torch_wrapping import quiet
from onnxbuild.onnxkit.host.made_for import MadeFor

pytestmark = pytest.mark.slow

FORMATS = "formats: [onnx, torchscript, torch-export]\n"
QUICKLY = ("--set", "benchmark.max_time_s=0.3")


class Net(torch.nn.Module):
    """Takes what the recipe feeds, under a name of its choice."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(width, 2)

    def forward(self, input):  # noqa: A002 - as the recipe calls it
        return self.layer(input)


class Pair(torch.nn.Module):
    def forward(self, input, mask):  # noqa: A002 - the same
        return input * mask


def scripted(path, module, *shapes):
    feeds = tuple(torch.zeros(*shape) for shape in shapes)
    with quiet():  # TorchScript is deprecated
        torch.jit.save(torch.jit.trace(module.eval(), feeds), str(path))
    return str(path)


def exported(path, module, feed, *, by_name=False):
    batch = torch.export.Dim("batch", min=1, max=8)
    program = torch.export.export(
        module.eval(),
        () if by_name else (feed,),
        kwargs={"input": feed} if by_name else None,
        dynamic_shapes={"input": {0: batch}},
    )
    torch.export.save(program, str(path))
    return str(path)


def bench(project, *against):
    others = [each for path in against for each in ("--against", str(path))]
    done = project("bench", "tiny.yaml", *others, "--json", *QUICKLY)
    return done, json.loads(done.out)["tiny"]["cpu"] if done.code == 0 else {}


def test_bundles_and_files_of_programs_are_measured_next_to_the_variants(project, tmp_path):
    project.write("tiny.yaml", (project.folder / "tiny.yaml").read_text() + FORMATS)
    built = project.run("--only", "torchscript", "--only", "torch-export")
    assert built.code == 0, built.out + built.err
    old = tmp_path / "old"
    shutil.copytree(project.folder / "artifacts/out/tiny", old)
    project.edit("tiny.yaml", FORMATS, "")
    files = (
        scripted(tmp_path / "trace.pt", Net(), (2, 4)),
        exported(tmp_path / "graph.pt2", Net(), torch.zeros(2, 4)),
        exported(tmp_path / "named.pt2", Net(), torch.zeros(2, 4), by_name=True),
    )
    done, report = bench(project, old / "torchscript", old / "torch-export", *files)
    assert done.code == 0, done.out + done.err
    others = {"old/torchscript", "old/torch-export", "trace", "graph", "named"}
    results = report["points"][0]["results"]
    assert set(results) == {"pytorch", "fp32", *others}
    assert set(results["fp32"]["against"]) == others
    assert report["models"]["trace"]["size_bytes"] == (tmp_path / "trace.pt").stat().st_size


def test_programs_of_a_release_can_be_compared_with(project):
    project.edit("tiny.yaml", "quantization: {fp32: none}\n", "formats: [torchscript]\n")
    assert project("lock", "tiny.yaml").code == 0
    made = project("release", "tiny.yaml", "--version", "1.0", "--allow-dirty")
    assert made.code == 0, made.out + made.err
    done, report = bench(project, "dist/tiny-1.0.tar")
    assert done.code == 0, done.out + done.err
    assert set(report["models"]) == {"pytorch", "torchscript", "1.0/torchscript"}


def weights(path):
    torch.save(Net().state_dict(), str(path))
    return path


def other_manifest(path):
    path.mkdir()
    scripted(path / "model.pt", Net(), (2, 4))
    reported = {"by_keyword": False, "file": "model.pt", "format": "torchscript"}
    (path / "manifest.json").write_text(json.dumps(reported))
    return path


def of_another_machine(path):
    other_manifest(path)
    made = Manifest(
        name="net",
        kind="torchscript",
        file="model.pt",
        precision="fp32",
        recipe_sha256="0" * 64,
        inputs=(Value("input", "float32", ("batch", 4)),),
        outputs=(Value("y"),),
        dynamic_axes={},
        validation={},
        versions={},
        made_for=MadeFor("vax", "VAX-11", {}),
        by_keyword=False,
    )
    (path / "manifest.json").write_text(json.dumps(to_manifest(made)))
    return path


ODD = {
"weights alone": (weights, "weights.pt", 2, "holds no program"),
"another number of inputs": (
        lambda path: scripted(path, Pair(), (2, 4), (2, 4)), "pair.pt", 1,
        "pair.pt takes input, mask; the recipe feeds input",
    ),
"another shape that only a run shows": (
        lambda path: scripted(path, Net(5), (2, 5)), "wide.pt", 1,
        "does not take what the recipe feeds, input float32[2, 4]",
    ),
"a manifest that says too little": (
        other_manifest, "bundle", 1, "says nothing that can be followed",
    ),
"another machine": (
        of_another_machine, "vax", 1, "can't run here: it was made for vax",
    ),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=lambda name: name.replace(" ", "-"))
def test_what_can_not_be_compared_is_refused_by_name(project, tmp_path, odd):
    make, name, code, reported = ODD[odd]
    path = tmp_path / name
    make(path)
    done = project(
        "bench", "tiny.yaml", "--against", str(path), "--set", "benchmark.baseline=false"
    )
    assert done.code == code, done.out + done.err
    assert reported in done.out + done.err
    assert "fix: " in done.out + done.err
