"""Run a function of this room in the environment of a model's framework, inside a step's fence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.environment import Environment
from onnxbuild.core.errors import StepError
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.converters.child import ANSWER, REQUEST, Request, read_arrays, write_arrays
from onnxbuild.own_folder import REAL_OWN_FOLDER

if TYPE_CHECKING:
    import numpy as np

_START = """\
import importlib.util, sys
del sys.path[0]
spec = importlib.util.spec_from_file_location(
    "onnxbuild", sys.argv[1] + "/__init__.py", submodule_search_locations=[sys.argv[1]]
)
sys.modules["onnxbuild"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["onnxbuild"])
from onnxbuild.onnxkit.converters.child import main
main(sys.argv[2])
"""  # this very onnxbuild, of which the room's own modules are imported, and nothing else next to it

_SCRIPT = "start.py"
"""A file, in a folder of the step's own: libraries look for files next to the program, and modules."""

_SETTINGS: Mapping[str, str] = {
    "PYTHONHASHSEED": "0",  # converters number values in the order of sets
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "1",
    "TF_ENABLE_ONEDNN_OPTS": "0",  # sums in another order on other CPUs
    "TF_USE_LEGACY_KERAS": "0",
    "KERAS_BACKEND": "tensorflow",  # whatever a user's shell says
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def run_there(
    context: StepContext,
    environment: Environment,
    function: Callable[[Request], Any],
    request: Request,
) -> Any:
    """Return what a function gives in another interpreter.

    Args:
        context: The step's; what the process prints is in its log.
        environment: Of a running step: its interpreter is known.
        function: At the top of a module of this room that imports nothing else of onnxbuild.
        request: JSON that it takes; `env` are variables that the process sees.

    Returns: JSON.

    Raises:
        StepError: It refused, failed, lacks a package, or its process died.
    """
    folder = context.scratch / f"there-{len(list(context.scratch.iterdir()))}"
    folder.mkdir()
    asked = {
        **request,
        "module": function.__module__,
        "function": function.__name__,
        "working": str(Path.cwd()),
    }
    (folder / REQUEST).write_text(json.dumps(asked), encoding="utf-8")
    interpreter = environment.interpreter
    variables = {**os.environ, **_SETTINGS, **request.get("env", {})}
    script = folder / _SCRIPT
    script.write_text(_START, encoding="utf-8")
    command = [interpreter, "-s", "-B", str(script), REAL_OWN_FOLDER, str(folder)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, env=variables, cwd=folder, check=False
        )
    except OSError as error:
        raise StepError(
            f"the interpreter {interpreter} can't be executed: {error.strerror}",
            where=context.where,
            fix="run again: the environment is looked at anew",
        ) from error
    answer = folder / ANSWER
    if done.returncode or not answer.is_file():
        raise _died(interpreter, done.returncode, context.where)
    return _taken(json.loads(answer.read_bytes()), environment, context.where)


def _died(interpreter: str, code: int, where: str) -> StepError:
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return StepError(
        f"the process of {interpreter}, which runs the model's framework, {how}",
        where=where,
        fix="see its last lines in the step's log; SIGKILL often means that memory ran out",
    )


def _taken(answer: Mapping[str, Any], environment: Environment, where: str) -> Any:
    if "refused" in answer:
        what, fix, line = answer["refused"]
        raise StepError(what, where=line or where, fix=fix)
    if "missing" in answer:
        fix = (
            f"{environment.interpreter} -m pip install {answer['missing']}"
            if environment.python
            else f"add `{answer['missing']}==VERSION` to a list of your own, and name it: "
            "`environment: {requirements: FILE}`"
        )
        what = f"the {environment} has no module '{answer['missing']}'"
        raise StepError(what, where=where, fix=fix)
    if "failed" in answer:
        raise StepError(
            answer["failed"],
            where=where,
            fix="see the step's log: it is the framework's own error",
        )
    return answer["made"]


def computed_there(
    context: StepContext,
    environment: Environment,
    function: Callable[[Request], Any],
    request: Request,
    feeds: Iterable[Mapping[str, np.ndarray]],
) -> list[dict[str, np.ndarray]]:
    """Return what a framework computes: for each of the feeds, output -> array.

    Args:
        function: Function as in `run_there`; its request has `feeds`, paths of files, and `computed`, a path for
            each of them that it writes by `write_arrays`.
        request: Other entries of its request.

    Raises:
        StepError: As `run_there`.
    """
    folder = context.scratch / "feeds"
    folder.mkdir()
    paths = []
    for number, each in enumerate(feeds):
        paths.append(folder / f"{number}.npz")
        write_arrays(paths[-1], each)
    made = [path.with_suffix(".out.npz") for path in paths]
    asked = {**request, "feeds": list(map(str, paths)), "computed": list(map(str, made))}
    run_there(context, environment, function, asked)
    return [read_arrays(Path(path)) for path in made]
