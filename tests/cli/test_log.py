"""`onnxbuild log` of a step that printed much."""

import shutil

LOG_BYTES, MEMORY_BYTES = 700 << 20, 600 << 20


def test_a_log_that_is_gone_has_the_command_that_makes_it_again(cheap):
    never = cheap("log", "tiny:export")
    assert "it has not run here\n  fix: onnxbuild run tiny.yaml\n" in never.err
    assert cheap.run().code == 0
    shutil.rmtree(cheap.folder / "artifacts/runs")
    gone = cheap("log", "tiny:export")
    assert (gone.code, "no log of tiny:export any more" in gone.err) == (2, True)
    (fix,) = (line.split("onnxbuild ")[1] for line in gone.err.splitlines() if "fix:" in line)
    assert cheap(*fix.split()).code == 0
    assert cheap("log", "tiny:export").code == 0
