"""Bad input through the real command: its exit code, one clear message, nothing half-written."""

import subprocess
import sys

import pytest

from tests.cli.conftest import RECIPE

NET = """\
import torch


class Net(torch.nn.Module):
    def forward(self, input{more}):
        return {value}


def load():
    return Net()
"""


def nothing_was_built(project, store: str = "artifacts") -> None:
    """No record, no view, nothing half-written, nothing that still runs."""
    root = project.folder / store
    for name in ("ac", "out", "tmp"):
        assert [p for p in (root / name).rglob("*") if p.is_file()] == []
    assert list((root / "tmp").iterdir()) == []
    assert list((root / "locks").glob("run-*")) == []


def refused(project, *arguments: str) -> str:
    """What is said of a recipe or a command line that is wrong: nothing is even begun."""
    before = sorted(project.folder.rglob("*"))
    result = project("run", *(arguments or ("tiny.yaml",)))
    assert result.code == 2, result.out + result.err
    assert result.out == ""
    assert sorted(project.folder.rglob("*")) == before
    return result.err


# --- recipes --------------------------------------------------------------------------------------

FAULTY = """\
version: 1
name: tiny
opsett: 18
model: {entrypoint: models/tiny.py:load, arg: {}}
dummy_inputs:
  input: {dtype: float23, shape: [batch, 4]}
  mask: {dtype: int64, shape: [batch, sequence], fill: yes}
outputs: logits
dynamic_axes:
  batch: {min: 1, max: 8, example: 9}
opset: 99
quantization:
  fp32: {mode: none, validate: {atoll: 1}}
  int8: {mode: dynamic, per_chanel: true}
  still: {mode: static}
providers: [cpu, cdua]
export: {constant_folding: no, exporter: on}
benchmark: {max_time_s: 1:30}
"""

SENTENCES = [
    "3:1: key 'opsett' is not a key of a recipe; did you mean 'opset'?",
    "4:42: key 'arg' is not a key of a model; did you mean 'args'?",
    (
        "6:18: dummy_inputs.input.dtype is 'float23'; expected one of float32, float16, bfloat16, "
        "float64, int64, int32, int16, int8, uint8, bool, string; did you mean 'float32'?"
    ),
    "7:39: symbol 'sequence' in dummy_inputs.mask.shape[1] is not declared in dynamic_axes",
    "7:56: dummy_inputs.mask.fill is 'yes'; expected a number for int64",
    "8:10: outputs is 'logits' (a string); expected a list",
    "10:36: axis 'batch' has example 9; expected 1 to 8",
    "11:8: opset is 99; expected an integer from 11 to 24",
    "13:33: key 'atoll' is not a key of variant tolerances; did you mean 'atol'?",
    "14:25: key 'per_chanel' is not an option of mode 'dynamic'; did you mean 'per_channel'?",
    "15:3: variant 'still' has mode 'static', and no calibration.data is named",
    "16:18: there is no provider 'cdua'; did you mean 'cuda'?",
    "17:28: export.constant_folding is 'no' (a string); expected true or false",
    "17:42: export.exporter is 'on'; expected one of auto, dynamo, torchscript",
    "18:25: benchmark.max_time_s is '1:30' (a string); expected a number of at least 0.1",
]


@pytest.mark.smoke
def test_all_faults_of_a_recipe_are_reported_at_once_each_with_its_place_and_fix(project):
    project.write("tiny.yaml", FAULTY)
    reported = refused(project).removeprefix("error: ").splitlines()
    assert reported[::2] == [f"tiny.yaml:{sentence}" for sentence in SENTENCES]
    assert all(line.startswith("  fix: ") for line in reported[1::2])
    assert "  fix: remove it: `opset` is there already" in reported
    assert "  fix: add `calibration: {data: FILE.py:CALLABLE}` or `{data: FILE.npz}`" in reported


BOMB = "\n".join(
    [
        "a0: &a0 [x, x, x, x, x, x, x, x, x, x]",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)),
    ]
)


@pytest.mark.parametrize(
    ("recipe", "reported"),
    [
        (
            RECIPE + "opset: 18\nopset: 17\n",
            (
                "tiny.yaml:12:1: key 'opset' is written twice; the first is at tiny.yaml:11:1\n"
                "  fix: remove one of the two\n"
            ),
        ),
        (
            BOMB,
            (
                "tiny.yaml:4:45: the file holds more than 10,000 values once its aliases are expanded\n"
                "  fix: use fewer aliases, or keep data in a file of its own\n"
            ),
        ),
        (
            RECIPE.replace("tiny.py:load", "tyni.py:load"),
            (
                "tiny.yaml:3:21: model.entrypoint: there is no file 'models/tyni.py'; "
                "did you mean 'tiny.py'?\n  fix: write `models/tiny.py:load`\n"
            ),
        ),
    ],
    ids=["twice", "bomb", "no file"],
)
def test_a_recipe_that_cant_be_read_further_has_one_message(cheap, recipe, reported):
    cheap.write("tiny.yaml", recipe)
    assert refused(cheap) == f"error: {reported}"


def test_every_verb_refuses_a_faulty_recipe_alike(cheap):
    cheap.write("tiny.yaml", RECIPE + "opsett: 18\n")
    reported = refused(cheap)
    for verb in ("plan", "graph", "lint", "why"):
        name = "tiny.yaml:export" if verb == "why" else "tiny.yaml"
        result = cheap(verb, name)
        assert result.code == 2
        assert reported.removeprefix("error: ").strip() in result.out + result.err


# --- the command line -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (
            ("tyni.yaml",),
            (
                "error: there is no recipe tyni.yaml; did you mean 'tiny.yaml'?\n"
                "  fix: write `tiny.yaml`\n"
            ),
        ),
        (
            ("tiny.yaml", "--only", "fp23"),
            (
                "error: --only fp23 is no variant or step of these recipes; the nearest of 9 are "
                "fp32, fp32/check and fp32/package\n"
                "  fix: write one of them; to see all: onnxbuild graph tiny.yaml\n"
            ),
        ),
        (("tiny.yaml", "--set", "opset"), "'opset' is not KEY=VALUE; write --set opset=VALUE"),
        (
            ("tiny.yaml", "--set", "opest=17"),
            (
                "--set names 'opest', which is no var, no matrix name and no key of the recipe; "
                "did you mean 'opset'?"
            ),
        ),
        (("tiny.yaml", "--jobs", "0"), "0 is not in the range x>=1"),
        (("tiny.yaml", "--memory", "much"), "'much' is not a size; write it like 4GiB or 512MiB"),
        (("tiny.yaml", "--store", ""), "it is empty; write a path"),
        (("tiny.yaml", "--ony", "int8"), "No such option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_command_line_says_what_is_wrong(cheap, arguments, reported):
    result = cheap("run", *arguments)
    assert result.code == 2
    assert (result.err == reported) if reported.startswith("error: ") else (reported in result.err)
    assert not (cheap.folder / "artifacts").exists()


def test_a_verb_that_does_not_exist_names_the_nearest(cheap):
    assert "No such command 'rnu'. Did you mean 'run'?" in cheap("rnu", "tiny.yaml").err
    assert "To build it: onnxbuild run tiny.yaml" in cheap("tiny.yaml").err


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("build tiny.yaml", "No such command 'build'. Did you mean 'run'?"),
        ("help plan", "For the help: onnxbuild plan --help"),
        ("run tiny.yaml --variant int8", "No such option '--variant'. Did you mean '--only'?"),
        ("run tiny.yaml opset=20", "fix: write --set opset=20"),
    ],
)
def test_words_of_other_tools_get_the_word_that_is_meant(cheap, typed, hint):
    result = cheap(*typed.split())
    assert result.code == 2
    assert hint in result.err


# --- models ---------------------------------------------------------------------------------------


def failed(project, step: str = "reference", code: int = 1) -> str:
    """What is printed when a step can't be made; nothing is recorded."""
    result = project.run("--only", step)
    assert result.code == code, result.out + result.err
    assert result.err == f"FAILED (exit code {code}): 0 built, 0 cached, 1 failed\n"
    nothing_was_built(project)
    return result.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "reported"),
    [
(
            "import no_such_package\ndef load(): ...\n",
            [
                "FAILED  tiny:reference: ModuleNotFoundError: No module named 'no_such_package'",
                "        at models/tiny.py:1",
                "        fix: install it next to onnxbuild, in ",
            ],
        ),
(
            "def load():\n    raise ValueError('boom')\n",
            [
                "FAILED  tiny:reference: models/tiny.py:load raised ValueError: boom",
                "        at models/tiny.py:2",
            ],
        ),
(
            NET.format(more=", mask", value="input"),
            [
                ("FAILED  tiny:reference: Net.forward requires 'mask', which `dummy_inputs` does "
                "not give; it gives input"),
                ("        fix: add `mask: {dtype: ..., shape: [...]}` to `dummy_inputs`, or give "
                "the parameter a default"),
            ],
        ),
(
            NET.format(more="", value="input / 0 * 0"),
            [
                ("FAILED  tiny:reference: output 'logits' of the PyTorch model itself holds 8 NaN among 8 "
                "elements at point 'example'"),
                ("        fix: mend the model, or give the inputs the values that it expects "
                "(`low`, `high`, `fill` in `dummy_inputs`)"),
            ],
        ),
(
            "import os, signal\ndef load():\n    os.kill(os.getpid(), signal.SIGKILL)\n",
            [
                ("FAILED  tiny:reference: the step's process was killed by SIGKILL, as when the "
                "machine runs out of memory"),
                "        fix: to try it again: onnxbuild run tiny.yaml --only reference",
            ],
        ),
],
    ids=["package missing", "raises", "input missing", "NaN", "killed"],
)  # fmt: skip
def test_a_model_that_does_not_work_fails_its_step_with_one_message(project, model, reported):
    project.write("models/tiny.py", model)
    out = failed(project)
    for sentence in reported:
        assert sentence in out
    assert out.count("FAILED") == 1


CUSTOM = """\
import torch


@torch.library.custom_op("mine::op", mutates_args=())
def op(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@op.register_fake
def _(x):
    return torch.empty_like(x)


""" + NET.format(more="", value="torch.ops.mine.op(input)")


@pytest.mark.slow
def test_an_operator_that_no_exporter_knows_is_named_with_what_to_do(project):
    project.write("tiny.yaml", RECIPE)
    project.write("models/tiny.py", CUSTOM)
    out = failed(project, "export")
    assert "the dynamo exporter can't translate your operator 'mine::op' to ONNX" in out
    assert "at models/tiny.py:19" in out
    assert "export: {translations: FILE.py:CALLABLE}" in out
    assert 'operators: {libraries: [PATH], nodes: {"mine::op": "DOMAIN::NAME"}}' in out


@pytest.mark.slow
def test_a_batch_axis_that_is_baked_in_is_named(project):
    project.write("tiny.yaml", RECIPE)
    project.write("models/tiny.py", NET.format(more="", value="input * int(input.shape[0])"))
    out = failed(project, "export")
    assert "axis 'batch' (dimension 0) is fixed at 2 in the graph" in out
    assert "torchscript: axis 'batch' is baked into the graph: at batch=3 output 'logits'" in out
    assert "        fix: read sizes from the tensors in forward (x.shape[0])" in out


@pytest.mark.slow
def test_a_failed_gate_says_all_about_the_worst_element_and_delivers_nothing(project):
    project.edit("tiny.yaml", "quantization", "validate: {fp32: {atol: 0, rtol: 0}}\nquantization")
    first = project.run()
    assert first.code == 3
    assert "FAILED  tiny:fp32/validate: " in first.out
    assert " elements differ by more than 0 + 0 |b|; worst [" in first.out
    assert "        at variant 'fp32', output 'logits', point '" in first.out
    assert "        fix: widen `validate: " in first.out  # before any optimization, too
    assert "blocked tiny:fp32/package  (needs tiny:fp32/validate)" in first.out
    assert list((project.folder / "artifacts/out").iterdir()) == []
    second = project.run()
    assert (second.code, second.ran) == (3, [])
    assert "FAILED  tiny:fp32/validate: " in second.out
    assert "up to date" not in second.out
    assert list((project.folder / "artifacts/out").iterdir()) == []


# --- the store ------------------------------------------------------------------------------------


def test_a_store_with_a_file_in_its_way_is_one_clear_error(cheap):
    cheap.write("artifacts", "a file")
    result = cheap.run()
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        f"error: can't make {cheap.folder / 'artifacts'}: a file is in its way\n"
        "  fix: move the file, or choose another folder with --store FOLDER\n"
    )


def test_a_store_with_a_file_for_its_records_says_so_in_verbs_that_only_read(cheap):
    arguments = ("plan", "tiny.yaml")
    records = cheap.folder / "artifacts" / "ac"
    records.parent.mkdir()
    records.write_text("a file")
    result = cheap(*arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        f"error: can't make {records}: a file is in its way\n"
        "  fix: move the file, or choose another folder with --store FOLDER\n"
    )


@pytest.mark.parametrize("verb", ["verify", "lint"])
def test_an_empty_name_is_not_the_folder_at_hand(cheap, verb):
    result = cheap(verb, "")
    assert (result.code, result.out) == (2, "")
    assert " empty\n  fix: " in result.err


@pytest.mark.slow
def test_a_store_that_became_read_only_still_says_what_is_up_to_date(project, disk):
    folder = disk("4m")
    assert project.run("--store", str(folder), "--only", "reference").code == 0
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    again = project.run("--store", str(folder), "--only", "reference")
    assert (again.code, again.ran) == (0, [])
    other = project.run("--store", str(folder), "--only", "export")
    assert other.code == 1
    assert "Read-only file system" in other.err


@pytest.mark.slow
def test_a_full_disk_is_one_clear_error_and_loses_nothing(project, disk):
    folder = disk("4m")
    arguments = ("--store", str(folder), "--only", "reference")
    assert project.run(*arguments).code == 0
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 12))
        except OSError:
            pass
    again = project.run(*arguments)
    assert again.code == 0
    full = project.run("--store", str(folder), "--only", "export")
    assert full.code == 1
    assert f"no space left on the disk while writing {folder}/" in full.err + full.out
    assert "fix: free some space (`onnxbuild cache gc` drops what nothing needs)" in (
        full.err + full.out
    )
    filler.unlink()
    assert (project.run(*arguments).code, project.run(*arguments).ran) == (0, [])
    assert [p for p in (folder / "tmp").rglob("*") if p.is_file()] == []


@pytest.mark.slow
def test_a_disk_that_fills_up_in_a_step_fails_that_step(project, disk):
    folder = disk("1m")
    body = "    open('big', 'wb').write(bytes(8 << 20))"
    project.edit("models/tiny.py", "    torch.manual_seed(0)", body)
    result = project.run("--store", str(folder), "--only", "reference")
    assert result.code == 1
    reported = result.out + result.err
    assert "no space left on the disk" in reported or "No space left on device" in reported
    assert list((folder / "ac").iterdir()) == []
    assert list((folder / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    "redirect", [pytest.param("> /dev/full", marks=pytest.mark.smoke), "<&- >&- 2>&-"]
)
def test_an_output_that_cant_be_written_is_no_bug(project, redirect):
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m onnxbuild graph tiny.yaml {redirect}"],
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "bug" not in done.stderr
    assert done.returncode == (1 if redirect == "> /dev/full" else 0)
