"""Another Python interpreter: what it is and where its packages are, asked once and remembered."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass

from onnxbuild.adapters.disk.statcache import ABSENT, StatCache
from onnxbuild.core.errors import StepError

OLDEST = (3, 10)
"""The oldest Python that this program's own modules run on."""

_TIMEOUT_S = 60.0
_ASK = """\
import json, site, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({
    "build": f"{sys.implementation.cache_tag} {sys.version}",
    "version": sys.version_info[:2],
    "prefixes": [sys.prefix, sys.base_prefix, sys.exec_prefix, paths["stdlib"], paths["platstdlib"]],
    "sites": [*site.getsitepackages(), paths["purelib"], paths["platlib"]],
}))
"""


@dataclass(frozen=True, slots=True)
class Python:
    """Facts that an interpreter reports about itself.

    Attributes:
        build: Implementation, version, compiler.
        prefixes: Folders of the interpreter and its library.
        sites: Folders of installed packages, those that `.pth` files add last.
    """

    build: str
    prefixes: tuple[str, ...]
    sites: tuple[str, ...]


def look_at(path: str, stats: StatCache, where: str) -> Python:
    """Look at an interpreter; it is started once, and again when it has changed.

    Args:
        path: Absolute.
        stats: Remembers its answer.
        where: Who asks for it, for messages.

    Raises:
        StepError: It is missing, is no interpreter, or is too old.
    """
    now = stats.look(path)
    if now == ABSENT or os.path.isdir(path):
        raise _no_interpreter(path, where)
    settings = os.path.join(os.path.dirname(os.path.dirname(path)), "pyvenv.cfg")
    witness = path if stats.look(settings) == ABSENT else settings
    text = stats.digest(witness, f"interpreter {now} {path} ", lambda _: _answer(path, where))
    found = json.loads(text or _answer(path, where))
    if tuple(found["version"]) < OLDEST:
        raise StepError(
            f"the interpreter {path} is Python {'.'.join(map(str, found['version']))}; expected "
            f"{'.'.join(map(str, OLDEST))} or later",
            where=where,
            fix="make an environment with a newer one",
        )
    sites = list(dict.fromkeys(map(os.path.realpath, found["sites"])))
    added = [each for site in sites for each in _added_by(site, stats)]
    return Python(
        found["build"],
        tuple(dict.fromkeys(found["prefixes"])),
        tuple(dict.fromkeys([*sites, *added])),
    )


def _no_interpreter(path: str, where: str) -> StepError:
    if os.path.isdir(path):
        inside = os.path.join(path, "bin", "python")
        fix = f"write `python: {inside}`" if os.path.exists(inside) else "name the program in it"
        return StepError(f"{path} is a folder; expected an interpreter", where=where, fix=fix)
    fix = f"`python -m venv {os.path.dirname(os.path.dirname(path))}` makes one; ONNX Runtime, "
    fix += "or the model's framework, has to be installed there, too"
    if os.path.islink(path):
        what = f"the interpreter {path} is a link to {os.readlink(path)}, which is not there"
        return StepError(what, where=where, fix="make the environment anew, or write another path")
    return StepError(f"there is no interpreter {path}", where=where, fix=fix)


def _answer(path: str, where: str) -> str:
    fix = "name the `python` of an environment, such as ../venvs/openvino/bin/python"
    try:
        done = subprocess.run(
            [path, "-I", "-B", "-c", _ASK],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except PermissionError:
        what = f"the interpreter {path} can't be executed: permission denied"
        raise StepError(what, where=where, fix=f"chmod +x {path}, or name another") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer within {_TIMEOUT_S:g} s"
        what = f"the interpreter {path} can't be executed: {reason}"
        raise StepError(what, where=where, fix=fix) from None
    try:
        json.loads(done.stdout)["sites"]
    except (ValueError, KeyError, TypeError):
        lines = (done.stderr.strip() or done.stdout.strip() or "it says nothing").splitlines()
        what = f"{path} is no Python interpreter that works: {lines[-1]}"
        raise StepError(what, where=where, fix=fix) from None
    return done.stdout.strip()


def _added_by(site: str, stats: StatCache) -> list[str]:
    """Folders that a site folder's `.pth` files add; lines of code in them don't count."""
    stats.look(site)
    try:
        names = sorted(name for name in os.listdir(site) if name.endswith(".pth"))
    except OSError:
        return []
    found = []
    for name in names:
        path = os.path.join(site, name)
        stats.look(path)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file]
        except OSError:
            continue
        for line in lines:
            folder = os.path.join(site, line)
            if (
                line
                and not line.startswith(("#", "import ", "import\t"))
                and os.path.isdir(folder)
            ):
                found.append(os.path.realpath(folder))
    return found
