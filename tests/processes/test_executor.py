"""Steps as real children of a real fork server: limits, crashes, logs, surroundings, clean ends."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from onnxbuild.adapters.console.words import near
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.kernel import landlock
from onnxbuild.adapters.kernel.kernel_watch import reason_not
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.fingerprints import DiskFingerprints
from onnxbuild.building.wiring import ThisHost
from onnxbuild.catalog import CATALOG
from onnxbuild.core.errors import StepError, StoreError
from onnxbuild.core.graph import Step, StepAddress
from onnxbuild.core.ports import Done, Job
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.engine.decide import make_action
from onnxbuild.processes.executor import ProcessExecutor
from onnxbuild.processes.process_group import held_bytes
from onnxbuild.processes.running import Running
from onnxbuild.steps.reference import ReferenceOptions, ReferenceParams
from tests.fakes.world import HERE

KIND = CATALOG["reference"]
WORKS = "import torch\nreturn torch.nn.Linear(4, 2)"
PATIENCE_S = 120.0
"""For what takes seconds at most, on a machine that may be busy."""


class World:
    """One executor, whose fork server all tests of this module share unless they kill it."""

    def __init__(self, folder: Path, landlock_abi: int | None = None) -> None:
        self.folder = folder / "pro ject ü"
        self.store_root = folder / "store"
        stats = StatCache(Index(Path(":memory:")))
        installed = Distributions(stats)
        self.prints = DiskFingerprints(self.folder, stats, installed)
        self.host = ThisHost(self.prints, jobs=2, memory_bytes=8 << 30)
        self.store = DiskStore(self.store_root, stats)
        self.store.prepare()
        self.executor = ProcessExecutor(
            project=self.folder,
            store_root=self.store_root,
            temp=self.store_root / "tmp/run",
            store=self.store,
            fingerprints=self.prints,
            places=self.prints.places,
            host=self.host,
            timeout_s=60,
            landlock_abi=landlock.abi() if landlock_abi is None else landlock_abi,
            owners_of=installed.owners_of,
        )
        self.count = 0
        # the one place outside of its scratch that a fenced step may write to
        self.reported = Path(tempfile.mkdtemp(dir="/dev/shm"))

    def job(self, body: str, env: dict[str, str] | None = None) -> Job:
        self.count += 1
        path = self.folder / f"models/m{self.count}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        path.write_text(f"def load():\n{lines}\n")
        params = ReferenceParams(
            model=Entrypoint(f"models/{path.name}:load", env=env or {}, roots=("models", ".")),
            inputs=(DummyInput("input", "float32", ("batch", 4)),),
            outputs=(),
            axes=(Axis("batch", 1, 2, 1),),
            samples=None,
            options=ReferenceOptions(),
        )
        step = Step(f"r:s{self.count}", "reference", {}, params, HERE)
        action = make_action(step, KIND, {}, self.prints, self.host)
        address = StepAddress("r", f"s{self.count}")
        log = self.store_root / f"runs/x/{self.count}.log"
        return Job(step, address, action, {}, KIND.outputs, log, self.host.name)

    def start(self, body: str, env: dict[str, str] | None = None) -> Job:
        job = self.job(body, env)
        self.executor.start(job)
        return job

    def wait(self) -> Done:
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            for done in self.executor.wait(0.5):
                return done
        raise AssertionError("no step ended")

    def run(self, body: str, env: dict[str, str] | None = None) -> Done:
        self.start(body, env)
        return self.wait()

    def failure(self, body: str) -> str:
        done = self.run(body)
        assert done.error is not None
        assert done.outcome is None
        return done.error.what

    def wait_for(self, name: str) -> str:
        """The text of a file that a step writes."""
        path = self.reported / name
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            if path.exists() and path.read_text():
                return path.read_text()
            self.executor.wait(0.05)
        raise AssertionError(f"{name} was not written")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("processes"))
    yield made
    made.executor.close()
    shutil.rmtree(made.reported)
    assert not (made.store_root / "tmp/run").exists()


@pytest.fixture
def world(shared):
    before = shared.executor._timeout_s, shared.executor._memory_bytes
    yield shared
    shared.executor._timeout_s, shared.executor._memory_bytes = before
    assert [p for p in (shared.store_root / "tmp/run").iterdir() if p.is_dir()] == []


def is_gone(pid: int) -> bool:
    """Whether a process, which would go on for minutes, has ended or does so soon."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_a_step_gives_its_outputs_what_it_used_and_what_it_cost(world):
    done = world.start(WORKS)
    ended = world.wait()
    assert ended.job is done
    assert ended.error is None
    assert ended.outcome is not None
    ((name, artifact),) = ended.outputs.items()
    assert (name, artifact.kind) == ("reference", "reference")
    assert world.store.faults(artifact, by_content=True) == ()
    assert list(ended.observed.sources) == [f"models/m{world.count}.py"]
    assert "torch" in ended.observed.distributions
    assert 0 < ended.expense.wall_s < 30
    assert ended.expense.peak_bytes > 50 << 20


@pytest.mark.slow
def test_a_step_that_takes_too_long_is_stopped_and_says_so(world):
    world.executor._timeout_s = 0.5
    assert world.failure("import time; time.sleep(60)") == (
        "stopped: it ran longer than 0.5 s (--timeout)"
    )


@pytest.mark.slow
def test_a_step_that_takes_too_much_memory_is_stopped_and_says_so(world):
    world.executor._memory_bytes = 600 << 20
    error = world.run("import time\nx = bytearray(500 << 20)\ntime.sleep(60)").error
    assert re.fullmatch(
        r"stopped: it took \d+\.\d [MG]iB of memory; 600\.0 MiB allowed \(--memory\)", error.what
    )
    assert error.where == f"r:s{world.count}"
    assert error.fix.startswith("the machine has ")
    assert error.fix.endswith(" GiB: allow more with `--memory`")


def test_memory_of_what_a_step_starts_counts_and_what_a_fork_shares_counts_once():
    held = bytearray(os.urandom(1 << 20)) * 200
    other = "import time; x = bytearray(b'x') * (200 << 20); print(flush=True); time.sleep(60)"
    alone = held_bytes(os.getpid())
    assert alone > len(held)
    started = subprocess.Popen([sys.executable, "-c", other], stdout=subprocess.PIPE)
    forked = os.fork()
    if not forked:
        time.sleep(60)
        os._exit(0)
    try:
        assert started.stdout is not None
        started.stdout.readline()
        grown = held_bytes(os.getpid()) - alone
        assert 200 << 20 < grown < 300 << 20
    finally:
        started.kill()
        started.communicate()
        os.kill(forked, signal.SIGKILL)
        os.waitpid(forked, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "what"),
    [
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            r"killed by SIGKILL, as when the machine runs out of memory: it had taken \d+\.\d GiB of \d+\.\d GiB",
        ),
        ("import os; os.abort()", "the step's process was killed by SIGABRT"),
        (
            "import os; os._exit(0)",
            "the step's process ended with status 0 and without a result, as by os._exit\\(0\\)",
        ),
        (
            "import signal; signal.raise_signal(signal.SIGRTMIN + 1)",
            "the step's process was killed by signal 35",
        ),
    ],
    ids=["kill", "abort", "silent", "real-time signal"],
)
def test_a_step_that_ends_badly_is_that_steps_failure(world, body, what):
    done = world.run(body)
    assert done.error is not None
    assert re.search(f"{what}$", done.error.what)
    assert done.outputs == {}
    if "sys.exit" not in what:
        alone = " --jobs 1" if "SIGKILL" in what else ""
        store = shlex.quote(near(str(world.store_root)))
        assert done.error.fix == (
            f"to try it again: onnxbuild run r --only s{world.count} --store {store}{alone}"
        )
    assert world.run(WORKS).error is None


@pytest.mark.slow
def test_all_that_a_step_prints_is_in_its_log_and_its_end_is_reported(world):
    body = (
        "import os, sys, subprocess\n"
        "print('from python')\nprint('from stderr', file=sys.stderr)\n"
        "os.write(1, b'from C\\n')\nsubprocess.run(['echo', 'from a child'])\n"
        "for n in range(30000):\n    print('line', n)\n"
        "os.write(2, b'the last \\xff line\\n')\nos._exit(3)"
    )
    done = world.run(body)
    text = done.job.log.read_text(errors="replace")
    for said in ("from python", "from stderr", "from C", "from a child", "line 29999"):
        assert f"{said}\n" in text
    assert "the last � line" in done.log_tail
    assert len(done.log_tail) == 15


@pytest.mark.slow
def test_what_user_code_raises_is_one_sentence_and_its_traceback_is_in_the_log(world):
    done = world.run("raise KeyError('weights')")
    assert done.error is not None
    assert done.error.what == f"models/m{world.count}.py:load raised KeyError: 'weights'"
    assert done.error.where == f"models/m{world.count}.py:2"
    assert done.log_tail == ()
    assert "Traceback (most recent call last)" in done.job.log.read_text()


@pytest.mark.slow
def test_a_step_sees_clean_surroundings(world):
    os.environ["ONNXBUILD_TEST_SECRET"] = "secret"
    body = (
        "import json, os, sys, tempfile\n"
        "print(json.dumps([dict(os.environ), os.getcwd(), sys.path, sys.flags.no_user_site,\n"
        "    tempfile.gettempdir(), hash('x'), sys.stdin.read(), os.getpgid(0) == os.getpid()]))\n"
        "raise SystemExit"
    )
    try:
        jobs = [world.run(body, {"GIVEN": "by the recipe"}).job for _ in range(2)]
    finally:
        del os.environ["ONNXBUILD_TEST_SECRET"]
    logs = [json.loads(job.log.read_text().splitlines()[0]) for job in jobs]
    environment, cwd, path, no_user_site, temporary, hashed, read, leads = logs[0]
    assert "ONNXBUILD_TEST_SECRET" not in environment
    assert environment["GIVEN"] == "by the recipe"
    assert environment["PYTHONHASHSEED"] == "0"
    assert environment["TZ"] == "UTC"
    assert "PYTHONPATH" not in environment
    job = Path(temporary).resolve().parent
    assert job.parent == world.store_root / "tmp/run"
    assert Path(cwd).is_relative_to(job)
    assert Path(cwd).name == "project"  # a mirror of it
    assert path[0] == str(world.folder / "models")
    assert "" not in path
    assert no_user_site == 1
    assert hashed == logs[1][5]
    assert read == ""
    assert leads


@pytest.mark.slow
def test_what_a_step_leaves_running_in_its_group_ends_with_it(world):
    body = (
        "import subprocess, pathlib\n"
        "left = subprocess.Popen(['sleep', '600'])\n"
        f"pathlib.Path({str(world.reported / 'left')!r}).write_text(str(left.pid))\n"
    )
    assert world.run(body + WORKS).error is None
    assert is_gone(int((world.reported / "left").read_text()))


@pytest.mark.slow
def test_what_a_step_leaves_running_apart_from_it_ends_with_it(world):
    body = (
        "import subprocess, pathlib\n"
        "apart = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "orphan = subprocess.run(['sh', '-c', 'setsid sleep 600 >/dev/null 2>&1 & echo $!'],\n"
        "    capture_output=True, text=True).stdout\n"
        f"pathlib.Path({str(world.reported / 'pids')!r}).write_text(\n"
        "    f'{apart.pid} {orphan}')\n"
    )
    assert world.run(body + WORKS).error is None
    pids = [int(each) for each in (world.reported / "pids").read_text().split()]
    assert len(pids) == 2
    assert all(is_gone(pid) for pid in pids)


@pytest.mark.skipif(bool(reason_not()), reason="steps are not observed here")
@pytest.mark.slow
def test_what_a_step_used_that_cant_be_written_is_named(world):
    job = world.start("import time\ntime.sleep(1)\n" + WORKS)
    in_the_way = world.store_root / f"tmp/run/{world.executor._count}/seen.json"
    in_the_way.mkdir()
    done = world.wait()
    assert done.job is job
    assert isinstance(done.error, StoreError)
    assert done.error.what == f"{in_the_way} is a folder, where a file belongs"


@pytest.mark.slow
def test_a_fork_server_that_dies_fails_its_steps_and_the_next_step_starts_another(world):
    body = (
        "import os, pathlib, subprocess, time\n"
        "other = subprocess.Popen(['sleep', '600'])\n"
        "print('what it said before', flush=True)\n"
        f"pathlib.Path({str(world.reported / 'alive')!r}).write_text(f'{{os.getpid()}} {{other.pid}}')\n"
        "time.sleep(600)"
    )
    world.start(body)
    pids = [int(each) for each in world.wait_for("alive").split()]
    fork_server = world.executor._fork_server._process
    os.kill(fork_server.pid, signal.SIGKILL)
    done = world.wait()
    assert done.error is not None
    assert done.error.what == "the process that starts steps died"
    assert done.log_tail == (), "its last lines may be a traceback of the death of the other"
    assert all(is_gone(pid) for pid in pids)
    assert fork_server.returncode == -signal.SIGKILL
    assert world.run(WORKS).error is None
    fork_server = world.executor._fork_server._process
    os.kill(fork_server.pid, signal.SIGKILL)
    fork_server.wait()
    assert world.run(WORKS).error is None, "it died while nothing ran"


@pytest.mark.slow
def test_closing_ends_everything_at_once(tmp_path):
    world = World(tmp_path)
    world.start(
        "import os, pathlib, subprocess, time\n"
        "other = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"pathlib.Path({str(world.reported / 'alive')!r}).write_text(f'{{os.getpid()}} {{other.pid}}')\n"
        "time.sleep(600)"
    )
    pids = [int(each) for each in world.wait_for("alive").split()]
    fork_server = world.executor._fork_server.pid
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    world.executor.close()
    assert is_gone(fork_server)
    assert is_gone(pids[0])
    assert is_gone(pids[1])
    assert len(list(Path("/proc/self/fd").iterdir())) < descriptors
    assert not (world.store_root / "tmp/run").exists()
    world.executor.close()


def _killed(folder: Path) -> Running:
    """A job that was killed 10 s ago, whose end is not reported yet."""
    step = Step("r:s", "reference", {}, None, HERE)
    job = Job(step, StepAddress("r", "s"), None, {}, {}, folder, "")
    return Running(job, folder, since_s=100.0, pid=1, killed_for=StepError("it took too long"))


def test_a_killed_step_may_take_a_while_to_give_its_memory_back(tmp_path):
    fork_server = subprocess.Popen(["sleep", "600"])
    try:
        late = {"is_loaded": True, "fork_server": fork_server.pid}
        assert not _killed(tmp_path).is_overdue(1.0, 110.0, **late)
        fork_server.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, fork_server.pid, os.WSTOPPED | os.WNOWAIT)
        assert _killed(tmp_path).is_overdue(1.0, 110.0, **late)
        assert not _killed(tmp_path).is_overdue(1.0, 101.0, **late)
    finally:
        fork_server.kill()
        fork_server.wait()


@pytest.mark.slow
def test_without_landlock_the_reads_that_python_sees_are_refused(tmp_path):
    world = World(tmp_path, landlock_abi=0)
    try:
        secret = world.folder / "models/secret.txt"
        secret.parent.mkdir(parents=True)
        secret.write_text("x")
        done = world.run(f"open({str(secret)!r}).read()\n{WORKS}")
        assert done.error is not None
        assert done.error.exit_code == 5
        assert done.error.what == (
            "'models/secret.txt' is read but not declared (read at models/m1.py:2)"
        )
    finally:
        world.executor.close()
        shutil.rmtree(world.reported)
