"""Code that makes outputs does not change without somebody asking whether the outputs do."""

from __future__ import annotations

import json

import pytest

from onnxbuild.catalog import CATALOG
from tests import step_code
from tests.golden_steps import GOLDEN, codes
from tests.step_code import Definition, codes_of

REWRITE = "then rewrite tests/golden/steps.json: python -m tests.golden_steps"


@pytest.mark.parametrize("kind", CATALOG)
def test_code_that_changes_what_a_step_makes_raises_its_version(kind):
    golden = json.loads(GOLDEN.read_text())
    assert kind in golden["kinds"], f"'{kind}' is new: {REWRITE}"
    code, own = codes()[kind]
    known = set(golden["definitions"])
    changed = ", ".join(sorted(str(each) for each, digest in own.items() if digest not in known))
    assert code == golden["kinds"][kind]["code"], (
        f"{changed or 'which definitions it uses'} changed: if that changes what '{kind}' makes of equal "
        f"inputs, raise `version` in its KIND, so that no old result is taken for a new one; {REWRITE}"
    )
    assert CATALOG[kind].version == golden["kinds"][kind]["version"], REWRITE


def test_what_the_kit_uses_in_turn_counts_too():
    def modules(kind):
        return {each.module for each in codes()[kind][1]}

    assert {"onnxbuild.steps.export", "onnxbuild.onnxkit.model.canonical"} <= modules("export")
    assert "onnxbuild.onnxkit.optimize.offline_optimization" in modules("optimize")
    assert "onnxbuild.onnxkit.optimize.offline_optimization" not in modules("check")


def test_timing_is_code_of_those_kinds_alone_that_measure_times_or_choose_by_them():
    timing = "onnxbuild.onnxkit.timing."
    found = {
        kind for kind in CATALOG if any(d.module.startswith(timing) for d in codes()[kind][1])
    }
    assert found == {"benchmark", "choose", "load-times", "pipeline-latency", "tune"}


STEP = '''\
"""A step."""

from onnxbuild.core.errors import StepError, NotApplicableError
from onnxbuild.onnxkit.kit import COUNT, Options, first, refused, second

FIX = "write more"


def run(context):
    """Run it."""
    found = first(context.params) + second(COUNT) + Options().size
    assert found != 7, "never"
    if found == 8:
        raise StepError("eight", fix=FIX)
    if found == 6:
        raise refused(found, context.params)
    if found < 0:
        raise StepError(f"{found} is too few", fix="give more")
    if found > 9:
        raise NotApplicableError("too many")
    return [each for each in range(found)]


def unused():
    return 0
'''
KIT = '''\
"""A kit."""

from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COUNT", "Options", "first", "refused", "second"]

COUNT = 3
"""How many."""


class Options:
    """What may be asked."""

    size: int = 2
    """How large."""
    depth: int = option(1, metadata={"help": "how deep", "least": 1})


def refused(found, where) -> StepError:
    """Say why."""
    shown = f"{found} in {where}"
    return StepError(f"{shown} is refused", fix="write less")


def perhaps(found) -> StepError | None:
    return StepError("odd") if found % 2 else None


def first(n):
    return n + 1


def second(n: int) -> int:
    return first(n) * 2
'''


@pytest.fixture
def code(tmp_path, monkeypatch):
    """(step's text, kit's text) -> digest of the step."""
    monkeypatch.setattr(step_code, "ROOT", tmp_path)
    for room in ("steps", "onnxkit", "core"):
        (tmp_path / "onnxbuild" / room).mkdir(parents=True)
    (tmp_path / "onnxbuild/core/errors.py").write_text("class StepError(Exception): ...\n")

    def digest(step=STEP, kit=KIT, place="onnxbuild.onnxkit.kit"):
        step_code.forget()
        (tmp_path / "onnxbuild/steps/step.py").write_text(step)
        (tmp_path / f"{place.replace('.', '/')}.py").write_text(kit)
        start = Definition("onnxbuild.steps.step", "run")
        return codes_of([start])[start][0]

    yield digest
    step_code.forget()


PROGRESS = "from onnxbuild.onnxkit.host.progress import counted, report, stage\n"
SAME = {
    "how far the step says that it is": lambda step: (
        PROGRESS + step.replace("    if found < 0", "    context.progress(1, 2)\n    if found < 0")
    ),
    "what it passes on to say so": lambda step: (
        PROGRESS
        + step.replace("range(found)]", 'counted(range(found), "samples", 9)]').replace(
            "    found = ", "    stage('1 of 2')\n    report(1, second(2))\n    found = "
        )
    ),
    "comments and doc strings": lambda step: step.replace("Run it", "Go") + "# done\n",
    "layout": lambda step: step.replace(
        "COUNT, Options, first, refused, second",
        "(\n    COUNT, Options, first, refused, second,\n)",
    ),
    "the name of a local variable": lambda step: step.replace("found", "made"),
    "the name of a comprehension's variable": lambda step: step.replace("each", "one"),
    "an annotation": lambda step: step.replace("(context)", "(context: Any) -> list[int]"),
    "what an error says": lambda step: step.replace("too few", "not enough").replace(
        "give", "add"
    ),
    "what is not used": lambda step: step.replace("return 0", "return 1"),
    "the name of a function": lambda step: step.replace("first", "begin"),
    "another order of imports": lambda step: step.replace("COUNT, Options", "Options, COUNT"),
    "the doc string of the module": lambda step: step.replace("A step.", "The step."),
    "the message of an assertion": lambda step: step.replace('"never"', '"by no means"'),
    "a constant that an error alone says": lambda step: step.replace("write more", "add some"),
    "what an error is given": lambda step: step.replace("fix=FIX", "where=context.where"),
    "what a function is given that makes an error": lambda step: step.replace(
        "refused(found, context.params)", "refused(context.params, found)"
    ),
    "a type for type checkers": lambda step: step.replace(
        "(context.params)", "(cast(int, context.params))"
    ),
}
SAME_KIT = {
    "the doc string of the module": ('"""A kit."""', '"""The kit."""'),
    "what stands below a constant": ("How many.", "The count."),
    "what stands below a field": ("How large.", "Its size."),
    "the help of a field": ("how deep", "levels"),
    "the words of an error that a function makes": ("is refused", "is not taken"),
    "how a function makes the words of an error": ("{found} in {where}", "{where}: {found}"),
    "what is imported for type checkers": ("import Mapping", "import Mapping, Sequence"),
    "what a module lists as its own": ('"COUNT", "Options"', '"Options", "COUNT"'),
    "a function that is not called": ("found % 2", "found % 3"),
}
OTHER_KIT = {
    "a constant": ("COUNT = 3", "COUNT = 4"),
    "the default of a field": ("size: int = 2", "size: int = 3"),
    "another entry of a field's metadata": ('"least": 1', '"least": 2'),
    "what is done at import": ("\n\ndef perhaps", "\n\nregister(Options)\n\n\ndef perhaps"),
    "which error is raised": ("-> StepError:", "-> ValueError:"),
    "a function that may give no error": ("-> StepError:", "-> StepError | None:"),
}
OTHER = {
    "a number": lambda step: step.replace("> 9", "> 8"),
    "which function is called": lambda step: step.replace("first(context", "second(context"),
    "an exchange of two functions": lambda step: step.replace(
        "first, refused, second", "first as second, refused, second as first"
    ),
    "what a step that is not applicable is said to be": lambda step: step.replace("many", "much"),
    "what is counted": lambda step: (
        PROGRESS + step.replace("range(found)]", 'counted(range(found + 1), "samples")]')
    ),
    "what else is called so": lambda step: step.replace(
        "    found = ", "    report(1)\n    found = "
    ),
    "which variable is meant": lambda step: step.replace("range(found)", "range(context)"),
    "what is raised": lambda step: step.replace("raise StepError", "raise ValueError"),
    "a parameter's name, which keywords may give": lambda step: step.replace("context", "given"),
}


@pytest.mark.parametrize("case", SAME)
def test_what_cannot_change_output_does_not_count(code, case):
    step = SAME[case](STEP)
    assert step != STEP
    kit = KIT.replace("first", "begin") if "begin" in step else KIT
    assert code() == code(step, kit)


@pytest.mark.parametrize("case", OTHER)
def test_what_can_change_output_counts(code, case):
    step = OTHER[case](STEP)
    assert step != STEP
    assert code() != code(step)


@pytest.mark.parametrize("case", SAME_KIT)
def test_what_cannot_change_output_in_what_a_step_uses_does_not_count(code, case):
    old, new = SAME_KIT[case]
    assert KIT.count(old) == 1
    assert code() == code(kit=KIT.replace(old, new))


@pytest.mark.parametrize("case", OTHER_KIT)
def test_what_can_change_output_in_what_a_step_uses_counts(code, case):
    old, new = OTHER_KIT[case]
    assert KIT.count(old) == 1
    assert code() != code(kit=KIT.replace(old, new))


def test_a_move_does_not_count_and_a_change_where_it_went_does(code):
    moved = STEP.replace("onnxkit.kit", "onnxkit.tools")
    assert code() == code(moved, place="onnxbuild.onnxkit.tools")
    assert code() != code(moved, KIT.replace("* 2", "* 3"), place="onnxbuild.onnxkit.tools")


@pytest.mark.parametrize(("old", "new"), [("= 3", "= 4"), ("n + 1", "n + 2"), ("* 2", "- 2")])
def test_what_a_step_uses_of_the_kit_counts_however_far_it_is(code, old, new):
    assert code() != code(kit=KIT.replace(old, new))


def test_a_file_that_is_written_into_the_output_counts_with_its_comments(code):
    step = STEP.replace("import COUNT, first, second", "import first, second").replace(
        "from onnxbuild.onnxkit.kit",
        "from onnxbuild.onnxkit import kit\nfrom onnxbuild.onnxkit.kit",
    )
    step = step.replace("second(COUNT)", "len(kit.__file__)")
    assert code(step) != code(step, f"{KIT}# a comment\n")


def test_a_file_next_to_the_code_that_reads_it_counts(code, tmp_path):
    kit = KIT.replace("return n + 1", "return n + len(open(__file__ + '/../a.txt').read())")
    (tmp_path / "onnxbuild/onnxkit/a.txt").write_text("a")
    before = code(kit=kit)
    assert code(kit=kit) == before
    (tmp_path / "onnxbuild/onnxkit/a.txt").write_text("b")
    assert code(kit=kit) != before


def test_a_template_in_the_folder_of_the_code_that_fills_it_counts(code, tmp_path):
    kit = KIT.replace(
        "return n + 1", "return n + len(files(__package__).joinpath('t.j2').read_text())"
    )
    (tmp_path / "onnxbuild/onnxkit/t.j2").write_text("a")
    before = code(kit=kit)
    (tmp_path / "onnxbuild/onnxkit/t.j2").write_text("b")
    assert code(kit=kit) != before
