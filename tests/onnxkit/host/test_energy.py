import pytest

from onnxbuild.onnxkit.host.energy import measured_joules


def package(folder, number, joules, span=1_000):
    place = folder / f"intel-rapl:{number}"
    place.mkdir(exist_ok=True)
    (place / "energy_uj").write_text(f"{round(joules * 1e6)}\n")
    (place / "max_energy_range_uj").write_text(f"{round(span * 1e6)}\n")


def test_all_packages_are_summed_and_a_counter_may_go_round(tmp_path):
    package(tmp_path, 0, 10)
    package(tmp_path, 1, 999)

    def work():
        package(tmp_path, 0, 12.5)
        package(tmp_path, 1, 1)
        return "done"

    assert measured_joules(work, tmp_path) == ("done", pytest.approx(4.5))


def test_where_the_machine_does_not_tell_nothing_is_run(tmp_path):
    calls = []
    assert measured_joules(lambda: calls.append(1), tmp_path) is None
    package(tmp_path, 0, 1)
    counter = tmp_path / "intel-rapl:0/energy_uj"
    counter.write_text("none")
    assert measured_joules(lambda: calls.append(1), tmp_path) is None
    assert calls == []


def test_a_counter_that_goes_while_it_is_used_gives_none(tmp_path):
    package(tmp_path, 0, 1)
    gone = (tmp_path / "intel-rapl:0/energy_uj").unlink
    assert measured_joules(gone, tmp_path) is None
