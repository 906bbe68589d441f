"""A pipe in place of a file of the store: no command waits for a writer that never comes."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onnxbuild.reporting.gather import LastRun, last_run


class WaitedError(BaseException):
    """It waited too long; no error that a command handles."""


@contextmanager
def limited(patience_s: int) -> Iterator[None]:
    """End what waits for ever."""

    def end(*_: object) -> None:
        raise WaitedError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(patience_s)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("pattern", "command", "code"),
    [
        ("out/.laid/owners.json", ("run", "tiny.yaml"), 0),
        ("runs/*/logs/*", ("log", "tiny:export"), 2),
    ],
)
def test_no_command_waits_for_a_pipe(cheap, pattern, command, code):
    assert cheap.run().code == 0
    _replace(cheap.folder / "artifacts", pattern)
    with limited(300):
        assert cheap(*command).code == code


def test_a_report_does_not_wait_for_a_run_whose_events_are_a_pipe(cheap):
    assert cheap.run().code == 0
    store = cheap.folder / "artifacts"
    names = {"tiny:export"}
    assert last_run(store, cheap.folder, names).states == {"tiny:export": "run"}
    _replace(store, "runs/*/events.jsonl")
    with limited(300):
        assert last_run(store, cheap.folder, names) == LastRun()


def _replace(store: Path, pattern: str) -> None:
    replaced = [path for path in store.glob(pattern) if path.is_file()]
    assert replaced
    for path in replaced:
        path.unlink()
        os.mkfifo(path)
