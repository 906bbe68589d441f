"""The suite's own shortcut: which zygotes fork from the template, and that they end with who asked."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time

import psutil
import pytest

from onnxbuild.adapters.child_environment import clean_environment
from onnxbuild.adapters.processes import _ZYGOTE
from tests import zygotes


def forked_by_templates() -> set[int]:
    """Processes whose parent is a template of this very process."""
    children = psutil.Process().children()
    templates = [
        each for each in children if any("zygotes.serve" in arg for arg in each.cmdline())
    ]
    return {each.pid for template in templates for each in template.children()}


@pytest.mark.slow
@pytest.mark.skipif(bool(os.environ.get(zygotes.COLD)), reason="all are started anew")
@pytest.mark.parametrize(
    ("variables", "threads", "forks"),
    [({}, None, True), ({"CUDA_VISIBLE_DEVICES": "0"}, None, False), ({}, 1, False)],
    ids=["ordinary", "a variable", "threads"],
)
def test_a_zygote_in_ordinary_surroundings_alone_forks_from_the_template(
    variables, threads, forks
):
    launcher = zygotes.command()[3]
    before = forked_by_templates()
    ours, theirs = socket.socketpair()
    told = {"socket": theirs.fileno(), "threads": threads, "moved": []}
    with theirs:
        process = subprocess.Popen(
            [launcher, "-s", "-c", _ZYGOTE, json.dumps(told), zygotes.PARENT],
            pass_fds=(theirs.fileno(),),
            env=clean_environment(variables),
            cwd="/",
        )
    with ours:
        anew = [sys.executable, "-s", "-c", _ZYGOTE]
        while not (forked := forked_by_templates() - before):
            if psutil.Process(process.pid).cmdline()[:4] == anew:
                break
            time.sleep(0.01)
        assert bool(forked) == forks
        assert process.poll() is None
    assert process.wait(60) == 0
    assert not forked & forked_by_templates()
