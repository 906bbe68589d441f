"""`onnxbuild.run` builds: in scripts, threads, coroutines, from other folders; its errors are the terminal's."""

# ruff: noqa: F811 - fixtures are imported
import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import onnxbuild as ob
from onnxbuild.python import run as run_module
from tests.cli.conftest import (
    heed_signals,
    project,  # noqa: F401 - a fixture
)

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("warm_steps")
def test_a_variant_has_its_model_a_session_and_its_metrics(project, monkeypatch):
    path = project.folder / "tiny.yaml"
    build = ob.run(path, settings={"benchmark.max_time_s": 0.1, "opset": 17})
    assert build.ok
    assert list(build) == ["fp32"]
    variant = build["fp32"]
    assert variant.model == project.folder / "artifacts/out/tiny/fp32/model.onnx"
    session = variant.session(intra_op_threads=1)
    (logits,) = session.run(None, {"input": np.zeros((3, 4), np.float32)})
    assert logits.shape == (3, 2)
    assert 0 <= variant.metrics["max_abs"] < 1e-3
    assert not list(variant.folder.rglob("__pycache__"))
    said = project("run", "tiny.yaml", "--set", "benchmark.max_time_s=0.1", "--set", "opset=17")
    assert said.out.splitlines()[-1] == "up to date: 8 steps, nothing to do"
    monkeypatch.chdir(project.folder)
    named = ob.run(
        "tiny", only="tiny.yaml:fp32", settings={"benchmark.max_time_s": 0.1, "opset": 17}
    )
    assert named["tiny:fp32"].model == variant.model
    again = ob.run(path, settings={"benchmark.max_time_s": 0.1, "opset": 17})
    assert again.summary == "up to date: 8 steps, nothing to do"
    assert dict(again["fp32"].metrics) == dict(variant.metrics)


@pytest.mark.usefixtures("warm_steps")
def test_a_failure_is_raised_in_the_terminals_words_and_leaves_what_was_built(
    project, monkeypatch
):
    project.write(
        "tiny.yaml",
        (project.folder / "tiny.yaml").read_text() + "validate: {fp32: {atol: 0, rtol: 0}}\n",
    )
    monkeypatch.chdir(project.folder)
    with pytest.raises(ob.FailedBuildError) as raised:
        ob.run("tiny.yaml")
    said = project("run", "tiny.yaml")
    assert raised.value.exit_code == said.code == 3
    failed = [line for line in str(raised.value).splitlines() if line.startswith("FAILED  ")]
    assert failed
    assert all(line in said.out for line in failed)
    build = raised.value.build
    assert (build.ok, build["fp32"].passed) == (False, False)
    assert build.failures[0]["file"] == "tiny.yaml"
    unchecked = ob.run("tiny.yaml", check=False)
    assert unchecked.exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "options"),
    [(["none.yaml"], {}), (["tiny.yaml", "--locked"], {"locked": True}), (["models/tiny.py"], {})],
)
def test_errors_are_those_of_the_terminal(project, monkeypatch, arguments, options):
    monkeypatch.chdir(project.folder)
    said = project("run", *arguments)
    with pytest.raises(ob.BuildError) as raised:
        ob.run(arguments[0], **options)
    assert f"error: {raised.value}\n" == said.err
    assert raised.value.exit_code == said.code


@pytest.mark.usefixtures("warm_steps")
def test_without_a_recipe_all_of_the_project_are_built_and_a_folder_stands_for_its_recipes(
    project, monkeypatch
):
    text = (project.folder / "tiny.yaml").read_text()
    project.write("recipes/tiny.yaml", text.replace("models/", "../models/"))
    other = text.replace("models/", "../../models/").replace("name: tiny", "name: other")
    project.write("recipes/more/other.yaml", other)
    monkeypatch.chdir(project.folder)
    assert ob.run(only="export").summary == "ok: 1 built, 0 cached"
    both = ob.run(["recipes", Path("recipes/more")], only="export")
    assert both.summary == "ok: 1 built, 1 cached"
    project.write("pyproject.toml", '[tool.onnxbuild]\ndefault = ["none"]\n')
    said = project("run")
    with pytest.raises(ob.UsageError, match="`default` names 'none'") as raised:
        ob.run()
    assert f"error: {raised.value}\n" == said.err


@pytest.mark.usefixtures("warm_steps")
def test_it_runs_in_coroutines_and_threads_and_from_other_folders(project, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    path = os.path.relpath(project.folder / "tiny.yaml")

    async def in_a_loop():
        return ob.run(path, only="export")

    assert asyncio.run(in_a_loop()).ok
    found = []
    thread = threading.Thread(
        target=lambda: found.append(ob.run(path, only=["export"], settings={"opset": 17}))
    )
    thread.start()
    thread.join()
    assert found[0].summary == "ok: 1 built, 0 cached"
    assert found[0].store == project.folder / "artifacts"
    assert list(elsewhere.iterdir()) == []


def test_no_main_guard_is_needed(project, tmp_path):
    code = f"import onnxbuild as ob\nprint(ob.run({str(project.folder / 'tiny.yaml')!r}, only='export'))\n"
    script = tmp_path / "script.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "<Build: ok: 1 built, 0 cached>"


@pytest.mark.usefixtures("warm_steps")
def test_progress_is_shown_where_it_is_asked_for(project, capsys):
    path = project.folder / "tiny.yaml"
    ob.run(path, only="export")
    assert capsys.readouterr() == ("", "")
    ob.run(path, only="export", settings={"opset": 17}, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split()[:2] for line in err.splitlines()] == [["done", "tiny:export"]]


def test_an_interruption_passes(project):
    code = (
        "import _thread, threading, onnxbuild as ob\n"
        "threading.Timer(1.5, _thread.interrupt_main).start()\n"
        f"try:\n    ob.run({str(project.folder / 'tiny.yaml')!r})\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    project.edit("models/tiny.py", "import torch\n", "import time\nimport torch\n")
    project.edit("models/tiny.py", "    torch.manual_seed(0)\n", "    time.sleep(20)\n")
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        preexec_fn=heed_signals,
    )
    assert done.stdout == "interrupted\n"


def test_the_types_are_those_that_a_checker_sees(tmp_path):
    script = tmp_path / "typed.py"
    script.write_text(
        "import onnxbuild as ob\n"
        "build = ob.run('a.yaml', only=['int8'])\n"
        "reveal_type(build)\n"
        "reveal_type(build['int8'].model)\n"
        "reveal_type(build['int8'].metrics['p50_ms'])\n"
        "reveal_type(build.failures[0]['line'])\n"
        "build['int8'].modle\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", tmp_path / "cache", script],
        capture_output=True, text=True, check=False,
        cwd=Path(ob.__file__).parents[1],
    )  # fmt: skip
    said = [line.partition(": ")[2] for line in done.stdout.splitlines()[:-1]]
    assert [line for line in said if "Revealed" in line] == [
        'note: Revealed type is "onnxbuild.python.build.Build"',
        'note: Revealed type is "pathlib.Path"',
        'note: Revealed type is "float | int | str | bool | None | tuple[Any, ...]"',
        'note: Revealed type is "int | None"',
    ]
    assert '"BuiltVariant" has no attribute "modle"' in done.stdout
    assert run_module.run is ob.run


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"jobs": -1}, "`jobs` is -1; expected a number of steps, 1 or more"),
        ({"memory_bytes": 0}, "`memory_bytes` is 0; expected bytes, 1 or more"),
        ({"timeout_s": None}, "`timeout_s` is None; expected"),
        ({"settings": {"opset": float("inf")}}, "settings['opset'] is inf, which a recipe can't"),
    ],
)  # fmt: skip
def test_arguments_that_the_terminal_refuses_are_refused_before_anything_runs(
    project, options, said
):
    with pytest.raises(ob.UsageError) as raised:
        ob.run(project.folder / "tiny.yaml", **options)
    assert str(raised.value).startswith(said)
    assert raised.value.fix
    assert not (project.folder / "artifacts").exists()


@pytest.mark.usefixtures("warm_steps")
def test_none_stands_for_the_default_and_settings_hold_what_python_has(project, monkeypatch):
    monkeypatch.chdir(project.folder)
    settings = {
        "opset": np.int64(17),
        "model.entrypoint": Path("models/tiny.py:load"),
        "validate": {"fp32": {"atol": np.float32(0.5)}},
        "outputs": np.array(["naïve😀"]),
    }
    build = ob.run(None, only=None, force=None, settings=settings, jobs=np.int64(1), check=False)
    failed = [each["what"] for each in build.failures]
    assert build.ok, failed
    (output,) = build["fp32"].session().get_outputs()
    assert output.name == "naïve😀"
