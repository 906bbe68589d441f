"""`onnxbuild run` on a real, small model: what runs after which edit, and what a user sees."""

import json
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import heed_signals

ALL = ["benchmark", "check", "export", "fp32/check", "fp32/package", "fp32/validate"]
ALL = sorted([*ALL, "optimize", "reference"])
USER_CODE = ["benchmark", "export", "reference"]


@pytest.mark.smoke
@pytest.mark.slow
def test_a_build_is_delivered_and_an_edit_reruns_what_depends_on_it(project):
    first = project.run()
    assert first.code == 0, first.out + first.err
    assert first.ran == ALL
    out = project.folder / "artifacts/out/tiny/fp32"
    assert {path.name for path in out.iterdir()} >= {
        "model.onnx", "manifest.json", "SHA256SUMS", "validation.json", "benchmark.json", "load.py",
    }  # fmt: skip
    subprocess.run(["sha256sum", "-c", "SHA256SUMS", "--quiet"], cwd=out, check=True)
    loaded = subprocess.run(
        [sys.executable, "load.py"], cwd=out, capture_output=True, text=True, check=False
    )
    assert loaded.returncode == 0, loaded.stderr
    assert "logits" in loaded.stdout

    assert project.run().ran == []
    assert project.run().out.endswith("up to date: 8 steps, nothing to do\n")

    project.edit("models/tiny.py", "import torch\n", "import torch  # the framework\n\n# hello\n")
    commented = project.run()
    assert (commented.code, commented.ran) == (0, [])

    project.edit("models/tiny.py", "    return torch.nn", "    made = torch.nn")
    project.edit("models/tiny.py", "2)\n    )", "2)\n    )\n    return made")
    refactored = project.run()
    assert refactored.ran == USER_CODE
    assert "output unchanged" in refactored.out

    project.edit("models/helper.py", "ReLU", "GELU")
    helper = project.run()
    assert helper.ran == ALL
    assert "source models/helper.py" in helper.out

    project.write("models/tiny.yaml", "")
    project.write("models/unrelated.py", "x = 1")
    assert project.run().ran == []

    (out / "model.onnx").write_bytes(b"edited")
    (out / "manifest.json").unlink()
    restored = project.run()
    assert restored.ran == []
    assert "model.onnx was changed; put back" in restored.out
    assert "manifest.json was deleted; put back" in restored.out
    subprocess.run(["sha256sum", "-c", "SHA256SUMS", "--quiet"], cwd=out, check=True)

    for blob in (project.folder / "artifacts/cas").rglob("*"):
        if blob.is_file() and blob.stat().st_size == (out / "model.onnx").stat().st_size:
            blob.chmod(0o644)
            content = bytearray(blob.read_bytes())
            content[len(content) // 2] ^= 1
            blob.write_bytes(content)
            break
    healed = project.run()
    assert healed.code == 0
    assert "damaged in the store" in healed.out
    subprocess.run(["sha256sum", "-c", "SHA256SUMS", "--quiet"], cwd=out, check=True)


def test_a_step_can_be_asked_for_alone_and_its_story_be_read(cheap):
    assert cheap.run("--only", "export").ran == ["export"]
    why = cheap("why", "tiny.yaml:export")
    assert why.out.splitlines() == [
        "tiny:export is up to date",
        "it last ran because of:",
        "  never built here",
    ]
    changed = cheap("why", "tiny.yaml:export", "--set", "opset=17")
    assert "  param opset: 18 -> 17" in changed.out
    maybe = cheap("why", "tiny.yaml:optimize", "--set", "opset=17")
    assert "tiny:export" in maybe.out
    plan = cheap("plan", "tiny.yaml", "--only", "export", "--only", "check")
    assert plan.out.splitlines()[0] == "cached  tiny:export"
    assert cheap("log", "tiny.yaml:export").code == 0
    nothing = cheap("log", "tiny.yaml:optimize")
    assert nothing.code == 2
    assert "it has not run here" in nothing.err
    inspected = cheap("inspect", "tiny.yaml:fp32")
    assert inspected.code == 2
    events = cheap("run", "tiny.yaml", "--only", "check", "--json")
    reported = [json.loads(line) for line in events.out.splitlines()]
    assert [each["type"] for each in reported] == [
        "run_started", "step_cached", "step_started", "step_finished", "run_finished", "result",
    ]  # fmt: skip
    assert reported[-1]["exit_code"] == 0


PATIENCE_S = 120.0
"""For what takes seconds at most, on a machine that may be busy."""
SLEEPS = "    import time; print('begins', flush=True); time.sleep(600)"


def _started(project, *arguments: str) -> subprocess.Popen[str]:
    """A run whose step has printed something."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "onnxbuild",
            "run",
            "tiny.yaml",
            "--only",
            "export",
            "-v",
            *arguments,
        ],
        cwd=project.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,  # noqa: PLW1509 - this process has no threads
    )
    end_s = time.monotonic() + PATIENCE_S
    while not any(log.read_text() for log in project.folder.glob("artifacts/runs/*/logs/*.log")):
        assert time.monotonic() < end_s, "the step did not start"
        time.sleep(0.05)
    return process


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_run_that_is_stopped_leaves_nothing_to_clean_up(project, number, code):
    project.edit("models/tiny.py", "    torch.manual_seed(0)", SLEEPS)
    process = _started(project)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    project.write("models/tiny.py", (project.folder / "models/tiny.py").read_text())
    project.edit("models/tiny.py", SLEEPS, "    torch.manual_seed(0)")
    again = project.run("--only", "export")
    assert (again.code, again.ran) == (0, ["export"])
    assert list((project.folder / "artifacts/tmp").iterdir()) == []
    assert list((project.folder / "artifacts/out").iterdir()) == []


@pytest.mark.smoke
def test_help_shows_every_verb_and_loads_next_to_nothing(project):
    code = (
        "import sys; from onnxbuild.cli import main\n"
        "sys.argv = ['onnxbuild', '--help']\n"
        "try: main.main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'torch', 'numpy', 'onnx', 'onnxruntime', 'jsonschema', 'rich', 'jinja2', 'yaml',\n"
        "         'dataclasses', 'sqlite3', 'click', 'inspect', 'urllib3'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert done.splitlines()[-1] == "[]"
    for verb in ("run", "plan", "why", "graph", "inspect", "log", "lint", "schema", "doctor"):
        assert f"\n  {verb} " in done


UP_TO_DATE = (("run",), ("plan",), ("plan", "--json"), ("lint",))


@pytest.mark.slow
def test_verbs_on_an_up_to_date_recipe_say_what_the_whole_decision_says(project):
    doubtful = "session: {execution_mode: parallel, inter_op_threads: 1}\n"
    project.write("tiny.yaml", (project.folder / "tiny.yaml").read_text() + doubtful)
    assert project.run().code == 0
    for words in UP_TO_DATE:
        quick, whole = project(*words, "tiny.yaml"), project(*words, "--", "tiny.yaml")
        assert quick == whole
        assert quick.code == 0
        assert _loaded(project, *words, "tiny.yaml") == [], words
        assert "click" in _loaded(project, *words, "--", "tiny.yaml")
    assert quick.out == "ok: tiny (8 steps)\n"
    assert quick.err.startswith("note: tiny.yaml:12:11: session has `execution_mode: parallel`")

    project.edit("models/helper.py", "ReLU", "GELU")
    assert "run     tiny:export  (source models/helper.py" in project("plan", "tiny.yaml").out
    project.edit("tiny.yaml", "parallel", "paralel")
    assert project("lint", "tiny.yaml").code == 2


def _loaded(project, *words):
    """Modules that take long to import and that a verb has imported."""
    code = (
        "import sys; from onnxbuild.cli import main\n"
        "try: main.main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'click', 'inspect', 'dataclasses', 'yaml', 'jsonschema', 'jinja2', 'rich', 'torch',\n"
        "         'numpy', 'urllib3', 'onnxbuild.catalog', 'onnxbuild.resolver', 'onnxbuild.core.recipe'}\n"
        "print('loaded', *sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=project.folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()[-1].split()[1:]
