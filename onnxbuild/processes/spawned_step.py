"""One step in a process that was started for it; see `spawned_steps`."""

import contextlib
import faulthandler
import json
import os
import sys
import time
from pathlib import Path

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.sandbox.uncaught import log_traceback
from onnxbuild.adapters.toolchain.distributions import Distributions, site_folders
from onnxbuild.adapters.toolchain.preloaded import Preloaded
from onnxbuild.adapters.toolchain.step_environment import Cores
from onnxbuild.own_folder import OWN_FOLDER
from onnxbuild.processes.child import run_job
from onnxbuild.processes.relocated_imports import move_imports
from onnxbuild.processes.spawned_steps import EXPENSE_FILE

_KIB = 1024


def main() -> None:
    """Run the job that the first argument names: JSON with `id`, `folder`, `threads` and `moved`."""
    settings = json.loads(sys.argv[1])
    parent = os.path.dirname(OWN_FOLDER)
    own = set() if os.path.realpath(parent) in site_folders() else {parent}
    here = {"", os.getcwd(), *own}
    sys.path[:] = [path for path in sys.path if path not in here]
    if settings["moved"]:
        move_imports(*settings["moved"])
    Cores(settings["threads"]).take(settings["id"])
    faulthandler.enable()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # else a step that dies takes its lines along
    folder = Path(settings["folder"])
    code = 70
    try:
        distributions = Distributions(StatCache(Index(Path(":memory:"))))
        code = run_job(folder, Preloaded(distributions, ()), None)
    except BaseException as error:  # noqa: BLE001 - the result, or the log, can't be written
        log_traceback(error)
    finally:
        with contextlib.suppress(OSError, ValueError):
            (folder / EXPENSE_FILE).write_text(json.dumps(_expense()), encoding="utf-8")
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _expense() -> dict[str, float]:
    """CPU time in seconds; peak memory in bytes, 0 where the system does not tell."""
    peak_bytes = 0
    with contextlib.suppress(ImportError):
        import resource

        unit = 1 if sys.platform == "darwin" else _KIB
        peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return {"cpu_s": time.process_time(), "peak_bytes": peak_bytes}
