"""`run --force STEP`: a step runs again though it is up to date, and says whether it gave the same bytes."""

import pytest

from tests.cli.conftest import CHEAP_MODEL, CheapProject

RANDOM = CHEAP_MODEL.replace('return f"', 'import time\n\n    return f"{time.time_ns()} ')


def notes(text: str) -> list[str]:
    return [
        line.partition("note")[2].strip() for line in text.splitlines() if line.startswith("note")
    ]


@pytest.fixture
def built(cheap: CheapProject) -> CheapProject:
    assert cheap.run().code == 0
    assert "nothing to do" in cheap.run().out
    return cheap


def test_a_step_that_is_up_to_date_runs_again_and_says_so(built):
    seen = built.run("--force", "export")
    assert (seen.code, seen.ran) == (0, ["export"])
    assert notes(seen.out) == ["tiny:export gave the same bytes again"]
    assert "(--force)" in seen.out
    assert "nothing to do" in built.run().out


def test_bytes_that_differ_are_a_finding_and_replace_the_old(cheap):
    cheap.write("models/tiny.py", RANDOM)
    assert cheap.run().code == 0
    model = cheap.folder / "artifacts/out/tiny/fp32/model.onnx"
    before = model.read_bytes()
    seen = cheap.run("--force", "export")
    assert seen.code == 0
    assert notes(seen.out) == [
        (
            "tiny:export is not reproducible: model.onnx differs from before, from the same inputs; "
            "the new result is kept"
        )
    ]
    assert model.read_bytes() != before
    assert "fp32/validate" in seen.ran  # what follows is built from the new one
    after = model.read_bytes()
    assert "nothing to do" in cheap.run().out
    assert model.read_bytes() == after


def test_bytes_are_compared_with_those_from_the_same_inputs(built):
    built.edit("models/tiny.py", "4x{width}", "5x{width}")
    edited = built.run("--force", "export")
    assert (edited.code, notes(edited.out)) == (0, []), "other inputs"
    built.edit("models/tiny.py", "5x{width}", "4x{width}")
    assert built.run().ran == []
    back = built.run("--force", "export")
    assert notes(back.out) == ["tiny:export gave the same bytes again"]


def test_a_forced_step_that_fails_leaves_the_result_it_had(built):
    built.write("models/helper.py", "def activation():\n    raise ValueError('broken')\n")
    assert built.run("--force", "export").code == 1
    built.write("models/helper.py", "def activation():\n    return 'ReLU'\n")
    seen = built.run()
    assert (seen.code, seen.ran) == (0, [])


def test_a_typo_lists_the_three_nearest(built):
    option = "--force"
    seen = built.run(option, "fp23")
    assert (seen.code, seen.err) == (
        2,
        (
            f"error: {option} fp23 is no variant or step of these recipes; the nearest of 9 are "
            "fp32, fp32/check and fp32/package\n"
            "  fix: write one of them; to see all: onnxbuild graph tiny.yaml\n"
        ),
    )
