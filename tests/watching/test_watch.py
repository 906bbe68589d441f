"""`onnxbuild watch`, as a real process: on a terminal, and without one."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from onnxbuild.output.verbs import output_schema
from onnxbuild.recipe.schema.lean_jsonschema import Draft202012Validator
from tests.cli.conftest import heed_signals, make_project
from tests.terminal import Terminal

pytestmark = pytest.mark.slow

ONLY = ("watch", "tiny.yaml", "--only", "fp32/package")


@pytest.fixture
def project(tmp_path):
    made = make_project(tmp_path / "project")
    time.sleep(0.1)
    return made


@pytest.fixture
def watch(project):
    terminal = Terminal(ONLY, project.folder)
    yield terminal
    terminal.close()


def assert_nothing_is_left(project):
    """No process, no file of a build that is not finished."""
    store = project.folder / "artifacts"
    assert list((store / "tmp").iterdir()) == []
    assert list((store / "locks").glob("run-*")) == []
    assert not [each for each in store.rglob("*.tmp") if "cas" not in each.parts]
    again = project("cache", "verify")
    assert again.code == 0, again.out + again.err


def test_a_save_is_built_an_error_is_shown_and_mended_and_what_moved_is_said(project, watch):
    first = watch.until("ok       ", "built", "q or Ctrl-C to stop")
    assert first.splitlines()[0] == "watching tiny.yaml"
    assert "saved" not in first
    assert "tiny    fp32" in first

    project.edit("models/tiny.py", "width=8", "width=64")
    second = watch.until("saved    models/tiny.py", "since the last good build:", "ok       ")
    assert "tiny:fp32: size 0." in second

    project.edit("tiny.yaml", "outputs: [logits]", "outputs: [logits")
    broken = watch.until("FAILED   nothing was built", "the last good build:")
    assert "saved    tiny.yaml" in broken
    assert "tiny.yaml:" in broken
    assert "fix: " in broken

    project.edit("tiny.yaml", "outputs: [logits", "outputs: [logits]")
    assert "FAILED" not in watch.until("ok       nothing to build")

    project.edit("models/helper.py", "torch.nn.ReLU()", "torch.nn.Nothing()")
    failed = watch.until("FAILED   0 built", "for the same reason")
    assert "saved    models/helper.py" in failed
    assert "module 'torch.nn' has no attribute 'Nothing'" in " ".join(failed.split())
    assert "at models/helper.py:5" in failed
    assert failed.count("Nothing") == 1
    assert "blocked" not in failed

    project.edit("models/helper.py", "torch.nn.Nothing()", "torch.nn.ReLU()")
    watch.until("ok       nothing to build")

    watch.press("\x03")
    assert watch.end() == 130
    assert "interrupted; finished steps are kept" in watch.all
    assert_nothing_is_left(project)


def test_a_save_while_it_builds_stops_the_build_and_starts_it_anew(project, watch):
    watch.until("ok       ", "built")
    project.edit("models/tiny.py", "    torch.manual_seed(0)", "    import time; time.sleep(600)")
    watch.until("saved    models/tiny.py", "tiny:export", "running")
    project.edit("models/tiny.py", "    import time; time.sleep(600)", "    torch.manual_seed(1)")
    watch.until("ok       ", "since the last good build:")  # long before the 600 s are over
    watch.press("q")
    assert watch.end() == 0
    assert_nothing_is_left(project)


def test_a_signal_while_it_builds_leaves_nothing_half_written(project):
    project.edit("models/tiny.py", "    torch.manual_seed(0)", "    import time; time.sleep(600)")
    terminal = Terminal(ONLY, project.folder)
    try:
        terminal.until("tiny:export", "running")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 128 + signal.SIGINT
    finally:
        terminal.close()
    assert_nothing_is_left(project)


def test_without_a_terminal_it_is_a_line_a_build(project):
    process = subprocess.Popen(
        [sys.executable, "-m", "onnxbuild", *ONLY], cwd=project.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=heed_signals,  # noqa: PLW1509 - this process has no threads
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("ok      7 built, 0 cached, ")
        project.edit("models/helper.py", "torch.nn.ReLU()", "torch.nn.Nothing()")
        line = process.stdout.readline()
        assert line.startswith(("FAILED  tiny:export: ", "FAILED  tiny:reference: "))
        assert line.endswith("1 more failed; saved models/helper.py\n")
        project.edit("models/helper.py", "torch.nn.Nothing()", "torch.nn.ReLU()")
        assert process.stdout.readline() == "ok      nothing to build; saved models/helper.py\n"
        (project.folder / "tiny.yaml").rename(project.folder / "away.yaml")
        assert process.stdout.readline().startswith("error   ")
        (project.folder / "away.yaml").rename(project.folder / "tiny.yaml")
        assert process.stdout.readline().startswith("ok      nothing to build; saved ")
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        assert process.stdout.read().strip() == "interrupted; finished steps are kept"
    finally:
        process.kill()
        process.communicate()
    assert_nothing_is_left(project)


def test_with_json_each_build_is_a_record(project):
    process = subprocess.Popen(
        [sys.executable, "-m", "onnxbuild", *ONLY, "--json"], cwd=project.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=heed_signals,  # noqa: PLW1509 - this process has no threads
    )  # fmt: skip
    assert process.stdout is not None
    validator = Draft202012Validator(output_schema("watch"))
    try:
        first = json.loads(process.stdout.readline())
        project.edit("models/helper.py", "torch.nn.ReLU()", "torch.nn.Nothing()")
        second = json.loads(process.stdout.readline())
        for each in (first, second):
            validator.validate(each)
        assert (first["exit_code"], first["saved"], first["failures"]) == (0, [], [])
        assert first["rows"][0]["variant"] == "fp32"
        assert (second["exit_code"], second["saved"]) == (1, ["models/helper.py"])
        assert second["failures"][0].startswith("FAILED  tiny:")
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
    finally:
        process.kill()
        process.communicate()


def test_a_recipe_that_is_not_there_is_an_error_at_once(project):
    done = project("watch", "none.yaml")
    assert (done.code, done.out) == (2, "")
    assert (
        done.err
        == "error: there is no file 'none.yaml'\n  fix: onnxbuild watch recipes/NAME.yaml\n"
    )


def test_its_build_dies_with_it(project):
    project.edit("models/tiny.py", "    torch.manual_seed(0)", "    import time; time.sleep(600)")
    terminal = Terminal(ONLY, project.folder)
    terminal.until("tiny:export", "running")
    os.kill(terminal.process.pid, signal.SIGKILL)
    terminal.close()
    runs = project.folder / "artifacts/locks"
    end_s = time.monotonic() + 120
    while list(runs.glob("run-*")) and time.monotonic() < end_s:
        time.sleep(0.1)
    assert_nothing_is_left(project)


def test_a_file_that_is_read_no_more_starts_no_build(project):
    process = subprocess.Popen(
        [sys.executable, "-m", "onnxbuild", *ONLY], cwd=project.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=heed_signals,  # noqa: PLW1509 - this process has no threads
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("ok      7 built, 0 cached, ")
        project.edit("models/tiny.py", "    from helper import activation\n", "")
        project.edit("models/tiny.py", "activation()", "torch.nn.ReLU()")
        assert process.stdout.readline().endswith("saved models/tiny.py\n")
        project.edit("models/helper.py", "torch.nn.ReLU()", "torch.nn.Tanh()")
        time.sleep(1)  # five looks: a build of it would have begun, and be named next
        project.edit("models/tiny.py", "width=8", "width=16")
        assert process.stdout.readline().endswith("saved models/tiny.py\n")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
