"""Which machine something was made for, and whether this is one of that kind."""

from dataclasses import replace

from onnxbuild.onnxkit.host.made_for import other_machine, this_instruction_set, this_machine


def test_the_machine_that_makes_something_can_run_it():
    assert other_machine(this_machine()) == ""
    assert other_machine(this_instruction_set()) == ""


def test_another_architecture_and_another_instruction_are_named():
    made = this_machine()
    assert other_machine(replace(made, machine="vax")).startswith("it was made for vax; this is ")
    lacks = replace(made, cpu="Future 9000", flags={**made.flags, "avx1024": True})
    assert other_machine(lacks) == ("it was made for Future 9000; this CPU is without avx1024")


def test_layouts_want_equal_flags_and_machine_code_no_fewer():
    made = this_machine()
    flag = next((name for name, there in made.flags.items() if there), None)
    if flag is not None:
        older = replace(made, flags={**made.flags, flag: False})
        assert f"this CPU is with {flag}" in other_machine(older)
    code = this_instruction_set()
    assert all(code.flags.values())
    fewer = dict(list(code.flags.items())[1:])
    assert other_machine(replace(code, flags=fewer)) == ""
