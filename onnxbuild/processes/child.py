"""One step in a process of its own: job.json in, outputs and result.json out."""

import dataclasses
import errno
import importlib.util
import json
import os
import random
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from onnxbuild.adapters.disk.atomic_files import has_no_room, store_error
from onnxbuild.adapters.kernel import kernel_watch, landlock
from onnxbuild.adapters.observe.observer import Observer
from onnxbuild.adapters.observe.supervisor import ADOPTION, WATCH_FILE
from onnxbuild.adapters.sandbox.fence import Fence, fence_of
from onnxbuild.adapters.sandbox.home_folder import OWN_HOME, lay_home
from onnxbuild.adapters.sandbox.own_project import OwnProject
from onnxbuild.adapters.sandbox.refusal import GuessedInputError, explain
from onnxbuild.adapters.sandbox.uncaught import log_error, log_traceback, sentence_of
from onnxbuild.adapters.sandbox.undeclared import RefusedStep, is_below, undeclared_files
from onnxbuild.adapters.toolchain.distributions import site_folders
from onnxbuild.adapters.toolchain.import_variables import declared_path
from onnxbuild.adapters.toolchain.preloaded import Preloaded
from onnxbuild.adapters.toolchain.software import software_folders
from onnxbuild.core.errors import BuildError, NotApplicableError
from onnxbuild.core.params import from_json
from onnxbuild.core.places import HOME, for_people, real_path
from onnxbuild.core.step import Finding, Outcome, StepKind
from onnxbuild.core.target import run_by
from onnxbuild.onnxkit.host.fork_call import WATCHERS
from onnxbuild.onnxkit.host.progress import listen
from onnxbuild.onnxkit.sessions.custom_operators import OPERATORS_INPUT, operators_of
from onnxbuild.processes.child_context import ChildContext
from onnxbuild.processes.plugin_code import check_outputs, kind_of
from onnxbuild.processes.progress_file import ProgressWriter


def seed_generators() -> None:
    """Seed the generators of Python, NumPy and PyTorch: those of loaded modules now, the others when they are loaded."""
    random.seed(0)
    late: dict[str, Callable[[Any], object]] = {}
    for name, (seed_now, seed_later) in _SEEDS.items():
        if name in sys.modules:
            seed_now(sys.modules[name])
        else:
            late[name] = seed_later
    if late:
        sys.meta_path.insert(0, _SeedingFinder(late))


_SEEDS: Mapping[str, tuple[Callable[[Any], object], Callable[[Any], object]]] = {
    "numpy": (lambda numpy: numpy.random.seed(0), lambda numpy: numpy.random.seed(0)),
    # manual_seed takes a traceback, for which Python reads the sources of its callers: inputs, once a step is observed
    "torch": (
        lambda torch: torch.manual_seed(0),
        lambda torch: torch.default_generator.manual_seed(0),
    ),
}
"""Module -> what seeds its generators before the step is observed, and while it is."""


class _SeedingFinder(MetaPathFinder):
    """Finds modules as the other finders do, and seeds their generators when they have been loaded.

    Args:
        seeds: Module -> what to call with it; taken out when the module is looked for.
    """

    def __init__(self, seeds: dict[str, Callable[[Any], object]]) -> None:
        self._seeds = seeds

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - as the interpreter calls it
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        seed = self._seeds.pop(fullname, None)
        if seed is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_seed(module: ModuleType) -> None:
            execute(module)
            seed(module)

        spec.loader.exec_module = execute_and_seed  # type: ignore[method-assign]
        return spec


JOB_FILE, RESULT_FILE = "job.json", "result.json"
_SHARED_MEMORY = "/dev/shm"


def run_job(folder: Path, preloaded: Preloaded, supervisor: socket.socket | None) -> int:
    """Run the job in `folder`, and write its result next to it.

    Args:
        preloaded: What the fork server has loaded.
        supervisor: Where the fork server receives the kernel's reports; None if it can't.

    Returns: 0; result.json says whether the step made its outputs.

    Raises:
        OSError: result.json can't be written.
    """
    job = json.loads((folder / JOB_FILE).read_bytes())
    kind = kind_of(job)
    store = Path(job["store"])
    context = ChildContext(job, folder, _params(job, kind))
    fence = _fence(job, folder, kind, context.params) if kind.user_code else None
    ignored = (folder, store / "cas", store / "tmp")
    mirror = OwnProject(folder, Path(job["project"]))
    observer = Observer(
        Path(job["project"]),
        ignored,
        preloaded,
        fence,
        job["places"],
        toolchain=kind.toolchain,
        meant=mirror.meant,
    )
    reader = RefusedStep(
        job["step"],
        project=os.path.realpath(job["project"]),
        recipe=job["recipe"],
        store=os.path.realpath(job["store"]),
        home=job["places"][HOME],
        own_home=str(folder / OWN_HOME),
        meant=mirror.meant,
    )
    try:
        listen(ProgressWriter(folder) if job["progress"] else None)
        outside = _outside_files(job, kind, context.params)
        lay_home(folder / OWN_HOME, job["places"][HOME], outside)
        _settle_in(folder, job["temp"])
        if kind.user_code:
            mirror.lay(outside, left_out=(str(store),))
            os.chdir(mirror.folder)
        os.umask(job["umask"])
        if fence is not None:
            seed_generators()  # first: torch takes a traceback of it, whose lines are no input
            _shut(fence, observer, _Shut(job, folder, ignored), supervisor)
            observer.install()
            WATCHERS.append(observer)
            for entrypoint in kind.entrypoints(context.params):
                for root in entrypoint.roots:
                    folder_of_code = real_path(root, job["places"])
                    observer.refuse_shadows(str(Path(job["project"]) / folder_of_code))
        outcome = _outcome(kind, context)
        result = _success(context, outcome, observer.report() if kind.user_code else None)
        result["asked_by"] = observer.asked_by
        _refuse_what_was_passed_over(observer, reader)
        text = json.dumps(result, allow_nan=False)
    except BuildError as error:
        refusal = None if fence is None else explain(error, fence, reader)
        log_error(error)
        text = mirror.written(_failure(error, refusal, observer, job["places"]))
    except BaseException as error:  # noqa: BLE001 - the child's edge: all else is reported
        log_traceback(error)
        refusal = None if fence is None else explain(error, fence, reader)
        said = sentence_of(error, job["step"], job["project"], mirror.meant)
        text = mirror.written(_failure(said, refusal, observer, job["places"]))
    (folder / RESULT_FILE).write_text(text, encoding="utf-8")
    return 0


def _params(job: Mapping[str, Any], kind: StepKind) -> Any:
    """The step's parameters, with the interpreter that its target's sessions run in."""
    params: Any = from_json(kind.params, job["params"])
    other = job["interpreter"]
    if kind.params is object:  # what a file of the project is given when it is run
        return params
    return params if other is None else run_by(params, other)


def _fence(job: Mapping[str, Any], folder: Path, kind: StepKind, params: Any) -> Fence:
    project, places = Path(job["project"]), job["places"]
    entrypoints = kind.entrypoints(params)
    used = {path.partition("/")[0] for each in entrypoints for path in each.files}
    roots = {root for each in entrypoints for root in each.roots}
    on_path = [path for each in entrypoints for path in declared_path(each.env, str(project))]
    inputs = [os.path.realpath(p) for p in (folder / "in").rglob("*") if not p.is_dir()]
    return fence_of(
        project=str(project),
        scratch=str(folder),
        inputs=inputs,
        declared=[
            str(project / real_path(path, places)) for each in entrypoints for path in each.files
        ],
        outside=[places[name] for name in sorted(used & places.keys())],
        code=[*(places[name] for name in sorted(roots & places.keys())), *on_path],
        hidden=(job["store"], places[HOME], *job["hidden"]),
        software=(job["interpreter"] or {}).get("folders", ()),
    )


def _outside_files(job: Mapping[str, Any], kind: StepKind, params: Any) -> list[str]:
    """The declared files that are outside the project."""
    files = [path for each in kind.entrypoints(params) for path in each.files]
    return [real_path(path, job["places"]) for path in files if path.startswith("<")]


@dataclass(frozen=True, slots=True)
class _Shut:
    """Parameters for shutting a step in."""

    job: Mapping[str, Any]
    folder: Path
    ignored: tuple[Path, ...]


def _shut(fence: Fence, observer: Observer, step: _Shut, supervisor: socket.socket | None) -> None:
    """Fence this process in and have it observed: by the kernel where it can, else by Python."""
    fence.allows("/")  # which of its grants are folders is looked up once, and now
    by_kernel = step.job["landlock_abi"] > 0
    if by_kernel:
        landlock.restrict(
            readable=fence.readable, listable=fence.listable, writable=fence.writable
        )
    project = os.path.realpath(step.job["project"])
    arguments = {
        "job": os.path.realpath(step.folder),
        "project": project,
        "unseen": sorted({*map(str, step.ignored[1:]), *map(os.path.realpath, step.ignored[1:])}),
        "software": software_folders(project, _other_software(step.job)),
        "sites": site_folders(),
        "interpreter": os.path.realpath(sys.executable),
        "named": [*sorted(step.job["places"].values()), step.job["temp"]],
        "readable": fence.readable,
        "listable": fence.listable,
        "writable": fence.writable,
        "declared": sorted(fence.declared),
        "enforce": not by_kernel,
        "shared_memory": _names_in(_SHARED_MEMORY),
    }
    (step.folder / WATCH_FILE).write_text(json.dumps(arguments), encoding="utf-8")
    if supervisor is not None and step.job["kernel_watch"] and kernel_watch.watch(supervisor):
        observer.leave_files_to_the_kernel(os.path.join(arguments["job"], ADOPTION))
    elif not by_kernel:
        observer.enforce()
    if supervisor is not None:
        supervisor.close()


def _other_software(job: Mapping[str, Any]) -> list[str]:
    """The environment of a target's interpreter: known by the packages in it."""
    other = job["interpreter"] or {"path": "", "folders": ()}
    environment, folders = os.path.dirname(os.path.dirname(other["path"])), [*other["folders"]]
    if environment and os.path.exists(os.path.join(environment, "pyvenv.cfg")):
        folders.append(environment)
    return folders


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _refuse_what_was_passed_over(observer: Observer, reader: RefusedStep) -> None:
    """A file of the project that was refused is an error even if the code went on without it.

    Raises:
        UndeclaredInputError: There is one.
    """
    refused = {
        path: who for path, who in observer.refused.items() if is_below(path, reader.project)
    }
    if refused:
        raise undeclared_files(refused, reader)


def _settle_in(folder: Path, temp: str) -> None:
    """Work, be at home, and make temporary files, where they are removed with the job."""
    for name in ("scratch", "temp"):
        (folder / name).mkdir()
    os.chdir(folder / "scratch")
    os.environ["HOME"] = str(folder / OWN_HOME)
    os.environ["TMPDIR"] = temp
    tempfile.tempdir = None  # look again


def _outcome(kind: StepKind, context: ChildContext) -> Outcome:
    """Run the step; that it is not applicable to the model is a result, too."""
    libraries = context.input(OPERATORS_INPUT) if OPERATORS_INPUT in context.input_names else None
    try:
        with operators_of(libraries):
            outcome = kind.run(context)
    except NotApplicableError as error:
        if error.__cause__ is not None:
            log_traceback(error.__cause__)
        if has_no_room(context.scratch):
            raise store_error(OSError(errno.ENOSPC, ""), str(context.scratch)) from error
        context.outputs.clear()
        return Outcome(not_applicable=Finding(error.what, error.where, error.fix))
    check_outputs(kind, context, outcome)
    return outcome


def _success(
    context: ChildContext, outcome: Outcome, observed: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "outcome": dataclasses.asdict(outcome),
        "outputs": {name: str(path) for name, path in context.outputs.items()},
        "observed": observed,
    }


def _failure(
    error: BuildError, refusal: BuildError | None, observer: Observer, places: Mapping[str, str]
) -> str:
    """Return a failure as JSON: the error; what was refused, if that is why, and how surely."""
    failure: dict[str, Any] = {"error": _as_json(error, places), "asked_by": observer.asked_by}
    if refusal is not None:
        guess = {"who": refusal.who} if isinstance(refusal, GuessedInputError) else None
        failure["refusal"] = {"error": _as_json(refusal, places), "guess": guess}
    return json.dumps(failure)


def _as_json(error: BuildError, places: Mapping[str, str]) -> dict[str, Any]:
    parts = {"what": error.what, "where": error.where, "fix": error.fix}
    shown = {part: for_people(text, places) for part, text in parts.items()}
    return {**shown, "exit_code": error.exit_code}
