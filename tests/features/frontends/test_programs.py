"""`model: {exported: FILE}` and `{torchscript: FILE}`: what the archives say, what neither can, and real builds."""

import json
import warnings
import zipfile

import numpy as np
import pytest
import torch

import onnxbuild
from onnxbuild.core.recipe import FILE_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.steps import export
from tests.fakes.step_context import run_step
from tests.steps.graphs import run_model
from tests.written_recipes import faults, loader

EXPORTED = "version: 1\nname: demo\nmodel: {exported: m.pt2}\n"
SCRIPT = "version: 1\nname: demo\nmodel: {torchscript: m.pt}\n"
INPUT = "dummy_inputs: {x: {dtype: float32, shape: [batch, 8]}}\n"


class Net(torch.nn.Module):
    """Two tensors by name, and a flag."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(16, 8)
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x, ids, flag=True, *, scale):
        scores = self.linear(x + self.embed(ids)) * scale
        return {"scores": scores if flag else -scores, "mean": scores.mean(-1)}


class Part(torch.nn.Module):
    """A branch by value, and an argument that may be left out."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(8, 4)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor, bias: torch.Tensor | None = None):
        y = self.drop(self.linear(x))
        if bias is not None:
            y = y + bias
        if bool(y.sum() > 0):
            y = y * 2
        return y, y.sum(-1)


class Whole(torch.nn.Module):
    """Takes a number that is no tensor."""

    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor, rate: int):
        return self.part(x)[0] * rate


def exported(path, *, high=16, module=None, train=False):
    module = (module or Net()).train(train)
    batch = torch.export.Dim("b", min=1, max=high)
    pair = 2 * torch.export.Dim("t", max=8)
    dynamic = {"x": {0: batch, 1: pair}, "ids": {0: batch, 1: pair}, "flag": None, "scale": None}
    program = torch.export.export(
        module,
        (torch.randn(4, 8, 8), torch.zeros(4, 8, dtype=torch.long), False),
        {"scale": torch.ones(4)},
        dynamic_shapes=dynamic,
    )
    torch.export.save(program, path)
    return program


def scripted(path, module, *, train=False):
    with warnings.catch_warnings(action="ignore"):
        torch.jit.script(module.train(train)).save(str(path))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A .pt2 and a .pt, made once."""
    folder = tmp_path_factory.mktemp("made")
    exported(folder / "m.pt2")
    scripted(folder / "m.pt", Whole())
    return folder


@pytest.fixture
def load(made, tmp_path):
    for name in ("m.pt2", "m.pt"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    return loader(tmp_path)


def only(load, text):
    (recipe,) = load(text).recipes
    return recipe


def test_three_lines_are_a_recipe_of_an_exported_program(load):
    recipe = only(load, EXPORTED)
    assert (recipe.frontend, recipe.model.target, recipe.model.files) == (
        "exported",
        FILE_DATA,
        ("m.pt2",),
    )
    assert recipe.inputs == (
        DummyInput("x", "float32", ("batch", "x_1", 8)),
        DummyInput("ids", "int64", ("batch", "x_1"), low=0, high=16),
        DummyInput("scale", "float32", (4,)),
    )
    assert recipe.axes == (
        Axis("batch", min=1, max=16, example=2),
        Axis("x_1", min=4, max=16, example=16, multiple_of=2),
    )
    assert recipe.outputs == ("scores", "mean")


def test_what_is_written_comes_first_within_what_the_program_takes(load):
    text = (
        "dummy_inputs: {x: {shape: [n, t, 8]}, ids: {shape: [n, t], high: 4}}\n"
        "dynamic_axes: {n: {min: 2, max: 3}, t: {max: 8}}\noutputs: [mean]\n"
    )
    recipe = only(load, EXPORTED + text)
    assert recipe.axes == (
        Axis("n", min=2, max=3, example=2),
        Axis("t", min=4, max=8, example=8, multiple_of=2),
    )
    assert (recipe.inputs[1].low, recipe.inputs[1].high, recipe.outputs) == (0, 4, ("mean",))


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("dynamic_axes: {batch: {max: 17}}", "axis 'batch' is 1 to 17; the model takes 1 to 16",
         "write `batch: {min: 1, max: 16}`"),
        ("dynamic_axes: {x_1: {multiple_of: 3, min: 6}}",
         "in steps of 3; the model takes 4 to 16, multiples of 2", "multiple_of: 2"),
        ("dummy_inputs: {x: {shape: [batch, 8]}}",
         "input 'x' of the model has 3 dimensions; the recipe has 2", "remove `shape`"),
        ("dummy_inputs: {idz: {high: 3}}", "the model has no input 'idz'", "did you mean 'ids'?"),
        ("reference: {model: model.py:load}", "reference.model needs the frontend 'onnx'",
         "remove it"),
    ],
)  # fmt: skip
def test_a_recipe_that_asks_for_more_is_refused(load, text, what, fix):
    if not what:  # 2 is a size that torch.export never looked at: the export compares it
        assert only(load, f"{EXPORTED}{text}\n").axes[1].min == 2
        return
    found = faults(load, f"{EXPORTED}{text}\n")
    assert any(what in each for each, _, _ in found), found
    assert any(fix in each for _, _, each in found), found


def rewritten(source, target, change):
    """An archive with other JSON in it."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as made:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith("models/model.json"):
                content = json.dumps(change(json.loads(content))).encode()
            made.writestr(name, content)


def unlike(content):
    return {"torch_version": "9.9", "graph": content["graph_module"]}


def test_files_that_hold_no_program_are_one_error_each(made, tmp_path):
    whole = (made / "m.pt2").read_bytes()
    (tmp_path / "cut.pt2").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.pt2").write_text("version https://git-lfs.github.com/spec/v1")
    (tmp_path / "script.pt2").write_bytes((made / "m.pt").read_bytes())
    torch.save(Net().state_dict(), tmp_path / "weights.pt2")
    with zipfile.ZipFile(tmp_path / "other.pt2", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with zipfile.ZipFile(tmp_path / "compiled.pt2", "w") as archive:
        archive.writestr("m/data/aotinductor/model/a.so", "")
    rewritten(made / "m.pt2", tmp_path / "unlike.pt2", unlike)
    nested = torch.export.export(Nested(), ({"a": torch.ones(2)},))
    torch.export.save(nested, tmp_path / "nested.pt2")
    load = loader(tmp_path)
    for name, what, fix in (
        ("cut", "it was cut short, or is damaged", "copy it again"),
        ("text", "it is no archive of PyTorch", "git-lfs"),
        ("script", "holds no exported program: it is TorchScript", "write `torchscript:`"),
        ("weights", "it is of torch.save, weights or a pickled module", "write a callable that builds the module"),
        ("other", "it is another kind of archive", "name the file that `torch.export.save` wrote"),
        ("compiled", "it is compiled for one machine (AOTInductor)", "name the file"),
        ("unlike", "describes its graph in another way than PyTorch 2.13 does; it was made by 9.9", "save it again"),
        ("nested", "takes tensors in a list, tuple or dict", "export a wrapper"),
        ("missing", "there is no file 'missing.pt2'", "write"),
    ):  # fmt: skip
        ((found, where, mend),) = faults(load, EXPORTED.replace("m.pt2", f"{name}.pt2"))
        assert what in found
        assert fix in mend
        assert where == "demo.yaml:3:19"


class Nested(torch.nn.Module):
    def forward(self, parts):
        return parts["a"]


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("", "forward of m.pt takes `rate: int`; a recipe feeds tensors", "`submodule: NAME`"),
        ("submodule: part.other", "m.pt has no submodule 'part.other'", "part has linear, drop"),
    ],
)  # fmt: skip
def test_what_torchscript_does_not_say_has_to_be_written(load, text, what, fix):
    written = f"version: 1\nname: demo\nmodel: {{torchscript: m.pt, {text}}}\n"
    found = faults(load, written)
    assert any(what in each for each, _, _ in found), found
    assert any(fix in each for _, _, each in found), found


def test_what_is_written_for_torchscript_is_held_to_forward(load):
    head = "version: 1\nname: demo\nmodel: {torchscript: m.pt, submodule: part}\n"
    recipe = only(load, head + INPUT)
    assert recipe.axes == (Axis("batch", min=1, max=8, example=2),)
    assert recipe.model.args["submodule"] == "part"
    more = "dummy_inputs: {x: {dtype: float32, shape: [batch, 8]}, bais: {dtype: float32, shape: [4]}}\n"
    ((what, where, fix),) = faults(load, head + more)
    assert what == "forward of m.pt takes no tensor 'bais'"
    assert where.startswith("demo.yaml:4:")
    assert fix.startswith("did you mean 'bias'?")


def test_files_that_hold_no_torchscript_are_one_error_each(made, tmp_path):
    whole = (made / "m.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.pt").write_text("hello")
    (tmp_path / "exported.pt").write_bytes((made / "m.pt2").read_bytes())
    torch.save(Net().state_dict(), tmp_path / "weights.pt")
    with zipfile.ZipFile(tmp_path / "other.pt", "w") as archive:
        archive.writestr("readme.txt", "hello")
    load = loader(tmp_path)
    for name, what, fix in (
        ("cut", "it was cut short, or is damaged", "copy it again"),
        ("text", "it is no archive of PyTorch", "git-lfs"),
        ("exported", "holds no TorchScript: it is a program of torch.export", "write `exported:`"),
        (
            "weights",
            "holds weights alone, or a pickled module (torch.save)",
            "write a callable that builds the module",
        ),
        ("other", "it is another kind of archive", "name the file that `torch.jit.save` wrote"),
    ):
        ((found, _, mend),) = faults(load, SCRIPT.replace("m.pt", f"{name}.pt") + INPUT)
        assert what in found
        assert fix in mend


def params_of(path, recipe, **options):
    facts = dict(recipe.model.args)
    return export.ExportParams(
        model=Entrypoint(FILE_DATA, args=facts, files=(str(path),)),
        inputs=recipe.inputs,
        outputs=recipe.outputs,
        axes=recipe.axes,
        opset=18,
        translations=None,
        options=export.ExportOptions(**options),
    )


@pytest.mark.slow
def test_an_exported_program_gives_what_its_module_gives(made, load, tmp_path):
    recipe = only(load, EXPORTED)
    params = params_of(made / "m.pt2", recipe, exporter="dynamo")
    outcome, context = run_step(export.KIND, params, tmp_path / "step")
    assert outcome.notes == ()
    feeds = {
        "x": np.random.default_rng(0).standard_normal((3, 6, 8)).astype(np.float32),
        "ids": np.arange(18).reshape(3, 6) % 16,
        "scale": np.full(4, 2, np.float32),
    }
    found = run_model(context.output("model"), feeds)
    with torch.no_grad():
        tensors = {name: torch.from_numpy(array) for name, array in feeds.items()}
        expected = Net().eval()(flag=False, **tensors)
    for name in ("scores", "mean"):
        np.testing.assert_allclose(found[name], expected[name].numpy(), atol=1e-5)
    _, other = run_step(export.KIND, params, tmp_path / "again")
    files = [each.output("model") / "model.onnx" for each in (context, other)]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.slow
@pytest.mark.smoke
def test_torchscript_keeps_its_branches(made, load, tmp_path):
    text = SCRIPT.replace("m.pt", "m.pt, submodule: part") + INPUT + "outputs: [output_1]\n"
    recipe = only(load, text)
    params = params_of(made / "m.pt", recipe)
    outcome, context = run_step(export.KIND, params, tmp_path / "step")
    assert outcome.metrics["exporter"] == "torchscript"
    module = Part().eval()
    for sign in (1, -1):
        x = sign * torch.linspace(-1, 3, 24).reshape(3, 8)
        found = run_model(context.output("model"), {"x": x.numpy()})
        assert list(found) == ["output_1"]
        np.testing.assert_allclose(found["output_1"], module(x)[1].detach().numpy(), atol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("warm_steps")
def test_a_build_is_up_to_date_until_the_file_changes(tmp_path):
    scripted(tmp_path / "m.pt", Part())
    (tmp_path / "pyproject.toml").write_text("")
    text = SCRIPT + INPUT + "benchmark: {max_time_s: 0.1, min_samples: 3}\nformats: [onnx]\n"
    (tmp_path / "demo.yaml").write_text(text)
    request = onnxbuild.Request((tmp_path / "demo.yaml",))
    result = onnxbuild.build(request)
    assert result.exit_code == 0, result.report.failures
    assert onnxbuild.build(request).report.built == []
    changed = Part()
    torch.nn.init.zeros_(changed.linear.bias)
    scripted(tmp_path / "m.pt", changed)
    assert {"demo:export", "demo:reference"} <= {
        str(e) for e in onnxbuild.build(request).report.built
    }
