"""Each fresh build differs from ordinary ones in everything that must not matter."""

from onnxbuild.adapters.toolchain.step_environment import ORDINARY, clean_environment
from onnxbuild.reproduction.variations import surroundings_of_round

KNOBS = ("hash_seed", "threads", "time_zone", "locale", "umask", "original")


def test_every_round_varies_everything():
    for number in range(1, 8):
        around = surroundings_of_round(number, "/somewhere")
        assert all(getattr(around, knob) != getattr(ORDINARY, knob) for knob in KNOBS), around


def test_two_rounds_have_other_seeds_cores_and_time_zones():
    one, two = (surroundings_of_round(number, "/somewhere") for number in (1, 2))
    assert one.hash_seed != two.hash_seed
    assert one.time_zone != two.time_zone
    assert one == surroundings_of_round(1, "/somewhere")  # and each always the same


def test_the_steps_see_them():
    around = surroundings_of_round(1, "")
    seen = clean_environment({"PATH": "/bin", "SECRET": "1"}, around)
    plain = clean_environment({"PATH": "/bin", "SECRET": "1"})
    assert "SECRET" not in seen
    assert "OMP_NUM_THREADS" not in plain
    changed = {name for name in seen if seen[name] != plain.get(name)}
    assert changed == {"PYTHONHASHSEED", "TZ", "LANG", "OMP_NUM_THREADS", "PYTHON_CPU_COUNT"}


def test_what_the_shell_is_set_to_does_not_matter():
    one = clean_environment({"PATH": "/bin", "HOME": "/home/one", "USER": "one"})
    other = clean_environment({"PATH": "/opt/bin:/bin", "HOME": "/root", "LOGNAME": "other"})
    assert one == other
    assert "USER" not in one
    assert clean_environment({"LD_LIBRARY_PATH": "/opt/lib"})["LD_LIBRARY_PATH"] == "/opt/lib"
