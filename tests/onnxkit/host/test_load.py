import dataclasses
import subprocess
import sys
import time

from onnxbuild.onnxkit.host.load import Times, affinity, conditions, read_times

START = Times(total_s=100.0, busy_s=40.0, steal_s=1.0, own_s=5.0)


def after(total, busy, steal=0.0, own=0.0):
    return Times(
        START.total_s + total, START.busy_s + busy, START.steal_s + steal, START.own_s + own
    )


def test_own_work_is_not_noise():
    found = conditions(START, after(total=10, busy=9, own=8.9))
    assert (found.others_busy_percent, found.noisy) == (1.0, ())


def test_the_work_of_others_and_stolen_time_are_noise():
    found = conditions(START, after(total=10, busy=9, steal=0.2, own=5))
    assert found.others_busy_percent == 40.0
    assert found.noisy == (
        "other work took 40 % of the cores",
        "the host of this virtual machine took 2.0 % of their time",
    )


def test_counters_are_of_this_machine_and_go_on():
    before = read_times()
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    time.sleep(0.1)
    later = read_times()
    assert all(
        getattr(later, field.name) >= getattr(before, field.name)
        for field in dataclasses.fields(Times)
    )
    assert later.own_s > before.own_s  # a child that ended counts as own
    assert conditions(before, later).affinity == affinity()


def test_a_child_that_still_runs_counts_as_own():
    burn = (
        "import time\nwhile time.process_time() < 0.4: pass\nprint('done', flush=True)\ninput()\n"
    )
    before = read_times()
    command = [sys.executable, "-c", burn]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"done\n"
        running = read_times()
        child.stdin.close()
        child.wait()
    assert running.own_s - before.own_s > 0.3
    assert read_times().own_s >= running.own_s  # counted once, also when it has ended
