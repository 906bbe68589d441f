"""Tests that miss what tests/install_servers.sh installs are skipped by name, or fail where it must be there."""

import subprocess
from pathlib import Path

import pytest

from tests.servers import NEEDED, missing

CI = Path(__file__).parents[1] / ".ci/run"


def test_what_is_missing_skips_a_test_by_name(monkeypatch):
    monkeypatch.delenv(NEEDED, raising=False)
    with pytest.raises(
        pytest.skip.Exception, match=r"Chromium is not installed: tests/install_servers\.sh"
    ):
        missing("Chromium")


def test_where_it_must_be_there_the_test_fails(monkeypatch):
    monkeypatch.setenv(NEEDED, "1")
    with pytest.raises(pytest.fail.Exception, match="Chromium is not installed"):
        missing("Chromium")


@pytest.mark.skipif(not CI.is_file(), reason="not in the sdist")
@pytest.mark.parametrize(("installs", "needed"), [("true", "1"), ("false", "no")])
def test_ci_requires_what_it_could_install(tmp_path, installs, needed):
    for name, text in {
        ".ci/run": CI.read_text(),
        "tests/install_servers.sh": f"#!/bin/sh\n{installs}\n",
        "bin/make": '#!/bin/sh\necho "$1: ${ONNXBUILD_NEED_SERVERS:-no}"\n',
        "bin/id": "#!/bin/sh\necho 0\n",
        "bin/apt-get": "#!/bin/sh\n",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    done = subprocess.run(
        ["bash", tmp_path / ".ci/run"],
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        f"{target}: {needed}" for target in ("test", "test-sample", "check")
    ]
    said = "not all servers could be installed; the skipped tests have not run"
    assert (said in done.stderr) == (installs == "false")
