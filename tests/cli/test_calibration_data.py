"""`calibration: {data: ...}` in each of its forms, through the command: good data and bad."""

import shutil

import numpy as np
import pytest

from tests.cli.conftest import Project, make_project

pytestmark = pytest.mark.slow

DATA = """
import numpy as np


def feeds(count=120, scale=1.0):
    generator = np.random.default_rng(3)
    for _ in range(count):
        yield {"input": scale * generator.standard_normal((2, 4)).astype(np.float32)}


def nothing():
    yield from ()


def misnamed():
    yield {"imput": np.zeros((2, 4), np.float32)}


def misshapen():
    yield {"input": np.zeros((2, 5), np.float32)}


def mistyped():
    yield {"input": np.zeros((2, 4), np.float64)}


def broken():
    yield {"input": np.zeros((2, 4), np.float32)}
    yield {"input": np.full((2, 4), np.nan, np.float32)}


def infinite():
    yield {"input": np.zeros((2, 4), np.float32)}
    odd = np.zeros((2, 4), np.float32)
    odd[1, 2] = np.inf
    yield {"input": odd}


def masked():
    yield {"input": np.full((2, 4), -np.inf, np.float32)}


def raising():
    yield {"input": np.zeros((2, 4), np.float32)}
    yield {"input": {}["gone"]}


def ragged():
    yield {"input": [[0.0] * 4, [0.0] * 3]}
"""
QUANTIZATION = "quantization: {int8: {mode: static, validate: {cosine_min: 0.9}}}\n"
CALIBRATION = "calibration: {data: models/data.py:feeds}\n"


@pytest.fixture(scope="module")
def calibrating(tmp_path_factory):
    """A recipe with a static variant; what comes before its calibration is built."""
    made = make_project(tmp_path_factory.mktemp("calibration") / "project")
    made.write("models/data.py", DATA)
    made.edit("tiny.yaml", "quantization: {fp32: none}\n", QUANTIZATION + CALIBRATION)
    built = made.run("--only", "int8/preprocess")
    assert built.code == 0, built.out + built.err
    return made


@pytest.fixture
def data(calibrating):
    """The folder that the data is written into, empty."""
    folder = calibrating.folder / "data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def calibrate(project: Project, data: str, *settings: str):
    """Quantize with calibration data; each setting is `KEY=VALUE` of `calibration`."""
    chosen = [f"calibration.data={data}", *(f"calibration.{each}" for each in settings)]
    arguments = [part for each in chosen for part in ("--set", each)]
    return project.run("--only", "int8/quantize", *arguments)


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((count, 4)).astype(np.float32)


def test_an_npz_of_stacked_samples_calibrates(calibrating, data):
    np.savez(data / "real.npz", input=rows(100))
    done = calibrate(calibrating, "data/real.npz")
    assert done.code == 0, done.out + done.err
    assert done.ran == ["int8/calibrate", "int8/quantize"]
    assert "samples are few" not in done.out
    assert "no calibration" not in done.out


def test_npy_files_of_a_folder_calibrate_one_after_the_other(calibrating, data):
    for number in range(3):
        np.save(data / f"part-{number}.npy", rows(10 + number))
    done = calibrate(calibrating, "data/*.npy")
    assert done.code == 0, done.out + done.err
    assert "3 files from data/part-0.npy on yields 33 samples, fewer than the 100" in done.out
    assert "33 samples are few to calibrate with; 100 are usual" in done.out


def test_a_callable_calibrates_with_as_many_samples_as_are_asked_for(calibrating):
    done = calibrate(calibrating, "models/data.py:feeds")
    assert done.code == 0, done.out + done.err
    assert "samples" not in done.out
    few = calibrate(calibrating, "models/data.py:feeds", "samples=99")
    assert few.code == 0
    assert "99 samples are few to calibrate with; 100 are usual" in few.out


def test_dummy_inputs_work_and_are_reported_to_be_no_calibration(calibrating):
    done = calibrate(calibrating, "dummy")
    assert done.code == 0, done.out + done.err
    assert (
        "the ranges come from random inputs, which is no calibration: name real data in "
        "`calibration.data`"
    ) in done.out


def refusals(project: Project, data: dict[str, str]) -> dict[str, str]:
    """Recipe -> what its calibration was refused with, all of them built in one run.

    Args:
        project: Has the recipe that they are made after.
        data: Recipe -> its `calibration.data`.
    """
    recipe = (project.folder / "tiny.yaml").read_text()
    for name, each in data.items():
        text = recipe.replace("name: tiny", f"name: {name}").replace("models/data.py:feeds", each)
        project.write(f"{name}.yaml", text)
    files = [f"{name}.yaml" for name in data]
    done = project("run", *files, "--keep-going", "--only", "int8/calibrate")
    assert done.code == 1, done.out + done.err
    _, *reported = done.out.split("FAILED  ")
    return {each.partition(":")[0]: each.split("blocked ")[0] for each in reported}


def test_a_callables_bad_samples_are_reported(calibrating):
    expected = {
        "nothing": ("models/data.py:nothing yields no sample", "yield at least one mapping"),
        "misnamed": (
            "found an input 'imput'; expected input; 'input' is missing",
            "rename 'imput' to 'input'",
        ),
        "misshapen": (
            "input 'input' has shape [2, 5]; expected [batch, 4]: axis 1 has size 5 instead of 4",
            "reshape, cut or pad the data along it",
        ),
        "mistyped": ("input 'input' has dtype float64; expected float32", ".astype('float32')"),
        "broken": ("input 'input' holds 8 NaN among 8 values, the first at [0, 0]", "clean the"),
        "infinite": ("input 'input' holds 1 inf among 8 values, at [1, 2]", "clean the data"),
        "masked": (
            (
                "value '/module.0/Gemm_output_0' holds a NaN on calibration sample 0; its input "
                "'input' holds 8 -inf among 8 values, the first at [0, 0]"
            ),
            "numpy.finfo('float32').min",
        ),
        "raising": (
            "models/data.py:raising, asked for item 1, raised KeyError: 'gone'",
            "the error is raised by the data's own code",
        ),
        "ragged": ("input 'input' is no array: ", "as by padding"),
    }
    reported = refusals(calibrating, {name: f"models/data.py:{name}" for name in expected})
    for name, (what, fix) in expected.items():
        assert reported[name].startswith(f"{name}:int8/calibrate: {what}"), reported[name]
        assert fix in "".join(reported.values())  # equal ones are said once
    assert "at models/data.py:misnamed, sample 0" in reported["misnamed"]
    assert "at models/data.py:broken, sample 1" in reported["broken"]
    assert "at models/data.py:infinite, sample 1" in reported["infinite"]
    line = DATA.splitlines().index('    yield {"input": {}["gone"]}') + 1
    assert f"at models/data.py:{line}" in reported["raising"]


def test_bad_files_are_reported_by_name_with_what_to_do(calibrating, data):
    np.savez(data / "whole.npz", input=rows(4))
    content = (data / "whole.npz").read_bytes()
    (data / "empty.npz").write_bytes(b"")
    (data / "cut.npz").write_bytes(content[: len(content) // 2])
    arrays = {
        "short": {"input": rows(0)},
        "misnamed": {"imput": rows(4)},
        "surplus": {"input": rows(4), "more": rows(4)},
        "misshapen": {"input": np.zeros((4, 5), np.float32)},
        "mistyped": {"input": rows(4).astype(np.float64)},
        "broken": {"input": np.full((4, 4), np.nan, np.float32)},
        "objects": {"input": np.array([{}], object)},
    }
    for name, each in arrays.items():
        np.savez(data / f"{name}.npz", **each)
    (data / "several").mkdir()
    np.save(data / "several/a.npy", rows(3))
    np.save(data / "several/b.npy", np.full((3, 4), np.nan, np.float32))
    (data / "several/notes.txt").write_text("no array")
    expected = {
        "empty": ("'data/empty.npz' can't be read", "write it with numpy.save"),
        "cut": ("'data/cut.npz' can't be read", "write it with numpy.save"),
        "short": ("data/short.npz yields no sample; expected 100", "at least one"),
        "misnamed": ("found an input 'imput'; expected input", "rename 'imput' to 'input'"),
        "surplus": ("found an input 'more'; expected input", "leave 'more' out"),
        "misshapen": ("input 'input' has shape [1, 5]; expected [batch, 4]: axis 1", "reshape"),
        "mistyped": ("input 'input' has dtype float64; expected float32", ".astype('float32')"),
        "broken": ("input 'input' holds 4 NaN", "fix: clean the data"),
        "objects": ("'data/objects.npz' can't be read", "arrays of objects are refused"),
    }
    named = {name: f"data/{name}.npz" for name in expected}
    reported = refusals(
        calibrating, {**named, "among": "data/several/*.npy", "other": "data/several/*.*"}
    )
    for name, (what, fix) in expected.items():
        assert reported[name].startswith(f"{name}:int8/calibrate: {what}"), reported[name]
        assert named[name] in reported[name]
        assert fix in "".join(reported.values())  # equal ones are said once
    assert "input 'input' holds 4 NaN" in reported["among"]
    assert "at data/several/b.npy, sample 0" in reported["among"]
    assert "'data/several/notes.txt' is neither an .npy nor an .npz file" in reported["other"]
    assert "`data/*.npz`" in reported["other"]
