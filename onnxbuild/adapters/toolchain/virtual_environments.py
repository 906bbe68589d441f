"""Virtual environments made from lists of pinned requirements: made once, whole or not at all."""

import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.disk import locks
from onnxbuild.adapters.disk.atomic_files import make_folder, temp_name
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.locate import cache_root
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.environments import MADE, SEEDS
from onnxbuild.adapters.toolchain.npm import asked_of
from onnxbuild.adapters.toolchain.records import normalized
from onnxbuild.core.errors import StepError
from onnxbuild.requirements import read_pins

_ABOUT = "onnxbuild.json"
_RUNTIMES = ("onnxruntime", "tensorflow")
"""Distributions that `doctor` names, with their versions, for an environment."""

_NOT_OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")
_COLLECTING = re.compile(r"Collecting ([\w.-]+)")
_INSTALLING = re.compile(r"\s*Installing collected packages\b")
_UNREACHABLE = re.compile(
    r"Retrying \(|ConnectionError|ConnectTimeout|ReadTimeout|Name or service"
)
_NOT_FOUND = re.compile(
    r"(?:No matching distribution found for|satisfies the requirement) ([\w.-]+)"
)

Progress = Callable[[int, int, str], None]
"""Takes how many packages are there, of how many, and what is being done; the last call has all of them."""


def make_environment(
    requirements: str,
    interpreter: str,
    say: Callable[[str], None],
    *,
    compiled: bool = False,
    progress: Progress = lambda *_: None,
) -> None:
    """Make the virtual environment of a list, unless another process has just done so.

    It is put together in a folder of its own and renamed: one that is there is whole.

    Args:
        requirements: The list's absolute path.
        interpreter: Where its interpreter will be, absolute.
        say: Receives a line at each step.
        compiled: Its modules are compiled to bytecode: of large frameworks this saves most of each start.
        progress: Takes how many packages are there, of how many, and what is being done.

    Raises:
        StepError: It can't be made; nothing is left of it.
    """
    final = os.path.dirname(os.path.dirname(interpreter))

    def fill(folder: str) -> None:
        pins, _ = read_pins(Path(requirements).read_text(encoding="utf-8"))
        say(f"making the environment of {requirements}: {len(pins)} packages, with pip")
        _create(folder, requirements)
        _install(folder, requirements, progress, len(pins))
        if compiled:
            progress(len(pins), len(pins) + 1, "compiling")
            _compile(folder, final)
        _check_whole(folder, requirements)
        progress(len(pins) + 1, len(pins) + 1, "")

    make_once(requirements, interpreter, fill, say, final=final)


def make_once(
    listed: str,
    witness: str,
    fill: Callable[[str], None],
    say: Callable[[str], None],
    *,
    final: str,
) -> None:
    """Make the folder of a list, unless another process has just done so.

    Args:
        listed: The list's absolute path.
        witness: A path that is there if the folder is.
        fill: Puts all into a folder of its own, which is renamed then.
        say: Receives a line with the time that it took.
        final: The folder, absolute.

    Raises:
        StepError: It can't be made; nothing is left of it.
    """
    make_folder(Path(os.path.dirname(final)))
    lock = locks.wait_lock(Path(lock_path(final)))
    try:
        if not os.path.exists(witness):
            began_s = time.monotonic()
            _make(listed, final, fill)
            say(f"made the environment of {listed} in {time.monotonic() - began_s:.0f} s")
    finally:
        lock.release()


def lock_path(folder: str) -> str:
    """Return what is locked while an environment is made, used or removed; its date is the last use."""
    return f"{folder}.lock"


def used_s(folder: str) -> float:
    """Return when an environment was last used, or made; seconds since the epoch, 0 if it is gone."""
    found = 0.0
    for path in (folder, lock_path(folder)):
        with contextlib.suppress(OSError):
            found = max(found, os.stat(path).st_mtime)
    return found


def _make(requirements: str, final: str, fill: Callable[[str], None]) -> None:
    # Of killed processes, whose pip may live on for a while; of an interpreter that is gone.
    for left in (*glob.glob(f"{glob.escape(final)}.*.tmp"), final):
        shutil.rmtree(left, ignore_errors=True)
    temporary = f"{final}.{temp_name()}.tmp"
    try:
        text = Path(requirements).read_text(encoding="utf-8")
        fill(temporary)
        about = {"requirements": requirements, "text": text}
        Path(temporary, _ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
        os.rename(temporary, final)
    except OSError as error:
        raise StepError(
            f"the environment of {requirements} can't be made: {error.strerror or error}",
            where=requirements,
            fix=f"see that {os.path.dirname(final)} can be written, or set ONNXBUILD_CACHE",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _create(folder: str, requirements: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "venv", folder],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        env=_environment(),
        check=False,
    )
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "it says nothing").splitlines()
        raise StepError(
            f"`{sys.executable} -m venv` fails: {lines[-1]}",
            where=requirements,
            fix="install Python's venv (`apt-get install python3-venv`), or make an environment in "
            "another way and name it: `environment: {python: PATH}`",
        )


def _install(folder: str, requirements: str, progress: Progress, count: int) -> None:
    process = subprocess.Popen(
        [
            os.path.join(folder, "bin", "python"), "-m", "pip", "install", "--no-input", "--no-color",
            "--progress-bar", "off", "--disable-pip-version-check", "--no-compile",
            "--requirement", requirements,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        env=_environment(),
    )  # fmt: skip
    lines: list[str] = []
    collected = set[str]()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if found := _COLLECTING.match(line):
                collected.add(found[1])
                progress(min(len(collected), count), count + 1, f"fetching {found[1]}")
            elif _INSTALLING.match(line):
                progress(count, count + 1, "installing")
        code = process.wait()
    finally:
        process.kill()
        process.communicate()
    if code:
        raise _refused(lines, requirements)


def _compile(folder: str, final: str) -> None:
    """Compile its modules, under the paths that they will have; those that do not compile stay as they are."""
    python = os.path.join(folder, "bin", "python")
    library = os.path.join(folder, "lib")
    compiler = [python, "-I", "-m", "compileall", "-q", "-q", "-j", "0"]
    subprocess.run(
        [*compiler, "-s", folder, "-p", final, library],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env=_environment(),
        check=False,
    )


def _refused(lines: list[str], requirements: str) -> StepError:
    last = next((each for each in reversed(lines) if each.startswith("ERROR:")), "")
    last = last.removeprefix("ERROR:").strip() or (lines[-1] if lines else "it says nothing")
    where = requirements
    fix = "mend the list, or name an environment that is there: `environment: {python: PATH}`"
    unknown = _NOT_FOUND.search(last)
    if any(map(_UNREACHABLE.search, lines)):
        fix = "see that the package index can be reached (`pip config list`), and run again"
    elif unknown is not None:
        name = normalized(re.split(r"[=<>!~;\[]", unknown[1])[0])
        pins, _ = read_pins(Path(requirements).read_text(encoding="utf-8"))
        line = next((pin.line for pin in pins if pin.name == name), 0)
        where = f"{requirements}:{line}" if line else requirements
        fix = f"`pip index versions {name}` lists the available versions"
    return StepError(f"pip can't install the list: {last}", where=where, fix=fix)


def _check_whole(folder: str, requirements: str) -> None:
    """Refuse a list that left it to pip which versions of what it needs were taken."""
    pins, _ = read_pins(Path(requirements).read_text(encoding="utf-8"))
    installed = _installed(folder)
    listed = {pin.name for pin in pins} | SEEDS
    open_ends = [f"{n}=={installed.version(n)}" for n in installed.names() if n not in listed]
    if open_ends:
        raise StepError(
            f"the list leaves open {len(open_ends)} packages that those in it need",
            where=requirements,
            fix=f"add these, a line each: {' '.join(sorted(open_ends))}",
        )


def _installed(folder: str) -> Distributions:
    sites = sorted(map(str, Path(folder).glob("lib/python3*/site-packages")))
    sites += [os.path.join(folder, "Lib", "site-packages")]
    return Distributions(StatCache(Index(Path(":memory:"))), tuple(sites))


def _environment() -> dict[str, str]:
    """This process's, without what would have Python or pip look elsewhere."""
    return {name: value for name, value in os.environ.items() if name not in _NOT_OURS}


@dataclass(frozen=True, slots=True)
class MadeEnvironment:
    """One that is in the cache.

    Attributes:
        folder: Where.
        requirements: The list that it was made from, as it was called then.
        runtime: Distribution and version of ONNX Runtime, and of TensorFlow; npm's packages that its list
            asks for.
        size_bytes: Of its files.
        idle_s: Since it was last used, or made.
    """

    folder: str
    requirements: str
    runtime: str
    size_bytes: int
    idle_s: float


def made_environments() -> Iterator[MadeEnvironment]:
    """Yield the environments that were made for lists, in the order of their folders."""
    for about in sorted(Path(cache_root(), MADE).glob(f"*/{_ABOUT}")):
        try:
            recorded = json.loads(about.read_text(encoding="utf-8"))
            requirements, text = str(recorded["requirements"]), str(recorded["text"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        folder = str(about.parent)
        installed = _installed(folder)
        found = [n for each in _RUNTIMES for n in installed.stands_for(each)]
        runtimes = [f"{n} {installed.version(n)}" for n in found] or asked_of(text)
        size = sum(p.lstat().st_size for p in about.parent.rglob("*") if not p.is_dir())
        yield MadeEnvironment(
            folder, requirements, ", ".join(runtimes), size, time.time() - used_s(folder)
        )
