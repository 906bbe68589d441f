"""What a person reads of a run, word for word: one line a step, one message a failure."""

from dataclasses import replace

import pytest

from onnxbuild.adapters.console.words import Words
from onnxbuild.core.event import (
    Notice,
    RunStarted,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepProgress,
    StepStarted,
    StepWaiting,
)

STARTED = StepStarted("bert:export", ("param opset: 17 -> 18", "source m.py: a -> b"), "l.log")
FINISHED = StepFinished("bert:export", 2.34, 300 << 20, ("dynamo was used",))
FAILED = StepFailed(
    "bert:export", "no such operator", "models/bert.py:3", "raise `opset`", 1,
    log="artifacts/runs/x/logs/l.log", blocked=9,
)  # fmt: skip
QUIET = [
    (STARTED, []),
    (FINISHED, ["done    bert:export  (2.3 s, 300 MiB)", "        dynamo was used"]),
    (
        StepFinished("bert:export", 0.04, 1 << 20, unchanged=True),
        ["done    bert:export  (0.0 s, 1 MiB, output unchanged)"],
    ),
    (StepFinished("bert:int8/validate", 0.1, 1 << 20, fails=True), []),
    (StepCached("bert:export"), []),
    (StepProgress("bert:export", 1, 2, "samples"), []),
    (StepWaiting("bert:export"), ["wait    bert:export  (another run is building it)"]),
    (StepWaiting("bert:b/check", "bert:a/check"), []),
    (
        StepLeftOut("bert:w4/quantize", "nothing was quantized", ("bert:w4/fidelity",)),
        ["left out bert:w4/quantize: nothing was quantized"],
    ),
    (
        FAILED,
        [
            "FAILED  bert:export: no such operator",
            "        at models/bert.py:3",
            "        fix: raise `opset`",
            "        9 steps depend on it",
            "        its log: onnxbuild log bert:export",
        ],
    ),
    (
        StepFailed("b:e", "killed", "b:e", "", 1, log_tail=("one", "two"), blocked=1),
        [
            "FAILED  b:e: killed",
            "        1 step depends on it",
            "        its last lines:",
            "        | one",
            "        | two",
        ],
    ),
    (StepBlocked("bert:check", "bert:export"), []),
    (Notice("model.onnx was deleted; put back"), ["note    model.onnx was deleted; put back"]),
    (RunStarted("r1", 8), []),
]
VERBOSE = [
    (STARTED, ["run     bert:export  (param opset: 17 -> 18; source m.py: a -> b)"]),
    (StepCached("bert:export"), ["cached  bert:export"]),
    (
        StepWaiting("bert:b/check", "bert:a/check"),
        ["wait    bert:b/check  (bert:a/check, its equal, is running)"],
    ),
    (StepBlocked("bert:check", "bert:export"), ["blocked bert:check  (needs bert:export)"]),
    (RunStarted("r1", 8), ["run r1: 8 steps"]),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A project whose store is artifacts/."""
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def at(event, store):
    return replace(event, log=f"{store}/runs/x/logs/l.log") if getattr(event, "log", "") else event


@pytest.mark.parametrize(("event", "lines"), QUIET)
def test_each_event_has_its_sentences(here, event, lines):
    assert Words(verbose=False).lines(at(event, here / "artifacts")) == lines


@pytest.mark.parametrize(("event", "lines"), VERBOSE)
def test_verbose_adds_starts_and_all_that_stays(event, lines):
    assert Words(verbose=True).lines(event) == lines


def test_a_line_says_why_the_step_ran_unless_it_is_the_first_build():
    words = Words(verbose=False)
    words.lines(STARTED)
    assert words.lines(FINISHED)[0] == (
        "done    bert:export  (2.3 s, 300 MiB; param opset: 17 -> 18, and 1 more)"
    )
    words.lines(replace(STARTED, reasons=("never built here",)))
    assert words.lines(FINISHED)[0] == "done    bert:export  (2.3 s, 300 MiB)"


def test_a_step_has_one_line_however_it_ends(here):
    words = Words(verbose=False)
    run = [
        StepStarted("t:v", ("never built here",), ""),
        StepFinished("t:v", 1.0, 1 << 20, fails=True),
        StepFailed("t:v", "off by 1", "variant 'a'", "widen it", 3, log=f"{here}/a/runs/x/logs/l"),
    ]
    assert [line for event in run for line in words.lines(event)] == [
        "FAILED  t:v: off by 1",
        "        at variant 'a'",
        "        fix: widen it",
    ]


def test_the_same_error_again_is_one_line_and_the_same_fix_is_said_once():
    words = Words(verbose=False)
    first = replace(FAILED, log="")
    assert len(words.lines(first)) == 4
    assert words.lines(replace(first, step="bert:reference", blocked=4)) == [
        "FAILED  bert:reference: for the same reason (4 steps depend on it)"
    ]
    assert words.lines(replace(first, step="bert:check", what="another", blocked=0)) == [
        "FAILED  bert:check: another",
        "        at models/bert.py:3",
    ]
    words.lines(RunStarted("next", 8))
    assert len(words.lines(first)) == 4


def test_the_command_for_a_log_names_a_store_that_is_not_the_projects_own(here):
    lines = Words(verbose=False).lines(at(FAILED, here / "elsewhere"))
    assert lines[-1] == "        its log: onnxbuild log bert:export --store elsewhere"
    lines = Words(verbose=False).lines(at(FAILED, here / "a store"))
    assert lines[-1] == "        its log: onnxbuild log bert:export --store 'a store'"


def test_on_a_terminal_of_80_columns_no_line_is_longer():
    long = replace(
        FAILED,
        log="",
        what="the exporter can't translate " * 6,
        fix="write it in terms of others " * 5,
    )
    lines = Words(verbose=False, width=80).lines(long)
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("        ")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("b:e", []),
        ("b:e (f(x) of models/a.py)", ["at f(x) of models/a.py"]),
        ("b:e (HERE/models/a.py:3)", ["at models/a.py:3"]),
        ("models/a.py:3", ["at models/a.py:3"]),
    ],
)
def test_the_place_of_a_failure_is_what_is_not_said_yet(here, where, said):
    event = StepFailed("b:e", "broken", where.replace("HERE", str(here)), "", 1)
    assert Words(verbose=False).lines(event)[1:] == [f"        {line}" for line in said]
