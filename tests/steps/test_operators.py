"""The step that takes libraries of custom operators in: what it writes, and each way to be refused."""

import json

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import FILE_DATA, Entrypoint
from onnxbuild.onnxkit.loaders.operator_libraries import this_platform
from onnxbuild.onnxkit.sessions.custom_operators import OperatorLibrary, read_libraries
from onnxbuild.steps.operators import KIND, OperatorsParams
from tests.fakes.step_context import run_step
from tests.native import compiled, fancy_library

PLAIN = 'extern "C" int plain() { return 1; }\n'
ENTRY = 'extern "C" void* RegisterCustomOps(void*, const void*) { return nullptr; }\n'


def taken(folder, *paths, nodes=None):
    libraries = Entrypoint(FILE_DATA, files=tuple(map(str, paths)))
    return run_step(KIND, OperatorsParams(libraries, nodes or {}), folder, {})


def refused(folder, *paths):
    with pytest.raises(StepError) as caught:
        taken(folder, *paths)
    return caught.value.what, caught.value.fix


def for_arm(folder):
    """The library as if for another processor: a loader of this one refuses it."""
    content = bytearray(fancy_library().read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    path = folder / "arm" / "libfancy.so"
    path.parent.mkdir()
    path.write_bytes(content)
    return path


@pytest.mark.slow
def test_libraries_are_laid_by_platform_and_listed(tmp_path):
    needed = compiled(tmp_path, "libneeded.so", PLAIN)
    outcome, context = taken(
        tmp_path / "step", fancy_library(), for_arm(tmp_path), needed, nodes={"a::b": "c::D"}
    )
    here = this_platform()
    folder = context.output("libraries")
    assert read_libraries(folder) == (
        OperatorLibrary("linux-aarch64/libfancy.so", ("linux-aarch64",)),
        OperatorLibrary(f"{here}/libfancy.so", (here,)),
        OperatorLibrary(f"{here}/libneeded.so", (here,), registers=False),
    )
    assert (folder / here / "libfancy.so").read_bytes() == fancy_library().read_bytes()
    assert outcome.metrics == {"libraries": 3, "platforms": sorted(["linux-aarch64", here])}
    (note,) = outcome.notes
    assert note.startswith("libneeded.so has no RegisterCustomOps: it is shipped for the others")
    assert json.loads((context.output("nodes") / "report.json").read_text()) == {"a::b": "c::D"}


def test_what_is_no_library_is_refused(tmp_path):
    (tmp_path / "notes.so").write_text("how to build it\n")
    what, fix = refused(tmp_path / "step", tmp_path / "notes.so")
    assert (
        what
        == f"{tmp_path}/notes.so in operators.libraries is no shared library for Linux, macOS or Windows"
    )
    assert fix.startswith("name the file that the compiler wrote: libNAME.so")


def test_a_library_that_needs_another_says_which_and_loads_with_it(tmp_path):
    needed = compiled(tmp_path, "libneeded.so", PLAIN)
    flags = ("-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", f"-L{tmp_path}", "-lneeded")
    made = compiled(tmp_path, "libneeds.so", ENTRY, flags)
    what, fix = refused(tmp_path / "alone", made)
    assert "libneeds.so: libneeded.so: cannot open shared object file" in what
    assert "put that into `operators.libraries`, too" in fix
    outcome, _ = taken(tmp_path / "both", made, needed)
    assert outcome.metrics["libraries"] == 2


def test_two_libraries_with_one_domain_are_refused(tmp_path):
    other = tmp_path / "libcopy.so"
    other.write_bytes(fancy_library().read_bytes())
    what, _ = refused(tmp_path / "step", fancy_library(), other)
    assert (
        what
        == "two libraries of operators.libraries have operators of one domain: libcopy.so, libfancy.so"
    )


def test_a_library_that_crashes_is_named(tmp_path):
    crash = ENTRY.replace("return", "*(volatile int*)0 = 1; return")
    what, _ = refused(tmp_path / "step", compiled(tmp_path, "libcrash.so", crash))
    assert what == "loading libcrash.so, alone in a process, was killed by SIGSEGV"
